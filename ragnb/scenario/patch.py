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
from typing import Any, NamedTuple, cast

from pydantic import BaseModel

from ragnb.errors import RagnbError, need_known, place
from ragnb.files import write_whole
from ragnb.scenario.fields import SOURCES, is_blank
from ragnb.scenario.load import load_scenario
from ragnb.scenario.model import Scenario
from ragnb.scenario.source import Source, block, compose, dotted, flow, nfc, read_text
from ragnb.schema import METRICS

Patched = Mapping[str, float | None]
Tree = Mapping[str, Any]
_BOM = b"\xef\xbb\xbf"  # of UTF-8
_PATCHED = ("metric_weights", "doc_weights", "llm_profiles")
# Between a key and its value only blanks, line ends and comments stand before the colon.
_COLON = re.compile(r"(?:\s|#[^\r\n]*[\r\n])*:")
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
            # Reading left out the mark of a file that begins with one; it is kept.
            mark = _BOM if raw.startswith(_BOM) else b""
            permissions = self.file.stat().st_mode & 0o777
            write_whole(self.to, mark + self.after.encode(), mode=permissions)
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
    new = _merged(scenario, old, given, drop or {})
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
    # In the order of the file, with new keys last.
    keys = [*old, *new]
    places = sorted({**before, **after}, key=lambda where: keys.index(where[0]))
    changed = [dotted(where) for where in places if before.get(where) != after.get(where)]
    # Refuses what a scenario cannot hold.
    Scenario.of_file(source, new, target)
    text = source.text
    if changed:
        text = _spliced(source.text, old, new)
    # Not every valid file can be spliced: the new text is read again, and must say what was meant.
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
    usual_weights = {
        key: metric.weight if metric.role == "quality" else None for key, metric in known.items()
    }
    for name, values in given.items():
        if name == "anchor":  # a path, the only value here that is no mapping
            new[name] = values
            continue
        if not isinstance(values, Mapping | None):
            raise RagnbError(f"{name}={values!r} is not a mapping; write {{name: value}}")
        usual = usual_weights if name == "metric_weights" else {}
        entries = _with_entries(old.get(name) or {}, values or {}, usual)
        # A key that the file has without a value stays as it is where nothing is put in.
        new[name] = entries or old.get(name)
    for name, keys in drop.items():
        need_known("drop", name, _PATCHED)
        gone = {nfc(key) for key in keys}
        entries = new.get(name) or {}
        kept = {key: value for key, value in entries.items() if nfc(key) not in gone}
        new[name] = kept or None
    return new


def _with_entries(old: Tree, given: Tree, usual: Mapping[str, float | None]) -> dict[str, Any]:
    """Return a mapping of the file with other entries put in; `usual` are weights that are not 1 by default."""
    entries = dict(old)
    spelled = {nfc(key): key for key in entries}
    for spelling, value in given.items():
        key = spelled.get(nfc(spelling)) or str(spelling)
        if isinstance(value, BaseModel | Mapping):  # a profile, of which only some fields are given
            fields = {field: item for field, item in dict(value).items() if not is_blank(item)}
            value = {**(entries.get(key) or {}), **fields} or None
        elif isinstance(value, Real) and not isinstance(value, bool | int):
            value = float(value)  # of a number of numpy
        if is_blank(value):
            continue
        # True equals 1.0 and is no weight: it is put in, so that checking the result refuses it.
        is_usual = not isinstance(value, bool) and value == usual.get(key, 1.0)
        if key in entries or not is_usual:
            entries[key] = value
    return entries


class _Edit(NamedTuple):
    """What is written in the place of a text from `start` up to `end`; where both are equal it is put in."""

    start: int
    end: int
    written: str


class _Layout(NamedTuple):
    """How a file is written: what ends its lines, and by how many spaces a nested mapping is set in."""

    newline: str
    step: int


def _spliced(text: str, old: Tree, new: Tree) -> str:
    """Return the text of the mapping `old` with as little changed as makes it say `new`.

    Lists are the same in both. A mapping that loses its last key reads as None.
    """
    line_end = _BREAK.search(text)
    first_indent = re.search(r"^( +)[^\s#]", text, re.MULTILINE)
    layout = _Layout(
        newline=line_end[0] if line_end else "\n",
        step=len(first_indent[1]) if first_indent else 2,
    )
    spliced = ""
    at = 0  # up to where the old text is taken over
    edits = _edits(text, compose(text), old, new, layout)
    # Edits at one place stay in their order: what is nested deeper is written first.
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        spliced += text[at : edit.start]
        is_of_whole_lines = edit.start == edit.end and edit.written.endswith(layout.newline)
        # The line before has no end where the file ends without one.
        if is_of_whole_lines and spliced and not spliced.endswith(("\r", "\n")):
            spliced += layout.newline
        spliced += edit.written
        at = max(at, edit.end)
    return spliced + text[at:]


def _edits(
    text: str, node: Any, old: Tree, new: Tree, layout: _Layout, *, top: bool = True
) -> Iterator[_Edit]:
    """Yield how the text of a mapping changes, what is nested deeper first; `node` is what ruamel composed."""
    kept = [entry for entry in node.value if entry[0].value in new]
    added = {name: value for name, value in new.items() if name not in old and value is not None}
    for nth, (key, value) in enumerate(node.value):
        before = old[key.value]
        after = new.get(key.value)
        is_gone = key.value not in new
        is_last = nth == len(node.value) - 1
        if is_gone and is_last and node.flow_style and added:
            # What is new takes the place of what goes.
            yield _Edit(key.start_mark.index, _end(text, key, value), flow(added)[1:-1])
            added = {}
        elif is_gone:
            yield _removal(text, node, nth, kept)
        elif value.id == "mapping" and isinstance(after or {}, Mapping):
            yield from _edits(text, value, before, after or {}, layout, top=False)
        elif after != before:
            yield _replacement(text, node, key, value, after, layout)
    if node.value:
        last = _end(text, *node.value[-1])
    else:
        last = node.start_mark.index + len("{")
    if added and node.flow_style:
        comma = ", " if kept else ""
        yield _Edit(last, last, comma + flow(added)[1:-1])
    elif added:
        at = _foot(text, last) if top else _line_end(text, last)
        lines = block(added, node.start_mark.column, layout.newline, layout.step)
        yield _Edit(at, at, lines)


def _foot(text: str, last: int) -> int:
    """Return where a file takes new keys; `last` is the end of its last entry."""
    # Comments at the foot of a file belong to what is above them.
    document_end = _DOCUMENT_END.search(text, last)
    if document_end:
        return document_end.start()
    return len(text)


def _replacement(text: str, node: Any, key: Any, value: Any, after: Any, layout: _Layout) -> _Edit:
    """Return how an entry of `node` gets another value."""
    if value.value or value.style is not None:
        start = value.start_mark.index
        end = value.end_mark.index
        # The end of a block of text (| or >) is that of its last line.
        line_end = layout.newline if text[start:end].endswith("\n") else ""
        return _Edit(start, end, flow(after, value.style) + line_end)
    # Nothing is written after the colon, or there is none.
    colon = _end(text, key, value)
    if node.flow_style and not _COLON.match(text, key.end_mark.index):
        return _Edit(colon, colon, f": {flow(after)}")
    if isinstance(after, Mapping) and not node.flow_style:
        at = _line_end(text, colon)
        column = key.start_mark.column + layout.step
        return _Edit(at, at, block(after, column, layout.newline, layout.step))
    return _Edit(colon, colon, f" {flow(after)}")


def _removal(text: str, node: Any, nth: int, kept: list[Any]) -> _Edit:
    """Return how an entry goes: with its whole lines, or with its part of a list in braces."""
    key, value = node.value[nth]
    start = key.start_mark.index
    end = _end(text, key, value)
    if not node.flow_style:
        return _Edit(start - key.start_mark.column, _line_end(text, end), "")
    comma_after = re.compile(r"\s*,[ \t]*").match(text, end)
    if comma_after:
        return _Edit(start, comma_after.end(), "")
    # The last entry goes with the comma before it. A comment in between stays, and so does its comma.
    end_before = _end(text, *kept[-1]) if kept else start
    if re.fullmatch(r"\s*,\s*", text[end_before:start]):
        start = end_before
    return _Edit(start, end, "")


def _end(text: str, key: Any, value: Any) -> int:
    """Return where an entry ends: a block mapping's own mark lies past the comments that follow it."""
    is_empty = value.value == "" and getattr(value, "style", "") is None
    if is_empty:  # and its own mark is at whatever follows
        colon = _COLON.match(text, key.end_mark.index)
        # A key alone, as in `{scores: s.csv, title}` or `? title`, has no colon.
        return colon.end() if colon else int(key.end_mark.index)
    if value.id != "scalar" and value.value and not value.flow_style:
        last = value.value[-1]
        if value.id == "mapping":
            return _end(text, *last)
        return _end(text, key, last)
    return int(value.end_mark.index)


def _line_end(text: str, at: int) -> int:
    """Return the beginning of the next line."""
    if text[at - 1 : at] in ("\r", "\n"):  # a block of text ends there already
        return at
    line_end = _BREAK.search(text, at)
    if line_end:
        return line_end.end()
    return len(text)
