"""What the tests of meaning share: a file read by every door, and the lines of cards and refusals, pasted."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pandas
import pandas as pd
import pytest

import ragnb as rn
from ragnb.cli import main

OPEN = re.compile(r"""better=(["'])\?\1""")
OPTION = re.compile(r"-p (?:'([^']*)'|(\S+?))(?=[\s;,.)]|$)")
BLOCKED = {1, 2}


def write(path: Path, rows: Sequence[Mapping[str, Any]], **options: Any) -> Path:
    """Write rows as the file's ending says: CSV, JSON lines, or a JSON list."""
    if path.suffix == ".csv":
        options = {"encoding": "utf-8", "delimiter": ","} | options
        with path.open("w", newline="", encoding=options["encoding"]) as file:
            table = csv.DictWriter(file, list(rows[0]), delimiter=options["delimiter"])
            table.writeheader()
            table.writerows(rows)
    elif path.suffix == ".jsonl":
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return path


def write_json(path: Path, content: Any) -> Path:
    """Write one JSON document."""
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
    return path


def ragnb(*words: object) -> tuple[int, str]:
    """Run a command in this process; return its exit code and all that it printed."""
    with redirect_stdout(StringIO()) as said, redirect_stderr(said):
        code = main([str(word) for word in words])
    return code, said.getvalue()


def pasted(card: rn.FileCard, **better: str) -> Any:
    """Run the card's line for Python; an open direction is answered as a person would, and only by name.

    A line with an open choice that the test did not answer fails, and so does an answer to a question nobody asked.
    """
    code = card.code
    for metric, direction in better.items():
        asked = re.compile(rf"(rn\.Metric\((['\"]){re.escape(metric)}\2[^()]*?)better=(['\"])\?\3")
        assert asked.search(code), f"the card does not ask for the direction of {metric}: {code}"
        code = asked.sub(rf"\1better='{direction}'", code)
    assert not OPEN.search(code), f"an open choice is left: {code}"
    return eval(code, {"rn": rn, "pandas": pandas})


def line_works(card: rn.FileCard) -> str:
    """Run the card's line for a shell, which must end in a verdict; return what it printed."""
    assert card.command
    code, said = ragnb(*shlex.split(card.command)[1:])
    assert code in (0, 1, 2, 3), said
    assert not said.startswith("ragnb:"), said  # refused
    return said


def row_of(sheet: rn.Assessment, metric: str, system: object = None) -> pd.Series:
    """Return the row of a metric in the means, of a system where there are several."""
    means = sheet.means[sheet.means["metric"] == metric]
    if system is not None:
        means = means[means["system"].astype(str) == str(system)]
    assert len(means) == 1, sheet.means.to_string()
    return means.iloc[0]


def holds_mean(
    sheet: rn.Assessment, metric: str, values: Iterable[Any], system: object = None
) -> pd.Series:
    """Assert that mean, n and the cells without a score are those of a plain loop; return the row."""
    values = list(values)
    numbers = [float(value) for value in values if value is not None and value != ""]
    row = row_of(sheet, metric, system)
    assert row["n"] == len(numbers)
    assert row["value"] == pytest.approx(sum(numbers) / len(numbers), abs=1e-9)
    without = row["n_failed"] + row["n_missing"] + row["n_not_applicable"]
    assert without == len(values) - len(numbers)
    return row


def lost_cells(row: pd.Series) -> int:
    """Return the cells that count against completeness: failed or missing, whichever the evidence says."""
    return int(row["n_failed"] + row["n_missing"])


def text_of(path: Path) -> str:
    """Return what a person sees of a file: its card, or the refusal."""
    return ragnb("inspect", path)[1]


def first_sentences(verdict: str, count: int = 2) -> str:
    """Return the first sentences of a verdict; a colon or the point of a number ends none."""
    return " ".join(re.split(r"(?<=[.!?。])\s+(?=\D)", verdict)[:count])


def proposed_options(text: str) -> list[str]:
    """Return the settings that a refusal proposes as `-p KEY=VALUE`."""
    return [quoted or plain for quoted, plain in OPTION.findall(text)]
