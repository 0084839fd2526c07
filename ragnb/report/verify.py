"""Whether a run gives the same tables today, and if not, what moved: an input, a setting or a version."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ragnb.errors import RagnbError
from ragnb.files import digest
from ragnb.scenario import load_scenario
from ragnb.texts.errors import translated
from ragnb.versions import versions

TABLES = ("scores.csv", "worst.csv", "means.csv", "gates.json")
"""What is compared byte by byte; the page and the records hold times and places."""
_SNAPSHOT = "scenario.snapshot.yaml"


class Verification(NamedTuple):
    """What became of a run that is computed again.

    Attributes
    ----------
    same : bool
        Whether every table is the same, byte by byte.
    moved : DataFrame
        ``what, name, then, now``: each ``input``, ``setting`` and ``version`` that is not what it was, each
        ``table`` that differs, and ``gone`` with the reason where the run cannot be computed again.
    """

    same: bool
    moved: pd.DataFrame


def verify(run: str | Path, *, lang: str = "en") -> Verification:
    """Compute a run again from its own settings, and say whether its tables are the same.

    Parameters
    ----------
    run : path
        The folder of a run, as `report` or `Assessment.save` wrote it; its inputs are where they were.
    lang : {"en", "zh"}
        Of what is said where the run cannot be computed again.

    Returns
    -------
    Verification

    Raises
    ------
    RagnbError
        For a folder that is no run.

    Examples
    --------
    >>> from ragnb import assess
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "s.csv").write_text("faithfulness,doc_name\\n0.5,a\\n0.7,b\\n")
    ...     _ = Path(folder, "s.yaml").write_text("scores: s.csv\\n")
    ...     _ = assess(Path(folder, "s.yaml")).save(Path(folder, "run"))
    ...     verify(Path(folder, "run")).same
    True
    """
    folder = Path(run)
    record = _record(folder)
    rows = [*_settings(folder, record), *_versions(record)]
    with tempfile.TemporaryDirectory() as place:
        try:
            inputs = _again(folder, Path(place))
        except RagnbError as error:
            # An input that is no longer there, or a setting that this version refuses.
            reason = translated(str(error), lang)
            rows.append({"what": "gone", "name": "", "then": "", "now": reason})
            return Verification(False, _frame(rows))
        rows += _inputs(record.get("inputs", []), inputs)
        # Read before the folder of the second run is removed.
        different = list(_tables(folder, Path(place)))
    return Verification(not different, _frame([*rows, *different]))


def _record(folder: Path) -> dict[str, Any]:
    """Return the record of a run."""
    try:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        if isinstance(record, dict) and (folder / _SNAPSHOT).is_file():
            return record
    except (OSError, ValueError):
        pass
    raise RagnbError(
        f"{folder} is not the folder of a run: it needs run.json and {_SNAPSHOT}; name one below reports/"
    )


def _again(folder: Path, place: Path) -> list[dict[str, Any]]:
    """Compute the run into another folder; return the inputs that it read."""
    from ragnb.sheet import assess

    sheet = assess(load_scenario(folder / _SNAPSHOT))
    sheet.save(place)
    return sheet.inputs


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return what moved, with its columns where nothing did, too."""
    return pd.DataFrame(rows, columns=["what", "name", "then", "now"])


def _settings(folder: Path, record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the settings of the run where their file was changed since."""
    then = record.get("settings_sha256")
    now = digest([folder / _SNAPSHOT])
    # None in the records of versions that did not write it.
    if then is not None and then != now:
        yield {"what": "setting", "name": _SNAPSHOT, "then": _short(then), "now": _short(now)}


def _versions(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each package that is of another version, or there only now or then."""
    today = versions()
    before_of = {name: record.get(name) for name in ("ragnb", "python")}
    before_of |= record.get("packages", {})
    for name in {**before_of, **today}:
        before = before_of.get(name)
        now = today.get(name)
        if before != now:
            yield {"what": "version", "name": name, "then": before or "", "now": now or ""}


def _inputs(then: list[dict[str, Any]], now: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield each input whose bytes differ, or that was read only now or then."""
    # By role, too: one file may be read in two, such as traces and gold.
    before = {(row["role"], row["path"]): row["sha256"] for row in then}
    after = {(row["role"], row["path"]): row["sha256"] for row in now}
    for role, path in {**before, **after}:
        first = before.get((role, path))
        second = after.get((role, path))
        if first != second:
            yield {
                "what": "input",
                "name": f"{role}: {path}",
                "then": _short(first),
                "now": _short(second),
            }


def _tables(folder: Path, place: Path) -> Iterator[dict[str, Any]]:
    """Yield each table whose bytes differ, or that only one of two folders has."""
    for name in TABLES:
        then = _short(_hash_of(folder / name))
        now = _short(_hash_of(place / name))
        if then != now:
            yield {"what": "table", "name": name, "then": then, "now": now}


def _hash_of(file: Path) -> str | None:
    """Return the hash of a file; None where there is none, as of a table that a run does not have."""
    if not file.is_file():
        return None
    return digest([file])


def _short(sha256: str | None) -> str:
    """Return as many digits of a hash as people compare by eye; an empty text where there is none."""
    return (sha256 or "")[:12]
