"""The types of the arrays that the formulas take and return."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
Values = npt.ArrayLike
# Also counts: how many rows a row represents, ≥ 1 (in clusters also a fraction).
Labels = npt.ArrayLike | None


def inner(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> float:
    """Return the sum of the products of two columns, in one thread.

    Examples
    --------
    >>> inner(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    # `left @ right` of more than 10,000 rows is shared among the threads of OpenBLAS (0.3.30), which wait for each
    # other: beside another process it takes 8 ms where this takes 0.05.
    return float(np.einsum("i,i->", left, right))
