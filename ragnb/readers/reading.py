"""What a reader makes of a source: a table, and what became of the source on the way."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from ragnb.schema import METRICS, Metric


@dataclass
class Reading:
    """A table, and what a reader has to say of its source.

    Inside ragnb readings are passed, not frames with attributes, which pandas loses at some steps and copies
    deeply at others.

    Attributes
    ----------
    frame : DataFrame
    origin : dict
        ``path, sha256, format, layout, rows, lines, damaged``: the records that the file should hold, and how many
        of them do not parse, had bytes replaced or are lost.
    lossy : list of dict
        What was changed or not understood: ``what, column, detail, n``.
    metrics : list of dict
        Range, direction, threshold and number of failures of the metrics that a tool's layout declares.
    facts : list of dict
        What was found out about metrics, rows and owners: ``metric, fact, value, evidence, open``.
    spans : dict of str to (low, high)
        The values of metrics that are outside their range, of a table that is only looked at.
    picks : dict of str to str
        The columns that had to be picked among several of one meaning.
    is_totals : bool
        Whether the rows are means and totals.
    role : str
        ``traces`` of answers that were read as a log.
    """

    frame: pd.DataFrame
    origin: dict[str, Any]
    lossy: list[Any]
    metrics: list[dict[str, Any]] = field(default_factory=list)
    facts: list[Any] = field(default_factory=list)
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    picks: dict[str, str] = field(default_factory=dict)
    is_totals: bool = False
    role: str = ""

    def scales(self, columns: Container[str]) -> dict[str, dict[str, Any]]:
        """Return range, direction and threshold of the metrics that a tool declares and a table still has.

        Examples
        --------
        >>> tone = {"metric": "tone", "low": 1, "high": 5, "better": "higher", "threshold": None, "n_failed": 2}
        >>> Reading(pd.DataFrame(), {}, [], [tone]).scales(["tone"])
        {'tone': {'low': 1, 'high': 5, 'better': 'higher', 'threshold': None}}
        """
        return {
            row["metric"]: {
                key: value for key, value in row.items() if key not in ("metric", "n_failed")
            }
            for row in self.metrics
            if row["metric"] in columns
        }

    def with_attrs(self) -> pd.DataFrame:
        """Return the table with what a caller may want to look up in its ``attrs``."""
        about: dict[Any, Any] = {"lossy": self.lossy, "source": self.origin, "facts": self.facts}
        if self.metrics:
            about["metrics"] = self.metrics
        if self.role:
            about["role"] = self.role
        self.frame.attrs = about
        return self.frame


def metrics_of_tool(rows: Iterable[Mapping[str, Any]], columns: Container[str]) -> Iterator[Metric]:
    """Yield the metrics that a tool's layout declares and METRICS does not hold as they are.

    A recall that a tool scored is a score like its others, though ragnb's own of that name is a rate beside the
    total.

    Parameters
    ----------
    rows : iterable of mapping
        As in `Reading.metrics`.
    columns : container of str
        Those that the table still has.

    Examples
    --------
    >>> row = {"metric": "Toxicity", "low": 0, "high": 1, "better": "lower"}
    >>> [(metric.name, metric.better) for metric in metrics_of_tool([row], ["Toxicity"])]
    [('Toxicity', 'lower')]
    """
    for row in rows:
        name = row["metric"]
        if name not in columns:
            continue
        known = METRICS.get(name)
        kind = row.get("kind", "continuous")
        made = Metric(name, row["low"], row["high"], row["better"], kind=kind, role="quality")
        if known is None or (known.scale, known.better) != (made.scale, made.better):
            yield made
        elif known.role == "rate":
            yield replace(known, role="quality")


def remembered(frame: Any) -> Reading:
    """Return what a frame of a caller still says of its source: nothing, if no reader of ours made it.

    Examples
    --------
    >>> remembered(Reading(pd.DataFrame({"a": [1]}), {"sha256": None, "lines": 1}, []).with_attrs()).origin
    {'sha256': None, 'lines': 1}
    >>> remembered(pd.DataFrame({"a": [1]})).origin
    {}
    """
    attrs = getattr(frame, "attrs", {})
    origin = attrs.get("source")
    # Others write into `attrs`, too, under the same names.
    if not (isinstance(origin, Mapping) and "sha256" in origin):
        return Reading(frame, {}, [])
    return Reading(
        frame,
        dict(origin),
        list(attrs.get("lossy", ())),
        list(attrs.get("metrics", ())),
        list(attrs.get("facts", ())),
        role=str(attrs.get("role", "")),
    )
