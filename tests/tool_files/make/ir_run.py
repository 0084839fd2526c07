"""Write gold ids and a run in the format of TREC, and score them. It writes the files trec_* and ir_measures_*.

python make/ir_run.py
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import ir_measures
import pandas as pd
from ir_measures import RR, P, R, nDCG
from questions import FOLDER, rows

data = rows()
texts = sorted(
    {
        text
        for row in data
        for text in row["retrieved_contexts"] + (row["ground_truth_contexts"] or [])
    }
)
ids = {text: f"p{number:02}" for number, text in enumerate(texts)}
qrels = [
    f"{row['sample_id']} 0 {ids[text]} 1"
    for row in data
    for text in row["ground_truth_contexts"] or []
]
run = [
    f"{row['sample_id']} Q0 {ids[text]} {rank} {1 / rank:.4f} strong"
    for row in data
    for rank, text in enumerate(row["retrieved_contexts"], start=1)
]
(FOLDER / "trec_quickstart.qrels").write_text("\n".join(qrels) + "\n", encoding="utf-8")
(FOLDER / "trec_quickstart.run").write_text("\n".join(run) + "\n", encoding="utf-8")

stem = FOLDER / f"ir_measures_{version('ir_measures')}"
found = (
    list(ir_measures.read_trec_qrels(str(FOLDER / "trec_quickstart.qrels"))),
    list(ir_measures.read_trec_run(str(FOLDER / "trec_quickstart.run"))),
)
measures = [RR, nDCG @ 2, P @ 2, R @ 2]
scores = [
    (score.query_id, str(score.measure), score.value)
    for score in ir_measures.iter_calc(measures, *found)
]
table = pd.DataFrame(scores, columns=["query_id", "measure", "value"])
table.sort_values(["query_id", "measure"]).to_csv(f"{stem}_per_query.csv", index=False)
totals = {str(name): value for name, value in ir_measures.calc_aggregate(measures, *found).items()}
pd.Series(totals, name="value").sort_index().to_csv(f"{stem}_aggregate.csv", index_label="measure")

command = [
    sys.executable,
    "-m",
    "ir_measures",
    "trec_quickstart.qrels",
    "trec_quickstart.run",
    "-q",
]
with open(f"{stem}_cli.tsv", "w", encoding="utf-8") as file:
    subprocess.run([*command, "RR nDCG@2 P@2 R@2"], cwd=FOLDER, stdout=file, check=True)
