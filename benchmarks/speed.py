"""Time and memory of means, weighted scores, diagnoses and bootstraps beside their rivals; prints tables.

    python benchmarks/speed.py [--quick] [--runs 7]

The scores are made up: 6 metrics, 10 % gaps, 500 documents named by text. Ways are measured in turn, medians of
wall and processor time; where they compute the same numbers, that is checked first. 10⁷ rows and peak memory have
processes of their own, on Parquet files of 10⁶ rows each. Rivals: a plain loop over dicts, a `heapq` loop for the
worst samples, scipy's bootstrap, and, where installed (`pip install ragas mlflow trulens-core`), ragas'
EvaluationResult, MLflow's aggregation of feedback and TruLens' bootstrap. The limit is reading the columns.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import importlib.util
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy import stats as scipy_stats

import ragnb as rn
from ragnb import diagnostics, readers, stats

SHAPES = {
    "faithfulness": (5, 2.5),
    "answer_relevancy": (8, 2),
    "context_precision": (3, 2),
    "context_recall": (9, 2),
}
SHAPES |= {"answer_correctness": (4, 4), "context_relevance": (2, 3)}
METRICS = list(SHAPES)
WEIGHTS = {name: 1.0 + k / 2 for k, name in enumerate(METRICS)}
DOCUMENTS = [f"文档_{i:03d}_annual_report.pdf" for i in range(500)]
DOC_WEIGHTS = {DOCUMENTS[1]: 2.0, DOCUMENTS[3]: 0.5}
ROOT = Path(__file__).resolve().parents[1]
Ways = dict[str, Callable[[], Any]]


def made(rows: int, seed: int = 7) -> pl.DataFrame:
    """Return made-up scores."""
    rng = np.random.default_rng(seed)
    doc = rng.integers(0, len(DOCUMENTS), rows)
    doc[: len(DOCUMENTS)] = np.arange(len(DOCUMENTS))[:rows]
    columns = {name: rng.beta(*shape, rows).round(4) for name, shape in SHAPES.items()}
    gone = rng.random((len(METRICS), rows)) < 0.1
    frame = pl.DataFrame(
        {"sample_id": np.arange(rows), "doc_name": pl.Series(DOCUMENTS)[doc]} | columns
    )
    frame = frame.with_columns(pl.format("q{}", "sample_id").alias("sample_id"))
    return frame.with_columns(
        pl.when(~pl.Series(gone[k])).then(pl.col(m)).alias(m) for k, m in enumerate(METRICS)
    )


def loop(rows: list[dict]) -> dict[str, tuple[float, float, float, int]]:
    """Mean, clustered jackknife interval and n of every metric and of the weighted score, in plain Python."""
    pairs = [(k, name, WEIGHTS[name]) for k, name in enumerate(METRICS)]
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * 7)
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * 7)
    for row in rows:
        doc = row["doc_name"]
        total, n, top, bottom = sums[doc], counts[doc], 0.0, 0.0
        for k, name, weight in pairs:
            x = row[name]
            if x is None or x != x:
                continue
            if not 0 <= x <= 1:
                raise ValueError(name)
            total[k] += x
            n[k] += 1
            top += weight * x
            bottom += weight
        if bottom:
            total[6] += top / bottom
            n[6] += 1
    return {name: _mean(sums, counts, k) for k, name in enumerate([*METRICS, "weighted_score"])}


def _mean(sums: dict, counts: dict, k: int) -> tuple[float, float, float, int]:
    parts = [(DOC_WEIGHTS.get(doc, 1.0), sums[doc][k], n[k]) for doc, n in counts.items() if n[k]]
    a = sum(v * n for v, _, n in parts)
    value = sum(v * s for v, s, _ in parts) / a
    moved = sum((v * (s - value * n) / (1 - v * n / a)) ** 2 for v, s, n in parts)
    one, g = np.ones(1), len(parts)
    g_eff = 1 / sum((v * n / a) ** 2 for v, _, n in parts)
    h4 = one * sum((v * n / a) ** 4 for v, _, n in parts)
    kish = a**2 / sum(v**2 * n for v, _, n in parts)
    se = math.sqrt((g - 1) / g * moved) / a
    ends = 0 * one, one
    sizes = g_eff * one, kish * one
    low, high = stats.mean_interval(value * one, se * one, *sizes, ends, sum_h4=h4)
    return value, float(low[0]), float(high[0]), sum(n for _, _, n in parts)


def loop_scores(rows: list[dict]) -> list[float | None]:
    """The weighted score of each sample."""
    pairs, found = list(WEIGHTS.items()), []
    for row in rows:
        top = bottom = 0.0
        for name, weight in pairs:
            x = row[name]
            if x is None or x != x:
                continue
            if not 0 <= x <= 1:
                raise ValueError(name)
            top += weight * x
            bottom += weight
        found.append(top / bottom if bottom else None)
    return found


def loop_diagnose(rows: list[dict]) -> dict[str, tuple[float, list[str]]]:
    """Metrics whose mean is below the warning bar: the rise of the total up to it, and the three worst samples."""
    means = loop(rows)
    bars = {r.metric: r.warning for r in rn.RULES if r.metric in WEIGHTS and r.also is None}
    fired = [name for name, bar in bars.items() if means[name][0] < bar]
    pairs, rises, size = list(WEIGHTS.items()), dict.fromkeys(fired, 0.0), 0.0
    for row in rows:
        v, bottom = DOC_WEIGHTS.get(row["doc_name"], 1.0), 0.0
        for name, weight in pairs:
            if row[name] is not None:
                bottom += weight
        if not bottom:
            continue
        size += v
        for name in fired:
            x = row[name]
            if x is not None and x < bars[name]:
                rises[name] += v * WEIGHTS[name] / bottom * (bars[name] - x)
    found = {}
    for name in fired:
        worst = heapq.nsmallest(
            3, (row for row in rows if row[name] is not None), key=itemgetter(name)
        )
        found[name] = rises[name] / size, [row["sample_id"] for row in worst]
    return found


def in_turn(ways: Ways, runs: int) -> dict[str, tuple[float, float]]:
    """Median wall and processor seconds of each way; a slow moment of the machine meets all of them."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for call in ways.values():
        call()
    gc.collect()
    gc.disable()
    for _ in range(runs):
        for name, call in ways.items():
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            taken[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    gc.enable()
    return {
        name: tuple(statistics.median(t) for t in zip(*times, strict=True))
        for name, times in taken.items()
    }


def show(title: str, times: dict[str, tuple[float, float]], runs: int) -> None:
    """Print a table with ratios to the first way."""
    first = next(iter(times.values()))
    wide = max(map(len, times)) + 2
    print(
        f"\n{title}: median of {runs}\n{'way':{wide}}{'wall ms':>11}{'CPU ms':>11}{'wall ×':>9}{'CPU ×':>9}"
    )
    for name, (wall, cpu) in times.items():
        ratios = f"{first[0] / wall:9.2f}{first[1] / cpu:9.2f}"
        print(f"{name:{wide}}{1e3 * wall:11.2f}{1e3 * cpu:11.2f}{ratios}", flush=True)


def means(source: Any) -> pd.DataFrame:
    return rn.weighted_means(source, metric_weights=WEIGHTS, doc_weights=DOC_WEIGHTS)


def frames(rows: int, folder: Path) -> dict[str, Any]:
    """The same scores in every form."""
    frame = made(rows)
    frame.write_parquet(folder / f"{rows}.parquet")
    text = pd.DataFrame({name: frame[name].to_list() for name in ("sample_id", "doc_name")})
    text = text.assign(**{name: frame[name].fill_null(math.nan).to_numpy() for name in METRICS})
    return {
        "dicts": frame.to_dicts(),
        "pandas": text,
        "pandas, categorical": text.assign(doc_name=text["doc_name"].astype("category")),
        "Polars": frame,
        "Parquet": pl.scan_parquet(folder / f"{rows}.parquet"),
    }


def sections(rows: int, folder: Path, runs: int) -> None:
    """Means, weighted scores, diagnoses and re-weighing at one size."""
    forms = frames(rows, folder)
    dicts = forms.pop("dicts")
    engines = list(forms)
    ways: Ways = {"plain loop": lambda: loop(dicts)}
    ways |= {f"ragnb, {name}": lambda name=name: means(forms[name]) for name in engines}
    for name in engines:
        got = means(forms[name]).set_index("metric")[["value", "low", "high", "n"]]
        assert np.allclose(
            got.loc[[*METRICS, "weighted_score"]], [*loop(dicts).values()], rtol=1e-9
        )
    file = folder / f"{rows}.parquet"
    ways["limit: columns from Parquet"] = lambda: pl.read_parquet(
        file, columns=["doc_name", *METRICS]
    )
    if rows <= 10_000:
        ways |= rivals(dicts)
    show(f"Means, intervals, weighted score, {rows:,} rows", in_turn(ways, runs), runs)
    score = lambda name: rn.weighted_score(forms[name], metric_weights=WEIGHTS)  # noqa: E731
    assert np.allclose(
        score("pandas").to_numpy(), np.array(loop_scores(dicts), dtype=float), equal_nan=True
    )
    ways = {"plain loop": lambda: loop_scores(dicts)}
    ways |= {f"ragnb, {name}": lambda name=name: score(name) for name in ("pandas", "Polars")}
    show(f"Column of weighted scores, {rows:,} rows", in_turn(ways, runs), runs)

    def diagnose(name):
        return rn.diagnose(forms[name], metric_weights=WEIGHTS, doc_weights=DOC_WEIGHTS)

    wanted = loop_diagnose(dicts)
    for row in diagnose("pandas").itertuples():
        cost, worst = wanted[row.metric]
        assert math.isclose(row.cost, cost, rel_tol=1e-9)
        assert [w["sample_id"] for w in row.worst] == worst
    ways = {"heapq loop": lambda: loop_diagnose(dicts)}
    ways |= {f"ragnb, {name}": lambda name=name: diagnose(name) for name in ("pandas", "Polars")}
    show(
        f"Diagnoses, {rows:,} rows, {len(wanted)} metrics past their bar", in_turn(ways, runs), runs
    )
    cells = rn.moments(forms["pandas"])
    again = {
        "plain loop": lambda: loop(dicts),
        "ragnb": lambda: cells.means(metric_weights=WEIGHTS, doc_weights=DOC_WEIGHTS),
    }
    show(
        f"Means for other weights, {rows:,} rows, {cells.cells.size:,} cells",
        in_turn(again, runs),
        runs,
    )


def rivals(dicts: list[dict]) -> Ways:
    """Evaluation tools that average scores (no interval, no weights), where they are installed."""
    plain = [
        {name: math.nan if row[name] is None else row[name] for name in METRICS} for row in dicts
    ]
    ways: Ways = {}
    if installed("ragas"):
        from ragas.callbacks import ChainRun
        from ragas.dataset_schema import EvaluationDataset, EvaluationResult, SingleTurnSample

        dataset = EvaluationDataset(
            [SingleTurnSample(user_input=row["sample_id"]) for row in dicts]
        )
        run = {
            "": ChainRun(run_id="", parent_run_id=None, name="evaluation", inputs={}, metadata={})
        }
        result = EvaluationResult(plain, dataset, ragas_traces=run)
        ways["ragas EvaluationResult (means only)"] = lambda: EvaluationResult(
            plain, dataset, ragas_traces=run
        )
        ways["ragas to_pandas().mean()"] = lambda: result.to_pandas()[METRICS].mean()
    if installed("mlflow"):
        from mlflow.entities import Feedback
        from mlflow.genai.evaluation.entities import EvalItem, EvalResult
        from mlflow.genai.scorers.aggregation import compute_aggregated_metrics

        item = EvalItem(request_id="", inputs={}, outputs=None, expectations={})
        told = [
            [Feedback(name=name, value=x) for name, x in row.items() if x == x] for row in plain
        ]
        results = [EvalResult(eval_item=item, assessments=feedback) for feedback in told]
        ways["MLflow aggregated metrics (means only)"] = lambda: compute_aggregated_metrics(
            results, []
        )
    return ways


def installed(name: str) -> bool:
    there = importlib.util.find_spec(name) is not None
    if not there:
        print(f"{name} is not installed: left out")
    return there


def bootstraps(rows: int, small: int, runs: int) -> None:
    """2,000 resamples: of clusters, six metrics and the score, from cells; of rows, one metric, by the rivals."""
    scores = made(rows)
    x = scores["faithfulness"].drop_nulls().to_numpy()
    draw = {"n_resamples": 2_000, "method": "percentile", "random_state": np.random.default_rng(7)}

    def scipy_way(values: np.ndarray) -> Callable[[], Any]:
        return lambda: scipy_stats.bootstrap(
            (values,), np.mean, batch=max(1, 4_000_000 // len(values)), **draw
        )

    cells = rn.moments(scores)
    ways: Ways = {
        "ragnb, moments and bootstrap": lambda: rn.moments(scores).bootstrap(
            metric_weights=WEIGHTS, doc_weights=DOC_WEIGHTS
        )
    }
    ways["ragnb, bootstrap of moments"] = lambda: cells.bootstrap(
        metric_weights=WEIGHTS, doc_weights=DOC_WEIGHTS
    )
    times = in_turn(ways, runs)
    wall, cpu = time.perf_counter(), time.process_time()
    scipy_way(x)()
    times = {
        "scipy, one metric, once": (time.perf_counter() - wall, time.process_time() - cpu)
    } | times
    show(f"Bootstrap, 2,000 resamples, {rows:,} rows", times, runs)
    few = made(small)
    y = few["faithfulness"].drop_nulls().to_numpy()
    ways = {"scipy, one metric": scipy_way(y)}
    if installed("trulens"):
        from trulens.core.utils.stats import bootstrap_ci

        ways["TruLens bootstrap_ci, one metric"] = lambda: bootstrap_ci(y, n_bootstrap=2_000)
    ways["ragnb, moments and bootstrap"] = lambda: rn.moments(few).bootstrap(
        metric_weights=WEIGHTS, doc_weights=DOC_WEIGHTS
    )
    show(f"Bootstrap, 2,000 resamples, {small:,} rows", in_turn(ways, runs), runs)


def hundred(folder: Path, runs: int) -> None:
    """Every public function that takes rows, on 100 rows of pandas and on the quickstart's files."""
    frame = frames(100, folder)["pandas"]
    start = ROOT / "data" / "quickstart"
    traces, gold = (
        readers.read_traces(start / "traces.strong.jsonl"),
        readers.read_gold(start / "gold.json"),
    )
    labelled = rn.label_traces(traces, gold=gold).head(100)
    table, cells = means(frame), rn.moments(frame)
    ways: Ways = {
        "weighted_means": lambda: means(frame),
        "moments": lambda: rn.moments(frame),
        "Moments.means": lambda: cells.means(metric_weights=WEIGHTS),
        "Moments.merge": lambda: cells.merge(cells),
        "weighted_score": lambda: rn.weighted_score(frame, metric_weights=WEIGHTS),
        "weigh": lambda: rn.weigh(frame, metric_weights=WEIGHTS),
        "diagnose": lambda: rn.diagnose(frame),
        "failure_modes": lambda: rn.failure_modes(frame),
        "diagnostics.failure_summary": lambda: diagnostics.failure_summary(frame),
        "check_gates": lambda: rn.check_gates(table),
        "assess": lambda: rn.assess(frame),
        "refusal_metrics": lambda: rn.refusal_metrics(labelled),
        "label_traces": lambda: rn.label_traces(traces.head(100), gold=gold),
        "read_gold": lambda: rn.read_gold(start / "gold.json"),
        "read_traces": lambda: rn.read_traces(start / "traces.strong.jsonl"),
        "read_scores": lambda: rn.read_scores(start / "scores_simulated.csv"),
        "Moments.bootstrap (2,000 resamples)": lambda: cells.bootstrap(metric_weights=WEIGHTS),
    }
    times = in_turn(ways, max(runs, 21))
    print(f"\n100 rows of pandas, median of {max(runs, 21)}: ms of wall time (processor time)")
    for name, (wall, cpu) in sorted(times.items(), key=lambda item: -item[1][1]):
        print(f"{name:38}{1e3 * wall:8.2f} ({1e3 * cpu:.2f})")


def importing(runs: int) -> None:
    """Processor seconds of `import ragnb` over the packages that it stands on."""
    base = "import numpy, pandas, polars, pydantic"
    code = "import resource; r = resource.getrusage(resource.RUSAGE_SELF); print(r.ru_utime + r.ru_stime)"
    taken: dict[str, list[float]] = {"without": [], "with": []}
    for _ in range(runs):
        for name, line in (("without", base), ("with", f"{base}, ragnb")):
            got = subprocess.run(
                [sys.executable, "-c", f"{line}; {code}"],
                capture_output=True,
                text=True,
                check=True,
            )
            taken[name].append(float(got.stdout))
    without, own = (statistics.median(taken[name]) for name in ("without", "with"))
    print(
        f"\nimport ragnb: {own - without:.2f} s of processor time over {without:.2f} s of packages, {runs} runs"
    )


CHILDREN: dict[str, Callable[[str], Any]] = {
    "ragnb, Parquet": lambda glob: means(pl.scan_parquet(glob)),
    "ragnb, pandas": lambda glob: means(pl.read_parquet(glob).to_pandas()),
    "limit: columns from Parquet": lambda glob: pl.read_parquet(
        glob, columns=["doc_name", *METRICS]
    ),
}


def peak() -> float:
    """Peak memory of this process in MB; getrusage would also count that of the process which started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        int(
            next(
                line for line in status.read_text().splitlines() if line.startswith("VmHWM")
            ).split()[1]
        )
        / 1024
    )


def child(way: str, small: str, glob: str, runs: int) -> None:
    """Print one way's median seconds and the peak memory of this process, in which nothing else runs."""
    CHILDREN[way](small)
    before = peak()
    times = in_turn({way: lambda: CHILDREN[way](glob)}, runs)[way]
    print(json.dumps({"wall": times[0], "cpu": times[1], "before": before, "peak": peak()}))


def growth(sizes: list[int], folder: Path) -> None:
    """Time, memory and the exponent of growth, each in its own process."""
    for size in sizes:
        for part in range(max(size // 1_000_000, 1)):
            made(min(size, 1_000_000), seed=part).write_parquet(
                folder / f"grow-{size}-{part:02d}.parquet"
            )
    head = f"{'rows':>12}{'wall ms':>11}{'CPU ms':>11}{'peak MB':>9}{'MB over imports':>17}"
    print(f"\nGrowth, one process each, medians of 7 (of 3 from 10⁷ rows)\n{'way':30}{head}")
    for way in CHILDREN:
        taken = []
        for size in sizes:
            files = [str(folder / f"grow-{n}-*.parquet") for n in (sizes[0], size)]
            runs = "3" if size >= 10_000_000 else "7"
            got = json.loads(
                subprocess.check_output([sys.executable, __file__, "--child", way, *files, runs])
            )
            taken.append(got["cpu"])
            row = f"{size:12,}{1e3 * got['wall']:11.1f}{1e3 * got['cpu']:11.1f}{got['peak']:9.0f}"
            print(f"{way:30}{row}{got['peak'] - got['before']:17.0f}", flush=True)
        exponent = math.log(taken[-1] / taken[0]) / math.log(sizes[-1] / sizes[0])
        print(f"{'':30}exponent of processor time {sizes[0]:,} to {sizes[-1]:,}: {exponent:.2f}")


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--quick", action="store_true", help="up to 10⁵ rows, three runs: a minute"
    )
    options.add_argument("--runs", type=int, default=None, help="7, or 3 with --quick")
    options.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    if given.child:
        child(*given.child[:3], runs=int(given.child[3]))
        return
    runs = given.runs or (3 if given.quick else 7)
    sizes = [100, 10_000, 100_000] if given.quick else [100, 10_000, 1_000_000]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        importing(max(runs, 7))
        hundred(folder, runs)
        for size in sizes:
            sections(size, folder, runs)
        bootstraps(sizes[-1], sizes[1], runs)
        growth([*sizes[1:], sizes[-1] * 10], folder)


if __name__ == "__main__":
    main()
