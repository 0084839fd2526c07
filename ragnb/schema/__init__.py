"""The one frame contract: column names, status words, what a metric is and needs, and the small models.

Frames are wide, one row a sample. A column name with ``__`` is never a metric.
"""

from ragnb.schema.case import EvalCase, Result, missing_fields
from ragnb.schema.columns import (
    ABOUT_COLUMNS,
    CASE_COLUMNS,
    DERIVED_COLUMNS,
    NOTE_COLUMNS,
    RESULT_COLUMNS,
    STATUS_WORDS,
    TRACE_COLUMNS,
    note_frame,
    note_row,
    records,
)
from ragnb.schema.known import (
    DEFAULT_GATES,
    KNOWN_RATES,
    METRICS,
    MetricLike,
    metric_list,
    resolve_metrics,
    undeclared_columns,
)
from ragnb.schema.metric import CLIP, Metric, declare_step, scale_of
from ragnb.schema.models import Gate, Profile, Rule
from ragnb.schema.picks import SharedPicks
from ragnb.schema.rubric import Anchor, Dimension, Rubric, refuse
from ragnb.schema.secrets import holds_secret, is_secret_name, masked, refuse_secrets, without_secrets

__all__ = [
    "ABOUT_COLUMNS", "CASE_COLUMNS", "CLIP", "DEFAULT_GATES", "DERIVED_COLUMNS", "KNOWN_RATES", "METRICS",
    "NOTE_COLUMNS", "RESULT_COLUMNS", "STATUS_WORDS", "TRACE_COLUMNS", "Anchor", "Dimension", "EvalCase",
    "Gate", "Metric", "MetricLike", "Profile", "Result", "Rubric", "Rule", "SharedPicks",
    "declare_step", "holds_secret", "is_secret_name", "masked", "metric_list", "missing_fields", "note_frame",
    "note_row", "records", "refuse", "refuse_secrets", "resolve_metrics", "scale_of", "undeclared_columns",
    "without_secrets",
]  # fmt: skip
