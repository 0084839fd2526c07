"""Bars that a run's means must reach, decided with their intervals, and told to people and to CI."""

from ragnb.gates.check import check_gates
from ragnb.gates.told import gate_mark, gate_sentences, gates_json, gates_junit

__all__ = ["check_gates", "gate_mark", "gate_sentences", "gates_json", "gates_junit"]
