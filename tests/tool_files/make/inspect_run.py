"""Evaluate with Inspect in two epochs: the log in both formats, and tables. It writes the files inspect_*.

python make/inspect_run.py
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path

import inspect_ai
from inspect_ai import Epochs, Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, Scorer, Target, exact, includes, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from questions import ABSTENTION, FOLDER, rows
from relative import relative
from scores import overlap, support

OLD = inspect_ai.__version__ == "0.3.120"  # only its .eval is of interest
CHOSEN = ["zh-34", "en-11", "en-13"] if OLD else ["zh-01", "zh-03", "zh-34", "en-11", "en-13"]


@solver
def recorded() -> Solver:
    """Play back the recorded answer."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = ModelOutput.from_content("recorded", state.metadata["answer"])
        return state

    return solve


@scorer(metrics=[mean(), stderr()])
def token_overlap() -> Scorer:
    """Score the share of the reference's words in the answer."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(
            value=overlap(state.output.completion, target.text), answer=state.output.completion
        )

    return score


@scorer(metrics=[mean(), stderr()])
def context_support() -> Scorer:
    """Score the share of the answer's words in the contexts: NaN for an abstention, an error without contexts."""

    async def score(state: TaskState, target: Target) -> Score:
        answer = state.output.completion
        if not state.metadata["retrieved_contexts"]:
            raise ValueError("no contexts were retrieved")
        if answer in ABSTENTION.values():
            return Score(value=math.nan, answer=answer, explanation="the system abstained")
        return Score(
            value=support(answer, state.metadata["retrieved_contexts"]),
            explanation="words were counted",
        )

    return score


samples = [
    Sample(
        id=row["sample_id"],
        input=row["question"],
        target=row["reference"],
        metadata={
            key: row[key] for key in ("answer", "retrieved_contexts", "doc_name", "language")
        },
    )
    for row in rows()
    if row["sample_id"] in CHOSEN
]
task = Task(
    dataset=MemoryDataset(samples, name="quickstart"),
    solver=recorded(),
    scorer=[includes(), exact(), token_overlap(), context_support()],
    epochs=Epochs(2, "mean"),
    fail_on_error=False,
    name="quickstart",
)
stem = FOLDER / f"inspect_{inspect_ai.__version__}"
with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    location = eval(task, model="mockllm/model", log_dir=work, display="none")[0].location
    log = read_eval_log(location)
    if not OLD:
        from inspect_ai.analysis import evals_df, samples_df

        for name, table in {
            "samples_df": samples_df([location]),
            "evals_df": evals_df([location]),
        }.items():
            table.assign(log=Path(location).name).to_csv(f"{stem}_{name}.csv", index=False)

log.location = ""
log = EvalLog.model_validate(json.loads(relative(json.dumps(log.model_dump(mode="json")))))
write_eval_log(log, f"{stem}_log.eval")
if not OLD:
    for sample in log.samples or []:
        sample.events, sample.attachments = [], {}
    write_eval_log(log, f"{stem}_log.json")
