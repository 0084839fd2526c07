"""`ragnb compare`: is the new run better? One word with its interval, a table, notes, and an exit code for CI."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd

from ragnb import markup, texts
from ragnb.cli.parameters import as_options, command, overrides, pair
from ragnb.cli.terminal import BLOCKED, NOT_PROVEN, PASSED, spoken, text_table, write_files
from ragnb.errors import RagnbError, unknown
from ragnb.files import json_text
from ragnb.markup import MISSING, Column, count, number, one_line, p_value
from ragnb.texts import counted

if TYPE_CHECKING:
    from ragnb.comparison.pairs import Pairs

_CODES = {"better": PASSED, "same": PASSED, "undecided": NOT_PROVEN, "worse": BLOCKED}
"""The exit code of each outcome, from good to bad."""
_TONES = {"better": "good", "same": "good", "undecided": "watch", "worse": "bad"}


@command("compare")
def compare_command(new: str, base: str | None, **asked: Any) -> int:
    """Compare a NEW run with a BASE run on the questions that both were asked: better, worse or the same?

    NEW and BASE are tables of scores, scenarios, run folders, names of scenarios with a run in reports/ (latest is
    the newest of all), or runs of a store (runs.sqlite#3fa1c2d4). BASE may also be a system of NEW. It may be left
    out where the scenario names its baseline:.

    The first line says better, worse, same or inconclusive, for the metric that decides. Same means that the whole
    confidence interval lies within the margin, by default 1/20 of the metric's range.

    \b
    Examples
      ragnb compare new.csv base.csv
      ragnb compare scores.csv old_system --by doc_name
      ragnb compare latest reports/mine/20260101T000000Z-1f0c2a3b --html compare.html
      ragnb compare runs.sqlite#9b07aa10 runs.sqlite#3fa1c2d4
      ragnb compare mine.yaml baseline.csv --gate --margin 0.02 --junit compare.xml

    Exit code: 0. With --gate: 0 better or same, 1 worse, 3 inconclusive; of several candidates, that of the worst.
    2 on bad input.
    """
    try:
        view, table, slices = _compared(new, base, asked)
        decides = table.loc[table["primary"], "outcome"]
        if asked["gate"] and decides.empty:
            raise RagnbError("--gate needs a metric that decides; name it with --primary")
    except RagnbError as error:
        raise RagnbError(as_options(spoken(str(error)), "compare")) from error
    outcome = next((word for word in reversed(_CODES) if word in set(decides)), None)
    click.echo("\n".join(view.lines()))
    write_files(
        (asked["markdown"], view.markdown),
        (asked["html"], view.html),
        (asked["json_file"], lambda: _json(outcome, view.notes, table, slices)),
        (asked["junit"], lambda: _junit(view.title, table, view.lang)),
    )
    return _CODES[outcome] if asked["gate"] and outcome else PASSED


def _compared(
    new: str, base: str | None, asked: dict[str, Any]
) -> tuple[_View, pd.DataFrame, pd.DataFrame | None]:
    """Compare two runs; return what is shown, the table of `ragnb.compare`, and that of the slices."""
    from ragnb.calibration import read_ratings
    from ragnb.comparison.baseline import changes
    from ragnb.comparison.differences import beside_people, compared, paired_runs
    from ragnb.comparison.source import run_of

    settings, by = overrides(asked["parameters"], asked["lang"]), asked["by"]
    run = run_of(new, system=asked["system"], settings=settings)
    how = {name: asked[name] for name in ("candidate", "system", "on", "by")}
    other, pairs = paired_runs(run, base, settings=settings, **how)
    scenario, notes = run.scenario, changes(run, other, pairs)
    pairs = [_only(one, asked["metrics"]) for one in pairs] if asked["metrics"] else pairs
    options = {"margin": _margin(asked["margin"]), "primary": asked["primary"]}
    table = pd.concat([compared(one, scenario, **options) for one in pairs], ignore_index=True)
    slices = by and pd.concat([compared(one, scenario, by=by, **options) for one in pairs], ignore_index=True)
    if scenario.ratings is not None:
        ratings = read_ratings(scenario.ratings, encoding=scenario.encoding)
        table = beside_people(table, pairs, ratings, scenario.level)
    say = texts.load(scenario.lang)
    names = {"new": ", ".join(one.candidate for one in pairs), "base": pairs[0].baseline}
    head = {_headline(row, say): row["outcome"] for row in table[table["primary"]].to_dict("records")}
    shown = [(say("compare.metrics"), *_shown(table, pairs, say))]
    if slices is not None:
        decided = slices[slices["primary"]] if head else slices
        for metric, rows in decided.groupby("metric", sort=False):
            shown.append((say("compare.by", by=by, metric=metric), *_shown(rows, pairs, say, by)))
    said = [f"{row['about']}: {row['text']}" if len(pairs) > 1 and row["about"] else row["text"] for row in notes]
    view = _View(scenario.lang, say("compare.title", **names), head, shown, [*said, *_notes(table, pairs, say)])
    return view, table, slices


def _only(pairs: Pairs, names: Sequence[str]) -> Pairs:
    """Return the pairs with these metrics alone."""
    have = [metric.name for metric in pairs.metrics]
    for name in names:
        if name not in have:
            raise unknown("metric", name, have)
    kept = [have.index(name) for name in dict.fromkeys(names)]
    parts = {name: getattr(pairs, name)[:, :, kept] for name in ("scores", "states", "noise")}
    return replace(pairs, metrics=tuple(pairs.metrics[k] for k in kept), **parts)


def _margin(given: Sequence[str]) -> float | dict[str, float] | None:
    """Read the margins: one number for all metrics, or NAME=VALUE texts."""
    plain = len(given) == 1 and "=" not in given[0]
    pairs = {"": given[0]} if plain else dict(pair("--margin", "context_recall=0.02", text) for text in given)
    margins = {}
    for name, value in pairs.items():
        try:
            margins[name] = float(value)
        except ValueError:
            raise RagnbError(f"--margin {value!r} is not a number; write 0.02, or context_recall=0.02") from None
    return margins[""] if plain else margins or None


def _signed(value: float, low: float | None = None, high: float | None = None) -> str:
    """Write a difference with its sign, and its interval where there is one."""
    text = ("+" if value > 0 and number(value).strip("0.") else "") + number(value)
    return text if low is None or np.isnan(low) else f"{text} [{number(low)}, {number(high)}]"


def _headline(row: dict[Any, Any], say: Any) -> str:
    """Say in one line what came of one metric."""
    unit, common = row["cluster_unit"], counted(say, "compare.common", count(row["n_common"]))
    common += "" if unit == "row" else counted(say, f"compare.{unit}s", count(row["n_clusters"]))
    words = {"new": row["candidate"], "base": row["baseline"], "metric": row["metric"], "common": common}
    value = _signed(row["value"], row["low"], row["high"])
    return str(say("compare.head", outcome=say(f"compared.{row['outcome']}"), value=value, **words))


def _shown(
    table: pd.DataFrame, pairs: Sequence[Pairs], say: Any, by: str | None = None
) -> tuple[pd.DataFrame, dict[str, Column]]:
    """Return a table with its cells written, and its columns."""
    adjusted = "p_holm" if by is None else "p_bh"
    rows = []
    for row in table.to_dict("records"):
        of_p = {name: p_value(row[name]) for name in ("p", adjusted)}
        left_out = f"{count(row['n_left_out'])} ({_why(row['left_out'], say)})" if row["left_out"] else ""
        rows.append(row | of_p | {
            "word": row["outcome"],
            "outcome": say(f"compared.{row['outcome']}"), "value": _signed(row["value"], row["low"], row["high"]),
            "candidate_mean": number(row["candidate_mean"]), "baseline_mean": number(row["baseline_mean"]),
            "n_common": count(row["n_common"]), "record": f"{row['wins']}/{row['ties']}/{row['losses']}",
            "left_out": left_out or count(row["n_left_out"]),
        })  # fmt: skip
    one = len(pairs) == 1
    labels = [] if one else [("candidate", say("compare.candidate"))]
    if by is None:
        labels.append(("metric", say("column.metric")))
    else:
        labels.append((by, by))
    labels.append(("outcome", say("column.outcome")))
    numbers = {
        "value": say("compare.difference", level=f"{100 * table['level'].iloc[0]:g} %"), "p": "p",
        adjusted: say(f"compare.{adjusted}"),
        "candidate_mean": pairs[0].candidate if one else say("compare.candidate_mean"),
        "baseline_mean": pairs[0].baseline, "n_common": say("compare.n_common"), "record": say("compare.record"),
    }  # fmt: skip
    columns = {name: Column(one_line(label)) for name, label in labels}
    columns |= {name: Column(one_line(label), "number") for name, label in numbers.items()}
    return pd.DataFrame(rows, dtype=object), columns | {"left_out": Column(say("compare.left_out"))}


def _why(left_out: str, say: Any) -> str:
    """Say in a language why questions are left out: ``new: 3 failed, 2 absent``."""
    pattern = r"(?<=[:,] )(\d+) (failed|not_applicable|missing|absent)(?=[,;]|$)"
    return re.sub(pattern, lambda found: f"{found[1]} {say(f'compare.state.{found[2]}')}", left_out)


def _notes(table: pd.DataFrame, pairs: Sequence[Pairs], say: Any) -> Iterator[str]:
    """Yield what to know before believing the numbers, a sentence or two each."""
    if not table["primary"].any():
        yield say("compare.no_primary")
    for one in pairs:
        about = f"{one.candidate}: " if len(pairs) > 1 else ""
        rows = table[table["candidate"] == one.candidate].to_dict("records")
        yield from (about + text for text in _notes_of(rows, say))


def _notes_of(rows: Sequence[dict[Any, Any]], say: Any) -> Iterator[str]:
    decisive = [row for row in rows if row["primary"]] or rows
    partly = [row for row in rows if row["left_out"]]
    if partly:
        listed = (f"{row['metric']} {count(row['n_left_out'])} ({_why(row['left_out'], say)})" for row in partly)
        pairs = ((row["metric"], *(_signed(row[name]) for name in ("value", "worst_case"))) for row in decisive)
        worst = ", ".join(f"{metric} {bound}" for metric, value, bound in pairs if bound not in (value, MISSING))
        text = say("compare.one_side", metrics="; ".join(listed))
        yield text + (say("compare.worst", values=worst) if worst else "")
    for row in decisive:
        if pd.notna(row["all_value"]):
            whole = _signed(row["all_value"], row["all_low"], row["all_high"])
            asked = count(row["n_common"] + row["n_left_out"])
            yield say("compare.overlap", metric=row["metric"], n=count(row["n_common"]), asked=asked, value=whole)
    small = [row for row in rows if row["below_noise"]]
    noisy = [f"{row['metric']} {_signed(row['value'])} (±{number(row['noise'])})" for row in small]
    if noisy:
        yield say("compare.noise", metrics=", ".join(noisy))
    for row in rows:
        if row.get("supported") is False and row["outcome"] in ("better", "worse"):
            human = _signed(row["human_value"], row["human_low"], row["human_high"])
            yield say("compare.unsupported", metric=row["metric"], value=human, n=count(row["n_human"]))
    for row in decisive:
        if row["outcome"] == "same":
            yield say("compare.within", metric=row["metric"], margin=f"{row['margin']:g}")
        elif row["outcome"] == "undecided":
            more = row["questions_needed"] - row["n_common"]
            key = "no_interval" if np.isnan(row["low"]) else "no_difference" if np.isnan(more) else "needed"
            words = {"metric": row["metric"], "value": _signed(row["value"]), "n": count(row["n_common"])}
            yield say(f"compare.{key}", more=count(more), detectable=number(row["detectable"]), **words)


@dataclass(frozen=True)
class _View:
    """A comparison as it is shown: its first lines with their outcomes, tables under headings, notes."""

    lang: str
    title: str
    head: dict[str, str]
    tables: list[tuple[str, pd.DataFrame, dict[str, Column]]]
    notes: list[str]

    def lines(self) -> Iterator[str]:
        yield from (one_line(text) for text in self.head or [texts.load(self.lang)("compare.no_word")])
        for name, frame, columns in self.tables:
            labels = [column.label for column in columns.values()]
            yield from ("", one_line(name)) if len(self.tables) > 1 else ("",)
            yield from text_table([labels, *frame[list(columns)].astype(str).to_numpy().tolist()])
        if self.notes:
            yield ""
            yield from (f"- {one_line(text)}" for text in self.notes)

    def markdown(self) -> str:
        parts = [f"# {markup.md_cell(self.title)}", *(f"**{markup.md_cell(text)}**" for text in self.head)]
        parts += [f"## {markup.md_cell(name)}\n\n{markup.markdown_table(frame, columns=columns)}"
                  for name, frame, columns in self.tables]  # fmt: skip
        parts += ["\n".join(f"- {markup.md_cell(text)}" for text in self.notes)] if self.notes else []
        return "\n\n".join(parts) + "\n"

    def html(self) -> str:
        say = texts.load(self.lang)
        parts: list[object] = [markup.heading(self.title, level=1)]
        for text, outcome in self.head.items():
            word, _, rest = text.partition(say("compare.colon"))
            parts.append(markup.element("p", markup.badge(_TONES[outcome], word), " ", rest))
        for name, frame, columns in self.tables:
            # Long names break after an underscore.
            metrics = [markup.Safe(markup.escape(cell).replace("_", "_<wbr>")) for cell in frame["metric"]]
            words = zip(frame["word"], frame["outcome"], strict=True)
            marks = [markup.badge(_TONES[word], text) for word, text in words]
            # Why questions are left out stands in the notes; here it would push the table off the page.
            cells = {"metric": metrics, "outcome": marks, "left_out": frame["n_left_out"]}
            written = pd.concat([frame.drop(columns=[*cells]), pd.DataFrame(cells, dtype=object)], axis=1)
            shown = columns | {"left_out": replace(columns["left_out"], kind="count")}
            parts += [markup.heading(name), markup.html_table(written, columns=shown, lang=self.lang)]
        parts += [markup.heading(say("compare.notes")), markup.bullets(self.notes)] if self.notes else []
        return markup.page(self.title, markup.join(parts), lang=self.lang)


def _json(outcome: str | None, notes: list[str], table: pd.DataFrame, slices: pd.DataFrame | None) -> str:
    from ragnb.diagnostics.gates import plain_records

    parts = {"outcome": outcome, "notes": notes, "metrics": plain_records(table)}
    return json_text(parts if slices is None else parts | {"slices": plain_records(slices)})


def _junit(title: str, table: pd.DataFrame, lang: str) -> str:
    """Return a suite with one case a metric; the one that decides fails where it is worse."""
    from ragnb.diagnostics.gates import junit

    kinds, cases, say = {"worse": "failure", "undecided": "skipped"}, [], texts.load(lang)
    for row in table.to_dict("records"):
        kind = kinds.get(row["outcome"], "system-out") if row["primary"] else "system-out"
        cases.append((f"{row['candidate']}: {row['metric']}", kind, row["outcome"], _headline(row, say)))
    return junit(title, cases)
