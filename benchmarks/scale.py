"""How time and memory grow with the rows.

    python benchmarks/scale.py [--rows 1000000 …] [--ways polars …] [--keep FOLDER]

Made scores (6 metrics in hundredths, 10 % gaps, two systems, 500 documents) are written as Parquet, a
million rows a file. Each way reduces them in a process of its own to the means with intervals by system: from a
Polars scan, from DuckDB, from Spark (`local[2]`, where PySpark and Java are installed), and file by file into
moments that are merged, as days are. All must give the same numbers. Printed are wall time, processor time and
peak memory of the Python process (of Spark the driver's alone), and the exponent between the two largest sizes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import ragnb as rn

METRICS = [
    "faithfulness",
    "answer_relevancy",
    "context_recall",
    "context_precision",
    "answer_correctness",
    "noise_sensitivity",
]
PART = 1_000_000


def write(folder: Path, rows: int) -> None:
    """Write the rows of a folder, a million a file; the same seed gives the same rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(math.ceil(rows / PART)):
        n, rng = min(PART, rows - part * PART), np.random.default_rng(part)
        columns: dict[str, Any] = {
            "sample_id": pl.Series(np.arange(n) + part * PART).cast(pl.String),
            "doc_name": pl.Series(rng.integers(0, 500, n)).cast(pl.String) + pl.lit(".pdf"),
            "system": pl.Series(rng.integers(0, 2, n)).replace_strict({0: "old", 1: "new"}),
        }
        for name in METRICS:
            values = rng.integers(0, 101, n) / 100
            values[rng.random(n) < 0.1] = np.nan
            columns[name] = pl.Series(values, nan_to_null=True)
        pl.select(**columns).write_parquet(folder / f"part-{part:05}.parquet")


def polars_way(folder: Path) -> pd.DataFrame:
    return rn.moments(pl.scan_parquet(folder / "*.parquet"), metrics=METRICS, by="system").means()


def duckdb_way(folder: Path) -> pd.DataFrame:
    import duckdb

    rows = duckdb.read_parquet(str(folder / "*.parquet"))
    return rn.moments(rows, metrics=METRICS, by="system").means()


def daily_way(folder: Path) -> pd.DataFrame:
    """A file of moments for each file of rows, as for each day, then all of them merged."""
    with tempfile.TemporaryDirectory() as days:
        for rows in sorted(folder.glob("*.parquet")):
            rn.moments(pl.scan_parquet(rows), metrics=METRICS, by="system").to_parquet(
                f"{days}/{rows.name}"
            )
        files = sorted(Path(days).iterdir())
        size, begun = sum(file.stat().st_size for file in files), time.perf_counter()
        means = reduce(rn.Moments.merge, map(rn.Moments.from_parquet, files)).means()
        print(
            f"# {len(files)} files of moments, {size / 1e6:.1f} MB, merged and weighed in "
            f"{time.perf_counter() - begun:.2f} s",
            file=sys.stderr,
        )
        return means


def spark_way(folder: Path) -> pd.DataFrame:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    build = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = build.config("spark.driver.memory", "2g").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    begun = time.perf_counter()
    means = rn.moments(spark.read.parquet(str(folder)), metrics=METRICS, by="system").means()
    print(f"# without starting Spark: {time.perf_counter() - begun:.1f} s", file=sys.stderr)
    spark.stop()
    return means


WAYS = {"polars": polars_way, "duckdb": duckdb_way, "daily": daily_way, "spark": spark_way}


def measured(way: str, folder: Path) -> dict[str, Any]:
    """Run one way in a process of its own."""
    begun = time.perf_counter()
    words = [sys.executable, __file__, "--child", way, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    print(*(line for line in done.stderr.splitlines() if line.startswith("#")), sep="\n")
    return {"wall": time.perf_counter() - begun, **json.loads(done.stdout.splitlines()[-1])}


def child(way: str, folder: Path) -> None:
    warnings.simplefilter("ignore")
    means = WAYS[way](folder)
    used = resource.getrusage(resource.RUSAGE_SELF)
    found = {"cpu": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss / 1024}
    print(
        json.dumps(
            found | {"values": means[["value", "low", "high"]].to_numpy(float).round(9).tolist()}
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["polars", "duckdb", "daily"])
    parser.add_argument(
        "--keep", type=Path, help="where the rows are written, and found the next time"
    )
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        return child(asked.child[0], Path(asked.child[1]))
    with tempfile.TemporaryDirectory() as made:
        seen: dict[str, list[tuple[int, float]]] = {}
        for rows in asked.rows:
            folder = (asked.keep or Path(made)) / str(rows)
            if not folder.exists():
                write(folder, rows)
            wanted = None
            for way in asked.ways:
                found = measured(way, folder)
                wanted = wanted or found["values"]
                np.testing.assert_allclose(found["values"], wanted, rtol=1e-8)
                seen.setdefault(way, []).append((rows, found["wall"]))
                print(
                    f"{rows:>13,} {way:<7} {found['wall']:8.1f} s wall {found['cpu']:8.1f} s processor "
                    f"{found['mb']:8.0f} MB",
                    flush=True,
                )
        for way, times in seen.items():
            if len(times) > 1:
                (n, t), (m, u) = times[-2:]
                print(
                    f"{way}: exponent {math.log(u / t) / math.log(m / n):.2f} from {n:,} to {m:,} rows"
                )


if __name__ == "__main__":
    main()
