"""The first screen: the verdict, what to know before believing it, and the outcome bar."""

from __future__ import annotations

from typing import Any

from ragnb.comparison.wording import difference, outcome_mark
from ragnb.markup import blocks, count, one_line
from ragnb.markup.blocks import Estimate, Mark, Section, Small, Text
from ragnb.schema import TOTAL, records
from ragnb.sheet.account import worst_words
from ragnb.sheet.daily import daily_table
from ragnb.sheet.formatter import DATA, LABELS, OUTCOME, Formatter
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
    is_failed = kind_of(w) == FAILED
    marks = () if is_failed else by_outcome(w, gates)
    score = (None, "", ()) if is_failed else _score(w)
    judged = passing_row(w) if kind_of(w) == JUDGE else None
    if judged is not None:
        score = passing_share(w, judged)
    verdict = blocks.Verdict(
        hero.mark,
        hero.title,
        hero.lead,
        marks,
        w.say("sheet.gates_count"),
        *score,
        hero.action,
        w.say("sheet.next"),
    )
    shown = [
        verdict,
        Text(cautions, "caution") if cautions else None,
        None if w.shown is None else systems_table(w),
    ]
    if kind_of(w) == LOG:
        shown.append(daily_table(w))
    if judged is None:
        pictures = []
    else:
        pictures = [pass_mark(w, judged), radar_of_passing(w, judged)]
    if kind_of(w) in (JUDGE, TRACES, SCORES):
        changed = since_bar(w)
    else:
        changed = None
    return w.section("summary", "", "", [*shown, changed or _bar(w), *pictures])


def _score(w: Formatter) -> tuple[Estimate | None, str, tuple[Any, ...]]:
    """Return the overall score, else the share of answers that ended right; none where neither is there."""
    if (metric := headline_metric(w.rows)) is None:
        return None, "", ()
    row = w.rows[metric]
    before = None
    notes: list[Any] = [w.say("sheet.ci", level=w.level, ends=w.ends(metric, row))] * bool(
        w.ends(metric, row)
    )
    notes.append(w.counted(row))
    if worst := worst_words(w, metric, row, "account.worst_alone"):
        notes.append(worst)
    if metric == TOTAL and (parts := parts_of_total(w, w.rows)):
        notes.append(parts.lstrip(",，;；、 "))
    if w.sheet.comparison is None:
        changed = []
    else:
        changed = records(w.sheet.comparison)
    rows = [
        one for one in changed if one["metric"] == metric and w.shown in (None, one["candidate"])
    ]
    if len(rows) == 1 and rows[0]["n_common"]:
        mark = outcome_mark(rows[0], w.say)
        before = float(rows[0]["baseline_mean"])
        than = Small(w.say("compared.than", name=rows[0]["baseline"]))
        notes.append((Mark(mark.tone, f"{mark.text} {difference(rows[0], w.say)}"), than))
    if w.shown is None:
        name = w.title(metric)
    else:
        name = f"{w.title(metric)} · {one_line(w.shown, 40)}"
    return w.estimate(metric, row, before=before)._replace(interval="", tone=""), name, tuple(notes)


def since_bar(w: Formatter) -> blocks.Bar | None:
    """Return how many questions stayed right, broke, were fixed and stayed wrong; None without an earlier run."""
    since = since_of(w)
    if since is None:
        return None
    right = [
        ("ok", w.say("turned.stayed_right"), since.n_of(True, True)),
        ("false", w.say("turned.broke"), since.n_of(True, False)),
    ]
    wrong = [
        ("refused", w.say("turned.were_fixed"), since.n_of(False, True)),
        ("none", w.say("turned.stayed_wrong"), since.n_of(False, False)),
    ]
    now = right[0][2] + wrong[0][2]
    was = right[0][2] + right[1][2]
    title = w.say("turned.title", now=count(now), n=count(len(since.rows)), was=count(was))
    groups = (
        (w.say("turned.were_right"), tuple(right)),
        (w.say("turned.were_wrong"), tuple(wrong)),
    )
    return blocks.Bar(title, "", groups)


def _bar(w: Formatter) -> blocks.Bar | None:
    """Return how the answers ended, right and wrong, in one bar."""
    found, (right, n) = tally(w), counted(w, OUTCOME)
    groups = dict[str, list[tuple[str, str, int]]]()
    for label, row in ((label, row) for label, row in LABELS.items() if label in found):
        groups.setdefault(row["group"], []).append(
            (row["kind"], w.say(f"label.{label}"), found[label])
        )
    title = w.say("sheet.ended_right", n=count(right), all=count(n)) + w.say("headline.end")
    shown = tuple((w.say(f"sheet.{name}"), tuple(parts)) for name, parts in groups.items())
    if found:
        return blocks.Bar(title, w.say("sheet.bar_note"), shown)
    return None
