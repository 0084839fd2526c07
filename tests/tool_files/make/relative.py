"""Make the paths of a machine relative in result files.

    python make/relative.py FILE...

The part of a path before node_modules, site-packages or this folder is removed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

START = re.compile(
    r"(?:file://)?/[^\s\"'\\:]*?/(?=(?:node_modules|site-packages|tests/tool_files)/)"
)


def relative(text: str) -> str:
    """Return the text without the machine's part of each path."""
    return START.sub("", text)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(relative(path.read_text(encoding="utf-8")), encoding="utf-8")
