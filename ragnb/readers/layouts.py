"""What a table is, seen from its columns: samples of a tool, or totals and dumped objects, which are refused."""

from __future__ import annotations

from ragnb.errors import RagnbError, listing, place
from ragnb.readers import deepeval, haystack, long, mlflow, promptfoo, ragas, rgb, spans, trulens
from ragnb.readers.cells import NO_NUMBER
from ragnb.readers.lossy import Lossy
from ragnb.readers.numbers import NUMBER
from ragnb.readers.raw import Column, Raw, Values
from ragnb.schema import CASE_COLUMNS

_DUMPED = {"scores", "dataset", "binary_columns"}
_CASE_ONLY = set(CASE_COLUMNS) - {"system"}


LAYOUTS = {
    tool.__name__.rpartition(".")[2]: tool
    for tool in (haystack, trulens, mlflow, deepeval, promptfoo, spans, rgb, long, ragas)
}
"""How tools lay out their tables: `sniff` looks at the column names, `read` puts them in rows of samples."""


def lay_out(raw: Raw, report: Lossy) -> str:
    """Bring a tool's layout to one row a sample and return its name, ``table`` where no tool is known by it."""
    columns = set(raw.columns)
    if columns >= _DUMPED:
        raise RagnbError(
            f"{place(raw.file)}is a dumped result object (columns {listing(raw.columns)}), not a table of "
            "samples; save result.to_pandas() instead"
        )
    for name in [name for name in raw.columns if name == "..."]:
        report.add("left_out", name, "columns that a printed table elides", len(raw.columns.pop(name)))
    for name, layout in LAYOUTS.items():
        if layout.sniff(columns):
            raw.columns = {n: cells if name == "ragas" else list(cells) for n, cells in raw.columns.items()}
            layout.read(raw, report)
            return name
    return "table"


def check_samples(raw: Raw) -> None:
    """Refuse a table of totals, and rows whose cells do not fit the header.

    A table is one of totals where no column tells of a sample and its texts name each row once.
    """
    known = _CASE_ONLY & set(raw.columns)
    texts = [cells for cells in raw.columns.values() if not known and _is_text(cells)]
    if texts:
        keys = {tuple(map(str, key)) for key in zip(*texts, strict=True)}
        if len(keys) == len(raw) or raw.uneven:
            raise RagnbError(
                f"{place(raw.file)}is a table of totals, one row a system or setting (columns "
                f"{listing(raw.columns)}), with no question and no sample id; bring the table they were "
                "computed from, one row a sample; or, if these are samples, say which column is the question: "
                "columns={'…': 'question'}"
            )
    if raw.uneven:
        line, found = raw.uneven[0]
        raise RagnbError(
            f"{place(raw.file, line)}found {found} cells, expected {raw.width}; "
            "a cell with a comma in it needs quotes around it"
        )


def _is_text(cells: Values) -> bool:
    if isinstance(cells, Column) and not cells.is_text:
        return False
    words = {cell.strip().casefold() for cell in cells if isinstance(cell, str)}
    return not all(NUMBER.fullmatch(word) for word in words - NO_NUMBER)
