"""The first screen: the verdict, what to know before believing it, and the outcome bar."""

from __future__ import annotations

from typing import Any

from ragnb.comparison.wording import difference, outcome_mark
from ragnb.markup import blocks, count, one_line
from ragnb.markup.blocks import Block, Estimate, Mark, Section, Small, Text
from ragnb.schema import TOTAL, records
from ragnb.sheet.account import worst_words
from ragnb.sheet.daily import daily_table
from ragnb.sheet.formatter import DATA, LABELS, OUTCOME, Formatter, Row
from ragnb.sheet.gates import by_outcome, deciding
from ragnb.sheet.heroes import hero_of
from ragnb.sheet.heroes.score import headline_metric, parts_of_total
from ragnb.sheet.kinds import FAILED, JUDGE, LOG, SCORES, TRACES, kind_of
from ragnb.sheet.labels import counted, tally
from ragnb.sheet.passing_pictures import pass_mark, passing_row, passing_share, radar_of_passing
from ragnb.sheet.since import since_of
from ragnb.sheet.systems_table import systems_table


def summary(w: Formatter) -> Section:
    """Return the verdict, what to know before believing it, and the outcome bar."""
    gates = deciding(w.whole.gates)
    notes = w.whole.notes
    cautions = tuple(notes.loc[notes["code"].isin(DATA["notes"]["cautions"]), "text"])
    hero = hero_of(w)
    kind = kind_of(w)
    judged = passing_row(w) if kind == JUDGE else None
    marks: tuple[Mark, ...] = ()
    score: tuple[Estimate | None, str, tuple[Any, ...]] = (None, "", ())
    # What is left of an incomplete run is no verdict: it has neither gates nor a score here.
    if kind != FAILED:
        marks = by_outcome(w, gates)
        score = _score(w) if judged is None else passing_share(w, judged)
    estimate, score_name, score_notes = score
    verdict = blocks.Verdict(
        status=hero.mark,
        title=hero.title,
        lead=hero.lead,
        marks=marks,
        marks_name=w.say("sheet.gates_count"),
        score=estimate,
        score_name=score_name,
        score_notes=score_notes,
        action=hero.action,
        action_name=w.say("sheet.next"),
    )
    shown: list[Block | None] = [verdict]
    if cautions:
        shown.append(Text(cautions, "caution"))
    if w.shown is not None:
        shown.append(systems_table(w))
    if kind == LOG:
        shown.append(daily_table(w))
    changed = since_bar(w) if kind in (JUDGE, TRACES, SCORES) else None
    shown.append(changed or _bar(w))
    if judged is not None:
        shown += [pass_mark(w, judged), radar_of_passing(w, judged)]
    return w.section("summary", "", "", shown)


def _score(w: Formatter) -> tuple[Estimate | None, str, tuple[Any, ...]]:
    """Return the overall score, else the share of answers that ended right; none where neither is there."""
    metric = headline_metric(w.rows)
    if metric is None:
        return None, "", ()
    row = w.rows[metric]
    notes: list[Any] = []
    ends = w.ends(metric, row)
    if ends:
        notes.append(w.say("sheet.ci", level=w.level, ends=ends))
    notes.append(w.counted(row))
    worst = worst_words(w, metric, row, "account.worst_alone")
    if worst:
        notes.append(worst)
    if metric == TOTAL:
        # Written to follow a sentence; here it stands on a line of its own.
        parts = parts_of_total(w, w.rows)
        if parts:
            notes.append(parts.lstrip(",，;；、 "))
    before = None
    change = _change(w, metric)
    if change is not None:
        mark = outcome_mark(change, w.say)
        before = float(change["baseline_mean"])
        than = Small(w.say("compared.than", name=change["baseline"]))
        notes.append((Mark(mark.tone, f"{mark.text} {difference(change, w.say)}"), than))
    name = w.title(metric)
    if w.shown is not None:
        name = f"{name} · {one_line(w.shown, 40)}"
    # The interval is a note already, and the mark of the verdict is the only one here.
    estimate = w.estimate(metric, row, before=before)._replace(interval="", tone="")
    return estimate, name, tuple(notes)


def _change(w: Formatter, metric: str) -> Row | None:
    """Return the difference of a metric from the baseline; None without one, and of several candidates."""
    if w.sheet.comparison is None:
        return None
    rows = [
        row
        for row in records(w.sheet.comparison)
        if row["metric"] == metric and w.shown in (None, row["candidate"])
    ]
    if len(rows) == 1 and rows[0]["n_common"]:
        return rows[0]
    return None


def since_bar(w: Formatter) -> blocks.Bar | None:
    """Return how many questions stayed right, broke, were fixed and stayed wrong; None without an earlier run."""
    since = since_of(w)
    if since is None:
        return None
    stayed_right = since.n_of(True, True)
    broke = since.n_of(True, False)
    fixed = since.n_of(False, True)
    stayed_wrong = since.n_of(False, False)
    # The first of each is the kind of a part, which has the fill of that kind of label.
    were_right = (
        ("ok", w.say("turned.stayed_right"), stayed_right),
        ("false", w.say("turned.broke"), broke),
    )
    were_wrong = (
        ("refused", w.say("turned.were_fixed"), fixed),
        ("none", w.say("turned.stayed_wrong"), stayed_wrong),
    )
    title = w.say(
        "turned.title",
        now=count(stayed_right + fixed),
        n=count(len(since.rows)),
        was=count(stayed_right + broke),
    )
    groups = (
        (w.say("turned.were_right"), were_right),
        (w.say("turned.were_wrong"), were_wrong),
    )
    return blocks.Bar(title, "", groups)


def _bar(w: Formatter) -> blocks.Bar | None:
    """Return how the answers ended, right and wrong, in one bar."""
    counts = tally(w)
    if not counts:
        return None
    groups = dict[str, list[tuple[str, str, int]]]()
    for label, row in LABELS.items():
        if label in counts:
            part = (row["kind"], w.say(f"label.{label}"), counts[label])
            groups.setdefault(row["group"], []).append(part)
    right, n = counted(w, OUTCOME)
    title = w.say("sheet.ended_right", n=count(right), all=count(n)) + w.say("headline.end")
    shown = tuple((w.say(f"sheet.{name}"), tuple(parts)) for name, parts in groups.items())
    return blocks.Bar(title, w.say("sheet.bar_note"), shown)
