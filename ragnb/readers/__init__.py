"""Files of any tool and frames of any engine → one canonical pandas frame, and a report of the changes."""

from ragnb.readers.csv_text import to_csv_text
from ragnb.readers.formats import FORMATS, Format
from ragnb.readers.names import is_measure
from ragnb.readers.reading import Reading, remembered
from ragnb.readers.roles import is_open_role, open_role
from ragnb.readers.samples import (
    applicable_metrics,
    read_cases,
    read_scores,
    read_table,
    reading_of_cases,
    reading_of_scores,
)
from ragnb.readers.traces import (
    qrels_columns,
    read_gold,
    read_traces,
    reading_of_gold,
    reading_of_traces,
)
