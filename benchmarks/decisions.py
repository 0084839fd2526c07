"""How often the decisions of ragnb are wrong, on scores whose truth is known, beside the figures of their design.

    python benchmarks/decisions.py [--draws 8000] [--only NAME ...] [--seed 16]

Seven tables (`--only`): how often a gate flips in an identical repeat (flip); how often the planned further
questions decide (more_needed); what happens where whole documents fail unseen (whole); intervals of a complete
corpus (complete); TRUST looked at fifteen times (looks); judging that stops early (order); whether as many
questions as `rn.plan` says decide (plan). Made-up scores are of three kinds (normal-ish, pass/fail, piled at 1),
with an intra-document correlation ICC; documents of the real sets, in the folder that RAGNB_SHARED names or
../shared, are drawn with replacement. Means, intervals and decisions are those of `ragnb.stats`; the last line
checks them against `rn.weighted_means` and `rn.check_gates` on whole tables. `asked` is the figure of the design,
± two Monte-Carlo standard errors.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from populations import Population, real_sets

import ragnb as rn
from ragnb import stats
from ragnb.errors import RagnbWarning

DATA = (
    Path(os.environ.get("RAGNB_SHARED") or Path(__file__).resolve().parents[2] / "shared") / "data"
)
SD = 0.15
Array = np.ndarray


# Made-up scores


class Sums(NamedTuple):
    """Sums of the scores of documents, and how many of the scores are full marks."""

    total: Array
    full: Array


@dataclass(frozen=True)
class Made:
    """Scores of documents that differ: `icc` of a score's variance lies between documents.

    ``normal-ish``: normal with standard deviation .15, unclipped. ``pass/fail``: 0/1, each document with its own
    chance from a Beta. ``piled at 1``: 1, or else a number around .5 (the mean of two uniform ones), each document
    with its own share of 1 from a Beta.
    """

    kind: str
    icc: float

    @property
    def binary(self) -> bool:
        return self.kind == "pass/fail"

    def documents(self, rng: np.random.Generator, truth: Any, shape: tuple[int, ...]) -> Array:
        """Draw what makes each document what it is: its mean, or of ``piled at 1`` its share of full marks."""
        truth = np.broadcast_to(np.asarray(truth, dtype=float), shape)
        if self.kind == "normal-ish":
            return truth + np.sqrt(self.icc) * rng.normal(0, SD, shape)
        p = 2 * truth - 1 if self.kind == "piled at 1" else truth
        if not self.icc:
            return p
        between = p * (1 - p) / self.variance(p) / (4 if self.kind == "piled at 1" else 1)
        spread = between / self.icc - 1
        return np.clip(rng.beta(p * spread, (1 - p) * spread), 1e-9, 1 - 1e-9)

    def variance(self, p: Array) -> Array:
        """Return the variance of one score, of `p` the mean or share of full marks."""
        whole = {"normal-ish": SD**2 + 0 * p, "pass/fail": p * (1 - p)}
        return (
            whole[self.kind]
            if self.kind in whole
            else p + (1 - p) * (1 / 4 + 1 / 24) - ((1 + p) / 2) ** 2
        )

    def means(self, documents: Array) -> Array:
        return (1 + documents) / 2 if self.kind == "piled at 1" else documents

    def rows(self, rng: np.random.Generator, documents: Array, m: int) -> Array:
        """Draw m scores of each document, on a last axis more."""
        shape = (*documents.shape, m)
        if self.kind == "normal-ish":
            return documents[..., None] + np.sqrt(1 - self.icc) * SD * rng.standard_normal(shape)
        full = rng.random(shape) < documents[..., None]
        rest = 0.0 if self.binary else (rng.random(shape) + rng.random(shape)) / 2
        return np.where(full, 1.0, rest)

    def sums(self, rng: np.random.Generator, documents: Array, n: Any) -> Sums:
        """Draw the sums of n scores of each document (numbers around .5 add up to a normal one)."""
        if self.kind == "normal-ish":
            noise = np.sqrt((1 - self.icc) * n) * SD * rng.standard_normal(documents.shape)
            return Sums(n * documents + noise, np.zeros(documents.shape))
        full = rng.binomial(n, documents)
        rest = n - full
        if self.binary:
            return Sums(full, full)
        part = rest / 2 + np.sqrt(rest / 24) * rng.standard_normal(documents.shape)
        return Sums(full + np.clip(part, 0, rest), full)


KINDS = {"normal-ish": 0.7, "pass/fail": 0.8, "piled at 1": 0.9}
"""The kinds, with the threshold of their gates."""


@dataclass(frozen=True)
class Means:
    """Weighted means over documents (the last axis), and what their intervals are made from."""

    value: Array
    se: Array
    g_eff: Array
    kish: Array
    shares: Array
    elsewhere: tuple[Array, Array] | None

    @classmethod
    def of(cls, sums: Sums | Array, n: Any, v: Any = 1.0) -> Means:
        scores, full = sums if isinstance(sums, Sums) else (sums, None)
        n = np.broadcast_to(np.asarray(n, dtype=float), scores.shape)
        a = v * n
        total = a.sum(-1)
        value = (v * scores).sum(-1) / total
        h = a / total[..., None]
        moved = v * (scores - value[..., None] * n) / np.where(h < 1, 1 - h, 1.0)
        se = stats.jackknife_se(total, (a > 0).sum(-1).astype(float), (moved**2).sum(-1))
        elsewhere = None if full is None else ((n - full).sum(-1), n.sum(-1))
        kish = stats.kish(total, (v * a).sum(-1))
        return cls(value, se, 1 / (h**2).sum(-1), kish, h, elsewhere)

    @property
    def df(self) -> Array:
        return self.g_eff - 1

    def interval(self, **how: Any) -> tuple[Array, Array]:
        ends = np.zeros_like(self.value), np.ones_like(self.value)
        how |= {"sum_h4": (self.shares**4).sum(-1), "elsewhere": self.elsewhere}
        return stats.mean_interval(self.value, self.se, self.g_eff, self.kish, ends, **how)


def error(share: float, n: float) -> float:
    """Return two Monte-Carlo standard errors of a share of n draws."""
    return 2 * float(np.sqrt(max(share * (1 - share), 0.5 / max(n, 1)) / max(n, 1)))


def points(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}"


def misses(value: Array, threshold: Any) -> Array:
    return value < np.asarray(threshold) - 1e-9


def standard_error(made: Made, threshold: float, g: int, m: int) -> float:
    """Return the standard error of the mean of g documents with m questions each, at the threshold."""
    p = 2 * threshold - 1 if made.kind == "piled at 1" else threshold
    return float(np.sqrt(made.variance(np.array(p)) * (1 + (m - 1) * made.icc) / g / m))


def flat_truths(
    rng: np.random.Generator, made: Made, g: int, m: int, reach: float, runs: int
) -> Array:
    """Draw true means spread flat around the threshold, so many standard errors to either side."""
    b, se = KINDS[made.kind], standard_error(made, KINDS[made.kind], g, m)
    return rng.uniform(b - reach * se, min(b + reach * se, 0.999), (runs, 1))


# 3a. Flip probability

BINS = (".05", ".14", ".24", ".35", ".45")
"""What is asked for the repeats seen to flip where 0–.1, .1–.2 … was predicted."""


@dataclass(frozen=True)
class Flips:
    """The predicted probability of each run, nan where there is none, and whether its repeat flips."""

    name: str
    predicted: Array
    flipped: Array

    @classmethod
    def between(cls, name: str, first: Means, second: Means, thresholds: Array) -> Flips:
        given = zip(first.value, thresholds, first.se, first.df, strict=True)
        told = np.array([stats.flip_probability(*map(float, one)) for one in given])
        return cls(name, told, misses(first.value, thresholds) != misses(second.value, thresholds))

    @classmethod
    def joined(cls, parts: Sequence[Flips]) -> Flips:
        told, flipped = (
            np.concatenate([getattr(one, f) for one in parts]) for f in ("predicted", "flipped")
        )
        return cls(parts[0].name, told, flipped)

    def bins(self) -> Iterator[tuple[int, int, float, float]]:
        """Yield the number of each bin, its runs, the mean predicted and the share seen to flip."""
        which = np.where(
            np.isfinite(self.predicted), np.minimum(np.nan_to_num(self.predicted) * 10, 4), -1
        )
        for k in range(len(BINS)):
            own = which.astype(int) == k
            if own.any():
                yield (
                    k,
                    int(own.sum()),
                    float(self.predicted[own].mean()),
                    float(self.flipped[own].mean()),
                )


def made_up_flips(rng: np.random.Generator, runs: int) -> Iterator[Flips]:
    for kind, icc, g, even in itertools.product(
        KINDS, (0.0, 0.1, 0.3), (10, 20, 40), (True, False)
    ):
        made, ones = Made(kind, icc), []
        truth = flat_truths(rng, made, g, 6, 4, runs)
        for _ in range(2):
            n = np.full((runs, g), 6) if even else rng.integers(1, 12, (runs, g))
            v = 1.0 if even else rng.uniform(0.5, 4, (runs, g))
            ones.append(Means.of(made.sums(rng, made.documents(rng, truth, (runs, g)), n), n, v))
        name = f"{kind}, {'6 each' if even else '1-11 each, weights .5-4'}"
        yield Flips.between(name, *ones, np.full(runs, KINDS[kind]))


def real_flips(
    rng: np.random.Generator, sets: Sequence[Population], g: int, runs: int
) -> Iterator[Flips]:
    for one in sets:
        first, second = (Means.of(*one.draw(rng, runs, g, "")) for _ in range(2))
        yield Flips.between(
            one.name, first, second, one.truth + rng.uniform(-4, 4, runs) * first.value.std()
        )


def flip(rng: np.random.Generator, runs: int) -> None:
    """Print what share of repeats flips at each predicted probability."""
    sets, lines, totals = real_populations(), [], []
    groups = {("made up", ""): list(made_up_flips(rng, runs))}
    for g, want in ((15, ".123→.122"), (40, ".116→.114")):
        groups |= (
            {(f"real, {g} documents", want): list(real_flips(rng, sets, g, runs))} if sets else {}
        )
    for (name, want), parts in groups.items():
        whole = Flips.joined(parts)
        for k, n, told, seen in whole.bins():
            lines.append(
                {
                    "scores": name,
                    "predicted": f".{k}-.{k + 1}",
                    "mean predicted": f"{told:.3f}",
                    "asked": BINS[k],
                    "ours": f"{seen:.3f}",
                    "off": f"{seen - told:+.3f}",
                    "±": f"{error(seen, n):.3f}",
                    "draws": n,
                }
            )
        slack, bins, off = 0.03 if name == "made up" else 0.06, 0, dict[str, float]()
        for one in sorted({part.name for part in parts}):
            for k, n, told, seen in Flips.joined(
                [part for part in parts if part.name == one]
            ).bins():
                bins += n >= 100
                if n >= 100 and abs(seen - told) - error(seen, n) > slack:
                    off[f"{one} .{k}"] = seen - told
        known = np.isfinite(whole.predicted)
        totals.append(
            {
                "scores": name,
                "settings": len(parts),
                "mean: asked": want,
                "ours": f"{whole.predicted[known].mean():.3f}→{whole.flipped[known].mean():.3f}",
                "bins of one kind or set": bins,
                "clearly off by more than": slack,
                "which": "; ".join(f"{one} {x:+.2f}" for one, x in off.items()) or "none",
                "no prediction %": points(1 - known.mean()),
                "these flip %": points(whole.flipped[~known].mean()),
            }
        )
    show(
        "3a. Flip probability: predicted, and seen in an identical repeat; truths spread flat",
        lines,
    )
    show("", totals)
    rows = []
    for kind, b in KINDS.items():
        made, g, m = Made(kind, 0.1), 14, 6
        ones = [
            Means.of(made.sums(rng, made.documents(rng, b, (4 * runs, g)), m), m) for _ in range(2)
        ]
        found = Flips.between(kind, *ones, np.full(4 * runs, b))
        seen = float(found.flipped.mean())
        rows.append(
            {
                "scores": kind,
                "asked": "50, says 30",
                "ours": points(seen),
                "±": points(error(seen, 4 * runs)),
                "predicted": points(np.nanmean(found.predicted)),
                "draws": 4 * runs,
            }
        )
    show("The truth is the threshold itself, 84 questions from 14 documents, ICC .1: flips %", rows)


# 3b. Questions needed


def more_needed(rng: np.random.Generator, runs: int) -> None:
    """Print how often the planned number of further questions decides an inconclusive gate."""
    rows, m = [], 6
    for kind, g, icc in itertools.product(KINDS, (10, 20), (0.1, 0.3)):
        made, b = Made(kind, icc), KINDS[kind]
        truth = flat_truths(rng, made, g, m, 6, 4 * runs)
        sums = made.sums(rng, made.documents(rng, truth, (4 * runs, g)), m)
        pilot = Means.of(sums, m)
        low, high = pilot.interval(binary=made.binary)
        open_ = np.flatnonzero((low < b) & (b < high) & (pilot.se > 1e-9))[:runs]
        plans = [
            plan_of(*map(float, one), b, g * m)
            for one in zip(
                pilot.value[open_], low[open_], high[open_], pilot.df[open_], strict=True
            )
        ]
        k = np.array([plan or 0 for plan in plans])
        planned = open_[k > 0]
        further = np.where(np.arange(30 * g) < -(-k[k > 0] // m)[:, None], m, 0)
        more = made.sums(rng, made.documents(rng, truth[planned], further.shape), further)
        n = np.hstack([np.full((len(planned), g), m), further])
        both = Sums(*(np.hstack([old[planned], new]) for old, new in zip(sums, more, strict=True)))
        low, high = Means.of(both, n).interval(binary=made.binary)
        above, below, good = low > b, high < b, truth[planned, 0] >= b
        rows.append(
            {
                "scores": kind,
                "G": g,
                "ICC": icc,
                "inconclusive": len(open_),
                "no plan": (k == 0).mean(),
                "median k/n": np.median(k[k > 0]) / g / m,
                "planned": len(planned),
                "decided": (above | below).mean(),
                "±": error((above | below).mean(), len(planned)),
                "wrongly": (above & ~good | below & good).mean(),
            }
        )
    found = pd.DataFrame(rows)
    formats = dict.fromkeys(("no plan", "decided", "±", "wrongly"), points) | {
        "median k/n": "{:.1f}".format
    }
    title = "3b. Questions needed: k further ones over the n at hand; decided, after that many, %"
    show(title, found.assign(**{name: found[name].map(how) for name, how in formats.items()}))
    decided, wrong = 100 * found["decided"], 100 * found["wrongly"]
    show(
        "",
        [
            {
                "12 settings": "decided after that many %, least–most (mean)",
                "asked": "66–84 (77)",
                "ours": f"{decided.min():.0f}–{decided.max():.0f} ({decided.mean():.0f})",
            },
            {
                "12 settings": "decided wrongly %, most (mean)",
                "asked": "≤ .5",
                "ours": f"{wrong.max():.1f} ({wrong.mean():.1f})",
            },
            {
                "12 settings": "median k/n",
                "asked": "6.6",
                "ours": f"{found['median k/n'].mean():.1f}",
            },
            {
                "12 settings": "no plan under 30 n %",
                "asked": "37",
                "ours": points(found["no plan"].mean(), 0),
            },
        ],
    )


def plan_of(
    value: float, low: float, high: float, df: float, threshold: float, n: int
) -> int | None:
    size = stats.wilson_size(value, low, high, df, 0.95)
    return stats.questions_to_decide(value, threshold, n, df, 0.95, size=size)


# 1. Whole documents that fail


def low_if(means: Means, worst: Array, low: Array) -> tuple[Array, Array]:
    """Return the second low end where it is shown, else the low end itself, and whether it is shown."""
    shown = (worst > means.value / 2) & (means.kish >= 3 * means.g_eff - 1e-9) & (means.g_eff < 60)
    return np.where(shown, stats.unseen_failures(low, means.g_eff)[0], low), shown


def whole(rng: np.random.Generator, runs: int) -> None:
    """Print how often the interval holds the mean where whole documents fail, with and without low_if."""
    plan = [  # share of good documents, documents, questions, mean of a failed one, weights; today, joined, width
        (0.9, 10, 30, 0.0, "equal", "64.1", "98.7", "1.26"),
        (0.9, 20, 30, 0.0, "equal", "86.1", "98.1", "1.06"),
        (0.95, 20, 30, 0.0, "equal", "62.5", "98.2", "1.27"),
        (0.95, 50, 10, 0.0, "equal", "90.1", "97.9", "1.04"),
        (0.98, 50, 10, 0.0, "equal", "84.0", "98.5", "1.25"),
        (0.9, 20, 30, 0.3, "equal", "86", "98", "1.09"),
        (0.9, 20, 30, 0.5, "equal", "86", "98", "1.43"),
        (0.9, 20, 30, 0.0, ".5-4", "82.5", "94.6", "1.07"),
    ]
    rows, lines, asked = [], [], {10: ("98.1", ".3"), 20: ("97.8", "0")}
    for kind, (good, g, m, failed, weights, *want) in itertools.product(
        ("piled at 1", "pass/fail"), plan
    ):
        made, fails = Made(kind, 0.0), rng.random((runs, g)) >= good
        of_failed = rng.binomial(m, failed, fails.shape)
        good_ones = made.sums(rng, made.documents(rng, 0.9, fails.shape), m)
        sums, full = (np.where(fails, of_failed, part) for part in good_ones)
        found = Means.of(
            Sums(sums, full), m, 1.0 if weights == "equal" else rng.uniform(0.5, 4, fails.shape)
        )
        truth, (low, high) = good * 0.9 + (1 - good) * failed, found.interval(binary=made.binary)
        floor, shown = low_if(found, (sums / m).min(1), low)
        today, joined = ((end <= truth) & (truth <= high) for end in (low, floor))
        rows.append(
            {
                "scores": kind,
                "good": good,
                "G": g,
                "m": m,
                "failed mean": failed,
                "weights": weights,
                "today: asked": want[0],
                "ours": points(today.mean()),
                "joined: asked": want[1],
                "ours ": points(joined.mean()),
                "±": points(error(joined.mean(), runs)),
                "width ×: asked": want[2],
                "ours  ": f"{(high - floor).mean() / (high - low).mean():.2f}",
                "shown %": points(shown.mean(), 0),
                "draws": runs,
            }
        )
        none = ~fails.any(1)
        if (good, failed, weights) == (0.9, 0.0, "equal"):
            lines.append(
                {
                    "scores": kind,
                    "G": g,
                    "one failed: asked": asked[g][0],
                    "ours": points(today[~none].mean()),
                    "none failed: asked": asked[g][1],
                    "ours ": points(today[none].mean()),
                    "samples with none %": points(none.mean(), 0),
                }
            )
    sums = 30.0 * (rng.random((runs, 10)) < 0.8)  # good documents without a single failure
    low, high = Means.of(sums, 30).interval(binary=True)
    alike = float(((low <= 0.8) & (high >= 0.8)).mean())
    show(
        "1. Whole documents that fail: the interval holds the mean %, today's and with low_if joined",
        rows,
    )
    show(
        "Today's, 10 % of documents failing: in samples with a failed document, and without", lines
    )
    told = f"{points(alike)} ± {points(error(alike, runs))}"
    print(
        f"10 documents, 30 questions each, 80 % of them wholly right, 20 % wholly wrong: {told} (asked 99.4)"
    )


# 2. Complete corpus

DESIGNS = {
    "2 each": ("95.9 (94.2)", "1.3"),
    "5 each": ("95.4 (94.5)", "1.9"),
    "30 each": ("95.1 (94.3)", "3.5"),
    "1-30, skewed": ("95.2 (93.5)", "2.7"),
    "half singletons": ("95.6 (94.1)", "2.0"),
    "weights .5-4, 25 % gaps": ("95 (94.1)", "2.1–2.5"),
    "one document ×10": ("95.8 (93.2)", "2.0–2.3"),
}
"""Questions a document: what is asked for covered (least), and for the width of a sample's interval."""


def inside_documents(
    x: Array, there: Array, v: Any
) -> tuple[Means, tuple[Array, Array], tuple[Array, Array]]:
    """Return means of scores, runs × documents × questions, and their ends in a complete corpus and a sample."""
    n = there.sum(2).astype(float)
    sums = np.where(there, x, 0.0).sum(2)
    own = (sums / np.maximum(n, 1))[..., None]
    squares = np.where(there, (x - own) ** 2, 0.0).sum(2)
    means = Means.of(Sums(sums, (there & (x == 1)).sum(2)), n, v)
    se, df = stats.stratified_se(means.shares.T, n.T, squares.T)
    ends = np.zeros_like(se), np.ones_like(se)
    inside = stats.mean_interval(means.value, se, means.g_eff, means.kish, ends, df=df)
    return means, inside, means.interval()


def corpora(
    rng: np.random.Generator, name: str, made: Made, g: int, runs: int
) -> tuple[Array, ...]:
    """Return scores, which there are, weights of documents and the documents' true means of one design."""
    shape = (runs, g)
    n = np.full(shape, int(name.split()[0]) if name.endswith("each") else 10)
    if name == "1-30, skewed":
        n = np.minimum(1 + rng.gamma(0.8, 8, shape).astype(int), 30)
    elif name == "half singletons":
        n = np.broadcast_to(np.where(np.arange(g) % 2, 8, 1), shape)
    documents, v = made.documents(rng, KINDS[made.kind], shape), np.ones(shape)
    x = made.rows(rng, documents, int(n.max()))
    there = np.arange(x.shape[2]) < n[..., None]
    if name.startswith("weights"):
        v, there = rng.uniform(0.5, 4, shape), there & (rng.random(there.shape) >= 0.25)
    elif name.startswith("one"):
        v[:, 0] = 10
    return x, there, v, made.means(documents)


def complete(rng: np.random.Generator, runs: int) -> None:
    """Print how often the interval holds the mean over these documents when only the questions are drawn."""
    rows, short = [], []
    for name, (want, width) in DESIGNS.items():
        settings = []
        for kind, g, icc in itertools.product(KINDS, (5, 20, 50), (0.0, 0.1, 0.3, 0.5)):
            x, there, v, truths = corpora(rng, name, Made(kind, icc), g, runs)
            means, (low, high), (first, last) = inside_documents(x, there, v)
            truth, enough = (means.shares * truths).sum(1), np.isfinite(low)
            inside, wide = (low <= truth) & (truth <= high), (first <= truth) & (truth <= last)
            ratio = float(np.median((last - first)[enough] / (high - low)[enough]))
            settings.append((float(inside[enough].mean()), float(wide.mean()), ratio, g))
            if settings[-1][0] + error(settings[-1][0], runs) < 0.93:
                short.append(f"{name}, {kind}, G {g}, ICC {icc:g}: {points(settings[-1][0])}")
        covered, wide, ratio, g = map(np.array, zip(*settings, strict=True))
        rows.append(
            {
                "questions a document": name,
                "asked": want,
                "ours": f"{points(covered.mean())} ({points(covered.min())})",
                "±": points(error(covered.min(), runs)),
                "least, G ≥ 20": points(covered[g > 5].min()),
                "a sample's covers": points(wide.mean(), 0),
                "width ×: asked": width,
                "ours ": f"{np.median(ratio):.1f}",
                "settings": len(settings),
                "draws": runs,
            }
        )
    show(
        "2. A complete corpus: covered % (least setting), and how many times wider a sample's interval is",
        rows,
    )
    print("Clearly under 93 %: " + ("; ".join(short) or "none"))
    rows, asked = [], {"northwind": "95, .067 for .338", "mtrag": "94.8, .065 for .102"}
    for one in real_questions():
        if not one.runs and one.most:
            groups = [one.scores[one.documents == d] for d in np.unique(one.documents)]
            n = np.array([30 if one.most > 5 else min(len(group), one.most) for group in groups])
            x = np.stack(
                [group[rng.integers(0, len(group), (runs, max(n)))] for group in groups], 1
            )
            there = np.broadcast_to(np.arange(max(n)) < n[:, None], x.shape)
            means, (low, high), (first, last) = inside_documents(x, there, 1.0)
            truth = float(means.shares[0] @ [group.mean() for group in groups])
            share = float(((low <= truth) & (truth <= high)).mean())
            rows.append(
                {
                    "set": one.name,
                    "documents": len(groups),
                    "covered, width: asked": asked[one.name.split()[0]],
                    "ours": points(share),
                    "±": points(error(share, runs)),
                    "width": f"{(high - low).mean():.3f}",
                    "a sample's": f"{(last - first).mean():.3f}",
                    "draws": runs,
                }
            )
    show(
        "Real sets, questions drawn anew within each document: Northwind 30 each, MTRAG at most 5",
        rows,
    )


# 4b. Looking again

TARGET, MOST, STEP, AT_ONCE = 0.8, 600, 40, 4000
WAYS = ("every look at 95", "one look", "fourth root")


def labels(
    rng: np.random.Generator, share: float, icc: float, g: int, runs: int
) -> Iterator[tuple[int, Means]]:
    """Yield, at each look, the labels bought and their mean: `g` documents that are seen again, or 0 for new ones.

    New documents bring ten labels each; without correlation each label is a cluster of its own.
    """
    made, fresh = Made("pass/fail", icc), MOST // 10 if icc else MOST
    if not g:
        n = MOST // fresh
        sums = made.sums(rng, made.documents(rng, share, (runs, fresh)), np.full((runs, fresh), n))
        for bought in range(STEP, MOST + 1, STEP):
            yield bought, Means.of(sums.total[:, : bought // n], n)
        return
    x = made.rows(rng, made.documents(rng, share, (runs, g)), MOST // g).cumsum(2)
    for bought in range(STEP, MOST + 1, STEP):
        yield bought, Means.of(x[:, :, bought // g - 1], bought // g)


def lower_bound(found: Means, **how: float) -> Array:
    """Return the one-sided 95 % lower bound of a share."""
    return found.interval(binary=True, level=0.9, **how)[0]


def trusted(
    rng: np.random.Generator, share: float, icc: float, g: int, runs: int
) -> dict[str, Array]:
    """Return the labels at which each way gives TRUST, inf where it never does."""
    parts = []
    for start in range(0, runs, AT_ONCE):
        few = min(AT_ONCE, runs - start)
        at = {way: np.full(few, np.inf) for way in WAYS}
        for n, found in labels(rng, share, icc, g, few):
            plain = lower_bound(found) >= TARGET
            passes = {
                "every look at 95": plain,
                "one look": plain & (n == MOST),
                "fourth root": lower_bound(found, fraction=n / MOST) >= TARGET,
            }
            at = {
                way: np.where(passes[way], np.minimum(first, n), first) for way, first in at.items()
            }
        parts.append(at)
    return {way: np.concatenate([one[way] for one in parts]) for way in WAYS}


def looks(rng: np.random.Generator, runs: int) -> None:
    """Print how often TRUST is given falsely, and after how many labels it is given, over 15 looks."""
    same = ("11–14", "5–6", "3–4")
    plan = {
        "i.i.d.": (0.0, 0, "18.8", "4.9", "5.0"),
        "new documents, ICC .1": (0.1, 0, "17.4", "4.7", "4.6"),
        "new documents, ICC .3": (0.3, 0, "18.1", "4.8", "5.3"),
        "same 10 documents, ICC .1": (0.1, 10, *same),
        "same 20 documents, ICC .1": (0.1, 20, *same),
        "same 20 documents, ICC .3": (0.3, 20, *same),
    }
    rows = []
    for name, (icc, g, *want) in plan.items():
        found = trusted(rng, TARGET, icc, g, runs)
        row: dict[str, Any] = {"labels": name}
        for i, way in enumerate(WAYS):
            row |= {
                f"{way}: asked": want[i],
                f"ours{' ' * i}": points(np.isfinite(found[way]).mean()),
            }
        rows.append(
            row
            | {"±": points(error(np.isfinite(found["fourth root"]).mean(), runs)), "draws": runs}
        )
    show("4b. 15 looks, 40 to 600 labels, true share = target .80: TRUST, falsely, %", rows)
    asked = {
        "every look at 95": ("172", "110", "88"),
        "one look": ("600", "600", "80"),
        "fourth root": ("303", "198", "76"),
    }
    few = max(runs // 4, 50)
    close, far, even = (
        trusted(rng, *one, 0, few) for one in ((0.88, 0.1), (0.92, 0.1), (0.84, 0.0))
    )
    rows = []
    for way, want in asked.items():
        used = [
            MOST if way == "one look" else np.minimum(one[way], MOST).mean() for one in (close, far)
        ]
        rows.append(
            {
                "way": way,
                ".88: asked": want[0],
                "ours": f"{used[0]:.0f}",
                ".92: asked": want[1],
                "ours ": f"{used[1]:.0f}",
                "TRUST at .84: asked": want[2],
                "ours  ": points(np.isfinite(even[way]).mean(), 0),
                "draws": few,
            }
        )
    show("Labels used at a share of .88 and .92 (ICC .1); TRUST % at .84 (i.i.d.)", rows)


# 4c. Judging in order


@dataclass(frozen=True)
class Stopped:
    """The share of judging saved, of runs that stop on another side than the full run, and how far off it."""

    saved: float
    other: float
    off: float


def judged(
    x: Array, code: Array, binary: bool, thresholds: Mapping[float, Any]
) -> dict[float, Stopped]:
    """Stop runs by the side rule at named thresholds, looking as `ragnb judge`: after a fifth, then each tenth.

    `x` and `code` hold scores and documents in the order of judging, runs × questions.
    """
    (runs, size), full = x.shape, x.mean(1)
    g = int(code.max()) + 1
    key = code + g * np.arange(runs)[:, None]
    open_ = {name: np.ones(runs, bool) for name in thresholds}
    sums = {name: np.zeros(3) for name in thresholds}
    for n in range(max(50, -(-size // 5)), size, -(-size // 10)):
        part = x[:, :n]
        counts, first, second = (
            np.bincount(key[:, :n].ravel(), weights=w.ravel(), minlength=runs * g).reshape(runs, g)
            for w in (np.ones(part.shape), part, part**2)
        )
        inside = (second - first**2 / np.maximum(counts, 1)).sum(1) / np.maximum(counts - 1, 0).sum(
            1
        )
        variance = np.where((counts > 0).all(1), inside, part.var(1, ddof=1))
        value = part.mean(1)
        for name, b in thresholds.items():
            still = open_[name]
            stop = still & stats.side_is_settled(value, b, variance, n, size, binary=binary)
            other = misses(value, b) != misses(full, b)
            sums[name] += [
                stop.sum() * (1 - n / size),
                other[stop].sum(),
                np.abs(value - full)[stop].sum(),
            ]
            open_[name] = still & ~stop
    return {
        name: Stopped(saved / runs, other / runs, off / max((~open_[name]).sum(), 1))
        for name, (saved, other, off) in sums.items()
    }


def order(rng: np.random.Generator, runs: int) -> None:
    """Print what the side rule saves, and how often it stops on the other side than the full run."""
    asked = {
        0.1: (".18", ".22 (.25)", ".39 (.48)", ".65 (.75)", ".79"),
        0.3: (".31", ".31 (.35)", ".43 (.52)", ".64 (.75)", ".79"),
    }
    rows, turns = [], np.broadcast_to(np.arange(400) % 40, (runs, 400))
    for (kind, b), icc in itertools.product([*KINDS.items(), ("pass/fail", 0.95)], (0.1, 0.3)):
        made, found, exact = Made(kind, icc), dict[float, Stopped](), dict[float, Stopped]()
        for off in (0.0, -0.02, 0.02, -0.05, 0.05, -0.1, 0.1, -0.2):
            if b + off < 0.99:
                x = made.rows(rng, made.documents(rng, b + off, (runs, 40)), 10)
                in_turn = x.transpose(0, 2, 1).reshape(
                    runs, 400
                )  # rounds of one question of each document
                found |= judged(in_turn, turns, made.binary, {off: b})
            if not off:
                exact = judged(
                    in_turn, turns, made.binary, {d: x.mean((1, 2)) - d for d in (-0.02, 0.02)}
                )
        row = {"scores": f"{kind} {b:g}, ICC {icc:g}"}
        for i, off in enumerate((0.0, 0.02, 0.05, 0.1, 0.2)):
            saved = f"{found[-off if off else 0.0].saved:.2f}"
            saved += f" ({found[off].saved:.2f})" if off in found and off else ""
            row[f"{off:g}"] = saved + (f" [{asked[icc][i]}]" if made.binary and b == 0.8 else "")
        worst = max(one.other for off, one in found.items() if off)
        rows.append(
            row
            | {
                "other side %": points(worst, 2),
                "±": points(error(worst, runs), 2),
                "at 0": points(found[0.0].other, 2),
                "full run .02 off": points(max(one.other for one in exact.values()), 2),
                "value off": f"{max(one.off for one in found.values()):.3f}",
                "draws": runs,
            }
        )
    show(
        "4c. Judging in order, 400 questions, 40 documents: share saved where the true mean lies 0 to .2 below\n"
        "(above) the threshold [asked]; most often on another side than the full run from .02 on (asked ≤ .4),\n"
        "or with the full run's value itself .02 off",
        rows,
    )
    rows, few, known = [], max(runs // 10, 20), dict[bytes, Array]()
    for one in real_questions():
        if one.documents.tobytes() not in known:
            orders = [stats.balanced_order(one.documents, seed=seed) for seed in range(few)]
            known[one.documents.tobytes()] = np.stack(orders)
        turn, row = known[one.documents.tobytes()], {"set": one.name, "rows": len(one.scores)}
        binary = bool(np.isin(one.scores, (0, 1)).all())
        at = {off: one.scores.mean() - off for way in (0.005, 0.02, 0.05) for off in (way, -way)}
        found = judged(one.scores[turn], one.documents[turn], binary, at)
        both = {off: (found[off], found[-off]) for off in (0.005, 0.02, 0.05)}
        other = {off: (above.other + below.other) / 2 for off, (above, below) in both.items()}
        row |= {
            f"saved {off:g}": f"{(above.saved + below.saved) / 2:.2f}"
            for off, (above, below) in both.items()
        }
        row |= {f"other side % {off:g}": points(share, 2) for off, share in other.items()}
        rows.append(row | {"±": points(error(other[0.02], 2 * few), 2), "draws": 2 * few})
    show(
        "Real sets in balanced orders, thresholds off the mean of all to both sides; asked: saved .29–.62 at\n"
        ".02, .64–.79 at .05, other side ≤ .5 (at .005 ≤ 1, Northwind 6); ± of the other side at .02",
        rows,
    )


# Planning before spending

PLANS: list[tuple[str, dict[str, Any]]] = [
    ("pass/fail", {"kind": "gate", "target": 0.8, "expected": 0.9, "icc": 0.1}),
    ("pass/fail", {"kind": "gate", "target": 0.8, "expected": 0.85, "icc": 0.3}),
    ("pass/fail", {"kind": "gate", "target": 0.8, "expected": 0.7, "icc": 0.1}),
    ("normal-ish", {"kind": "gate", "target": 0.7, "expected": 0.75, "icc": 0.1, "sd": SD}),
    ("normal-ish", {"kind": "comparison", "expected": 0.05, "icc": 0.1, "sd": SD}),
    ("normal-ish", {"kind": "comparison", "expected": 0.02, "icc": 0.3, "sd": SD}),
    ("pass/fail", {"kind": "calibration", "target": 0.8, "expected": 0.9, "icc": 0.1}),
    ("pass/fail", {"kind": "calibration", "target": 0.8, "expected": 0.95, "icc": 0.3}),
]


def plan(rng: np.random.Generator, runs: int) -> None:
    """Print how often so many questions, or labels, as `rn.plan` says decide where its assumptions hold."""
    rows, m = [], 10
    for kind, given in PLANS:
        asked = rn.plan(per_document=m, **given).iloc[0]
        made, g, b = Made(kind, given["icc"]), int(asked["documents"]), given.get("target", 0.0)
        n = np.full(g, m)
        n[-1] = asked["needed"] - m * (g - 1)
        found = Means.of(made.sums(rng, made.documents(rng, given["expected"], (runs, g)), n), n)
        if given["kind"] == "comparison":
            half = stats.t_quantile(0.95, np.maximum(found.df, 1)) * found.se
            decided = np.abs(found.value) > half
        elif given["kind"] == "calibration":
            decided = lower_bound(found) >= b
        else:
            low, high = found.interval(binary=made.binary)
            decided = (low > b) | (high < b)
        rows.append(
            {
                "scores": kind,
                **given,
                "sd": given.get("sd", ""),
                "needed": asked["needed"],
                "documents": g,
                "target": given.get("target", ""),
                "asked": "80",
                "ours": points(decided.mean()),
                "±": points(error(decided.mean(), runs)),
                "draws": runs,
            }
        )
    show("Planning: decided % with as many questions as rn.plan says, ten a document", rows)


# Real sets


def real_populations() -> list[Population]:
    """Return the sets of `coverage.py` whose scores are not all alike."""
    if not DATA.is_dir():
        print(f"no real sets at {DATA}: made-up ones only")
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RagnbWarning)
        return [one for one in real_sets(DATA) if 0 < one.truth < 1]


@dataclass(frozen=True)
class Questions:
    """Scores from 0 to 1, a row a question or, of several `runs`, an answer; `most` questions a document."""

    name: str
    scores: Array
    documents: Array
    runs: bool
    most: int

    @classmethod
    def of(
        cls,
        name: str,
        frame: pd.DataFrame,
        column: str,
        doc: str,
        ends: tuple[int, int],
        *,
        runs: bool = False,
        most: int = 0,
    ) -> Questions:
        kept, (low, high) = frame[frame[column].between(*ends)], ends
        scores = (kept[column].to_numpy(float) - low) / (high - low)
        return cls(name, scores, pd.factorize(kept[doc])[0], runs, most)


def real_questions() -> Iterator[Questions]:
    """Yield real sets by question, and with all runs or systems in one."""
    if not DATA.is_dir():
        return
    northwind = pd.read_csv(DATA / "scores/scores_azure_northwind.csv")
    names = ("gpt_groundedness", "gpt_relevance")
    for run, name in itertools.product(("baseline", "prompt_nomarkdownmention"), names):
        part = northwind[northwind["run"] == run]
        yield Questions.of(f"northwind {run} {name}", part, name, "doc_name", (1, 5), most=30)
    yield Questions.of(
        f"northwind all runs {names[0]}", northwind, names[0], "doc_name", (1, 5), runs=True
    )
    ratings = pd.read_csv(DATA / "ratings/mtrag.csv").groupby("dimension")
    whole, columns = ratings.get_group("overall3"), ("human10", "judge10")
    for system, name, column in itertools.product(
        ("gpt-4o", "reference"), ("faithfulness", "overall3"), columns
    ):
        part = ratings.get_group(name).query("system == @system")
        yield Questions.of(
            f"mtrag {system} {name} {column}", part, column, "cluster", (1, 10), most=5
        )
    yield Questions.of(
        "mtrag all systems overall3 human10", whole, "human10", "cluster", (1, 10), runs=True
    )
    pairs = pd.read_csv(DATA / "scores/scores_ragchecker_preference.csv")
    for name in ("factual_correctness_f1", "recall"):
        yield Questions.of(
            f"ragchecker all systems {name}", pairs, name, "doc_name", (0, 1), runs=True
        )


# The library


def library(rng: np.random.Generator) -> None:
    """Print how far the numbers of this file are from those of `weighted_means` and `check_gates`."""
    gaps = []
    for kind, _ in itertools.product(KINDS, range(5)):
        made, g, m, b = Made(kind, 0.1), 12, 8, KINDS[kind]
        x = np.clip(made.rows(rng, made.documents(rng, b + 0.04, (1, g)), m), 0, 1)
        there, v = np.arange(m) < rng.integers(3, 9, (1, g, 1)), rng.uniform(0.5, 4, g)
        doc = np.char.add("d", np.arange(g).astype(str))
        frame = pd.DataFrame({"x": x[there], "doc_name": np.repeat(doc, there.sum(2)[0])})
        how: dict[str, Any] = {
            "metrics": [rn.Metric("x", kind="binary" if made.binary else "continuous")],
            "doc_weights": dict(zip(doc, v, strict=True)),
        }
        table = rn.weighted_means(frame, **how)
        row, within = table.iloc[0], rn.weighted_means(frame, corpus="complete", **how).iloc[0]
        gate = rn.check_gates(table, gates=[rn.Gate("g", "x", ">=", b)]).iloc[0]
        n, sums = there.sum(2), np.where(there, x, 0.0).sum(2)
        ours, inside, _ = inside_documents(x, there, v)
        low, high = (float(end[0]) for end in ours.interval(binary=made.binary))
        value, se, df = (float(part[0]) for part in (ours.value, ours.se, ours.df))
        floor, shown = low_if(ours, (sums / n).min(1), np.array([low]))
        plan = (
            plan_of(value, low, high, df, b, int(n.sum())) if gate["outcome"] == "undecided" else 0
        )
        gaps.append(
            {
                "mean, interval": np.subtract(
                    [value, se, low, high], row[["value", "se", "low", "high"]].tolist()
                ),
                "flip probability": stats.flip_probability(value, b, se, df) - gate["p_flip"],
                "questions needed": (plan or -1)
                - (-1 if pd.isna(gate["more_needed"]) else gate["more_needed"] or -1),
                "low_if": (floor[0] if shown[0] else -1)
                - (-1 if pd.isna(row["low_if"]) else row["low_if"]),
                "complete corpus": np.subtract(
                    [float(end[0]) for end in inside], within[["low", "high"]].tolist()
                ),
            }
        )
    largest = {name: max(np.abs(one[name]).max() for one in gaps) for name in gaps[0]}
    print(
        "\nThe library on whole tables, largest gap: "
        + ", ".join(f"{n} {x:.0e}" for n, x in largest.items())
    )


def show(title: str, rows: list[dict[str, Any]] | pd.DataFrame) -> None:
    table = pd.DataFrame(rows)
    print(
        ("\n" + title + "\n" if title else "\n")
        + (table.to_string(index=False) if len(table) else "none")
    )


TABLES: dict[str, tuple[Callable[[np.random.Generator, int], None], float]] = {
    "flip": (flip, 0.25),
    "more_needed": (more_needed, 0.15),
    "whole": (whole, 2),
    "complete": (complete, 0.25),
    "looks": (looks, 3),
    "order": (order, 0.5),
    "plan": (plan, 1),
}
"""The tables, and their draws a setting as a multiple of --draws."""


def main() -> None:
    """Print the tables, one after the other."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--draws", type=int, default=8000)
    options.add_argument(
        "--only", nargs="+", choices=list(TABLES), default=list(TABLES), metavar="NAME"
    )
    options.add_argument("--seed", type=int, default=16)
    given = options.parse_args()
    for name in given.only:
        table, times = TABLES[name]
        start = time.process_time()
        table(
            np.random.default_rng([given.seed, list(TABLES).index(name)]),
            max(int(times * given.draws), 50),
        )
        print(f"({name}: {time.process_time() - start:.0f} s of processor time)", flush=True)
    library(np.random.default_rng(given.seed))


if __name__ == "__main__":
    main()
