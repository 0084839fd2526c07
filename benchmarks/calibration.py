"""What the calibration claims: coverage of corrected means, false certificates, a million ratings; prints tables.

    python benchmarks/calibration.py [--quick] [--all] [--part coverage|certify|speed] [--sets mtrag] [--seed 5]

Coverage. Clusters are drawn with replacement: the population's mean is that of the set's rows, and no draw is a
finite sample of it. `25 %`: each row of a drawn cluster is labelled with that chance, so clusters hold both kinds.
`whole + 10`: the drawn clusters are labelled wholly, ten more are judged only. `as it is`: the real set's own
clusters, all of them, a quarter of the rows labelled without replacement; the truth is the mean of those rows, so
intervals that speak of further clusters must look too wide. Real sets come from the folder that RAGNB_SHARED
names, or ../shared; without it the simulated ones alone are measured.
"""

from __future__ import annotations

import argparse
import os
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from ragnb import stats
from ragnb.stats import t_interval

INFINITE = (-np.inf, np.inf)
Ends = tuple[float, float]


@dataclass(frozen=True)
class Ratings:
    """Rows to draw from, cluster after cluster: human and judge scores, clusters 0 … K−1, the scale."""

    name: str
    human: np.ndarray
    judge: np.ndarray
    cluster: np.ndarray
    scale: Ends
    real: bool = True


@dataclass(frozen=True)
class Drawn:
    """One sample: labelled rows y, f with their clusters, further rows with theirs, the scale."""

    y: np.ndarray
    f: np.ndarray
    more: np.ndarray
    of: np.ndarray
    of_more: np.ndarray
    scale: Ends

    @property
    def rows(self) -> tuple[np.ndarray, ...]:
        return self.y, self.f, self.more, self.of, self.of_more


def real_sets(data: Path) -> Iterator[Ratings]:
    """Yield every dimension of the shared sets; of HANNA's five judges two, in turn."""
    for file, judges, human, scale in (
        ("mtrag", ["judge10"], "human10", (1.0, 10.0)),
        ("hanna", ["judge_Beluga-13B", "judge_ChatGPT"], "human", (1.0, 5.0)),
        ("ragchecker_meta", ["judge"], "human", (-2.0, 2.0)),
    ):
        table = pd.read_csv(data / f"ratings/{file}.csv")
        for at, dimension in enumerate(table["dimension"].unique()):
            judge = judges[at % len(judges)]
            part = table[(table["dimension"] == dimension) & table[judge].between(*scale)]
            part = part.sort_values("cluster", kind="stable")
            name = " ".join(
                [file.removesuffix("_meta"), dimension, judge.partition("_")[2]]
            ).strip()
            codes = pd.factorize(part["cluster"])[0]
            yield Ratings(name, part[human].to_numpy(), part[judge].to_numpy(), codes, scale)


def simulated_sets(seed: int) -> Iterator[Ratings]:
    """Yield 4,000 clusters of 1 to 24 rows: five-point scores, those piled up at the top, continuous ones, 0/1."""
    for kind, icc in [
        (kind, icc)
        for kind in ("five-point", "top-heavy", "continuous", "0/1")
        for icc in (0.05, 0.3)
    ]:
        rng = np.random.default_rng([seed, zlib.crc32(kind.encode()), int(100 * icc)])
        cluster = np.repeat(np.arange(4000), rng.integers(1, 25, 4000))
        n = len(cluster)
        y = np.sqrt(icc) * rng.normal(size=4000)[cluster] + np.sqrt(1 - icc) * rng.normal(size=n)
        f = 0.5 + 0.7 * y + 0.4 * rng.normal(size=4000)[cluster] + 0.5 * rng.normal(size=n)
        scale = (0.0, 1.0) if kind == "0/1" else (-9.0, 9.0) if kind == "continuous" else (1.0, 5.0)
        if kind == "0/1":
            y, f = (y > -0.85).astype(float), (f > -0.85).astype(float)
        elif kind != "continuous":
            centre, stretch = (3.0, 1.0) if kind == "five-point" else (4.8, 1.1)
            y, f = (np.clip(np.round(centre + stretch * x), 1, 5) for x in (y, f))
        yield Ratings(f"{kind} icc {icc:g}", y, f, cluster, scale, real=False)


def draw(ratings: Ratings, design: str, clusters: int, rng: np.random.Generator) -> Drawn:
    """Draw one sample in a design; every drawn cluster is a new one, however often it comes."""
    sizes = np.bincount(ratings.cluster)
    starts = np.cumsum(sizes) - sizes
    if design == "as it is":
        rows, of = np.arange(len(ratings.human)), ratings.cluster
        mine = np.zeros(len(rows), dtype=bool)
        mine[rng.permutation(len(rows))[: len(rows) // 4]] = True
    else:
        more = int(design.split("+")[1]) if "+" in design else 0
        taken = rng.integers(0, len(sizes), clusters + more)
        rows = np.concatenate([np.arange(starts[g], starts[g] + sizes[g]) for g in taken])
        of = np.repeat(np.arange(len(taken)), sizes[taken])
        mine = of < clusters if more else rng.random(len(rows)) < 0.25
        mine[rng.permutation(len(rows))[: max(0, 3 - mine.sum())]] = True
    y, f = ratings.human[rows], ratings.judge[rows]
    return Drawn(y[mine], f[mine], f[~mine], of[mine], of[~mine], ratings.scale)


def ends_of(found: stats.Estimate | stats.Corrected) -> Ends:
    return found.low, found.high


def at_hand(d: Drawn) -> Ends:
    every = np.concatenate([d.y, d.f, d.more])
    low, high = float(every.min()), float(every.max())
    return (low, high) if low < high else INFINITE


def familiar_humans(d: Drawn) -> Ends:
    g = len(np.unique(d.of))
    sums = np.bincount(np.unique(d.of, return_inverse=True)[1], weights=d.y - d.y.mean())
    se = float(np.sqrt(g / (g - 1) * np.sum(sums**2))) / len(d.y) if g > 1 else np.nan
    return t_interval(float(d.y.mean()), se, g - 1, 0.95)


def familiar(d: Drawn, *, clustered: bool = True) -> stats.Corrected:
    """Return the corrected mean with its familiar interval: the sandwich by cluster, λ taken as known."""
    y, f, more, n, m = d.y, d.f, d.more, len(d.y), len(d.more)
    spread = float(np.concatenate([f, more]).var(ddof=1))
    cov = float(np.mean((y - y.mean()) * (f - f.mean())))
    lam = float(np.clip(cov / ((1 + n / m) * spread), 0.0, 1.0)) if spread > 0 else 0.0
    error, of = y - lam * f, np.concatenate([d.of, d.of_more]) if clustered else np.arange(n + m)
    parts = np.concatenate([(error - error.mean()) / n, lam * (more - more.mean()) / m])
    if lam == 0:  # rows that the estimate does not use are no clusters of it
        parts, of = parts[:n], of[:n]
    sums = np.bincount(np.unique(of, return_inverse=True)[1], weights=parts)
    g, value = len(sums), float(y.mean()) + lam * float(more.mean() - f.mean())
    se = float(np.sqrt(g / (g - 1) * np.sum(sums**2))) if g > 1 else np.nan
    return stats.Corrected(
        value, *t_interval(value, se, g - 1, 0.95), se, n, g, weight=lam, n_judged=m
    )


def judge_alone(d: Drawn) -> Ends:
    every, of = np.concatenate([d.f, d.more]), np.concatenate([d.of, d.of_more])
    return ends_of(stats.clustered_mean(every, of, ends=d.scale))


def contributions(d: Drawn) -> tuple[stats.Corrected, np.ndarray, np.ndarray]:
    """Return the familiar estimate, the sums of its linear contributions by cluster, and each one's leverage."""
    found = familiar(d)
    e = d.y - found.weight * d.f
    code = np.unique(np.concatenate([d.of, d.of_more]), return_inverse=True)[1]
    parts = np.concatenate(
        [(e - e.mean()) / len(e), found.weight * (d.more - d.more.mean()) / len(d.more)]
    )
    s_e, s_f = e.std(), found.weight * np.concatenate([d.f, d.more]).std()
    share = np.concatenate(
        [np.full(len(e), s_e / len(e)), np.full(len(d.more), s_f / len(d.more))]
    ) / max(s_e + s_f, 1e-12)
    return found, np.bincount(code, weights=parts), np.bincount(code, weights=share)


def cr2(d: Drawn) -> Ends:
    """Residuals over √(1 − h), t with 1/Σh² − 1 degrees of freedom."""
    found, u, h = contributions(d)
    se = float(np.sqrt(np.sum(u**2 / (1 - h))))
    return t_interval(found.value, se, 1 / max(float(np.sum(h**2)), 1e-12) - 1, 0.95)


def wild_t(d: Drawn) -> Ends:
    """Wild cluster bootstrap-t, Rademacher signs, 199 resamples, symmetric."""
    found, u, h = contributions(d)
    g, signs = len(u), np.random.default_rng(1).choice([-1.0, 1.0], (199, len(u)))
    moved = signs * u
    total = moved.sum(axis=1)
    se = np.sqrt(g / (g - 1) * np.sum((moved - h * total[:, None]) ** 2, axis=1))
    ratio = float(np.quantile(np.abs(total) / np.maximum(se, 1e-12), 0.95))
    half = min(ratio * found.se, d.scale[1] - d.scale[0])
    return found.value - half, found.value + half


WAYS: dict[str, Callable[[Drawn], Ends]] = {
    "judge only": judge_alone,
    "humans, familiar": familiar_humans,
    "humans": lambda d: ends_of(stats.clustered_mean(d.y, d.of, ends=d.scale)),
    "i.i.d.": lambda d: ends_of(familiar(d, clustered=False)),
    "familiar": lambda d: ends_of(familiar(d)),
    "corrected": lambda d: ends_of(stats.ppi_jackknife(*d.rows, ends=d.scale)),
    "scale unknown": lambda d: ends_of(stats.ppi_jackknife(*d.rows, ends=at_hand(d))),
}
RIVALS: dict[str, Callable[[Drawn], Ends]] = {
    "jackknife-t": lambda d: ends_of(stats.ppi_jackknife(*d.rows)),
    "CR2-t": cr2,
    "wild-t": wild_t,
}


def coverage(
    sets: list[Ratings], runs: int, ways: dict[str, Callable[[Drawn], Ends]], seed: int
) -> pd.DataFrame:
    """Return covered share and mean width of every way, in every design of every set."""
    designs = [("25 %", 10), ("25 %", 20), ("whole + 10", 10), ("as it is", 0)]
    todo = [(s, d, g) for s in sets for d, g in designs if s.real or d != "as it is"]
    rows = []
    for ratings, design, clusters in tqdm(todo, leave=False):
        rng = np.random.default_rng(
            [seed, zlib.crc32(f"{ratings.name} {design} {clusters}".encode())]
        )
        truth, found = float(ratings.human.mean()), {way: [] for way in ways}
        for _ in range(runs):
            drawn = draw(ratings, design, clusters, rng)
            for way, interval in ways.items():
                found[way].append(interval(drawn))
        for way, ends in found.items():
            low, high = np.array(ends).T
            held = float(((low - 1e-9 <= truth) & (truth <= high + 1e-9)).mean())
            rows.append(
                {
                    "set": ratings.name,
                    "design": design,
                    "G": clusters,
                    "way": way,
                    "covered": held,
                    "width": float(np.nanmean(high - low)),
                    "none": float(np.isnan(low).mean()),
                }
            )
    return pd.DataFrame(rows)


def show_coverage(table: pd.DataFrame, runs: int) -> None:
    ways = list(table["way"].unique())
    print(
        f"\nCoverage of nominal 95 % intervals in %, and mean width; {runs} draws a row (±{21.8 * runs**-0.5:.1f})"
    )
    print(f"{'set':30}{'labelled':>11}{'G':>4}" + "".join(f"{way:>18}" for way in ways))
    for (name, design, g), part in table.groupby(["set", "design", "G"], sort=False):
        line = "".join(
            f"{f'{100 * row.covered:.1f} {row.width:.3f}':>18}" for row in part.itertuples()
        )
        print(f"{name:30}{design:>11}{g or '':>4}{line}")
    print(
        "\nIn short: least, median covered %, rows under 93 % by two Monte-Carlo errors; median width / humans'"
    )
    slack = 2 * np.sqrt(0.93 * 0.07 / runs)
    source = table["set"].str.split().str[0]
    groups = source.where(source.isin(["mtrag", "hanna", "ragchecker"]), "simulated")
    for (group, design, g), part in table.groupby([groups, "design", "G"], sort=False):
        line = f"{group:12}{design:>11}{g or '':>4}"
        base = part[part["way"] == "humans"]["width"].to_numpy()
        for way in ways:
            one = part[part["way"] == way]
            short, ratio = (
                int((one["covered"] < 0.93 - slack).sum()),
                float(np.median(one["width"] / base)),
            )
            least, middle = 100 * one["covered"].min(), 100 * one["covered"].median()
            cell = f"{least:.1f} {middle:.1f} {short}/{len(one)} ×{ratio:.2f}"
            line += f"{cell:>24}"
        print(line)
    print(" " * 27 + "".join(f"{way:>24}" for way in ways))


def certify(sets: list[Ratings], runs: int, seed: int) -> None:
    """Print how often the one-sided 95 % lower bound reaches a target that equals the true ±1 share."""
    print(
        f"\nFalse certificates in %, true ±1 share = target; {runs} draws a row (±{21.8 * runs**-0.5:.1f} at 5 %)"
    )
    print(f"{'flags':38}{'target':>8}{'G':>5}{'i.i.d. Wilson':>15}{'ragnb':>8}")
    z = stats.t_quantile(0.9, 1e9)

    def row(
        name: str, target: float, g: int, sample: Callable[[np.random.Generator], tuple]
    ) -> tuple[float, float]:
        rng = np.random.default_rng([seed, g, zlib.crc32(f"{name} {target}".encode())])
        iid = ours = 0
        for _ in range(runs):
            judge, human, of = sample(rng)
            share = stats.within_share(judge, human, of, level=0.9)
            iid += (
                float(stats.wilson(np.array(share.value), np.array(float(share.n)), z)[0]) >= target
            )
            ours += share.low >= target
        print(f"{name:38}{target:8.3f}{g:5}{100 * iid / runs:15.1f}{100 * ours / runs:8.1f}")
        return iid / runs, ours / runs

    found = []
    for icc, target, g in [
        (i, t, g) for i in (0.1, 0.2, 0.3) for t in (0.8, 0.9) for g in (10, 20, 50)
    ]:

        def simulated(
            rng: np.random.Generator, icc: float = icc, p: float = target, g: int = g
        ) -> tuple:
            spread, of = 1 / icc - 1, np.repeat(np.arange(g), rng.integers(5, 26, g))
            human = rng.integers(2, 5, len(of)).astype(float)
            agrees = rng.random(len(of)) < rng.beta(p * spread, (1 - p) * spread, g)[of]
            return human + np.where(agrees, rng.integers(-1, 2, len(of)), 2), human, of

        found.append(row(f"simulated, 5 to 25 rows, icc {icc:g}", target, g, simulated))
    for ratings in sets:
        flags = stats.within(ratings.judge, ratings.human)
        starts = [np.flatnonzero(ratings.cluster == c) for c in range(ratings.cluster.max() + 1)]
        if len(starts) < len(flags):

            def real(
                rng: np.random.Generator, ratings: Ratings = ratings, starts: list = starts
            ) -> tuple:
                taken = [starts[c] for c in rng.integers(0, len(starts), 20)]
                rows = np.concatenate(taken)
                return (
                    ratings.judge[rows],
                    ratings.human[rows],
                    np.repeat(np.arange(20), [len(r) for r in taken]),
                )

            found.append(row(ratings.name, float(flags.mean()), 20, real))
    cells = [f"{100 * np.mean(way):.1f} ({100 * max(way):.1f})" for way in zip(*found, strict=True)]
    print(f"{'mean (largest)':51}{cells[0]:>15}{cells[1]:>14}")


def speed(rows: int, resamples: int, seed: int) -> None:
    """Print the time from rating arrays to bootstrap intervals of share, bias and MAE, by numbers of clusters."""
    rng = np.random.default_rng(seed)
    human = rng.integers(1, 11, rows).astype(float)
    judge = np.clip(human + rng.integers(-2, 4, rows), 1, 10)
    print(
        f"\n{rows:,} ratings, {resamples:,} cluster resamples of ±1 share, bias and MAE; seconds, best of 3"
    )
    for g in (100, 1_000, 10_000):
        of = rng.integers(0, g, rows)
        best = []
        for _ in range(3):
            start = time.perf_counter()
            gap = judge - human
            columns = stats.within(judge, human), gap, np.abs(gap)
            sums = np.stack(
                [np.bincount(of, weights=column, minlength=g) for column in columns], axis=1
            )
            counts = np.repeat(np.bincount(of, minlength=g)[:, None].astype(float), 3, axis=1)
            ones = np.ones(g, dtype=np.int64)
            means = stats.resampled_means(
                ones, counts, sums, 0 * sums, resamples=resamples, seed=seed
            )
            np.quantile(means, [0.025, 0.975], axis=0)
            best.append(time.perf_counter() - start)
        formula = time.perf_counter()
        stats.within_share(judge, human, of)
        stats.bias(judge, human, of)
        formula = time.perf_counter() - formula
        print(
            f"  {g:6,} clusters: bootstrap {min(best):.2f}; the formulas of share and bias {formula:.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the draws")
    parser.add_argument("--all", action="store_true", help="rivals that lose, too")
    parser.add_argument("--part", choices=["coverage", "certify", "speed"])
    parser.add_argument(
        "--sets", default="", help="only sets whose name begins so; twice the draws"
    )
    parser.add_argument("--seed", type=int, default=5)
    given = parser.parse_args()
    shared = Path(os.environ.get("RAGNB_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    sets = list(real_sets(shared / "data")) if (shared / "data/ratings").is_dir() else []
    if not sets:
        print(f"{shared} holds no ratings: only simulated sets are measured")
    start = time.perf_counter()
    if given.part in (None, "coverage"):
        runs = 100 if given.quick else 1000 if given.sets else 500
        ways = WAYS | (RIVALS if given.all else {})
        chosen = [
            s for s in sets + list(simulated_sets(given.seed)) if s.name.startswith(given.sets)
        ]
        show_coverage(coverage(chosen, runs, ways, given.seed), runs)
    if given.part in (None, "certify"):
        certify(sets, 400 if given.quick else 4000, given.seed)
    if given.part in (None, "speed"):
        speed(1_000_000, 2_000, given.seed)
    print(f"\n{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
