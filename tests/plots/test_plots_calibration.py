"""Charts of a calibration card hold its frames' numbers: checked on what the artists hold, against plain loops."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from legible import assert_legible
from matplotlib.colors import to_hex

from ragnb import markup, plots
from ragnb.errors import RagnbError

CHARTS = {
    "counts": plots.judge_human,
    "reliability": plots.reliability,
    "bands": plots.band_shares,
    "inflation": plots.bias_by,
    "corrected": plots.corrected_means,
    "budget": plots.label_budget,
}
EVERY = [plots.bland_altman, *CHARTS.values()]


def measures(numbers):
    rows = [(name, *ends) for name, ends in numbers.items()]
    return pd.DataFrame(rows, columns=["measure", "value", "low", "high"])


def make_card(judge="gpt", dimension="accuracy", shift=0, lang="en"):
    """A card of made-up ratings: numbers that a test can follow, no estimates."""
    rng = np.random.default_rng(7 + shift)
    human = rng.integers(1, 11, 300)
    pairs = pd.DataFrame(
        {"judge_score": np.clip(human + rng.integers(-2, 4, 300), 1, 10), "human_score": human}
    )
    counts = pairs.value_counts().rename("n").reset_index()
    curve = pairs.groupby("judge_score")["human_score"].agg(["mean", "size"]).reset_index()
    key = {"judge": judge, "dimension": dimension}
    frames = {
        "counts": counts,
        "table": measures(
            {
                "mean_judge": (6.5, np.nan, np.nan),
                "mean_human": (6.0, np.nan, np.nan),
                "bias": (0.5, 0.3, 0.7),
                "loa_low": (-2.5, -2.8, -2.2),
                "loa_high": (3.5, 3.2, 3.8),
                "slope": (-0.1, -0.2, 0.0),
            }
        ),
        "reliability": pd.DataFrame(
            {
                "judge_score": curve["judge_score"],
                "human": curve["mean"],
                "low": curve["mean"] - 0.5,
                "high": curve["mean"] + 0.5,
                "isotonic": np.maximum.accumulate(curve["mean"]),
                "n": curve["size"],
            }
        ),
        "bands": pd.DataFrame(
            {
                "band": ["1–4", "5–7", "8–9", "10"],
                "start": [1, 5, 8, 10],
                "share": [0.3, 0.7, 0.95, np.nan],
                "low": [0.1, 0.6, 0.9, np.nan],
                "high": [0.5, 0.85, 0.98, np.nan],
                "n": [40, 90, 160, 0],
                "verdict": ["REJECT", "NOT PROVEN", "TRUST", "too few"],
            }
        ),
        "inflation": pd.DataFrame(
            {
                "kind": ["overall", "system", "system", "length"],
                "group": ["", "b", "a", "long"],
                "value": [0.5, -0.1, 0.9, 0.2],
                "low": [0.3, -0.4, 0.6, 0.0],
                "high": [0.7, 0.2, 1.2, 0.4],
                "n": [300, 150, 150, 80],
                "inflated": [True, False, True, False],
            }
        ),
        "corrected": pd.DataFrame(
            {
                "system": ["", "", "", "a", "a", "a"],
                "way": ["judge", "human", "corrected"] * 2,
                "value": [7.5, 7.0, 7.1, 8.0, np.nan, 7.4],
                "low": [7.4, 6.4, 6.8, 7.8, np.nan, 7.0],
                "high": [7.6, 7.6, 7.4, 8.2, np.nan, 7.8],
                "n": [900, 300, 300, 450, 0, 150],
                "n_judged": 600,
            }
        ),
        "budget": pd.DataFrame(
            {
                "labels": [20, 100, 300, 1000],
                "share": 0.85,
                "low": [0.6, 0.75, 0.8, 0.82],
                "high": [0.97, 0.92, 0.89, 0.87],
                "probability": [0.1, 0.4, 0.7, 0.99],
                "chance": [np.nan, np.nan, 0.0, 0.9],
                "target": 0.8,
                "n": 300,
            }
        ),
    }
    frames = {name: frame.assign(**key) for name, frame in frames.items()}
    text = "420 more labels would show it." if lang == "en" else "还需 420 条标注。"
    needed = pd.DataFrame([key | {"text": text}])
    settings = {"tolerance": 1.0, "target": 0.8, "delta": 0.5, "scale": (1.0, 10.0), "lang": lang}
    return SimpleNamespace(**frames, labels_needed=needed, **settings)


@pytest.fixture
def card():
    return make_card()


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def words(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def dots(ax):
    return [
        line
        for line in ax.lines
        if line.get_marker() in ("o", "s", "^", "D") and len(line.get_xdata())
    ]


# The heat map


def test_cells_hold_the_counts_of_their_pairs(card):
    ax = plots.judge_human(card)
    held = {}
    for text in ax.texts:
        if text.get_text():
            x, y = text.get_position()
            held[x + 0.5, 10 - (y - 0.5)] = int(text.get_text())
    counts = card.counts
    assert held == {
        (j, h): n for j, h, n in zip(counts.judge_score, counts.human_score, counts.n, strict=True)
    }


def test_the_outline_parts_what_lies_within_from_what_does_not(card):
    for tolerance in (0, 1, 2):
        card.tolerance = tolerance
        border = plots.judge_human(card).collections[-1]
        drawn = {tuple(map(tuple, segment.tolist())) for segment in border.get_segments()}
        within = {(j, h): abs(j - h) <= tolerance for j in range(1, 11) for h in range(1, 11)}
        upright = sum(within[j, h] != within[j + 1, h] for j in range(1, 10) for h in range(1, 11))
        level = sum(within[j, h] != within[j, h + 1] for j in range(1, 11) for h in range(1, 10))
        assert len(drawn) == upright + level


def test_pairs_within_are_counted_on_the_scores_themselves(card):
    counts = card.counts
    within = sum(
        row.n for row in counts.itertuples() if abs(row.judge_score - row.human_score) <= 1
    )
    assert plots.alt_text(plots.judge_human(card)).startswith(
        f"{within} of 300 pairs agree within ±1; "
    )
    thirds = pd.DataFrame(
        {"judge_score": [4 / 3, 7 / 3, 5.0], "human_score": [7 / 3, 4.0, 1.0], "n": [2, 3, 4]}
    )
    seen = "2 of 9 pairs agree within ±1; the judge is higher in 4, lower in 3"
    assert plots.judge_human(thirds, finding=None).get_label().startswith(seen)


def test_fine_scores_are_put_into_steps_and_the_chart_says_so():
    rng = np.random.default_rng(0)
    fine = pd.DataFrame(
        {"judge_score": rng.uniform(0, 1, 500), "human_score": rng.integers(0, 2, 500), "n": 1}
    )
    ax = plots.judge_human(SimpleNamespace(counts=fine, tolerance=0.2, scale=(0, 1)))
    assert "binned for the chart" in ax.get_xlabel()
    assert sum(int(text) for text in words(ax)) == 500
    whole = plots.judge_human(make_card())
    assert "binned for the chart" not in whole.get_xlabel()


def test_the_axes_show_the_whole_scale(card):
    ax = plots.judge_human(card)
    assert [label.get_text() for label in ax.get_xticklabels()] == [str(k) for k in range(1, 11)]
    assert labels(ax) == [str(k) for k in range(1, 11)]


# Bland and Altman


def test_points_stand_at_mean_and_difference_with_areas_by_their_counts(card):
    ax = plots.bland_altman(card)
    points = ax.collections[0]
    held = {
        tuple(at): area
        for at, area in zip(points.get_offsets().tolist(), points.get_sizes(), strict=True)
    }
    counts = card.counts
    most = counts.n.max()
    for j, h, n in zip(counts.judge_score, counts.human_score, counts.n, strict=True):
        assert held[(j + h) / 2, j - h] == pytest.approx(max(22 * np.sqrt(n / most), 3.6) ** 2)


def test_bias_limits_and_slope_are_the_tables(card):
    ax = plots.bland_altman(card)
    lines = {line.get_label(): line for line in ax.lines}
    values = card.table.set_index("measure")["value"]
    for name in ("bias", "loa_low", "loa_high"):
        assert lines[f"_{name}"].get_ydata()[0] == values[name]
    assert lines["_slope"].get_slope() == -0.1
    assert lines["_slope"].get_xy1() == (6.25, 0.5)
    spans = [patch.get_extents().transformed(ax.transData.inverted()) for patch in ax.patches]
    assert sorted((round(box.y0, 6), round(box.y1, 6)) for box in spans) == [
        (-2.8, -2.2),
        (0.3, 0.7),
        (3.2, 3.8),
    ]
    assert any("+0.500\n[0.300, 0.700]" in text for text in words(ax))


def test_lines_without_numbers_are_not_drawn(card):
    ax = plots.bland_altman(card.counts)
    assert not [line for line in ax.lines if line.get_label() in ("_bias", "_slope")]
    card.table = card.table.query("measure != 'slope'")
    ax = plots.bland_altman(card)
    names = [line.get_label() for line in ax.lines]
    assert "_bias" in names
    assert "_slope" not in names


def test_limits_that_nearly_meet_are_named_apart():
    limits = {"bias": 0.0, "loa_low": -0.01, "loa_high": 0.01}
    table = measures({name: (at, None, None) for name, at in limits.items()})
    counts = pd.DataFrame({"judge_score": [2, 9], "human_score": [5, 1], "n": 1})
    ax = plots.bland_altman(SimpleNamespace(counts=counts, table=table))
    heights = [text.get_position()[1] for text in ax.texts]
    assert np.diff(heights).min() > 0.09 * np.ptp(ax.get_ylim())


# Reliability


def test_points_band_and_isotonic_curve_are_the_frames(card):
    ax = plots.reliability(card)
    curve = card.reliability
    points = next(held for held in ax.collections if held.get_label() == "human mean")
    assert points.get_offsets().tolist() == curve[["judge_score", "human"]].to_numpy().tolist()
    isotonic = next(line for line in ax.lines if line.get_label() == "isotonic regression")
    assert isotonic.get_ydata().tolist() == curve["isotonic"].tolist()
    bars = next(held for held in ax.collections if held.get_label() == "_interval")
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    assert ends == curve[["low", "high"]].to_numpy().tolist()


def test_the_finding_is_the_interval_furthest_from_the_diagonal():
    curve = pd.DataFrame({"judge_score": [2.0, 5.0, 9.0], "human": [2.1, 5.6, 6.0], "n": 5})
    curve = curve.assign(low=[1.5, 5.2, 5.5], high=[2.5, 6.0, 6.5])
    seen = "Where the judge scores 9, the human mean is 6.000 [5.500, 6.500]"
    assert plots.reliability(curve).get_title(loc="left") == seen
    near = curve.assign(low=0.0, high=10.0)
    assert "No interval excludes" in plots.reliability(near).get_title(loc="left")
    bare = curve.drop(columns=["low", "high"])
    assert plots.reliability(bare).get_label()


def test_a_mean_without_an_interval_is_hollow():
    ends = {"low": [0.5, np.nan], "high": [1.5, np.nan]}
    curve = pd.DataFrame({"judge_score": [1, 2], "human": [1.0, 2.0], "n": 3, **ends})
    points = next(
        held for held in plots.reliability(curve).collections if held.get_label().endswith("mean")
    )
    assert [face[3] for face in points.get_facecolors()] == [1, 0]


# Bands


def test_bands_hold_shares_intervals_and_verdicts(card):
    ax = plots.band_shares(card)
    assert labels(ax) == ["10", "8–9", "5–7", "1–4"]
    assert [line.get_xdata()[0] for line in dots(ax)] == [0.95, 0.7, 0.3]
    looks = [(line.get_marker(), to_hex(line.get_color()).upper()) for line in dots(ax)]
    assert looks == [("o", "#009E73"), ("^", "#E69F00"), ("s", "#D55E00")]
    assert words(ax)[0] == "—  n = 0  too few clusters"
    assert words(ax)[1] == "95.0 % [90.0, 98.0]  n = 160  trust"
    seen = "The judge is trusted where it scores 8–9; rejected where it scores 1–4"
    assert plots.alt_text(ax).startswith(seen)


def test_the_target_is_the_cards(card):
    for target in (0.8, 0.9):
        card.target = target
        assert plots.band_shares(card).lines[-1].get_xdata()[0] == target


# Bias


def test_bias_by_system_leaves_other_kinds_out(card):
    ax = plots.bias_by(card)
    assert labels(ax) == ["overall", "a", "b"]
    assert [line.get_xdata()[0] for line in dots(ax)] == [0.5, 0.9, -0.1]
    assert [line.get_marker() for line in dots(ax)] == ["^", "^", "o"]
    assert words(ax)[1] == "+0.900 [0.600, 1.200]  n = 150  ▲ inflated"
    assert labels(plots.bias_by(card, kind="length")) == ["overall", "long"]
    with pytest.raises(RagnbError, match="kind='sistem'"):
        plots.bias_by(card, kind="sistem")


def test_the_zone_is_delta_wide(card):
    for delta in (0.5, 0.25):
        card.delta = delta
        (zone,) = plots.bias_by(card).patches
        assert (zone.get_x(), zone.get_width()) == (-delta, 2 * delta)


# Corrected means


def test_ways_are_rows_in_their_own_colour_and_shape(card):
    ax = plots.corrected_means(card)
    assert labels(ax) == ["all systems", "a"]
    assert [line.get_xdata()[0] for line in dots(ax)] == [7.5, 7.0, 7.1, 8.0, 7.4]
    assert words(ax)[2] == "7.100 [6.800, 7.400]  n = 300 + 600"
    assert words(ax)[4] == "—"
    assert words(plots.corrected_means(card.corrected.assign(n_judged=0)))[2].endswith("n = 300")
    assert ax.get_xlim() == pytest.approx((0.82, 10.18))
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["judge alone", "human alone", "judge, corrected"]
    with pytest.raises(RagnbError, match="way='guess'"):
        plots.corrected_means(card.corrected.assign(way="guess"))
    alone = plots.corrected_means(card.corrected.query("system == ''").drop(columns="system"))
    assert labels(alone) == ["all systems"]


# Labels


def test_the_curve_is_the_budgets(card):
    ax = plots.label_budget(card)
    held = {line.get_label(): line for line in ax.lines}
    chance = held["probability of showing the target"].get_xydata().tolist()
    assert chance == [[20, 0.1], [100, 0.4], [300, 0.7], [1000, 0.99]]
    known = held["the same, from the labels available"].get_ydata()
    assert known == pytest.approx([np.nan, np.nan, 0.0, 0.9], nan_ok=True)
    assert held["target 80.0 %"].get_ydata()[0] == 0.8
    assert held["_now"].get_xdata()[0] == 300
    assert ax.get_title(loc="left") == "420 more labels would show it."
    (low, high) = ax.collections[0].get_datalim(ax.transData).intervaly
    assert (low, high) == (0.6, 0.97)


# All of them


@pytest.mark.parametrize("name", CHARTS)
def test_a_frame_alone_is_enough(card, name):
    ax = CHARTS[name](getattr(card, name))
    assert plots.alt_text(ax)
    assert plots.alt_text(CHARTS[name](getattr(card, name).drop(columns=["judge", "dimension"])))


@pytest.mark.parametrize("chart", EVERY)
def test_several_judges_ask_for_one(chart):
    one, two = make_card(), make_card("llama", "clarity", 1)
    both = SimpleNamespace(
        **{
            name: pd.concat([held, getattr(two, name)]) if isinstance(held, pd.DataFrame) else held
            for name, held in vars(one).items()
        }
    )
    with pytest.raises(RagnbError, match=r"several judges; choose one: card.only\(judge='gpt'\)"):
        chart(both)


@pytest.mark.parametrize("chart", EVERY)
def test_what_is_no_card_is_refused(chart):
    with pytest.raises(RagnbError, match="int is not a CalibrationCard"):
        chart(3)
    with pytest.raises(RagnbError, match="is not known"):
        chart(pd.DataFrame({"x": [1]}))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("chart", EVERY)
def test_no_label_leaves_the_figure_or_lies_on_another(chart, lang, tmp_path):
    if lang == "zh" and plots.cjk_font() is None:
        pytest.skip("no font with Chinese characters is installed")
    long = (
        "裁判_with_a_very_long_name_of_its_own_2026"
        if lang == "zh"
        else "a_judge_with_a_very_long_name_2026"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = chart(make_card(long, "overall", lang=lang))
        assert_legible(ax.figure)
        for kind in ("svg", "png"):
            assert plots.save(ax, tmp_path / f"x.{kind}").stat().st_size > 1000


@pytest.mark.parametrize("chart", EVERY)
def test_empty_frames_draw_and_say_so(card, chart):
    name = next((key for key, one in CHARTS.items() if one is chart), "counts")
    ax = chart(getattr(card, name).head(0))
    assert plots.alt_text(ax).strip(". ")


def test_strangers_names_stay_text():
    payload = "<script>run()</script> $x$"
    ax = plots.bias_by(make_card().inflation.assign(group=["", payload, "a", "long"]))
    assert "<script>" not in plots.svg(ax)
    assert markup.escape(markup.one_line(payload, 40)) in plots.svg(ax)
