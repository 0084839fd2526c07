"""How the run was made, and what to keep in mind."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import pandas as pd

from ragnb import texts
from ragnb.markup import count
from ragnb.markup.blocks import Block, Code, Section, Text
from ragnb.schema import records
from ragnb.sheet.account import account_table
from ragnb.sheet.formatter import DATA, Formatter


def details(w: Formatter) -> Section:
    """Return the settings and weights, the files, where the rows went, and the notes."""
    # Notes that another section says in its own place.
    elsewhere = w.whole.notes["code"].isin(DATA["notes"]["elsewhere"])
    n = len(w.whole.inputs)
    notes = tuple(w.whole.notes.loc[~elsewhere, "text"])
    settings = w.table(
        _settings(w).items(),
        {
            "column.setting": lambda row: row[0],
            "column.used": lambda row: row[1],
        },
        folded=w.say("details.settings"),
    )
    files = w.table(
        w.whole.inputs,
        {
            "column.role": lambda row: w.say(f"role.{row['role']}"),
            "column.file": lambda row: row["path"],
            ">column.rows": lambda row: count(row["rows"]),
            "column.hash": lambda row: Code(str(row["sha256"])),
        },
        folded=w.say("details.inputs"),
    )
    steps = w.table(
        records(w.whole.ledger),
        {
            "column.step": lambda row: row["step"],
            ">column.rows": lambda row: count(row["rows"]),
        },
        folded=w.say("details.ledger"),
    )
    if n > 1:
        finding = w.say("details.from_files", n=n)
    elif n:
        finding = w.say("details.from_file", n=n)
    else:
        finding = w.say("details.from_frame", n=n)
    lead = ""
    shown: list[Block | None] = []
    if notes:
        lead = w.say("details.lead")
        shown.append(Text(notes, "list"))
    shown.append(settings)
    if n:
        shown.append(files)
    shown += [steps, account_table(w), Text((w.say("details.rest"),), "note")]
    return w.section("run", finding, lead, shown)


def _settings(w: Formatter) -> dict[str, str]:
    """Return what was set, by its name, each as it is written; file names without their folders."""
    scenario = w.sheet.scenario
    rubric = w.sheet.scenario.rubric
    names = texts.entry(w.lang, "setting")
    weights = [
        f"{w.title(name)} {row['weight']:g}"
        for name, row in w.rows.items()
        if not pd.isna(row["weight"])
    ]
    docs = [f"{name} {weight:g}" for name, weight in scenario.doc_weights.items()]
    if docs:
        docs.append(w.say("details.others"))
    # The fields as they are, in the order of the texts; those that need words of their own are replaced.
    values: dict[str, Any] = {name: getattr(scenario, name, "") for name in names}
    values["file"] = scenario.path.name if scenario.path else ""
    values["level"] = w.level
    values["rubric"] = ""
    if rubric is not None:
        passing = rubric.passing
        scale = f"{rubric.low:g}–{rubric.high:g}"
        values["rubric"] = f"{scale}, {passing.metric} ≥ {passing.threshold:g}"
    values["where"] = ", ".join(f"{key} = {value}" for key, value in scenario.where.items())
    if scenario.corpus == "sample":  # the usual case needs no line
        values["corpus"] = ""
    values["ragnb"] = metadata.version("ragnb")
    values["metric_weights"] = ", ".join(weights)
    values["doc_weights"] = ", ".join(docs)
    for name in ("orient", "rescale"):
        values[name] = w.say("column.yes" if values[name] else "column.no")
    if w.sheet.outcomes is None:
        for name in ("refusal", "patterns", "partial", "split", "containment", "join"):
            values[name] = ""
    given = {names[name]: value for name, value in values.items() if value}
    return {
        name: value if isinstance(value, str) else " | ".join(value)
        for name, value in given.items()
    }
