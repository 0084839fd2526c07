"""Result files that other tools wrote (see tool_files/README.md): plain pandas is the oracle of every mean."""

import json
import math
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pandas  # as the lines of cards name it
import pytest

import ragnb as rn
from ragnb.cli import main
from ragnb.errors import RagnbError

HERE = Path(__file__).with_name("tool_files")
EXPECTED = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
RESULTS = [name for name, row in EXPECTED.items() if "metrics" in row]
TOTALS = [name for name, row in EXPECTED.items() if row.get("totals")]
UNREADABLE = {
    "promptfoo_0.121.20_two_systems.csv": "appears twice",  # a column for each provider
    "lm_eval_0.4.13_results.json": "found an object",
    "deepeval_4.3.1_cache.json": "the results are in .deepeval/.latest_run_full.json",
    "deepeval_4.3.1_latest_test_run_link.json": "the results are in .deepeval/.latest_run_full.json",
    "trec_quickstart.run": "are not read",
}
UNNAMED = {"llama_index_0.14.25_token_overlap.csv": {"token_overlap": "score"}}
NO_HEADER = {"ir_measures_0.4.3_cli.tsv"}
WORDS = {  # scores that are words, which no reader takes for numbers
    "langsmith_0.15.0_to_pandas.csv": {"feedback.verdict"},
    "langsmith_0.15.0_to_pandas.jsonl": {"feedback.verdict"},
    "inspect_0.3.285_samples_df.csv": {"score_exact", "score_includes"},
    "ragas_0.4.3_experiment.csv": {"passes"},
}
# Of these the file itself does not tell a failure from a score that does not apply.
SILENT = (
    "ragas",
    "haystack",
    "llama",
    "phoenix_evals_3.9.4_annot",
    "azure",
    "langsmith",
    "inspect_0.3.285_s",
    "mlflow_2",
)


def ours(file, name):
    """The name under which a metric of a tool is read."""
    name = UNNAMED.get(file, {}).get(name, name).removeprefix("feedback.").removesuffix("/score")
    if file.startswith("azure"):
        evaluator, _, name = name.partition(".")
        return evaluator if name == "output" else name
    return name


@pytest.mark.parametrize(
    "file", [name for name in RESULTS if name not in {*UNREADABLE, *NO_HEADER}]
)
def test_means_are_those_of_pandas_by_the_line_of_the_card(file):
    card = rn.inspect_file(HERE / file)
    assert card.kind == "scores"
    sheet = eval(card.code)
    means = sheet.means.set_index("metric")
    expected = {
        name: row
        for name, row in EXPECTED[file]["metrics"].items()
        if name not in WORDS.get(file, ())
    }
    for name, row in expected.items():
        found = means.loc[ours(file, name)]
        assert found["n"] == row["n"]
        mean = math.nan if row["mean"] is None else row["mean"]
        assert found["value"] == pytest.approx(mean, abs=1e-9, nan_ok=True)
        if not file.startswith(SILENT):
            assert found["n_failed"] == row["failed"], name


@pytest.mark.parametrize(
    "file", [name for name in RESULTS if name not in {*UNREADABLE, *NO_HEADER}]
)
def test_the_command_of_the_card_and_its_scenario_work(file, tmp_path):
    card = rn.inspect_file(HERE / file)
    with redirect_stdout(StringIO()):
        assert main(shlex.split(card.command)[1:]) in (0, 1, 2)  # 2 where samples or cells are lost
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(card.to_scenario(tmp_path), encoding="utf-8")
    pandas.testing.assert_frame_equal(rn.assess(scenario).means, eval(card.code).means)


GATED = [
    name
    for name in RESULTS
    if name.startswith(("deepeval", "promptfoo", "azure")) and "csv" not in name
]


@pytest.mark.parametrize("file", GATED)
def test_thresholds_of_the_tool_are_gates_that_block(file):
    sheet = rn.assess(HERE / file)
    rows = EXPECTED[file]["metrics"].items()
    named = {ours(file, name): row["threshold"] for name, row in rows if row["threshold"]}
    gates = sheet.gates[
        (sheet.gates["role"] != "completeness") & (sheet.gates["reason"] != "advisory")
    ]
    assert dict(zip(gates["metric"], gates["threshold"], strict=True)) == named
    below = gates["value"] < gates["threshold"]
    assert gates.loc[below & (gates["outcome"] == "fail"), "blocks"].all()


@pytest.mark.parametrize("file", [name for name in TOTALS if name not in UNREADABLE])
def test_totals_are_refused_with_their_card(file):
    assert rn.inspect_file(HERE / file).kind == "totals"
    with pytest.raises(RagnbError, match="is a table of totals") as error:
        rn.assess(HERE / file)
    assert rn.inspect_file(HERE / file).code in str(error.value)


@pytest.mark.parametrize(("file", "words"), UNREADABLE.items())
def test_what_is_no_table_of_results_is_said_by_name(file, words):
    for read in (rn.inspect_file, rn.assess):
        with pytest.raises(RagnbError, match=words):
            read(HERE / file)


def test_a_log_of_inspect_is_the_same_from_zstd_deflate_and_json():
    new, as_json = (rn.read_scores(HERE / f"inspect_0.3.285_log.{end}") for end in ("eval", "json"))
    metrics = ["includes", "exact", "token_overlap", "context_support"]
    pandas.testing.assert_frame_equal(new[metrics], as_json[metrics])
    assert new["repeat"].tolist() == as_json["repeat"].tolist()


def test_qrels_are_gold_by_query():
    gold = rn.read_gold(HERE / "trec_quickstart.qrels").set_index("sample_id")
    rows = [line.split() for line in (HERE / "trec_quickstart.qrels").read_text().splitlines()]
    for query, ids in gold["gold_ids"].items():
        assert ids == [
            passage for name, _, passage, relevance in rows if name == query and int(relevance) > 0
        ]
    assert (gold["answerable"] == gold["gold_ids"].map(bool)).all()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_table_of_tools_is_true(lang):
    page = Path(__file__).parents[1] / "docs" / lang / "tools.md"
    cells = [
        line.strip("|").split(" | ")
        for line in page.read_text(encoding="utf-8").splitlines()
        if "`" in line
    ]
    rows = [[cell.strip(" `") for cell in row] for row in cells if len(row) == 6]
    assert len(rows) > 25
    for _, version, file, n, declared, _ in rows:
        card = rn.inspect_file(HERE / file)
        assert version in file
        assert int(n) == card.rows == EXPECTED[file]["rows"]
        assert (declared in ("nothing", "无")) == (not card.settings), file
