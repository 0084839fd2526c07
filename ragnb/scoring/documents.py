"""The passages of documents: text, Markdown, HTML and PDF files, and tables with a passage in each row."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ragnb.errors import RagnbError, RagnbWarning, did_you_mean, listing, outside, require
from ragnb.files import DOCUMENT_SUFFIXES, HTML_SUFFIXES, MARKDOWN_SUFFIXES
from ragnb.readers.formats import load
from ragnb.readers.raw import Lossy

_TEXT = ("text", "content", "page_content", "passage", "chunk", "body", "文本", "内容", "正文")
_NAME = (
    "doc_name",
    "document",
    "source",
    "file",
    "filename",
    "title",
    "url",
    "文档",
    "来源",
    "标题",
)
_SIZE = 1200  # characters of a passage, about; one of Chinese counts twice
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SENTENCE = re.compile(r"(?<=[。！？])|(?<=[.!?])\s+")
_WIDE_LINES = re.compile(
    r"(?<=[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef])[ \t]*\n[ \t]*"
    rf"(?={_WIDE.pattern})"
)
_LIGATURES = {ord(sign): unicodedata.normalize("NFKC", sign) for sign in "ﬀﬁﬂﬃﬄﬅﬆ"}
_MOST_SAID = 120  # characters of an error of pypdf


class Passage(NamedTuple):
    """A passage, and where in its document it is: ``page=3`` of a PDF, else nothing."""

    document: str
    where: str
    text: str


def passages_of(
    documents: Any, *, encoding: str = "utf-8", columns: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return the passages of documents, in their order.

    Parameters
    ----------
    documents : path or frame
        A folder of ``.txt``, ``.md``, ``.html`` and ``.pdf`` files (folders in it too), or one such file but a
        ``.txt``, which are parted between paragraphs into passages of about 1,200 characters (half as many of
        Chinese), PDF files page by page; or a table with a passage in each row: a file that
        `ragnb.read_cases` would open, or a frame, with a column of texts and perhaps of documents.
    encoding : str
        Of text and HTML files.
    columns : mapping of their names to ours, optional
        Ours are ``text`` and ``doc_name``; usual names are known.

    Returns
    -------
    DataFrame
        ``doc_name, unit`` and ``text``. A unit is ``<doc_name>#<number>``, of a PDF ``<doc_name>#page=<page>``,
        and ``<doc_name>#page=<page>&passage=<number>`` from the second passage of a page on.

    Raises
    ------
    RagnbError
        For a folder without such files, a file that cannot be read, a table without a column of texts, and what
        holds no text.
    MissingExtraError
        For PDF files, without the extra ``documents``.

    Warns
    -----
    RagnbWarning
        For pages of a PDF without text, such as scans.

    Examples
    --------
    >>> passages_of(pd.DataFrame({"source": ["a.pdf", "a.pdf"], "content": ["One.", "Two."]}))["unit"].tolist()
    ['a.pdf#1', 'a.pdf#2']
    """
    path = Path(documents) if isinstance(documents, str | Path) else None
    if path is not None and path.is_dir():
        passages = _of_folder(path, encoding)
    elif path is not None and path.suffix.lower() in _ONE_FILE:
        passages = _of_file(path, path.name, encoding)
    else:
        passages = _of_table(documents, encoding, columns or {})
    rows = [passage._replace(text=passage.text.strip()) for passage in passages]
    table = pd.DataFrame([row for row in rows if row.text], columns=["doc_name", "where", "text"])
    if table.empty:
        raise RagnbError(f"{documents if path is not None else 'the frame'}: holds no text")
    # Counted within a document, or within a page where there are pages.
    nth = table.groupby(["doc_name", "where"]).cumcount() + 1
    units = map(_unit, table["doc_name"], table["where"], nth)
    table.insert(1, "unit", list(units))
    return table.drop(columns="where")


def _unit(document: str, where: str, nth: int) -> str:
    """Return the name of a passage; ``#page=3`` opens that page of a PDF in a browser."""
    if not where:
        return f"{document}#{nth}"
    if nth == 1:
        return f"{document}#{where}"
    return f"{document}#{where}&passage={nth}"


_ONE_FILE = (*MARKDOWN_SUFFIXES, *HTML_SUFFIXES, ".pdf")


def _of_folder(folder: Path, encoding: str) -> Iterator[Passage]:
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in DOCUMENT_SUFFIXES and path.is_file()
    )
    if not files:
        raise RagnbError(
            f"{folder}: no file here ends in {listing(DOCUMENT_SUFFIXES)}; save the documents as text"
        )
    for path in files:
        yield from _of_file(path, path.relative_to(folder).as_posix(), encoding)


def _of_file(path: Path, name: str, encoding: str) -> Iterator[Passage]:
    """Yield the passages of one document by what its name ends in."""
    suffix = path.suffix.lower()
    if suffix == ".pdf":
        yield from _of_pdf(path, name)
        return
    # Windows programs begin a UTF-8 file with a byte order mark, which is no part of its text.
    codec = "utf-8-sig" if encoding == "utf-8" else encoding
    try:
        text = path.read_text(encoding=codec)
    except UnicodeDecodeError:
        raise RagnbError(
            f"{path}: is not {encoding}; name its encoding, such as encoding='gb18030'"
        ) from None
    if suffix in HTML_SUFFIXES:
        text = html_text(text)
    for passage in _parted(text):
        yield Passage(name, "", passage)


def _of_pdf(path: Path, name: str) -> Iterator[Passage]:
    """Yield the passages of a PDF page by page; pages without text are named in a warning."""
    pages = pdf_pages(path)
    empty = [number for number, text in enumerate(pages, start=1) if not text.strip()]
    if empty:
        warnings.warn(
            f"{path}: no text on page {listing(empty)} of {len(pages)}: a scan? Nothing is asked about it; "
            "recognise its text (OCR) and save it with the file",
            RagnbWarning,
            stacklevel=outside(),
        )
    for number, text in enumerate(pages, start=1):
        for passage in _parted(text):
            yield Passage(name, f"page={number}", passage)


def pdf_pages(path: Path) -> list[str]:
    """Return the text of each page; lines that break within Chinese or Japanese are joined.

    Raises
    ------
    RagnbError
        For a file that is damaged, no PDF, or locked by a password.
    """
    pypdf = require("pypdf", extra="documents")
    try:
        reader = pypdf.PdfReader(path)
        pages = [page.extract_text() for page in reader.pages]
    except Exception as error:  # a damaged file meets any error of Python's in pypdf
        why = " ".join(str(error).split())[:_MOST_SAID] or type(error).__name__
        raise RagnbError(
            f"{path}: cannot be read as PDF ({why}); open it and save it again without a password, or take it out"
        ) from error
    return [joined_lines(text) for text in pages]


def joined_lines(text: str) -> str:
    """Join the lines of a page that break within Chinese, Japanese or Korean, and write ligatures as letters.

    A model quotes such a sentence without the break, and the quote would not be found.

    Examples
    --------
    >>> joined_lines("年假为十天，\\n须提前\\n申请。\\nAnnual leave\\nis ten days.")
    '年假为十天，须提前申请。\\nAnnual leave\\nis ten days.'
    """
    return _WIDE_LINES.sub("", text.translate(_LIGATURES))


class _Html(HTMLParser):
    """The text of a page: blocks become paragraphs, headings those of Markdown; scripts and styles go."""

    SILENT = frozenset({"script", "style", "template", "noscript", "svg", "head"})
    INLINE = re.compile(
        "a|abbr|b|bdi|bdo|cite|code|data|dfn|em|font|i|kbd|label|mark|q|s|samp|small|span|strong|sub|sup|"
        "time|u|var|wbr"
    )

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in self.SILENT:
            self.silent += 1
        elif tag == "br":
            self.parts.append("\n")
        elif re.fullmatch(r"h[1-6]", tag):
            self.parts.append(f"\n\n{'#' * int(tag[1])} ")
        elif tag in ("td", "th"):
            self.parts.append(" ")
        elif tag == "tr":
            self.parts.append("\n")
        elif not self.INLINE.fullmatch(tag):
            self.parts.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self.SILENT:
            self.silent = max(self.silent - 1, 0)
        elif not self.INLINE.fullmatch(tag) and tag not in ("td", "th", "tr", "br"):
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.parts.append(re.sub(r"\s+", " ", data))


def html_text(html: str) -> str:
    """Return what a reader sees of an HTML page, a blank line between paragraphs.

    Examples
    --------
    >>> html_text("<h2>Fee</h2><p>It is <b>5</b> euros.</p><script>x()</script><p>In May.</p>")
    '## Fee\\n\\nIt is 5 euros.\\n\\nIn May.'
    """
    parser = _Html()
    parser.feed(html)
    parser.close()
    lines = [line.strip() for line in "".join(parser.parts).split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _of_table(source: Any, encoding: str, columns: Mapping[str, str]) -> Iterator[Passage]:
    file_encoding = None if encoding == "utf-8" else encoding  # None is the default of the readers
    raw, _ = load(source, Lossy(), format=None, strict=False, encoding=file_encoding)
    frame = {columns.get(name, name): cells for name, cells in raw.columns.items()}
    # Reversed, so that of two names that differ only in case the first counts.
    by_lower_name = {name.lower(): name for name in reversed(frame)}
    text_column = _first_of(_TEXT, by_lower_name)
    name_column = _first_of(_NAME, by_lower_name)
    if text_column is None:
        raise RagnbError(
            f"{raw.file}: the documents have no column of texts ({did_you_mean('text', list(frame))}); name it: "
            "columns={'…': 'text'}"
        )
    if name_column is None:
        documents = ["documents"] * len(raw)
    else:
        documents = [str(cell) for cell in frame[name_column]]
    for document, passage in zip(documents, frame[text_column], strict=True):
        yield Passage(document, "", passage if isinstance(passage, str) else "")


def _first_of(keys: Sequence[str], by_lower_name: Mapping[str, str]) -> str | None:
    """Return the column that is there of some usual names, the most telling of which come first."""
    for key in keys:
        if key in by_lower_name:
            return by_lower_name[key]
    return None


def _parted(text: str) -> Iterator[str]:
    """Part a text between paragraphs, long ones by sentences; a heading stays with what follows."""
    held = list[str]()  # the parts of the passage to come
    size = 0
    for paragraph in re.split(r"\n\s*\n", text):
        fits = _wide(paragraph) <= _SIZE
        parts = [paragraph] if fits else _SENTENCE.split(paragraph)
        for part in parts:
            is_full = bool(held) and size + _wide(part) > _SIZE
            if is_full and not held[-1].lstrip().startswith("#"):
                yield "\n\n".join(held)
                held = []
                size = 0
            held.append(part)
            size += _wide(part)
    yield "\n\n".join(held)


def _wide(text: str) -> int:
    """Return the length of a text in characters, in which a Chinese one counts twice."""
    return len(text) + len(_WIDE.findall(text))
