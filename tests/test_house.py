"""The rules of the house: floors, light import, front door, texts that agree, a clean tree."""

from __future__ import annotations

import ast
import inspect
import json
import re
import string
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

import ragnb

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "ragnb"
SOURCES = sorted(LIBRARY.rglob("*.py"))
SOURCE_IDS = [str(path.relative_to(LIBRARY)) for path in SOURCES]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

FLOORS = {
    **dict.fromkeys(["cli", "pytest_plugin"], 11),
    "widgets": 10,
    "report": 9,
    **dict.fromkeys(["sheet", "plots"], 8),
    "comparison": 7,
    "inputs": 6,
    "traces": 5,
    **dict.fromkeys(["calibration", "diagnostics", "judging"], 4),
    **dict.fromkeys(["weights", "scoring"], 3),
    **dict.fromkeys(["readers", "scenario", "store"], 2),
    **dict.fromkeys(["schema", "markup"], 1),
    **dict.fromkeys(
        ["stats", "texts", "files", "polars", "progress", "signals", "example", "versions"], 0
    ),
    "errors": 0,
}
OPEN_TO_ALL = {"errors", "texts"}
DRAWING = {"plots", "markup", "report"}
COMPUTING = {"stats", "weights", "scoring", "comparison"} | {
    room for room, floor in FLOORS.items() if floor in (4, 5)
}
EARLY = set(sys.stdlib_module_names) | {
    "numpy",
    "pandas",
    "narwhals",
    "pydantic",
    "pydantic_core",
    "ragnb",
}
HEAVY = [
    "IPython",
    "click",
    "ipykernel",
    "ipywidgets",
    "langchain",
    "matplotlib",
    "nbconvert",
    "nbformat",
    "openai",
    "papermill",
    "playwright",
    "polars",
    "pyspark",
    "ragas",
    "rapidfuzz",
    "ruamel",
    "scipy.stats",
    "seaborn",
]
DOOR = {
    "Client",
    "Profile",
    "answer_cases",
    "check_gold",
    "draw_labels",
    "generate_cases",
    "inspect_file",
    "Assessment",
    "CalibrationCard",
    "DEFAULT_GATES",
    "EvalCase",
    "EvalResult",
    "FileCard",
    "Gate",
    "METRICS",
    "Metric",
    "Moments",
    "RULES",
    "Rubric",
    "Rule",
    "Scenario",
    "agreement",
    "applicable_metrics",
    "arena",
    "assess",
    "calibrate",
    "changed_questions",
    "check_gates",
    "compare",
    "compare_operations",
    "corrected_mean",
    "diagnose",
    "evaluate",
    "failure_modes",
    "improve",
    "judge",
    "Claims",
    "label_claims",
    "label_retrieval",
    "label_traces",
    "load_scenario",
    "moments",
    "noise",
    "Noise",
    "Panel",
    "panel",
    "patch_scenario",
    "plan",
    "read_cases",
    "read_gold",
    "read_ratings",
    "read_scores",
    "read_traces",
    "refusal_metrics",
    "retrieval",
    "show_versions",
    "sample_traces",
    "standings",
    "weigh",
    "weight_map",
    "weighted_means",
    "weighted_score",
    "unit_costs",
}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def room_of(path: Path) -> str:
    return path.relative_to(LIBRARY).parts[0].removesuffix(".py")


def rooms() -> set[str]:
    return {room_of(path) for path in SOURCES} - {"__init__", "__main__"}


def walk(node: ast.AST, deep: bool = True, typing_too: bool = True) -> Iterator[ast.AST]:
    """Walk a tree; not `deep` stays out of functions, not `typing_too` stays out of TYPE_CHECKING blocks."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not deep and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if (
            not typing_too
            and isinstance(child, ast.If)
            and "TYPE_CHECKING" in ast.unparse(child.test)
        ):
            continue
        yield from walk(child, deep, typing_too)


def imports(module: ast.Module, package: Sequence[str] = ("ragnb",), **how: bool) -> Iterator[str]:
    """Yield the dotted name of everything a module imports; ``from a import b`` gives ``a.b``."""
    for node in walk(module, **how):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            parts = base + (node.module.split(".") if node.module else [])
            yield from (".".join([*parts, alias.name]) for alias in node.names)


def own_imports(path: Path) -> set[str]:
    """Rooms that a file opens, and names it takes from the front door."""
    package = ["ragnb", *path.relative_to(LIBRARY).parts[:-1]]
    names = (name.split(".") for name in imports(tree(path), package))
    return {name[1] if len(name) > 1 else "ragnb" for name in names if name[0] == "ragnb"}


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=ROOT, check=False
    )


def python(code: str) -> Any:
    """Run code in a fresh process and return the JSON it prints last."""
    done = run("-c", code)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


# Floors


@pytest.mark.parametrize("path", SOURCES, ids=SOURCE_IDS)
def test_doors_open_only_downwards(path):
    room = room_of(path)
    if room in {"__init__", "__main__"}:
        return
    assert room in FLOORS, f"{room} has no floor: give it one in FLOORS"
    for other in own_imports(path) - {room, "__version__"}:
        assert other in FLOORS, f"{room} takes {other} from the front door instead of its room"
        allowed = other in OPEN_TO_ALL if room != "errors" else False
        assert allowed or FLOORS[other] < FLOORS[room], (
            f"{room} opens {other}, which is not below it"
        )


def test_what_draws_opens_no_room_that_computes():
    opened = {(room_of(path), other) for path in SOURCES for other in own_imports(path)}
    assert not {(room, other) for room, other in opened if room in DRAWING and other in COMPUTING}


@pytest.mark.parametrize("path", SOURCES, ids=SOURCE_IDS)
def test_top_level_imports_are_the_light_ones(path):
    early = EARLY | {"cli": {"click"}, "pytest_plugin": {"pytest"}}.get(room_of(path), set())
    found = {name.split(".")[0] for name in imports(tree(path), deep=False, typing_too=False)}
    assert found <= early, f"import inside the function that needs it: {sorted(found - early)}"


def test_no_module_opens_itself_in_a_circle():
    named = {
        ".".join(["ragnb", *path.relative_to(LIBRARY).with_suffix("").parts]): path
        for path in SOURCES
    }
    named = {name.removesuffix(".__init__"): path for name, path in named.items()}
    opened = {}
    for name, path in named.items():
        package = ["ragnb", *path.relative_to(LIBRARY).parts[:-1]]
        found = imports(tree(path), package, deep=False, typing_too=False)
        known = {one if one in named else one.rpartition(".")[0] for one in found} & named.keys()
        opened[name] = known - {name, "ragnb"}
    list(TopologicalSorter(opened).static_order())  # a CycleError names the circle


def test_import_finder_sees_every_form_of_import():
    module = ast.parse(
        "from ragnb import weights\nfrom . import plots\nfrom .. import diagnostics\n"
        "if TYPE_CHECKING:\n    import polars\n"
        "def f():\n    from ..stats.means import mean\n    import scipy.special\n"
    )
    top = {"ragnb.weights", "ragnb.readers.plots", "ragnb.diagnostics", "polars"}
    package = ["ragnb", "readers"]
    assert set(imports(module, package, deep=False)) == top
    assert set(imports(module, package, deep=False, typing_too=False)) == top - {"polars"}
    assert set(imports(module, package)) == top | {"ragnb.stats.means.mean", "scipy.special"}


def test_packages_of_an_extra_are_asked_for_at_the_door():
    extras = {
        extra: module_names(needs) for extra, needs in PROJECT["optional-dependencies"].items()
    }
    del extras["all"]
    extras["app"].remove("ragnb")  # with the extra "notebook"
    for path in SOURCES:
        names = {name for extra in extras.keys() - doors(path) for name in extras[extra]}
        found = {name.split(".")[0] for name in imports(tree(path), typing_too=False)}
        assert not found & names, f"{path.name}: open {sorted(found & names)} with errors.require"


def doors(path: Path) -> set[str]:
    """The extras that a room asks for as a whole, with ``need_package`` in its ``__init__``."""
    calls = [node for node in tree(path.parent / "__init__.py").body if isinstance(node, ast.Expr)]
    asked = [
        re.fullmatch(r"need_package\('\w+', extra='(\w+)'\)", ast.unparse(call)) for call in calls
    ]
    return {call[1] for call in asked if call is not None}


def module_names(needs: list[str]) -> set[str]:
    return {re.split(r"[<>=!\[~ ]", need)[0].replace("-", "_") for need in needs}


# Import


def test_import_is_light_and_changes_nothing():
    seen = python(
        f"""
import json, os, sys, warnings
import numpy, pandas, narwhals, pydantic
before = dict(os.environ), list(warnings.filters), os.getcwd()
sockets = []
sys.addaudithook(lambda event, args: sockets.append(event) if event.startswith("socket.") else None)
import ragnb
bare = [name for name in {HEAVY!r} if name in sys.modules]
doors = [getattr(ragnb, name) for name in ragnb.__all__]
used = [name for name in {HEAVY!r} if name in sys.modules]
same = before == (dict(os.environ), list(warnings.filters), os.getcwd())
print(json.dumps([bare, used, sockets, same]))
"""
    )
    assert seen == [[], [], [], True]


def test_the_rooms_that_draw_and_count_are_attributes():
    for name in ("plots", "stats", "widgets"):
        assert name in dir(ragnb)
        assert getattr(ragnb, name).__name__ == f"ragnb.{name}"
    assert "ragnb.plots" not in python(
        "import json, sys, ragnb; dir(ragnb); print(json.dumps([*sys.modules]))"
    )


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["judge", "--help"]])
def test_help_opens_no_data_library(words):
    loaded = python(
        f"import contextlib, io, json, sys\nfrom ragnb.cli import main\n"
        f"with contextlib.redirect_stdout(io.StringIO()): assert main({words!r}) == 0\n"
        "print(json.dumps([name for name in ('numpy', 'pandas', 'polars', 'scipy') if name in sys.modules]))"
    )
    assert loaded == []


def test_every_room_imports_without_the_heavy_packages():
    heavy = [name for name in HEAVY if name != "click"]
    modules = [
        ".".join(["ragnb", *path.relative_to(LIBRARY).with_suffix("").parts]).removesuffix(
            ".__init__"
        )
        for path in SOURCES
        if path.stem != "__main__"
    ]
    loaded = python(
        f"import importlib, json, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
        f"print(json.dumps([name for name in {heavy!r} if name in sys.modules]))"
    )
    assert loaded == []


# The front door


def test_front_door_is_sorted_and_in_the_design():
    names = [name for name in ragnb.__all__ if not name.startswith("__")]
    assert names == sorted(names)
    assert set(names) <= DOOR
    assert set(names) <= set(dir(ragnb))


def test_front_door_names_are_documented():
    for name in ragnb.__all__:
        thing = getattr(ragnb, name)
        if callable(thing):
            assert inspect.getdoc(thing), f"{name} has no docstring"
            assert thing.__module__.startswith("ragnb."), name
        if inspect.isfunction(thing):
            doc = inspect.getdoc(thing)
            assert re.search(r"^Examples\n-+\n(.*\n)*?\s*>>> ", doc, re.MULTILINE), (
                f"{name} has no example"
            )


def test_public_functions_take_one_thing_and_everything_else_by_keyword():
    things = [getattr(ragnb, name) for name in ragnb.__all__]
    functions = {thing.__name__: thing for thing in things if inspect.isfunction(thing)}
    for thing in filter(inspect.isclass, things):
        methods = vars(thing).items()  # without what pydantic brings
        functions |= {
            f"{thing.__name__}.{k}": m for k, m in methods if inspect.isfunction(m) and k[0] != "_"
        }
    assert {"weighted_means", "Moments.means", "Moments.bootstrap", "Assessment.save"} <= set(
        functions
    )
    for name, function in functions.items():
        by_place = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.kind < p.VAR_POSITIONAL
        ]
        assert len([p for p in by_place if p != "self"]) <= 1, (
            f"{name}: give all but {by_place[0]} by keyword"
        )


def test_no_room_is_named_like_a_public_name():
    """Importing a room would put the module in the place of the name."""
    assert not rooms() & (DOOR | set(ragnb.__all__))


# What every file says


@pytest.mark.parametrize("path", SOURCES, ids=SOURCE_IDS)
def test_every_module_says_why_it_exists_and_nothing_is_left_open(path):
    text = path.read_text(encoding="utf-8")
    assert not text.strip() or ast.get_docstring(tree(path))
    assert not re.search(r"\b(TODO|FIXME|XXX|NotImplementedError)\b", text)


@pytest.mark.parametrize("path", SOURCES, ids=SOURCE_IDS)
def test_library_sets_no_warnings_filter(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\b(simplefilter|filterwarnings|catch_warnings)\b", text)


# Texts


def flat(table: dict[str, Any], prefix: str = "") -> dict[str, list[str]]:
    """Give every text of a language by its dotted key; a list of texts or of small tables stays one entry."""
    out: dict[str, list[str]] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            out |= flat(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = [*leaves(value)]
    return out


def leaves(value: Any) -> Iterator[str]:
    """Give the texts and numbers of a list and of the tables in it."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from leaves(part)
    else:
        yield str(value)


def texts(lang: str) -> dict[str, list[str]]:
    return flat(tomllib.loads((LIBRARY / "texts" / f"{lang}.toml").read_text(encoding="utf-8")))


def fields(entry: list[str]) -> set[str]:
    return {
        name
        for text in entry
        for _, name, _, _ in string.Formatter().parse(text)
        if name is not None
    }


def callers() -> list[ast.Module]:
    """Everything that may ask for a text: the library, and the code cells of its notebooks."""
    cells = ["\n".join(map(source_of, code_cells(notebook))) for notebook in NOTEBOOKS]
    return [tree(path) for path in SOURCES] + [ast.parse(cell) for cell in cells]


def pattern(node: ast.AST) -> str | None:
    """Word a string or f-string as a regular expression; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(pattern(part) or ".+" for part in node.values)
    return None


def asked_for() -> Iterator[str]:
    """Yield the patterns of keys given to ``say``, ``entry`` and ``head``, and to the columns of a ``table``."""
    for node in (node for module in callers() for node in ast.walk(module)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            place = {"say": 0, "head": 0, "entry": 1}.get(name, len(node.args))
            given = node.args[place : place + 1]
            if name == "table" and len(node.args) > 1 and isinstance(node.args[1], ast.Dict):
                given = [key for key in node.args[1].keys if key is not None]
            # The head of a column of numbers begins with a mark.
            yield from (
                found.removeprefix(">") for found in map(pattern, given) if found is not None
            )


def test_languages_have_the_same_keys_and_places():
    english, chinese = texts("en"), texts("zh")
    assert english.keys() == chinese.keys()
    for key in english:
        assert fields(english[key]) == fields(chinese[key]), key
        assert len(english[key]) == len(chinese[key]), key
        assert all(text.strip() for text in english[key] + chinese[key]), key


def test_chinese_texts_are_chinese():
    for key, entry in texts("zh").items():
        words = re.sub(r"\{[^}]*\}", "", " ".join(entry))
        if len(re.findall(r"[A-Za-z]{2,}", words)) > 3:
            assert re.search(r"[\u4e00-\u9fff]", words), f"{key} is not Chinese: {words}"


def test_every_text_asked_for_exists():
    keys = set(texts("en"))
    tables = {key[:end] for key in keys for end in [hit.start() for hit in re.finditer(r"\.", key)]}
    for wanted in asked_for():
        is_there = any(re.fullmatch(wanted, key) for key in keys | tables)
        assert is_there, f"{wanted} is not in ragnb/texts/en.toml"


def test_every_text_is_used():
    """A key is used by its literal, by an f-string that fits it, or by a literal prefix up to a dot."""
    strings = {pattern(node) for module in callers() for node in ast.walk(module)} - {None}
    dotted = {
        text.removeprefix(">")
        for text in strings
        if "\\." in text and not text.startswith((".+", "\\."))
    }
    uses = [re.compile(rf"(?:{text})(?:(?<=\.)|\.|$)") for text in dotted | set(asked_for())]
    assert not [key for key in texts("en") if not any(use.match(key) for use in uses)]


# The words

NEVER = [
    r"\bmend(s|ed|ing)?\b",
    r"(past|under|over|reach|raise|lower|move) the (\w+ )?bar\b",
    r"nobody has checked",
    r"\bstands? (in|there|beside|twice|for|nowhere)\b",
    r"\bspeaks? to the question",
    r"\b(held|holds?) against\b",
    r"\btoo kind\b",
    r"\bcarr(y|ies) (this|the) result",
    r"\bhanded on\b",
    r"\bhow sure\b",
    r"\bborne\b",
    r"\brests? on\b",
    r"\bpaid work\b",
    r"\b(break|broken) off\b",
    r"\brough one\b",
    r"\bby wording alone",
    r"\bpeople's\b",
    r"\banew\b",
    r"\ball alike\b",
    r"\bthe words used here",
    r"轨迹",
    r"评审",
    r"门槛",
    r"越过阈值",
    r"阻断",
    r"失分",
]
"""Home-made phrases for which the field has a term (threshold, below the threshold, based on, 评判模型, …)."""
PROMPTS = (
    "scoring.",
    "judge.prompt",
    "judge.after",
    "judge.anchors",
    "judge.bands.",
    "judge.mode.",
    "judge.probes",
)
"""What judges are shown: any other word is another judge."""


def help_texts() -> Iterator[tuple[str, str]]:
    from ragnb.cli import cli

    for name, command in cli.commands.items():
        yield f"ragnb {name}", command.help or ""
        yield from (
            (f"ragnb {name} {one.name}", getattr(one, "help", None) or "") for one in command.params
        )


def test_texts_documents_and_help_use_the_words_of_the_field():
    shown = {
        f"{lang}: {key}": " ".join(entry)
        for lang in ("en", "zh")
        for key, entry in texts(lang).items()
        if not key.startswith(PROMPTS)
    }
    errors = tomllib.loads((LIBRARY / "texts" / "errors.zh.toml").read_text(encoding="utf-8"))
    shown |= dict(help_texts()) | errors | {english: english for english in errors}
    shown |= {f"rn.{name}": inspect.getdoc(getattr(ragnb, name)) or "" for name in DOOR}
    pages = [path for path in ROOT.glob("docs/**/*.md") if "generated" not in path.parts]
    for place in ("*.md", "benchmarks/*.md", "data/*.md", "scenarios/*"):
        pages += ROOT.glob(place)
    for path in pages:
        shown[str(path.relative_to(ROOT))] = path.read_text(encoding="utf-8")
    never = re.compile("|".join(NEVER), re.IGNORECASE)
    found = {where: hit[0] for where, text in shown.items() if (hit := never.search(text))}
    assert not found, found


# The tree

SKIPPED = {".git", ".venv", "reports", "build", "dist", "__pycache__", ".ipynb_checkpoints"}
SKIPPED |= {".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def source_of(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def repository_files(folder: Path = ROOT) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name not in SKIPPED:
            yield from repository_files(path) if path.is_dir() else [path]


def test_no_file_holds_a_machine_path_or_an_index_host():
    homes = [f"/{name}/" for name in ("root", "work", "Users")] + [r"/home/\w", r"[A-Z]:\\\\?Users"]
    hosts = [r"pypi\.\w+", r"python" + r"hosted", r"index-" + r"url\s*=", r"https?://[\w.]*mirror"]
    banned = re.compile("|".join(homes + hosts).encode())
    for path in repository_files():
        if path != Path(__file__):
            found = banned.search(path.read_bytes())
            assert not found, f"{path.relative_to(ROOT)}: {found}"


def test_no_file_is_large():
    assert not [str(path) for path in repository_files() if path.stat().st_size > 1_000_000]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_short_callers_without_errors(notebook):
    cells = code_cells(notebook)
    assert len(cells) <= 15
    for cell in cells:
        assert len(source_of(cell).splitlines()) <= 10, source_of(cell)
        assert not re.search(r"^\s*(def|class|async def) ", source_of(cell), re.MULTILINE)
        assert not [output for output in cell["outputs"] if output["output_type"] == "error"]


def test_the_formatter_decides_the_layout_and_nothing_is_exempt():
    exempt = re.compile(r"#\s*fmt:\s*(skip|off|on)")
    files = [path for path in repository_files() if path.suffix in {".py", ".pyi"}]
    assert not [str(path) for path in files if exempt.search(path.read_text(encoding="utf-8"))]


CHECKERS = [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]]


@pytest.mark.parametrize("command", CHECKERS, ids=" ".join)
def test_checkers_are_green(command):
    done = run("-m", *command)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_misspelt_option_is_refused_by_mypy(tmp_path):
    names = (
        "assess",
        "compare",
        "standings",
        "weight_map",
        "changed_questions",
        "compare_operations",
    )
    calls = [f"rn.{name}('x.csv', metric_weigths={{}})" for name in names]
    (tmp_path / "use.py").write_text("\n".join(["import ragnb as rn", *calls, ""]))
    done = run("-m", "mypy", str(tmp_path / "use.py"))
    assert done.returncode == 1, done.stdout + done.stderr
    for name in names:
        assert f'Unexpected keyword argument "metric_weigths" for "{name}"' in done.stdout


def test_the_options_of_assess_are_the_fields_of_a_scenario():
    from ragnb.scenario import Scenario

    stub = (LIBRARY / "scenario" / "settings.pyi").read_text(encoding="utf-8")
    classes = [node for node in ast.parse(stub).body if isinstance(node, ast.ClassDef)]
    named = [field.target.id for settings in classes for field in settings.body]
    assert len(named) == len(set(named))
    assert set(named) == set(Scenario.__pydantic_fields__)
