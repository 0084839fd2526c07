"""Runs too large to hold: the same sheet as from a frame in memory, from every kind of file, and little memory."""

import gzip
import itertools
import json
import subprocess
import sys
import textwrap
from datetime import timedelta

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import ragnb as rn
from ragnb.errors import RagnbError
from ragnb.inputs.streams import kept
from ragnb.readers import jsons, streams
from ragnb.readers.streams import stream_scores
from ragnb.sheet.weighable import weighable

N = 10_000
METRICS = ("faithfulness", "answer_relevancy", "context_recall", "noise_sensitivity")


def scores(n=N, seed=5):
    """Made rows: gaps, failed and not applicable cells, aliases, two systems, documents in Chinese, ties."""
    rng = np.random.default_rng(seed)
    columns = {
        "qid": [f"q{i}" for i in range(n)],
        "user_input": [f"问题 {i}" for i in range(n)],
        "response": [f"answer {i}" for i in range(n)],
        "retrieved_contexts": [[f"段落 {i}", "b"] for i in range(n)],
        "doc_name": [
            [None, "甲.pdf", "re\u0301sume\u0301", "r\u00e9sum\u00e9", "b", ""][int(k)]
            for k in rng.integers(0, 6, n)
        ],
        "model": [["a", "b"][int(k)] for k in rng.integers(0, 2, n)],
        "kind": [["图", "表", None][int(k)] for k in rng.integers(0, 3, n)],
        "latency": rng.random(n).round(3).tolist(),
    }
    for name in METRICS:
        values = rng.integers(0, 101, n) / 100
        columns[name] = [
            None if x < 0.1 else float(v) for x, v in zip(rng.random(n), values, strict=True)
        ]
    words = ["failed", "not_applicable", None]
    columns["faithfulness__status"] = [
        "ok" if x is not None else words[int(k)]
        for x, k in zip(columns["faithfulness"], rng.integers(0, 3, n), strict=True)
    ]
    return pl.DataFrame(columns)


@pytest.fixture(scope="module")
def table():
    return scores()


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch):
    """What is held at most is so little here that the rows of these tests are streamed."""
    monkeypatch.setattr(streams, "ROWS", N - 1)
    monkeypatch.setattr(streams, "BYTES", 1000)
    monkeypatch.setattr(jsons, "BLOCK", 1 << 18)


def parts(table, k=3):
    cuts = [0, 1000, 1500, len(table)][: k + 1] if k > 1 else [0, len(table)]
    return [table[a:b] for a, b in itertools.pairwise(cuts)]


def csv_of(table, folder):
    lists = pl.col("retrieved_contexts").map_elements(
        lambda c: json.dumps(list(c), ensure_ascii=False), pl.String
    )
    table.with_columns(lists).write_csv(folder / "scores.csv")
    return folder / "scores.csv"


def parquet_of(table, folder, k):
    for i, part in enumerate(parts(table, k)):
        part.write_parquet(folder / f"part-{i}.parquet")
    return folder / ("*.parquet" if k > 1 else "part-0.parquet")


def jsonl_of(table, folder):
    for i, part in enumerate(parts(table)):
        part.write_ndjson(folder / f"part-{i}.jsonl")
    return folder / "part-*.jsonl"


KINDS = {
    "one Parquet file": lambda t, f: parquet_of(t, f, 1),
    "three Parquet files": lambda t, f: parquet_of(t, f, 3),
    "a folder": lambda t, f: parquet_of(t, f, 3).parent,
    "JSON lines": jsonl_of,
    "a lazy frame": lambda t, f: t.lazy(),
    "a relation": lambda t, f: duckdb.from_arrow(t.to_arrow()),
}


def told(sheet):
    """The numbers and words of a sheet that must not depend on how its rows were read."""
    return [
        sheet.means,
        sheet.gates,
        sheet.systems,
        sheet.documents,
        sheet.slices,
        sheet.modes,
        sheet.spread,
    ]


def same(got, want):
    assert not want.streamed
    assert got.streamed
    for mine, theirs in zip(told(got), told(want), strict=True):
        pd.testing.assert_frame_equal(mine, theirs, rtol=1e-12, atol=1e-12)
    pd.testing.assert_frame_equal(got.diagnoses, want.diagnoses, rtol=1e-12, atol=1e-12)
    assert (got.verdict, got.rows) == (want.verdict, want.rows)
    codes = [code for code in got.notes["code"] if code != "streamed"]
    assert codes == want.notes["code"].tolist()


@pytest.mark.parametrize(
    "options", [{}, {"doc_weights": {"甲.pdf": 4, "b": 0.5}, "metric_weights": {"faithfulness": 3}}]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_gives_the_sheet_of_the_same_rows_in_memory(table, tmp_path, kind, options):
    want = rn.assess(csv_of(table, tmp_path), **options)
    got = rn.assess(KINDS[kind](table, tmp_path), **options)
    same(got, want)
    order = want.scores["weighted_score"].round(12).sort_values(kind="stable").index
    shown = want.scores["sample_id"].loc[order].head(1000)
    assert got.scores["sample_id"].head(1000).tolist() == shown.tolist()
    named = {one["sample_id"] for worst in got.diagnoses["worst"] for one in worst}
    assert named <= set(got.scores["sample_id"])
    assert (
        got.scores["retrieved_contexts"].iloc[0]
        == want.scores.loc[shown.index[0], "retrieved_contexts"]
    )


def test_a_short_query_is_not_collected_either_and_the_editor_takes_it(table):
    rows = table[:1500]
    sheet = rn.assess(rows.lazy())
    assert sheet.streamed
    assert 1000 <= len(sheet.scores) < 1100 < sheet.rows
    _, cells, *_ = weighable(rows.lazy())
    want = rn.moments(rn.read_scores(rows), by="system").means()
    pd.testing.assert_frame_equal(cells.means(), want)


def test_rows_that_change_between_two_passes_are_refused(table):
    seen = iter(range(100))
    query = table.lazy().map_batches(lambda rows: rows.head(N - next(seen)), schema=table.schema)
    with pytest.raises(
        RagnbError, match=r"gave \d+ rows at first and \d+ rows later; keep its result"
    ):
        rn.assess(query)


def test_scores_in_a_stream_are_not_joined_to_traces(table, tmp_path):
    parquet_of(table, tmp_path, 1)
    (tmp_path / "traces.jsonl").write_text('{"question": "x", "answer": "Yes."}\n')
    (tmp_path / "gold.jsonl").write_text(
        '{"question": "x", "answerable": true, "gold_ids": ["a"]}\n'
    )
    names = {"scores": "part-0.parquet", "traces": "traces.jsonl", "gold": "gold.jsonl"}
    scenario = rn.Scenario(**{role: tmp_path / name for role, name in names.items()})
    with pytest.raises(
        RagnbError, match="scores and traces are joined in memory, and one of them is too large"
    ):
        rn.assess(scenario)


def test_the_page_of_a_stream_says_that_it_shows_a_part(table, tmp_path):
    sheet = rn.assess(parquet_of(table, tmp_path, 3), lang="zh")
    page = sheet.to_html()
    assert "流式读取" in page
    assert "10,000" in page
    assert "worst.csv" in page
    assert "scores.csv" not in page
    assert sorted(sheet.save(tmp_path / "out"))[-1] == "worst.csv"
    assert "流式读取" in sheet.to_markdown()


def test_rows_are_kept_as_in_memory(table, tmp_path):
    where = {"system": "b", "kind": "图"}
    want = rn.assess(csv_of(table, tmp_path), where=where)
    got = rn.assess(parquet_of(table, tmp_path, 3), where=where)
    for mine, theirs in zip(told(got), told(want), strict=True):
        if theirs is not None:
            pd.testing.assert_frame_equal(mine, theirs, rtol=1e-12, atol=1e-12)
    assert got.ledger["rows"].tolist() == want.ledger["rows"].tolist()
    with pytest.raises(
        RagnbError, match=r"where.kind='图表' matches no row of the scores \(have: 图, 表\)"
    ):
        rn.assess(tmp_path / "*.parquet", where={"kind": "图表"})
    with pytest.raises(RagnbError, match="where.kindd: no such column; did you mean 'kind'"):
        rn.assess(tmp_path / "*.parquet", where={"kindd": "图"})


def test_a_few_files_are_read_as_one_table_in_memory(table, tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "ROWS", N)
    whole = rn.read_scores(parquet_of(table, tmp_path, 3))
    one = rn.read_scores(csv_of(table, tmp_path))
    assert whole["sample_id"].tolist() == one["sample_id"].tolist()
    assert whole[list(METRICS)].equals(one[list(METRICS)])
    sheet = rn.assess(tmp_path / "*.parquet")
    assert not sheet.streamed
    assert len(sheet.scores) == N
    assert [one["path"] for one in sheet.inputs] == ["*.parquet"]


@pytest.mark.parametrize("large", [True, False])
@pytest.mark.parametrize("form", ["parquet", "jsonl", "query"])
def test_cosines_and_alternating_names_are_read_alike_in_a_stream(
    tmp_path, monkeypatch, large, form
):
    monkeypatch.setattr(streams, "ROWS", 0 if large else 1 << 30)
    monkeypatch.setattr(streams, "BYTES", 0 if large else 1 << 30)
    frame = pl.DataFrame(
        {
            "q": ["a", None, "", "d"],
            "question": [None, "b", "c", ""],
            "sas": [1.00000011921, -0.25, 1.0, None],
            "context_relavency": [0.1, 0.2, 0.3, 0.4],
            "factuality": [1.0, 0.5, 0.0, 0.25],
        }
    )
    path = tmp_path / f"s.{form}"
    if form != "query":
        (frame.write_parquet if form == "parquet" else frame.write_ndjson)(path)
    source = frame.lazy() if form == "query" else path
    stream = stream_scores(source)
    assert (stream is not None) == (large or form == "query")
    found = rn.read_scores(source) if stream is None else stream.frame.collect().to_pandas()
    assert found["question"].tolist() == ["a", "b", "c", "d"]
    assert found["semantic_similarity"].tolist()[:3] == [1.0, -0.25, 1.0]
    assert found["faithfulness"].tolist() == [1.0, 0.5, 0.0, 0.25]
    assert found["context_relevancy"].tolist() == [0.1, 0.2, 0.3, 0.4]
    lossy = found.attrs["lossy"] if stream is None else stream.lossy
    assert [(row["column"], row["n"]) for row in lossy if row["what"] == "clipped"] == [
        ("semantic_similarity", 1)
    ]

    def questions(rows, **options):
        found = (stream_scores if large else rn.read_scores)(rows.lazy(), **options)
        return (found.frame.collect() if large else found)["question"].to_list()

    assert questions(frame.with_columns(q="question"))[1:3] == ["b", "c"]
    picked = frame.with_columns(q=pl.Series(["A", "", None, "D"]))
    assert questions(picked, columns={"q": "question"}) == ["A", "b", "c", "D"]
    with pytest.raises(
        RagnbError, match="'q' and 'question' both mean 'question'; records fill both"
    ):
        questions(frame.with_columns(q=pl.lit("x")))


@pytest.mark.parametrize("large", [True, False])
def test_a_file_with_other_columns_is_refused_by_name(table, tmp_path, monkeypatch, large):
    monkeypatch.setattr(streams, "ROWS", 0 if large else 1 << 30)
    parquet_of(table, tmp_path, 3)
    table[:5].drop("context_recall").write_parquet(tmp_path / "part-1.parquet")
    lacking = r"part-1\.parquet: has no column 'context_recall', which .*part-0\.parquet has"
    with pytest.raises(RagnbError, match=lacking):
        rn.assess(tmp_path / "*.parquet")
    (tmp_path / "part-1.parquet").write_bytes(b"no Parquet")
    with pytest.raises(RagnbError, match=r"part-1\.parquet: is not a Parquet file"):
        rn.assess(tmp_path / "*.parquet")
    (tmp_path / "part-1.jsonl").write_text('{"faithfulness": 1}\n')
    with pytest.raises(RagnbError, match=r"part-1\.jsonl: is of another format"):
        rn.assess(tmp_path / "part-*")
    with pytest.raises(RagnbError, match="no file matches the pattern"):
        rn.assess(tmp_path / "nothing-*.parquet")


@pytest.mark.parametrize("kind", [pd.DataFrame, lambda rows: pl.DataFrame(rows).lazy()])
def test_where_keeps_the_same_rows_of_every_frame_and_traces_may_lack_its_columns(kind):
    rows = {"system": ["a", "b", "b"], "n": [1, 1, 2], "sure": [True, False, False]}
    for where, want in (({"system": "b"}, 2), ({"n": 1, "sure": False}, 1), ({"n": "2"}, 1)):
        found, n = kept(kind(rows), where, "scores")
        assert n == want == len(found if isinstance(found, pd.DataFrame) else found.collect())
    assert kept(kind(rows), {"kind": "x"}, "traces")[1] == 3
    with pytest.raises(RagnbError, match=r"where.n=2 matches no row of the traces \(have: 1\)"):
        kept(kind(rows), {"system": "a", "n": 2}, "traces")


def test_bad_lines_of_a_stream_are_counted_and_named(table, tmp_path):
    jsonl_of(table, tmp_path)
    path = tmp_path / "part-2.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[7], lines[4000] = "{not json", lines[4000].replace("answer", "\\ud800 answer")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sheet = rn.assess(tmp_path / "part-*.jsonl", metrics=["faithfulness"])
    assert sheet.rows == N - 1
    text = sheet.notes.set_index("code").loc["bad_lines", "text"]
    assert "part-2.jsonl, line 8" in text
    (tmp_path / "part-0.jsonl").write_text(
        '{"faithfulness": "0.5"}\n{"faithfulness": "gut"}\n' * 3000
    )
    with pytest.raises(RagnbError, match="column 'faithfulness': found 'gut'"):
        rn.assess(tmp_path / "part-0.jsonl")


def test_a_stream_counts_what_is_damaged_or_lost_and_refuses_a_key_given_twice(table, tmp_path):
    jsonl_of(table, tmp_path)
    path = tmp_path / "part-2.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    damaged = [*lines[:7], lines[7] + lines[8], *lines[9:50], lines[50][:30], *lines[51:]]
    path.write_text("\n".join(damaged), encoding="utf-8")
    stream = stream_scores(tmp_path / "part-*.jsonl")
    assert stream.rows == N - 3
    assert (stream.origin["lines"], stream.origin["damaged"]) == (len(lines), 3)
    lines[70] = lines[70][:-1] + ', "faithfulness": 0.5}'
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(
        RagnbError, match=r"part-2\.jsonl, line 71, key 'faithfulness': appears twice"
    ):
        stream_scores(tmp_path / "part-*.jsonl")


def test_packed_lines_and_results_of_cases_are_streamed(table, tmp_path):
    results = [{"faithfulness": {"score": i % 5 / 4, "status": "ok"}} for i in range(999)]
    records = [
        {"question": f"q{i}", "doc_name": f"d{i % 7}", "results": cell}
        for i, cell in enumerate(results)
    ]
    records.append(
        {"question": "last", "results": {"faithfulness": {"score": None, "status": "failed"}}}
    )
    with gzip.open(tmp_path / "cases.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(one) + "\n" for one in records)
    sheet = rn.assess(tmp_path / "cases.jsonl.gz")
    row = sheet.means.iloc[0]
    assert (row["n"], row["n_failed"]) == (999, 1)
    assert row["value"] == pytest.approx(np.mean([i % 5 / 4 for i in range(999)]))
    assert sheet.inputs[0]["rows"] == 1000


def test_numbers_in_words_are_numbers_and_ranges_hold_in_a_stream(tmp_path):
    frame = pl.DataFrame(
        {"id": range(N), "faithfulness": ["0.5", "True", "NaN", "0.9999999999"] * (N // 4)}
    )
    frame.write_parquet(tmp_path / "s.parquet")
    stream = stream_scores(tmp_path / "s.parquet")
    assert stream.frame.head(4).collect()["faithfulness"].to_list() == [0.5, 1.0, None, 1.0]
    frame.with_columns(pl.lit(1.5).alias("context_recall")).write_parquet(tmp_path / "s.parquet")
    with pytest.raises(RagnbError, match=r"row '0': 1\.5 lies outside 0\.\.1"):
        rn.assess(tmp_path / "s.parquet")


def test_repeated_samples_are_told_in_a_stream(tmp_path):
    frame = pl.DataFrame(
        {"id": [i // 2 for i in range(N)], "run": [i % 2 for i in range(N)], "faithfulness": 0.5}
    )
    frame.write_parquet(tmp_path / "s.parquet")
    assert "repeat" in stream_scores(tmp_path / "s.parquet").frame.collect_schema()
    frame.drop("run").write_parquet(tmp_path / "s.parquet")
    (row,) = [one for one in stream_scores(tmp_path / "s.parquet").lossy if one["what"] == "kept"]
    assert (row["column"], row["n"]) == ("sample_id", N // 2)


@pytest.mark.parametrize("name", ["sample_id", "question", "model", "faithfulness"])
@pytest.mark.parametrize("kind", [pl.Object, pl.Duration, pl.Binary, pl.List(pl.String)])
def test_cells_of_a_stream_that_are_neither_text_nor_numbers_are_refused_by_name(name, kind):
    frame = pl.DataFrame({"sample_id": ["a", "b"], "faithfulness": [0.1, 0.2]})
    cell = {pl.Object: object(), pl.Duration: timedelta(1), pl.Binary: b"a"}.get(kind, ["a"])
    frame = frame.with_columns(pl.Series(name, [cell] * 2, dtype=kind))
    nested = kind == pl.List(pl.String)
    if (
        name == "faithfulness"
        or kind in (pl.Object, pl.Duration)
        or (nested and name == "sample_id")
    ):
        with pytest.raises(
            RagnbError, match=f"{name.replace('model', 'system')}'.*(holds|is of type).*convert"
        ):
            rn.assess(frame.lazy())
    else:
        assert len(rn.assess(frame.lazy()).scores) == 2


def test_different_ids_that_share_a_hash_are_told_apart(monkeypatch):
    ids = [f"{i % 8:0{1 + i % 3}}" for i in range(100)]
    monkeypatch.setattr(
        pl.Expr, "hash", lambda key: key.struct.field("sample_id").str.len_chars().cast(pl.UInt64)
    )
    query = streams.Query(pl.LazyFrame({"sample_id": ids}), len(ids))
    assert query.distinct("sample_id") == len({*ids}) > len({*map(len, ids)})


def test_no_more_rows_of_a_stream_are_held_at_once_than_a_batch_and_those_shown(
    table, tmp_path, monkeypatch
):
    monkeypatch.setattr("ragnb.weights.batches.ROWS", 500)
    tallest = []
    collect = pl.LazyFrame.collect

    def watched(frame, *words, **options):
        found = collect(frame, *words, **options)
        tallest.append(len(found))
        return found

    parquet_of(table, tmp_path, 3)
    monkeypatch.setattr(pl.LazyFrame, "collect", watched)
    sheet = rn.assess(tmp_path / "*.parquet", cluster="doc_name")
    assert sheet.rows == N
    assert max(tallest) <= 2000


def test_memory_does_not_grow_with_the_rows_of_a_stream(tmp_path):
    table = scores(50_000).drop("retrieved_contexts")

    def peak(rows):
        for i in range(rows // 50_000):
            part = table.with_columns(pl.col("qid") + f"-{i}")
            part.write_parquet(tmp_path / f"part-{i}.parquet", row_group_size=50_000)
        code = f"""
            import resource
            import ragnb as rn
            sheet = rn.assess({str(tmp_path / "*.parquet")!r})
            assert sheet.streamed and sheet.rows == {rows}
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
        """
        words = [sys.executable, "-c", textwrap.dedent(code)]
        return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

    few, many = peak(250_000), peak(450_000)
    assert many - few < 100, (few, many)  # 200,000 rows more; held as cells they take 400 MB


@pytest.mark.parametrize("role", ["scores", "traces"])
def test_a_scenario_takes_patterns_and_folders(table, tmp_path, role):
    (tmp_path / "parts").mkdir()
    parquet_of(table, tmp_path / "parts", 3)
    for given in ("parts/*.parquet", "parts"):
        (tmp_path / "s.yaml").write_text(f"{role}: {given}\n")
        scenario = rn.load_scenario(tmp_path / "s.yaml")
        assert getattr(scenario, role) == tmp_path / given
        assert (
            f'{role}: "{given}"' in scenario.snapshot_text()
            or f"{role}: {given}" in scenario.snapshot_text()
        )
    assert rn.Scenario(**{role: tmp_path / "parts" / "*.parquet"}).name == "parts"


def test_traces_of_several_files_are_labelled_as_one_table(tmp_path):
    records = [
        {
            "qid": f"q{i}",
            "q": f"问题 {i}",
            "answer": "citations: [a]" if i % 3 else "not in context",
        }
        for i in range(90)
    ]
    lines = [json.dumps(one, ensure_ascii=False) + "\n" for one in records]
    (tmp_path / "all.jsonl").write_text("".join(lines), encoding="utf-8")
    for k in range(3):
        (tmp_path / f"traces-{k}.jsonl").write_text(
            "".join(lines[k * 30 : k * 30 + 30]), encoding="utf-8"
        )
    gold = [
        {"qid": f"q{i}", "q": f"问题 {i}", "answerable": i % 2 == 0, "gold_ids": ["a"]}
        for i in range(90)
    ]
    (tmp_path / "gold.json").write_text(json.dumps(gold), encoding="utf-8")
    sheets = [
        rn.assess(tmp_path / name, gold=tmp_path / "gold.json")
        for name in ("all.jsonl", "traces-*.jsonl")
    ]
    pd.testing.assert_frame_equal(sheets[0].means, sheets[1].means)
    pd.testing.assert_frame_equal(sheets[0].outcomes, sheets[1].outcomes)
    assert sheets[1].scenario.name == "traces"
