"""Corrected means of the real ratings, against the reference and against what the labels themselves say."""

import numpy as np
import pandas as pd
import pytest

from ragnb import calibrate, corrected_mean, stats

SETS = {
    "mtrag_faithfulness_10pt": (
        "mtrag",
        "faithfulness",
        {"judge": "judge10", "human": "human10", "scale": (1, 10)},
    ),
    "mtrag_overall3_10pt": (
        "mtrag",
        "overall3",
        {"judge": "judge10", "human": "human10", "scale": (1, 10)},
    ),
    "hanna_complexity_beluga13b": (
        "hanna",
        "complexity",
        {"judge": "judge_Beluga-13B", "scale": (1, 5)},
    ),
}


@pytest.fixture(scope="module")
def tables(shared):
    return {
        name: pd.read_csv(shared / "data" / "ratings" / f"{name}.csv")
        for name in ("mtrag", "hanna")
    }


@pytest.mark.parametrize("n", [50, 100, 200])
@pytest.mark.parametrize("name", SETS)
def test_the_mean_and_its_weight_are_the_references(tables, reference, name, n):
    file, dimension, options = SETS[name]
    rows = tables[file][tables[file]["dimension"] == dimension].reset_index(drop=True)
    order = np.random.default_rng(0).permutation(len(rows))
    ratings, judged = rows.loc[order[:n]], rows.loc[order[n:]]
    found = corrected_mean(ratings, judged=judged, **options).iloc[0]
    want = reference[name]["ppi"][f"n{n}"]
    assert found["value"] == pytest.approx(
        want["ppi++_point"]["value"], abs=want["ppi++_point"]["tol"]
    )
    assert found["weight"] == pytest.approx(
        want["ppi++_lam"]["value"], abs=want["ppi++_lam"]["tol"]
    )
    assert found["judge_value"] == pytest.approx(rows[options["judge"]].mean())
    assert found["low"] < found["value"] < found["high"]


def test_labels_of_all_items_leave_the_humans_mean_of_every_dimension_and_system(tables):
    options = {"judge": "judge10", "human": "human10", "scale": (1, 10)}
    table = corrected_mean(tables["mtrag"], by=["dimension", "system"], **options)
    assert len(table) == 15
    for row in table.itertuples():
        part = tables["mtrag"].query(f"dimension == {row.dimension!r} and system == {row.system!r}")
        alone = stats.clustered_mean(part["human10"], part["cluster"], ends=(1, 10))
        assert (row.value, row.low, row.high) == pytest.approx((alone.value, alone.low, alone.high))
        assert (row.weight, row.n, row.n_judged, row.n_clusters) == (
            0,
            len(part),
            0,
            part["cluster"].nunique(),
        )


def test_a_judge_of_mtrag_needs_more_than_labels(tables):
    options = {"judge": "judge10", "human": "human10", "scale": (1, 10)}
    table = calibrate(tables["mtrag"], target=0.8, **options).labels_needed.set_index("dimension")
    assert table.loc["overall3", "seen"] == pytest.approx(0.516, abs=5e-4)
    assert set(table["reason"]) == {"share_at_or_below_target"}
    kind = calibrate(tables["mtrag"], target=0.55, **options).budget
    assert set(kind["dimension"]) == set(table.index)
    width = (kind["high"] - kind["low"]).groupby(kind["dimension"])
    assert (width.last() < width.first()).all()
