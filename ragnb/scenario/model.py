"""The settings of one run as one frozen model: checked, replaced, and written as YAML."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    PrivateAttr,
    StrictBool,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from ragnb.errors import RagnbError, listing, near_names, unknown
from ragnb.scenario.fields import (
    SOURCES,
    Allow,
    Bands,
    Baseline,
    Columns,
    Count,
    Encoding,
    File,
    Generation,
    Labels,
    Metrics,
    MetricWeights,
    Number,
    Pattern,
    System,
    Text,
    Weights,
    Where,
    as_sample,
    declared_metrics,
    distinct_gates,
    input_name,
    is_blank,
)
from ragnb.scenario.refusals import findings
from ragnb.scenario.source import Source, block, invisible
from ragnb.schema import (
    Frozen,
    Gate,
    Metric,
    Profile,
    Rubric,
    known_metric,
)
from ragnb.schema.secrets import masked


class Scenario(Frozen):
    """The settings of one run: which files, which metrics, which weights, which thresholds.

    Built by `load_scenario` from a YAML file, or in memory; paths then are relative to the working directory.

    Parameters
    ----------
    name, title : str, optional
        What the run is called; by default the name of the file.
    lang : {"en", "zh"}
    scores, traces, cases, ratings, gold : path, optional
        The input files; one of the first four or `documents` must be there. Scores and traces may be a pattern or
        a folder.
    documents : path, optional
        A folder of PDF, HTML, Markdown or text files, or a table of passages, to make questions of.
    generation : Generation
        How many ``questions``, which shares of them are ``unanswerable`` and ``multi_passage``, whose
        (``personas``).
    system : System
        What answers: ``retrieve`` and ``generate``, and what tries again (``improve``), each a function of the
        user.
    labels_planned : int, optional
        The most human labels of the ratings that will be bought; then the judge's verdict holds at every look.
    encoding, columns : str, mapping of str to str
        Of the input files; their column names → the names of ragnb.
    where : mapping of str to str, int, bool or float
        Only rows whose columns equal these values.
    doc, cluster : str
        The columns that hold a sample's document, and its cluster if that is another.
    rubric : Rubric, optional
        What the judge scores by: dimensions with weights, on which scale, with bands and anchors, and what passes.
        Its dimensions are metrics of the run.
    slices, metrics : sequence of str, of str or Metric, optional
        Columns to break the means down by, by default ``kind`` and ``language`` where they are there; what is
        averaged, by default every column that METRICS declares.
    metric_weights, doc_weights : mapping of str to float
        Finite, ≥ 0, not all 0; what is not named weighs 1.
    orient, rescale : bool
        Whether lower-is-better metrics are turned round in the total; whether metrics are scaled to 0–1 in it.
    level : float in (0, 1)
        Of the intervals.
    candidate : str, optional
        The system whose gates decide, where there are several; without it each system must pass.
    baseline : str or path, optional
        What the run is compared with: a system, or an earlier table of scores or folder of a run.
    anchor : str or path, optional
        The accepted run that later ones are compared with beside their `baseline`; ``ragnb accept`` sets it.
    expect : int, optional
        How many answers of each system the run should have.
    allow : Allow
        The shares of ``lines``, ``questions`` and ``cells`` that may be lost: by default 0, 0.05 and 0.1.
    blank : {"lost", "not_applicable"}
        What empty cells of all metrics are, where nothing in the file says: see `Metric`.
    sample : bool or float in (0, 1]
        Whether the traces are a sample on purpose, so that gold questions without a trace are expected; a share
        draws the sample here, by `sample_traces`.
    gates : sequence of Gate, optional
        None leaves the choice to the run, an empty list means none.
    undecided : {"value", "block", "pass"}
        What inconclusive gates do that do not say ``block`` or ``pass`` themselves: see `Gate`.
    documents_may_fail : bool
        Whether gates count in that whole documents may fail which nobody saw fail.
    corpus : {"sample", "complete"}
        Whether the documents are a sample of more, or the entire corpus: see `weighted_means`.
    no_data : {"fail", "skip"}
        What a gate without data does.
    refusal, patterns, partial : sequence of str
        The tokens an answer must equal, and the regular expressions it may match, to count as a refusal; those
        it may match to refuse in part, which counts as answered and is shown.
    split : {"space", "comma"}
        What parts the ids in a citation text.
    citations : {"auto", "list", "inline", "brackets", "parentheses", "lenticular", "footnotes", "links", "tags", \
"sources", "numbers"}
        Where citations are read: see `label_traces`.
    containment : {"auto", "latin"}
        How a claim is looked for in an answer.
    join : {"auto", "question"}
        How traces find their gold.
    bands : Bands
        Cut-offs of the weighted score, on 0–1.
    llm_profiles : mapping of {"judge", "answer", "dataset", "embeddings"} to Profile

    Raises
    ------
    RagnbError
        For settings that are not understood: all findings in one message, with the near names.

    Examples
    --------
    >>> Scenario.without_files(metric_weights={"faithfulness": 2}).metric_weights
    {'faithfulness': 2.0}
    """

    name: Text = "scenario"
    title: Text | None = None
    lang: Literal["en", "zh"] = "en"
    scores: File | None = None
    traces: File | None = None
    cases: File | None = None
    ratings: File | None = None
    labels_planned: Labels | None = None
    gold: File | None = None
    documents: File | None = None
    generation: Generation = Generation()
    system: System = System()
    encoding: Encoding = "utf-8"
    columns: Columns = Field(default_factory=dict)
    where: Where = Field(default_factory=dict)
    doc: Text = "doc_name"
    cluster: Text | None = None
    slices: tuple[Text, ...] | None = None
    rubric: Rubric | None = None
    metrics: Metrics | None = None
    metric_weights: MetricWeights = Field(default_factory=dict)
    doc_weights: Weights = Field(default_factory=dict)
    orient: StrictBool = True
    rescale: StrictBool = False
    level: Number = Field(default=0.95, gt=0, lt=1)
    candidate: Text | None = None
    baseline: Baseline | None = None
    anchor: Baseline | None = None
    expect: Count | None = None
    allow: Allow = Allow()
    blank: Literal["lost", "not_applicable"] = "lost"
    sample: Annotated[bool | float, PlainValidator(as_sample)] = False
    gates: Annotated[tuple[Gate, ...], AfterValidator(distinct_gates)] | None = None
    undecided: Literal["value", "block", "pass"] = "value"
    documents_may_fail: StrictBool = False
    corpus: Literal["sample", "complete"] = "sample"
    no_data: Literal["fail", "skip"] = "fail"
    refusal: tuple[Text, ...] = ("not in context",)
    patterns: tuple[Pattern, ...] = ()
    partial: tuple[Pattern, ...] = ()
    split: Literal["space", "comma"] = "space"
    citations: Literal[
        "auto",
        "list",
        "inline",
        "brackets",
        "parentheses",
        "lenticular",
        "footnotes",
        "links",
        "tags",
        "sources",
        "numbers",
    ] = "auto"
    containment: Literal["auto", "latin"] = "auto"
    join: Literal["auto", "question"] = "auto"
    bands: Bands = Bands()
    llm_profiles: dict[Literal["judge", "answer", "dataset", "embeddings"], Profile] = Field(
        default_factory=dict
    )
    _source: Source | None = PrivateAttr(default=None)
    _context: Mapping[str, Any] = PrivateAttr(default_factory=dict)

    def __init__(
        self,
        _context: Mapping[str, Any] | None = None,
        _source: Source | None = None,
        /,
        **settings: Any,
    ) -> None:
        message = ""
        # As BaseModel.__init__ does, which takes no context.
        try:
            self.__pydantic_validator__.validate_python(
                settings, self_instance=self, context=_context
            )
        except ValidationError as error:
            message = findings(error, _source, Scenario)
        # Raised outside of the `except`: what pydantic raises holds the input, and with it perhaps a key.
        if message:
            raise RagnbError(message)
        self._source = _source
        self._context = _context or {}

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: dict[str, Any]) -> dict[str, Any]:
        """A key without a value is a key left out; the first input file lends its name."""
        given = {key: value for key, value in data.items() if value is not None}
        inputs = [given[key] for key in SOURCES if isinstance(given.get(key), str | Path)]
        stem = input_name(inputs[0]) if inputs else ""
        # Nobody wrote this name into a key, so one that `Text` would refuse is not lent rather than refused.
        if stem.strip() and not invisible(stem):
            given.setdefault("name", stem)
        return given

    @model_validator(mode="after")
    def _has_input(self, info: ValidationInfo) -> Scenario:
        """Refuse settings without anything to evaluate, unless it is in memory already."""
        context = info.context or {}
        has_input = any(getattr(self, key) is not None for key in SOURCES)
        if not has_input and not context.get("without_files"):
            raise ValueError(
                f"a scenario needs at least one of {', '.join(SOURCES)}; add one, such as 'scores: my_scores.csv'"
            )
        return self

    @property
    def declared(self) -> dict[str, Metric]:
        """The metrics that it declares itself, by name: the dimensions of its rubric, and Metric objects."""
        return declared_metrics(self.rubric, self.metrics)

    @property
    def named_metrics(self) -> list[str]:
        """The metrics that its list, its weights and its gates name."""
        listed = [
            metric if isinstance(metric, str) else metric.name for metric in self.metrics or ()
        ]
        weighed = [name for name, weight in self.metric_weights.items() if weight > 0]
        gated = [gate.metric for gate in self.gates or ()]
        return list(dict.fromkeys([*listed, *weighed, *gated]))

    @classmethod
    def without_files(cls, **settings: Any) -> Scenario:
        """Return settings for a frame that is in memory already; no input file needs to be named.

        Examples
        --------
        >>> Scenario.without_files(lang="zh").scores is None
        True
        """
        return cls({"without_files": True}, **settings)

    @classmethod
    def of_file(
        cls, source: Source, data: Mapping[str, Any] | None = None, file: Path | None = None
    ) -> Scenario:
        """Return the settings of a file, which lends its name and its folder."""
        settings = dict(data or source.data)
        file = file or source.file
        if settings.get("name") is None:
            settings["name"] = file.stem
        return cls({"folder": file.parent.resolve()}, source, **settings)

    @property
    def path(self) -> Path | None:
        """The file it came from, absolute; None in memory."""
        if self._source:
            return Path(self._context["folder"]) / self._source.file.name
        return None

    @property
    def source(self) -> Source | None:
        """What was read of that file; None in memory."""
        return self._source

    @property
    def text(self) -> str | None:
        """The text of that file as it was read, line ends kept; None in memory."""
        if self._source:
            return self._source.text
        return None

    def replace(self, **overrides: Any) -> Scenario:
        """Return a new scenario with some settings changed, checked as the file was.

        Parameters
        ----------
        **overrides
            Any field. None or a blank text keeps the scenario's own value, and so does a None or blank in a
            mapping of weights. A mapping or list takes the place of the scenario's whole one. Paths are
            relative to the scenario's folder.

        Raises
        ------
        RagnbError
            For a name that is no field, with the near ones, or a value that the file could not hold.

        Examples
        --------
        >>> mine = Scenario.without_files(metric_weights={"faithfulness": 2})
        >>> mine.replace(metric_weights={"faithfulness": "", "context_recall": 0.5}).metric_weights
        {'faithfulness': 2.0, 'context_recall': 0.5}
        """
        # Only what was set, so that the new scenario, too, knows what is left to its default.
        settings = {
            key: getattr(self, key)
            for key in self.__pydantic_fields__
            if key in self.model_fields_set
        }
        for key, value in overrides.items():
            if key not in self.__pydantic_fields__:
                raise unknown("setting", masked(key), list(self.__pydantic_fields__))
            if is_blank(value):
                continue
            if key.endswith("_weights") and isinstance(value, Mapping):
                kept = {name: w for name, w in getattr(self, key).items() if name in value}
                given = {name: w for name, w in value.items() if not is_blank(w)}
                value = kept | given
            settings[key] = value
        # The weight of a metric of the file stays where `metrics=` leaves the metric out.
        declared = {*self._context.get("declared", ()), *self.declared}
        scenario = Scenario({**self._context, "declared": declared}, **settings)
        scenario._source = self._source
        return scenario

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """Show what was set, and no default."""
        for name in self.__pydantic_fields__:
            value = getattr(self, name)
            if name in self.model_fields_set and not is_blank(value):
                yield name, str(value) if isinstance(value, Path) else value

    def _repr_html_(self) -> str:
        text = "\n".join(f"{name}: {value}" for name, value in self.__repr_args__())
        return f"<pre>{escape(text)}</pre>"

    def snapshot_text(self, relative_to: str | Path | None = None) -> str:
        """Return YAML that gives these settings again when it is loaded: all of them, in a fixed order.

        Parameters
        ----------
        relative_to : path, optional
            The folder the text will are in; paths are written relative to it. By default the folder of the
            scenario's file, or the working directory.

        Examples
        --------
        >>> print(Scenario.without_files(title="报告", lang="zh").snapshot_text()[:33])
        name: scenario
        title: 报告
        lang: zh
        """
        if relative_to is not None:
            folder = Path(relative_to)
        else:
            folder = self._context.get("folder") or Path.cwd()
        tree = self.model_dump(exclude_none=True)
        # Without a weight that is left of a metric whose declaration an override replaced, see `replace`: loading
        # the text would refuse it.
        tree["metric_weights"] = {
            name: weight
            for name, weight in self.metric_weights.items()
            if name in self.declared or known_metric(name) is not None
        }
        for key, value in tree.items():
            if isinstance(value, Path):
                with suppress(ValueError):  # on another drive
                    value = Path(os.path.relpath(value, folder.resolve()))
                tree[key] = value.as_posix()
            elif key in ("metrics", "gates"):
                # An item is written on one line, without what it has by default.
                tree[key] = [
                    TypeAdapter(type(item)).dump_python(item, exclude_defaults=True)
                    for item in getattr(self, key)
                ]
        return block(tree)


def need_arguments(function: Callable[..., Any], settings: Mapping[str, Any]) -> None:
    """Refuse a keyword of a function that is neither a parameter of its own nor a field of `Scenario`.

    Examples
    --------
    >>> def standings(scores, *, margin=None, **settings): ...
    >>> need_arguments(standings, {"margn": 0.02})
    Traceback (most recent call last):
    ragnb.errors.RagnbError: standings() takes no argument 'margn'; did you mean 'margin'?
    """
    fields = [*Scenario.__pydantic_fields__]
    for name in settings:
        if name in fields:
            continue
        parameters = [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind is parameter.KEYWORD_ONLY
        ]
        near = near_names(masked(name), dict.fromkeys([*parameters, *fields]))
        if near:
            hint = f"did you mean {' or '.join(map(repr, near))}?"
        else:
            hint = f"it takes {listing(parameters or fields)} and what rn.Scenario has"
        raise RagnbError(f"{function.__name__}() takes no argument {masked(name)!r}; {hint}")
