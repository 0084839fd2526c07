"""Spark on a cluster of two workers on 127.0.0.1: a worker that dies in the middle changes no number."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ragnb as rn

JOB = Path(__file__).with_name("spark_job.py")
N = 4000


def write(folder):
    """Write made scores, traces and gold; return the frames."""
    rng = np.random.default_rng(8)
    scores = pd.DataFrame(
        {
            "sample_id": [f"q{i}" for i in range(N)],
            "doc_name": [f"d{i % 40}" for i in range(N)],
            "system": ["新", "old"] * (N // 2),
            "faithfulness": rng.random(N),
            "context_recall": np.where(rng.random(N) < 0.1, np.nan, rng.random(N)),
        }
    )
    k = rng.integers(0, 50, N)
    said = ["Not in context", "Yes. citations: [d{}#1]", "Yes. citations: [x]"]
    traces = pd.DataFrame(
        {
            "question": [f"问题{i}?" for i in k],
            "system": ["新", "old"] * (N // 2),
            "answer": [said[j].format(i) for i, j in zip(k, rng.integers(0, 3, N), strict=True)],
        }
    )
    gold = pd.DataFrame(
        {
            "question": [f"问题{i}?" for i in range(50)],
            "answerable": [i % 3 > 0 for i in range(50)],
            "gold_ids": [[f"d{i}#1"] if i % 3 else [] for i in range(50)],
        }
    )
    for name, frame in (("scores", scores), ("traces", traces)):
        (folder / name).mkdir()
        for part in range(8):
            frame[part * N // 8 : (part + 1) * N // 8].to_parquet(folder / name / f"{part}.parquet")
    gold.to_json(folder / "gold.jsonl", orient="records", lines=True, force_ascii=False)
    return scores, traces, gold


class Cluster:
    """A master and two workers, each with a process group of its own."""

    def __init__(self, environment, folder):
        (home,) = environment.folder.glob("lib/python*/site-packages/pyspark")
        self.home, self.folder, self.started = home, folder, []
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "SPARK"))}
        self.env |= {"SPARK_HOME": str(home), "PYSPARK_PYTHON": str(environment.python)}
        self.env |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}

    def start(self, role, *words):
        log = self.folder / f"{role}-{len(self.started)}.log"
        with log.open("wb") as file:
            place = f"org.apache.spark.deploy.{role.lower()}.{role}"
            command = [self.home / "bin" / "spark-class", place, "--host", "127.0.0.1", *words]
            self.started.append(
                subprocess.Popen(
                    command,
                    stdout=file,
                    stderr=file,
                    env=self.env,
                    cwd=self.folder,
                    start_new_session=True,
                )
            )
        return log

    def __enter__(self):
        log = self.start("Master", "--port", "0", "--webui-port", "0")
        self.master = said(log, r"Starting Spark master at (spark://\S+)")
        for i in range(2):
            log = self.start(
                "Worker",
                "--webui-port",
                "0",
                "-c",
                "1",
                "-m",
                "600m",
                "-d",
                f"work{i}",
                self.master,
            )
            said(log, "Successfully registered with master")
        return self

    def kill(self, which):
        process = self.started[which]
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def __exit__(self, *_):
        for which in range(len(self.started)):
            self.kill(which)


def said(log, pattern, seconds=90):
    """Wait until a log says something, and return its first group."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := re.search(pattern, log.read_text(encoding="utf-8", errors="replace")):
            return found[found.re.groups]
        time.sleep(0.2)
    raise AssertionError(
        f"{log.name} does not say {pattern!r}: {log.read_text(errors='replace')[-2000:]}"
    )


def run(cluster, kill):
    """Run the job; kill a worker, with its executor and their Python, in the middle."""
    words = [cluster.env["PYSPARK_PYTHON"], str(JOB), cluster.master, str(cluster.folder)]
    job = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=cluster.env,
        cwd=cluster.folder,
    )
    with job:
        for line in job.stdout:
            if line.startswith("# running") and kill:
                cluster.kill(2)
            if line.startswith("{"):
                return json.loads(line)
        raise AssertionError(job.stderr.read()[-4000:])


@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_dies_in_the_middle_changes_no_number(environment, wheel, tmp_path):
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("no Java (looked for JAVA_HOME and java)")
    light = environment()
    light.pip("install", "-q", f"{wheel}[spark]")
    scores, traces, gold = write(tmp_path)
    with Cluster(light, tmp_path) as cluster:
        found = [run(cluster, kill=False), run(cluster, kill=True)]
        assert cluster.started[2].poll() == -signal.SIGKILL
    labelled = rn.label_traces(traces, gold=gold)
    wanted = {
        "means": rn.weighted_means(scores, by="system", doc_weights={"d1": 3.0}),
        "rates": rn.refusal_metrics(labelled, by="system"),
    }
    for one in found:
        assert str(light.folder) in one["ragnb"]
        for name, want in wanted.items():
            got = pd.read_json(io.StringIO(one[name]))
            numbers = ["value", "low", "high", "se", "n", "n_missing", "n_clusters"]
            assert got[["system", "metric"]].equals(want[["system", "metric"]])
            np.testing.assert_allclose(
                got[numbers].astype(float), want[numbers].astype(float), rtol=1e-10
            )
