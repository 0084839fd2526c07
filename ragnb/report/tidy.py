"""What papermill leaves in a notebook and a report does not keep: times, machine paths, places of warnings."""

from __future__ import annotations

import re
from typing import Any

_WARNING = re.compile(r"^.*?:\d+: (\w*Warning): (.*)\n(?:[ \t]+.*\n?)?", re.MULTILINE)


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
