"""Files before they are parsed: found, unpacked, and decoded."""

from __future__ import annotations

import gzip
import io
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from ragnb.errors import (
    RagnbError,
    did_you_mean,
    listing,
    place,
)
from ragnb.files import matched, refuse_too_long
from ragnb.readers.encodings import likely_encoding

# Bytes; a file that unpacks to more is refused, as it may be made to fill the memory.
LARGEST_UNPACKED = 1 << 30
LARGEST_RATIO = 200  # unpacked ÷ packed; deflate can reach 1,032, of nothing but zeros
_UNSUSPECTED = 1 << 26  # bytes, which are unpacked whatever the ratio: they do no harm
# By their first bytes, the files that cannot be read as text: what they are, and what to do.
_KINDS = {
    b"PK\x03\x04": "is a zip archive, or an Excel workbook: unpack it, or name it .xlsx",
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook; save it as .xlsx",
    b"SQLite format 3": "is a SQLite database; export the table in it as CSV",
    b"%PDF": "is a PDF; read the table it was printed from",
    **{
        bytes([0x80, protocol]): "is a pickle, which can run commands; save the table as CSV"
        for protocol in range(2, 6)
    },
}
# The folder in a zip archive that tells what wrote it.
_ZIPPED = {
    b"xl/": "is an Excel workbook: name it .xlsx",
    b"word/": "is a Word document; save the table in it as .csv or .xlsx",
    b"ppt/": "is a PowerPoint file; save the table in it as .csv or .xlsx",
    b"META-INF/manifest.xml": "is an OpenDocument file; save its table as .csv or .xlsx",
}
_UTF8 = {"utf8", "utf8sig", "u8", "utf"}
_HEAD = 1 << 16  # bytes at an end of a file, where its format shows
# What `zipfile` and its decompressors raise; a RuntimeError is about a member that needs a password.
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, UnicodeError, RuntimeError)


@dataclass(frozen=True)
class Document:
    """A readable file.

    Parameters
    ----------
    path : Path
    encoding : str or None
        None is strict UTF-8, with or without a byte order mark.

    Examples
    --------
    >>> Document(Path("a/scores.CSV.gz")).suffix
    '.csv'
    """

    path: Path
    encoding: str | None = None

    @property
    def suffix(self) -> str:
        """The extension that names the format, lower case, without ``.gz``."""
        return Path(self.path.name.lower().removesuffix(".gz")).suffix

    @cached_property
    def is_utf8(self) -> bool:
        """Whether the bytes are to be read as UTF-8."""
        if self.encoding is None:
            return True
        spelling = self.encoding.lower().replace("-", "").replace("_", "")
        return spelling in _UTF8

    @property
    def most_unpacked(self) -> int:
        """To how many bytes the file may unpack, so that a small one is not a huge one in disguise."""
        return min(LARGEST_UNPACKED, max(_UNSUSPECTED, LARGEST_RATIO * self.path.stat().st_size))

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the unpacked bytes; a damaged archive is reported as such."""
        try:
            with self.path.open("rb") as file:
                stream: Any = file
                # By the mark and not the extension: a file may be packed without saying so.
                if file.peek(2)[:2] == b"\x1f\x8b":
                    stream = io.BufferedReader(_Unpacked(file, self), 1 << 17)
                self._refuse_other_kinds(stream.peek(16)[:16])
                yield stream
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise RagnbError(
                f"{place(self.path)}the gzip file is damaged ({error}); compress it again"
            ) from error

    def _refuse_other_kinds(self, head: bytes) -> None:
        """Refuse a file whose first bytes are those of no format that is read as it is."""
        for mark, kind in _KINDS.items():
            if head.startswith(mark):
                if mark == b"PK\x03\x04":
                    kind = self._zipped() or kind
                raise RagnbError(f"{place(self.path)}{kind}")

    def _zipped(self) -> str:
        """Return what a zip archive is, by the names at its end; empty where they do not tell."""
        # The directory of a zip archive is at its end.
        with self.path.open("rb") as file:
            file.seek(max(0, self.path.stat().st_size - _HEAD))
            names = file.read(_HEAD)
        for folder, kind in _ZIPPED.items():
            if folder in names:
                return kind
        return ""

    def data(self) -> bytes:
        """Return all unpacked bytes."""
        with self.open() as stream:  # read at once if nothing is packed
            return stream.read(self.path.stat().st_size) + stream.read()

    def text(self, data: bytes | None = None) -> str:
        """Return the decoded text without a byte order mark; bytes of another encoding are refused."""
        if data is None:
            data = self.data()
        if not self.is_utf8 and _is_surely_utf8(data):
            raise RagnbError(
                f"{place(self.path)}is UTF-8, which {self.encoding} would garble; leave out encoding="
            )
        codec = "utf-8-sig" if self.is_utf8 else str(self.encoding)
        try:
            text = data.decode(codec)
        except LookupError as error:
            raise RagnbError(
                f"encoding={self.encoding!r} is not known; try 'utf-8' or 'gb18030'"
            ) from error
        except UnicodeError as error:
            # Some codecs, such as punycode, raise a plain `UnicodeError`, which has no place.
            at = getattr(error, "start", 0)
            where = place(self.path, data.count(b"\n", 0, at) + 1)
            raise RagnbError(
                f"{where}byte {at} is not {self.encoding or 'UTF-8'} text; {likely_encoding(data)}"
            ) from error
        if "\0" in text:
            where = place(self.path, text.count("\n", 0, text.index("\0")) + 1)
            raise RagnbError(
                f"{where}contains a NUL byte, so it is damaged, not text, or UTF-16 without a byte order mark "
                "(encoding='utf-16-le')"
            )
        return text


def _is_surely_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8 with a character of three bytes, which no text of another encoding is by chance."""
    # Text in UTF-16 may be legal UTF-8, with a zero beside each plain letter.
    if b"\0" in data:
        return False
    try:
        text = data.decode("utf-8")
    except UnicodeError:
        return False
    return re.search("[^\0-\u07ff]", text) is not None


class _Unpacked(gzip.GzipFile):
    """The bytes in a gzip file, counted, so that a small file that unpacks to a huge one is refused early."""

    def __init__(self, file: IO[bytes], document: Document) -> None:
        super().__init__(fileobj=file)
        self._path = document.path
        self._most = document.most_unpacked

    def read(self, size: int | None = -1) -> bytes:
        # In pieces, counted one by one: whoever wants all of it asks again.
        if size is None or size <= 0:
            size = 1 << 20
        data = super().read(size)
        if self.tell() > self._most:
            raise RagnbError(
                f"{place(self._path)}unpacks to more than {self._most >> 20} MB out of "
                f"{self._path.stat().st_size / 2**20:.1f}; unpack it yourself if you trust it"
            )
        return data


def find_documents(source: str | os.PathLike[str], encoding: str | None) -> list[Document]:
    """Return the files that a path, a pattern such as ``scores/*.parquet`` or a folder matches, by name.

    Raises
    ------
    RagnbError
        If there is no such file (with the near names of its folder), or it is empty; for a pattern that nothing
        fits, a folder without Parquet and JSONL files, and a path that is longer than the system allows.
    """
    refuse_too_long(source)
    with naming_its_folder(source):
        paths = _paths_of(source)
    return [Document(path, encoding) for path in paths]


def empty_file(path: Path) -> RagnbError:
    """Return the refusal of a file that holds nothing."""
    return RagnbError(
        f"{place(path)}the file is empty; write the results to it again, or name another file"
    )


def _paths_of(source: str | os.PathLike[str]) -> list[Path]:
    """Return the files that a path, a pattern or a folder matches, each with something in it."""
    paths = matched(source)
    if not paths and Path(source).is_dir():
        raise RagnbError(
            f"{place(source)}is a folder without Parquet or JSONL files; name a file in it"
        )
    if not paths:
        raise RagnbError(f"{place(source)}no file matches this pattern")
    for path in paths:
        if not path.parent.is_dir():
            raise RagnbError(f"{place(path)}there is no such file, nor its folder")
        if not path.is_file():
            names = [entry.name for entry in sorted(path.parent.iterdir()) if entry.is_file()]
            raise RagnbError(
                f"{place(path)}there is no such file; {did_you_mean(path.name, names)}"
            )
        if not path.stat().st_size:
            raise empty_file(path)
    return paths


@contextmanager
def naming_its_folder(source: str | os.PathLike[str]) -> Iterator[None]:
    """Say of a refusal in a folder that its files were read as one: the caller may have meant one of them."""
    try:
        yield
    except RagnbError as error:
        files = matched(source) if Path(source).is_dir() else []
        if len(files) < 2:
            raise
        names = listing(path.name for path in files)
        raise RagnbError(
            f"{error}. {source} is a folder, and its {len(files)} files were read as one table ({names}); name "
            f"one of them, such as {files[0]}"
        ) from error
