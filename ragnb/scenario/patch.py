"""Changes of a scenario, saved into its file with all else as it was."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, cast

from pydantic import (
    BaseModel,
)

from ragnb.errors import RagnbError, need_known, place
from ragnb.files import write_whole
from ragnb.scenario.fields import SOURCES, is_blank
from ragnb.scenario.load import load_scenario
from ragnb.scenario.model import Scenario
from ragnb.scenario.source import Source, block, compose, dotted, flow, nfc, read_text
from ragnb.schema import (
    METRICS,
)

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
        before = self.before.splitlines()
        after = self.after.splitlines()
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
    source = cast(Source, scenario.source)
    file = Path(path).resolve()  # a link goes on pointing at its file
    if since is not None and since.text != source.text:
        raise RagnbError(
            f"{place(path)}the file changed since it was read; load it again, then save"
        )
    old = source.data
    new = _merged(scenario, source.data, given, drop or {})
    if to is None:
        target = file
    else:
        target = Path(to).parent.resolve() / Path(to).name
    if target.suffix.lower() not in (".yaml", ".yml") and to is not None:
        raise RagnbError(f"{str(to)!r} is not a valid name for a scenario; it must end in .yaml")
    if target.parent != file.parent:
        for key in (*SOURCES, "gold"):
            if old.get(key) is not None and not Path(old[key]).is_absolute():
                new[key] = Path(os.path.relpath(getattr(scenario, key), target.parent)).as_posix()
    before = dict(_leaves(old))
    after = dict(_leaves(new))
    keys = [*old, *new]
    places = sorted({**before, **after}, key=lambda where: keys.index(where[0]))
    changed = [dotted(where) for where in places if before.get(where) != after.get(where)]
    Scenario.of_file(source, new, target)
    if changed:
        text = _spliced(source.text, old, new)
    else:
        text = source.text
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
    new = dict(old)
    known = {**METRICS, **scenario.declared}
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
    made = ""
    at = 0
    line_end = _BREAK.search(text)
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
        made = made + newline * bool(own_line) + written
        at = max(at, end)
    return made + text[at:]


def _edits(
    text: str, node: Any, old: Tree, new: Tree, newline: str, step: int, top: bool = True
) -> Iterator[tuple[int, int, str]]:
    """Yield from where, to where and by what the text of a mapping changes, what is nested deeper first."""
    kept = [entry for entry in node.value if entry[0].value in new]
    fresh = {name: value for name, value in new.items() if name not in old and value is not None}
    for nth, (key, value) in enumerate(node.value):
        start = value.start_mark.index
        end = value.end_mark.index
        before = old[key.value]
        after = new.get(key.value)
        # What is new takes the place of what goes.
        if key.value not in new and node.flow_style and fresh and nth == len(node.value) - 1:
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
    if node.value:
        last = _end(text, *node.value[-1])
    else:
        last = node.start_mark.index + 1
    if fresh and node.flow_style:
        yield last, last, ", " * bool(kept) + flow(fresh)[1:-1]
    elif fresh:
        # Comments at the foot of a file belong to what stands above them.
        foot = _DOCUMENT_END.search(text, last) if top else None
        if foot:
            at = foot.start()
        elif top:
            at = len(text)
        else:
            at = _line_end(text, last)
        yield at, at, block(fresh, node.start_mark.column, newline, step)


def _taken_out(text: str, node: Any, nth: int, kept: list[Any]) -> tuple[int, int]:
    """Where an entry that goes begins and ends: its whole lines, or its part of a list in braces."""
    key, value = node.value[nth]
    start = key.start_mark.index
    end = _end(text, key, value)
    if not node.flow_style:
        return start - key.start_mark.column, _line_end(text, end)
    if comma := re.compile(r"\s*,[ \t]*").match(text, end):
        return start, comma.end()
    before = _end(text, *kept[-1]) if kept else start
    # A comment in between stays, and so does its comma.
    between = re.fullmatch(r"\s*,\s*", text[before:start])
    return before if between else start, end


def _end(text: str, key: Any, value: Any) -> int:
    """Where an entry ends: a block mapping's own mark lies past the comments that follow it."""
    if value.value == "" and getattr(value, "style", "") is None:
        return text.index(":", key.end_mark.index) + 1
    if value.id != "scalar" and value.value and not value.flow_style:
        last = value.value[-1]
        if value.id == "mapping":
            return _end(text, *last)
        return _end(text, key, last)
    return int(value.end_mark.index)


def _line_end(text: str, at: int) -> int:
    """The beginning of the next line."""
    if text[at - 1 : at] in ("\r", "\n"):  # a block of text ends there already
        return at
    line_end = _BREAK.search(text, at)
    if line_end:
        return line_end.end()
    return len(text)
