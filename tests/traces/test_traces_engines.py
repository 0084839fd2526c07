"""Traces of Polars labelled as those of pandas, JSON lines scanned block by block; partial refusals; samples."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import unicodedata
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from work import Looks, grows_faster, lines_run

import ragnb.readers
import ragnb.traces
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.readers import jsons, read_traces
from ragnb.readers.documents import Document
from ragnb.readers.frames import polars_series
from ragnb.readers.raw import Lossy
from ragnb.traces import (
    RATES,
    join_report,
    label_traces,
    outcome_counts,
    refusal_metrics,
    sample_traces,
)
from ragnb.traces.answers import SETTLED, composed, trimmed_and_lowered
from ragnb.traces.columns import as_series

TEXT = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\/\n,[]: é한'), max_size=12
)
IDS = st.lists(TEXT | st.sampled_from(["a", "b"]) | st.integers(0, 9), max_size=3)
ANSWERS = TEXT | st.sampled_from(
    [
        "not in context",
        "Yes. citations: [a, b]",
        "citations:[a[1]]",
        "NaN",
        "",
        "RE\u0301SUME\u0301 citations: [b]",
        None,
    ]
)
RECORD = st.fixed_dictionaries(
    {"q": st.sampled_from(["q1", "q2", "NaN", "e\u0301"]), "answer": ANSWERS},
    optional={
        "qid": st.sampled_from(["1", "2", "", 7]),
        "chunks": st.none() | IDS.map(lambda ids: [{"id": i, "text": "\\t"} for i in ids]),
        "citations": st.none() | IDS,
        "ok": st.booleans(),
        "ts": st.integers(0, 10**12) | st.floats(0, 1e9),
        "note": st.none() | TEXT,
    },
)
LINE = RECORD.map(lambda r: json.dumps(r, ensure_ascii=False)) | RECORD.map(json.dumps)
BAD = st.sampled_from(["{", "[]", "3", '{"q": nope}', '{"q": "q1", "answer": "\\ud800x"}'])
GOLD = pd.DataFrame(
    {
        "sample_id": ["1", "2"],
        "question": ["q1", "q2"],
        "answerable": [True, False],
        "gold_ids": [["a", "7"], []],
        "gold_claim": ["résumé of all", None],
        "doc_name": ["甲.pdf", "乙.pdf"],
    }
)


def quietly(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RagnbWarning)
        return call()


def in_polars(frame):
    """The cells of a pandas frame as Polars holds them."""
    return pl.DataFrame([polars_series(name, list(frame[name])) for name in frame])


def scanned(path):
    """The records of a file, block by block, and what became of its lines."""
    report = Lossy()
    records = [record for _, some in jsons.record_blocks(Document(path), report) for record in some]
    return in_polars(pd.DataFrame(records, dtype=object)), report


def plain(value):
    if isinstance(value, list | np.ndarray):
        return [plain(v.get("id") if isinstance(v, dict) else v) for v in value]
    return None if value is None or value is pd.NA or value != value else value


def same_cells(ours, theirs, columns):
    for column in columns:
        left = [plain(v) for v in ours[column].to_list()]
        assert left == [plain(v) for v in theirs[column].tolist()], column


@pytest.fixture(params=[1 << 24, 60], ids=["one block", "many blocks"])
def block(request, monkeypatch):
    monkeypatch.setattr(jsons, "BLOCK", request.param)


@settings(max_examples=60)
@given(lines=st.lists(LINE | BAD, min_size=1, max_size=8))
def test_both_engines_label_a_file_alike_and_a_block_is_scanned_as_it_is_read(
    block, tmp_path, lines
):
    path = tmp_path / "t.jsonl"
    path.write_bytes("\n".join(lines).encode())
    try:
        theirs = quietly(lambda: read_traces(path))
    except RagnbError as error:
        if "hold no record" in str(error):
            with pytest.raises(RagnbError, match=re.escape(str(error))):
                scanned(path)
        return
    (found, report), origin = scanned(path), theirs.attrs["source"]
    assert (len(found), report.lines, report.damaged) == (
        len(theirs),
        origin["lines"],
        origin["damaged"],
    )
    ours = in_polars(theirs)
    same_cells(ours, theirs, ours.columns)
    if "answer" not in ours.columns:
        return
    labelled, wanted = (quietly(lambda f=f: label_traces(f, gold=GOLD)) for f in (ours, theirs))
    same_cells(
        labelled, wanted, ["label", "miss", "citations_predicted", "citations_flagged", *RATES]
    )
    same_cells(
        labelled,
        wanted,
        ["answered", "refused", "partial", "hit", "contained", "compliant", "doc_name"],
    )
    same_cells(labelled, wanted, [f"{rate}__status" for rate in RATES])
    pd.testing.assert_frame_equal(refusal_metrics(labelled), refusal_metrics(wanted))
    pd.testing.assert_frame_equal(outcome_counts(labelled), outcome_counts(wanted))
    assert quietly(lambda: join_report(ours, gold=GOLD)).items() <= wanted.attrs["join"].items()


GOOD = [
    json.dumps({"q": f"问题 {i}", "answer": f"- a{i}", "chunks": [{"id": "c"}]}) for i in range(997)
]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.usefixtures("block")
def test_three_bad_lines_of_a_thousand_leave_997_rows_and_are_named(tmp_path, packed):
    lines = [line.encode() for line in GOOD]
    for number, bad in ((3, b"{"), (500, b'{"q": "\xff"}'), (1000, b"[]")):
        lines.insert(number - 1, bad)
    path = tmp_path / ("t.jsonl.gz" if packed else "t.jsonl")
    data = b"\xef\xbb\xbf" + b"\r\n".join(lines)
    path.write_bytes(gzip.compress(data) if packed else data)
    frame, report = scanned(path)
    assert frame["q"].to_list() == [f"问题 {i}" for i in range(997)]
    read = read_traces(path)
    for rows in (report.rows, [row for row in read.attrs["lossy"] if row["what"] == "bad_line"]):
        listed = [str(row["detail"]).partition(":")[0] for row in rows]
        assert listed == ["line 3", "line 500", "line 1000"]
    assert read["question"].tolist() == frame["q"].to_list()
    with pytest.raises(RagnbError, match="line 3: .*no JSON"):
        read_traces(path, strict=True)


@pytest.mark.usefixtures("block")
def test_a_key_given_twice_is_refused_by_the_scanner_with_its_line(tmp_path):
    path = tmp_path / "t.jsonl"
    for line, key in ((0, "q"), (700, "answer"), (996, "chunks")):
        for bad in ([], ["{bad"]):
            lines = [
                one[:-1] + f', "{key}": null}}' if i == line else one for i, one in enumerate(GOOD)
            ]
            path.write_text("\n".join([*lines, *bad]), encoding="utf-8")
            with pytest.raises(RagnbError, match=f"line {line + 1}, key '{key}': appears twice"):
                scanned(path)


def test_ids_with_backslashes_and_quotes_survive(tmp_path):
    ids = ["C:\\new\\t.pdf", 'a"b', "é\t", "plain"]
    path = tmp_path / "t.jsonl"
    path.write_text(
        json.dumps({"q": "q", "answer": "x", "chunks": [{"id": i, "m": {"id": "no"}} for i in ids]})
    )
    for chunks in (read_traces(path)["chunks"][0], scanned(path)[0]["chunks"].to_list()[0]):
        assert [chunk["id"] for chunk in chunks] == ids


@pytest.mark.parametrize(
    "shape", [bytes, lambda b: b"\xef\xbb\xbf" + b, gzip.compress, lambda b: b[:-1]]
)
def test_a_file_is_read_packed_or_not_with_a_mark_or_without(tmp_path, shape):
    lines, path = '{"q": "问", "answer": "答"}\n'.encode() * 3, tmp_path / "traces.jsonl"
    path.write_bytes(shape(lines))
    assert [list(frame["answer"]) for frame in (read_traces(path), scanned(path)[0])] == [
        ["答"] * 3
    ] * 2
    path.unlink()


def test_a_late_key_that_labels_depend_on_is_seen(tmp_path):
    path = tmp_path / "t.jsonl"
    records = [{"q": str(i), "answer": "x"} for i in range(4000)]
    records[1777] |= {"citations": ["a"]}
    path.write_text("\n".join(map(json.dumps, records)))
    assert scanned(path)[0]["citations"].drop_nulls().to_list() == [["a"]]


def test_lazy_and_arrow_frames_come_back_as_their_kind():
    traces = pl.DataFrame(
        {"question": ["q1", "q2"], "answer": ["citations: [a]", "not in context"]}
    )
    for frame in (traces, traces.lazy(), traces.to_arrow()):
        labelled = label_traces(frame, gold=pl.from_pandas(GOLD))
        assert type(labelled) is type(frame)
        labels = (labelled.collect() if isinstance(labelled, pl.LazyFrame) else labelled)["label"]
        assert pl.Series(labels).cast(pl.String).to_list() == ["OK", "REFUSAL_OK"]
    assert refusal_metrics(labelled, by="doc_name")["doc_name"].nunique() == 2


def test_frames_that_are_none_are_refused():
    with pytest.raises(RagnbError, match="has no 'question'"):
        label_traces({"answer": ["x"]})
    with pytest.raises(RagnbError, match="cannot read a int"):
        label_traces(7)


# Time

PIECES = [
    "[",
    "]",
    " ",
    "\t",
    "citations",
    "citations: [",
    "a",
    "a ",
    '"',
    "'a'",
    ", ",
    "\n",
    "é",
    "題",
    "- ",
    "\\",
    "a/",
]
HOSTILE = [*PIECES, *(f"{one}{other}" for one in ("citations", "[") for other in PIECES)]


@pytest.mark.parametrize("piece", HOSTILE)
def test_labelling_hostile_text_at_most_doubles_the_work_when_the_text_doubles(piece):
    """The engine's own expressions are linear; what is counted is Python's."""
    gold = GOLD.assign(gold_claim=["within thirty days 題", "60%"])

    def label(size):
        text = (piece * (size // len(piece) + 1))[:size]
        frames = [
            pl.DataFrame({"question": ["q1"], "answer": [head + text]})
            for head in ("", "citations: [")
        ]
        patterns = {"patterns": ["(a|aa)+$"], "partial": ["(.*)*x"]}
        return lines_run(lambda: [label_traces(f, gold=gold, **patterns) for f in frames])

    assert label(10_000) <= 2.2 * label(5_000) + 100


def regexes():
    """Every compiled regular expression of the two rooms that read strangers' text."""
    found = {}
    for room in (ragnb.readers, ragnb.traces):
        for info in pkgutil.iter_modules(room.__path__, room.__name__ + "."):
            for name, value in vars(importlib.import_module(info.name)).items():
                if isinstance(value, re.Pattern):
                    found[f"{info.name}.{name}"] = value
    return found


@pytest.mark.parametrize("name", sorted(regexes()))
def test_no_expression_looks_more_than_twice_as_often_at_twice_the_text(name):
    pattern = regexes()[name]
    others = ["1", "1.", "e1", "None", "u'", "Unnamed: ", "_", "0.0", "# ", "{", "(", "a_b"]
    for piece in [*PIECES, *others]:
        for tail in ("", "!"):

            def text(size, piece=piece, tail=tail):
                return (piece * size)[:size] + tail

            assert not grows_faster(pattern, text), (piece, tail)


def test_a_quadratic_expression_and_one_that_explodes_are_seen():
    """The counting matcher finds what `re` finds, and the forms that SAFETY names grow too fast in it."""
    quadratic = re.compile(r"citations\s*:\s*\[([^\]]*)\]")
    assert grows_faster(quadratic, lambda n: ("citations:[" * n)[:n])
    assert grows_faster(re.compile(r"\s+$"), lambda n: " " * n + "!")
    with pytest.raises(AssertionError, match="looks at"):
        grows_faster(re.compile(r"(a|aa)+$"), lambda n: "a" * n + "!")
    assert not grows_faster(re.compile(r"a{1,8}b"), lambda n: "a" * n)
    cases = [
        (r"(?P<q>['\"])x(?=y)y*?\1|(?<!a)b++c?", "ab 'xyy' bb"),
        (r"(?i)(?:A|b)*c(?!d)", "aBcabc"),
    ]
    for written, said in cases:
        assert Looks(written).search(said) == re.search(written, said).span()


# Unicode


def test_characters_taken_for_settled_never_change_under_nfc():
    every = [chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]
    settled = set(pl.Series(every).filter(pl.Series(every).str.contains(f"^[{SETTLED}]$")))
    assert len(settled) > 40_000
    assert all(
        unicodedata.is_normalized("NFC", c) and not unicodedata.combining(c) for c in settled
    )
    seconds = set()
    for c in every:
        parts = unicodedata.decomposition(c).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            seconds.add(chr(int(parts[1], 16)))
    seconds |= {chr(c) for c in [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]}
    assert not seconds & settled


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
def test_composing_is_nfc(values):
    wanted = [v if v is None else unicodedata.normalize("NFC", v) for v in values]
    assert composed(as_series(values)).to_list() == wanted
    kept, lower = trimmed_and_lowered(as_series(values))
    assert kept.equals(composed(as_series(values)).str.strip_chars())
    assert lower.equals(kept.str.to_lowercase())


def test_only_texts_that_lower_casing_leaves_alone_are_left_alone():
    every = as_series([f"A{chr(c)}" for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000])
    every = pl.concat([every, every.str.strip_prefix("A")])
    kept, lower = trimmed_and_lowered(every)
    assert lower.equals(kept.str.to_lowercase())


# Partial refusals


@pytest.mark.parametrize(
    ("answer", "refused", "partial"),
    [
        ("The passages do not say when, but it is free.", 0, 1),
        ("The passages do not say.", 1, 0),
        ("not in context", 1, 0),
        ("It is free.", 0, 0),
        ("BUT", 0, 1),
    ],
)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_partial_refusal_counts_as_answered_and_is_shown(frame, answer, refused, partial):
    traces = frame({"question": ["q1"], "answer": [answer]})
    options = {"patterns": "do not say", "partial": [r"\bbut\b", "not in context"]}
    row = label_traces(traces, gold=GOLD, **options)
    assert [row[c][0] for c in ("refused", "partial", "answered")] == [
        refused,
        partial,
        not refused,
    ]
    assert row["over_refusal"][0] == refused
    if frame is pd.DataFrame:
        assert row.attrs["join"]["n_partial"] == partial


def test_without_partial_patterns_nothing_refuses_in_part_and_no_answer_is_unknown():
    labelled = label_traces(
        pd.DataFrame({"question": ["q1", "q2"], "answer": ["but", None]}), gold=GOLD
    )
    assert labelled["partial"].tolist() == [False, pd.NA]
    with pytest.raises(RagnbError, match="partial"):
        label_traces(pd.DataFrame({"answer": ["x"]}), partial=["("])


# Samples


def sampled(frame, share, **kwargs):
    return sample_traces(frame, share=share, **kwargs)["sample_id"].tolist()


@given(
    st.lists(st.integers(0, 10_000), unique=True, max_size=200),
    st.randoms(),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_a_sample_does_not_depend_on_order_or_piece_and_grows_with_its_share(
    numbers, rng, one, other
):
    frame = pd.DataFrame({"sample_id": [f"题{n}" for n in numbers]})
    kept = sampled(frame, one)
    shuffled = frame.sample(frac=1, random_state=rng.randrange(2**31))
    assert sorted(sampled(shuffled, one)) == sorted(kept)
    assert [*sampled(frame[:50], one), *sampled(frame[50:], one)] == kept
    small, large = sorted([one, other])
    assert set(sampled(frame, small)) <= set(sampled(frame, large))
    ours = sample_traces(pl.from_pandas(frame), share=one)
    assert ours["sample_id"].to_list() == kept


@pytest.mark.parametrize("seed", ["0", "1"])
def test_a_sample_is_the_same_in_every_process(seed):
    """The expected ids are those of this process, whose hash seed is another."""
    code = (
        "import pandas as pd, ragnb as rn\n"
        "frame = pd.DataFrame({'sample_id': range(1000), 'answer': 'x'})\n"
        "print(*rn.sample_traces(frame, share=0.05)['sample_id'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": seed, "TZ": "Asia/Shanghai"},
    )
    assert [*map(int, done.stdout.split())] == sampled(
        pd.DataFrame({"sample_id": range(1000)}), 0.05
    )


def test_a_sample_is_of_the_kind_of_the_frame_with_its_source():
    frame = pd.DataFrame({"sample_id": [f"q{i}" for i in range(500)]})
    frame.attrs["source"] = {"path": "traces.jsonl"}
    kept = sample_traces(frame, share=0.2)
    assert kept.attrs == frame.attrs
    assert frame.loc[kept.index].equals(kept)
    for made in (pl.from_pandas(frame), pl.from_pandas(frame).lazy()):
        found = sample_traces(made, share=0.2)
        assert type(found) is type(made)
        assert found.lazy().collect()["sample_id"].to_list() == kept["sample_id"].tolist()


def test_the_share_kept_is_binomial():
    frame = pd.DataFrame({"sample_id": [f"q{i}" for i in range(50_000)]})
    for share in (0.01, 0.2, 0.5):
        for salt in ("", "盐", "b"):
            n = len(sample_traces(frame, share=share, salt=salt))
            assert abs(n - 50_000 * share) < 4 * (50_000 * share * (1 - share)) ** 0.5
    assert sampled(frame, 0.1, salt="a") != sampled(frame, 0.1, salt="b")
    assert (len(sample_traces(frame, share=0)), len(sample_traces(frame, share=1))) == (0, 50_000)


def test_a_sample_is_drawn_by_the_hash_that_the_notes_tell():
    person = hashlib.blake2b(b"salt", digest_size=16).digest()
    ids = [f"q{i}" for i in range(300)]
    hashes = [hashlib.blake2b(i.encode(), digest_size=8, person=person).digest() for i in ids]
    wanted = [
        i
        for i, place in zip(ids, hashes, strict=True)
        if int.from_bytes(place, "big") < 0.3 * 2**64
    ]
    assert sampled(pd.DataFrame({"sample_id": ids}), 0.3, salt="salt") == wanted


def test_rows_without_an_id_are_sampled_by_their_question():
    ids, questions = ["a", None, None, None], ["x", "a", "y", None]
    frame = pd.DataFrame({"sample_id": ids, "question": questions})
    for share in np.linspace(0, 0.99, 12):
        kept = set(sample_traces(frame, share=share).index)
        assert 3 not in kept
        assert (0 in kept) == (1 in kept)
        assert set(sample_traces(frame[["question"]], share=share).index) - {0} == kept - {0}
    assert len(sample_traces(frame, share=1.0)) == 4


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), True, "1%"])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(RagnbError, match="share="):
        sample_traces(GOLD, share=share)


def test_a_key_that_is_no_column_is_refused():
    with pytest.raises(RagnbError, match="did you mean 'answer'"):
        sample_traces(pd.DataFrame({"answer": ["x"]}), key="answers")
