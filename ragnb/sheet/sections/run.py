"""How the run was made, and what to keep in mind."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import pandas as pd

from ragnb import texts
from ragnb.markup import count
from ragnb.markup.blocks import Code, Section, Text
from ragnb.schema import records
from ragnb.sheet.account import account_table
from ragnb.sheet.formatter import DATA, Formatter


def details(w: Formatter) -> Section:
    """Return the settings and weights, the files, where the rows went, and the notes."""
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
    shown = [Text(notes, "list") if notes else None, settings, files if n else None, steps]
    shown.append(account_table(w))
    shown.append(Text((w.say("details.rest"),), "note"))
    return w.section("run", finding, w.say("details.lead") if notes else "", shown)


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
    passing = (
        rubric
        and f"{rubric.low:g}–{rubric.high:g}, {rubric.passing.metric} ≥ {rubric.passing.threshold:g}"
    )
    values: dict[str, Any] = {name: getattr(scenario, name, "") for name in names} | {
        "file": scenario.path and scenario.path.name,
        "level": w.level,
        "rubric": passing,
        "where": ", ".join(f"{key} = {value}" for key, value in scenario.where.items()),
        "corpus": scenario.corpus if scenario.corpus != "sample" else "",
        "ragnb": metadata.version("ragnb"),
        "metric_weights": ", ".join(weights),
        "doc_weights": docs and ", ".join([*docs, w.say("details.others")]),
    }
    values |= {
        name: w.say("column.yes" if values[name] else "column.no") for name in ("orient", "rescale")
    }
    if w.sheet.outcomes is None:
        values |= dict.fromkeys(
            ("refusal", "patterns", "partial", "split", "containment", "join"), ""
        )
    given = {names[name]: value for name, value in values.items() if value}
    return {
        name: value if isinstance(value, str) else " | ".join(value)
        for name, value in given.items()
    }
