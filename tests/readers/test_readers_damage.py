"""Damaged files of tools and tables that are too wide: a sentence with the file's name, never a traceback."""

from __future__ import annotations

import json
import zipfile
from contextlib import suppress
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from ragnb.errors import RagnbError
from ragnb.readers import documents, formats, read_cases, read_scores, read_traces, tables, traces
from ragnb.readers.guard import told_in_words
from ragnb.readers.parquet import unpacked_bytes


def test_whatever_damage_raises_is_a_sentence_that_is_cut(tmp_path):
    for error in (KeyError("x"), TypeError("unhashable " * 50_000), RecursionError("deep")):
        with pytest.raises(RagnbError) as told, told_in_words("run.eval"):
            raise error
        assert str(told.value).startswith("run.eval")
        assert type(error).__name__ in str(told.value)
        assert len(str(told.value)) < 600
    with pytest.raises(RagnbError, match="more memory") as told, told_in_words("run.eval"):
        raise MemoryError
    with pytest.raises(RagnbError) as told, told_in_words("run.eval"):
        raise RagnbError("y" * 200_000)
    assert len(str(told.value)) <= 3_000
    with pytest.raises(FileNotFoundError), told_in_words("run.eval"):
        raise FileNotFoundError("run.eval")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_line_of_a_million_columns_is_refused_before_it_is_parsed(
    tmp_path, monkeypatch, separator
):
    path = tmp_path / "wide.csv"
    path.write_text(separator.join(f"c{i}" for i in range(1_000_000)) + "\n", encoding="utf-8")
    monkeypatch.setattr(tables, "_rows", lambda *_: pytest.fail("it was parsed"))
    monkeypatch.setattr(tables, "_quick", lambda *_: pytest.fail("it was parsed"))
    with pytest.raises(RagnbError, match=r"has 1,000,000 columns or more, the most is 10,000"):
        read_scores(path)


def test_a_long_first_line_of_text_is_no_wide_table(tmp_path):
    path = tmp_path / "long.csv"
    quoted = '"' + "a, " * 20_000 + '"'
    path.write_text(f"question,{quoted},faithfulness\nWho?,x,0.5\n", encoding="utf-8")
    assert read_scores(path)["faithfulness"].tolist() == [0.5]


FILES = Path(__file__).parents[1] / "tool_files"


def damaged(value, key, instead):
    """A JSON value with something else at each place of a key."""
    if isinstance(value, dict):
        return {k: instead if k == key else damaged(v, key, instead) for k, v in value.items()}
    return [damaged(v, key, instead) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("key", ["componentResults", "gradingResult", "vars", "response"])
@pytest.mark.parametrize("instead", ["a text", 7, [[3]], {"threshold": [1]}])
def test_a_damaged_file_of_promptfoo_is_read_or_told(tmp_path, key, instead):
    path = tmp_path / "out.json"
    whole = json.loads(next(FILES.glob("promptfoo*.json")).read_text(encoding="utf-8"))
    path.write_text(json.dumps(damaged(whole, key, instead)), encoding="utf-8")
    with suppress(RagnbError):
        assert len(read_scores(path))


def lost_records(frame):
    """Return how many records a frame's file lost, and what is said of them."""
    said = [row["detail"] for row in frame.attrs["lossy"] if row["what"] == "bad_line"]
    source = frame.attrs["source"]
    assert source["lines"] == len(frame) + source["damaged"]
    return source["damaged"], said


@pytest.mark.parametrize(
    ("tool", "keys", "instead"),
    [
        ("promptfoo", ("gradingResult", "componentResults"), "a text"),
        ("promptfoo", ("gradingResult", "componentResults"), 7),
        ("deepeval_4.3.1_safety_failing", ("metricsData",), "a text"),
    ],
)
def test_a_damaged_record_of_a_tool_is_lost_with_its_place_and_the_others_are_read(
    tmp_path, tool, keys, instead
):
    path = tmp_path / "out.json"
    whole = json.loads(next(FILES.glob(f"{tool}*.json")).read_text(encoding="utf-8"))
    records = next(iter(records_of(whole, keys[0])))
    number, record = next((n, row) for n, row in enumerate(records, 1) if row[keys[0]])
    for key in keys[:-1]:
        record = record[key]
    path.write_text(json.dumps(whole), encoding="utf-8")
    before = read_scores(path)
    record[keys[-1]] = instead
    path.write_text(json.dumps(whole), encoding="utf-8")
    after = read_scores(path)
    assert len(after) == len(before) - 1
    damaged, said = lost_records(after)
    assert damaged == len(said) == 1
    assert f"row {number}: " in said[0]
    assert {*after.columns} == {*before.columns}


def records_of(value, key):
    """Yield the lists of objects with a key in a JSON value."""
    if isinstance(value, list) and len(value) > 1 and all(key in row for row in value):
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        if isinstance(one, dict | list):
            yield from records_of(one, key)


def test_a_threshold_that_is_a_list_loses_its_record_alone(tmp_path):
    rows = [
        {
            "input": f"Question {n}?",
            "actual_output": "Ann.",
            "metrics_data": [{"name": "faithfulness", "score": n / 4, "threshold": 0.5}],
        }
        for n in range(4)
    ]
    rows[2]["metrics_data"][0]["threshold"] = [0.5]
    frame = read_scores(written(tmp_path / "run.json", rows))
    assert frame["faithfulness"].tolist() == [0.0, 0.25, 0.75]
    damaged, said = lost_records(frame)
    assert damaged == 1
    assert "row 3: the record is damaged: TypeError" in said[0]


def written(path, value):
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


@pytest.mark.parametrize("where", [lambda rows: rows, lambda rows: {"results": rows}])
def test_what_is_no_record_among_records_is_lost_and_counted(tmp_path, where):
    rows = [
        {"question": "Who?", "faithfulness": 1.0},
        "cut",
        {"question": "When?", "faithfulness": 0},
    ]
    path = written(tmp_path / "s.json", where(rows))
    frame = read_scores(path)
    assert frame["faithfulness"].tolist() == [1.0, 0.0]
    assert lost_records(frame) == (1, ["record 2: found str, expected an object"])
    with pytest.raises(RagnbError, match="record 2: found str, expected an object"):
        read_scores(path, strict=True)


def test_a_damaged_record_is_one_of_the_lost_lines_of_the_account(tmp_path):
    rows = [{"question": f"Q{n}?", "faithfulness": 1.0} for n in range(9)]
    path = written(tmp_path / "s.json", [*rows, 7])
    source = read_scores(path).attrs["source"]
    assert (source["rows"], source["lines"], source["damaged"]) == (9, 10, 1)


def test_a_damaged_trace_is_lost_and_whatever_traces_raise_is_a_sentence(tmp_path, monkeypatch):
    rows = [{"question": f"Q{n}?", "answer": "Ann."} for n in range(4)]
    path = written(tmp_path / "t.json", rows)
    kept = traces.as_trace

    def read(raw, report):
        if "Q2?" in list(raw.columns["question"]):
            raise AttributeError("'str' object has no attribute 'get'")
        kept(raw, report)

    monkeypatch.setattr(traces, "as_trace", read)
    frame = read_traces(path)
    assert frame["question"].tolist() == ["Q0?", "Q1?", "Q3?"]
    damaged, said = lost_records(frame)
    assert damaged == 1
    assert "row 3: the record is damaged: AttributeError" in said[0]

    def refuse(*_):
        raise KeyError("x")

    monkeypatch.setattr(traces, "as_trace", refuse)
    with pytest.raises(RagnbError, match=r"t\.json: is damaged or not what its tool writes"):
        read_traces(path)


def log_of_inspect(path, parts):
    """Write a log of inspect with parts: texts of members by name."""
    with zipfile.ZipFile(path, "w") as packed:
        for name, text in parts.items():
            packed.writestr(name, text)
    return path


def test_a_damaged_sample_of_a_log_of_inspect_is_lost_and_counted(tmp_path):
    rows = [
        {
            "id": f"s{n}",
            "epoch": 1,
            "input": f"Q{n}?",
            "target": "Ann",
            "scores": {"match": {"value": "C"}},
        }
        for n in range(4)
    ]
    one = log_of_inspect(
        tmp_path / "a.eval", {"summaries.json": json.dumps([*rows[:2], "cut", rows[3]])}
    )
    frame = read_scores(one)
    assert len(frame) == 3
    damaged, said = lost_records(frame)
    assert damaged == 1
    assert "summaries.json, record 3: the record is damaged: found str" in said[0]
    with pytest.raises(RagnbError, match="record 3: found str"):
        read_scores(one, strict=True)
    parts = {
        "_journal/start.json": json.dumps({"eval": {"dataset": {"sample_ids": [1, 2, 3, 4]}}}),
        "_journal/summaries/1.json": json.dumps(rows[:2]),
        "_journal/summaries/2.json": json.dumps(rows[2:])[:-20],
    }
    frame = read_scores(log_of_inspect(tmp_path / "b.eval", parts))
    assert len(frame) == 2
    assert lost_records(frame)[0] == 2, "the log says how many samples there are"
    whole = log_of_inspect(
        tmp_path / "c.eval", {"summaries.json": "[{", "_journal/summaries/1.json": json.dumps(rows)}
    )
    assert len(read_scores(whole)) == 4, "the journal holds them too"


def test_a_damaged_log_of_inspect_is_told(tmp_path):
    whole = next(FILES.glob("*.eval")).read_bytes()
    for place in range(30, len(whole), len(whole) // 25):
        path = tmp_path / f"{place}.eval"
        path.write_bytes(whole[:place] + b"\xff\x00\xaa\x55" * 8 + whole[place + 32 :])
        with suppress(RagnbError):
            assert len(read_scores(path))


def parquet(path, texts, **how):
    table = pyarrow.table({"question": [f"Q{n}?" for n in range(len(texts))], "answer": texts})
    pyarrow.parquet.write_table(table, path, **how)
    return path


@pytest.mark.parametrize("shared", [True, False])
def test_a_small_parquet_that_unpacks_to_huge_texts_is_refused(tmp_path, monkeypatch, shared):
    """Pages that are compressed are told by the footer before they are read, a shared text after it."""
    monkeypatch.setattr(documents, "_UNSUSPECTED", 1 << 20)
    texts = ["a" * 40_000] * 500
    path = parquet(tmp_path / "small.parquet", texts, use_dictionary=shared, compression="zstd")
    assert path.stat().st_size < 100_000
    if not shared:
        monkeypatch.setattr(formats.pl, "read_parquet", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(
        RagnbError, match=r"small\.parquet: unpacks to 19 MB out of .*, the most is \d"
    ):
        read_cases(path)


def test_a_parquet_of_the_usual_size_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "_UNSUSPECTED", 1 << 20)
    path = parquet(tmp_path / "usual.parquet", [f"Answer {n}." * 9 for n in range(500)])
    assert len(read_cases(path)) == 500


@pytest.mark.parametrize("rows", [0, 1, 5_000])
@pytest.mark.parametrize("groups", [1, 1_000])
def test_the_unpacked_size_of_a_parquet_is_what_pyarrow_says(tmp_path, rows, groups):
    path = parquet(
        tmp_path / "a.parquet", [f"text {n}" for n in range(rows)], row_group_size=groups
    )
    about = pyarrow.parquet.read_metadata(path)
    stated = sum(about.row_group(n).total_byte_size for n in range(about.num_row_groups))
    assert unpacked_bytes(path.read_bytes()) == stated


def test_a_damaged_footer_of_a_parquet_has_no_size(tmp_path):
    whole = parquet(tmp_path / "a.parquet", ["text"] * 50).read_bytes()
    for place in range(len(whole) - 200, len(whole)):
        found = unpacked_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        assert found is None or isinstance(found, int)
        assert unpacked_bytes(whole[:place]) is None


_RECORDS = [{"id": i, "question": f"q{i}", "answer": "a", "faithfulness": 0.5} for i in range(9)]
_FAILURES = [{"id": i, "question": f"q{i}", "answer": "", "error": "timeout"} for i in (9, 10)]
_OF_METRIC = [{"id": i, "question": f"q{i}", "score": 0.5} for i in range(9)]


@pytest.mark.parametrize(
    "content",
    [
        {"results": [*_RECORDS, "cut"]},
        {"results": [*_RECORDS, "cut"], "failed": _FAILURES},
        {"results": _RECORDS, "failed": [*_FAILURES, "cut"]},
        {"results": [*_RECORDS, None, 7], "failed": [*_FAILURES, "cut"]},
        {"old": [*_RECORDS, "cut"], "new": _RECORDS},
        {"faithfulness": [*_OF_METRIC, "cut"], "answer_relevancy": _OF_METRIC},
    ],
    ids=["one", "beside_failures", "in_failures", "in_both", "systems", "metrics"],
)
def test_damage_counts_in_whichever_of_several_lists_it_stands(tmp_path, content):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(content))
    items = [item for cells in content.values() for item in cells]
    damaged = sum(not isinstance(item, dict) for item in items)
    lines = read_scores(path).attrs["lossy"]
    assert sum(line["n"] for line in lines if line["what"] == "bad_line") == damaged
    with pytest.raises(RagnbError, match="expected an object"):
        read_scores(path, strict=True)


_TURNS = [{"question": "Who?", "answer": "Ann."}, {"question": "When?", "answer": "In May."}]


@pytest.mark.parametrize("by_id", [False, True], ids=["one_record", "records_by_id"])
def test_a_gap_in_a_list_inside_a_record_is_no_damaged_record(tmp_path, by_id):
    record = {"question": "Why?", "answer": "So.", "faithfulness": 0.5, "history": [*_TURNS, None]}
    content = {"a": record, "b": {**record, "history": _TURNS}} if by_id else record
    path = tmp_path / "run.json"
    path.write_text(json.dumps(content))
    scores = read_scores(path, strict=True)
    assert scores["faithfulness"].tolist() == [0.5] * (2 if by_id else 1)
    assert "bad_line" not in {line["what"] for line in scores.attrs["lossy"]}
