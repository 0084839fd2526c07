"""The frames of one judge on one dimension, ready for the card and for charts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.calibration import bands, maps
from ragnb.calibration.cells import Cells, cells_of
from ragnb.calibration.corrected import DRAW, corrected_mean, corrected_ways
from ragnb.calibration.raters import PROBABILITY, Asked
from ragnb.calibration.ratings import Ratings, columns_of, scores_of
from ragnb.calibration.table import ALL
from ragnb.calibration.verdict import Settings
from ragnb.weights import nfc


def frames_of(
    opened: Ratings, chosen: npt.NDArray[np.bool_], cells: Cells, settings: Settings
) -> dict[str, pd.DataFrame]:
    """Return the frames that rest on one row's cells."""
    tolerance, target, level = settings.tolerance, settings.target, settings.level
    return {
        "bands": pd.DataFrame(bands.bands(cells, opened.scale, tolerance, target, level)),
        "inflation": pd.DataFrame(bands.inflation(opened, chosen, cells, level)),
        "recalibration": pd.DataFrame(maps.recalibration(cells, opened.scale, settings), columns=maps.COLUMNS),
        "counts": maps.counted(cells, opened.scale),
        "reliability": maps.reliability(cells, opened.scale, level, settings.resamples, settings.seed),
    }


def corrected(
    opened: Ratings, chosen: npt.NDArray[np.bool_], more: pd.DataFrame | None, settings: Settings
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the mean by the judge alone, by the humans alone, and corrected: of all, and of each system.

    Beside it: whether the labels of all look like a random draw, as `corrected_mean` tells it.
    """
    parts = [("", chosen, more)]
    system = opened.keys.get("system")
    if system is not None and len(np.unique(system.codes[chosen])) > 1:
        for code, name in enumerate(system.names):
            known = None if more is None or "system" not in more else more[more["system"].map(nfc) == name]
            parts.append((name, chosen & (system.codes == code), known))
    found = [(n, *_ways(opened, rows, extra, settings)) for n, rows, extra in parts if (rows & opened.both).any()]
    for name, ways, _ in found:
        ways.insert(0, "system", name)
    return pd.concat([ways for _, ways, _ in found], ignore_index=True), found[0][2]


def _ways(
    opened: Ratings, chosen: npt.NDArray[np.bool_], more: pd.DataFrame | None, settings: Settings
) -> tuple[pd.DataFrame, dict[str, float]]:
    if more is None and not (chosen & np.isnan(opened.y) & ~np.isnan(opened.x)).any():
        ways = _all_labelled(cells_of(opened, chosen), opened.scale, settings.level)
        return ways, dict.fromkeys(DRAW, np.nan)
    rows = np.repeat(np.flatnonzero(chosen), opened.counts[chosen].astype(np.int64))
    frame = pd.DataFrame({"judge": opened.x[rows], "human": opened.y[rows], PROBABILITY: 1.0})
    frame[PROBABILITY] = opened.weights.min() / opened.weights[rows]
    if opened.cluster is not None and opened.cluster_names:
        names = opened.cluster if more is None else np.asarray(opened.cluster_names, dtype=object)[opened.cluster]
        frame["cluster"] = names[rows]
    how: dict[str, Any] = {"by": None, "scale": opened.scale, "level": settings.level, "lang": settings.lang}
    means = corrected_mean(frame, judged=more, **how)
    return corrected_ways(means), dict(zip(DRAW, means[list(DRAW)].to_numpy(dtype=float)[0], strict=True))


def _all_labelled(cells: Cells, scale: tuple[float, float], level: float) -> pd.DataFrame:
    """Where humans rated all that the judge did, their mean needs no correction."""
    counts = {"weight": 0.0, "n": cells.n, "n_judged": 0, "n_clusters": cells.n_clusters}
    rows = []
    for way, values in (("judge", cells.x), ("human", cells.y), ("corrected", cells.y)):
        mean = stats.clustered_mean(values, **cells.how, ends=scale, level=level)
        rows.append({"way": way, "value": mean.value, "low": mean.low, "high": mean.high, **counts})
    return pd.DataFrame(rows)


def judged_rows(judged: Any, judge: str, asked: Asked) -> pd.DataFrame:
    """Return a judge's further rows: ``judge, dimension``, and ``cluster, system`` where they are known."""
    have = columns_of(judged)
    names = {name: "dimension" for name in asked.keys[:1] if name in have}
    cluster = asked.cluster if asked.cluster in have else None
    alone = replace(asked, human=(), by=list(names), cluster=cluster, groups=())
    scores = scores_of(judged, judge, alone, rows=True, where="judged: ")
    names |= {} if cluster is None else {cluster: "cluster"}
    names |= {"system": "system"} if "system" in have and "system" not in names else {}
    found = scores.table[list(names)].rename(columns=names).assign(judge=scores.x)
    if "cluster" in found:
        found["cluster"] = found["cluster"].map(nfc)
    return found if "dimension" in found else found.assign(dimension=ALL)
