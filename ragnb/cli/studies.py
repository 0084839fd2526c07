"""The commands that study results: compare, calibrate, plan and runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.terminal import BAD_INPUT, BLOCKED, NOT_PROVEN, PASSED, command
from ragnb.errors import RagnbError, listing, unknown
from ragnb.files import json_text, write_whole
from ragnb.markup import count, is_missing, number, one_line

if TYPE_CHECKING:
    import pandas as pd

_VERDICTS = {"TRUST": PASSED, "REJECT": BLOCKED, "NOT PROVEN": NOT_PROVEN}


@command("calibrate")
def calibrate_command(ratings: tuple[Path, ...], sample: int | None, golden: bool, **asked: Any) -> int:
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
      ragnb calibrate --golden --out golden.csv                    (three hard questions to fill in)
      ragnb calibrate --golden golden.csv

    Exit code: 0 TRUST, 1 REJECT, 3 NOT PROVEN, 2 bad input. For a golden set: 0 if all scores agree within the
    tolerance, 1 if one does not, 3 if a score is missing.
    """
    reading = {name: asked[name] for name in ("missing", "scale", "encoding", "judge")}
    try:
        if sample is not None:
            return _sample(ratings, sample, asked, reading)
        return _golden(ratings, asked, reading) if golden else _calibrate(ratings, asked, reading)
    except RagnbError as error:
        raise RagnbError(terminal.as_options(terminal.spoken(str(error)), "calibrate")) from error


def _calibrate(files: Sequence[Path], asked: dict[str, Any], reading: dict[str, Any]) -> int:
    """Print or write the card of some ratings."""
    from ragnb.calibration import calibrate, judge_columns, read_judged, read_labels, unrated

    if asked["out"] is not None:
        raise RagnbError("--out goes with --sample or --golden; a card is written by --markdown, --html or --json")
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
    how = ("tolerance", "target", "labels_planned", "delta", "scale", "cluster", "level", "seed", "lang")
    pairs = dict(terminal.pair("--about", "judge_id=small-8b", text) for text in asked["about"])
    truths = {"true": True, "false": False}
    about = {key: truths.get(value.strip().casefold(), value) for key, value in pairs.items()} or None
    card = calibrate(ratings, judge=judges, judged=judged, about=about, **{name: asked[name] for name in how})
    terminal.write_files(
        (asked["markdown"], card.to_markdown),
        (asked["html"], lambda: _page(card)),
        (asked["json_file"], lambda: json_text(card.to_dict())),
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
        raise RagnbError("--sample takes one table of judged answers and --out, the sheet to write: labels.csv")
    dimensions = asked["dimensions"]
    judged = _chosen(read_judged(files[0], dimensions=dimensions or None, **reading), dimensions)
    drawn = draw_labels(judged, n=n, cluster=asked["cluster"], seed=asked["seed"])
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

    say, tolerance = texts.load(asked["lang"]), asked["tolerance"]
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
    checked = check_golden(read_golden(files[0], human=asked["human"], **reading), tolerance=tolerance)
    keys = [c for c in ("item_id", "dimension", "system") if c in checked]
    numbers = {"judge": "{:g}", "human": "{:g}", "difference": "{:+.2f}"}
    rows = [["", *keys, *(say(f"golden.{name}") for name in numbers)]]
    for row in checked.to_dict("records"):
        mark = "—" if is_missing(row["within"]) else "✓" if row["within"] else "✗"
        shown = ["—" if is_missing(row[name]) else form.format(row[name]) for name, form in numbers.items()]
        rows.append([mark, *(str(row[key]) for key in keys), *shown])
    click.echo("\n".join(terminal.text_table(rows)))
    off, open_ = int((~checked["within"]).sum()), int(checked["within"].isna().sum())
    verdict = "off" if off else "open" if open_ else "fine"
    click.echo(say(f"golden.{verdict}", n=len(checked), off=off, open=open_, tolerance=f"{tolerance:g}"))
    return {"off": BLOCKED, "open": NOT_PROVEN, "fine": PASSED}[verdict]


_OUTCOMES = {"better": PASSED, "same": PASSED, "undecided": NOT_PROVEN, "worse": BLOCKED}
"""Exit code of each outcome, from best to worst."""


@command("compare")
def compare_command(new: str, base: str | None, **asked: Any) -> int:
    """Compare a NEW run with a BASE run.

    The comparison is paired: it uses the questions that both sides have.

    NEW and BASE are tables of scores, scenarios, run folders, names of scenarios with a run in reports/ (latest is
    the newest run), or runs of a store (runs.sqlite#3fa1c2d4). BASE may also be a system of NEW, and can be left
    out if the scenario sets baseline:.

    The first line gives the outcome for the metric that decides: better, worse, same or inconclusive. Same means
    that the whole confidence interval is within the margin, by default 1/20 of the metric's range.

    \b
    Examples
      ragnb compare new.csv base.csv
      ragnb compare scores.csv old_system --by doc_name
      ragnb compare latest reports/mine/20260101T000000Z-1f0c2a3b --html compare.html
      ragnb compare runs.sqlite#9b07aa10 runs.sqlite#3fa1c2d4
      ragnb compare mine.yaml baseline.csv --gate --margin 0.02 --junit compare.xml

    Exit code: 0; 2 on bad input. With --gate: 0 better or same, 1 worse, 3 inconclusive; with several candidates,
    the worst of them.
    """
    from ragnb.comparison.view import compare_view

    try:
        how = {name: asked[name] for name in ("candidate", "system", "on", "by", "metrics", "primary")}
        settings = terminal.overrides(asked["parameters"], asked["lang"])
        view, table, slices = compare_view(new, base, settings=settings, margin=_margin(asked["margin"]), **how)
        decides = table.loc[table["primary"], "outcome"]
        if asked["gate"] and decides.empty:
            raise RagnbError("--gate needs a metric that decides; name it with --primary")
    except RagnbError as error:
        raise RagnbError(terminal.as_options(terminal.spoken(str(error)), "compare")) from error
    outcome = next((word for word in reversed(_OUTCOMES) if word in set(decides)), None)
    head = view.head or [texts.load(view.lang)("compare.no_word")]
    tables = [(name, terminal.block_rows(table)) for name, table in view.tables]
    click.echo("\n".join(terminal.report_lines(head, tables, view.notes)))
    terminal.write_files(
        (asked["markdown"], view.markdown),
        (asked["html"], view.html),
        (asked["json_file"], lambda: _json(outcome, view.notes, table, slices)),
        (asked["junit"], lambda: _junit(view.title, table, view.lang)),
    )
    return _OUTCOMES[outcome] if asked["gate"] and outcome else PASSED


def _margin(given: Sequence[str]) -> float | dict[str, float] | None:
    """Read the margins: one number for all metrics, or NAME=VALUE texts."""
    plain = len(given) == 1 and "=" not in given[0]
    named = (terminal.pair("--margin", "context_recall=0.02", text) for text in given)
    pairs = {"": given[0]} if plain else dict(named)
    margins = {}
    for name, value in pairs.items():
        try:
            margins[name] = float(value)
        except ValueError:
            raise RagnbError(f"--margin {value!r} is not a number; write 0.02, or context_recall=0.02") from None
    return margins[""] if plain else margins or None


def _json(outcome: str | None, notes: list[str], table: pd.DataFrame, slices: pd.DataFrame | None) -> str:
    from ragnb.diagnostics.gates import plain_records

    parts = {"outcome": outcome, "notes": notes, "metrics": plain_records(table)}
    return json_text(parts if slices is None else parts | {"slices": plain_records(slices)})


def _junit(title: str, table: pd.DataFrame, lang: str) -> str:
    """Return a test suite with one case per metric; the one that decides fails if it is worse."""
    from ragnb.comparison.view import headline
    from ragnb.diagnostics import junit

    kinds, cases, say = {"worse": "failure", "undecided": "skipped"}, [], texts.load(lang)
    for row in table.to_dict("records"):
        kind = kinds.get(row["outcome"], "system-out") if row["primary"] else "system-out"
        cases.append((f"{row['candidate']}: {row['metric']}", kind, row["outcome"], headline(row, say)))
    return junit(title, cases)


@command("plan")
def plan_command(
    kind: Any, pilot: str | None, baseline: str | None, parameters: tuple[str, ...], json_file: Path | None,
    lang: str, **assumed: Any,
) -> int:  # fmt: skip
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
    terminal.write_files((json_file, lambda: json_text(plain_records(table))))
    return PASSED


def _sentence(row: dict[Any, Any], say: Any) -> str:
    about = row["about"] if row["system"] is None else f"{row['system']}: {row['about']}"
    words = {"about": about, **{name: number(row[name]) for name in ("expected", "target", "detectable")}}
    words |= {name: count(row[name]) for name in ("n", "needed", "more", "documents")}
    if row["reason"] is not None:
        return str(say(f"plan.{row['reason']}", **words))
    shows = is_missing(row["expected"])
    known = "" if shows or is_missing(row["n"]) else "_more"
    return str(say(f"plan.{'shows' if shows else row['kind']}{known}", **words))


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

    say = texts.load(lang)
    if not store.exists():
        raise RagnbError(f"{store}: there is no such store; name the file that judging or scoring wrote")
    if verify + claims + (export is not None) + bool(runs) > 1:
        raise RagnbError(say("runs.one_action"))
    if verify:
        return _verified(store, say)
    if export is not None:
        return _exported(store, export, say)
    if len(runs) > 1:
        raise RagnbError(
            f"{len(runs)} runs are given; give one, or compare two: "
            f"ragnb compare {store}#{runs[-1]} {store}#{runs[0]}"
        )
    with Store(store, new=False) as opened:
        if claims:
            lines = _claims(opened.claims(), say)
        elif not runs:
            lines = _runs(opened.runs(), say)
        else:
            lines = _run(opened.frame(runs[0]), say)
        click.echo("\n".join(lines))
    return PASSED


def _verified(store: Path, say: Any) -> int:
    from ragnb.store.store import VERSION, examined

    found = examined(store)
    found.file.close()
    whole = "runs.broken" if found.wrong else "runs.whole"
    click.echo(say(whole, store=one_line(store), version=VERSION, **found.rows))
    save = f"ragnb runs {shlex.quote(str(store))} --export saved.jsonl"
    return _outcome(found.wrong, say("runs.save", command=save))


def _exported(store: Path, file: Path, say: Any) -> int:
    from ragnb.store.store import exported

    if file.exists() and file.samefile(store):
        raise RagnbError(f"{file}: this is the store itself; name another file")
    rows = list(exported(store))
    write_whole(file, "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows))
    end = rows[-1]
    click.echo(say("runs.exported", file=one_line(file), **end["rows"]))
    return _outcome(end["wrong"], say("runs.lost", damaged=end["damaged"], **end["lost"]))


def _outcome(wrong: Sequence[str], next_step: str) -> int:
    """Print the problems of a store and the next step."""
    if not wrong:
        return PASSED
    click.echo("\n".join([*(f"- {one_line(finding)}" for finding in wrong), next_step]))
    return BAD_INPUT


def _table(say: Any, words: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table with translated column heads."""
    return terminal.text_table([[say(f"runs.{word}") for word in words], *rows])


def _claims(claims: pd.DataFrame, say: Any) -> Iterator[str]:
    if claims.empty:
        return iter([say("runs.unclaimed")])
    words = ["process", "host", "cells", "since", "until"]
    known = claims.assign(process=[process or "?" for process in claims["process"]])
    rows = [[str(cell or "—").removesuffix("+00:00") for cell in row] for row in known[words].to_numpy(object)]
    return _table(say, words, rows)


def _runs(runs: pd.DataFrame, say: Any) -> Iterator[str]:
    if runs.empty:
        return iter([say("runs.none")])
    counts = ["cells", "ok", "not_applicable", "failed", "pending", "calls"]
    rows = []
    for run in runs.to_dict("records"):
        tokens = " + ".join(count(run[word]) for word in ("tokens_in", "tokens_out"))
        minutes, seconds = divmod(round(run["seconds"]), 60)
        took = f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
        dates = [str(run[word] or "—")[:16].replace("T", " ") for word in ("started", "last")]
        numbers = [*(count(run[word]) for word in counts), tokens, took]
        numbers[4] += f" ({say('runs.stopped_early')})" if run["stopped_early"] else ""
        rows.append([run["run"], run["name"] or "—", *numbers, run["models"] or "—", *dates])
    return _table(say, ["run", "name", *counts, "tokens", "took", "models", "started", "last"], rows)


def _run(cells: pd.DataFrame, say: Any) -> Iterator[str]:
    statuses, words = ["ok", "not_applicable", "failed", "pending"], ["sample_id", "what", "reason", "reply"]
    import pandas as pd

    by_status = pd.crosstab(cells["what"], cells["status"])
    by_status = by_status.reindex(index=cells["what"].unique(), columns=statuses, fill_value=0)
    rows = [[str(what), *map(count, numbers)] for what, *numbers in by_status.itertuples()]
    yield from _table(say, ["what", *statuses], rows)
    failed = cells.loc[cells["status"] == "failed", words]
    if len(failed):
        yield ""
        rows = [[one_line(cell or "—", 100) for cell in row] for row in failed.to_numpy(object)]
        yield from _table(say, words, rows)


COMMANDS = compare_command, calibrate_command, plan_command, runs_command
