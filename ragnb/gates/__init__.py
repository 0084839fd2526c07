"""Thresholds that a run's means must meet, decided with their intervals, and reported to people and to CI."""

from ragnb.gates.check import check_gates
from ragnb.gates.completeness import completeness
from ragnb.gates.told import gate_mark, gate_sentences, gates_json, gates_junit, input_words

__all__ = [
    "check_gates", "completeness", "gate_mark", "gate_sentences", "gates_json", "gates_junit", "input_words",
]  # fmt: skip
