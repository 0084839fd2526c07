"""Several systems without a candidate: the best of them is compared with each other one, unasked."""

import numpy as np
import pandas as pd
import pytest

import ragnb as rn
from ragnb.stats import holm
from ragnb.texts import load

N = 120


def systems(**shifts):
    """Return 120 questions of 20 documents, scored alike but for a shift and a little noise of each system."""
    rng = np.random.default_rng(4)
    base = rng.uniform(0.5, 0.8, N)
    tables = [
        pd.DataFrame(
            {
                "sample_id": [f"q{k}" for k in range(N)],
                "doc_name": [f"文档{k // 6}" for k in range(N)],
                "system": name,
                "faithfulness": (base + shift + rng.normal(0, 0.02, N)).clip(0, 1).round(4),
            }
        )
        for name, shift in shifts.items()
    ]
    return pd.concat(tables, ignore_index=True)


def test_each_rung_is_the_difference_that_compare_gives():
    scores = systems(a=0.1, b=0.05, c=0.0)
    table = rn.assess(scores, gates=[]).ladder
    rungs = table[table["primary"]]
    assert rungs[["candidate", "baseline"]].values.tolist() == [["a", "b"], ["a", "c"]]
    for row in rungs.to_dict("records"):
        pair = scores[scores["system"].isin([row["candidate"], row["baseline"]])]
        want = rn.compare(pair, baseline=row["baseline"])
        want = want[want["primary"]].iloc[0]
        for name in ("value", "low", "high", "p", "n_common"):
            assert row[name] == pytest.approx(want[name])
    assert rungs["p_holm"].tolist() == pytest.approx(list(holm(rungs["p"].tolist())))


def test_a_pair_that_does_not_hold_after_holm_is_open():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.03, N)
    lift = noise - noise.mean() + 2.35 * noise.std() / np.sqrt(N)  # p of about .02 against each
    one = systems(a=0.0)
    others = [one.assign(system=name) for name in "bcde"]
    scores = pd.concat([one.assign(faithfulness=one["faithfulness"] + lift), *others])
    rungs = rn.assess(scores.reset_index(drop=True), gates=[]).ladder.query("primary")
    assert rungs["p"].between(0.0126, 0.0499).all()
    assert rungs["p_holm"].tolist() == pytest.approx((4 * rungs["p"]).tolist())
    assert (rungs["outcome"] == "undecided").all()


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    ("shifts", "key", "status"),
    [
        ({"新": 0.15, "旧": 0.05}, "better", "systems_met"),
        ({"新": 0.11, "旧": 0.1}, "better_within", "systems_better_within"),
        ({"新": 0.1, "旧": 0.1}, "same", "systems_same"),
        ({"新": -0.1, "旧": -0.2}, "better", "systems_missed"),
    ],
)
def test_the_page_begins_with_the_comparison(shifts, key, status, lang):
    sheet = rn.assess(systems(**shifts), gates=[], lang=lang)
    row = sheet.ladder.query("primary").iloc[0]
    assert row["outcome"] == key
    say = load(lang)
    verdict = sheet.section("summary").blocks[0]
    assert verdict.status.text == say(f"hero.{status}.status")
    said = f"{row['value']:+.3f}".replace("-", "−")
    assert said in verdict.lead
    assert said in sheet.section("comparison").finding
    assert said.lstrip("+−") in verdict.title or key == "same"
    for text in (verdict.title, sheet.section("comparison").finding):
        assert row["candidate"] in text
        assert row["baseline"] in text
    assert sheet.shown_system == row["candidate"], "what to fix is that of the best"


def test_few_common_questions_are_no_comparison_and_no_difference_is_called_open():
    scores = systems(a=0.1, b=0.0)
    few = scores.groupby("system").head(19)
    for table, said in ((few, "a and b share only 19 questions"), (scores, "a is better than b")):
        verdict = rn.assess(table, gates=[]).section("summary").blocks[0]
        assert verdict.title.startswith(said)
        assert (verdict.status.text == "No comparison") is (table is few)
    wide = scores.assign(faithfulness=np.random.default_rng(1).random(2 * N).round(3))
    sheet = rn.assess(wide, gates=[])
    row = sheet.ladder.query("primary").iloc[0]
    assert row["outcome"] == "undecided"
    verdict = sheet.section("summary").blocks[0]
    assert "cannot be told apart" in verdict.title
    assert verdict.status.text == "Inconclusive"
    more = int(row["questions_needed"] - row["n_common"])
    assert f"About {more:,} more questions" in verdict.lead


def test_a_candidate_a_baseline_or_systems_on_other_questions_have_no_ladder():
    scores = systems(a=0.1, b=0.0)
    assert rn.assess(scores, candidate="a").ladder is None
    assert rn.assess(scores, baseline="b").ladder is None
    apart = scores.assign(sample_id=scores["system"] + scores["sample_id"])
    assert rn.assess(apart, gates=[]).ladder is None
    assert rn.assess(scores[scores["system"] == "a"], gates=[]).ladder is None


def test_a_gate_that_blocks_one_system_is_said_first():
    scores = systems(a=0.1, b=-0.2)
    sheet = rn.assess(scores, gates=[rn.Gate("F", "faithfulness", ">=", 0.6)])
    assert sheet.verdict.startswith("Not ready: 1 of 2 systems fail their gates: b.")
    assert sheet.shown_system == "b"
    assert "a is better than b" in sheet.section("comparison").finding


def test_rows_that_are_streamed_are_not_paired(tmp_path):
    """Pairs hold every question; a stream is what memory does not hold."""
    one = pd.DataFrame({"sample_id": np.arange(101_000).astype(str), "faithfulness": 0.9})
    both = pd.concat([one.assign(system="a"), one.assign(system="b", faithfulness=0.5)])
    both.to_parquet(tmp_path / "many.parquet")
    sheet = rn.assess(str(tmp_path / "many.parquet"), gates=[])
    assert sheet.streamed
    assert sheet.ladder is None


def test_the_weight_at_which_another_system_leads_is_where_the_means_change_places():
    """The order at a share beside the one on the page is computed anew from weighted means."""
    scores = systems(a=0.05, b=0.0)
    scores["context_recall"] = scores["faithfulness"] - np.where(scores["system"] == "a", 0.09, 0)
    scores["answer_relevancy"] = scores["faithfulness"].to_numpy()[::-1]
    sheet = rn.assess(scores, gates=[])
    (found,) = sheet.weightings
    first, other = found.candidate, found.baseline
    metrics = list(found.metrics)
    checked = 0
    for row in found.flips.dropna(subset=["flip"]).to_dict("records"):
        for share, leader in ((-0.01, first), (0.01, other)):
            away = 1 if row["flip"] > row["today"] else -1
            moved = row["flip"] + away * share
            rest = (1 - moved) / (len(metrics) - 1)
            weights = {name: moved if name == row["metric"] else rest for name in metrics}
            totals = {
                name: sum(
                    weights[metric] * scores.loc[scores["system"] == name, metric].mean()
                    for metric in metrics
                )
                for name in (first, other)
            }
            assert max(totals, key=totals.get) == leader
            checked += 1
    assert checked
    section = sheet.section("weights")
    assert f"{100 * found.flips['flip'].iloc[0]:.1f} %" in section.finding
    assert [section.key for section in sheet.sections()].count("weights") == 1


def test_systems_whose_metrics_do_not_add_up_have_no_section_on_weights():
    scores = systems(a=0.1, b=0.0)
    sheet = rn.assess(scores[["sample_id", "system", "faithfulness"]], gates=[])
    assert sheet.weightings == ()
    assert sheet.section("weights") is None
