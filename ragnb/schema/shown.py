"""Tables of ours that print as their names and show as tables: `METRICS`, `RULES`, `DEFAULT_GATES`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from ragnb.errors import listing

Row = TypeVar("Row")
_SHOWN_NAMES = 4


class Catalogue(Mapping[str, Row]):
    """Rows by their names, which cannot be changed.

    Examples
    --------
    >>> Catalogue("PRICES", {"small": 1.0, "large": 5.0})
    PRICES(2: small, large)
    """

    def __init__(self, title: str, rows: Mapping[str, Row]) -> None:
        self._title = title
        self._rows = dict(rows)

    def __getitem__(self, name: str) -> Row:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return _summary(self._title, self._rows)

    def _repr_html_(self) -> str:
        return _table(self._rows.values())


class Listed(tuple[Row, ...]):
    """Rows in their order, each with a ``name``.

    Examples
    --------
    >>> from ragnb.schema import DEFAULT_GATES
    >>> DEFAULT_GATES
    DEFAULT_GATES(5: G1, G2, G3, G4 and 1 more)
    """

    _title: str

    def __new__(cls, title: str, rows: Iterable[Row]) -> Listed[Row]:
        made = super().__new__(cls, tuple(rows))
        made._title = title
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self._title, tuple(self)

    def __repr__(self) -> str:
        return _summary(self._title, (row.name for row in self))  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        return _table(self)


def _summary(title: str, names: Iterable[str]) -> str:
    every = list(names)
    return f"{title}({len(every)}: {listing(every, most=_SHOWN_NAMES)})"


def _table(rows: Iterable[Any]) -> str:
    """Return rows as an HTML table, without the fields that are empty in all of them."""
    import pandas as pd

    frame = pd.DataFrame([asdict(row) for row in rows])
    kept = [name for name in frame.columns if any(map(bool, frame[name]))]
    written: str = frame[kept].to_html(index=False)
    return written
