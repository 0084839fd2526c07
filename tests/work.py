"""How much work code does, in units that no clock and no other process change.

`lines_run` counts the lines of the library that a call runs. `looks` counts how often a regular expression looks
at a character: it is a backtracking matcher over the tree that `re` has parsed, without any of its shortcuts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import ragnb

_LIBRARY = str(Path(ragnb.__file__).parent)
EXPLODED = 1_000_000
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_parser: Any = re._parser  # type: ignore[attr-defined]
_compiler: Any = re._compiler  # type: ignore[attr-defined]


def lines_run(call: Callable[[], object]) -> int:
    """Return how many lines of the library a call runs the second time, when what can be cached is."""
    call()
    count = 0

    def on_line(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += event == "line"
        return on_line

    def on_call(frame: FrameType, event: str, _: object) -> Any:
        return on_line if frame.f_code.co_filename.startswith(_LIBRARY) else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


class Looks:
    """A regular expression whose looks at a character are counted.

    A repetition of more than `bound` is taken as one of `bound`, so that a longer text shows how work grows.
    """

    def __init__(self, pattern: str | bytes, flags: int = 0, bound: int = 10) -> None:
        self.bound, self.count = bound, 0
        tree = _parser.parse(pattern, flags)
        self.state, self.leaves = tree.state, dict[int, Any]()
        self.nodes = list(tree)

    def search(self, text: Any) -> tuple[int, int] | None:
        """Return the place of the first match, as `re.search` does."""
        for start in range(len(text) + 1):
            self.groups: dict[int, tuple[int, int]] = {}
            end = next(self._run(self.nodes, text, start), None)
            if end is not None:
                return start, end
        return None

    def _run(self, nodes: list[Any], text: Any, place: int, first: int = 0) -> Iterator[int]:
        """Yield each place where the nodes from the first on can end, in the order in which `re` tries."""
        if first == len(nodes):
            yield place
            return
        for end in self._node(nodes[first], text, place):
            yield from self._run(nodes, text, end, first + 1)

    def _node(self, node: Any, text: Any, place: int) -> Iterator[int]:
        name, value = str(node[0]), node[1]
        if name in _REPEATS:
            yield from self._repeat(name, value, text, place)
        elif name == "SUBPATTERN":
            for end in self._run(list(value[3]), text, place):
                before = self.groups.get(value[0])
                self.groups[value[0]] = (place, end)
                yield end
                if before is None:
                    self.groups.pop(value[0], None)
                else:
                    self.groups[value[0]] = before
        elif name == "BRANCH":
            for part in value[1]:
                yield from self._run(list(part), text, place)
        elif name == "ATOMIC_GROUP":
            end = next(self._run(list(value), text, place), None)
            if end is not None:
                yield end
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from self._assertion(name == "ASSERT", value, text, place)
        elif name == "GROUPREF":
            start, end = self.groups.get(value, (0, -1))
            said = text[start : max(end, start)]
            self.count += 1 + len(said)
            if end >= start and text.startswith(said, place):
                yield place + len(said)
        elif name == "GROUPREF_EXISTS":
            chosen = value[1] if value[0] in self.groups else value[2]
            yield from self._run(list(chosen or []), text, place)
        else:
            yield from self._leaf(node, text, place)

    def _leaf(self, node: Any, text: Any, place: int) -> Iterator[int]:
        """Look at one character, or at one place, with `re` itself."""
        if id(node) not in self.leaves:
            sub = _parser.SubPattern(self.state, [node])
            self.leaves[id(node)] = node, _compiler.compile(sub, self.state.flags)
        self.count += 1
        if self.count > EXPLODED:
            raise AssertionError(f"{self.count:,} looks at {len(text)} characters")
        found = self.leaves[id(node)][1].match(text, place)
        if found:
            yield found.end()

    def _assertion(self, wanted: bool, value: Any, text: Any, place: int) -> Iterator[int]:
        direction, nodes = value
        start = place
        if direction < 0:
            start -= nodes.getwidth()[0]
        found = None if start < 0 else next(self._run(list(nodes), text, start), None)
        if (found is not None) == wanted:
            yield place

    def _repeat(self, name: str, value: Any, text: Any, place: int) -> Iterator[int]:
        least, most, inner = value
        if most is not _parser.MAXREPEAT and most > self.bound:
            most, least = self.bound, min(least, self.bound)
        ends = self._times(name, list(inner), text, place, (least, most, 0))
        if name == "POSSESSIVE_REPEAT":
            end = next(ends, None)
            ends = iter([] if end is None else [end])
        yield from ends

    def _times(
        self, name: str, inner: list[Any], text: Any, place: int, count: tuple[int, Any, int]
    ) -> Iterator[int]:
        least, most, done = count
        if name == "MIN_REPEAT" and done >= least:
            yield place
        if most is _parser.MAXREPEAT or done < most:
            for end in self._run(inner, text, place):
                if end > place or done < least:  # what is empty is not repeated for ever
                    yield from self._times(name, inner, text, end, (least, most, done + 1))
        if name != "MIN_REPEAT" and done >= least:
            yield place


def looks(pattern: re.Pattern[Any], text: Any, bound: int = 10) -> int:
    """Return how often an expression looks at a character to search a text."""
    counted = Looks(pattern.pattern, pattern.flags & ~re.UNICODE, bound)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        counted.search(text)
    finally:
        sys.setrecursionlimit(limit)
    return counted.count


def grows_faster(pattern: re.Pattern[Any], text: Callable[[int], str], size: int = 60) -> bool:
    """Return whether twice the text takes more than twice the looks, beyond a few where it begins and ends."""
    short, long = text(size), text(2 * size)
    if isinstance(pattern.pattern, bytes):
        return looks(pattern, long.encode()) > 2.2 * looks(pattern, short.encode()) + 200
    return looks(pattern, long) > 2.2 * looks(pattern, short) + 200
