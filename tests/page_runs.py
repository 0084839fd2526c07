"""Runs of every kind of page: of scores, failures, systems, judges, and logs of requests."""

from __future__ import annotations

import numpy as np
import pandas as pd

import ragnb as rn

METRICS = ("faithfulness", "answer_relevancy", "context_recall", "context_precision")
HOSTILE = "<b>x</b> & | `rm` $(x)\u202e"
KINDS = ("scores", "failed", "part", "systems", "judge", "one row", "nothing known", "hostile")


def rows(rng, n, mean, docs=12, name=""):
    made = {
        "sample_id": [f"q{i}" for i in range(n)],
        "question": [f"question {i} {name}?" for i in range(n)],
        "doc_name": [f"doc {i % docs} {name}" for i in range(n)],
    }
    for metric in METRICS:
        middle = mean + rng.normal(0, 0.12)
        made[metric] = np.clip(rng.normal(middle, 0.15, n), 0, 1).round(3)
    return pd.DataFrame(made)


def run_of(kind, seed, lang="en", **settings):
    """Return a run of a kind whose scores, gaps and sizes a seed draws."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n, mean = int(rng.integers(20, 90)), rng.uniform(0.4, 0.95)
    settings = {"lang": lang, "gates": [], **settings}
    frame = rows(rng, 1 if kind == "one row" else n, mean)
    if kind == "failed":
        frame[list(METRICS)] = np.nan
    if kind == "part":
        gone = rng.random((n, len(METRICS))) < rng.uniform(0.12, 0.7)
        frame[list(METRICS)] = frame[list(METRICS)].mask(gone)
        frame.loc[0, list(METRICS)] = 0.5
        frame.loc[1 : max(2, n // 8), METRICS[0]] = np.nan
    if kind == "systems":
        parts = []
        for k in range(int(rng.integers(2, 5))):
            part = frame.assign(system=f"system {k}")
            shift = rng.choice([0.0, 0.01, 0.05, -0.1])
            for metric in METRICS:
                noise = rng.normal(shift, rng.uniform(0.01, 0.2), n)
                part[metric] = (part[metric] + noise).clip(0, 1).round(3)
            parts.append(part)
        frame = pd.concat(parts, ignore_index=True)
    if kind == "judge":
        frame = frame.drop(columns=list(METRICS))
        frame["accuracy"] = np.clip(rng.normal(10 * mean, 2, n), 1, 10).round()
        frame["completeness"] = np.clip(frame["accuracy"] - 1, 1, 10)
        frame["suggestion"] = rng.choice(["Add a fact.", "Cite.", HOSTILE], n)
        settings["rubric"] = {
            "dimensions": [{"name": name, "weight": 1} for name in ("accuracy", "completeness")]
        }
    if kind == "nothing known":
        frame = frame.rename(columns={metric: f"{metric}_mine" for metric in METRICS})
        settings["metrics"] = [rn.Metric(f"{metric}_mine") for metric in METRICS]
    if kind == "hostile":
        frame = rows(rng, n, mean, name=HOSTILE).assign(system=rng.choice([HOSTILE, "b"], n))
    return rn.assess(frame, **settings)


SORRY = "I'm sorry, I could not find this in our help pages."


def requests(days=20, a_day=30, refused=0, late=0, failed=0, unsupported=0, start="2026-03-01"):
    """Return requests of which each day so many are refused, in the last seven `late` more, fail, or are off."""
    rows = []
    for day in range(days):
        date = pd.Timestamp(start) + pd.Timedelta(days=day)
        n_refused = refused + (late if day >= days - 7 else 0)
        for k in range(a_day):
            answer = f"You have {'99' if k < unsupported else '14'} days."
            is_failed = k >= a_day - failed and day >= days - 7
            if k < n_refused:
                answer = SORRY
            rows.append(
                {
                    "ts": (date + pd.Timedelta(minutes=k)).isoformat(),
                    "question": f"question {k}?",
                    "answer": "" if is_failed else answer,
                    "retrieved_contexts": ["You have 14 days."],
                    "ok": not is_failed,
                }
            )
    return rows
