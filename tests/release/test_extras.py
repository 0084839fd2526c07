"""What needs an extra says so in one line, with a command that, typed as it is shown, makes it work."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from environments import ROOT, Environment
from llm_server import LlmServer
from pdf import pdf_bytes
from pipeline_server import model

import ragnb

SAID = re.compile(r'pip install "(ragnb\[\w+\])"')
LANGUAGES = {"en": "it comes with: ", "zh": "请安装"}
CASE = {
    "sample_id": "a",
    "question": "How long is the warranty?",
    "answer": "The warranty is 730 days.",
    "ground_truth_answer": "730 days.",
    "retrieved_contexts": ["The pump has a warranty of 730 days."],
}


@dataclass(frozen=True)
class Need:
    """A command or a Python program that needs an extra, and the exit code with which it works."""

    extra: str
    words: str
    code: int = 0

    @property
    def is_python(self) -> bool:
        return not self.words.startswith("ragnb ")

    def run(
        self, environment: Environment, folder: Path, lang: str
    ) -> subprocess.CompletedProcess[str]:
        if self.is_python:
            return environment.run("python", "-c", self.words, cwd=folder)
        return environment.run(
            *shlex.split(self.words), *(["--lang", "zh"] if lang == "zh" else []), cwd=folder
        )


NEEDS = [
    Need("notebook", "ragnb report passing.yaml"),
    Need("notebook", "ragnb report 拦截.yaml"),
    Need("notebook", "ragnb report scores.csv passing.yaml"),
    Need("notebook", "ragnb run passing.yaml --stage report"),
    Need("notebook", "ragnb calibrate ratings.csv --html card.html"),
    Need("notebook", "import ragnb; ragnb.plots.radar"),
    Need("notebook", "from ragnb.plots import intervals"),
    Need("notebook", "import ragnb; ragnb.widgets.WeightEditor"),
    Need("notebook", "from ragnb.widgets import RatingSheet, ReviewSheet"),
    Need("notebook", "from ragnb.report import report; report('passing.yaml')"),
    Need("readers", "ragnb check book.xlsx"),
    Need("readers", "ragnb compare book.xlsx worse.csv --gate", 1),
    Need("readers", "ragnb calibrate ratings.xlsx"),
    Need("readers", "import ragnb; ragnb.read_scores('book.xlsx')"),
    Need("readers", "import ragnb; ragnb.assess('book.xlsx')"),
    Need("judge", "ragnb judge judge.yaml --no-probes"),
    Need("judge", "ragnb answer answer.yaml"),
    Need("judge", "ragnb generate generate.yaml"),
    Need("judge", "ragnb run answer.yaml --stage answer"),
    Need(
        "judge",
        "import ragnb; ragnb.Client(ragnb.Profile(base_url='http://127.0.0.1:1/v1', model='a'))",
    ),
    Need("ragas", "from ragnb.scoring.ragas import imported; imported()"),
    Need(
        "documents",
        "from pathlib import Path; from ragnb.scoring.documents import pdf_pages; pdf_pages(Path('leaflet.pdf'))",
    ),
    # What `ragnb open` begins with; the window itself is in tests/browser/test_window.py.
    Need("app", "from ragnb.errors import require; require('voila.app', extra='app')"),
]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An endpoint on 127.0.0.1 with a simulated model."""
    with LlmServer(model) as server:
        yield server.base_url


@pytest.fixture
def inputs(folder, endpoint) -> Path:
    """The small tables, workbooks, cases, documents, and scenarios that name the endpoint."""
    pd.read_csv(folder / "scores.csv").to_excel(folder / "book.xlsx", index=False)
    pd.read_csv(folder / "ratings.csv").to_excel(folder / "ratings.xlsx", index=False)
    (folder / "cases.jsonl").write_text(json.dumps(CASE), encoding="utf-8")
    (folder / "leaflet.pdf").write_bytes(pdf_bytes(CASE["retrieved_contexts"]))
    (folder / "docs").mkdir()
    (folder / "docs" / "pump.md").write_text(
        "# Warranty\n\n" + CASE["retrieved_contexts"][0], encoding="utf-8"
    )
    (folder / "rag.py").write_text(
        "def search(question):\n    return ['The pump has a warranty of 730 days.']\n"
    )
    profile = f"{{base_url: '{endpoint}', model: small}}"
    scenarios = {
        "judge": f"cases: cases.jsonl\nllm_profiles: {{judge: {profile}}}\n",
        "answer": "cases: cases.jsonl\nsystem: {name: mine, retrieve: 'rag:search'}\n"
        f"llm_profiles: {{answer: {profile}}}\n",
        "generate": "documents: docs\ngeneration: {questions: 1, multi_passage: 0, unanswerable: 0}\n"
        f"llm_profiles: {{dataset: {profile}}}\n",
    }
    for name, text in scenarios.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def core(environment, wheel) -> Environment:
    made = environment()
    made.pip("install", wheel)
    return made


def said(need: Need, environment: Environment, folder: Path, lang: str) -> str:
    """Run what needs an extra where that is not installed, and return the line that names it."""
    done = need.run(environment, folder, lang)
    if need.is_python:
        assert done.returncode == 1
        line = done.stderr.splitlines()[-1]
        assert line.startswith("ragnb.errors.MissingExtraError: ")
        return line
    assert done.returncode == 2, done.stderr
    assert re.fullmatch(r"(\d/\d \w+\n)?", done.stdout)  # the stage that ragnb run has come to
    (line,) = done.stderr.splitlines()
    assert line.startswith("ragnb: ")
    return line


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("need", NEEDS, ids=lambda need: need.words)
def test_what_is_missing_is_named_in_one_line(core, inputs, need, lang):
    line = said(need, core, inputs, lang)
    assert SAID.findall(line) == [f"ragnb[{need.extra}]"]
    assert (
        need.is_python or LANGUAGES["zh" if "拦截" in need.words else lang] in line
    )  # lang: zh in the file


@pytest.fixture(scope="module", params=list(dict.fromkeys(need.extra for need in NEEDS)))
def extended(request, environment, index, record) -> tuple[str, Environment]:
    """The core, and then the very command that the errors name."""
    made = environment()
    made.pip("install", "ragnb", PIP_FIND_LINKS=index)
    made.pip("install", f"ragnb[{request.param}]", PIP_FIND_LINKS=index)
    assert made.packages()["ragnb"] == ragnb.__version__
    record(f"ragnb[{request.param}]", made)
    return request.param, made


def test_the_command_that_is_named_makes_it_work(extended, inputs):
    extra, environment = extended
    environment.pip("check")
    wrong = {}
    for need in (need for need in NEEDS if need.extra == extra):
        for lang in LANGUAGES if not need.is_python else ("en",):
            done = need.run(environment, inputs, lang)
            if done.returncode != need.code or "Traceback" in done.stderr:
                wrong[need.words, lang] = done.returncode, done.stderr[-1000:]
    assert not wrong


def test_metrics_of_ragas_are_computed_with_both_extras(environment, wheel, index, inputs):
    """The judge's client is asked for first, ragas second; each line names what it lacks."""
    made = environment()
    made.pip("install", wheel)
    need = Need("judge", "ragnb evaluate judge.yaml --metric faithfulness")
    asked = []
    while (done := need.run(made, inputs, "en")).returncode == 2 and len(asked) < 3:
        (extra,) = SAID.findall(done.stderr)
        assert len(done.stderr.splitlines()) == 1
        asked.append(extra)
        made.pip("install", extra, PIP_FIND_LINKS=index)
    assert done.returncode == 0, done.stderr
    assert asked == ["ragnb[judge]", "ragnb[ragas]"]


RELATION = """
import duckdb, pandas as pd, ragnb as rn
query = duckdb.sql("SELECT * FROM 'scores.csv'")
mean = pd.read_csv("scores.csv")["faithfulness"].mean()
assert abs(rn.weighted_means(query)["value"].iloc[0] - mean) < 1e-10
assert rn.weigh(query).fetchall() and len(rn.diagnose(query)) >= 0
assert abs(rn.assess(query).means["value"].iloc[0] - mean) < 1e-10
"""


def test_a_relation_of_duckdb_needs_its_extra(environment, wheel, index, folder, record):
    made = environment()
    made.pip("install", wheel, "duckdb")
    line = said(Need("duckdb", RELATION), made, folder, "en")
    (extra,) = SAID.findall(line)
    assert extra == "ragnb[duckdb]"
    made.pip("install", extra, PIP_FIND_LINKS=index)
    made.pip("check")
    record(extra, made)
    done = made.run("python", "-c", RELATION, cwd=folder)
    assert done.returncode == 0, done.stderr


SPARK = """
import pandas as pd, ragnb as rn
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
frame = pd.read_csv("scores.csv")
rows = spark.createDataFrame(frame)
mean = frame["faithfulness"].mean()
assert abs(rn.weighted_means(rows)["value"].iloc[0] - mean) < 1e-10
"""


@pytest.mark.parametrize("extra", ["spark", "all"])
def test_spark_and_everything_together(environment, index, inputs, record, extra):
    made = environment()
    made.pip("install", f"ragnb[{extra}]", PIP_FIND_LINKS=index)
    made.pip("check")
    record(f"ragnb[{extra}]", made)
    done = made.run("python", "-c", SPARK, cwd=inputs)
    assert done.returncode == 0, done.stderr[-3000:]
    for need in NEEDS if extra == "all" else ():
        done = need.run(made, inputs, "en")
        assert done.returncode == need.code, (need.words, done.stderr)


def test_every_extra_is_tried():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"].keys() == {need.extra for need in NEEDS} | {
        "duckdb",
        "spark",
        "all",
    }
