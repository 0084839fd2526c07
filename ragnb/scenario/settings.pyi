# What `assess`, `compare` and others take by keyword, for type checkers alone: a misspelt option fails there as it
# does at run time.
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ragnb.scenario.fields import Allow, Bands, Generation, System
from ragnb.schema import Gate, Metric, Profile, Rubric

_Path = str | os.PathLike[str] | None
_Weights = Mapping[str, float | None] | None

class SharedSettings(TypedDict, total=False):
    name: str | None
    title: str | None
    lang: str | None
    traces: _Path
    cases: _Path
    labels_planned: int | None
    gold: Any
    documents: _Path
    generation: Generation | Mapping[str, object] | None
    encoding: str | None
    columns: Mapping[str, str] | None
    where: Mapping[str, str | int | bool | float] | None
    doc: str | None
    cluster: str | None
    slices: Sequence[str] | None
    rubric: Rubric | Mapping[str, object] | None
    metrics: Sequence[str | Metric | Mapping[str, object]] | None
    metric_weights: _Weights
    doc_weights: _Weights
    orient: bool | None
    rescale: bool | None
    level: float | None
    anchor: _Path
    expect: int | None
    allow: Allow | Mapping[str, float] | None
    blank: str | None
    sample: bool | float | None
    gates: Sequence[Gate | Mapping[str, object]] | None
    undecided: str | None
    documents_may_fail: bool | None
    corpus: str | None
    no_data: str | None
    refusal: Sequence[str] | None
    patterns: Sequence[str] | None
    partial: Sequence[str] | None
    split: str | None
    citations: str | None
    containment: str | None
    join: str | None
    bands: Bands | Mapping[str, float] | None
    llm_profiles: Mapping[str, Profile | Mapping[str, object]] | None

class Settings(SharedSettings, total=False):
    # Parameters of their own where systems are compared.
    scores: _Path
    ratings: _Path
    system: System | Mapping[str, str] | None
    candidate: str | None
    baseline: _Path
