"""Arrays in, numbers out: the formulas, without frames, names or labels."""

from ragnb.stats.agreement import (
    best_constant,
    chance_floor,
    round_half_up,
    within,
    within_kappa,
    within_share,
)
from ragnb.stats.alpha import krippendorff_alpha
from ragnb.stats.budget import LabelBudget, label_budget
from ragnb.stats.closeness import (
    Limits,
    bias,
    limits_of_agreement,
    mae,
    rmse,
    six_sums,
    slope_on_human,
    slope_on_mean,
)
from ragnb.stats.concordance import concordance, icc, quadratic_kappa
from ragnb.stats.draw import DrawTest, draw_test
from ragnb.stats.estimates import Estimate, clustered_mean, jackknife
from ragnb.stats.kappa import kappa, rating_table
from ragnb.stats.means import (
    familiar_cluster_se,
    jackknife_se,
    kish,
    mean_interval,
    t_quantile,
    wilson,
)
from ragnb.stats.power import (
    LabelsNeeded,
    anova_icc,
    binomial_power,
    design_effect,
    labels_needed,
    questions_needed,
    sample_size_exact,
    sample_size_normal,
    zero_failure_size,
)
from ragnb.stats.ppi import Corrected, ppi_mean, rogan_gladen
from ragnb.stats.ppi_clusters import ppi_jackknife
from ragnb.stats.ranks import correlation, fisher_interval
from ragnb.stats.raters import human_ceiling, leave_one_out, rater_pairs
from ragnb.stats.recalibration import Recalibration, ScoreMap, fit_map, grouped_folds, recalibrate
from ragnb.stats.resample import resampled_means
from ragnb.stats.significance import holm, p_above

__all__ = [
    "Corrected", "DrawTest", "Estimate", "LabelBudget", "LabelsNeeded", "Limits", "Recalibration", "ScoreMap",
    "anova_icc", "best_constant", "bias", "binomial_power", "chance_floor", "clustered_mean", "concordance",
    "correlation", "design_effect", "draw_test", "familiar_cluster_se", "fisher_interval", "fit_map",
    "grouped_folds", "holm", "human_ceiling", "icc", "jackknife", "jackknife_se", "kappa", "kish",
    "krippendorff_alpha", "label_budget", "labels_needed", "leave_one_out", "limits_of_agreement", "mae",
    "mean_interval", "p_above", "ppi_jackknife", "ppi_mean", "quadratic_kappa", "questions_needed",
    "rater_pairs", "rating_table", "recalibrate", "resampled_means", "rmse", "rogan_gladen", "round_half_up",
    "sample_size_exact", "sample_size_normal", "six_sums", "slope_on_human", "slope_on_mean", "t_quantile",
    "wilson", "within", "within_kappa", "within_share", "zero_failure_size",
]  # fmt: skip
