"""A panel of judges beside people: each one's card, their median's, what each adds, and whether that pays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragnb import stats
from ragnb.calibration.card import CalibrationCard, calibrate
from ragnb.calibration.ratings import ALL, PROBABILITY, Names, brought_ratings
from ragnb.calibration.scores import as_list
from ragnb.errors import RagnbError, listing, need_columns, need_known
from ragnb.markup import amount, amounts, count, ends, number, percent, signed
from ragnb.markup.blocks import Mark, Section, Small, Table, Text
from ragnb.markup.rendering import render_fragment, render_markdown
from ragnb.stats import Estimate
from ragnb.texts import load
from ragnb.weights import as_pandas

PANEL = "panel"
"""The median of the judges, as a judge."""
ADDED = (
    "dimension",
    "judge",
    "adds",
    "low",
    "high",
    "p",
    "p_holm",
    "outcome",
    "without",
    "n",
    "n_clusters",
)
WORTH = (
    "dimension",
    "best",
    "gain",
    "gain_low",
    "gain_high",
    "outcome",
    "correlated",
    "labels_saved",
    "saved_low",
    "saved_high",
    "n_labels",
    "n_judged",
    "extra_cost",
    "saved_cost",
    "saved_cost_low",
    "saved_cost_high",
    "worth",
)


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
        mean, beside that judge), ``n_judged``, and with prices ``extra_cost, saved_cost,
        saved_cost_low, saved_cost_high, worth`` (``yes, no, undecided``).
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
        return " ".join(_sentence(self, row) for row in self.worth.to_dict("records"))

    def sections(self) -> list[Section]:
        """Return the sentences, then the judges side by side, and what each adds."""
        say = load(self.lang)
        lines = tuple(_sentence(self, row) for row in self.worth.to_dict("records"))
        title = say("panel.title")
        blocks = Text(lines, "list"), _side_by_side(self), _added(self)
        finding = lines[0] if len(lines) == 1 else title
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
    if prices is not None:
        for name in prices:
            need_known("prices", name, judges)
        lacking = [name for name in judges if name not in prices]
        if lacking:
            raise RagnbError(
                f"prices names no price of {listing(lacking)}; give one for each judge"
            )
    lang = settings.get("lang", "en")
    level = settings.get("level", 0.95)
    ratings, _, human = brought_ratings(ratings, judges, human)
    need_columns([*ratings.columns], judges)
    table = as_pandas(ratings).reset_index(drop=True)
    scores = table[judges].apply(pd.to_numeric, errors="coerce")
    if PANEL in table:
        raise RagnbError(f"column {PANEL!r} is the name of the judges' median; rename yours")
    low, high = settings.get("scale") or (-np.inf, np.inf)
    missing = settings.get("missing")
    # As `calibrate` does, so that the median is one of real scores.
    if missing == "outside":
        scores = scores.where((scores >= low) & (scores <= high))
    elif missing is not None:
        scores = scores.where(~scores.isin(as_list(missing)))
    median = scores.median(axis=1)
    card = calibrate(
        table.assign(**{PANEL: median}), judge=[*judges, PANEL], human=human, by=by, **settings
    )
    rated = _items(table, scores, human, by, settings.get("cluster", "cluster"))
    parts = [
        (dimension, _Items.of(rows, judges, card.tolerance, level))
        for dimension, rows in rated.groupby("dimension", sort=False)
    ]
    return Panel(
        card,
        _judges_frame(card, parts, judges, prices),
        _added_frame(parts, judges),
        _worth_frame(parts, judges, prices, label_price, items),
        lang,
    )


def _items(
    table: pd.DataFrame, scores: pd.DataFrame, human: Names, by: str | None, cluster: str | None
) -> pd.DataFrame:
    """Return one row an item: the judges' scores, the mean of people, dimension, cluster and weight."""
    people = as_list(human)
    numbered = [
        name
        for name in map(str, table)
        if name.removeprefix(people[0]).isdigit() and name != people[0]
    ]
    if len(people) == 1 and people[0] not in table:
        people = numbered
    rows = scores.copy()
    rows["human"] = table[people].apply(pd.to_numeric, errors="coerce").mean(axis=1)
    rows["dimension"] = table[by].astype(str) if by is not None and by in table else ALL
    rows["cluster"] = table[cluster] if cluster is not None and cluster in table else np.nan
    rows["weight"] = 1.0
    if PROBABILITY in table:
        # Drawn with unequal chances: each label represents so many answers.
        rows["weight"] = 1 / pd.to_numeric(table[PROBABILITY], errors="coerce")
    # A row is an item already, unless raters have a row each.
    if "rater" not in table or "item_id" not in table:
        return rows
    keys = [rows["dimension"], table["item_id"]]
    if "system" in table:
        keys += [table["system"]]
    grouped = rows.drop(columns="dimension").groupby(keys, sort=False, dropna=False)
    how: dict[Any, Any] = dict.fromkeys(scores, "first")
    how |= {"human": "mean", "cluster": "first", "weight": "first"}
    return grouped.agg(how).reset_index()


@dataclass(frozen=True)
class _Items:
    """The items of one dimension that people and all judges scored."""

    scores: pd.DataFrame
    human: pd.Series[float]
    clusters: npt.NDArray[np.intp]
    weights: npt.NDArray[np.float64]
    tolerance: float
    level: float
    judged: int

    @classmethod
    def of(cls, rows: pd.DataFrame, judges: list[str], tolerance: float, level: float) -> _Items:
        scored = rows.dropna(subset=judges)
        both = scored.dropna(subset="human")
        code = stats.lone_apart(pd.factorize(both["cluster"])[0])
        weights = both["weight"].to_numpy(float)
        return cls(both[judges], both["human"], code, weights, tolerance, level, len(scored))

    def within(self, judges: list[str]) -> npt.NDArray[np.float64]:
        """Return for each item whether the median of some judges is within the tolerance of people."""
        return stats.within(self.scores[judges].median(axis=1), self.human, self.tolerance)

    def mean(self, values: Any) -> Estimate:
        return stats.clustered_mean(
            values, self.clusters, weights=self.weights, ends=(-1.0, 1.0), level=self.level
        )

    def share(self, judges: list[str]) -> float:
        return float(np.average(self.within(judges), weights=self.weights))

    def correlation(self, *panels: list[str]) -> Estimate:
        """Return ρ of the median of some judges and people; of two sets, what the first saves beside the second.

        That is 1 − (1 − ρ²)/(1 − ρ²) of the two, the share of the labels.
        """
        y = self.human.to_numpy(float)
        columns = [np.ones(len(y)), y, y * y]
        for names in panels:
            x = self.scores[names].median(axis=1).to_numpy(float)
            columns += [x, x * x, x * y]
        rows = np.stack(columns, axis=1) * self.weights[:, None]
        clusters = stats.packed(self.clusters)
        parts = stats.sums_by(clusters, rows)
        sizes = np.bincount(clusters).astype(float)
        if len(panels) == 1:
            return stats.jackknife(_rho, parts, sizes, bounded=True, level=self.level)
        return stats.jackknife(_saving, parts, sizes, level=self.level)


def _rho(sums: npt.NDArray[np.float64], first: int = 3) -> npt.NDArray[np.float64]:
    """Return Pearson's correlation with the human scores from sums, those of a panel from `first` on."""
    n, y, yy = (sums[..., k] for k in range(3))
    x, xx, xy = (sums[..., first + k] for k in range(3))
    covariance = n * xy - x * y
    spread_of_panel = n * xx - x * x
    spread_of_people = n * yy - y * y
    return np.asarray(covariance / np.sqrt(spread_of_panel * spread_of_people))


def _saving(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(1 - (1 - _rho(sums) ** 2) / (1 - _rho(sums, 6) ** 2))


Parts = Sequence[tuple[Any, _Items]]


def _judges_frame(
    card: CalibrationCard, parts: Parts, judges: list[str], prices: Mapping[str, float] | None
) -> pd.DataFrame:
    names = ["judge", "dimension", "verdict", "share", "low", "high", "bias", "n", "n_clusters"]
    table = card.verdicts[names].copy()
    mae = card.table[card.table["measure"] == "mae"].set_index(["judge", "dimension"])["value"]
    table["mae"] = [mae.get((row.judge, row.dimension), np.nan) for row in table.itertuples()]
    parts_of_judge = dict(parts)
    rhos = []
    for row in table.itertuples():
        items = parts_of_judge.get(row.dimension)
        of_judge = judges if row.judge == PANEL else [str(row.judge)]
        rhos.append(stats.NONE if items is None else items.correlation(of_judge))
    table["rho"] = [one.value for one in rhos]
    table["rho_low"] = [one.low for one in rhos]
    table["rho_high"] = [one.high for one in rhos]
    if prices is None:
        costs = {}
    else:
        costs = {**prices, PANEL: sum(prices.values())}
    table["price"] = table["judge"].map(costs).astype(float)
    order = ["dimension", "judge", "verdict", "share", "low", "high", "bias", "mae", "rho"]
    order += ["rho_low", "rho_high", "n", "n_clusters", "price"]
    by_dimension = pd.Categorical(table["dimension"], list(dict.fromkeys(table["dimension"])))
    return table.iloc[np.argsort(by_dimension.codes, kind="stable")][order].reset_index(drop=True)


def _added_frame(parts: Parts, judges: list[str]) -> pd.DataFrame:
    tables = []
    for dimension, items in parts:
        whole = items.within(judges)
        rows = []
        for name in judges:
            rest = [other for other in judges if other != name]
            means = items.mean(whole - items.within(rest))
            row = {"dimension": dimension, "judge": name, "adds": means.value, "low": means.low}
            row |= {"high": means.high, "p": _p(means), "without": items.share(rest)}
            rows.append(row | {"n": means.n, "n_clusters": means.n_clusters})
        table = pd.DataFrame(rows)
        table["p_holm"] = stats.holm(table["p"].to_numpy(float))
        holds = table["p_holm"] < 1 - items.level
        table["outcome"] = [
            _outcome(low, high, bool(sure))
            for low, high, sure in zip(table["low"], table["high"], holds, strict=True)
        ]
        tables.append(table[list(ADDED)])
    if tables:
        return pd.concat(tables, ignore_index=True)
    return pd.DataFrame(columns=list(ADDED))


def _p(found: Estimate) -> float:
    if found.se > 0:
        return stats.t_p_value(found.value, found.se, found.df)
    return np.nan


def _outcome(low: float, high: float, sure: bool = True) -> str:
    if not sure or not (low > 0 or high < 0):
        return "undecided"
    if low > 0:
        return "better"
    return "worse"


def _worth_frame(
    parts: Parts,
    judges: list[str],
    prices: Mapping[str, float] | None,
    label_price: float | None,
    n_items: int | None,
) -> pd.DataFrame:
    rows = []
    for dimension, items in parts:
        if not len(items.human):
            continue
        best = max(judges, key=lambda name: items.share([name]))
        rhos = {name: items.correlation([name]).value for name in judges}
        closest = max(judges, key=lambda name: -2.0 if np.isnan(rhos[name]) else rhos[name])
        gain = items.mean(items.within(judges) - items.within([best]))
        saving = items.correlation(judges, [closest])
        judged = items.judged if n_items is None else n_items
        n = len(items.human)
        row: dict[str, Any] = {
            "dimension": dimension,
            "best": best,
            "gain": gain.value,
            "gain_low": gain.low,
            "gain_high": gain.high,
            "outcome": _outcome(gain.low, gain.high),
            "correlated": closest,
            "labels_saved": n * saving.value,
            "saved_low": n * saving.low,
            "saved_high": n * saving.high,
            "n_labels": n,
            "n_judged": judged,
        }
        if prices is not None and label_price is not None:
            extra = (sum(prices.values()) - prices[closest]) * judged
            low = label_price * n * saving.low
            high = label_price * n * saving.high
            row |= {"extra_cost": extra, "saved_cost": label_price * n * saving.value}
            row |= {"saved_cost_low": low, "saved_cost_high": high}
            row["worth"] = _pays(low, high, extra)
        rows.append(row)
    return pd.DataFrame(rows, columns=list(WORTH))


def _pays(low: float, high: float, cost: float) -> str:
    """Return whether what is saved, of which an interval is known, is more than a cost."""
    if low > cost:
        return "yes"
    if high < cost:
        return "no"
    return "undecided"


# Words


def _sentence(found: Panel, row: Mapping[Any, Any]) -> str:
    say = load(found.lang)
    own = found.judges[
        (found.judges["dimension"] == row["dimension"]) & (found.judges["judge"] == PANEL)
    ].iloc[0]
    gain, low, high = (signed(row[name], True) for name in ("gain", "gain_low", "gain_high"))
    if row["outcome"] != "undecided":
        gain, low, high = (one.lstrip("+−-") for one in (gain, low, high))
        low, high = sorted((low, high), key=float)
    words = {
        "dimension": "" if row["dimension"] == ALL else say("panel.of", name=row["dimension"]),
        "share": percent(own["share"]),
        "best": row["best"],
        "gain": say("gates.points", n=gain),
        "ends": say("sheet.from_to", low=low, high=high),
        "n": count(row["n_labels"]),
        "tolerance": f"{found.card.tolerance:g}",
    }
    text = str(say(f"panel.{row['outcome']}", **words))
    if not pd.isna(row["saved_low"]):
        key, sign = ("saved", 1) if row["labels_saved"] >= 0 else ("needs", -1)
        low, high = sorted((sign * row["saved_low"], sign * row["saved_high"]))
        sentence = say(
            f"panel.{key}",
            labels=_whole(sign * row["labels_saved"]),
            low=_whole(low),
            high=_whole(high),
            n=count(row["n_labels"]),
            best=row["correlated"],
        )
        text += str(sentence)
    if not pd.isna(row["extra_cost"]):
        costs = {"extra": amount(row["extra_cost"]), "saved": amount(row["saved_cost"])}
        ends = amounts(row["saved_cost_low"], row["saved_cost_high"])
        text += str(say(f"panel.worth_{row['worth']}", ends=ends, **costs))
    return text


def _whole(value: float) -> str:
    return count(value).replace("-", "−")


def _side_by_side(found: Panel) -> Table:
    say = load(found.lang)
    several = found.judges["dimension"].nunique() > 1
    has_price = found.judges["price"].notna().any()

    def cells(row: Mapping[Any, Any]) -> Iterator[Any]:
        if several:
            yield row["dimension"]
        yield say("panel.median") if row["judge"] == PANEL else row["judge"]
        tones = {"TRUST": "good", "REJECT": "bad"}
        yield Mark(tones.get(row["verdict"], "watch"), row["verdict"])
        yield percent(row["share"]), Small(ends(row["low"], row["high"], percent=True))
        yield signed(row["bias"])
        yield number(row["mae"])
        yield number(row["rho"]), Small(ends(row["rho_low"], row["rho_high"]))
        yield count(row["n"])
        if has_price:
            yield amount(row["price"])

    heads = [say("panel.dimension")] if several else []
    heads += [say("panel.judge"), say("panel.verdict")]
    within = say("panel.within", tolerance=f"{found.card.tolerance:g}")
    heads += [f">{within}", f">{say('panel.bias')}", f">{say('panel.mae')}", f">{say('panel.rho')}"]
    heads += [">n", *([f">{say('panel.price')}"] if has_price else [])]
    rows = tuple(tuple(cells(row)) for row in found.judges.to_dict("records"))
    return Table(tuple(heads), rows, caption=say("panel.caption"))


def _added(found: Panel) -> Table:
    say = load(found.lang)
    several = found.added["dimension"].nunique() > 1
    tones = {"better": "good", "worse": "bad", "undecided": "none"}

    def cells(row: Mapping[Any, Any]) -> Iterator[Any]:
        if several:
            yield row["dimension"]
        yield row["judge"]
        yield percent(row["without"])
        low = signed(row["low"], True)
        high = signed(row["high"], True)
        yield (
            say("gates.points", n=signed(row["adds"], True)),
            Small(say("sheet.from_to", low=low, high=high)),
        )
        yield Mark(tones[row["outcome"]], say(f"panel.adds_{row['outcome']}"))

    heads = [say("panel.dimension")] if several else []
    heads += [say("panel.judge"), f">{say('panel.without')}", f">{say('panel.adds')}"]
    heads += [say("column.outcome")]
    rows = tuple(tuple(cells(row)) for row in found.added.to_dict("records"))
    return Table(tuple(heads), rows, caption=say("panel.added_caption"))
