"""Notes of a run as rows: a code to test on, what each is about, and its sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


NOTE_COLUMNS = ("code", "about", "text")


def note_row(code: str, about: str, text: str) -> dict[str, str]:
    """Return one row of a notes frame: a code to test on, what it is about, and the sentence.

    Examples
    --------
    >>> note_row("few_clusters", "faithfulness", "Only 3 documents.")["code"]
    'few_clusters'
    """
    return {"code": code, "about": about, "text": text}


def holding_notes(
    say: Callable[..., str],
    notes: Iterable[tuple[Any, str, str, Mapping[str, Any]]],
    of: str = "note",
) -> list[dict[str, str]]:
    """Return those of notes that hold: ``(whether it holds, code, about, values)``; `of` is the table of texts.

    Examples
    --------
    >>> holding_notes(lambda key, n: f"{key}: {n}", [(True, "few", "x", {"n": 3}), (False, "many", "x", {})])
    [{'code': 'few', 'about': 'x', 'text': 'note.few: 3'}]
    """
    return [
        note_row(code, about, say(f"{of}.{code}", **values))
        for holds, code, about, values in notes
        if holds
    ]


def note_frame(rows: Iterable[dict[str, str]]) -> pd.DataFrame:
    """Return notes as a frame with the columns ``code, about, text``, each sentence once.

    Examples
    --------
    >>> len(note_frame([note_row("a", "b", "c"), note_row("a", "b", "c")]))
    1
    """
    import pandas as pd

    once = dict.fromkeys(tuple(row[name] for name in NOTE_COLUMNS) for row in rows)
    return pd.DataFrame(list(once), columns=list(NOTE_COLUMNS), dtype=object)
