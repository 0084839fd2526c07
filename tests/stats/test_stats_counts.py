"""A row that stands for many says what the many say: every formula on counts is the formula on rows."""

import numpy as np
import pytest

from ragnb import stats
from ragnb.errors import RagnbError

TAKES_COUNTS = {
    "within_share": lambda j, h, g, **k: stats.within_share(j, h, g, **k),
    "chance_floor": lambda j, h, g, **k: stats.chance_floor(j, h, **k),
    "best_constant": lambda j, h, g, **k: stats.best_constant(h, g, levels=range(1, 6), **k)[1],
    "best_free_constant": lambda j, h, g, **k: stats.best_constant(h, g, **k)[1],
    "bias": lambda j, h, g, **k: stats.bias(j, h, g, **k),
    "mae": lambda j, h, g, **k: stats.mae(j, h, g, scale=(1, 5), **k),
    "slope_on_mean": lambda j, h, g, **k: stats.slope_on_mean(j, h, g, **k),
    "low limit": lambda j, h, g, **k: stats.limits_of_agreement(j, h, g, **k)[0],
    "high limit": lambda j, h, g, **k: stats.limits_of_agreement(j, h, g, **k)[1],
    "quadratic_kappa": lambda j, h, g, **k: stats.quadratic_kappa(j, h, (1, 5), g, **k),
    "kendall": lambda j, h, g, **k: stats.kendall(j, h, g, **k),
    "kendall_within": lambda j, h, g, **k: stats.kendall_within(
        j, h, np.asarray(j) % 2 if g is None else g, **k
    ),
    "kendall_of_means": lambda j, h, g, **k: stats.kendall_of_means(
        j, h, np.asarray(j) % 3, g, **k
    ),
    "isotonic": lambda j, h, g, **k: stats.fit_map(j, h, **k)([1.5, 3.0, 4.0]),
    "linear": lambda j, h, g, **k: stats.fit_map(j, h, "linear", **k)([1.5, 3.0, 4.0]),
}


def cells(seed):
    """A judge × human × cluster table with gaps and ties."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(8, 30))
    judge, human = rng.integers(1, 6, size).astype(float), rng.integers(3, 16, size) / 3
    return (
        judge,
        human,
        rng.integers(0, 5, size).astype(float),
        rng.integers(1, 5, size).astype(float),
    )


def flat(found):
    if isinstance(found, stats.Estimate):
        return [found.value, found.low, found.high, found.se, found.n, found.n_clusters]
    return np.atleast_1d(found)


def same(table, name, clustered):
    judge, human, group, counts = table
    rows = [np.repeat(column, counts.astype(int)) for column in (judge, human, group)]
    with np.errstate(all="ignore"):
        formula = TAKES_COUNTS[name]
        got = formula(judge, human, group if clustered else None, counts=counts)
        want = formula(rows[0], rows[1], rows[2] if clustered else None)
    np.testing.assert_allclose(flat(got), flat(want), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("clustered", [True, False], ids=["clusters", "rows"])
@pytest.mark.parametrize("name", TAKES_COUNTS)
def test_counts_say_what_rows_say(name, clustered):
    for seed in range(12):
        same(cells(seed), name, clustered)


def test_recalibration_on_counts_is_that_on_rows():
    for seed in range(6):
        judge, human, group, counts = cells(seed)
        rows = [np.repeat(column, counts.astype(int)) for column in (judge, human, group)]
        got, want = stats.recalibrate(judge, human, group, counts=counts), stats.recalibrate(*rows)
        for kind in ("raw", "constant", "linear", "isotonic"):
            np.testing.assert_allclose(
                np.repeat(got[kind], counts.astype(int)), want[kind], atol=1e-9
            )


def test_counts_of_none_or_of_another_length_are_refused():
    for counts in ([1], [1, 0], [1, -2]):
        with pytest.raises(RagnbError, match="how many rows each row represents"):
            stats.bias([1, 2], [2, 2], counts=counts)


def test_parts_of_a_row_count_in_a_cluster_and_are_refused_where_each_row_is_one():
    halves = stats.bias([1, 2, 3], [2, 2, 2], ["a", "a", "b"], counts=[0.5, 0.5, 2])
    assert halves.value == pytest.approx((-0.5 + 0 + 2) / 3)
    with pytest.raises(RagnbError, match="1 or more"):
        stats.bias([1, 2, 3], [2, 2, 2], counts=[0.5, 0.5, 2])
