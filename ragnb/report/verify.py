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
            rows.append(
                {"what": "gone", "name": "", "then": "", "now": translated(str(error), lang)}
            )
            return Verification(False, _frame(rows))
        rows += _inputs(record.get("inputs", []), inputs)
        different = [*_tables(folder, Path(place))]
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
    return pd.DataFrame(rows, columns=["what", "name", "then", "now"])


def _settings(folder: Path, record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    then = record.get("settings_sha256")
    now = digest([folder / _SNAPSHOT])
    if then is not None and then != now:
        yield {"what": "setting", "name": _SNAPSHOT, "then": then[:12], "now": now[:12]}


def _versions(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    today = versions()
    before_of = {name: record.get(name) for name in ("ragnb", "python")}
    before_of |= record.get("packages", {})
    for name in {**before_of, **today}:
        before = before_of.get(name)
        now = today.get(name)
        if before != now:
            yield {"what": "version", "name": name, "then": before or "", "now": now or ""}


def _inputs(then: list[dict[str, Any]], now: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    before = {(row["role"], row["path"]): row["sha256"] for row in then}
    after = {(row["role"], row["path"]): row["sha256"] for row in now}
    for key in {**before, **after}:
        first = before.get(key)
        second = after.get(key)
        if first != second:
            name = f"{key[0]}: {key[1]}"
            short = [(one or "")[:12] for one in (first, second)]
            yield {"what": "input", "name": name, "then": short[0], "now": short[1]}


def _tables(folder: Path, place: Path) -> Iterator[dict[str, Any]]:
    for name in TABLES:
        then = folder / name
        now = place / name
        if not then.is_file() and not now.is_file():
            continue
        hashes = [digest([one])[:12] if one.is_file() else "" for one in (then, now)]
        if hashes[0] != hashes[1]:
            yield {"what": "table", "name": name, "then": hashes[0], "now": hashes[1]}
