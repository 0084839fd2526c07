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
        scenario = scenario_of(
            source, terminal.overrides(asked.pop("parameters"), asked.pop("lang")), "cases"
        )
        self.dry_run: bool = asked.pop("dry_run")
        self.scenario = (
            scenario if name == "generate" else with_cases(scenario, name, current=not self.dry_run)
        )
        self.say, self.profiles = texts.load(self.scenario.lang), self.scenario.llm_profiles
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

        if (profile := self.profiles.get(role)) is None:
            return None
        return Client(
            profile.model_copy(update={"model": model}) if model else profile, **self.limits
        )

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
        short = ("question", "answer", "ground_truth_answer")
        found = passages_of(
            scenario.documents, encoding=scenario.encoding, columns=scenario.columns
        )
        cases = []
        for n, text in enumerate(islice(cycle(found["text"]), scenario.generation.questions), 1):
            found_five = [text] * 5 if scenario.system.retrieve else None
            case = {
                "sample_id": f"g{n:03d}",
                "ground_truth_contexts": [text],
                "retrieved_contexts": found_five,
            }
            cases.append(case | dict.fromkeys(short, text[:200]))
        return pd.DataFrame(cases)

    def bill(self, text: str, need: Estimate, **words: Any) -> int:
        """Print what a dry run estimates."""
        click.echo(self.say(text, **{name: count(n) for name, n in vars(need).items()}, **words))
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

        if len(set(scores.get("system", ()))) > 1:
            by = "system"
        else:
            by = None
        settings = {
            name: getattr(self.scenario, name)
            for name in ("cluster", "doc_weights", "doc", "level")
        }
        means = weighted_means(scores, metrics=metrics, by=by, **settings)
        heads = [self.say(f"evaluate.{word}") for word in ("mean", *_COUNTS.values())]
        keys = [by, "metric"] if by else ["metric"]
        rows = [[*[""] * bool(by), self.say("column.metric"), *heads]]
        for row in means[means["metric"].isin([*(m.name for m in metrics), *total])].to_dict(
            "records"
        ):
            mean = with_interval(row["value"], row["low"], row["high"])
            rows.append(
                [*(row[key] for key in keys), mean, *(count(row[name]) for name in _COUNTS)]
            )
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
        numbers = {name: count(n) for name, n in account.items()}
        pending = numbers["pending"]
        of_probes = count(probes)
        parts = {
            "pending": self.say("paid.pending", n=pending) if account["pending"] else "",
            "probes": self.say("paid.probes", n=of_probes) if probes else "",
            "own": self.say("paid.own") if own_functions else "",
        }
        return self.say("paid.line", **numbers | parts)
