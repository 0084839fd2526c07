"""File helpers: expand patterns and folders, write atomically."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import re
import tempfile
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from ragnb.errors import RagnbError

# What counts as data in a folder that is named as an input.
DATA_SUFFIXES = (".parquet", ".pq", ".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
# What counts as a document in a folder of documents.
MARKDOWN_SUFFIXES = (".md", ".markdown")
HTML_SUFFIXES = (".html", ".htm")
DOCUMENT_SUFFIXES = (".txt", *MARKDOWN_SUFFIXES, *HTML_SUFFIXES, ".pdf")
_SHOWN = 40  # characters of a path that is too long
# Names that Windows keeps for devices: no file and no folder can have one.
_DEVICES = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)")


def is_pattern(path: str | os.PathLike[str]) -> bool:
    """Whether a path means several files: a folder, or a pattern with ``* ? [`` that is not a file name.

    Examples
    --------
    >>> is_pattern("scores/*.parquet"), is_pattern("scores.parquet")
    (True, False)
    """
    return os.path.isdir(path) or (glob.has_magic(os.fspath(path)) and not os.path.isfile(path))


def refuse_too_long(path: str | os.PathLike[str]) -> None:
    """Refuse a path that is longer than the system allows, which most likely is the text of a table.

    Examples
    --------
    >>> refuse_too_long("nowhere/scores.csv")
    """
    text = os.fspath(path)
    try:
        os.stat(text)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise RagnbError(
                f"{text[:_SHOWN]!r} … ({len(text):,} characters) is too long for a path; name one file; if "
                "this is the text of a table, write it to a file first, or pass its rows as a list of dicts"
            ) from None
    except ValueError:  # of a NUL; whoever looks for the file finds none
        return


def matched(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files that a path matches, sorted by name.

    Parameters
    ----------
    path : path
        A file represents itself. A pattern such as ``scores/*.parquet`` (``**`` for any folders) represents the
        files that fit, a folder for the Parquet and JSONL files right in it; names that start with ``_``,
        ``.`` or ``~$`` are left out of both, as those that engines and Excel write beside their data are.

    Examples
    --------
    >>> matched("nowhere/*.parquet")
    []
    """
    if not is_pattern(path):
        return [Path(path)]
    if os.path.isdir(path):
        paths = [
            entry for entry in Path(path).iterdir() if entry.name.lower().endswith(DATA_SUFFIXES)
        ]
    else:
        # A folder that is there is no pattern, also where its name holds a bracket.
        home = next((parent for parent in Path(path).parents if parent.is_dir()), Path())
        pattern = os.path.join(glob.escape(str(home)), os.path.relpath(path, home))
        paths = [Path(name) for name in glob.glob(pattern, recursive=True)]
    return sorted(
        file for file in paths if file.is_file() and not file.name.startswith(("_", ".", "~$"))
    )


def patterns_of(file: Path) -> Callable[..., re.Pattern[str]]:
    """Return what compiles a pattern by its name, of those that a TOML file has under ``[patterns]``.

    A name in braces represents the pattern of that name, and ``{words}`` for what is passed after the name.
    """
    parts = tomllib.loads(file.read_text(encoding="utf-8"))["patterns"]

    def written(text: str, words: str) -> str:
        known = parts | {"words": words}
        # A pattern is laid out over lines: their ends and indents are no part of it.
        text = re.sub(r"(?:^|\n) *", "", text)
        return re.sub(r"\{([a-z_]+)\}", lambda part: written(known[part[1]], words), text)

    return cache(lambda name, words="": re.compile(written(parts[name], words)))


def digest(paths: Sequence[Path]) -> str:
    """Return the SHA-256 of a file; of several, that of their names and hashes, a line each.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     digest([write_whole(Path(folder) / "a.txt", "")])[:8]
    'e3b0c442'
    """
    hashes = []
    for path in paths:
        with path.open("rb") as file:
            hashes.append(hashlib.file_digest(file, "sha256").hexdigest())
    if len(paths) == 1:
        return hashes[0]
    lines = [f"{path.name} {sha256}\n" for path, sha256 in zip(paths, hashes, strict=True)]
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def slug(name: str) -> str:
    """Return a name for a folder: plain ASCII words as they are, anything else cleaned and with a hash.

    Examples
    --------
    >>> slug("quickstart_weak"), slug("../../etc"), slug("模拟评审：一")
    ('quickstart_weak', 'etc-74ccf3c5', '模拟评审-一-cb3d7a99')
    """
    plain = unicodedata.normalize("NFC", name)
    kept = re.sub(r"[^\w-]+", "-", plain)[:40].strip("-_")
    if kept and kept == name and name.isascii() and not _DEVICES.fullmatch(name):
        return name
    # The hash keeps names apart that are cleaned to the same text.
    return f"{kept or 'scenario'}-{short_hash(plain)}"


def short_hash(text: str) -> str:
    """Return eight hex digits of a text's SHA-256.

    Examples
    --------
    >>> short_hash("a")
    'ca978112'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def json_text(value: object) -> str:
    """Return a value as JSON for a file that people read, too: indented, nothing that is no JSON.

    Examples
    --------
    >>> print(json_text({"名": 1}), end="")
    {
      "名": 1
    }
    """
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def refuse_overwriting(outputs: Mapping[str, Path], inputs: Iterable[Path]) -> None:
    """Refuse to write where something would be lost.

    Parameters
    ----------
    outputs : mapping
        What each file to be written is called, such as ``--json``, and its path.
    inputs : iterable of Path
        The files that the run reads.

    Raises
    ------
    RagnbError
        For an output that is an input (also by a link, or in another case where the file system does not tell
        cases apart), a folder, a device or a pipe, and for two outputs that are one file.

    Examples
    --------
    >>> refuse_overwriting({"--json": Path("a.json"), "--junit": Path("./a.json")}, [])
    Traceback (most recent call last):
    ragnb.errors.RagnbError: --json and --junit are the same file (a.json); name another file for one of them
    """
    there = [path for path in inputs if path.exists()]
    seen: dict[Path, str] = {}
    for name, path in outputs.items():
        _refuse_output(name, path, there)
        other = seen.setdefault(path.resolve(), name)
        if other != name:
            raise RagnbError(
                f"{other} and {name} are the same file ({path}); name another file for one of them"
            )


def _refuse_output(name: str, path: Path, inputs: Sequence[Path]) -> None:
    """Refuse an output that is there already and is no file of its own."""
    if not path.exists():
        return
    if path.is_dir():
        example = path / "result"
        raise RagnbError(f"{name} {path}: this is a folder; name a file, such as {example}")
    if not path.is_file():
        raise RagnbError(f"{name} {path}: this is a device or a pipe; name a file")
    # The file itself is compared: a hard link or another spelling of its name has the same.
    for source in inputs:
        if path.samefile(source):
            raise RagnbError(
                f"{name} {path}: this is an input of the run ({source}), which writing would destroy; name "
                "another file"
            )


def write_whole(path: Path, content: str | bytes | bytearray, *, mode: int = 0o644) -> Path:
    """Write a file atomically and durably, by a temporary file and a rename.

    Parameters
    ----------
    path : Path
        Folders that are not there are made; a file of this name is replaced.
    content : str or bytes
        Text is written as UTF-8 with its line ends as they are.
    mode : int
        The permissions of the file.

    Returns
    -------
    Path
        `path`.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "a.txt", "甲").read_text(encoding="utf-8")
    '甲'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    # In the same folder: a rename is atomic only within one file system.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            # On disk before the rename: else a crash could leave an empty file of this name.
            os.fsync(file.fileno())
        os.chmod(temporary, mode)  # mkstemp gives the owner alone a right to read
        os.replace(temporary, path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # a full disk does not say what it did not take
        raise
    return path
