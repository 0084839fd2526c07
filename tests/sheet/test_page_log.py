"""The page of a log without gold: what is said of its days, and that nothing is said by chance."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from page_runs import SORRY, requests

import ragnb as rn
from ragnb.sheet.formatter import Formatter
from ragnb.sheet.heroes import hero_of
from ragnb.sheet.heroes.log import STATES
from ragnb.stats import holm
from ragnb.texts import entry
from ragnb.traces.changes import changes


def sheet_of(tmp_path, rows, lang="en", name="log.jsonl", **settings):
    path = tmp_path / name
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return rn.assess(path, lang=lang, **settings)


CASES = {
    "log_failed_on": requests(failed=2),
    "log_failed": requests(days=5, failed=2),
    "log_changed": requests(refused=2, late=10),
    "log_unsupported": requests(unsupported=6),
    "log_worded": requests(days=5, refused=2),
    "log_steady": requests(),
    "log_short": requests(days=5),
}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("key", CASES)
def test_each_state_of_a_log_is_reached(tmp_path, key, lang):
    hero = hero_of(Formatter(sheet_of(tmp_path, CASES[key], lang)))
    assert hero.key == key
    assert hero.title.endswith("." if lang == "en" else "。")


def test_every_state_is_tried_and_has_its_texts():
    assert [state.key for state in STATES] == [*CASES]
    for lang in ("en", "zh"):
        for key in CASES:
            assert {"status", "title", "lead"} <= set(entry(lang, "hero")[key])


def test_declared_refusals_are_not_asked_about_again(tmp_path):
    rows = requests(days=5, refused=2)
    sheet = sheet_of(tmp_path, rows, refusal=[SORRY])
    assert hero_of(Formatter(sheet)).key == "log_short"
    assert "--to-label" in hero_of(Formatter(sheet)).action.command


def test_wording_is_asked_about_only_where_no_refusal_is_counted(tmp_path):
    rows = requests(days=5, refused=2)
    for row in rows[5:9]:
        row["answer"] = "not in context"
    hero = hero_of(Formatter(sheet_of(tmp_path, rows, refusal=["not in context"])))
    assert hero.key == "log_short"
    assert "--to-label" in hero.action.command


@pytest.mark.parametrize(("failed", "key"), [(3, "log_failed_on"), (2, "log_changed")])
def test_one_request_in_twenty_that_fails_is_too_many(tmp_path, failed, key):
    rows = requests(a_day=60, failed=failed)  # 3 of 60 are 5 %
    assert hero_of(Formatter(sheet_of(tmp_path, rows))).key == key


@pytest.mark.parametrize(("days", "is_compared"), [(13, False), (14, True)])
def test_fewer_than_fourteen_days_are_not_compared(days, is_compared):
    times = pd.Series(pd.date_range("2026-01-01", periods=days).repeat(20))
    values = np.r_[np.zeros(20 * (days - 7)), np.ones(140)]
    row = changes({"refused": values}, times).measures.iloc[0]
    assert (row["outcome"] != "all") == is_compared
    assert row["outcome"] in ("rose", "all")


def test_the_numbers_are_those_of_a_plain_loop(tmp_path):
    rows = requests(refused=2, late=10)
    sheet = sheet_of(tmp_path, rows)
    row = sheet.log.changes.set_index("measure").loc["refused"]
    last = [one for one in rows if one["ts"] >= "2026-03-14"]
    first = [one for one in rows if one["ts"] < "2026-03-14"]
    assert (row["now_k"], row["now_n"]) == (sum(r["answer"] == SORRY for r in last), len(last))
    assert (row["before_k"], row["before_n"]) == (
        sum(r["answer"] == SORRY for r in first),
        len(first),
    )
    title = hero_of(Formatter(sheet)).title
    assert f"{100 * row['now_k'] / row['now_n']:.1f} %" in title
    assert f"{100 * row['before_k'] / row['before_n']:.1f} %" in title
    assert "2026-03-14" in title


def test_the_difference_is_that_of_a_clustered_regression():
    rng = np.random.default_rng(3)
    day = np.repeat(np.arange(30), 40)
    rate = np.clip(rng.normal(0.3, 0.12, 30), 0, 1)
    value = (rng.random(1200) < rate[day]).astype(float)
    times = pd.Series(pd.Timestamp("2026-01-01") + pd.to_timedelta(day, unit="D"))
    row = changes({"refused": value}, times).measures.iloc[0]
    design = sm.add_constant((day >= 23).astype(float))
    fit = sm.OLS(value, design).fit(
        cov_type="cluster", cov_kwds={"groups": day, "use_correction": False}
    )
    assert row["difference"] == pytest.approx(fit.params[1])
    half = (row["high"] - row["low"]) / 2
    assert half / 2.3 == pytest.approx(fit.bse[1], rel=0.25)  # Welch's t of 7 and 23 days


@pytest.mark.parametrize("base", [0.02, 0.1, 0.4])
def test_a_log_that_does_not_change_is_seldom_said_to_have_changed(base):
    """Days differ by themselves; over three measures less than 5 % of steady logs are called changed."""
    rng = np.random.default_rng(int(100 * base))
    said = 0
    tried = 400
    times = pd.Series(pd.date_range("2026-01-01", periods=21).repeat(25))
    day = np.repeat(np.arange(21), 25)
    for _ in range(tried):
        rates = [np.clip(rng.normal(base, base / 3, 21), 0, 1) for _ in range(3)]
        drawn = [(rng.random(525) < rate[day]).astype(float) for rate in rates]
        latency = rng.gamma(4, 0.25, 525) * np.exp(rng.normal(0, 0.1, 21))[day]
        values = dict(zip(("refused", "failed", "unsupported"), drawn, strict=True))
        found = changes(values | {"latency": latency}, times).measures
        said += found["outcome"].isin(["rose", "fell"]).any()
    assert said / tried <= 0.05 + 3 * (0.05 * 0.95 / tried) ** 0.5


def test_nothing_rises_before_the_correction_over_the_measures():
    rng = np.random.default_rng(0)
    times = pd.Series(pd.date_range("2026-01-01", periods=20).repeat(30))
    values = {"refused": (rng.random(600) < 0.1).astype(float)}
    values["refused"][390:] = (rng.random(210) < 0.17).astype(float)
    values |= {name: (rng.random(600) < 0.1).astype(float) for name in ("failed", "unsupported")}
    table = changes(values, times).measures
    assert table["p_holm"].tolist() == pytest.approx(holm(table["p"].tolist()).tolist())
    moved = table["outcome"].isin(["rose", "fell"])
    assert (moved == (table["p_holm"] <= 0.05)).all()


def test_days_without_an_event_are_no_proof_that_none_can_happen():
    times = pd.Series(pd.date_range("2026-01-01", periods=20).repeat(10))
    values = np.zeros(200)
    values[[3, 40]] = 1.0
    row = changes({"failed": values}, times).measures.iloc[0]
    assert row["outcome"] == "no_change"
    assert row["low"] < row["difference"] < row["high"]


def test_without_times_and_without_requests_nothing_is_compared():
    table = changes({"refused": [0.0, 1.0]}, None).measures
    assert table["outcome"].tolist() == ["all"]
    assert changes({}, None).measures.empty


@pytest.mark.parametrize("key", ["log_worded", "log_steady"])
def test_the_line_to_run_next_runs_beside_the_log(tmp_path, key):
    sheet = sheet_of(tmp_path, CASES[key], name="my log.jsonl")
    words = shlex.split(hero_of(Formatter(sheet)).action.command)
    done = subprocess.run(
        [sys.executable, "-m", "ragnb", *words[1:]], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    if key == "log_worded":
        assert "worded as refusals" not in done.stdout
    else:
        assert (tmp_path / "gold.csv").exists()


def test_a_log_without_a_column_of_failures_has_no_share_of_them(tmp_path):
    rows = [{k: v for k, v in row.items() if k != "ok"} for row in requests()]
    sheet = sheet_of(tmp_path, rows)
    assert "failed" not in sheet.log.changes["measure"].tolist()
    text = sheet.to_markdown().split("## Run details")[0]
    assert "failed" not in text.casefold()


def test_failed_requests_are_no_missing_scores(tmp_path):
    sheet = sheet_of(tmp_path, requests(failed=2))
    assert not sheet.blocked
    assert "missing" not in hero_of(Formatter(sheet)).title


def test_changes_are_at_the_level_of_the_scenario(tmp_path):
    rows = CASES["log_changed"]
    wide = sheet_of(tmp_path, rows, level=0.99).log.changes.set_index("measure").loc["refused"]
    usual = sheet_of(tmp_path, rows).log.changes.set_index("measure").loc["refused"]
    assert wide["p"] == usual["p"]
    assert wide["low"] < usual["low"] < usual["high"] < wide["high"]
    for level, row in ((0.99, wide), (0.95, usual)):
        expected = changes(refused_and_days(rows)[0], refused_and_days(rows)[1], level).measures
        assert row["low"] == pytest.approx(expected.set_index("measure").loc["refused", "low"])


def refused_and_days(rows):
    """Return the values and days of `changes`, taken from the rows by themselves."""
    refused = np.array([float(row["answer"] == SORRY) for row in rows])
    days = pd.to_datetime(pd.Series([row["ts"] for row in rows])).dt.normalize()
    return {"refused": refused}, days
