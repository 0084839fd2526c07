"""Files of any tool and frames of any engine → one canonical pandas frame, and a report of the changes."""

from ragnb.readers.cells import to_csv_text
from ragnb.readers.formats import FORMATS, Format
from ragnb.readers.layouts import LAYOUTS, is_measure
from ragnb.readers.samples import applicable_metrics, read_cases, read_scores, read_table
from ragnb.readers.traces import qrels_columns, read_gold, read_traces

__all__ = [
    "FORMATS", "LAYOUTS", "Format", "applicable_metrics", "is_measure", "qrels_columns", "read_cases", "read_gold",
    "read_scores", "read_table", "read_traces", "to_csv_text",
]  # fmt: skip
