"""Arrays in, numbers out: the formulas, without frames, names or labels."""

from ragnb.stats.means import (
    familiar_cluster_se,
    jackknife_se,
    kish,
    mean_interval,
    t_quantile,
    wilson,
)
from ragnb.stats.resample import resampled_means

__all__ = [
    "familiar_cluster_se",
    "jackknife_se",
    "kish",
    "mean_interval",
    "resampled_means",
    "t_quantile",
    "wilson",
]
