"""A scenario, a file or a frame → one scores frame: read, filtered, labelled, joined, with a row ledger."""

from ragnb.inputs import streams
from ragnb.inputs.account import (
    at_worst,
    computed_rates,
    count_answers,
    count_not_applicable,
    make_account,
    mark_not_applicable,
)
from ragnb.inputs.card import inspect_file
from ragnb.inputs.coverage import Coverage, system_coverage
from ragnb.inputs.file_card import FileCard
from ragnb.inputs.gather import Inputs, gather
from ragnb.inputs.reading import read_inputs, read_scenario, scenario_of
from ragnb.inputs.stages import stage_table, stage_tables, with_cases
