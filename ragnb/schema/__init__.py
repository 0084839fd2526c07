"""The one frame contract: column names, status words, what a metric is and needs, and the small models.

Frames are wide, one row per sample. A column name with ``__`` is never a metric.
"""

from ragnb.schema.frames import (
    ABOUT_COLUMNS,
    CASE_COLUMNS,
    CLIP,
    KNOWN_RATES,
    METRICS,
    NOT_METRICS,
    NOTE_COLUMNS,
    RESULT_COLUMNS,
    STATUS_WORDS,
    STOPPED_EARLY,
    EvalCase,
    Metric,
    MetricLike,
    SharedPicks,
    declare_step,
    metric_list,
    missing_fields,
    note_frame,
    note_row,
    records,
    resolve_metrics,
    scale_of,
    undeclared_columns,
)
from ragnb.schema.models import DEFAULT_GATES, Anchor, Dimension, Gate, Profile, Rubric, Rule, refuse
from ragnb.schema.secrets import holds_secret, is_secret_name, masked, refuse_secrets, without_secrets

__all__ = [
    "ABOUT_COLUMNS", "CASE_COLUMNS", "CLIP", "DEFAULT_GATES", "KNOWN_RATES", "METRICS",
    "NOTE_COLUMNS", "NOT_METRICS", "RESULT_COLUMNS", "STATUS_WORDS", "STOPPED_EARLY", "Anchor", "Dimension",
    "EvalCase", "Gate", "Metric", "MetricLike", "Profile", "Rubric", "Rule", "SharedPicks",
    "declare_step", "holds_secret", "is_secret_name", "masked", "metric_list", "missing_fields", "note_frame",
    "note_row", "records", "refuse", "refuse_secrets", "resolve_metrics", "scale_of", "undeclared_columns",
    "without_secrets",
]  # fmt: skip
