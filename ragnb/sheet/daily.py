"""The measures of a log by day: the picture of its first screen."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragnb.markup import count, number, percent
from ragnb.markup.blocks import Bars, Mark, Small, Table
from ragnb.schema import records
from ragnb.sheet.formatter import Formatter, Row, Write
from ragnb.sheet.heroes.log import day_words, difference_words
from ragnb.traces.changes import first_of_last

_TONES = {"rose": "watch", "fell": "watch", "one_day": "none", "no_change": "none"}


def daily_table(w: Formatter) -> Table:
    """Return one row a measure: its days, the last seven beside those before, and what changed."""
    log = w.whole.log
    rows = records(log.changes)
    is_compared = any(row["outcome"] != "all" for row in rows)

    def name(row: Row) -> tuple[Any, ...]:
        return w.say(f"daily.{row['measure']}"), Small(w.say(f"daily.{row['measure']}_gloss"))

    def bars(row: Row) -> Bars | str:
        days = log.days[log.days["measure"] == row["measure"]]
        if len(days) < 2:
            return ""
        is_before = days["day"] < first_of_last(days["day"])
        marked = int(is_before.sum()) if is_compared else len(days)
        write = number if row["measure"] == "latency" else percent
        most = days.loc[days["value"].idxmax()]
        label = w.say(
            "daily.picture",
            first=day_words(days["day"].min()),
            last=day_words(days["day"].max()),
            most=write(most["value"]),
            day=day_words(most["day"]),
        )
        return Bars(tuple(days["value"].tolist()), marked, write(most["value"]), label)

    def side(key: str) -> Write:
        def cell(row: Row) -> tuple[Any, ...]:
            if row["measure"] == "latency":
                known = not pd.isna(row[key])
                return w.say("daily.seconds", n=number(row[key])) if known else "", Small("")
            of = w.say("missing.seen", seen=count(row[f"{key}_k"]), n=count(row[f"{key}_n"]))
            return percent(row[key]), Small(of)

        return cell

    def outcome(row: Row) -> tuple[Any, ...]:
        mark = Mark(_TONES[row["outcome"]], w.say(f"daily.{row['outcome']}"))
        day = day_words(row["most_day"])
        if row["outcome"] == "one_day":
            said = w.say("daily.on", k=count(row["most_k"]), day=day)
        else:
            said = ""
        return mark, Small(said)

    def difference(row: Row) -> tuple[Any, ...]:
        text, ends = difference_words(w, row)
        return text, Small(ends)

    columns: dict[str, Write] = {"daily.measure": name, "daily.days": bars}
    if is_compared:
        columns |= {">daily.before": side("before"), ">daily.now": side("now")}
        columns |= {">daily.change": difference, "daily.result": outcome}
    else:
        columns[">daily.all"] = side("now")
    caption = w.say("daily.caption" if is_compared else "daily.caption_short", level=w.level)
    return w.table(rows, columns, caption=caption)
