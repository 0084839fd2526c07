"""The total of metrics: ranges, centres, and what a mean may fall to."""

import numpy as np
import pandas as pd
import pytest

import ragnb as rn
from ragnb import stats
from ragnb.errors import RagnbError
from ragnb.schema import Metric
from ragnb.weights import reduce_batches
from ragnb.weights.reductions import gains_reduction
from ragnb.weights.total import Weighing, present_weights, total_of


@pytest.mark.parametrize(("low", "high"), [(-1.0, 0.0), (-1.0, 1.0), (0.0, 1.0), (1.0, 5.0)])
def test_metrics_centred_on_the_middle_of_their_range_are_found_centred(low, high):
    total = total_of([Metric("a", low, high), Metric("b", low, high)], None)
    middle = (low + high) / 2
    assert total.is_centred(np.full(2, middle))
    assert not total.is_centred(np.full(2, middle + (high - low) / 1000))


def test_metrics_of_different_ranges_have_a_total_only_where_they_are_rescaled():
    scores = pd.DataFrame({"a": [1.0, 5.0, 3.0], "b": [0.0, 1.0, 0.5]})
    metrics = [Metric("a", 1, 5), Metric("b", 0, 1)]
    found = rn.moments(scores, metrics=metrics)
    apart = Weighing().means(found).set_index("metric")["value"]
    assert np.isnan(apart["weighted_score"])
    together = Weighing(rescale=True).means(found).set_index("metric")["value"]
    assert together["weighted_score"] == pytest.approx(0.5)


@pytest.mark.parametrize("chance", [1.0000001, 1.5, 2.0, 0.0, -0.5])
def test_a_chance_of_being_drawn_is_above_0_and_at_most_1(chance):
    scores = pd.DataFrame({"faithfulness": [0.5, 0.7], "inclusion_probability": [0.5, chance]})
    with pytest.raises(RagnbError, match="inclusion_probability"):
        rn.weighted_means(scores)


def test_how_low_a_mean_may_be_is_told_of_a_few_documents_and_of_nothing_else():
    rng = np.random.default_rng(1)
    names = np.repeat([f"d{i}" for i in range(6)], 20)
    scores = pd.DataFrame({"faithfulness": rng.uniform(0.6, 1, 120), "doc_name": names})
    means = rn.weighted_means(scores).set_index("metric")
    low_if = means.loc["faithfulness", "low_if"]
    assert 0 < low_if < means.loc["faithfulness", "low"]
    # A document without a score is none of those that count.
    gone = scores.assign(faithfulness=scores["faithfulness"].where(scores.index >= 20))
    five = rn.weighted_means(gone).set_index("metric").loc["faithfulness"]
    assert five["n_clusters"] == 5
    assert 0 < five["low_if"] < low_if
    of_people = scores.rename(columns={"doc_name": "person"})
    clustered = rn.weighted_means(of_people, cluster="person").set_index("metric")
    assert np.isnan(clustered.loc["faithfulness", "low_if"])
    # Rows that name no document are clusters of their own, and no documents.
    some = scores.assign(doc_name=scores["doc_name"].where(scores.index < 100, None))
    mixed = rn.weighted_means(some).set_index("metric")
    assert np.isnan(mixed.loc["faithfulness", "low_if"])


def test_a_metric_may_be_named_as_its_tool_names_it():
    scores = pd.DataFrame({"Faithfulness": [0.25, 0.75], "mine": [1.0, 0.0]})
    for name in ("Faithfulness", "faithfulness"):
        means = rn.weighted_means(scores, metrics=[name]).set_index("metric")
        assert means.loc["faithfulness", "value"] == 0.5


def test_rows_without_a_document_gain_with_the_weight_1():
    frame = pd.DataFrame({"faithfulness": [0.5, 0.7], "doc_name": ["a", None]})
    metrics = [Metric("faithfulness")]
    weighing = Weighing(doc_weights={"a": 3.0})
    reduction = gains_reduction(metrics, [(0, 0.7)], weighing)
    gain = reduce_batches(frame, metrics, [reduction])[0]
    assert gain.tolist() == pytest.approx([(3 * 0.2 + 1 * 0.0) / 4])


def test_weights_of_names_are_found_in_either_unicode_form():
    composed, apart = "r\u00e9sum\u00e9.pdf", "re\u0301sume\u0301.pdf"
    assert present_weights({apart: 2.0, "b": 3.0}, [composed]) == {apart: 2.0}
    assert present_weights({composed: 2.0}, [composed]) == {composed: 2.0}


def test_the_interval_of_a_total_of_verdicts_is_that_of_its_rows():
    rng = np.random.default_rng(5)
    verdicts = pd.DataFrame(rng.random((90, 2)) < [0.93, 0.9], columns=["a", "b"]).astype(float)
    documents = np.arange(90) // 6
    metrics = [Metric(name, 0, 1, kind="binary") for name in "ab"]
    frame = verdicts.assign(doc_name=documents.astype(str))
    row = rn.weighted_means(frame, metrics=metrics).set_index("metric").loc["weighted_score"]
    rows = stats.clustered_mean(verdicts.mean(axis=1), documents, ends=(0, 1))
    assert [row["low"], row["value"], row["high"]] == pytest.approx(
        [rows.low, rows.value, rows.high]
    )
