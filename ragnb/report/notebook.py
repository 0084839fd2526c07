"""What a notebook shows of ours, and what is kept of one that was executed."""

from __future__ import annotations

import re
from typing import Any

from ragnb.markup import Safe, fragment, join

_WARNING = re.compile(r"^.*?:\d+: (\w*Warning): (.*)\n(?:[ \t]+.*\n?)?", re.MULTILINE)


def shown(*parts: Safe, lang: str = "en") -> Any:
    """Return HTML of ours as the output of a notebook cell; None where the parts are all empty.

    Parameters
    ----------
    *parts : Safe
        What is not `Safe` is escaped.
    lang : {"en", "zh"}

    Examples
    --------
    >>> shown(Safe("<p>fine</p>")).data[-17:], shown(Safe(""))
    ('<p>fine</p></div>', None)
    """
    from IPython.display import HTML

    html = join(parts)
    return HTML(fragment(html, lang=lang)) if html else None  # type: ignore[no-untyped-call]


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
