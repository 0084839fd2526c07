"""Which versions compute: of ragnb, of Python, and of the packages that numbers and pages depend on."""

from __future__ import annotations

import platform
from importlib import metadata

_CORE = ("numpy", "pandas", "scipy", "pydantic", "narwhals", "polars")
_EXTRAS = (
    "matplotlib",
    "papermill",
    "jupyterlab",
    "ipywidgets",
    "ragas",
    "openai",
    "pyspark",
    "duckdb",
)


def versions() -> dict[str, str]:
    """Return the version of each package that a run records, those that are installed.

    Examples
    --------
    >>> "pandas" in versions()
    True
    """
    names = ("ragnb", *_CORE, "matplotlib", "papermill")
    installed = {name: metadata.version(name) for name in names if _is_there(name)}
    return {"ragnb": installed.pop("ragnb"), "python": platform.python_version(), **installed}


def _is_there(name: str) -> bool:
    return any(metadata.distributions(name=name))


def show_versions() -> None:
    """Print the versions of ragnb, Python, the system and the packages that it uses, for a report of a bug.

    Nothing of the user's files or environment is shown.

    Examples
    --------
    >>> import contextlib, io
    >>> with contextlib.redirect_stdout(io.StringIO()) as said:
    ...     show_versions()
    >>> said.getvalue().splitlines()[0].split()[0]
    'ragnb'
    """
    rows = versions()
    rows = {"ragnb": rows["ragnb"], "python": rows["python"], "system": platform.platform()} | rows
    for name in _EXTRAS:
        rows.setdefault(name, metadata.version(name) if _is_there(name) else "not installed")
    width = max(map(len, rows))
    print("\n".join(f"{name:<{width}}  {version}" for name, version in rows.items()))
