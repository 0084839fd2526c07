"""A scenario, a file or a frame → one scores frame: read, filtered, labelled, joined, with a row ledger."""

from ragnb.inputs import streams
from ragnb.inputs.gather import Inputs, gather
from ragnb.inputs.source import metrics_of, opened, prepared, scenario_of
from ragnb.inputs.stages import HOME, join_stages, record_stage, relative, stage_table, stage_tables, with_cases

__all__ = [
    "HOME", "Inputs", "gather", "join_stages", "metrics_of", "opened", "prepared", "record_stage", "relative",
    "scenario_of", "stage_table", "stage_tables", "streams", "with_cases",
]  # fmt: skip
