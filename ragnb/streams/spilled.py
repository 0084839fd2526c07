"""JSON lines too many to hold → Parquet files in a folder: read once, block by block, and scanned after that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ragnb.readers import jsonl
from ragnb.readers.cells import as_text
from ragnb.readers.document import Document
from ragnb.readers.lossy import Lossy
from ragnb.readers.raw import agree, from_records
from ragnb.readers.scanned import in_parts, series

if TYPE_CHECKING:
    import polars as pl

BLOCK = 1 << 25
_BOM = b"\xef\xbb\xbf"


def spill(documents: Sequence[Document], folder: Path, report: Lossy) -> list[Path]:
    """Write the records of JSONL files as Parquet files into a folder, in their order, and return them.

    Raises
    ------
    RagnbError
        As the reader of JSONL raises; for a file without a metric that the first one has.
    """
    parts: list[Path] = []
    first: list[str] | None = None
    for document in documents:
        own, names = Lossy(), dict[str, None]()
        for frame in frames(document, own):
            names.update(dict.fromkeys(frame.columns))
            parts.append(folder / f"{len(parts):06}.parquet")
            frame.write_parquet(parts[-1], compression="lz4")
        report.of_file(document.path.name, own)
        first = list(names) if first is None else first
        agree(str(documents[0].path), first, str(document.path), list(names), "jsonl")
    return parts


def frames(document: Document, report: Lossy) -> Iterator[pl.DataFrame]:
    """Yield the records of a JSONL file block by block; bad lines are listed once all is read."""
    tally = jsonl.Tally(document.path)
    for frame in in_parts(blocks(document), _swiftly, partial(_line_by_line, tally), tally):
        if len(frame):
            yield _flat(frame)
    jsonl.judge(tally, report, strict=False)


def blocks(document: Document) -> Iterator[tuple[int, bytes]]:
    """Yield pieces of whole lines, each with the number of its first line."""
    line = 1
    with jsonl._stream(document) as stream:
        while block := stream.read(BLOCK):
            if line == 1:
                block = block.removeprefix(_BOM)
            block += _rest_of_line(stream)
            yield line, block
            line += block.count(b"\n")


def _rest_of_line(stream: IO[bytes]) -> bytes:
    """Read on to the end of a line; of one that is too long only as much as shows that it is."""
    rest = stream.readline(jsonl.LONGEST_LINE + 2)
    if len(rest) > jsonl.LONGEST_LINE and not rest.endswith(b"\n"):
        while (more := stream.readline(jsonl.LONGEST_LINE)) and not more.endswith(b"\n"):
            pass
        return rest + b"\n"
    return rest


def _swiftly(block: bytes) -> pl.DataFrame | None:
    """Return the records by the scanner, which infers each key's type from all of them; None where it cannot."""
    import polars as pl

    try:
        return None if block.isspace() else pl.read_ndjson(block, infer_schema_length=None)
    except (pl.exceptions.PolarsError, ValueError):
        return None


def _line_by_line(tally: jsonl.Tally, block: bytes, first: int) -> pl.DataFrame:
    import polars as pl

    taken = (tally.take(first + number - 1, line) for number, line in jsonl.lines_of(block))
    columns = from_records(record for record in taken if record is not None)
    return pl.DataFrame([series(name, cells) for name, cells in columns.items()])


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Spread ``results`` over columns; write what else is nested as text, but for lists of texts."""
    import polars as pl

    if isinstance(frame.schema.get("results"), pl.Struct):
        frame = frame.with_columns(spread(frame.schema["results"])).drop("results")
    nested = [n for n, kind in frame.schema.items() if kind.is_nested() and kind != pl.List(pl.String)]
    return frame.with_columns(
        pl.Series(name, [as_text(cell) for cell in frame[name].to_list()], dtype=pl.String) for name in nested
    )


def spread(results: Any) -> list[pl.Expr]:
    """Return the columns that a struct ``results`` (metric → score, status, reason) stands for."""
    import polars as pl

    made = []
    for metric in results.fields:
        fields = [field.name for field in getattr(metric.dtype, "fields", [])]
        for field, name in (("score", ""), ("status", "__status"), ("reason", "__reason")):
            if field in fields:
                value = pl.col("results").struct.field(metric.name).struct.field(field)
                made.append(value.alias(f"{metric.name}{name}"))
    return made
