"""Settings → YAML text that gives the same settings again, the same bytes every time."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ragnb.schema import Gate, Metric

# Text of these shapes is text to every YAML reader; all other text stands in quotes.
_BARE = re.compile(r"[^\W\d]\w*(?:[ -]\w+)*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})


def dump(settings: Mapping[str, Any], folder: Path) -> str:
    """Return the settings as YAML, keys in the order given, paths relative to `folder`; None is left out.

    Examples
    --------
    >>> print(dump({"name": "NO", "level": 0.95, "refusal": ("资料中没有",), "gold": None}, Path("/")), end="")
    name: "NO"
    level: 0.95
    refusal:
    - 资料中没有
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.representer import RoundTripRepresenter

    class Plain(RoundTripRepresenter):
        """Floats with a point, so that every reader takes ``1.0e-05`` for a number."""

    Plain.add_representer(float, lambda made, x: made.represent_scalar("tag:yaml.org,2002:float", plain_number(x)))
    yaml = YAML()
    yaml.Representer = Plain
    yaml.width = 1 << 30
    stream = io.StringIO()
    yaml.dump({key: _plain(value, folder) for key, value in settings.items() if value is not None}, stream)
    return stream.getvalue()


def _plain(value: Any, folder: Path) -> Any:
    if isinstance(value, Path):
        try:
            return _text(Path(os.path.relpath(value, folder)).as_posix())
        except ValueError:  # another drive
            return _text(value.as_posix())
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(exclude_none=True), folder)
    if isinstance(value, Metric | Gate):
        rows = {f.name: getattr(value, f.name) for f in fields(value)}
        plain = vars(Metric("plain")) if isinstance(value, Metric) else {"advisory": False}
        return _plain({k: v for k, v in rows.items() if k == "name" or plain.get(k) != v}, folder)
    if isinstance(value, Mapping):
        return {_text(str(key)): _plain(item, folder) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, folder) for item in value]
    return float(value) if isinstance(value, float) else value  # numpy's floats are floats too


def plain_number(value: float) -> str:
    """Write a number so that every YAML reader takes it for one.

    Examples
    --------
    >>> plain_number(1e-05), plain_number(2)
    ('1.0e-05', '2')
    """
    text = repr(value)
    if math.isinf(value):
        return text.replace("inf", ".inf")
    return text if "." in text else text.replace("e", ".0e")


def _text(text: str) -> str:
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    bare = _BARE.fullmatch(text) is not None and text.lower() not in _WORDS
    return str(text) if bare else str.__new__(DoubleQuotedScalarString, text)
