"""A file on disk before it is parsed: found, unpacked, decoded, identified."""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from ragnb.errors import RagnbError, did_you_mean, place
from ragnb.files import matched

LARGEST_UNPACKED = 1 << 30
LARGEST_RATIO = 200
_UNSUSPECTED = 1 << 26
_KINDS = {
    b"PK\x03\x04": "is a zip archive, or an Excel workbook: name it .xlsx",
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook; save it as .xlsx",
    b"SQLite format 3": "is a SQLite database; export the table in it as CSV",
    b"%PDF": "is a PDF; read the table it was printed from",
    **{bytes([0x80, n]): "is a pickle, which can run commands; save the table as CSV" for n in range(2, 6)},
}
_UTF8 = {"utf8", "utf8sig", "u8", "utf"}


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
        name = self.path.name.lower()
        return Path(name.removesuffix(".gz")).suffix

    @cached_property
    def is_utf8(self) -> bool:
        """Whether the bytes are to be read as UTF-8."""
        return self.encoding is None or self.encoding.lower().replace("-", "").replace("_", "") in _UTF8

    @property
    def most_unpacked(self) -> int:
        """To how many bytes the file may unpack, so that a small one is not a huge one in disguise."""
        return min(LARGEST_UNPACKED, max(_UNSUSPECTED, LARGEST_RATIO * self.path.stat().st_size))

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the unpacked bytes; a damaged archive is reported as such."""
        try:
            with self.path.open("rb") as file:
                packed = file.peek(2)[:2] == b"\x1f\x8b"
                stream = io.BufferedReader(_Unpacked(file, self), 1 << 17) if packed else file
                head = stream.peek(16)[:16]
                for mark, kind in _KINDS.items():
                    if head.startswith(mark):
                        raise RagnbError(f"{place(self.path)}{kind}")
                yield stream
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise RagnbError(f"{place(self.path)}the gzip file is damaged ({error}); compress it again") from error

    def data(self) -> bytes:
        """Return all unpacked bytes."""
        with self.open() as stream:
            return stream.read()

    def text(self) -> str:
        """Return the decoded text without a byte order mark; bytes of another encoding are refused."""
        data = self.data()
        with suppress(UnicodeError):
            # Text of another encoding holds no character of three bytes by chance and is UTF-8 besides.
            if not self.is_utf8 and b"\0" not in data and re.search("[^\0-\u07ff]", data.decode("utf-8")):
                raise RagnbError(
                    f"{place(self.path)}is UTF-8, which {self.encoding} would garble; leave out encoding="
                )
        try:
            text = data.decode("utf-8-sig" if self.is_utf8 else str(self.encoding))
        except LookupError as error:
            raise RagnbError(f"encoding={self.encoding!r} is not known; try 'utf-8' or 'gb18030'") from error
        except UnicodeError as error:
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


class _Unpacked(gzip.GzipFile):
    """The bytes in a gzip file, counted, so that a small file that unpacks to a huge one is refused early."""

    def __init__(self, file: IO[bytes], document: Document) -> None:
        super().__init__(fileobj=file)
        self._path, self._most = document.path, document.most_unpacked

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size if size and size > 0 else 1 << 20)  # whoever wants all of it asks again
        if self.tell() > self._most:
            raise RagnbError(
                f"{place(self._path)}unpacks to more than {self._most >> 20} MB out of "
                f"{self._path.stat().st_size / 2**20:.1f}; unpack it yourself if you trust it"
            )
        return data


def likely_encoding(data: bytes) -> str:
    """Return a hint on the encoding of the bytes.

    Examples
    --------
    >>> likely_encoding("退款流程".encode("big5"))
    "it may be GBK: pass encoding='gb18030'; or, in Traditional Chinese, Big5: pass encoding='big5'"
    """
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "it looks like UTF-16: pass encoding='utf-16'"
    found = []
    for encoding, words in (("gb18030", "GBK"), ("big5", "in Traditional Chinese, Big5")):
        with suppress(UnicodeError):
            data.decode(encoding)
            found.append(f"{words}: pass encoding={encoding!r}")
    if not found:
        return "save it as UTF-8, or pass the encoding it was written in as encoding="
    return f"it may be {'; or, '.join(found)}"


def find_documents(source: str | os.PathLike[str], encoding: str | None) -> list[Document]:
    """Return the files that a path, a pattern such as ``scores/*.parquet`` or a folder matches, by name.

    Raises
    ------
    RagnbError
        If there is no such file (with the near names of its folder), or it is empty; for a pattern that nothing
        fits, and a folder without Parquet and JSONL files.
    """
    paths = matched(source)
    if not paths and Path(source).is_dir():
        raise RagnbError(f"{place(source)}is a folder without Parquet or JSONL files; name a file in it")
    if not paths:
        raise RagnbError(f"{place(source)}no file matches this pattern")
    for path in paths:
        if not path.parent.is_dir():
            raise RagnbError(f"{place(path)}there is no such file, nor its folder")
        if not path.is_file():
            names = [entry.name for entry in sorted(path.parent.iterdir()) if entry.is_file()]
            raise RagnbError(f"{place(path)}there is no such file; {did_you_mean(path.name, names)}")
        if not path.stat().st_size:
            raise RagnbError(f"{place(path)}the file is empty")
    return [Document(path, encoding) for path in paths]
