"""The result frames of the quickstart, which the reference describes column by column."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

import ragnb as rn
from ragnb.errors import RagnbWarning
from ragnb.schema import known_metric

ROOT = Path(__file__).resolve().parents[2]
DATA, SCENARIOS = ROOT / "data/quickstart", ROOT / "scenarios"
REFUSAL = ["not in context", "资料中没有相关内容"]


def added(frame: pd.DataFrame, source: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of a frame that its source does not have."""
    return pd.DataFrame(frame)[[name for name in frame.columns if name not in source.columns]]


@cache
def sheet() -> rn.Assessment:
    """Return the assessment of the quickstart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RagnbWarning)
        return rn.assess(SCENARIOS / "quickstart.yaml")


@cache
def card() -> rn.CalibrationCard:
    """Return the calibration card of the quickstart's simulated judge."""
    return rn.calibrate(rn.read_ratings(DATA / "ratings.csv"))


@cache
def results() -> dict[str, pd.DataFrame]:
    """Return each frame by its name in ``reference.<lang>.toml``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RagnbWarning)
        return _results()


def _results() -> dict[str, pd.DataFrame]:
    scenario, baseline = str(SCENARIOS / "quickstart.yaml"), str(SCENARIOS / "quickstart_weak.yaml")
    scores, cases = (
        rn.read_scores(DATA / "scores_simulated.csv"),
        rn.read_cases(DATA / "cases.jsonl"),
    )
    traces, gold = rn.read_traces(DATA / "traces.strong.jsonl"), rn.read_gold(DATA / "gold.json")
    ratings, labelled = (
        rn.read_ratings(DATA / "ratings.csv"),
        rn.label_traces(traces, gold=gold, refusal=REFUSAL),
    )
    standings = rn.standings(rn.read_scores(DATA / "scores.csv"))
    weights = rn.weight_map(scenario, baseline=baseline)
    rubric = [rn.Metric(name, 1, 10) for name in ("accuracy", "completeness", "clarity")]
    judged = rn.read_scores(DATA / "judged_simulated.csv", metrics=rubric)
    asked = cases[["sample_id", "question"]].head(3)
    log: Any = rn.assess(DATA / "traces.strong.jsonl").log
    answered = rn.answer_cases(
        asked, retrieve=lambda question: ["so"], generate=lambda question, passages: "so"
    )
    # Of no system: how long the text is, in the place of a latency.
    slow = scores.assign(latency_s=scores["question"].str.len() / 10, system="before")
    timed = pd.concat([slow, slow.assign(latency_s=slow["latency_s"] / 2, system="now")])
    talk = scores.assign(conversation_id=[k // 4 for k in range(len(scores))])
    talk["turn"] = talk.groupby("conversation_id").cumcount() + 1
    second = ratings.assign(second=ratings["judge"].clip(upper=9))
    prices = {"judge": 0.01, "second": 0.002}
    jury = rn.panel(second, judge=[*prices], scale=(1, 10), prices=prices, label_price=1.0)
    compared: dict[str, Any] = {"baseline": baseline}
    corpus = pd.read_json(DATA / "corpus.jsonl", lines=True)
    claims = rn.label_claims(traces, gold=gold, refusal=REFUSAL, passages=corpus)
    runs = [scores.assign(repeat=1), scores.assign(repeat=2, faithfulness=1.0)]
    split = rn.noise(pd.concat(runs, ignore_index=True), metrics="faithfulness", threshold=0.7)
    return {
        "means": rn.weighted_means(scores),
        "refusal_metrics": rn.refusal_metrics(labelled),
        "documents": sheet().documents,
        "slices": sheet().slices,
        "gates": sheet().gates,
        "diagnoses": sheet().diagnoses,
        "modes": sheet().modes,
        "failure_modes": added(rn.failure_modes(scores), scores),
        "weigh": added(rn.weigh(scores), scores),
        "noise_shares": split.shares,
        "noise_steps": split.steps,
        "noise_questions": split.questions,
        "noise_passing": split.passing,
        "notes": sheet().notes,
        "account": sheet().account,
        "ledger": sheet().ledger,
        "outcomes": sheet().outcomes,
        "label_counts": sheet().label_counts,
        "spread": sheet().spread,
        "compare": rn.compare(scenario, **compared),
        "compare_by": rn.compare(scenario, by="language", **compared),
        "turns": rn.assess(talk).turns,
        "compare_operations": rn.compare_operations(timed, baseline="before"),
        "operations": rn.assess(timed).operations,
        "changed_questions": rn.changed_questions(scenario, **compared),
        "passing": rn.assess(SCENARIOS / "rubric_judge.yaml").passing,
        "changed": rn.assess(DATA / "scores.csv", baseline="weak").changed,
        "standings_ranks": standings.ranks,
        "standings_pairs": standings.pairs,
        "weight_map_flips": weights.flips,
        "label_traces": added(labelled, traces),
        "label_claims": claims.rows,
        "claims_rates": claims.rates,
        "label_retrieval": added(rn.label_retrieval(traces, gold=gold, k=5), labelled),
        "retrieval": rn.retrieval(traces, gold=gold),
        "check_gold": rn.check_gold(gold),
        "applicable_metrics": rn.applicable_metrics(cases),
        "agreement": rn.agreement(ratings),
        "card_verdicts": card().verdicts,
        "card_bands": card().bands,
        "card_inflation": card().inflation,
        "card_recalibration": card().recalibration,
        "card_corrected": card().corrected,
        "card_reliability": card().reliability,
        "card_counts": card().counts,
        "card_budget": card().budget,
        "card_labels_needed": card().labels_needed,
        "panel_judges": jury.judges,
        "panel_added": jury.added,
        "panel_worth": jury.worth,
        "corrected_mean": rn.corrected_mean(ratings),
        "draw_labels": rn.draw_labels(judged, n=10),
        "plan": rn.plan(kind="gate", target=0.8, expected=0.9),
        "log_patterns": log.patterns,
        "log_changes": log.changes,
        "log_days": log.days,
        "log_daily": log.daily,
        "log_to_label": log.to_label,
        "inspect_file": rn.inspect_file(DATA / "scores_simulated.csv").metrics,
        "evaluate": added(rn.evaluate(cases.head(3)), cases),
        "answer_cases": added(answered, asked),
        "read_scores": scores,
        "read_cases": cases,
        "read_traces": traces,
        "read_gold": gold,
        "read_ratings": ratings,
    }


def described(name: str) -> str:
    """Return the name that a column is described by: those of each metric or rate stand for all of them.

    >>> described("faithfulness__status"), described("over_refusal"), described("sample_id")
    ('<metric>__status', '<metric>', 'sample_id')
    """
    metric, _, end = name.partition("__")
    if known_metric(metric) is not None:
        return f"<metric>__{end}" if end else "<metric>"
    return name
