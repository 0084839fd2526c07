"""The notebooks: short callers, all but one without outputs, run by nbval, or with typed parameters by papermill.

pytest itself collects ``notebooks/`` with ``--nbval-lax``; `ragnb report` runs the report's in test_report.py.
The quickstart keeps its outputs, for readers who do not run it; nbval compares those of tagged cells. What the
prose of each notebook claims is tested here, on the values its cells leave behind.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest
from judge_server import examiner
from legible import complaints
from papermill_line import papermill

import ragnb as rn
from ragnb import Scenario
from ragnb.texts import load
from ragnb.weights import notes

# ragas leaves a file of its own open, also with telemetry off.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*uuid.json:pytest.PytestUnraisableExceptionWarning"
)
ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
REPORT = ROOT / "notebooks" / "report.ipynb"
COMPARE = ROOT / "notebooks" / "compare.ipynb"
CALIBRATION = ROOT / "notebooks" / "calibration.ipynb"
ARENA = ROOT / "notebooks" / "arena.ipynb"
STUDIO = ROOT / "notebooks" / "studio.ipynb"
PARAMETERS = {
    CALIBRATION: {
        "ratings": "str",
        "judge": "str",
        "human": "str",
        "scale": "str",
        "missing": "float",
        "tolerance": "float",
        "target": "float",
        "lang": "str",
        "out": "str",
        "overrides": "dict",
    },
    REPORT: {"scenario": "str", "out": "str", "overrides": "dict"},
    COMPARE: {
        "new": "str",
        "baseline": "str",
        "candidate": "str",
        "margin": "float",
        "by": "str",
        "lang": "str",
        "overrides": "dict",
    },
}
PARAMETERS[ARENA] = {
    "cases": "str",
    "systems": "list",
    "profile": "dict",
    "rubric": "dict",
    "store": "str",
    "metric": "str",
    "lang": "str",
    "overrides": "dict",
}
PARAMETERS[STUDIO] = {"folder": "str", "home": "str", "lang": "str"}
GALLERY = [path for path in NOTEBOOKS if path not in PARAMETERS]
SHOWN = ROOT / "notebooks" / "00_quickstart.ipynb"
COMPARED = "nbval-check-output"
IDS = [path.name for path in NOTEBOOKS]


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def tagged(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in code(path) if "parameters" in cell.metadata.get("tags", [])]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_notebook_is_valid_and_stripped(path):
    nbformat.validate(read(path))
    for cell in code(path) if path != SHOWN else []:
        assert cell.outputs == []
        assert cell.execution_count is None


@pytest.mark.parametrize("path", GALLERY, ids=[path.name for path in GALLERY])
def test_notebook_asks_a_question_says_what_one_learns_and_where_to_go_next(path):
    first, *_, last = read(path).cells
    title, _, learn = first.source.partition("\n\n")
    assert first.cell_type == last.cell_type == "markdown"
    assert re.fullmatch(r"# .+\?", title)
    assert re.match(r"You will learn [^.]+\.\n", learn)
    assert last.source.startswith("## Where to go next")
    linked = re.findall(r"\]\((\w+\.ipynb)\)", "".join(cell.source for cell in read(path).cells))
    assert linked
    assert set(linked) <= {other.name for other in GALLERY} - {path.name}


@pytest.mark.parametrize("path", GALLERY, ids=[path.name for path in GALLERY])
def test_notebook_reads_as_prose_with_short_cells_and_pictures(path):
    """No wall of text, no line that the page cuts off, no check between the reader and the story."""
    for cell in read(path).cells[1:-1]:
        if cell.cell_type == "markdown":
            assert len(cell.source.split()) <= 110, cell.source
        else:
            assert (
                max(
                    sum(1 + (char > "\u2e80") for char in line) for line in cell.source.splitlines()
                )
                <= 100
            )
    sources = [cell.source for cell in code(path)]
    assert not [source for source in sources if re.search(r"^\s*assert ", source, re.MULTILINE)]
    assert any(re.search(r"\bax = plots\.|\bsns\.", source) for source in sources)


def test_shown_notebook_holds_what_nbval_compares():
    cells = code(SHOWN)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    compared = [cell for cell in cells if COMPARED in cell.metadata.get("tags", [])]
    drawn = [cell for cell in cells if "= plots." in cell.source]
    assert all("image/png" in cell.outputs[-1].data for cell in drawn)
    # A backend without pictures leaves no output, and the sheet has tests of its own.
    assert [cell for cell in cells if cell not in compared and cell not in drawn] == cells[-2:-1]
    assert sum(bool(cell.outputs) for cell in compared) > len(compared) / 2


def test_shown_outputs_hold_no_time_path_address_or_error_stream():
    for cell in code(SHOWN):
        assert "execution" not in cell.metadata
        for output in cell.outputs:
            assert output.get("name") != "stderr", output.text
            data = {k: v for k, v in output.get("data", {}).items() if not k.startswith("image/")}
            text = str(data) + output.get("text", "")
            assert not re.search(
                r"0x[0-9a-f]{6,}|\d{4}-\d\d-\d\d[T ]\d\d:|/tmp/|/home/|\.venv", text
            )


def test_nbval_sees_a_shown_number_change(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "data").symlink_to(ROOT / "data")
    notebook = read(SHOWN)
    cells = code(SHOWN)[:4]
    for name, number in (("shown", "0.935"), ("changed", "0.936")):
        notebook.cells = nbformat.from_dict(json.loads(json.dumps(cells).replace("0.935", number)))
        nbformat.write(notebook, tmp_path / "notebooks" / f"{name}.ipynb")
    words = [
        "-m",
        "pytest",
        "--nbval-lax",
        "--nbval-current-env",
        "-q",
        "-rA",
        "-c",
        os.devnull,
        "notebooks",
    ]
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    ends = Counter(re.findall(r"(?m)^([A-Z]+) \S*\b(shown|changed)\.ipynb::", done.stdout))
    assert ends == {("PASSED", "shown"): 4, ("PASSED", "changed"): 3, ("FAILED", "changed"): 1}, (
        done.stdout
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_notebook_is_a_short_caller(path):
    assert len(code(path)) <= 15
    for cell in code(path):
        assert len(cell.source.splitlines()) <= 10, cell.source
        defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
        assert not [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, defined)]
    assert len(tagged(path)) <= 1


@pytest.mark.parametrize("path", PARAMETERS, ids=lambda path: path.name)
def test_papermill_finds_the_typed_parameters_one_a_line(path):
    import papermill

    (cell,) = tagged(path)
    assert code(path)[0].source == cell.source
    typed = [type(line) for line in ast.parse(cell.source).body]
    assert typed == [ast.AnnAssign] * len(cell.source.splitlines())
    found = papermill.inspect_notebook(str(path))
    assert {name: one["inferred_type_name"] for name, one in found.items()} == PARAMETERS[path]


def test_no_parameter_of_the_report_is_a_field_of_a_scenario():
    assert not set(PARAMETERS[REPORT]) & set(Scenario.model_fields)


def papermill_runs(
    path: Path, folder: Path, *, yaml: str = "{}", **parameters: str
) -> tuple[int, list[nbformat.NotebookNode], str]:
    """Run a notebook by papermill as a user does, in a folder; return exit code, outputs and what was said."""
    words = [
        "-y",
        yaml,
        *(word for name, value in parameters.items() for word in ("-p", name, value)),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.delenv("MPLBACKEND")
        status, said = papermill(path, "out.ipynb", *words, "-k", "python3", "--no-progress-bar")
    return status, [out for cell in code(folder / "out.ipynb") for out in cell.outputs], said


@pytest.mark.parametrize("path", PARAMETERS, ids=lambda path: path.name)
def test_an_unknown_parameter_is_refused_before_anything_is_read(path, tmp_path):
    near = next(iter(PARAMETERS[path]))
    status, outputs, said = papermill_runs(path, tmp_path, **{f"{near}s": "nowhere.csv"})
    assert status != 0
    assert f"RagnbError: parameter='{near}s' is not known; did you mean '{near}'?" in said
    assert [output.output_type for output in outputs] == ["error"]


QUESTIONS = {"en": "How long is the warranty ({})?", "zh": "差旅费几天内报销（{}）？"}
DOCUMENTS = {
    "en": ["warranty.pdf", "travel.pdf", "leave.pdf"],
    "zh": ["差旅报销制度.pdf", "休假办法.pdf", "保修.pdf"],
}


def one_run(lang: str, shift: float, seed: int, **columns: float) -> pd.DataFrame:
    """Return scores of 24 questions from 3 documents."""
    draw = np.random.default_rng(seed)
    rows = [
        {
            "sample_id": f"q{n}",
            "question": QUESTIONS[lang].format(n),
            "answer": f"{shift} {n}",
            "doc_name": DOCUMENTS[lang][n % 3],
            "faithfulness": 0.5 + shift + draw.normal(0, 0.02),
            **columns,
        }
        for n in range(24)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_compare_answers_two_tables_from_any_folder(lang, tmp_path):
    more = {"new": {"context_recall": 0.4}, "base": {"context_recall": 0.6}} if lang == "en" else {}
    for name, shift in (("new", 0.3), ("base", 0.0)):
        one_run(lang, shift, seed=len(name), **more.get(name, {})).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    status, outputs, said = papermill_runs(
        COMPARE, tmp_path, new="new.csv", baseline="base.csv", lang=lang
    )
    assert status == 0, said
    assert not complaints(outputs)
    data = [out.data for out in outputs if "data" in out]
    pages = [one["text/html"] for one in data if "text/html" in one]
    row = rn.compare(tmp_path / "new.csv", baseline=tmp_path / "base.csv").iloc[-1]
    between = load(lang)("sheet.from_to", low=f"{row['low']:+.3f}", high=f"{row['high']:+.3f}")
    head = f"weighted_score {row['value']:+.3f} ({between})"
    assert row["outcome"] == "better"
    assert load(lang)("compared.better") in pages[0]
    assert head in pages[0]
    moved = rn.changed_questions(tmp_path / "new.csv", baseline=tmp_path / "base.csv", n=10)
    shown = moved[["question", "candidate_answer", "baseline_answer"]].to_numpy().ravel()
    assert any(all(text in page for text in shown) for page in pages)
    assert all(name in pages[-1] for name in DOCUMENTS[lang])
    text = "".join(out.text for out in outputs if out.get("name") == "stdout")
    drawn = sum("image/png" in one for one in data)
    if lang == "en":  # 0.3 w against −0.2 (1 − w)
        assert re.search(r"faithfulness: 50.0 % now, leader changes at (39|4[01])", text)
        assert drawn == 2
    else:  # one metric has no weights to choose
        assert "权重" in text
        assert drawn == 1


SYSTEMS = {"en": ["bm25", "dense", "hybrid"], "zh": ["关键词检索", "稠密检索", "混合检索"]}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_arena_ranks_systems_from_any_folder(lang, tmp_path):
    scored = [
        one_run(lang, shift, seed=k, context_recall=0.5).assign(system=name)
        for k, (name, shift) in enumerate(zip(SYSTEMS[lang], (0.0, 0.3, 0.29), strict=True))
    ]
    table = pd.concat(scored)
    table.to_csv(tmp_path / "scores.csv", index=False)
    status, outputs, said = papermill_runs(ARENA, tmp_path, cases="scores.csv", lang=lang)
    assert status == 0, said
    assert not complaints(outputs)
    data = [out.data for out in outputs if "data" in out]
    pages = [one["text/html"] for one in data if "text/html" in one]
    standings = rn.standings(table)
    assert all(f"{name}" in pages[0] for name in standings.places)
    assert sum("image/png" in one for one in data) == 3  # two metrics are no radar
    spread = table.pivot_table(index="sample_id", columns="system", values="faithfulness")
    widest = (spread.max(axis=1) - spread.min(axis=1)).idxmax()
    question = table.set_index("sample_id")["question"].loc[widest].iloc[0]
    assert 0 < pages[-1].index(question) < 2000


def test_arena_asks_a_judge_once_and_keeps_what_it_said(tmp_path, llm_server):
    llm_server.script = examiner
    cases = pd.concat(one_run("en", 0.1, seed=1).head(6).assign(system=name) for name in "ab")
    cases.drop(columns="faithfulness").to_csv(tmp_path / "answers.csv", index=False)
    profile = f"profile: {{base_url: '{llm_server.base_url}', model: small}}\nsystems: [b, a]"
    for _ in range(2):
        status, outputs, said = papermill_runs(ARENA, tmp_path, cases="answers.csv", yaml=profile)
        assert status == 0, said
        asked = len(llm_server.log)
    bodies = [json.dumps(request.body, sort_keys=True) for request in llm_server.log]
    assert asked == len(llm_server.log) == len(set(bodies))
    assert (tmp_path / "arena.sqlite").exists()
    drawn = sum("image/png" in out.data for out in outputs if "data" in out)
    assert drawn == 4


TITLES = {"en": "Judge trust", "zh": "评判可信度"}
NAMES = {
    "en": {
        "file": "mine.csv",
        "judge": "gpt",
        "people": ["Ann", "Bo"],
        "dimensions": ["tone", "facts"],
    },
    "zh": {
        "file": "标注.csv",
        "judge": "评判打分",
        "people": ["小王", "小李"],
        "dimensions": ["语气", "事实"],
    },
}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_calibration_holds_a_judge_against_people_from_an_empty_folder(lang, tmp_path):
    """The judge of the first dimension is off by at most 1, that of the second mostly by 2."""
    names, draw = NAMES[lang], np.random.default_rng(3)
    rows = []
    for n in range(240):
        people, item = int(draw.integers(2, 9)), n // 2
        row = {"item_id": f"q{item}", "dimension": names["dimensions"][n % 2]}
        row["doc_name"] = f"{item % 40}-{DOCUMENTS[lang][0]}"
        off = draw.choice([-2, 0, 2]) if n % 2 else draw.choice([-1, 0, 1])
        rows.append(row | {names["judge"]: people + off} | dict.fromkeys(names["people"], people))
    table = pd.DataFrame(rows)
    table.to_csv(tmp_path / names["file"], index=False)
    status, outputs, said = papermill_runs(
        CALIBRATION,
        tmp_path,
        ratings=names["file"],
        judge=names["judge"],
        scale="0 10",
        target="0.7",
        lang=lang,
        yaml=f"human: {json.dumps(names['people'], ensure_ascii=False)}",
        out="结果",
    )
    assert status == 0, said
    assert not complaints(outputs)
    within = (
        ((table[names["judge"]] - table[names["people"][0]]).abs() <= 1)
        .groupby(table["dimension"])
        .mean()
    )
    saved = json.loads((tmp_path / "结果" / "calibration.json").read_text(encoding="utf-8"))
    assert {row["dimension"]: row["share"] for row in saved["verdicts"]} == pytest.approx(
        within.to_dict()
    )
    verdicts = [row["verdict"] for row in sorted(saved["verdicts"], key=lambda row: -row["share"])]
    assert verdicts == ["TRUST", "REJECT"]
    assert (saved["tolerance"], saved["target"], saved["scale"]) == (1, 0.7, [0, 10])
    data = [out.data for out in outputs if "data" in out]
    assert sum("image/png" in one for one in data) == 4 * 2
    shown = "".join(one.get("text/html", "") for one in data)
    page, text = (
        (tmp_path / "结果" / f"report.{kind}").read_text(encoding="utf-8")
        for kind in ("html", "md")
    )
    assert all(
        word in part
        for part in (shown, page, text)
        for word in (TITLES[lang], *names["dimensions"])
    )


def test_report_answers_a_table_with_chinese_names_from_an_empty_folder(tmp_path):
    one_run("zh", 0.3, seed=1).to_csv(tmp_path / "评测 结果.csv", index=False)
    settings = "overrides: {lang: zh, doc_weights: {保修.pdf: 3}}"
    status, outputs, said = papermill_runs(
        REPORT, tmp_path, scenario="评测 结果.csv", out="报告", yaml=settings
    )
    assert status == 0, said
    assert not complaints(outputs)
    means = pd.read_csv(tmp_path / "报告" / "means.csv").set_index("metric")["value"]
    scores = one_run("zh", 0.3, seed=1)
    weights = scores["doc_name"].map({"保修.pdf": 3}).fillna(1)
    assert means["weighted_score"] == pytest.approx(
        np.average(scores["faithfulness"], weights=weights)
    )
    shown = next(out.data["text/html"] for out in outputs if "text/html" in out.get("data", {}))
    assert all(name in shown for name in DOCUMENTS["zh"])


def test_nbval_collects_every_notebook_without_parameters():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "notebooks"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert {path.name for path in GALLERY} == {
        path.name for path in NOTEBOOKS if f"/{path.name}:" in done.stdout
    }


# What the prose says


@functools.cache
def lesson(name: str) -> SimpleNamespace:
    """Run the code cells of a notebook in this process, from its folder; return the values they leave."""
    from matplotlib import pyplot as plt

    (path,) = (ROOT / "notebooks").glob(f"{name}_*.ipynb")
    values: dict[str, object] = {}
    with contextlib.chdir(path.parent), contextlib.redirect_stdout(io.StringIO()) as printed:
        for cell in code(path):
            exec(compile(cell.source, f"{path.name}:{cell.id}", "exec"), values)
    plt.close("all")
    return SimpleNamespace(**values, stdout=printed.getvalue())


def total(means: pd.DataFrame) -> pd.Series:
    return means.set_index("metric").loc["weighted_score"]


def apart(first: pd.Series, second: pd.Series) -> bool:
    return bool(first["low"] > second["high"] or second["low"] > first["high"])


def test_00_one_row_is_one_question_put_to_one_system():
    scores = lesson("00").scores
    assert not scores.duplicated(["sample_id", "system"]).any()
    unscored = scores.loc[[40, 120]]
    assert unscored["answer"].eq("资料中没有相关内容").all()
    assert unscored["answer_correctness"].isna().all()


def test_00_the_gate_blocks_by_its_whole_interval_whatever_the_overall_score():
    nb = lesson("00")
    blocking = nb.sheet.gates[nb.sheet.gates["blocks"]]
    assert blocking["metric"].tolist() == ["context_relevance"]
    assert nb.strong["context_relevance"].mean() < blocking["threshold"].item() == 0.6
    assert nb.means.loc["context_relevance", "high"] < 0.6 < nb.means.loc["weighted_score", "value"]
    assert nb.sheet.verdict in nb.stdout


def test_00_means_are_plain_means_of_the_scores_that_are_there():
    nb = lesson("00")
    answerable = nb.strong[nb.strong["answerable"].astype(bool)]
    for name in nb.means.index.drop("weighted_score"):
        assert nb.means.loc[name, "value"] == pytest.approx(answerable[name].mean())
        assert nb.means.loc[name, "n"] == answerable[name].count()


def test_00_counting_documents_widens_the_interval_and_keeps_the_mean():
    rows = lesson("00").rows.query("metric == 'answer_correctness'").set_index("counted as")
    documents, questions = rows.loc["14 documents"], rows.loc["62 separate questions"]
    assert (documents["n_clusters"], questions["n_clusters"], documents["n"]) == (14, 62, 62)
    assert documents["value"] == questions["value"]
    assert documents["low"] < questions["low"] < questions["high"] < documents["high"]
    assert lesson("00").notes["few_clusters"] in lesson("00").stdout


def test_00_most_answers_score_one_and_most_of_the_rest_zero():
    for _, correct in lesson("00").scores.groupby("system")["answer_correctness"]:
        at = correct.dropna().value_counts()
        assert at[1.0] > at.sum() / 2
        assert at[0.0] > (at.sum() - at[1.0]) / 2


def test_00_the_four_lowest_are_refusals_of_answerable_questions():
    nb = lesson("00")
    gold = rn.read_gold(ROOT / "data" / "quickstart" / "gold.json").set_index("sample_id")
    assert set(nb.lowest["answer"]) == {"not in context", "资料中没有相关内容"}
    assert gold.loc[nb.lowest["sample_id"], "answerable"].astype(bool).all()


def test_00_zeros_in_the_gaps_would_cost_more_than_a_fifth():
    nb = lesson("00")
    assert nb.status.value_counts().to_dict() == {"ok": 60, "not_applicable": 18, "missing": 2}
    assert nb.values[nb.status != "ok"].isna().all()
    assert nb.values.mean() - nb.values.fillna(0).mean() > 0.2
    row = nb.means.loc["context_precision"]
    assert (row["n"], row["n_not_applicable"], row["n_missing"]) == (60, 18, 2)


def test_00_metric_weights_move_the_weighted_score_alone_and_only_proportions_count():
    nb = lesson("00")
    table = pd.DataFrame({name: one["value"] for name, one in nb.tables.items()})
    plain, metric, both = (table[name] for name in nb.runs)
    others = plain.index != "weighted_score"
    assert plain[others].equals(metric[others])
    assert metric["weighted_score"] != plain["weighted_score"]
    assert (both[others] != metric[others]).all()
    fives = rn.weighted_means(nb.strong, doc_weights=dict.fromkeys(nb.strong["doc_name"], 5.0))
    assert fives["value"].tolist() == pytest.approx(plain.tolist())
    weighed = rn.weigh(nb.strong, **nb.where)
    assert set(weighed.loc[weighed["doc_name"] == "差旅报销制度.pdf", "sample_weight"]) == {2.0}


def test_00_an_unknown_column_is_never_averaged_and_ranges_are_not_mixed_in_silence():
    scores = lesson("00").strong.assign(tone=1 + 4 * lesson("00").strong["answer_correctness"])
    assert "tone" not in set(rn.assess(scores).means["metric"])
    mixed = rn.assess(scores, metrics=[rn.Metric("tone", 1, 5)])
    assert np.isnan(total(mixed.means)["value"])
    assert "no_total" in set(mixed.notes["code"])
    assert (
        total(rn.assess(scores, metrics=[rn.Metric("tone", 1, 5)], rescale=True).means)["value"] > 0
    )


def test_00_the_strong_system_answers_better_from_less_relevant_passages():
    wide = lesson("00").both.pivot(index="metric", columns="system", values="value")
    better = wide["strong"] > wide["weak"]
    assert better[["answer_correctness", "context_recall", "context_precision"]].all()
    assert not better["context_relevance"]


def test_00_what_is_saved_reads_as_the_same_scores(tmp_path):
    sheet = lesson("00").sheet
    again = rn.read_scores(sheet.save(tmp_path)["scores.csv"])
    assert rn.weighted_means(again)["value"].tolist() == pytest.approx(
        sheet.means["value"].tolist()
    )


def test_01_editor_and_assessment_tell_the_same_numbers():
    nb = lesson("01")
    assert total(nb.sheet.means)["value"] == pytest.approx(total(nb.editor.means)["value"])


def test_01_only_proportions_count_and_a_weight_of_zero_takes_a_metric_out():
    scores = lesson("01").scores
    weights = {"context_recall": 0.6, "answer_correctness": 0.3, "context_relevance": 0.0}
    named = {"metrics": list(weights)}
    plain = total(rn.weighted_means(scores, metric_weights=weights, **named))["value"]
    tenfold = {name: 10 * weight for name, weight in weights.items()}
    assert total(rn.weighted_means(scores, metric_weights=tenfold, **named))[
        "value"
    ] == pytest.approx(plain)
    two = {name: weight for name, weight in weights.items() if weight}
    assert total(rn.weighted_means(scores, metrics=list(two), metric_weights=two))[
        "value"
    ] == pytest.approx(plain)


def test_01_the_winner_changes_at_two_and_a_half_and_the_intervals_overlap_everywhere():
    nb = lesson("01")
    strong, weak = (
        nb.sweep[nb.sweep["system"] == name].set_index("turned") for name in ("strong", "weak")
    )
    lead = strong["value"] - weak["value"]
    assert (lead[:2] > 0).all()
    assert (lead[3:] < 0).all()
    assert 2.4 < np.interp(0, [-lead[2], -lead[3]], [2, 3]) < 2.6
    assert not [at for at in lead.index if apart(strong.loc[at], weak.loc[at])]
    means = nb.cells.means().pivot(index="metric", columns="system", values="value")
    behind = (means["strong"] < means["weak"]).drop(["support_lexical", "weighted_score"])
    assert behind[behind].index.tolist() == ["context_relevance"]


def test_01_a_heavy_document_makes_no_evidence():
    nb = lesson("01")
    plain, heavy = (total(nb.heavy[nb.heavy["run"] == name]) for name in nb.runs)
    assert plain["n"] == heavy["n"]
    assert heavy["high"] - heavy["low"] > 3 * (plain["high"] - plain["low"])
    assert heavy["n_eff"] < plain["n_eff"] / 5
    model = type(nb.editor)(nb.scores).model
    model.add("warranty-policy.pdf")
    model.set("doc_weights", "warranty-policy.pdf", 100)
    assert "dominated" in set(notes(model.now.means)["code"])


def test_01_what_is_no_weight_is_told_and_the_last_good_value_stays():
    model = lesson("01").model
    assert set(model.problems) == set() or ("metric_weights", "context_recall") in model.problems
    assert "a lot" in lesson("01").stdout
    assert "手册" in model.find("手册")[0]
    assert model.metric_weights["context_recall"] < model.metric_weights["faithfulness"]
    assert sum(round(100 * weight) for weight in model.metric_weights.values()) == 100


def test_01_saving_changes_two_lines_and_a_second_time_none():
    nb = lesson("01")
    lines = nb.stdout.splitlines()
    removed = [line for line in lines if re.match(r"-\s", line)]
    added = [line for line in lines if re.match(r"\+\s", line)]
    assert [line.split()[1] for line in removed] == ["answer_correctness:", "warranty-policy.pdf:"]
    assert [line.split() for line in added] == [["+", "answer_correctness:", "0.5"]]
    assert (
        "changed: ['metric_weights.answer_correctness', 'doc_weights.warranty-policy.pdf']" in lines
    )
    assert nb.mine.save() == []
    saved = rn.load_scenario(nb.copy)
    assert saved.metric_weights["answer_correctness"] == 0.5
    assert "warranty-policy.pdf" not in saved.doc_weights


def test_01_five_hundred_times_the_rows_are_the_same_cells():
    nb = lesson("01")
    assert nb.large.cells.size <= 2 * nb.cells.cells.size
    many, once = (rn.weighted_means(scores)["value"].tolist() for scores in (nb.many, nb.scores))
    assert many == pytest.approx(once)


def test_02_certain_means_that_the_whole_interval_lies_beyond_the_threshold():
    found = lesson("02").diagnoses
    higher = found["metric"] != "noise_sensitivity"
    assert (found["value"] < found["threshold"]).equals(higher)
    below, above = found["high"] < found["threshold"], found["low"] > found["threshold"]
    assert found["certain"].equals(below.where(higher, above))
    assert found.loc[found["certain"], "metric"].tolist() == ["context_recall"]


def test_02_recall_and_precision_reach_every_tenth_of_the_range():
    for name in ("context_recall", "context_precision"):
        assert set(np.minimum(lesson("02").scores[name].dropna() * 10 // 1, 9)) == set(range(10))


def test_02_the_potential_gain_is_what_raising_every_low_score_to_the_threshold_gives():
    nb = lesson("02")
    assert nb.diagnoses["cost"].iloc[0] == pytest.approx(nb.after - nb.before)
    assert nb.diagnoses["threshold"].iloc[0] == 0.7
    first = nb.ranked.groupby("weights", sort=False)["metric"].first()
    assert first.tolist() == ["context_recall", "faithfulness"]
    alike = nb.ranked.pivot(index="metric", columns="weights", values="value")
    assert alike["equal weights"].equals(alike["faithfulness × 5"].rename("equal weights"))


def test_02_words_change_with_the_language_and_numbers_do_not():
    nb = lesson("02")
    assert nb.chinese["cost"] == nb.first["cost"]
    assert set(nb.chinese["causes"]).isdisjoint(nb.first["causes"])


def test_02_the_worst_samples_are_the_lowest_scores():
    nb = lesson("02")
    assert [row["score"] for row in nb.first["worst"]] == sorted(
        nb.scores["context_recall"].dropna()
    )[:3]


def test_02_the_weakest_documents_are_weak_in_every_metric():
    nb = lesson("02")
    wide = nb.by_document.pivot(index="doc_name", columns="metric", values="value")
    weakest = wide["weighted_score"].nsmallest(2).index
    means = rn.weighted_means(nb.scores).set_index("metric")["value"]
    assert (wide.loc[weakest, nb.chosen] < means[nb.chosen]).all(axis=None)


def test_02_each_of_the_four_answers_fails_in_its_own_way_though_two_are_equally_faithful():
    nb = lesson("02")
    modes = rn.failure_modes(nb.cases)["failure_mode"].tolist()
    assert modes == ["fine", "retrieval_miss", "unsupported_answer", "off_the_point"]
    assert nb.cases["faithfulness"][0] == nb.cases["faithfulness"][1] == 1.0


def test_02_failure_modes_part_the_samples_and_their_gains_add_up():
    nb = lesson("02")
    modes = nb.modes.set_index("failure_mode")
    assert modes["n"].sum() == len(nb.scores)
    assert modes.loc["retrieval_miss", "share"] > 0.5
    limits = {rule.metric: rule.warning for rule in rn.RULES if rule.metric in nb.scores}
    raised = nb.scores.assign(
        **{name: nb.scores[name].clip(lower=at) for name, at in limits.items()}
    )
    raised["noise_sensitivity"] = nb.scores["noise_sensitivity"].clip(
        upper=limits["noise_sensitivity"]
    )
    gain = total(rn.weighted_means(raised))["value"] - nb.before
    assert modes["cost"].sum() == pytest.approx(gain)
    unread = rn.failure_modes(nb.scores)["failure_mode"] == "not_enough_scores"
    assert unread.equals(nb.scores[["faithfulness", "answer_relevancy"]].isna().any(axis=1))
    assert "least_set" in set(rn.assess(nb.scores).notes["code"])


def test_02_a_rule_of_ones_own_joins_the_others():
    nb = lesson("02")
    assert set(nb.mine["rule"]) - set(nb.diagnoses["rule"]) == {"supported_yet_wrong"}


def test_03_a_forgotten_phrase_makes_every_chinese_refusal_an_answer():
    nb = lesson("03")
    assert (~nb.gold["answerable"].astype(bool)).sum() == 18
    chinese = nb.labelled["language"] == "zh"
    assert nb.labelled.loc[chinese, "refused"].any()
    assert not nb.english_only.loc[chinese, "refused"].any()


def test_03_a_wide_pattern_misses_a_refusal_and_takes_an_answer_for_one():
    nb = lesson("03")
    assert nb.read["refused"].tolist() == [True, True, True, False]
    assert nb.wide.tolist() == [True, True, False, True]
    assert (
        nb.read["answered"].tolist() == nb.read["partial"].tolist() == [False, False, False, True]
    )


def test_03_five_outcomes_from_two_facts():
    nb = lesson("03")
    assert nb.example["answerable"].astype(bool).tolist() == [True, False, True, False, True]
    assert nb.example["refused"].tolist() == [False, True, True, False, False]
    assert nb.example.loc["OK", "hit"]
    assert not nb.example.loc["ANS_NO_HIT", "hit"]


def test_03_the_strong_system_answers_ten_more_and_makes_up_almost_as_much():
    counts = lesson("03").counts.pivot(index="label", columns="system", values="n")
    assert (counts.sum() == 80).all()
    assert counts.loc["OK", "strong"] - counts.loc["OK", "weak"] == 10
    assert counts.loc["HALLUCINATION"].to_dict() == {"strong": 6, "weak": 7}


def test_03_a_rate_counts_only_the_questions_where_it_applies():
    nb = lesson("03")
    rates = nb.rates.set_index("metric")
    answerable = nb.gold["answerable"].astype(bool)
    refused = (nb.labelled["label"] == "OVER_REFUSAL").sum()
    assert rates.loc["over_refusal", "value"] == pytest.approx(refused / answerable.sum())
    unanswerable = ~nb.labelled["answerable"].astype(bool)
    assert nb.labelled.loc[unanswerable, "over_refusal"].isna().all()
    assert rates.loc["over_refusal", "n"] + rates.loc["under_refusal", "n"] == len(nb.gold)
    # ± 20 points, as the last cell says of 18 questions
    assert (
        0.15 < (rates.loc["under_refusal", "high"] - rates.loc["under_refusal", "low"]) / 2 < 0.25
    )


def test_03_one_gate_fails_four_are_inconclusive_and_those_on_the_wrong_side_block():
    gates = lesson("03").gates
    assert gates["outcome"].tolist() == ["undecided", "fail", "undecided", "undecided", "undecided"]
    wrong = (gates["value"] < gates["threshold"]).where(
        gates["op"] == ">=", gates["value"] > gates["threshold"]
    )
    assert gates["blocks"].equals(wrong)
    assert not gates["blocks"].all()


def test_03_the_further_the_threshold_the_fewer_questions_decide():
    needed = lesson("03").needed
    assert needed["more_needed"].isna().tolist() == [True, True, False, False, False]
    assert needed["more_needed"].dropna().is_monotonic_decreasing
    assert needed["outcome"].iloc[-1] == "pass"


def test_03_english_looks_worse_and_the_intervals_overlap():
    split = lesson("03").split.set_index(["metric", "language"])
    assert (split["n_clusters"] == 7).all()
    for metric, sign in (("over_refusal", 1), ("citation_hit_rate", -1)):
        english, chinese = split.loc[(metric, "en")], split.loc[(metric, "zh")]
        assert sign * (english["value"] - chinese["value"]) > 0
        assert not apart(english, chinese)


def test_03_halving_what_is_made_up_costs_half_of_the_answers():
    nb = lesson("03")
    for _, part in nb.sweep.groupby("system"):
        assert part["over-refusal"].is_monotonic_increasing
        assert part["under-refusal"].is_monotonic_decreasing
    strong = nb.sweep[nb.sweep["system"] == "strong"].set_index("share")
    halved = strong[strong["under-refusal"] <= strong.loc[0, "under-refusal"] / 2]
    assert halved["over-refusal"].min() > 0.5 > 3 * strong.loc[0, "over-refusal"]
    always = rn.label_traces(nb.weak.assign(answer="not in context"), gold=nb.gold)
    rates = rn.refusal_metrics(always, metrics=["over_refusal", "under_refusal"])
    assert rates["value"].tolist() == [1.0, 0.0]


def test_03_a_sample_holds_the_same_questions_in_any_order_and_is_too_small_here():
    nb = lesson("03")
    assert "the same of shuffled rows: True" in nb.stdout
    assert "all of them in the larger sample: True" in nb.stdout
    every, sampled = nb.beside[nb.beside["metric"] == "over_refusal"].to_dict("records")
    answerable = nb.gold.set_index("sample_id")["answerable"]
    assert (every["n"], sampled["n"]) == (answerable.sum(), answerable[nb.some["sample_id"]].sum())
    assert sampled["high"] - sampled["low"] > 1.5 * (every["high"] - every["low"])


def test_03_check_ends_with_the_exit_code_of_a_blocked_release():
    assert lesson("03").code == 1
    assert "exit code 1" in lesson("03").stdout


def test_04_all_shares_are_above_the_target_and_one_dimension_earns_trust():
    nb = lesson("04")
    assert set(nb.ratings["origin"]) == {"simulated"}
    assert nb.ratings.groupby(["item_id", "system"]).ngroups == 120
    assert nb.ratings["rater"].nunique() == 3
    verdicts = nb.card.verdicts.set_index("dimension")
    assert (verdicts["share"] > 0.8).all()
    assert verdicts["verdict"].to_dict() == {
        "accuracy": "NOT PROVEN",
        "clarity": "NOT PROVEN",
        "completeness": "TRUST",
    }


def test_04_for_clarity_a_constant_answer_beats_the_judge():
    nb = lesson("04")
    row = nb.card.only(dimension="clarity").verdicts.iloc[0]
    assert row["constant"] > row["share"] > 0.9
    people = nb.clarity.groupby(["item_id", "system"])["human"].mean()
    assert (people.sub(7.5).abs() <= 1).mean() == pytest.approx(row["constant"])
    assert nb.clarity["judge"].eq(8).mean() > 0.8
    assert set(nb.clarity["judge"]) == {7, 8}


def test_04_the_judge_favours_the_weak_system_by_almost_a_point():
    nb = lesson("04")
    groups = nb.accuracy.inflation.query("kind == 'system'").set_index("group")
    assert 0.8 < groups.loc["weak", "value"] < 1
    assert groups.loc["weak", "low"] > groups.loc["strong", "high"]
    bands = nb.accuracy.bands.set_index("band")
    assert (bands.loc["4", "share"] < 0.5, bands.loc["4", "n"]) == (True, 9)
    assert bands["share"].idxmin() == "4"
    assert (bands["n_clusters"] < 5).equals(bands["verdict"] == "too few")


def test_04_clusters_widen_what_the_card_says_and_move_no_share():
    nb = lesson("04")
    alone = (
        rn.calibrate(nb.ratings, scale=(1, 10), cluster=None)
        .only(dimension="completeness")
        .verdicts.iloc[0]
    )
    together = nb.card.only(dimension="completeness").verdicts.iloc[0]
    assert (together["n_clusters"], alone["n_clusters"]) == (14, 120)
    assert together["lower"] < alone["lower"]
    assert together["share"] == alone["share"]


def test_04_the_corrected_mean_has_no_bias_and_less_width_than_the_annotators():
    nb = lesson("04")
    assert len(nb.judged) == 3 * 160
    means = nb.both.corrected.query("dimension == 'accuracy' and system == ''").set_index("way")
    judge, human, corrected = (means.loc[way] for way in ("judge", "human", "corrected"))
    assert abs(corrected["value"] - human["value"]) < 0.1 < judge["value"] - human["value"]
    assert corrected["high"] - corrected["low"] < human["high"] - human["low"]
    by_hand = rn.corrected_mean(nb.ratings, judged=nb.unrated(nb.judged, nb.ratings))
    row = by_hand.set_index("dimension").loc["accuracy"]
    assert (row["n_judged"], row["value"]) == (40, pytest.approx(corrected["value"]))


def test_04_120_labels_had_three_chances_in_four_and_50_less_than_one_in_two():
    budget = (
        lesson("04")
        .card.budget.query("dimension == 'completeness'")
        .set_index("labels")["probability"]
    )
    assert round(budget[120], 2) == 0.75
    assert budget[budget.index < 55].max() < 0.5
    assert "More labels will not help" in lesson("04").stdout


def test_04_labels_are_drawn_from_each_system_and_document_and_the_sheet_hides_both():
    nb = lesson("04")
    assert nb.drawn["system"].value_counts().tolist() == [20, 20]
    assert nb.drawn["cluster"].nunique() == 14
    assert "weak" not in nb.sheet.read_text(encoding="utf-8-sig")
    assert nb.key.exists()


def test_04_three_keys_rate_one_answer_and_the_sheet_resumes():
    nb = lesson("04")
    assert rn.read_ratings(nb.file)["human"].tolist() == [8, 9, 7]
    with contextlib.chdir(ROOT / "notebooks"):
        assert (
            len(
                nb.RatingSheet(
                    "../data/quickstart/cases.jsonl", nb.file, rater="example"
                ).model.done
            )
            == 1
        )


def test_04_the_golden_questions_catch_an_invention_with_full_marks():
    checked = lesson("04").checked
    assert (len(checked), checked["within"].sum()) == (9, 8)
    assert (checked.loc[~checked["within"], "judge"] >= 9).all()


def test_05_the_total_is_better_relevance_worse_and_the_rest_allows_for_many_metrics():
    nb = lesson("05")
    outcomes = nb.quality.set_index("metric")["outcome"]
    assert outcomes[["weighted_score", "context_relevance"]].tolist() == ["better", "worse"]
    assert nb.table.loc[nb.table["primary"], "metric"].tolist() == ["weighted_score"]
    correct = nb.quality.set_index("metric").loc["answer_correctness"]
    assert (correct["outcome"], correct["low"] > 0) == ("undecided", True)
    assert correct["p"] < 0.05 < correct["p_holm"]
    assert np.isnan(nb.total["p_holm"])
    assert (nb.quality["margin"] == 0.05).all()


def test_05_pairing_settles_what_two_overlapping_intervals_leave_open():
    nb = lesson("05")
    one, other = (total(nb.alone[nb.alone["version"] == name]) for name in ("new", "baseline"))
    assert not apart(one, other)
    assert nb.total["unpaired_low"] < 0 < nb.total["low"]
    assert nb.total["high"] - nb.total["low"] < nb.total["unpaired_high"] - nb.total["unpaired_low"]


def test_05_most_questions_did_not_move_and_three_broke():
    nb = lesson("05")
    moved = nb.moved.dropna()
    assert (moved == 0).mean() > 0.5
    assert ((moved < 0).sum(), (moved > 0).sum()) == (3, 14)
    change = nb.changed["candidate_value"] - nb.changed["baseline_value"]
    assert nb.changed["value"].tolist() == change.tolist()


def test_05_what_was_left_out_is_counted_on_both_sides():
    partly = lesson("05").partly
    assert (partly["n_left_out"] == partly["n_only_candidate"] + partly["n_only_baseline"]).all()


def test_05_without_any_one_document_the_new_version_is_still_better():
    nb = lesson("05")
    assert len(nb.by_document) == nb.total["n_clusters"]
    assert (nb.by_document["low_without"] > 0).all()


def test_05_one_metric_alone_turns_the_result_at_nearly_half_of_the_weight():
    nb = lesson("05")
    flips = nb.found.flips.set_index("metric")["flip"].dropna()
    assert flips.index.tolist() == ["context_relevance"]
    assert 0.4 < flips.item() < 0.5
    equal = dict.fromkeys(nb.found.metrics, 1.0)
    with contextlib.chdir(ROOT / "notebooks"):
        again = total(rn.compare(nb.new, baseline=nb.base, metric_weights=equal))
    assert nb.found.at(equal)["value"].iloc[0] == pytest.approx(again["value"])


def test_06_the_price_is_told_before_anything_is_sent():
    nb = lesson("06")
    assert set(nb.replies["origin"]) == {"simulated"}
    assert (len(nb.cases), set(nb.cases["language"])) == (10, {"zh", "en"})
    assert (nb.need.calls, nb.need.done) == (2 * 10 + 6, 0)
    assert "anything sent yet? False" in nb.stdout
    assert nb.profile.api_key_env is None


def test_06_the_probes_tell_good_from_bad_and_the_planted_order_gains_nothing():
    probes = lesson("06").judged.probes.pivot(index="pair", columns="kind", values="value")
    assert (probes["good"] == 10).all()
    assert (probes["bad"] == 2).all()
    assert (probes["injected"] == 2).all()


def test_06_scores_are_weighted_by_the_rubric_and_right_refusals_are_told_from_wrong_ones():
    judged = lesson("06").judged
    by_hand = 0.5 * judged["accuracy"] + 0.3 * judged["completeness"] + 0.2 * judged["clarity"]
    assert judged["weighted_score"].tolist() == pytest.approx(by_hand.tolist())
    assert judged["is_passing"].astype(bool).equals(judged["accuracy"] >= 7)
    refusals = judged[judged["answer"].isin(["not in context", "资料中没有相关内容"])]
    assert sorted(refusals["accuracy"]) == [2.5, 4, 10]
    assert refusals.set_index("accuracy").loc[10, "sample_id"] == "zh-41"


def test_06_one_point_of_clarity_is_within_the_noise():
    noise = lesson("06").judged.noise.set_index("metric")
    assert (noise["n_judgements"] == 20).all()
    assert noise["value"].between(noise["low"], noise["high"]).all()
    assert noise.loc["clarity", "least_difference"] > 1


def test_06_a_chinese_keyboard_is_read_and_prose_is_asked_again_never_guessed():
    nb = lesson("06")
    assert nb.one["judge__parse"] == "folded"
    assert "“accuracy”" in nb.one["judge__reply"]
    assert (nb.prose.status, nb.prose.scores) == ("failed", {})
    again = nb.calls[nb.calls["again"]]
    assert again["sample_id"].tolist() == ["zh-10"]
    assert len(nb.calls) == nb.need.calls + len(again)


def test_06_an_interrupted_run_resumes_without_paying_twice():
    nb = lesson("06")
    assert nb.part.loc[nb.part["accuracy__status"] == "missing", "accuracy"].isna().all()
    assert 0 < nb.left.calls < nb.need.calls
    assert nb.left.done + nb.left.calls == nb.left.cells
    assert nb.sent == len(nb.calls)
    second = pd.read_json(nb.log, lines=True).iloc[len(nb.calls) :][: nb.sent]
    assert sorted(second["sample_id"]) == sorted(nb.calls["sample_id"])
    names = ["accuracy", "completeness", "clarity", "weighted_score"]
    assert nb.whole[names].equals(nb.judged[names])


def test_06_two_of_three_retried_answers_are_right_in_the_end_and_only_they_are_paid_for():
    nb = lesson("06")
    kept, attempts = nb.better.kept, nb.better.attempts
    assert attempts.groupby("sample_id").size().to_dict() == {
        "zh-02": 1,
        "zh-10": 2,
        "zh-33": 3,
        "zh-41": 1,
        "en-04": 3,
        "en-20": 1,
    }
    better = kept[kept["accuracy"] > kept["accuracy__before"]].set_index("sample_id")
    assert better["attempt"].to_dict() == {"zh-10": 1, "en-04": 2}
    assert better["accuracy"].eq(10).all()
    assert kept.set_index("sample_id").loc["zh-33", "accuracy"] == 2
    third = pd.read_json(nb.log, lines=True).iloc[len(nb.calls) + nb.sent :]
    assert third["system"].value_counts().to_dict() == {"retried": 8, "retry": 5}
    assert (nb.better.cost["answers"], nb.better.cost["calls"]) == (5, 8)
    row = nb.better.gain.iloc[0]
    assert (
        row["value"] == pytest.approx((kept["accuracy"] - kept["accuracy__before"]).mean()) == 1.5
    )
    assert row["low"] < 0 < row["high"]


def test_06_ten_answers_prove_nothing_and_the_server_ends():
    nb = lesson("06")
    assert set(nb.human["origin"]) == {"simulated"}
    assert (nb.card.verdicts["n"] == 10).all()
    assert nb.card.verdict == "NOT PROVEN"
    assert nb.server.returncode == 0


def test_07_the_calls_are_counted_before_anything_is_sent_and_paid_once():
    nb = lesson("07")
    assert "anything sent yet? False" in nb.stdout
    assert f"first run {nb.sent} calls, both runs {nb.sent}" in nb.stdout
    assert nb.scores.attrs["spent"]["calls"] == nb.ledger["paid"].sum() == nb.sent
    assert nb.sent <= nb.need.calls < nb.ledger["one by one"].sum()
    assert nb.again[nb.metrics].equals(nb.scores[nb.metrics])
    assert nb.server.returncode == 0


def test_07_a_courtesy_in_every_answer_costs_the_weak_system_half_of_its_faithfulness():
    nb = lesson("07")
    weak = nb.scores[nb.scores["system"] == "weak"]
    assert set(weak["faithfulness"]) == {0.0, 0.5}
    courtesy = nb.half["answer"].str.contains(
        "Please ask the department in charge|详情请咨询主管部门"
    )
    assert courtesy.all()
    for row in nb.half.to_dict("records"):
        copied = re.split(r"(?<=[.。]) ?(?=Please ask|详情)", row["answer"])[0]
        assert copied in "".join(row["retrieved_contexts"])


def test_07_right_refusals_score_zero_and_a_false_answer_scores_one():
    nb = lesson("07")
    assert nb.refused.groupby(nb.scores["system"]).sum().to_dict() == {"strong": 4, "weak": 4}
    assert (nb.scores.loc[nb.refused, "faithfulness"] == 0).all()
    assert (nb.scores.loc[~nb.refused, "faithfulness"] > 0).all()
    replied = nb.unanswerable[~nb.refused[nb.unanswerable.index]]
    assert len(replied) < len(nb.unanswerable)
    (false,) = replied[replied["system"] == "strong"].to_dict("records")
    assert false["faithfulness"] == 1
    assert "售价" in false["question"]
    assert not re.search("售价|元", false["answer"])


def test_07_context_recall_is_empty_exactly_where_a_question_has_no_answer():
    nb = lesson("07")
    empty = nb.scores["context_recall"].isna()
    assert empty.equals(~nb.scores["answerable"].astype(bool))
    assert (nb.scores["context_recall__status"] == "not_applicable").equals(empty)


def test_07_ragas_itself_gives_the_same_scores_and_pays_for_each_call():
    nb = lesson("07")
    assert nb.theirs["faithfulness"].equals(nb.scores["faithfulness"])
    logged = nb.log.read_text(encoding="utf-8").splitlines()
    assert len(logged) - nb.sent == nb.ledger.loc["faithfulness", "one by one"] == 2 * len(nb.cases)
    assert f"ragas sent {len(logged) - nb.sent} calls" in nb.stdout
    assert not {"doc_name", "system"} & set(nb.theirs)
    (cell,) = [
        cell for cell in read(ROOT / "notebooks" / "07_ragas.ipynb").cells if cell.id == "export-2"
    ]
    *named, _ = re.findall(r"`([^`]+)`", cell.source)
    cells = {name: "a" if name in ("contexts", "response") else 0.5 for name in named}
    assert not {*named} & {*rn.read_scores([{"question": "q"} | cells])}


def test_07_a_table_with_the_headers_of_ragas_gives_the_same_means():
    nb = lesson("07")
    assert {"user_input", "response", "reference"} <= set(pd.read_csv(nb.mine).columns)
    means = nb.sheet.systems.set_index(["system", "metric"])["value"]
    for name in nb.metrics:
        plain = nb.scores.groupby("system")[name].mean()
        assert means.xs(name, level="metric").to_dict() == pytest.approx(plain.to_dict())
