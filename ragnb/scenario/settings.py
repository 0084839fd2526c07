"""The fields of a scenario as keyword arguments, so that a type checker refuses a misspelt one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypedDict

from ragnb.scenario.kinds import Bands, Damaged
from ragnb.schema import Gate, Metric, Profile, Rubric

Path = str | os.PathLike[str] | None
Weights = Mapping[str, float | None] | None


class Settings(TypedDict, total=False):
    """What may be set for one run: each field of `Scenario`; None keeps the scenario's value."""

    name: str | None
    title: str | None
    lang: str | None
    scores: Path
    traces: Path
    cases: Path
    ratings: Path
    gold: Path
    encoding: str | None
    columns: Mapping[str, str] | None
    where: Mapping[str, str | int | bool | float] | None
    doc: str | None
    cluster: str | None
    slices: Sequence[str] | None
    rubric: Rubric | Mapping[str, object] | None
    metrics: Sequence[str | Metric | Mapping[str, object]] | None
    metric_weights: Weights
    doc_weights: Weights
    orient: bool | None
    rescale: bool | None
    level: float | None
    candidate: str | None
    damaged: Damaged | Mapping[str, float] | None
    sample: bool | None
    gates: Sequence[Gate | Mapping[str, object]] | None
    no_data: str | None
    refusal: Sequence[str] | None
    patterns: Sequence[str] | None
    partial: Sequence[str] | None
    split: str | None
    containment: str | None
    join: str | None
    bands: Bands | Mapping[str, float] | None
    llm_profiles: Mapping[str, Profile | Mapping[str, object]] | None
