"""Traces: what a system did with each question (refused, answered, cited) compared with the gold set.

A labelled trace is a row of a scores frame, so its rates are means like any other.
"""

from ragnb.traces.citations import citation_forms
from ragnb.traces.claims import Claims, label_claims
from ragnb.traces.label import (
    RATES,
    answer_counts,
    check_gold,
    count_unanswerable,
    join_report,
    label_traces,
    mark_unanswerable,
    outcome_counts,
    refusal_metrics,
    repeated_answers,
    sample_traces,
)
from ragnb.traces.log import LATENCY, TIMES, Log, read_log
from ragnb.traces.ranking import label_retrieval, retrieval, with_ranks
