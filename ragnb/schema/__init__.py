"""The one frame contract: column names, status words, what a metric is and needs, and the small models.

Frames are wide, one row per sample. A column name with ``__`` is never a metric.
"""

from ragnb.schema.base import Frozen, refuse
from ragnb.schema.cases import EvalCase, EvalResult, keep_results, missing_fields
from ragnb.schema.columns import (
    CASE_COLUMNS,
    DRAWN,
    NOT_METRICS,
    RESULT_COLUMNS,
    STOPPED_EARLY,
    TOTAL,
    SharedPicks,
    records,
)
from ragnb.schema.gates import DEFAULT_GATES, Gate, Rule
from ragnb.schema.metric import (
    CLIP,
    KNOWN_RATES,
    METRICS,
    RUBRIC,
    Metric,
    MetricLike,
    declare_step,
    known_metric,
    metric_list,
    range_of,
    resolve_metrics,
    scale_of,
    undeclared_columns,
)
from ragnb.schema.notes import NOTE_COLUMNS, holding_notes, note_frame, note_row
from ragnb.schema.operations import is_operation, kind_of_operation, quantile_of, unit_of
from ragnb.schema.profiles import Profile
from ragnb.schema.ranks import MEASURES, rank_measure
from ragnb.schema.rubrics import Anchor, Dimension, Rubric
