"""What the charts of a calibration card share: the rows of one judge and dimension, colours and signed numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragnb.errors import RagnbError, listing, need_columns
from ragnb.markup import count, one_line, with_interval
from ragnb.markup.rendering import SYSTEM_COLOURS
from ragnb.plots.canvas import Look, speaker

# Okabe and Ito's green, orange and vermilion; never without a word or another shape beside them.
GOOD = "#009E73"
WATCH = "#E69F00"
BAD = "#D55E00"
BLUE = SYSTEM_COLOURS[0]
ORANGE = SYSTEM_COLOURS[1]
_DEFAULTS: dict[str, Any] = {
    "tolerance": 1.0,
    "target": 0.8,
    "delta": None,
    "scale": None,
    "lang": "en",
}


class Part:
    """The rows of one judge and dimension in a frame of a card, and the card they came from, if any.

    It takes the frame `name` of a card, or a frame as it is.

    Raises
    ------
    RagnbError
        For what is neither, for a column that is not there, and for several judges or dimensions.
    """

    def __init__(self, card: Any, name: str, columns: Sequence[str], look: Look) -> None:
        frame = card
        if not isinstance(card, pd.DataFrame):
            frame = getattr(card, name, None)
        if not isinstance(frame, pd.DataFrame):
            raise RagnbError(
                f"{type(card).__name__} is not a CalibrationCard; pass one or its frame: card.{name}"
            )
        need_columns(frame.columns, columns, f"card.{name} has it")
        self._card = None if frame is card else card
        self._keys = dict[str, str]()
        for key in ("judge", "dimension"):
            names = list(dict.fromkeys(map(str, frame.get(key, []))))
            if len(names) > 1:
                have = listing(names)
                raise RagnbError(
                    f"there are several {key}s; choose one: card.only({key}={names[0]!r}) (have: {have})"
                )
            if names:
                self._keys[key] = names[0]
        self.about = " · ".join(one_line(word, 40) for word in self._keys.values())
        self.rows = frame.reset_index(drop=True)
        self.look = look | {"lang": look.get("lang") or self.set("lang")}
        self.say = speaker(self.look)

    def set(self, key: str) -> Any:
        """Return a setting of the card, else the library's."""
        return getattr(self._card, key, _DEFAULTS[key])

    def pairs(self) -> tuple[Any, Any, Any]:
        """Return the scores of the judge and of the humans, and how often they met."""
        x, y, n = self.rows[["judge_score", "human_score", "n"]].to_numpy(dtype=float).T
        return x, y, n

    def ends(self, *values: Any) -> tuple[float, float]:
        """Return the scale of the card; else the lowest and the highest of the values."""
        seen = np.concatenate(values)
        if np.isnan(seen).all():
            ends = (0.0, 1.0)
        else:
            ends = (np.nanmin(seen), np.nanmax(seen))
        low, high = self.set("scale") or ends
        return float(low), float(high)

    def beside(self, name: str) -> pd.DataFrame:
        """Return the rows of this judge and dimension in another frame of the card; none without a card."""
        frame: pd.DataFrame = getattr(self._card, name, pd.DataFrame())
        for key, chosen in self._keys.items():
            if key in frame:
                frame = frame[frame[key].astype(str) == chosen]
        return frame

    def n(self, number: Any) -> str:
        """Write a number of ratings."""
        return self.say("chart.n", n=count(number))


def signed(value: Any, low: Any, high: Any) -> str:
    """Write a difference with its sign and its interval."""
    written = with_interval(value, low, high)
    if value > 0:
        return f"+{written}"
    return written
