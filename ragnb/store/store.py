"""Where paid work is kept, so that it is never lost and never paid for twice: one SQLite file, one cell a row."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragnb.errors import RagnbError
from ragnb.schema import without_secrets
from ragnb.store.cells import Cell, Outcome, canonical, digest
from ragnb.store.database import Database
from ragnb.store.integrity import PARTS, is_empty
from ragnb.store.owners import Holder, new_owner
from ragnb.store.tables import OF_RUN, compared, refuse_systems, run_frame

if TYPE_CHECKING:
    import sqlite3

_OPEN = "(t.id IS NULL OR (t.status = 'failed' AND t.id <= :mark))"


class Store:
    """Cells and what came of them, in one file that survives ``kill -9``.

    Several processes may work on one store at a time: a cell is claimed before it is paid for. A claim ends
    with the process that holds it, at its date, or when it has given no sign of life for `lease` seconds on our
    own clock, whatever its date.

    Parameters
    ----------
    path : str, Path or None
        The file, made where there is none; None keeps all in memory, for this process alone.
    lease : float
        Seconds.
    new : bool
        Whether a store is made of a file that is empty or not there; False to read only.

    Raises
    ------
    RagnbError
        For a file that is no store or of another version (it is left as it is), or a file system without
        write-ahead logging.

    Examples
    --------
    >>> cells = [Cell("s1", "faithfulness", {"answer": "Yes."}), Cell("s2", "faithfulness", {"answer": "No."})]
    >>> with Store(None) as store:
    ...     run = store.plan(cells, name="first")
    ...     store.append([(cells[1], Outcome.of(0.5))])
    ...     store.frame(run)[["sample_id", "what", "status", "value"]]
      sample_id          what   status value
    0        s1  faithfulness  pending  None
    1        s2  faithfulness       ok   0.5
    """

    def __init__(self, path: str | Path | None, *, lease: float = 60.0, new: bool = True) -> None:
        self.path = Path(path) if path is not None else None
        self.lease = lease
        self._owner = new_owner()
        # Of holders: the last sign of life, and until when it counts
        self._signs: dict[str, tuple[tuple[float, int], float]] = {}
        self.taken_over: list[str] = []  # of whom, for the run to tell
        self._database = Database(self.path, lease, new=new)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __repr__(self) -> str:
        return f"Store({str(self.path) if self.path else None!r})"

    def plan(self, cells: Sequence[Cell], *, name: str = "", about: Mapping[str, Any] | None = None) -> str:
        """Write down what a run is made of, in order, and return its id (8 hexadecimal digits).

        The same cells in the same order are the same run: planning them again takes it up. A cell that
        another run has done is not done again. `about` is kept with the run, as JSON.
        """
        run = digest(canonical([cell.key for cell in cells]))[:8]
        rows = [
            (cell.key, _text(cell.sample_id), _clean(cell.what), _clean(cell.model), canonical(cell.about))
            for cell in cells
        ]
        with self._database.writing() as file:
            if file.execute("SELECT 1 FROM runs WHERE run = ?", [run]).fetchone():
                if name:
                    file.execute("UPDATE runs SET name = ? WHERE run = ?", [_clean(name), run])
                return run
            file.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?)",
                [run, _clean(name), _now(), canonical(without_secrets(dict(about or {})))],
            )
            file.executemany("INSERT INTO cells VALUES (?, ?, ?, ?, ?, NULL) ON CONFLICT DO NOTHING", rows)
            places = [
                (run, place, cell.key, None if cell.cluster is None else _clean(cell.cluster))
                for place, cell in enumerate(cells)
            ]
            file.executemany("INSERT INTO plan VALUES (?, ?, ?, ?)", places)
        return run

    def settled(self, cells: Iterable[Cell]) -> set[str]:
        """The keys of those cells that need no work: ``ok`` or ``not_applicable`` in any run."""
        asked = (
            "SELECT c.key FROM cells AS c JOIN attempts AS t ON t.id = c.attempt "
            "WHERE t.status <> 'failed' AND c.key IN (SELECT value FROM json_each(?))"
        )
        with self._database.reading() as file:
            return {key for (key,) in file.execute(asked, [json.dumps([cell.key for cell in cells])])}

    def mark(self) -> int:
        """The number of the latest attempt; a cell that failed after it is not open again in the same run."""
        with self._database.reading() as file:
            return int(file.execute("SELECT coalesce(max(id), 0) FROM attempts").fetchone()[0])

    def pending(self, run: str, mark: int | None = None) -> list[int]:
        """The positions of the run's cells that have no outcome, or that failed (up to `mark`)."""
        asked = {"run": run, "mark": self.mark() if mark is None else mark}
        with self._database.reading() as file:
            found = file.execute(f"SELECT p.position {OF_RUN} AND {_OPEN} ORDER BY p.position", asked)
            return [position for (position,) in found]

    def claim(self, run: str, most: int, *, mark: int, start: int = 0) -> list[int]:
        """Claim up to `most` pending cells from position `start` on, and return their positions.

        What another living process holds is passed over. A claimed cell is ours until `append` or `release`.
        """
        with self._database.writing(durable=False) as file:
            file.executemany("DELETE FROM claims WHERE owner = ?", [[owner] for owner in self._dead(file)])
            found = file.execute(
                f"SELECT p.key, p.position {OF_RUN} AND {_OPEN} AND p.position >= :start "
                "AND p.key NOT IN (SELECT key FROM claims) ORDER BY p.position LIMIT :most",
                {"run": run, "mark": mark, "start": start, "most": most},
            ).fetchall()
            first = dict(reversed(found))  # of work that stands there twice, the first place
            rows = [(key, self._owner, time.time() + self.lease) for key in first]
            file.executemany("INSERT INTO claims VALUES (?, ?, ?)", rows)
        return sorted(first.values())

    def _dead(self, file: sqlite3.Connection) -> list[str]:
        """Holders whose claims are over.

        A claim's date is of its holder's clock, which may differ from ours, and both may be set while we wait. So
        it says only how long to wait from the moment when we first saw it, at most one lease.
        """
        dead, now = [], time.monotonic()
        for owner, until, n in file.execute("SELECT owner, max(until), count(*) FROM claims GROUP BY owner"):
            holder, sign, left = Holder.of(owner), (until, n), until - time.time()
            if owner not in self._signs or self._signs[owner][0] != sign:
                self._signs[owner] = sign, now + min(left, self.lease)
            if holder.is_gone or (owner != self._owner and now >= self._signs[owner][1]):
                dead.append(owner)
                if left > 0 and not holder.is_gone:
                    self.taken_over.append(f"{holder} gave no sign of life; its {n} cells are taken over")
        return dead

    def claims(self) -> pd.DataFrame:
        """Return who holds cells of any run.

        Returns
        -------
        DataFrame
            One row a holder: ``process`` (its id), ``host, cells, since`` (when it opened the store; None where it
            does not say) and ``until`` (when its claims end unless it renews them), both in UTC.
        """
        with self._database.reading() as file:
            found = file.execute("SELECT owner, count(*), max(until) FROM claims GROUP BY owner")
            rows = [(Holder.of(owner), n, until) for owner, n, until in found]
        return pd.DataFrame(
            [(who.process, who.host, n, _date(who.since), _date(until)) for who, n, until in rows],
            columns=["process", "host", "cells", "since", "until"], dtype=object,
        )  # fmt: skip

    def renew(self) -> None:
        """Give a sign of life: our claims hold for another `lease` seconds."""
        with self._database.writing(durable=False) as file:
            file.execute("UPDATE claims SET until = ? WHERE owner = ?", [time.time() + self.lease, self._owner])

    def release(self) -> None:
        """Give up all our claims."""
        with self._database.writing(durable=False) as file:
            file.execute("DELETE FROM claims WHERE owner = ?", [self._owner])

    def append(self, done: Iterable[tuple[Cell, Outcome]]) -> None:
        """Write outcomes of planned cells durably: when this returns, they survive a crash.

        Every outcome is an attempt of its own, and none is ever overwritten. The first ``ok`` of a cell stands;
        without one, the latest.

        Raises
        ------
        RagnbError
            For a cell that no run has planned, and where the disk refuses.
        """
        with self._database.writing() as file:
            for cell, outcome in done:
                self._append(file, cell, outcome)

    def _append(self, file: sqlite3.Connection, cell: Cell, outcome: Outcome) -> None:
        row = [
            cell.key, outcome.status, None if outcome.value is None else canonical(outcome.value),
            None if outcome.reason is None else _clean(outcome.reason), _text(list(outcome.replies)),
            outcome.calls, outcome.tokens_in, outcome.tokens_out, outcome.seconds, _now(),
        ]  # fmt: skip
        if not file.execute("SELECT 1 FROM cells WHERE key = ?", [cell.key]).fetchone():
            raise RagnbError(f"cell {cell.sample_id!r}, {cell.what!r} belongs to no run; plan it first")
        marks = ", ".join("?" * len(row))
        attempt = file.execute(f"INSERT INTO attempts VALUES (NULL, {marks})", row).lastrowid
        file.execute(
            "UPDATE cells SET attempt = ? WHERE key = ? AND coalesce("
            "(SELECT status FROM attempts WHERE id = cells.attempt), 'failed') = 'failed'",
            [attempt, cell.key],
        )
        file.execute("DELETE FROM claims WHERE key = ? AND owner = ?", [cell.key, self._owner])

    def frame(self, run: str) -> pd.DataFrame:
        """Return a run as it stands, one row a cell, in the order of its plan.

        Returns
        -------
        DataFrame
            ``sample_id, what, repeat, model, cluster, status, value, reason, reply, calls, tokens_in,
            tokens_out, seconds, at, key``. `status` is ``ok``, ``not_applicable``, ``failed`` or ``pending``;
            `value` is the JSON value (dtype object); `reply` the last raw reply. What is not there is None.

        Raises
        ------
        RagnbError
            For a run that the store does not hold.
        """
        return run_frame(self._database, run)

    def history(self, run: str) -> pd.DataFrame:
        """Return every attempt at the cells of a run, oldest first, with the columns of `frame`."""
        return run_frame(self._database, run, history=True)

    def runs(self) -> pd.DataFrame:
        """Return all runs, the oldest first.

        Returns
        -------
        DataFrame
            ``run, name, started, last`` (of its latest attempt), ``models, cells`` (distinct), ``ok,
            not_applicable, failed, pending, calls, tokens_in, tokens_out, seconds``. What was spent counts every
            attempt; a cell that two runs share counts in both. Tokens are None where an endpoint did not tell.
        """
        with self._database.reading() as file:
            rows = file.execute(PARTS["runs"]).fetchall()
        return pd.DataFrame(rows, columns=PARTS["of_runs"], dtype=object)

    def compare(self, old: str, new: str, *, level: float = 0.95) -> pd.DataFrame:
        """Return how the scores of one run differ from those of another, over the samples that both scored.

        Returns
        -------
        DataFrame
            One row a metric (for values that are mappings, ``what.part``): ``metric, old, new`` (means), ``value``
            (mean of new − old) with its interval ``low, high``, ``n`` samples, ``n_clusters``, ``n_changed``.
            Repeats enter as their mean; samples of one cluster count as alike, those without one as independent.

        Raises
        ------
        RagnbError
            For a run that the store does not hold, and one of several systems.
        """
        frames = self.frame(old), self.frame(new)
        with self._database.reading() as file:
            kept = {run: json.loads(about) for run, about in file.execute("SELECT run, about FROM runs")}
        for run, frame in zip((old, new), frames, strict=True):
            refuse_systems(frame, run, kept[run].get("systems", ()))
        return compared(*frames, level)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


StoreLike = Store | str | Path | None


@contextmanager
def opened(store: StoreLike, *, new: bool = True) -> Iterator[Store]:
    """Open a store by its path; one that is open already stays open, and without `new` no file is made."""
    if isinstance(store, Store):
        yield store
        return
    there = store is not None and (new or (Path(store).exists() and not is_empty(Path(store))))
    with Store(store if there else None, new=new or not there) as kept:
        yield kept


def _date(seconds: float | None) -> str | None:
    """Seconds since 1970 as a date; what lies beyond the calendar as the number."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g}"


def _clean(text: str) -> str:
    """A lone surrogate as ``\\udXXX``: SQLite takes only UTF-8, and what was paid for must be kept."""
    return text.encode("utf-8", "backslashreplace").decode()


def _text(value: Any) -> str:
    return _clean(json.dumps(value, ensure_ascii=False))
