"""Moments: merged, stored and resampled, against the rows they came from; histograms of rows."""

import dataclasses
import hashlib
import itertools
import json
import math
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from histograms import histogram
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

import ragnb as rn
from ragnb import stats
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.weights import Moments, moments

NAMES = ["faithfulness", "answer_relevancy", "noise_sensitivity"]
NUMBERS = ["value", "low", "high", "se", "n_eff"]

cell = st.one_of(st.just(math.nan), st.floats(0, 1).map(lambda x: round(x, 3)))
row = st.tuples(
    *[cell] * 3,
    st.sampled_from(["甲.pdf", "b.pdf", "re\u0301.pdf", "r\u00e9.pdf", None]),
    st.sampled_from(["u", "v", "w", None]),
    st.sampled_from(["甲系统", "B", None]),
)
tables = st.lists(row, max_size=25).flatmap(
    lambda rows: st.integers(1, 4).map(lambda k: rows * k)  # repeats make real cells, not one a row
)
weight = st.sampled_from([0.0, 0.25, 1.0, 3.0])
made = st.fixed_dictionaries(
    {"by": st.sampled_from([None, "system"]), "cluster": st.sampled_from([None, "talk"])}
)


def frame_of(rows):
    frame = pd.DataFrame(rows, columns=[*NAMES, "doc_name", "talk", "system"]).astype(
        dict.fromkeys(NAMES, float)
    )
    states = ["ok", "failed", "not_applicable", None]
    told = [
        states[i % 4] if math.isnan(x) and i % 4 else None for i, x in enumerate(frame[NAMES[0]])
    ]
    return frame.assign(faithfulness__status=pd.Series(told, dtype=object))


def close(one, two, tolerance=1e-12):
    pd.testing.assert_frame_equal(one.drop(columns=NUMBERS), two.drop(columns=NUMBERS))
    np.testing.assert_allclose(
        one[NUMBERS].to_numpy(float), two[NUMBERS].to_numpy(float), atol=tolerance, rtol=0
    )


def quiet(call, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RagnbWarning)
        return call(*args, **options)


def by_rows(frame, cluster, metric_weights, doc_weights):
    """Value, se, n, clusters and Kish's n of each column, by leaving out one cluster's rows after the other."""
    composed = frame["doc_name"].map(
        lambda d: d.replace("e\u0301", "\u00e9") if isinstance(d, str) else None
    )
    names = composed if cluster is None else frame[cluster]
    own = [name if isinstance(name, str) else i for i, name in enumerate(names)]
    v = np.array(
        [doc_weights.get(d, 1.0) if isinstance(d, str) else 1.0 for d in composed], dtype=float
    )
    columns = frame[NAMES].assign(
        weighted_score=quiet(rn.weighted_score, frame, metric_weights=metric_weights)
    )
    for name, x in columns.items():
        s = x.notna().to_numpy() & (v > 0)
        scored, weights = x.to_numpy()[s], v[s]
        of = pd.Series(own, dtype=object).to_numpy()[s]
        groups = list(dict.fromkeys(of))
        out = {
            "metric": name,
            "n": int(x.notna().sum()),
            "n_clusters": len(groups),
            "value": math.nan,
        }
        out |= {"se": math.nan, "n_eff": 0.0}
        if groups:
            theta = np.average(scored, weights=weights)
            out |= {"value": theta, "n_eff": weights.sum() ** 2 / (weights**2).sum()}
        if len(groups) > 1:
            left = [np.array([g != out_of for g in of]) for out_of in groups]
            moves = [np.average(scored[keep], weights=weights[keep]) - theta for keep in left]
            out["se"] = math.sqrt((len(groups) - 1) / len(groups) * sum(m * m for m in moves))
        yield out


@settings(deadline=None)
@given(tables, made, st.tuples(weight, weight), st.tuples(weight, weight), st.integers(0, 100))
def test_merged_and_stored_parts_are_the_rows_left_out_one_by_one(
    tmp_path_factory, rows, how, w, v, cut
):
    frame, at = frame_of(rows), cut % (len(rows) + 1)
    weights = {"faithfulness": w[0], "noise_sensitivity": w[1], "answer_relevancy": 0.5}
    doc_weights = {"甲.pdf": v[0], "r\u00e9.pdf": v[1], "b.pdf": 2.0}
    merged = moments(frame[:at], **how).merge(moments(frame[at:], **how))
    path = tmp_path_factory.mktemp("stored") / "m.parquet"
    if rows and not any(
        doc_weights.get(str(d).replace("e\u0301", "\u00e9"), 1.0) for d in frame["doc_name"]
    ):
        with pytest.raises(RagnbError, match="all weights are 0"):
            quiet(merged.means, doc_weights=doc_weights)
        return
    stored = Moments.from_parquet(merged.to_parquet(path))
    table = quiet(stored.means, metric_weights=weights, doc_weights=doc_weights)
    groups = frame["system"].fillna("") if how["by"] else pd.Series("", index=frame.index)
    keys = [key for key in ("B", "甲系统", "") if (groups == key).any()] if how["by"] else [""]
    want = [
        found | ({"system": key} if how["by"] else {})
        for key in keys
        for found in by_rows(frame[groups == key], how["cluster"], weights, doc_weights)
    ]
    assert len(table) == len(want)
    for (_, got), loop in zip(table.iterrows(), want, strict=True):
        for key, value in loop.items():
            same = (
                pd.isna(got[key])
                if value == ""
                else got[key] == pytest.approx(value, abs=1e-12, nan_ok=True)
            )
            assert same, (key, got, loop)


@settings(deadline=None, max_examples=60)
@given(tables, made, st.integers(0, 100), st.integers(0, 100))
def test_merging_is_reducing_at_once_in_any_order(rows, how, one, two):
    frame = frame_of(rows)
    first, last = sorted((one % (len(rows) + 1), two % (len(rows) + 1)))
    a, b, c = (moments(part, **how) for part in (frame[:first], frame[first:last], frame[last:]))
    whole = moments(frame, **how)
    for merged in (a.merge(b).merge(c), a.merge(b.merge(c)), c.merge(a).merge(b)):
        close(merged.means(), whole.means())
        assert (merged.docs, merged.clusters, merged.groups) == (
            whole.docs,
            whole.clusters,
            whole.groups,
        )
        assert merged.cells.n.sum() == len(frame)
        if how["by"]:
            close(merged.pooled().means(), moments(frame, cluster=how["cluster"]).means())


def test_rows_that_are_their_own_clusters_stay_so_when_parts_are_merged():
    frame = pd.DataFrame({"faithfulness": [0.1, 0.9], "answer_relevancy": [0.5, None]})
    part = moments(frame)
    assert part.cells.size == 2  # a cell a row, as their gaps differ
    merged = part.merge(part)
    assert merged.means()["n_clusters"].tolist() == [4, 2, 4]
    assert merged.cells.size == 2
    close(merged.means(), moments(pd.concat([frame, frame])).means())


@given(tables, st.sampled_from(["doc_name", "system"]), st.tuples(weight, weight))
def test_values_alone_and_those_of_some_groups_are_parts_of_the_whole_table(rows, by, weights):
    found = moments(frame_of(rows), by=by)
    metric_weights = dict(zip(NAMES, weights, strict=False))
    how = {"metric_weights": metric_weights, "strict": False}
    whole = quiet(found.means, **how)
    values = quiet(found.values, metric_weights=metric_weights)
    for name in [*NAMES, "weighted_score"]:
        expected = whole.loc[whole["metric"] == name]
        assert expected[by].fillna("").tolist() == values.index.fillna("").tolist()
        np.testing.assert_allclose(
            values[name].to_numpy(), expected["value"].to_numpy(), atol=1e-12, rtol=0
        )
    totals = whole.loc[whole["metric"] == "weighted_score", "n"]
    assert values["weighted_score__n"].tolist() == totals.tolist()
    some = found.groups[::2]
    part = quiet(found.of_groups(some).means, **how)
    of_some = whole[by].astype(object).where(whole[by].notna(), None).isin(some)
    close(part, whole[of_some].reset_index(drop=True))


def test_many_blocks_merge_into_the_moments_of_all_rows():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.beta(2, 1, (4000, 12)), columns=[f"m{k}" for k in range(12)])
    frame = frame.mask(rng.random(frame.shape) < 0.1).assign(
        doc_name=rng.choice([*"abcdefgh", None], 4000)
    )
    metrics = [rn.Metric(f"m{k}") for k in range(12)]
    blocks = [moments(frame[i : i + 250], metrics=metrics) for i in range(0, 4000, 250)]
    merged, whole = blocks[0], moments(frame, metrics=metrics)
    assert blocks[0].cells.size > 125  # hardly any cell adds rows up
    for block in blocks[1:]:
        merged = merged.merge(block)
    assert merged.cells.size < 0.5 * sum(block.cells.size for block in blocks)
    weights = {"metric_weights": {"m3": 2}, "doc_weights": {"a": 4, "h": 0}}
    close(merged.means(**weights), whole.means(**weights))


@pytest.mark.parametrize(
    ("what", "options"),
    [
        ("metrics", {"metrics": "faithfulness"}),
        ("metrics", {"metrics": [rn.Metric("faithfulness", 0, 2), "context_recall"]}),
        ("by", {"by": "talk"}),
        ("doc", {"doc": "talk"}),
        ("cluster", {"cluster": "talk"}),
    ],
)
def test_moments_made_in_another_way_are_not_merged(what, options):
    frame = pd.DataFrame(
        {"faithfulness": [0.5], "context_recall": [1.0], "doc_name": ["a"], "talk": ["t"]}
    )
    with pytest.raises(RagnbError, match=f"different {what} cannot be merged"):
        moments(frame).merge(moments(frame, **options))


# Parquet


def same_bits(one, two):
    for name in ("metrics", "by", "doc", "cluster", "groups", "docs", "clusters"):
        assert getattr(one, name) == getattr(two, name), name
    pairs = [
        (getattr(one.cells, f.name), getattr(two.cells, f.name))
        for f in dataclasses.fields(one.cells)
    ]
    for mine, theirs in [*pairs, (one.counts, two.counts), (one.rows, two.rows)]:
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        assert mine.tobytes() == theirs.tobytes()


@settings(deadline=None, max_examples=40)
@given(tables, made)
def test_what_is_written_is_read_with_the_same_bits(tmp_path_factory, rows, how):
    before = moments(frame_of(rows), **how)
    after = Moments.from_parquet(before.to_parquet(tmp_path_factory.mktemp("bits") / "m.parquet"))
    same_bits(before, after)
    one, two = (made.means(metric_weights={"faithfulness": 0.3}) for made in (before, after))
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    assert json.dumps(one.attrs) == json.dumps(two.attrs)


def test_endless_ranges_odd_names_and_new_folders_are_stored(tmp_path):
    names = pd.Series(["\ud800", 'a"sha256": "\x00\n'], dtype=object)
    frame = pd.DataFrame({"延迟 [s].*": [0.1, 1e300], "doc_name": names, "组": ["", "β"]})
    latency = rn.Metric("延迟 [s].*", 0, math.inf, better="lower", aliases=("lat",))
    before = moments(frame, metrics=[latency], by="组")
    path = before.to_parquet(tmp_path / "新" / "m[1]*.parquet")
    same_bits(before, Moments.from_parquet(str(path)))
    assert [p.name for p in path.parent.iterdir()] == ["m[1]*.parquet"]
    empty = moments(frame[:0], metrics=[], by="组")
    same_bits(empty, Moments.from_parquet(empty.to_parquet(path)))


def test_a_write_that_fails_leaves_nothing_behind(tmp_path):
    (tmp_path / "m.parquet").mkdir()
    with pytest.raises(OSError):
        moments(pd.DataFrame({"faithfulness": [0.5]})).to_parquet(tmp_path / "m.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["m.parquet"]


def test_foreign_files_are_refused_in_words(tmp_path):
    path = tmp_path / "m.parquet"
    for content in (
        b"",
        b"PAR1",
        b"question,score\na,1\n",
        pickle.dumps({"ragnb": "moments", "version": 1}),
    ):
        path.write_bytes(content)
        with pytest.raises(
            RagnbError, match=r"m\.parquet: the file is damaged or has no moments; write it with"
        ):
            Moments.from_parquet(path)
    for column in (
        {"about": [1.5]},
        {"about": ['{"ragnb": "moments", "version": 1}']},
        {"score": [1.0]},
    ):
        pl.DataFrame(column).write_parquet(path)
        with pytest.raises(RagnbError, match="damaged or has no moments"):
            Moments.from_parquet(path)
    with pytest.raises(RagnbError, match="No such file"):
        Moments.from_parquet(tmp_path / "other.parquet")
    with pytest.raises(RagnbError, match="write it with Moments.to_parquet"):
        Moments.from_parquet(tmp_path)


@pytest.mark.parametrize("version", [1, 2, 9])
def test_another_version_is_refused(tmp_path, version):
    path = moments(pd.DataFrame({"faithfulness": [0.5]})).to_parquet(tmp_path / "m.parquet")
    content = path.read_bytes()
    sealed = re.search(rb'"sha256": "([0-9a-f]{64})"', content)[1]
    assert sealed.decode() == hashlib.sha256(content.replace(sealed, b"")).hexdigest()
    assert content.count(b'"version": 4,') == 1
    other = content.replace(b'"version": 4,', f'"version": {version},'.encode())
    path.write_bytes(other)
    with pytest.raises(RagnbError, match="damaged"):
        Moments.from_parquet(path)
    path.write_bytes(
        other.replace(sealed, hashlib.sha256(other.replace(sealed, b"")).hexdigest().encode())
    )
    with pytest.raises(
        RagnbError, match=f"version {version}; this ragnb reads version 4; write it again"
    ):
        Moments.from_parquet(path)


def test_any_damage_is_refused(tmp_path):
    frame = pd.DataFrame({"faithfulness": np.linspace(0, 1, 40), "doc_name": list("abcdefgh") * 5})
    whole = moments(frame).to_parquet(tmp_path / "m.parquet").read_bytes()
    path = tmp_path / "damaged.parquet"
    damaged = [whole[:at] for at in range(0, len(whole), 97)]
    damaged += [
        whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :] for at in range(0, len(whole), 13)
    ]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(RagnbError, match="damaged"):
            Moments.from_parquet(path)


# Bootstrap


def clustered(seed, count=50, most=30):
    rng = np.random.default_rng(seed)
    doc = np.repeat(np.arange(count), rng.integers(5, most, count))
    effect = rng.normal(0, 0.7, count)[doc]
    data = {name: scipy_stats.norm.cdf(effect + rng.normal(0, 1, len(doc))) for name in NAMES}
    frame = pd.DataFrame(data).mask(rng.random((len(doc), 3)) < 0.1)
    return frame.assign(doc_name=[f"文档{d}" for d in doc])


OPTIONS = [
    {},
    {
        "metric_weights": {"faithfulness": 3.0},
        "doc_weights": {f"文档{d}": 0.5 + d / 25 for d in range(50)},
    },
    {"orient": False, "level": 0.8},
    {"rescale": True, "metric_weights": {"burden": 1.0}},
]


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "weights", "level", "rescale"])
def test_three_ways_to_the_same_interval(options):
    frame = clustered(1).assign(burden=lambda f: 5 - 4 * f["answer_relevancy"] ** 2)
    metrics = [*NAMES, rn.Metric("burden", 1, 5, better="lower")] if "rescale" in options else NAMES
    level = options.get("level", 0.95)
    source = moments(frame, metrics=metrics)
    wilson = source.means(**options).set_index("metric")
    cells = source.bootstrap(resamples=6000, seed=3, **options).set_index("metric")
    assert list(wilson.columns) == list(cells.columns)
    shown = {key: options[key] for key in ("orient", "rescale", "metric_weights") if key in options}
    rows = rn.weigh(frame, metrics=metrics, doc_weights=options.get("doc_weights"), **shown)
    for name in wilson.index:
        v = rows["sample_weight"].where(rows[name].notna())
        sums = pd.DataFrame({"a": v, "s": v * rows[name]}).groupby(rows["doc_name"]).sum()
        scipy = scipy_stats.bootstrap(
            (sums["s"].to_numpy(), sums["a"].to_numpy()),
            lambda s, a, axis: s.sum(axis=axis) / a.sum(axis=axis),
            paired=True,
            n_resamples=6000,
            confidence_level=level,
            method="percentile",
            random_state=7,
        )
        low, high = wilson.loc[name, ["low", "high"]]
        width = high - low
        ends = cells.loc[name, ["low", "high"]].tolist()
        assert ends == pytest.approx(list(scipy.confidence_interval), abs=0.04 * width)
        assert ends == pytest.approx([low, high], abs=0.1 * width)
        assert cells.loc[name, "se"] == pytest.approx(scipy.standard_error, rel=0.04)
        assert cells.loc[name, "value"] == wilson.loc[name, "value"]


def test_resampled_means_are_those_of_all_possible_draws():
    a, s = np.array([1.0, 2.0, 0.5, 4.0]), np.array([0.2, 1.7, 0.1, 2.0])
    draws = np.array(list(itertools.product(range(4), repeat=4)))
    exact = s[draws].sum(axis=1) / a[draws].sum(axis=1)
    one = np.ones(4, dtype=np.int64)
    got = stats.resampled_means(
        one, a[:, None], s[:, None], 0 * a[:, None], resamples=40_000, seed=1
    )[:, 0]
    assert set(np.round(got, 9)) == set(np.round(exact, 9))
    assert got.mean() == pytest.approx(exact.mean(), abs=4 * exact.std() / 200)
    assert got.std() == pytest.approx(exact.std(), rel=0.02)
    shares = [
        (np.abs(x - value) < 1e-9).mean()
        for x in (got, exact)
        for value in np.unique(np.round(exact, 12))
    ]
    assert shares[: len(shares) // 2] == pytest.approx(shares[len(shares) // 2 :], abs=0.01)


def test_a_draw_of_nothing_is_no_number():
    zero, half = np.zeros((2, 1)), np.array([[1.0], [0.0]])
    got = stats.resampled_means(np.array([1, 1]), half, half / 2, zero, resamples=200, seed=0)[:, 0]
    assert np.isnan(got).mean() == pytest.approx(0.25, abs=0.1)
    assert set(got[~np.isnan(got)]) == {0.5}
    none = stats.resampled_means(
        np.empty(0, dtype=int), zero[:0], zero[:0], zero[:0], resamples=3, seed=0
    )
    assert np.isnan(none).all()


@pytest.mark.parametrize("docs", ["none", "some"])
def test_single_rows_in_cells_have_the_interval_of_the_row_bootstrap(docs):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({name: rng.beta(4, 1, 400) for name in NAMES}).mask(
        rng.random((400, 3)) < 0.2
    )
    if docs == "some":
        frame["doc_name"] = [f"d{i // 20}" if i < 200 else None for i in range(400)]
        frame.loc[:199, NAMES] **= np.repeat(rng.uniform(0.3, 3, 10), 20)[:, None]
    source = moments(frame)
    assert len(source.cells.cross)
    got = source.bootstrap(metric_weights={"faithfulness": 2}, resamples=6000, seed=1).set_index(
        "metric"
    )
    rows = rn.weigh(frame, metric_weights={"faithfulness": 2})
    row = np.arange(400)
    own = row if docs == "none" else np.where(row < 200, row // 20, row)
    for name in got.index:
        sums = (
            pd.DataFrame({"a": rows[name].notna(), "s": rows[name]})
            .groupby(own)
            .sum()
            .to_numpy(float)
        )
        drawn = sums[rng.integers(0, len(sums), (6000, len(sums)))].sum(axis=1)
        ends = np.quantile(drawn[:, 1] / drawn[:, 0], [0.025, 0.975])
        assert got.loc[name, ["low", "high"]].tolist() == pytest.approx(
            ends, abs=0.05 * (ends[1] - ends[0])
        )


def test_the_normal_draws_of_few_single_rows_stay_in_the_range():
    got = moments(pd.DataFrame({"faithfulness": [1.0, 1.0, 1.0, 0.0, 0.0]})).bootstrap()
    assert got["low"].min() >= 0
    assert got["high"].max() <= 1


def test_the_seed_gives_the_numbers_and_groups_are_drawn_as_if_alone():
    frame = clustered(2, 12).assign(system=lambda f: np.where(np.arange(len(f)) % 3, "甲", "B"))
    grouped = moments(frame, by="system")
    one = grouped.bootstrap(seed=1)
    pd.testing.assert_frame_equal(one, grouped.bootstrap(seed=1), check_exact=True)
    assert (one["low"] != grouped.bootstrap(seed=2)["low"]).all()
    for system, part in frame.groupby("system"):
        alone = moments(part).bootstrap(seed=1)
        block = one[one["system"] == system].drop(columns="system").reset_index(drop=True)
        pd.testing.assert_frame_equal(block, alone, rtol=1e-9)


def test_more_units_than_a_block_holds_give_the_jackknifes_errors():
    frame = clustered(3, 1500, 7)
    source = moments(frame)
    got, want = source.bootstrap(resamples=3000), source.means()
    assert got["se"].tolist() == pytest.approx(want["se"].tolist(), rel=0.05)


def test_the_error_of_the_bootstrap_is_the_standard_deviation_of_its_draws():
    frame = pd.DataFrame({"faithfulness": [0.1, 0.9, 0.4, 0.6], "doc_name": list("abcd")})
    row = moments(frame).bootstrap(resamples=100, seed=3).iloc[0]
    one = np.ones(4, dtype=np.int64)
    values = frame["faithfulness"].to_numpy()[:, None]
    drawn = stats.resampled_means(
        one, np.ones((4, 1)), values, np.zeros((4, 1)), resamples=100, seed=3
    )
    assert row["se"] == pytest.approx(np.std(drawn, ddof=1), rel=1e-9)


def test_one_cluster_has_no_bootstrap_interval_and_few_resamples_are_refused():
    frame = pd.DataFrame({"faithfulness": [1.0, 0.0, None], "context_recall": [0.5, 0.5, 1.0]})
    got = moments(frame.assign(doc_name=["a", "a", "b"])).bootstrap().set_index("metric")
    assert got.loc["faithfulness", ["low", "high", "se"]].isna().all()
    assert got.loc["context_recall", ["low", "high", "se"]].notna().all()
    assert moments(frame[:0]).bootstrap()[["value", "low", "high"]].isna().all(axis=None)
    with pytest.raises(RagnbError, match="resamples=50 are too few"):
        moments(frame).bootstrap(resamples=50)


# Histograms


@given(st.lists(st.floats(0, 1), max_size=60), st.integers(1, 12))
def test_histogram_counts_are_numpys_away_from_the_edges(values, bins):
    inside = [x for x in values if abs(x * bins - round(x * bins)) > 1e-6]
    got = histogram(pd.DataFrame({"faithfulness": [*inside, 1.0, math.nan]}), bins=bins)
    counts, edges = np.histogram([*inside, 1.0], bins=bins, range=(0, 1))
    assert got["n"].tolist() == counts.tolist()
    assert np.append(got["bin_low"], got["bin_high"].iloc[-1]).tolist() == pytest.approx(edges)


def test_bins_hold_their_lower_end_and_the_last_one_both():
    tenths = pd.DataFrame({"faithfulness": np.arange(11) / 10, "burden": np.arange(11) % 5 + 1})
    metrics = ["faithfulness", rn.Metric("burden", 1, 5)]
    got = histogram(tenths, metrics=metrics)
    assert got["n"].tolist() == [1] * 9 + [2] + [3, 0, 2, 0, 0, 2, 0, 2, 0, 2]
    assert got.loc[got["metric"] == "burden", "bin_low"].tolist() == pytest.approx(
        np.arange(1, 5, 0.4).tolist()
    )


def test_histograms_that_cannot_be_are_refused():
    frame = pd.DataFrame({"faithfulness": [0.5], "latency": [3.0]})
    with pytest.raises(RagnbError, match="'latency' has no finite range"):
        histogram(frame, metrics=[rn.Metric("latency", 0, math.inf)])
    with pytest.raises(RagnbError, match="has status 'failed'"):
        histogram(frame.assign(faithfulness__status="failed"))
    assert histogram(frame[:0])["n"].tolist() == [0] * 10
    assert histogram(frame, metrics=[]).empty


def test_documents_pooled_from_their_own_means_are_the_clusters_again():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({name: rng.random(400) for name in NAMES}).mask(rng.random((400, 3)) < 0.2)
    frame["doc_name"] = rng.choice(["甲", "b", "c", None], 400)
    for part in (frame, frame[:5]):  # cells that add rows up, and cells of one row
        close(moments(part, by="doc_name").pooled().means(), moments(part).means())


@pytest.mark.parametrize(("low", "high"), [(-math.inf, math.inf), (0, math.inf)])
def test_a_bootstrap_of_scores_all_alike_without_a_range_has_no_interval(low, high):
    frame, metrics = pd.DataFrame({"g": [3.0] * 10}), [rn.Metric("g", low, high)]
    found = moments(frame, metrics=metrics).bootstrap(resamples=100)
    means = rn.weighted_means(frame, metrics=metrics)
    assert found[["low", "high"]].isna().equals(means[["low", "high"]].isna())
    assert found["low"].isna().all()
    assert (found["se"] == 0).all()
    spread = moments(frame.assign(g=range(10)), metrics=metrics).bootstrap(resamples=100)
    assert (spread["low"] < spread["high"]).all()


# Rows drawn with unequal chances


def drawn_frame():
    rng = np.random.default_rng(5)
    n = 300
    frame = pd.DataFrame(
        {
            "faithfulness": rng.random(n),
            "answer_relevancy": np.where(rng.random(n) < 0.2, np.nan, rng.random(n)),
            "doc_name": rng.choice([*"abcdefghij"], n),
            "inclusion_probability": rng.choice([0.1, 0.5, 1.0], n),
        }
    )
    frame.loc[::17, "inclusion_probability"] = np.nan
    return frame


def jackknife_by_hand(values, weights, groups):
    """Hájek's mean, and its delete-one-cluster standard error, by a plain loop."""
    kept = ~np.isnan(values) & (weights > 0)
    values, weights, groups = values[kept], weights[kept], groups[kept]
    mean = np.average(values, weights=weights)
    others = [
        np.average(values[groups != g], weights=weights[groups != g]) for g in np.unique(groups)
    ]
    return mean, np.sqrt((len(others) - 1) / len(others) * np.sum((np.array(others) - mean) ** 2))


@pytest.mark.parametrize("documents", [True, False])
@pytest.mark.parametrize(
    "engine", [lambda f: f, pl.from_pandas, lambda f: pl.from_pandas(f).lazy()]
)
def test_rows_drawn_with_unequal_chances_are_weighed_by_their_inverse(engine, documents):
    frame = drawn_frame()
    groups = frame["doc_name"].to_numpy() if documents else np.arange(len(frame))
    weights = (1 / frame["inclusion_probability"]).fillna(0).to_numpy()
    means = rn.weighted_means(
        engine(frame if documents else frame.drop(columns="doc_name"))
    ).set_index("metric")
    for name in ("faithfulness", "answer_relevancy"):
        mean, se = jackknife_by_hand(frame[name].to_numpy(), weights, groups)
        assert means.loc[name, "value"] == pytest.approx(mean, abs=1e-12)
        assert means.loc[name, "se"] == pytest.approx(se, abs=1e-12)


def test_weights_of_documents_and_of_draws_multiply():
    frame = drawn_frame()
    weights = (1 / frame["inclusion_probability"]).fillna(0) * np.where(
        frame["doc_name"] == "a", 3, 1
    )
    mean = rn.weighted_means(frame, doc_weights={"a": 3}).loc[0, "value"]
    assert mean == pytest.approx(np.average(frame["faithfulness"], weights=weights), abs=1e-12)


def test_moments_of_draws_merge_and_are_kept(tmp_path):
    frame = drawn_frame()
    whole = rn.moments(frame)
    merged = rn.moments(frame[:120]).merge(rn.moments(frame[120:]))
    pd.testing.assert_frame_equal(merged.means(), whole.means())
    kept = rn.Moments.from_parquet(whole.to_parquet(tmp_path / "m.parquet"))
    pd.testing.assert_frame_equal(kept.means(), whole.means())


def test_equal_chances_change_nothing():
    frame = drawn_frame().drop(columns="inclusion_probability")
    alike = rn.weighted_means(frame.assign(inclusion_probability=0.3))
    pd.testing.assert_frame_equal(alike, rn.weighted_means(frame))


@pytest.mark.parametrize("chance", [0.0, -0.1, 1.01])
def test_a_chance_outside_its_range_is_refused(chance):
    frame = drawn_frame()
    frame.loc[3, "inclusion_probability"] = chance
    with pytest.raises(RagnbError, match="above 0 and up to 1"):
        rn.weighted_means(frame)


def test_a_complete_corpus_does_not_take_draws():
    with pytest.raises(RagnbError, match="corpus='complete'"):
        rn.weighted_means(drawn_frame(), corpus="complete")


def test_values_of_turns_are_in_the_order_of_their_numbers():
    frame = pd.DataFrame({"faithfulness": [0.1, 0.2, 0.9, 0.5], "turn": ["10", "2", "1", None]})
    found = moments(frame, by="turn")
    assert found.values().index.tolist() == ["1", "2", "10", None]
    assert found.values()["faithfulness"].tolist() == pytest.approx([0.9, 0.2, 0.1, 0.5])
    turns = found.means()["turn"].drop_duplicates()
    assert turns.dropna().tolist() == ["1", "2", "10"]
    assert turns.isna().tolist() == [False, False, False, True]
