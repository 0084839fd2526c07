"""What single settings must be: files that stand there, weights that weigh, patterns that compile."""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import ValidationInfo

from ragnb.errors import did_you_mean, near_names
from ragnb.files import is_pattern, matched
from ragnb.scenario.words import invisible, shown
from ragnb.schema import METRICS, Metric, masked, refuse
from ragnb.texts import LANGUAGES


def input_file(value: Any, info: ValidationInfo, several: bool = False) -> Path:
    """Resolve a path against the scenario's folder; what does not stand there is refused with near names.

    `several` takes a pattern or a folder of several files of one kind, too.
    """
    if isinstance(value, list | tuple | set):
        raise ValueError("is a list of files; name one file, or a pattern such as 'scores/*.parquet'")
    if not isinstance(value, str | Path) or not str(value).strip() or invisible(str(value)):
        raise ValueError(f"{shown(value)} is not a path; name one file, relative to the scenario's folder")
    folder: Path = (info.context or {}).get("folder") or Path.cwd()
    given = masked(str(value))
    try:
        path = folder / value
        path = path.parent.resolve() / path.name  # a link keeps its own name, which tells the format
        if path.is_file():
            return path
        is_folder = path.is_dir()
        names = sorted(entry.name for entry in os.scandir(path if is_folder else path.parent))[:10_000]
    except (OSError, RuntimeError, ValueError):
        is_folder, names = False, None
    if "://" in given:
        raise ValueError(f"{given!r} is an address; save the file and name it here")
    if is_pattern(path):
        return _several(path, given, several, is_folder, names)
    if names is None:
        raise ValueError(f"no file at {given!r}, and no such folder (looked from {folder})")
    raise ValueError(f"no file at {given!r}; {did_you_mean(Path(value).name, names)}")


def input_files(value: Any, info: ValidationInfo) -> Path:
    """Resolve a path, a pattern or a folder as `input_file` does a path."""
    return input_file(value, info, several=True)


def _several(path: Path, given: str, allowed: bool, is_folder: bool, names: list[str] | None) -> Path:
    if allowed and matched(path):
        return path
    have = did_you_mean("", names or [])
    if not allowed:
        step = "name one file; only scores and traces may be a pattern or a folder of files"
        raise ValueError(f"{given!r} is a folder; {step}" if is_folder else f"{given!r} is a pattern; {step}")
    if is_folder:
        raise ValueError(f"{given!r} is a folder without a Parquet or JSONL file; name one file in it {have}")
    raise ValueError(f"no file fits the pattern {given!r} {have if names else ''}".rstrip())


def stem(path: str | Path) -> str:
    """Return what an input is called; a pattern by what is plain in it, else by its folder.

    Examples
    --------
    >>> stem("a/traces-*.jsonl"), stem("scores/*.parquet")
    ('traces', 'scores')
    """
    path = Path(path)
    plain = path.stem.split(".jsonl")[0] if path.suffix == ".gz" else path.stem
    if not any(char in plain for char in "*?["):
        return path.stem
    return re.sub(r"\[.*?\]|[*?]", "", plain).strip(" -_.") or re.sub(r"[*?\[\]]", "", path.parent.name)


def language(value: str) -> str:
    """Take a language that ragnb has texts for."""
    if value not in LANGUAGES:
        raise ValueError(f"{shown(value)} is not known; {did_you_mean(value, LANGUAGES)}")
    return value


def text_encoding(value: str) -> str:
    """Take an encoding that this Python knows and that makes text."""
    try:
        "a".encode(value)
    except (LookupError, ValueError):
        near = near_names(value, ["utf-8", "gb18030", "gbk", "big5", "utf-16", "latin-1", "shift_jis"])
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "such as utf-8, gb18030 or utf-16"
        raise ValueError(f"{shown(value)} is no text encoding; {hint}") from None
    return value


def visible(value: str) -> str:
    """Take text that is not blank and that a reader can see."""
    if not value.strip():
        raise ValueError("is blank; write a word or leave the key out")
    if unseen := invisible(value):
        raise ValueError(f"holds invisible characters ({', '.join(unseen)}); type it anew")
    return value


def distinct_keys(values: dict[str, Any]) -> dict[str, Any]:
    """Take a mapping whose keys differ after Unicode normalisation."""
    seen: dict[str, str] = {}
    for key in values:
        if (same := unicodedata.normalize("NFC", key)) in seen:
            raise refuse("the name stands here twice, in two Unicode spellings; keep one", key)
        seen[same] = key
    return values


def plain_decimal(value: Any) -> Any:
    """Take a Decimal as the number it is."""
    return float(value) if isinstance(value, Decimal) and not value.is_snan() else value


def known_weights(weights: dict[str, float], info: ValidationInfo) -> dict[str, float]:
    """Take the weights of metrics that ragnb knows, that are declared or that are dimensions of the rubric."""
    if "rubric" not in info.data or "metrics" not in info.data:  # their refusal says enough
        return weights
    own = [*_judged(info), *_named(info.data["metrics"] or ())]
    once = (info.context or {}).get("declared", ())
    for name in weights:
        if name not in METRICS and name not in own and name not in once:
            raise refuse(
                f"metric {shown(name)} is not known; {did_you_mean(masked(name), [*own, *METRICS])}. "
                "Declare a metric of your own below metrics: {name: …, low: 0, high: 1}",
                name,
            )
    return weights


def _judged(info: ValidationInfo) -> list[str]:
    rubric = info.data.get("rubric")
    return [] if rubric is None else [dimension.name for dimension in rubric.dimensions]


def _named(metrics: Iterable[str | Metric]) -> list[str]:
    return [metric.name for metric in metrics if isinstance(metric, Metric)]


def plain_value(value: Any) -> str | int | bool | float:
    """Take what a column can be compared with."""
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"{shown(value)} cannot be compared with a column; write text, a number, true or false")


def one_target(columns: dict[str, str]) -> dict[str, str]:
    """Take renamings of which no two end in one name."""
    seen: dict[str, str] = {}
    for theirs, ours in columns.items():
        if ours in seen:
            raise refuse(f"{shown(seen[ours])} becomes {shown(ours)} too; pick one", theirs)
        seen[ours] = theirs
    return columns


def exact_numbers(value: Any) -> Any:
    """Refuse a metric or gate whose numbers are text or true/false, which the schema would take."""
    if isinstance(value, Mapping):
        for key in ("low", "high", "weight", "threshold", "at"):
            number = value.get(key, 0.0)
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise refuse(f"{shown(number)} is not a number", key)
            if key == "weight" and not (math.isfinite(number) and number >= 0):
                raise refuse(f"{shown(number)} is no weight; write a finite number of at least 0", key)
    return value


def no_weights(metrics: Any) -> Any:
    """Refuse weights in the place of metrics: a mapping of names to numbers, or a pandas Series of numbers."""
    named = metrics if isinstance(metrics, Mapping) else getattr(metrics, "to_dict", dict)()
    if named and not any(isinstance(value, str) for value in named.values()):
        raise ValueError(f"is a list of names, such as {masked(str(list(named)))}; weights go into metric_weights")
    return metrics


def known_metrics(metrics: tuple[str | Metric, ...], info: ValidationInfo) -> tuple[str | Metric, ...]:
    """Take metrics that ragnb knows, that stand here declared or that are dimensions of the rubric, each once."""
    judged = _judged(info)
    own = [*judged, *_named(metrics)]
    names = [metric if isinstance(metric, str) else metric.name for metric in metrics]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise refuse(f"{shown(name)} stands here twice; keep one", i)
        if name in judged and not isinstance(metrics[i], str):
            raise refuse(f"{shown(name)} is a dimension of the rubric, which holds its scale; name it alone", i)
        if name not in METRICS and name not in own and "rubric" in info.data:  # else its refusal says enough
            raise refuse(
                f"metric {shown(name)} is not known; {did_you_mean(masked(name), [*METRICS, *own])}. "
                "Declare a metric of your own: {name: …, low: 0, high: 1}",
                i,
            )
    return metrics


def distinct_gates(gates: tuple[Any, ...]) -> tuple[Any, ...]:
    """Take gates of which no two have one name."""
    names = [gate.name for gate in gates]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise refuse(f"a second gate is named {shown(name)}; rename one", i, "name")
    return gates


def pattern(value: str) -> str:
    """Take a regular expression of the linear-time engine that reads the answers: no pattern can hang it."""
    import polars as pl

    if not value.strip():
        raise ValueError("is blank, which every answer matches; leave it out")
    try:
        pl.Series(["a"]).str.contains(f"(?i)(?:{value})")
    except pl.exceptions.PolarsError as error:
        found = re.search(r"^(?:error: |regex error: (?!regex parse))(.*)$", str(error), re.MULTILINE)
        why = found[1] if found else "it is no regular expression"
        raise ValueError(
            f"{shown(value)} is not taken ({why}); look-around, back-references and huge repeats are left out "
            "so that no pattern can hang"
        ) from None
    return value


def blank(value: object) -> bool:
    """Whether an override says nothing."""
    return value is None or (isinstance(value, str) and not value.strip())


def filled(weights: Any, own: Mapping[str, float]) -> Any:
    """Put the scenario's own weight where an override is blank, and leave out what it does not name."""
    if not isinstance(weights, Mapping):
        return weights
    return {k: own[k] if blank(v) else v for k, v in weights.items() if not blank(v) or k in own}
