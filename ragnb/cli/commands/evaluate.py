"""``ragnb evaluate``: score cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ragnb.cli import terminal
from ragnb.cli.commands.stage import Stage
from ragnb.cli.terminal import command
from ragnb.schema import METRICS, Metric


@command("evaluate")
def evaluate_command(
    source: Path, metrics: Sequence[str], embeddings: str | None, **asked: Any
) -> int:
    """Score the cases of SOURCE.

    SOURCE is a scenario (.yaml) with cases:, or a file with cases. With llm_profiles.judge, ragas metrics and
    ragnb's own are computed with that model; without it, lexical checks that need no key. The metrics are those of
    the scenario that can be computed, or all that apply.

    Every score is saved to the store as soon as it is computed: an interrupted run is resumed by the same command,
    and already scored results are reused. ragnb report and ragnb check of the scenario find the table by
    themselves.

    \b
    Examples
      ragnb evaluate scenarios/mine.yaml --dry-run          estimate the cost; nothing is sent
      ragnb evaluate scenarios/mine.yaml --max-calls 500
      ragnb evaluate cases.jsonl --metric support_lexical --metric number_support
      ragnb evaluate scenarios/mine.yaml --embeddings text-embedding-3-small

    Exit code: 0 if every score is complete, 1 if some failed or are still pending, 2 on bad input, 130 after
    Ctrl-C.
    """
    from ragnb.cli.rehearsal import need_computable
    from ragnb.scoring import SCORERS, evaluate, expected

    stage = Stage("evaluate", source, "scores.csv", asked)
    scenario = stage.scenario
    judge = stage.client()
    vectors = stage.vectors(embeddings)
    cases = stage.cases()
    chosen = list(metrics)
    if not metrics:
        need_computable(scenario, cases, has_vectors=vectors is not None)
        # Those of the scenario that can be computed, else all that apply.
        wanted = [
            metric if isinstance(metric, str) else metric.name for metric in scenario.metrics or ()
        ]
        for name in wanted:
            scorer = SCORERS.get(name)
            if scorer is None:  # a rate, a dimension of the rubric, or a column of the cases
                continue
            if (judge or not any(scorer.calls)) and (vectors or not scorer.embeds):
                chosen.append(name)
        left_out = [name for name in wanted if name not in chosen]
        if left_out:
            terminal.note(stage.say("evaluate.left_out", metrics=", ".join(left_out)))
    settings: dict[str, Any] = {
        "metrics": chosen or None,
        "client": judge,
        "embeddings": vectors,
        "store": stage.store,
        "lang": scenario.lang,
        "refusal": scenario.refusal,
    }
    if stage.dry_run:
        return stage.bill("evaluate.dry_run", expected(cases, **settings))
    scores = evaluate(cases, name=scenario.name, **settings)
    is_open = scores.attrs["failed"] or scores.attrs["spent"]["stopped"]
    code = stage.write(scores, complete=not is_open)
    for row in scores.attrs["notes"]:
        terminal.note(row["text"])
    computed = [METRICS.get(name, Metric(name)) for name in SCORERS if f"{name}__status" in scores]
    lines = [*stage.means(scores, computed), stage.written("evaluate.written")]
    click.echo("\n".join([*lines, stage.closing(scores.attrs["account"])]))
    return code
