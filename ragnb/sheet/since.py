"""What became of each question since another run: stayed right, broke, was fixed, or stayed wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ragnb.comparison.questions import RIGHT
from ragnb.diagnostics.rules import past
from ragnb.inputs.streams import BAD_FIRST
from ragnb.schema import records
from ragnb.sheet.formatter import Formatter, Row, once


class Since(NamedTuple):
    """The questions that two runs have in common, by what became of each.

    Attributes
    ----------
    rows : DataFrame
        Of `Assessment.changed`, with ``was_right`` and ``is_right``; broken ones first, the most serious first.
    primary : mapping
        The row of the comparison that decides.
    threshold : float or None
        Without labels an answer is right where its score is not beyond this one; None with labels.
    is_last_run : bool
        Whether the other run is an earlier run of the same scenario, not one that somebody named.
    """

    rows: pd.DataFrame
    primary: Row
    threshold: float | None
    is_last_run: bool

    def n_of(self, was_right: bool, is_right: bool) -> int:
        """Return of how many questions the answer was and is right, or not."""
        same = (self.rows["was_right"] == was_right) & (self.rows["is_right"] == is_right)
        return int(same.sum())

    @property
    def broken(self) -> pd.DataFrame:
        """The questions that turned wrong."""
        return self.rows[self.rows["was_right"] & ~self.rows["is_right"]]

    @property
    def fixed(self) -> pd.DataFrame:
        """The questions that turned right."""
        return self.rows[~self.rows["was_right"] & self.rows["is_right"]]


@once
def since_of(w: Formatter) -> Since | None:
    """Return what became of the questions; None where nothing tells right from wrong, or nothing is compared."""
    table = w.whole.changed
    comparison = w.whole.comparison
    if table is None or comparison is None or not len(table):
        return None
    deciding = records(comparison[comparison["primary"] & (comparison["n_common"] > 0)])
    if len(deciding) != 1:
        return None
    primary = deciding[0]
    # As in `question_changes`, labels say what is right wherever there are any.
    if table[["before_label", "now_label"]].notna().to_numpy().any():
        threshold = None
        rows = _right_by_label(table)
    else:
        threshold = _milder_threshold(w, primary["metric"])
        if threshold is None:
            return None
        rows = _right_by_score(table, threshold, w.better[primary["metric"]])
    # With labels the metric need have no row on the page, and so no direction there.
    lower_is_better = w.better.get(primary["metric"]) == "lower"
    rows = _serious_first(rows, lower_is_better=lower_is_better)
    return Since(rows, primary, threshold, is_last_run(w))


def _right_by_label(table: pd.DataFrame) -> pd.DataFrame:
    """Return the questions that have a label in both runs, with whether each answer was and is right."""
    rows = table[table[["before_label", "now_label"]].notna().all(axis=1)]
    was_right = rows["before_label"].isin(RIGHT)
    is_right = rows["now_label"].isin(RIGHT)
    return rows.assign(was_right=was_right.astype(bool), is_right=is_right.astype(bool))


def _right_by_score(table: pd.DataFrame, threshold: float, better: Any) -> pd.DataFrame:
    """Return the questions that have a score in both runs, with whether each answer was and is right."""
    rows = table[table[["before", "now"]].notna().all(axis=1)]
    was_right = ~past(rows["before"].to_numpy(), threshold, better)
    is_right = ~past(rows["now"].to_numpy(), threshold, better)
    return rows.assign(was_right=was_right, is_right=is_right)


def _milder_threshold(w: Formatter, metric: str) -> float | None:
    """Return the milder of a metric's thresholds; None where it has none, or no row on the page."""
    if metric not in w.rows:
        return None
    known = w.thresholds(metric)
    if not known:
        return None
    _, threshold = known[0]
    return threshold


def _serious_first(rows: pd.DataFrame, *, lower_is_better: bool) -> pd.DataFrame:
    """Return the questions by the label that they have now, and within a label by how much worse the score is."""
    place = {label: i for i, label in enumerate(BAD_FIRST)}
    # Right answers and questions without a label come last.
    label_rank = rows["now_label"].map(place).fillna(len(place))
    gain = rows["now"] - rows["before"]
    if lower_is_better:
        gain = -gain
    rows = rows.assign(_label_rank=label_rank, _gain=gain)
    rows = rows.sort_values(["_label_rank", "_gain"], kind="stable", ignore_index=True)
    return rows.drop(columns=["_label_rank", "_gain"])


_CHANGED = ("questions_changed", "documents_changed", "references_changed", "judge_changed")


def changed_between(w: Formatter) -> list[str]:
    """Return in words what else differs between the two runs: questions, documents, gold or the judge."""
    notes = w.whole.notes
    # The same codes may be about the accepted run, which is another one than the last.
    codes = set(notes.loc[notes["about"] != "anchor", "code"])
    return [w.say(f"since.{code}") for code in _CHANGED if code in codes]


class Earlier(NamedTuple):
    """A run of the same scenario that lost nothing: its folder's name, its day in UTC, and its verdict."""

    name: str
    day: str
    verdict: str


def last_complete(w: Formatter) -> Earlier | None:
    """Return the last run of the same scenario that was complete; None where none is left.

    They lie beside the baseline where that is the folder of a run; its name begins with its time.
    """
    if not is_last_run(w):
        return None
    for folder in _up_to(Path(str(w.whole.scenario.baseline))):
        record = _read(folder / "run.json")
        gates_file = _read(folder / "gates.json")
        # Not every folder there need be a run, nor one of this scenario.
        if not isinstance(record, dict) or record.get("scenario") != w.whole.scenario.name:
            continue
        if not isinstance(gates_file, dict):
            continue
        gates = gates_file.get("gates", [])
        lost = [gate for gate in gates if gate["role"] == "completeness" and gate["blocks"]]
        if not lost:
            day = str(record.get("made_at", ""))[:10]
            return Earlier(folder.name, day, str(record.get("verdict", "")))
    return None


def _up_to(folder: Path) -> Iterator[Path]:
    """Yield the folder of a run and those of the runs before it, the latest first."""
    with suppress(OSError):
        folders = [path for path in folder.parent.iterdir() if path.is_dir()]
        # A name begins with the time of its run (see `RunFolder.make`), so names sort as times do.
        for path in sorted(folders, reverse=True):
            if path.name <= folder.name:
                yield path


def is_last_run(w: Formatter) -> bool:
    """Whether the baseline is the folder of an earlier run of the same scenario."""
    record = _of_baseline(w, "run.json")
    return isinstance(record, dict) and record.get("scenario") == w.whole.scenario.name


def gates_before(w: Formatter) -> dict[str, str]:
    """Return how the gates of the other run came out, by their names; empty where nothing says.

    Of a system of the same table they are in `Assessment.gates`; of the folder of a run in its ``gates.json``.
    """
    baseline = w.whole.scenario.baseline
    gates = w.whole.gates
    # A text names a system of this table; the path of a folder or of another table is none.
    if isinstance(baseline, str):
        of_baseline = gates[gates["system"] == baseline]
        if len(of_baseline):
            return dict(zip(of_baseline["gate"], of_baseline["outcome"], strict=True))
    gates_file = _of_baseline(w, "gates.json")
    if not isinstance(gates_file, dict):
        return {}
    rows = [row for row in gates_file.get("gates", []) if isinstance(row, dict)]
    return {str(row.get("gate")): str(row.get("outcome")) for row in rows}


def _of_baseline(w: Formatter, name: str) -> Any:
    """Return what a file of the baseline's folder holds; None where it is no folder of a run."""
    baseline = w.whole.scenario.baseline
    if baseline is None:
        return None
    return _read(Path(str(baseline)) / name)


def _read(path: Path) -> Any:
    """Return what a file of JSON holds; None where it cannot be read, as of a run that stopped half-way."""
    with suppress(OSError, ValueError):
        return json.loads(path.read_text(encoding="utf-8"))
    return None


def now_failing(w: Formatter) -> Row | None:
    """Return the first gate that passed in the other run and fails in this one."""
    before = gates_before(w)
    for gate in records(w.whole.gates):
        is_on_a_mean = gate["role"] not in ("completeness", "difference")
        decides = gate["reason"] == ""
        of_candidate = gate["system"] in (None, w.shown)
        turned = gate["outcome"] == "fail" and before.get(gate["gate"]) == "pass"
        if is_on_a_mean and decides and of_candidate and turned:
            return gate
    return None
