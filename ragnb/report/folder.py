"""Where a run is written: one folder a run, whole or marked as failed, never over an earlier one."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import NamedTuple

from ragnb.errors import RagnbError
from ragnb.files import digest, matched, short_hash, slug, write_whole
from ragnb.inputs import stage_tables, with_cases
from ragnb.scenario import Scenario

INPUTS = ("scores", "traces", "gold", "cases", "ratings")


def input_hash(scenario: Scenario) -> str:
    """Return eight hex digits of a hash over the settings and the bytes of every input file."""
    scenario = with_cases(scenario)
    paths = {role: getattr(scenario, role) for role in INPUTS}
    files = {role: path for role, path in paths.items() if path is not None}
    hashes = [f"{role} {digest(matched(path))}" for role, path in files.items()]
    hashes += [f"{table.stage} {digest([table.path])}" for table in stage_tables(scenario)]
    # With paths relative to the scenario: a project that was moved has the same hash.
    home = (scenario.path or next(iter(files.values()))).parent
    return short_hash("\n".join([scenario.snapshot_text(relative_to=home), *hashes]))


class RunFolder(NamedTuple):
    """A folder that is being filled: hidden beside its final place until it is `done` or has `failed`."""

    path: Path
    final: Path

    @classmethod
    def make(cls, out: Path, scenario: Scenario) -> RunFolder:
        """Make the hidden folder ``out/<scenario>/.<UTC time>-<input hash>.partial``."""
        parent = out / slug(scenario.name)
        parent.mkdir(parents=True, exist_ok=True)
        if not parent.resolve().is_relative_to(out.resolve()):
            raise RagnbError(
                f"{str(parent)!r} is a link to a place outside {str(out)!r}; remove the link"
            )
        parent = parent.resolve()
        stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{input_hash(scenario)}"
        # Runs of the same second and inputs are numbered.
        for attempt in count(1):
            name = stamp if attempt == 1 else f"{stamp}-{attempt}"
            path = parent / f".{name}.partial"
            final = parent / name
            if final.exists() or final.with_name(f"{name}.failed").exists():
                continue
            # Another process may have made it since: to make it, not to look for it, tells who has it.
            with suppress(FileExistsError):
                path.mkdir()
                break
        return cls(path, final)

    def previous(self) -> Path | None:
        """Return the folder of the last run of the scenario, None where none is left that holds all its rows."""
        # ValueError: a file that is no UTF-8, or whose text is no name of a folder.
        with suppress(OSError, ValueError):
            latest = (self.final.parent / "latest.txt").read_text(encoding="utf-8").strip()
            folder = self.final.with_name(latest)
            # A run of rows that were streamed has no scores.csv.
            if all((folder / name).is_file() for name in ("scores.csv", "run.json")):
                return folder
        return None

    def done(self) -> Path:
        """Give the folder its name, and write that name into ``latest.txt`` beside it."""
        # Renamed first: `latest.txt` names no folder that is not there.
        renamed = self.path.rename(self.final)
        write_whole(self.final.parent / "latest.txt", f"{renamed.name}\n")
        return self.final

    def failed(self) -> Path:
        """Mark the folder as that of a failed run; one without any file is removed."""
        marked = self.final.with_name(f"{self.final.name}.failed")
        if any(self.path.iterdir()):
            return self.path.rename(marked)
        self.path.rmdir()
        return marked
