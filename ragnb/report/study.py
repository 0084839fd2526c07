"""The report of a calibration alone: its charts and tables, and the page of its card."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ragnb import texts
from ragnb.errors import RagnbError
from ragnb.files import json_text, write_whole
from ragnb.inputs import Inputs, scenario_of
from ragnb.markup.blocks import Block, Picture, Section, Text
from ragnb.markup.rendering import render_page
from ragnb.readers import to_csv_text
from ragnb.scenario import Scenario
from ragnb.sheet.assessment import run_record
from ragnb.sheet.ratings import calibrated
from ragnb.sheet.sections.judge import row_name

# A function of `ragnb.plots` and the frame of the card that it draws, in reading order.
_CHARTS = {
    "judge_human": "counts",
    "band_shares": "bands",
    "bias_by": "inflation",
    "reliability": "reliability",
    "bland_altman": "counts",
    "corrected_means": "corrected",
    "label_budget": "budget",
}
_TABLES = ("verdicts", "bands", "inflation", "recalibration", "labels_needed", "corrected")
_OUTCOMES = {"TRUST": "pass", "NOT PROVEN": "undecided", "REJECT": "fail"}


class Study(NamedTuple):
    """A judge's calibration from ratings alone.

    Attributes
    ----------
    scenario : Scenario
        The settings that were used, overrides included.
    card : CalibrationCard
    inputs : list of dict
        ``role, path, sha256, rows`` of the ratings.
    """

    scenario: Scenario
    card: Any
    inputs: list[dict[str, Any]]

    def save(self, folder: str | os.PathLike[str]) -> dict[str, Path]:
        """Write the page and the tables into a folder; each file appears whole or not at all.

        Returns
        -------
        dict of name to path
            ``report.html, report.md, calibration.json, run.json, scenario.snapshot.yaml``, and the tables of the
            card: ``verdicts.csv, agreement.csv, bands.csv, inflation.csv, recalibration.csv, labels_needed.csv,
            corrected.csv``.
        """
        card = self.card
        scenario = self.scenario
        overall = dict.fromkeys(("value", "low", "high", "range")) | {"n": card.footer["n"]}
        result = {
            "blocked": False,
            "verdict": card.reasons[0],
            "overall": overall,
            "judge": card.verdict,
        }
        written = {
            "report.html": card_page(card, title=scenario.title or scenario.name),
            "report.md": card.to_markdown(),
            "calibration.json": json_text(card.to_dict()),
            "scenario.snapshot.yaml": scenario.snapshot_text(relative_to=Path(folder)),
            "run.json": json_text(
                run_record(scenario, self.inputs, **result, outcome=_OUTCOMES[card.verdict])
            ),
            "agreement.csv": to_csv_text(card.table),
            **{f"{name}.csv": to_csv_text(getattr(card, name)) for name in _TABLES},
        }
        return {name: write_whole(Path(folder) / name, text) for name, text in written.items()}


def study(
    source: str | os.PathLike[str],
    *,
    settings: Mapping[str, Any] | None = None,
    judge: Any = None,
    human: Any = None,
    scale: Any = None,
    missing: Any = None,
    **asked: Any,
) -> Study:
    """Calibrate a judge from ratings alone.

    Parameters
    ----------
    source : path
        A table of ratings, or a scenario that names one (``ratings:``).
    settings : mapping, optional
        Fields of `Scenario`, such as ``lang``, ``level`` and ``labels_planned``.
    judge, human, missing
        As for `read_ratings`.
    scale : (low, high) or str, optional
        The lowest and the highest score, also as a text such as ``1 10``, which ``papermill -p`` can pass. By
        default the range of the scenario's metrics that the dimensions are, else what the ratings suggest.
    **asked
        As for `calibrate`: ``tolerance, target, delta, about, seed``.

    Raises
    ------
    RagnbError
        As `read_ratings` and `calibrate`; for a scenario that names no ratings.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = write_whole(folder / "r.csv", "judge,human\\n" + "4,5\\n2,2\\n1,4\\n" * 30)
    >>> result = study(folder / "r.csv", scale="1 5")
    >>> result.card.verdict, "report.html" in result.save(folder / "study")
    ('REJECT', True)
    """
    scenario = scenario_of(Path(source), settings or {}, "ratings")
    inputs = Inputs()
    if scenario.ratings is None:
        raise RagnbError(
            f"{source}: the scenario names no ratings; add one, such as 'ratings: my_ratings.csv'"
        )
    span = None if scale is None else _two_numbers(scale)
    inputs.read_rated(scenario, judge=judge, human=human, scale=span, missing=missing)
    judges = [judge] if isinstance(judge, str) else judge or ()
    card = calibrated(scenario, inputs.ratings, judge=judges, scale=span, **asked)
    return Study(scenario, card, inputs.files)


def _two_numbers(scale: Any) -> tuple[float, float]:
    """Return the ends of a scale, also of one as text: ``1 10``, ``1,10`` or ``[1, 10]``."""
    ends = scale
    try:
        if isinstance(scale, str):
            ends = scale.strip("[]()").replace(",", " ").split()
        low, high = map(float, ends)
    except (TypeError, ValueError):
        raise RagnbError(
            f"scale={scale!r} is not two numbers; write the lowest and highest: '1 10'"
        ) from None
    return low, high


def card_page(card: Any, *, title: str = "") -> str:
    """Return a card with its charts as a document that opens from a file, without network and without script."""
    from ragnb import plots

    say = texts.load(card.lang)
    verdict, *numbers = card.sections()
    rows = card.verdicts.to_dict("records")
    charts = []
    for place, row in enumerate(rows, 1):
        name = say("sheet.charts")
        blocks = list[Block]()
        # Of a single judge and dimension the verdict above has its name and its reasons.
        if len(rows) > 1:
            name = row_name(row)
            blocks.append(Text(tuple(row["reasons"]), "list"))
        of_row = card.only(judge=row["judge"], dimension=row["dimension"])
        for chart, frame in _CHARTS.items():
            if not getattr(of_row, frame).empty:
                drawn = plots.svg(getattr(plots, chart)(of_row))
                blocks.append(Picture(drawn, say(f"report.{chart}")))
        charts.append(Section(f"part-{place}", name, name, blocks=tuple(blocks), lang=card.lang))
    return render_page(
        [verdict, *charts, *numbers], title=title or say("section.judge"), lang=card.lang
    )
