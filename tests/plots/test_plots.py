"""Charts are tested by what their artists hold; how they look is for the eye."""

from __future__ import annotations

import re
import statistics
import warnings
from html.parser import HTMLParser
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import PatchCollection, PathCollection
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D

import ragnb as rn
from ragnb import markup, plots
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.markup import rendering
from ragnb.plots import canvas

NAMES = ["faithfulness", "answer_relevancy", "context_recall", "noise_sensitivity"]


@pytest.fixture(scope="module")
def chinese() -> None:
    if plots.cjk_font() is None:
        pytest.skip("no font with Chinese characters is installed")


@pytest.fixture
def scores() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(size=(40, 4)), columns=NAMES)
    return frame.assign(doc_name=[f"d{i % 8}" for i in range(40)], system=["a", "b"] * 20)


@pytest.fixture
def means(scores: pd.DataFrame) -> pd.DataFrame:
    return rn.weighted_means(scores)


@pytest.fixture
def by_system(scores: pd.DataFrame) -> pd.DataFrame:
    recall = scores.context_recall.where(scores.system == "b")
    return rn.weighted_means(scores.assign(context_recall=recall), by="system")


def named(ax, label):
    return [line for line in ax.lines if line.get_label() == label]


def words(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def estimate(means, metric, column="value"):
    return means.set_index("metric").loc[metric, column]


# Radar


def test_radar_draws_the_frames_means_by_the_one_geometry(means):
    (line,) = named(plots.radar(means), "_one")
    values = [estimate(means, name) for name in NAMES]
    points = rendering.radar_points(values, [("", (0, 1), name == NAMES[-1]) for name in NAMES])
    assert line.get_xydata() == pytest.approx(points[[0, 1, 2, 3, 0]])


def test_radar_leaves_the_total_out_and_takes_named_metrics(means):
    assert words(plots.radar(means))[:4] == [*NAMES[:3], "noise_sensitivity ↓"]
    assert words(plots.radar(means, metrics=NAMES[2::-1]))[:3] == NAMES[2::-1]
    rated = pd.concat([means, means.assign(metric=["over_refusal", *list("abcd")], weight=np.nan)])
    rated.loc[rated["metric"] == "over_refusal", "better"] = "lower"
    assert "over_refusal ↓" not in words(plots.radar(rated))
    assert "over_refusal ↓" in words(plots.radar(rated, metrics=[*NAMES, "over_refusal"]))


def test_radar_says_that_an_axis_is_turned(means):
    assert "outside is better" in plots.radar(means).get_xlabel()
    assert plots.radar(means, metrics=NAMES[:3]).get_xlabel() == ""
    assert "该轴已反向" in plots.radar(means, lang="zh").get_xlabel()


def test_a_missing_mean_is_a_gap_that_the_axis_names(means):
    means.loc[means.metric == "context_recall", ["value", "low", "high"]] = np.nan
    ax = plots.radar(means)
    (line,) = named(ax, "_one")
    assert len(line.get_xydata()) == 3
    assert "context_recall\n(missing)" in words(ax)
    assert "context_recall —" in plots.alt_text(ax)


def test_a_gap_names_the_system_that_has_it(by_system):
    ax = plots.radar(by_system, by="system")
    assert "context_recall\n(missing: a)" in words(ax)
    assert len(named(ax, "a")[0].get_xydata()) == 3
    assert len(named(ax, "b")[0].get_xydata()) == 5


def test_five_systems_have_their_own_colours_and_dashes_and_a_sixth_is_refused(scores):
    frame = scores.assign(system=[f"s{i % 5}" for i in range(40)])
    ax = plots.radar(rn.weighted_means(frame, by="system"), by="system")
    lines = [named(ax, f"s{i}")[0] for i in range(5)]
    assert len({to_hex(line.get_color()) for line in lines}) == 5
    assert len({str(line._dash_pattern) for line in lines}) == 5
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [f"s{i}" for i in range(5)]
    six = rn.weighted_means(scores.assign(system=[f"s{i % 6}" for i in range(40)]), by="system")
    for chart in (plots.radar, plots.intervals):
        with pytest.raises(RagnbError, match="5 systems"):
            chart(six, by="system")


def test_two_metrics_are_dots_with_intervals(means):
    ax = plots.radar(means, metrics=NAMES[:2])
    assert [label.get_text() for label in ax.get_yticklabels()] == NAMES[:2]
    assert len(named(ax, "_interval")) == 2


def test_a_metric_without_an_end_is_named_and_not_drawn(scores):
    metrics = [*NAMES[:3], rn.Metric("latency", 0, float("inf"))]
    weights = {"latency": 0, "faithfulness": 1}
    means = rn.weighted_means(scores.assign(latency=2.0), metrics=metrics, metric_weights=weights)
    for chart in (plots.radar, plots.intervals):
        ax = chart(means, metrics=[*NAMES[:3], "latency"])
        assert "Not drawn, because the range is unbounded: latency" in ax.get_xlabel()
    few = plots.radar(means, metrics=["faithfulness", "latency"])
    assert "latency" in few.get_xlabel()


def test_metrics_of_different_ranges_are_each_drawn_on_their_own():
    means = pd.DataFrame(
        {"metric": ["accuracy", "clarity", "faithfulness"], "value": [10.0, 5.5, 0.5]}
    )
    ax = plots.radar(means)
    assert np.hypot(*named(ax, "_one")[0].get_xydata().T)[:3] == pytest.approx([1, 0.5, 0.5])
    assert words(ax) == ["accuracy (1–10)", "clarity (1–10)", "faithfulness (0–1)"]
    dots = plots.intervals(means, bars=[("bar", 1)])
    assert [
        line.get_xdata()[0] for line in dots.lines if line.get_marker() == "o"
    ] == pytest.approx([1, 0.5, 0.5])
    assert "own range" in dots.get_xlabel()


def test_the_rim_is_the_range_of_the_frame():
    means = pd.DataFrame({"metric": list("abc"), "value": [3.0, 4.0, 5.0]})
    means = means.assign(range_low=1, range_high=5)
    ax = plots.radar(means)
    assert words(ax)[3:] == ["3", "5"]
    assert np.hypot(*named(ax, "_one")[0].get_xydata().T)[:3] == pytest.approx([0.5, 0.75, 1])


def test_several_rows_of_a_metric_ask_for_the_column_of_systems(by_system):
    for chart in (plots.radar, plots.intervals):
        with pytest.raises(RagnbError, match=r"by=….*system"):
            chart(by_system)
        with pytest.raises(RagnbError, match="sistem"):
            chart(by_system, by="sistem")
        with pytest.raises(RagnbError, match="did you mean 'faithfulness'"):
            chart(by_system, by="system", metrics="faithfullness")


# Intervals


def test_dots_and_intervals_hold_the_frames_numbers(means):
    ax = plots.intervals(means)
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    ends = named(ax, "_interval")
    for line, interval, row in zip(dots, ends, means.itertuples(), strict=True):
        assert line.get_xdata()[0] == row.value
        assert list(interval.get_xdata()) == [row.low, row.high]
        assert line.get_ydata()[0] == interval.get_ydata()[0] == row.Index
    assert [label.get_text() for label in ax.get_yticklabels()][-2:] == [
        "noise_sensitivity ↓",
        "weighted score",
    ]
    assert (
        words(ax)[0] == markup.with_interval(*means.loc[0, ["value", "low", "high"]]) + "  n = 40"
    )


def test_the_axis_is_the_whole_range(means):
    ax = plots.intervals(means)
    assert ax.get_xlim() == pytest.approx((-0.02, 1.02))
    assert ax.spines.bottom.get_bounds() == (0, 1)
    assert ax.get_xlabel().startswith("full range, 0 to 1")
    ten = plots.intervals(pd.DataFrame({"metric": ["accuracy"], "value": [7.0]}))
    assert [label.get_text() for label in ten.get_xticklabels()] == [str(i) for i in range(1, 11)]


def test_common_thresholds_are_named_lines_in_all_rows(means):
    ax = plots.intervals(means, bars=[("warning", 0.7), ("critical", 0.5)])
    for name, at in {"warning": 0.7, "critical": 0.5}.items():
        assert named(ax, name)[0].get_xdata().tolist() == [at, at]
    assert sorted(line.get_xdata()[0] for line in named(ax, "_bar")) == [0.5] * 4 + [0.7] * 4
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["warning", "critical"]


def test_a_metrics_own_thresholds_stand_in_its_row(means):
    ax = plots.intervals(
        means, bars={"context_recall": [("warning", 0.7)], "faithfulness": [("warning", 0.6)]}
    )
    first, second = named(ax, "warning") + named(ax, "_bar")
    assert first.get_xydata() == pytest.approx(np.array([[0.6, -0.42], [0.6, 0.42]]))
    assert second.get_xydata() == pytest.approx(np.array([[0.7, 1.58], [0.7, 2.42]]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["warning"]


def test_a_missing_mean_says_why(means):
    means.loc[0, ["value", "low", "high", "n", "n_failed", "n_missing"]] = [
        None,
        None,
        None,
        0,
        3,
        37,
    ]
    assert words(plots.intervals(means))[0] == "— 37 missing, 3 failed"
    assert words(plots.intervals(means, lang="zh"))[0] == "— 缺失 37, 失败 3"
    plain = pd.DataFrame({"metric": ["faithfulness"], "value": [np.nan]})
    assert words(plots.intervals(plain)) == ["— missing"]


def test_rates_are_percentages():
    means = pd.DataFrame(
        {"metric": ["over_refusal"], "value": [0.125], "low": [0.1], "high": [0.2], "n": [8]}
    )
    assert words(plots.intervals(means)) == ["12.5 % [10.0, 20.0]  n = 8"]


def test_systems_stand_under_each_other_in_their_colours(by_system):
    ax = plots.intervals(by_system, by="system", metrics="faithfulness")
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert [to_hex(line.get_color()).upper() for line in dots] == list(rendering.SYSTEM_COLOURS[:2])
    assert [line.get_ydata()[0] for line in dots] == [0, 1]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


# Distribution


def by_row(ax):
    rows = [
        np.asarray(dots.get_offsets())
        for dots in ax.collections
        if isinstance(dots, PathCollection)
    ]
    assert all(np.all(np.round(points[:, 1]) == row) for row, points in enumerate(rows))
    return [sorted(points[:, 0].tolist()) for points in rows]


def boxes(ax):
    """The lowest and highest side of each box, and its middle line."""
    drawn = [box for box in ax.collections if isinstance(box, PatchCollection)]
    sides = [box.get_paths()[0].get_extents().intervalx.tolist() for box in drawn]
    middles = [line.get_xdata()[0] for line in ax.lines]
    return [(low, middle, high) for (low, high), middle in zip(sides, middles, strict=True)]


def test_dots_and_boxes_hold_the_scores_of_their_row(scores):
    gone = scores.assign(context_recall=scores["context_recall"].where(scores["system"] == "a"))
    ax = plots.distribution(gone, by="system")
    rows = [
        gone.loc[gone["system"] == system, name].dropna() for name in NAMES for system in ("a", "b")
    ]
    assert by_row(ax) == [sorted(row) for row in rows]
    wanted = [statistics.quantiles(row, n=4, method="inclusive") for row in rows if len(row)]
    assert boxes(ax) == [pytest.approx(tuple(row)) for row in wanted]
    names = [label.get_text().splitlines()[0] for label in ax.get_yticklabels()]
    assert names == [
        f"{name} · {system}{' ↓' * (name == NAMES[-1])}" for name in NAMES for system in "ab"
    ]
    for row, dots in enumerate(ax.collections[: len(rows)]):
        assert {to_hex(face).upper() for face in dots.get_facecolor()} == {
            rendering.SYSTEM_COLOURS[row % 2]
        }


def test_many_scores_are_thinned_and_their_box_is_not():
    values = np.random.default_rng(3).beta(2, 5, 20_001)
    ax = plots.distribution(pd.DataFrame({"faithfulness": values}))
    (row,) = by_row(ax)
    assert len(row) == 300
    assert set(row) <= set(values)
    assert (row[0], row[-1]) == (values.min(), values.max())
    assert boxes(ax) == [
        pytest.approx(tuple(statistics.quantiles(values, n=4, method="inclusive")))
    ]
    assert ax.get_yticklabels()[0].get_text() == "faithfulness\nn = 20,001"


def test_gaps_are_counted_by_their_words():
    frame = pd.DataFrame(
        {
            "faithfulness": [0.5, None, None, None, None],
            "faithfulness__status": ["ok", "failed", "not_applicable", None, "missing"],
        }
    )
    (label,) = plots.distribution(frame).get_yticklabels()
    assert label.get_text() == "faithfulness\nn = 1, 2 missing, 1 failed, 1 not applicable"


def test_own_ranges_and_names_select():
    frame = pd.DataFrame(
        {"accuracy": [1, 10, 5.5], "mine": [0.0, 50.0, 100.0], "t": [1.0, 2.0, 3.0]}
    )
    chosen = ["accuracy", rn.Metric("mine", 0, 100), rn.Metric("t", 0, float("inf"))]
    ax = plots.distribution(frame, metrics=chosen)
    assert by_row(ax) == [[0, 0.5, 1]] * 2
    names = [label.get_text().splitlines()[0] for label in ax.get_yticklabels()]
    assert names == ["accuracy (1–10)", "mine (0–100)"]
    assert "own range" in ax.get_xlabel()
    assert "Not drawn, because the range is unbounded: t" in ax.get_xlabel()
    alone = plots.distribution(frame, metrics="accuracy")
    assert by_row(alone) == [[1, 5.5, 10]]
    assert [label.get_text() for label in alone.get_xticklabels()] == [str(k) for k in range(1, 11)]


def test_scores_that_cannot_be_drawn_are_refused(scores):
    for words, frame, options in (
        ("outside 0..1", pd.DataFrame({"faithfulness": [1.5]}), {}),
        ("did you mean 'faithfulness'", scores, {"metrics": "faithfullness"}),
        ("did you mean 'system'", scores, {"by": "sytem"}),
        ("no metric", pd.DataFrame({"question": ["a"]}), {}),
        ("5 systems", scores.assign(system=scores.index), {"by": "system"}),
    ):
        with pytest.raises(RagnbError, match=words):
            plots.distribution(frame, **options)


# Outcomes


def test_bars_are_as_long_as_their_counts():
    frame = pd.DataFrame(
        {"label": ["OK", "MISS", "NONE"], "n": [5, 3, 0], "share": [0.625, 0.375, 0.0]}
    )
    ax = plots.outcomes(frame)
    assert [bar.get_width() for bar in ax.patches] == [5, 3, 0]
    assert words(ax) == ["5 (62.5 %)", "3 (37.5 %)", "0 (0.0 %)"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["OK", "MISS", "NONE"]
    assert (
        plots.alt_text(ax)
        == "OK is most frequent: 5 of 8. OK 5 (62.5 %), MISS 3 (37.5 %), NONE 0 (0.0 %)."
    )
    assert ax.get_xlim()[0] == 0


def test_outcomes_by_another_label_and_by_system():
    frame = pd.DataFrame(
        {"failure_mode": ["x", "y", "x"], "n": [1, 2, 3], "system": ["a", "a", "b"]}
    )
    ax = plots.outcomes(frame, label="failure_mode", by="system")
    assert [round(bar.get_y() + bar.get_height() / 2, 3) for bar in ax.patches] == [-0.2, 0.8, 0.2]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    with pytest.raises(RagnbError, match="label"):
        plots.outcomes(frame)
    with pytest.raises(RagnbError, match="5 systems"):
        plots.outcomes(pd.DataFrame({"label": ["x"] * 6, "n": 1, "s": list("abcdef")}), by="s")


# Every chart


def charts(means, scores, **more):
    counts = pd.DataFrame({"label": ["OK"], "n": [3]})
    return [
        plots.radar(means, **more),
        plots.intervals(means, **more),
        plots.distribution(scores, **more),
        plots.outcomes(counts, **more),
    ]


def test_every_chart_draws_on_the_axes_it_is_given(means, scores):
    _, places = plt.subplots(1, 4)
    before = plt.get_fignums()
    assert charts(means, scores, ax=places[0])[0] is places[0]
    assert plt.get_fignums() == before


def test_every_chart_has_its_finding_as_title_and_first_words(means, scores):
    for ax in charts(means, scores, finding="Recall is low"):
        assert ax.get_title(loc="left") == "Recall is low"
        assert plots.alt_text(ax).startswith("Recall is low. ")
    for ax in charts(means, scores):
        assert plots.alt_text(ax).startswith(markup.one_line(ax.get_title(loc="left")) + ". ")
    for ax in charts(means, scores, finding=""):
        assert ax.get_title(loc="left") == ""
        assert plots.alt_text(ax)


def test_no_chart_changes_the_settings_of_matplotlib_or_the_random_numbers_of_others(means, scores):
    def state():
        return dict(mpl.rcParams), str(np.random.get_state())  # noqa: NPY002

    before = state()
    for ax in charts(means, scores):
        plots.svg(ax)
    assert state() == before


@pytest.mark.parametrize(
    "name", ["$x$", "$\\frac{", "<b>&\"'</b>", "a\nb", "\x00", "\ud800", "]]>", "{x}", "%s"]
)
def test_names_are_names_and_never_markup_or_mathematics(name):
    rows = [(metric, 0.5, system) for system in (name, "t") for metric in (name, "b", "c")]
    means = pd.DataFrame(rows, columns=["metric", "value", "s"], dtype=object)
    counts = pd.DataFrame(
        [(name, 1, name), ("b", 2, "t")], columns=["label", "n", "s"], dtype=object
    )
    scores = pd.DataFrame([(1.0, name)], columns=["faithfulness", "s"], dtype=object)
    made = [
        plots.radar(means, by="s", finding=name),
        plots.intervals(means, by="s", bars={"b": [(name, 0.5)]}, finding=name),
        plots.intervals(means.head(3), bars=[(name, 0.5)]),
        plots.outcomes(counts, by="s"),
        plots.distribution(scores, by="s"),
    ]
    for ax in made:
        root = ElementTree.fromstring(plots.svg(ax))
        shown = "".join(root.itertext())
        assert markup.one_line(name) in shown


@pytest.mark.usefixtures("chinese")
def test_chinese_names_draw_without_a_warning(tmp_path, scores):
    frame = scores.assign(system=["系统甲", "系统乙"] * 20).rename(
        columns={"faithfulness": "忠实度"}
    )
    metrics = [rn.Metric("忠实度"), "context_recall", "answer_relevancy"]
    means = rn.weighted_means(frame, metrics=metrics, by="system")
    counts = pd.DataFrame({"label": ["正确拒答"], "n": [3]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ax in [
            plots.radar(means, by="system", lang="zh", finding="召回率偏低"),
            plots.intervals(means, by="system", lang="zh", bars=[("警戒线", 0.7)]),
            plots.distribution(frame, metrics=metrics, lang="zh"),
            plots.outcomes(counts, lang="zh"),
        ]:
            ax.figure.savefig(tmp_path / "x.png")
            assert "忠实度" in plots.svg(ax) or "正确拒答" in plots.svg(ax)


@pytest.fixture
def no_font(monkeypatch):
    monkeypatch.setattr("ragnb.plots.canvas.CJK_FONTS", ())


def test_without_a_chinese_font_a_png_says_what_to_install(no_font, tmp_path):
    ax = plots.outcomes(pd.DataFrame({"label": ["正确拒答"], "n": [3]}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plots.save(ax, tmp_path / "x.png")
    ours = [str(warning.message) for warning in caught if warning.category is RagnbWarning]
    assert len(ours) == 1
    assert "fonts-wqy-microhei" in ours[0]


@pytest.mark.usefixtures("chinese")
def test_a_font_newer_than_the_list_that_matplotlib_keeps_is_found(monkeypatch, tmp_path):
    from matplotlib.font_manager import fontManager

    known, wanted = (
        [font for font in fontManager.ttflist if font.name == "DejaVu Sans"],
        plots.cjk_font(),
    )
    monkeypatch.setattr(fontManager, "ttflist", known)
    assert wanted not in fontManager.get_font_names()
    canvas._add_new_fonts.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = plots.outcomes(pd.DataFrame({"label": ["正确拒答"], "n": [3]}))
        plots.save(ax, tmp_path / "x.png")
    assert wanted in ax.get_yticklabels()[0].get_fontfamily()


def test_without_a_chinese_font_an_svg_or_a_png_of_latin_text_warns_of_nothing(no_font, tmp_path):
    ax = plots.outcomes(
        pd.DataFrame({"label": ["正确拒答", "\U0001f4c4 표"], "n": [3, 1]}), lang="zh"
    )
    assert "正确拒答" in plots.save(ax, tmp_path / "x.svg").read_text(encoding="utf-8")
    assert "正确拒答" in plots.svg(ax)
    plots.save(plots.outcomes(pd.DataFrame({"label": ["OK"], "n": [3]})), tmp_path / "x.png")


# SVG


class Opened(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.elements = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))


def test_svg_stands_in_a_page_and_fetches_nothing(means, scores):
    pictures = [plots.svg(ax) for ax in charts(means, scores)]
    page = "<!doctype html><title>x</title>" + "".join(pictures)
    elements = Opened(page).elements
    assert "<?xml" not in page
    assert page.count("<!") == 1
    assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg)", page)
    ids = [attrs["id"] for _, attrs in elements if "id" in attrs]
    assert len(ids) == len(set(ids)) > 0
    pointed = re.findall(r'(?:href="|url\()#([^")]+)', page)
    assert set(pointed) == set(ids)
    assert "style" not in [tag for tag, _ in elements]
    images = [attrs for tag, attrs in elements if tag == "svg"]
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in images)


def test_svg_holds_text_as_text_and_follows_the_colour_of_the_page(means):
    picture = plots.svg(plots.intervals(means))
    shown = [
        text.text
        for text in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert {"faithfulness", "weighted score"} <= set(shown)
    assert rendering.INK not in picture
    assert "#000000" not in picture
    assert "currentColor" in picture


def test_equal_figures_give_equal_bytes(means, scores):
    once, again = ([plots.svg(ax) for ax in charts(means, scores)] for _ in range(2))
    assert once == again


def test_svg_closes_the_figure_for_pyplot(means):
    ax = plots.radar(means)
    plots.svg(ax)
    assert plt.get_fignums() == []
    assert plots.svg(ax).startswith("<svg")


def test_svg_says_what_all_its_axes_show(means):
    _, places = plt.subplots(1, 2)
    plots.intervals(means, ax=places[0], finding="One")
    plots.radar(means, ax=places[1], finding="Two")
    label = ElementTree.fromstring(plots.svg(places[0])).get("aria-label")
    assert label is not None
    assert label.index("One. faithfulness") < label.index("Two. faithfulness")


# Files


def test_files_are_svg_with_text_or_png_on_white(tmp_path, means):
    ax = plots.intervals(means)
    written = plots.save(ax, tmp_path / "new" / "means.svg")
    shown = [
        node.text for node in ElementTree.parse(written).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert "faithfulness" in shown
    picture = plt.imread(plots.save(ax, str(tmp_path / "means.PNG")))
    assert picture[0, 0].tolist() == [1, 1, 1, 1]
    with pytest.raises(RagnbError, match=r"means.jpg.*\.svg, \.png"):
        plots.save(ax, tmp_path / "means.jpg")


# What stands out


def test_the_title_names_the_ends_as_seen_from_the_good_end():
    names = ["faithfulness", "noise_sensitivity", "context_recall"]
    means = pd.DataFrame({"metric": names, "value": [0.6, 0.7, 0.9]})
    title = markup.one_line(plots.radar(means).get_title(loc="left"))
    assert (
        title == "Weakest: noise_sensitivity ↓ 0.700 [—, —]; strongest: context_recall 0.900 [—, —]"
    )


def test_several_systems_are_led_by_the_ends_of_their_totals(by_system):
    totals = by_system[by_system.metric == "weighted_score"].sort_values("value")
    title = markup.one_line(plots.intervals(by_system, by="system").get_title(loc="left"))
    assert title.startswith(f"Weighted score {totals.system.iloc[-1]} {totals.value.iloc[-1]:.3f}")


def test_distributions_say_how_many_lie_at_the_bad_end():
    frame = pd.DataFrame({"faithfulness": [0.05, 0.5, 1.0], "noise_sensitivity": [0.95, 1.0, 0.0]})
    seen = plots.alt_text(plots.distribution(frame))
    assert seen.startswith(
        "noise_sensitivity ↓: 2 of 3 scores are in the worst tenth of the range. "
    )
    assert "faithfulness n = 3, median 0.500, middle half 0.275 to 0.750; " in seen
    fine = plots.alt_text(plots.distribution(pd.DataFrame({"faithfulness": [0.5, 0.1]})))
    assert fine.startswith("No scores are in the worst tenth of a range. ")
    for none in ([np.nan], []):
        bare = plots.distribution(pd.DataFrame({"faithfulness": none}, dtype=float))
        assert plots.alt_text(bare).startswith("No scores to draw. faithfulness n = 0")


@pytest.mark.parametrize("plot", [plots.radar, plots.intervals])
def test_weights_are_no_metrics_of_a_chart(plot):
    means = rn.weighted_means(
        pd.DataFrame({"faithfulness": [0.1, 0.5], "context_recall": [0.5, 0.6]})
    )
    with pytest.raises(RagnbError, match=r"is a mapping.*metric_weights="):
        plot(means, metrics={"faithfulness": 9})


@pytest.mark.parametrize("plot", [plots.distribution, plots.bias_by])
def test_charts_take_one_table_by_position(plot):
    with pytest.raises(TypeError, match="takes 1 positional argument"):
        plot(None, None)


@pytest.mark.parametrize(("lang", "word"), [("en", "(Holm)"), ("zh", "Holm")])
def test_a_difference_that_only_holm_leaves_open_says_so(lang, word):
    rows = {"candidate": "new", "baseline": "old", "metric": ["a", "b", "c"], "primary": False}
    rows |= {"outcome": ["undecided", "undecided", "better"], "value": [0.1, 0.1, 0.2]}
    rows |= {"low": [0.02, -0.02, 0.1], "high": [0.18, 0.22, 0.3], "margin": 0.05}
    table = pd.DataFrame(rows | {"range_low": 0.0, "range_high": 1.0})
    said = words(plots.differences(table, lang=lang))
    assert sum(word in one for one in said) == 1


def extent(artist) -> tuple[float, float, float]:
    """Left and right end of what is drawn, and the width of the figure, in pixels."""
    figure = artist.get_figure()
    figure.draw_without_rendering()
    box = artist.get_window_extent()
    return box.x0, box.x1, figure.bbox.width


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("names", [["a", "b"], ["bm25_baseline", "dense_rerank_large", "混合检索"]])
def test_caption_of_win_rates_is_whole(names, lang):
    rows = [
        {"sample_id": f"s{n}", "system": name, "faithfulness": (n * (k + 2)) % 7 / 7}
        for k, name in enumerate(names)
        for n in range(20)
    ]
    ax = plots.win_rates(rn.standings(pd.DataFrame(rows)), lang=lang)
    low, high, width = extent(ax.xaxis.label)
    assert 0 <= low < high <= width
    assert ax.xaxis.label.get_window_extent().y0 >= 0
    plt.close(ax.figure)


def test_a_system_has_one_colour_in_every_chart():
    """Whatever the order in which a frame names the systems, and whichever of them it leaves out."""
    order = ["a", "b", "c"]
    draw = np.random.default_rng(2)
    rows = [
        {"sample_id": f"s{n}", "system": name, "doc_name": f"{n % 3}.pdf"}
        | {
            metric: draw.uniform()
            for metric in ("faithfulness", "context_recall", "answer_relevancy")
        }
        for name in reversed(order)
        for n in range(12)
    ]
    scores = pd.DataFrame(rows)
    means = rn.weighted_means(scores, by="system")
    two = scores[scores["system"] != "a"]

    def colours(ax) -> dict[str, str]:
        handles, labels = ax.get_legend_handles_labels()
        found = {
            label.split(",")[0]: to_hex(
                handle.get_color() if isinstance(handle, Line2D) else handle.get_facecolor()[0][:3]
            )
            for handle, label in zip(handles, labels, strict=True)
        }
        plt.close(ax.figure)
        return {name: found[name].lower() for name in order if name in found}

    whole = {"a": "#0072b2", "b": "#d55e00", "c": "#009e73"}
    charts = {
        "intervals": plots.intervals(means, by="system", systems=order),
        "radar": plots.radar(means, by="system", systems=order),
    }
    for name, ax in charts.items():
        assert colours(ax) == whole, name
    part = {name: whole[name] for name in "bc"}
    some = means[means["system"] != "a"]
    assert colours(plots.intervals(some, by="system", systems=order)) == part
    assert colours(plots.radar(some, by="system", systems=order)) == part
    found = rn.weight_map(two, candidate="c", baseline="b")
    assert colours(plots.weight_map(found, systems=order)) == part
    ax = plots.distribution(two, metrics="faithfulness", by="system", systems=order)
    dots = [to_hex(one.get_facecolor()[0][:3]) for one in ax.collections[:2]]
    plt.close(ax.figure)
    assert dots == [whole["c"], whole["b"]]
