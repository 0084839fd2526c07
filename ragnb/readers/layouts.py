"""Table layouts of tools: one row of ``layouts.toml`` per tool, converted to one row per sample.

A layout knows a tool's columns (`known_by`), calls them by our `names`, and may lay the cells out anew; through
`scored` it hands over what it knows of its metrics: range, direction, threshold, and which cells are failures.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from fnmatch import fnmatchcase

from ragnb.errors import RagnbError, listing, place
from ragnb.readers.raw import Lossy, Raw
from ragnb.readers.results import UNIT_SCALE
from ragnb.readers.tools.annotations import read_annotations, read_phoenix
from ragnb.readers.tools.deepeval import read_deepeval
from ragnb.readers.tools.flattened import read_flattened, twin_of
from ragnb.readers.tools.haystack import read_haystack, systems_beside
from ragnb.readers.tools.inspect_ai import read_inspect
from ragnb.readers.tools.known import TOOLS, matches, scale_in
from ragnb.readers.tools.long import is_long, read_long
from ragnb.readers.tools.mlflow import read_mlflow
from ragnb.readers.tools.promptfoo import read_promptfoo, read_promptfoo_csv
from ragnb.readers.tools.trulens import read_trulens

# The attributes of the result object of ragas, which is no table.
_DUMPED = {"scores", "dataset", "binary_columns"}


def sniff(tool: str, columns: Set[str]) -> bool:
    """Return whether columns are those of a tool's tables.

    Examples
    --------
    >>> sniff("ragas", {"user_input", "response"}), sniff("ragas", {"question", "answer"})
    (True, False)
    >>> sniff("deepeval", {"input", "context", "retrieval_context"})
    True
    >>> sniff("long", {"sample_id", "metric", "score"}), sniff("long", {"metric", "score"})
    (True, False)
    """
    alternatives = TOOLS[tool]["known_by"]  # each a list of patterns, all of which fit a column
    if not any(_has_all(columns, patterns) for patterns in alternatives):
        return False
    fits = _FITS.get(tool, bool)
    return fits(columns)


def _has_all(columns: Set[str], patterns: Iterable[str]) -> bool:
    """Return whether each pattern fits the name of a column."""
    return all(any(fnmatchcase(name, pattern) for name in columns) for pattern in patterns)


def lay_out(raw: Raw, report: Lossy, tools: Iterable[str] = TOOLS) -> str:
    """Convert a tool's layout to one row per sample (or annotation) and return its name, else ``table``."""
    columns = set(raw.columns)
    if columns >= _DUMPED:
        raise RagnbError(
            f"{place(raw.file)}is a dumped result object (columns {listing(raw.columns)}), not a table of "
            "samples; save result.to_pandas() instead"
        )
    if "..." in columns:
        elided = raw.columns.pop("...")
        report.add("left_out", "...", "columns that a printed table elides", len(elided))
    layout = next((tool for tool in tools if sniff(tool, columns)), "table")
    raw.rename(TOOLS.get(layout, {}).get("names", {}), report)
    if layout in _READ:
        raw.columns = {name: list(cells) for name, cells in raw.columns.items()}
        _READ[layout](raw, report)
    return layout


def declare_scales(raw: Raw, layout: str) -> None:
    """Declare the scales of the columns that a layout knows by the names of its metrics.

    A second column of a metric, with other values, is declared by nobody: one meaning counts once.
    """
    tool = TOOLS.get(layout, {})
    ends = tool.get("ends", ())
    seconds = {name for name in raw.columns if twin_of(name, raw.scales, ends) is not None}
    for row in tool.get("metrics", ()):
        for name in raw.columns:
            # `score__status` and `score__reason` are no metrics, whatever a pattern such as `score*` means.
            if "__" in name or name in raw.scales or name in seconds:
                continue
            if matches(name, row):
                raw.scales[name] = {**UNIT_SCALE, "better": "higher", **scale_in(row)}


_READ = {
    "haystack": read_haystack,
    "trulens": read_trulens,
    "mlflow": read_mlflow,
    "deepeval": read_deepeval,
    "promptfoo": read_promptfoo,
    "langfuse": read_annotations,
    "phoenix": read_annotations,
    "long": read_long,
    "inspect": read_inspect,
    "flattened": read_flattened,
    "phoenix_evals": read_phoenix,
    "promptfoo_csv": read_promptfoo_csv,
}
# Further checks of the columns, for layouts that patterns of their names do not tell for sure.
_FITS = {"haystack": lambda columns: len(systems_beside(columns)) > 1, "long": is_long}
