"""What the tests of meaning share: files written, lines of cards and refusals pasted, means by a plain loop."""

from __future__ import annotations

import ast
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

OPTION = re.compile(r"""-p (?:'([^']*)'|"([^"]*)"|(\S+?))(?=[\s;,.)]|$)""")
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


class _Answered(ast.NodeTransformer):
    """Fill the open choices of a card's line, as a person would who knows the system."""

    def __init__(self, better: Mapping[str, str], scale: Mapping[str, tuple[float, float]]) -> None:
        self.better, self.scale = better, scale

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Attribute) and node.func.attr == "Metric"):
            return node
        names = ["name", "low", "high"]
        given = dict(zip(names, node.args, strict=False))
        given |= {str(keyword.arg): keyword.value for keyword in node.keywords}
        name = ast.literal_eval(given["name"])
        answers = {"better": self.better.get(name)}
        answers |= dict(zip(("low", "high"), self.scale.get(name, ()), strict=False))
        for key, value in given.items():
            if isinstance(value, ast.Constant) and value.value == "?":
                answer = answers.get(key)
                assert answer is not None, (
                    f"the card leaves {key} of {name} open: {ast.unparse(node)}"
                )
                value.value = answer
        return node


def pasted(
    card: rn.FileCard,
    better: Mapping[str, str] | None = None,
    scale: Mapping[str, tuple[float, float]] | None = None,
) -> Any:
    """Run the card's line for Python; an open choice (``"?"``) is answered by `better` and `scale`, if at all.

    A choice that is left open although the file has evidence, hence no answer here, fails.
    """
    line = ast.parse(card.code_with_choices or card.code, mode="eval")
    answered = ast.fix_missing_locations(_Answered(better or {}, scale or {}).visit(line))
    return eval(compile(answered, card.path, "eval"), {"rn": rn, "pandas": pandas})


def line_works(card: rn.FileCard) -> str:
    """Run the card's line for a shell, which must end in a verdict; return what it printed."""
    assert card.command
    code, said = ragnb(*shlex.split(card.command)[1:])
    assert code in (0, 1, 2, 3), said
    assert not said.startswith("ragnb:"), said  # refused
    return said


def systems_of(sheet: rn.Assessment) -> list[str]:
    """Return the names of the systems, none where the rows name none."""
    named = "system" in sheet.means
    return [str(system) for system in sheet.means["system"].unique()] if named else []


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


def passages_of(frame: pd.DataFrame) -> list[list[str]]:
    """Return the texts of the passages of each row, whether they were read as texts or as chunks with ids."""
    if "retrieved_contexts" in frame:
        given = frame["retrieved_contexts"]
        return [list(texts) if isinstance(texts, list) else [] for texts in given]
    chunks = frame["chunks"]
    return [[chunk["text"] for chunk in row] if isinstance(row, list) else [] for row in chunks]


def text_of(path: Path) -> str:
    """Return what a person sees of a file: its card, or the refusal."""
    return ragnb("inspect", path)[1]


def first_sentences(verdict: str, count: int = 2) -> str:
    """Return the first sentences of a verdict; a colon or the point of a number ends none."""
    return " ".join(re.split(r"(?<=[.!?。])\s+(?=\D)", verdict)[:count])


def proposed_options(text: str) -> list[str]:
    """Return the settings that a refusal proposes as `-p KEY=VALUE`."""
    return ["".join(found) for found in OPTION.findall(text)]
