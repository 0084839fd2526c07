"""``ragnb judge``: have a model judge answers by a rubric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.commands.stage import Stage, profile_step
from ragnb.cli.outputs import check_stage_outputs
from ragnb.cli.terminal import BLOCKED, PASSED, command
from ragnb.errors import RagnbError
from ragnb.files import write_whole
from ragnb.markup import one_line, with_interval
from ragnb.schema import TOTAL, Gate, Rubric

if TYPE_CHECKING:
    import pandas as pd

    from ragnb.scenario import Scenario
    from ragnb.store import Client

_WHOLE = "judge the whole run, without stopping it early"


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
    from ragnb.judging import dry_run, judge
    from ragnb.judging.plan import need_one_system

    stage = Stage("judge", source, "judged.csv", asked)
    scenario = stage.scenario
    client = stage.client()
    if client is None:
        raise RagnbError(
            f"{one_line(source)}: it names no judge; add one to the scenario, or for this run: "
            f"-p {profile_step('judge')}"
        )
    loop = _loop(stage, client, attempts, system)
    if loop is not None:
        improved = {"--out (improved answers)": stage.out.with_name("improved.csv")}
        check_stage_outputs("judge", source, scenario, improved)
        if stop_when_decided:
            raise RagnbError(
                "--improve needs the score of every answer; leave out --stop-when-decided"
            )
    rubric = (scenario.rubric or Rubric()).weighed(scenario.metric_weights)
    # From here on `asked` has the arguments of `judge`, `dry_run` and `improve`.
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
    if loop is not None:
        need_one_system(cases)
    if stage.dry_run:
        click.echo("\n".join(_rubric_lines(rubric, scenario.lang)))
        stage.bill("judge.cli.need", dry_run(cases, client, **asked))
        if loop is not None:
            click.echo(_most_of_loop(stage, cases, client, loop, asked, own_system=bool(system)))
        return PASSED
    asked |= {"doc": scenario.doc, "doc_weights": scenario.doc_weights}
    if stop_when_decided:
        asked["stop_when"] = _settling(scenario)
    scores = judge(cases, client=client, name=scenario.name, **asked)
    is_open = _is_open(scores, rubric)
    _write(stage, scores, is_open=is_open)
    ranks = _arena(stage, scores, rubric) if arena else ()
    click.echo("\n".join(_result_lines(stage, client, scores, rubric, ranks)))
    if loop is not None and not scores.about["stopped"]:
        is_open |= _improved(stage, cases, client, loop, asked)
    if is_open:
        return BLOCKED
    return PASSED


def _is_open(scores: pd.DataFrame, rubric: Rubric) -> bool:
    """Return whether answers are still to be judged."""
    status = scores[f"{rubric.passing.metric}__status"]
    open_statuses = ["failed"]
    # What is not judged because the gates are decided is not open.
    if not scores.about["stopped_early"]:
        open_statuses.append("missing")
    return bool(status.isin(open_statuses).any())


def _write(stage: Stage, scores: pd.DataFrame, *, is_open: bool) -> None:
    """Write the table of scores, and beside it the settings that it was made with."""
    about = scores.about
    early = {}
    if about["calls_saved"]:
        early = {name: about[name] for name in ("stopped_early", "calls_saved")}
    stage.write(scores, complete=not is_open, **early)
    snapshot = stage.scenario.snapshot_text(relative_to=stage.out.parent)
    write_whole(stage.out.with_suffix(".snapshot.yaml"), snapshot)


def _result_lines(
    stage: Stage, client: Client, scores: pd.DataFrame, rubric: Rubric, ranks: Iterable[str]
) -> list[str]:
    """Return what is said of the scores; `ranks` are the lines of an arena."""
    about = scores.about
    status = scores[f"{rubric.passing.metric}__status"]
    judged = stage.say(
        "judge.cli.judged",
        model=one_line(client.profile.model),
        ok=int((status == "ok").sum()),
        n=len(scores),
        passing=int(scores["is_passing"].sum()),
        **_passing_words(rubric),
    )
    return [
        *terminal.as_list(scores.notes["text"]),
        *stage.means(scores, rubric.metrics, TOTAL),
        judged,
        stage.written("judge.cli.written"),
        *ranks,
        stage.closing(about["account"], probes=len(about["probes"])),
    ]


def _passing_words(rubric: Rubric) -> dict[str, str]:
    """Return the metric and the threshold by which an answer passes, as texts name them."""
    return {"metric": one_line(rubric.passing.metric), "at": f"{rubric.passing.threshold:g}"}


class _Loop(NamedTuple):
    """The retry loop of --improve, as `improve` takes it; `name` is that of the system."""

    attempts: int
    name: str
    system: Any


def _most_of_loop(
    stage: Stage,
    cases: pd.DataFrame,
    client: Client,
    loop: _Loop,
    asked: Mapping[str, Any],
    *,
    own_system: bool,
) -> str:
    """Return what the attempts of the loop take at most."""
    from ragnb.judging import dry_run
    from ragnb.judging.plan import REPLY_TOKENS

    # At most, every answer is tried again in each attempt, and no new answer is in the store.
    most = dry_run(cases, client, **{**asked, "store": None, "probes": False})
    n = loop.attempts
    answers = most.calls // asked["repeats"]
    tokens = most.tokens
    if not own_system:
        # A message to the endpoint holds a question, an answer and a suggestion.
        tokens += 3 * REPLY_TOKENS * answers
    return stage.say(
        "judge.loop.most", answers=n * answers, calls=n * most.calls, tokens=n * tokens
    )


def _improved(
    stage: Stage,
    cases: pd.DataFrame,
    client: Client,
    loop: _Loop,
    asked: Mapping[str, Any],
) -> bool:
    """Run the loop, write its best answers and print its gain; return whether answers are still open."""
    from ragnb.judging import improve

    scenario = stage.scenario
    settings = {
        **asked,
        "probes": False,
        "doc": scenario.cluster or scenario.doc,
        "level": scenario.level,
    }
    improved = improve(cases, client=client, **loop._asdict(), **settings)
    table = stage.out.with_name("improved.csv")
    terminal.write_csv(table, improved.kept)
    lines = ["", *terminal.as_list(improved.notes["text"])]
    lines.append(stage.say("judge.loop.written", out=one_line(table)))
    lines.append(stage.closing(improved.account, own_functions=callable(loop.system)))
    click.echo("\n".join(lines))
    return bool(improved.notes["code"].isin(["stopped", "unanswered"]).any())


def _loop(stage: Stage, client: Client, attempts: int | None, named: str | None) -> _Loop | None:
    """Return the loop: its system is a function, else the model of llm_profiles.answer."""
    from ragnb.scoring import named_function

    if not named:
        # A scenario that names its function does not start the loop by itself.
        named = stage.scenario.system.improve if attempts else None
    if attempts is None and named is None:
        return None
    system: Any
    if named:
        system = named_function(named, stage.folder)
    else:
        system = stage.client(role="answer")
    if attempts is None or system is None:
        raise RagnbError(
            "the retry loop takes --improve N and the system: --system MODULE:FUNCTION, a function of question, "
            "answer and suggestion, or llm_profiles: answer: base_url and model"
        )
    if named:
        return _Loop(attempts, named, system)
    # The limits of the command hold for judge and system together.
    system.budget = client.budget
    return _Loop(attempts, system.profile.model, system)


def _settling(scenario: Scenario) -> Sequence[Gate]:
    """Return the gates of a scenario, if the judge's scores and the value alone decide them."""
    # With any of these the total of the report is not the one known while judging.
    has_other_total = scenario.scores or scenario.traces or scenario.rescale
    for gate in scenario.gates or ():
        if has_other_total and gate.metric == TOTAL:
            raise RagnbError(
                f"gate {gate.name!r} is on a total of other scores or another scale; {_WHOLE}"
            )
        if scenario.undecided != "value":
            raise RagnbError(f"gate {gate.name!r} is decided by an interval; {_WHOLE}")
    return scenario.gates or ()


def _arena(stage: Stage, scores: pd.DataFrame, rubric: Rubric) -> Iterator[str]:
    """Yield the ranks of the systems, and each pair in order of rank."""
    from ragnb.comparison import standings

    say = stage.say
    names = ("cluster", "doc_weights", "doc", "level", "rescale")
    settings = {name: getattr(stage.scenario, name) for name in names}
    ranking = standings(scores, metrics=list(rubric.metrics), **settings)
    yield ""
    for name, rank in ranking.places.items():
        yield say("judge.cli.rank", system=one_line(name), rank=rank)
    level = f"{100 * settings['level']:g} %"
    order = list(ranking.places)
    rows = [["", say("column.compared"), say("column.difference", level=level), say("column.wins")]]
    for row in ranking.pairs.to_dict("records"):
        # Each pair comes in both directions: shown is the one that ranks higher, minus the other.
        if order.index(row["candidate"]) > order.index(row["baseline"]):
            continue
        rows.append(
            [
                f"{row['candidate']} − {row['baseline']}",
                say(f"compared.{row['outcome']}"),
                with_interval(row["value"], row["low"], row["high"]),
                f"{row['wins']}/{row['ties']}/{row['losses']}",
            ]
        )
    yield from terminal.text_table(rows)


def _rubric_lines(rubric: Rubric, lang: str) -> Iterator[str]:
    """Yield the lines of a rubric: scale, weights, passing threshold, and the bands of its dimensions."""
    from ragnb.judging.prompt import anchors, bands

    say = texts.load(lang)
    weights = [f"{one_line(d.name)} {d.weight:g}" for d in rubric.dimensions]
    yield say(
        "judge.cli.rubric",
        low=f"{rubric.low:g}",
        high=f"{rubric.high:g}",
        steps=say("judge.decimals" if rubric.decimals else "judge.wholes"),
        weights=", ".join(weights),
        anchors=len(anchors(rubric, lang)),
        **_passing_words(rubric),
    )
    for line in bands(rubric, lang):
        # The bands of a dimension stay indented below its name.
        indent = "    " if line[0] == " " else "  "
        yield indent + one_line(line)
