"""A job on a cluster, run by the environment under test: python spark_job.py MASTER FOLDER; prints its numbers.

Each batch of rows takes a while, so that a worker can be killed in the middle; ``# running`` is printed then.
"""

import json
import sys
import threading
import time
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession

import ragnb as rn

master, folder = sys.argv[1:]
build = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
build = build.config("spark.executor.memory", "512m").config("spark.executor.cores", "1")
spark = build.config("spark.sql.files.maxPartitionBytes", "40000").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
deadline = time.monotonic() + 120
while (
    spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 3
    and time.monotonic() < deadline
):
    time.sleep(0.2)  # the driver and two executors


def slowly(parts):
    for part in parts:
        time.sleep(1)
        yield part


def watch():
    """Say when tasks have ended and others have not."""
    tracker = spark.sparkContext.statusTracker()
    while True:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if any(one and one.numCompletedTasks >= 2 and one.numTasks >= 6 for one in stages):
            print("# running", flush=True)
            return
        time.sleep(0.05)


rows = spark.read.parquet(f"{folder}/scores")
slow = rows.mapInPandas(slowly, rows.schema)
threading.Thread(target=watch, daemon=True).start()
means = rn.weighted_means(slow, by="system", doc_weights={"d1": 3.0})
traces = spark.read.parquet(f"{folder}/traces")
labelled = rn.label_traces(traces, gold=pd.read_json(f"{folder}/gold.jsonl", lines=True))
found = {
    "means": means.to_json(double_precision=15),
    "rates": rn.refusal_metrics(labelled, by="system").to_json(double_precision=15),
    "ragnb": str(Path(rn.__file__).parent),
}
print(json.dumps(found), flush=True)
spark.stop()
