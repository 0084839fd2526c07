"""``ragnb calibrate``: the card of a judge, and the answers to annotate for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.terminal import BLOCKED, NOT_PROVEN, PASSED, command
from ragnb.errors import RagnbError, listing, unknown
from ragnb.files import json_text
from ragnb.markup import is_missing, one_line

if TYPE_CHECKING:
    import pandas as pd


_VERDICTS = {"TRUST": PASSED, "REJECT": BLOCKED, "NOT PROVEN": NOT_PROVEN}


@command("calibrate")
def calibrate_command(
    ratings: tuple[Path, ...], sample: int | None, golden: bool, **asked: Any
) -> int:
    """Calibrate a judge against human ratings.

    RATINGS has one row per answer, with the scores of the judge and of people (columns judge and human, or human1,
    human2, …; or rater and score). Several files are one annotator's sheet each. Prints the card as Markdown, or
    writes it to a file.

    \b
    Examples
      ragnb calibrate ratings.csv
      ragnb calibrate ratings.csv --dimension accuracy --scale 1 10 --html card.html
      ragnb calibrate mine.csv --judge gpt_score --human ann --human bo
      ragnb calibrate runs.csv --scale 1 5 --missing outside
      ragnb calibrate --sample 120 judged.csv --out labels.csv     (answers to annotate)
      ragnb calibrate labels_ann.csv labels_bo.csv --judged labels.judge.csv
      ragnb calibrate --sample 80 --pairs judged.csv --out pairs.csv   (both systems, for ragnb compare)
      ragnb calibrate --golden --out golden.csv                    (three hard questions to fill in)
      ragnb calibrate --golden golden.csv

    Exit code: 0 TRUST, 1 REJECT, 3 NOT PROVEN, 2 bad input. For a golden set: 0 if all scores agree within the
    tolerance, 1 if one does not, 3 if a score is missing.
    """
    reading = {name: asked[name] for name in ("missing", "scale", "encoding", "judge")}
    if sample is not None:
        return _sample(ratings, sample, asked, reading)
    if golden:
        return _golden(ratings, asked, reading)
    return _calibrate(ratings, asked, reading)


def _calibrate(files: Sequence[Path], asked: dict[str, Any], reading: dict[str, Any]) -> int:
    """Print or write the card of some ratings."""
    from ragnb.calibration import calibrate, judge_columns, read_judged, reading_of_labels, unrated

    if asked["out"] is not None:
        raise RagnbError(
            "--out goes with --sample or --golden; a card is written by --markdown, --html or --json"
        )
    if not files:
        raise RagnbError(
            "nothing to calibrate; name a file of ratings, or draw some labels: --sample 120 judged.csv"
        )
    rated = reading_of_labels(files, asked["judged"], human=asked["human"], **reading)
    ratings = rated.with_attrs()
    judges = judge_columns(ratings, asked["judge"])
    if not judges:
        raise RagnbError(
            f"{listing(files)}: contains no judge scores (columns: {listing(ratings.columns)}); name its column "
            "with --judge, or pass its table with --judged"
        )
    ratings = _chosen(ratings, asked["dimensions"])
    if rated.origin.get("damaged"):
        raise RagnbError(
            f"{rated.origin['damaged']} of {rated.origin['lines']} input lines are damaged or lost, and the "
            "judge's errors may be on exactly these; repair the file, or remove these lines from it"
        )
    judged = None
    if asked["judged"] is not None:
        names = None
        if "dimension" in ratings:
            names = list(dict.fromkeys(ratings["dimension"]))
        # The answers that nobody rated, for the corrected mean.
        rest = unrated(read_judged(asked["judged"], dimensions=names, **reading), ratings)
        if names is not None and "dimension" in rest:
            # The judge's table may hold dimensions that nobody rated, or that `--dimension` leaves out.
            rest = rest[rest["dimension"].isin(names)]
        judged = rest if len(rest) else None
    options = (
        "tolerance",
        "target",
        "labels_planned",
        "delta",
        "scale",
        "cluster",
        "level",
        "seed",
        "lang",
    )
    card = calibrate(
        ratings,
        judge=judges,
        judged=judged,
        about=_about(asked["about"]),
        **{name: asked[name] for name in options},
    )
    as_json = partial(json_text, card.to_dict())
    terminal.write_files(
        asked, markdown=card.to_markdown, html=partial(_page, card), json_file=as_json
    )
    if asked["markdown"] is None and asked["html"] is None:
        click.echo(card.to_markdown(), nl=False)
    else:
        click.echo("\n".join(one_line(reason) for reason in card.reasons))
    return _VERDICTS[card.verdict]


def _about(given: Sequence[str]) -> dict[str, Any] | None:
    """Read what --about says of the study: KEY=VALUE texts, of which true and false are no texts."""
    truths = {"true": True, "false": False}
    about: dict[str, Any] = {}
    for text in given:
        key, value = terminal.pair("--about", "judge_id=small-8b", text)
        about[key] = truths.get(value.strip().casefold(), value)
    return about or None


def _page(card: Any) -> str:
    """Return the page of a card; a report is only imported where one is asked for."""
    from ragnb.report.study import card_page

    return card_page(card)


def _chosen(frame: pd.DataFrame, dimensions: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the requested dimensions."""
    have: list[str] = []
    if "dimension" in frame:
        have = [str(name) for name in frame["dimension"].unique()]
    for name in dimensions:
        if name not in have:
            raise unknown("dimension", name, have)
    if dimensions:
        return frame[frame["dimension"].isin(dimensions)]
    return frame


def _sample(files: Sequence[Path], n: int, asked: dict[str, Any], reading: dict[str, Any]) -> int:
    """Sample answers to annotate, and print what to do with the sheet."""
    from ragnb.calibration import draw_labels, read_judged, write_labels

    if len(files) != 1 or asked["out"] is None:
        raise RagnbError(
            "--sample takes one table of judged answers and --out, the sheet to write: labels.csv"
        )
    dimensions = asked["dimensions"]
    judged = _chosen(read_judged(files[0], dimensions=dimensions or None, **reading), dimensions)
    drawn = draw_labels(
        judged, n=n, cluster=asked["cluster"], seed=asked["seed"], pairs=asked["pairs"]
    )
    sheet, key = write_labels(drawn, asked["out"])
    say = texts.load(asked["lang"])
    of = {"all": drawn.attrs["population"], "clusters": drawn["cluster"].nunique()}
    click.echo(say("cli.drawn", n=len(drawn), seed=asked["seed"], **of))
    click.echo(say("cli.sheet", file=sheet, dimensions=listing(drawn.attrs["dimensions"])))
    click.echo(say("cli.key", file=key))
    click.echo(say("cli.then", command=f"ragnb calibrate {sheet} --judged {key}"))
    return PASSED


def _golden(files: Sequence[Path], asked: dict[str, Any], reading: dict[str, Any]) -> int:
    """Write an empty golden set, or check a filled-in one."""
    from ragnb.calibration import check_golden, golden_template, read_golden, write_golden

    say = texts.load(asked["lang"])
    tolerance = 1.0 if asked["tolerance"] is None else asked["tolerance"]
    if not files:
        if asked["out"] is None:
            raise RagnbError(
                "--golden takes a filled-in golden set to check, or --out, the file to write an empty one to"
            )
        empty = golden_template(lang=asked["lang"], dimensions=asked["dimensions"])
        click.echo(say("cli.golden", file=write_golden(empty, asked["out"])))
        return PASSED
    if len(files) > 1:
        raise RagnbError(f"--golden checks one file; found {listing(files)}")
    checked = check_golden(
        read_golden(files[0], human=asked["human"], **reading), tolerance=tolerance
    )
    click.echo("\n".join(terminal.text_table(_golden_rows(checked, say))))
    n_off = int((~checked["within"]).sum())
    n_open = int(checked["within"].isna().sum())  # an answer without a score
    key = "golden.fine"
    code = PASSED
    if n_off:
        key = "golden.off"
        code = BLOCKED
    elif n_open:
        key = "golden.open"
        code = NOT_PROVEN
    elif not tolerance:
        key = "golden.fine_exact"
    tolerance_text = f"{tolerance:g}"
    click.echo(say(key, n=len(checked), off=n_off, open=n_open, tolerance=tolerance_text))
    return code


def _golden_rows(checked: pd.DataFrame, say: Any) -> list[list[str]]:
    """Return the table of a checked golden set: whether each score agrees, and the scores."""
    keys = [name for name in ("item_id", "dimension", "system") if name in checked]
    formats = {"judge": "{:g}", "human": "{:g}", "difference": "{:+.2f}"}
    rows = [["", *keys, *(say(f"golden.{name}") for name in formats)]]
    for row in checked.to_dict("records"):
        if is_missing(row["within"]):
            mark = "—"
        elif row["within"]:
            mark = "✓"
        else:
            mark = "✗"
        numbers = []
        for name, number_format in formats.items():
            numbers.append("—" if is_missing(row[name]) else number_format.format(row[name]))
        rows.append([mark, *(str(row[key]) for key in keys), *numbers])
    return rows
