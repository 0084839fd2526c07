"""The commands: those that take a scenario, and those that study results."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.outputs import check_stage_outputs
from ragnb.cli.terminal import BAD_INPUT, BLOCKED, NOT_PROVEN, PASSED, command
from ragnb.errors import RagnbError, listing, unknown
from ragnb.files import json_text, slug, write_whole
from ragnb.markup import count, is_missing, number, one_line, with_interval
from ragnb.schema import METRICS, Gate, Metric, Rubric

if TYPE_CHECKING:
    import pandas as pd

    from ragnb.report import Made
    from ragnb.scenario import Scenario
    from ragnb.sheet import Assessment
    from ragnb.store import Client, Estimate

_WHOLE = "judge the whole run, without stopping it early"
_COUNTS = {
    "n": "ok",
    "n_not_applicable": "not_applicable",
    "n_failed": "failed",
    "n_missing": "missing",
}


@command("report")
def report_command(
    scenarios: Sequence[Path],
    parameters: Sequence[str],
    out: Path,
    jobs: int | None,
    lang: str | None,
) -> int:
    """Write the report of each SCENARIO.

    SCENARIO is a scenario (.yaml) or a file with results.

    Each run gets a new folder: OUT/<scenario>/<UTC time>-<hash of the inputs>/. It contains the page
    (report.html, opens offline), the executed notebook, report.md, the tables and run.json. Earlier
    runs are not changed; latest.txt next to them names the newest. Several scenarios run in parallel,
    and OUT/index.html shows all runs of all scenarios. For a scenario with ratings: alone the report is
    the calibration of the judge.

    \b
    Examples
      ragnb report scenarios/quickstart.yaml
      ragnb report scenarios/*.yaml --jobs 4
      ragnb report my_ragas.csv --lang zh
      ragnb report a.yaml -p level=0.9 -p "metric_weights={faithfulness: 2}"

    Exit code: 0 if every report was written, whether or not a gate blocks; 2 if an input is invalid or
    the notebook failed. The other scenarios still run.
    """
    from tqdm import tqdm

    from ragnb.report import index, reports

    many, made_of = len(scenarios) > 1, {}
    runs = reports(scenarios, out=out, overrides=terminal.overrides(parameters, lang), jobs=jobs)
    bar: Any = {
        "desc": "Reports",
        "unit": "report",
        "disable": None if many else True,
        "leave": False,
    }
    for made in tqdm(runs, total=len(scenarios), **bar):
        with tqdm.external_write_mode():
            _tell(made, many)
        made_of[made.scenario] = made
    if many or out.is_dir():
        in_order = [made_of[path] for path in dict.fromkeys(scenarios)]
        click.echo(f"Index: {index(out, made=in_order, lang=terminal.speaking())}")
    return BAD_INPUT if any(made.result is None for made in made_of.values()) else PASSED


def _tell(made: Made, many: bool) -> None:
    if made.result is None:
        return terminal.complain(RagnbError(made.error), made.scenario if many else None)
    for text in made.result.warnings:
        terminal.note(f"{made.scenario.stem}: {text}" if many else text)
    click.echo(f"{one_line(made.scenario.stem)}: {one_line(made.result.verdict)}")
    click.echo(f"  HTML: {made.result.html}")
    if made.result.blocked:
        click.echo(f"  {texts.load(made.result.lang)('cli.blocked')}")


@command("check")
def check_command(
    source: Path | None,
    parameters: Sequence[str],
    lang: str | None,
    sample: float | None,
    **asked: Path | None,
) -> int:
    """Check a run against its quality gates.

    SOURCE is a scenario (.yaml), a file with results or a log of answers. Without it, give --traces and
    --gold, or --scores. Prints the verdict, the gates and the notes.

    \b
    Examples
      ragnb check scenarios/quickstart.yaml
      ragnb check my_ragas.csv
      ragnb check --gold gold.json --traces traces.jsonl --markdown gates.md --junit gates.xml
      ragnb check scenarios/production.yaml --sample 0.01
      ragnb check log.jsonl --to-label gold.csv

    Exit code: 0 passed, 1 blocked by a gate, 2 bad or incomplete input.
    """
    from ragnb.diagnostics import gates_json
    from ragnb.markup.blocks import Table
    from ragnb.scenario import Scenario
    from ragnb.sheet import assess
    from ragnb.sheet.daily import daily_table
    from ragnb.sheet.formatter import Formatter
    from ragnb.sheet.heroes import hero_of
    from ragnb.sheet.sections.gates import gate_list
    from ragnb.texts import load

    # As typed, these are relative to the working directory; a scenario would take them from its own folder.
    files = {role: asked[role] for role in ("gold", "traces", "scores")}
    given: dict[str, Any] = {
        role: path.absolute() for role, path in files.items() if path is not None
    }
    if source is None and not given:
        outputs = {"json_file": "--json gates.json", "markdown": "--markdown check.md"}
        for output, example in outputs.items():
            if (path := asked.get(output)) is not None and path.is_file():
                raise RagnbError(
                    f"nothing to check: {example.split()[0]} took {str(path)!r} as the file to write; name the "
                    f"file to read and one to write: ragnb check {path} {example}"
                )
        raise RagnbError(
            "nothing to check; name a scenario, a results file, a log, --traces, or --scores"
        )
    if source is None and set(given) == {"gold"}:
        raise RagnbError(
            f"--gold {files['gold']}: a gold set has the questions, and no answers; name the file with the "
            "answers too: --traces traces.jsonl"
        )
    settings = terminal.overrides(parameters, lang) | ({} if sample is None else {"sample": sample})
    sheet = (
        assess(Scenario(**given), **settings)
        if source is None
        else assess(source, **given, **settings)
    )
    if (path := asked["to_label"]) and sheet.log is None:
        raise RagnbError(
            f"--to-label {path}: only traces without gold have questions to label; leave it out"
        )
    writer = Formatter(sheet)
    listed = gate_list(writer)
    tables = [] if listed is None else [("", terminal.block_rows(listed))]
    if sheet.log is not None:
        of_log = [section for key in ("wording", "label") if (section := sheet.section(key))]
        shown = [daily_table(writer), *(block for section in of_log for block in section.blocks)]
        tables += [
            (block.caption, terminal.block_rows(block))
            for block in shown
            if isinstance(block, Table)
        ]
    click.echo(
        "\n".join(terminal.report_lines([sheet.verdict], tables, sheet.notes["text"].tolist()))
    )
    if (action := hero_of(writer).action) is not None:
        next_line = load(sheet.scenario.lang)("sheet.next_line", command=action.command)
        click.echo(f"\n{next_line}\n  {action.what}")
    as_json = partial(gates_json, sheet.gates, notes=sheet.notes)
    if path and sheet.log is not None:
        terminal.write_csv(path, sheet.log.to_label, mark="\ufeff")
    terminal.write_files(asked, markdown=sheet.to_markdown, json_file=as_json, junit=sheet.to_junit)
    if sheet.incomplete:
        terminal.on_stderr(_repair(sheet, source or asked["scores"] or asked["traces"]))
    return BAD_INPUT if sheet.incomplete else BLOCKED if sheet.blocked else PASSED


def _repair(sheet: Assessment, source: Path | None) -> str:
    """Return what to do about lines that could not be read: repair them, or accept that they are lost."""
    read = sheet.gates.loc[sheet.gates["reason"] == "incomplete", "value"].min()
    # Rounded up: the share that is accepted must reach the one that is lost.
    share = f"{math.ceil(1000 * (1 - read)) / 1000:g}"
    lines = sheet.notes.loc[sheet.notes["code"] == "bad_lines", "text"]
    allow = shlex.quote(f"allow={{lines: {share}}}")
    say = texts.load(terminal.speaking())
    return str(say("cli.repair", source=source, lines=" ".join(lines), allow=f"-p {allow}"))


@command("example")
def example_command(folder: Path, lang: str | None) -> int:
    """Write sample data, scenarios and notebooks to DIR.

    DIR is a new folder. Prints three commands to go on with; the guides use the same files.

    \b
    Example
      ragnb example demo

    Exit code: 0 written, 2 if DIR exists.
    """
    from ragnb.example import write_example

    say = texts.load(lang or terminal.speaking())
    new = write_example(folder)
    ways = ["check scores.csv", "compare scenarios/quickstart.yaml scenarios/quickstart_weak.yaml"]
    # The report needs the extra "notebook"; without it, what the core can do.
    has_notebooks = find_spec("papermill") is not None
    ways.append(
        "report scenarios/quickstart.yaml" if has_notebooks else "check scenarios/quickstart.yaml"
    )
    click.echo(say("example.written", folder=one_line(new)))
    for way in ways:
        name, *files = way.split()
        click.echo(f"  {shlex.join(['ragnb', name, *(str(new / file) for file in files)])}")
    return PASSED


@command("inspect")
def inspect_command(files: Sequence[Path], lang: str | None, encoding: str | None) -> int:
    """Say what each FILE is, and print the line that reads it.

    Shows what the file is taken for, its columns and their meaning, the columns that may be metrics with
    their ranges, and what is missing for more. Nothing is scored or written.

    \b
    Examples
      ragnb inspect results.csv
      ragnb inspect .deepeval/.latest_run_full.json logs/*.eval

    Exit code: 0 if every file can be read, 2 if one cannot.
    """
    from ragnb.inputs import inspect_file

    worst = PASSED
    for i, path in enumerate(files):
        try:
            card = inspect_file(path, encoding=encoding, lang=terminal.speaking())
            click.echo("\n".join([*[""] * (i > 0), *map(one_line, str(card).splitlines())]))
        except (RagnbError, OSError) as error:
            terminal.complain(error, path)
            worst = BAD_INPUT
    return worst


@command("init")
def init_command(file: Path, out: Path, lang: str | None, encoding: str | None) -> int:
    """Write a commented scenario for FILE.

    It names the file and the settings that reading it needs, and shows the others as comments. It loads as
    it is: ragnb check SCENARIO. A file that is there already is not replaced.

    \b
    Examples
      ragnb init results.csv
      ragnb init logs/answers.jsonl --out scenarios/production.yaml

    Exit code: 0 written, 2 if the file cannot be read or OUT exists.
    """
    from ragnb.inputs import inspect_file

    if out.exists():
        raise RagnbError(f"{out} exists; name another file with --out")
    text = inspect_file(file, encoding=encoding, lang=terminal.speaking()).to_scenario(
        out.absolute().parent
    )
    write_whole(out, text)
    click.echo(
        f"ragnb {'calibrate' if 'ratings:' in text.splitlines()[1] else 'check'} {shlex.quote(str(out))}"
    )
    return PASSED


# Scoring


def _profile(role: str) -> str:
    """Return the setting that names a model, as it is typed."""
    from ragnb.scenario.examples import EXAMPLES
    from ragnb.scenario.model import flow

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
        return self.client(model) if model else None

    def cases(self) -> pd.DataFrame:
        """Return the cases alone, filtered by where:; scores and traces of the scenario are not scored."""
        from ragnb.inputs.gather import cases_of
        from ragnb.scoring import MEASURED

        scenario = self.scenario
        if scenario.cases is None and self.dry_run and scenario.documents is not None:
            return self._as_if_made()
        if scenario.cases is None:
            step = (
                "run ragnb generate first" if scenario.documents else "add 'cases: my_cases.jsonl'"
            )
            raise RagnbError(f"{scenario.path or scenario.name}: it names no cases; {step}")
        # What was measured differs from run to run; a table of scores does not.
        found: pd.DataFrame = cases_of(scenario)
        return found.drop(columns=[*MEASURED], errors="ignore")

    def _as_if_made(self) -> pd.DataFrame:
        """Return cases of the size that the documents will give, for an estimate before there are any."""
        import pandas as pd

        from ragnb.scoring import passages_of

        scenario, short = self.scenario, ("question", "answer", "ground_truth_answer")
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
        return PASSED if complete else BLOCKED

    def means(self, scores: pd.DataFrame, metrics: Sequence[Metric], *total: str) -> Iterator[str]:
        """Yield one line per metric (and system): mean, interval and counts."""
        from ragnb.weights import weighted_means

        by = "system" if len(set(scores.get("system", ()))) > 1 else None
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
        pending, of_probes = numbers["pending"], count(probes)
        parts = {
            "pending": self.say("paid.pending", n=pending) if account["pending"] else "",
            "probes": self.say("paid.probes", n=of_probes) if probes else "",
            "own": self.say("paid.own") if own_functions else "",
        }
        return self.say("paid.line", **numbers | parts)


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
    judge, vectors = stage.client(), stage.vectors(embeddings)
    cases, chosen = stage.cases(), list(metrics)
    if not metrics:
        need_computable(stage.scenario, cases, has_vectors=vectors is not None)
        # Those of the scenario that can be computed, else all that apply.
        wanted = [
            metric if isinstance(metric, str) else metric.name
            for metric in stage.scenario.metrics or ()
        ]
        known = [SCORERS[name] for name in wanted if name in SCORERS]
        chosen = [
            s.name for s in known if (judge or not any(s.calls)) and (vectors or not s.embeds)
        ]
        if left := [name for name in wanted if name not in chosen]:
            terminal.note(stage.say("evaluate.left_out", metrics=", ".join(left)))
    how: dict[str, Any] = {
        "metrics": chosen or None,
        "llm": judge,
        "embeddings": vectors,
        "store": stage.store,
    }
    how |= {"lang": stage.scenario.lang, "refusal": stage.scenario.refusal}
    if stage.dry_run:
        return stage.bill("evaluate.dry_run", expected(cases, **how))
    scores = evaluate(cases, name=stage.scenario.name, **how)
    spent = scores.attrs["spent"]
    code = stage.write(scores, complete=not (scores.attrs["failed"] or spent["stopped"]))
    for row in scores.attrs["notes"]:
        terminal.note(row["text"])
    computed = [METRICS.get(name, Metric(name)) for name in SCORERS if f"{name}__status" in scores]
    lines = [*stage.means(scores, computed), stage.written("evaluate.written")]
    click.echo("\n".join([*lines, stage.closing(scores.attrs["account"])]))
    return code


@command("judge")
def judge_command(
    source: Path,
    send: Sequence[str],
    attempts: int | None,
    system: str | None,
    arena: bool,
    stop_when_decided: bool,
    **asked: Any,
) -> int:
    """Score the answers of a SCENARIO with a judge.

    The model is that of llm_profiles.judge. The rubric is the scenario's (rubric:), by default accuracy,
    completeness and clarity from 1 to 10, with the weights in metric_weights. Answers without passages are judged
    without them; several systems are judged together.

    Six answers of known quality are judged first, and the result of this check is printed above the scores. Every
    judgement is saved to the store as soon as it is made: an interrupted run is resumed by the same command. The
    settings are written next to the table; ragnb report and ragnb check of the scenario find it by themselves.

    \b
    Examples
      ragnb judge scenarios/mine.yaml --dry-run             the rubric and an estimate of the cost; nothing is sent
      ragnb judge scenarios/mine.yaml --repeats 3 --temperature 0.7 --max-calls 500
      ragnb judge scenarios/systems.yaml --arena            cases with a column system: rank the systems
      ragnb judge scenarios/mine.yaml --stop-when-decided   only until every gate is decided
      ragnb judge scenarios/mine.yaml --improve 2 --system rag:retry

    Answers are judged in an order balanced over documents, so that a run stopped by its budget is a fair sample.
    With --stop-when-decided, gates are checked from one fifth of the questions on (at least 50); the remaining
    answers have no score, and the same command without the option judges them.

    With --improve, the answers below the threshold (accuracy 8 of 10) are retried by the system with the judge's
    suggestions. The best attempts are written to improved.csv next to the table, and the gain is printed with its
    interval and cost; the table of scores is that of the first answers.

    Exit code: 0 if every answer is judged or every gate decided, 1 if some failed or are pending, 2 on bad input.
    """
    from ragnb.judging import dry_run, improve, judge
    from ragnb.judging.run import REPLY_TOKENS, need_one_system

    stage = Stage("judge", source, "judged.csv", asked)
    scenario, say, client = stage.scenario, stage.say, stage.client()
    if client is None:
        raise RagnbError(
            f"{one_line(source)}: it names no judge; add one to the scenario, or for this run: "
            f"-p {_profile('judge')}"
        )
    loop = _loop(stage, client, attempts, system)
    if loop:
        improved = {"--out (improved answers)": stage.out.with_name("improved.csv")}
        check_stage_outputs("judge", source, scenario, improved)
    if loop and stop_when_decided:
        raise RagnbError("--improve needs the score of every answer; leave out --stop-when-decided")
    rubric = (scenario.rubric or Rubric()).weighed(scenario.metric_weights)
    asked |= {
        "store": stage.store,
        "lang": scenario.lang,
        "rubric": rubric,
        "parameters": terminal.sent(send),
    }
    cases = stage.cases()
    if arena and ("system" not in cases or cases["system"].nunique() < 2):
        raise RagnbError(
            "--arena compares systems; give the cases a column system that names two or more"
        )
    if loop:
        need_one_system(cases)
    passing = {"metric": one_line(rubric.passing.metric), "at": f"{rubric.passing.threshold:g}"}
    if stage.dry_run:
        click.echo("\n".join(_rubric_lines(rubric, passing, scenario.lang)))
        stage.bill("judge.cli.need", dry_run(cases, client, **asked))
        if loop:
            most = dry_run(cases, client, **asked | {"store": None, "probes": False})
            n, answers = loop["attempts"], most.calls // asked["repeats"]
            # A message to the endpoint holds a question, an answer and a suggestion.
            tokens = most.tokens + (0 if system else 3 * REPLY_TOKENS * answers)
            click.echo(
                say("judge.loop.most", answers=n * answers, calls=n * most.calls, tokens=n * tokens)
            )
        return PASSED
    settling = {"stop_when": _settling(scenario)} if stop_when_decided else {}
    asked |= {"doc": scenario.doc, "doc_weights": scenario.doc_weights, **settling}
    scores = judge(cases, client=client, name=scenario.name, **asked)
    about, status = scores.attrs["judge"], scores[f"{rubric.passing.metric}__status"]
    open_ = status.isin(["failed"] if about["stopped_early"] else ["failed", "missing"]).any()
    early = {name: about[name] for name in ("stopped_early", "calls_saved") if about["calls_saved"]}
    stage.write(scores, complete=not open_, **early)
    snapshot = scenario.snapshot_text(relative_to=stage.out.parent)
    write_whole(stage.out.with_suffix(".snapshot.yaml"), snapshot)
    numbers = {
        "ok": int((status == "ok").sum()),
        "n": len(scores),
        "passing": int(scores["is_passing"].sum()),
    }
    lines = [*_listed(scores.notes["text"]), *stage.means(scores, rubric.metrics, "weighted_score")]
    lines.append(
        say("judge.cli.judged", model=one_line(client.profile.model), **numbers, **passing)
    )
    lines.append(stage.written("judge.cli.written"))
    if arena:
        lines += _arena(stage, scores, rubric)
    lines.append(stage.closing(about["account"], probes=len(about["probes"])))
    click.echo("\n".join(lines))
    if loop and not about["stopped"]:
        asked |= {"probes": False, "doc": scenario.cluster or scenario.doc, "level": scenario.level}
        found = improve(cases, client=client, **loop, **asked)
        table = stage.out.with_name("improved.csv")
        terminal.write_csv(table, found.kept)
        of_loop = ["", *_listed(found.notes["text"])]
        of_loop.append(say("judge.loop.written", out=one_line(table)))
        of_loop.append(stage.closing(found.account, own_functions=callable(loop["system"])))
        click.echo("\n".join(of_loop))
        open_ |= found.notes["code"].isin(["stopped", "unanswered"]).any()
    return BLOCKED if open_ else PASSED


def _listed(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts as the lines of a list."""
    return (f"- {one_line(text)}" for text in texts)


def _loop(
    stage: Stage, client: Client, attempts: int | None, named: str | None
) -> dict[str, Any] | None:
    """Return the arguments of `improve`: the system is a function, else the model of llm_profiles.answer."""
    from ragnb.scoring import named_function

    named = named or (stage.scenario.system.improve if attempts else None)
    if attempts is None and named is None:
        return None
    system: Any = named_function(named, stage.folder) if named else stage.client(role="answer")
    if attempts is None or system is None:
        raise RagnbError(
            "the retry loop takes --improve N and the system: --system MODULE:FUNCTION, a function of question, "
            "answer and suggestion, or llm_profiles: answer: base_url and model"
        )
    if not named:
        system.budget = client.budget
    return {"attempts": attempts, "name": named or system.profile.model, "system": system}


def _settling(scenario: Scenario) -> Sequence[Gate]:
    """Return the gates of a scenario, if the judge's scores and the value alone decide them."""
    mixed = scenario.scores or scenario.traces or scenario.rescale
    for gate in scenario.gates or ():
        if mixed and gate.metric == "weighted_score":
            raise RagnbError(
                f"gate {gate.name!r} is on a total of other scores or another scale; {_WHOLE}"
            )
        if scenario.undecided != "value":
            raise RagnbError(f"gate {gate.name!r} is decided by an interval; {_WHOLE}")
    return scenario.gates or ()


def _arena(stage: Stage, scores: pd.DataFrame, rubric: Rubric) -> Iterator[str]:
    """Yield the ranks of the systems, and each pair in order of rank."""
    from ragnb.comparison import standings

    say, names = stage.say, ("cluster", "doc_weights", "doc", "level", "rescale")
    how = {name: getattr(stage.scenario, name) for name in names}
    found = standings(scores, metrics=list(rubric.metrics), **how)
    yield ""
    for name, rank in found.places.items():
        yield say("judge.cli.rank", system=one_line(name), rank=rank)
    level, order = f"{100 * how['level']:g} %", [*found.places]
    rows = [["", say("column.compared"), say("column.difference", level=level), say("column.wins")]]
    for row in found.pairs.to_dict("records"):
        if order.index(row["candidate"]) < order.index(row["baseline"]):
            ends = with_interval(row["value"], row["low"], row["high"])
            wins = f"{row['wins']}/{row['ties']}/{row['losses']}"
            rows.append(
                [
                    f"{row['candidate']} − {row['baseline']}",
                    say(f"compared.{row['outcome']}"),
                    ends,
                    wins,
                ]
            )
    yield from terminal.text_table(rows)


def _rubric_lines(rubric: Rubric, bar: dict[str, str], lang: str) -> Iterator[str]:
    """Yield the lines of a rubric: scale, weights, passing threshold, and the bands of its dimensions."""
    from ragnb.judging.prompt import anchors, bands

    say = texts.load(lang)
    words = bar | {"low": f"{rubric.low:g}", "high": f"{rubric.high:g}"}
    words |= {"weights": ", ".join(f"{one_line(d.name)} {d.weight:g}" for d in rubric.dimensions)}
    words |= {"steps": say("judge.decimals" if rubric.decimals else "judge.wholes")}
    yield say("judge.cli.rubric", anchors=len(anchors(rubric, lang)), **words)
    yield from (
        f"{'    ' if line[0] == ' ' else '  '}{one_line(line)}" for line in bands(rubric, lang)
    )


@command("generate")
def generate_command(source: Path, **asked: Any) -> int:
    """Make a question set from the documents of a SCENARIO.

    SCENARIO names documents: (a folder of PDF, HTML, Markdown or text, or a table of passages) and
    llm_profiles.dataset; its key generation: says how many questions and of which kinds. The evidence of each
    answer stands word for word in its passage; what does not is left out and counted.

    Writes questions.jsonl and review.csv to reports/<scenario>/. Fill in the column decision (keep, edit,
    drop) and run the same command again: the questions follow the review, and nothing is generated twice.

    \b
    Examples
      ragnb generate scenarios/mine.yaml --dry-run      estimate the cost; nothing is sent
      ragnb generate scenarios/mine.yaml -p "generation={questions: 40, personas: [a new employee]}"

    Exit code: 0 if there are as many questions as wanted, 1 if fewer, 2 on bad input, 130 after Ctrl-C.
    """
    from ragnb.scoring import generate_cases, generation_cost, passages_of
    from ragnb.scoring.generation import review_sheet, reviewed, with_decisions
    from ragnb.traces import check_gold

    stage = Stage("generate", source, "questions.jsonl", asked)
    scenario, say, client = stage.scenario, stage.say, stage.client(role="dataset")
    if scenario.documents is None:
        raise RagnbError(
            f"{one_line(source)}: it names no documents to generate questions from; add a folder of texts or a "
            "table of passages: documents: docs/"
        )
    if client is None:
        raise RagnbError(
            f"{one_line(source)}: it names no model that writes questions; add one to the scenario, or for this "
            f"run: -p {_profile('dataset')}"
        )
    want = scenario.generation
    reading: dict[str, Any] = {"encoding": scenario.encoding, "columns": dict(scenario.columns)}
    how: dict[str, Any] = {
        "n": want.questions,
        "lang": scenario.lang,
        **want.model_dump(exclude={"questions"}),
    }
    how |= {"llm": client, "store": stage.store, **reading}
    if stage.dry_run:
        passages = passages_of(scenario.documents, **reading)
        sizes = {
            "n": want.questions,
            "passages": len(passages),
            "documents": passages["doc_name"].nunique(),
        }
        return stage.bill("generate.dry_run", generation_cost(scenario.documents, **how), **sizes)
    made = generate_cases(scenario.documents, **how)
    dropped = made.attrs["dropped"]
    if made.empty:
        click.echo(stage.closing(made.attrs["account"]))  # paid for all the same
        raise RagnbError(
            f"no usable question ({listing(dropped)}); use a stronger model or longer documents"
        )
    review = stage.out.with_name("review.csv")
    given = review if review.is_file() else review_sheet(made)
    sheet, cases = with_decisions(made, given), reviewed(made, given)
    terminal.write_csv(review, sheet)
    code = stage.write(cases, complete=len(made) >= want.questions)
    kinds = {
        kind: int((cases["kind"] == kind).sum()) for kind in ("single", "multi", "unanswerable")
    }
    click.echo(
        say("generate.written", n=len(cases), wanted=want.questions, out=one_line(stage.out))
    )
    click.echo(say("generate.kinds", **kinds, documents=cases["doc_name"].nunique()))
    if dropped:
        counts = ", ".join(f"{n} {say(f'generate.{why}')}" for why, n in dropped.items())
        click.echo(say("generate.dropped", counts=counts))
    decided = int((sheet["decision"] != "").sum())
    click.echo(say("generate.review", file=one_line(review), reviewed=decided, n=len(made)))
    found = check_gold(cases.rename(columns={"source_units": "gold_ids"}), lang=scenario.lang)
    for text in found.query("not fine")["text"]:
        terminal.note(text)
    click.echo(stage.closing(made.attrs["account"]))
    return code


@command("answer")
def answer_command(source: Path, **asked: Any) -> int:
    """Let the system of a SCENARIO answer its questions.

    The system is system: {retrieve: module:function, generate: module:function}, looked for in the scenario's
    folder and among the installed packages. Without generate, llm_profiles.answer answers: from the passages of
    retrieve, or alone. The questions are those of cases:, or those that ragnb generate made.

    Writes answers.jsonl to reports/<scenario>/, with passages (null where there is no retrieval, [] where it found
    nothing), answer, status, latency and tokens. Every answer is saved as soon as it is there.

    \b
    Examples
      ragnb answer scenarios/mine.yaml --dry-run
      ragnb answer scenarios/mine.yaml -p "system={retrieve: rag:search, generate: rag:answer}"

    Exit code: 0 if every question is answered, 1 if some failed or are pending, 2 on bad input, 130 after Ctrl-C.
    """
    from ragnb.inputs.stages import system_version
    from ragnb.scoring import answer_cases, endpoint, named_function
    from ragnb.store import Estimate

    stage = Stage("answer", source, "answers.jsonl", asked)
    scenario, say, system = stage.scenario, stage.say, stage.scenario.system
    client = None if system.generate else stage.client(role="answer")
    if not (system.generate or client):
        raise RagnbError(
            f"{one_line(source)}: it names no system; add to the scenario a function of yours in rag.py beside "
            f"it (system: {{generate: rag:answer}}), or a model: -p {_profile('answer')}"
        )
    name, cases = (
        system.name or system.generate or (client.profile.model if client else ""),
        stage.cases(),
    )
    if stage.dry_run:
        n, calls = len(cases), len(cases) if client else 0
        return stage.bill(
            "answer.dry_run", Estimate(n, 0, 0, calls, 1000 * calls), system=one_line(name)
        )
    functions = {"retrieve": system.retrieve, "generate": system.generate}
    how: dict[str, Any] = {
        role: named_function(text, stage.folder) for role, text in functions.items() if text
    }
    if client:
        asks = endpoint(client, lang=scenario.lang, refusal=scenario.refusal[0])
        how |= {"generate": asks, "clients": (client,)}
    how |= {
        "store": stage.store,
        "concurrency": stage.limits["concurrency"],
        "version": system_version(scenario),
    }
    done = answer_cases(cases, system=name, **how)
    status = done["answer__status"]
    code = stage.write(done, complete=bool(status.eq("ok").all()))
    empty = sum(isinstance(one, list) and not one for one in done["retrieved_contexts"])
    numbers = {"ok": int(status.eq("ok").sum()), "n": len(done), "empty": empty}
    click.echo(say("answer.written", system=one_line(name), out=one_line(stage.out), **numbers))
    for reason, n in done.loc[status == "failed", "answer__reason"].value_counts().head(3).items():
        click.echo(say("answer.failed", n=n, reason=one_line(reason, 200)))
    has_own = bool(system.retrieve or system.generate)
    click.echo(stage.closing(done.attrs["account"], own_functions=has_own))
    return code


@command("run")
def run_command(
    source: Path, stages: Sequence[str], dry_run: bool, lang: str | None, **asked: Any
) -> int:
    """Run what a SCENARIO names, in order: generate, answer, evaluate, judge, report.

    generate runs where there are documents: and llm_profiles.dataset, answer where there is a system: or
    llm_profiles.answer, evaluate where there are cases, judge where there is llm_profiles.judge. A stage whose
    inputs have not changed is skipped, and a stopped one goes on where it was: every call is paid once.

    \b
    Examples
      ragnb run scenarios/mine.yaml --dry-run         the whole bill; nothing is sent
      ragnb run scenarios/mine.yaml
      ragnb run scenarios/mine.yaml --stage answer --stage report

    Limits hold for each stage.

    Exit code: 0 if every stage is complete and the report is written, 1 if calls failed or are pending, 2 on bad
    input, 130 after Ctrl-C. Gates decide in ragnb check.
    """
    from ragnb.inputs import scenario_of, stage_table, with_cases

    settings = terminal.overrides(asked["parameters"], lang)
    scenario, worst = scenario_of(source, settings, "cases"), PASSED
    named, profiles, say = (
        scenario.cases is not None,
        scenario.llm_profiles,
        texts.load(scenario.lang),
    )
    has_cases = named or scenario.documents is not None
    wanted: dict[str, tuple[click.Command, bool]] = {
        "generate": (generate_command, has_cases and not named and "dataset" in profiles),
        "answer": (answer_command, bool(scenario.system.generate or "answer" in profiles)),
        "evaluate": (evaluate_command, has_cases),
        "judge": (judge_command, has_cases and "judge" in profiles),
        "report": (report_command, True),
    }
    order = [
        stage
        for stage, (_, is_named) in wanted.items()
        if (stage in stages if stages else is_named)
    ]
    _refuse_early(source, scenario, order, asked, dry_run=dry_run)
    context = click.get_current_context()
    for dry in [True] if dry_run else [True, False]:  # the whole bill comes before the first call
        for place, stage in enumerate(order, 1):
            where = {"place": place, "of": len(order), "stage": stage}
            kept = None if stage == "report" else stage_table(stage, with_cases(scenario, stage))
            if kept and kept.complete:
                if dry:
                    click.echo(say("run.unchanged", **where, table=one_line(kept.path)))
                continue
            if dry and stage == "report":
                continue
            click.echo(say("run.stage", **where))
            options = asked | {"source": source, "dry_run": dry}
            if stage == "report":
                options = {"scenarios": [source], "parameters": asked["parameters"]}
            worst = max(worst, context.invoke(wanted[stage][0], lang=lang, **options))
    return worst


def _refuse_early(
    source: Path,
    scenario: Scenario,
    order: Sequence[str],
    asked: Mapping[str, Any],
    *,
    dry_run: bool,
) -> None:
    """Refuse before a call is paid what any stage would refuse: keys, functions, metrics, gates, settings."""
    from ragnb.cli.rehearsal import need_computable, need_function, rehearse
    from ragnb.scoring import SCORERS, gold, named_function
    from ragnb.scoring.run import default_metrics
    from ragnb.store.client import headers_of

    roles = {"generate": "dataset", "answer": "answer", "evaluate": "judge", "judge": "judge"}
    profiles = {str(role): profile for role, profile in scenario.llm_profiles.items()}
    for role in dict.fromkeys(roles[stage] for stage in order if stage in roles):
        if role in profiles:
            headers_of(profiles[role])
    if "evaluate" in order and "embeddings" in profiles:
        headers_of(profiles["embeddings"])
    system = scenario.system
    folder = scenario.path.parent if scenario.path else Path()
    if "answer" in order:
        for name in filter(None, (system.retrieve, system.generate)):
            need_function(name, folder)
            if not dry_run:  # whose modules no dry run imports
                named_function(name, folder)
    if "report" not in order or not {"evaluate", "judge"} & {*order}:
        return
    options = {"parameters": asked["parameters"], "lang": None, "dry_run": True, "out": None}
    limits = dict.fromkeys(("store", "max_calls", "max_tokens", "concurrency"))
    cases = Stage("evaluate", source, "scores.csv", options | limits).cases()
    has_vectors = "embeddings" in profiles
    computed: list[Metric] = []
    if "evaluate" in order:
        need_computable(scenario, cases, has_vectors=has_vectors)
        named = [one if isinstance(one, str) else one.name for one in scenario.metrics or ()]
        if scenario.metrics is None:
            has_gold = "generate" in order or gold.has_gold(cases)
            named = default_metrics(
                has_judge="judge" in profiles, has_vectors=has_vectors, has_gold=has_gold
            )
        computed += [METRICS.get(name, Metric(name)) for name in named if name in SCORERS]
    if "judge" in order:
        computed += (scenario.rubric or Rubric()).metrics
    answers = system.name or system.generate or ("answer" if "answer" in profiles else "")
    rehearse(scenario, cases, computed, system=answers if "answer" in order else "")


_VERDICTS = {"TRUST": PASSED, "REJECT": BLOCKED, "NOT PROVEN": NOT_PROVEN}


@command("calibrate")
def calibrate_command(
    ratings: tuple[Path, ...], sample: int | None, golden: bool, **asked: Any
) -> int:
    """Calibrate a judge against human ratings.

    RATINGS has one row per answer, with the scores of the judge and of people (columns judge and human, or human1,
    human2, …; or rater and score). Several files are one annotator's sheet each. Prints the card as Markdown, or
    writes it to a file.

    \b
    Examples
      ragnb calibrate ratings.csv
      ragnb calibrate ratings.csv --dimension accuracy --scale 1 10 --html card.html
      ragnb calibrate mine.csv --judge gpt_score --human ann --human bo
      ragnb calibrate runs.csv --scale 1 5 --missing outside
      ragnb calibrate --sample 120 judged.csv --out labels.csv     (answers to annotate)
      ragnb calibrate labels_ann.csv labels_bo.csv --judged labels.judge.csv
      ragnb calibrate --sample 80 --pairs judged.csv --out pairs.csv   (both systems, for ragnb compare)
      ragnb calibrate --golden --out golden.csv                    (three hard questions to fill in)
      ragnb calibrate --golden golden.csv

    Exit code: 0 TRUST, 1 REJECT, 3 NOT PROVEN, 2 bad input. For a golden set: 0 if all scores agree within the
    tolerance, 1 if one does not, 3 if a score is missing.
    """
    reading = {name: asked[name] for name in ("missing", "scale", "encoding", "judge")}
    if sample is not None:
        return _sample(ratings, sample, asked, reading)
    return _golden(ratings, asked, reading) if golden else _calibrate(ratings, asked, reading)


def _calibrate(files: Sequence[Path], asked: dict[str, Any], reading: dict[str, Any]) -> int:
    """Print or write the card of some ratings."""
    from ragnb.calibration import calibrate, judge_columns, read_judged, read_labels, unrated

    if asked["out"] is not None:
        raise RagnbError(
            "--out goes with --sample or --golden; a card is written by --markdown, --html or --json"
        )
    if not files:
        raise RagnbError(
            "nothing to calibrate; name a file of ratings, or draw some labels: --sample 120 judged.csv"
        )
    ratings = read_labels(files, asked["judged"], human=asked["human"], **reading)
    judges = judge_columns(ratings, asked["judge"])
    if not judges:
        raise RagnbError(
            f"{listing(files)}: contains no judge scores (columns: {listing(ratings.columns)}); name its column "
            "with --judge, or pass its table with --judged"
        )
    ratings = _chosen(ratings, asked["dimensions"])
    source = ratings.attrs.get("source", {})
    if source.get("damaged"):
        raise RagnbError(
            f"{source['damaged']} of {source['lines']} input lines are damaged or lost, and the judge's "
            "errors may be on exactly these; repair the file, or remove these lines from it"
        )
    judged = None
    if asked["judged"] is not None:
        names = list(dict.fromkeys(ratings["dimension"])) if "dimension" in ratings else None
        rest = unrated(read_judged(asked["judged"], dimensions=names, **reading), ratings)
        judged = rest if len(rest) else None
    how = (
        "tolerance",
        "target",
        "labels_planned",
        "delta",
        "scale",
        "cluster",
        "level",
        "seed",
        "lang",
    )
    pairs = dict(terminal.pair("--about", "judge_id=small-8b", text) for text in asked["about"])
    truths = {"true": True, "false": False}
    about = {
        key: truths.get(value.strip().casefold(), value) for key, value in pairs.items()
    } or None
    card = calibrate(
        ratings, judge=judges, judged=judged, about=about, **{name: asked[name] for name in how}
    )
    as_json = partial(json_text, card.to_dict())
    terminal.write_files(
        asked, markdown=card.to_markdown, html=partial(_page, card), json_file=as_json
    )
    if asked["markdown"] is None and asked["html"] is None:
        click.echo(card.to_markdown(), nl=False)
    else:
        click.echo("\n".join(one_line(reason) for reason in card.reasons))
    return _VERDICTS[card.verdict]


def _page(card: Any) -> str:
    from ragnb.report.run import card_page

    return card_page(card)


def _chosen(frame: pd.DataFrame, dimensions: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the requested dimensions."""
    have = [str(name) for name in frame["dimension"].unique()] if "dimension" in frame else []
    for name in dimensions:
        if name not in have:
            raise unknown("dimension", name, have)
    return frame[frame["dimension"].isin(dimensions)] if dimensions else frame


def _sample(files: Sequence[Path], n: int, asked: dict[str, Any], reading: dict[str, Any]) -> int:
    """Sample answers to annotate, and print what to do with the sheet."""
    from ragnb.calibration import draw_labels, read_judged, write_labels

    if len(files) != 1 or asked["out"] is None:
        raise RagnbError(
            "--sample takes one table of judged answers and --out, the sheet to write: labels.csv"
        )
    dimensions = asked["dimensions"]
    judged = _chosen(read_judged(files[0], dimensions=dimensions or None, **reading), dimensions)
    drawn = draw_labels(
        judged, n=n, cluster=asked["cluster"], seed=asked["seed"], pairs=asked["pairs"]
    )
    sheet, key = write_labels(drawn, asked["out"])
    say = texts.load(asked["lang"])
    of = {"all": drawn.attrs["population"], "clusters": drawn["cluster"].nunique()}
    click.echo(say("cli.drawn", n=len(drawn), seed=asked["seed"], **of))
    click.echo(say("cli.sheet", file=sheet, dimensions=listing(drawn.attrs["dimensions"])))
    click.echo(say("cli.key", file=key))
    click.echo(say("cli.then", command=f"ragnb calibrate {sheet} --judged {key}"))
    return PASSED


def _golden(files: Sequence[Path], asked: dict[str, Any], reading: dict[str, Any]) -> int:
    """Write an empty golden set, or check a filled-in one."""
    from ragnb.calibration import check_golden, golden_template, read_golden, write_golden

    say = texts.load(asked["lang"])
    tolerance = 1.0 if asked["tolerance"] is None else asked["tolerance"]
    if not files:
        if asked["out"] is None:
            raise RagnbError(
                "--golden takes a filled-in golden set to check, or --out, the file to write an empty one to"
            )
        empty = golden_template(lang=asked["lang"], dimensions=asked["dimensions"])
        click.echo(say("cli.golden", file=write_golden(empty, asked["out"])))
        return PASSED
    if len(files) > 1:
        raise RagnbError(f"--golden checks one file; found {listing(files)}")
    checked = check_golden(
        read_golden(files[0], human=asked["human"], **reading), tolerance=tolerance
    )
    keys = [c for c in ("item_id", "dimension", "system") if c in checked]
    numbers = {"judge": "{:g}", "human": "{:g}", "difference": "{:+.2f}"}
    rows = [["", *keys, *(say(f"golden.{name}") for name in numbers)]]
    for row in checked.to_dict("records"):
        mark = "—" if is_missing(row["within"]) else "✓" if row["within"] else "✗"
        shown = [
            "—" if is_missing(row[name]) else form.format(row[name])
            for name, form in numbers.items()
        ]
        rows.append([mark, *(str(row[key]) for key in keys), *shown])
    click.echo("\n".join(terminal.text_table(rows)))
    off, open_ = int((~checked["within"]).sum()), int(checked["within"].isna().sum())
    verdict = "off" if off else "open" if open_ else "fine"
    exactly = "_exact" if verdict == "fine" and not tolerance else ""
    click.echo(
        say(
            f"golden.{verdict}{exactly}",
            n=len(checked),
            off=off,
            open=open_,
            tolerance=f"{tolerance:g}",
        )
    )
    return {"off": BLOCKED, "open": NOT_PROVEN, "fine": PASSED}[verdict]


@command("compare")
def compare_command(new: str, base: str | None, **asked: Any) -> int:
    """Compare a NEW run with a BASE run.

    The comparison is paired: it uses the questions that both sides have.

    NEW and BASE are tables of scores, scenarios, run folders, names of scenarios with a run in reports/ (latest is
    the newest run), or runs of a store (runs.sqlite#3fa1c2d4). BASE may also be a system of NEW, and can be left
    out if the scenario sets baseline:.

    The first line gives the outcome for the metric that decides: better, worse (each also "within the margin"),
    same or inconclusive. The margin is by default 1/20 of the metric's range; within it is what keeps its whole
    confidence interval inside; same also holds 0.

    \b
    Examples
      ragnb compare new.csv base.csv
      ragnb compare scores.csv old_system --by doc_name
      ragnb compare latest reports/mine/20260101T000000Z-1f0c2a3b --html compare.html
      ragnb compare runs.sqlite#9b07aa10 runs.sqlite#3fa1c2d4
      ragnb compare mine.yaml baseline.csv --gate --margin 0.02 --junit compare.xml

    With an anchor: in the scenario (ragnb accept), the accepted run is compared with too.

    Exit code: 0; 2 on bad input. With --gate: 0 better, same or worse within the margin; 1 worse, at 99.5 %; 3
    worse at 95 % only, or inconclusive; with several candidates, the worst of them. --gate strict is 1 for any
    loss that 99.5 % shows, --gate all also for another metric that is worse. Write --gate after NEW and BASE.
    """
    from ragnb.comparison.view import compare_view
    from ragnb.diagnostics.gates import plain_records

    how = {name: asked[name] for name in ("candidate", "system", "on", "by", "metrics", "primary")}
    settings = terminal.overrides(asked["parameters"], asked["lang"])
    if asked["ratings"] is not None:
        settings["ratings"] = asked["ratings"]
    view, table, slices = compare_view(
        new, base, settings=settings, margin=_margin(asked["margin"]), **how
    )
    decides = table[table["primary"]]
    if asked["gate"] and decides.empty:
        raise RagnbError("--gate needs a metric that decides; name it with --primary")
    outcome = next((word for word in _FROM_WORST if word in set(decides["outcome"])), None)
    head = view.head or [texts.load(view.lang)("compare.no_word")]
    tables = [(name, terminal.block_rows(table)) for name, table in view.tables]
    click.echo("\n".join(terminal.report_lines(head, tables, view.notes)))
    parts = {"outcome": outcome, "notes": view.notes, "metrics": plain_records(table)}
    parts |= {} if slices is None else {"slices": plain_records(slices)}
    kinds = {
        "junit": partial(_junit, view.title, table, view.lang, asked["gate"] or "margin"),
        "json_file": partial(json_text, parts),
    }
    terminal.write_files(asked, markdown=view.markdown, html=view.html, **kinds)
    return _gate_code(table, asked["gate"]) if asked["gate"] else PASSED


@command("accept")
def accept_command(run: str, scenario: Path, lang: str | None) -> int:
    """Accept a RUN as the anchor of SCENARIO.

    Later runs are compared with the anchor beside the previous run, so that many small losses do not add up to a
    large one. Its scores are copied to a file beside SCENARIO, and the line anchor: of SCENARIO names it; keep
    both in git. Only this command moves the anchor.

    \b
    Examples
      ragnb accept reports/mine/latest scenarios/mine.yaml
      ragnb accept scores.csv mine.yaml
      ragnb compare mine.yaml previous.csv --gate

    Exit code: 0 accepted, 2 on bad input.
    """
    from ragnb.comparison.anchor import accept

    say = texts.load(lang or terminal.speaking())
    click.echo(say("compare.accepted", scenario=scenario, file=accept(run, scenario)))
    return PASSED


_FROM_WORST = ("worse", "undecided", "worse_within", "same", "better_within", "better")


def _gate_code(table: pd.DataFrame, policy: Any) -> int:
    """Return the exit code of a comparison under a policy of --gate."""
    from ragnb.comparison.estimates import Verdict, gate_verdict

    said = {gate_verdict(row, policy) for row in table[table["primary"]].to_dict("records")}
    if policy == "all":
        others = table[~table["primary"] & (table["outcome"] == "worse")]
        said |= {gate_verdict(row, policy) for row in others.to_dict("records")}
    return int(next(code for code in reversed(Verdict) if code in said))


def _margin(given: Sequence[str]) -> float | dict[str, float] | None:
    """Read the margins: one number for all metrics, or NAME=VALUE texts."""
    plain, margins = len(given) == 1 and "=" not in given[0], dict[str, float]()
    for text in given:
        name, value = (
            ("", text) if plain else terminal.pair("--margin", "context_recall=0.02", text)
        )
        try:
            margins[name] = float(value)
        except ValueError:
            raise RagnbError(
                f"--margin {value!r} is not a number; write 0.02, or context_recall=0.02"
            ) from None
    return margins[""] if plain else margins or None


def _junit(title: str, table: pd.DataFrame, lang: str, policy: Any) -> str:
    """Return a test suite with one case per metric; those that the policy of --gate asks may fail."""
    from ragnb.comparison.estimates import Verdict, gate_verdict
    from ragnb.comparison.view import headline
    from ragnb.diagnostics import junit

    kinds, cases = {Verdict.BLOCKED: "failure", Verdict.NOT_PROVEN: "skipped"}, []
    say, several = texts.load(lang), table["baseline"].nunique() > 1
    for row in table.to_dict("records"):
        name = f"{row['candidate']}: {row['metric']}" + f" ({row['baseline']})" * several
        is_asked = row["primary"] or (policy == "all" and row["outcome"] == "worse")
        kind = kinds.get(gate_verdict(row, policy), "system-out") if is_asked else "system-out"
        cases.append((name, kind, row["outcome"], headline(row, say)))
    return junit(title, cases)


@command("plan")
def plan_command(
    kind: Any,
    pilot: str | None,
    baseline: str | None,
    parameters: tuple[str, ...],
    json_file: Path | None,
    lang: str,
    **assumed: Any,
) -> int:
    """Plan the sample size of a decision.

    Prints how many questions or labels decide a gate, comparison or calibration with 80 % probability.

    KIND is gate, comparison or calibration. PILOT is existing data: scores or a scenario with gates, the run to
    compare with --baseline, or ratings. Without a pilot, the plan is based on the options.

    \b
    Examples
      ragnb plan gate --target 0.8 --expected 0.9
      ragnb plan gate scores.csv -p "gates=[{name: F, metric: faithfulness, op: '>=', threshold: 0.8}]"
      ragnb plan comparison --sd 0.3 --questions 200
      ragnb plan comparison new.csv --baseline base.csv --expected 0.03
      ragnb plan calibration --target 0.8 --expected 0.9 --icc 0.2 --per-document 5

    Exit code: 0; 2 on bad input.
    """
    from ragnb.comparison import plan
    from ragnb.diagnostics.gates import plain_records

    settings = terminal.overrides(parameters) | ({"baseline": baseline} if baseline else {})
    given = {name: value for name, value in assumed.items() if value is not None}
    table = plan(pilot, kind=kind, **given, **settings)
    say = texts.load(lang)
    click.echo("\n".join(_sentence(row, say) for row in table.to_dict("records")))
    terminal.write_files(
        {"json_file": json_file}, json_file=lambda: json_text(plain_records(table))
    )
    return PASSED


def _sentence(row: dict[Any, Any], say: Any) -> str:
    about = row["about"] if row["system"] is None else f"{row['system']}: {row['about']}"
    words = {
        "about": about,
        **{name: number(row[name]) for name in ("expected", "target", "detectable")},
    }
    words |= {name: count(row[name]) for name in ("n", "needed", "more", "documents")}
    if row["reason"] is not None:
        return str(say(f"plan.{row['reason']}", **words))
    shows = is_missing(row["expected"])
    known = "" if shows or is_missing(row["n"]) else "_more"
    return str(say(f"plan.{'shows' if shows else row['kind']}{known}", **words))


@command("verify")
def verify_command(run: Path, lang: str | None) -> int:
    """Compute a RUN again, and say whether its tables are the same byte by byte.

    RUN is a folder of ragnb report. Its inputs are read where they were, with its own settings; nothing is sent
    and nothing in the folder changes. Where a table differs, the inputs, settings and versions that moved are
    named.

    \b
    Examples
      ragnb verify reports/mine/20261127T213654Z-9bbc492a

    Exit code: 0 the same, 1 if a table differs or an input is gone, 2 on bad input.
    """
    from ragnb.report.verify import verify

    say = texts.load(lang or terminal.speaking())
    found = verify(run, lang=lang or terminal.speaking())
    key = "same" if found.same else "different"
    click.echo(say(f"verify.{key}", run=one_line(run)))
    for row in found.moved.to_dict("records"):
        words = {name: one_line(row[name], 200) or "—" for name in ("name", "then", "now")}
        click.echo("- " + say(f"verify.{row['what']}", **words))
    if not found.same and set(found.moved["what"]) == {"table"}:
        click.echo(say("verify.nothing"))
    return PASSED if found.same else BLOCKED


@command("runs")
def runs_command(
    store: Path, runs: Sequence[str], lang: str, verify: bool, export: Path | None, claims: bool
) -> int:
    """List the runs in a store, or show one of them.

    STORE is the file in which ragnb evaluate and ragnb judge save every call. A run is named by its id or the
    beginning of it.

    \b
    Examples
      ragnb runs runs.sqlite                      all runs: cells, tokens, models, dates
      ragnb runs runs.sqlite 3fa1c2d4             one run: cells by status, and reasons of failures
      ragnb runs runs.sqlite --claims             processes that have claimed cells
      ragnb runs runs.sqlite --verify             whether the store is intact; changes nothing
      ragnb runs runs.sqlite --export all.jsonl   every run, cell, attempt, call and reply, without keys

    To compare two runs: ragnb compare runs.sqlite#9b07aa10 runs.sqlite#3fa1c2d4.

    For a damaged store, --export writes every row that can be read and prints how many are lost.

    Exit code: 0; 2 on bad input or a damaged store.
    """
    from ragnb.store import Store
    from ragnb.store.store import VERSION, examined, exported

    say = texts.load(lang)
    if not store.exists():
        raise RagnbError(
            f"{store}: there is no such store; name the file that judging or scoring wrote"
        )
    if verify + claims + (export is not None) + bool(runs) > 1:
        raise RagnbError(say("runs.one_action"))
    if verify:
        found = examined(store)
        found.file.close()
        whole = "runs.broken" if found.wrong else "runs.whole"
        click.echo(say(whole, store=one_line(store), version=VERSION, **found.rows))
        save = f"ragnb runs {shlex.quote(str(store))} --export saved.jsonl"
        return _outcome(found.wrong, f"{say('runs.save', command=save)} {_recover(store, say)}")
    if export is not None:
        rows = list(exported(store))
        write_whole(export, "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows))
        end = rows[-1]
        click.echo(say("runs.exported", file=one_line(export), **end["rows"]))
        lost = say("runs.lost", damaged=end["damaged"], **end["lost"])
        return _outcome(end["wrong"], f"{lost} {_recover(store, say)}")
    if len(runs) > 1:
        raise RagnbError(
            f"{len(runs)} runs are given; give one, or compare two: "
            f"ragnb compare {store}#{runs[-1]} {store}#{runs[0]}"
        )
    with Store(store, new=False) as opened:
        found_runs = _run(opened.frame(runs[0]), say) if runs else _runs(opened.runs(), say)
        click.echo("\n".join(_claims(opened.claims(), say) if claims else found_runs))
    return PASSED


def _recover(store: Path, say: Any) -> str:
    """Name SQLite's own repair, which may find rows that it does not read."""
    command = f"sqlite3 {shlex.quote(str(store))} .recover"
    return str(say("runs.recover", command=command))


def _outcome(wrong: Sequence[str], next_step: str) -> int:
    """Print the problems of a store and the next step."""
    if wrong:
        click.echo("\n".join([*_listed(wrong), next_step]))
    return BAD_INPUT if wrong else PASSED


def _table(say: Any, words: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a table with translated column heads."""
    return terminal.text_table([[say(f"runs.{word}") for word in words], *rows])


def _claims(claims: pd.DataFrame, say: Any) -> Iterator[str]:
    if claims.empty:
        return iter([say("runs.unclaimed")])
    words = ["process", "host", "cells", "since", "until"]
    shown = claims[words].fillna({"process": "?"}).fillna("—").astype(str)
    return _table(say, words, shown.replace(r"\+00:00$", "", regex=True).to_numpy())


def _runs(runs: pd.DataFrame, say: Any) -> Iterator[str]:
    if runs.empty:
        return iter([say("runs.none")])
    counts, dates = (
        ["cells", "ok", "not_applicable", "failed", "pending", "calls"],
        ["started", "last"],
    )
    tokens = [
        f"{count(sent)} + {count(got)}"
        for sent, got in runs[["tokens_in", "tokens_out"]].to_numpy()
    ]
    early = [f" ({say('runs.stopped_early')})" * int(stopped) for stopped in runs["stopped_early"]]
    took = [f"{s // 3600}:{s // 60 % 60:02d}:{s % 60:02d}" for s in map(round, runs["seconds"])]
    shown = runs.assign(tokens=tokens, took=took)
    shown["pending"] = [f"{count(n)}{word}" for n, word in zip(runs["pending"], early, strict=True)]
    shown[dates] = runs[dates].map(lambda date: str(date or "—")[:16].replace("T", " "))
    words = ["run", "name", *counts, "tokens", "took", "models", *dates]
    return _table(say, words, shown[words].replace("", None).to_numpy(object))


def _run(cells: pd.DataFrame, say: Any) -> Iterator[str]:
    import pandas as pd

    statuses, words = (
        ["ok", "not_applicable", "failed", "pending"],
        ["sample_id", "what", "reason", "reply"],
    )
    by_status = pd.crosstab(cells["what"], cells["status"])
    by_status = by_status.reindex(index=cells["what"].unique(), columns=statuses, fill_value=0)
    yield from _table(say, ["what", *statuses], by_status.reset_index().to_numpy(object))
    failed = cells.loc[cells["status"] == "failed", words]
    if len(failed):
        yield ""
        rows = [[one_line(cell or "—", 100) for cell in row] for row in failed.to_numpy(object)]
        yield from _table(say, words, rows)


COMMANDS = (
    example_command,
    inspect_command,
    init_command,
    run_command,
    generate_command,
    answer_command,
    evaluate_command,
    judge_command,
    report_command,
    check_command,
    compare_command,
    accept_command,
    calibrate_command,
    plan_command,
    runs_command,
    verify_command,
)
