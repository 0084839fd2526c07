"""The means by document of a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ragnb import weights
from ragnb.schema import TOTAL
from ragnb.weights import Moments, Weighing


def stacked(parts: Mapping[Any, Any]) -> Any:
    """Return the frames of several systems as one, with the column ``system``; that of a single one as it is.

    Examples
    --------
    >>> stacked({"a": pd.DataFrame({"n": [1]}), "b": pd.DataFrame({"n": [2]})}).to_dict("list")
    {'system': ['a', 'b'], 'n': [1, 2]}
    """
    named = {name: frame for name, frame in parts.items() if frame is not None}
    if len(parts) == 1 or not named:
        return next(iter(named.values()), None)
    whole = pd.concat(named.values(), ignore_index=True)
    names = pd.Index([*named], dtype=object).repeat([len(frame) for frame in named.values()])
    whole.insert(0, "system", names)
    return whole


_SHARE = f"{TOTAL}__share"
_PULL = f"{TOTAL}__pull"


@dataclass(frozen=True)
class DocumentMeans:
    """The means by document of a system, made as they are asked for: a million documents have millions of them.

    Attributes
    ----------
    moments : Moments
        By document.
    weighing : Weighing
        How the whole is weighed; within a document its weight says nothing.
    score : float
        The weighted score of all documents.
    """

    moments: Moments
    weighing: Weighing
    score: float

    @property
    def pulls(self) -> pd.Series[float]:
        """How far each document moves the weighted score, the one that pulls it down most first.

        By name where there is no weighted score.
        """
        pulls = self.values[_PULL]
        if pulls.isna().all():
            return pulls.sort_index(kind="stable")
        return pulls.sort_values(kind="stable")

    @property
    def names(self) -> list[str]:
        """The documents."""
        return [name for name in self.moments.groups if name is not None]

    @property
    def metrics(self) -> list[str]:
        """The columns of `values` that are means, last the weighted score."""
        return [*(metric.name for metric in self.moments.metrics), TOTAL]

    @cached_property
    def values(self) -> pd.DataFrame:
        """The means alone, by document: a column a metric, ``weighted_score``, and two more of the latter.

        ``weighted_score__share`` is what a document weighs in the weighted score of all, ``weighted_score__pull``
        how far it moves that score.
        """
        how = self.weighing.of_total
        how.pop("doc_weights")
        table = self.moments.values(**how)
        named = table[table.index.notna()]
        weighed = named[f"{TOTAL}__n"].astype(float)
        if self.weighing.doc_weights:
            by_name = {weights.nfc(name): one for name, one in self.weighing.doc_weights.items()}
            weighed *= [by_name.get(weights.nfc(name), 1.0) for name in named.index]
        share = weighed / weighed.sum()
        return named.assign(**{_SHARE: share, _PULL: share * (named[TOTAL] - self.score)})

    def table(self, names: Collection[str] | None = None) -> pd.DataFrame:
        """Return the means of some documents, or of all, with intervals; of totals ``share`` and ``pull``, too.

        Rows that have no document are left out.
        """
        moments = self.moments if names is None else self.moments.of_groups(names)
        means = replace(self.weighing, doc_weights=None).means(moments)
        named = means.dropna(subset=[moments.by], ignore_index=True)
        named.columns = pd.Index(["document", *named.columns[1:]])
        total = named["role"] == "total"
        documents = named.loc[total, "document"]
        for name, column in {"share": _SHARE, "pull": _PULL}.items():
            named[name] = np.nan
            named.loc[total, name] = self.values[column].reindex(documents).to_numpy()
        return named
