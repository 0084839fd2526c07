"""The metrics that can be computed here: what each needs, who computes it, and how many calls it makes."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

from ragnb import wording


@dataclass(frozen=True)
class Scorer:
    """A metric that can be computed.

    Parameters
    ----------
    name : str
        Its column; where METRICS knows the metric, its name there.
    needs : tuple of str
        Case columns; a case that lacks one is ``not_applicable``.
    by : {"ragas", "ours", "wording"}
        Who computes it: ragas' current collections, our own prompt, or no model at all.
    made_of : str
        The class in ``ragas.metrics.collections``, or the function in `ragnb.wording`.
    calls : tuple of int
        Calls of the judge for one case: a fixed number, and a number for each retrieved passage.
    embeds : int
        Calls of the embeddings for one case.
    nothing : float or str, optional
        What holds where the system retrieved nothing: the value, or why there is none. None leaves it to the
        judge.

    Examples
    --------
    >>> SCORERS["noise_sensitivity"].judge_calls({"retrieved_contexts": ["a", "b"]})
    7
    """

    name: str
    needs: tuple[str, ...]
    by: Literal["ragas", "ours", "wording"]
    made_of: str
    calls: tuple[int, ...] = (0, 0)
    embeds: int = 0
    nothing: float | str | None = None

    def judge_calls(self, inputs: Mapping[str, Any]) -> int:
        """Calls of the judge that one case is expected to need, without retries."""
        fixed, each = self.calls
        return fixed + each * len(inputs.get("retrieved_contexts") or ())


_TABLE = tomllib.loads(files(__package__).joinpath("scorers.toml").read_text("utf-8"))
_ROWS = [
    Scorer(name, tuple(row.pop("needs")), calls=tuple(row.pop("calls", (0, 0))), **row)
    for name, row in _TABLE.items()
]
SCORERS: Mapping[str, Scorer] = MappingProxyType({row.name: row for row in _ROWS})
"""Every metric that `evaluate` computes, by name."""

JUDGED = tuple(row.name for row in _ROWS if any(row.calls) or row.embeds)
"""Those that a judge or embeddings compute: the default where there is a judge."""

EMBEDDED = tuple(row.name for row in _ROWS if row.by == "wording")
"""Those that need no model and no key: the default without a judge."""


def by_wording(name: str, answer: str, contexts: list[str]) -> tuple[float, str | None]:
    """Compute an embedded metric; and say what the answer holds that the passages do not.

    Examples
    --------
    >>> by_wording("number_support", "36 months.", ["24 months."])
    (0.0, 'not in the passages: 36')
    """
    function: Callable[..., Any] = getattr(wording, name)
    found = function(answer, contexts)
    value, absent = found if isinstance(found, tuple) else (found, [])
    return value, f"not in the passages: {', '.join(absent)}" if absent else None
