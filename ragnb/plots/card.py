"""One judge on one dimension out of a calibration card, or out of one of its frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pandas as pd

from ragnb import texts
from ragnb.errors import RagnbError, listing, need_columns, unknown
from ragnb.markup import count, one_line
from ragnb.plots.canvas import Axes, Look, canvas

_DEFAULTS: dict[str, Any] = {"tolerance": 1.0, "target": 0.8, "delta": None, "scale": None, "lang": "en"}


class OfCard(Look, total=False):
    """What a chart of a card takes besides: which judge and dimension, the language, by default the card's."""

    judge: str | None
    dimension: str | None
    lang: str | None


@dataclass(frozen=True)
class Part:
    """The rows of one judge and dimension in a frame of a card, and the card they came from, if any."""

    rows: pd.DataFrame
    source: Any
    judge: str
    dimension: str
    lang: str
    look: Look

    def canvas(self, height: float) -> AbstractContextManager[tuple[Axes, Callable[..., None]]]:
        """Give Axes to draw in, and what tells in words what is seen there."""
        return canvas(height, self.lang, **self.look)

    @property
    def say(self) -> Callable[..., str]:
        """Fill a text of this picture's language."""
        return texts.load(self.lang)

    @property
    def name(self) -> str:
        """Which judge and dimension this is, for the corner of a picture; empty where the frame does not say."""
        return " · ".join(one_line(word, 40) for word in (self.judge, self.dimension) if word)

    def set(self, key: str, given: Any = None) -> Any:
        """Return a setting: the caller's, else the card's, else the library's."""
        return _setting(self.source, key, given)

    def ends(self, given: tuple[float, float] | None, *values: np.ndarray) -> tuple[float, float]:
        """Return the scale, the caller's or the card's; else the lowest and the highest of the values."""
        held, seen = self.set("scale", given), np.concatenate(values)
        if held is None:
            held = (np.nanmin(seen), np.nanmax(seen)) if not np.isnan(seen).all() else (0.0, 1.0)
        return float(held[0]), float(held[1])

    def beside(self, name: str, given: pd.DataFrame | None = None) -> Mapping[Any, Any]:
        """Return the row of this judge and dimension in another frame, the card's or a given one; or nothing.

        Of one row a measure: each measure's value, and its interval as ``<measure>_low, <measure>_high``.
        """
        held = None if isinstance(self.source, pd.DataFrame) else getattr(self.source, name, None)
        frame = held if given is None else given
        if frame is None:
            return {}
        found = _only(_only(frame, "judge", self.judge), "dimension", self.dimension).to_dict("records")
        if "measure" in frame:
            ends = {"": "value", "_low": "low", "_high": "high"}
            return {row["measure"] + end: row[name] for row in found for end, name in ends.items()}
        return found[0] if found else {}

    def words(self, told: Iterable[str]) -> str:
        """Join what a picture tells, after the judge and dimension."""
        return "; ".join(filter(None, [self.name, *told]))

    def n(self, number: Any) -> str:
        """Write a number of ratings."""
        return self.say("chart.n", n=count(number))


def _setting(source: Any, key: str, given: Any) -> Any:
    if given is not None:
        return given
    held = source.attrs.get(key) if isinstance(source, pd.DataFrame) else getattr(source, key, None)
    return _DEFAULTS[key] if held is None else held


def part(
    source: Any, name: str, columns: Sequence[str], *, judge: str | None = None, dimension: str | None = None,
    lang: str | None = None, **look: Unpack[Look],
) -> Part:  # fmt: skip
    """Take the frame `name` of a card, or a frame as it is, and the one judge and dimension of it to draw.

    Raises
    ------
    RagnbError
        For what is neither, for a column that is not there, and for several judges or dimensions and no choice.
    """
    frame = source if isinstance(source, pd.DataFrame) else getattr(source, name, None)
    if not isinstance(frame, pd.DataFrame):
        raise RagnbError(f"{type(source).__name__} is no CalibrationCard; pass one, or its frame: card.{name}")
    need_columns(frame.columns, columns, f"card.{name} has it")
    found = {}
    for key, chosen in (("judge", judge), ("dimension", dimension)):
        here = list(dict.fromkeys(map(str, frame[key]))) if key in frame else [""]
        if chosen is None and len(here) > 1:
            raise RagnbError(f"there are several {key}s; choose one: {key}={here[0]!r} (have: {listing(here)})")
        if chosen is not None and chosen not in here:
            raise unknown(key, chosen, here)
        found[key] = chosen if chosen is not None else here[0] if here else ""
        frame = _only(frame, key, found[key])
    return Part(frame.reset_index(drop=True), source, **found, lang=_setting(source, "lang", lang), look=look)


def _only(frame: pd.DataFrame, key: str, chosen: str) -> pd.DataFrame:
    return frame[frame[key].astype(str) == chosen] if key in frame and chosen else frame
