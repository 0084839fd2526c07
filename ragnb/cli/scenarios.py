"""The commands that take a scenario: run, generate, answer, evaluate, judge, report and check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.terminal import BAD_INPUT, BLOCKED, PASSED, command
from ragnb.errors import RagnbError, listing
from ragnb.files import slug, write_whole
from ragnb.markup import count, one_line, with_interval
from ragnb.schema import METRICS, Gate, Metric, Rubric

if TYPE_CHECKING:
    import pandas as pd

    from ragnb.report import Made
    from ragnb.scenario import Scenario
    from ragnb.store import Client, Estimate

_WHOLE = "judge the whole run, without stopping it early"
_COUNTS = {"n": "ok", "n_not_applicable": "not_applicable", "n_failed": "failed", "n_missing": "missing"}


@command("report")
def report_command(
    scenarios: Sequence[Path], parameters: Sequence[str], out: Path, jobs: int | None, lang: str | None
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

    settings, many = terminal.overrides(parameters, lang), len(scenarios) > 1
    made_of = {}
    bar = tqdm(total=len(scenarios), desc="Reports", unit="report", disable=None if many else True, leave=False)
    with bar:
        for made in reports(scenarios, out=out, overrides=settings, jobs=jobs):
            with bar.external_write_mode():
                _tell(made, many)
            bar.update()
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
    source: Path | None, parameters: Sequence[str], lang: str | None, sample: float | None, **asked: Path | None
) -> int:
    """Check a run against its quality gates.

    SOURCE is a scenario (.yaml) or a file with results. Without it, give --traces and --gold, or --scores.
    Prints the verdict, the gates and the notes.

    \b
    Examples
      ragnb check scenarios/quickstart.yaml
      ragnb check my_ragas.csv
      ragnb check --gold gold.json --traces traces.jsonl --markdown gates.md --junit gates.xml
      ragnb check scenarios/production.yaml --sample 0.01

    Exit code: 0 passed, 1 blocked by a gate, 2 bad or incomplete input.
    """
    from ragnb.diagnostics import gates_json
    from ragnb.scenario import Scenario
    from ragnb.sheet import assess

    # As typed, these are relative to the working directory; a scenario would take them from its own folder.
    files = {role: asked[role] for role in ("gold", "traces", "scores")}
    given: dict[str, Any] = {role: path.absolute() for role, path in files.items() if path is not None}
    if source is None and not given:
        raise RagnbError("nothing to check; name a scenario, a results file, --traces with --gold, or --scores")
    settings = terminal.overrides(parameters, lang) | ({} if sample is None else {"sample": sample})
    sheet = assess(Scenario(**given), **settings) if source is None else assess(source, **given, **settings)
    blocks: Any = () if (gates := sheet.section("gates")) is None else gates.blocks
    # Without the picture of the distance, and the long words last.
    tables = [("", [[*row[1:3], *row[4:], row[0]] for row in terminal.block_rows(table)]) for table in blocks]
    click.echo("\n".join(terminal.report_lines([sheet.verdict], tables, sheet.notes["text"].tolist())))
    terminal.write_files(
        (asked["markdown"], sheet.to_markdown),
        (asked["json_file"], lambda: gates_json(sheet.gates, notes=sheet.notes)),
        (asked["junit"], sheet.to_junit),
    )
    return BAD_INPUT if sheet.incomplete else BLOCKED if sheet.blocked else PASSED


# Scoring


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
        scenario = scenario_of(source, terminal.overrides(asked.pop("parameters"), asked.pop("lang")), "cases")
        self.dry_run: bool = asked.pop("dry_run")
        self.scenario = scenario if name == "generate" else with_cases(scenario, name, current=not self.dry_run)
        self.say, self.profiles = texts.load(self.scenario.lang), self.scenario.llm_profiles
        self.out: Path = asked.pop("out") or Path("reports") / slug(self.scenario.name) / table
        self.store: Path = asked.pop("store") or self.out.with_suffix(".sqlite")
        self.limits = {limit: asked.pop(limit) for limit in ("max_calls", "max_tokens", "concurrency")}

    def client(
        self, model: str | None = None, role: Literal["judge", "answer", "dataset"] = "judge"
    ) -> Client | None:
        """Return the scenario's judge, or another model at its endpoint; None where there is no judge."""
        from ragnb.store import Client

        if (profile := self.profiles.get(role)) is None:
            return None
        return Client(profile.model_copy(update={"model": model}) if model else profile, **self.limits)

    def cases(self) -> pd.DataFrame:
        """Return the cases alone, filtered by where:; scores and traces of the scenario are not scored."""
        from ragnb.inputs import gather
        from ragnb.scenario import Scenario
        from ragnb.scoring import MEASURED

        scenario = self.scenario
        if scenario.cases is None and self.dry_run and scenario.documents is not None:
            return self._as_if_made()
        if scenario.cases is None:
            step = "run ragnb generate first" if scenario.documents else "add 'cases: my_cases.jsonl'"
            raise RagnbError(f"{scenario.path or scenario.name}: it names no cases; {step}")
        named = ("cases", "columns", "encoding", "where")
        # What was measured differs from run to run; a table of scores does not.
        found: pd.DataFrame = gather(Scenario(**{key: getattr(scenario, key) for key in named})).frame
        return found.drop(columns=[*MEASURED], errors="ignore")

    def _as_if_made(self) -> pd.DataFrame:
        """Return cases of the size that the documents will give, for an estimate before there are any."""
        from ragnb.scoring import passages_of

        scenario = self.scenario
        found = passages_of(scenario.documents, encoding=scenario.encoding, columns=scenario.columns)
        passages = [*islice(cycle(found["text"]), scenario.generation.questions)]
        shown = [[text] * 5 for text in passages] if scenario.system.retrieve else None
        short = [text[:200] for text in passages]
        import pandas as pd

        return pd.DataFrame({
            "sample_id": [f"g{n:03d}" for n in range(1, len(short) + 1)], "question": short, "answer": short,
            "ground_truth_answer": short, "ground_truth_contexts": [[text] for text in passages],
            "retrieved_contexts": shown,
        })  # fmt: skip

    def bill(self, text: str, need: Estimate, **words: Any) -> int:
        """Print what a dry run estimates."""
        click.echo(self.say(text, **{name: count(n) for name, n in vars(need).items()}, **words))
        return PASSED

    def write(self, table: pd.DataFrame, *, complete: bool, **stopped: Any) -> int:
        """Write scores, or cases as one JSON object a line, record them, and return the exit code."""
        from ragnb.inputs.stages import MAKES_CASES, record_stage
        from ragnb.readers import to_csv_text

        text = to_csv_text(table)
        if self.name in MAKES_CASES:
            text = str(table.to_json(orient="records", lines=True, force_ascii=False))
        write_whole(self.out, text)
        record_stage(self.name, self.scenario, self.out, complete=complete, **stopped)
        return PASSED if complete else BLOCKED

    def means(self, scores: pd.DataFrame, metrics: Sequence[Metric], *total: str) -> Iterator[str]:
        """Yield one line per metric (and system): mean, interval and counts."""
        from ragnb.weights import weighted_means

        scenario, by = self.scenario, "system" if len(set(scores.get("system", ()))) > 1 else None
        settings = {name: getattr(scenario, name) for name in ("cluster", "doc_weights", "doc", "level")}
        means = weighted_means(scores, metrics=metrics, by=by, **settings)
        keys = [*([by] if by else []), "metric"]
        head = [*("" for _ in keys[1:]), self.say("column.metric"), self.say("evaluate.mean")]
        rows = [[*head, *(self.say(f"evaluate.{word}") for word in _COUNTS.values())]]
        for row in means[means["metric"].isin([*(m.name for m in metrics), *total])].to_dict("records"):
            mean = with_interval(row["value"], row["low"], row["high"])
            rows.append([*(str(row[key]) for key in keys), mean, *(count(row[name]) for name in _COUNTS)])
        return terminal.text_table(rows)

    def written(self, text: str, spent: dict[str, Any]) -> str:
        """Return the paths of scores and store, and the number of calls."""
        return self.say(text, out=one_line(self.out), store=one_line(self.store), calls=spent["calls"])


@command("evaluate")
def evaluate_command(source: Path, metrics: Sequence[str], embeddings: str | None, **asked: Any) -> int:
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
    from ragnb.scoring import SCORERS, evaluate, expected

    stage = Stage("evaluate", source, "scores.csv", asked)
    if embeddings and "judge" not in stage.profiles:
        raise RagnbError("--embeddings uses the judge's endpoint, and the scenario has no llm_profiles.judge")
    judge, vectors = stage.client(), stage.client(embeddings) if embeddings else None
    cases, chosen = stage.cases(), _metrics(stage, metrics, judge, vectors)
    how: dict[str, Any] = {"metrics": chosen, "llm": judge, "embeddings": vectors, "store": stage.store}
    how |= {"lang": stage.scenario.lang, "refusal": stage.scenario.refusal}
    if stage.dry_run:
        return stage.bill("evaluate.dry_run", expected(cases, **how))
    scores = evaluate(cases, name=stage.scenario.name, **how)
    spent = scores.attrs["spent"]
    code = stage.write(scores, complete=not (scores.attrs["failed"] or spent["stopped"]))
    for row in scores.attrs["notes"]:
        terminal.note(row["text"])
    computed = [METRICS.get(name, Metric(name)) for name in SCORERS if f"{name}__status" in scores]
    click.echo("\n".join([*stage.means(scores, computed), stage.written("evaluate.written", spent)]))
    return code


def _metrics(stage: Stage, named: Sequence[str], judge: object, vectors: object) -> list[str] | None:
    """Return the requested metrics, else those of the scenario that can be computed, else None."""
    from ragnb.scoring import SCORERS

    if named:
        return list(named)
    wanted = [metric if isinstance(metric, str) else metric.name for metric in stage.scenario.metrics or ()]
    known = [SCORERS[name] for name in wanted if name in SCORERS]
    fit = [s.name for s in known if (judge or not any(s.calls)) and (vectors or not s.embeds)]
    left = [name for name in wanted if name not in fit]
    if left:
        terminal.note(stage.say("evaluate.left_out", metrics=", ".join(left)))
    return fit or None


@command("judge")
def judge_command(
    source: Path, send: Sequence[str], attempts: int | None, system: str | None, arena: bool,
    stop_when_decided: bool, **asked: Any,
) -> int:  # fmt: skip
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
    from ragnb.readers import to_csv_text

    stage = Stage("judge", source, "judged.csv", asked)
    scenario, say, client = stage.scenario, stage.say, stage.client()
    if client is None:
        raise RagnbError(f"{one_line(source)}: it names no judge; add llm_profiles: judge: base_url and model")
    loop = _loop(stage, client, attempts, system)
    if loop and stop_when_decided:
        raise RagnbError("--improve needs the score of every answer; leave out --stop-when-decided")
    rubric = (scenario.rubric or Rubric()).weighed(scenario.metric_weights)
    asked |= {"store": stage.store, "lang": scenario.lang, "rubric": rubric, "parameters": terminal.sent(send)}
    cases = stage.cases()
    if arena and ("system" not in cases or cases["system"].nunique() < 2):
        raise RagnbError("--arena compares systems; give the cases a column system that names two or more")
    if loop:
        need_one_system(cases)
    passing_score = {"metric": one_line(rubric.passing.metric), "at": f"{rubric.passing.threshold:g}"}
    if stage.dry_run:
        click.echo("\n".join(_rubric_lines(rubric, passing_score, scenario.lang)))
        stage.bill("judge.cli.need", dry_run(cases, client, **asked))
        if loop:
            most = dry_run(cases, client, **asked | {"store": None, "probes": False})
            n, answers = loop["attempts"], most.calls // asked["repeats"]
            # A message to the endpoint holds a question, an answer and a suggestion.
            tokens = most.tokens + (0 if system else 3 * REPLY_TOKENS * answers)
            click.echo(say("judge.loop.most", answers=n * answers, calls=n * most.calls, tokens=n * tokens))
        return PASSED
    asked |= {"stop_when": _settling(scenario)} if stop_when_decided else {}
    asked |= {"doc": scenario.doc, "doc_weights": scenario.doc_weights}
    scores = judge(cases, client=client, name=scenario.name, **asked)
    about = scores.attrs["judge"]
    status = scores[f"{rubric.passing.metric}__status"]
    open_ = status.isin(["failed"] if about["stopped_early"] else ["failed", "missing"]).any()
    early = {name: about[name] for name in ("stopped_early", "calls_saved") if about["calls_saved"]}
    stage.write(scores, complete=not open_, **early)
    snapshot = scenario.snapshot_text(relative_to=stage.out.parent)
    write_whole(stage.out.with_suffix(".snapshot.yaml"), snapshot)
    click.echo("\n".join(f"- {one_line(text)}" for text in scores.notes["text"]))
    numbers = {"ok": int((status == "ok").sum()), "n": len(scores), "passing": int(scores["is_passing"].sum())}
    judged = say("judge.cli.judged", model=one_line(client.profile.model), **numbers, **passing_score)
    written = stage.written("judge.cli.written", about["spent"])
    means = stage.means(scores, rubric.metrics, "weighted_score")
    click.echo("\n".join([*means, judged, written, *(_arena(stage, scores, rubric) if arena else ())]))
    if loop and not about["stopped"]:
        asked |= {"probes": False, "doc": scenario.cluster or scenario.doc, "level": scenario.level}
        found = improve(cases, client=client, **loop, **asked)
        table = stage.out.with_name("improved.csv")
        write_whole(table, to_csv_text(found.kept))
        click.echo("\n".join(["", *(f"- {one_line(text)}" for text in found.notes["text"])]))
        click.echo(say("judge.loop.written", out=one_line(table)))
        open_ |= found.notes["code"].isin(["stopped", "unanswered"]).any()
    return BLOCKED if open_ else PASSED


def _loop(stage: Stage, client: Client, attempts: int | None, named: str | None) -> dict[str, Any] | None:
    """Return the arguments of `improve`: the system is a function, else the model of llm_profiles.answer."""
    from ragnb.scoring import named_function

    named = named or (stage.scenario.system.improve if attempts else None)
    if attempts is None and named is None:
        return None
    folder = stage.scenario.path.parent if stage.scenario.path else Path()
    system: Any = named_function(named, folder) if named else stage.client(role="answer")
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
            raise RagnbError(f"gate {gate.name!r} is on a total of other scores or another scale; {_WHOLE}")
        if scenario.undecided != "value":
            raise RagnbError(f"gate {gate.name!r} is decided by an interval; {_WHOLE}")
    return scenario.gates or ()


def _arena(stage: Stage, scores: pd.DataFrame, rubric: Rubric) -> Iterator[str]:
    """Yield the ranks of the systems, and each pair in order of rank."""
    from ragnb.comparison import standings

    names, say = ("cluster", "doc_weights", "doc", "level", "rescale"), stage.say
    how = {name: getattr(stage.scenario, name) for name in names}
    found = standings(scores, metrics=list(rubric.metrics), **how)
    yield ""
    for name, rank in found.places.items():
        yield say("judge.cli.rank", system=one_line(name), rank=rank)
    order = {name: place for place, name in enumerate(found.places)}
    level = f"{100 * how['level']:g} %"
    head = ["", say("column.compared"), say("column.difference", level=level), say("column.wins")]
    pairs = found.pairs[found.pairs["candidate"].map(order) < found.pairs["baseline"].map(order)]
    rows = [
        [
            f"{one_line(row['candidate'])} − {one_line(row['baseline'])}", say(f"compared.{row['outcome']}"),
            with_interval(row["value"], row["low"], row["high"]), f"{row['wins']}/{row['ties']}/{row['losses']}",
        ]
        for row in pairs.to_dict("records")
    ]  # fmt: skip
    yield from terminal.text_table([head, *rows])


def _rubric_lines(rubric: Rubric, bar: dict[str, str], lang: str) -> Iterator[str]:
    """Yield the lines of a rubric: scale, weights, passing threshold, and the bands of its dimensions."""
    from ragnb.judging.verdict import anchors, bands

    say = texts.load(lang)
    words = bar | {"low": f"{rubric.low:g}", "high": f"{rubric.high:g}"}
    words |= {"weights": ", ".join(f"{one_line(d.name)} {d.weight:g}" for d in rubric.dimensions)}
    words |= {"steps": say("judge.decimals" if rubric.decimals else "judge.wholes")}
    yield say("judge.cli.rubric", anchors=len(anchors(rubric, lang)), **words)
    yield from (f"{'    ' if line[0] == ' ' else '  '}{one_line(line)}" for line in bands(rubric, lang))


@command("generate")
def generate_command(source: Path, **asked: Any) -> int:
    """Make a question set from the documents of a SCENARIO.

    SCENARIO names documents: (a folder of text or Markdown, or a table of passages) and llm_profiles.dataset;
    its key
    generation: says how many questions and of which kinds. The evidence of each answer stands word for word in its
    passage; what does not is left out and counted.

    Writes questions.jsonl and review.csv to reports/<scenario>/. Fill in the column decision (keep, edit,
    drop) and run the same command again: the questions follow the review, and nothing is generated twice.

    \b
    Examples
      ragnb generate scenarios/mine.yaml --dry-run      estimate the cost; nothing is sent
      ragnb generate scenarios/mine.yaml -p "generation={questions: 40, personas: [a new employee]}"

    Exit code: 0 if there are as many questions as wanted, 1 if fewer, 2 on bad input, 130 after Ctrl-C.
    """
    from ragnb.readers import to_csv_text
    from ragnb.scoring import generate_cases, generation_cost, passages_of
    from ragnb.scoring.generation import review_sheet, reviewed, with_decisions
    from ragnb.traces import check_gold

    stage = Stage("generate", source, "questions.jsonl", asked)
    scenario, say, client = stage.scenario, stage.say, stage.client(role="dataset")
    if scenario.documents is None or client is None:
        raise RagnbError(f"{one_line(source)}: generating needs documents: and llm_profiles: dataset:; add both")
    want = scenario.generation
    reading: dict[str, Any] = {"encoding": scenario.encoding, "columns": dict(scenario.columns)}
    how: dict[str, Any] = {"n": want.questions, "lang": scenario.lang, **want.model_dump(exclude={"questions"})}
    how |= {"llm": client, "store": stage.store, **reading}
    passages = passages_of(scenario.documents, **reading)
    if stage.dry_run:
        sizes = {"n": want.questions, "passages": len(passages), "documents": passages["doc_name"].nunique()}
        need = generation_cost(scenario.documents, **how)
        return stage.bill("generate.dry_run", need, **sizes)
    made = generate_cases(scenario.documents, **how)
    if made.empty:
        why = listing(made.attrs["dropped"])
        raise RagnbError(f"no usable question ({why}); use a stronger model or longer documents")
    review = stage.out.with_name("review.csv")
    given = review if review.is_file() else review_sheet(made)
    sheet, cases = with_decisions(made, given), reviewed(made, given)
    write_whole(review, to_csv_text(sheet))
    code = stage.write(cases, complete=len(made) >= want.questions)
    kinds = {kind: int((cases["kind"] == kind).sum()) for kind in ("single", "multi", "unanswerable")}
    click.echo(say("generate.written", n=len(cases), wanted=want.questions, out=one_line(stage.out)))
    click.echo(say("generate.kinds", **kinds, documents=cases["doc_name"].nunique()))
    if dropped := made.attrs["dropped"]:
        counts = ", ".join(f"{n} {say(f'generate.{why}')}" for why, n in dropped.items())
        click.echo(say("generate.dropped", counts=counts))
    decided = int((sheet["decision"] != "").sum())
    click.echo(say("generate.review", file=one_line(review), reviewed=decided, n=len(made)))
    found = check_gold(cases.rename(columns={"source_units": "gold_ids"}), lang=scenario.lang)
    for text in found.query("not fine")["text"]:
        terminal.note(text)
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
        raise RagnbError(f"{one_line(source)}: it names no system; add system: generate: or llm_profiles: answer:")
    name = system.name or system.generate or (client.profile.model if client else "")
    cases = stage.cases()
    if stage.dry_run:
        n, calls = len(cases), len(cases) if client else 0
        return stage.bill("answer.dry_run", Estimate(n, 0, 0, calls, 1000 * calls), system=one_line(name))
    folder = scenario.path.parent if scenario.path else Path.cwd()
    functions = {"retrieve": system.retrieve, "generate": system.generate}
    found: dict[str, Any] = {role: named_function(text, folder) for role, text in functions.items() if text}
    if client:
        found["generate"] = endpoint(client, lang=scenario.lang, refusal=scenario.refusal[0])
    clients = (client,) if client else ()
    how: dict[str, Any] = {"store": stage.store, "clients": clients, "concurrency": stage.limits["concurrency"]}
    done = answer_cases(cases, **found, system=name, version=system_version(scenario), **how)
    status = done["answer__status"]
    code = stage.write(done, complete=bool(status.eq("ok").all()))
    empty = sum(isinstance(one, list) and not one for one in done["retrieved_contexts"])
    numbers = {"ok": int(status.eq("ok").sum()), "n": len(done), "empty": empty}
    click.echo(say("answer.written", system=one_line(name), out=one_line(stage.out), **numbers))
    for reason, n in done.loc[status == "failed", "answer__reason"].value_counts().head(3).items():
        click.echo(say("answer.failed", n=n, reason=one_line(reason, 200)))
    return code


@command("run")
def run_command(source: Path, stages: Sequence[str], dry_run: bool, lang: str | None, **asked: Any) -> int:
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
    named, profiles, say = scenario.cases is not None, scenario.llm_profiles, texts.load(scenario.lang)
    has_cases = named or scenario.documents is not None
    wanted: dict[str, tuple[click.Command, bool]] = {
        "generate": (generate_command, has_cases and not named and "dataset" in profiles),
        "answer": (answer_command, bool(scenario.system.generate or "answer" in profiles)),
        "evaluate": (evaluate_command, has_cases), "judge": (judge_command, has_cases and "judge" in profiles),
        "report": (report_command, True),
    }  # fmt: skip
    order = [stage for stage, (_, is_named) in wanted.items() if (stage in stages if stages else is_named)]
    for place, stage in enumerate(order, 1):
        where = {"place": place, "of": len(order), "stage": stage}
        kept = None if stage == "report" else stage_table(stage, with_cases(scenario, stage))
        if kept and kept.complete:
            click.echo(say("run.unchanged", **where, table=one_line(kept.path)))
            continue
        if dry_run and stage == "report":
            continue
        click.echo(say("run.stage", **where))
        # The bill comes first, also when it is to be paid.
        given = [asked | {"source": source, "dry_run": alone} for alone in ([True] if dry_run else [True, False])]
        if stage == "report":
            given = [{"scenarios": [source], "parameters": asked["parameters"]}]
        for options in given:
            worst = max(worst, click.get_current_context().invoke(wanted[stage][0], lang=lang, **options))
    return worst


COMMANDS = (
    run_command, generate_command, answer_command, evaluate_command, judge_command, report_command, check_command
)
