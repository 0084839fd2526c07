"""An executed report notebook → the page: the outputs that are ours, in their order, without the code."""

from __future__ import annotations

import html
import re
from typing import Any

from ragnb.errors import RagnbError
from ragnb.markup import Safe, page
from ragnb.report.shown import inside

_HEADING = re.compile(r'<h2 id="([^"]*)"><a href="#[^"]*">(.*?)</a></h2>', re.DOTALL)


def assemble(notebook: Any, title: str, lang: str) -> Safe:
    """Return the page of an executed notebook.

    Parameters
    ----------
    notebook : NotebookNode
        Only outputs of `shown` are taken: whatever else a cell gave stays in the notebook.
    title : str
    lang : {"en", "zh"}

    Returns
    -------
    Safe
        A whole document: no script, and nothing that asks a host.

    Raises
    ------
    RagnbError
        For a notebook without any such output.
    """
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    found = (inside(str(output.get("data", {}).get("text/html", ""))) for output in outputs)
    body = Safe("".join(part for part in found if part))
    if not body:
        raise RagnbError(
            "the report notebook shows nothing of ragnb, so there is no page; is it the one of ragnb?"
        )
    contents = [(anchor, html.unescape(text)) for anchor, text in _HEADING.findall(body)]
    return page(title, body, lang=lang, contents=contents)
