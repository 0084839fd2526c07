"""What a log without gold says: undeclared refusals, the days, and the questions to label first."""

from __future__ import annotations

from operator import itemgetter

from ragnb.markup import (
    count,
    is_missing,
    one_line,
    percent,
)
from ragnb.markup.blocks import (
    Code,
    Section,
    Text,
)
from ragnb.schema import DRAWN, records
from ragnb.sheet.formatter import Formatter, Write

_MOST_TO_LABEL = 12


def log(w: Formatter) -> Section | None:
    """Return what a log without gold says: undeclared refusals, the days, and the questions to label first."""
    found = w.whole.log
    if found is None:
        return None
    patterns = w.table(
        records(found.patterns),
        {
            "log.pattern": lambda row: Code(one_line(row["pattern"], 80)),
            ">column.n": lambda row: count(row["n"]),
            "log.example": lambda row: one_line(row["example"], 120),
        },
        caption=w.say("log.patterns"),
    )
    sizes = ["latency_median", "latency_p95"] * bool(found.daily["latency_median"].notna().any())
    sizes += ["length_median", "length_p95"]
    columns: dict[str, Write] = {
        "log.day": lambda row: w.say("log.all") if is_missing(row["day"]) else row["day"],
        ">column.n": lambda row: count(row["n"]),
    }
    written: dict[str, Write] = {"refusal_rate": percent}
    if found.daily["failed"].notna().any():  # else no column speaks of failures
        written["failed"] = percent
    written |= {key: lambda size: "" if is_missing(size) else f"{size:.4g}" for key in sizes}
    daily = found.daily.assign(
        **{key: found.daily[key].map(write) for key, write in written.items()}
    )
    columns |= {f">log.column.{key}": itemgetter(key) for key in written}
    days = w.table(records(daily), columns, caption=w.say("log.daily"))
    to_label = w.table(
        records(found.to_label.head(_MOST_TO_LABEL)),
        {
            "column.question": lambda row: one_line(row["question"], 120),
            "log.reason": lambda row: w.say(f"log.reasons.{row['reason']}"),
            ">log.chance": lambda row: percent(row[DRAWN]),
        },
        caption=w.say("log.to_label"),
    )
    note = Text((w.say("log.next", n=count(len(found.to_label))),), "note")
    n = int(found.patterns["n"].max()) if len(found.patterns) else 0
    finding = w.say("log.finding" if n else "log.no_finding", n=count(n))
    return w.section(
        "log", finding, w.say("log.lead"), [patterns if n else None, days, to_label, note]
    )
