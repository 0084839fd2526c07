"""The frames of one judge on one dimension, ready for the card and for charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.calibration import bands, maps
from ragnb.calibration.cells import Cells
from ragnb.calibration.corrected import corrected_mean, corrected_ways
from ragnb.calibration.raters import Asked, numbers
from ragnb.calibration.ratings import Ratings
from ragnb.calibration.table import ALL
from ragnb.calibration.verdict import Settings
from ragnb.errors import RagnbError, did_you_mean
from ragnb.weights import as_pandas, column_names


def frames_of(
    opened: Ratings, chosen: npt.NDArray[np.bool_], cells: Cells, settings: Settings
) -> tuple[dict[str, pd.DataFrame], float]:
    """Return the frames that rest on one row's cells, and the step to which counted scores are rounded."""
    tolerance, target, level = settings.tolerance, settings.target, settings.level
    counts, step = maps.counted(cells, opened.scale)
    found = {
        "bands": pd.DataFrame(bands.bands(cells, opened.scale, tolerance, target, level)),
        "inflation": pd.DataFrame(bands.inflation(opened, chosen, cells, level)),
        "recalibration": pd.DataFrame(maps.recalibration(cells, settings), columns=maps.COLUMNS),
        "counts": counts,
        "reliability": maps.reliability(cells, opened.scale, level, settings.resamples, settings.seed),
    }
    return found, step


def needed(needs: stats.LabelsNeeded, text: str) -> pd.DataFrame:
    """Return the labels still needed as a frame of one row."""
    frame = pd.DataFrame([asdict(needs) | {"text": text}])
    return frame.astype(dict.fromkeys(("total", "more", "independent"), "Int64"))


def corrected(
    opened: Ratings,
    chosen: npt.NDArray[np.bool_],
    more: pd.DataFrame | None,
    row: Mapping[str, Any],
    settings: Settings,
) -> pd.DataFrame:
    """Return the mean by the judge alone, by the humans alone, and corrected."""
    if more is None and not (chosen & np.isnan(opened.y) & ~np.isnan(opened.x)).any():
        return _all_labelled(row)
    rows = np.repeat(np.flatnonzero(chosen), opened.counts[chosen].astype(np.int64))
    frame = pd.DataFrame({"judge": opened.x[rows], "human": opened.y[rows]})
    if opened.cluster is not None:
        names = opened.cluster if more is None else np.asarray(opened.cluster_names, dtype=object)[opened.cluster]
        frame["cluster"] = names[rows]
    how: dict[str, Any] = {"by": None, "scale": opened.scale, "level": settings.level, "lang": settings.lang}
    return corrected_ways(corrected_mean(frame, more, **how))


def _all_labelled(row: Mapping[str, Any]) -> pd.DataFrame:
    """Where humans rated all that the judge did, their mean needs no correction."""
    counts = {"weight": 0.0, "n": row["n"], "n_judged": 0, "n_clusters": row["n_clusters"]}
    ways = {"judge": "mean_judge", "human": "mean_human", "corrected": "mean_human"}
    rows = [
        {"way": way, "value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"], **counts}
        for way, name in ways.items()
    ]
    return pd.DataFrame(rows)


def judged_rows(judged: Any, judge: str, asked: Asked) -> pd.DataFrame:
    """Return the further rows of a judge, as ``judge, dimension`` and ``cluster`` where they have one."""
    have = column_names(judged)
    names = {judge: "judge"}
    names |= {asked.keys[0]: "dimension"} if asked.keys and asked.keys[0] in have else {}
    names |= {asked.cluster: "cluster"} if asked.cluster is not None and asked.cluster in have else {}
    if judge not in have:
        raise RagnbError(f"judged has no column {judge!r}; {did_you_mean(judge, have)}")
    frame = as_pandas(judged)
    scores = numbers(frame, judge, asked.missing)
    found = frame[list(names)].rename(columns=names).assign(judge=scores)
    return found if "dimension" in found else found.assign(dimension=ALL)
