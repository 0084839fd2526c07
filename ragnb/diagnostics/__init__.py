"""What is wrong, what probably causes it and what to do: rules on means, and failure modes of single samples."""

from ragnb.diagnostics.findings import diagnose
from ragnb.diagnostics.modes import LEAST_SET, failure_modes, failure_summary, least_set_note
from ragnb.diagnostics.order import MODES
from ragnb.diagnostics.rules import RULES, rule_texts

__all__ = [
    "LEAST_SET",
    "MODES",
    "RULES",
    "diagnose",
    "failure_modes",
    "failure_summary",
    "least_set_note",
    "rule_texts",
]
