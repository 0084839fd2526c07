"""A file of unknown contents → a card: what it is taken for, what is known of it, and the lines that read it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.calibration import calibrate, looks_like_ratings, read_ratings
from ragnb.errors import RagnbError, listing
from ragnb.inputs.candidates import MAPPED, describes_question
from ragnb.inputs.first_scenario import scenario_text
from ragnb.inputs.metric_facts import metric_table, unused_columns
from ragnb.markup import count, one_line
from ragnb.readers import is_measure, is_open_role, qrels_columns, read_table
from ragnb.readers.failures import failure_columns, outcomes
from ragnb.readers.names import WORDS, is_reference_name, words_in
from ragnb.readers.nested import passage_columns
from ragnb.scenario.source import flow
from ragnb.schema import METRICS
from ragnb.texts.errors import translated
from ragnb.traces import log

Kind = Literal["scores", "cases", "traces", "gold", "ratings", "totals", "table"]


@dataclass(frozen=True, repr=False)
class FileCard:
    """What a file is taken for, what is known of its metrics and why, and the line that reads it.

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
        ``metric, low, high, better, kind, seen_low, seen_high, n, n_missing, n_failed, n_not_applicable, known,
        declare, open, scale_evidence, direction_evidence``: the metrics, then the columns that may be some, those
        from 0 to 1 first. Where nothing says a scale it is nan, where nothing says a direction it is ``?``.
    lossy : list of dict
        As the readers list it.
    facts : list of dict
        What was found out about metrics, rows and owner: ``metric, fact, value, evidence, open``.
    unused : dict of str to list of str
        Why columns are not used → those columns.
    settings : dict
        What `assess` needs to be told to read the file: ``metrics``, ``columns``.
    choices : list of dict
        Metrics of which somebody has to say the scale or the direction, as ``metrics`` holds them, with ``?``.
    code, command : str
        A line for Python and one for a shell, which work as they are. Where every metric has a choice, they hold
        them, and are refused with what can be chosen.
    code_with_choices, command_with_choices : str
        The same with all choices; empty where there are none, or the lines hold them anyway.
    lacking : list of dict
        ``rows, n, metrics``: which rows lack the scores of which known metrics, rows counted from 1.
    lang : {"en", "zh"}

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "s.csv"
    >>> _ = file.write_text("prompt,helpfulness\\nWho built it?,4\\nWhen was it built?,5\\n")
    >>> card = inspect_file(file)
    >>> card.kind, card.settings["metrics"]
    ('scores', [{'name': 'helpfulness', 'low': 1, 'high': 5}])
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
    facts: list[dict[str, Any]] = field(default_factory=list)
    unused: dict[str, list[str]] = field(default_factory=dict)
    choices: list[dict[str, Any]] = field(default_factory=list)
    lacking: list[dict[str, Any]] = field(default_factory=list)

    @property
    def told(self) -> Mapping[str, str]:
        """What must be said of the columns."""
        told: Mapping[str, str] = self.settings.get("columns", {})
        return told

    @property
    def code(self) -> str:
        """The line for Python."""
        return self._code(self.settings)

    @property
    def command(self) -> str:
        """The line for a shell; empty where no command takes such a file alone."""
        return self._command(self.settings)

    @property
    def code_with_choices(self) -> str:
        """The line for Python that also holds the metrics of which a fact is open."""
        if self._adds_choices:
            return self._code(self._with_choices)
        return ""

    @property
    def command_with_choices(self) -> str:
        """The line for a shell that also holds the metrics of which a fact is open."""
        if self._adds_choices:
            return self._command(self._with_choices)
        return ""

    @property
    def _adds_choices(self) -> bool:
        return bool(self.choices) and self.choices != self.settings.get("metrics")

    @property
    def _with_choices(self) -> dict[str, Any]:
        return self.settings | {"metrics": [*self.settings.get("metrics", ()), *self.choices]}

    def _code(self, settings: Mapping[str, Any]) -> str:
        name = repr(self.path)
        options = ""
        if metrics := settings.get("metrics"):
            options = f", metrics=[{', '.join(map(_metric_code, metrics))}]"
        options += "".join(
            f", {key}={value!r}" for key, value in settings.items() if key != "metrics"
        )
        if self.kind in ("scores", "traces"):
            return f"rn.assess({name}{options})"
        if self.kind == "ratings" and self.runs:
            return f"rn.calibrate(rn.read_ratings({name}))"
        if self.kind == "ratings":
            return f"rn.read_ratings({name}{options})"
        if self.kind in ("totals", "table"):
            return self._pandas_code(settings)
        read = f"rn.read_{self.kind}({name}{options})"
        if self.kind == "gold":
            return f"rn.check_gold({read})"
        return read

    def _pandas_code(self, settings: Mapping[str, Any]) -> str:
        readers = {"parquet": "parquet", "excel": "excel", "json": "json", "jsonl": "json"}
        reader = readers.get(self.format, "csv")
        options = {"jsonl": ", lines=True", "tsv": ", sep='\\t'"}.get(self.format, "")
        if "encoding" in settings and reader in ("csv", "json"):
            options += f", encoding={settings['encoding']!r}"
        return f"pandas.read_{reader}({self.path!r}{options})"

    def _command(self, settings: Mapping[str, Any]) -> str:
        given = "".join(
            f" -p {shlex.quote(f'{key}={flow(value)}')}" for key, value in settings.items()
        )
        names = {
            "ratings": "calibrate" if self.runs else "",
            "scores": "check",
            "traces": "check",
        }
        name = names.get(self.kind)
        if name:
            return f"ragnb {name} {shlex.quote(self.path)}{given}"
        return ""

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        metrics = listing(self.metrics["metric"], most=4)
        return f"FileCard({self.path!r}, {self.kind}, {self.rows} rows, metrics: {metrics})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _lines(self) -> Iterator[str]:
        say = texts.load(self.lang)
        tool = "" if self.layout == "table" else f", {self.layout}"
        kind = say(f"card.{self.kind}")
        yield say(
            "card.what", path=self.path, kind=kind, format=self.format + tool, n=count(self.rows)
        )
        yield from self._table_facts(say)
        if self.columns:
            pairs = (
                name if name == ours else f"{name} → {ours}" for name, ours in self.columns.items()
            )
            yield say("card.columns", names=listing(pairs))
        for known, key in ((True, "card.metrics"), (False, "card.candidates")):
            rows = self.metrics[self.metrics["known"] == known].to_dict("records")
            if rows:
                yield say(key)
                yield from (self._metric_line(say, row) for row in rows)
        if self.lacking:
            places = (
                say("card.rows_lacking", rows=row["rows"], names=listing(row["metrics"]))
                for row in self.lacking
            )
            yield say("card.lacking", places=listing(places, most=5))
        for code, columns in self.unused.items():
            yield say(f"card.unused.{code}", names=listing(columns, most=20))
        told = {ours for meant in self.columns.values() for ours in meant.split(", ")}
        lacking = [key for key in _NEEDED.get(self.kind, ()) if key not in told]
        if lacking:
            needs = say("note.join").join(say(f"card.need.{key}") for key in lacking)
            yield say("card.needs", names=needs)
        yield from self._losses(say)
        yield say("card.paste", code=f"{_imports(self.code)}{self.code}")
        if self.command:
            yield say("card.shell", command=self.command)
        if self.choices:
            names = listing(choice["name"] for choice in self.choices)
            yield say("card.choose" if self._adds_choices else "card.choose_first", names=names)
        if self._adds_choices:
            code = self.code_with_choices
            yield say("card.paste", code=f"{_imports(code)}{code}")
        if self._adds_choices and self.command:
            yield say("card.shell", command=self.command_with_choices)

    def _table_facts(self, say: Any) -> Iterator[str]:
        """Yield what was found out about the rows and about who answered."""
        for fact in self.facts:
            if fact in self._repeats_of_ratings:
                continue
            if fact["fact"] in ("row", "owner") and fact["metric"] is None:
                key = f"card.fact.{fact['fact']}" + ("_open" if fact["open"] else "")
                evidence = translated(fact["evidence"], self.lang)
                yield say(key, value=fact["value"], evidence=evidence)

    @property
    def _repeats_of_ratings(self) -> list[Mapping[str, Any]]:
        """What was found out about rows of one question in ratings, where each dimension has a row."""
        if self.kind != "ratings":
            return []
        return [fact for fact in self.facts if fact["fact"] == "owner" and fact["open"]]

    def _metric_line(self, say: Any, row: Mapping[Any, Any]) -> str:
        """Return what is known of one metric, with its evidence."""
        scale = say("card.scale_open")
        if not pd.isna(row["low"]):
            scale = f"{row['low']:g}..{row['high']:g}"
        better = say("card.direction_open")
        if row["better"] != "?":
            better = say(f"card.better.{row['better']}")
        of_scale = translated(row["scale_evidence"], self.lang)
        of_direction = translated(row["direction_evidence"], self.lang)

        shown = [_because(say, scale, of_scale), _because(say, better, of_direction)]
        if of_scale == of_direction:
            shown = [_because(say, f"{scale}, {better}", of_scale)]
        seen = f"{row['seen_low']:g}–{row['seen_high']:g}"
        shown.append(say("card.seen", seen=seen, n=count(row["n"])))
        for gap in ("missing", "failed", "not_applicable"):
            if row[f"n_{gap}"]:
                shown.append(say(f"card.gap.{gap}", n=count(row[f"n_{gap}"])))
        line: str = say("card.metric", name=row["metric"], facts="; ".join(shown))
        return line

    def _losses(self, say: Any) -> Iterator[str]:
        # What a fact says of the rows is listed as a loss too, in the same words up to the first stop.
        of_ratings = {fact["evidence"].partition(";")[0] for fact in self._repeats_of_ratings}
        losses = [
            row
            for row in self.lossy
            if row["what"] not in ("mapped", "made")
            and row["detail"].partition(",")[0] not in of_ratings
        ]
        if not losses:
            return
        lost = (
            (row["column"] or "", translated(row["detail"], self.lang), count(row["n"]))
            for row in losses
        )
        told = (f"{column}: {one_line(detail, 80)} ({n})" for column, detail, n in lost)
        names = (line.removeprefix(": ") for line in told)
        yield say("card.losses", names=listing(names, most=5))

    def to_scenario(self, folder: str | os.PathLike[str] = ".") -> str:
        """Return a commented scenario of the file, for a YAML file in a folder.

        Raises
        ------
        RagnbError
            For a file that no scenario can name.
        """
        if self.kind not in _IN_SCENARIOS:
            raise RagnbError(
                f"{self.path}: no scenario can be written for it; this reads it: {self.code}"
            )
        path = Path(os.path.relpath(self.path, folder)).as_posix()
        settings = dict(self.settings)
        if not self._adds_choices and self.choices:
            settings.pop("metrics")  # a scenario with an open choice does not load
        return scenario_text(
            self.kind, path, self.metrics, settings, self.choices, self.facts, lang=self.lang
        )


_IN_SCENARIOS = ("scores", "traces", "ratings", "cases")
_NEEDED = {
    "scores": ("doc_name", "question", "system"),
    "traces": ("answerable", "ts", "doc_name"),
    "cases": ("answer", "retrieved_contexts", "ground_truth_answer"),
}


def _because(say: Any, what: str, why: str) -> str:
    """Return what is known with the evidence behind it."""
    if why:
        return str(say("card.because", what=what, why=why))
    return what


def _imports(code: str) -> str:
    """Return what a line has to import."""
    if code.startswith("pandas."):
        return "import pandas; "
    return "import ragnb as rn; "


def _metric_code(metric: Mapping[str, Any]) -> str:
    """Return the Python for a metric as settings hold it."""
    low, high = (_end_code(metric[end]) for end in ("low", "high"))
    more = "".join(
        f", {key}={metric[key]!r}" for key in ("better", "kind", "role") if key in metric
    )
    return f"rn.Metric({metric['name']!r}, {low}, {high}{more})"


def _end_code(end: Any) -> str:
    if isinstance(end, str):
        return repr(end)
    return f"{end:g}"


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
    if encoding == "utf-8":
        encoding = None
    frame = read_table(source, columns=columns, encoding=encoding)
    path = str(source)
    origin = frame.attrs["source"]
    lossy = frame.attrs["lossy"]
    mapped = {row["detail"]: str(row["column"]) for row in lossy if row["what"] == "mapped"}
    metrics = metric_table(frame)
    kind = _kind_of(frame, metrics)
    if kind in ("totals", "gold"):
        metrics = metrics[:0]
    if kind in ("table", "traces", "cases"):
        guessed = _guessed(frame, mapped)
    else:
        guessed = {}
    if guessed and kind != "traces":
        kind = "traces"
    if kind == "traces" and not guessed and _is_open(frame, mapped):
        # Nobody knows who gave these answers: read_inputs asks.
        kind = "cases"
    settings: dict[str, Any] = {} if encoding is None else {"encoding": encoding}
    if picks := _picks(frame, guessed, mapped):
        settings["columns"] = picks
    choices: list[dict[str, Any]] = []
    if kind == "scores":
        declared, choices = _declarations(metrics)
        if not declared and not metrics["known"].any():
            declared = choices
        if declared:
            settings["metrics"] = declared

    shown = _shown_columns(frame, metrics, mapped) | guessed
    shown |= _of_lists(frame)
    if kind == "traces":
        shown |= _of_log(frame, set(shown.values()))
    runs = kind != "ratings" or _calibrates(path)
    used = {*metrics["metric"], *shown, *shown.values(), *guessed}
    return FileCard(
        path,
        kind,
        str(origin["format"]),
        str(origin["layout"]),
        len(frame),
        shown,
        metrics,
        [] if kind == "gold" else lossy,
        settings,
        runs,
        lang,
        list(frame.attrs.get("facts", ())),
        {} if kind in ("totals", "gold", "ratings") else unused_columns(frame, used),
        choices,
        rows_without_score(frame, metrics) if kind == "scores" else [],
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
    gone = frame[names].isna().to_numpy()
    places: dict[tuple[bool, ...], list[int]] = {}
    for place in np.flatnonzero(gone.any(axis=1)).tolist():
        places.setdefault(tuple(gone[place].tolist()), []).append(place + 1)
    found = [
        {
            "rows": _ranges(rows),
            "n": len(rows),
            "metrics": [name for name, is_gone in zip(names, flags, strict=True) if is_gone],
        }
        for flags, rows in places.items()
    ]
    return sorted(found, key=lambda row: -row["n"])


def _ranges(rows: list[int], most: int = 10) -> str:
    """Write row numbers as ranges, ``4, 27–40``; those after the first few are counted."""
    parts: list[list[int]] = []
    for row in rows:
        if parts and parts[-1][1] == row - 1:
            parts[-1][1] = row
        else:
            parts.append([row, row])
    written = [f"{first}" if first == last else f"{first}–{last}" for first, last in parts]
    return listing(written, most=most)


def _kind_of(frame: pd.DataFrame, metrics: pd.DataFrame) -> Kind:
    """Return what a table is taken for."""
    have = {str(name) for name in frame.columns}
    known = bool(metrics["known"].any())
    if frame.attrs["source"].get("totals"):
        return "totals"
    if looks_like_ratings([*have]) and not known:
        return "ratings"
    if ("answerable" in have and "answer" not in have) or (not known and qrels_columns(have)):
        return "gold"
    some_fact = metrics["low"].notna() | (metrics["better"] != "?")
    if known or some_fact.any():
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
        (choices if row["open"] else settled).append(declared)
    return settled, choices


def _whole(number: float) -> int | float:
    if float(number).is_integer():
        return int(number)
    return number


def _picks(
    frame: pd.DataFrame, guessed: Mapping[str, str], mapped: Mapping[str, str]
) -> dict[str, str]:
    """Return what must be said of the columns for the file to be read."""
    lossy = frame.attrs["lossy"]
    words = [
        row["column"] for row in lossy if row["column"] in METRICS and ": found " in row["detail"]
    ]
    # A metric whose cells are not all numbers is read under another name, as text.
    as_text = {mapped.get(name, name): f"{name}_text" for name in words}
    return dict(frame.attrs["source"]["picks"]) | dict(guessed) | as_text


def _shown_columns(
    frame: pd.DataFrame, metrics: pd.DataFrame, mapped: Mapping[str, str]
) -> dict[str, str]:
    """Return the columns that have a meaning, by their names in the file."""
    made = _made(frame)
    known = {*metrics.loc[metrics["known"], "metric"]}
    named = {name for name in map(str, frame.columns) if name in MAPPED and name not in made}
    return {
        mapped.get(name, name): name for name in map(str, frame.columns) if name in named | known
    }


def _made(frame: pd.DataFrame) -> set[str]:
    """Return the columns that are made of others."""
    return {row["column"] for row in frame.attrs["lossy"] if row["what"] == "made"}


def _of_lists(frame: pd.DataFrame) -> dict[str, str]:
    """Return the lists that hold what was asked, said and found, with the columns that are made of them."""
    made: dict[str, list[str]] = {}
    for row in frame.attrs["lossy"]:
        names = str(row["detail"]).removeprefix("from ").removeprefix("passages of ").split(", ")
        if row["what"] == "made":
            for name in names:
                if name in frame.columns:
                    made.setdefault(name, []).append(str(row["column"]))
    return {name: ", ".join(columns) for name, columns in made.items()}


def _of_log(frame: pd.DataFrame, meant: Iterable[str]) -> dict[str, str]:
    """Return the columns that a log is read with beside questions and answers.

    They are its times, what an answer took, its passages, and what says that an answer failed.
    """
    found: dict[str, str] = {}
    for target, key in (("ts", "times"), ("latency", "latency")):
        names = (name for name in log.WORDS[key] if name in frame.columns)
        if target not in meant:
            found |= dict.fromkeys(islice(names, 1), target)
    if not {"chunks", "retrieved_contexts"} & {*frame.columns}:
        cells = {name: list(frame[name]) for name in there_in_order(frame)}
        found |= dict.fromkeys(islice(passage_columns(cells), 1), "chunks")
    failures = {name: list(frame[name]) for name in failure_columns(there_in_order(frame))}
    if "answer" in frame and outcomes(failures, list(frame["answer"])) is not None:
        found |= dict.fromkeys(failures, "ok")
    return found


def _calibrates(path: str) -> bool:
    with suppress(RagnbError, ValueError):
        calibrate(read_ratings(path))
        return True
    return False


def _guessed(frame: pd.DataFrame, mapped: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of texts whose names are words for the question or the answer that the table lacks.

    What should come out (an expected, correct or gold answer) is never taken for the answer of a system.
    """
    found: dict[str, str] = {}
    there = {str(name) for name in frame.columns}
    for target, words in WORDS["hints"].items():
        if target in there:
            continue
        free = (name for name in there_in_order(frame) if name not in (*found, *MAPPED))
        named = (name for name in free if _has_word(name, words) and not _is_no_answer(name))
        of_text = (name for name in named if pd.api.types.is_string_dtype(frame[name].dropna()))
        found |= {mapped.get(name, name): target for name in islice(of_text, 1)}
    complete = all(target in {*there, *found.values()} for target in WORDS["hints"])
    if complete:
        return found
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
    signs = [word for word in words if not word.isascii()]
    return bool(words_in(name) & {*words}) or any(sign in name for sign in signs)


def _is_no_answer(name: str) -> bool:
    """Whether a column of texts has what should come out, or a kind, a number or a length of something."""
    return is_reference_name(name) or describes_question(name) or is_measure(name)


def _is_open(frame: pd.DataFrame, mapped: Mapping[str, str]) -> bool:
    """Whether nothing tells if the answers are a system's or references."""
    if "answer" in _made(frame):  # from a conversation, in which the system spoke
        return False
    named = (name for name in map(str, frame.columns) if name in MAPPED)
    return is_open_role(frame, {mapped.get(name, name): name for name in named})
