"""Findings with probable causes and recommended actions, failure modes, and quality gates."""

from ragnb.diagnostics.completeness import completeness, reopen_incomplete
from ragnb.diagnostics.findings import (
    MODES,
    diagnose,
    failure_modes,
    failure_summary,
    findings,
    least_set_note,
    mode_reductions,
    mode_summary,
    rule_gains,
)
from ragnb.diagnostics.gates import (
    check_differences,
    check_gates,
    gates_json,
    if_documents_fail,
    junit,
)
from ragnb.diagnostics.rules import RULES, fitting, rule_texts, warning_bars
