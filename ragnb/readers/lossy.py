"""What a read changed or could not keep, so that nothing is lost in silence."""

from __future__ import annotations

from dataclasses import dataclass, field

LOSSY_WORDS = ("mapped", "made", "clipped", "kept", "unparsed", "left_out", "bad_line")
"""mapped to a canonical name or value; made by the reader; taken for an end of its range, which it all but is;
kept as it was; text that no parser took, kept as text; left out; a line that holds no record."""

LISTED_LINES = 100


@dataclass
class Lossy:
    """The rows of a lossy report: ``what, column, detail, n``.

    Examples
    --------
    >>> report = Lossy()
    >>> report.add("mapped", "user_input", "question", 3)
    >>> report.rows
    [{'what': 'mapped', 'column': 'user_input', 'detail': 'question', 'n': 3}]
    """

    rows: list[dict[str, object]] = field(default_factory=list)

    def add(self, what: str, column: object, detail: str, n: int = 1) -> None:
        """Add a row; `n` counts the cells, rows or lines it is about, and nothing is added for none."""
        if n:
            self.rows.append(
                {"what": what, "column": None if column is None else str(column), "detail": detail, "n": n}
            )

    def of_file(self, file: str, other: Lossy) -> None:
        """Add the rows of one file of several; bad lines name it."""
        for row in other.rows:
            named = f"{file}, {row['detail']}" if row["what"] == "bad_line" else row["detail"]
            self.rows.append({**row, "detail": named})

    def bad_lines(self, lines: list[tuple[int, str]]) -> None:
        """Add a row a bad line, the first hundred by number, the rest as a count."""
        for number, why in lines[:LISTED_LINES]:
            self.add("bad_line", None, f"line {number}: {why}")
        self.add("bad_line", None, "further bad lines", len(lines[LISTED_LINES:]))
