"""Verdicts on judges: every number computed another way, every verdict from ratings that deserve it."""

import json

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from engines import ENGINES
from hypothesis import given, settings
from hypothesis import strategies as st
from jackknifed import wide as wide_table
from reading import refused
from scipy import stats as scipy_stats

from ragnb.calibration import agreement, calibrate
from ragnb.errors import RagnbError
from ragnb.stats import holm


def made(seed=0, n=600, clusters=30, noise=0.6):
    """Synthetic ratings on 1–10: humans vary by cluster, the judge follows them, or not."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, clusters, n)
    human = np.clip(np.round(rng.normal(5.5, 2.4, n) + rng.normal(0, 0.4, clusters)[group]), 1, 10)
    judge = np.clip(np.round(human + rng.normal(0, noise, n)), 1, 10)
    frame = pd.DataFrame({"judge": judge, "human": human, "cluster": [f"doc {g}" for g in group]})
    return frame.assign(system=np.where(rng.random(n) < 0.5, "a", "b"), item_id=np.arange(n))


def card_of(frame, **how):
    return calibrate(frame, **{"scale": (1, 10), **how})


# Agreement


def test_every_share_and_bias_is_the_plain_loops():
    frame = made(noise=1.4)
    row = wide_table(agreement(frame, scale=(1, 10))).iloc[0]
    pairs = list(zip(frame["judge"], frame["human"], strict=True))
    assert row["within"] == pytest.approx(sum(abs(j - h) <= 1 for j, h in pairs) / len(pairs))
    assert row["exact"] == pytest.approx(sum(j == h for j, h in pairs) / len(pairs))
    assert row["bias"] == pytest.approx(sum(j - h for j, h in pairs) / len(pairs))
    floor = sum(abs(j - h) <= 1 for j in frame["judge"] for h in frame["human"]) / len(pairs) ** 2
    assert row["floor"] == pytest.approx(floor)
    best = max(sum(abs(c - h) <= 1 for _, h in pairs) for c in np.arange(1, 10.5, 0.5)) / len(pairs)
    assert row["constant"] == pytest.approx(best)
    assert row["over_constant"] == pytest.approx(row["within"] - best)
    assert row["kendall"] == pytest.approx(
        scipy_stats.kendalltau(frame["judge"], frame["human"])[0]
    )


def test_the_order_of_systems_is_that_of_their_means():
    frame = pd.concat(
        [made(seed, n=200).assign(system=f"s{seed}") for seed in range(5)], ignore_index=True
    )
    frame["judge"] = (frame["judge"] + frame["system"].str[1].astype(int) / 4).clip(1, 10)
    row = wide_table(agreement(frame, scale=(1, 10))).iloc[0]
    means = frame.groupby("system")[["judge", "human"]].mean()
    assert row["kendall_by_system"] == pytest.approx(
        scipy_stats.kendalltau(means["judge"], means["human"])[0]
    )
    assert row["kendall_by_system"] != pytest.approx(row["kendall"])
    nobody = made(9, n=80).assign(system=None, judge=1.0, human=10.0)
    more = wide_table(agreement(pd.concat([frame, nobody]), scale=(1, 10))).iloc[0]
    assert more["kendall_by_system"] == row["kendall_by_system"]
    assert "kendall_by_system" not in wide_table(
        agreement(made().drop(columns="system"), scale=(1, 10))
    )


def test_intervals_are_the_delete_one_cluster_jackknives():
    frame = made(noise=1.4, clusters=12)
    row = wide_table(agreement(frame, scale=(1, 10))).iloc[0]
    names = sorted(frame["cluster"].unique())
    t = scipy_stats.t.ppf(0.975, 1 / sum((frame["cluster"] == g).mean() ** 2 for g in names) - 1)
    for column, value in (("bias", lambda f: (f["judge"] - f["human"]).mean()), ("slope", slope)):
        left = np.array([value(frame[frame["cluster"] != g]) for g in names])
        g = len(names)
        se = np.sqrt((g - 1) / g * np.sum((left - value(frame)) ** 2))
        assert row[f"{column}_high"] - row[column] == pytest.approx(t * se)


def slope(frame):
    gap, mean = frame["judge"] - frame["human"], (frame["judge"] + frame["human"]) / 2
    return np.polyfit(mean, gap, 1)[0]


ROWS = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 3)), min_size=8, max_size=30
)


@pytest.mark.parametrize("clustered", [True, False])
@settings(max_examples=20, deadline=None)
@given(rows=ROWS, seed=st.integers(0, 9))
def test_neither_the_order_of_rows_nor_the_names_of_clusters_change_a_number(clustered, rows, seed):
    frame = pd.DataFrame(rows, columns=["judge", "human", "cluster"])
    if not clustered:
        frame = frame.drop(columns="cluster")
    other = frame.sample(frac=1, random_state=seed).reset_index(drop=True)
    if clustered:
        other["cluster"] = other["cluster"].map(lambda g: f"z{9 - g}")
    one, two = (
        agreement(f, scale=(1, 5)).drop(columns=["judge", "dimension"]) for f in (frame, other)
    )
    pd.testing.assert_frame_equal(one, two, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("engine", [*ENGINES, "narwhals"])
def test_every_engine_gives_the_card_that_pandas_gives(engine):
    frame = made(noise=1.2)
    frame.loc[3, "judge"] = np.nan
    table = pa.Table.from_pandas(frame)
    theirs = (
        nw.from_native(pl.from_arrow(table)) if engine == "narwhals" else ENGINES[engine](table)
    )
    one, other = card_of(frame), card_of(theirs)
    for name in (
        "table",
        "bands",
        "inflation",
        "recalibration",
        "reliability",
        "counts",
        "corrected",
    ):
        left, right = getattr(one, name), getattr(other, name)
        pd.testing.assert_frame_equal(left, right, check_dtype=False, rtol=1e-9, atol=1e-12)
    assert one.footer == other.footer
    assert one.reasons == other.reasons


def test_raters_side_by_side_and_in_rows_are_the_same_ratings():
    rng = np.random.default_rng(1)
    wide = made(n=80)[["item_id", "judge", "cluster"]]
    for k in (1, 2, 3):
        wide[f"human{k}"] = np.clip(wide["judge"] + rng.integers(-1, 2, 80), 1, 10)
    wide.loc[5, "human3"] = np.nan
    long = wide.melt(["item_id", "judge", "cluster"], var_name="rater", value_name="human").dropna()
    one = agreement(wide, scale=(1, 10)).drop(columns=["judge"])
    two = agreement(long.sample(frac=1, random_state=0), scale=(1, 10)).drop(columns=["judge"])
    pd.testing.assert_frame_equal(one, two, rtol=1e-9)
    values = one.set_index("measure")["value"]
    assert one.loc[one["measure"] == "within", "n"].item() == 80
    assert values["raters"] == pytest.approx(239 / 80)
    assert np.isfinite(values[["ceiling", "alpha"]]).all()
    three = wide_table(
        agreement(wide.drop(columns="human3"), human=["human1", "human2"], scale=(1, 10))
    )
    assert three["mean_human"].item() == pytest.approx(
        wide[["human1", "human2"]].mean(axis=1).mean()
    )


def test_raters_an_item_count_every_row_that_an_engine_counted_together():
    rows = pd.DataFrame({"judge": [4, 4, 4, 2], "human1": [4, 4, 4, 1], "human2": [5, 5, 5, None]})
    for frame in (rows, pl.from_pandas(rows)):
        values = agreement(frame, scale=(1, 5)).set_index("measure")["value"]
        assert values["raters"] == pytest.approx(7 / 4)
        assert values["mean_human"] == pytest.approx((3 * 4.5 + 1) / 4)


def test_one_system_with_a_name_has_no_order():
    frame = made(n=60).assign(system=np.where(np.arange(60) < 40, "a", None))
    assert "kendall_by_system" not in set(agreement(frame, scale=(1, 10))["measure"])


@pytest.mark.parametrize("column", ["system", "item_id", "dimension"])
def test_a_column_may_be_the_cluster_and_a_group_at_once(column):
    frame = made(n=120).drop(columns="cluster").assign(dimension=np.arange(120) % 3)
    one = card_of(frame, cluster=column, groups=["system"])
    other = card_of(frame.assign(own=frame[column]), cluster="own", groups=["system"])
    pd.testing.assert_frame_equal(one.table, other.table)
    pd.testing.assert_frame_equal(one.inflation, other.inflation)


def test_a_row_a_dimension_and_system_is_that_of_its_rows_alone():
    frame = pd.concat(
        [made(seed).assign(dimension=name) for seed, name in enumerate(["fluent", "true"])]
    )
    table = wide_table(agreement(frame, by=["dimension", "system"], scale=(1, 10)))
    assert table[["dimension", "system"]].to_numpy().tolist() == [
        [d, s] for d in ("fluent", "true") for s in "ab"
    ]
    own = frame[(frame["dimension"] == "true") & (frame["system"] == "a")]
    alone = wide_table(agreement(own.drop(columns="dimension"), scale=(1, 10)))
    shared = [name for name in alone.columns if name not in ("dimension", "system")]
    pd.testing.assert_frame_equal(table.iloc[[2]][shared].reset_index(drop=True), alone[shared])


# What is refused


def test_a_mark_for_not_parsed_is_a_missing_score_where_it_is_declared():
    frame = made(n=50)
    frame.loc[[2, 7], "judge"] = -1
    declared = wide_table(agreement(frame, scale=(1, 10), missing=-1))
    cut = wide_table(agreement(frame.drop(index=[2, 7]), scale=(1, 10)))
    assert declared[["n", "n_missing"]].to_numpy().tolist() == [[48, 2]]
    assert declared["within"].item() == cut["within"].item()
    assert agreement(frame, scale=(1, 10), missing="outside")["n"].iloc[0] == 48
    assert (
        agreement(frame.assign(judge=frame["judge"].clip(-1, 3)), scale=(-1, 10))["n"].iloc[0] == 50
    )


PLAIN, TEN = made(n=50), {"scale": (1, 10)}
MARKED = PLAIN.assign(judge=PLAIN["judge"].where(~PLAIN.index.isin([2, 7]), -1))
TWICE = pd.DataFrame(
    {"item_id": [1, 1, 2], "judge": [4, 4, 3], "human": [4, 5, 3], "rater": ["x", "x", "y"]}
)
REFUSED = {
    "column='juge' does not exist; did you mean 'judge'": (PLAIN, TEN | {"judge": "juge"}),
    "column='turn' does not exist": (PLAIN, TEN | {"cluster": "turn"}),
    "tolerance=9 on a scale of 1..10": (PLAIN, TEN | {"tolerance": 9.0}),
    "tolerance=-1": (PLAIN, TEN | {"tolerance": -1.0}),
    "is not a scale": (PLAIN, {"scale": (5, 5)}),
    'missing="outside" needs the scale': (PLAIN, {"missing": "outside"}),
    "missing=-1": (MARKED, {}),
    "row 2: column 'judge': -1 lies outside the scale 1 to 10 (2 of 50": (MARKED, TEN),
    "row 3: 'n/a' is text, not a score": (
        PLAIN.assign(judge=PLAIN["judge"].astype(object).where(PLAIN.index != 3, "n/a")),
        {},
    ),
    "infinite": (PLAIN.assign(human=np.where(PLAIN.index == 3, np.inf, PLAIN["human"])), {}),
    "rescale both to one scale": (PLAIN.assign(judge=PLAIN["judge"] / 10), {}),
    "empty in row 4": (PLAIN.assign(cluster=PLAIN["cluster"].where(PLAIN.index != 4)), {}),
    "rater 'x' rated item 1 twice": (TWICE, {}),
    "several scores in column 'judge'": (TWICE.assign(rater=["x", "y", "y"], judge=[4, 2, 3]), {}),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_meant_is_refused_in_words(words):
    frame, options = REFUSED[words]
    refused(lambda: agreement(frame, **options), words)


@pytest.mark.parametrize(
    "how",
    [dict(target=1.0), dict(delta=-1), dict(level=0.4), dict(lang="fr"), dict(about={"x": 1})],
)
def test_calibrate_refuses_what_no_verdict_can_be_asked_with(how):
    with pytest.raises(RagnbError):
        card_of(made(n=40), **how)


# Verdicts


def test_a_judge_that_follows_the_humans_is_trusted():
    card = card_of(made())
    row = card.verdicts.iloc[0]
    assert (card.verdict, card.sides) == ("TRUST", ())
    assert row["lower"] >= 0.8
    assert row["share"] > row["constant"]
    assert card.reasons[0] == "TRUST: this judge can replace human ratings."
    assert "No more labels are needed for this verdict." in card.reasons
    assert card_of(made().assign(cluster="one")).verdict == "NOT PROVEN"


def test_a_judge_no_better_than_a_constant_is_not_trusted_however_often_it_agrees():
    rng = np.random.default_rng(0)
    human = rng.choice([7, 8, 9], 600, p=[0.1, 0.8, 0.1])
    frame = pd.DataFrame({"judge": 8, "human": human, "cluster": np.arange(600) % 40})
    row = card_of(frame).verdicts.iloc[0]
    assert row["share"] == row["constant"] == 1.0
    assert (row["verdict"], row["beats_constant"]) == ("NOT PROVEN", False)
    assert "a constant score agrees as often as the judge" in " ".join(row["reasons"])


def test_a_judge_that_inflates_one_system_alone_is_found():
    frame = made(noise=0.4)
    frame.loc[frame["system"] == "b", "judge"] = (frame["judge"] + 1).clip(upper=10)
    frame.loc[frame["system"] == "a", "judge"] = (frame["judge"] - 1).clip(lower=1)
    found = card_of(frame).inflation.set_index(["kind", "group"])
    assert found["inflated"].to_dict() == {
        ("overall", ""): False,
        ("system", "a"): False,
        ("system", "b"): True,
    }
    gap = frame["judge"] - frame["human"]
    b = frame["system"] == "b"
    assert found.loc[("system", "b"), "value"] == pytest.approx(gap[b].mean())
    assert found.loc[("system", "b"), "beside"] == pytest.approx(gap[b].mean() - gap[~b].mean())


def test_the_card_is_as_bad_as_its_worst_row_and_only_cuts_it():
    good, bad = made().assign(dimension="good"), made(noise=3.0).assign(dimension="bad")
    card = card_of(pd.concat([good, bad]))
    assert card.verdict == "REJECT"
    assert card.verdicts.set_index("dimension")["verdict"].to_dict() == {
        "bad": "REJECT",
        "good": "TRUST",
    }
    assert card.reasons[0] == (
        "REJECT: of 2 pairs of judge and dimension, 1 can be trusted, 0 are not proven and 1 are rejected."
    )
    alone, cut = card_of(good), card.only(dimension="good")
    assert (cut.verdict, cut.sides) == (alone.verdict, alone.sides)
    pd.testing.assert_frame_equal(cut.bands, alone.bands)
    with pytest.raises(RagnbError, match="have: bad, good"):
        card.only(dimension="ugly")


def test_several_judges_stand_side_by_side_as_each_alone():
    frame = made().rename(columns={"judge": "first"})
    frame["second"] = made(seed=0, noise=3.0)["judge"]
    card = card_of(frame, judge=["first", "second"])
    for name in ("first", "second"):
        alone = card_of(frame, judge=name)
        pd.testing.assert_frame_equal(card.only(judge=name).table, alone.table, check_like=True)
        assert card.only(judge=name).verdict == alone.verdict


def test_of_several_judges_the_best_verdict_is_named_then_the_largest_share():
    good, bad = np.array([1, 2, 3, 4, 5] * 40), np.array([5, 4, 1, 1, 1] * 40)
    off = np.where(np.arange(200) % 8, good, 6 - good)  # agrees more than the bad one
    frame = pd.DataFrame({"human": good, "bad": bad, "off": off, "good": good})
    for judges in (["bad", "good", "off"], ["good", "off", "bad"]):
        card = calibrate(frame, judge=judges, scale=(1, 5), tolerance=0)
        assert card.verdicts.set_index("judge")["verdict"]["good"] == "TRUST"
        assert "good" in card.reasons[1]
    assert "off" in calibrate(frame, judge=["bad", "off"], scale=(1, 5), tolerance=0).reasons[1]


# Frames of the card


def test_bands_partition_the_ratings_and_holm_is_kept():
    frame = made(noise=1.0)
    card = card_of(frame)
    assert card.bands["n"].sum() == len(frame)
    for row in card.bands.to_dict("records"):
        part = frame[np.floor(frame["judge"] + 0.5) == float(row["band"])]
        assert row["n"] == len(part)
        assert row["share"] == pytest.approx(((part["judge"] - part["human"]).abs() <= 1).mean())
        assert row["n_clusters"] == part["cluster"].nunique()
        if row["verdict"] == "TRUST":
            assert row["p"] <= 0.05
            assert row["share"] > 0.8
    few = card_of(frame[frame["cluster"].isin(["doc 1", "doc 2", "doc 3", "doc 4"])]).bands
    assert set(few["verdict"]) == {"too few"}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_the_step_down_procedure(p):
    for alpha in (0.01, 0.05, 0.3):
        order, rejected = sorted(range(len(p)), key=lambda k: p[k]), set()
        for step, k in enumerate(order):
            if p[k] * (len(p) - step) > alpha:
                break
            rejected.add(k)
        assert {k for k, q in enumerate(holm(p)) if q <= alpha} == rejected


def test_a_scale_without_labels_is_cut_into_ten_bands():
    rng = np.random.default_rng(2)
    human = rng.random(400)
    frame = pd.DataFrame({"judge": np.clip(human + rng.normal(0, 0.03, 400), 0, 1), "human": human})
    card = calibrate(frame, scale=(0, 1), tolerance=0.1, delta=0.05)
    assert card.verdict == "TRUST"
    assert card.bands["band"].tolist()[0] == "0–0.1"
    assert len(card.bands) == 10
    assert not {"qwk", "exact", "within_rounded"} & set(card.table["measure"])
    assert len(card.reliability) == 20


def pooled(means, sizes):
    """The rising curve of least squares: neighbours that fall are pooled until none does."""
    blocks = []
    for mean, size in zip(means, sizes, strict=True):
        blocks.append((mean, size, 1))
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (a, m, i), (b, n, j) = blocks[-2:]
            blocks[-2:] = [((a * m + b * n) / (m + n), m + n, i + j)]
    return [mean for mean, _, times in blocks for _ in range(times)]


def test_the_reliability_curve_is_the_mean_of_the_humans_at_each_score():
    frame = made(noise=1.5)
    curve = card_of(frame).reliability
    want = frame.groupby("judge")["human"].agg(["mean", "size"])
    assert curve["judge_score"].tolist() == want.index.tolist()
    np.testing.assert_allclose(curve["human"], want["mean"])
    assert curve["n"].tolist() == want["size"].tolist()
    np.testing.assert_allclose(
        curve["isotonic"], pooled(want["mean"].tolist(), want["size"].tolist())
    )
    pd.testing.assert_frame_equal(curve, card_of(frame).reliability)


def test_counts_are_every_pair_and_round_only_where_there_are_too_many():
    frame = made()
    counts = card_of(frame).counts
    want = frame.groupby(["judge", "human"]).size()
    got = counts.set_index(["judge_score", "human_score"])["n"]
    assert got.to_dict() == want.to_dict()
    rng = np.random.default_rng(0)
    many = pd.DataFrame({"judge": rng.uniform(1, 10, 6000), "human": rng.uniform(1, 10, 6000)})
    counts = card_of(many).counts
    hundredths = (counts[["judge_score", "human_score"]] - 1) / 0.09
    assert np.allclose(hundredths, hundredths.round())
    assert counts["n"].sum() == 6000
    assert len(counts) < 6000


def test_rows_that_nobody_labelled_correct_the_mean_of_those_that_were():
    frame = made(noise=0.8, n=900)
    full = frame["human"].mean()
    frame.loc[frame.index >= 200, "human"] = np.nan
    card = card_of(frame)
    ways = card.corrected[card.corrected["system"] == ""].set_index("way")
    assert ways.loc["corrected", ["n", "n_judged"]].tolist() == [200, 700]
    assert ways.loc["corrected", "low"] < full < ways.loc["corrected", "high"]
    widths = ways["high"] - ways["low"]
    assert widths["corrected"] < widths["human"]
    apart = card_of(
        frame[frame.index < 200], judged=frame[frame.index >= 200].drop(columns="human")
    )
    pd.testing.assert_frame_equal(card.corrected, apart.corrected)
    assert set(card.corrected["system"]) == {"", "a", "b"}


def test_further_rows_without_a_cluster_are_their_own_and_leave_the_ratings_alone():
    frame, rng = made(noise=0.8, n=300), np.random.default_rng(1)
    more = pd.DataFrame({"judge": rng.integers(1, 11, 50).astype(float), "system": "a"})
    card, alone = card_of(frame, judged=more.assign(cluster=None)), card_of(frame)
    apart = card_of(frame, judged=more.assign(cluster=[f"a new {i}" for i in range(50)]))
    pd.testing.assert_frame_equal(card.corrected, apart.corrected)
    assert card.footer == apart.footer == alone.footer
    for name in ("table", "bands", "inflation", "reliability", "counts"):
        pd.testing.assert_frame_equal(getattr(card, name), getattr(alone, name))


def test_lengths_are_cut_into_thirds_and_words_are_groups():
    frame = made(n=300).assign(response_words=np.arange(300), answerable=np.arange(300) % 2 == 0)
    found = card_of(frame).inflation
    assert found[found["kind"] == "response_words"]["n"].tolist() == [100, 100, 100]
    assert found[found["kind"] == "answerable"]["group"].tolist() == ["False", "True"]
    assert set(card_of(frame, groups=["system"]).inflation["kind"]) == {"overall", "system"}
    with pytest.raises(RagnbError, match="column='langth' is not known"):
        card_of(frame, groups=["langth"])


# The card as it is read


def test_the_card_is_json_html_and_markdown_without_a_stranger_s_markup():
    frame = made().assign(dimension="<script>alert(1)</script> | x")
    card = card_of(frame, about={"judge_id": "<b>j</b>", "drawn_at_random": True})
    told = json.loads(json.dumps(card.to_dict(), allow_nan=False))
    assert told["verdict"] == card.verdict
    assert told["bands"][0].keys() == set(card.bands.columns)
    html = card._repr_html_()
    assert "<script>" not in html
    assert "<b>j</b>" not in html
    assert "&lt;script&gt;" in html
    markdown = card.to_markdown()
    assert (
        markdown
        == card_of(frame, about={"judge_id": "<b>j</b>", "drawn_at_random": True}).to_markdown()
    )
    assert markdown.startswith("## Judge trust: TRUST")
    assert card.footer["drawn_at_random"] is True
    assert len(card.footer["data_sha256"]) == 64
    assert card.footer["data_sha256"] != card_of(made(seed=5)).footer["data_sha256"]


def test_the_card_speaks_chinese():
    card = card_of(made(noise=3.0), lang="zh")
    assert card.reasons[0].startswith("不可用（REJECT）")
    assert "各分数段的一致率" in card.to_markdown()
    assert 'lang="zh-CN"' in card._repr_html_()


def test_notes_say_what_a_reader_must_know():
    frame = made(n=60, clusters=8)
    frame.loc[0, "human"] = np.nan
    codes = card_of(frame, scale=None, about={"drawn_at_random": False}).notes["code"].tolist()
    assert codes == ["few_clusters", "guessed_scale", "missing", "one_rater", "not_random"]
    assert "rows_are_clusters" in card_of(frame.drop(columns="cluster")).notes["code"].tolist()


def test_a_dimension_that_nobody_labelled_is_refused():
    frame = made(n=40).assign(dimension="x")
    more = frame.assign(dimension="y", human=np.nan)
    with pytest.raises(RagnbError, match="no row has both"):
        card_of(pd.concat([frame, more], ignore_index=True))


def test_ratings_standing_alone_are_clusters_of_their_own():
    frame = made()
    one = card_of(frame.drop(columns="cluster"))
    two = card_of(frame.assign(cluster=np.arange(len(frame))))
    shared = [
        "n",
        "n_clusters",
        "within",
        "within_low",
        "within_high",
        "bias_low",
        "slope_high",
        "kendall_low",
    ]
    tables = [wide_table(card.table)[shared].to_numpy(dtype=float) for card in (one, two)]
    np.testing.assert_allclose(*tables, rtol=1e-9)
    assert one.verdict == two.verdict


def test_the_card_says_which_items_its_numbers_are_about():
    """Of 12 items 10 have both scores; 6 have two humans, 2 of those no judge."""
    items = pd.DataFrame({"item_id": range(12), "judge": [3.0] * 10 + [np.nan] * 2})
    items["human1"] = [3.0, 4, 2, 3, 4, 2, 3, 4, 3, 2, 3, 4]
    items["human2"] = [3.0, 4, 2, 3, *[np.nan] * 6, 4, 3]
    card = calibrate(items, scale=(1, 5), cluster=None)
    assert "on the 10 items with both" in card.reasons[1]
    ceiling = next(reason for reason in card.reasons if "Human ceiling" in reason)
    assert "on the 6 items with two or more human ratings" in ceiling
    assert "in 100.0 % of 12 comparisons" in ceiling
    chinese = calibrate(items, scale=(1, 5), cluster=None, lang="zh")
    assert "共 10 个两者都有得分的样本" in chinese.reasons[1]
    assert any("6 个有两份及以上人工评分的样本" in reason for reason in chinese.reasons)
    counted = card.table.set_index("measure")["n"]
    assert counted[["within", "ceiling", "alpha"]].tolist() == [10, 12, 6]
