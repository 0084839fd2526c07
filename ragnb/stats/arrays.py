"""The types of the arrays that the formulas take and return."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
Values = npt.ArrayLike
# Also counts: how many rows a row represents, ≥ 1 (in clusters also a fraction).
Labels = npt.ArrayLike | None
