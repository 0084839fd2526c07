"""The settings of one run as one frozen model: loaded, checked, replaced, and saved back into its file."""

from __future__ import annotations

import difflib
import json
import math
import os
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    PlainValidator,
    PrivateAttr,
    StrictBool,
    Tag,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from ragnb.errors import RagnbError, did_you_mean, listing, need_known, place, unknown
from ragnb.files import is_pattern, matched, write_whole
from ragnb.scenario.examples import EXAMPLES, KeyPath, bound_of, example_of, path_of
from ragnb.schema import (
    METRICS,
    Anchor,
    Dimension,
    Frozen,
    Gate,
    Metric,
    Profile,
    Rubric,
    known_metric,
    refuse,
)
from ragnb.schema.secrets import masked, shown

SOURCES = ("scores", "traces", "cases", "ratings", "documents")
_MOST_FINDINGS = 10
_REFUSALS = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8"))
_REASONS: Mapping[str, str] = _REFUSALS["value"]
_SYNTAX: Mapping[str, str] = _REFUSALS["syntax"]

MAX_BYTES = 1_000_000
MAX_DEPTH = 12

_ALIASES = "anchors (&) and aliases (*) are not supported; write the value out"
_TAGS = "tags (!) are not supported; write the plain value"
_WHOLE = {
    "undefined alias": _ALIASES,
    "undefined tag handle": _TAGS,
    "another document": "a second YAML document starts here; a scenario file contains one",
    "maximum depth": f"nested deeper than {MAX_DEPTH} levels",
}
"""What the library says of a text that is well formed and not taken, and what is said of it here."""

# Comments and blank lines may stand before a directive.
_DIRECTIVE = re.compile(r"(?:[ \t]*(?:#.*)?(?:\r\n|\r|\n))*%")
_KEY = re.compile(r"[\s\-\[{]{0,200}['\"]?([^\s:'\"{}\[\],#][^:'\"{}\[\],#]{0,80})['\"]?\s{0,20}:")
_NUMBER = re.compile(
    r"[-+]?(?:0|[1-9][0-9]{0,399}|(?:0|[1-9][0-9]*)\.[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+][0-9]+)?"
    r"|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)"
)
# Text to this library, numbers to others: hexadecimal in capitals, sexagesimal, an exponent without a sign.
_NUMBER_ELSEWHERE = re.compile(
    r"[-+]?(?:0[xXoObB][0-9a-fA-F_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|\.[0-9][0-9_]*[eE][0-9]+)"
)
# Text to every reader: two letters in a row, and none of the words that some take for something else.
_WORD = r"[\w./](?:[\w./:+\-]*\w)?"
_PLAIN = re.compile(rf"(?!0[xXoObB])(?=.*[^\W\d_]{{2}}){_WORD}(?: {_WORD})*")
_WORDS = frozenset({"yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
# Unicode gives these no format category, and yet they draw nothing.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)

# Plain YAML 1.2 in and out: a stranger's file cannot surprise, every value knows its line, every reader agrees.
# The library composes the tree and resolves its plain words. Nothing but text, numbers, true, false, nothing,
# lists and mappings comes out; what only some readers take, or take for something else, is refused.


def dotted(where: KeyPath) -> str:
    """Word a place in the tree.

    Examples
    --------
    >>> dotted(("gates", 0, "at"))
    'gates[0].at'
    """
    parts = [f"[{part}]" if isinstance(part, int) else f".{masked(part)}" for part in where]
    return "".join(parts).removeprefix(".")


def invisible(text: str) -> list[str]:
    """Return the characters of a name that no one sees, as ``U+XXXX``.

    Examples
    --------
    >>> invisible("faith\\u202efulness"), invisible("差旅报销制度.pdf")
    (['U+202E'], [])
    """
    unseen = [
        char
        for char in text
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") or _BLANK.match(char)
    ]
    return [f"U+{ord(char):04X}" for char in dict.fromkeys(unseen)]


def nfc(text: str) -> str:
    """Return a name in its composed Unicode spelling, in which names are compared."""
    return unicodedata.normalize("NFC", text)


def flow(value: Any, style: str | None = None) -> str:
    """Write a value on one line: text in the quotes of `style`, else bare where every reader takes it for text.

    Examples
    --------
    >>> print(flow({"lang": "zh", "kept": [True, 1e-05, 2], "no": "it's", "says": "1e3"}))
    {lang: zh, kept: [true, 1.0e-05, 2], "no": "it's", says: "1e3"}
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(name)}: {flow(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        text = repr(
            float(value) if isinstance(value, float) else value
        )  # numpy's floats are floats too
        return (
            text.replace("inf", ".inf")
            if math.isinf(value) or "." in text
            else text.replace("e", ".0e")
        )
    if style == "'":
        return "'" + value.replace("'", "''") + "'"
    if style is None and _PLAIN.fullmatch(value) and value.lower().strip(".") not in _WORDS:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08X}" for char in quoted)


def block(tree: Mapping[str, Any], column: int = 0, newline: str = "\n", step: int = 2) -> str:
    """Write a mapping as lines set in by `column`, mappings in it by `step` more, and one line per item of a list.

    Examples
    --------
    >>> print(block({"weights": {"甲.pdf": 1}, "metrics": ["clarity", {"name": "tone", "low": 0.0}]}), end="")
    weights:
      甲.pdf: 1
    metrics:
    - clarity
    - {name: tone, low: 0.0}
    """
    lines = []
    for name, value in tree.items():
        nested = isinstance(value, Mapping | list | tuple) and bool(value)
        lines.append(f"{' ' * column}{flow(name)}:{'' if nested else f' {flow(value)}'}{newline}")
        if nested and isinstance(value, Mapping):
            lines.append(block(value, column + step, newline, step))
        elif nested:
            lines += [f"{' ' * column}- {flow(item)}{newline}" for item in value]
    return "".join(lines)


def text_of(file: Path) -> str:
    """Return the text of a file of settings, which must be UTF-8 and small."""
    with file.open("rb") as stream:
        raw = stream.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise RagnbError(
            f"{place(file)}larger than {MAX_BYTES:,} bytes; a scenario holds settings, not data"
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, hint = raw.count(b"\n", 0, error.start) + 1, ""
    with suppress(UnicodeDecodeError):
        raw.decode("gb18030")
        hint = (
            " (it may be GBK; 'encoding:' in a scenario is for the files it names, not for itself)"
        )
    hint = " (it looks like UTF-16)" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else hint
    raise RagnbError(f"{place(file, line)}not UTF-8{hint}; save the file as UTF-8")


def read_text(text: str, file: Path) -> Source:
    """Read YAML text into a tree with lines; whatever is not plain YAML 1.2 is refused.

    Messages name it by `file`, which need not exist.
    """
    if directive := _DIRECTIVE.match(text):
        line = len(directive[0].splitlines())
        raise RagnbError(
            f"{place(file, line)}directives (%YAML, %TAG) are not supported; remove the line"
        )
    try:
        root = compose(text)
    except Exception as problem:  # the parser lets ValueError and others out of broken text
        raise _syntax_refusal(problem, text, file) from None
    if root is None or root.id != "mapping":
        raise RagnbError(f"{place(file, 1)}a scenario is a mapping such as 'scores: my_scores.csv'")
    source = Source(file, text)
    source.data = source.value(root, ())
    return source


def compose(text: str) -> Any:
    """Return the nodes of one YAML document, with their places in the text; None for an empty one."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.max_depth = MAX_DEPTH + 1
    yaml.composer.warn_double_anchors = (
        False  # the warning quotes the file, and every anchor is refused
    )
    return yaml.compose(text)


def _syntax_refusal(error: Exception, text: str, file: Path) -> RagnbError:
    """Word the library's exception by line and reason; its own text quotes the file and is left out."""
    why = str(getattr(error, "problem", None) or "")
    ended = "end" in why and "stream" in why
    mark = (ended and getattr(error, "context_mark", None)) or getattr(error, "problem_mark", None)
    position = getattr(error, "position", None)
    line = (
        mark.line + 1
        if mark
        else text.count("\n", 0, position) + 1
        if isinstance(position, int)
        else 1
    )
    rows = text.splitlines()
    key = (
        _KEY.match(rows[line - 1]) if (why or position is not None) and line <= len(rows) else None
    )
    where = place(file, line, masked(key[1].strip()) if key else None)
    for sign, refusal in _WHOLE.items():
        if sign in why:
            return RagnbError(f"{where}{refusal}")
    if "block scalar" in str(getattr(error, "context", "")):
        why = 'a value that starts with > or | needs quotes, such as op: ">="'
    if "'\\t'" in why:
        why = "a tab cannot indent; use spaces"
    why = next((meant for sign, meant in _SYNTAX.items() if sign in why), masked(why))
    why = why or "a character or an escape that YAML does not allow"
    return RagnbError(f"{where}this is not valid YAML: {why}")


@dataclass
class Source:
    """A YAML file that was read: its text, the values that its nodes represent, and the line of each."""

    file: Path
    text: str = field(repr=False)
    data: dict[str, Any] = field(default_factory=dict, repr=False)
    lines: dict[KeyPath, int] = field(default_factory=dict, repr=False)

    def line(self, where: KeyPath) -> int:
        """Return the line of a place, or of the nearest place above it."""
        places = (where[:end] for end in range(len(where), 0, -1))
        return next((self.lines[above] for above in places if above in self.lines), 1)

    def _refusal(self, node: Any, where: KeyPath, why: str) -> RagnbError:
        return RagnbError(
            f"{place(self.file, node.start_mark.line + 1, dotted(where) or None)}{why}"
        )

    def _checked(self, node: Any, where: KeyPath) -> int:
        """Return the line of a node, which begins with its tag or anchor if it has one."""
        begins = self.text[node.start_mark.index :][:1]
        if node.anchor is not None or begins == "&":
            raise self._refusal(node, where, _ALIASES)
        if begins == "!":
            raise self._refusal(node, where, _TAGS)
        return int(node.start_mark.line) + 1

    def value(self, node: Any, where: KeyPath) -> Any:
        """Return what a node represents."""
        self.lines.setdefault(where, self._checked(node, where))
        if node.id == "sequence":
            return [self.value(item, (*where, i)) for i, item in enumerate(node.value)]
        if node.id == "mapping":
            first: dict[str, int] = {}
            rows = ((self._key(key, where, first), item) for key, item in node.value)
            return {key: self.value(item, (*where, key)) for key, item in rows}
        text, kind = node.value, node.tag.rpartition(":")[2]
        if node.style is not None:
            return text
        if kind in ("null", "bool"):
            return None if kind == "null" else text.lower() == "true"
        number = kind in ("int", "float")
        if number and _NUMBER.fullmatch(text):
            return int(text) if kind == "int" else float(re.sub(r"\.(?=[iInN])", "", text))
        if not number and not _NUMBER_ELSEWHERE.fullmatch(text):
            return text  # also dates, =, yes and no
        why = (
            f"{shown(text)} is a number to some YAML parsers but not to others; "
            "write a plain decimal number, or put it in quotes if it is text"
        )
        raise self._refusal(node, where, why)

    def _key(self, node: Any, above: KeyPath, first: dict[str, int]) -> str:
        """Return a key of a mapping, whose keys so far, normalised, stand on the lines `first`."""
        line = self._checked(node, above)
        if node.id != "scalar" or not node.value.strip():
            raise self._refusal(node, above, "a key must be a word, not empty, a list or a mapping")
        key: str = node.value
        if key == "<<" and node.style is None:
            raise self._refusal(
                node, (*above, key), "merge keys are not supported; write the values out"
            )
        if unseen := invisible(key):
            clean = "".join(char for char in key if not invisible(char))
            why = f"the key contains invisible characters ({', '.join(unseen)}); retype it"
            raise self._refusal(node, (*above, clean), why)
        if nfc(key) in first:
            why = f"the key appears twice, first on line {first[nfc(key)]}; keep one"
            raise self._refusal(node, (*above, key), why)
        first[nfc(key)] = self.lines[(*above, key)] = line
        return key


# The settings


def _visible(value: str) -> str:
    if not value.strip():
        raise ValueError("is blank; write a word or leave the key out")
    if unseen := invisible(value):
        raise ValueError(f"contains invisible characters ({', '.join(unseen)}); retype it")
    return value


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) and not value.is_snan() else value


def _with_ratings(labels: int, info: ValidationInfo) -> int:
    if info.data.get("ratings", "") is None:  # else its own refusal says enough
        raise ValueError(
            "needs ratings, and none are given; name their file (ratings:), or remove the key"
        )
    return labels


def _distinct_keys(values: dict[str, Any]) -> dict[str, Any]:
    first: dict[str, str] = {}
    for key in values:
        if first.setdefault(nfc(key), key) != key:
            raise refuse("the name appears twice, in two Unicode spellings; keep one", key)
    return values


def _distinct_targets(columns: dict[str, str]) -> dict[str, str]:
    first: dict[str, str] = {}
    for theirs, ours in columns.items():
        if first.setdefault(ours, theirs) != theirs:
            raise refuse(f"{shown(first[ours])} becomes {shown(ours)} too; pick one", theirs)
    return columns


def _distinct_gates(gates: tuple[Any, ...]) -> tuple[Any, ...]:
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


def _sample(value: Any) -> bool | float:
    """Take whether the traces are a sample, or the share that makes one of them."""
    share = _number(value)
    if isinstance(share, bool) or (isinstance(share, int | float) and 0 < share <= 1):
        return share
    raise ValueError(
        f"{shown(value)} is neither true, false nor a share above 0 and up to 1, such as 0.01"
    )


def _encoding(value: str) -> str:
    """Take an encoding that this Python knows and that makes text."""
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
    import polars as pl

    if not value.strip():
        raise ValueError("is blank and would match every answer; remove it")
    try:
        pl.Series(["a"]).str.contains(f"(?i)(?:{value})")
    except pl.exceptions.PolarsError as error:
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
    found: Path = ((info.context or {}).get("folder") or Path.cwd()) / value
    return found.resolve() if found.exists() else str(value)


def _input_file(value: Any, info: ValidationInfo) -> Path:
    """Resolve a path against the scenario's folder; what is not there is refused with near names."""
    if isinstance(value, list | tuple | set):
        raise ValueError(
            "is a list of files; name one file, or a pattern such as 'scores/*.parquet'"
        )
    if not isinstance(value, str | Path) or not str(value).strip() or invisible(str(value)):
        raise ValueError(
            f"{shown(value)} is not a path; name one file, relative to the scenario's folder"
        )
    folder: Path = (info.context or {}).get("folder") or Path.cwd()
    several = info.field_name in ("scores", "traces")
    of_documents = info.field_name == "documents"
    given, names, is_folder = masked(str(value)), None, False
    path = folder / value
    with suppress(OSError, RuntimeError):
        path = (
            path.parent.resolve() / path.name
        )  # a link keeps its own name, which tells the format
        if (
            path.is_file()
            or (of_documents and path.is_dir())
            or (several and is_pattern(path) and matched(path))
        ):
            return path
        is_folder = path.is_dir()
        names = sorted(entry.name for entry in os.scandir(path if is_folder else path.parent))[
            :10_000
        ]
    if "://" in given:
        raise ValueError(f"{given!r} is an address; save the file and name it here")
    if is_pattern(path):
        if not several:
            step = "name one file; only scores and traces may be a pattern or a folder of files"
            raise ValueError(
                f"{given!r} is a folder; {step}" if is_folder else f"{given!r} is a pattern; {step}"
            )
        have = did_you_mean("", names or [])
        if is_folder:
            raise ValueError(
                f"{given!r} is a folder without a Parquet or JSONL file; name one file in it {have}"
            )
        raise ValueError(f"no file matches the pattern {given!r} {have if names else ''}".rstrip())
    if names is None:
        raise ValueError(f"no file at {given!r}, and no such folder (looked from {folder})")
    raise ValueError(f"no file at {given!r}; {did_you_mean(Path(value).name, names)}")


def _no_weights(metrics: Any) -> Any:
    """Refuse weights in the place of metrics: a mapping of names to numbers, or a pandas Series of numbers."""
    weights = metrics if isinstance(metrics, Mapping) else getattr(metrics, "to_dict", dict)()
    if weights and not any(isinstance(value, str) for value in weights.values()):
        names = masked(str(list(weights)))
        raise ValueError(f"is a list of names, such as {names}; weights go into metric_weights")
    return metrics


def declared_metrics(
    rubric: Rubric | None, metrics: tuple[str | Metric, ...] | None
) -> dict[str, Metric]:
    """Return the metrics that a scenario declares itself: the dimensions of its rubric, and Metric objects."""
    objects = [metric for metric in metrics or () if isinstance(metric, Metric)]
    return {metric.name: metric for metric in (*(rubric.metrics if rubric else ()), *objects)}


def _known_metrics(
    metrics: tuple[str | Metric, ...], info: ValidationInfo
) -> tuple[str | Metric, ...]:
    """Take metrics that ragnb knows, that are declared here or that are dimensions of the rubric, each once."""
    rubric = info.data.get("rubric")
    dimensions, declared = declared_metrics(rubric, ()), declared_metrics(rubric, metrics)
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
    if {"rubric", "metrics"} <= info.data.keys():  # else their refusal says enough
        declared = declared_metrics(info.data["rubric"], info.data["metrics"])
        once = (info.context or {}).get("declared", ())
        for name in (name for name in weights if name not in once):
            _need_known(name, [*declared, *METRICS], name)
    return weights


def _need_known(name: str, known: list[str], where: str | int) -> None:
    if name not in known and known_metric(name) is None:
        raise refuse(
            f"metric {shown(name)} is not known; {did_you_mean(masked(name), known)}. Declare a metric of "
            f"your own: metrics: [{{name: {flow(masked(name))}, low: 0, high: 1}}]",
            where,
        )


Text = Annotated[str, Field(strict=True), AfterValidator(_visible)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Labels = Annotated[int, Field(strict=True, ge=1), AfterValidator(_with_ratings)]
Encoding = Annotated[str, Field(strict=True), AfterValidator(_encoding)]
Pattern = Annotated[str, Field(strict=True), AfterValidator(_pattern)]
File = Annotated[Path, BeforeValidator(_input_file)]
Baseline = Annotated[str | Path, BeforeValidator(_baseline)]
Columns = Annotated[dict[Text, Text], AfterValidator(_distinct_targets)]
Where = dict[Text, Annotated[str | int | bool | float, PlainValidator(_comparable)]]
Weight = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False), BeforeValidator(_number)]
Weights = Annotated[dict[Text, Weight], AfterValidator(_distinct_keys)]
MetricWeights = Annotated[Weights, AfterValidator(_known_weights)]
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

    questions: Annotated[int, Field(strict=True, ge=1)] = 20
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
    expect: Annotated[int, Field(strict=True, ge=1)] | None = None
    allow: Allow = Allow()
    blank: Literal["lost", "not_applicable"] = "lost"
    sample: Annotated[bool | float, PlainValidator(_sample)] = False
    gates: Annotated[tuple[Gate, ...], AfterValidator(_distinct_gates)] | None = None
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
        try:
            self.__pydantic_validator__.validate_python(
                settings, self_instance=self, context=_context
            )
        except ValidationError as error:
            message = _findings(error, _source)
        if message:  # raised again: what pydantic raises holds the input, and with it perhaps a key
            raise RagnbError(message)
        self._source, self._context = _source, _context or {}

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: dict[str, Any]) -> dict[str, Any]:
        """A key without a value is a key left out; the first input file lends its name."""
        given = {key: value for key, value in data.items() if value is not None}
        first = next((given[key] for key in SOURCES if isinstance(given.get(key), str | Path)), "")
        stem = input_name(first)
        if stem.strip() and not invisible(stem):
            given.setdefault("name", stem)
        return given

    @model_validator(mode="after")
    def _has_input(self, info: ValidationInfo) -> Scenario:
        if not (info.context or {}).get("without_files") and all(
            getattr(self, key) is None for key in SOURCES
        ):
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
        listed = [one if isinstance(one, str) else one.name for one in self.metrics or ()]
        weighed = [name for name, weight in self.metric_weights.items() if weight > 0]
        return list(dict.fromkeys([*listed, *weighed, *(g.metric for g in self.gates or ())]))

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
    def _of_file(
        cls, source: Source, data: Mapping[str, Any] | None = None, file: Path | None = None
    ) -> Scenario:
        """Return the settings of a file, which lends its name and its folder."""
        data, file = data or source.data, file or source.file
        name = {} if data.get("name") is not None else {"name": file.stem}
        return cls({"folder": file.parent.resolve()}, source, **{**data, **name})

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
        settings = {
            key: getattr(self, key)
            for key in self.__pydantic_fields__
            if key in self.model_fields_set
        }
        for key, value in overrides.items():
            if key not in self.__pydantic_fields__:
                raise unknown("override", masked(key), list(self.__pydantic_fields__))
            if is_blank(value):
                continue
            if key.endswith("_weights") and isinstance(value, Mapping):
                own = {k: v for k, v in getattr(self, key).items() if k in value}
                value = own | {k: v for k, v in value.items() if not is_blank(v)}
            settings[key] = value
        # The weight of a metric of the file stays where `metrics=` leaves the metric out.
        declared = {*self._context.get("declared", ()), *self.declared}
        scenario = Scenario({**self._context, "declared": declared}, **settings)
        scenario._source = self._source
        return scenario

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
        folder = (
            Path(relative_to)
            if relative_to is not None
            else self._context.get("folder") or Path.cwd()
        )
        tree = self.model_dump(exclude_none=True)
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
                items = getattr(self, key)
                tree[key] = [
                    TypeAdapter(type(item)).dump_python(item, exclude_defaults=True)
                    for item in items
                ]
        return block(tree)


def load_scenario(path: str | Path) -> Scenario:
    """Read a scenario from its YAML file.

    Parameters
    ----------
    path : str or Path
        A UTF-8 file of at most 1 MB. Paths in it are relative to its folder.

    Returns
    -------
    Scenario

    Raises
    ------
    RagnbError
        For a file that is not there, is not plain YAML, or holds settings that are not understood; with
        file, line and dotted key. The message never holds an endpoint's key.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "s.csv").write_text("faithfulness\\n0.5\\n")
    ...     _ = Path(folder, "s.yaml").write_text("scores: s.csv\\nlevel: 0.9\\n")
    ...     load_scenario(Path(folder, "s.yaml")).level
    0.9
    """
    file = Path(path)
    try:
        if not file.is_file():
            near = sorted(
                one.name
                for one in file.parent.resolve().iterdir()
                if one.suffix in (".yaml", ".yml")
            )
            raise RagnbError(f"no scenario at {str(file)!r}; {did_you_mean(file.name, near)}")
        return Scenario._of_file(read_text(text_of(file), file))
    except OSError as error:
        message = f"cannot read the scenario {str(file)!r}: {error.strerror}"
    except RagnbError as error:
        message = str(error)
    raise RagnbError(
        message
    )  # anew: the first one's frames hold the file's text, and with it perhaps a key


def metric_place(scenario: Scenario, name: str) -> str:
    """Return the file, line and key at which a scenario names a metric, as a message begins; else nothing.

    Examples
    --------
    >>> metric_place(Scenario.without_files(metrics=["faithfulness"]), "faithfulness")
    ''
    """
    if scenario.path is None:
        return ""
    source = read_text(text_of(scenario.path), scenario.path)
    listed = source.data.get("metrics")
    for i, item in enumerate(listed if isinstance(listed, list) else [listed]):
        if name == (item.get("name") if isinstance(item, Mapping) else item):
            where = ("metrics", i) if isinstance(listed, list) else ("metrics",)
            return place(scenario.path, source.line(where), dotted(where))
    return ""


def input_name(path: str | Path) -> str:
    """Return what an input is called; a pattern by what is plain in it, else by its folder.

    Examples
    --------
    >>> input_name("a/traces-*.jsonl"), input_name("scores/*.parquet")
    ('traces', 'scores')
    """
    path = Path(path)
    plain = path.stem.split(".jsonl")[0] if path.suffix == ".gz" else path.stem
    if not any(char in plain for char in "*?["):
        return path.stem
    return re.sub(r"\[.*?\]|[*?]", "", plain).strip(" -_.") or re.sub(
        r"[*?\[\]]", "", path.parent.name
    )


def is_blank(value: object) -> bool:
    """Whether an override says nothing."""
    return value is None or (isinstance(value, str) and not value.strip())


_OWNERS: Mapping[str, type[Any]] = {
    "": Scenario,
    "metrics": Metric,
    "gates": Gate,
    "bands": Bands,
    "allow": Allow,
    "generation": Generation,
    "system": System,
    "llm_profiles": Profile,
    "rubric": Rubric,
    "rubric.dimensions": Dimension,
    "rubric.anchors": Anchor,
    "rubric.passing": Gate,
}
"""The classes whose fields are the keys below a key."""


def _findings(error: ValidationError, source: Source | None) -> str:
    """Word all that a validation found, one line per finding, with the file, line and key where they are known."""
    lines: dict[str, None] = {}
    for item in error.errors(include_url=False):
        where = tuple(part for part in item["loc"] if not str(part).startswith("<"))
        where = where[:-1] if where[-1:] == ("[key]",) else where
        where += tuple(item.get("ctx", {}).get("below", ()))
        file, line = (source.file, source.line(where)) if source else (None, None)
        reason = _reason(item, where, in_file=source is not None)
        lines[f"{place(file, line, dotted(where) or None)}{reason}"] = None
    rest = [f"… and {len(lines) - _MOST_FINDINGS} more"] if len(lines) > _MOST_FINDINGS else []
    return "\n".join([*list(lines)[:_MOST_FINDINGS], *rest])


def _reason(item: Any, where: KeyPath, *, in_file: bool) -> str:
    """Word one finding: what is wrong, and what the key takes, as it is written in a file or in Python."""
    kind, context, value = item["type"], item.get("ctx", {}), item["input"]
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return _unknown_key(where, value, in_file=in_file)
    if kind == "missing":
        return "is required"
    if kind in ("ragnb", "value_error"):
        return masked(str(context["reason" if kind == "ragnb" else "error"]))
    if kind == "float_type" and isinstance(value, int) and not isinstance(value, bool):
        return "the number is too large"
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        hint = (
            did_you_mean(value, choices)
            if isinstance(value, str)
            else f"(have: {listing(choices)})"
        )
        reason = f"is not known; {masked(hint)}"
    elif share := _share_meant(kind, context, value):
        reason = f"{_REASONS[kind].format(**context).partition(';')[0]}; write {share}"
    elif kind in _REASONS:
        reason = _REASONS[kind].format(**context, how=_how(where, value, in_file=in_file))
    else:
        reason = masked(item["msg"])
    # Below llm_profiles a key may have strayed.
    return reason if where[:1] == ("llm_profiles",) else f"{shown(value)} {reason}"


def _how(where: KeyPath, value: Any, *, in_file: bool) -> str:
    """Return how the value of a key is written; that of a key at the top with its key."""
    example = example_of(where, value)
    if example is None:
        return "'key: value' lines below the key"
    written = flow(example) if in_file else repr(example)
    if len(where) > 1:
        return written
    return f"{where[0]}: {written}" if in_file else f"{where[0]}={written}"


def _unknown_key(where: KeyPath, value: Any, *, in_file: bool) -> str:
    """Word a key that no class has, with the near names, or how the whole is written where none is near."""
    above = ".".join(part for part in where[:-1] if isinstance(part, str))
    owner = _OWNERS.get(above) or _OWNERS.get(str(where[0]), Scenario)
    reason = did_you_mean(masked(str(where[-1])), list(owner.__pydantic_fields__))
    if op := bound_of(where, value):
        meant = (
            f'op: "{op}", threshold: {value:g}' if in_file else f"op='{op}', threshold={value:g}"
        )
        return f"is not known; {reason}. Write {meant}"
    if reason.startswith("(have") and (example := EXAMPLES.get(path_of(where[:-1]))):
        return (
            f"is not known; {reason}. Write, for example, {flow(example) if in_file else example}"
        )
    return f"is not known; {reason}"


def _share_meant(kind: str, context: Mapping[str, Any], value: Any) -> str:
    """Return the share that a percentage means where a share is asked for: 0.95 for 95 or '95%'."""
    most = context.get("lt", context.get("le"))
    if kind in ("less_than", "less_than_equal") and most == 1 and 1 < value <= 100:
        return f"{value / 100:g}"
    if kind == "float_type" and (fit := re.fullmatch(r"\s*(\d{1,3}(?:\.\d+)?)\s*%\s*", str(value))):
        return f"{float(fit[1]) / 100:g}"
    return ""


Patched = Mapping[str, float | None]
Tree = Mapping[str, Any]
_BOM = b"\xef\xbb\xbf"
_PATCHED = ("metric_weights", "doc_weights", "llm_profiles")
_BREAK = re.compile(r"\r\n|\r|\n")
_DOCUMENT_END = re.compile(r"^\.\.\.(?=\s|$)", re.MULTILINE)


@dataclass(frozen=True)
class Patch:
    """What a patch would do to a file.

    Attributes
    ----------
    file, to : Path
        The file that was read, and the one that is written.
    before, after : str
        Their texts.
    changed : list of str
        The dotted names of the fields that change.
    """

    file: Path
    to: Path
    before: str
    after: str
    changed: list[str]

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty where there is none."""
        before, after = self.before.splitlines(), self.after.splitlines()
        return "\n".join(
            difflib.unified_diff(before, after, self.file.name, self.to.name, n=2, lineterm="")
        )

    def write(self) -> list[str]:
        """Write the file, unless nothing changes, and return what changed.

        Raises
        ------
        RagnbError
            When the file no longer holds `before`, when a file occurs in the way of a new one, or when it
            cannot be written.
        """
        if self.to == self.file and self.before == self.after:
            return []
        try:
            raw = self.file.read_bytes()
            if raw.decode("utf-8-sig", "replace") != self.before:
                raise RagnbError(
                    f"{place(self.file)}the file changed since it was read; load it again, then save"
                )
            if self.to != self.file and self.to.exists():
                raise RagnbError(
                    f"{place(self.to)}a file of this name already exists; choose another name"
                )
            mode = self.file.stat().st_mode & 0o777
            write_whole(
                self.to, raw[: len(_BOM) * raw.startswith(_BOM)] + self.after.encode(), mode=mode
            )
        except OSError as error:
            raise RagnbError(f"{place(self.to)}cannot be written: {error.strerror}") from None
        return self.changed


def patch_scenario(
    path: str | Path,
    *,
    metric_weights: Patched | None = None,
    doc_weights: Patched | None = None,
    llm_profiles: Mapping[str, Any] | None = None,
    drop: Mapping[str, Iterable[str]] | None = None,
    since: Scenario | None = None,
    to: str | Path | None = None,
) -> list[str]:
    """Put weights and endpoint profiles into a scenario file and return the fields that changed.

    Only the characters of changed values are replaced, and lines or entries are added for new ones; comments,
    order, quotes, line ends and a byte order mark stay as they are. The new text is read again and compared
    before it is written, and the file is replaced whole.

    Parameters
    ----------
    path : str or Path
        A scenario.
    metric_weights, doc_weights : mapping of name to weight, optional
        The weights to set; a name that is not given, None and blank keep the file's value. A name that the
        file does not hold is added, unless its weight is the one it has anyway (1.0): all weights 1.0 and no
        key in the file write nothing. Document names are the file's own in any Unicode spelling.
    llm_profiles : mapping of role to Profile or mapping, optional
        The fields to set, of ``judge``, ``answer`` or ``dataset``.
    drop : mapping of field to names, optional
        Entries to take out, such as ``{"doc_weights": ["old.pdf"]}``.
    since : Scenario, optional
        The scenario as it was loaded: a file that has changed since is refused.
    to : str or Path, optional
        Write a new file instead; input paths are rewritten to be relative to its folder.

    Returns
    -------
    list of str
        Dotted names such as ``metric_weights.faithfulness``.

    Raises
    ------
    RagnbError
        For values that a scenario cannot hold, a file that cannot be read, has changed or cannot be patched.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "s.csv").write_text("faithfulness\\n0.5\\n")
    ...     file = Path(folder, "s.yaml")
    ...     _ = file.write_text("scores: s.csv  # ours\\nmetric_weights: {faithfulness: 0.40}\\n")
    ...     print(patch_scenario(file, metric_weights={"faithfulness": 0.5, "context_recall": 2}))
    ...     print(file.read_text(), end="")
    ['metric_weights.faithfulness', 'metric_weights.context_recall']
    scores: s.csv  # ours
    metric_weights: {faithfulness: 0.5, context_recall: 2}
    """
    given = {
        "metric_weights": metric_weights,
        "doc_weights": doc_weights,
        "llm_profiles": llm_profiles,
    }
    return plan_patch(path, given, drop=drop, since=since, to=to).write()


def plan_patch(
    path: str | Path,
    given: Mapping[str, Any],
    *,
    drop: Mapping[str, Iterable[str]] | None = None,
    since: Scenario | None = None,
    to: str | Path | None = None,
) -> Patch:
    """Return what `patch_scenario` would do, without writing; `given` holds its mappings by name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "s.csv").write_text("faithfulness\\n0.5\\n")
    ...     _ = Path(folder, "s.yaml").write_text("scores: s.csv\\n")
    ...     plan_patch(Path(folder, "s.yaml"), {"doc_weights": {"甲.pdf": 2.0}}).after
    'scores: s.csv\\ndoc_weights:\\n  甲.pdf: 2.0\\n'
    """
    scenario = load_scenario(path)
    source = cast(Source, scenario._source)
    file = Path(path).resolve()  # a link goes on pointing at its file
    if since is not None and since.text != source.text:
        raise RagnbError(
            f"{place(path)}the file changed since it was read; load it again, then save"
        )
    old, new = source.data, _merged(scenario, source.data, given, drop or {})
    target = file if to is None else Path(to).parent.resolve() / Path(to).name
    if target.suffix.lower() not in (".yaml", ".yml") and to is not None:
        raise RagnbError(f"{str(to)!r} is not a valid name for a scenario; it must end in .yaml")
    for key in (*SOURCES, "gold") if target.parent != file.parent else ():
        if old.get(key) is not None and not Path(old[key]).is_absolute():
            new[key] = Path(os.path.relpath(getattr(scenario, key), target.parent)).as_posix()
    before, after, keys = dict(_leaves(old)), dict(_leaves(new)), [*old, *new]
    places = sorted({**before, **after}, key=lambda where: keys.index(where[0]))
    changed = [dotted(where) for where in places if before.get(where) != after.get(where)]
    Scenario._of_file(source, new, target)
    text = _spliced(source.text, old, new) if changed else source.text
    with suppress(RagnbError):
        if dict(_leaves(read_text(text, file).data)) == after:
            return Patch(file, target, source.text, text, changed)
    raise RagnbError(
        f"{place(file)}cannot be patched in place; change {', '.join(changed)} manually"
    )


def _leaves(tree: Any, where: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the places that hold a value; a mapping without a key holds none."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _leaves(value, (*where, key))
    elif tree is not None:
        yield where, tree


def _merged(
    scenario: Scenario, old: Tree, given: Tree, drop: Mapping[str, Iterable[str]]
) -> dict[str, Any]:
    """Return the settings with what is given put in and what is dropped taken out."""
    new, known = dict(old), {**METRICS, **scenario.declared}
    # A weight that its name has anyway is not written; that of a rate always is.
    usual = {
        key: metric.weight if metric.role == "quality" else None for key, metric in known.items()
    }
    for name, values in given.items():
        if name == "anchor":
            new[name] = values
            continue
        if not isinstance(values, Mapping | None):
            raise RagnbError(f"{name}={values!r} is not a mapping; write {{name: value}}")
        made = dict(old.get(name) or {})
        spelled = {nfc(key): key for key in made}
        for spelling, value in (values or {}).items():
            key = spelled.get(nfc(spelling)) or str(spelling)
            if isinstance(value, BaseModel | Mapping):
                fields = {field: item for field, item in dict(value).items() if not is_blank(item)}
                value = {**(made.get(key) or {}), **fields} or None
            elif isinstance(value, Real) and not isinstance(value, bool | int):
                value = float(value)
            same = usual.get(key, 1.0) if name == "metric_weights" else 1.0
            if not is_blank(value) and (key in made or isinstance(value, bool) or value != same):
                made[key] = value
        new[name] = made or old.get(name)
    for name, keys in drop.items():
        need_known("drop", name, _PATCHED)
        gone = {nfc(key) for key in keys}
        new[name] = {
            key: value for key, value in (new.get(name) or {}).items() if nfc(key) not in gone
        } or None
    return new


def _spliced(text: str, old: Tree, new: Tree) -> str:
    """Return the text of the mapping `old` with as little changed as makes it say `new`.

    Lists are the same in both. A mapping that loses its last key reads as None.
    """
    made, at, line_end = "", 0, _BREAK.search(text)
    newline, indent = (
        line_end[0] if line_end else "\n",
        re.search(r"^( +)[^\s#]", text, re.MULTILINE),
    )
    edits = _edits(text, compose(text), old, new, newline, len(indent[1]) if indent else 2)
    for start, end, written in sorted(edits, key=lambda edit: edit[:2]):
        made += text[at:start]
        # What is put in as whole lines starts on a line of its own.
        own_line = (
            start == end and written.endswith(newline) and made and not made.endswith(("\r", "\n"))
        )
        made, at = made + newline * bool(own_line) + written, max(at, end)
    return made + text[at:]


def _edits(
    text: str, node: Any, old: Tree, new: Tree, newline: str, step: int, top: bool = True
) -> Iterator[tuple[int, int, str]]:
    """Yield from where, to where and by what the text of a mapping changes, what is nested deeper first."""
    kept = [entry for entry in node.value if entry[0].value in new]
    fresh = {name: value for name, value in new.items() if name not in old and value is not None}
    for nth, (key, value) in enumerate(node.value):
        start, end = value.start_mark.index, value.end_mark.index
        before, after = old[key.value], new.get(key.value)
        if (
            key.value not in new and node.flow_style and fresh and nth == len(node.value) - 1
        ):  # its place is taken
            yield key.start_mark.index, _end(text, key, value), flow(fresh)[1:-1]
            fresh = {}
        elif key.value not in new:
            yield *_taken_out(text, node, nth, kept), ""
        elif value.id == "mapping" and isinstance(after or {}, Mapping):
            yield from _edits(text, value, before, after or {}, newline, step, top=False)
        elif after == before:
            continue
        elif value.value or value.style is not None:
            yield start, end, flow(after, value.style) + newline * text[start:end].endswith("\n")
        elif isinstance(after, Mapping) and not node.flow_style:  # nothing stands after the colon
            at = _line_end(text, _end(text, key, value))
            yield at, at, block(after, key.start_mark.column + step, newline, step)
        else:
            colon = _end(text, key, value)
            yield colon, colon, f" {flow(after)}"
    last = _end(text, *node.value[-1]) if node.value else node.start_mark.index + 1
    if fresh and node.flow_style:
        yield last, last, ", " * bool(kept) + flow(fresh)[1:-1]
    elif fresh:
        # Comments at the foot of a file belong to what stands above them.
        foot = _DOCUMENT_END.search(text, last) if top else None
        at = foot.start() if foot else len(text) if top else _line_end(text, last)
        yield at, at, block(fresh, node.start_mark.column, newline, step)


def _taken_out(text: str, node: Any, nth: int, kept: list[Any]) -> tuple[int, int]:
    """Where an entry that goes begins and ends: its whole lines, or its part of a list in braces."""
    key, value = node.value[nth]
    start, end = key.start_mark.index, _end(text, key, value)
    if not node.flow_style:
        return start - key.start_mark.column, _line_end(text, end)
    if comma := re.compile(r"\s*,[ \t]*").match(text, end):
        return start, comma.end()
    before = _end(text, *kept[-1]) if kept else start
    between = re.fullmatch(
        r"\s*,\s*", text[before:start]
    )  # a comment in between stays, and so does its comma
    return before if between else start, end


def _end(text: str, key: Any, value: Any) -> int:
    """Where an entry ends: a block mapping's own mark lies past the comments that follow it."""
    if value.value == "" and getattr(value, "style", "") is None:
        return text.index(":", key.end_mark.index) + 1
    if value.id != "scalar" and value.value and not value.flow_style:
        last = value.value[-1]
        return _end(text, *last) if value.id == "mapping" else _end(text, key, last)
    return int(value.end_mark.index)


def _line_end(text: str, at: int) -> int:
    """The beginning of the next line."""
    if text[at - 1 : at] in ("\r", "\n"):  # a block of text ends there already
        return at
    line_end = _BREAK.search(text, at)
    return line_end.end() if line_end else len(text)
