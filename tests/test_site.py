"""The site: every link leads somewhere, both languages build without a warning, and no page asks another host."""

from __future__ import annotations

import html.parser
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from mdit_py_plugins.anchors.index import slugify

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
LANGUAGES = {"en": "en", "zh": "zh_CN"}
PAGES = sorted(page for page in DOCS.rglob("*.md") if "generated" not in page.parts)
SOURCES = [ROOT / "README.md", ROOT / "README.zh.md", ROOT / "CONTRIBUTING.md"]
SOURCES += [ROOT / "benchmarks" / "README.md", *PAGES]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.DOTALL | re.MULTILINE)
CODE = re.compile(FENCE.pattern + r"|`[^`\n]+`", FENCE.flags)
INCLUDE = re.compile(r"^```\{include\} (\S+)$", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$|^\(([\w-]+)\)=$", re.MULTILINE)
HOST_IN_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//")
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)


# The sources


def text_of(path: Path) -> str:
    """Return the Markdown of a page with what it includes, or of the Markdown cells of a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        parts = [(path.parent / name).resolve() for name in INCLUDE.findall(text)]
        return "\n\n".join([text, *(part.read_text(encoding="utf-8") for part in parts)])
    cells = json.loads(text)["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


@cache
def written() -> dict[Path, str]:
    """Return the pages that are written before a build, by their place."""
    sys.path.insert(0, str(DOCS / "ext"))
    try:
        import catalogue
        import reference

        parts = {lang: catalogue.pages(lang) | reference.pages(lang) for lang in LANGUAGES}
    finally:
        sys.path.remove(str(DOCS / "ext"))
    return {
        DOCS / lang / "generated" / name: text
        for lang, own in parts.items()
        for name, text in own.items()
    }


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return the anchors of a page: its headings as MyST and GitHub name them, and targets of their own."""
    text = FENCE.sub("", written().get(path) or text_of(path))
    found: list[str] = []
    for heading, target in HEADING.findall(text):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = target or slugify(re.sub(r"[`*]", "", plain))
        found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return frozenset(found) | frozenset(re.findall(r"\bid=\"([^\"]+)\"", text))


def broken(path: Path) -> Iterator[str]:
    for target in LINK.findall(CODE.sub("", text_of(path))):
        if ELSEWHERE.match(target):
            continue
        place, _, anchor = unquote(target).partition("#")
        aim = Path(os.path.normpath(path.parent / place)) if place else path
        if not (aim.exists() or aim in written() or aim.with_suffix(".rst") in written()):
            yield f"{target}: no such file"
        elif anchor and aim.suffix in (".md", ".ipynb") and anchor not in anchors(aim):
            yield f"{target}: no such heading"


@pytest.mark.parametrize(
    "path", [*SOURCES, *NOTEBOOKS], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_every_link_of_a_page_leads_to_something(path):
    assert not list(broken(path))


def test_the_link_checker_sees_what_is_broken(tmp_path):
    page = tmp_path / "page.md"
    links = "[a](#of-one-kind) [b](#none) [c](none.md) `[d](none.md)`"
    page.write_text(f"# Of *one* `kind`\n{links}\n\n```text\n[e](none.md)\n```\n", encoding="utf-8")
    assert list(broken(page)) == ["#none: no such heading", "none.md: no such file"]


# The built site


class Page(html.parser.HTMLParser):
    """What a page refers to, and the places that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.style = ""
        self._in_style = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        self._in_style = tag == "style"
        self.style += given.get("style", "")
        if (
            tag in ("script", "img", "iframe", "source", "video", "audio", "embed")
            and "src" in given
        ):
            self.loads.append(given["src"])
        if tag == "link":
            self.loads.append(given.get("href", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.loads += [
            part.split()[0] for part in given.get("srcset", "").split(",") if part.strip()
        ]

    def handle_data(self, data):
        self.style += data if self._in_style else ""

    def handle_endtag(self, tag):
        self._in_style = False


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Build both languages as `make docs` does, at a time."""
    folder = tmp_path_factory.mktemp("site")
    env = os.environ | {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
    started = {}
    # Into files: a pipe that nobody reads fills, and one that nobody closes fails another test.
    logs = {lang: folder / f"{lang}.log" for lang in LANGUAGES}
    for lang, name in LANGUAGES.items():
        words = [
            "-m",
            "sphinx",
            "-q",
            "-W",
            "--keep-going",
            "-d",
            folder / "trees" / lang,
            "-c",
            DOCS,
        ]
        words += ["-D", f"language={name}", DOCS / lang, folder / lang]
        command = [sys.executable, *map(str, words)]
        with logs[lang].open("wb") as log:
            started[lang] = subprocess.Popen(
                command, cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT
            )
    codes = {lang: process.wait() for lang, process in started.items()}
    said = {lang: log.read_text(encoding="utf-8") for lang, log in logs.items()}
    assert codes == {"en": 0, "zh": 0}, said
    return folder


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    files = [path for lang in LANGUAGES for path in sorted((site / lang).rglob("*.html"))]
    return {path: Page(path.read_text(encoding="utf-8")) for path in files}


def test_both_languages_build_without_a_warning(site, pages):
    for lang in LANGUAGES:
        assert site / lang / "index.html" in pages
        assert site / lang / "guides" / "index.html" in pages
        assert site / lang / "generated" / "reference" / "index.html" in pages


def test_no_page_asks_another_host_for_anything(site, pages):
    for path, page in pages.items():
        others = [
            place
            for place in page.loads
            if ELSEWHERE.match(place) and not place.startswith("data:")
        ]
        assert not others, path
        assert not HOST_IN_STYLE.search(page.style), path
    for path in site.rglob("*.css"):
        assert not HOST_IN_STYLE.search(path.read_text(encoding="utf-8")), path


def test_every_link_of_the_built_site_arrives(site, pages):
    lost = []
    for path, page in pages.items():
        for link in page.links:
            place, _, anchor = unquote(link).partition("#")
            place = place.partition("?")[0]
            aim = Path(os.path.normpath(path.parent / place)) if place else path
            there = aim.exists() and not (anchor and aim in pages and anchor not in pages[aim].ids)
            if not (there or ELSEWHERE.match(link)):
                lost.append(f"{path.relative_to(site)}: {link}")
    assert not lost


def index_of(folder: Path) -> set[str]:
    """Return the words of a search index."""
    text = (folder / "searchindex.js").read_text(encoding="utf-8")
    found = json.loads(text.removeprefix("Search.setIndex(").rstrip().removesuffix(")"))
    return {*found["terms"], *found["titleterms"]}


@pytest.mark.browser
@pytest.mark.parametrize(
    ("lang", "typed", "wanted"),
    [
        ("en", "latency percentile gate", "guides/two-runs"),
        ("en", "my github action workflow, zebra", "guides/nightly-ci"),  # no page has that word
        ("en", "ollama local model", "guides/documents"),
        ("en", "weighted_means", "generated/reference/api/ragnb.weighted_means"),
        ("zh", "评判模型打分偏高怎么办", "guides/judge"),
        ("zh", "密钥会不会泄露", "safety"),
    ],
)
def test_a_question_in_words_of_its_own_finds_its_page(site, chromium, lang, typed, wanted):
    page = chromium.new_page()
    page.goto(f"{(site / lang / 'search.html').as_uri()}?q={quote(typed)}")
    first = page.locator("ul.search li a").first
    first.wait_for(timeout=30_000)
    place = unquote(first.get_attribute("href")).split("?")[0].split("#")[0]
    assert place.removesuffix(".html").endswith(wanted)
    page.close()


def test_what_the_search_leads_to_is_there(site, pages):
    for lang in ("en", "zh"):
        text = (site / lang / "_static" / "sections.js").read_text(encoding="utf-8")
        found = json.loads(text.removeprefix("const SECTIONS = ").rstrip().removesuffix(";"))
        for name, anchor, _ in found["sections"]:
            assert anchor in pages[site / lang / f"{name}.html"].ids
        most = max(section for pairs in found["terms"].values() for section in pairs[::2])
        assert most == len(found["sections"]) - 1


def test_the_search_knows_the_words_of_both_languages(site):
    english, chinese = index_of(site / "en"), index_of(site / "zh")
    assert {"jackknif", "migrat", "promptfoo"} <= english  # stems
    assert [word for word in chinese if re.fullmatch(r"[\u4e00-\u9fff]{2,}", word)]
    assert "指南" in chinese
