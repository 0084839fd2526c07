"""What a question, an answer and a judgement cost, by the calls that a store holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from ragnb.errors import RagnbError, listing, need_known
from ragnb.store.file import no_store
from ragnb.store.store import Store, opened

_WORK = {"generate": "question", "answer": "answer"}  # what a task makes; all others are a judge's
_MILLION = 1e6  # tokens, in which prices are given
_FREE = (0.0, 0.0)  # of what called no model


def unit_costs(
    stores: Store | str | Path | Iterable[Store | str | Path],
    *,
    prices: Mapping[str, float | tuple[float, float]] | None = None,
    system: str | None = None,
    judge: str | None = None,
) -> dict[str, float]:
    """Return the mean cost of what the calls of stores made: a question, an answer, the judgements of an answer.

    Failed and repeated calls count: they were paid for.

    Parameters
    ----------
    stores : Store, path, or several
        With the calls of `ragnb generate`, `answer`, `evaluate` or `judge`; a folder means the stores in it,
        as the folder of `ragnb run` that holds one for each stage.
    prices : mapping of model (or system) to a number or a pair, optional
        The price of a million tokens, or of a million of the prompt and of the reply. Without it costs are in
        tokens, which needs one model for everything.
    system, judge : str, optional
        Whose answers and whose judgements, where the store holds those of several.

    Returns
    -------
    dict
        Of ``question``, ``answer`` and ``judge`` those that the stores know, for ``costs=`` of `noise`. The
        judgements of an answer are those by all metrics, so ``judge`` is the sum over them.

    Raises
    ------
    RagnbError
        For calls whose tokens no endpoint reported, for several systems, judges or models where one must be
        meant, and for models without a price.

    Examples
    --------
    >>> from ragnb.store import Cell, Outcome, Store
    >>> with Store(None) as store:
    ...     cell = Cell("s1", "faithfulness", {"answer": "Ann."}, "small")
    ...     _ = store.plan([cell], name="first")
    ...     _ = store.put([(cell, Outcome("ok", 0.5, calls=1, tokens_in=900, tokens_out=100))])
    ...     unit_costs(store, prices={"small": (1.0, 5.0)})
    {'judge': 0.0014}
    """
    paid = pd.concat([_attempts(store) for store in _listed(stores)], ignore_index=True)
    paid = _of_one(paid, "answer", "system", system)
    paid = _of_one(paid, "judge", "judge", judge)
    if not (paid["calls"] > 0).any():
        raise RagnbError("no call of a model is in these stores, so no cost is known")
    unknown = paid["tokens_in"].isna() | paid["tokens_out"].isna()
    if unknown.any():
        first = paid[unknown].iloc[0]
        raise RagnbError(
            f"no tokens are known of {int(unknown.sum())} of {len(paid)} attempts, the first at "
            f"{first['what']!r} by {first['model']!r}; give the costs as a mapping, such as "
            "{'question': 2.0, 'answer': 0.1, 'judge': 0.05}"
        )
    paid = paid.assign(cost=_costs_of(paid, prices))
    costs = {}
    for product in ("question", "answer", "judge"):
        rows = paid[paid["product"] == product]
        cells_done = rows[rows["status"] != "failed"].groupby("task")["key"].nunique()
        # By task (of a judge: a metric), the cost of one cell; NaN where all attempts at a task failed.
        unit_cost = rows.groupby("task")["cost"].sum() / cells_done
        if unit_cost.sum(skipna=False) > 0:
            costs[product] = float(unit_cost.sum())
    return costs


def _listed(stores: Store | str | Path | Iterable[Store | str | Path]) -> list[Store | str | Path]:
    """Return the stores one by one; those of a folder by their names."""
    if isinstance(stores, Store | str | Path):
        named = [stores]
    else:
        named = [*stores]
    listed: list[Store | str | Path] = []
    for store in named:
        if not isinstance(store, Store) and Path(store).is_dir():
            files = sorted(Path(store).glob("*.sqlite"))
            if not files:
                raise RagnbError(f"{store}: no store (*.sqlite) is in this folder")
            listed += files
        else:
            listed.append(store)
    return listed


def _attempts(store: Store | str | Path) -> pd.DataFrame:
    """Return each attempt once, also where two runs share its cell, with the task and product of its work."""
    frames = []
    if not isinstance(store, Store) and not Path(store).is_file():
        raise no_store(Path(store))
    with opened(store, new=False) as kept:
        seen: set[str] = set()  # keys of cells
        for run in kept.runs()["run"]:
            frame = kept.frame(run, attempts="all")
            frames.append(frame[~frame["key"].isin(seen)])
            seen.update(frame["key"])
    if not frames:
        raise RagnbError(f"{store}: no run is in this store")
    table = pd.concat(frames, ignore_index=True)
    task = table["what"].map(lambda what: what.partition("/")[0])
    return table.assign(task=task, product=task.map(_WORK).fillna("judge"))


def _of_one(paid: pd.DataFrame, product: str, option: str, name: str | None) -> pd.DataFrame:
    """Return the attempts without those at answers, or judgements, by other models."""
    is_of_product = paid["product"] == product
    # Lexical checks, say, call no model and cost nothing; they make no second judge.
    names = [*paid.loc[is_of_product & (paid["calls"] > 0), "model"].unique()]
    if name is None and len(names) < 2:
        return paid
    if name is None:
        raise RagnbError(
            f"these stores hold the work of {listing(names)}, whose costs differ; say whose: {option}={names[0]!r}"
        )
    need_known(option, name, names)
    return paid[~is_of_product | (paid["model"] == name)].reset_index(drop=True)


def _costs_of(
    paid: pd.DataFrame, prices: Mapping[str, float | tuple[float, float]] | None
) -> pd.Series[float]:
    """Return the cost of each attempt, in tokens or at the prices of its model."""
    models = [*paid.loc[paid["calls"] > 0, "model"].unique()]
    tokens = paid[["tokens_in", "tokens_out"]].astype(float)
    if prices is None:
        if len(models) > 1:
            raise RagnbError(
                f"tokens of {listing(models)} do not cost the same; give the price of a million of each: prices="
            )
        return tokens.sum(axis=1)
    for name in prices:
        need_known("prices", name, models)
    lacking = [name for name in models if name not in prices]
    if lacking:
        raise RagnbError(f"prices names no price of {listing(lacking)}; give one for each model")
    pairs = {name: _pair(name, price) for name, price in prices.items()}
    of_prompt = paid["model"].map(lambda name: pairs.get(name, _FREE)[0])
    of_reply = paid["model"].map(lambda name: pairs.get(name, _FREE)[1])
    cost: pd.Series[float] = (
        tokens["tokens_in"] * of_prompt + tokens["tokens_out"] * of_reply
    ) / _MILLION
    return cost


def _pair(name: str, price: float | tuple[float, float]) -> tuple[float, float]:
    """Return the prices of a million tokens of the prompt and of the reply."""
    of_prompt, of_reply = price if isinstance(price, tuple) else (price, price)
    if not (of_prompt >= 0 and of_reply >= 0):
        raise RagnbError(f"prices[{name!r}]={price!r}: a price is 0 or more")
    return of_prompt, of_reply
