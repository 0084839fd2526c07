"""What charts and pages share: the colours of text and systems, and the check of a scale."""

from __future__ import annotations

from collections.abc import Sequence

from ragnb.errors import RagnbError

INK = "#1f2328"
"""The colour of text and axes where ``currentColor`` cannot be said."""

SYSTEM_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000")
"""Okabe and Ito's colours that stand 3 : 1 out from white; black is drawn in the colour of the text."""

DASHES: tuple[tuple[float, ...], ...] = ((), (6, 3), (2, 2), (8, 3, 2, 3), (12, 4))
"""One dash pattern a system, in pixels, so that grey print keeps them apart."""


def check_span(span: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a scale, or refuse a scale that is empty or endless."""
    low, high = float(span[0]), float(span[1])
    if not (low < high and high - low < float("inf")):
        raise RagnbError(f"span={tuple(span)!r} is no scale; give two finite ends, the lower one first")
    return low, high
