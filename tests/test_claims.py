"""Each promise of the README, the tour and the pages still stands there, and what shows it exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs" / "en"
PAGES = sorted(page for page in DOCS.parent.rglob("*.md") if "generated" not in page.parts)
CLAIMS = (DOCS / "claims.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| \"(.+)\" \((README|\[\w+\]\((\w+\.md)\))\) \| (.+) \|$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
SENTENCE = re.compile(r"(?<=[.:])\s+(?=[A-Z`*\[0-9])|\n\s*\n|\n(?=[|#-])")
ABSOLUTE = re.compile(
    r"\b(never|always|every|nothing|cannot|neither|no|No|at most|word for word|refused|only)\b|\d ?%"
)
NO_PROMISE = (  # definitions and headings in which one of these words stands
    "a mean and its 95 % confidence interval",
    "10 % missing",
    "95 % intervals, documents of",
    "median coverage, %",
    "weighted means with 95 % confidence intervals",
)


def flat(text: str) -> str:
    return " ".join(text.replace("\\|", "|").split())


def functions_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


ROWS = [(quote, page or "README.md", shown) for quote, _, page, shown in ROW.findall(CLAIMS)]
EVERY_TEST = {name for path in ROOT.glob("tests/**/*.py") for name in functions_in(path)}


def test_every_row_of_the_tables_is_read():
    lines = [line for line in CLAIMS.splitlines() if line.startswith("| ")]
    assert len([line for line in lines if line != "| promise | shown by |"]) == len(ROWS) > 40


@pytest.mark.parametrize(("quote", "page", "shown"), ROWS, ids=[quote[:40] for quote, *_ in ROWS])
def test_a_promise_stands_in_the_text_and_its_test_exists(quote, page, shown):
    text = README if page == "README.md" else (DOCS / page).read_text(encoding="utf-8")
    assert flat(quote) in flat(text)
    named = re.findall(r"`((?:tests|benchmarks)/[\w/]+\.py)(?:::(\w+))?`", shown)
    assert named, shown
    for place, name in named:
        assert (ROOT / place).is_file(), place
        assert (name in functions_in(ROOT / place)) if place.startswith("tests/") else not name, (
            place,
            name,
        )


@pytest.mark.parametrize("page", ["README.md", "docs/en/tour.md"])
def test_every_absolute_sentence_of_the_readme_and_the_tour_has_a_row(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    prose = re.sub(r"<!--.*?-->", "", FENCE.sub("", text))
    quotes = [flat(quote) for quote, *_ in ROWS]
    bare = [
        flat(sentence)
        for sentence in SENTENCE.split(prose)
        if ABSOLUTE.search(sentence) and not any(part in sentence for part in NO_PROMISE)
    ]
    assert len(bare) > 4
    missing = [
        sentence for sentence in bare if not any(q in sentence or sentence in q for q in quotes)
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_tests_and_programs_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    assert not {name for name in re.findall(r"`(test_\w+)`", text) if name not in EVERY_TEST}
    places = re.findall(r"\b((?:tests|benchmarks)/[a-z_/]+\.py)\b", text)
    assert not {place for place in places if not (ROOT / place).is_file()}
