"""Sections as Markdown: equal sections give equal text, and nothing of a reader's data becomes markup."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import singledispatch
from typing import Any

from ragnb.markup import blocks
from ragnb.markup.text import MISSING, TONES, is_missing, md_cell


def render_markdown(sections: Iterable[blocks.Section], *, title: str = "") -> str:
    """Return sections as one Markdown text.

    Examples
    --------
    >>> print(render_markdown([blocks.Section("g", "Gates", blocks=(blocks.Text(("a | b",)),))], title="Run"))
    # Run
    <BLANKLINE>
    ## Gates
    <BLANKLINE>
    a \\| b
    <BLANKLINE>
    """
    parts = [f"# {md_cell(title)}"] if title else []
    for section in sections:
        heading = dict.fromkeys([section.name, section.finding])
        parts.append("## " + ": ".join(md_cell(part) for part in heading if part))
        parts += [md_cell(section.lead)] if section.lead else []
        parts += [text for block in section.blocks if (text := written(block))]
    return "\n\n".join(parts) + "\n"


def cell(value: Any, write: Callable[[Any], str] = md_cell) -> str:
    """Return a cell on one line, its texts through `write`."""
    match value:
        case tuple():
            return " · ".join(text for part in value if (text := cell(part, write)))
        case blocks.Mark(tone, text):
            return f"{TONES[tone]} {write(text)}".strip()
        case blocks.Small(text) | blocks.Code(text):
            return write(text)
        case blocks.Link(text, target):
            return write(text) if target.startswith("#") else f"[{write(text)}](<{target}>)"
        case blocks.Estimate():
            return value.written + (f" ({value.interval})" if value.interval else "")
        case blocks.Histogram() | blocks.Coverage():
            return ""
        case blocks.Stack(parts):
            return ", ".join(f"{write(label)} {n}" for _, label, n in parts if n)
    return MISSING if is_missing(value) or value == "" else write(value)


@singledispatch
def written(block: Any) -> str:
    """Return a block as Markdown."""
    raise TypeError(block)


@written.register
def _(block: blocks.Text) -> str:
    return "\n".join(f"- {cell(line)}" for line in block.lines) if block.kind in ("list", "caution") else (
        "\n\n".join(map(cell, block.lines))
    )  # fmt: skip


@written.register
def _(block: blocks.Table) -> str:
    table = "\n".join(_table(*read(block)))
    caption = block.folded or block.caption
    return (f"{md_cell(caption)}\n\n" if caption else "") + table


def read(table: blocks.Table) -> tuple[list[str], list[list[Any]]]:
    """Return the heads and rows of a table without the columns that are only drawn."""
    drawn = [k for k in range(len(table.heads)) if any(isinstance(row[k], blocks.Estimate) for row in table.rows)]
    kept = [k for k in range(len(table.heads)) if k not in drawn]
    return [table.heads[k] for k in kept], [[row[k] for k in kept] for row in table.rows]


def _table(heads: Sequence[str], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    yield f"| {' | '.join(md_cell(head.removeprefix('>')) or ' ' for head in heads)} |"
    yield f"| {' | '.join('---:' if head.startswith('>') else ':---' for head in heads)} |"
    yield from (f"| {' | '.join(map(cell, row))} |" for row in rows)


@written.register
def _(block: blocks.Measures) -> str:
    lines = [f"{md_cell(block.folded)}\n"] if block.folded else []
    for row in block.rows:
        estimate, weight = row.estimate, f" (w={row.weight})" if row.weight else ""
        said = f"{estimate.exact}{weight}" if estimate.exact else f"{MISSING}{weight} ({md_cell(row.missing)})"
        ends = f" [{estimate.interval}]" if estimate.interval else ""
        lines.append(f"- {md_cell(row.code)}: {said}{ends}{f', {md_cell(row.counted)}' if row.counted else ''}")
    return "\n".join(lines)


@written.register
def _(block: blocks.Verdict) -> str:
    parts = [f"**{cell(block.status)}**: {md_cell(block.title)}", md_cell(block.lead)]
    parts.append(" · ".join([md_cell(block.marks_name), *map(cell, block.marks)]) if block.marks else "")
    if block.score is not None:
        score = block.score.exact or block.score.written
        ends = f" ({block.score.interval})" if block.score.interval else ""
        parts.append(" · ".join([f"{md_cell(block.score_name)}: {score}{ends}", *map(cell, block.score_notes)]))
    return "\n\n".join(part for part in parts if part)


@written.register
def _(block: blocks.Steps) -> str:
    parts = []
    for place, row in enumerate(block.rows, 1):
        said = [cell(part) for part in (row.evidence, row.gain, row.link) if part]
        parts.append(f"### {place}. {md_cell(row.problem)}\n\n{' · '.join(said)}")
        parts += [md_cell(row.detail)] if row.detail else []
        parts += [f"{md_cell(name)}\n\n" + "\n".join(f"- {cell(line)}" for line in lines)
                  for name, lines in row.parts.items()]  # fmt: skip
    return "\n\n".join(parts)


@written.register
def _(block: blocks.Bar) -> str:
    lines = [f"- {md_cell(name)}: {n}" for _, parts in block.groups for _, name, n in parts]
    return "\n".join([md_cell(block.title), "", *lines])


@written.register
def _(block: blocks.Picture) -> str:
    return ""


@written.register
def _(block: blocks.Samples) -> str:
    rows = [sample.cells for sample in block.rows]
    return "\n".join(_table(block.heads, rows))
