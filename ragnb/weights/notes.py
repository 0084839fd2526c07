"""Notes on a table of means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from ragnb.errors import RagnbError, listing
from ragnb.schema import TOTAL, note_frame, note_row, records
from ragnb.texts import load
from ragnb.weights.clusters import INSIDE

_FEW = 20  # samples, below which a mean is told to rest on few
_VERY_FEW = 5  # effective samples, where there are more samples than that
_FAILED = 0.05  # of the scores: so many failed are told beside the mean
_READ = "metric value low n n_failed n_clusters df cluster_unit better weight role reason top_share top_cluster"


def notes(means: pd.DataFrame, *, lang: str = "en") -> pd.DataFrame:
    """Return the notes on a table of `weighted_means` (without groups).

    Returns
    -------
    DataFrame
        ``code, about, text``: few or effectively few clusters, one document that dominates the result, rows or
        questions taken as independent, scores all equal without a range, failed cells, a weighted score that
        does not exist, a turned metric.

    Raises
    ------
    RagnbError
        For a table that lacks columns of `weighted_means`.

    Examples
    --------
    >>> from ragnb.weights import weighted_means
    >>> means = weighted_means(pd.DataFrame({"faithfulness": [1.0, 0.5], "doc_name": ["a", "b"]}))
    >>> notes(means)["code"].tolist()
    ['few_clusters']
    """
    say = load(lang)
    if lacks := [name for name in _READ.split() if name not in means.columns]:
        raise RagnbError(
            f"notes need the columns {listing(lacks)}; pass the whole table of rn.weighted_means"
        )
    scored = means[means["value"].notna()]
    if len(means):
        unit = str(means["cluster_unit"].iloc[0])
    else:
        unit = "row"
    rows: list[dict[str, str]] = []

    def add(
        code: str,
        metrics: Iterable[str],
        *,
        about: str | None = None,
        key: str = "",
        **values: object,
    ) -> None:
        if names := ", ".join(map(str, metrics)):
            text = say(f"note.{key or code}", metrics=names, **values)
            rows.append(note_row(code, names if about is None else about, text))

    if unit == "question" or (unit == "row" and len(scored)):
        add(f"{unit}s_independent", [unit], about="")
    if inside := (scored["cluster_unit"] == INSIDE).any():
        add("corpus_complete", [unit], about="")
        add("corpus_as_sample", scored.loc[scored["cluster_unit"] != INSIDE, "metric"])
    add("all_alike", scored.loc[(scored["n_clusters"] >= 2) & scored["low"].isna(), "metric"])
    causes: dict[tuple[str, object], tuple[list[str], dict[str, Any]]] = {}
    for row in records(scored):
        kind, values = _cluster_note(row, bool(inside) or unit in ("row", "question"))
        causes.setdefault((kind, values.get("name", values["n"])), ([], values))[0].append(
            row["metric"]
        )
    for (kind, _), (
        names,
        values,
    ) in causes.items():  # one note a cause, naming all metrics it holds for
        add(
            kind,
            names if kind else (),
            about="" if len(names) == len(scored) else None,
            **values,
        )
    for row in records(means[means["n_failed"] > _FAILED * (means["n"] + means["n_failed"])]):
        failed = int(row["n_failed"])
        add(
            "many_failed",
            [row["metric"]],
            metric=row["metric"],
            failed=failed,
            n=int(row["n"]) + failed,
        )
    why = why_no_total(means, lang=lang)
    if why:
        rows.append(note_row("no_total", TOTAL, why))
    add(
        "lower_is_better",
        means.loc[(means["better"] == "lower") & means["weight"].notna(), "metric"],
    )
    return note_frame(rows)


def why_no_total(means: pd.DataFrame, *, lang: str = "en") -> str:
    """Return why a table of means has no weighted score; empty if it has one.

    Examples
    --------
    >>> from ragnb.weights import weighted_means
    >>> why_no_total(weighted_means(pd.DataFrame({"faithfulness": [1.0]})))
    ''
    """
    # A file that was written and read again holds an empty reason as a missing cell.
    reasons = means.loc[means["role"] == "total", "reason"].dropna()
    code, _, detail = str(next(iter(reasons), "")).partition(": ")
    if code:
        return load(lang)(f"note.no_total_{code}", detail=detail)
    return ""


def _cluster_note(row: Mapping[Any, Any], rows: bool) -> tuple[str, dict[str, Any]]:
    """Return the note on the clusters of a mean, ``""`` for none; `rows` are clusters of their own."""
    n = int(row["n_clusters"])
    effective = float(row["df"]) + 1
    top = row["top_cluster"]
    values: dict[str, Any] = {"n": n, "g_eff": round(effective, 1)}
    if n < 2:
        return "one_row" if rows else "one_cluster", values
    if not rows and top and not pd.isna(top):
        return "dominated", values | {"name": top, "share": round(100 * row["top_share"])}
    if n >= _VERY_FEW and effective < _VERY_FEW - 1e-6:
        return "few_effective", values
    if n >= _FEW:
        return "", values
    return "few_rows" if rows else "few_clusters", values
