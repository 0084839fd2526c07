"""Result files that other tools wrote (see tool_files/README.md): what they mean, by json and pandas."""

import json
import math
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pandas
import pytest
from meaning import passages_of, pasted, row_of

import ragnb as rn
from ragnb.cli import main
from ragnb.errors import RagnbError

HERE = Path(__file__).parents[1] / "tool_files"
EXPECTED = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
RESULTS = [name for name, row in EXPECTED.items() if "metrics" in row]
LOGS = [name for name, row in EXPECTED.items() if row.get("log")]
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
    if "comparative" in file:
        return name.partition(": ")[2]
    if file.startswith("azure"):
        evaluator, _, name = name.partition(".")
        return evaluator if name == "output" else name
    return name


READ = [name for name in RESULTS if name not in {*UNREADABLE, *NO_HEADER}]


def known(file):
    """What a person who knows the tool would answer where a card asks: direction and scale of a metric."""
    names = {ours(file, name): row for name, row in EXPECTED[file]["metrics"].items()}
    better = {name: row["better"] for name, row in names.items()}
    return better, dict.fromkeys(names, (0, 1))


@pytest.mark.parametrize("file", READ)
def test_means_are_those_of_pandas_by_the_line_of_the_card(file):
    card = rn.inspect_file(HERE / file)
    assert card.kind == "scores"
    sheet = pasted(card, *known(file))
    expected = {
        name: row
        for name, row in EXPECTED[file]["metrics"].items()
        if name not in WORDS.get(file, ())
    }
    for name, row in expected.items():
        system = name.partition(": ")[0] if "comparative" in file else None
        found = row_of(sheet, ours(file, name), system)
        assert found["n"] == row["n"]
        mean = math.nan if row["mean"] is None else row["mean"]
        assert found["value"] == pytest.approx(mean, abs=1e-9, nan_ok=True)
        assert found["better"] == row["better"], name
        lost = found["n_failed"] + found["n_missing"]
        assert lost >= row["failed"], name  # where the file does not tell, missing
        if not file.startswith(SILENT):
            assert found["n_failed"] == row["failed"], name
        if row["not_applicable"]:
            assert found["n_not_applicable"] == row["not_applicable"], name


@pytest.mark.parametrize("file", READ)
def test_the_command_of_the_card_and_its_scenario_work(file, tmp_path):
    card = rn.inspect_file(HERE / file)
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        code = main(
            shlex.split(card.command)[1:]
        )  # 2 where samples or cells are lost, or a choice is open
    assert code in (0, 1, 2)
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(card.to_scenario(tmp_path), encoding="utf-8")
    if "?" not in card.code:
        pandas.testing.assert_frame_equal(rn.assess(scenario).means, pasted(card).means)


JUDGED = [
    name
    for name in READ
    if any(
        row["threshold"] and row["passed"] is not None for row in EXPECTED[name]["metrics"].values()
    )
]


@pytest.mark.parametrize("file", JUDGED)
def test_rows_that_the_tool_passed_are_on_the_right_side_of_its_threshold(file):
    """Direction and threshold as read give each row the verdict that the tool gave it."""
    sheet = rn.assess(HERE / file)
    means = sheet.means.set_index("metric")
    for name, row in EXPECTED[file]["metrics"].items():
        if row["threshold"] and row["passed"] is not None:
            scores = sheet.scores[ours(file, name)].dropna()
            lower = means.loc[ours(file, name), "better"] == "lower"
            right = scores <= row["threshold"] if lower else scores >= row["threshold"]
            assert right.sum() == row["passed"]


GATED = [
    name
    for name in RESULTS
    if name.startswith(("deepeval", "promptfoo", "azure")) and "csv" not in name
]


@pytest.mark.parametrize("file", GATED)
def test_thresholds_of_the_tool_are_gates_that_block(file):
    sheet = rn.assess(HERE / file)
    rows = EXPECTED[file]["metrics"].items()
    named = {ours(file, name): row for name, row in rows if row["threshold"]}
    gates = sheet.gates[
        (sheet.gates["role"] != "completeness") & (sheet.gates["reason"] != "advisory")
    ].set_index("metric")
    assert dict(gates["threshold"]) == {name: row["threshold"] for name, row in named.items()}
    for metric, row in named.items():
        gate = gates.loc[metric]
        assert gate["op"] == {"higher": ">=", "lower": "<="}[row["better"]]
        below = gate["value"] < gate["threshold"]
        wrong = below if row["better"] == "higher" else gate["value"] > gate["threshold"]
        assert gate["outcome"] != ("pass" if wrong else "fail")
        assert (
            gate["blocks"] == wrong
        )  # the default policy: the mean decides, within its interval too


@pytest.mark.parametrize("version", ["2.9.7", "3.7.0", "4.3.1"])
@pytest.mark.parametrize(("outcome", "code"), [("failing", 1), ("passing", 0)])
def test_a_run_of_deepeval_passes_or_fails_as_in_the_tool(version, outcome, code):
    """Under the same three names lower is better in versions 2 and 3, and higher in version 4."""
    file = HERE / f"deepeval_{version}_safety_{outcome}.json"
    with redirect_stdout(StringIO()) as said:
        assert main(["check", str(file)]) == code, said.getvalue()
    better = "higher" if version.startswith("4") else "lower"
    means = rn.assess(file).means.set_index("metric")
    assert set(means.loc[["Hallucination", "Bias", "Toxicity"], "better"]) == {better}


def last_message(row, role):
    return [message for message in row["messages"] if message["role"] == role][-1]["content"]


@pytest.mark.parametrize("file", LOGS)
def test_a_log_gives_questions_answers_and_passages(file):
    text = (HERE / file).read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    rows = rows[0] if file.endswith(".json") else rows
    traces = rn.read_traces(HERE / file)
    expected = EXPECTED[file]
    if "messages" in rows[0]:
        asked = [last_message(row, "user") for row in rows]
    else:
        asked = [row.get("input") or row.get("query") for row in rows]
    assert traces["question"].tolist() == asked
    assert traces["answer"].notna().sum() == expected["answers"]
    passages = passages_of(traces)
    assert list(map(len, passages)) == expected["passages"]
    assert all(passage in text.replace('\\"', '"') for given in passages for passage in given)
    if expected["failed"]:
        assert (~traces["ok"].astype(bool)).sum() == expected["failed"]


@pytest.mark.parametrize("file", [name for name in LOGS if EXPECTED[name]["failed"]])
def test_failed_answers_of_a_log_are_a_share_of_it_and_block_nothing(file):
    expected = EXPECTED[file]
    with redirect_stdout(StringIO()) as said:
        assert main(["check", str(HERE / file)]) == 0
    share = 100 * expected["failed"] / expected["rows"]
    assert f"{share:.1f} %" in said.getvalue()


def test_the_text_of_objects_is_never_a_passage():
    [file] = [name for name, row in EXPECTED.items() if row.get("reprs")]
    texts = json.loads((HERE / file).with_suffix(".json").read_text(encoding="utf-8"))
    try:
        traces = rn.read_traces(HERE / file)
    except RagnbError as error:
        refusal = str(error)
    else:
        passages = [list(given) for given in traces["retrieved_contexts"]]
        nodes = [[node["node"]["text"] for node in row["source_nodes"]] for row in texts]
        assert passages == nodes
        return
    assert "NodeWithScore" in refusal
    assert "source_nodes" in refusal


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


@pytest.mark.parametrize("file", [*READ, *LOGS])
def test_a_file_means_the_same_at_once_and_read_first(file):
    try:
        at_once = rn.assess(HERE / file)
    except RagnbError:
        # What nothing tells of a file, nothing tells of its table.
        with pytest.raises(RagnbError):
            rn.assess(rn.read_scores(HERE / file))
        return
    read = rn.read_traces if file in LOGS else rn.read_scores
    frame = read(HERE / file)
    columns = ["metric", "value", "low", "high", "n", "n_failed", "n_missing", "better"]
    read_first = rn.assess(frame)
    pandas.testing.assert_frame_equal(read_first.means[columns], at_once.means[columns])
    if file in LOGS:
        return
    assert read_first.verdict == at_once.verdict
    alone = rn.weighted_means(frame).set_index("metric")["value"]
    shown = at_once.means.set_index("metric")["value"]
    pandas.testing.assert_series_equal(alone.reindex(shown.index), shown)


@pytest.mark.parametrize(
    "attrs",
    [{"metrics": ["faithfulness"]}, {"source": "prod", "facts": 3}, {"source": {"metrics": 1}}],
)
def test_what_others_write_into_the_attributes_of_a_table_means_nothing(attrs):
    frame = pandas.DataFrame({"sample_id": ["a", "b"], "faithfulness": [0.5, 1.0]})
    plain = rn.assess(frame).means
    frame.attrs = attrs
    pandas.testing.assert_frame_equal(rn.assess(frame).means, plain)
    assert rn.weighted_means(frame)["value"].tolist() == [0.75, 0.75]


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
    page = Path(__file__).parents[2] / "docs" / lang / "tools.md"
    cells = [
        line.strip("|").split(" | ")
        for line in page.read_text(encoding="utf-8").splitlines()
        if "`" in line
    ]
    cells = [[cell.strip(" `") for cell in row] for row in cells if len(row) == 6]
    rows = [row for row in cells if re.fullmatch(r"[\d.]+", row[1])]  # a version: files, no facts
    assert len(rows) > 33
    for _, version, file, n, declared, _ in rows:
        card = rn.inspect_file(HERE / file)
        assert version in file
        assert int(n) == card.rows == EXPECTED[file]["rows"]
        assert (declared in ("nothing", "无")) == (not card.settings), file
