"""Traces: what a system did with each question (refused, answered, cited) compared with the gold set.

A labelled trace is a row of a scores frame, so its rates are means like any other.
"""

from ragnb.traces.answerable import count_unanswerable, mark_unanswerable, repeated_answers
from ragnb.traces.citations import citation_forms
from ragnb.traces.claims import Claims, label_claims
from ragnb.traces.label import label_traces, labelled_and_joined
from ragnb.traces.log import LATENCY, TIMES, Log, read_log
from ragnb.traces.matching import answer_counts, join_report
from ragnb.traces.outcomes import RATES, outcome_counts, refusal_metrics
from ragnb.traces.ranking import (
    has_steps,
    label_retrieval,
    rank_means,
    retrieval,
    telling_depths,
    with_ranks,
)
from ragnb.traces.sampling import sample_traces
from ragnb.traces.soundness import check_gold
