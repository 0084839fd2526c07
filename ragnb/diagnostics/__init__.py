"""What is wrong, what probably causes it and what to do: rules, failure modes, and the gates that decide."""

from ragnb.diagnostics.findings import diagnose
from ragnb.diagnostics.gate_reports import gate_mark, gate_sentences, gates_json, gates_junit, input_words
from ragnb.diagnostics.gates import check_gates, completeness
from ragnb.diagnostics.modes import LEAST_SET, MODES, failure_modes, failure_summary, least_set_note
from ragnb.diagnostics.rules import RULES, rule_texts

__all__ = [
    "LEAST_SET", "MODES", "RULES", "check_gates", "completeness", "diagnose", "failure_modes", "failure_summary",
    "gate_mark", "gate_sentences", "gates_json", "gates_junit", "input_words", "least_set_note", "rule_texts",
]  # fmt: skip
