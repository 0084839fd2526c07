"""What `calibrate` returns: one card with everything a verdict on a judge rests on, and all that charts draw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ragnb.errors import unknown


@dataclass(frozen=True, repr=False)
class CalibrationCard:
    """A verdict on a judge (or several, side by side) and every number behind it, made by `calibrate`.

    A *row* is one judge on one dimension. Every frame begins with ``judge, dimension``, so several judges and
    dimensions live in one frame; `only` cuts the card to some of them. Each row has its own verdict in
    ``verdicts``; the card's is the worst of them: TRUST only where every row is TRUST (each tested at its level,
    so that their conjunction keeps it), REJECT where one row is. Estimates are ``value`` or named, with
    ``low, high``, ``n`` and ``n_clusters``; missing is nan. Bias is judge − human, in points of the scale.

    Attributes
    ----------
    verdict : {"TRUST", "NOT PROVEN", "REJECT"}
        The worst of the rows.
    sides : tuple of str
        Side verdicts of any row, of ``RECALIBRATE``, ``RANKING ONLY``, ``INFLATED``, in this order.
    reasons : tuple of str
        Sentences in `lang`; the first two say all that a hurried reader needs.
    verdicts : DataFrame
        ``judge, dimension, verdict, sides`` (tuple), ``reasons`` (tuple of sentences), ``share, lower, upper``
        (the raw share within the tolerance and its one-sided bounds; ``low, high`` are two-sided), ``target,
        constant, constant_score`` (share and answer of the best constant judge), ``beats_constant, bias, bias_low,
        bias_high, delta, unbiased`` (its interval, and that of every inflated system, lies inside ±delta), ``n,
        n_clusters, judge_labelled, judge_rest, draw_z, draw_p``: the judge's means on labelled rows and on the
        rest, and the test of a random draw (`stats.draw_test`, Holm over the rows).
    table : DataFrame
        What `agreement` gives: one row a judge and dimension, with limits of agreement, slope, kappa and so on.
    bands : DataFrame
        By the judge's score: ``judge, dimension, band`` (label), ``start, end`` (both inside the band),
        ``share, low, high`` (within the tolerance), ``bias, bias_low, bias_high, n, n_clusters, p`` (Holm),
        ``verdict`` (``TRUST``, ``REJECT``, ``NOT PROVEN``, or ``too few`` under 5 clusters).
    inflation : DataFrame
        ``judge, dimension, kind`` (``overall``, ``system``, ``length``, ``answerability``, any group asked for),
        ``group, value`` (bias), ``low, high, beside, beside_low, beside_high`` (bias less that of all other
        groups), ``p`` (of a bias of 0, Holm over the groups of its kind), ``n, n_clusters, inflated`` (the bias is
        shown to lie above 0; beside TRUST no system's is, as each such bias is shown to be acceptable).
    recalibration : DataFrame
        ``judge, dimension, map`` (``raw``, ``constant``, ``linear``, ``isotonic``), ``mae, mae_low, mae_high,
        share, low, high`` (out of fold), ``gain, gain_low, gain_high`` (fall of MAE against raw), ``helps``
        (MAE below raw and constant), ``passes`` (would be TRUST).
    labels_needed : DataFrame
        ``judge, dimension, total, more, independent`` (Int64, missing where no number suffices), ``deff, rho,
        seen, planned, reason`` (``counted``, ``share_at_or_below_target``, ``too_close_to_tell``), ``text``.
    budget : DataFrame
        The label-budget curve: ``judge, dimension`` and the columns of `label_budget`.
    counts : DataFrame
        ``judge, dimension, judge_score, human_score, n``: cells for the heat map and Bland–Altman's points.
        Past 5,000 cells both scores are rounded to a hundredth of the scale; ``attrs["step"]`` says so.
    reliability : DataFrame
        ``judge, dimension, judge_score, human`` (mean of the humans at it), ``low, high, isotonic,
        isotonic_low, isotonic_high`` (cluster bootstrap), ``n, n_clusters``; at most 20 points a row, equal parts
        of the ratings where the judge gave more scores.
    corrected : DataFrame
        ``judge, dimension, system`` ("" for all), ``way`` (``judge``, ``human``, ``corrected``), ``value, low,
        high, weight, n, n_judged, n_clusters``.
    notes : DataFrame
        ``code, about, text``: what a reader must know before believing the numbers.
    footer : dict
        ``judge_id, prompt_sha256, rater_protocol, drawn_at_random, data_sha256, seed, resamples, n, n_clusters,
        raters, n_missing``; None where the caller did not say.
    tolerance, target, delta, level : float
        As they were asked for; `delta`, the acceptable bias, is 1/18 of the scale by default.
    scale : (float, float)
        The lowest and highest label.
    lang : {"en", "zh"}

    Examples
    --------
    >>> from ragnb.calibration import calibrate
    >>> card = calibrate(pd.DataFrame({"judge": [5, 1, 5, 2] * 40, "human": [5, 1, 4, 2] * 40}), scale=(1, 5))
    >>> card
    CalibrationCard('NOT PROVEN', sides=('INFLATED',), 1 rows)
    """

    verdict: str
    sides: tuple[str, ...]
    reasons: tuple[str, ...]
    verdicts: pd.DataFrame
    table: pd.DataFrame
    bands: pd.DataFrame
    inflation: pd.DataFrame
    recalibration: pd.DataFrame
    labels_needed: pd.DataFrame
    budget: pd.DataFrame
    counts: pd.DataFrame
    reliability: pd.DataFrame
    corrected: pd.DataFrame
    notes: pd.DataFrame
    footer: dict[str, Any]
    tolerance: float
    target: float
    delta: float
    level: float
    scale: tuple[float, float]
    lang: str = "en"

    def __repr__(self) -> str:
        return f"CalibrationCard({self.verdict!r}, sides={self.sides!r}, {len(self.verdicts)} rows)"

    def only(self, *, judge: str | None = None, dimension: str | None = None) -> CalibrationCard:
        """Return the card of one judge, one dimension, or one judge on one dimension.

        Raises
        ------
        RagnbError
            For a judge or a dimension that is not on the card.

        Examples
        --------
        >>> from ragnb.calibration import calibrate
        >>> rows = pd.DataFrame({"judge": [4, 2] * 30, "human": [4, 2] * 30, "dimension": ["x", "x", "y"] * 20})
        >>> calibrate(rows, scale=(1, 5)).only(dimension="x").verdicts["dimension"].tolist()
        ['x']
        """
        from ragnb.calibration.words import summary

        wanted = {name: value for name, value in (("judge", judge), ("dimension", dimension)) if value is not None}
        for name, value in wanted.items():
            if value not in set(self.verdicts[name]):
                raise unknown(name, value, sorted(set(self.verdicts[name])))
        frames: dict[str, Any] = {}
        for name, frame in vars(self).items():
            if isinstance(frame, pd.DataFrame) and name != "notes":
                chosen = (frame[list(wanted)] == pd.Series(wanted)).all(axis=1)
                frames[name] = frame[chosen].reset_index(drop=True)
        return replace(self, **summary(frames["verdicts"], self.tolerance, self.lang), **frames)

    def _repr_html_(self) -> str:
        from ragnb.calibration.sheet import to_html

        return to_html(self)

    def to_markdown(self) -> str:
        """Return the card as Markdown, without times and machine paths: equal input gives equal text."""
        from ragnb.calibration.sheet import to_markdown

        return to_markdown(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold: frames as lists of records, None where a value is missing."""
        from ragnb.calibration.sheet import to_dict

        return to_dict(self)
