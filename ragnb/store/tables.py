"""What a store holds, as frames: a run cell by cell, every attempt, all runs, and two runs against each other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragnb import stats
from ragnb.errors import RagnbError, listing, unknown
from ragnb.store.database import Database
from ragnb.store.integrity import PARTS

OF_RUN = (
    "FROM plan AS p JOIN cells AS c ON c.key = p.key LEFT JOIN attempts AS t ON t.id = c.attempt "
    "WHERE p.run = :run"
)
_APART = (
    "Give each system a run of its own, such as by ragnb judge SCENARIO -p 'where={system: NAME}' with the same "
    "--store (what is judged already is not judged again), and compare those runs"
)
_OF_HISTORY = OF_RUN.replace("t.id = c.attempt", "t.key = c.key").replace("LEFT JOIN", "JOIN")


def run_frame(database: Database, run: str, *, history: bool = False) -> pd.DataFrame:
    """One row a cell in the order of the plan, or one row an attempt in the order of time; see `Store.frame`."""
    columns = (
        "c.about, p.cluster, coalesce(t.status, 'pending'), t.value, t.reason, t.replies, "
        "t.calls, t.tokens_in, t.tokens_out, t.seconds, t.at, c.key"
    )
    source = f"{_OF_HISTORY} GROUP BY t.id ORDER BY t.id" if history else f"{OF_RUN} ORDER BY p.position"
    with database.reading() as file:
        names = [name for (name,) in file.execute("SELECT run FROM runs ORDER BY rowid DESC")]
        if run not in names:
            raise unknown("run", run, names)
        rows = file.execute(f"SELECT {columns} {source}", {"run": run}).fetchall()
    return pd.DataFrame([_row(row) for row in rows], columns=PARTS["of_run"], dtype=object)


def _row(row: Sequence[Any]) -> list[Any]:
    about, cluster, status, value, reason, replies, *rest = row
    cell = json.loads(about)
    texts = json.loads(replies) if replies else []
    known = [cell["sample_id"], cell["what"], cell["repeat"], cell["model"], cluster, status]
    return [*known, json.loads(value) if value else None, reason, texts[-1] if texts else None, *rest]


def compared(old: pd.DataFrame, new: pd.DataFrame, level: float) -> pd.DataFrame:
    """Paired differences of two runs' frames; see `Store.compare`."""
    pairs = _scores(old).merge(_scores(new), on=["sample_id", "metric"], suffixes=("_old", "_new"))
    rows = []
    for metric, part in pairs.groupby("metric", sort=True):
        before, after = (part[f"value_{which}"].to_numpy(float) for which in ("old", "new"))
        clusters = part["cluster_new"].where(part["cluster_new"].notna(), part["sample_id"].map(lambda i: ("", i)))
        found = stats.clustered_mean(after - before, pd.factorize(clusters)[0], level=level)
        changed = int(np.sum(~np.isclose(before, after, rtol=0, atol=1e-9)))
        ends = (found.low, found.high) if found.se > 0 else (np.nan, np.nan)  # no spread to judge by
        means = before.mean(), after.mean(), found.value
        rows.append((metric, *means, *ends, found.n, found.n_clusters, changed))
    columns = ["metric", "old", "new", "value", "low", "high", "n", "n_clusters", "n_changed"]
    return pd.DataFrame(rows, columns=columns)


def systems_of(cases: pd.DataFrame) -> list[str]:
    """Return the names of the systems whose answers these are, as a run keeps them: its cells do not tell."""
    return sorted({str(name) for name in cases.get("system", ()) if not pd.isna(name)})


def refuse_systems(frame: pd.DataFrame, run: str, systems: Sequence[str]) -> None:
    """Refuse a run of several systems, told of or seen by its answers: their mean says nothing of any of them."""
    task = frame["what"].str.partition("/")[0]  # rubric/contexts and rubric/alone judge the same
    answers = frame.groupby([frame["sample_id"].map(repr), task, "repeat"], sort=False)["key"].nunique()
    if (answers > 1).any():
        sample, what = answers.sort_values(ascending=False).index[0][:2]
        raise RagnbError(
            f"run={run!r} holds {answers.max()} answers to sample {sample} ({what}), as of several systems; their "
            f"mean says nothing of any of them. {_APART}"
        )
    if len(systems) > 1:
        raise RagnbError(f"run={run!r} holds several systems: {listing(systems)}; compare one with one. {_APART}")


def _scores(frame: pd.DataFrame) -> pd.DataFrame:
    """The numbers of the cells that are ok, one row a sample and metric, as means over repeats."""
    rows = []
    for cell in frame.loc[frame["status"] == "ok"].to_dict("records"):
        parts = cell["value"] if isinstance(cell["value"], dict) else {None: cell["value"]}
        for name, value in parts.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                metric = cell["what"] if name is None else f"{cell['what']}.{name}"
                rows.append((cell["sample_id"], metric, cell["cluster"], float(value)))
    table = pd.DataFrame(rows, columns=["sample_id", "metric", "cluster", "value"])
    return table.groupby(["sample_id", "metric"], as_index=False, sort=False).agg(
        {"cluster": "first", "value": "mean"}
    )
