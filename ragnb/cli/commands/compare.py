"""``ragnb compare`` and ``ragnb accept``: a run beside another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.terminal import PASSED, command
from ragnb.errors import RagnbError
from ragnb.files import json_text

if TYPE_CHECKING:
    import pandas as pd

    from ragnb.comparison.view import View


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

    selected = ("candidate", "system", "on", "by", "metrics", "primary")
    settings = terminal.overrides(asked["parameters"], asked["lang"])
    if asked["ratings"] is not None:
        settings["ratings"] = asked["ratings"]
    view, table, slices = compare_view(
        new,
        base,
        settings=settings,
        margin=_margin(asked["margin"]),
        **{name: asked[name] for name in selected},
    )
    deciding = table[table["primary"]]
    if asked["gate"] and deciding.empty:
        raise RagnbError("--gate needs a metric that decides; name it with --primary")
    # With several candidates, the worst of their outcomes.
    outcomes = set(deciding["outcome"])
    outcome = next((word for word in _FROM_WORST if word in outcomes), None)
    head = view.head or [texts.load(view.lang)("compare.no_word")]
    tables = [(name, terminal.block_rows(block)) for name, block in view.tables]
    click.echo("\n".join(terminal.report_lines(head, tables, view.notes)))
    parts = {"outcome": outcome, "notes": view.notes, "metrics": plain_records(table)}
    if slices is not None:
        parts["slices"] = plain_records(slices)
    if view.operations is not None and len(view.operations):
        parts["operations"] = plain_records(view.operations)
    terminal.write_files(
        asked,
        markdown=view.markdown,
        html=view.html,
        junit=partial(_junit, view.title, table, view.lang, asked["gate"] or "margin"),
        json_file=partial(json_text, parts),
        github=partial(_comment, view, new, base, asked, settings),
    )
    if asked["gate"]:
        return _gate_code(table, asked["gate"])
    return PASSED


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


def _comment(
    view: View, new: str, base: str | None, asked: Mapping[str, Any], settings: Mapping[str, Any]
) -> str:
    """Return the comment of a pull request, with the questions of the metric that decides."""
    import pandas as pd

    from ragnb.comparison import changed_questions
    from ragnb.comparison.comment import comment

    selected = {name: asked[name] for name in ("candidate", "system", "on")}
    try:
        changed = changed_questions(
            new, baseline=base, metric=asked["primary"], n=50, **selected, **settings
        )
    except RagnbError:  # no metric decides: the view says so
        return comment(view, pd.DataFrame({"change": []}))
    return comment(view, changed)


_FROM_WORST = ("worse", "undecided", "worse_within", "same", "better_within", "better")


def _gate_code(table: pd.DataFrame, policy: Any) -> int:
    """Return the exit code of a comparison under a policy of --gate."""
    from ragnb.comparison.estimates import Verdict, gate_verdict

    is_asked = table["primary"]
    if policy == "all":
        is_asked = is_asked | (table["outcome"] == "worse")
    verdicts = {gate_verdict(row, policy) for row in table[is_asked].to_dict("records")}
    # The worst comes last in the enumeration, whatever the order of the exit codes.
    return int(next(verdict for verdict in reversed(Verdict) if verdict in verdicts))


def _margin(given: Sequence[str]) -> float | dict[str, float] | None:
    """Read the margins: one number for all metrics, or NAME=VALUE texts."""
    if len(given) == 1 and "=" not in given[0]:
        return _margin_of(given[0])
    margins = dict[str, float]()
    for text in given:
        name, value = terminal.pair("--margin", "context_recall=0.02", text)
        margins[name] = _margin_of(value)
    return margins or None


def _margin_of(value: str) -> float:
    """Read one margin."""
    try:
        return float(value)
    except ValueError:
        raise RagnbError(
            f"--margin {value!r} is not a number; write 0.02, or context_recall=0.02"
        ) from None


def _junit(title: str, table: pd.DataFrame, lang: str, policy: Any) -> str:
    """Return a test suite with one case per metric; those that the policy of --gate asks may fail."""
    from ragnb.comparison.estimates import Verdict, gate_verdict
    from ragnb.comparison.view import headline
    from ragnb.diagnostics import junit

    kinds = {Verdict.BLOCKED: "failure", Verdict.NOT_PROVEN: "skipped"}
    cases = []
    say = texts.load(lang)
    has_several_baselines = table["baseline"].nunique() > 1
    for row in table.to_dict("records"):
        name = f"{row['candidate']}: {row['metric']}"
        if has_several_baselines:
            name += f" ({row['baseline']})"
        kind = "system-out"
        is_asked = row["primary"] or (policy == "all" and row["outcome"] == "worse")
        if is_asked:
            kind = kinds.get(gate_verdict(row, policy), kind)
        cases.append((name, kind, row["outcome"], headline(row, say)))
    return junit(title, cases)
