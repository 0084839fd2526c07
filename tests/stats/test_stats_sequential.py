"""Sequential evaluation: an order in which every beginning is fair, and when a side is settled."""

from __future__ import annotations

from math import ceil, floor, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from ragnb.stats import balanced_order, kish, pooled_variance, side_is_settled

# The order


@given(st.lists(st.integers(1, 12), min_size=1, max_size=12), st.integers(0, 99))
def test_every_beginning_holds_each_document_in_proportion(sizes, seed):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    np.random.default_rng(seed).shuffle(groups)
    order, n, seen = balanced_order(groups, seed=seed), len(groups), [0] * len(sizes)
    assert sorted(order) == list(range(n))
    for k, row in enumerate(order, 1):
        seen[groups[row]] += 1
        for size, has in zip(sizes, seen, strict=True):
            assert floor(k * size / n) <= has <= ceil(k * size / n)


def test_documents_of_one_size_come_in_rounds_whose_order_differs():
    groups = np.tile(np.arange(8), 10)
    rounds = groups[balanced_order(groups)].reshape(10, 8)
    assert (np.sort(rounds, axis=1) == np.arange(8)).all()
    assert len({tuple(one) for one in rounds}) == 10
    assert balanced_order(groups).tolist() == balanced_order(groups).tolist()
    assert balanced_order(groups, seed=1).tolist() != balanced_order(groups).tolist()


def test_small_documents_are_neither_early_nor_late():
    """Of 20 documents of 15 questions and 60 of one: the beginnings of many orders hold them as all rows do."""
    sizes = np.r_[np.full(20, 15), np.ones(60, int)]
    groups = np.repeat(np.arange(80), sizes)
    for k in (80, 83, 200):
        orders = [balanced_order(groups, seed=seed)[:k] for seed in range(60)]
        small = np.mean([(groups[order] >= 20).mean() for order in orders])
        assert small == pytest.approx(60 / 360, abs=0.01)


# The rule


@given(st.lists(st.tuples(st.floats(-9, 9), st.sampled_from("abc")), min_size=1, max_size=20))
def test_the_pooled_variance_is_the_sum_over_documents(rows):
    by_doc = {doc: [x for x, own in rows if own == doc] for doc in "abc"}
    top = sum(
        sum((x - sum(part) / len(part)) ** 2 for x in part) for part in by_doc.values() if part
    )
    bottom = sum(len(part) - 1 for part in by_doc.values() if part)
    found = pooled_variance([x for x, _ in rows], [doc for _, doc in rows])
    assert np.isnan(found) if bottom == 0 else found == pytest.approx(top / bottom, abs=1e-9)


def test_the_rule_at_its_boundary():
    n, size = 80, 400
    reach = 3 * sqrt(0.25 * (1 / n - 1 / size))
    at = [0.5 + reach - 1e-12, 0.5 + reach + 1e-12, 0.5 - reach - 1e-12, 0.5 - reach + 1e-12]
    assert side_is_settled(at, 0.5, 0.25, n, size).tolist() == [False, True, True, False]
    for v in (
        0.9,
        0.999,
    ):  # of 0/1 values the variance is at least .2 (v(1 - v) + 1/n) and .5 b(1 - b)

        def beyond(b, v=v):
            least = max(0.2 * (v * (1 - v) + 1 / n), 0.5 * b * (1 - b))
            return v - b - 3 * sqrt(least * (1 / n - 1 / size))

        at = brentq(beyond, 0.5, v)
        assert side_is_settled(v, [at - 1e-9, at + 1e-9], 0, n, size, binary=True).tolist() == [
            True,
            False,
        ]
    # Of others it is at least .2 width²/n.
    reach = 3 * sqrt(0.2 * 81 / n * (1 / n - 1 / size))
    at = [9 - reach - 1e-9, 9 - reach + 1e-9]
    assert side_is_settled(9, at, 0, n, size, width=9).tolist() == [True, False]
    assert not side_is_settled(0.9, 0.1, np.nan, n, size), (
        "a variance that is not known settles nothing"
    )


def test_a_run_that_stops_lies_on_the_side_of_the_full_run():
    """1,500 corpora of 40 documents × 10 questions, pass/fail .8, ICC .1 and .3: other side ≤ .5 % from .02 off.

    The savings are those of STATISTICS.md, part II, 4c, whose looks come after rounds of 40, too.
    """
    rng, draws, docs, each = np.random.default_rng(4), 1500, 40, 10
    size, saved = docs * each, {}
    for icc in (0.1, 0.3):
        a = (1 - icc) / icc
        share = rng.beta(0.8 * a, 0.2 * a, (draws, 1, docs))
        x = (rng.random((draws, each, docs)) < share).astype(
            float
        )  # each round is in document order
        full = x.mean(axis=(1, 2))
        for off in (0.02, -0.02, 0.05, -0.05, 0.1, -0.1):
            b, open_, other, saved[icc, off] = full - off, np.ones(draws, bool), 0, 0.0
            for k in range(2, each):
                part, n = x[:, :k], k * docs
                value = part.mean(axis=(1, 2))
                spread = ((part - part.mean(axis=1, keepdims=True)) ** 2).sum(axis=(1, 2)) / (
                    n - docs
                )
                stop = open_ & side_is_settled(value, b, spread, n, size, binary=True)
                other += int(((value > b) != (full > b))[stop].sum())
                saved[icc, off] += stop.sum() * (1 - n / size) / draws
                open_ &= ~stop
            assert other / draws <= 0.005, (icc, off)
    assert saved[0.1, 0.05] == pytest.approx(0.48, abs=0.08)
    assert saved[0.1, -0.1] == pytest.approx(0.65, abs=0.08)
    assert saved[0.3, -0.05] == pytest.approx(0.43, abs=0.08)


def test_kish_stands_for_rows_of_unequal_weight():
    """Half the weights 3: the deviation of a first half from the whole has the variance that the rule takes."""
    rng, w = np.random.default_rng(0), np.tile([1.0, 3.0], 20)
    x = rng.normal(size=(20_000, 40))
    deviation = x[:, :20] @ w[:20] / w[:20].sum() - x @ w / w.sum()
    n, size = kish(w[:20].sum(), w[:20] @ w[:20]), kish(w.sum(), w @ w)
    assert deviation.var() == pytest.approx(float(1 / n - 1 / size), rel=0.05)


def test_the_values_of_a_range_of_one_that_may_be_any_are_what_is_asked_of_by_default():
    at = np.linspace(0.5, 0.9, 81)
    plain = side_is_settled(0.7, at, 0.001, 80, 400)
    assert (
        plain.tolist() == side_is_settled(0.7, at, 0.001, 80, 400, width=1, binary=False).tolist()
    )
    assert plain.tolist() != side_is_settled(0.7, at, 0.001, 80, 400, width=2).tolist()
    assert plain.tolist() != side_is_settled(0.7, at, 0.001, 80, 400, binary=True).tolist()
