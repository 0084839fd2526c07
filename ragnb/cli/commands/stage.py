"""What the commands that make a stage of a scenario have in common: its cases, limits, bill and table."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.outputs import check_stage_outputs
from ragnb.cli.terminal import BLOCKED, PASSED
from ragnb.errors import RagnbError
from ragnb.files import slug, write_whole
from ragnb.markup import count, one_line, with_interval
from ragnb.schema import Metric

if TYPE_CHECKING:
    import pandas as pd

    from ragnb.store import Client, Estimate


# The columns of means with the texts of their heads.
_COUNTS = {
    "n": "ok",
    "n_not_applicable": "not_applicable",
    "n_failed": "failed",
    "n_missing": "missing",
}


def profile_step(role: str) -> str:
    """Return the setting that names a model, as it is typed."""
    from ragnb.scenario.examples import EXAMPLES
    from ragnb.scenario.source import flow

    return shlex.quote("llm_profiles=" + flow({role: EXAMPLES["llm_profiles.judge"]}))


class Stage:
    """What evaluate and judge share: a scenario with its cases and judge, the table to write, the store.

    Parameters
    ----------
    name : str
        ``evaluate`` or ``judge``.
    source : Path
        The scenario, or a file of cases.
    table : str
        Default name of the table in ``reports/<scenario>/``; the store is next to it.
    asked : dict
        The options of the command. Those that both have are taken out of it.
    """

    def __init__(self, name: str, source: Path, table: str, asked: dict[str, Any]) -> None:
        from ragnb.inputs import scenario_of, with_cases

        self.name = name
        settings = terminal.overrides(asked.pop("parameters"), asked.pop("lang"))
        self.scenario = scenario_of(source, settings, "cases")
        self.dry_run: bool = asked.pop("dry_run")
        # The other stages take the cases that an earlier stage made; for a bill these need not be current.
        if name != "generate":
            self.scenario = with_cases(self.scenario, name, current=not self.dry_run)
        self.say = texts.load(self.scenario.lang)
        self.profiles = self.scenario.llm_profiles
        self.folder = self.scenario.path.parent if self.scenario.path else Path()
        self.out: Path = asked.pop("out") or Path("reports") / slug(self.scenario.name) / table
        self.store: Path = asked.pop("store") or self.out.with_suffix(".sqlite")
        written = {"--out": self.out, "--store": self.store}
        # What is written beside the table, see `judge_command` and `generate_command`.
        if name == "judge":
            written["--out (settings)"] = self.out.with_suffix(".snapshot.yaml")
        if name == "generate":
            written["--out (review)"] = self.out.with_name("review.csv")
        check_stage_outputs(name, source, self.scenario, written)
        self.limits = {
            limit: asked.pop(limit) for limit in ("max_calls", "max_tokens", "concurrency")
        }

    def client(
        self,
        model: str | None = None,
        role: Literal["judge", "answer", "dataset", "embeddings"] = "judge",
    ) -> Client | None:
        """Return the scenario's judge, or another model at its endpoint; None where there is no judge."""
        from ragnb.store import Client

        profile = self.profiles.get(role)
        if profile is None:
            return None
        if model:
            profile = profile.model_copy(update={"model": model})
        return Client(profile, **self.limits)

    def vectors(self, model: str | None) -> Client | None:
        """Return the embedding model of the scenario, or one named here at an endpoint that it has."""
        if "embeddings" in self.profiles:
            return self.client(model, role="embeddings")
        if model and "judge" not in self.profiles:
            raise RagnbError(
                "--embeddings uses the judge's endpoint, and the scenario has no llm_profiles.judge"
            )
        if model:
            return self.client(model)
        return None

    def cases(self) -> pd.DataFrame:
        """Return the cases alone, filtered by where:; scores and traces of the scenario are not scored."""
        from ragnb.inputs.gather import cases_of
        from ragnb.scoring import MEASURED

        scenario = self.scenario
        if scenario.cases is None and self.dry_run and scenario.documents is not None:
            return self._as_if_made()
        if scenario.cases is None:
            if scenario.documents:
                step = "run ragnb generate first"
            else:
                step = "add 'cases: my_cases.jsonl'"
            raise RagnbError(f"{scenario.path or scenario.name}: it names no cases; {step}")
        # What was measured differs from run to run; a table of scores does not.
        found: pd.DataFrame = cases_of(scenario)
        return found.drop(columns=[*MEASURED], errors="ignore")

    def _as_if_made(self) -> pd.DataFrame:
        """Return cases of the size that the documents will give, for an estimate before there are any."""
        import pandas as pd

        from ragnb.scoring import passages_of

        scenario = self.scenario
        passages = passages_of(
            scenario.documents, encoding=scenario.encoding, columns=scenario.columns
        )
        # As many as will be generated, taking the passages in turn.
        sources = islice(cycle(passages["text"]), scenario.generation.questions)
        cases = []
        for n, passage in enumerate(sources, 1):
            short_text = passage[:200]
            cases.append(
                {
                    "sample_id": f"g{n:03d}",
                    "ground_truth_contexts": [passage],
                    "retrieved_contexts": [passage] * 5 if scenario.system.retrieve else None,
                    "question": short_text,
                    "answer": short_text,
                    "ground_truth_answer": short_text,
                }
            )
        return pd.DataFrame(cases)

    def bill(self, text: str, need: Estimate, **words: Any) -> int:
        """Print what a dry run estimates."""
        counts = {name: count(n) for name, n in vars(need).items()}
        click.echo(self.say(text, **counts, **words))
        return PASSED

    def write(self, table: pd.DataFrame, *, complete: bool, **stopped: Any) -> int:
        """Write scores, or cases as one JSON object a line, record them, and return the exit code."""
        from ragnb.inputs.stages import MAKES_CASES, record_stage

        if self.name in MAKES_CASES:
            write_whole(
                self.out, str(table.to_json(orient="records", lines=True, force_ascii=False))
            )
        else:
            terminal.write_csv(self.out, table)
        record_stage(self.name, self.scenario, self.out, complete=complete, **stopped)
        if complete:
            return PASSED
        return BLOCKED

    def means(self, scores: pd.DataFrame, metrics: Sequence[Metric], *total: str) -> Iterator[str]:
        """Yield one line per metric (and system): mean, interval and counts."""
        from ragnb.weights import weighted_means

        by = "system" if len(set(scores.get("system", ()))) > 1 else None
        scenario = self.scenario
        means = weighted_means(
            scores,
            metrics=metrics,
            by=by,
            cluster=scenario.cluster,
            doc_weights=scenario.doc_weights,
            doc=scenario.doc,
            level=scenario.level,
        )
        keys = ["metric"]
        head = [self.say("column.metric")]
        if by:
            keys.insert(0, by)
            head.insert(0, "")
        head += [self.say(f"evaluate.{word}") for word in ("mean", *_COUNTS.values())]
        rows = [head]
        is_shown = means["metric"].isin([*(metric.name for metric in metrics), *total])
        for row in means[is_shown].to_dict("records"):
            mean = with_interval(row["value"], row["low"], row["high"])
            counts = [count(row[name]) for name in _COUNTS]
            rows.append([*(row[key] for key in keys), mean, *counts])
        return terminal.text_table(rows)

    def written(self, text: str) -> str:
        """Return the paths of scores and store."""
        return self.say(text, out=one_line(self.out), store=one_line(self.store))

    def closing(
        self, account: Mapping[str, int], *, probes: int = 0, own_functions: bool = False
    ) -> str:
        """Return the last line of each stage: the cells asked, what became of them, and the requests sent.

        `own_functions`: the system is one of the user's, whose requests nobody here can count.
        """
        words = {name: count(n) for name, n in account.items()}
        # Parts of the line that are left empty where they have nothing to say.
        words |= {"pending": "", "probes": "", "own": ""}
        if account["pending"]:
            words["pending"] = self.say("paid.pending", n=count(account["pending"]))
        if probes:
            words["probes"] = self.say("paid.probes", n=count(probes))
        if own_functions:
            words["own"] = self.say("paid.own")
        return self.say("paid.line", **words)
