"""Histograms of the scores of a frame, by the reduction that a sheet draws its strips from."""

from __future__ import annotations

from ragnb.weights import histogram_reduction, reduce_batches, scored


def histogram(scores, *, metrics=None, bins=10):
    frame, chosen = scored(scores, metrics)
    return reduce_batches(frame, chosen, [histogram_reduction(chosen, bins=bins)])[0]
