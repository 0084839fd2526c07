"""Settings back into a scenario file: what changed and not a byte more, whole or not at all."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragnb.errors import RagnbError, place
from ragnb.files import write_whole
from ragnb.scenario.changes import Weights, comparable, different, merged, moved
from ragnb.scenario.load import load_scenario
from ragnb.scenario.model import Scenario
from ragnb.scenario.source import read_text
from ragnb.scenario.splice import splice
from ragnb.scenario.words import dotted

_BOM = b"\xef\xbb\xbf"


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
        return "\n".join(difflib.unified_diff(before, after, self.file.name, self.to.name, n=2, lineterm=""))

    def write(self) -> list[str]:
        """Write the file, unless nothing changes, and return what changed.

        Raises
        ------
        RagnbError
            When the file no longer holds `before`, when a file stands in the way of a new one, or when it
            cannot be written.
        """
        if self.to == self.file and self.before == self.after:
            return []
        try:
            raw = self.file.read_bytes()
            if raw.decode("utf-8-sig", "replace") != self.before:
                raise RagnbError(f"{place(self.file)}the file changed since it was read; load it again, then save")
            if self.to != self.file and self.to.exists():
                raise RagnbError(f"{place(self.to)}a file of this name is there already; choose another name")
            mode = self.file.stat().st_mode & 0o777
            write_whole(self.to, raw[: len(_BOM) * raw.startswith(_BOM)] + self.after.encode(), mode=mode)
        except OSError as error:
            raise RagnbError(f"{place(self.to)}cannot be written: {error.strerror}") from None
        return self.changed


def patch_scenario(
    path: str | Path,
    *,
    metric_weights: Weights | None = None,
    doc_weights: Weights | None = None,
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
    given = {"metric_weights": metric_weights, "doc_weights": doc_weights, "llm_profiles": llm_profiles}
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
    source = scenario._source
    assert source is not None
    file = Path(path).resolve()  # a link goes on pointing at its file
    if since is not None and since.text != source.text:
        raise RagnbError(f"{place(path)}the file changed since it was read; load it again, then save")
    new = merged(source.data, given, drop or {}, scenario)
    target = file if to is None else _target(Path(to))
    if target.parent != file.parent:
        new |= moved(source.data, scenario, target.parent)
    changed = [dotted(where) for where in different(source.data, new)]
    Scenario._of_file(new, source, target)
    text = splice(source.text, source.data, new) if changed else source.text
    with suppress(RagnbError):
        if comparable(read_text(text, file).data) == comparable(new):
            return Patch(file, target, source.text, text, changed)
    raise RagnbError(f"{place(file)}cannot be patched in place; set {', '.join(changed)} by hand")


def _target(to: Path) -> Path:
    if to.suffix.lower() not in (".yaml", ".yml"):
        raise RagnbError(f"{str(to)!r} is no name for a scenario; let it end in .yaml")
    return to.parent.resolve() / to.name
