"""The sheet of a run: every small result frame, and how it is shown and saved."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragnb.calibration import CalibrationCard
from ragnb.diagnostics import gates_json, junit
from ragnb.errors import unknown
from ragnb.files import json_text, write_whole
from ragnb.markup import count
from ragnb.markup.blocks import Section
from ragnb.markup.rendering import render_fragment, render_markdown, render_page
from ragnb.readers import to_csv_text
from ragnb.scenario import Scenario
from ragnb.schema import TOTAL
from ragnb.sheet.documents import DocumentMeans, stacked
from ragnb.sheet.for_scripts import for_scripts
from ragnb.sheet.formatter import Formatter
from ragnb.sheet.heroes import sentence
from ragnb.sheet.kinds import order_of
from ragnb.sheet.sections import SECTIONS
from ragnb.sheet.sections.gates import cases
from ragnb.texts import counted, load
from ragnb.traces import Log
from ragnb.versions import versions

if TYPE_CHECKING:
    from ragnb.comparison.simplex import WeightMap
    from ragnb.weights import Noise


# The frames that have a column ``system`` where there are several.
_BY_SYSTEM = (
    "means",
    "spread",
    "diagnoses",
    "modes",
    "operations",
    "outcomes",
    "label_counts",
    "slices",
    "turns",
    "retrieval",
    "retrieval_by_step",
)
# Not in the output of a notebook cell.
_FOLDED = ("judge", "questions", "run", "glossary")


@dataclass(frozen=True, repr=False)
class Assessment:
    """Every small result frame of one run, made by `assess`.

    Attributes
    ----------
    scenario : Scenario
        The settings that were used, overrides included.
    scores : DataFrame
        The rows, weighed: ``weighted_score``, ``sample_weight``; with traces also their labels and rates. Of rows
        too many to hold (see `assess`) only those that the sheet shows: the 1,000 worst by weighted score, and
        the worst samples of the diagnoses. No number of the sheet is computed from them.
    rows : int
        How many rows the sheet is about.
    spread : DataFrame
        ``[system,] metric, bin_low, bin_high, n, n_low, n_high, n_missing, n_failed, n_not_applicable``: how many
        rows score in each tenth of a metric's range and at its very ends, and how many have no score.
    means : DataFrame
        As `weighted_means` gives it: the metrics, the rates, last ``weighted_score``.
    systems, common : DataFrame or None
        Where there are several systems, which are never pooled, ``means``, ``diagnoses``, ``modes``, ``outcomes``,
        ``documents`` and ``slices`` have a first column ``system``, and ``systems`` is ``means``; ``common`` is
        the same on the questions that all of them answered, where they did not answer the same ones; how many
        those are is ``common_questions``.
    slices : DataFrame or None
        The same by the groups of the scenario's slices: ``slice, group`` and the columns of means.
    diagnoses, modes : DataFrame
        As `diagnose` and ``diagnostics.failure_summary`` give them.
    outcomes : DataFrame or None
        ``label, meaning, n, share`` of labelled traces.
    label_counts : DataFrame or None
        ``slice, group, label, n``: the same by the groups of the slices, and by document.
    gates : DataFrame
        As `check_gates` gives it, a row a gate and system, after them the gates on completeness (see
        ``diagnostics.completeness``).
    account : DataFrame
        ``stage, subject, system, expected, seen, lost, reason, failed, not_applicable, decides, worst, best``:
        what was expected and what came, from the ``lines`` of the files over ``questions`` and ``answers`` to the
        ``cells`` of each metric and the ``total``; ``expected = seen + lost``. ``decides``: a gate or the total
        uses it.
        ``worst, best``: the mean if all that is lost were wrong, and of a metric if all of it were right.
    calibration : CalibrationCard or None
        Of the scenario's ratings; None without.
    comparison : DataFrame or None
        Beside the scenario's ``baseline``, as `compare` gives it; `report` names the previous run where the
        scenario names none.
    operations_compared : DataFrame or None
        What the answers took beside those of the ``baseline``, as `compare_operations` gives it.
    accepted : DataFrame or None
        Beside the scenario's ``anchor``, the accepted run, in the same form; None where that is the baseline.
    ladder : DataFrame or None
        Of several systems without candidate and baseline: the one with the best score beside each other one, as
        `compare` gives it, Holm's correction over the pairs.
    noise : Noise or None
        Where the uncertainty comes from, as `ragnb.noise` splits it, of rows with a column ``repeat``.
    turns : DataFrame or None
        ``[system,] metric, slope, low, high, p, p_holm, n, n_conversations, level``: by how much each metric
        changes from turn to turn within a conversation, of rows with columns of conversations and turns, such as
        ``conversation_id`` and ``turn``; their means by turn are in `slices`.
    retrieval, retrieval_by_step : DataFrame or None
        Hit rate, recall, precision, nDCG, MRR and MAP of traces whose gold names passages, as `ragnb.retrieval`
        gives them; the second of each search alone, where questions were searched for several times.
    weightings : tuple of WeightMap
        Of the pairs of `ladder`: at which weights of the metrics which system leads.
    changed : DataFrame or None
        Of one candidate beside its baseline, one row a common question: ``sample_id`` (or what tells questions),
        ``before, now`` (its score that decides), ``before_label, now_label`` of traces with gold, ``before_answer,
        now_answer``, and ``change``: ``fixed`` and ``broken`` where the answer turned right or wrong, else
        ``better, worse, same``.
    notes : DataFrame
        ``code, about, text``: what a reader must know before believing the numbers.
    ledger : DataFrame
        ``step, rows``: where the rows came from and where they went.
    inputs : list of dict
        ``role, path, sha256, rows`` of the files read.
    passing : DataFrame or None
        ``system, metric, threshold, k, n, share, low, high, bias, k_unbiased, score, score_low, score_high``: how
        many answers pass the rubric of a judge, how many would once its bias against labels of people is taken
        off, and the weighted score of the rubric on its own scale. None without a rubric.
    operations : DataFrame or None
        ``metric, n, mean, median, p95`` of each latency, number of tokens and cost, and of errors the mean, each
        with its ends ``_low, _high``; None where no column is one.
    left_out : mapping of column to str
        The columns that the table offers as metrics and that do not count, where nobody chose the metrics: what is
        not known of each (``direction, scale``), or that it is not ``declared``.
    of_documents : mapping of system to DocumentMeans
        From which `documents` are made.
    log : Log or None
        Of traces without gold: ``patterns, daily, to_label``, the last a gold file to fill in.
    only : str or None
        The one of several systems whose frames these are, after `of_system`.

    Examples
    --------
    >>> from ragnb import assess
    >>> sheet = assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]}))
    >>> sheet.means["metric"].tolist()
    ['faithfulness', 'weighted_score']
    """

    scenario: Scenario
    scores: pd.DataFrame
    rows: int
    spread: pd.DataFrame
    means: pd.DataFrame
    systems: pd.DataFrame | None
    common: pd.DataFrame | None
    common_questions: int
    slices: pd.DataFrame | None
    diagnoses: pd.DataFrame
    modes: pd.DataFrame
    outcomes: pd.DataFrame | None
    label_counts: pd.DataFrame | None
    gates: pd.DataFrame
    account: pd.DataFrame
    notes: pd.DataFrame
    ledger: pd.DataFrame
    inputs: list[dict[str, Any]]
    calibration: CalibrationCard | None = None
    operations: pd.DataFrame | None = None
    passing: pd.DataFrame | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    of_documents: Mapping[str | None, DocumentMeans] = field(default_factory=dict)
    comparison: pd.DataFrame | None = None
    operations_compared: pd.DataFrame | None = None
    accepted: pd.DataFrame | None = None
    noise: Noise | None = None
    turns: pd.DataFrame | None = None
    retrieval: pd.DataFrame | None = None
    retrieval_by_step: pd.DataFrame | None = None
    ladder: pd.DataFrame | None = None
    weightings: tuple[WeightMap, ...] = ()
    changed: pd.DataFrame | None = None
    log: Log | None = None
    only: str | None = None

    @cached_property
    def verdict(self) -> str:
        """The answer to "is it good enough?" with its reason and the overall score, as the page begins."""
        return sentence(Formatter(self))

    @cached_property
    def documents(self) -> pd.DataFrame | None:
        """The means by document; rows of one document are the clusters of its own interval.

        Made when they are first asked for: of a million documents they are millions of rows.
        """
        tables = {
            name: means.table() if means.names else None
            for name, means in self.of_documents.items()
        }
        table: pd.DataFrame | None = stacked(tables)
        return table

    @property
    def streamed(self) -> bool:
        """Whether `scores` holds only some of the rows."""
        return len(self.scores) < self.rows

    @property
    def blocked(self) -> bool:
        """Whether a gate blocks."""
        return bool(self.gates["blocks"].any())

    @property
    def incomplete(self) -> bool:
        """Whether more input lines are damaged or lost than ``allow:`` accepts."""
        return bool((self.gates["reason"] == "incomplete").any())

    @property
    def shown_system(self) -> str | None:
        """The system that a page shows in detail: `only`, the candidate, what gates block most, or the best."""
        if self.systems is None or self.only is not None:
            return self.only
        # The ladder is of the best system; it is there only where nobody named a candidate.
        if self.ladder is not None and not self.gates["blocks"].any():
            return str(self.ladder["candidate"].iloc[0])
        if self.scenario.candidate:
            return self.scenario.candidate
        n_blocking = self.gates.groupby("system")["blocks"].sum()
        totals = self.systems[self.systems["metric"] == TOTAL]
        # Negative, so that most blocking gates come first, and of as many the lowest score.
        order = totals.assign(blocks=-totals["system"].map(n_blocking).fillna(0))
        worst = order.sort_values(["blocks", "value"], kind="stable")["system"].iloc[0]
        return str(worst)

    def of_system(self, name: str) -> Assessment:
        """Return the same run with the frames of one system alone, which its pages show in detail.

        Raises
        ------
        RagnbError
            For a name that is none of the systems.

        Examples
        --------
        >>> from ragnb import assess
        >>> scores = pd.DataFrame({"question": ["x", "x"], "faithfulness": [1.0, 0.8], "system": ["a", "b"]})
        >>> assess(scores).of_system("b").means["value"].tolist()
        [0.8, 0.8]
        """
        names = []
        if self.systems is not None and self.only is None:
            names = self.systems["system"].unique().tolist()
        if name not in names:
            raise unknown("system", name, names)
        frames: dict[str, Any] = {}
        for key in _BY_SYSTEM:
            frame = getattr(self, key)
            if frame is not None:
                of_one = frame[frame["system"] == name]
                frames[key] = of_one.drop(columns="system").reset_index(drop=True)
        if name in self.of_documents:
            frames["of_documents"] = {None: self.of_documents[name]}
        return replace(self, **frames, only=name)

    def __repr__(self) -> str:
        return f"Assessment({self.verdict!r}, {self.rows} rows, {len(self.notes)} notes)"

    def sections(self, *keys: str) -> list[Section]:
        """Return the sections of the sheet that have something to say, in reading order.

        Parameters
        ----------
        *keys : str
            Of ``summary, missing, causes, earlier, suggestions, fix, metrics, judged, gates, outcomes, retrieval,
            label, wording, comparison, losses, weights, broken, fixed, documents, turns, judge, noise, questions,
            run, glossary``; by default those of the kind of the run, in their order.

        Raises
        ------
        RagnbError
            For a key that is none of these.

        Examples
        --------
        >>> from ragnb import assess
        >>> sheet = assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]}))
        >>> [section.key for section in sheet.sections("metrics", "gates")]
        ['metrics', 'gates']
        """
        for key in keys:
            if key not in SECTIONS:
                raise unknown("section", key, SECTIONS)
        writer = Formatter(self)
        every = [SECTIONS[key](writer) for key in keys or order_of(writer)]
        return [section for section in every if section is not None]

    def section(self, key: str) -> Section | None:
        """Return one section, which shows itself in a notebook and prints as Markdown; None where it is empty.

        Examples
        --------
        >>> from ragnb import assess
        >>> sheet = assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]}))
        >>> sheet.section("metrics").name
        'Metrics'
        """
        return next(iter(self.sections(key)), None)

    @property
    def title(self) -> str:
        """What the run is called."""
        scenario = self.scenario
        if scenario.title:
            return scenario.title
        # A scenario always has a name; one that nobody gave says nothing to a reader.
        if "name" in scenario.model_fields_set and scenario.name:
            return scenario.name
        return load(scenario.lang)("sheet.title")

    def _repr_html_(self) -> str:
        shown = [key for key in order_of(Formatter(self)) if key not in _FOLDED]
        return render_fragment(self.sections(*shown))

    def to_html(self) -> str:
        """Return the whole page, which opens from a file and asks no host."""
        lang = self.scenario.lang
        say = load(lang)
        n_docs = len({name for means in self.of_documents.values() for name in means.names})
        # Each system answers each question.
        key = "sheet.questions" if self.systems is None else "sheet.answers"
        facts = [f"{datetime.now(UTC):%Y-%m-%d}", counted(say, key, count(self.rows))]
        if n_docs:
            facts.append(counted(say, "sheet.documents", count(n_docs)))
        return render_page(self.sections(), title=self.title, facts=facts, lang=lang)

    def to_markdown(self) -> str:
        """Return the sheet as Markdown, without times and machine paths: equal input gives equal text.

        A script finds the means below "## Metric means", a line a metric, and of traces with a gold set a row a
        question below "## Labels by question": ``qid | answered | hit | refusal | label``.

        Examples
        --------
        >>> from ragnb import assess
        >>> sheet = assess(pd.DataFrame({"faithfulness": [1.0, 0.8, 0.9], "doc_name": ["a", "b", "c"]}), gates=[])
        >>> next(line for line in sheet.to_markdown().splitlines() if line.startswith("- faith"))[:28]
        '- faithfulness: 0.9000 (w=1)'
        """
        sections = [section for section in self.sections() if section.key != "glossary"]
        return render_markdown(for_scripts(Formatter(self), sections), title=self.title)

    def to_junit(self) -> str:
        """Return the gates as a JUnit XML test suite: one that blocks fails, one that is not decided is skipped.

        Examples
        --------
        >>> from ragnb import assess
        >>> sheet = assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]}))
        >>> sheet.to_junit()[:22]
        '<?xml version="1.0" en'
        """
        return junit(self.scenario.name, cases(Formatter(self)))

    def save(
        self, folder: str | os.PathLike[str], *, command: str | None = None
    ) -> dict[str, Path]:
        """Write the page and the tables of the run into a folder; each file appears whole or not at all.

        Parameters
        ----------
        folder : path
            Made if it is not there.
        command : str, optional
            What was called, for ``run.json``.

        Returns
        -------
        dict of name to path
            ``scores.csv, means.csv, gates.json, gates.junit.xml, report.html, report.md, run.json,
            scenario.snapshot.yaml``; ``worst.csv`` in the place of ``scores.csv`` where the rows were too many to
            hold; with ratings also ``calibration.json, calibration.md``; of a log ``log_daily.csv, to_label.csv``.

        Examples
        --------
        >>> import tempfile
        >>> from ragnb import assess
        >>> sheet = assess(pd.DataFrame({"faithfulness": [1.0, 0.8], "doc_name": ["a", "b"]}))
        >>> sorted(sheet.save(tempfile.mkdtemp()))[:4]
        ['gates.json', 'gates.junit.xml', 'means.csv', 'report.html']
        """
        result = {
            "blocked": self.blocked,
            "verdict": self.verdict,
            "overall": _overall(self),
            "judge": None if self.calibration is None else self.calibration.verdict,
        }
        snapshot = self.scenario.snapshot_text(relative_to=Path(folder))
        result["settings_sha256"] = sha256(snapshot.encode("utf-8")).hexdigest()
        texts = {
            "worst.csv" if self.streamed else "scores.csv": to_csv_text(self.scores),
            "means.csv": to_csv_text(self.means),
            "gates.json": gates_json(self.gates, account=self.account),
            "gates.junit.xml": self.to_junit(),
            "report.html": self.to_html(),
            "report.md": self.to_markdown(),
            "scenario.snapshot.yaml": snapshot,
            "run.json": json_text(run_record(self.scenario, self.inputs, command, **result)),
        }
        if self.calibration is not None:
            texts["calibration.json"] = json_text(self.calibration.to_dict())
            texts["calibration.md"] = self.calibration.to_markdown()
        if self.log is not None:
            texts["log_daily.csv"] = to_csv_text(self.log.daily)
            texts["to_label.csv"] = "\ufeff" + to_csv_text(self.log.to_label)
        return {name: write_whole(Path(folder) / name, text) for name, text in texts.items()}


def run_record(
    scenario: Scenario, inputs: Any, command: str | None = None, **result: Any
) -> dict[str, Any]:
    """Return how a run was made (versions, input hashes, settings, command, time), and its result."""
    record = versions()
    return {
        "ragnb": record.pop("ragnb"),
        "python": record.pop("python"),
        "packages": record,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "scenario": scenario.name,
        "inputs": inputs,
        "weights": {"metric_weights": scenario.metric_weights, "doc_weights": scenario.doc_weights},
        **result,
    }


def _overall(sheet: Assessment) -> dict[str, Any]:
    """Return the weighted score as JSON holds it: what is not there is null."""
    row = Formatter(sheet).rows[TOTAL]
    low = _finite(row["range_low"])
    high = _finite(row["range_high"])
    return {
        "value": _finite(row["value"]),
        "low": _finite(row["low"]),
        "high": _finite(row["high"]),
        "n": int(row["n"]),
        "n_clusters": int(row["n_clusters"]),
        "range": None if None in (low, high) else [low, high],
    }


def _finite(value: float) -> float | None:
    """Return a number that JSON can hold; None for one that is missing or infinite."""
    if math.isfinite(value):
        return float(value)
    return None
