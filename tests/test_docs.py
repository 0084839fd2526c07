"""Every block of the guides and the tour runs in the folder of `ragnb example`, in the order of the page.

`ragnb` and `papermill` lines of an `sh` block are commands, as are those of PROGRAMS; `python` blocks share one
namespace; a block in an HTML comment runs unseen. Comments steer what follows them: `<!-- file: NAME -->` stores
a block, `<!-- exit: 1 -->` expects that exit code (else 0), `<!-- output -->` holds lines that the block before
must have printed, `<!-- no-run -->` shows what cannot run here. Endpoints at `https://example.org/v1` are those of
a simulated model on 127.0.0.1.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from llm_server import LlmServer
from papermill_line import papermill
from pipeline_server import model

import ragnb
from ragnb.cli import cli, main
from ragnb.example import write_example

ROOT = Path(__file__).resolve().parents[1]
GUIDES = sorted(page for page in ROOT.glob("docs/*/guides/*.md") if page.stem != "index")
GUIDES += [ROOT / "docs" / "en" / f"{name}.md" for name in ("migrating", "statistics", "tour")]
# Packages that only a page of its own uses: tests/release/test_with.py installs them.
APART = {
    "haystack": "haystack",
    "llamaindex": "llama_index",
    "marimo": "marimo",
    "mlflow": "mlflow",
    "tables": "great_tables",
}
WITH = sorted(page for page in ROOT.glob("docs/en/with/*.md") if page.stem != "index")
GUIDES += [page for page in WITH if find_spec(APART.get(page.stem, "ragnb"))]
PROGRAMS = ("git ", "marimo ", "pre-commit ")
FENCE = re.compile(
    r"(?:<!-- (?P<note>[^>]*?) -->\n+)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.M
)


@dataclass
class Block:
    note: str
    kind: str
    text: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(m["note"] or "", m["kind"], m["text"])
        for m in FENCE.finditer(text)
        if m["kind"] != "{toctree}"
    ]


def command(line: str) -> tuple[int, str]:
    """A line of `ragnb` or papermill in this process, which has them imported already."""
    name, *words = shlex.split(line)
    if name == "papermill":
        return papermill(*words)
    if line.startswith(PROGRAMS):
        search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        program = shutil.which(name, path=search) or name
        env = os.environ | {"PATH": search}
        done = subprocess.run([program, *words], capture_output=True, text=True, env=env)
        return done.returncode, done.stdout + done.stderr
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        code = main(words)
    return code, said.getvalue()


@pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")
@pytest.mark.parametrize("page", GUIDES, ids=lambda page: f"{page.parts[-3]}-{page.stem}")
def test_the_blocks_of_a_guide_run_one_after_the_other(page, tmp_path, monkeypatch):
    folder = write_example(tmp_path / "demo")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setitem(sys.modules, "rag", None)
    del sys.modules["rag"]  # each guide has a system of its own
    library = Path(ragnb.__file__).parents[1]
    for name, value in {"PYTHONPATH": str(library), "KEY": "none"}.items():
        monkeypatch.setenv(name, value)
    space, said, ran = {}, "", 0
    with LlmServer(model) as server:
        for block in blocks(page):
            text = block.text.replace("https://example.org/v1", server.base_url)
            if block.note == "output":
                for line in block.text.splitlines():
                    assert " ".join(line.split()) in " ".join(said.split()), said
            elif block.note.startswith("file: "):
                Path(block.note[6:]).write_text(text, encoding="utf-8")
            elif block.note == "no-run":
                continue
            elif block.kind == "python":
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    exec(compile(text, page.name, "exec"), space)
                said, ran = out.getvalue(), ran + 1
            elif block.kind == "sh":
                want, said = int(block.note.removeprefix("exit: ") or 0), ""
                for line in text.replace("\\\n", " ").splitlines():
                    if line.startswith(("ragnb ", "papermill ", *PROGRAMS)):
                        code, out = command(line.partition("  #")[0])
                        assert code == want, (line, out)
                        said, ran = said + out, ran + 1
            else:
                assert block.kind in ("", "text", "yaml", "json", "csv", "jsonl"), block.kind
    assert ran


@pytest.mark.parametrize("page", WITH, ids=lambda page: page.stem)
def test_a_page_has_the_same_blocks_in_chinese(page):
    chinese = ROOT / "docs" / "zh" / "with" / page.name
    assert blocks(chinese) == blocks(page)


INLINE = re.compile(r"`(ragnb [a-z]+ [^`\n]*--[^`\n]*)`")
PAGES = [page for page in ROOT.glob("docs/*/**/*.md") if "generated" not in page.parts]


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md")], ids=lambda page: page.name)
def test_an_option_in_the_text_is_one_of_its_command(page):
    for line in INLINE.findall(page.read_text(encoding="utf-8")):
        name, *words = line.split()[1:]
        options = {option for one in cli.commands[name].params for option in one.opts}
        named = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert named <= options, line
