"""Writing that loses nothing: a file of a name is whole at any moment, the old one or the new one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: str | bytes | bytearray, *, mode: int = 0o644) -> Path:
    """Write a file durably under its name, by a temporary file beside it and a rename.

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
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
