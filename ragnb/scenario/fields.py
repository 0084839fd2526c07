"""What the keys of a scenario take: their types, their checks, and the classes below them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    ValidationInfo,
    model_validator,
)

from ragnb.errors import MOST_COUNTED, did_you_mean
from ragnb.files import is_pattern, matched
from ragnb.scenario.source import flow, invisible, nfc
from ragnb.schema import METRICS, Frozen, Metric, Rubric, known_metric, refuse
from ragnb.schema.secrets import masked, shown

# The keys that name an input; the first one that is given lends the scenario its name.
SOURCES = ("scores", "traces", "cases", "ratings", "documents")
_MOST_NAMES = 10_000  # of a folder, in which names near to the given one are looked for


def _visible(value: str) -> str:
    """Take text in which there is something to see, and nothing that cannot be seen."""
    if not value.strip():
        raise ValueError("is blank; write a word or leave the key out")
    unseen = invisible(value)
    if unseen:
        raise ValueError(f"contains invisible characters ({', '.join(unseen)}); retype it")
    return value


def _number(value: Any) -> Any:
    """Return a Decimal as a float; what else there is, a strict field refuses itself."""
    # A signaling NaN cannot become a float.
    if isinstance(value, Decimal) and not value.is_snan():
        return float(value)
    return value


def _with_ratings(labels: int, info: ValidationInfo) -> int:
    """Take a number of planned labels only beside ratings."""
    # `info.data` lacks a field that was refused: that refusal says enough.
    if info.data.get("ratings", "") is None:
        raise ValueError(
            "needs ratings, and none are given; name their file (ratings:), or remove the key"
        )
    return labels


def _distinct_keys(values: dict[str, Any]) -> dict[str, Any]:
    """Take a mapping without two spellings of one name."""
    # YAML refuses these itself: this is for settings that are made in Python.
    first: dict[str, str] = {}
    for key in values:
        if first.setdefault(nfc(key), key) != key:
            raise refuse("the name appears twice, in two Unicode spellings; keep one", key)
    return values


def _distinct_targets(columns: dict[str, str]) -> dict[str, str]:
    """Take columns of which no two become one."""
    first: dict[str, str] = {}
    for theirs, ours in columns.items():
        if first.setdefault(ours, theirs) != theirs:
            raise refuse(f"{shown(first[ours])} becomes {shown(ours)} too; pick one", theirs)
    return columns


def distinct_gates(gates: tuple[Any, ...]) -> tuple[Any, ...]:
    """Take gates of different names."""
    names = [gate.name for gate in gates]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise refuse(f"another gate is named {shown(name)}; rename one of them", i, "name")
    return gates


def _comparable(value: Any) -> str | int | bool | float:
    """Take what a column can be compared with."""
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(
        f"{shown(value)} cannot be compared with a column; write text, a number, true or false"
    )


def as_sample(value: Any) -> bool | float:
    """Take whether the traces are a sample, or the share that makes one of them."""
    share = _number(value)
    # True equals 1 and is another answer: the traces are a sample already.
    if isinstance(share, bool) or (isinstance(share, int | float) and 0 < share <= 1):
        return share
    raise ValueError(
        f"{shown(value)} is neither true, false nor a share above 0 and up to 1, such as 0.01"
    )


def _encoding(value: str) -> str:
    """Take an encoding that this Python knows and that makes text."""
    # Some codecs, such as rot13 and base64, are no encodings of text: `str.encode` refuses them.
    try:
        "a".encode(value)
    except (LookupError, ValueError):
        known = ["utf-8", "gb18030", "gbk", "big5", "utf-16", "latin-1", "shift_jis"]
        raise ValueError(
            f"{shown(value)} is not a text encoding; {did_you_mean(value, known)}"
        ) from None
    return value


def _pattern(value: str) -> str:
    """Take a regular expression of the linear-time engine that reads the answers: no pattern can hang it."""
    import polars as pl  # takes long to import, and few scenarios have a pattern

    if not value.strip():
        raise ValueError("is blank and would match every answer; remove it")
    try:
        pl.Series(["a"]).str.contains(f"(?i)(?:{value})")
    except pl.exceptions.PolarsError as error:
        # Its message shows the pattern, with an arrow below, before the line that says why.
        reason = re.search(
            r"^(?:error: |regex error: (?!regex parse))(.*)$", str(error), re.MULTILINE
        )
        why = reason[1] if reason else "it is not a regular expression"
        raise ValueError(
            f"{shown(value)} is not supported ({why}); look-around, back-references and very large "
            "repeats are excluded because they can hang"
        ) from None
    return value


def _baseline(value: Any, info: ValidationInfo) -> Any:
    """Resolve a baseline that is a file or the folder of a run; else it names a system or a scenario."""
    if not isinstance(value, str | Path) or not str(value).strip():
        raise ValueError(
            f"{shown(value)} is not a baseline; name a system, or a file or run to compare with"
        )
    path = _folder(info) / value
    # Unlike `Path.exists`, this is also False for a name that is too long for a path.
    if os.path.exists(path):
        return path.resolve()
    return str(value)


def _folder(info: ValidationInfo) -> Path:
    """Return the folder to which paths are relative: that of the scenario's file, else the working directory."""
    context = info.context or {}
    folder: Path = context.get("folder") or Path.cwd()
    return folder


def _input_file(value: Any, info: ValidationInfo) -> Path:
    """Resolve a path against the scenario's folder; what is not there is refused with near names."""
    if isinstance(value, list | tuple | set):
        raise ValueError(
            "is a list of files; name one file, or a pattern such as 'scores/*.parquet'"
        )
    if not isinstance(value, str | Path) or not str(value).strip() or invisible(str(value)):
        given = str(value) if isinstance(value, Path) else value
        raise ValueError(
            f"{shown(given)} is not a path; name one file, relative to the scenario's folder"
        )
    folder = _folder(info)
    may_be_several = info.field_name in ("scores", "traces")
    may_be_folder = info.field_name == "documents"
    path = folder / value
    is_folder = False
    names = None  # of the files beside it, or in it; None where there is no such folder
    # OSError: there is no such folder, it may not be read, or a name is too long. RuntimeError: a link leads to
    # itself.
    with suppress(OSError, RuntimeError):
        # A link keeps its own name, which tells the format.
        path = path.parent.resolve() / path.name
        if path.is_file() or (may_be_folder and path.is_dir()):
            return path
        if may_be_several and is_pattern(path) and matched(path):
            return path
        is_folder = path.is_dir()
        looked_in = path if is_folder else path.parent
        names = sorted(entry.name for entry in os.scandir(looked_in))[:_MOST_NAMES]
    given = masked(str(value))
    if "://" in given:
        raise ValueError(f"{given!r} is an address; save the file and name it here")
    if is_pattern(path):  # which a folder is, too
        raise _pattern_refusal(given, names, is_folder=is_folder, may_be_several=may_be_several)
    if names is None:
        raise ValueError(f"no file at {given!r}, and no such folder (looked from {folder})")
    raise ValueError(f"no file at {given!r}; {did_you_mean(Path(value).name, names)}")


def _pattern_refusal(
    given: str, names: list[str] | None, *, is_folder: bool, may_be_several: bool
) -> ValueError:
    """Return the refusal of a pattern or a folder: only some keys take one, or none of its files fits."""
    if not may_be_several:
        step = "name one file; only scores and traces may be a pattern or a folder of files"
        if is_folder:
            return ValueError(f"{given!r} is a folder; {step}")
        return ValueError(f"{given!r} is a pattern; {step}")
    have = did_you_mean("", names or [])
    if is_folder:
        return ValueError(
            f"{given!r} is a folder without a Parquet or JSONL file; name one file in it {have}"
        )
    if not names:
        have = ""
    return ValueError(f"no file matches the pattern {given!r} {have}".rstrip())


def _no_weights(metrics: Any) -> Any:
    """Refuse weights in the place of metrics: a mapping of names to numbers, or a pandas Series of numbers."""
    if isinstance(metrics, Mapping):
        weights = metrics
    elif hasattr(metrics, "to_dict"):
        weights = metrics.to_dict()
    else:
        return metrics
    # A Series of texts is a list of names.
    if weights and not any(isinstance(value, str) for value in weights.values()):
        names = masked(str(list(weights)))
        raise ValueError(f"is a list of names, such as {names}; weights go into metric_weights")
    return metrics


def declared_metrics(
    rubric: Rubric | None, metrics: tuple[str | Metric, ...] | None
) -> dict[str, Metric]:
    """Return the metrics that a scenario declares itself: the dimensions of its rubric, and Metric objects."""
    dimensions = rubric.metrics if rubric else ()
    objects = [metric for metric in metrics or () if isinstance(metric, Metric)]
    return {metric.name: metric for metric in (*dimensions, *objects)}


def _known_metrics(
    metrics: tuple[str | Metric, ...], info: ValidationInfo
) -> tuple[str | Metric, ...]:
    """Take metrics that ragnb knows, that are declared here or that are dimensions of the rubric, each once."""
    rubric = info.data.get("rubric")
    dimensions = declared_metrics(rubric, ())
    declared = declared_metrics(rubric, metrics)
    names = [metric if isinstance(metric, str) else metric.name for metric in metrics]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise refuse(f"{shown(name)} appears twice; keep one", i)
        if name in dimensions and not isinstance(metrics[i], str):
            raise refuse(
                f"{shown(name)} is a dimension of the rubric, which defines its scale; give its name",
                i,
            )
        if "rubric" in info.data:  # else its refusal says enough
            _need_known(name, [*METRICS, *declared], i)
    return metrics


def _known_weights(weights: dict[str, float], info: ValidationInfo) -> dict[str, float]:
    """Take the weights of metrics that ragnb knows, that are declared or that are dimensions of the rubric."""
    if not {"rubric", "metrics"} <= info.data.keys():  # their refusal says enough
        return weights
    declared = declared_metrics(info.data["rubric"], info.data["metrics"])
    # Metrics of the file whose list an override took the place of, see `Scenario.replace`.
    declared_before = (info.context or {}).get("declared", ())
    for name in weights:
        if name not in declared_before:
            _need_known(name, [*declared, *METRICS], name)
    return weights


def _need_known(name: str, known: list[str], where: str | int) -> None:
    """Refuse a metric that nobody declared; `where` is its place in the list or mapping."""
    if name not in known and known_metric(name) is None:
        raise refuse(
            f"metric {shown(name)} is not known; {did_you_mean(masked(name), known)}. Declare a metric of "
            f"your own: metrics: [{{name: {flow(masked(name))}, low: 0, high: 1}}]",
            where,
        )


Text = Annotated[str, Field(strict=True), AfterValidator(_visible)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_MOST_QUESTIONS = 10**6
Count = Annotated[int, Field(strict=True, ge=1, le=MOST_COUNTED)]
Labels = Annotated[Count, AfterValidator(_with_ratings)]
Encoding = Annotated[str, Field(strict=True), AfterValidator(_encoding)]
Pattern = Annotated[str, Field(strict=True), AfterValidator(_pattern)]
File = Annotated[Path, BeforeValidator(_input_file)]
Baseline = Annotated[str | Path, BeforeValidator(_baseline)]
Columns = Annotated[dict[Text, Text], AfterValidator(_distinct_targets)]
Where = dict[Text, Annotated[str | int | bool | float, PlainValidator(_comparable)]]
Weight = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False), BeforeValidator(_number)]
Weights = Annotated[dict[Text, Weight], AfterValidator(_distinct_keys)]
MetricWeights = Annotated[Weights, AfterValidator(_known_weights)]
# Tagged, so that pydantic reports what is wrong with the kind that was given, and not with both; `findings`
# leaves out the tags, which are in brackets.
_MetricRow = Annotated[
    Annotated[str, Field(strict=True), Tag("<name>")] | Annotated[Metric, Tag("<metric>")],
    Discriminator(lambda item: "<name>" if isinstance(item, str) else "<metric>"),
]
Metrics = Annotated[
    tuple[_MetricRow, ...], AfterValidator(_known_metrics), BeforeValidator(_no_weights)
]


class Bands(Frozen):
    """Where the weighted score, on 0–1, counts as good and where as one to watch; below that it is bad.

    Examples
    --------
    >>> Bands().good
    0.7
    """

    good: Number = Field(default=0.7, ge=0, le=1)
    watch: Number = Field(default=0.5, ge=0, le=1)

    @model_validator(mode="after")
    def _in_order(self) -> Bands:
        if not self.good > self.watch:
            raise ValueError(f"good={self.good:g} must lie above watch={self.watch:g}")
        return self


class Allow(Frozen):
    """Which shares of what was expected may be lost before a run counts as incomplete.

    Of the ``lines`` of a file, of the ``questions`` (of gold, the cases or the baseline) and answers, and of the
    ``cells`` of a metric that a gate or the total uses.

    Examples
    --------
    >>> Allow(lines=0.01)
    Allow(lines=0.01, questions=0.05, cells=0.1)
    """

    lines: Number = Field(default=0.0, ge=0, le=1)
    questions: Number = Field(default=0.05, ge=0, le=1)
    cells: Number = Field(default=0.1, ge=0, le=1)


Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Function = Annotated[str, Field(strict=True, pattern=r"^[\w.]+:\w+$")]


class Generation(Frozen):
    """What kind of question set `ragnb generate` makes of the documents: see `ragnb.generate_cases`.

    Examples
    --------
    >>> Generation(questions=40).unanswerable
    0.2
    """

    # A plan holds the kind of each in memory.
    questions: Annotated[int, Field(strict=True, ge=1, le=_MOST_QUESTIONS)] = 20
    unanswerable: Share = 0.2
    multi_passage: Share = 0.2
    personas: tuple[Text, ...] = ()
    seed: Annotated[int, Field(strict=True)] = 0


class System(Frozen):
    """The system that `ragnb answer` asks: functions as ``package.module:function``, found from the scenario's
    folder.

    ``generate`` may be left out where ``llm_profiles.answer`` names an endpoint.

    Examples
    --------
    >>> System(retrieve="rag:search", generate="rag:answer").name is None
    True
    """

    name: Text | None = None
    retrieve: Function | None = None
    generate: Function | None = None
    improve: Function | None = None


def input_name(path: str | Path) -> str:
    """Return what an input is called; a pattern by what is plain in it, else by its folder.

    Examples
    --------
    >>> input_name("a/traces-*.jsonl"), input_name("scores/*.parquet")
    ('traces', 'scores')
    """
    path = Path(path)
    stem = path.stem
    if path.suffix == ".gz":
        stem = path.stem.split(".jsonl")[0]
    if not any(char in stem for char in "*?["):
        return path.stem
    plain = re.sub(r"\[.*?\]|[*?]", "", stem).strip(" -_.")
    if plain:
        return plain
    return re.sub(r"[*?\[\]]", "", path.parent.name)


def is_blank(value: object) -> bool:
    """Whether an override says nothing."""
    return value is None or (isinstance(value, str) and not value.strip())
