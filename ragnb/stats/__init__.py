"""Statistical formulas on arrays, without frames, names or labels."""

from ragnb.stats.correction import MAPS, Corrected, draw_test, fit_map, grouped_folds, ppi_jackknife, recalibrate
from ragnb.stats.decisions import (
    balanced_order,
    flip_probability,
    pooled_variance,
    questions_to_decide,
    side_is_settled,
    unseen_failures,
    wilson_size,
)
from ragnb.stats.estimates import (
    Estimate,
    best_constant,
    bias,
    chance_floor,
    clustered_mean,
    holm,
    human_ceiling,
    jackknife,
    kendall,
    kendall_of_means,
    kendall_within,
    krippendorff_alpha,
    leave_one_out,
    limits_of_agreement,
    mae,
    p_above,
    quadratic_kappa,
    round_half_up,
    slope_on_mean,
    stratified_mean,
    stratified_se,
    within,
    within_share,
)
from ragnb.stats.means import jackknife_se, kish, mean_interval, resampled_means, t_quantile, widening, wilson
from ragnb.stats.power import (
    LabelsNeeded,
    anova_icc,
    binomial_power,
    design_effect,
    label_budget,
    labels_needed,
    sample_size_exact,
    sample_size_normal,
)

__all__ = [
    "MAPS", "Corrected", "Estimate", "LabelsNeeded", "anova_icc", "balanced_order", "best_constant", "bias",
    "binomial_power", "chance_floor", "clustered_mean", "design_effect", "draw_test", "fit_map",
    "flip_probability", "grouped_folds", "holm", "human_ceiling", "jackknife", "jackknife_se", "kendall",
    "kendall_of_means", "kendall_within", "kish", "krippendorff_alpha", "label_budget", "labels_needed",
    "leave_one_out", "limits_of_agreement", "mae", "mean_interval", "p_above", "pooled_variance",
    "ppi_jackknife", "quadratic_kappa", "questions_to_decide", "recalibrate", "resampled_means", "round_half_up",
    "sample_size_exact", "sample_size_normal", "side_is_settled", "slope_on_mean", "stratified_mean",
    "stratified_se", "t_quantile", "unseen_failures", "widening", "wilson", "wilson_size", "within",
    "within_share",
]  # fmt: skip
