"""What a report would refuse once every call is paid, refused before the first one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragnb.errors import RagnbError, did_you_mean, listing, require
from ragnb.scenario import Scenario
from ragnb.schema import METRICS, Metric, Rubric, is_operation, rank_measure

if TYPE_CHECKING:
    import pandas as pd

# Settings that do not apply to a frame that is scored already, as that of the rehearsal is.
_MADE_ELSEWHERE = ("cases", "documents", "scores", "traces", "gold", "llm_profiles", "system")
_OF_FILES = ("generation", "columns", "encoding", "where", "join", "sample", "expect")


def need_computable(scenario: Scenario, cases: pd.DataFrame, *, has_vectors: bool) -> None:
    """Refuse a metric that the scenario names and none of its stages can compute, with what to add.

    Parameters
    ----------
    scenario : Scenario
    cases : DataFrame
        A column of them holds scores already.
    has_vectors : bool
        Whether an embedding model is named.

    Raises
    ------
    RagnbError
    """
    from ragnb.scoring import SCORERS

    # Scores and traces may bring any metric along.
    if scenario.scores is not None or scenario.traces is not None:
        return
    judge = scenario.llm_profiles.get("judge")
    dimensions: set[str] = set()
    if judge is not None:
        rubric = scenario.rubric or Rubric()
        dimensions = {metric.name for metric in rubric.metrics}
    for metric in scenario.metrics or ():
        name = metric if isinstance(metric, str) else metric.name
        if name in cases.columns or name in dimensions or _is_rate(name):
            continue
        scorer = SCORERS.get(name)
        if scorer is None:
            raise RagnbError(
                f"metrics: no stage computes {name!r}; {did_you_mean(name, [*SCORERS])}. Take it out, or give a "
                "table that has it: scores: my_scores.csv"
            )
        if any(scorer.calls) and judge is None:
            raise RagnbError(
                f"metrics: {name!r} needs a judge, and the scenario names none; add llm_profiles: {{judge: "
                "{base_url: …, model: …}}, or take it out"
            )
        if scorer.embeds and not has_vectors:
            raise RagnbError(
                f"metrics: {name!r} needs an embedding model, and the scenario names none; add llm_profiles: "
                f"{{embeddings: {{base_url: {_endpoint(judge)}, model: …}}}}, or take it out"
            )


def need_function(name: str, folder: Path) -> None:
    """Refuse a function that is not there, without importing its module: what it does is the system's to run.

    Parameters
    ----------
    name : str
        ``package.module:function``.
    folder : Path
        Where the module is looked for first.

    Raises
    ------
    RagnbError
        For a module that is neither there nor installed, one that is not Python, and a name that it lacks.
    """
    module, _, function = name.partition(":")
    path = folder.joinpath(*module.split(".")).with_suffix(".py")
    top = module.partition(".")[0]
    if not path.is_file():
        # Only the package is looked for, as finding a module in it would import the package.
        if not (folder / top).exists() and find_spec(top) is None:
            raise RagnbError(
                f"{name!r}: there is no module {module!r}, neither {path.name} beside the scenario nor installed"
            )
        return
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        raise RagnbError(f"{name!r}: {path.name} is not valid Python ({error})") from None
    names = list(_names_of(tree))
    # What `from … import *` brings is not known without importing it.
    if function.partition(".")[0] not in names and "*" not in names:
        raise RagnbError(
            f"{name!r}: {path.name} has no {function!r}; {did_you_mean(function, names)}"
        )


def _names_of(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines, at its top or deeper: in an `if`, a `try` or a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def _endpoint(judge: Any) -> str:
    """Return the address of the judge, at which an embedding model may be, too; a mark to fill in without one."""
    if judge is None:
        return "…"
    return str(judge.base_url)


def _is_rate(name: str) -> bool:
    """Whether labels of the answers give a metric, or it is measured beside them."""
    known = METRICS.get(name)
    of_labels = known is not None and known.role == "rate"
    return of_labels or is_operation(name) or rank_measure(name) is not None


def rehearse(
    scenario: Scenario, cases: pd.DataFrame, computed: Sequence[Metric], *, system: str = ""
) -> None:
    """Assess the cases as if all metrics were computed, so that what the report refuses is refused now.

    Parameters
    ----------
    scenario : Scenario
    cases : DataFrame
        Those that will be scored, or made up where they are not generated yet.
    computed : sequence of Metric
        What the stages will compute.
    system : str
        The system that will answer.

    Raises
    ------
    RagnbError
        As `assess`, and where the packages of the report are not installed.
    """
    from ragnb.scoring import SCORERS
    from ragnb.sheet import assess

    require("papermill", extra="notebook")
    require("ipykernel", extra="notebook")
    if scenario.scores is not None or scenario.traces is not None:
        return
    frame = cases.assign(**{metric.name: _middle(metric) for metric in computed})
    if system and "system" not in frame:
        frame["system"] = system
    settings: Mapping[str, Any] = {
        name: getattr(scenario, name)
        for name in scenario.model_fields_set
        if name not in (*_MADE_ELSEWHERE, *_OF_FILES)
    }
    if not computed and not {*frame.columns} & {*METRICS, *scenario.declared}:
        raise RagnbError(
            f"{scenario.name}: no stage computes a metric; name some: metrics: [{listing([*SCORERS], 3)}]"
        )
    assess(frame.reset_index(drop=True), **settings)


def _middle(metric: Metric) -> float:
    """Return a score that a metric can have."""
    low, high = metric.scale
    if metric.bounded:
        return (low + high) / 2
    return low
