"""The same cases on every engine, against a loop over the rows and against the pandas result."""

import datetime as dt
import math
import unicodedata
import warnings
from decimal import Decimal
from pathlib import Path

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from engines import ENGINES as NATIVE
from engines import EVERY_ENGINE as ENGINES
from engines import on
from histograms import histogram

import ragnb as rn
from ragnb.diagnostics import failure_summary
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.traces import outcome_counts

LAZY = ("lazy", "duckdb")
NAN = math.nan


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture(params=NATIVE)
def native(request):
    return request.param


def rows_of(frame):
    """The rows as plain dicts, every gap None, sorted by `sample_id` where there is one."""
    opened = nw.from_native(frame)
    eager = opened.collect() if isinstance(opened, nw.LazyFrame) else opened
    columns = {name: eager[name].to_list() for name in eager.columns}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for row in rows:
        for name, value in row.items():
            if not isinstance(value, str) and (value is None or value is pd.NA or value != value):
                row[name] = None
    return sorted(rows, key=lambda row: row["sample_id"]) if "sample_id" in columns else rows


def many(n=3000):
    rng = np.random.default_rng(7)
    docs = [None, "甲.pdf", "双源CT成像技术.pdf", "re\u0301sume\u0301", "r\u00e9sum\u00e9", "b"]
    gap = {0: None, 1: NAN}
    scores = [
        [gap.get(int(rng.integers(0, 12)), float(rng.random())) for _ in range(n)] for _ in range(2)
    ]
    status = [
        ["failed", "not_applicable", "missing", None][int(rng.integers(0, 4))] for _ in range(n)
    ]
    return {
        "sample_id": list(range(n)),
        "faithfulness": scores[0],
        "faithfulness__status": [
            "ok" if x is not None and x == x else word
            for x, word in zip(scores[0], status, strict=True)
        ],
        "noise_sensitivity": scores[1],
        "context_recall": pa.array(
            [Decimal(int(x)) / 4 for x in rng.integers(0, 5, n)], pa.decimal128(5, 2)
        ),
        "over_refusal": pa.array([[True, False, None][int(x)] for x in rng.integers(0, 3, n)]),
        "doc_name": [docs[int(x)] for x in rng.integers(0, len(docs), n)],
        "team": [[None, 1, 2][int(x)] for x in rng.integers(0, 3, n)],
        "talk": [[None, "一", "b", "c"][int(x)] for x in rng.integers(0, 4, n)],
    }


def empty():
    return {
        "faithfulness": pa.array([], pa.float64()),
        "faithfulness__status": pa.array([], pa.string()),
        "doc_name": pa.array([], pa.string()),
    }


CASES = {
    "many": (many(), {}),
    "groups": (many(), {"by": "team"}),
    "clusters": (many(), {"cluster": "talk"}),
    "empty names beside gaps": (
        many() | {"team": [["", None, "a"][i % 3] for i in range(3000)]},
        {"by": "team"},
    ),
    "documents": (many(), {"by": "doc_name", "doc_weights": {"b": 0.0, "甲.pdf": 2.0}}),
    "groups that are clusters": (many(), {"by": "talk", "cluster": "talk"}),
    "weights": (
        many(),
        {
            "metric_weights": {"faithfulness": 0.0, "noise_sensitivity": 2.5, "over_refusal": 1},
            "doc_weights": {"r\u00e9sum\u00e9": 3, "双源CT成像技术.pdf": 0, "b": 0.25},
        },
    ),
    "no orientation": (many(), {"orient": False}),
    "rows are clusters": ({k: v for k, v in many().items() if k != "doc_name"}, {}),
    "whole numbers as documents": (many(), {"doc": "team", "doc_weights": {"1": 2.0}}),
    "floats as documents": (
        many() | {"team": [float(i % 5) / 2 for i in range(3000)]},
        {"doc": "team", "doc_weights": {"1": 2.0, "0.5": 0.25}},
    ),
    "one document": ({"faithfulness": [0.25, NAN, 1.0], "doc_name": ["甲"] * 3}, {}),
    "no document is named": ({"faithfulness": [0.25, None, 1.0], "doc_name": pa.nulls(3)}, {}),
    "one row": ({"faithfulness": [0.25], "noise_sensitivity": [NAN], "doc_name": ["甲"]}, {}),
    "one row, no document": (
        {"faithfulness": [0.25], "doc_name": pa.array([None], pa.string())},
        {},
    ),
    "all missing": (
        {
            "faithfulness": pa.nulls(3),
            "noise_sensitivity": [0.5, NAN, None],
            "doc_name": list("aab"),
        },
        {},
    ),
    "empty": (empty(), {}),
    "empty groups": (empty(), {"by": "doc_name"}),
    "integers": (
        {"faithfulness": [1, 0, None], "compliance": [True, None, False], "doc_name": list("aab")},
        {},
    ),
    "not a status word": ({"faithfulness": [0.5], "faithfulness__status": pa.nulls(1)}, {}),
    "categories": (
        {
            "faithfulness": [0.5, 0.75, 1.0],
            "doc_name": pa.array(["b", "甲", None]).dictionary_encode(),
        },
        {"doc_weights": {"甲": 2}},
    ),
}


def plain_rows(columns):
    return pa.table(columns).to_pylist()


def named(value):
    """A label as text: whole floats as digits, NFC."""
    if isinstance(value, float) and value == int(value):
        value = int(value)
    return unicodedata.normalize("NFC", str(value))


def loop_score(row, metrics, weights, orient):
    top = bottom = 0.0
    for metric in metrics:
        x = row[metric.name]
        w = weights.get(metric.name, 0.0 if metric.role == "rate" else 1.0)
        if x is None or x != x or w == 0:
            continue
        top += w * (1 - float(x) if orient and metric.better == "lower" else float(x))
        bottom += w
    return top / bottom if bottom else None


def loop_means(
    rows,
    metrics,
    *,
    metric_weights=None,
    doc_weights=None,
    by=None,
    doc="doc_name",
    cluster=None,
    orient=True,
):
    """Value, n, clusters and standard error of every metric and the total, by deleting one cluster at a time."""
    groups = {None: rows}
    if by is not None:
        called = named if by == doc else str
        names = sorted({called(r[by]) for r in rows if r[by] is not None})
        groups = {
            name: [r for r in rows if r[by] is not None and called(r[by]) == name] for name in names
        }
        if any(r[by] is None for r in rows):
            groups[None] = [r for r in rows if r[by] is None]
    found = []
    for name, members in groups.items():
        for metric in [*metrics, None]:
            scored = []
            for i, row in enumerate(members):
                x = (
                    row[metric.name]
                    if metric
                    else loop_score(row, metrics, metric_weights or {}, orient)
                )
                if x is None or x != x:
                    continue
                d = row.get(doc)
                d = None if d is None else named(d)
                own = row.get(cluster) if cluster else None if by == doc else d
                v = (doc_weights or {}).get(d, 1.0)
                scored.append((float(x), v, ("row", i) if own is None else own))
            about = {"group": name, "metric": metric.name if metric else "weighted_score"}
            found.append(about | jackknife(scored))
    return found


def jackknife(scored):
    size = sum(v for _, v, _ in scored)
    out = {"n": len(scored), "n_clusters": 0, "value": NAN, "se": NAN}
    if not size:
        return out
    top = sum(v * x for x, v, _ in scored)
    parts = {}
    for x, v, g in scored:
        a, u = parts.get(g, (0.0, 0.0))
        parts[g] = a + v, u + v * x
    parts = {g: p for g, p in parts.items() if p[0] > 0}
    out |= {"value": top / size, "n_clusters": len(parts)}
    if len(parts) > 1:
        moves = [(top - u) / (size - a) - top / size for a, u in parts.values()]
        out["se"] = math.sqrt((len(parts) - 1) / len(parts) * sum(m * m for m in moves))
    return out


@pytest.mark.parametrize("case", CASES)
def test_means_are_those_of_a_loop_and_of_pandas(engine, case):
    columns, options = CASES[case]
    got = rn.weighted_means(on(engine, columns), **options)
    metrics = [rn.METRICS[name] for name in got["metric"].unique() if name != "weighted_score"]
    want = loop_means(plain_rows(columns), metrics, **options)
    assert got["metric"].tolist() == [row["metric"] for row in want]
    for name in ("n", "n_clusters", "value"):
        np.testing.assert_allclose(got[name], [row[name] for row in want], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(got["se"], [row["se"] for row in want], rtol=1e-9, atol=1e-12)
    if "by" in options:
        groups = got[options["by"]]
        assert [None if pd.isna(name) else name for name in groups] == [
            row["group"] for row in want
        ]
    ours = rn.weighted_means(on("pandas", columns), **options)
    pd.testing.assert_frame_equal(got, ours, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", [c for c, (columns, _) in CASES.items() if "sample_id" in columns])
def test_rows_are_weighed_as_a_loop_weighs_them(engine, case):
    columns, options = CASES[case]
    options = {
        k: v for k, v in options.items() if k in ("metric_weights", "doc_weights", "orient", "doc")
    }
    frame = on(engine, columns)
    got = rn.weigh(frame, **options)
    assert type(got) is type(frame)
    rows = plain_rows(columns)
    metrics = [m for m in rn.METRICS.values() if m.name in columns]
    weights, docs = options.get("metric_weights", {}), options.get("doc_weights", {})
    for mine, row in zip(rows_of(got), rows, strict=True):
        score = loop_score(row, metrics, weights, options.get("orient", True))
        assert mine["weighted_score"] == (
            None if score is None else pytest.approx(score, rel=1e-12)
        )
        name = row.get(options.get("doc", "doc_name"))
        weight = 1.0 if name is None else docs.get(named(name), 1.0)
        assert mine["sample_weight"] == weight


def test_weighing_keeps_columns_and_the_kind_of_frame(native):
    frame = on(
        native, {"weighted_score": [9.0, 9.0], "faithfulness": [0.5, None], "doc_name": ["a", "b"]}
    )
    whole = rn.weigh(frame, doc_weights={"a": 2})
    assert rows_of(whole) == [
        {"weighted_score": 0.5, "faithfulness": 0.5, "doc_name": "a", "sample_weight": 2.0},
        {"weighted_score": None, "faithfulness": None, "doc_name": "b", "sample_weight": 1.0},
    ]
    column = rn.weighted_score(frame)
    assert type(column) is type(frame)
    assert [list(row) for row in rows_of(column)] == [["weighted_score"]] * 2


def test_rescaled_ranges_add_up_alike(engine):
    columns = {
        "accuracy": [10, 1, None],
        "faithfulness": [0.0, 0.5, 0.25],
        "noise_sensitivity": [0.5, NAN, 0.0],
    }
    frame, pandas = on(engine, columns), on("pandas", columns)
    got = [row["weighted_score"] for row in rows_of(rn.weigh(frame, rescale=True))]
    assert got == pytest.approx([(0.5 * 1 + 0 + 0.5) / 2.5, 0.5 / 1.5, (0.25 + 1) / 2])
    pd.testing.assert_frame_equal(
        rn.weighted_means(frame, rescale=True), rn.weighted_means(pandas, rescale=True)
    )
    for call in (rn.weigh, rn.weighted_score, rn.weighted_means):
        with pytest.raises(RagnbError, match="different ranges"):
            call(frame)


HEAVY = {"doc_weights": {"甲.pdf": 4, "b": 0}, "metric_weights": {"faithfulness": 3}}


@pytest.mark.parametrize("options", [{}, HEAVY, {"cluster": "talk", "orient": False, "top": 7}])
def test_diagnoses_are_those_of_pandas(native, options):
    columns = many() | {"question": [f"问题 {i}" for i in range(3000)]}
    columns["context_recall"] = [0.0 if i % 3 else 1.0 for i in range(3000)]
    got, want = (rn.diagnose(on(name, columns), **options) for name in (native, "pandas"))
    assert len(want) == 4
    pd.testing.assert_frame_equal(got, want, rtol=1e-12, atol=1e-12)
    assert got.attrs == want.attrs


def test_cost_is_the_rise_of_the_total_of_lifted_rows(engine):
    columns = many()
    options = {"metric_weights": {"faithfulness": 3.0}, "doc_weights": {"甲.pdf": 4.0}}
    found = rn.diagnose(on(engine, columns), **options).set_index("metric")
    before = rn.weighted_means(on("pandas", columns), **options)["value"].iloc[-1]
    lifted = [x if x is None or x != x else max(x, 0.7) for x in columns["faithfulness"]]
    after = rn.weighted_means(on("pandas", columns | {"faithfulness": lifted}), **options)[
        "value"
    ].iloc[-1]
    assert found.loc["faithfulness", "cost"] == pytest.approx(after - before, abs=1e-9)


def test_worst_rows_without_names_are_their_labels_where_rows_have_an_order(engine):
    found = rn.diagnose(on(engine, {"faithfulness": [0.9, 0.1, None, 0.1, 0.0]}), top=3)
    worst = found["worst"].iloc[0]
    assert [row["score"] for row in worst] == [0.0, 0.1, 0.1]
    assert [row["sample_id"] for row in worst] == ([None] * 3 if engine == "duckdb" else [4, 1, 3])


def test_samples_that_are_right_are_never_the_worst_of_a_yes_or_no(engine):
    columns = {
        "sample_id": list("abcd"),
        "under_refusal": [0.0, 1.0, None, 0.0],
        "citation_hit_rate": [1, 0, 1, 0],
    }
    found = rn.diagnose(on(engine, columns), top=3).set_index("rule")
    worst = {rule: [row["sample_id"] for row in rows] for rule, rows in found["worst"].items()}
    assert worst == {"under_refusal": ["b"], "citation_hit_rate": ["b", "d"]}


def test_no_rule_fires_on_an_empty_frame(engine):
    assert rn.diagnose(on(engine, empty())).empty


@pytest.mark.parametrize(
    "options", [{}, {"by": "talk"}, {"doc_weights": {"b": 5}, "cluster": "talk"}]
)
def test_refusal_rates_are_those_of_pandas(engine, options):
    columns = {name: column for name, column in many().items() if name != "faithfulness"}
    got = rn.refusal_metrics(on(engine, columns), **options)
    want = rn.refusal_metrics(on("pandas", columns), **options)
    pd.testing.assert_frame_equal(got, want, rtol=1e-12)
    flags = [x for x in columns["over_refusal"].to_pylist() if x is not None]
    assert got["numerator"].sum() == sum(flags)
    assert got["n"].sum() == len(flags)


def test_a_frame_without_rates_is_refused_in_words(engine):
    with pytest.raises(RagnbError, match="contains no rate"):
        rn.refusal_metrics(on(engine, {"faithfulness": [1.0]}))


def test_more_metrics_than_one_whole_number_has_bits(engine):
    rng = np.random.default_rng(3)
    names = [f"m{k}" for k in range(34)]
    columns = {name: [None if x < 0.2 else float(x) for x in rng.random(60)] for name in names}
    metrics = [rn.Metric(name) for name in names]
    got = rn.weighted_means(on(engine, columns), metrics=metrics)
    want = [row["value"] for row in loop_means(plain_rows(columns), metrics)]
    np.testing.assert_allclose(got["value"], want, rtol=1e-12)


def test_only_cells_leave_the_engine(native):
    columns = {"faithfulness": [0.5, None] * 500, "doc_name": ["a", "a", "b", None] * 250}
    assert rn.moments(on(native, columns)).cells.size == 4
    assert rn.moments(on(native, columns)).cells.n.tolist() == [250.0, 250.0, 250.0, 250.0]


def test_moments_of_two_engines_add_up_to_those_of_all_rows():
    table = pa.table(many())
    for options in ({}, {"by": "team", "cluster": "talk"}):
        parts = [
            rn.moments(on(e, table.slice(i * 1000, 1000)), **options)
            for i, e in enumerate([*NATIVE][:3])
        ]
        got = parts[0].merge(parts[1]).merge(parts[2]).means()
        want = rn.moments(on("pandas", table), **options).means()
        pd.testing.assert_frame_equal(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("options", [{}, HEAVY, {"cluster": "talk"}])
def test_failure_modes_are_those_of_pandas(native, options):
    columns = many() | {
        "answer_relevancy": [None if i % 7 == 0 else i % 10 / 10 for i in range(3000)]
    }
    frame, pandas = on(native, columns), on("pandas", columns)
    got = rn.failure_modes(frame)
    assert type(got) is type(frame)
    want = rn.failure_modes(pandas)["failure_mode"].tolist()
    assert [row["failure_mode"] for row in rows_of(got)] == want
    assert len(set(want)) > 3
    got, want = (failure_summary(f, **options) for f in (frame, pandas))
    pd.testing.assert_frame_equal(got, want, rtol=1e-12, atol=1e-12)
    assert got.attrs == want.attrs


def test_modes_without_a_needed_metric_and_without_rows(engine):
    few = on(engine, {"faithfulness": [0.1, None], "doc_name": ["a", "b"]})
    assert [row["failure_mode"] for row in rows_of(rn.failure_modes(few))] == [
        "not_enough_scores"
    ] * 2
    assert failure_summary(few)["n"].tolist() == [2, 0, 0, 0, 0, 0, 0]
    assert failure_summary(on(engine, empty()))["n"].sum() == 0


def test_histograms_are_counted_as_a_loop_counts_them(engine):
    columns = many() | {"faithfulness": [None if i % 9 == 0 else i % 11 / 10 for i in range(3000)]}
    columns["faithfulness__status"] = pa.nulls(3000)
    got = histogram(on(engine, columns), bins=7)
    rows = plain_rows(columns)
    for metric, part in got.groupby("metric"):
        values = [
            float(r[metric]) for r in rows if r[metric] is not None and r[metric] == r[metric]
        ]
        ends = part["bin_low"].tolist()
        want = [0] * 7
        for x in values:
            want[max(k for k in range(7) if x >= ends[k] - 1e-10)] += 1
        assert part["n"].tolist() == want


def test_outcomes_are_counted_where_the_rows_are(engine):
    labels = ["OK", "OK", None, "HALLUCINATION", "ANS_NO_HIT", "OK"]
    found = outcome_counts(on(engine, {"label": labels})).set_index("label")
    counts = {"OK": 3, "REFUSAL_OK": 0, "OVER_REFUSAL": 0, "HALLUCINATION": 1, "ANS_NO_HIT": 1}
    assert found["n"].to_dict() == counts
    assert found.loc["OK", "share"] == 0.6
    with pytest.raises(RagnbError, match="no column 'label'"):
        outcome_counts(on(engine, {"labels": labels}))


def test_labelled_traces_are_of_the_callers_kind(engine):
    columns = {
        "question": ["问", "y", "z"],
        "answer": ["Yes. citations: [a]", None, "not in context"],
    }
    gold = pd.DataFrame(
        {"question": ["问", "y"], "answerable": [True, False], "gold_ids": [["a"], []]}
    )
    frame = on(engine, columns)
    got = rn.label_traces(frame, gold=gold)
    assert type(got) is type(frame)
    rows = rows_of(got)
    assert sorted((row["question"], row["label"]) for row in rows) == [
        ("y", None),
        ("z", None),
        ("问", "OK"),
    ]
    assert outcome_counts(got)["n"].sum() == 1


WRONG = {
    "out of range": ({"faithfulness": [0.5, 1.5]}, r"1\.5 lies outside 0\.\.1; declare its scale"),
    "infinite": ({"faithfulness": [0.5, math.inf]}, "inf lies outside"),
    "text": ({"faithfulness": ["0.5", None]}, "'0.5' is text"),
    "not a status": (
        {"faithfulness": [0.5], "faithfulness__status": ["error"]},
        "'error' is not a status",
    ),
    "failed number": (
        {"faithfulness": [None, 0.5], "faithfulness__status": ["failed", "failed"]},
        "0.5 has status 'failed'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_refused_in_the_same_words(engine, case):
    columns, words = WRONG[case]
    columns = columns | {"sample_id": [f"q{i}" for i in range(len(columns["faithfulness"]))]}
    for call in (rn.moments, rn.weighted_means, rn.diagnose):
        with pytest.raises(RagnbError, match=words) as refused:
            call(on(engine, columns))
        assert ("row 'q" in str(refused.value)) == (engine in LAZY)
    for call in (rn.weigh, rn.weighted_score):
        with pytest.raises(Exception, match="faithfulness") as failed:
            rows_of(call(on(engine, columns)))
        if engine not in LAZY:
            assert isinstance(failed.value, RagnbError)
            failed.match(words)


def test_unknown_columns_dates_and_what_is_no_frame_are_refused(native):
    frame = on(native, {"faithfulness": [0.5], "doc_name": ["a"]})
    for call in (rn.weighted_means, rn.weigh, rn.diagnose):
        with pytest.raises(
            RagnbError, match=r"column='doc_nam' is not known; did you mean 'doc_name'"
        ):
            call(frame, doc="doc_nam")
        with pytest.raises(RagnbError, match="cannot read a list; expected a path, a frame"):
            call([1.0])
    with pytest.raises(RagnbError, match="column='team' is not known"):
        rn.weighted_means(frame, by="team")
    dates = on(native, {"faithfulness": pa.array([0], pa.date32())})
    with pytest.raises(RagnbError, match="of type date, not a score"):
        rn.weighted_means(dates)


def test_groups_that_are_no_labels_or_would_hide_a_column_are_refused(native):
    frame = on(native, {"faithfulness": [0.5, 0.6], "tags": [["a"], ["b", "c"]], "n": ["x", "y"]})
    for place in ({"by": "tags"}, {"cluster": "tags"}, {"doc": "tags"}):
        with pytest.raises(RagnbError, match="lists and mappings cannot name a group"):
            rn.weighted_means(frame, **place)
    with pytest.raises(RagnbError, match="by='n' is also a column of the result"):
        rn.weighted_means(frame, by="n")
    assert rn.weighted_means(frame, cluster="n")["n_clusters"].tolist() == [2, 2]


def test_a_weight_for_nothing_warns_where_the_documents_are_at_hand(native):
    frame = on(native, {"faithfulness": [0.5], "doc_name": ["甲.pdf"]})
    with pytest.warns(RagnbWarning, match="did you mean '甲.pdf'") as caught:
        rn.weighted_means(frame, doc_weights={"甲,pdf": 2.0})
    assert caught[0].filename == __file__
    if native in LAZY:
        assert rows_of(rn.weigh(frame, doc_weights={"甲,pdf": 2.0}))[0]["sample_weight"] == 1.0
        return
    with pytest.warns(RagnbWarning, match="did you mean '甲.pdf'"):
        rn.weigh(frame, doc_weights={"甲,pdf": 2.0})
    with pytest.warns(RagnbWarning, match="does not occur"):
        rn.weigh(on(native, {"faithfulness": [0.5]}), doc_weights={"甲.pdf": 2.0})
    with pytest.raises(RagnbError, match="did you mean 'faithfulness'"):
        rn.weigh(frame, metric_weights={"faithfullness": 2.0})


def test_weighing_a_lazy_frame_runs_nothing():
    def run(frame):
        raise AssertionError("the query ran")

    frame = pl.LazyFrame({"faithfulness": [0.5], "doc_name": ["a"]})
    query = frame.map_batches(run, schema=frame.collect_schema())
    for call in (rn.weigh, rn.weighted_score):
        assert isinstance(call(query), pl.LazyFrame)
    rn.weigh(query, doc_weights={"a": 2.0})
    with pytest.raises(AssertionError, match="the query ran"):
        rn.weigh(query).collect()


def test_rows_are_read_once_so_a_stream_that_can_be_read_once_is_enough():
    table = pl.DataFrame({"faithfulness": [0.5, 1.0, 0.0], "doc_name": ["a", None, None]})
    reads = []
    query = table.lazy().map_batches(lambda rows: reads.append(1) or rows, schema=table.schema)
    want = rn.weighted_means(table)
    pd.testing.assert_frame_equal(rn.weighted_means(query), want)
    assert len(reads) == 1
    once = duckdb.from_arrow(table.to_arrow().to_reader())
    pd.testing.assert_frame_equal(rn.weighted_means(once), want)


@pytest.mark.parametrize("rows", [1, 7, 64])
def test_a_query_of_many_batches_gives_the_numbers_of_one(monkeypatch, native, rows):
    n = 70 if rows == 1 else 200
    columns = many(n) | {"question": [f"q{i % 60}" for i in range(n)], "latency": list(range(n))}
    own = [*rn.METRICS, rn.Metric("latency", 0, math.inf, role="rate")]
    options = {"metrics": [m for m in own if not isinstance(m, str) or m in columns]}
    want = {call: call(on("pandas", columns), **options) for call in (rn.diagnose, failure_summary)}
    means = {
        by: rn.weighted_means(on("pandas", columns), by=by, **options)
        for by in (None, "team", "doc_name")
    }
    bins = histogram(on("pandas", columns))
    monkeypatch.setattr("ragnb.weights.batches.ROWS", rows)
    frame = on(native, columns)
    for by, table in means.items():
        pd.testing.assert_frame_equal(
            rn.weighted_means(frame, by=by, **options), table, rtol=1e-10, atol=1e-10
        )
    for call, table in want.items():
        pd.testing.assert_frame_equal(call(frame, **options), table, rtol=1e-10, atol=1e-10)
    pd.testing.assert_frame_equal(histogram(frame), bins)


TOOLS = {
    "user_input": ["q1", "q2", "q3", "q4"],
    "response": ["a1", "a2", "a3", "a4"],
    "reference": ["r1", "r2", "r3", "r4"],
    "Faithfulness": [0.1, 0.9, 0.3, None],
    "Faithfulness__status": ["ok", "ok", "ok", "failed"],
    "上下文召回率": [0.4, 0.2, 0.6, 0.8],
    "llm_context_precision_with_reference": [0.5, 0.5, 0.25, 0.5],
    "文档": ["甲.pdf", "甲.pdf", "乙.pdf", "乙.pdf"],
}
COLUMNS = [
    "question",
    "answer",
    "ground_truth_answer",
    "faithfulness",
    "faithfulness__status",
    "context_recall",
    "context_precision",
    "doc_name",
]
OURS = dict(zip(COLUMNS, TOOLS.values(), strict=True))


def test_a_frame_with_tools_names_gives_what_the_same_frame_gives_under_ours(engine):
    theirs, ours = on(engine, TOOLS), on("pandas", OURS)
    named = [
        (None, None),
        (["Faithfulness", "context_recall"], ["faithfulness", "context_recall"]),
        ("上下文召回率", ["context_recall"]),
    ]
    for average in (
        rn.weighted_means,
        lambda frame, **how: rn.moments(frame, **how).means(),
        histogram,
    ):
        for theirs_, ours_ in named:
            got, want = average(theirs, metrics=theirs_), average(ours, metrics=ours_)
            pd.testing.assert_frame_equal(got, want, rtol=1e-12, atol=1e-12)
    assert rn.weighted_means(theirs)["n_clusters"].tolist() == [2] * 4
    found, want = (rn.diagnose(frame) for frame in (theirs, ours))
    for both in zip(want["worst"], found["worst"], strict=True):
        first, second = (
            {(r["question"], r["answer"], r["ground_truth_answer"]) for r in rows} for rows in both
        )
        assert first == second
    assert failure_summary(theirs)["n"].tolist() == failure_summary(ours)["n"].tolist()


def test_rows_come_back_under_the_names_and_on_the_index_that_the_caller_gave(engine):
    theirs = on(engine, TOOLS)
    weights = {"metric_weights": {"faithfulness": 3.0}, "doc_weights": {"甲.pdf": 2.0}}
    want = rn.weigh(on("pandas", OURS), **weights)
    for made, new in (
        (rn.weigh(theirs, **weights), ["weighted_score", "sample_weight"]),
        (rn.failure_modes(theirs), ["failure_mode"]),
    ):
        assert type(made) is type(theirs)
        rows = rows_of(made)
        assert list(rows[0]) == [*TOOLS, *new]
        if "weighted_score" in new:
            for name in new:
                key = {row["user_input"]: row[name] for row in rows}
                np.testing.assert_allclose(
                    [key[q] for q in TOOLS["user_input"]], want[name], rtol=1e-12
                )
    labelled = rn.label_traces(
        theirs, gold=on(engine, {"问题": ["q1"], "可回答": [True], "gold_ids": [["x"]]})
    )
    assert list(rows_of(labelled)[0])[: len(TOOLS)] == list(TOOLS)
    assert {row["user_input"]: row["label"] for row in rows_of(labelled)}["q1"] == "ANS_NO_HIT"
    assert rn.refusal_metrics(labelled, metrics="citation_hit_rate", doc="文档")["n"].tolist() == [
        1
    ]


def test_a_column_that_the_caller_names_and_one_under_our_name_stay_what_they_are(engine):
    columns = {name: cells for name, cells in TOOLS.items() if not name.startswith("Faithfulness")}
    columns |= {
        "source": ["x", "y", "z", "w"],
        "groundedness": [0.1] * 4,
        "faithfulness": [0.5] * 4,
    }
    frame = on(engine, columns)
    found = rn.weighted_means(frame, doc="source", by="文档", metrics="faithfulness")
    assert found.columns[0] == "文档"
    assert found["value"].tolist() == [0.5] * 4
    assert found["n_clusters"].tolist() == [2] * 4
    with pytest.raises(
        RagnbError, match="'文档' and 'source' both mean 'doc_name'; rename the intended"
    ):
        rn.weighted_means(frame)


@pytest.mark.parametrize("name", ["model", "run", "app_name", "configuration", "store", "模型"])
def test_the_one_column_that_tells_systems_apart_is_the_system_where_the_caller_asks_for_it(
    engine, name
):
    cells = {"faithfulness": [0.1, 0.2, 0.3, 0.4], "doc_name": list("aabb")}
    want = rn.weighted_means(on(engine, {**cells, "system": list("xyxy")}), by="system")
    pd.testing.assert_frame_equal(
        rn.weighted_means(on(engine, {**cells, name: list("xyxy")}), by="system"), want
    )
    twice = on(
        engine, {**cells, name: list("xyxy"), "store" if name == "model" else "model": list("xyxy")}
    )
    for frame in (
        twice,
        on(engine, {**cells, "run": [1, 2, 1, 2]}),
    ):  # which of two, and a count of runs
        with pytest.raises(RagnbError, match="'system'"):
            rn.weighted_means(frame, by="system")


def test_document_weights_that_leave_nothing_are_refused_in_every_eager_engine(engine):
    frame = on(engine, {"faithfulness": [0.5, 0.25], "doc_name": ["a", "a"]})
    if engine in LAZY:
        return
    with pytest.raises(RagnbError, match="doc_weights: all weights are 0"):
        rn.weigh(frame, doc_weights={"a": 0})
    left = on(engine, {"faithfulness": [0.5, 0.25], "doc_name": ["a", None]})
    assert sorted(
        row["sample_weight"] for row in rows_of(rn.weigh(left, doc_weights={"a": 0}))
    ) == [0, 1]


def test_metric_weights_take_the_header_of_the_frame(engine):
    cells = {"context_recall": [0.5, 0.4, 0.3], "doc_name": list("abb")}
    theirs, ours = ({**cells, name: [0.1, 0.2, 0.9]} for name in ("Groundedness", "faithfulness"))
    for call in (
        rn.weighted_means,
        rn.diagnose,
        lambda frame, **how: rn.moments(frame).bootstrap(**how),
    ):
        found = call(on(engine, theirs), metric_weights={"Groundedness": 3})
        want = call(on(engine, ours), metric_weights={"faithfulness": 3})
        key = found.columns[0]
        pd.testing.assert_frame_equal(
            found.sort_values(key, ignore_index=True),
            want.sort_values(key, ignore_index=True),
            check_dtype=False,
        )
    with pytest.raises(RagnbError, match="the name appears twice"):
        rn.weighted_means(on(engine, theirs), metric_weights={"Groundedness": 3, "faithfulness": 3})
    own = [rn.Metric("Groundedness", 0, 10)]
    mine = rn.weighted_means(
        on(engine, theirs), metrics=own, metric_weights={"Groundedness": 3}, rescale=True
    )
    assert mine["metric"].tolist()[-2:] == ["Groundedness", "weighted_score"]


def test_a_frame_without_a_known_metric_is_refused_with_a_line_that_works(engine):
    columns = {"user_input": ["a", "b"], "latency": [0.2, 0.3], "gpt_groundedness": [2.0, 5.0]}
    frame = on(engine, columns)
    calls = [
        rn.weighted_means,
        rn.moments,
        rn.weigh,
        rn.weighted_score,
        rn.diagnose,
        rn.failure_modes,
        failure_summary,
        histogram,
    ]
    for call in calls:
        with pytest.raises(
            RagnbError,
            match=r"numeric: gpt_groundedness, latency\).*rn\.Metric\('gpt_groundedness', ",
        ):
            call(frame)
    if engine in LAZY:
        return
    with pytest.raises(RagnbError) as told:
        rn.weighted_means(frame)
    line = str(told.value).partition("metrics=")[2].partition(" if")[0]
    assert rn.weighted_means(frame, metrics=eval(line, {"rn": rn}))["value"].tolist() == [3.5, 3.5]
    with pytest.raises(RagnbError, match=r"numeric: none\); score the answers first"):
        rn.weighted_means(on(engine, {"user_input": ["a"]}))


def test_named_levels_of_an_index_are_columns_and_stay_an_index():
    plain = pd.DataFrame(
        {"Faithfulness": [0.1, 0.9, 0.3, 0.5], "document": list("aabb"), "id": list("wxyz")}
    )
    for levels in (["document"], ["document", "id"]):
        frame = plain.set_index(levels)
        for call in (
            rn.weighted_means,
            lambda frame: rn.read_scores(frame)[["faithfulness", "doc_name"]],
        ):
            pd.testing.assert_frame_equal(call(frame), call(plain))
        weighed = rn.weigh(frame, doc_weights={"a": 3.0})
        assert weighed.index.equals(frame.index)
        assert weighed.columns.tolist() == [*frame.columns, "weighted_score", "sample_weight"]
        assert weighed["sample_weight"].tolist() == [3, 3, 1, 1]
    assert [row["sample_id"] for row in rn.diagnose(frame)["worst"][0]] == ["w", "y", "z"]
    kept = plain.rename(columns={"document": "doc_name"}).set_index("doc_name", drop=False)
    assert rn.weighted_means(kept)["n_clusters"].tolist() == [2, 2]
    assert rn.read_scores(kept)["doc_name"].tolist() == list("aabb")
    traces = pd.DataFrame({"answer": ["x"]}, index=pd.Index(["q"], name="question"))
    assert rn.label_traces(traces).columns[0] == "answer"
    assert rn.label_traces(traces).index.equals(traces.index)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (
            pd.DataFrame([[0.5]], columns=pd.MultiIndex.from_tuples([("m", "recall")])),
            "2 levels.*get_level_values",
        ),
        (pd.DataFrame([[0.5, 1]], columns=["faithfulness"] * 2), "'faithfulness' appears twice"),
        (
            pa.table([pa.array([0.5])] * 2, names=["faithfulness"] * 2),
            "'faithfulness' appears twice",
        ),
        (
            pd.DataFrame({"faithfulness": pd.to_timedelta([0], unit="s")}),
            "timedelta64.* not a score",
        ),
        (
            pd.DataFrame({"faithfulness": [pd.Timedelta(0), None]}, dtype=object),
            "Timedelta.* not a score",
        ),
        (
            pd.DataFrame({"faithfulness": pd.to_datetime(["2026-01-01"])}),
            "datetime64.* not a score",
        ),
        (pd.DataFrame({"faithfulness": [0.5 + 0j]}), "complex128.* not a score"),
        (
            pd.DataFrame({"faithfulness": [None, 0.5j]}, dtype=object),
            "row 1: 0.5j is of type complex",
        ),
        (
            pd.DataFrame({"faithfulness": [0.5, [0.5]]}, index=["a", "b"]),
            r"row 'b': \[0.5\] is of type list",
        ),
        (pd.DataFrame({"faithfulness": [{"score": 0.5}]}), "of type dict"),
        (pl.DataFrame({"faithfulness": [[0.5]]}), r"\[0.5\] is of type list"),
        (pl.LazyFrame({"faithfulness": [[0.5]]}), "of type list|holds what is no score"),
        (pl.DataFrame({"faithfulness": [dt.timedelta(0)]}), "of type timedelta"),
        (
            pd.DataFrame({"Faithfulness": [0.5], "groundedness": [0.5]}),
            "'Faithfulness' and 'groundedness' both",
        ),
    ],
)
def test_what_is_no_column_of_scores_is_refused_in_words(frame, words):
    for call in (
        rn.weighted_means,
        rn.moments,
        rn.weighted_score,
        rn.weigh,
        rn.diagnose,
        rn.failure_modes,
    ):
        with pytest.raises((RagnbError, nw.exceptions.NarwhalsError), match=words):
            nw.from_native(call(frame)).collect()  # a query is refused when it runs


AVERAGING = (
    rn.weighted_means,
    rn.moments,
    rn.weighted_score,
    rn.weigh,
    rn.diagnose,
    rn.failure_modes,
)


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        ("scores.csv", r"scores\.csv: there is no such file"),
        (Path("s.csv"), r"s\.csv: there is no such file"),
        (None, "cannot read a NoneType; expected a path, a frame"),
        (5, "cannot read a int; expected a path, a frame"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_can(thing, words):
    for call in (*AVERAGING, rn.label_traces):
        with pytest.raises(RagnbError, match=words):
            call(thing)


@pytest.mark.parametrize("thing", ["s.csv", None, [{"faithfulness": 1}], {"faithfulness": [1]}, 5])
def test_what_is_no_frame_is_refused_by_what_takes_only_frames(thing):
    with pytest.raises(
        RagnbError, match=r"gates compare means, not scores.*rn\.weighted_means\(scores\)"
    ):
        rn.check_gates(thing)
    with pytest.raises(
        RagnbError, match=r"neither a frame of cases nor a list of EvalCase; rn\.read_cases\("
    ):
        rn.applicable_metrics(thing)


@pytest.mark.parametrize("call", [rn.weighted_means, rn.weighted_score])
def test_records_and_columns_in_memory_count_as_a_frame_does(call):
    rows = [{"question": "Who?", "faithfulness": 1.0}, {"question": "When?", "faithfulness": 0.5}]
    wanted = call(pd.DataFrame(rows))
    for thing in (rows, {name: [row[name] for row in rows] for name in rows[0]}):
        found = call(thing)
        if isinstance(wanted, pd.DataFrame):
            pd.testing.assert_frame_equal(found, wanted)
        else:
            assert found.tolist() == wanted.tolist()


def test_scores_in_the_place_of_means_are_refused_with_the_call_that_averages_them():
    scores = pd.DataFrame({"compliance": [1.0] * 200, "value": 1.0})
    with pytest.raises(
        RagnbError, match=r"gates compare means, not scores.*rn\.weighted_means\(scores\)"
    ):
        rn.check_gates(scores)
    assert rn.check_gates(rn.weighted_means(scores))["outcome"].tolist()[-1] == "pass"


def test_cases_of_any_engine_say_which_metrics_apply(engine):
    cases = on(engine, {"question": ["q"], "answer": ["a"]})
    table = rn.applicable_metrics(cases)
    assert table.loc[table["applies"], "metric"].tolist() == ["answer_relevancy"]


def test_a_score_a_hair_beyond_an_end_is_that_end_on_every_engine_and_said_so(engine):
    columns = {
        "faithfulness": [0.5, 1 + 9e-7, -9e-7, None],
        "semantic_similarity": [1.00000011921, -0.25, -1.0000005, 0.5],
        "doc_name": ["a", "a", "b", "b"],
    }
    frame = on(engine, columns)
    with pytest.warns(RagnbWarning, match="within 1e-06 of an end") as told:
        means = rn.weighted_means(frame).set_index("metric")["value"]
    assert {str(warning.message).split("'")[1] for warning in told} == {
        "faithfulness",
        "semantic_similarity",
    }
    assert means["faithfulness"] == pytest.approx(0.5, abs=1e-12)
    assert means["semantic_similarity"] == pytest.approx(0.0625, abs=1e-12)
    assert means["weighted_score"] == pytest.approx((0.75 + 0.375 - 0.5 + 0.5) / 4, abs=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RagnbWarning)
        weighted = [row["weighted_score"] for row in rows_of(rn.weigh(frame))]
        counts = histogram(frame, bins=10)
        summary = failure_summary(frame)
    assert sorted(weighted) == pytest.approx([-0.5, 0.375, 0.5, 0.75], abs=1e-12)
    assert counts["n"].sum() == 7
    assert summary["n"].sum() == 4


@pytest.mark.parametrize("value", [1 + 2e-6, -2e-6])
def test_a_score_further_out_is_refused_on_every_engine(engine, value):
    frame = on(engine, {"faithfulness": [0.5, value, 1 + 9e-7], "doc_name": ["a", "b", "c"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RagnbWarning)
        with pytest.raises(RagnbError, match=r"lies outside 0\.\.1"):
            rn.weighted_means(frame)


@pytest.mark.parametrize("kind", ["date", "category"])
def test_documents_that_are_dates_or_categories_weigh_by_what_they_are_written_as(engine, kind):
    days = [dt.date(2026, 1, 1 + i % 3) for i in range(30)]
    names = [str(day) for day in days]
    scores = [(i % 7) / 7 for i in range(30)]
    weights = {"2026-01-01": 3.0, "2026-01-02": 1.0, "2026-01-03": 1.0}
    column = pa.array(days) if kind == "date" else pa.array(names).dictionary_encode()
    table = pa.table({"doc_name": column, "faithfulness": scores})
    found = rn.weighted_means(on(engine, table), doc_weights=weights).set_index("metric")
    by_hand = np.average(scores, weights=[weights[name] for name in names])
    assert found.loc["faithfulness", "value"] == pytest.approx(by_hand)
    assert found.loc["faithfulness", "n_clusters"] == 3
    with pytest.warns(RagnbWarning, match="did you mean '2026-01-01'"):
        rn.weighted_means(on(engine, table), doc_weights={"2026-01-04": 1.0})
