"""Is it better than before: paired differences with their intervals; and systems side by side."""

from __future__ import annotations

from ragnb import markup
from ragnb.comparison.view import difference, difference_table, outcome_mark
from ragnb.markup.blocks import Block, Mark, Section, Small, Table, Text
from ragnb.schema import records
from ragnb.sheet.formatter import Formatter
from ragnb.sheet.sections.metrics import mean, radar

_MOST = 20


def comparison(w: Formatter) -> Section | None:
    """Return how the run differs from its baseline, and several systems side by side; nothing without either."""
    table = w.whole.comparison
    rows = [] if table is None else records(table := table[table["n_common"] > 0])
    if not rows and w.whole.systems is None:
        return None
    blocks: list[Block] = []
    if table is not None and rows:
        blocks.append(difference_table(table, w.lang, name=w.title))
    blocks += _systems(w)
    picture = radar(w)
    blocks += [picture] if picture is not None else []
    blocks += _changed(w)
    primary = [row for row in rows if row["primary"]] or rows
    badge: Mark | str = ""
    if rows:
        row = primary[0]
        words = {"name": row["baseline"], "metric": w.name(row["metric"]), "value": difference(row, w.say)}
        finding = w.say(f"compared.finding_{row['outcome']}", **words)
    else:
        finding = w.say("compared.systems", n=w.whole.systems["system"].nunique())
    if len(primary) == 1 or (rows and primary[0]["primary"]):
        badge = outcome_mark(primary[0], w.say)
    lead = w.say("compared.lead", level=w.level) if rows else w.say("compared.systems_lead", level=w.level)
    return Section("comparison", w.say("section.comparison"), finding, lead, tuple(blocks), badge, w.lang)


def _systems(w: Formatter) -> list[Block]:
    """Return the means of all systems, on common questions first where they answered different ones."""
    if w.whole.systems is None:
        return []
    names: list[str] = [*w.total, *w.quality, *w.rates]
    out: list[Block] = []
    n = markup.count(w.whole.common_questions)
    tables = {"common": w.whole.common, "all": w.whole.systems}
    for key, table in ((key, table) for key, table in tables.items() if table is not None):
        first = table[table["metric"] == names[0]].sort_values("value", ascending=False, kind="stable")
        cells = {(row["system"], row["metric"]): row for row in records(table)}
        rows = tuple((one, *(mean(w, name, cells[one, name]) for name in names)) for one in first["system"])
        heads = (w.say("column.system"), *(f">{w.title(name)}" for name in names))
        out.append(Table(heads, rows, caption=w.say(f"compared.{key}_caption", n=n, level=w.level)))
    return out


def _changed(w: Formatter) -> list[Block]:
    """Return the questions that were fixed and broken."""
    changed, out = w.whole.changed, []
    for key in ("fixed", "broken") if changed is not None else ():
        names = changed.loc[changed["change"] == key, "sample_id"].tolist()
        if names:
            links = tuple(w.link(name) for name in names[:_MOST])
            rest = (Small(f"+{len(names) - _MOST}"),) if len(names) > _MOST else ()
            mark = Mark("good" if key == "fixed" else "bad", w.say(f"compared.n_{key}", n=len(names)))
            out.append((mark, *links, *rest))
    return [Text(tuple(out), "changed")] if out else []
