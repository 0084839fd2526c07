"""What other tools answer to the same input, next to ragnb: claims, ranks, noise, quality and cost.

    pip install contexttrace ragproof errorbars evalstats      # those that are installed take part
    python benchmarks/beside.py [--draws 200] [--seed 7]

Every input is written or drawn here, so that the right answer is known. No tool asks a model.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import re
import warnings
from collections.abc import Iterator
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

import ragnb as rn

PASSAGES = {
    "p1": "Seals are wearing parts. They are replaced free of charge within 14 days of delivery.",
    "p2": "The pump has a warranty of 730 days, except for seals. It starts on the day of delivery.",
    "p3": "一线城市每晚不超过450元，其他城市每晚不超过320元。打车费每天上限为120元，凭行程单报销。",
}
# What an answer is, the answer, and whether what it cites says so; None is a refusal, which claims nothing.
CLAIMS: list[tuple[str, str, bool | None]] = [
    ("right", "Seals are replaced free of charge within 14 days [p1].", True),
    ("right, Chinese", "一线城市每晚不超过450元[p3]。", True),
    ("right, other words", "You have two weeks to have seals swapped at no cost [p1].", True),
    ("another figure", "Seals are replaced free of charge within 90 days [p1].", False),
    ("another figure, Chinese", "一线城市每晚不超过9999元[p3]。", False),
    ("another passage", "The pump has a warranty of 730 days [p1].", False),
    ("a passage that is not there", "The pump has a warranty of 730 days [p9].", False),
    ("made up", "The pump must be serviced by a certified engineer every spring [p2].", False),
    ("negated", "Seals are not replaced free of charge within 14 days [p1].", False),
    ("figure of another thing", "Seals have a warranty of 730 days [p2].", False),
    ("refusal", "The documents do not say who installs the pump.", None),
    ("refusal, Chinese", "资料中没有说明谁负责安装水泵。", None),
]
REFUSALS = ("do not say", "没有说明")  # patterns
DOCUMENTS, QUESTIONS, REPEATS = 20, 5, 3
# Planted variances of documents, questions, and answers that were drawn again.
PLANTED = (0.01, 0.02, 0.02)


def version(name: str) -> str | None:
    """The version of a package, None where it is not installed."""
    return metadata.version(name) if importlib.util.find_spec(name) else None


# Claims


def claims() -> Iterator[dict[str, Any]]:
    """Whether each tool says that the claim of each answer is supported by what it cites."""
    ours = _ours()
    theirs = _contexttrace()
    for name, _, truth in CLAIMS:
        yield {"answer": name, "supported in truth": truth, "ragnb": ours[name]} | theirs.get(
            name, {}
        )


def _ours() -> dict[str, str]:
    passages = [{"id": key, "text": text} for key, text in PASSAGES.items()]
    rows = {"sample_id": [name for name, _, _ in CLAIMS], "question": "What applies?"}
    frame = pd.DataFrame(rows | {"answer": [answer for _, answer, _ in CLAIMS]})
    found = rn.label_claims(frame.assign(chunks=[passages] * len(frame)), patterns=REFUSALS)
    verdicts = found.rows.set_index("sample_id")["verdict"].to_dict()
    return {name: verdicts.get(name, "no claim") for name, _, _ in CLAIMS}


def _contexttrace() -> dict[str, dict[str, str]]:
    number = version("contexttrace")
    if number is None:
        return {}
    from contexttrace.verify import RAGTrace, TraceCitation, TraceContext, verify_trace

    found = {}
    contexts = [TraceContext(key, text) for key, text in PASSAGES.items()]
    for name, answer, _ in CLAIMS:
        plain = re.sub(r"\s*\[p\d\]", "", answer)
        cited = [TraceCitation(plain, key) for key in re.findall(r"\[(p\d)\]", answer)]
        verified = verify_trace(RAGTrace("What applies?", plain, contexts, cited))
        said = [f"{claim['verdict']}, {claim['citation_status']}" for claim in verified["claims"]]
        rate = verified["summary"]["support_rate"]
        found[name] = {
            f"contexttrace {number}": "; ".join(said) or f"no claim, support_rate {rate}"
        }
    return found


# Ranks

RANKED = {
    "found first": (["a", "x", "y", "z", "w"], ["a"]),
    "two of three found": (["x", "a", "b", "y", "z"], ["a", "b", "c"]),
    "the same passage twice": (["x", "x", "a", "y", "z"], ["a"]),
    "two passages retrieved": (["a", "b"], ["a"]),
    "nothing retrieved": ([], ["a"]),
}
RANK_METRICS = ("precision@5", "recall@5", "ndcg@5", "mrr@5")


def ranks() -> Iterator[dict[str, Any]]:
    """What precision, recall, nDCG and MRR of the first five are."""
    number = version("ragproof")
    for name, (chunks, gold) in RANKED.items():
        frame = pd.DataFrame(
            {"sample_id": ["s"], "chunks": [chunks], "gold_ids": [gold], "answerable": [True]}
        )
        table = rn.label_retrieval(frame, k=(5,)).iloc[0]
        line = {"run": name, "ragnb": _four(float(table[metric]) for metric in RANK_METRICS)}
        if number:
            line[f"ragproof {number}"] = _four(asyncio.run(_ragproof(chunks, gold)))
        yield line


async def _ragproof(chunks: list[str], gold: list[str]) -> list[float]:
    from ragproof.adapters.base import RetrievedChunk
    from ragproof.metrics import retrieval

    case = SimpleNamespace(expected_source_ids=gold)
    held = [RetrievedChunk(id=key, text=key, score=1.0, metadata={}) for key in chunks]
    kinds = (retrieval.PrecisionAtK, retrieval.RecallAtK, retrieval.NDCGAtK, retrieval.MRR)
    found = [await kind(k=5).evaluate(case, SimpleNamespace(retrieved=held)) for kind in kinds]
    return [float("nan") if one.value is None else one.value for one in found]


def _four(values: Any) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


# Noise


def drawn(rng: np.random.Generator) -> pd.DataFrame:
    """Scores with `PLANTED` variances of documents, questions and repeated answers."""
    of_document, of_question, of_answer = np.sqrt(PLANTED)
    shape = (DOCUMENTS, QUESTIONS, REPEATS)
    score = 0.5 + of_document * rng.standard_normal((DOCUMENTS, 1, 1))
    score = score + of_question * rng.standard_normal((DOCUMENTS, QUESTIONS, 1))
    score = score + of_answer * rng.standard_normal(shape)
    document, question, repeat = (part.ravel() for part in np.indices(shape))
    names = [f"q{d}.{q}" for d, q in zip(document, question, strict=True)]
    rows = {"doc_name": document.astype(str), "sample_id": names, "repeat": repeat + 1}
    return pd.DataFrame(rows | {"score": score.ravel()})


def noise(draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """Return the mean of the variances that each tool finds of documents, questions and answers."""
    rng = np.random.default_rng(seed)
    metric = rn.Metric("score", -10, 10)
    found: dict[str, list[tuple[float, ...]]] = {}
    for _ in tqdm(range(draws), desc="noise", leave=False):
        frame = drawn(rng)
        ours = rn.noise(frame, metrics=metric).shares["variance"]
        found.setdefault("ragnb", []).append(tuple(ours))
        for name, (within, between) in _splits(frame):
            found.setdefault(name, []).append((float("nan"), between, within))
    yield {"tool": "planted"} | _variances(PLANTED)
    for name, rows in found.items():
        yield {"tool": name} | _variances(np.mean(rows, axis=0))


def _splits(frame: pd.DataFrame) -> Iterator[tuple[str, tuple[float, float]]]:
    """The variances within and between questions, by each tool that is installed."""
    if number := version("errorbars"):
        from errorbars.stats import within_between_variance

        yield f"errorbars {number}", within_between_variance(frame["score"], frame["sample_id"])
    if number := version("evalstats"):
        from evalstats.core.variance import seed_variance_decomposition

        cube = frame["score"].to_numpy().reshape(1, -1, REPEATS)
        split = seed_variance_decomposition(cube, ["system"])
        yield f"evalstats {number}", (float(split.seed_var[0]), float(split.input_var[0]))


def _variances(values: Any) -> dict[str, str]:
    names = ("documents", "questions", "answers")
    written = [f"{value:.4f}" if value == value else "" for value in values]
    return dict(zip(names, written, strict=True))


# Quality and cost


def trades(seed: int) -> Iterator[dict[str, Any]]:
    """What each tool says of a system that is as good as the old one, and costs a sixth."""
    frame = _two_systems(np.random.default_rng(seed))
    found = rn.compare_operations(frame, baseline="old")
    cost = found[found["statistic"] == "mean"].iloc[0]
    change = f"{cost['change']:+.1%} ({cost['change_low']:+.1%} to {cost['change_high']:+.1%})"
    quality = rn.compare(frame, baseline="old", margin=0.05).iloc[0]
    said = f"{quality['metric']} {quality['outcome']}; cost_usd {cost['outcome']}, {change}"
    yield {"tool": "ragnb", "says of the new system": said}
    if number := version("evalstats"):
        yield {"tool": f"evalstats {number}", "says of the new system": _tradeoff(frame, seed)}


def _two_systems(rng: np.random.Generator) -> pd.DataFrame:
    """Two systems of one quality, whose documents differ; the new one costs a sixth."""
    document = np.repeat(np.arange(DOCUMENTS), 10)
    of_document = rng.standard_normal(DOCUMENTS)[document]
    names = np.arange(len(document)).astype(str)
    rows = []
    for system, price in (("old", 0.006), ("new", 0.001)):
        quality = 0.6 * of_document + 0.3 * rng.standard_normal(len(document))
        cost = price * np.exp(0.3 * rng.standard_normal(len(document)))
        table = {"system": system, "doc_name": document.astype(str), "sample_id": names}
        scores = {"faithfulness": 1 / (1 + np.exp(-quality)), "cost_usd": cost}
        rows.append(pd.DataFrame(table | scores))
    return pd.concat(rows, ignore_index=True)


def _tradeoff(frame: pd.DataFrame, seed: int) -> str:
    import evalstats

    options = {"factor": "system", "item_col": "sample_id", "primary_metric": "faithfulness"}
    found = evalstats.tradeoff(frame, secondary_metric={"cost_usd": "min"}, rng=seed, **options)
    chances = {name: f"{chance:.2f}" for name, chance in found.frontier_probability.items()}
    return f"status {dict(found.status)}, probability of being Pareto-optimal {chances}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = {
        "Claims: is it said by what it cites?": claims(),
        "Ranks: precision, recall, nDCG and MRR of the first five": ranks(),
        f"Noise: variances, means of {args.draws} draws": noise(args.draws, args.seed),
        "Quality and cost": trades(args.seed),
    }
    for title, rows in tables.items():
        table = pd.DataFrame([*rows])
        print(f"\n{title}\n\n| {' | '.join(table.columns)} |\n|{'---|' * len(table.columns)}")
        for row in table.itertuples(index=False):
            print(f"| {' | '.join(map(str, row))} |")


if __name__ == "__main__":
    main()
