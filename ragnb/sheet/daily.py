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
    # In a log of few days every measure has the outcome "all": there are no days before to compare with.
    is_compared = any(row["outcome"] != "all" for row in rows)

    def name(row: Row) -> tuple[Any, ...]:
        return w.say(f"daily.{row['measure']}"), Small(w.say(f"daily.{row['measure']}_gloss"))

    def bars(row: Row) -> Bars | str:
        days = log.days[log.days["measure"] == row["measure"]]
        if len(days) < 2:
            return ""
        # The last seven days are marked; where they are compared with nothing, none is.
        marked_from = len(days)
        if is_compared:
            marked_from = int((days["day"] < first_of_last(days["day"])).sum())
        write = number if row["measure"] == "latency" else percent
        most = days.loc[days["value"].idxmax()]
        label = w.say(
            "daily.picture",
            first=day_words(days["day"].min()),
            last=day_words(days["day"].max()),
            most=write(most["value"]),
            day=day_words(most["day"]),
        )
        return Bars(tuple(days["value"].tolist()), marked_from, write(most["value"]), label)

    def side(key: str) -> Write:
        def cell(row: Row) -> tuple[Any, ...]:
            if row["measure"] == "latency":
                seconds = ""
                if not pd.isna(row[key]):
                    seconds = w.say("daily.seconds", n=number(row[key]))
                return seconds, Small("")
            counts = w.say("missing.seen", seen=count(row[f"{key}_k"]), n=count(row[f"{key}_n"]))
            return percent(row[key]), Small(counts)

        return cell

    def outcome(row: Row) -> tuple[Any, ...]:
        mark = Mark(_TONES[row["outcome"]], w.say(f"daily.{row['outcome']}"))
        which_day = ""
        if row["outcome"] == "one_day":
            day = day_words(row["most_day"])
            which_day = w.say("daily.on", k=count(row["most_k"]), day=day)
        return mark, Small(which_day)

    def difference(row: Row) -> tuple[Any, ...]:
        text, ends = difference_words(w, row)
        return text, Small(ends)

    columns: dict[str, Write] = {"daily.measure": name, "daily.days": bars}
    if is_compared:
        columns |= {">daily.before": side("before"), ">daily.now": side("now")}
        columns |= {">daily.change": difference, "daily.result": outcome}
    else:
        columns[">daily.all"] = side("now")
    key = "daily.caption" if is_compared else "daily.caption_short"
    caption = w.say(key, level=w.level)
    return w.table(rows, columns, caption=caption)
