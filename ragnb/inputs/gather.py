"""The files of a scenario → one scores frame: read, filtered, labelled, joined."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ragnb import texts
from ragnb.calibration import reading_of_rated
from ragnb.errors import RagnbError
from ragnb.inputs import streams
from ragnb.inputs.coverage import Coverage, gold_coverage
from ragnb.readers import (
    Reading,
    reading_of_cases,
    reading_of_gold,
    reading_of_scores,
    reading_of_traces,
)
from ragnb.readers.executors import on_spark
from ragnb.readers.streams import Stream, stream_scores, stream_spark
from ragnb.scenario import Scenario
from ragnb.schema import SharedPicks, note_row
from ragnb.traces import (
    RATES,
    Log,
    answer_counts,
    check_gold,
    citation_forms,
    join_report,
    labelled_and_joined,
    read_log,
    repeated_answers,
    sample_traces,
    with_ranks,
)
from ragnb.weights import column_names


@dataclass
class Inputs:
    """What was read.

    Attributes
    ----------
    frame : DataFrame or polars.LazyFrame
        One row per sample; a query where the rows are too many to hold.
    rows : int
    stream : Stream or None
        What keeps the rows of a query in reach.
    labelled, with_gold : bool
        Whether traces were labelled, and whether with gold.
    files : list of dict
        ``role, path, sha256, rows``.
    lines : list of dict
        ``role, lines, damaged`` of each file: how many records it should hold, and how many of them are damaged or
        lost. Of several files of one role, those of the worst.
    coverage : list of Coverage
        The questions of gold and of the cases that each system should have answered.
    read_rows : DataFrame of any engine, or None
        The rows as they were read, before `where` keeps some of them.
    cases : DataFrame or None
        The cases that scores or traces should have rows of; None where there are none, or the rows are a sample.
    lossy : list of dict
        ``role, what, column, detail, n``.
    join : dict
        The join report of the traces, empty without.
    gold : list of dict
        What `check_gold` finds to be not fine.
    repeated : dict of str to int
        Answers that several questions got word for word, without a right citation, and how many.
    steps : list of (step, rows)
        Where the rows came from.
    ratings : DataFrame or None
        What people and the judge gave, all of it: `where` keeps rows of a run, and a judge is one for all runs.
    log : Log or None
        What traces without gold say beside their rates.
    tools : dict of str to dict
        Metric → range, direction and threshold that a tool's layout brings.
    facts : list of dict
        ``role`` and, as the readers list it, ``metric, fact, value, evidence, open``.
    stages : list of dict
        Notes on tables of `ragnb evaluate` and `ragnb judge` that were not used, and on a sample of the traces.
    """

    frame: Any = field(default_factory=pd.DataFrame)
    rows: int = 0
    stream: Stream | None = None
    labelled: bool = False
    with_gold: bool = False
    files: list[dict[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    coverage: list[Coverage] = field(default_factory=list)
    read_rows: Any = None
    cases: pd.DataFrame | None = None
    lossy: list[dict[str, Any]] = field(default_factory=list)
    join: dict[str, Any] = field(default_factory=dict)
    gold: list[dict[Hashable, Any]] = field(default_factory=list)
    repeated: dict[str, int] = field(default_factory=dict)
    steps: list[tuple[str, int]] = field(default_factory=list)
    ratings: pd.DataFrame | None = None
    log: Log | None = None
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    facts: list[dict[str, Any]] = field(default_factory=list)
    stages: list[dict[str, str]] = field(default_factory=list)

    def read(
        self, role: str, reader: Callable[..., Reading], source: Any, **options: Any
    ) -> pd.DataFrame:
        """Read one input, and note what became of it."""
        reading = reader(source, **options)
        self.note_reading(role, reading)
        return reading.frame

    def note_reading(self, role: str, reading: Reading) -> None:
        """Take over what a reader says of an input."""
        self.note(role, reading.origin, reading.lossy, len(reading.frame))
        self.tools |= {row["metric"]: row for row in reading.metrics}
        self.facts += [{"role": role, **fact} for fact in reading.facts]

    def read_rated(self, scenario: Scenario, **how: Any) -> None:
        """Read the ratings, if a scenario names any."""
        if scenario.ratings is None:
            return
        reading = reading_of_rated(scenario.ratings, encoding=_encoding_of(scenario), **how)
        self.note_reading("ratings", reading)
        # Its attributes tell the card of the judge what the file lost.
        self.ratings = reading.with_attrs()

    def streamed(self, role: str, stream: Stream) -> Any:
        """Take rows that stay where they are, and return their query."""
        self.note(role, stream.origin, stream.lossy, stream.rows)
        self.stream = stream
        self.rows = stream.rows
        self.tools |= {row["metric"]: row for row in stream.metrics}
        self.facts += [{"role": role, **fact} for fact in stream.facts]
        return stream.frame

    def note(
        self, role: str, origin: Mapping[str, Any], lossy: Iterable[Mapping[str, Any]], rows: int
    ) -> None:
        """Record the origin of an input and how its rows were used."""
        if origin.get("path"):
            # The name alone, also of a Windows path.
            name = str(origin["path"]).replace("\\", "/").rsplit("/", 1)[-1]
            self.files.append(
                {
                    "role": role,
                    "path": name,
                    "sha256": origin.get("sha256"),
                    "rows": origin.get("rows"),
                }
            )
        if origin.get("lines") is not None:
            damaged = int(origin["damaged"])
            self.lines.append({"role": role, "lines": int(origin["lines"]), "damaged": damaged})
        self.lossy += [{"role": role, **row} for row in lossy]
        self.steps.append((f"read_{role}", rows))


def gather(
    scenario: Scenario, source: Any = None, *, gold: Any = None, log: bool = False
) -> Inputs:
    """Read the files of a scenario, or use the frame `source` in place of one: traces with gold, or as a `log`.

    `gold` is rows in memory in place of the scenario's gold file.
    """
    gold_source = scenario.gold if gold is None else gold
    inputs = Inputs()
    # A picked column has to be in one of the files, not in each of them.
    picks = SharedPicks(scenario.columns)
    options: dict[str, Any] = {"columns": picks or None, "encoding": _encoding_of(scenario)}
    scores_source = scenario.scores
    traces_source = scenario.traces
    if source is not None:
        scores_source, traces_source = source, None
        if log or gold_source is not None:
            scores_source, traces_source = None, source

    scores = None
    if scores_source is not None:
        scores = _scores(inputs, scenario, scores_source, options)
        have = column_names(scores)
        inputs.labelled = "label" in have and any(rate in have for rate in RATES)
        inputs.with_gold = inputs.labelled and "answerable" in have
    if traces_source is None and not isinstance(scenario.sample, bool):
        raise RagnbError(
            f"sample: {scenario.sample:g} is a share of the traces; name traces, or leave it out"
        )
    traces = None
    if traces_source is not None:
        gold_rows = None
        if gold_source is not None:
            gold_rows = inputs.read("gold", reading_of_gold, gold_source, **options)
            findings = check_gold(gold_rows, lang=scenario.lang)
            inputs.gold = findings.query("not fine").to_dict("records")
        if on_spark(traces_source):
            stream = stream_spark(traces_source, picks, reader="read_traces")
            read = inputs.streamed("traces", stream)
        else:
            read = inputs.read("traces", reading_of_traces, traces_source, **options)
        scored = [] if scores is None else streams.systems(scores)[1]
        traces = _labelled(inputs, scenario, read, gold_rows, scored)

    if scores is None and traces is None:
        inputs.frame = _only_cases(inputs, scenario, options)
    elif scenario.cases is not None and not scenario.sample:
        inputs.cases = inputs.read("cases", reading_of_cases, scenario.cases, **options)
    inputs.read_rated(scenario)
    # Only now that all files are read, a pick that none of them had is refused.
    picks.need_all()
    if scores is not None and traces is not None:
        inputs.frame = _joined(scores, traces)
    elif scores is not None:
        inputs.frame = scores
    elif traces is not None:
        inputs.frame = traces
    if inputs.stream is None:
        inputs.rows = len(inputs.frame)
    return inputs


def _encoding_of(scenario: Scenario) -> str | None:
    """Return the encoding that a scenario names; None for UTF-8, which readers take by themselves."""
    if scenario.encoding == "utf-8":
        return None
    return scenario.encoding


def _scores(inputs: Inputs, scenario: Scenario, scores: Any, options: Mapping[str, Any]) -> Any:
    """Return the scores that a run is of, as a query where they are too many to hold."""
    metrics = [*(scenario.metrics or ()), *scenario.declared.values()]
    stream = stream_scores(scores, metrics=metrics, **options)
    if stream is None:
        frame = inputs.read("scores", reading_of_scores, scores, metrics=metrics, **options)
        return _kept(inputs, "scores", scenario, frame)
    return _kept(inputs, "scores", scenario, inputs.streamed("scores", stream))


def _only_cases(inputs: Inputs, scenario: Scenario, options: dict[str, Any]) -> Any:
    if scenario.cases is None:
        ratings = ""
        if scenario.ratings:
            ratings = (
                f", or calibrate the judge on the ratings alone: ragnb calibrate {scenario.ratings}"
            )
        raise RagnbError(
            "the scenario names no scores and no traces, so there is nothing to assess; add one of them"
            f"{ratings}"
        )
    cases = inputs.read("cases", reading_of_cases, scenario.cases, **options)
    return _kept(inputs, "cases", scenario, cases)


def _kept(inputs: Inputs, role: str, scenario: Scenario, frame: Any) -> Any:
    """Keep the rows whose columns equal the scenario's `where`."""
    # Where there are scores and traces these are the scores, which are read first.
    if inputs.read_rows is None:
        inputs.read_rows = frame
    if scenario.where:
        frame, inputs.rows = streams.kept(frame, scenario.where, role)
        inputs.steps.append((f"kept_{role}", inputs.rows))
    return frame


def _labelled(
    inputs: Inputs, scenario: Scenario, read: Any, gold: pd.DataFrame | None, scored: Sequence[Any]
) -> Any:
    """Return the traces that `where` and `sample` keep, labelled; `scored` are the systems of the scores."""
    traces = _kept(inputs, "traces", scenario, read)
    # `sample` is a share, or False without one; True says that the rows are a sample already.
    if not isinstance(scenario.sample, bool):
        traces = _sampled(inputs, scenario, traces, scenario.sample)
    frame = labelled(inputs, scenario, traces, gold)
    if gold is not None:
        if not scenario.sample:
            inputs.coverage = gold_coverage(
                frame, read, gold, where=scenario.where, scored=scored, join=scenario.join
            )
        inputs.steps.append(("matched", int(inputs.join["n_matched"])))
    return frame


def _sampled(inputs: Inputs, scenario: Scenario, traces: Any, share: float) -> Any:
    """Return a share of the traces, and note how many that is."""
    n_traces = streams.size(traces)
    sample = sample_traces(traces, share=share)
    inputs.rows = streams.size(sample)
    if not inputs.rows:
        raise RagnbError(
            f"sample: {share:g} takes none of the {n_traces} traces; write a larger share"
        )
    inputs.steps.append(("sampled", inputs.rows))
    say = texts.load(scenario.lang)
    text = say("note.sampled", n=inputs.rows, all=n_traces, share=f"{100 * share:g}")
    inputs.stages.append(note_row("sampled", "traces", text))
    return sample


def labelled(inputs: Inputs, scenario: Scenario, traces: Any, gold: pd.DataFrame | None) -> Any:
    """Label traces, or cases that say themselves whether they are answerable."""
    frame: Any
    frame, report = labelled_and_joined(
        traces,
        gold=gold,
        refusal=scenario.refusal,
        patterns=scenario.patterns,
        partial=scenario.partial,
        split=scenario.split,
        citations=scenario.citations,
        containment=scenario.containment,
        join=scenario.join,
    )
    inputs.labelled = True
    inputs.with_gold = gold is not None or "answerable" in column_names(traces)
    if report is not None:
        inputs.join = report
    elif inputs.stream is not None:
        # Every number is read off these rows: Spark labels them once and keeps them.
        inputs.stream.close = frame.persist().unpersist
        inputs.join = join_report(traces, gold=gold, join=scenario.join) | answer_counts(frame)
        inputs.join["citations"] = citation_forms(frame)
    inputs.repeated = repeated_answers(frame)
    if inputs.with_gold and not on_spark(frame):
        frame = with_ranks(frame, scenario.named_metrics)
    if not inputs.with_gold and isinstance(frame, pd.DataFrame):
        frame, inputs.log = read_log(frame, scenario.level)
    return frame


def cases_of(scenario: Scenario) -> Any:
    """Return the cases of a scenario alone, filtered by ``where``."""
    only_cases = Scenario(
        cases=scenario.cases,
        columns=scenario.columns,
        encoding=scenario.encoding,
        where=scenario.where,
    )
    return gather(only_cases).frame


def not_in(frame: pd.DataFrame, other: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the rows of another frame whose keys are not in this one."""
    known = pd.MultiIndex.from_frame(frame[keys])
    return other[~pd.MultiIndex.from_frame(other[keys]).isin(known)]


def _joined(scores: Any, traces: Any) -> pd.DataFrame:
    """Join one row per sample: the columns of the scores, then those that only the traces have."""
    if not (isinstance(scores, pd.DataFrame) and isinstance(traces, pd.DataFrame)):
        raise RagnbError(
            "scores and traces are joined in memory, and one of them is too large for that; assess each of them "
            "alone, or join them into Parquet files first"
        )
    keys = [key for key in ("sample_id", "system") if key in scores and key in traces]
    for name, frame in (("scores", scores), ("traces", traces)):
        if "sample_id" not in keys or frame.duplicated(keys).any():
            raise RagnbError(
                f"scores and traces are joined by {' and '.join(keys) or 'sample_id'}, which is not unique in "
                f"the {name}; keep one system with where: {{system: ...}}, or give only one of the two files"
            )

    shared = [name for name in traces.columns if name in scores.columns and name not in keys]
    joined = scores.merge(traces.drop(columns=shared), on=keys, how="left", validate="1:1")
    without_score = not_in(scores, traces, keys)
    if len(without_score):
        return pd.concat([joined, without_score], ignore_index=True)
    return joined
