"""Arrays in, numbers out: the formulas, without frames, names or labels."""

from ragnb.stats.agreement import best_constant, chance_floor, round_half_up, within, within_kappa, within_share
from ragnb.stats.alpha import krippendorff_alpha
from ragnb.stats.budget import LabelBudget, label_budget
from ragnb.stats.closeness import Limits, bias, limits_of_agreement, mae, rmse, slope_on_mean
from ragnb.stats.concordance import concordance, icc, quadratic_kappa
from ragnb.stats.draw import DrawTest, draw_test
from ragnb.stats.estimates import Estimate, clustered_mean, jackknife
from ragnb.stats.means import jackknife_se, kish, mean_interval, t_quantile, wilson
from ragnb.stats.power import (
    LabelsNeeded,
    anova_icc,
    binomial_power,
    design_effect,
    labels_needed,
    sample_size_exact,
    sample_size_normal,
)
from ragnb.stats.ppi import Corrected
from ragnb.stats.ppi_clusters import ppi_jackknife
from ragnb.stats.ranks import correlation
from ragnb.stats.raters import human_ceiling, leave_one_out
from ragnb.stats.recalibration import Recalibration, ScoreMap, fit_map, grouped_folds, recalibrate
from ragnb.stats.resample import resampled_means
from ragnb.stats.significance import holm, p_above

__all__ = [
    "Corrected", "DrawTest", "Estimate", "LabelBudget", "LabelsNeeded", "Limits", "Recalibration", "ScoreMap",
    "anova_icc", "best_constant", "bias", "binomial_power", "chance_floor", "clustered_mean", "concordance",
    "correlation", "design_effect", "draw_test", "fit_map", "grouped_folds", "holm", "human_ceiling", "icc",
    "jackknife", "jackknife_se", "kish", "krippendorff_alpha", "label_budget", "labels_needed", "leave_one_out",
    "limits_of_agreement", "mae", "mean_interval", "p_above", "ppi_jackknife", "quadratic_kappa", "recalibrate",
    "resampled_means", "rmse", "round_half_up", "sample_size_exact", "sample_size_normal", "slope_on_mean",
    "t_quantile", "wilson", "within", "within_kappa", "within_share",
]  # fmt: skip
