"""Excel workbooks as rows of texts: what the same sheet saved as CSV would hold."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

from ragnb.errors import RagnbError, place, require

_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, UnicodeError, RuntimeError)

# The most characters that Excel keeps of a cell.
LONGEST_CELL = 32_767


def sheets(path: Path, most: int) -> dict[str, list[list[str]]]:
    """Return the rows of each sheet that holds any cell, from the first row on; whole numbers without ``.0``.

    Raises
    ------
    RagnbError
        For a file that is no workbook, is locked by a password, or unpacks to more than `most` bytes.
    """
    calamine = require("python_calamine", extra="readers")

    if path.name.startswith("~$"):
        name = path.name.removeprefix("~$")
        raise RagnbError(f"{place(path)}is the lock file of an open workbook, not the workbook; read {name!r}")
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                size = sum(member.file_size for member in packed.infolist())
                if size > most:
                    raise RagnbError(
                        f"{place(path)}unpacks to {size >> 20} MB; save the sheet as CSV if you trust it"
                    )
                if damaged := packed.testzip():  # calamine does not compare checksums
                    raise zipfile.BadZipFile(f"{damaged} has a wrong checksum")
        book = calamine.CalamineWorkbook.from_path(path)
        held = {name: book.get_sheet_by_name(name).to_python(skip_empty_area=False) for name in book.sheet_names}
    except (*_DAMAGED, calamine.CalamineError) as error:
        raise RagnbError(
            f"{place(path)}is no workbook that can be read ({error}), or is damaged; open it in a spreadsheet and "
            "save it as CSV, or take another copy"
        ) from error
    return {name: [[_text(cell) for cell in row] for row in rows] for name, rows in held.items() if rows}


def _text(cell: Any) -> str:
    """Write a cell as a CSV file would."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
