"""Rows of means and totals among rows of answers: known by a word that says so beside numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence, Sized
from typing import Any

import numpy as np
import pandas as pd

from ragnb.polars import pl
from ragnb.readers.cells import NO_NUMBER, NUMBER
from ragnb.readers.names import plain
from ragnb.readers.owner import ROW_WORDS, owner_rank
from ragnb.readers.raw import Lossy, Raw, Values, absent, is_arrow, is_text

_MEANS = {plain(word) for word in ROW_WORDS["means"]["words"]}
_BESIDE = {plain(word) for word in ROW_WORDS["means"]["beside"]}
_STATISTICS = {plain(word) for word in ROW_WORDS["means"]["statistics"]}


def _label_word_pattern() -> re.Pattern[str]:
    """Return the pattern of an ASCII text in which a word of a label begins: any other ASCII text is no label.

    Of a million ids, ``q2`` is a label (a quartile) and ``q21`` none, so that it is not looked at further.
    """
    words = set()
    for label in _MEANS | _STATISTICS:
        if label.isascii():
            words.update(label.split("_"))
    beginnings = []
    for word in sorted(words):
        if not word or word.isdigit():
            continue
        beginnings.append(f"{word}(?:[^0-9]|$)" if word[-1].isdigit() else word)
    return re.compile(f"(?:^|[^a-z0-9])(?:{'|'.join(beginnings)})")


_LABEL_WORD = _label_word_pattern()
# Columns that a row of a mean may fill beside its label: whose mean it is.
_GROUPS = {"system", "doc_name", "repeat", "cluster", "persona"}
_LONGEST_LABEL = 60  # characters: what is longer is a question or an answer


def is_mean_label(text: str) -> bool:
    """Return whether a text says that its row is a mean or a total, in any language ragnb reads.

    Examples
    --------
    >>> [is_mean_label(text) for text in ("MOYENNE GENERALE", "平均分", "Gesamt", "Mean (n=30)", "Average pay?")]
    [True, True, True, True, False]
    """
    if len(text) > _LONGEST_LABEL or text.rstrip().endswith(("?", "？")):
        return False
    if text.isascii() and not {*re.findall("[a-z]+", text.casefold())} & _MEANS:
        return False  # which is quicker
    label = plain(text)
    if label in _MEANS:
        return True
    parts = label.split("_")
    others = [part for part in parts if part not in _MEANS]
    has_word = len(others) < len(parts)
    # Numbers may say of how many samples: "Mean (n=30)".
    return has_word and all(part in _BESIDE or part.isdigit() for part in others)


def is_mean_row(row: Sequence[str]) -> bool:
    """Return whether all that a row of texts has beside numbers is a word for a mean or a total.

    Examples
    --------
    >>> is_mean_row(["Mean", "", "0.5"]), is_mean_row(["Mean", "It is.", "0.5"])
    (True, False)
    """
    filled = [cell.strip() for cell in row if cell.strip()]
    texts = [cell for cell in filled if not _is_number(cell)]
    return len(texts) == 1 and len(filled) > 1 and is_mean_label(texts[0])


def _is_number(cell: Any) -> bool:
    """Return whether a cell is a number, also in percent or with a decimal comma, or a word for a missing one."""
    if isinstance(cell, int | float):
        return True
    text = str(cell).strip().rstrip("% ").replace(",", ".")
    return bool(NUMBER.fullmatch(text)) or text.casefold() in NO_NUMBER


def leave_out_means(raw: Raw, report: Lossy) -> list[str]:
    """Leave out rows of means and totals among rows of answers, and count them.

    Such a row has a label that says so and numbers, and no other text but those that say whose mean it is.

    Returns
    -------
    list of str
        The labels where all rows are means and totals, and none is left out.
    """
    labels = _labels(raw)
    # Spreads and ends are left out beside a mean only: a question may be one word.
    if not any(is_mean_label(label) for label in labels.values()):
        return []
    if len(labels) == len(raw):
        return list(labels.values())
    # Their places are taken before the rows are dropped, while the row numbers still hold.
    places = ", ".join(raw.where(row).removesuffix(": ") for row in sorted(labels)[:3])
    why = "rows that name no sample but a mean or total"
    raw.drop([row in labels for row in range(len(raw))], "row", why, report)
    raw.fact(None, "row", "answers", f"{len(labels)} rows of means left out, the first: {places}")
    return []


def _labels(raw: Raw) -> dict[int, str]:
    """Return the rows that have nothing but numbers beside a word for a mean or a spread, and that word."""
    candidates: set[int] = set()
    rows = _without_long_text(raw)
    for cells in raw.columns.values():
        if isinstance(cells, pd.Series):
            if is_text(cells):
                words = {text for text in _that_may_be_labels(cells) if _is_label(text)}
                candidates.update(np.flatnonzero(cells.isin(words)).tolist())
            continue
        short = [cells[row] for row in rows]
        words = {text for text in _that_may_be_labels(short) if _is_label(text)}
        if words:
            for row, cell in zip(rows, short, strict=True):
                if isinstance(cell, str) and cell in words:
                    candidates.add(row)
    # Only these few rows are looked at whole, as there may be a million.
    labels = {row: _label(raw, row) for row in sorted(candidates)}
    return {row: label for row, label in labels.items() if label and _is_label(label)}


def _without_long_text(raw: Raw) -> list[int]:
    """Return the rows of which neither question nor answer is longer than a label: the others are no means."""
    is_long = np.zeros(len(raw), dtype=bool)
    for name in ("question", "answer"):
        cells = raw.columns.get(name)
        if isinstance(cells, list):
            is_long |= [isinstance(cell, str) and len(cell) > _LONGEST_LABEL for cell in cells]
    return np.flatnonzero(~is_long).tolist()


def _that_may_be_labels(cells: Values) -> set[str]:
    """Return the distinct short texts of a column that hold a word of a label, or letters beyond ASCII."""
    if not is_arrow(cells):
        short = {cell for cell in cells if isinstance(cell, str) and len(cell) <= _LONGEST_LABEL}
        return {text for text in short if not text.isascii() or _LABEL_WORD.search(text.casefold())}
    texts = pl.Series(cells).unique().drop_nulls()  # of a million ids, none is looked at one by one
    of_a_label = texts.str.contains(f"(?i){_LABEL_WORD.pattern}")
    length = texts.str.len_chars()
    beyond_ascii = texts.str.len_bytes() > length
    is_short = length <= _LONGEST_LABEL
    return set(texts.filter(is_short & (of_a_label | beyond_ascii)).to_list())


def _is_label(text: str) -> bool:
    """Return whether a text is a label of a row of statistics: of a mean, a total, a spread or a quantile."""
    return is_mean_label(text) or (not _is_number(text) and plain(text) in _STATISTICS)


def _is_blank(cell: Any) -> bool:
    """Return whether a cell holds nothing: it is missing, a blank text or an empty list."""
    if isinstance(cell, str):
        return not cell.strip()
    if absent(cell):
        return True
    return isinstance(cell, Sized) and len(cell) == 0


def _label(raw: Raw, row: int) -> str | None:
    """Return the only text of a row that has numbers beside it, without what says whose it is."""
    texts: list[str] = []
    numbers = 0
    for name, cells in raw.columns.items():
        cell = cells[row]
        if _is_blank(cell):
            continue
        if _is_number(cell):
            numbers += 1
        elif not isinstance(cell, str):
            return None
        elif name in _GROUPS or owner_rank(name) is not None:
            # Where nothing else is filled, the mean itself may be named here.
            if is_mean_label(cell):
                texts.append(cell)
        else:
            texts.append(cell)
    labels = {text.strip() for text in texts}
    if len(labels) == 1 and numbers:
        return labels.pop()
    return None
