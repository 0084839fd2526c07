"""The two columns of weighing as expressions, for rows that stay on their engine."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from ragnb.schema import Metric
from ragnb.weights.check import check_weights, nfc, refuse_all_zero, warn_unused
from ragnb.weights.columns import Array
from ragnb.weights.engines import (
    BAD,
    Frame,
    any_fault,
    collected,
    doc_there,
    explain,
    key_of,
    laid_out,
    opened,
    stays_lazy,
    swift,
)

_BLOCK = 2**14  # so many rows stay in the processor's cache


@dataclass(frozen=True)
class Total:
    """How the scores add up: Σ weight · (intercept + slope · score) / Σ weight over the scores that are there."""

    metrics: tuple[Metric, ...]
    weights: Array
    slopes: Array
    intercepts: Array

    def _way(self) -> tuple[list[float], list[float], list[float]]:
        return self.weights.tolist(), self.slopes.tolist(), self.intercepts.tolist()

    def expression(self) -> nw.Expr:
        """Return the weighted score over ``__v0``, ``__v1`` …, null where nothing with a weight has a score."""
        over, under = [], []
        for k, (weight, slope, intercept) in enumerate(zip(*self._way(), strict=True)):
            if weight > 0:
                value = nw.col(f"__v{k}")
                gone = value.is_null()
                over.append(nw.when(gone).then(nw.lit(0.0)).otherwise((value * slope + intercept) * weight))
                under.append(nw.when(gone).then(nw.lit(0.0)).otherwise(nw.lit(weight)))
        if not over:
            return nw.lit(None, dtype=nw.Float64)
        bottom = nw.sum_horizontal(*under)
        return nw.when(bottom > 0).then(nw.sum_horizontal(*over) / bottom)

    def of(self, values: Sequence[Array], rows: int) -> Array:
        """Return the weighted score of each row of columns, nan where nothing with a weight has a score."""
        score = np.empty(rows)
        for start in range(0, rows, _BLOCK):
            block = slice(start, start + _BLOCK)
            over, under = np.zeros((2, len(score[block])))
            for column, weight, slope, intercept in zip(values, *self._way(), strict=True):
                if weight > 0:
                    x = column[block] * (weight * slope) + weight * intercept
                    over += np.where(np.isnan(x), 0.0, x)
                    under += weight * ~np.isnan(x)
            np.divide(over, np.where(under > 0, under, np.nan), out=score[block])
        return score


DocWeights = tuple[str, Mapping[str, float] | None]
"""The document column, and the documents' weights as the caller wrote them."""


def _doc_weight(frame: Frame, doc: str, weights: Mapping[str, float] | None, lazy: bool) -> nw.Expr:
    """Return each row's document weight, 1.0 where none is named."""
    checked = check_weights(weights, "doc_weights")
    if doc_there(frame, doc) is None:
        warn_unused(checked, [], "doc_weights", stacklevel=5)
        return nw.lit(1.0)
    key = key_of(frame, doc)
    spelt: dict[Any, float] = {}
    if checked and lazy:
        forms = {name: (str(name), nfc(name), unicodedata.normalize("NFD", str(name))) for name in weights or {}}
        spelt = {form: checked[nfc(name)] for name, own in forms.items() for form in own}
        text, digits = key.cast(nw.String), key.cast(nw.Int64).cast(nw.String)
        floats = frame.collect_schema()[doc].is_float()
        key = nw.when(key == key.round()).then(digits).otherwise(text) if floats else text
    elif checked:
        spelt = _as_found(frame, key, checked)
    if not spelt:
        return nw.lit(1.0)
    return key.replace_strict(list(spelt), list(spelt.values()), default=1.0, return_dtype=nw.Float64)


def _as_found(frame: Frame, key: nw.Expr, checked: Mapping[str, float]) -> dict[Any, float]:
    """The weights under the names as the column spells them."""
    found = collected(frame.select(key.alias("__k0")).unique())["__k0"].to_list()
    names = {name: nfc(name) for name in found if name is not None}
    warn_unused(checked, sorted(set(names.values())), "doc_weights", stacklevel=6)
    refuse_all_zero(not found or any(checked.get(names.get(raw, ""), 1.0) for raw in found), "doc_weights")
    return {raw: checked[name] for raw, name in names.items() if name in checked}


def add_columns(scores: Any, total: Total | None, docs: DocWeights | None, *, only: bool = False) -> Any:
    """Return the caller's kind of frame with ``weighted_score`` and ``sample_weight``, or with them only.

    Raises
    ------
    RagnbError
        For an eager frame as `weighted_score`; the query of a lazy one fails when it runs.

    Examples
    --------
    >>> import polars as pl
    >>> docs = ("doc_name", {"a": 2.0})
    >>> add_columns(pl.DataFrame({"doc_name": ["a", "b"]}), None, docs, only=True)["sample_weight"].to_list()
    [2.0, 1.0]
    """
    metrics = () if total is None else total.metrics
    source = opened(scores)
    new = {} if total is None else {"weighted_score": total.expression()}
    plain = {} if docs is None else {"sample_weight": _doc_weight(source, *docs, stays_lazy(scores))}
    return _added(scores, metrics, new, plain, only)


def add_label(scores: Any, metrics: Sequence[Metric], name: str, label: nw.Expr) -> Any:
    """Return the caller's kind of frame with a column that is read off the scores ``__v0``, ``__v1`` … .

    Raises
    ------
    RagnbError
        As `add_columns`.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"faithfulness": [0.5, None]})
    >>> label = nw.when(nw.col("__v0").is_null()).then(nw.lit("none")).otherwise(nw.lit("some"))
    >>> add_label(frame, [Metric("faithfulness")], "there", label)["there"].to_list()
    ['some', 'none']
    """
    return _added(scores, metrics, {name: label}, {}, only=False)


def indicators(
    scores: Any, metrics: Sequence[Metric], keys: Sequence[str], code: nw.Expr, names: Sequence[str]
) -> Any:
    """Return columns of a frame, and one of 0 and 1 for each code that is read off the scores ``__v0`` … .

    Examples
    --------
    >>> import polars as pl
    >>> code = nw.when(nw.col("__v0") > 0.5).then(nw.lit(1)).otherwise(nw.lit(0))
    >>> frame = pl.DataFrame({"faithfulness": [0.9, 0.1]})
    >>> indicators(frame, [Metric("faithfulness")], [], code, ["low", "high"]).collect().rows()
    [(0.0, 1.0), (1.0, 0.0)]
    """
    needed = dict.fromkeys([*keys, *(metric.name for metric in metrics)])
    rows, _ = laid_out(swift(opened(scores).select(*needed)), metrics)
    one, zero = nw.lit(1.0), nw.lit(0.0)
    flags = {name: nw.when(nw.col("__code") == k).then(one).otherwise(zero) for k, name in enumerate(names)}
    return rows.with_columns(__code=code).with_columns(**flags).select(*keys, *names).to_native()


def _guarded(value: nw.Expr, faults: Sequence[tuple[nw.Expr, str]]) -> nw.Expr:
    """Return the value, or make the query fail with the fault's words once it runs: words are no number."""
    said = nw.lit(None, dtype=nw.String)
    for fault, words in reversed(faults):
        said = nw.when(fault).then(nw.lit(words)).otherwise(said)
    return nw.when(said.cast(nw.Float64).is_null()).then(value)


def _added(
    scores: Any, metrics: Sequence[Metric], new: dict[str, nw.Expr], plain: dict[str, nw.Expr], only: bool
) -> Any:
    """Add what follows from the scores, which is refused with them, and what does not."""
    source, lazy = opened(scores), stays_lazy(scores)
    have = source.collect_schema().names()
    rows, faults = laid_out(source, metrics)
    if lazy and faults:
        new = {name: _guarded(value, faults) for name, value in new.items()}
    kept = [*new, *plain] if only else list(dict.fromkeys([*have, *new, *plain]))
    if lazy:
        return rows.with_columns(**new, **plain).select(*kept).to_native()
    made = collected(rows.with_columns(**new, **plain, **{BAD: any_fault(faults)}).select(*kept, BAD))
    if made[BAD].sum():
        explain(scores, metrics)
    return made.select(*kept).to_native()
