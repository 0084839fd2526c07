"""Pages that the library itself is the source of: written below `generated/` of each language before a build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import catalogue
import reference
from chinese import Pairs


def write(app: Any) -> None:
    """Write what has changed, so that an incremental build reads no more than it must; remove what is gone."""
    lang = "zh" if str(app.config.language).startswith("zh") else "en"
    folder = Path(app.srcdir) / "generated"
    pages = catalogue.pages(lang) | reference.pages(lang)
    for path in [*folder.rglob("*")] if folder.is_dir() else []:
        if path.is_file() and path.relative_to(folder).as_posix() not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_search_language(Pairs)
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
