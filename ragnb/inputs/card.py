"""A file of unknown contents → a card: what it is taken for, what is known of it, and the lines that read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from ragnb.calibration import calibrate, looks_like_ratings, read_ratings
from ragnb.errors import RagnbError, listing
from ragnb.inputs.candidates import MAPPED, describes_question
from ragnb.inputs.file_card import FileCard, Kind
from ragnb.inputs.metric_facts import metric_table, unused_columns
from ragnb.readers import Reading, is_measure, is_open_role, qrels_columns, read_table
from ragnb.readers.failures import failure_columns, outcomes
from ragnb.readers.formats import Source
from ragnb.readers.names import WORDS, is_reference_name, words_in
from ragnb.readers.nested import passage_columns
from ragnb.schema import METRICS
from ragnb.traces import log


def inspect_file(path: Source, *, encoding: str | None = None, lang: str = "en") -> FileCard:
    """Return what a file is taken for, which of its columns may be metrics, and the line that reads it.

    Parameters
    ----------
    path : path, frame, or records
        Whatever `read_scores` takes.
    encoding : str, optional
        Of text files, as for `read_scores`.
    lang : {"en", "zh"}
        Of the printed card.

    Raises
    ------
    RagnbError
        For what is no table at all; the message says what it is.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "s.csv"
    >>> _ = file.write_text("user_input,faithfulness\\nWho?,0.5\\nWhen?,1\\n")
    >>> inspect_file(file).columns
    {'user_input': 'question', 'faithfulness': 'faithfulness'}
    """
    return card_of(path, encoding=encoding, lang=lang)


def card_of(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    lang: str = "en",
) -> FileCard:
    """Return the card of a file or a frame, given what a caller has said of its columns."""
    if encoding == "utf-8":
        encoding = None
    reading = read_table(source, columns=columns, encoding=encoding)
    frame = reading.frame
    path = str(reading.origin["path"] or "")  # a frame in memory has none
    lossy = reading.lossy
    mapped = {row["detail"]: str(row["column"]) for row in lossy if row["what"] == "mapped"}
    metrics = metric_table(reading)
    kind = _kind_of(reading, metrics)
    if kind in ("totals", "gold"):
        # Their numbers are no scores of answers.
        metrics = metrics[:0]
    guessed: dict[str, str] = {}
    if kind in ("table", "traces", "cases"):
        guessed = _guessed(frame, mapped)
    # Questions and answers under names of their own make a log.
    if guessed:
        kind = "traces"
    if kind == "traces" and not guessed and _is_open(reading, mapped):
        # Nobody knows who gave these answers: read_inputs asks.
        kind = "cases"
    settings: dict[str, Any] = {} if encoding is None else {"encoding": encoding}
    if picks := _picks(reading, guessed, mapped):
        settings["columns"] = picks
    choices: list[dict[str, Any]] = []
    if kind == "scores":
        declared, choices = _declarations(metrics)
        if not declared and not metrics["known"].any():
            # Where nothing else is known, a line that asks is better than none.
            declared = choices
        if declared:
            settings["metrics"] = declared

    shown = _shown_columns(reading, metrics, mapped) | guessed
    shown |= _of_lists(reading)
    if kind == "traces":
        shown |= _of_log(frame, set(shown.values()))
    # A line is shown only where it works.
    runs = kind != "ratings" or _calibrates(source)
    unused: dict[str, list[str]] = {}
    if kind not in ("totals", "gold", "ratings"):
        used = {*metrics["metric"], *shown, *shown.values(), *guessed}
        unused = unused_columns(frame, used)
    lacking: list[dict[str, Any]] = []
    if kind == "scores":
        lacking = rows_without_score(frame, metrics)
    return FileCard(
        path=path,
        kind=kind,
        format=str(reading.origin["format"]),
        layout=str(reading.origin["layout"]),
        rows=len(frame),
        columns=shown,
        metrics=metrics,
        lossy=[] if kind == "gold" else lossy,
        settings=settings,
        runs=runs,
        lang=lang,
        facts=reading.facts,
        unused=unused,
        choices=choices,
        lacking=lacking,
    )


def rows_without_score(frame: pd.DataFrame, metrics: pd.DataFrame) -> list[dict[str, Any]]:
    """Return which rows lack the scores of which known metrics, those that lack most first.

    Examples
    --------
    >>> frame = pd.DataFrame({"faithfulness": [1.0, None, None, 0.5], "tone": [1, 1, 1, None]})
    >>> known = pd.DataFrame({"metric": ["faithfulness"], "known": [True]})
    >>> rows_without_score(frame, known)
    [{'rows': '2–3', 'n': 2, 'metrics': ['faithfulness']}]
    """
    names = [name for name in metrics.loc[metrics["known"], "metric"] if name in frame]
    if not names:
        return []
    is_missing = frame[names].isna().to_numpy()
    # Rows that lack the same metrics are reported together.
    rows_by_flags: dict[tuple[bool, ...], list[int]] = {}
    for place in np.flatnonzero(is_missing.any(axis=1)).tolist():
        flags = tuple(is_missing[place].tolist())
        rows_by_flags.setdefault(flags, []).append(place + 1)
    lacking = []
    for flags, rows in rows_by_flags.items():
        missing = [name for name, flag in zip(names, flags, strict=True) if flag]
        lacking.append({"rows": _ranges(rows), "n": len(rows), "metrics": missing})
    return sorted(lacking, key=lambda row: -row["n"])


def _ranges(rows: list[int], most: int = 10) -> str:
    """Write row numbers as ranges, ``4, 27–40``; those after the first few are counted."""
    ranges: list[tuple[int, int]] = []  # first and last row
    for row in rows:
        if ranges and ranges[-1][1] == row - 1:
            ranges[-1] = (ranges[-1][0], row)
        else:
            ranges.append((row, row))
    written = [f"{first}" if first == last else f"{first}–{last}" for first, last in ranges]
    return listing(written, most=most)


def _kind_of(reading: Reading, metrics: pd.DataFrame) -> Kind:
    """Return what a table is taken for."""
    have = {str(name) for name in reading.frame.columns}
    known = bool(metrics["known"].any())
    if reading.is_totals:
        return "totals"
    if looks_like_ratings([*have]) and not known:
        return "ratings"
    marks_answerable = "answerable" in have and "answer" not in have
    if marks_answerable or (not known and qrels_columns(have)):
        return "gold"
    has_fact = metrics["low"].notna() | (metrics["better"] != "?")
    if known or has_fact.any():
        return "scores"
    if "answer" in have:
        return "traces"
    if "question" in have:
        return "cases"
    return "table"


def _declarations(metrics: pd.DataFrame) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the metrics to declare whose facts are all known or proposed, and those that need a choice."""
    settled: list[dict[str, Any]] = []
    choices: list[dict[str, Any]] = []
    for row in metrics[metrics["declare"]].to_dict("records"):
        declared: dict[str, Any] = {"name": row["metric"], "low": "?", "high": "?"}
        if not pd.isna(row["low"]):
            declared |= {"low": _whole(row["low"]), "high": _whole(row["high"])}
        if row["better"] != "higher":
            declared["better"] = row["better"]
        if row["kind"] == "binary":
            declared["kind"] = "binary"
        if row["open"]:
            choices.append(declared)
        else:
            settled.append(declared)
    return settled, choices


def _whole(number: float) -> int | float:
    """Return a whole number as an int, as somebody would write it."""
    if float(number).is_integer():
        return int(number)
    return number


def _picks(
    reading: Reading, guessed: Mapping[str, str], mapped: Mapping[str, str]
) -> dict[str, str]:
    """Return what must be said of the columns for the file to be read."""
    with_words = [
        row["column"]
        for row in reading.lossy
        if row["column"] in METRICS and ": found " in row["detail"]
    ]
    # A metric whose cells are not all numbers is read under another name, as text.
    as_text = {mapped.get(name, name): f"{name}_text" for name in with_words}
    # What was seen in the cells counts more than a guess by the name.
    return reading.picks | dict(guessed) | as_text


def _shown_columns(
    reading: Reading, metrics: pd.DataFrame, mapped: Mapping[str, str]
) -> dict[str, str]:
    """Return the columns that have a meaning, by their names in the file."""
    columns = [str(name) for name in reading.frame.columns]
    made = _made(reading)
    known = {*metrics.loc[metrics["known"], "metric"]}
    named = {name for name in columns if name in MAPPED and name not in made}
    shown = [name for name in columns if name in named | known]
    return {mapped.get(name, name): name for name in shown}


def _made(reading: Reading) -> set[str]:
    """Return the columns that are made of others."""
    return {row["column"] for row in reading.lossy if row["what"] == "made"}


def _of_lists(reading: Reading) -> dict[str, str]:
    """Return the lists that hold what was asked, said and found, with the columns that are made of them."""
    made_of: dict[str, list[str]] = {}
    for row in reading.lossy:
        if row["what"] != "made":
            continue
        # Readers write `from messages`, or `passages of steps, turns`.
        names = str(row["detail"]).removeprefix("from ").removeprefix("passages of ").split(", ")
        for name in names:
            if name in reading.frame.columns:
                made_of.setdefault(name, []).append(str(row["column"]))
    return {name: ", ".join(columns) for name, columns in made_of.items()}


def _of_log(frame: pd.DataFrame, meant: Iterable[str]) -> dict[str, str]:
    """Return the columns that a log is read with beside questions and answers.

    They are its times, what an answer took, its passages, and what says that an answer failed.
    """
    roles: dict[str, str] = {}
    for target, names in (("ts", log.TIMES), ("latency", log.LATENCY)):
        if target not in meant:
            in_frame = [name for name in names if name in frame.columns]
            roles |= dict.fromkeys(in_frame[:1], target)
    if not {"chunks", "retrieved_contexts"} & {*frame.columns}:
        cells = {name: list(frame[name]) for name in there_in_order(frame)}
        # Only the first is needed, and each further column would be read cell by cell.
        roles |= dict.fromkeys(islice(passage_columns(cells), 1), "chunks")
    failures = {name: list(frame[name]) for name in failure_columns(there_in_order(frame))}
    if "answer" in frame and outcomes(failures, list(frame["answer"])) is not None:
        roles |= dict.fromkeys(failures, "ok")
    return roles


def _calibrates(source: Source) -> bool:
    """Whether a judge can be calibrated on a file or frame of ratings."""
    with suppress(RagnbError, ValueError):
        calibrate(read_ratings(source))
        return True
    return False


def _guessed(frame: pd.DataFrame, mapped: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of texts whose names are words for the question or the answer that the table lacks.

    What should come out (an expected, correct or gold answer) is never taken for the answer of a system.
    """
    roles: dict[str, str] = {}
    names = there_in_order(frame)
    for target, words in WORDS["hints"].items():
        if target in names:
            continue
        for name in names:
            is_taken = name in roles or name in MAPPED
            if is_taken or not _has_word(name, words) or _is_no_answer(name):
                continue
            if pd.api.types.is_string_dtype(frame[name].dropna()):
                roles[mapped.get(name, name)] = target
                break
    # A question without an answer, or the reverse, makes no log.
    is_complete = all(target in {*names, *roles.values()} for target in WORDS["hints"])
    if is_complete:
        return roles
    return {}


def there_in_order(frame: pd.DataFrame) -> list[str]:
    """Return the names of the columns as texts.

    Examples
    --------
    >>> there_in_order(pd.DataFrame({"a": [1], 2: [3]}))
    ['a', '2']
    """
    return [str(name) for name in frame.columns]


def _has_word(name: str, words: Iterable[str]) -> bool:
    """Whether a name holds one of some words; those of Chinese also within it, which has no blanks."""
    signs = [word for word in words if not word.isascii()]
    return bool(words_in(name) & {*words}) or any(sign in name for sign in signs)


def _is_no_answer(name: str) -> bool:
    """Whether a column of texts has what should come out, or a kind, a number or a length of something."""
    return is_reference_name(name) or describes_question(name) or is_measure(name)


def _is_open(reading: Reading, mapped: Mapping[str, str]) -> bool:
    """Whether nothing tells if the answers are a system's or references."""
    frame = reading.frame
    if "answer" in _made(reading):  # from a conversation, in which the system spoke
        return False
    named = (name for name in map(str, frame.columns) if name in MAPPED)
    return is_open_role(frame, {mapped.get(name, name): name for name in named})
