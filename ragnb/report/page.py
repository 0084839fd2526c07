"""The page of an executed notebook: what its cells show, put together, and what the notebook itself keeps."""

from __future__ import annotations

import html
import re
from typing import Any

from ragnb.errors import RagnbError
from ragnb.markup import Safe, fragment, join, page

_WRAPPED = re.compile(r'<div class="ragnb"[^>]*><style>[^<]*</style>(.*)</div>', re.DOTALL)
_HEADING = re.compile(r'<h2 id="([^"]*)"><a href="#[^"]*">(.*?)</a></h2>', re.DOTALL)
_WARNING = re.compile(r"^.*?:\d+: (\w*Warning): (.*)\n(?:[ \t]+.*\n?)?", re.MULTILINE)


class Shown:
    """HTML of ours as the output of a notebook cell."""

    def __init__(self, html: Safe, lang: str) -> None:
        self.html, self.lang = html, lang

    def _repr_html_(self) -> str:
        return fragment(self.html, lang=self.lang)

    def __repr__(self) -> str:
        return f"Shown({len(self.html)} characters of HTML)"


def shown(*parts: Safe, lang: str = "en") -> Shown | None:
    """Return parts of the sheet as one output; None where they are all empty.

    Parameters
    ----------
    *parts : Safe
        HTML of ours; what is not `Safe` is escaped.
    lang : {"en", "zh"}

    Examples
    --------
    >>> shown(Safe("<p>fine</p>"))
    Shown(11 characters of HTML)
    >>> shown(Safe("")) is None
    True
    """
    html = join(parts)
    return Shown(html, lang) if html else None


def inside(html: str) -> Safe | None:
    """Return what a `shown` output holds, without its wrapping and style; None for any other output.

    Examples
    --------
    >>> inside(shown(Safe("<p>fine</p>"))._repr_html_()), inside("<p>fine</p>")
    ('<p>fine</p>', None)
    """
    found = _WRAPPED.fullmatch(html)
    return Safe(found[1]) if found else None


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


def tidy(notebook: Any) -> list[str]:
    """Take times and machine paths out of an executed notebook, in place; return the warnings of ragnb in it.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> text = "/x/y.py:3: RagnbWarning: look here\\n  assess(x)\\n"
    >>> cell = {"metadata": {}, "outputs": [{"output_type": "stream", "name": "stderr", "text": text}]}
    >>> tidy(SimpleNamespace(cells=[cell], metadata={}))
    ['look here']
    """
    kept = notebook.metadata.get("papermill", {}).get("parameters", {})
    notebook.metadata["papermill"] = {"parameters": kept}
    found: list[str] = []
    for cell in notebook.cells:
        for key in ("papermill", "execution"):
            cell["metadata"].pop(key, None)
        if "injected-parameters" in cell["metadata"].get("tags", []):
            cell["id"] = "injected-parameters"
        for output in cell.get("outputs", []):
            if output["output_type"] == "stream" and output["name"] == "stderr":
                found += [text for kind, text in _WARNING.findall(output["text"]) if kind == "RagnbWarning"]
                output["text"] = _WARNING.sub(r"\1: \2\n", output["text"])
    return list(dict.fromkeys(found))
