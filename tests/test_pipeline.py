"""From documents to a report by one command: what each stage makes, skips and pays for, also when it is killed."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from closing_line import closing
from llm_server import Answer, LlmServer
from pdf import pdf_bytes
from pipeline_server import REFUSAL, model

import ragnb as rn
from ragnb.cli import main
from ragnb.errors import RagnbError
from ragnb.schema import Profile
from ragnb.scoring import generation_cost, passages_of

pytestmark = pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")
WARRANTY = """# Warranty

The pump has a warranty of 730 days. It starts on the day of delivery.

Seals are wearing parts. They are replaced free of charge within 90 days. The form is on page 4.
"""
TRAVEL = (
    "一线城市每晚不超过450元。其他城市每晚不超过320元。\n\n打车费每天上限为120元。凭行程单报销。"
)
RAG = """
from pathlib import Path

def search(question):
    texts = [path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "docs").iterdir())]
    parts = [part for text in texts for part in text.split("\\n\\n")]
    return sorted(parts, key=lambda part: -len(set(question) & set(part)))[:2]
"""
STAGES = ("generate", "answer", "evaluate", "judge")
OF_RAGAS = "faithfulness, context_recall, context_precision, noise_sensitivity, factual_correctness"


@pytest.fixture
def folder(tmp_path, monkeypatch, llm_server):
    llm_server.script = model
    return project(tmp_path / "p", llm_server, monkeypatch)


def project(
    path: Path,
    server: LlmServer,
    monkeypatch=None,
    questions: int = 8,
    metrics: str = "context_relevance",
) -> Path:
    (path / "docs").mkdir(parents=True)
    (path / "docs" / "warranty.md").write_text(WARRANTY, encoding="utf-8")
    (path / "docs" / "差旅.txt").write_text(TRAVEL, encoding="utf-8")
    (path / "rag.py").write_text(RAG, encoding="utf-8")
    profile = f"{{base_url: '{server.base_url}', model: small}}"
    (path / "x.yaml").write_text(
        f"documents: docs\ngeneration: {{questions: {questions}, personas: [a new colleague]}}\n"
        f"system: {{name: mine, retrieve: 'rag:search'}}\nmetrics: [{metrics}, support_lexical]\n"
        f"llm_profiles: {{dataset: {profile}, answer: {profile}, judge: {profile}}}\n",
        encoding="utf-8",
    )
    if monkeypatch:
        monkeypatch.chdir(path)
        monkeypatch.delitem(sys.modules, "rag", raising=False)
        monkeypatch.setattr(sys, "path", [*sys.path])
    return path


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# One command


def test_one_command_makes_questions_answers_scores_and_a_report(folder, llm_server, capsys):
    assert main(["run", "x.yaml", "--dry-run"]) == 0
    assert not llm_server.log
    assert not Path("reports").exists()
    bill = capsys.readouterr().out
    assert "8 questions from 2 passages of 2 documents" in bill
    assert "8 questions to mine" in bill
    assert main(["run", "x.yaml"]) == 0
    said = capsys.readouterr().out
    order = (
        "8 questions from 2 passages",
        "8 questions to mine",
        "8 of 8 questions: ",
        "8 of 8 questions ans",
    )
    assert said.startswith(bill)  # all of it, before the first call
    assert said.count("8 questions from 2 passages") == 1
    assert sorted(map(said.index, order)) == [*map(said.index, order)]
    made, answered = (
        lines(Path("reports/x") / name) for name in ("questions.jsonl", "answers.jsonl")
    )
    assert [row["sample_id"] for row in made] == [row["sample_id"] for row in answered]
    assert Counter(row["kind"] for row in made) == {"single": 4, "multi": 2, "unanswerable": 2}
    texts = "".join([WARRANTY, TRAVEL])
    for row in made:
        quotes, gold = row["generation_params"]["evidence"], row["ground_truth_contexts"]
        assert row["answerable"] == bool(quotes) == bool(row["ground_truth_answer"]) == bool(gold)
        assert all(quote in texts for quote in quotes)
        assert all(any(quote in text for quote in quotes) for text in gold or ())
        assert len(row["source_units"]) == (2 if row["kind"] == "multi" else 1)
        assert row["persona"] == "a new colleague"
    assert all(row["latency_s"] > 0 and row["tokens_in"] == 10 for row in answered)
    (page,) = Path("reports/x").glob("2*/report.html")
    assert made[0]["question"] in page.read_text(encoding="utf-8")
    sheet = rn.assess("x.yaml")
    assert sheet.means.set_index("metric").loc[
        ["context_relevance", "under_refusal"], "n"
    ].tolist() == [6, 2]
    assert {"under_refusal", "over_refusal"} <= {*sheet.gates["metric"]}
    assert "compliance" not in {*sheet.gates["metric"]}


def test_a_second_run_with_nothing_changed_makes_no_call_and_skips_each_stage(
    folder, llm_server, capsys
):
    assert main(["run", "x.yaml"]) == 0
    paid = len(llm_server.log)
    capsys.readouterr()
    assert main(["run", "x.yaml"]) == 0
    assert len(llm_server.log) == paid
    assert capsys.readouterr().out.count(": unchanged, ") == 4


def test_new_weights_and_gates_make_nothing_anew_but_the_page(folder, llm_server, capsys):
    assert main(["run", "x.yaml"]) == 0
    paid = len(llm_server.log)
    path = folder / "x.yaml"
    more = (
        "metric_weights: {context_relevance: 3}\ndoc_weights: {warranty.md: 2}\n"
        "gates: [{name: G, metric: context_relevance, op: '>=', threshold: 0.1}]\n"
    )
    path.write_text(path.read_text(encoding="utf-8") + more, encoding="utf-8")
    capsys.readouterr()
    assert main(["run", "x.yaml"]) == 0
    assert capsys.readouterr().out.count(": unchanged, ") == 4
    assert len(llm_server.log) == paid
    means = rn.assess("x.yaml").means.set_index("metric")
    assert means.loc["context_relevance", "weight"] == 3


def test_the_documents_of_a_run_are_read_for_their_hash_once(folder, monkeypatch):
    from ragnb.inputs import stages

    read = []
    digest = stages.digest
    monkeypatch.setattr(stages, "digest", lambda paths: read.append([*paths]) or digest(paths))
    assert main(["run", "x.yaml"]) == 0
    of_documents = [paths for paths in read if any("docs" in path.parts for path in paths)]
    assert len(of_documents) == 1
    before = stages.system_version(rn.load_scenario("x.yaml"))
    (folder / "docs" / "warranty.md").write_text(WARRANTY + "\nA new line.", encoding="utf-8")
    assert stages.system_version(rn.load_scenario("x.yaml")) != before


def test_three_pdf_files_become_a_judged_report(tmp_path, monkeypatch, llm_server):
    llm_server.script = model
    folder = project(tmp_path / "p", llm_server, monkeypatch, questions=3)
    for name in ("warranty.md", "差旅.txt"):
        (folder / "docs" / name).unlink()
    pages = {
        "warranty.pdf": ["The pump has a warranty of 730 days.", "Seals are wearing parts."],
        "travel.pdf": ["A night costs at most 450 euros.", "A taxi costs at most 120 euros a day."],
        "leave.pdf": ["Annual leave is 30 days.", "Sick leave needs a note from day 4 on."],
    }
    for name, texts in pages.items():
        (folder / "docs" / name).write_bytes(pdf_bytes(texts))
    (folder / "rag.py").write_text(
        "from ragnb.scoring import passages_of\n\n"
        "def search(question):\n"
        "    texts = passages_of('docs')['text']\n"
        "    return sorted(texts, key=lambda text: -len(set(question) & set(text)))[:2]\n",
        encoding="utf-8",
    )
    assert main(["run", "x.yaml"]) == 0
    made = lines(Path("reports/x/questions.jsonl"))
    assert len(made) == 3
    assert {row["doc_name"] for row in made} <= {*pages}
    for row in made:
        for unit in row["source_units"]:
            name, _, page = unit.partition("#page=")
            assert page in ("1", "2"), unit
            assert name in pages
    (page,) = Path("reports/x").glob("2*/report.html")
    assert made[0]["question"] in page.read_text(encoding="utf-8")


CORE = (
    "faithfulness, answer_relevancy, context_relevance, context_recall, context_precision, "
    "answer_correctness"
)


def with_vectors(folder, server, more=""):
    """Add an embedding model, and further lines, to the scenario."""
    path = folder / "x.yaml"
    text = path.read_text(encoding="utf-8").rstrip()
    profile = f"embeddings: {{base_url: '{server.base_url}', model: vectors}}"
    path.write_text(f"{text[:-1]}, {profile}}}\n{more}", encoding="utf-8")


def test_the_six_core_metrics_need_one_command(tmp_path, monkeypatch, llm_server, capsys):
    llm_server.script = model
    folder = project(tmp_path / "p", llm_server, monkeypatch, metrics=CORE)
    with_vectors(folder, llm_server)
    assert main(["run", "x.yaml"]) == 0
    means = rn.assess("x.yaml").means.set_index("metric")
    for name in CORE.split(", "):
        assert means.loc[name, "n"] > 0, name
    assert {request.body["model"] for request in llm_server.log} == {"small", "vectors"}
    paid = len(llm_server.log)
    assert main(["run", "x.yaml"]) == 0
    assert len(llm_server.log) == paid
    path = folder / "x.yaml"
    path.write_text(path.read_text().replace("model: vectors", "model: others"), encoding="utf-8")
    capsys.readouterr()
    assert main(["run", "x.yaml", "--dry-run"]) == 0
    assert "evaluate: unchanged" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "said", "mended"),
    [
        (
            ("context_relevance,", "answer_relevancy,"),
            "'answer_relevancy' needs an embedding model",
            "vectors",
        ),
        (("context_relevance,", "tone,"), "metric 'tone' is not known", None),
        (
            ("context_relevance,", "{name: tone, low: 0, high: 1},"),
            "no stage computes 'tone'",
            None,
        ),
        (("rag:search", "rag:find"), "find", None),
        (("rag:search", "rug:search"), "there is no module 'rug'", None),
        (("model: small}", "model: small, api_key_env: NOT_THERE}"), "NOT_THERE", None),
        (("metrics:", "candidate: theirs\nmetrics:"), "candidate='theirs' is not known", None),
        (("metrics:", "slices: [colour]\nmetrics:"), "colour", None),
        (("metrics:", "baseline: gone.csv\nmetrics:"), "gone.csv", None),
        (
            (
                "metrics:",
                "gates: [{name: G, metric: context_relevance, op: '>=', not_worse_than: baseline, "
                "threshold: 0}]\nmetrics:",
            ),
            "baseline",
            None,
        ),
    ],
)
def test_what_a_later_stage_refuses_is_refused_before_a_call_is_paid(
    folder, llm_server, capsys, change, said, mended
):
    path = folder / "x.yaml"
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace(*change), encoding="utf-8")
    for words in (["run", "x.yaml", "--dry-run"], ["run", "x.yaml"]):
        assert main(words) == 2
        assert said in capsys.readouterr().err
    assert not llm_server.log
    if mended:
        with_vectors(folder, llm_server)
    else:
        path.write_text(whole, encoding="utf-8")
    assert main(["run", "x.yaml", "--dry-run"]) == 0


def test_a_changed_document_runs_only_what_follows_from_it(folder, llm_server, capsys):
    assert main(["run", "x.yaml"]) == 0
    (folder / "rag.py").write_text(RAG.replace("[:2]", "[0:1]"), encoding="utf-8")
    sys.modules.pop("rag", None)
    capsys.readouterr()
    paid = len(llm_server.log)
    assert main(["run", "x.yaml", "--stage", "generate", "--stage", "answer"]) == 0
    told = capsys.readouterr().out
    assert "1/2 generate: unchanged" in told
    assert "2/2 answer\n" in told
    assert all('"evidence"' not in request.prompt for request in llm_server.log[paid:])
    assert {len(row["retrieved_contexts"]) for row in lines(Path("reports/x/answers.jsonl"))} == {1}


def test_answers_of_an_older_system_are_neither_scored_nor_judged(folder, llm_server, capsys):
    assert main(["run", "x.yaml"]) == 0
    tables = [Path("reports/x") / name for name in ("scores.csv", "judged.csv", "answers.jsonl")]
    before, paid = [table.read_bytes() for table in tables], len(llm_server.log)
    (folder / "rag.py").write_text(RAG.replace("[:2]", "[0:1]"), encoding="utf-8")
    for stage in ("evaluate", "judge"):
        assert main([stage, "x.yaml"]) == 2
        assert (
            "other inputs (changed: code); run ragnb answer or ragnb run first"
            in capsys.readouterr().err
        )
    assert ([table.read_bytes() for table in tables], len(llm_server.log)) == (before, paid)
    sys.modules.pop("rag")
    assert main(["answer", "x.yaml"]) == 0
    assert main(["judge", "x.yaml"]) == 0
    assert {len(row["retrieved_contexts"]) for row in lines(tables[2])} == {1}
    (folder / "docs" / "new.md").write_text(
        "# Returns\n\nParts can be returned.\n", encoding="utf-8"
    )
    assert main(["answer", "x.yaml"]) == 2
    assert "run ragnb generate or ragnb run first" in capsys.readouterr().err


def test_stages_run_alone_say_what_must_come_first(folder, llm_server, capsys):
    assert main(["answer", "x.yaml"]) == 2
    assert "run ragnb generate first" in capsys.readouterr().err
    tables = ("questions.jsonl", "answers.jsonl", "scores.csv", "judged.csv")
    for stage, table in zip(STAGES, tables, strict=True):
        before = len(llm_server.log)
        assert main([stage, "x.yaml"]) == 0
        said = capsys.readouterr().out
        first = closing(said)
        assert first["sent"] == len(llm_server.log) - before > 0
        assert first["asked"] == cells_of(stage, Path("reports/x") / table, said)
        assert first["done"] + first["not_applicable"] == first["asked"]
        assert main([stage, "x.yaml"]) == 0
        again = closing(capsys.readouterr().out)
        assert (again["done"], again["reused"], again["sent"]) == (0, first["done"], 0)
    assert main(["check", "x.yaml"]) in (0, 1)


def test_questions_that_are_all_unusable_are_counted_before_the_refusal(folder, llm_server, capsys):
    llm_server.script = lambda request: "no JSON"
    assert main(["generate", "x.yaml"]) == 2
    said = capsys.readouterr()
    paid = closing(said.out)
    assert "no usable question" in said.err
    assert paid["failed"] == paid["asked"] > 0
    assert paid["sent"] == len(llm_server.log)


def cells_of(stage: str, path: Path, said: str) -> int:
    """How many cells a stage has asked, from its table and, of questions that were left out, its words."""
    if stage == "generate":
        left_out = re.search(r"Left out: (.*)", said)
        return len(lines(path)) + sum(map(int, re.findall(r"\d+", left_out[1] if left_out else "")))
    if stage == "answer":
        return len(lines(path))
    table = pd.read_csv(path)
    if stage == "judge":
        return len(table) + 6  # the probes
    states = [name for name in table if name.endswith("__status") and name != "answer__status"]
    return table[states].notna().to_numpy().sum()


# Review


def test_a_review_drops_and_edits_questions_and_nothing_is_generated_again(folder, llm_server):
    assert main(["generate", "x.yaml"]) == 0
    paid, path = len(llm_server.log), Path("reports/x/review.csv")
    review = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert review["decision"].eq("").all()
    review.loc[0, "decision"] = "drop"
    review.loc[1, ["decision", "question"]] = "edit", "保修期多长？"
    review.to_csv(path, index=False)
    assert main(["generate", "x.yaml"]) == 0
    assert len(llm_server.log) == paid
    made = lines(Path("reports/x/questions.jsonl"))
    assert len(made) == 7
    assert made[0]["question"] == "保修期多长？"
    assert made[0]["generation_params"]["reviewed"] == "edit"
    assert pd.read_csv(path, dtype=str, keep_default_na=False)["decision"].tolist()[:2] == [
        "drop",
        "edit",
    ]


# The question set


@pytest.fixture
def author(llm_server):
    llm_server.script = model
    return Profile(base_url=llm_server.base_url, model="small")


DOCUMENTS = pd.DataFrame(
    {
        "source": ["a", "a", "b"],
        "content": [
            "One is red. Two is blue.",
            "Three is green.",
            "Four is old. Five is new. Six is dear.",
        ],
    }
)


def test_quotes_that_are_in_no_passage_are_dropped_counted_and_replaced(author, llm_server):
    def invents(request):
        text = model(request)
        if '"evidence"' in request.prompt and request.number == 0:
            return json.dumps(
                json.loads(text) | {"evidence": ["One is red. Two is  blue", "Nine is lost."]}
            )
        return text

    llm_server.script = invents
    made = rn.generate_cases(DOCUMENTS, client=author, n=3, unanswerable=0, multi_passage=0)
    assert made.attrs["dropped"] == {"not_verbatim": 1}
    assert len(made) == 3
    assert "Nine is lost." not in {
        quote for one in made["generation_params"] for quote in one["evidence"]
    }


def test_evidence_for_two_passages_comes_from_both_and_unanswerable_ones_are_checked(
    author, llm_server
):
    def halves(request):
        if '"answered"' in request.prompt:
            return json.dumps({"answered": True})
        text = model(request)
        return json.dumps(json.loads(text) | {"evidence": json.loads(text).get("evidence", [])[:1]})

    llm_server.script = halves
    made = rn.generate_cases(DOCUMENTS, client=author, n=4, unanswerable=0.5, multi_passage=0.5)
    assert made.empty
    assert set(made.attrs["dropped"]) == {"one_passage", "answered"}


def test_the_same_question_is_taken_once(author, llm_server):
    def repeats(request):
        text = model(request)
        return json.dumps(
            json.loads(text) | {"question": "Was gilt?" if request.number % 2 else "was gilt"}
        )

    llm_server.script = repeats
    made = rn.generate_cases(DOCUMENTS, client=author, n=3, unanswerable=0, multi_passage=0)
    assert len(made) == 1
    assert made.attrs["dropped"]["duplicate"] >= 2


def test_documents_take_turns_and_the_plan_is_the_same_each_time(author, llm_server):
    one, other = (
        rn.generate_cases(DOCUMENTS, client=author, n=6, seed=3).drop(columns=[]) for _ in range(2)
    )
    assert one.equals(other)
    assert one["doc_name"].value_counts().to_dict() == {"a": 3, "b": 3}
    estimate = generation_cost(DOCUMENTS, client=author, n=6, seed=3)
    assert estimate.calls * 2 == len(llm_server.log)


def test_chinese_questions_are_asked_for_in_chinese(author, llm_server):
    made = rn.generate_cases(
        [{"文档": "规定", "正文": TRAVEL}], client=author, n=1, unanswerable=0, lang="zh"
    )
    assert "你为一个检索文档的问答系统编写测试题" in llm_server.log[0].prompt
    assert made["doc_name"].tolist() == ["规定"]


def test_passages_keep_every_character_of_a_document_and_a_heading_with_its_text(tmp_path):
    long = "\n\n".join(f"# Part {n}\n\n" + f"Sentence {n} has words. " * 40 for n in range(6))
    (tmp_path / "a.md").write_text(long, encoding="utf-8")
    found = passages_of(tmp_path)
    assert "".join("".join(found["text"]).split()) == "".join(long.split())
    assert not any(text.splitlines()[-1].startswith("#") for text in found["text"])
    assert found["text"].str.len().max() < 2000


def test_documents_that_are_none_are_refused_with_the_next_step(tmp_path, author):
    with pytest.raises(RagnbError, match="save the documents as text"):
        passages_of(tmp_path)
    (tmp_path / "a.txt").write_bytes("保修".encode("gb18030"))
    with pytest.raises(RagnbError, match="name its encoding"):
        passages_of(tmp_path)
    assert passages_of(tmp_path, encoding="gb18030")["text"].tolist() == ["保修"]
    with pytest.raises(RagnbError, match="no column of texts"):
        passages_of(pd.DataFrame({"x": ["a"]}))
    assert passages_of(pd.DataFrame({"x": ["a"]}), columns={"x": "text"})["doc_name"].tolist() == [
        "documents"
    ]


# Answers


def test_an_endpoint_alone_gets_the_question_and_with_passages_is_told_what_to_say_without_an_answer(
    llm_server,
):
    llm_server.script = lambda request: "Yes." if "<data-" in request.prompt else request.prompt
    client = rn.Client(Profile(base_url=llm_server.base_url, model="m"))
    ask = rn.scoring.endpoint(client)
    alone = rn.answer_cases([{"question": "Who?"}], generate=ask, client=client)
    assert alone["answer"].tolist() == ["Who?"]
    assert alone["retrieved_contexts"].tolist() == [None]
    told = rn.answer_cases(
        [{"question": "Who?"}], retrieve=lambda question: [], generate=ask, client=client
    )
    assert told["retrieved_contexts"].tolist() == [[]]
    assert REFUSAL in llm_server.log[-1].prompt


# Killed


def test_a_pipeline_killed_at_random_moments_pays_for_no_reply_twice(tmp_path, llm_server):
    """At most `concurrency` requests are lost with each kill, and the tables are those of an undisturbed run."""
    # With more kills (RAGNB_KILLS=30) the model is slower, so that there is something left to kill.
    most = int(os.environ.get("RAGNB_KILLS", "6"))
    llm_server.script = lambda request: Answer(model(request), seconds=0.05 if most <= 6 else 0.4)
    many = {"questions": 12, "metrics": OF_RAGAS}
    whole, torn = (project(tmp_path / name, llm_server, **many) for name in ("whole", "torn"))
    words = [sys.executable, "-m", "ragnb", "run", "x.yaml", "--concurrency", "2"]
    words += [word for stage in STAGES for word in ("--stage", stage)]
    home = Path(rn.__file__).parents[1]
    how = {
        "env": {**os.environ, "PYTHONPATH": str(home)},
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
    }
    started = time.monotonic()
    done = subprocess.run(words, cwd=whole, **how, check=True)
    usual, once = time.monotonic() - started, len(llm_server.log)
    assert b"judged by small" in done.stdout
    assert max(Counter(json.dumps(request.body) for request in llm_server.log).values()) == 1
    scored = pd.read_csv(whole / "reports" / "x" / "scores.csv").query("answerable")
    for name in OF_RAGAS.split(", "):
        assert scored[name].notna().all(), name
    rng, kills = random.Random(7), 0
    while True:
        with subprocess.Popen(words, cwd=torn, **how) as run:
            try:
                said, _ = run.communicate(
                    timeout=rng.uniform(0.5, usual * min(1, 6 / most)) if kills < most else 120
                )
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
                kills += 1
                continue
        assert run.returncode == 0, said.decode()
        if kills == most or run.returncode == 0:
            break
    assert kills
    assert once <= len(llm_server.log) - once <= once + 2 * kills
    for name in ("questions.jsonl", "scores.csv", "judged.csv"):
        one, other = ((path / "reports" / "x" / name).read_bytes() for path in (whole, torn))
        assert one == other
