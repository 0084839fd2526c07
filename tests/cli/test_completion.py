"""Completion of commands in a shell, as the docs set it up."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
PAGES = [ROOT / "docs" / lang / "install.md" for lang in ("en", "zh")]
ENV = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def setup_line(shell: str) -> str:
    """The line for a shell's start-up file that both pages show."""
    lines = [line for page in PAGES for line in page.read_text(encoding="utf-8").splitlines()]
    (shown,) = {
        line.partition("  #")[0] for line in lines if f"={shell}_source" in line and "  #" in line
    }
    return shown


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["ragnb", "cal"], ["calibrate"]),
        (["ragnb", "check", "--lang", ""], ["en", "zh"]),
        (["ragnb", "check", "--ju"], ["--junit"]),
    ],
)
def test_bash_completes_commands_options_and_choices(words, completed, tmp_path):
    quoted = " ".join(f"'{word}'" for word in words)
    script = f"""
{setup_line("bash")}
complete -p ragnb
COMP_WORDS=({quoted})
COMP_CWORD={len(words) - 1}
_ragnb_completion ragnb
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        ["bash", "--norc", "-ec", script],
        env=ENV,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    registered, *found = done.stdout.splitlines()
    assert registered.startswith("complete ")
    assert "_ragnb_completion ragnb" in registered
    assert found == completed


@pytest.mark.parametrize(
    ("shell", "registers"),
    [("zsh", r"compdef _ragnb_completion ragnb"), ("fish", r"complete .*--command ragnb")],
)
def test_the_other_shells_get_a_script_for_ragnb(shell, registers):
    (variable,) = re.findall(rf"_RAGNB_COMPLETE={shell}_source", setup_line(shell))
    name, value = variable.split("=")
    done = subprocess.run(
        ["ragnb"], env=ENV | {name: value}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(registers, done.stdout)
