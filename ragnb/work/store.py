"""Where paid work is kept, so that it is never lost and never paid for twice: one SQLite file, one cell a row."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragnb.errors import RagnbError, unknown
from ragnb.work.cells import Cell, Outcome, canonical, digest
from ragnb.work.database import Database
from ragnb.work.owners import is_gone, new_owner

if TYPE_CHECKING:
    import sqlite3

_OPEN = "(t.id IS NULL OR (t.status = 'failed' AND t.id <= :mark))"
_CELLS = (
    "FROM plan AS p JOIN cells AS c ON c.key = p.key LEFT JOIN attempts AS t ON t.id = c.attempt "
    "WHERE p.run = :run"
)


class Store:
    """Cells and what came of them, in one file that survives ``kill -9``.

    Several processes may work on one store at a time: a cell is claimed before it is paid for. A claim ends
    with the process that holds it, or after `lease` seconds without a sign of life from another container.

    Parameters
    ----------
    path : str, Path or None
        The file, made where there is none; None keeps all in memory, for this process alone.
    lease : float
        Seconds.

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

    def __init__(self, path: str | Path | None, *, lease: float = 60.0) -> None:
        self.path = Path(path) if path is not None else None
        self.lease = lease
        self._owner = new_owner()
        self._database = Database(self.path)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        rows = [(cell.key, _text(cell.sample_id), cell.what, cell.model, canonical(cell.about)) for cell in cells]
        with self._database.writing() as file:
            if file.execute("SELECT 1 FROM runs WHERE run = ?", [run]).fetchone():
                if name:
                    file.execute("UPDATE runs SET name = ? WHERE run = ?", [name, run])
                return run
            file.execute("INSERT INTO runs VALUES (?, ?, ?, ?)", [run, name, _now(), canonical(dict(about or {}))])
            file.executemany("INSERT INTO cells VALUES (?, ?, ?, ?, ?, NULL) ON CONFLICT DO NOTHING", rows)
            places = [(run, place, cell.key, cell.cluster) for place, cell in enumerate(cells)]
            file.executemany("INSERT INTO plan VALUES (?, ?, ?, ?)", places)
        return run

    def mark(self) -> int:
        """The number of the latest attempt; a cell that failed after it is not open again in the same run."""
        with self._database.reading() as file:
            return int(file.execute("SELECT coalesce(max(id), 0) FROM attempts").fetchone()[0])

    def pending(self, run: str, mark: int | None = None) -> list[int]:
        """The positions of the run's cells that have no outcome, or that failed (up to `mark`)."""
        asked = {"run": run, "mark": self.mark() if mark is None else mark}
        with self._database.reading() as file:
            found = file.execute(f"SELECT p.position {_CELLS} AND {_OPEN} ORDER BY p.position", asked)
            return [position for (position,) in found]

    def claim(self, run: str, most: int, *, mark: int, start: int = 0) -> list[int]:
        """Claim up to `most` pending cells from position `start` on, and return their positions.

        What another living process holds is passed over. A claimed cell is ours until `append` or `release`.
        """
        now = time.time()
        with self._database.writing() as file:
            owners = [owner for (owner,) in file.execute("SELECT DISTINCT owner FROM claims")]
            file.executemany("DELETE FROM claims WHERE owner = ?", [[o] for o in owners if is_gone(o)])
            file.execute("DELETE FROM claims WHERE until < ?", [now])
            found = file.execute(
                f"SELECT min(p.position), p.key {_CELLS} AND {_OPEN} AND p.position >= :start "
                "AND p.key NOT IN (SELECT key FROM claims) GROUP BY p.key ORDER BY 1 LIMIT :most",
                {"run": run, "mark": mark, "start": start, "most": most},
            ).fetchall()
            rows = [(key, self._owner, now + self.lease) for _, key in found]
            file.executemany("INSERT INTO claims VALUES (?, ?, ?)", rows)
        return [position for position, _ in found]

    def renew(self) -> None:
        """Give a sign of life: our claims hold for another `lease` seconds."""
        with self._database.writing() as file:
            file.execute("UPDATE claims SET until = ? WHERE owner = ?", [time.time() + self.lease, self._owner])

    def release(self) -> None:
        """Give up all our claims."""
        with self._database.writing() as file:
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
        return self._table(run, _CELLS + " ORDER BY p.position")

    def history(self, run: str) -> pd.DataFrame:
        """Return every attempt at the cells of a run, oldest first, with the columns of `frame`."""
        return self._table(run, _CELLS.replace("t.id = c.attempt", "t.key = c.key") + " AND t.id ORDER BY t.id")

    def _table(self, run: str, source: str) -> pd.DataFrame:
        columns = (
            "c.about, p.cluster, coalesce(t.status, 'pending'), t.value, t.reason, t.replies, "
            "t.calls, t.tokens_in, t.tokens_out, t.seconds, t.at, c.key"
        )
        with self._database.reading() as file:
            names = [name for (name,) in file.execute("SELECT run FROM runs ORDER BY started")]
            if run not in names:
                raise unknown("run", run, names)
            rows = file.execute(f"SELECT {columns} {source}", {"run": run}).fetchall()
        return pd.DataFrame([_row(row) for row in rows], columns=_COLUMNS, dtype=object)


_COLUMNS = (
    "sample_id", "what", "repeat", "model", "cluster", "status", "value", "reason", "reply",
    "calls", "tokens_in", "tokens_out", "seconds", "at", "key",
)  # fmt: skip


def _row(row: Sequence[Any]) -> list[Any]:
    about, cluster, status, value, reason, replies, *rest = row
    cell = json.loads(about)
    texts = json.loads(replies) if replies else []
    known = [cell["sample_id"], cell["what"], cell["repeat"], cell["model"], cluster, status]
    return [*known, json.loads(value) if value else None, reason, texts[-1] if texts else None, *rest]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _clean(text: str) -> str:
    """A lone surrogate as ``\\udXXX``: SQLite takes only UTF-8, and what was paid for must be kept."""
    return text.encode("utf-8", "backslashreplace").decode()


def _text(value: Any) -> str:
    return _clean(json.dumps(value, ensure_ascii=False))
