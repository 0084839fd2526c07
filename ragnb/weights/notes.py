"""What a reader must know before believing a table of means, in words; and where every row went."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragnb.errors import RagnbError, listing
from ragnb.schema import note_frame, note_row, records
from ragnb.texts import load

_FEW, _VERY_FEW, _FAILED = 20, 5, 0.05
_READ = "metric value low n n_failed n_clusters df cluster_unit better weight role reason top_share top_cluster"


def notes(means: pd.DataFrame, *, lang: str = "en") -> pd.DataFrame:
    """Return the notes that a table of `weighted_means` (without groups) calls for.

    Returns
    -------
    DataFrame
        ``code, about, text``: few or effectively few clusters, one document that carries the result, rows or
        questions taken as independent, scores all alike without a range, failed cells, a weighted score that
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
        raise RagnbError(f"notes need the columns {listing(lacks)}; pass the whole table of rn.weighted_means")
    table = records(means)
    unit = table[0]["cluster_unit"] if table else "row"
    scored = [row for row in table if not pd.isna(row["value"])]
    rows: list[dict[str, str]] = []

    def add(code: str, about: str, **values: object) -> None:
        rows.append(note_row(code, about, say(f"note.{code}", **values)))

    if unit == "question" or (unit == "row" and scored):
        add(f"{unit}s_independent", "")
    alike = ", ".join(str(row["metric"]) for row in scored if row["n_clusters"] >= 2 and pd.isna(row["low"]))
    if alike:
        add("all_alike", alike, metrics=alike)
    for code, names, values in _cluster_notes(scored, unit):
        add(code, "" if len(names) == len(scored) else ", ".join(names), **values)
    for row in table:
        total = int(row["n"] + row["n_failed"])
        if row["n_failed"] > _FAILED * total:
            add("many_failed", str(row["metric"]), metric=row["metric"], failed=int(row["n_failed"]), n=total)
    why = why_no_total(means, lang=lang)
    if why:
        rows.append(note_row("no_total", "weighted_score", why))
    turned = [str(row["metric"]) for row in table if row["better"] == "lower" and not pd.isna(row["weight"])]
    if turned:
        add("lower_is_better", ", ".join(turned), metrics=", ".join(turned))
    return note_frame(rows)


def why_no_total(means: pd.DataFrame, *, lang: str = "en") -> str:
    """Say why a table of means has no weighted score; empty where it has one.

    Examples
    --------
    >>> from ragnb.weights import weighted_means
    >>> why_no_total(weighted_means(pd.DataFrame({"faithfulness": [1.0]})))
    ''
    """
    # A file that was written and read again holds an empty reason as a missing cell.
    reasons = means.loc[means["role"] == "total", "reason"].dropna()
    code, _, detail = str(next(iter(reasons), "")).partition(": ")
    return load(lang)(f"note.no_total_{code}", detail=detail) if code else ""


def _cluster_notes(scored: list[dict[Any, Any]], unit: str) -> list[tuple[str, list[str], dict[str, object]]]:
    """One note a cause, naming all metrics it holds for."""
    found: dict[tuple[str, object], tuple[list[str], dict[str, object]]] = {}
    for row in scored:
        g, g_eff, top = int(row["n_clusters"]), float(row["df"]) + 1, row["top_cluster"]
        values: dict[str, object] = {"n": g, "g_eff": round(g_eff, 1)}
        kind = ""
        if g < 2:
            kind = "one_row" if unit in ("row", "question") else "one_cluster"
        elif unit not in ("row", "question") and top and not pd.isna(top):
            kind = "dominated"
            values |= {"name": top, "share": round(100 * row["top_share"])}
        elif g >= _VERY_FEW and g_eff < _VERY_FEW - 1e-6:
            kind = "few_effective"
        elif g < _FEW:
            kind = "few_rows" if unit in ("row", "question") else "few_clusters"
        if kind:
            found.setdefault((kind, values.get("name", g)), ([], values))[0].append(str(row["metric"]))
    return [(kind, names, values) for (kind, _), (names, values) in found.items()]


def ledger(means: pd.DataFrame) -> pd.DataFrame:
    """Return where every row went, metric by metric: ``metric, rows, ok, missing, failed, not_applicable``.

    The four add up to the rows.

    Examples
    --------
    >>> from ragnb.weights import weighted_means
    >>> means = weighted_means(pd.DataFrame({"faithfulness": [1.0, None], "doc_name": ["a", "b"]}))
    >>> ledger(means).loc[0, "rows":].to_dict()
    {'rows': 2, 'ok': 1, 'missing': 1, 'failed': 0, 'not_applicable': 0}
    """
    parts = means[["n", "n_missing", "n_failed", "n_not_applicable"]]
    table = parts.set_axis(["ok", "missing", "failed", "not_applicable"], axis=1)
    table.insert(0, "rows", parts.sum(axis=1))
    table.insert(0, "metric", means["metric"])
    return table
