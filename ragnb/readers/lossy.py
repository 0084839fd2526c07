"""What a read changed or could not keep, so that nothing is lost in silence."""

from __future__ import annotations

from dataclasses import dataclass, field

# mapped to a canonical name or value; made by the reader; taken for an end of its range, which it all but is;
# kept as it was; text that no parser took, kept as text; left out; a line that holds no record.
LOSSY_WORDS = ("mapped", "made", "clipped", "kept", "unparsed", "left_out", "bad_line")

LISTED_LINES = 100


@dataclass
class Lossy:
    """The rows of a lossy report, ``what, column, detail, n``, and how much of the input arrived.

    Attributes
    ----------
    rows : list of dict
    lines, damaged : int
        The records that a file should hold, and how many of them are damaged or lost; of several files, those of
        the one with the largest share of damaged records.

    Examples
    --------
    >>> report = Lossy()
    >>> report.add("mapped", "user_input", "question", 3)
    >>> report.rows
    [{'what': 'mapped', 'column': 'user_input', 'detail': 'question', 'n': 3}]
    """

    rows: list[dict[str, object]] = field(default_factory=list)
    lines: int = 0
    damaged: int = 0

    def add(self, what: str, column: object, detail: str, n: int = 1) -> None:
        """Add a row; `n` counts the cells, rows or lines it is about, and nothing is added for none."""
        if n:
            self.rows.append(
                {"what": what, "column": None if column is None else str(column), "detail": detail, "n": n}
            )

    def expect(self, lines: int, damaged: int = 0) -> None:
        """Note how many records a file should hold and how many are damaged.

        Of several files the worst stays noted; as long as none is damaged, all records are counted.
        """
        if not self.damaged and not damaged:
            self.lines += lines
        elif not self.lines or damaged * self.lines > self.damaged * lines:
            self.lines, self.damaged = lines, damaged

    def of_file(self, file: str | None, other: Lossy) -> None:
        """Add what became of one file; where there are several, bad lines name it."""
        self.expect(other.lines, other.damaged)
        for row in other.rows:
            named = f"{file}, {row['detail']}" if file and row["what"] == "bad_line" else row["detail"]
            self.rows.append({**row, "detail": named})

    def bad_lines(self, lines: list[tuple[int, str]]) -> None:
        """Add a row a bad line, the first hundred by number, the rest as a count."""
        for number, why in lines[:LISTED_LINES]:
            self.add("bad_line", None, f"line {number}: {why}")
        self.add("bad_line", None, "further bad lines", len(lines[LISTED_LINES:]))
