"""How large a Parquet file is when it is unpacked, before it is: by its footer, and by the texts that share pages.

Polars reads a file without saying how much memory that takes. The footer is read here, as the Parquet format
defines it: a ``FileMetaData`` in Thrift's compact protocol before the last eight bytes of the file.
"""

from __future__ import annotations

from typing import Any

from ragnb.polars import pl

_MAGIC = b"PAR1"
# Fields of FileMetaData and of RowGroup by their numbers in parquet.thrift
_ROW_GROUPS = 4
_TOTAL_BYTE_SIZE = 2  # the field's number in RowGroup, parquet.thrift
_DEEPEST = 32  # levels of Thrift, more than any footer has
# Kinds of values in Thrift's compact protocol; a map (11) is in no footer of Parquet.
_TRUE = 1
_FALSE = 2
_BYTE = 3
_INTEGERS = (4, 5, 6)  # of 16, 32 and 64 bits
_DOUBLE = 7
_BINARY = 8
_LIST = 9
_SET = 10
_STRUCT = 12


def unpacked_bytes(data: bytes) -> int | None:
    """Return the bytes of all row groups without compression, as the footer states them; None if it is damaged.

    Examples
    --------
    >>> import io
    >>> import polars as pl
    >>> file = io.BytesIO()
    >>> pl.DataFrame({"n": range(9_000)}).write_parquet(file, statistics=False)
    >>> len(file.getvalue()) < 72_000 <= unpacked_bytes(file.getvalue())
    True
    >>> unpacked_bytes(b"PAR1") is None
    True
    """
    # A file ends with its footer, the length of the footer in four bytes, and the mark.
    length = int.from_bytes(data[-8:-4], "little")
    if data[-4:] != _MAGIC or length + 12 > len(data):
        return None
    try:
        footer = _Compact(data[-8 - length : -8]).struct()
        return sum(int(group[_TOTAL_BYTE_SIZE]) for group in footer[_ROW_GROUPS])
    except (IndexError, KeyError, TypeError, ValueError, AttributeError):
        return None


def text_bytes(frame: pl.DataFrame) -> int:
    """Return the bytes of all texts of a frame, each counted as often as it stands there.

    Cells that share a page of a dictionary take no memory of their own until they are Python texts.

    Examples
    --------
    >>> import polars as pl
    >>> text_bytes(pl.DataFrame({"a": ["xy", None], "b": [["xyz", "x"], []], "c": [{"d": "x"}, {"d": "y"}]}))
    8
    """
    return sum(_text_bytes(frame.get_column(name)) for name in frame.columns)


def _text_bytes(cells: pl.Series) -> int:
    """Return the bytes of the texts in a column, in its lists and in its structs."""
    if isinstance(cells.dtype, pl.Categorical | pl.Enum):
        cells = cells.cast(pl.String)
    if cells.dtype == pl.String:
        return int(cells.str.len_bytes().cast(pl.Int64).sum())
    if cells.dtype == pl.Binary:
        return int(cells.bin.size().cast(pl.Int64).sum())
    if isinstance(cells.dtype, pl.List | pl.Array):
        return _text_bytes(cells.explode())
    if isinstance(cells.dtype, pl.Struct):
        return text_bytes(cells.struct.unnest())
    return 0


class _Compact:
    """A reader of Thrift's compact protocol: structs as mappings of field number to value."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def byte(self) -> int:
        """Return the next byte."""
        self.place += 1
        return self.data[self.place - 1]

    def varint(self) -> int:
        """Return a number of seven bits a byte, the lowest first."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a number of more than ten bytes")

    def signed(self) -> int:
        """Return a signed number, whose sign is its lowest bit."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the fields of a struct."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self.byte():
            # The number of a field is written as the step from the one before, where that is less than 16.
            step = head >> 4
            number = number + step if step else self.signed()
            fields[number] = self.value(head & 0x0F, depth, of_a_field=True)
        return fields

    def value(self, kind: int, depth: int, *, of_a_field: bool = False) -> Any:
        """Return a value of a kind; a truth value is the kind of its field, and a byte in a list."""
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        if kind in (_TRUE, _FALSE):
            if of_a_field:
                return kind == _TRUE
            return self.byte() == 1
        if kind == _BYTE:
            return self.byte()
        if kind in _INTEGERS:
            return self.signed()
        if kind == _DOUBLE:
            self.place += 8
            return None  # no field that is read is a double
        if kind == _BINARY:
            length = self.varint()  # moves the place itself
            self.place += length
            return None  # no text is needed
        if kind in (_LIST, _SET):
            # Four bits of size (all set where the size follows as a number of its own), then four of the kind.
            head = self.byte()
            size = head >> 4 if head >> 4 < 15 else self.varint()
            if size > len(self.data):
                raise ValueError("a list of more entries than bytes")
            return [self.value(head & 0x0F, depth + 1) for _ in range(size)]
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise ValueError(f"kind {kind}")
