"""`ragnb check` on real traces gives the published rates, and blocks."""

import json

import pytest

from ragnb.cli import main

RATES = {
    "answer_precision": (0.8856, "88.6 %"),
    "over_refusal": (0.0211, "2.1 %"),
    "under_refusal": (0.2456, "24.6 %"),
    "citation_hit_rate": (0.9789, "97.9 %"),
    "compliance": (1.0, "100.0 %"),
}


@pytest.fixture
def checked(shared, tmp_path, capsys):
    folder = shared / "data" / "traces" / "mtragun"
    files = ["--gold", folder / "qaset.json", "--traces", folder / "trace.gemini-3-pro.jsonl"]
    written = ["--markdown", tmp_path / "gates.md", "--json", tmp_path / "gates.json"]
    code = main([str(word) for word in ["check", *files, "-p", "containment=latin", *written]])
    return code, capsys.readouterr().out, tmp_path


def test_mtragun_is_blocked_by_g2_alone(checked):
    code, out, folder = checked
    assert code == 1
    gates = json.loads((folder / "gates.json").read_text(encoding="utf-8"))["gates"]
    assert [gate["gate"] for gate in gates if gate["blocks"]] == ["G2"]
    assert [line.split(" · ")[-2] for line in out.splitlines() if line.startswith("■")] == ["G2"]


@pytest.mark.parametrize("metric", RATES)
def test_mtragun_rates_are_printed_and_written(checked, metric):
    _, out, folder = checked
    rate, words = RATES[metric]
    gates = json.loads((folder / "gates.json").read_text(encoding="utf-8"))["gates"]
    assert [round(gate["value"], 4) for gate in gates if gate["metric"] == metric] == [rate]
    (line,) = [line for line in out.splitlines() if f" {metric} " in line and line[:1] in "■▲●"]
    assert f" {words} · " in line
    lines = (folder / "gates.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if metric in line and words in line]
