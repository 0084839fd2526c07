"""A panel of judges beside people: each one's card, their median's, what each adds, and whether that pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ragnb.calibration.card import CalibrationCard
from ragnb.calibration.panel_frames import PANEL, added_frame, judges_frame, worth_frame
from ragnb.calibration.panel_items import PanelItems, items_of
from ragnb.calibration.panel_text import added_table, judges_table, sentence
from ragnb.calibration.ratings import Asked, Names, brought_ratings
from ragnb.calibration.scores import as_list, numbers, without_missing
from ragnb.calibration.study import calibrate
from ragnb.errors import RagnbError, listing, need_columns, need_known
from ragnb.markup.blocks import Section, Text
from ragnb.markup.rendering import render_fragment, render_markdown
from ragnb.texts import load
from ragnb.weights import as_pandas


@dataclass(frozen=True, repr=False)
class Panel:
    """Several judges beside people, and their median; made by `panel`.

    Attributes
    ----------
    card : CalibrationCard
        Of each judge and of ``panel``, their median: ``card.verdicts`` side by side, ``card.only(judge=…)`` each.
    judges : DataFrame
        ``dimension, judge, verdict, share, low, high`` (within the tolerance), ``bias, mae, rho, rho_low,
        rho_high`` (correlation with people), ``n, n_clusters, price``.
    added : DataFrame
        ``dimension, judge, adds, low, high`` (the panel's share less that of the panel without the judge), ``p,
        p_holm`` (over the judges of a dimension), ``outcome`` (``better, worse, undecided``), ``without`` (the
        share of the rest), ``n, n_clusters``.
    worth : DataFrame
        ``dimension, best`` (the judge that agrees most often), ``gain, gain_low, gain_high, outcome`` (the panel's
        share less that judge's), ``correlated`` (the judge with the highest correlation), ``labels_saved,
        saved_low, saved_high`` (how many of ``n_labels`` labels of people the panel makes needless in a corrected
        mean, beside that judge; 0 where that judge explains people wholly and no label is needed), ``n_judged``,
        and with prices ``extra_cost, saved_cost, saved_cost_low, saved_cost_high, worth`` (``yes, no,
        undecided``).
    lang : {"en", "zh"}
    """

    card: CalibrationCard
    judges: pd.DataFrame
    added: pd.DataFrame
    worth: pd.DataFrame
    lang: str = "en"

    def __repr__(self) -> str:
        return f"Panel({self.summary!r})"

    @property
    def summary(self) -> str:
        """What the panel is worth, a sentence for each dimension."""
        return " ".join(sentence(self, row) for row in self.worth.to_dict("records"))

    def sections(self) -> list[Section]:
        """Return the sentences, then the judges side by side, and what each adds."""
        say = load(self.lang)
        lines = tuple(sentence(self, row) for row in self.worth.to_dict("records"))
        title = say("panel.title")
        blocks = Text(lines, "list"), judges_table(self), added_table(self)
        # Of several dimensions no single sentence speaks for all.
        if len(lines) == 1:
            finding = lines[0]
        else:
            finding = title
        return [Section("panel", title, finding, say("panel.lead"), blocks, lang=self.lang)]

    def _repr_html_(self) -> str:
        return render_fragment(self.sections())

    def to_markdown(self) -> str:
        """Return the panel as Markdown."""
        return render_markdown(self.sections())


def panel(
    ratings: Any,
    *,
    judge: Sequence[str],
    human: Names = "human",
    by: str | None = "dimension",
    prices: Mapping[str, float] | None = None,
    label_price: float | None = None,
    items: int | None = None,
    **settings: Any,
) -> Panel:
    """Compare several judges with people, alone and together.

    Parameters
    ----------
    ratings : DataFrame or path
        As for `calibrate`, with a column for each judge.
    judge : sequence of str
        The columns of two or more judges.
    human, by
        As for `calibrate`.
    prices : mapping of judge to float, optional
        What one item costs with each.
    label_price : float, optional
        What one label of a person costs, in the same currency.
    items : int, optional
        How many items will be judged; by default as many as all judges scored.
    **settings
        Of `calibrate`, such as ``tolerance=``, ``scale=``, ``cluster=``, ``missing=``, ``lang=``.

    Returns
    -------
    Panel

    Raises
    ------
    RagnbError
        As `calibrate`; for fewer than two judges, and for prices that name another one.

    Notes
    -----
    The panel's score is the median of the judges that scored an item; what a judge adds is the difference of two
    medians on items that all of them scored, paired, with documents or the like as clusters (`calibrate`'s).

    A mean that labels correct (`corrected_mean`) has a variance in proportion to (1 − ρ²)/n where far more items
    are judged than labelled, ρ being the correlation of judge and people. So what n labels tell beside the judge
    with the highest ρ, n (1 − ρ²_panel)/(1 − ρ²_judge) tell beside the panel: the difference is what it saves.
    Both best judges are chosen on the same items, which favours them.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> human = rng.integers(1, 11, 300)
    >>> rows = {f"judge_{k}": (human + rng.normal(0, 1.5, 300)).clip(1, 10) for k in "abc"}
    >>> found = panel(pd.DataFrame(rows | {"human": human}), judge=[*rows], scale=(1, 10))
    >>> found.worth[["gain", "outcome"]].round(2).values.tolist()
    [[0.15, 'better']]
    """
    judges = as_list(judge)
    if len(judges) < 2:
        raise RagnbError(
            f"a panel needs the columns of two judges or more; got {listing(judges)}: judge=['judge_a', 'judge_b']"
        )
    _check_prices(prices, judges)
    lang = settings.get("lang", "en")
    asked = Asked(
        human,
        by,
        settings.get("scale"),
        settings.get("cluster", "cluster"),
        settings.get("missing"),
        settings.get("rater", "rater"),
        level=settings.get("level", 0.95),
    )
    ratings, _, human = brought_ratings(
        ratings,
        judges,
        human,
        missing=asked.missing,
        scale=asked.scale,
        rater=asked.rater,
        named=[*as_list(by), *as_list(asked.cluster), *(settings.get("groups") or ())],
    )
    need_columns([*ratings.columns], judges)
    table = as_pandas(ratings).reset_index(drop=True)
    scores = _scores_of(table, judges, asked)
    if PANEL in table:
        raise RagnbError(f"column {PANEL!r} is the name of the judges' median; rename yours")
    with_median = table.assign(**{PANEL: scores.median(axis=1)})
    card = calibrate(with_median, judge=[*judges, PANEL], human=human, by=by, **settings)
    rated = items_of(table, scores, replace(asked, human=human))
    parts = [
        (dimension, PanelItems.of(rows, judges, card.tolerance, asked.level))
        for dimension, rows in rated.groupby("dimension", sort=False, observed=True)
    ]
    return Panel(
        card,
        judges_frame(card, parts, judges, prices),
        added_frame(parts, judges),
        worth_frame(parts, judges, prices, label_price, items),
        lang,
    )


def _check_prices(prices: Mapping[str, float] | None, judges: Sequence[str]) -> None:
    """Refuse prices of another judge, and prices without one of the judges."""
    if prices is None:
        return
    for name in prices:
        need_known("prices", name, judges)
    lacking = [name for name in judges if name not in prices]
    if lacking:
        raise RagnbError(f"prices names no price of {listing(lacking)}; give one for each judge")


def _scores_of(table: pd.DataFrame, judges: list[str], asked: Asked) -> pd.DataFrame:
    """Return the judges' scores as numbers, nan for what `calibrate` takes for no score.

    It does so itself for each column; here it is done before the median, which is one of real scores.
    """
    return pd.DataFrame(
        {
            name: without_missing(numbers(table, name), asked.scale, asked.missing)
            for name in judges
        },
        table.index,
    )
