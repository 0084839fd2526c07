"""How often the 95 % interval of a paired comparison holds the true difference, and says better or worse falsely.

    python benchmarks/comparison.py [--quick] [--rows] [--csv FILE] [--seed 7]
    python benchmarks/comparison.py --people       what ratings make of a judge that favours one system
    python benchmarks/comparison.py --speed        one weighting from `rn.weight_map` beside a call of `rn.compare`

Two systems answer the same questions of G documents. The differences of one document correlate by ICC: whole
documents suit one system better. `clustered` is the interval and the word of `rn.compare` (the last line checks it
against the library); `i.i.d.` takes rows for independent, as most tools do. Better and worse are counted where the
true difference is 0. In the last table the new system is silent on half of the hardest fifth: the questions on
which the old system, or it itself, scores least.
"""

from __future__ import annotations

import argparse
import itertools
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import digamma, stdtr, stdtrit
from tqdm import tqdm

import ragnb as rn
from ragnb.comparison.estimates import difference, outcome_of, p_value
from ragnb.comparison.people import decided_apart, decided_by_people

RUNS = {10: 12_000, 20: 8_000, 50: 5_000}
ICC = (0.0, 0.1, 0.3, 0.5)
SIZES = ("10 each", "1 to 30")
MISSING = (0.0, 0.15)
KINDS = ("normal-ish", "pass/fail .75", "pass/fail .92")
TRUE = (0.0, 0.05)
MARGIN = 0.05


@dataclass(frozen=True)
class Drawn:
    """Resamples × documents × questions: both systems' scores, and which questions there are."""

    new: np.ndarray
    old: np.ndarray
    asked: np.ndarray
    truth: float


def draw(
    rng: np.random.Generator, kind: str, icc: float, g: int, sizes: str, effect: float, runs: int
) -> Drawn:
    """Draw scores whose differences correlate by about `icc` within a document and are `effect` on average.

    ``normal-ish``: a question's ease shared by both systems, difference with standard deviation .25, unclipped.
    ``pass/fail``: 0/1 with a document's own chance under each system, .75 or .92 on average (+ effect).
    """
    m = 30 if sizes == "1 to 30" else 10
    shape = (runs, g, m)
    n = rng.integers(1, 31, (runs, g, 1)) if sizes == "1 to 30" else np.full((runs, g, 1), 10)
    asked = np.arange(m) < n
    if kind == "normal-ish":
        ease = rng.normal(0.6, 0.15, shape)
        move = np.sqrt(icc) * rng.normal(0, 0.25, (runs, g, 1)) + np.sqrt(1 - icc) * rng.normal(
            0, 0.25, shape
        )
        return Drawn(ease + effect + move, ease, asked, effect)
    base, spread = float(kind.split()[1]), 1 / icc - 1 if icc else 0.0

    def chances(p: float) -> np.ndarray:
        one = (runs, g, 1)
        return rng.beta(p * spread, (1 - p) * spread, one) if spread else np.full(one, p)

    both = rng.random(
        shape
    )  # what makes a question easy for one system makes it easy for the other
    shared = rng.random(shape) < 0.6
    sides = []
    for p in (base + effect, base):
        luck = np.where(shared, both, rng.random(shape))
        sides.append((luck < chances(p)).astype(float))
    return Drawn(sides[0], sides[1], asked, effect)


@dataclass(frozen=True)
class Interval:
    """The differences' mean, standard error and degrees of freedom for every resample."""

    value: np.ndarray
    se: np.ndarray
    df: np.ndarray
    width: float = np.inf

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        half = stdtrit(self.df, 0.975) * self.se
        return np.maximum(self.value - half, -self.width), np.minimum(self.value + half, self.width)

    @property
    def p(self) -> np.ndarray:
        return 2 * stdtr(self.df, -np.abs(self.value) / self.se)


def paired(d: np.ndarray, there: np.ndarray, binary: bool) -> dict[str, Interval]:
    """Return the interval with documents as clusters and with rows, both with the floor for pass/fail pairs."""
    d = np.where(there, d, 0.0)
    a, sums = there.sum(2).astype(float), d.sum(2)
    n, g = a.sum(1), (a > 0).sum(1)
    value = sums.sum(1) / n
    h = a / n[:, None]
    moved = (sums - a * value[:, None]) / np.maximum(n[:, None] - a, 1e-9)
    clustered = np.sqrt((g - 1) / g * (moved**2).sum(1))
    df = np.maximum(1 / (h**2).sum(1) - 1, 1.0)
    squares = np.where(there, (d - value[:, None, None]) ** 2, 0.0).sum((1, 2))
    rows = np.sqrt(squares / (n - 1) / n)
    if binary:
        changed = (np.abs(d) > 1e-9).sum((1, 2))
        # Two changes are added; in documents each is worth the harmonic number of the questions in one.
        inside = digamma(n / (df + 1) + 1) + np.euler_gamma
        for_rows, for_documents = (
            np.sqrt(changed + 2 * added - d.sum((1, 2)) ** 2 / (n + 2)) / (n + 2)
            for added in (1.0, inside)
        )
        clustered = np.where(changed < 20, np.maximum(clustered, for_documents), clustered)
        rows = np.where(changed < 20, np.maximum(rows, for_rows), rows)
    width = 1.0 if binary else np.inf
    return {
        "clustered": Interval(value, clustered, df, width),
        "i.i.d.": Interval(value, rows, n - 1, width),
    }


def library_gap(
    drawn: Drawn, there: np.ndarray, binary: bool, ours: Interval, few: int = 20
) -> float:
    """Return how far this file's intervals are from those of the library, over some resamples."""
    gap, (low, high) = 0.0, ours.ends
    documents = np.broadcast_to(np.arange(there.shape[1])[:, None], there.shape[1:]).ravel()
    for r in range(min(few, len(low))):
        d = np.where(there[r], drawn.new[r] - drawn.old[r], np.nan).ravel()
        width = 1.0 if binary else np.inf
        found = difference(d, documents, np.ones(d.size), width=width)
        gap = max(
            gap, abs(found.low - low[r]), abs(found.high - high[r]), abs(p_value(found) - ours.p[r])
        )
        word = outcome_of(found.low, found.high, margin=MARGIN, better="higher")
        gap = max(gap, float(word != words(np.array([low[r]]), np.array([high[r]]))[0]))
    return gap


def words(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    is_within = (low >= -MARGIN) & (high <= MARGIN)
    return np.select(
        [is_within & (low > 0), is_within & (high < 0), is_within, low > 0, high < 0],
        ["better_within", "worse_within", "same", "better", "worse"],
        "undecided",
    )


def measure(
    kind: str, icc: float, g: int, sizes: str, missing: float, effect: float, runs: int, seed: int
) -> list[dict]:
    """Return the covered share, false better and worse, and mean width of both intervals in one setting."""
    key = zlib.crc32(f"{kind} {sizes} {missing} {effect}".encode())
    rng = np.random.default_rng([seed, key, g, round(100 * icc)])
    total, gap, block = {}, 0.0, 2_000
    for start in range(0, runs, block):
        drawn = draw(rng, kind, icc, g, sizes, effect, min(block, runs - start))
        there = drawn.asked & (rng.random((2, *drawn.asked.shape)) >= missing).all(0)
        ways = paired(drawn.new - drawn.old, there, kind != "normal-ish")
        if not start:
            gap = library_gap(drawn, there, kind != "normal-ish", ways["clustered"])
        for way, found in ways.items():
            low, high = found.ends
            inside = (low <= effect) & (effect <= high)
            word = words(low, high)
            counts = [
                inside.sum(),
                np.isin(word, ["better", "better_within"]).sum(),
                np.isin(word, ["worse", "worse_within"]).sum(),
                (high - low).sum(),
            ]
            total[way] = total.get(way, 0) + np.array(counts, dtype=float)
    setting = {
        "kind": kind,
        "ICC": icc,
        "G": g,
        "sizes": sizes,
        "missing": missing,
        "effect": effect,
    }
    return [
        setting
        | {
            "way": way,
            "covered": c / runs,
            "better": b / runs,
            "worse": w / runs,
            "width": s / runs,
            "runs": runs,
            "gap": gap,
        }
        for way, (c, b, w, s) in total.items()
    ]


def hard_ones_missing(kind: str, by: str, g: int, runs: int, seed: int) -> dict:
    """Return what is seen where the new system is silent on half of the hardest fifth; the truth is +.05."""
    rng = np.random.default_rng([seed, g, len(kind)])
    drawn = draw(rng, kind, 0.1, g, "10 each", 0.05, runs)
    ease = (drawn.old if by == "old" else drawn.new) + 1e-6 * rng.random(
        drawn.new.shape
    )  # ties by chance
    fifth = np.quantile(ease, 0.2, axis=(1, 2), keepdims=True)
    there = (ease > fifth) | (rng.random(ease.shape) < 0.5)
    found = paired(drawn.new - drawn.old, there, kind != "normal-ish")["clustered"]
    low, high = found.ends
    n = there.sum((1, 2))
    two = np.where(there, drawn.new, 0.0).sum((1, 2)) / n - drawn.old.mean((1, 2))
    worst = (np.where(there, drawn.new, 0.0) - drawn.old).mean((1, 2))
    return {
        "kind": kind,
        "hardest for": by,
        "G": g,
        "n_only_baseline": round(float((~there).sum((1, 2)).mean())),
        "common questions": found.value.mean(),
        "covered": f"{100 * ((low <= 0.05) & (high >= 0.05)).mean():.1f}",
        "two means": two.mean(),
        "worst_case": worst.mean(),
    }


def table_of(rows: pd.DataFrame) -> str:
    """Return one line for each kind, way and G: the least covered and the most often false, over ICC and sizes."""
    lines = []
    for (kind, missing, way, g), part in rows.groupby(["kind", "missing", "way", "G"], sort=False):
        null = part[part["effect"] == 0]
        lines.append(
            {
                "kind": kind,
                "missing": f"{missing:.0%}",
                "way": way,
                "G": g,
                "settings": len(part),
                "least covered": f"{100 * part['covered'].min():.1f}",
                "median": f"{100 * part['covered'].median():.1f}",
                "false better": f"{100 * null['better'].max():.1f}",
                "false worse": f"{100 * null['worse'].max():.1f}",
                "width": f"{part['width'].mean():.3f}",
            }
        )
    return pd.DataFrame(lines).to_string(index=False)


def by_correlation(rows: pd.DataFrame) -> str:
    """Return the least covered share and the most frequent false word of both ways at each ICC."""
    null = rows[rows["effect"] == 0].assign(false=lambda t: t["better"] + t["worse"])
    least = rows.groupby(["kind", "way", "ICC"], sort=False)["covered"].min()
    most = null.groupby(["kind", "way", "ICC"], sort=False)["false"].max()
    cells = (100 * least).map("{:.1f}".format) + " / " + (100 * most).map("{:.1f}".format)
    return cells.unstack("ICC").reset_index().to_string(index=False)


def speed(
    questions: int = 100_000, docs: int = 300, rounds: int = 5, weightings: int = 10_000
) -> str:
    """Time both ways to the difference at other weights, interleaved, and return the medians of processor time."""
    rng, names = np.random.default_rng(0), ["context_recall", "context_precision", "faithfulness"]
    ease, doc = rng.random((questions, len(names))), rng.integers(0, docs, questions)
    parts = []
    for system, moved in (("new", 0.02), ("old", 0.0)):
        scores = np.clip(ease * 0.6 + 0.2 + rng.normal(0, 0.15, ease.shape) + moved, 0, 1)
        scores[rng.random(ease.shape) < 0.1] = np.nan
        labels = {
            "sample_id": np.arange(questions),
            "system": system,
            "doc_name": [f"d{d}" for d in doc],
        }
        parts.append(pd.DataFrame(scores, columns=names).assign(**labels))
    frame, weights = (
        pd.concat(parts, ignore_index=True),
        rng.dirichlet(np.ones(len(names)), weightings),
    )
    found = rn.weight_map(frame, baseline="old")
    times: dict[str, list[float]] = {"compare": [], "map": [], "one weighting": []}
    for _ in range(rounds):
        for name, work, share in (
            ("compare", lambda: rn.compare(frame, baseline="old"), 1),
            ("map", lambda: rn.weight_map(frame, baseline="old"), 1),
            ("one weighting", lambda: found.at(weights), weightings),
        ):
            start = time.process_time()
            work()
            times[name].append((time.process_time() - start) / share)
    medians = {name: float(np.median(values)) for name, values in times.items()}
    told = ", ".join(f"{name} {1e3 * value:.3g} ms" for name, value in medians.items())
    ratio = medians["compare"] / medians["one weighting"]
    return f"{questions} questions, medians of {rounds}: {told}; {ratio:,.0f} x"


def by_people(seed: int, runs: int = 600) -> pd.DataFrame:
    """Return how often a judge biased by ±.1 on one system makes it falsely better, and the power at +.05 and +.1.

    400 questions of 40 documents; people round to tenths, and rate random questions for both systems.
    """
    rows = []
    documents, weights = np.repeat(np.arange(40), 10), np.ones(400)
    how = {"width": 1.0, "level": 0.95, "complete": False}
    plan = list(itertools.product((0.1, -0.1), (0.08, 0.2), (40, 80, 160), (0.0, 0.05, 0.1)))
    for bias, noise, n, effect in tqdm(plan, unit="setting"):
        key = [seed, round(10 * bias) + 1, round(100 * noise), n, round(100 * effect)]
        rng = np.random.default_rng(key)
        better, covered = np.zeros(3), 0
        for _ in range(runs):
            truth = effect + rng.normal(0, 0.05, 40)[documents] + rng.normal(0, 0.15, 400)
            judged = truth + bias + rng.normal(0, noise, 400)
            rated = rng.permutation(400) < n
            human = np.where(rated, np.round(truth, 1), np.nan)
            found = decided_by_people(human, judged, documents, weights, is_rated=True, **how)
            judge = difference(judged, documents, weights, width=1.0)
            better += [judge.low > 0, found.human.low > 0, found.corrected.low > 0]
            covered += found.corrected.low <= effect <= found.corrected.high
        told = dict(zip(("judge", "people", "corrected"), better / runs, strict=True))
        setting = {"bias": bias, "judge noise": noise, "pairs": n, "true": effect}
        rows.append(setting | told | {"covered": covered / runs})
    return pd.DataFrame(rows)


def by_people_apart(seed: int, runs: int = 600) -> pd.DataFrame:
    """Return the same where people rate each system on random questions of its own."""
    rows = []
    documents, weights = np.repeat(np.arange(40), 10), np.ones(400)
    how = {"width": 1.0, "level": 0.95}
    plan = list(itertools.product((0.1, -0.1), (0.08, 0.2), (20, 40, 80, 160), (0.0, 0.05, 0.1)))
    for bias, noise, n, effect in tqdm(plan, unit="setting"):
        key = [seed, round(10 * bias) + 1, round(100 * noise), n, round(100 * effect), 1]
        rng = np.random.default_rng(key)
        better, covered = np.zeros(2), 0
        for _ in range(runs):
            old = 0.7 + rng.normal(0, 0.05, 40)[documents] + rng.normal(0, 0.15, 400)
            shift = rng.normal(0, 0.05, 40)[documents] + rng.normal(0, 0.15, 400)
            truth = np.stack([old + effect + shift, old])
            judged = truth + np.array([[bias], [0.0]]) + rng.normal(0, noise, (2, 400))
            rated = np.stack([rng.permutation(400) < n for _ in range(2)])
            human = np.where(rated, np.round(truth, 1), np.nan)
            found = decided_apart(human, judged, documents, weights, **how)
            better += [found.human.low > 0, found.corrected.low > 0]
            covered += found.corrected.low <= effect <= found.corrected.high
        told = dict(zip(("people", "corrected"), better / runs, strict=True))
        setting = {"bias": bias, "judge noise": noise, "ratings a system": n, "true": effect}
        rows.append(setting | told | {"covered": covered / runs})
    return pd.DataFrame(rows)


def main() -> None:
    """Measure every setting, then print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="a fifth of the resamples")
    options.add_argument("--rows", action="store_true", help="a line for every setting")
    options.add_argument("--csv", type=Path, help="write every setting to this file")
    options.add_argument("--seed", type=int, default=7)
    options.add_argument(
        "--speed", action="store_true", help="time the weight map beside compare, and stop"
    )
    options.add_argument("--people", action="store_true", help="let ratings decide, and stop")
    given = options.parse_args()
    if given.people:
        apart = by_people_apart(given.seed, 100 if given.quick else 600)
        print("Rated on different questions\n" + apart.to_string(index=False) + "\n")
        table = by_people(given.seed, 100 if given.quick else 600)
        print("\nShare of runs in which each says better\n" + table.round(3).to_string(index=False))
        return
    if given.speed:
        print(speed())
        return
    share = 5 if given.quick else 1
    plan = list(itertools.product(KINDS, ICC, RUNS, SIZES, MISSING, TRUE))
    rows = []
    for kind, icc, g, sizes, missing, effect in tqdm(plan, unit="setting"):
        rows += measure(kind, icc, g, sizes, missing, effect, RUNS[g] // share, given.seed)
    table = pd.DataFrame(rows)
    if given.csv:
        table.to_csv(given.csv, index=False)
    print(f"\nCovered %, and false better or worse % at a true difference of 0, margin {MARGIN}")
    print(table_of(table))
    print(
        f"\nBy ICC: least covered % / most often better or worse %, falsely\n{by_correlation(table)}"
    )
    if given.rows:
        print("\n" + table.drop(columns=["gap", "runs"]).round(3).to_string(index=False))
    hard = [
        hard_ones_missing(kind, by, g, RUNS[g] // share // 2, given.seed)
        for kind, by, g in itertools.product(KINDS, ("old", "new"), RUNS)
    ]
    print("\nThe new system is silent on half of the hardest fifth; it is better by .05")
    print(pd.DataFrame(hard).round(3).to_string(index=False))
    print(
        f"\nThe library's interval, p and word are those of `clustered`: largest gap {table['gap'].max():.1e}"
    )


if __name__ == "__main__":
    main()
