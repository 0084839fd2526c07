"""Raters and a judge that no one asked: scores from 1 to 10 drawn at random around what make.py measured."""

from __future__ import annotations

import random
from typing import Any

Row = dict[str, Any]
DIMENSIONS = ("accuracy", "completeness", "clarity")
LENIENCY = {"human1": -0.2, "human2": 0.0, "human3": 0.3}
RATED = 120  # answers that people rated; the judge scored all of them
THIRD_RATER = 0.6  # share of the rated answers that the third rater saw
ACCURACY_BONUS = {
    "weak": 1.5,
    "strong": 0.2,
}  # what the judge adds: it falls for the stock phrase of the weak system
SPREAD = {"rater": 0.55, "judge": 0.5, "document": 0.5, "answer": 0.5}


def worth(row: Row) -> dict[str, float]:
    """What an answer deserves by dimension, from what was measured, before any noise."""
    refused, correct = row["support_lexical__status"] == "not_applicable", row["answer_correctness"]
    if row["answerable"]:
        accuracy = 2.5 if refused else 2.0 + 7.5 * correct
        complete = 1.5 if refused else 2.0 + (6.5 if row["kind"] == "multi" else 7.5) * correct
    else:
        accuracy, complete = (9.5, 9.0) if refused else (1.5, 2.5)
    return {
        "accuracy": accuracy,
        "completeness": complete,
        "clarity": 7.3 if row["system"] == "weak" else 8.0,
    }


def whole(score: float) -> int:
    """A score as raters give it: a whole number from 1 to 10."""
    return max(1, min(10, int(score + 0.5)))


def rate(scores: list[Row], seed: int = 20250304) -> tuple[list[Row], list[Row]]:
    """The simulated judge, a row an answer; and beside it the simulated raters, a row an answer and dimension."""
    rng = random.Random(seed)
    by_document = {
        name: rng.gauss(0, SPREAD["document"])
        for name in sorted({row["doc_name"] for row in scores})
    }
    rated = set(rng.sample(range(len(scores)), RATED))
    judged, ratings = [], []
    for number, row in enumerate(scores):
        own = by_document[row["doc_name"]] + rng.gauss(0, SPREAD["answer"])
        three = rng.random() < THIRD_RATER
        said = {
            name: one(rng, row["system"], name, own, centre) for name, centre in worth(row).items()
        }
        judged.append(
            {"sample_id": row["sample_id"], "system": row["system"], "origin": "simulated"}
            | {
                key: row[key]
                for key in ("doc_name", "language", "answerable", "question", "answer")
            }
            | {name: scores_of["judge"] for name, scores_of in said.items()}
        )
        for dimension in DIMENSIONS if number in rated else ():
            people = {name: said[dimension][name] for name in LENIENCY}
            people["human3"] = people["human3"] if three else None
            head = {"item_id": row["sample_id"], "system": row["system"], "origin": "simulated"}
            about = {
                "doc_name": row["doc_name"],
                "language": row["language"],
                "dimension": dimension,
            }
            ratings.append(head | about | {"judge": said[dimension]["judge"]} | people)
    return judged, ratings


def one(rng: random.Random, system: str, dimension: str, own: float, centre: float) -> Row:
    """The scores of one answer in one dimension, by the judge and by each rater."""
    true = centre + own * (0.4 if dimension == "clarity" else 1.0)
    scores: Row = {
        name: whole(true + kind + rng.gauss(0, SPREAD["rater"])) for name, kind in LENIENCY.items()
    }
    bonus = ACCURACY_BONUS[system] if dimension == "accuracy" else 0.0
    scores["judge"] = whole(true + bonus + rng.gauss(0, SPREAD["judge"]))
    if dimension == "clarity":
        scores["judge"] = 8 if rng.random() < 0.9 else 7  # a judge that hardly varies
    return scores
