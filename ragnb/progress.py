"""Whether progress bars are drawn: on a terminal, in a notebook, and wherever somebody reads them from a pipe."""

from __future__ import annotations

import os

SHOWN = "RAGNB_PROGRESS"
"""With 1 in it, bars are drawn although standard error is no terminal, as for a window that reads them."""


def is_hidden(progress: bool | None) -> bool | None:
    """Return what tqdm takes as ``disable``.

    Parameters
    ----------
    progress : bool, optional
        What the caller asks for; None leaves it to the place.

    Returns
    -------
    bool or None
        None lets tqdm look whether standard error is a terminal.

    Examples
    --------
    >>> is_hidden(False), is_hidden(True)
    (True, False)
    """
    if progress is not None:
        return not progress
    if os.environ.get(SHOWN) == "1":
        return False
    return None
