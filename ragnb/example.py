"""The sample data, scenarios and notebooks that travel with the library: where they are, and a copy to try."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ragnb.errors import RagnbError

FOLDERS = ("data", "scenarios", "notebooks")
"""Their paths to each other are relative, so a copy of all three works in any place."""
_LEFT_OUT = shutil.ignore_patterns("__pycache__", ".*", "conftest.py")
_FIRST_SCORES = Path("data", "quickstart", "scores_simulated.csv")


def samples_folder() -> Path:
    """Return the folder that holds the samples: in the library where it is installed, else the checkout."""
    library = Path(__file__).resolve().parent
    installed = library / "samples"
    if installed.is_dir():
        return installed
    return library.parent


def write_example(folder: str | os.PathLike[str]) -> Path:
    """Write sample data, scenarios and notebooks into a new folder.

    Parameters
    ----------
    folder : path
        The folder to make. ``scores.csv`` in it is a table of scores to begin with.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    RagnbError
        If there is anything at this path already: nothing of the user's is mixed with samples.
    """
    new = Path(folder)
    try:
        new.mkdir(parents=True)
    except FileExistsError:
        raise RagnbError(f"{new} exists; name a folder that does not exist yet") from None
    try:
        for name in FOLDERS:
            # Contents alone: an installed library may be read-only, its copy may not.
            source = samples_folder() / name
            shutil.copytree(source, new / name, ignore=_LEFT_OUT, copy_function=shutil.copyfile)
        shutil.copyfile(new / _FIRST_SCORES, new / "scores.csv")
    except BaseException:  # also Ctrl-C: half an example would be refused the next time
        shutil.rmtree(new, ignore_errors=True)
        raise
    return new
