"""How often the 95 % intervals of other tools hold the true value, next to ragnb's, on the same simulated scores.

    pip install inspect_ai evalstats trulens-core mlflow      # those that are installed take part
    python benchmarks/peers.py [--draws 400] [--seed 7]

20 documents with 10 questions each; the scores of a document correlate by ICC. Each tool's own function gets the
scores of one run (mean), or the differences of two runs with equal means (paired). The functions of MLflow,
TruLens and evalstats take rows for independent; those of inspect_ai know clusters where their field is named.
"""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from tqdm import tqdm

from ragnb import stats
from ragnb.comparison.estimates import difference

DOCUMENTS, QUESTIONS, LEVEL = 20, 10, 0.95
NAMES = np.repeat(np.arange(DOCUMENTS), QUESTIONS)
Interval = Callable[[np.ndarray], tuple[float, float]]


def passes(rng: np.random.Generator, mean: float, icc: float) -> np.ndarray:
    """0/1 scores; each document has its own chance to pass, Beta with this mean and ICC."""
    size = (1 - icc) / icc if icc else np.inf
    chance = (
        rng.beta(mean * size, (1 - mean) * size, DOCUMENTS) if icc else np.full(DOCUMENTS, mean)
    )
    return (rng.random((DOCUMENTS, QUESTIONS)) < chance[:, None]).astype(float).ravel()


def normal(rng: np.random.Generator, mean: float, icc: float, sd: float = 0.15) -> np.ndarray:
    """Scores with this standard deviation, unclipped."""
    of_document, own = (
        rng.standard_normal((DOCUMENTS, 1)),
        rng.standard_normal((DOCUMENTS, QUESTIONS)),
    )
    return (mean + sd * (np.sqrt(icc) * of_document + np.sqrt(1 - icc) * own)).ravel()


MEANS = {
    "pass/fail .9": (lambda rng, icc: passes(rng, 0.9, icc), 0.9),
    "pass/fail .98": (lambda rng, icc: passes(rng, 0.98, icc), 0.98),
    "normal-ish .7": (lambda rng, icc: normal(rng, 0.7, icc), 0.7),
}
PAIRED = {
    "pass/fail .75": lambda rng, icc: passes(rng, 0.75, icc) - passes(rng, 0.75, icc),
    "normal-ish": lambda rng, icc: normal(rng, 0.0, icc, 0.25),
}


def version(package: str) -> str | None:
    """Return the version of a package that can be used, None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def part_of(package: str, path: str) -> ModuleType:
    """Load one file of a package that need not be importable as a whole."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin).parent / path
    found = importlib.util.spec_from_file_location(file.stem, file)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def mean_ways() -> Iterator[tuple[str, Interval]]:
    def ours(x: np.ndarray) -> tuple[float, float]:
        found = stats.clustered_mean(x, NAMES, ends=(0.0, 1.0))
        return found.low, found.high

    yield "ragnb", ours
    if number := version("inspect_ai"):
        from inspect_ai.scorer import SampleScore, Score, ci, ci_wilson

        def inspect(metric: Any) -> Interval:
            def interval(x: np.ndarray) -> tuple[float, float]:
                x = np.clip(x, 0, 1)
                pairs = zip(x, NAMES, strict=True)
                found = metric(
                    [
                        SampleScore(score=Score(value=float(v)), sample_metadata={"doc": int(d)})
                        for v, d in pairs
                    ]
                )
                return found["lower"], found["upper"]

            return interval

        yield f"inspect_ai {number} ci()", inspect(ci())
        yield f"inspect_ai {number} ci(cluster)", inspect(ci(cluster="doc"))
        yield f"inspect_ai {number} ci_wilson(cluster)", inspect(ci_wilson(cluster="doc"))
    if number := version("evalstats"):
        import evalstats

        def quick(x: np.ndarray) -> tuple[float, float]:
            found = evalstats.mean_ci(x, rng=0, n_bootstrap=1000)
            return found.ci_low, found.ci_high

        yield f"evalstats {number} mean_ci", quick


def paired_ways() -> Iterator[tuple[str, Interval]]:
    def ours(d: np.ndarray) -> tuple[float, float]:
        binary = bool(np.isin(d, (-1, 0, 1)).all())
        found = difference(d, NAMES, np.ones(len(d)), width=1.0 if binary else np.inf)
        return found.low, found.high

    yield "ragnb", ours
    comparison = "genai/evaluation/comparison/significance_tests.py"
    if (number := version("mlflow")) and int(number.split(".")[1]) >= 18:
        bca = part_of("mlflow", comparison)._bootstrap_mean_ci
        yield f"MLflow {number} BCa", lambda d: bca(d, LEVEL)
    if number := version("trulens-core"):
        from trulens.core.utils.stats import bootstrap_ci

        yield f"TruLens {number} bootstrap_ci", lambda d: bootstrap_ci(d, n_bootstrap=2000)


def covered(way: Interval, draws: list[np.ndarray], truth: float) -> tuple[float, float]:
    """Return the share of draws whose interval holds the truth, and the mean width."""
    ends = np.array([way(x) for x in draws], dtype=float)
    inside = (ends[:, 0] <= truth + 1e-9) & (truth - 1e-9 <= ends[:, 1])
    return float(inside.mean()), float((ends[:, 1] - ends[:, 0]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = (
        ("mean", MEANS, dict(mean_ways())),
        ("paired difference", PAIRED, dict(paired_ways())),
    )
    for title, populations, ways in tables:
        print(f"\n| {title} | ICC | " + " | ".join(ways) + " |\n|---|---|" + "---|" * len(ways))
        for name, made in tqdm(populations.items(), leave=False):
            draw, truth = made if isinstance(made, tuple) else (made, 0.0)
            for icc in (0.0, 0.1, 0.3):
                rng = np.random.default_rng([asked.seed, int(100 * icc), len(name)])
                draws = [draw(rng, icc) for _ in range(asked.draws)]
                found = [covered(way, draws, truth) for way in ways.values()]
                shown = " | ".join(f"{100 * share:.1f} {width:.3f}" for share, width in found)
                print(f"| {name} | {icc:g} | {shown} |")
    error = 2 * np.sqrt(0.95 * 0.05 / asked.draws) * 100
    print(f"\nCovered % and mean width, {asked.draws} draws (± {error:.1f} where 95 % are covered)")


if __name__ == "__main__":
    main()
