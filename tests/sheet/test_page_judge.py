"""The page of a judged run: how many answers pass, what sets the others apart, what people say of the judge."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import yaml

import ragnb as rn
from ragnb.markup.blocks import PassMark, Picture
from ragnb.sheet.formatter import Formatter
from ragnb.sheet.heroes import hero_of


def judged(n=60, mean=7.5, decimals=False, **more):
    rng = np.random.default_rng(3)
    accuracy = np.clip(rng.normal(mean, 2.2, n), 1, 10)
    accuracy = accuracy if decimals else np.round(accuracy)
    made = {
        "sample_id": [f"q{i}" for i in range(n)],
        "question": [f"question {i}?" for i in range(n)],
        "doc_name": [f"d{i % 12}.pdf" for i in range(n)],
        "accuracy": accuracy,
        "completeness": np.clip(accuracy - 1, 1, 10),
        "clarity": rng.integers(7, 9, n).astype(float),
        "suggestion": np.where(accuracy < 7, rng.choice(["Add it.", "add it", "Cite."], n), ""),
    }
    return pd.DataFrame(made | more)


def ratings(frame, offset, spread, seed=1):
    """Labels of two people that the judge is above by an offset, and from which it strays by a spread."""
    rng = np.random.default_rng(seed)
    people = np.clip(frame["accuracy"] - offset + rng.normal(0, spread, len(frame)), 1, 10).round()
    made = {"item": frame["sample_id"], "dimension": "accuracy", "judge": frame["accuracy"]}
    return pd.DataFrame(made | {"human1": people, "human2": people, "doc_name": frame["doc_name"]})


def sheet_of(tmp_path, frame, lang="en", labels=None, **settings):
    frame.to_csv(tmp_path / "judged.csv", index=False)
    made = {"scores": "judged.csv", "rubric": {"low": 1, "high": 10}, **settings}
    if labels is not None:
        labels.to_csv(tmp_path / "ratings.csv", index=False)
        made["ratings"] = "ratings.csv"
    path = tmp_path / "judge.yaml"
    path.write_text(yaml.safe_dump(made), encoding="utf-8")
    return rn.assess(path, lang=lang)


def numbers(text):
    return [float(one.replace("−", "-")) for one in re.findall(r"[−-]?\d+(?:\.\d+)?", text)]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("decimals", [False, True])
def test_the_sentence_counts_the_answers_that_pass(tmp_path, lang, decimals):
    frame = judged(decimals=decimals)
    sheet = sheet_of(tmp_path, frame, lang)
    passes = frame["accuracy"] >= 7
    hero = hero_of(Formatter(sheet))
    assert hero.key == "judge_unvalidated"
    assert sorted(numbers(hero.title)) == sorted([passes.sum(), 60, 7])
    assert f"{100 * passes.mean():.1f}" in hero.lead
    row = sheet.passing.iloc[0]
    want = rn.weighted_means(
        frame[["sample_id", "doc_name"]].assign(ok=passes.astype(float)),
        metrics=[rn.Metric("ok", kind="binary")],
    )
    want = want.set_index("metric").loc["ok"]
    assert row["share"] == pytest.approx(want["value"])
    assert (row["low"], row["high"]) == pytest.approx((want["low"], want["high"]))
    (picture,) = (block for block in sheet.section("summary").blocks if isinstance(block, PassMark))
    assert sum(n for _, n, ok in picture.steps if ok) == passes.sum()
    assert sum(n for _, n, ok in picture.steps if not ok) == (~passes).sum()
    assert any(isinstance(block, Picture) for block in sheet.section("summary").blocks)


def test_suggestions_are_grouped_by_wording_and_counted_among_those_that_do_not_pass(tmp_path):
    frame = judged()
    frame.loc[frame["accuracy"] >= 7, "suggestion"] = "Shorter."
    sheet = sheet_of(tmp_path, frame)
    failing = frame[frame["accuracy"] < 7]
    want = failing["suggestion"].str.rstrip(".").str.casefold().value_counts()
    (table,) = sheet.section("suggestions").blocks
    counts = {row[0].casefold(): int(row[1]) for row in table.rows}
    assert counts == want.to_dict()
    passing = int((frame["accuracy"] >= 7).sum())
    assert [numbers(row[3]) for row in table.rows] == [
        [passing + counts[row[0].casefold()], 60] for row in table.rows
    ]
    assert "Shorter" not in sheet.to_markdown().split("## Questions")[0]


CASES = {
    "trusted, no gate": (0.0, 0.2, None, "judge_trusted", "none"),
    "trusted and passed": (0.0, 0.2, 5.0, "judge_passed", "good"),
    "not proven": (0.0, 1.45, None, "judge_unproven", "watch"),
    "rejected": (3.0, 1.0, None, "judge_rejected", "bad"),
}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("case", CASES)
def test_what_people_say_of_the_judge_decides_the_state(tmp_path, case, lang):
    offset, spread, at, key, tone = CASES[case]
    frame = judged(n=120)
    gates = [] if at is None else [{"name": "a", "metric": "accuracy", "op": ">=", "threshold": at}]
    sheet = sheet_of(tmp_path, frame, lang, ratings(frame, offset, spread), gates=gates)
    hero = hero_of(Formatter(sheet))
    assert (hero.key, hero.tone) == (key, tone)
    row = sheet.passing.iloc[0]
    verdict = sheet.calibration.verdicts.iloc[0]
    assert row["bias"] == pytest.approx(verdict["bias"])
    assert row["k_unbiased"] == (frame["accuracy"] - verdict["bias"] >= 7).sum()
    assert str(row["k_unbiased"]) in hero.lead
    assert f"{100 * verdict['share']:.1f}" in hero.lead


def test_a_gate_that_blocks_is_said_before_the_share(tmp_path):
    gate = {"name": "a", "metric": "accuracy", "op": ">=", "threshold": 9.5}
    hero = hero_of(Formatter(sheet_of(tmp_path, judged(), gates=[gate])))
    assert hero.tone == "bad"
    assert "9.500" in hero.title


@pytest.mark.parametrize("has_labels", [False, True])
def test_the_line_to_run_next_runs_beside_the_files(tmp_path, has_labels):
    frame = judged(n=80)
    labels = ratings(frame, 0.0, 0.2) if has_labels else None
    action = hero_of(Formatter(sheet_of(tmp_path, frame, labels=labels))).action
    words = shlex.split(action.command)
    assert words[0] == "ragnb"
    done = subprocess.run(
        [sys.executable, "-m", "ragnb", *words[1:]], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ("card.html" if has_labels else "labels.csv")).exists()


def test_all_and_none_pass(tmp_path):
    everyone = hero_of(Formatter(sheet_of(tmp_path, judged().assign(accuracy=7.0))))
    assert numbers(everyone.title) == [60, 60, 7]
    nobody = sheet_of(tmp_path, judged().assign(accuracy=6.0))
    assert numbers(hero_of(Formatter(nobody)).title) == [0, 60, 7]
    assert not any(isinstance(one, Picture) for one in nobody.section("summary").blocks)


def test_each_system_has_its_own_share(tmp_path):
    frame = pd.concat([judged().assign(system="a"), judged(mean=5).assign(system="b")])
    table = sheet_of(tmp_path, frame).passing.set_index("system")
    for name, part in frame.groupby("system"):
        assert table.loc[name, "k"] == (part["accuracy"] >= 7).sum()
