"""The page of a run beside an earlier one: what broke, what was fixed, and when that comes first."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ragnb as rn
from ragnb.markup.blocks import Bar, Marked, Table
from ragnb.sheet.answers import differing
from ragnb.sheet.formatter import Formatter
from ragnb.sheet.heroes import hero_of
from ragnb.sheet.heroes.since import STATES
from ragnb.sheet.since import since_of
from ragnb.texts import entry

ROOT = Path(__file__).resolve().parents[2]
AT = 0.7  # the milder threshold of the rule on faithfulness
HOSTILE = "<img src=x onerror=alert(1)> & <b>bold</b>"


def scores(shift=0.0, n=120, seed=2, noise=0.02):
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.5, 0.95, n)
    values = np.clip(base + shift + np.random.default_rng(seed + 1).normal(0, noise, n), 0, 1)
    return pd.DataFrame(
        {
            "sample_id": [f"q{i}" for i in range(n)],
            "question": [f"question {i}?" for i in range(n)],
            "answer": [f"The limit is {round(100 * value)} days {HOSTILE}." for value in values],
            "doc_name": [f"d{i % 20}" for i in range(n)],
            "faithfulness": values.round(3),
        }
    )


def run_of(tmp_path, now, before, lang="en", **more):
    now.to_csv(tmp_path / "now.csv", index=False)
    before.to_csv(tmp_path / "before.csv", index=False)
    settings = {"baseline": "before.csv", "gates": [], **more}
    path = tmp_path / "now.yaml"
    lines = [f"scores: now.csv\nlang: {lang}"]
    lines += [f"{key}: {json.dumps(value)}" for key, value in settings.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    return rn.assess(path)


CASES = {
    "since_worse": (-0.15, {}),
    "since_better": (0.15, {}),
    "since_open": (0.0, {}),
    "since_same": (0.0, {}),
}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("key", CASES)
def test_each_state_is_reached_and_its_counts_are_those_of_a_loop(tmp_path, key, lang):
    shift, more = CASES[key]
    n, noise = (25, 0.3) if key == "since_open" else (120, 0.02)
    now, before = scores(shift, n, noise=noise), scores(0.0, n)
    hero = hero_of(Formatter(run_of(tmp_path, now, before, lang, **more)))
    assert hero.key == key
    was, right = before["faithfulness"] >= AT, now["faithfulness"] >= AT
    broke, fixed = int((was & ~right).sum()), int((~was & right).sum())
    said = [int(one) for one in re.findall(r"(?<![\d.])\d+(?![\d.])", hero.title)]
    assert sorted(said) == sorted([broke, fixed])
    for number in (was.sum(), right.sum(), len(now)):
        assert re.search(rf"(?<![\d.]){number}(?![\d.])", hero.lead)


def test_every_state_has_its_texts():
    assert {state.key for state in STATES} == {*CASES, "since_gate"}
    for lang in ("en", "zh"):
        for state in STATES:
            assert {"status", "title", "lead"} <= set(entry(lang, "hero")[state.key])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=20, max_size=40))
def test_the_four_counts_balance(pairs):
    before, now = (list(side) for side in zip(*pairs, strict=True))
    rows = {"sample_id": [f"q{i}" for i in range(len(pairs))] * 2}
    rows |= {"system": ["new"] * len(pairs) + ["old"] * len(pairs), "faithfulness": now + before}
    sheet = rn.assess(pd.DataFrame(rows), baseline="old", candidate="new", gates=[])
    found = since_of(Formatter(sheet))
    if found is None:
        return
    counts = {(was, now): found.n_of(was, now) for was in (True, False) for now in (True, False)}
    assert sum(counts.values()) == len(pairs)
    assert counts[True, True] + counts[True, False] == sum(one >= AT for one in before)
    assert counts[True, True] + counts[False, True] == sum(one >= AT for one in now)
    (bar,) = (one for one in sheet.section("summary").blocks if isinstance(one, Bar))
    drawn = [n for _, parts in bar.groups for _, _, n in parts]
    assert drawn == [
        counts[True, True],
        counts[True, False],
        counts[False, True],
        counts[False, False],
    ]


@pytest.mark.parametrize(
    ("name", "better"), [("faithfulness", "higher"), ("noise_sensitivity", "lower")]
)
@pytest.mark.parametrize("turned", ["broken", "fixed"])
def test_the_largest_losses_come_first_whichever_direction_is_better(name, better, turned):
    # A rate has no weight, so that the metric itself decides and no weighted score.
    metric = rn.Metric(name, role="rate", better=better)
    bad = np.round([0.5 + 0.04 * i for i in range(10)], 2)  # past 0.3, where lower is better
    fine = np.full(30, 0.05)
    mixed = fine.copy()
    mixed[20:] = bad
    if better == "higher":
        fine, mixed = 1 - fine, 1 - mixed
    now, before = (mixed, fine) if turned == "broken" else (fine, mixed)
    ids = [f"q{i}" for i in range(30)]
    rows = pd.DataFrame(
        {
            "sample_id": ids * 2,
            "system": ["new"] * 30 + ["old"] * 30,
            name: [*now, *before],
        }
    )
    sheet = rn.assess(rows, baseline="old", candidate="new", gates=[], metrics=[metric])
    found = since_of(Formatter(sheet))
    assert found.primary["metric"] == name
    questions = getattr(found, turned)["sample_id"].tolist()
    # The last one differs most.
    from_largest = [f"q{i}" for i in range(29, 19, -1)]
    if turned == "broken":
        assert questions == from_largest
    else:
        assert questions == from_largest[::-1]


def test_labels_decide_where_there_are_any():
    sheet = rn.assess(
        ROOT / "scenarios/quickstart_weak.yaml", baseline=ROOT / "scenarios/quickstart.yaml"
    )
    found = since_of(Formatter(sheet))
    assert found.threshold is None
    counts = sheet.changed["change"].value_counts()
    assert found.n_of(True, False) == counts["broken"] == len(found.broken)
    assert found.n_of(False, True) == counts["fixed"] == len(found.fixed)
    hero = hero_of(Formatter(sheet))
    assert hero.key == "since_worse"
    assert "Gates that block" in hero.lead
    keys = [section.key for section in sheet.sections()]
    assert keys[:2] == ["summary", "broken"]
    how = sheet.section("broken").blocks[0]
    assert sum(int(row[1]) for row in how.rows) == len(found.broken)


def test_an_earlier_run_comes_first_only_where_this_one_is_worse(tmp_path):
    first = scores(0.0)
    first.to_csv(tmp_path / "s.csv", index=False)
    (tmp_path / "run.yaml").write_text("scores: s.csv\ngates: []\n", encoding="utf-8")
    rn.assess(tmp_path / "run.yaml").save(tmp_path / "earlier")
    for shift, key in ((0.15, "met"), (-0.15, "since_worse")):
        scores(shift).to_csv(tmp_path / "s.csv", index=False)
        sheet = rn.assess(tmp_path / "run.yaml", baseline=tmp_path / "earlier")
        hero = hero_of(Formatter(sheet))
        assert since_of(Formatter(sheet)).is_last_run
        assert (hero.key == key) == (key == "since_worse") or hero.key.startswith(key)
        if shift < 0:
            assert "since the last run" in hero.title


def test_a_gate_that_passed_before_and_fails_now_is_said_first(tmp_path):
    gate = {"name": "F", "metric": "faithfulness", "op": ">=", "threshold": 0.65}
    scores(0.05).to_csv(tmp_path / "s.csv", index=False)
    text = f"scores: s.csv\ngates: [{json.dumps(gate)}]\n"
    (tmp_path / "run.yaml").write_text(text, encoding="utf-8")
    rn.assess(tmp_path / "run.yaml").save(tmp_path / "earlier")
    scores(-0.15).to_csv(tmp_path / "s.csv", index=False)
    hero = hero_of(Formatter(rn.assess(tmp_path / "run.yaml", baseline=tmp_path / "earlier")))
    assert hero.key == "since_gate"
    assert "0.650" in hero.title


def test_a_gate_that_blocks_is_said_before_a_change_for_the_better(tmp_path):
    gate = {"name": "F", "metric": "faithfulness", "op": ">=", "threshold": 0.99}
    sheet = run_of(tmp_path, scores(0.15), scores(0.0), gates=[gate])
    assert hero_of(Formatter(sheet)).key == "gates_failed"


def test_ten_questions_are_shown_with_what_differs_and_no_text_becomes_html(tmp_path):
    sheet = run_of(tmp_path, scores(-0.15), scores(0.0))
    (table,) = (one for one in sheet.section("broken").blocks if isinstance(one, Table))
    assert len(table.rows) == 10
    falls = [float(row[2][0].text) - float(row[1][0].text) for row in table.rows]
    assert falls == sorted(falls)
    page = sheet.to_html()
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page


@pytest.mark.parametrize(
    ("before", "now", "marked"),
    [
        ("within 14 days of delivery", "within 30 days of delivery", (["14"], ["30"])),
        ("保修期为十四天，自交付起", "保修期为三十天，自交付起", (["四"], ["三"])),
        ("the same", "the same", ([], [])),
    ],
)
def test_two_answers_differ_by_words_and_by_chinese_characters(before, now, marked):
    sides = differing(before, now)
    for side, text, want in zip(sides, (before, now), marked, strict=True):
        assert "".join(part for part, _ in side.parts) == text
        assert [part.strip() for part, is_marked in side.parts if is_marked] == want


def test_answers_of_their_own_are_not_marked_throughout():
    for side in differing("not in context", "The limit is thirty days after delivery."):
        assert isinstance(side, Marked)
        assert not any(is_marked for _, is_marked in side.parts)


def test_the_line_to_run_next_runs_beside_the_files(tmp_path):
    action = hero_of(Formatter(run_of(tmp_path, scores(-0.15), scores(0.0)))).action
    words = shlex.split(action.command)
    done = subprocess.run(
        [sys.executable, "-m", "ragnb", *words[1:]], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr


def saved(tmp_path, frame, name, **more):
    """Write a run of the scenario ``run`` as the folder ``name``, as `ragnb report` leaves it."""
    frame.to_csv(tmp_path / "s.csv", index=False)
    lines = ["scores: s.csv", "gates: []"]
    lines += [f"{key}: {json.dumps(str(value))}" for key, value in more.items()]
    (tmp_path / "run.yaml").write_text("\n".join(lines), encoding="utf-8")
    sheet = rn.assess(tmp_path / "run.yaml")
    sheet.save(tmp_path / name)
    return sheet


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_else_changed_between_the_runs_is_said_beside_the_counts(tmp_path, lang):
    before = scores(0.0).assign(ground_truth_answer="Thirty days.")
    now = scores(-0.15).assign(ground_truth_answer="Thirty days.")
    names = entry(lang, "since")

    def lead(frame, base):
        return hero_of(Formatter(run_of(tmp_path, frame, base, lang))).lead

    more = lead(now, before[before["doc_name"] != "d3"])
    assert all(names[code] in more for code in ("questions_changed", "documents_changed"))
    assert names["references_changed"] not in more
    assert sorted(re.findall(r"\d+", more)[:2]) == ["114", "120"]
    now.loc[now.index[:9], "ground_truth_answer"] = "Forty days."
    assert lead(now, before).startswith(
        entry(lang, "hero.since_changed").format(what=names["references_changed"])
    )
    same = lead(scores(-0.15), scores(0.0))
    assert not any(name in same for name in (names["documents_changed"], names["judge_changed"]))


def test_what_changed_since_the_accepted_run_is_not_said_of_the_last_one(tmp_path):
    scores(0.1).iloc[:60].to_csv(tmp_path / "run.anchor.csv", index=False)
    sheet = run_of(tmp_path, scores(-0.15), scores(0.0), anchor="run.anchor.csv")
    assert "questions_changed" in set(sheet.notes["code"])
    assert "changed since" not in hero_of(Formatter(sheet)).lead.lower()


def test_an_incomplete_run_shows_the_last_complete_one(tmp_path):
    good, gaps = scores(0.0), scores(0.0)
    gaps.loc[:40, "faithfulness"] = np.nan
    complete = saved(tmp_path, good, "20260101T000000Z-a")
    assert complete.section("earlier") is None
    saved(tmp_path, gaps, "20260102T000000Z-b")
    saved(tmp_path, good, "20260104T000000Z-later")
    sheet = rn.assess(tmp_path / "run.yaml", baseline=tmp_path / "20260102T000000Z-b")
    assert sheet.section("earlier").lead == complete.verdict  # of the section; the run is complete
    gaps.to_csv(tmp_path / "s.csv", index=False)
    sheet = rn.assess(tmp_path / "run.yaml", baseline=tmp_path / "20260102T000000Z-b")
    keys = [section.key for section in sheet.sections()]
    assert keys[:3] == ["summary", "missing", "earlier"]
    assert "20260101T000000Z-a" in sheet.to_html()
    assert "20260104" not in sheet.to_html()


def test_without_a_complete_run_nothing_is_shown(tmp_path):
    gaps = scores(0.0)
    gaps.loc[:40, "faithfulness"] = np.nan
    saved(tmp_path, gaps, "20260102T000000Z-b")
    sheet = rn.assess(tmp_path / "run.yaml", baseline=tmp_path / "20260102T000000Z-b")
    assert sheet.section("earlier") is None
