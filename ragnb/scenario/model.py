"""The settings of one run as one frozen model: each key with its check and its default."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    StrictBool,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from ragnb.errors import RagnbError, unknown
from ragnb.scenario import checks, kinds, refusals
from ragnb.scenario.snapshot import dump
from ragnb.scenario.source import Source
from ragnb.scenario.words import invisible
from ragnb.schema import METRICS, Anchor, Dimension, Gate, Metric, Profile, Rubric, masked

SOURCES = ("scores", "traces", "cases", "ratings")


class Scenario(BaseModel):
    """The settings of one run: which files, which metrics, which weights, which bars.

    Built by `load_scenario` from a YAML file, or in memory; paths then are relative to the working directory.

    Parameters
    ----------
    name, title : str, optional
        What the run is called; by default the name of the file.
    lang : {"en", "zh"}
    scores, traces, cases, ratings, gold : path, optional
        The input files; one of the first four must be there. Scores and traces may be a pattern or a folder.
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
    damaged : Damaged
        ``allow``: the share of damaged or lost input lines that is accepted, 0 by default.
    sample : bool
        Whether the traces are a sample on purpose, so that gold questions without a trace are expected.
    gates : sequence of Gate, optional
        None leaves the choice to the run, an empty list means none.
    no_data : {"fail", "skip"}
        What a gate without data does.
    refusal, patterns, partial : sequence of str
        The tokens an answer must equal, and the regular expressions it may match, to count as a refusal; those
        it may match to refuse in part, which counts as answered and is shown.
    split : {"space", "comma"}
        What parts the ids in a citation text.
    containment : {"auto", "latin"}
        How a claim is looked for in an answer.
    join : {"auto", "question"}
        How traces find their gold.
    bands : Bands
        Cut-offs of the weighted score, on 0–1.
    llm_profiles : mapping of {"judge", "answer", "dataset"} to Profile

    Raises
    ------
    RagnbError
        For settings that are not understood: all findings in one message, with the near names.

    Examples
    --------
    >>> Scenario.without_files(metric_weights={"faithfulness": 2}).metric_weights
    {'faithfulness': 2.0}
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    name: kinds.Text = "scenario"
    title: kinds.Text | None = None
    lang: Annotated[str, Field(strict=True), AfterValidator(checks.language)] = "en"
    scores: kinds.Files | None = None
    traces: kinds.Files | None = None
    cases: kinds.File | None = None
    ratings: kinds.File | None = None
    gold: kinds.File | None = None
    encoding: Annotated[str, Field(strict=True), AfterValidator(checks.text_encoding)] = "utf-8"
    columns: kinds.Columns = Field(default_factory=dict)
    where: kinds.Where = Field(default_factory=dict)
    doc: kinds.Text = "doc_name"
    cluster: kinds.Text | None = None
    slices: tuple[kinds.Text, ...] | None = None
    rubric: Rubric | None = None
    metrics: Annotated[kinds.Metrics | None, BeforeValidator(checks.no_weights)] = None
    metric_weights: kinds.MetricWeights = Field(default_factory=dict)
    doc_weights: kinds.Weights = Field(default_factory=dict)
    orient: StrictBool = True
    rescale: StrictBool = False
    level: kinds.Number = Field(default=0.95, gt=0, lt=1)
    candidate: kinds.Text | None = None
    damaged: kinds.Damaged = kinds.Damaged()
    sample: StrictBool = False
    gates: Annotated[tuple[kinds.GateRow, ...], AfterValidator(checks.distinct_gates)] | None = None
    no_data: Literal["fail", "skip"] = "fail"
    refusal: tuple[kinds.Text, ...] = ("not in context",)
    patterns: tuple[kinds.Pattern, ...] = ()
    partial: tuple[kinds.Pattern, ...] = ()
    split: Literal["space", "comma"] = "space"
    containment: Literal["auto", "latin"] = "auto"
    join: Literal["auto", "question"] = "auto"
    bands: kinds.Bands = kinds.Bands()
    llm_profiles: dict[Literal["judge", "answer", "dataset"], kinds.ProfileRow] = Field(default_factory=dict)
    _source: Source | None = PrivateAttr(default=None)
    _context: Mapping[str, Any] = PrivateAttr(default_factory=dict)

    def __init__(self, **settings: Any) -> None:
        self._fill(settings, None, {})

    def _fill(self, settings: Mapping[str, Any], source: Source | None, context: Mapping[str, Any]) -> None:
        """Validate into this object; what is refused leaves as one RagnbError that holds no input."""
        message = ""
        try:
            self.__pydantic_validator__.validate_python(dict(settings), self_instance=self, context=context)
        except ValidationError as error:
            message = refusals.word(error, _OWNERS, source)
        if message:
            raise RagnbError(message)
        self._source, self._context = source, context

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: dict[str, Any]) -> dict[str, Any]:
        """A key without a value is a key left out; the first input file lends its name."""
        given = {key: value for key, value in data.items() if value is not None}
        first = next((given[key] for key in SOURCES if isinstance(given.get(key), str | Path)), None)
        stem = checks.stem(first) if first is not None else ""
        if stem.strip() and not invisible(stem):
            given.setdefault("name", stem)
        return given

    @model_validator(mode="after")
    def _has_input(self, info: ValidationInfo) -> Scenario:
        needed = not (info.context or {}).get("without_files")
        if needed and all(getattr(self, key) is None for key in SOURCES):
            raise ValueError(
                f"a scenario names at least one of {', '.join(SOURCES)}; add one, such as 'scores: my_scores.csv'"
            )
        return self

    @property
    def declared(self) -> dict[str, Metric]:
        """The metrics that it declares itself, by name: the dimensions of its rubric, and Metric objects."""
        own = [m for m in self.metrics or () if isinstance(m, Metric)]
        return {m.name: m for m in (*(self.rubric.metrics if self.rubric else ()), *own)}

    @classmethod
    def without_files(cls, **settings: Any) -> Scenario:
        """Return settings for a frame that is in memory already; no input file needs to be named.

        Examples
        --------
        >>> Scenario.without_files(lang="zh").scores is None
        True
        """
        return cls._made(settings, None, {"without_files": True})

    @classmethod
    def _made(cls, settings: Mapping[str, Any], source: Source | None, context: Mapping[str, Any]) -> Scenario:
        scenario = cls.__new__(cls)
        scenario._fill(settings, source, context)
        return scenario

    @classmethod
    def _of_file(cls, data: Mapping[str, Any], source: Source, file: Path) -> Scenario:
        """Make the settings of a file, which lends its name; an error leaves the frames with its text behind."""
        name = {} if data.get("name") is not None else {"name": file.stem}
        try:
            return cls._made({**data, **name}, source, {"folder": file.parent.resolve()})
        except RagnbError as error:
            message = str(error)
        raise RagnbError(message)

    @property
    def path(self) -> Path | None:
        """The file it came from, absolute; None in memory."""
        return self._context["folder"] / self._source.file.name if self._source else None

    @property
    def text(self) -> str | None:
        """The text of that file as it was read, line ends kept; None in memory."""
        return self._source.text if self._source else None

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
        settings = {key: getattr(self, key) for key in self.__pydantic_fields__ if key in self.model_fields_set}
        for key, value in overrides.items():
            if key not in self.__pydantic_fields__:
                raise unknown("override", masked(key), list(self.__pydantic_fields__))
            if not checks.blank(value):
                settings[key] = checks.filled(value, getattr(self, key)) if key.endswith("_weights") else value
        # The weight of a metric of the file stays where `metrics=` leaves the metric out.
        once = {"declared": {*self._context.get("declared", ()), *self.declared}}
        made = self._made(settings, None, {**self._context, **once})
        made._source = self._source
        return made

    def snapshot_text(self, relative_to: str | Path | None = None) -> str:
        """Return YAML that gives these settings again when it is loaded: all of them, in a fixed order.

        Parameters
        ----------
        relative_to : path, optional
            The folder the text will lie in; paths are written relative to it. By default the folder of the
            scenario's file, or the working directory.

        Examples
        --------
        >>> print(Scenario.without_files(title="报告", lang="zh").snapshot_text()[:33])
        name: scenario
        title: 报告
        lang: zh
        """
        folder = Path(relative_to) if relative_to is not None else self._context.get("folder") or Path.cwd()
        settings = {key: getattr(self, key) for key in self.__pydantic_fields__}
        known = {*METRICS, *self.declared}
        settings["metric_weights"] = {k: v for k, v in self.metric_weights.items() if k in known}
        return dump(settings, folder.resolve())


_OWNERS: Mapping[str, type[Any]] = {
    "": Scenario, "metrics": Metric, "gates": Gate, "bands": kinds.Bands, "damaged": kinds.Damaged,
    "llm_profiles": Profile, "rubric": Rubric, "rubric.dimensions": Dimension, "rubric.anchors": Anchor,
    "rubric.passing": Gate,
}  # fmt: skip
