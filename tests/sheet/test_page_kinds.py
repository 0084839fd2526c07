"""What holds on the page of any run: one hero, no false sentence, no empty section, both languages alike."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from page_runs import KINDS, METRICS, rows, run_of

import ragnb as rn
from ragnb.sheet.bounds import bounds_of
from ragnb.sheet.formatter import Formatter
from ragnb.sheet.heroes import failed as failed_heroes
from ragnb.sheet.heroes import hero_of
from ragnb.sheet.heroes import judge as judge_heroes
from ragnb.sheet.heroes import systems as systems_heroes
from ragnb.sheet.kinds import kind_of, order_of
from ragnb.sheet.standing import side_of
from ragnb.texts import entry

CASES = [(kind, seed) for kind in KINDS for seed in range(6)]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]} {case[1]}")
def run(request):
    return request.param, run_of(*request.param)


def tokens(text):
    """Return the numbers of a text without signs, thousands marks and what stands in names and thresholds."""
    text = re.sub(r"(question|system|doc) \d+", "", text)
    return re.findall(r"\d+(?:\.\d+)?", text.replace(",", ""))


def known_numbers(sheet):
    """Return every number of the frames as it may be written: counts, scores, percentages, differences."""
    frames = [sheet.means, sheet.gates, sheet.account, sheet.ladder, sheet.passing]
    frames += [None if sheet.calibration is None else sheet.calibration.verdicts]
    writer = Formatter(sheet)
    values = [sheet.rows, sheet.scenario.level * 100, sheet.common_questions, 20]
    values += [len(METRICS), writer.answers]
    for frame in frames:
        if frame is None:
            continue
        numeric = frame.select_dtypes("number")
        values += numeric.to_numpy(dtype=float).ravel().tolist()
        if "outcome" in frame and len(frame):
            values += frame["outcome"].value_counts().tolist()
    cells = sheet.account[sheet.account["stage"] == "cells"]
    quality = cells[cells["subject"].isin(writer.quality)]
    values += quality[["lost", "expected", "seen"]].sum().tolist()
    for metric in writer.rows:
        values += [at for _, at in writer.thresholds(metric)]
    if sheet.passing is not None:
        values += (sheet.passing["n"] - sheet.passing["k"]).tolist()
        texts = sheet.scores.loc[sheet.scores["accuracy"] < 7, "suggestion"].astype(str)
        values += texts.value_counts().tolist()
    if sheet.ladder is not None:
        values += (sheet.ladder["questions_needed"] - sheet.ladder["n_common"]).dropna().tolist()
    known = set()
    for value in values:
        if value is None or not np.isfinite(value):
            continue
        for scaled in (abs(value), 100 * abs(value)):
            known |= {f"{scaled:.{digits}f}" for digits in range(6)} | {f"{scaled:g}"}
    for found in sheet.weightings:
        shares = [*found.flips["flip"], *found.flips["today"], *found.shares.values()]
        known |= {f"{100 * share:.1f}" for share in shares}
    # How many means a sentence is about.
    judged = [name for name in writer.quality if writer.thresholds(name)]
    return known | {str(k) for k in range(len(judged) + 1)}


def test_every_number_of_the_first_lines_is_in_the_frames(run):
    (kind, _), sheet = run
    if kind == "hostile":
        return
    hero = hero_of(Formatter(sheet))
    strange = [
        one for one in tokens(f"{hero.title} {hero.lead}") if one not in known_numbers(sheet)
    ]
    strange = [one for one in strange if one not in ("1", "0")]  # ±1, and the ends of a scale
    assert not strange, f"{hero.title} {hero.lead}"


def test_both_languages_are_in_the_same_state_with_the_same_numbers(run):
    (kind, seed), sheet = run
    english, chinese = (hero_of(Formatter(one)) for one in (sheet, run_of(kind, seed, "zh")))
    assert (english.key, english.tone) == (chinese.key, chinese.tone)
    if kind != "hostile":
        assert sorted(tokens(english.title)) == sorted(tokens(chinese.title))


def test_there_is_one_hero_and_no_section_twice_or_empty(run):
    _, sheet = run
    sections = sheet.sections()
    assert [section.key for section in sections] == [
        key for key in order_of(Formatter(sheet)) if key in [one.key for one in sections]
    ]
    heads = [(section.name, section.finding) for section in sections]
    assert len(set(heads)) == len(heads)
    for section in sections:
        assert section.blocks, section.key
    page = sheet.to_html()
    assert page.count("<h1") == 1
    hero = hero_of(Formatter(sheet))
    title = re.search(r"<title>(.*?)</title>", page)[1]
    assert title[0] in "●▲■○"
    assert hero.status.split(" ")[0] in title
    assert len(hero.title) <= 220


def test_good_is_said_only_where_every_interval_it_covers_is_on_the_right_side(run):
    _, sheet = run
    writer = Formatter(sheet)
    hero = hero_of(writer)
    if hero.tone == "good":
        sides = [side_of(writer, name, writer.rows[name]) for name in writer.quality]
        assert set(sides) <= {"good", ""}
    if re.match(r"All \d+ means meet", hero.title) or "meets all" in hero.title:
        asked = [name for name in writer.quality if writer.thresholds(name)]
        assert all(writer.known(name) for name in asked)
        assert not any(writer.is_low(name, writer.rows[name]["value"]) for name in asked)


def test_a_run_without_scores_has_no_word_of_quality(run):
    (kind, _), sheet = run
    if kind == "failed":
        text = sheet.to_markdown().split("## Run details")[0]
        assert not re.search(r"\b(met|meets|passed|passes|Ready|Fix first|above its)\b", text)


def test_what_missing_scores_leave_open_is_what_the_worst_and_the_best_case_say(run):
    (kind, _), sheet = run
    if kind != "part" or kind_of(Formatter(sheet)) != "failed":
        return
    frame, writer = sheet.scores, Formatter(sheet)
    for bound in bounds_of(writer):
        values = frame[bound.metric]
        low, high = values.fillna(0).mean(), values.fillna(1).mean()
        assert (bound.row["worst"], bound.row["best"]) == pytest.approx((low, high))
        assert bound.is_open == (low < bound.at <= high)
    hero = hero_of(writer)
    is_open = any(bound.is_open for bound in bounds_of(writer))
    assert (hero.key == "scores_lost") == is_open


def test_no_count_of_the_first_lines_spans_systems(run):
    (kind, _), sheet = run
    if kind != "systems":
        return
    hero = hero_of(Formatter(sheet))
    assert sheet.shown_system in hero.title
    assert str(sheet.rows) not in tokens(f"{hero.title} {hero.lead}")


@pytest.mark.parametrize(
    "states", [failed_heroes.STATES, judge_heroes.STATES, systems_heroes.STATES]
)
def test_each_state_has_its_texts_in_both_languages(states):
    assert len({state.key for state in states}) == len(states)
    for state in states:
        for lang in ("en", "zh"):
            for part in ("status", "title", "lead"):
                words = re.sub(r"\{\w+\}", "", entry(lang, "hero")[state.key][part])
                assert words.strip()


@pytest.mark.parametrize(
    ("kind", "code"), [("scores", 0), ("part", 0), ("failed", 0), ("systems", None)]
)
def test_the_line_to_run_next_runs_beside_the_file(tmp_path, kind, code):
    name = "my scores (1).csv"
    run_of(kind, 1).scores.drop(columns=["weighted_score", "sample_weight"]).to_csv(
        tmp_path / name, index=False
    )
    sheet = rn.assess(tmp_path / name, gates=[])
    words = shlex.split(hero_of(Formatter(sheet)).action.command)
    assert words[0] == "ragnb"
    done = subprocess.run(
        [sys.executable, "-m", "ragnb", *words[1:]], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode in ((0, 1, 2) if code is None else (code,)), done.stderr
    assert "Traceback" not in done.stderr
    if kind == "scores":
        written = rn.load_scenario(tmp_path / "scenario.yaml")
        assert {gate.metric for gate in written.gates} == set(METRICS)


def test_a_name_that_no_page_can_show_has_no_line_to_run(tmp_path):
    path = tmp_path / "a`b.csv"
    run_of("scores", 1).scores.to_csv(path, index=False)
    assert hero_of(Formatter(rn.assess(path, gates=[]))).action is None
    assert hero_of(Formatter(run_of("scores", 1))).action is None  # a frame has no file


def test_by_document_a_pattern_is_said_before_a_single_document():
    rng = np.random.default_rng(4)
    frame = rows(rng, 60, 0.9)
    weak = frame["doc_name"].isin(["doc 1 ", "doc 4 ", "doc 7 "])
    frame.loc[:, "faithfulness"] = np.where(weak, 0.4, 0.9)
    frame.loc[:, "context_recall"] = 0.9
    sheet = rn.assess(frame, gates=[], metrics=["faithfulness", "context_recall"])
    means = frame.groupby("doc_name")["faithfulness"].mean()
    finding = sheet.section("documents").finding
    assert finding == f"Faithfulness is below 0.700 in {(means < 0.7).sum()} of 12 documents"
    frame.loc[:, "faithfulness"] = 0.9
    frame.loc[frame["doc_name"] == "doc 1 ", "faithfulness"] = 0.75
    single = rn.assess(frame, gates=[], metrics=["faithfulness"]).section("documents").finding
    assert single.startswith("doc 1 pulls the overall score down most (−0.011)")
    frame.loc[:, "faithfulness"] = 0.9
    alike = rn.assess(frame, gates=[], metrics=["faithfulness"]).section("documents").finding
    assert alike == "No single document pulls the overall score down by 0.01 or more"


def of_findings(sheet):
    """Return the numbers that headings say beside those of the frames, each counted anew."""
    writer = Formatter(sheet)
    scores = sheet.scores
    if sheet.shown_system is not None:
        scores = scores[scores["system"].astype(str) == sheet.shown_system]
    is_low = pd.Series(False, index=scores.index)
    counts = [len(writer.quality), 0.01]
    for name in writer.quality:
        limits = writer.thresholds(name)
        if limits and name in scores:
            is_low |= scores[name] < limits[0][1]
            if sheet.documents is not None:
                means = scores.groupby("doc_name")[name].mean()
                counts += [(means < limits[0][1]).sum(), means.notna().sum()]
    counts += [is_low.sum()]
    known = {f"{value:g}" for value in counts}
    if sheet.documents is not None:
        pulls = sheet.documents["pull"].dropna().abs()
        known |= {f"{pull:.3f}" for pull in pulls}
    return known


def test_every_number_of_a_heading_is_counted_anew(run):
    (kind, _), sheet = run
    if kind == "hostile":
        return
    known = known_numbers(sheet) | of_findings(sheet)
    for section in sheet.sections():
        strange = [one for one in tokens(section.finding) if one not in known]
        assert not strange, f"{section.finding}: count {strange} in of_findings"


def test_a_name_that_turns_the_order_of_signs_does_not_turn_the_sentence_around_it():
    sheet = run_of("judge", 2)
    assert "\u202e" in "".join(sheet.scores["suggestion"])
    for section in sheet.sections():
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", section.finding)


def test_systems_with_ids_of_their_own_have_the_questions_in_common_that_they_are_compared_on():
    one = rows(np.random.default_rng(0), 40, 0.7)
    parts = [
        one.assign(sample_id=[f"{name}/{i}" for i in range(40)], system=name) for name in ("a", "b")
    ]
    sheet = rn.assess(pd.concat(parts, ignore_index=True), gates=[])
    assert set(sheet.ladder["n_common"]) == {40}
    assert "no_common_questions" not in set(sheet.notes["code"])
    assert sheet.common is None
    fewer = pd.concat([parts[0], parts[1].iloc[:30]], ignore_index=True)
    assert rn.assess(fewer, gates=[]).common_questions == 30
