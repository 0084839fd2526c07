"""What the eye cannot miss and a test can measure: every text of a figure inside it, and none on another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from matplotlib.text import Text

from ragnb import plots


def complaints(outputs: Iterable[Any]) -> list[str]:
    """Return what cells print to stderr; without a Chinese font charts have to say so, and no more."""
    texts = [out["text"] for out in outputs if out.get("name") == "stderr"]
    if plots.cjk_font() is not None:
        return texts
    return [
        text
        for text in texts
        if text.count("Warning: ") != text.count("Warning: no font with Chinese")
    ]


def assert_legible(figure: Any) -> None:
    """Draw a figure and compare the boxes of its texts; ticks that lie outside the view are not drawn."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    axes = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
    ticks = [tick for axis in axes for tick in axis.get_major_ticks() if not _in_view(axis, tick)]
    hidden = {id(label) for tick in ticks for label in (tick.label1, tick.label2)}
    texts = [
        text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()
    ]
    drawn = [
        (text.get_text(), text.get_window_extent(renderer))
        for text in texts
        if id(text) not in hidden
    ]
    boxes = [(said, box) for said, box in drawn if box.width > 0]
    for said, box in boxes:
        assert box.x0 >= -1, said
        assert box.y0 >= -1, said
        assert box.x1 <= figure.bbox.x1 + 1, said
        assert box.y1 <= figure.bbox.y1 + 1, said
    for k, (said, box) in enumerate(boxes):
        for other, against in boxes[k + 1 :]:
            across = min(box.x1, against.x1) - max(box.x0, against.x0)
            up = min(box.y1, against.y1) - max(box.y0, against.y0)
            assert across < 2 or up < 3, (said, other)


def _in_view(axis: Any, tick: Any) -> bool:
    low, high = sorted(axis.get_view_interval())
    return bool(low - 1e-9 <= tick.get_loc() <= high + 1e-9)
