"""The card of a file: what it is, what its columns mean, and how to read it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, listing
from ragnb.inputs.first_scenario import scenario_text
from ragnb.markup import count, one_line
from ragnb.scenario.source import flow
from ragnb.texts.errors import translated

Kind = Literal["scores", "cases", "traces", "gold", "ratings", "totals", "table"]


@dataclass(frozen=True, repr=False)
class FileCard:
    """What a file is taken for, what is known of its metrics and why, and the line that reads it.

    Attributes
    ----------
    path : str
        Empty for a frame in memory, which the lines call ``frame``.
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
        them, and are refused with what can be chosen. Empty where there is nothing to write: no command takes a
        frame in memory, and a frame of ``totals`` or a ``table`` is already read.
    code_with_choices, command_with_choices : str
        The same with all choices; empty where there are none, or the lines hold them anyway.
    lacking : list of dict
        ``rows, n, metrics``: which rows lack the scores of which known metrics, rows counted from 1.
    lang : {"en", "zh"}

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ragnb import inspect_file
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
        """The line for Python; empty for a frame with which nothing can be done."""
        return self._code(self.settings)

    @property
    def command(self) -> str:
        """The line for a shell; empty where no command takes such a file alone, or there is no file."""
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
        name = repr(self.path) if self.path else _FRAME
        options = ""
        metrics = settings.get("metrics")
        if metrics:
            options = f", metrics=[{', '.join(_metric_code(metric) for metric in metrics)}]"
        for key, value in settings.items():
            if key != "metrics":
                options += f", {key}={value!r}"
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
        if not self.path:
            return ""
        readers = {"parquet": "parquet", "excel": "excel", "json": "json", "jsonl": "json"}
        reader = readers.get(self.format, "csv")
        options = {"jsonl": ", lines=True", "tsv": ", sep='\\t'"}.get(self.format, "")
        if "encoding" in settings and reader in ("csv", "json"):
            options += f", encoding={settings['encoding']!r}"
        return f"pandas.read_{reader}({self.path!r}{options})"

    def _command(self, settings: Mapping[str, Any]) -> str:
        if not self.path:
            return ""
        if self.kind in ("scores", "traces"):
            name = "check"
        elif self.kind == "ratings" and self.runs:
            name = "calibrate"
        else:
            return ""
        options = ""
        for key, value in settings.items():
            assignment = f"{key}={flow(value)}"
            options += f" -p {shlex.quote(assignment)}"
        return f"ragnb {name} {shlex.quote(self.path)}{options}"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        metrics = listing(self.metrics["metric"], most=4)
        name = repr(self.path) if self.path else _FRAME
        return f"FileCard({name}, {self.kind}, {self.rows} rows, metrics: {metrics})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _lines(self) -> Iterator[str]:
        say = texts.load(self.lang)
        tool = "" if self.layout == "table" else f", {self.layout}"
        kind = say(f"card.{self.kind}")
        yield say(
            "card.what",
            path=self.path or _FRAME,
            kind=kind,
            format=self.format + tool,
            n=count(self.rows),
        )
        yield from self._table_facts(say)
        if self.columns:
            pairs = []
            for name, ours in self.columns.items():
                pairs.append(name if name == ours else f"{name} → {ours}")
            yield say("card.columns", names=listing(pairs))
        for known, key in ((True, "card.metrics"), (False, "card.candidates")):
            rows = self.metrics[self.metrics["known"] == known].to_dict("records")
            if rows:
                yield say(key)
                yield from (self._metric_line(say, row) for row in rows)
        if self.lacking:
            places = [
                say("card.rows_lacking", rows=row["rows"], names=listing(row["metrics"]))
                for row in self.lacking
            ]
            yield say("card.lacking", places=listing(places, most=5))
        for code, columns in self.unused.items():
            yield say(f"card.unused.{code}", names=listing(columns, most=20))
        yield from self._needs(say)
        yield from self._losses(say)
        yield from self._lines_to_paste(say)

    def _needs(self, say: Any) -> Iterator[str]:
        """Yield which columns would tell more."""
        # A list in the file may stand for several columns, see `columns`.
        roles = {ours for meant in self.columns.values() for ours in meant.split(", ")}
        lacking = [key for key in _NEEDED.get(self.kind, ()) if key not in roles]
        if lacking:
            needs = say("note.join").join(say(f"card.need.{key}") for key in lacking)
            yield say("card.needs", names=needs)

    def _lines_to_paste(self, say: Any) -> Iterator[str]:
        """Yield the lines for Python and for a shell, first those that work as they are."""
        if self.code:
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
                key = f"card.fact.{fact['fact']}"
                if fact["open"]:
                    key += "_open"
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

        # Evidence for both, such as the layout of a tool, is given once.
        if of_scale == of_direction:
            shown = [_because(say, f"{scale}, {better}", of_scale)]
        else:
            shown = [_because(say, scale, of_scale), _because(say, better, of_direction)]
        seen = f"{row['seen_low']:g}–{row['seen_high']:g}"
        shown.append(say("card.seen", seen=seen, n=count(row["n"])))
        for gap in ("missing", "failed", "not_applicable"):
            if row[f"n_{gap}"]:
                shown.append(say(f"card.gap.{gap}", n=count(row[f"n_{gap}"])))
        line: str = say("card.metric", name=row["metric"], facts="; ".join(shown))
        return line

    def _losses(self, say: Any) -> Iterator[str]:
        """Yield what is lost in reading, in one line."""
        # What a fact says of the rows is listed as a loss too, in the same words up to the first stop.
        of_ratings = {fact["evidence"].partition(";")[0] for fact in self._repeats_of_ratings}
        losses = []
        for row in self.lossy:
            is_repeated = row["detail"].partition(",")[0] in of_ratings
            if row["what"] in ("mapped", "made") or is_repeated:
                continue
            detail = one_line(translated(row["detail"], self.lang), 80)
            loss = f"{detail} ({count(row['n'])})"
            losses.append(f"{row['column']}: {loss}" if row["column"] else loss)
        if losses:
            yield say("card.losses", names=listing(losses, most=5))

    def to_scenario(self, folder: str | os.PathLike[str] = ".") -> str:
        """Return a commented scenario of the file, for a YAML file in a folder.

        Raises
        ------
        RagnbError
            For a file that no scenario can name, and for a frame in memory.
        """
        if not self.path:
            raise RagnbError(
                "no scenario can be written for a frame in memory; save it as a CSV or Parquet file, and "
                "inspect that file"
            )
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


_FRAME = "frame"  # the variable that stands for a frame in memory, which has no path
_IN_SCENARIOS = ("scores", "traces", "ratings", "cases")
# The columns without which less can be said, by kind of file.
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
    low = _end_code(metric["low"])
    high = _end_code(metric["high"])
    options = ""
    for key in ("better", "kind", "role"):
        if key in metric:
            options += f", {key}={metric[key]!r}"
    return f"rn.Metric({metric['name']!r}, {low}, {high}{options})"


def _end_code(end: Any) -> str:
    """Return the Python for an end of a scale; one that somebody has to choose is the text ``?``."""
    if isinstance(end, str):
        return repr(end)
    return f"{end:g}"
