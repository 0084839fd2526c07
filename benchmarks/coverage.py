"""How often the 95 % interval of a clustered mean holds the true value, and how wide it is; prints tables.

    python benchmarks/coverage.py [--quick] [--all] [--rows] [--levels] [--csv FILE] [--seed 7]

Documents are drawn from a known population: a simulated one, or the documents of a real set (with replacement; the
set's own mean is the truth), in the folder that RAGNB_SHARED names, or ../shared. `wilson-t` is Wilson's interval
with Student's t at G_eff − 1 degrees of freedom, the yardstick of all widths; `kurtosis` has fewer degrees of
freedom for skewed scores. The last line says which of them the library gives. --all adds rivals that lose.
--levels takes the library's interval alone, at 80, 90, 95 and 99 %, and of metrics without a range (log-normal, as
seconds and costs are).
"""

from __future__ import annotations

import argparse
import itertools
import os
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from populations import SIMULATED, Draw, Population, real_sets
from scipy.special import digamma, expit, logit
from tqdm import tqdm

from ragnb import stats
from ragnb.errors import RagnbWarning

RUNS = {5: 10_000, 10: 10_000, 20: 6_000, 50: 3_000, 200: 1_000}
WEIGHTS = ("equal", ".5-4", "one ×10", "one ×100")


@dataclass(frozen=True)
class Sample:
    """What an interval may use of each resample, plus the documents' parts for the rivals."""

    mean: np.ndarray
    se: np.ndarray
    g_eff: np.ndarray
    kish: np.ndarray
    binary: bool
    h: np.ndarray
    deleted: np.ndarray  # u/(1−h)/A: how far the mean moves when a document is left out

    @property
    def size(self) -> np.ndarray:
        """p(1−p)/se², at most Kish's for 0/1 scores; Kish's where the scores are all alike."""
        spread = self.mean * (1 - self.mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            n = np.where((self.se > 1e-9) & (spread > 0), spread / self.se**2, self.kish)
        return np.minimum(n, self.kish) if self.binary else n


def sample(sums: np.ndarray, n: np.ndarray, v: np.ndarray, binary: bool) -> Sample:
    a = v * n
    total = a.sum(1, keepdims=True)
    mean = (v * sums).sum(1, keepdims=True) / total
    h = a / total
    deleted = (v * sums - mean * a) / (1 - h) / total
    g = sums.shape[1]
    se = stats.jackknife_se(
        total[:, 0], np.full(len(sums), float(g)), ((deleted * total) ** 2).sum(1)
    )
    kish = stats.kish(total[:, 0], (v * a).sum(1))
    return Sample(np.clip(mean[:, 0], 0, 1), se, 1 / (h**2).sum(1), kish, binary, h, deleted)


def library(s: Sample, level: float = 0.95) -> Draw:
    ends = np.zeros_like(s.mean), np.ones_like(s.mean)
    how = {"binary": s.binary, "sum_h4": (s.h**4).sum(1), "level": level}
    return stats.mean_interval(s.mean, s.se, s.g_eff, s.kish, ends, **how)


def wilson_t(s: Sample, df: np.ndarray | None = None, size: np.ndarray | None = None) -> Draw:
    t = stats.t_quantile(0.95, np.maximum(s.g_eff - 1 if df is None else df, 1.0))
    return stats.wilson(s.mean, s.size if size is None else size, t)


def kurtosis(s: Sample) -> Draw:
    """Wilson's with the degrees of freedom of a skewed variance over uneven documents; exact if all is alike."""
    base = np.maximum(s.g_eff - 1, 1.0)
    t = stats.t_quantile(0.95, base)
    alike = (s.se <= 1e-9) | (s.mean <= 0) | (s.mean >= 1)
    r = np.minimum(s.g_eff / s.size, 1.0)
    centre = (s.mean + t**2 / s.size / 2) / (1 + t**2 / s.size)
    kappa = 1.5 * r * (1 - r) * (1 - 2 * centre) ** 2 / (centre * (1 - centre))
    spread = np.clip(s.g_eff**2 * (s.h**4).sum(1), 1 / base, 2 / base)
    wider = stats.t_quantile(0.95, np.maximum(1 / (1 / base + kappa * spread), 1.0))
    harmonic = digamma(s.kish / s.g_eff + 1) - digamma(1)
    size = np.where(alike, s.g_eff * harmonic, s.size)
    exact = np.sqrt(size * (0.025 ** (-1 / size) - 1))
    return stats.wilson(s.mean, size, np.where(alike, exact, wider))


def linear_t(s: Sample) -> Draw:
    half = stats.t_quantile(0.95, np.maximum(s.g_eff - 1, 1.0)) * s.se
    return np.clip(s.mean - half, 0, 1), np.clip(s.mean + half, 0, 1)


def logit_t(s: Sample) -> Draw:
    low, high = wilson_t(s)
    spread = s.mean * (1 - s.mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        half = stats.t_quantile(0.95, np.maximum(s.g_eff - 1, 1.0)) / np.sqrt(s.size * spread)
        ends = expit(logit(s.mean) - half), expit(logit(s.mean) + half)
    return np.where(spread > 0, ends[0], low), np.where(spread > 0, ends[1], high)


def satterthwaite(s: Sample) -> Draw:
    """Wilson's with Bell and McCaffrey's df of the jackknife, for documents of equal variance."""
    c, all_h = (s.h / (1 - s.h)) ** 2, (s.h**2).sum(1)
    d = 1 - 2 * s.h + all_h[:, None]
    c0, c1, c2 = c.sum(1), (c * s.h).sum(1), (c * s.h**2).sum(1)
    pairs = all_h**2 * c0**2 + 2 * c2 * c0 - 4 * all_h * c1 * c0 + 2 * c1**2
    own = (c**2 * (d**2 - (d - 1) ** 2)).sum(1)
    return wilson_t(s, (c * d).sum(1) ** 2 / (pairs + own))


def johnson_t(s: Sample) -> Draw:
    """Johnson's t: shifted by the third moment of the documents, which rows kept as Σx, Σx² do not give."""
    t = stats.t_quantile(0.95, np.maximum(s.g_eff - 1, 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(s.se > 1e-9, (s.deleted**3).sum(1) / s.se**2 * (1 + 2 * t**2) / 6, 0.0)
    return np.clip(s.mean + shift - t * s.se, 0, 1), np.clip(s.mean + shift + t * s.se, 0, 1)


def wild_t(s: Sample) -> Draw:
    """Return the wild cluster bootstrap-t, Rademacher signs, 199 resamples, symmetric; up to 20 documents."""
    if s.h.shape[1] > 20:
        return np.full_like(s.mean, np.nan), np.full_like(s.mean, np.nan)
    rng, ratio = np.random.default_rng(1), []
    for part in np.array_split(np.arange(len(s.mean)), max(len(s.mean) // 250, 1)):
        h = s.h[part, None, :]
        u = (s.deleted[part] * (1 - s.h[part]))[:, None, :] * rng.choice(
            [-1.0, 1.0], (len(part), 199, h.shape[2])
        )
        move = u.sum(2)
        g = h.shape[2]
        se = np.sqrt((g - 1) / g * (((u - h * move[:, :, None]) / (1 - h)) ** 2).sum(2))
        ratio.append(np.quantile(np.abs(move) / np.maximum(se, 1e-12), 0.95, axis=1))
    half = np.minimum(np.concatenate(ratio) * s.se, 1.0)
    return np.clip(s.mean - half, 0, 1), np.clip(s.mean + half, 0, 1)


SHOWN: dict[str, Callable[[Sample], Draw]] = {"wilson-t": wilson_t, "kurtosis": kurtosis}
RIVALS = dict(
    zip(
        ["linear-t", "logit-t", "df-CR", "johnson-t", "wild-t"],
        [linear_t, logit_t, satterthwaite, johnson_t, wild_t],
        strict=True,
    )
)


def doc_weights(rng: np.random.Generator, shape: tuple[int, int], kind: str) -> np.ndarray:
    if kind == ".5-4":
        return rng.uniform(0.5, 4.0, shape)
    v = np.ones(shape)
    v[:, 0] = {"equal": 1.0, "one ×10": 10.0, "one ×100": 100.0}[kind]
    return v


def measure(
    population: Population,
    sizes: str,
    weights: str,
    documents: int,
    runs: int,
    ways: dict,
    seed: int,
) -> list[dict]:
    """Return covered share, its Monte-Carlo error and the mean width of every way, over the same resamples."""
    key = zlib.crc32(f"{population.name} {sizes}".encode())
    rng = np.random.default_rng([seed, key, documents, WEIGHTS.index(weights)])
    sums, n = population.draw(rng, runs, documents, sizes)
    drawn = sample(sums, n, doc_weights(rng, sums.shape, weights), population.binary)
    rows, slack, given = [], 1e-9, library(drawn)
    for way, interval in ways.items():
        low, high = interval(drawn)
        share = float(
            ((low - slack <= population.truth) & (population.truth <= high + slack)).mean()
        )
        width = float((high - low).mean())
        apart = max(float(np.abs(low - given[0]).max()), float(np.abs(high - given[1]).max()))
        share = share if np.isfinite(width) else np.nan
        error = float(np.sqrt(max(share * (1 - share), 0.5 / runs) / runs))
        kind = "real" if population.real else "binary" if population.binary else "bounded"
        rows.append(
            {
                "kind": kind,
                "set": population.name,
                "sizes": sizes,
                "weights": weights,
                "G": documents,
                "way": way,
                "covered": share,
                "error": error,
                "width": width,
                "apart": apart,
            }
        )
    base = rows[0]["width"]
    return [row | {"relative": row["width"] / base} for row in rows]


LEVELS = (0.8, 0.9, 0.95, 0.99)


def covers(found: Draw, truth: float) -> float:
    low, high = found
    return float(((low - 1e-9 <= truth) & (truth <= high + 1e-9)).mean())


def of_levels(sets: list[Population], share: int, seed: int) -> pd.DataFrame:
    """Return how often the library's interval covers at each level, by setting."""
    rows = []
    plan = [(s, n, w, g) for s in sets for n, w, g in itertools.product(s.sizes, WEIGHTS[:2], RUNS)]
    for population, sizes, weights, g in tqdm(plan, unit="setting"):
        runs = RUNS[g] // share
        key = zlib.crc32(f"{population.name} {sizes}".encode())
        rng = np.random.default_rng([seed, key, g, WEIGHTS.index(weights)])
        sums, n = population.draw(rng, runs, g, sizes)
        drawn = sample(sums, n, doc_weights(rng, sums.shape, weights), population.binary)
        kind = "real" if population.real else "binary" if population.binary else "bounded"
        for level in LEVELS:
            covered = covers(library(drawn, level), population.truth)
            rows.append({"kind": kind, "G": g, "level": level, "covered": covered, "runs": runs})
    for sigma, icc, g in itertools.product((0.5, 1.0, 1.5), (0.0, 0.1, 0.3), RUNS):
        runs = RUNS[g] // share
        rng = np.random.default_rng([seed, g, int(10 * sigma), int(10 * icc)])
        documents = np.sqrt(icc) * rng.standard_normal((runs, g, 1))
        noise = np.sqrt(1 - icc) * rng.standard_normal((runs, g, 10))
        sums = np.exp(sigma * (documents + noise)).sum(2)
        truth = float(np.exp(sigma**2 / 2))
        mean = sums.mean(1) / 10
        parts = sums - 10 * mean[:, None]
        se = stats.jackknife_se(
            np.full(runs, 10.0 * g),
            np.full(runs, float(g)),
            ((parts / (1 - 1 / g)) ** 2).sum(1),
        )
        ends = np.full(runs, -np.inf), np.full(runs, np.inf)
        for level in LEVELS:
            one = np.full(runs, float(g))
            found = stats.mean_interval(mean, se, one, 10 * one, ends, level=level)
            kind = f"log-normal, σ {sigma:g}"
            covered = covers(found, truth)
            rows.append({"kind": kind, "G": g, "level": level, "covered": covered, "runs": runs})
    return pd.DataFrame(rows)


def levels_told(table: pd.DataFrame) -> str:
    """Return the least and the median coverage by kind, documents and level, in %."""
    with_range = table[~table["kind"].str.startswith("log-normal")].assign(kind="all with a range")
    out = []
    for (kind, g), part in pd.concat([table, with_range]).groupby(["kind", "G"], sort=False):
        line = {"kind": kind, "G": g, "settings": len(part) // len(LEVELS)}
        for level, of_level in part.groupby("level"):
            least, median = of_level["covered"].min(), of_level["covered"].median()
            line[f"{100 * level:g} %: least, median"] = f"{100 * least:.1f}, {100 * median:.1f}"
        out.append(line)
    return pd.DataFrame(out).to_string(index=False)


def pooled(table: pd.DataFrame) -> str:
    """Return the table of benchmarks/README.md: every way at each G, over all sets, for one kind of weights."""
    plain = table.assign(
        weights=table["weights"].replace({"equal": "equal, .5-4", ".5-4": "equal, .5-4"})
    )
    keys = ["set", "sizes", "weights", "G"]
    base = table[table["way"] == table["way"].iloc[0]].set_index(keys)["covered"]
    short = table.set_index(keys).index.map(base) < 0.93
    rows = []
    for (weights, g, way), part in plain.assign(short=short).groupby(
        ["weights", "G", "way"], sort=False
    ):
        clear = 2 * part["error"]
        ratio = part.groupby("short")["relative"].mean()
        rows.append(
            {
                "weights": weights,
                "G": g,
                "way": way,
                "settings": len(part),
                "< 93": (part["covered"] + clear < 0.93).sum(),
                "> 97": (part["covered"] - clear > 0.97).sum(),
                "least": f"{100 * part['covered'].min():.1f}",
                "median": f"{100 * part['covered'].median():.1f}",
                "width": f"{part['width'].mean():.3f}",
                "× where covered": f"{ratio.get(False, np.nan):.3f}",
                "× where short": f"{ratio.get(True, np.nan):.3f}",
            }
        )
    return pd.DataFrame(rows).to_string(index=False)


def summary(table: pd.DataFrame) -> str:
    """Return one line for each kind, weights and G over its settings."""
    clear = 2 * table["error"]
    table = table.assign(
        under=table["covered"] + clear < 0.93, over=table["covered"] - clear > 0.97
    )
    ways = list(table["way"].unique())
    head = (
        "least, median covered %; settings clearly under 93, over 97; "
        "mean width, median and largest × wilson-t's"
    )
    out = [
        head,
        f"{'':8}{'weights':>9}{'G':>4}{'settings':>9}" + "".join(f"{way:>41}" for way in ways),
    ]
    for key, part in table.groupby(["kind", "weights", "G"], sort=False):
        line = f"{key[0]:8}{key[1]:>9}{key[2]:4}{len(part) // len(ways):9}"
        for _, w in part.groupby("way", sort=False):
            cell = f"{100 * w['covered'].min():.1f} {100 * w['covered'].median():.1f}  "
            cell += f"{w['under'].sum():2} {w['over'].sum():2}  {w['width'].mean():.3f}"
            line += f"{cell} ×{w['relative'].median():.2f} ×{w['relative'].max():.2f}".rjust(41)
        out.append(line)
    return "\n".join(out)


def lines(table: pd.DataFrame) -> str:
    """Return one line a setting: covered share ± Monte-Carlo error, mean width, and it over the first way's."""
    keys, ways = ["set", "sizes", "weights", "G"], list(table["way"].unique())
    out = [f"{'set':32}{'sizes':>9}{'weights':>9}{'G':>4}" + "".join(f"{way:>25}" for way in ways)]
    for key, part in table.groupby(keys, sort=False):
        line = f"{key[0]:32}{key[1]:>9}{key[2]:>9}{key[3]:4}"
        for row in part.itertuples():
            cell = f"{100 * row.covered:.1f} ±{100 * row.error:3.1f} {row.width:5.3f} ×{row.relative:4.2f}"
            line += f"{cell:>25}"
        out.append(line)
    return "\n".join(out)


def report(table: pd.DataFrame, every: bool) -> None:
    """Print the summary, the settings that fall short (or all of them), and which way the library takes."""
    print("\n" + summary(table))
    print(
        "\nAll sets; widths are relative to wilson-t's, where it covers 93 % and where it falls short"
    )
    print(pooled(table))
    bad = table[(table["covered"] + 2 * table["error"] < 0.93) & (table["G"] >= 10)]
    bad = bad[bad["way"].isin(list(SHOWN))]
    few = table if every else table.merge(bad[["set", "sizes", "weights", "G"]].drop_duplicates())
    title = (
        "Every setting" if every else "Settings clearly under 93 % by a way shown, from G = 10 on"
    )
    print(f"\n{title}: covered % ± Monte-Carlo error, mean width, × wilson-t's\n{lines(few)}")
    apart = table.groupby("way")["apart"].max()
    print(f"\nThe library's interval is {apart.idxmin()}: largest difference {apart.min():.1e}")


def main() -> None:
    """Measure every setting, then print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="a fifth of the resamples")
    options.add_argument("--all", action="store_true", help="rival intervals too, with --quick")
    options.add_argument("--rows", action="store_true", help="a line for every setting")
    options.add_argument("--levels", action="store_true", help="other levels, and no range")
    options.add_argument("--csv", type=Path, help="write every setting to this file")
    options.add_argument("--seed", type=int, default=7)
    given = options.parse_args()
    data = (
        Path(os.environ.get("RAGNB_SHARED") or Path(__file__).resolve().parents[2] / "shared")
        / "data"
    )
    sets = list(SIMULATED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RagnbWarning)
        if data.is_dir():
            sets += [s for s in real_sets(data) if 0 < s.truth < 1]
        else:
            print(f"no real sets at {data}: simulated ones only")
    if given.levels:
        print(levels_told(of_levels(sets, 5 if given.quick else 1, given.seed)))
        return
    ways = SHOWN | (RIVALS if given.all else {})
    plan = [(s, n, w, g) for s in sets for n, w, g in itertools.product(s.sizes, WEIGHTS, RUNS)]
    rows, share = [], 5 if given.quick or given.all else 1
    for population, sizes, weights, g in tqdm(plan, unit="setting"):
        runs = RUNS[g] // share
        rows += measure(population, sizes, weights, g, runs, ways, given.seed)
    table = pd.DataFrame(rows)
    if given.csv:
        table.to_csv(given.csv, index=False)
    report(table, given.rows)


if __name__ == "__main__":
    main()
