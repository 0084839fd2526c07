"""A table of ratings under canonical names: its scores as numbers, and which columns hold them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnb.calibration.ratings import PROBABILITY
from ragnb.calibration.scores import OUTSIDE, Scale, settled
from ragnb.errors import listing
from ragnb.readers.columns import other_values
from ragnb.readers.facts import verdict_value
from ragnb.readers.raw import Lossy, Raw, absent, settle
from ragnb.readers.scores import metric_values
from ragnb.schema import CASE_COLUMNS, CLIP, Metric

FIRST = ("item_id", "dimension", "judge", "human", "rater", "system", "cluster")
KEYS = ("item_id", "dimension", "system")
NAMES: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("reading.toml").read_text(encoding="utf-8")
)
PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in NAMES["patterns"].items()}
NUMBERED = PATTERNS["numbered"]
JUDGE_NAME = PATTERNS["judge"]
_TEXTS = {*CASE_COLUMNS, "item_id", "dimension", "rater", "cluster"}


@dataclass
class Table:
    """A table under canonical names, with the caller's arguments and the read report.

    `judges` and `humans` are the columns or raters that the caller named, `missing` the numbers that are none;
    ``"outside"`` among them is whatever is outside the scale. `side` says whose the scores are where the table
    does not: ``human`` or ``judge``.
    """

    raw: Raw
    report: Lossy
    origin: dict[str, object]
    judges: list[str]
    humans: list[str]
    missing: list[float | str]
    scale: Scale | None
    side: str

    def frame(self, scored: list[str]) -> pd.DataFrame:
        """Return the table as a frame, with the columns `scored` as numbers within their scale, NaN if missing.

        Raises
        ------
        RagnbError
            For a score that is not a number, is outside the scale, or is -1 and nobody said what that means.
        """
        raw = self.raw
        report = self.report
        read = pd.DataFrame(
            {name: metric_values(raw, Metric(name, -np.inf, np.inf), report) for name in scored}
        )
        # Computed scores miss an end by rounding: 1.0000001 is 1, and no reason to refuse a file.
        low, high = self.scale or (-np.inf, np.inf)
        clipped = read.clip(low, high)
        near = (read != clipped) & ((read - clipped).abs() <= CLIP)
        scores = {
            name: read[name].mask(near[name], clipped[name]).to_numpy(dtype=float)
            for name in scored
        }
        kept = settled(scores, self.scale, self.missing, raw.where)
        marks = self._marks()
        for name in scored:
            n_near = int(near[name].sum())
            report.add("clipped", name, f"within {CLIP:g} of an end of the scale", n_near)
            is_mark = np.isnan(kept[name]) & ~np.isnan(scores[name])
            report.add("mapped", name, f"{marks} is missing", int(is_mark.sum()))
        columns: dict[str, Any] = {}
        for name, cells in raw.columns.items():
            if name in kept:
                columns[name] = kept[name]
            elif name == PROBABILITY:
                columns[name] = metric_values(raw, Metric(name, 0, 1), report)
            elif name in _TEXTS:
                columns[name] = settle(cells)
            else:
                columns[name] = other_values(cells, raw.typed)
        return pd.DataFrame(columns)

    def _marks(self) -> str:
        """Return in words what the caller said is no score."""
        # Numbers before the word, so that the note reads alike whatever the order of the arguments.
        marks = sorted(self.missing, key=lambda mark: mark == OUTSIDE)
        return listing(
            "what lies outside the scale" if mark == OUTSIDE else f"{mark:g}" for mark in marks
        )

    def is_number(self, name: str) -> bool:
        """Whether a column holds numbers, or verdicts in words, and nothing else."""
        cells = self.raw.columns[name]
        if pd.api.types.is_numeric_dtype(other_values(cells, self.raw.typed)):
            return True
        given = [cell for cell in cells if not absent(cell) and str(cell).strip()]
        return bool(given) and all(verdict_value(cell) is not None for cell in given)

    @cached_property
    def human_columns(self) -> list[str]:
        """The columns with human scores in a wide table."""
        columns = self.raw.columns
        if len(self.humans) > 1 and set(self.humans) <= set(columns):
            return self.humans
        numbered: dict[str, dict[int, str]] = {}  # by the word before the number
        for match in filter(None, map(NUMBERED.fullmatch, columns)):
            word, digits = match.groups()
            numbered.setdefault(word.casefold(), {})[int(digits)] = match[0]
        # A single column that the caller named as human is called so by now, and stands before any raters.
        if len(self.humans) != 1 or "human" not in columns:
            for raters in numbered.values():
                # human1 and human2 are raters; human_2024 is none.
                if set(raters) == set(range(1, len(raters) + 1)):
                    return [raters[k] for k in sorted(raters)]
        if "human" in columns:
            return ["human"]
        return []

    @cached_property
    def judge_columns(self) -> list[str]:
        """The columns with judge scores."""
        columns = self.raw.columns
        if len(self.judges) > 1 and set(self.judges) <= set(columns):
            return self.judges
        if "judge" in columns:
            return ["judge"]
        return [
            name
            for name in columns
            if JUDGE_NAME.fullmatch(name) and "__" not in name and self.is_number(name)
        ]

    @property
    def is_sheet(self) -> bool:
        """Whether no column of scores has a known name, so that the dimensions are the columns."""
        return "score" not in self.raw.columns and not self.human_columns + self.judge_columns


def judge_columns(ratings: pd.DataFrame, named: Sequence[str] = ()) -> list[str]:
    """Return the numeric columns with judge scores: ``judge``, else ``judge_<name>``; and those named.

    Examples
    --------
    >>> judge_columns(pd.DataFrame({"judge_a": [1.0], "judge_b": [2.0], "judge_note": ["x"], "human": [1.0]}))
    ['judge_a', 'judge_b']
    """
    columns = [
        str(name)
        for name in ratings
        if name == "judge" or name in named or str(name).startswith("judge_")
    ]
    if "judge" in columns and not named:
        columns = ["judge"]
    # judge_reason and the like are texts.
    return [name for name in columns if pd.api.types.is_numeric_dtype(ratings[name])]
