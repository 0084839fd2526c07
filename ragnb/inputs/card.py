"""A file of unknown contents → a card: what it is taken for, what may be a metric, and the line that reads it."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from ragnb import texts
from ragnb.calibration import calibrate, looks_like_ratings, read_ratings
from ragnb.errors import RagnbError, listing
from ragnb.markup import count, one_line
from ragnb.readers import is_measure, qrels_columns, read_table
from ragnb.readers.failures import failure_columns
from ragnb.readers.names import WORDS, words_in
from ragnb.scenario.model import block, flow
from ragnb.schema import CASE_COLUMNS, CLIP, METRICS, NOT_METRICS, range_of
from ragnb.texts.errors import translated

Kind = Literal["scores", "cases", "traces", "gold", "ratings", "totals", "table"]
_MAPPED = (*CASE_COLUMNS, "answerable", "gold_ids", "citations", "chunks", "ts", "ok", "repeat")


@dataclass(frozen=True)
class FileCard:
    """What a file is taken for, and the line that reads it.

    Attributes
    ----------
    path : str
    kind : {"scores", "cases", "traces", "gold", "ratings", "totals", "table"}
        ``traces`` are answers without a score; a ``table`` has nothing that ragnb knows.
    format, layout : str
        Such as ``csv``, and the tool that wrote it, else ``table``.
    rows : int
    columns : dict of str to str
        Column of the file → the name that it is read under.
    metrics : DataFrame
        ``metric, low, high, seen_low, seen_high, n, known``: the metrics, then the columns that may be some, those
        from 0 to 1 first, with the range to declare (nan where the values fit no usual one).
    lossy : list of dict
        As the readers list it.
    settings : dict
        What `assess` needs to be told to read the file: ``metrics``, ``columns``.
    code, command : str
        A line for Python and one for a shell, which work as they are.
    lang : {"en", "zh"}

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "s.csv"
    >>> _ = file.write_text("prompt,stars\\nWho built it?,4\\nWhen was it built?,5\\n")
    >>> card = inspect_file(file)
    >>> card.kind, card.settings["metrics"]
    ('scores', [{'name': 'stars', 'low': 1, 'high': 5}])
    """

    path: str
    kind: Kind
    format: str
    layout: str
    rows: int
    columns: dict[str, str]
    metrics: pd.DataFrame
    lossy: list[dict[str, Any]]
    settings: dict[str, Any] = field(default_factory=dict)
    runs: bool = True
    lang: str = "en"

    @property
    def told(self) -> Mapping[str, str]:
        """What must be said of the columns."""
        told: Mapping[str, str] = self.settings.get("columns", {})
        return told

    @property
    def code(self) -> str:
        """The line for Python."""
        name, options = repr(self.path), ""
        if metrics := self.settings.get("metrics"):
            made = (f"rn.Metric({m['name']!r}, {m['low']:g}, {m['high']:g})" for m in metrics)
            options = f", metrics=[{', '.join(made)}]"
        options += "".join(
            f", {key}={value!r}" for key, value in self.settings.items() if key != "metrics"
        )
        if self.kind in ("scores", "traces"):
            return f"rn.assess({name}{options})"
        if self.kind == "ratings":
            return (
                f"rn.calibrate(rn.read_ratings({name}))"
                if self.runs
                else f"rn.read_ratings({name}{options})"
            )
        if self.kind in ("totals", "table"):
            reader = self.format if self.format in ("parquet", "excel", "json", "jsonl") else "csv"
            lines = ", lines=True" if reader == "jsonl" else ""
            return f"pandas.read_{reader.replace('jsonl', 'json')}({name}{lines})"
        read = f"rn.read_{self.kind}({name}{options})"
        return f"rn.check_gold({read})" if self.kind == "gold" else read

    @property
    def command(self) -> str:
        """The line for a shell; empty where no command takes such a file alone."""
        given = "".join(
            f" -p {shlex.quote(f'{key}={flow(value)}')}" for key, value in self.settings.items()
        )
        name = {
            "ratings": "calibrate" if self.runs else "",
            "scores": "check",
            "traces": "check",
        }.get(self.kind)
        return f"ragnb {name} {shlex.quote(self.path)}{given}" if name else ""

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        say = texts.load(self.lang)
        tool = "" if self.layout == "table" else f", {self.layout}"
        kind = say(f"card.{self.kind}")
        yield say(
            "card.what", path=self.path, kind=kind, format=self.format + tool, n=count(self.rows)
        )
        if self.columns:
            pairs = (
                name if name == ours else f"{name} → {ours}" for name, ours in self.columns.items()
            )
            yield say("card.columns", names=listing(pairs))
        for known, key in ((True, "card.metrics"), (False, "card.candidates")):
            rows = self.metrics[self.metrics["known"] == known]
            if len(rows):
                yield say(key, names=listing(map(_shown, rows.to_dict("records")), most=20))
        lacking = [key for key in _NEEDED.get(self.kind, ()) if key not in self.columns.values()]
        if lacking:
            yield say(
                "card.needs",
                names=say("note.join").join(say(f"card.need.{key}") for key in lacking),
            )
        losses = [row for row in self.lossy if row["what"] not in ("mapped", "made")]
        if losses:
            lost = (
                (row["column"] or "", translated(row["detail"], self.lang), count(row["n"]))
                for row in losses
            )
            told = (f"{column}: {one_line(detail, 80)} ({n})" for column, detail, n in lost)
            yield say(
                "card.losses", names=listing((line.removeprefix(": ") for line in told), most=5)
            )
        yield say("card.paste", code=self.code)
        if self.command:
            yield say("card.shell", command=self.command)

    def to_scenario(self, folder: str | os.PathLike[str] = ".") -> str:
        """Return a commented scenario of the file, for a YAML file in a folder.

        Raises
        ------
        RagnbError
            For a file that no scenario can name.
        """
        say, role = texts.load(self.lang), self.kind
        if role not in _OFFERED:
            raise RagnbError(
                f"{self.path}: no scenario can be written for it; this reads it: {self.code}"
            )
        path = Path(os.path.relpath(self.path, folder)).as_posix()
        lines = [
            f"# {say('card.head', kind=say(f'card.{self.kind}'))}",
            block({role: path}).rstrip(),
        ]
        lines += [block({key: value}).rstrip() for key, value in self.settings.items()]
        first = next((str(name) for name in self.metrics["metric"]), "faithfulness")
        if self.lang != "en":
            lines.append(f"lang: {self.lang}")
        for key in _OFFERED[role]:
            lines += [
                "",
                *(
                    f"# {line}"
                    for line in say(f"card.offer.{key}", metric=flow(first)).splitlines()
                ),
            ]
        return "\n".join(lines) + "\n"


_NEEDED = {
    "scores": ("doc_name", "question", "system"),
    "traces": ("answerable", "ts", "doc_name"),
    "cases": ("answer", "retrieved_contexts", "ground_truth_answer"),
}
_OFFERED = {
    "scores": ("gates", "weights", "ratings"),
    "traces": ("refusal", "gold", "gates_of_traces"),
    "ratings": ("labels",),
    "cases": ("judge",),
}


def _shown(row: dict[Any, Any]) -> str:
    ends = "" if pd.isna(row["low"]) else f" {row['low']:g}..{row['high']:g}"
    return (
        f"{row['metric']}{ends} ({row['seen_low']:g}–{row['seen_high']:g}, n = {count(row['n'])})"
    )


def inspect_file(
    path: str | os.PathLike[str], *, encoding: str | None = None, lang: str = "en"
) -> FileCard:
    """Return what a file is taken for, which of its columns may be metrics, and the line that reads it.

    Parameters
    ----------
    path : path
        Of any file that `read_scores` takes.
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
    >>> file = Path(tempfile.mkdtemp()) / "s.csv"
    >>> _ = file.write_text("user_input,faithfulness\\nWho?,0.5\\nWhen?,1\\n")
    >>> inspect_file(file).columns
    {'user_input': 'question', 'faithfulness': 'faithfulness'}
    """
    return card_of(path, encoding=encoding, lang=lang)


def card_of(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    lang: str = "en",
) -> FileCard:
    """Return the card of a file or a frame, given what a caller has said of its columns."""
    encoding = None if encoding == "utf-8" else encoding
    frame, path = read_table(source, columns=columns, encoding=encoding), str(source)
    source, lossy, have = (
        frame.attrs["source"],
        frame.attrs["lossy"],
        {str(name) for name in frame.columns},
    )
    made = {row["column"] for row in lossy if row["what"] == "made"}
    mapped = {row["detail"]: str(row["column"]) for row in lossy if row["what"] == "mapped"}
    metrics = _metrics(frame, {row["metric"]: row for row in frame.attrs.get("metrics", ())})
    named = [name for name in have if name in _MAPPED and name not in made]
    known = metrics.loc[metrics["known"], "metric"].tolist()
    told = metrics[metrics["told"] & metrics["low"].notna() & (metrics["known"] | (not known))]
    kind: Kind = "table"
    if source.get("totals"):
        kind, metrics = "totals", metrics[:0]
    elif looks_like_ratings([*have]) and not known:
        kind = "ratings"
    elif ("answerable" in have and "answer" not in have) or (not known and qrels_columns(have)):
        kind, metrics, lossy = "gold", metrics[:0], []
    elif known or len(told):
        kind = "scores"
    elif "answer" in have:
        kind = "traces"
    elif "question" in have:
        kind = "cases"
    settings: dict[str, Any] = {} if encoding is None else {"encoding": encoding}
    guessed = _guessed(frame) if kind == "table" else {}
    kind = "traces" if guessed else kind
    words = [
        row["column"] for row in lossy if row["column"] in METRICS and ": found " in row["detail"]
    ]
    # A metric whose cells are not all numbers is read under another name, as text.
    if (
        picks := dict(source["picks"])
        | guessed
        | {mapped.get(name, name): f"{name}_text" for name in words}
    ):
        settings["columns"] = picks
    if kind == "scores" and len(told):
        rows = told[["metric", "low", "high"]].itertuples(index=False)
        settings["metrics"] = [
            {"name": n, "low": _whole(low), "high": _whole(high)} for n, low, high in rows
        ]
    columns = {
        mapped.get(name, name): name for name in frame.columns if name in {*named, *known}
    } | guessed
    if not (runs := kind != "ratings"):
        with suppress(RagnbError, ValueError):
            calibrate(read_ratings(path))
            runs = True
    return FileCard(
        path,
        kind,
        str(source["format"]),
        str(source["layout"]),
        len(frame),
        columns,
        metrics.drop(columns="told"),
        lossy,
        settings,
        runs,
        lang,
    )


def _whole(number: float) -> int | float:
    return int(number) if float(number).is_integer() else number


def _metrics(frame: pd.DataFrame, tools: dict[str, Any]) -> pd.DataFrame:
    """Return the metrics and the columns that may be some, with their ranges, and which have to be told."""
    rows = []
    for name in map(str, frame.columns):
        cells, known = frame[name], name in tools or name in METRICS
        if "__" in name or not (
            pd.api.types.is_numeric_dtype(cells) or pd.api.types.is_bool_dtype(cells)
        ):
            continue
        numbers = pd.to_numeric(cells).astype(float).dropna()
        counts = len(numbers) > 2 and numbers.diff().dropna().eq(1).all()  # it numbers the rows
        if not len(numbers) or (
            not known
            and (
                counts
                or name in (*NOT_METRICS, *_MAPPED)
                or is_measure(name)
                or failure_columns([name]).get(name) in ("failed", "status")
            )
        ):
            continue
        seen = float(numbers.min()), float(numbers.max())
        metric, tool = METRICS.get(name), tools.get(name)
        ends = (
            (tool["low"], tool["high"]) if tool else (metric.low, metric.high) if metric else None
        )
        fits = ends is not None and ends[0] - CLIP <= seen[0] and seen[1] <= ends[1] + CLIP
        low, high = (ends if fits else range_of(*seen)) or (math.nan, math.nan)
        rows.append((name, low, high, *seen, len(numbers), known, not fits, (low, high) != (0, 1)))
    names = ["metric", "low", "high", "seen_low", "seen_high", "n", "known", "told", "other"]
    table = pd.DataFrame(rows, columns=names).astype(
        {"known": bool, "told": bool, "low": float, "high": float}
    )
    order = table.assign(known=~table["known"]).sort_values(["known", "other"], kind="stable").index
    return table.loc[order].drop(columns="other").reset_index(drop=True)


def _guessed(frame: pd.DataFrame) -> dict[str, str]:
    """Return the columns of texts whose names are words for a question and an answer, if there are both."""
    found: dict[str, str] = {}
    for target, words in WORDS["hints"].items():
        signs = [word for word in words if not word.isascii()]
        names = (name for name in map(str, frame.columns) if name not in found)
        named = (
            name
            for name in names
            if words_in(name) & {*words} or any(sign in name for sign in signs)
        )
        texts = (name for name in named if pd.api.types.is_string_dtype(frame[name].dropna()))
        found |= dict.fromkeys(islice(texts, 1), target)
    return found if len(found) == len(WORDS["hints"]) else {}
