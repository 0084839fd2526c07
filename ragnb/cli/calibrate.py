"""`ragnb calibrate`: human ratings beside a judge's scores, as a card and an exit code; and the labels for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pandas as pd

from ragnb import texts
from ragnb.cli.parameters import FILE, as_options, options, pair
from ragnb.cli.terminal import BLOCKED, NOT_PROVEN, PASSED, plain, spoken, text_table
from ragnb.errors import RagnbError, listing, unknown
from ragnb.files import json_text, write_whole

if TYPE_CHECKING:
    from ragnb.calibration import CalibrationCard

_CODES = {"TRUST": PASSED, "REJECT": BLOCKED, "NOT PROVEN": NOT_PROVEN}


@click.command("calibrate")
@click.argument("ratings", nargs=-1, type=FILE)
@options("calibrate")
def calibrate_command(ratings: tuple[Path, ...], sample: int | None, golden: bool, **asked: Any) -> int:
    """Hold a judge against human ratings: can its scores be trusted?

    RATINGS holds the scores of people beside those of the judge (columns judge and human, or human1, human2, …; or
    rater and score). Several files are one rater's sheet each. Prints the card as Markdown, or writes it.

    \b
    Examples
      ragnb calibrate ratings.csv
      ragnb calibrate ratings.csv --dimension accuracy --scale 1 10 --html card.html
      ragnb calibrate mine.csv --judge gpt_score --human ann --human bo
      ragnb calibrate runs.csv --scale 1 5 --missing outside
      ragnb calibrate --sample 120 judged.csv --out labels.csv     (answers for people to rate)
      ragnb calibrate labels_ann.csv labels_bo.csv --judged labels.judge.csv
      ragnb calibrate --golden --out golden.csv                    (three hard questions to fill in)
      ragnb calibrate --golden golden.csv

    Exit code: 0 TRUST, 1 REJECT, 3 NOT PROVEN, 2 bad input. Of a golden set: 0 where all lie within the tolerance,
    1 where one does not, 3 where a score is missing, as in one that nobody has filled in yet.
    """
    try:
        if sample is not None:
            return _sample(ratings, sample, asked)
        return _golden(ratings, asked) if golden else _calibrate(ratings, asked)
    except RagnbError as error:
        raise RagnbError(as_options(spoken(str(error)))) from error


def _calibrate(files: Sequence[Path], asked: dict[str, Any]) -> int:
    from ragnb.calibration import calibrate

    if asked["out"] is not None:
        raise RagnbError("--out goes with --sample or --golden; a card is written by --markdown, --html or --json")
    if not files:
        raise RagnbError(
            "nothing to calibrate; name a file of ratings, or draw some labels: --sample 120 judged.csv"
        )
    frame, judges = _ratings(files, asked)
    lost = frame.attrs.get("source", {})
    if lost.get("damaged"):
        raise RagnbError(
            f"{lost['damaged']} of {lost['lines']} input lines are damaged or lost, and the judge may be wrong "
            "just there; mend the file, or remove these lines from it"
        )
    judged = None
    if asked["judged"] is not None:
        from ragnb.calibration import read_judged, unrated

        names = list(dict.fromkeys(frame["dimension"])) if "dimension" in frame else None
        found = unrated(read_judged(asked["judged"], dimensions=names, **_reading(asked)), frame)
        judged = found if len(found) else None
    card = calibrate(
        frame, judge=judges, judged=judged, tolerance=asked["tolerance"], target=asked["target"],
        delta=asked["delta"], scale=asked["scale"] or None, cluster=asked["cluster"], level=asked["level"],
        about=_about(asked["about"]), seed=asked["seed"], lang=asked["lang"],
    )  # fmt: skip
    _write(card, asked)
    return _CODES[card.verdict]


def _reading(asked: dict[str, Any]) -> dict[str, Any]:
    """How files are read: which numbers are none, the scale, and in what encoding."""
    return {
        "missing": list(asked["missing"]) or None,
        "scale": asked["scale"] or None,
        "encoding": asked["encoding"],
        "judge": list(asked["judges"]) or None,
    }


def _ratings(files: Sequence[Path], asked: dict[str, Any]) -> tuple[pd.DataFrame, list[str]]:
    """Return the ratings, and the columns of the judges in them."""
    from ragnb.calibration import judge_columns, read_labels

    human = list(asked["humans"]) or None
    frame = read_labels(files, asked["judged"], human=human, **_reading(asked))
    judges = judge_columns(frame, asked["judges"])
    if not judges:
        raise RagnbError(
            f"{listing(files)}: holds no scores of a judge (columns: {listing(frame.columns)}); name its column "
            "with --judge, or bring its table with --judged"
        )
    return _chosen(frame, asked), judges


def _chosen(frame: pd.DataFrame, asked: dict[str, Any]) -> pd.DataFrame:
    """Keep the dimensions that were asked for."""
    have = [str(name) for name in frame["dimension"].unique()] if "dimension" in frame else []
    for name in asked["dimensions"]:
        if name not in have:
            raise unknown("dimension", name, have)
    return frame[frame["dimension"].isin(asked["dimensions"])] if asked["dimensions"] else frame


def _about(pairs: Sequence[str]) -> dict[str, Any] | None:
    """Read ``key=value`` texts for the footer; true and false are truth values."""
    found = dict(pair("--about", "judge_id=small-8b", text) for text in pairs)
    truths = {"true": True, "false": False}
    return {key: truths.get(value.strip().casefold(), value) for key, value in found.items()} or None


def _write(card: CalibrationCard, asked: dict[str, Any]) -> None:
    """Write what was asked for; with no file, print the card, else its first sentences."""
    if asked["markdown"] is not None:
        write_whole(asked["markdown"], card.to_markdown())
    if asked["html"] is not None:
        from ragnb.cli.card import card_page

        write_whole(asked["html"], card_page(card))
    if asked["json_file"] is not None:
        write_whole(asked["json_file"], json_text(card.to_dict()))
    if asked["markdown"] is None and asked["html"] is None:
        click.echo(card.to_markdown(), nl=False)
    else:
        click.echo("\n".join(plain(reason) for reason in card.reasons))


def _sample(files: Sequence[Path], n: int, asked: dict[str, Any]) -> int:
    from ragnb.calibration import draw_labels, read_judged, write_labels

    if len(files) != 1 or asked["out"] is None:
        raise RagnbError("--sample takes one table of judged answers and --out, the sheet to write: labels.csv")
    dimensions = list(asked["dimensions"]) or None
    judged = _chosen(read_judged(files[0], dimensions=dimensions, **_reading(asked)), asked)
    drawn = draw_labels(judged, n=n, cluster=asked["cluster"], seed=asked["seed"])
    sheet, key = write_labels(drawn, asked["out"])
    say = texts.load(asked["lang"])
    clusters = drawn["cluster"].nunique()
    said = {"n": len(drawn), "all": drawn.attrs["population"], "clusters": clusters, "seed": asked["seed"]}
    click.echo(say("cli.drawn", **said))
    click.echo(say("cli.sheet", file=sheet, dimensions=listing(drawn.attrs["dimensions"])))
    click.echo(say("cli.key", file=key))
    click.echo(say("cli.then", command=f"ragnb calibrate {sheet} --judged {key}"))
    return PASSED


def _golden(files: Sequence[Path], asked: dict[str, Any]) -> int:
    from ragnb.calibration import check_golden, golden_template, read_golden, write_golden

    say = texts.load(asked["lang"])
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
    reading = _reading(asked)
    checked = check_golden(read_golden(files[0], human=list(asked["humans"]) or None, **reading),
                           tolerance=asked["tolerance"])  # fmt: skip
    keys = [c for c in ("item_id", "dimension", "system") if c in checked]
    rows = [["", *keys, *(say(f"golden.{name}") for name in ("judge", "human", "difference"))]]
    for row in checked.to_dict("records"):
        mark = "—" if pd.isna(row["within"]) else "✓" if row["within"] else "✗"
        numbers = ["—" if pd.isna(row[c]) else f"{row[c]:+.2f}" if c == "difference" else f"{row[c]:g}"
                   for c in ("judge", "human", "difference")]  # fmt: skip
        rows.append([mark, *(str(row[key]) for key in keys), *numbers])
    click.echo("\n".join(text_table(rows)))
    off, open_ = int((~checked["within"]).sum()), int(checked["within"].isna().sum())
    verdict = "off" if off else "open" if open_ else "fine"
    click.echo(say(f"golden.{verdict}", n=len(checked), off=off, open=open_, tolerance=f"{asked['tolerance']:g}"))
    return {"off": BLOCKED, "open": NOT_PROVEN, "fine": PASSED}[verdict]
