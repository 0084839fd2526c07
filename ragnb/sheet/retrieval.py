"""Retrieval by rank, of traces whose gold names passages."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pandas as pd

from ragnb.scenario import Scenario
from ragnb.traces import has_steps, rank_means, telling_depths
from ragnb.weights import column_names, present_weights


def retrieved(
    scenario: Scenario, frame: Any, docs: Collection[str]
) -> tuple[pd.DataFrame | None, pd.DataFrame | None]:
    """Return the measures by rank, and those of each search alone where a question was searched for several times.

    Parameters
    ----------
    scenario : Scenario
    frame : DataFrame
        Labelled traces of one system.
    docs : collection of str
        Their documents.

    Returns
    -------
    (frame, frame)
        As `ragnb.retrieval`, the second with ``step``; None where gold names no passages, or none has an id.
    """
    if not {"chunks", "gold_ids"} <= {*column_names(frame)}:
        return None, None
    depths = telling_depths(frame)
    if not depths:
        return None, None
    how: dict[str, Any] = {
        "doc": scenario.doc,
        "cluster": scenario.cluster,
        "doc_weights": present_weights(scenario.doc_weights, docs),
        "corpus": scenario.corpus,
        "level": scenario.level,
    }
    table = _of_one_system(rank_means(frame, depths, **how))
    # Gold may name passages of no question at all.
    if not table["n"].any():
        return None, None
    if has_steps(frame):
        return table, _of_one_system(rank_means(frame, depths, by="step", **how))
    return table, None


def _of_one_system(means: pd.DataFrame) -> pd.DataFrame:
    """Return the means without the column that names the system, which the sheet adds where there are several."""
    return means.drop(columns="system", errors="ignore")
