"""A long table that is searched, sorted, filtered and unfolded in the browser, and read without any script.

The rows stand in the page as data; the one script of ours writes them as text, and the page allows no other.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from ragnb import texts
from ragnb.markup.text import Safe, element

CLASS = "rg-browse"
Kind = Literal["text", "long", "tag", "number"]


@cache
def script() -> Safe:
    """Return the script that makes such tables live.

    Examples
    --------
    >>> script()[:14]
    '"use strict";\\n'
    """
    return Safe(files(__package__).joinpath("browse.js").read_text(encoding="utf-8"))


@cache
def script_source() -> str:
    """Return what a content security policy names to allow this script and no other.

    Examples
    --------
    >>> script_source()[:8]
    "'sha256-"
    """
    digest = hashlib.sha256(script().encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def browse(
    columns: Mapping[str, Kind],
    rows: Sequence[Sequence[str | float | None]],
    *,
    details: Sequence[str],
    unfolded: Sequence[Sequence[str | None]],
    plain: str,
    lang: str = "en",
) -> Safe:
    """Return a table that a script of the page makes live.

    Parameters
    ----------
    columns : mapping of label to {"text", "long", "tag", "number"}
        ``long`` texts get room, ``tag`` columns can be picked by value, numbers show three decimals.
    rows : sequence of rows
        A cell a column: text, a number, None, or in a column of numbers the reason why there is none.
    details : sequence of str
        What the parts of an unfolded row are called.
    unfolded : sequence of rows
        The texts of an unfolded row, one a part; None leaves the part out.
    plain : str
        HTML of ours that stands there without the script.
    lang : {"en", "zh"}

    Returns
    -------
    Safe
        A ``<div class="rg-browse">``; `ragnb.markup.page` adds the script.

    Examples
    --------
    >>> texts = {"details": ["answer"], "unfolded": [["fine"]], "plain": "<table></table>"}
    >>> live = browse({"id": "text", "score": "number"}, [["<b>", 0.5]], **texts)
    >>> "\\\\u003cb>" in live, live.endswith("<table></table></div>")
    (True, True)
    """
    data: dict[str, Any] = {
        "columns": [{"label": label, "kind": kind} for label, kind in columns.items()],
        "rows": [[*row, list(texts_)] for row, texts_ in zip(rows, unfolded, strict=True)],
        "details": list(details),
        "say": texts.entry(lang, "browse"),
    }
    written = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    held = written.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    data_island = Safe(f'<script type="application/json">{held}</script>')
    return element("div", data_island, Safe(plain), class_=CLASS, aria_label=data["say"]["table"])
