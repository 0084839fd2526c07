"""The weight editor and the rating sheet as plain models: what they hold, show, save and lose nothing of."""

from __future__ import annotations

import html
import json
import math
import re
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

import ragnb as rn
from ragnb.errors import RagnbError
from ragnb.texts import load
from ragnb.widgets import RatingSheet, WeightEditor
from ragnb.widgets.model import DOC, METRIC, normalised
from ragnb.widgets.rating import Rating
from ragnb.widgets.view import EditorView, _total

ROOT = Path(__file__).resolve().parents[1]
DOCS = ["差旅报销制度.pdf", "118_台式显微CT操作手册.pdf", "warranty.pdf", "Handbook Ａ.pdf"]
YAML = """\
scores: s.csv  # ours
metric_weights:
  faithfulness: 0.5
doc_weights: {warranty.pdf: 2.0}
gates:
- {name: total, metric: weighted_score, op: ">=", threshold: 0.5}
"""


def scores(systems: int = 1, rows: int = 80) -> pd.DataFrame:
    random = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "faithfulness": random.beta(5, 2, rows),
            "context_recall": random.beta(2, 4, rows),
            "noise_sensitivity": random.beta(2, 6, rows),
            "doc_name": np.array(DOCS)[random.integers(0, len(DOCS), rows)],
            "system": [f"s{i % systems}" for i in range(rows)],
        }
    )
    frame.loc[frame.index % 7 == 0, "context_recall"] = np.nan
    return frame.drop(columns=["system"] if systems == 1 else [])


@pytest.fixture
def path(tmp_path):
    scores().to_csv(tmp_path / "s.csv", index=False)
    (tmp_path / "s.yaml").write_text(YAML, encoding="utf-8")
    return tmp_path / "s.yaml"


def same(left: pd.DataFrame, right: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(left, right, rtol=1e-12)


# Weights


@pytest.mark.parametrize("source", ["file", "frame", "moments", "scenario"])
def test_numbers_are_those_of_weighted_means_whatever_the_source(path, source):
    made = {
        "file": path,
        "frame": scores(),
        "moments": rn.moments(scores()),
        "scenario": rn.load_scenario(path),
    }
    editor = WeightEditor(made[source])
    editor.model.set(METRIC, "context_recall", 0.25)
    editor.model.add(DOCS[0])
    editor.model.set(DOC, DOCS[0], "3")
    expected = rn.weighted_means(
        scores(), metric_weights=editor.metric_weights, doc_weights=editor.doc_weights
    )
    same(editor.means, expected)
    assert editor.metric_weights["context_recall"] == 0.25
    assert editor.doc_weights[DOCS[0]] == 3


def test_grouped_moments_give_the_pooled_means_and_the_systems():
    frame = scores(systems=3)
    for source in (frame, rn.moments(frame, by="system")):
        model = WeightEditor(source).model
        model.set(METRIC, "faithfulness", 5)
        same(model.now.means, rn.weighted_means(frame, metric_weights=model.metric_weights))
        same(
            model.now.systems,
            rn.weighted_means(frame, metric_weights=model.metric_weights, by="system"),
        )


def test_systems_are_ranked_by_their_score_and_one_without_any_comes_last():
    frame = scores(systems=3)
    frame.loc[frame["system"] == "s1", ["faithfulness", "context_recall", "noise_sensitivity"]] = (
        np.nan
    )
    now = WeightEditor(frame).model.now
    totals = now.systems[now.systems["metric"] == "weighted_score"].set_index("system")["value"]
    assert totals.isna().tolist() == [False, True, False]
    assert now.ranking == totals.sort_values(ascending=False).index.tolist() != sorted(now.ranking)


def test_file_weights_are_the_start_and_blank_goes_back_to_them(path):
    model = WeightEditor(path).model
    assert model.metric_weights == {
        "faithfulness": 0.5,
        "context_recall": 1.0,
        "noise_sensitivity": 1.0,
    }
    assert model.doc_weights == {"warranty.pdf": 2.0}
    for blank in ("", "  ", None):
        model.set(METRIC, "faithfulness", 0.9)
        model.set(METRIC, "faithfulness", blank)
        assert model.metric_weights["faithfulness"] == 0.5
    assert not model.is_changed()


@pytest.mark.parametrize("entry", ["abc", "nan", "1e999", "1_0", "-0.1"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_entry_that_is_no_weight_is_explained_and_the_last_good_one_counts(path, entry, lang):
    wrong = "negative" if entry == "-0.1" else "not_number"
    model = WeightEditor(path, lang=lang).model
    model.set(METRIC, "faithfulness", "０．７")
    before = model.now
    model.set(METRIC, "faithfulness", entry)
    assert model.problems == {(METRIC, "faithfulness"): load(lang)(f"editor.{wrong}", entry=entry)}
    assert model.now is before
    assert model.metric_weights["faithfulness"] == 0.7
    with pytest.raises(RagnbError):
        model.plan()
    model.set(METRIC, "faithfulness", "0.8")
    assert model.problems == {}


def test_weights_that_are_all_0_keep_the_last_numbers_and_say_so(path):
    model = WeightEditor(path).model
    for name in model.metrics:
        before = model.now
        model.set(METRIC, name, 0)
    assert model.now is before
    assert list(model.problems) == [(METRIC, "")]
    for name in model.documents:
        assert (DOC, "") not in model.problems
        model.add(name)
        model.set(DOC, name, 0)
    assert set(model.problems) == {(METRIC, ""), (DOC, "")}
    model.reset()
    assert model.problems == {}
    assert math.isnan(WeightEditor(path).model.share("faithfulness")) is False


@given(
    st.dictionaries(st.text("abcdefgh", min_size=1), st.floats(0, 1e300), min_size=1, max_size=12)
)
def test_normalised_weights_add_up_to_1_on_the_grid_and_keep_their_order(weights):
    if not any(weights.values()):
        return
    made = normalised(weights)
    units = {name: round(value * 100) for name, value in made.items()}
    assert sum(units.values()) == 100
    assert made == {name: count / 100 for name, count in units.items()}
    total = math.fsum(w / max(weights.values()) for w in weights.values())
    for name, weight in weights.items():
        assert (made[name] > 0) == (weight > 0)
        others = [made[other] for other in weights if weights[other] > weight]
        assert all(made[name] <= other for other in others)
        if len(weights) <= 4:
            assert abs(made[name] - weight / max(weights.values()) / total) < 0.031


def test_buttons_and_rows_change_what_they_name_and_reset_goes_back_to_the_file(path):
    model = WeightEditor(path).model
    start = model.metric_weights, model.doc_weights
    model.set(METRIC, "context_recall", 0.3)
    model.remove("warranty.pdf")
    assert (model.metric_weights["context_recall"], model.doc_weights) == (0.3, {})
    model.equal()
    assert set(model.metric_weights.values()) == {1.0}
    model.reset()
    assert (model.metric_weights, model.doc_weights) == start
    same(model.now.means, model.base.means)


def test_documents_are_found_by_any_part_in_any_width_and_case():
    model = WeightEditor(scores()).model
    assert model.find("ct") == [DOCS[1]]
    assert model.find("报销 pdf") == [DOCS[0]]
    assert model.find("handbook a") == [DOCS[3]]
    assert len(model.find("")) == 4


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_document_is_added_by_a_part_that_names_one_alone(lang):
    model, say = WeightEditor(scores(), lang=lang).model, load(lang)
    assert model.add("pdf") == say("editor.several", n=4, text="pdf")
    assert model.add(" ") == ""
    assert model.doc_weights == {}
    assert model.add("ct") == ""
    assert model.doc_weights == {DOCS[1]: 1.0}
    assert model.find("ct") == []
    for text in ("CT", DOCS[1]):
        assert model.add(text) == say("editor.has_row", name=DOCS[1])
    assert model.add("zzz") == say("editor.no_document", text="zzz")
    assert model.doc_weights == {DOCS[1]: 1.0}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("n_rows", [0, len(DOCS) - 1, len(DOCS)])
@pytest.mark.parametrize("text", ["", " ", "\u3000\n"])
def test_blank_text_adds_no_document_and_says_nothing(text, n_rows, lang):
    """It is a part of every name, so where one document alone has no row it named that one."""
    view = EditorView(WeightEditor(scores(), lang=lang).model)
    for name in DOCS[:n_rows]:
        assert view.model.add(name) == ""
    before = view.model.entries()
    assert view.model.add(text) == ""
    view._add(text)  # as Enter in the field does
    assert view.model.entries() == before
    assert view.model.doc_weights == dict.fromkeys(DOCS[:n_rows], 1.0)


def test_document_of_the_file_that_does_not_occur_warns_nobody_and_changes_nothing(path):
    path.write_text(
        YAML.replace("{warranty.pdf: 2.0}", "{warranty.pdf: 2.0, gone.pdf: 9.0}"), encoding="utf-8"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = WeightEditor(path).model
    assert model.doc_weights == {"warranty.pdf": 2.0, "gone.pdf": 9.0}
    weights = {"metric_weights": {"faithfulness": 0.5}, "doc_weights": {"warranty.pdf": 2}}
    same(model.now.means, rn.weighted_means(scores(), **weights))


def test_gate_that_the_weights_flip_is_shown_with_what_it_was(path):
    path.write_text(YAML.replace("threshold: 0.5", "threshold: 0.4"), encoding="utf-8")
    editor = WeightEditor(path)
    before = editor.model.now.gates["outcome"].tolist()
    editor.model.set(METRIC, "context_recall", 50)
    assert editor.model.now.gates["outcome"].tolist() != before
    assert load("en")("editor.was", what="") in editor._repr_html_()
    assert load("en")("editor.was", what="") not in WeightEditor(path)._repr_html_()


def test_saving_changes_the_values_alone_and_a_document_row_taken_away_goes(path):
    editor = WeightEditor(path)
    editor.model.set(METRIC, "faithfulness", 0.75)
    editor.model.remove("warranty.pdf")
    editor.model.add(DOCS[0])
    editor.model.set(DOC, DOCS[0], 3)
    patch = editor.model.plan()
    assert "+  faithfulness: 0.75" in patch.diff
    changed = [METRIC + ".faithfulness", "doc_weights.warranty.pdf", f"doc_weights.{DOCS[0]}"]
    assert editor.save() == changed
    expected = YAML.replace("0.5\ndoc", "0.75\ndoc").replace("warranty.pdf: 2.0", f"{DOCS[0]}: 3.0")
    assert path.read_text(encoding="utf-8") == expected
    assert not editor.model.is_changed()
    assert editor.model.plan().changed == []
    assert WeightEditor(path).metric_weights == editor.metric_weights


def test_normalised_weights_are_saved_as_they_are_shown(path):
    editor = WeightEditor(path)
    editor.model.normalise()
    editor.save()
    assert rn.load_scenario(path).metric_weights == {
        "faithfulness": 0.2,
        "context_recall": 0.4,
        "noise_sensitivity": 0.4,
    }


def test_concurrent_edit_is_refused_and_reading_again_keeps_both(path):
    editor = WeightEditor(path)
    editor.model.set(METRIC, "faithfulness", 0.75)
    path.write_text(YAML.replace("threshold: 0.5", "threshold: 0.6"), encoding="utf-8")
    with pytest.raises(RagnbError, match="changed since it was read"):
        editor.save()
    editor.model.reload()
    assert editor.metric_weights["faithfulness"] == 0.75
    editor.save()
    assert "0.75" in path.read_text(encoding="utf-8")
    assert "threshold: 0.6" in path.read_text(encoding="utf-8")


def test_save_as_goes_on_with_the_new_file(path):
    editor = WeightEditor(path)
    editor.model.set(METRIC, "faithfulness", 0.75)
    editor.save(path.parent / "mine.yaml")
    assert path.read_text(encoding="utf-8") == YAML
    assert editor.model.scenario.path.name == "mine.yaml"
    assert rn.load_scenario(path.parent / "mine.yaml").metric_weights["faithfulness"] == 0.75


def test_weights_without_a_file_have_nowhere_to_go():
    with pytest.raises(RagnbError, match="no scenario file"):
        WeightEditor(scores()).save()
    with pytest.raises(RagnbError, match="no scenario"):
        WeightEditor(ROOT / "tests")


# What it looks like


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_static_picture_holds_the_numbers_and_escapes_names(lang):
    frame = scores(systems=2).replace("warranty.pdf", "<img src=x onerror=alert(1)>")
    editor = WeightEditor(frame, lang=lang, doc_weights={"<img src=x onerror=alert(1)>": 2.0})
    html = editor._repr_html_()
    totals = editor.means[editor.means["metric"] == "weighted_score"]
    assert len(totals) == 2
    for total in totals.to_dict("records"):
        assert f">{total['value']:.3f}" in html
        assert f"{total['low']:.3f}–{total['high']:.3f}" in html
    assert "<img" not in html
    assert 'role="img"' in html
    assert load(lang)("editor.static") in html


def test_widgets_follow_the_model_and_the_model_the_widgets(path):
    editor = WeightEditor(path)
    assert editor.view is editor.view
    view = editor._views[str(path)]
    row, total = view._rows[METRIC, "faithfulness"], list(view.first.values())[1]
    row.slider.value = 0.3
    assert editor.metric_weights["faithfulness"] == 0.3
    assert row.text.value == "0.3"
    row.text.value = "7"
    assert (row.slider.value, row.slider.max) == (7, 7)
    shown = total.widget.value
    row.text.value = "oops"
    assert load("en")("editor.not_number", entry="oops") in row.said.widget.value
    assert total.widget.value == shown
    row.text.value = ""
    assert (row.text.value, row.slider.value, row.said.widget.value) == ("0.5", 0.5, "")
    view.pick.value = "pdf"
    assert sorted(view.hits.options) == sorted({*DOCS} - {"warranty.pdf"})
    view.pick.value = "报销"
    assert (view.hits.options, view.hits.value, len(view.boxes[DOC].children)) == (
        (DOCS[0],),
        None,
        1,
    )
    view.hits.value = DOCS[0]
    assert (view.hits.options, view.pick.value, len(view.boxes[DOC].children)) == ((), "", 2)
    view.pick.value = "118"
    view.pick._handle_custom_msg({"event": "submit"}, [])
    assert len(view.boxes[DOC].children) == 3
    view._rows[DOC, DOCS[0]].slider.value = 4
    assert editor.doc_weights[DOCS[0]] == 4


def test_echo_of_a_slider_that_snaps_is_no_change(path):
    path.write_text(YAML.replace("faithfulness: 0.5", "faithfulness: 0.125"), encoding="utf-8")
    editor = WeightEditor(path)
    _ = editor.view
    slider = editor._views[str(path)]._rows[METRIC, "faithfulness"].slider
    slider.value = 0.13
    assert editor.metric_weights["faithfulness"] == 0.125
    slider.value = 0.14
    assert editor.metric_weights["faithfulness"] == 0.14


def test_another_scenario_is_chosen_and_what_was_changed_waits(path):
    other = path.parent / "t.yaml"
    other.write_text(YAML.replace("faithfulness: 0.5", "faithfulness: 0.9"), encoding="utf-8")
    (path.parent / "u.yaml").write_text("scores: nowhere.csv\n", encoding="utf-8")
    editor = WeightEditor(path.parent)
    _ = editor.view
    editor.model.set(METRIC, "faithfulness", 0.1)
    editor._chooser.value = str(other)
    assert editor.metric_weights["faithfulness"] == 0.9
    editor._chooser.value = str(path.parent / "u.yaml")
    assert "nowhere.csv" in editor._problem.widget.value
    editor._chooser.value = str(path)
    assert editor.metric_weights["faithfulness"] == 0.1


# Where the leader changes


def versions() -> pd.DataFrame:
    """Return 60 questions of two systems: one is more faithful, the other finds more; some scores are missing."""
    random = np.random.default_rng(8)
    shifts = {"new": (0.2, -0.12, 0.05), "old": (0.0, 0.0, 0.0)}
    tables = [
        pd.DataFrame(
            {
                "sample_id": [f"q{i}" for i in range(60)],
                "doc_name": DOCS * 15,
                "system": name,
                "faithfulness": random.beta(5, 5, 60) * 0.5 + 0.2 + shift[0],
                "context_recall": random.beta(5, 5, 60) * 0.5 + 0.3 + shift[1],
                "noise_sensitivity": random.beta(5, 5, 60) * 0.5 + shift[2],
            }
        )
        for name, shift in shifts.items()
    ]
    frame = pd.concat(tables, ignore_index=True)
    frame.loc[frame.index % 7 == 0, "context_recall"] = np.nan
    frame.loc[frame.index % 11 == 0, "noise_sensitivity"] = np.nan
    return frame


def at_weight(frame: pd.DataFrame, model, name: str, weight: float) -> float:
    """Return by how much the new version leads at the weights of a model, but for one."""
    how = {
        "metric_weights": model.metric_weights | {name: weight},
        "doc_weights": model.doc_weights,
    }
    return float(rn.compare(frame, baseline="old", **how)["value"].iloc[-1])


@pytest.mark.parametrize(
    "moved", [{}, {"context_recall": 0.3}, {"faithfulness": 0.2, "noise_sensitivity": 2.5}]
)
def test_marks_are_where_compare_changes_its_sign(moved):
    frame = versions()
    model = WeightEditor(frame, doc_weights={DOCS[1]: 3.0}).model
    model.add(DOCS[0])
    model.set(DOC, DOCS[0], 0.25)
    for name, weight in moved.items():
        model.set(METRIC, name, weight)
    now = at_weight(frame, model, "faithfulness", model.weight(METRIC, "faithfulness"))
    assert model.now.found.order == (("new", "old") if now > 0 else ("old", "new"))
    assert model.now.flips
    for name in model.metrics:
        own, of = model.weight(METRIC, name), partial(at_weight, frame, model, name)
        turned = [
            weight for weight in [*np.linspace(0, 4, 17), 20.0, 400.0] if of(weight) * now < 0
        ]
        assert (name in model.now.flips) == bool(turned), name
        if turned:
            found = brentq(
                of, own, min(turned, key=lambda weight, own=own: abs(weight - own)), xtol=1e-10
            )
            assert model.now.flips[name] == pytest.approx(found, abs=1e-6)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_mark_stands_on_its_slider_and_says_who_leads_beyond(lang):
    editor = WeightEditor(versions(), lang=lang)
    _ = editor.view
    row = editor._views["None"]._rows[METRIC, "faithfulness"]
    at = editor.model.now.flips["faithfulness"]
    assert at < 1
    said = load(lang)("editor.flip_below", name="old", weight=f"{at:.3g}")
    assert said in row.said.widget.value
    assert f"left: {100 * at / row.slider.max:.3f}%" in row.said.widget.value
    assert f'id="{row.mark}"' in row.said.widget.value
    assert f".{row.mark} .noUi-base" in row.said.widget.value
    assert row.mark in row.box._dom_classes
    assert said in editor._repr_html_()
    row.slider.value = at / 2
    assert load(lang)("editor.flip_above", name="new", weight=f"{at:.3g}") in row.said.widget.value
    editor.model.set(METRIC, "context_recall", 9)  # beyond the slider's end it is only said
    beyond = editor.model.now.flips["faithfulness"]
    assert beyond > row.slider.max
    assert f"{beyond:.3g}" in row.said.widget.value
    assert "left:" not in row.said.widget.value


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_where_no_single_weight_decides_it_is_said_once(lang):
    frame = versions()
    frame.loc[frame["system"] == "new", "context_recall"] += 0.3
    frame.loc[frame["system"] == "new", "noise_sensitivity"] -= 0.1
    editor = WeightEditor(frame, lang=lang)
    _ = editor.view
    assert editor.model.now.flips == {}
    html = editor._repr_html_()
    assert html.count(load(lang)("editor.no_flip")) == 1
    row = rn.compare(frame, baseline="old").iloc[-1]
    ends = f"{row['low']:.3f}–{row['high']:.3f}"
    assert (
        load(lang)("editor.leads", name="new", other="old", value=f"{row['value']:.3f}", ends=ends)
        in html
    )
    assert {row.said.widget.value for row in editor._views["None"]._rows.values()} == {""}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_lead_is_that_of_compare_with_the_ratings_of_people(tmp_path, lang):
    frame = versions().assign(doc_name=lambda f: [f"d{k % 60 // 3}" for k in range(len(f))])
    of_new = frame["system"] == "new"
    scores = {
        "faithfulness": frame["faithfulness"] - 0.25 * of_new
    }  # people find the new one worse
    rated = pd.concat(
        frame[["sample_id", "system"]]
        .rename(columns={"sample_id": "item_id"})
        .assign(dimension=name, human=scores.get(name, frame[name]))
        for name in ("faithfulness", "context_recall", "noise_sensitivity")
    ).dropna()
    path = tmp_path / "rated.csv"
    say = load(lang)
    for many in (True, False):
        rated[rated["item_id"].isin([f"q{k}" for k in range(60 if many else 9)])].to_csv(path)
        editor = WeightEditor(frame, lang=lang, ratings=str(path))
        for weight in (None, 3.0):
            editor.model.set(METRIC, "faithfulness", weight)
            how = {"metric_weights": editor.model.metric_weights, "ratings": path}
            row = rn.compare(frame, baseline="old", **how).iloc[-1]
            assert row["people"] == ("decided" if many else "unchecked")
            assert row["value"] < 0 or not many
            html = editor._repr_html_()
            ends = f"{-row['high']:.3f}–{-row['low']:.3f}".replace("-", "−")
            words = {"name": "old", "other": "new", "value": f"{-row['value']:.3f}", "ends": ends}
            assert (say("editor.leads_by_people", **words) in html) is many
            assert (say("editor.judge_alone") in html) is not many


def test_a_baseline_of_its_own_is_the_other_system(tmp_path):
    frame = versions()
    for name in ("new", "old"):
        one = frame[frame["system"] == name].drop(columns="system")
        one.to_csv(tmp_path / f"{name}.csv", index=False)
    editor = WeightEditor(tmp_path / "new.csv", baseline=str(tmp_path / "old.csv"))
    assert editor.model.now.flips == pytest.approx(WeightEditor(frame).model.now.flips)
    with pytest.raises(RagnbError, match="baseline"):
        WeightEditor(frame, baseline="older")
    (tmp_path / "s.yaml").write_text("scores: new.csv\nbaseline: gone.csv\n", encoding="utf-8")
    assert WeightEditor(tmp_path / "s.yaml").model.now.found is None


def test_nothing_is_marked_without_two_systems_that_can_be_compared():
    frame = versions().assign(tone=1.0)
    third = frame[frame["system"] == "old"].assign(system="third")
    far = [rn.Metric("faithfulness"), rn.Metric("tone", 0, 10)]
    sources = [
        (frame[frame["system"] == "new"], {}),
        (pd.concat([frame, third]), {}),
        (rn.moments(frame, by="system"), {}),
        (frame, {"metrics": far}),
        (frame[["sample_id", "system", "doc_name", "faithfulness"]], {}),
    ]
    for source, how in sources:
        editor = WeightEditor(source, **how)
        assert (editor.model.now.found, dict(editor.model.now.flips)) == (None, {})
        assert load("en")("editor.no_flip") not in editor._repr_html_()
    named = WeightEditor(pd.concat([frame, third]), baseline="old", candidate="new")
    assert named.model.now.flips == WeightEditor(frame).model.now.flips


# Ratings

ITEMS = [
    {
        "sample_id": f"q{i}",
        "question": f"问题 {i}?",
        "answer": f"answer {i}",
        "retrieved_contexts": ["<b>one</b>"],
        "doc_name": "甲.pdf",
        "system": system,
        "faithfulness": 0.123,
    }
    for i in range(4)
    for system in ("weak", "strong")
]
TWO = ["accuracy", "clarity"]


def rating(folder: Path, rater: str = "A", **more) -> Rating:
    return Rating(ITEMS, folder / "marks.jsonl", rater=rater, dimensions=TWO, **more)


def press(sheet: Rating, keys: str) -> None:
    for key in keys:
        sheet.press(key)


def lines(folder: Path) -> list[dict]:
    return [
        json.loads(line)
        for line in (folder / "marks.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def read(folder: Path) -> pd.DataFrame:
    return rn.read_ratings(folder / "marks.jsonl")


def test_keys_mark_each_dimension_and_the_last_one_saves(tmp_path):
    sheet = rating(tmp_path)
    first = sheet.item
    sheet.press("8")
    assert not (tmp_path / "marks.jsonl").exists()
    sheet.press("０")
    common = {"item_id": first.key[0], "rater": "A", "system": first.key[1], "cluster": "甲.pdf"}
    assert lines(tmp_path) == [
        common | {"dimension": "accuracy", "score": 8},
        common | {"dimension": "clarity", "score": 10},
    ]
    assert sheet.item is not first
    sheet.press("x")
    assert sheet.problem == load("en")("rating.not_a_key", entry="x", keys="1 – 9, 0 = 10")
    assert sheet.scores == {}


def test_marks_go_straight_into_read_ratings(tmp_path):
    for rater, key in (("A", "7"), ("B", "9")):
        sheet = rating(tmp_path, rater)
        while sheet.item:
            sheet.press(key)
    found = read(tmp_path)
    assert len(found) == len(ITEMS) * len(TWO) * 2
    assert found.groupby("rater")["human"].unique().map(list).to_dict() == {"A": [7], "B": [9]}
    assert set(found["cluster"]) == {"甲.pdf"}
    judged = pd.DataFrame(ITEMS).rename(columns={"sample_id": "item_id"})[["item_id", "system"]]
    judged = pd.concat([judged.assign(dimension=name, judge=8.0) for name in TWO])
    assert (rn.read_ratings(tmp_path / "marks.jsonl", judged=judged)["judge"] == 8).all()


def test_sheet_goes_on_where_it_was_left_and_skipped_items_come_again(tmp_path):
    sheet = rating(tmp_path)
    order = [item.key for item in sheet.items]
    sheet.skip()
    press(sheet, "56")
    again = rating(tmp_path)
    assert [item.key for item in again.items] == order
    assert list(again.done) == [order[1]]
    assert again.item.key == order[0]
    while again.item:
        again.press("4")
    assert len(again.done) == len(ITEMS)
    assert again.skip() is None


def test_order_is_seeded_and_differs_from_rater_to_rater(tmp_path):
    orders = [
        [item.key for item in rating(tmp_path, rater, seed=seed).items]
        for rater, seed in (("A", 0), ("A", 0), ("A", 1), ("B", 0))
    ]
    assert orders[0] == orders[1]
    assert len({str(order) for order in orders}) == 3
    assert len({str(sorted(order)) for order in orders}) == 1


def test_mark_given_anew_replaces_the_old_one_and_nobody_elses(tmp_path):
    press(rating(tmp_path, "B"), "33")
    sheet = rating(tmp_path)
    press(sheet, "88")
    sheet.back()
    assert sheet.scores == {"accuracy": 8, "clarity": 8}
    sheet.score("accuracy", 2)
    assert sheet.scores["accuracy"] == 2
    found = read(tmp_path)
    assert len(found) == 4
    assert sorted(found.loc[found["rater"] == "A", "human"]) == [2, 8]
    assert set(found.loc[found["rater"] == "B", "human"]) == {3}


@pytest.mark.parametrize("cut", range(1, 200, 7))
def test_file_cut_off_anywhere_loses_no_whole_item(tmp_path, cut):
    press(rating(tmp_path), "123456")
    file = tmp_path / "marks.jsonl"
    raw = file.read_bytes()
    item = raw.splitlines(keepends=True)
    file.write_bytes(raw[:-cut])
    whole = sum(len(raw) - cut >= sum(map(len, item[: 2 * n])) for n in (1, 2, 3))
    again = rating(tmp_path)
    assert len(again.done) == whole
    while again.item:
        again.press("7")
    assert len(lines(tmp_path)) == len(ITEMS) * 2
    assert [row["score"] for row in lines(tmp_path)[: 2 * whole]] == [1, 2, 3, 4, 5, 6][: 2 * whole]


def test_foreign_file_and_items_that_cannot_be_rated_are_refused(tmp_path):
    (tmp_path / "marks.jsonl").write_text('{"a": 1}\n', encoding="utf-8")
    with pytest.raises(RagnbError, match=r"line 1: this is no rating"):
        rating(tmp_path)
    file = tmp_path / "new.jsonl"
    how = {"rater": "A", "dimensions": TWO}
    with pytest.raises(RagnbError, match="no item has an answer"):
        Rating([{"sample_id": "a", "question": "?", "answer": ""}], file, **how)
    with pytest.raises(RagnbError, match="two items have one id"):
        Rating([ITEMS[0], ITEMS[0]], file, **how)
    with pytest.raises(RagnbError, match="name who rates"):
        Rating(ITEMS, file, rater=" ", dimensions=TWO)


def test_sheet_shows_neither_judge_nor_system_and_escapes_the_answers(tmp_path):
    sheet = RatingSheet(ITEMS, tmp_path / "marks.jsonl", rater="A", lang="zh")
    _ = sheet.view
    shown = sheet._item.widget.value
    assert not [word for word in ("0.123", "weak", "strong") if word in shown]
    assert "&lt;b&gt;one" in shown
    assert list(sheet._scores) == ["accuracy", "completeness", "clarity"]


def test_fast_keys_count_once_each_also_past_a_clearing(tmp_path):
    sheet = RatingSheet(ITEMS, tmp_path / "marks.jsonl", rater="A", dimensions=TWO)
    _ = sheet.view
    # The second two were typed before the field was cleared.
    for entries, saved in (
        (["8", "87"], [8, 7]),
        (["879", "8796"], [8, 7, 9, 6]),
        (["12"], [8, 7, 9, 6, 1, 2]),
    ):
        for entry in entries:
            sheet._press(entry)
        assert [row["score"] for row in lines(tmp_path)] == saved


def test_a_comment_is_saved_with_the_ratings_of_its_answer_and_read_back(tmp_path):
    sheet = rating(tmp_path)
    first = sheet.item
    sheet.note("  wrong § cited ")
    assert not (tmp_path / "marks.jsonl").exists()
    press(sheet, "89")
    assert sheet.comment == ""
    assert [row["comment"] for row in lines(tmp_path)] == ["wrong § cited"] * 2
    assert set(read(tmp_path)["comment"]) == {"wrong § cited"}
    press(sheet, "12")  # without a comment
    again = rating(tmp_path)
    again.back()
    again.back()
    assert again.item.key in {first.key, sheet.items[1].key}
    assert again.comments == {first.key: "wrong § cited"}
    while again.item.key != first.key:
        again.back()
    again.note("")
    assert all("comment" not in row for row in lines(tmp_path))
    again.note("better")
    assert read(tmp_path)["comment"].dropna().tolist() == ["better"] * 2


def test_a_skipped_answer_keeps_its_comment_until_it_is_rated(tmp_path):
    sheet = rating(tmp_path)
    first = sheet.item
    sheet.note("ask the author")
    sheet.skip()
    assert sheet.comment == ""
    while sheet.item.key != first.key:
        sheet.press("5")
    assert sheet.comment == "ask the author"


def test_a_file_without_comments_is_taken_up(tmp_path):
    """Ratings that were given before there were comments."""
    row = {"item_id": "q1", "rater": "A", "score": 7, "system": "weak", "cluster": "甲.pdf"}
    text = "".join(json.dumps({**row, "dimension": name}) + "\n" for name in TWO)
    (tmp_path / "marks.jsonl").write_text(text, encoding="utf-8")
    sheet = rating(tmp_path)
    assert sheet.done == {("q1", "weak"): {"accuracy": 7, "clarity": 7}}
    assert (tmp_path / "marks.jsonl").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_rubric_stands_beside_its_scores(tmp_path, lang):
    known = load(lang)("judge.bands.accuracy.10")
    own = rn.Rubric(
        dimensions=[
            {
                "name": "tone",
                "description": "how it greets",
                "bands": {"6-10": "warm", "1-5": "<curt>"},
            }
        ],
        passing={"metric": "tone", "op": ">=", "threshold": 6},
    )
    for dimensions, words in (
        (None, [known]),
        (own, ["how it greets", "6–10", "&lt;curt&gt;"]),
        (["other"], []),
    ):
        file = tmp_path / f"{len(words)}.jsonl"
        sheet = RatingSheet(ITEMS, file, rater="A", dimensions=dimensions, lang=lang)
        _ = sheet.view
        shown = "".join(getattr(child, "value", "") or "" for child in sheet._entry.children)
        assert all(word in shown for word in words)
        assert (known in shown) == (dimensions is None)
    wide = rn.Rubric(high=100, passing={"metric": "accuracy", "op": ">=", "threshold": 70})
    with pytest.raises(RagnbError, match="scale is 1 to 100"):
        RatingSheet(ITEMS, tmp_path / "wide.jsonl", rater="A", dimensions=wide)


def test_what_the_kernel_holds_is_told_to_the_page(tmp_path, path):
    sheet = RatingSheet(ITEMS, tmp_path / "marks.jsonl", rater="A", dimensions=TWO)
    _ = sheet.view
    sheet._press("8")
    assert held(sheet._held) == ["8", "8", "", ""]
    sheet._comment.value = "why"
    assert held(sheet._held) == ["8", "8", "", "why"]
    sheet._press("89")
    assert held(sheet._held) == ["", "", "", ""]
    editor = WeightEditor(path)
    _ = editor.view
    editor.model.set(METRIC, "faithfulness", "0.75")
    assert held(editor._views[str(path)].held)[:4] == ["0.75", 0.75, "1", 1.0]


def held(widget) -> list:
    return json.loads(html.unescape(widget.widget.value.split('data-held="')[1].split('"')[0]))


# What the score may be called


def _score_html(values, threshold, docs=12, n=60):
    rng = np.random.default_rng(1)
    made = pd.DataFrame(
        {
            "sample_id": [f"q{i}" for i in range(n)],
            "doc_name": [f"d{i % docs}" for i in range(n)],
            "faithfulness": np.clip(rng.normal(*values, n), 0, 1),
        }
    )
    gates = [rn.Gate("F", "faithfulness", ">=", threshold)]
    return str(_total(WeightEditor(made, gates=gates).model))


@pytest.mark.parametrize(
    ("values", "threshold", "words", "tone"),
    [
        ((0.85, 0.05), 0.7, "good", "rg-good"),
        ((0.85, 0.05), 0.95, "good, but a gate failed", "rg-watch"),
        ((0.71, 0.15), 0.3, "good, but its interval includes a threshold", "rg-watch"),
        ((0.3, 0.05), 0.1, "bad", "rg-bad"),
    ],
)
def test_nothing_is_good_above_a_failed_gate_or_on_a_threshold(values, threshold, words, tone):
    shown = _score_html(values, threshold)
    marks = re.findall(r'<span class="rg-mark (rg-\w+)">.*?</span> ([^<]*)</span>', shown)
    assert marks[0] == (tone, words)
    assert "Gates:" in shown
    assert len(marks) == 2


def test_nothing_is_written_while_a_field_is_wrong(tmp_path):
    scores = pd.DataFrame({"faithfulness": [0.9, 0.4] * 10, "context_recall": [0.5, 0.9] * 10})
    scores.to_csv(tmp_path / "s.csv", index=False)
    path = tmp_path / "s.yaml"
    path.write_text("scores: s.csv\n", encoding="utf-8")
    editor = WeightEditor(path)
    view = EditorView(editor.model)
    row = next(iter(view._rows.values()))
    row.text.value = "2"
    assert not view.save.disabled
    row.text.value = "abc"
    assert view.save.disabled


def test_no_score_of_several_systems_together_is_shown():
    """0.5 is the mean of both; 0.9 and 0.1 are those of the systems."""
    rows = {"sample_id": [*"abab"], "system": ["x", "x", "y", "y"]}
    scores = pd.DataFrame(rows | {"faithfulness": [0.9, 0.9, 0.1, 0.1]})
    editor = WeightEditor(scores)
    first = str(_total(editor.model))
    assert "0.900" in first
    assert "0.100" in first
    assert "0.500" not in first
    assert "x: weighted_score=0.900, y: weighted_score=0.100" in repr(editor)


def unscored(folder, source):
    """Write a scenario that has not run, of cases or of documents alone."""
    (folder / "docs").mkdir()
    for name in ("a.md", "b.md"):
        (folder / "docs" / name).write_text("# T\n\nThe pump has a warranty.\n", encoding="utf-8")
    rows = [{"question": f"Q{n}?", "doc_name": name} for n, name in enumerate(("a.md", "b.md"))]
    (folder / "cases.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    path = folder / "new.yaml"
    path.write_text(
        f"{source}\nmetrics: [faithfulness, context_recall]\nmetric_weights: {{faithfulness: 2}}\n"
        "gates: [{name: F, metric: faithfulness, op: '>=', threshold: 0.8}]\n",
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize("source", ["cases: cases.jsonl", "documents: docs"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_weights_are_set_before_the_first_run(tmp_path, source, lang):
    editor = WeightEditor(unscored(tmp_path, source), lang=lang)
    assert editor.metric_weights == {"faithfulness": 2.0, "context_recall": 1.0}
    assert editor.model.documents == ("a.md", "b.md")
    html = editor._repr_html_()
    assert load(lang)("editor.unscored") in html
    assert load(lang)("editor.not_yet") in html
    assert "0.800" in html  # the gate's limit
    assert "not scored yet" in repr(editor)
    editor.model.set("metric_weights", "context_recall", 3)
    assert editor.view is not None
    assert editor.save() == ["metric_weights.context_recall"]
    assert rn.load_scenario(tmp_path / "new.yaml").metric_weights["context_recall"] == 3
    assert WeightEditor(tmp_path).metric_weights["context_recall"] == 3  # a folder with it opens


def test_without_named_metrics_those_that_will_be_computed_have_a_row(tmp_path):
    path = unscored(tmp_path, "cases: cases.jsonl")
    profile = "llm_profiles: {judge: {base_url: 'http://127.0.0.1:1/v1', model: m}}"
    path.write_text(f"cases: cases.jsonl\n{profile}\n", encoding="utf-8")
    rows = set(WeightEditor(path).metric_weights)
    assert {
        "faithfulness",
        "answer_relevancy",
        "context_recall",
        "context_precision_by_answer",
    } <= rows
    path.write_text("cases: cases.jsonl\nscores: gone.csv\n", encoding="utf-8")
    with pytest.raises(RagnbError, match="gone"):
        WeightEditor(path)
