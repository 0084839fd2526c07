"""`ragnb evaluate`: the cases of a scenario scored, by its judge or by wording alone, into a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragnb import texts
from ragnb.cli.parameters import FILE, options, overrides
from ragnb.cli.terminal import BLOCKED, PASSED, note, plain, text_table
from ragnb.errors import RagnbError
from ragnb.files import slug, write_whole

if TYPE_CHECKING:
    import pandas as pd

    from ragnb.scenario import Scenario
    from ragnb.schema import Metric
    from ragnb.store import Client

_COUNTS = {"n": "ok", "n_not_applicable": "not_applicable", "n_failed": "failed", "n_missing": "missing"}


@click.command("evaluate")
@click.argument("source", type=FILE)
@options("evaluate")
def evaluate_command(
    source: Path, metrics: Sequence[str], out: Path | None, store: Path | None, embeddings: str | None,
    dry_run: bool, parameters: Sequence[str], lang: str | None, **limits: Any,
) -> int:  # fmt: skip
    """Score the cases of SOURCE and write the table of scores.

    SOURCE is a scenario (.yaml) that names cases, or a file of cases. With a judge among its llm_profiles, the
    metrics of ragas and our own are computed by it; without one, checks of the answers' wording that need no key.
    Metrics are those of the scenario that can be computed, or all that fit.

    Every score is kept in the store as it is made: the same command again resumes where this one ended, and scores
    that are there are reused. ragnb report and ragnb check of the scenario then find the table by themselves.

    \b
    Examples
      ragnb evaluate scenarios/mine.yaml --dry-run          what it would cost; nothing is sent
      ragnb evaluate scenarios/mine.yaml --max-calls 500
      ragnb evaluate cases.jsonl --metric support_lexical --metric number_support
      ragnb evaluate scenarios/mine.yaml --embeddings text-embedding-3-small

    Exit code: 0 when every cell has its outcome, 1 when some failed or are still to be done, 2 on bad input, 130
    after Ctrl-C.
    """
    from ragnb.assessment.build import scenario_of
    from ragnb.assessment.stages import record_stage
    from ragnb.readers import to_csv_text
    from ragnb.schema import METRICS, Metric
    from ragnb.scoring import SCORERS, evaluate, expected

    scenario = scenario_of(source, overrides(parameters) | ({"lang": lang} if lang else {}), "cases")
    say = texts.load(scenario.lang)
    out, store = files_of(scenario, "scores.csv", out, store)
    judge, vectors = _clients(scenario, embeddings, limits)
    how: dict[str, Any] = {"llm": judge, "embeddings": vectors, "store": store, "lang": scenario.lang}
    how["refusal"] = scenario.refusal
    cases, chosen = cases_of(scenario), _metrics(scenario, metrics, judge, vectors)
    if dry_run:
        found = expected(cases, metrics=chosen, **how)
        click.echo(say("evaluate.dry_run", **vars(found), out=found.not_applicable))
        return PASSED
    store.parent.mkdir(parents=True, exist_ok=True)
    scores = evaluate(cases, metrics=chosen, name=scenario.name, **how)
    write_whole(out, to_csv_text(scores))
    record_stage("evaluate", scenario, out)
    for row in scores.attrs["notes"]:
        note(row["text"])
    computed = [METRICS.get(name, Metric(name)) for name in SCORERS if f"{name}__status" in scores]
    click.echo("\n".join(means_told(scores, computed, scenario)))
    click.echo(say("evaluate.written", out=plain(out), store=plain(store), calls=scores.attrs["spent"]["calls"]))
    return BLOCKED if scores.attrs["failed"] or scores.attrs["spent"]["stopped"] else PASSED


def files_of(scenario: Scenario, name: str, out: Path | None, store: Path | None) -> tuple[Path, Path]:
    """Where the table and the store lie: as asked for, else below reports/, the store beside the table."""
    out = out or Path("reports") / slug(scenario.name) / name
    return out, store or out.with_suffix(".sqlite")


def cases_of(scenario: Scenario) -> pd.DataFrame:
    """The cases alone, kept where the scenario says: its scores and traces are not what is scored."""
    from ragnb.assessment.inputs import gather
    from ragnb.scenario import Scenario

    if scenario.cases is None:
        raise RagnbError(f"{scenario.path or scenario.name}: it names no cases; add 'cases: my_cases.jsonl'")
    named = ("cases", "columns", "encoding", "where")
    frame: pd.DataFrame = gather(Scenario(**{key: getattr(scenario, key) for key in named})).frame
    return frame


def _clients(
    scenario: Scenario, embeddings: str | None, limits: dict[str, Any]
) -> tuple[Client | None, Client | None]:
    from ragnb.store import Client

    profile = scenario.llm_profiles.get("judge")
    if profile is None:
        if embeddings:
            raise RagnbError("--embeddings takes the judge's endpoint, and the scenario has no llm_profiles.judge")
        return None, None
    vectors = profile.model_copy(update={"model": embeddings}) if embeddings else None
    return Client(profile, **limits), Client(vectors, **limits) if vectors else None


def _metrics(
    scenario: Scenario, named: Sequence[str], judge: Client | None, vectors: Client | None
) -> list[str] | None:
    """What was asked for; else those of the scenario that can be computed; else the default."""
    from ragnb.scoring import SCORERS

    if named:
        return list(named)
    wanted = [metric if isinstance(metric, str) else metric.name for metric in scenario.metrics or ()]
    known = [SCORERS[name] for name in wanted if name in SCORERS]
    fit = [s.name for s in known if (judge or not any(s.calls)) and (vectors or not s.embeds)]
    left = [name for name in wanted if name not in fit]
    if left:
        note(texts.load(scenario.lang)("evaluate.left_out", metrics=", ".join(left)))
    return fit or None


def means_told(scores: pd.DataFrame, metrics: Sequence[Metric], scenario: Scenario, *total: str) -> Iterator[str]:
    """One line a metric, and system where there are several: its mean with its interval, its cells by status."""
    from ragnb.markup import count, with_interval
    from ragnb.weights import weighted_means

    say, by = texts.load(scenario.lang), "system" if len(set(scores.get("system", ()))) > 1 else None
    settings: dict[str, Any] = {"doc_weights": scenario.doc_weights, "doc": scenario.doc, "level": scenario.level}
    means = weighted_means(scores, metrics=metrics, by=by, cluster=scenario.cluster, **settings)
    keys = [*([by] if by else []), "metric"]
    head = [*("" for _ in keys[1:]), say("runs.metric"), say("evaluate.mean")]
    rows = [[*head, *(say(f"evaluate.{word}") for word in _COUNTS.values())]]
    for row in means[means["metric"].isin([*(m.name for m in metrics), *total])].to_dict("records"):
        mean = with_interval(row["value"], row["low"], row["high"])
        rows.append([*(str(row[key]) for key in keys), mean, *(count(row[name]) for name in _COUNTS)])
    yield from text_table(rows)
