"""The catalogue: every metric, rule, gate, label and note, from the tables and texts of the library."""

from __future__ import annotations


def pages(lang: str) -> dict[str, str]:
    """Return the pages in one language: path below `generated/` → Markdown."""
    title = "Catalogue" if lang == "en" else "目录"
    return {"catalogue/index.md": f"# {title}\n"}
