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
    frames = {name: frame for name, frame in parts.items() if frame is not None}
    if not frames:
        return None
    # Asked of the systems, not of the frames: the only frame of several systems needs their names, too.
    if len(parts) == 1:
        return next(iter(frames.values()))
    whole = pd.concat(frames.values(), ignore_index=True)
    sizes = [len(frame) for frame in frames.values()]
    whole.insert(0, "system", pd.Index([*frames], dtype=object).repeat(sizes))
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
        how.pop("doc_weights")  # a document alone has the same mean whatever it weighs
        table = self.moments.values(**how)
        named = table[table.index.notna()]
        weight = named[f"{TOTAL}__n"].astype(float)
        if self.weighing.doc_weights:
            # The same letter may be one code point in the scenario and two in the rows.
            weight_of = {weights.nfc(name): one for name, one in self.weighing.doc_weights.items()}
            weight *= [weight_of.get(weights.nfc(name), 1.0) for name in named.index]
        share = weight / weight.sum()
        return named.assign(**{_SHARE: share, _PULL: share * (named[TOTAL] - self.score)})

    def table(self, names: Collection[str] | None = None) -> pd.DataFrame:
        """Return the means of some documents, or of all, with intervals; of totals ``share`` and ``pull``, too.

        Rows that have no document are left out.
        """
        moments = self.moments if names is None else self.moments.of_groups(names)
        means = replace(self.weighing, doc_weights=None).means(moments)
        named = means.dropna(subset=[moments.by], ignore_index=True)
        # The first column is called as in the rows, such as doc_name.
        named.columns = pd.Index(["document", *named.columns[1:]])
        is_total = named["role"] == "total"
        documents = named.loc[is_total, "document"]
        for name, column in {"share": _SHARE, "pull": _PULL}.items():
            named[name] = np.nan
            named.loc[is_total, name] = self.values[column].reindex(documents).to_numpy()
        return named
