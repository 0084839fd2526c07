"""The reference: scenario keys, commands, functions and result frames, from the models and docstrings."""

from __future__ import annotations


def pages(lang: str) -> dict[str, str]:
    """Return the pages in one language: path below `generated/` → Markdown or reStructuredText."""
    title = "Reference" if lang == "en" else "参考"
    return {"reference/index.md": f"# {title}\n"}
