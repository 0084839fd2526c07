"""Clustered standard errors on real ratings, against independently computed values."""

import math

import pandas as pd
import pytest

import ragnb as rn


def test_the_one_estimator_gives_the_references_means_and_a_se_beside_its(shared, reference):
    ratings = pd.read_csv(shared / "data" / "ratings" / "mtrag.csv")
    for dimension in ("faithfulness", "overall3"):
        rows = ratings[ratings["dimension"] == dimension]
        want = reference[f"mtrag_{dimension}_10pt"]
        frame = rows[["human10", "judge10", "cluster"]].assign(
            bias=rows["judge10"] - rows["human10"]
        )
        metrics = [
            rn.Metric("human10", 1, 10),
            rn.Metric("judge10", 1, 10),
            rn.Metric("bias", -math.inf, math.inf),
        ]
        means = (
            rn.moments(frame, metrics=metrics, cluster="cluster")
            .means(strict=False)
            .set_index("metric")
        )
        assert means.loc["human10", "value"] == pytest.approx(want["mean_human"]["value"], abs=1e-9)
        assert means.loc["judge10", "value"] == pytest.approx(want["mean_judge"]["value"], abs=1e-9)
        assert means.loc["bias", "n_clusters"] == want["n_clusters"]["value"]
        # Equal to the familiar form only for clusters of one size; these twenty are nearly so.
        assert means.loc["bias", "se"] == pytest.approx(
            want["bias"]["cluster_se"]["value"], rel=0.05
        )
