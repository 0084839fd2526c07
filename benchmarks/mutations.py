"""Change the code behind the numbers, an operator, sign, constant or comparison at a time; count what tests see.

``python benchmarks/mutations.py --n 60 --seed 1 --by-file`` draws from statistics, weights, gates, the calibration
verdict and comparison. A copy of the checkout is changed, never the checkout itself. Each change runs the doctests
of its file and the tests of its room, up to the first failure: the first answers come within minutes, and what
only tests of other rooms see counts as unseen.

Without ``--by-file`` the tests run once with coverage, to learn which test runs which line, and each change runs
the tests of its line.

A change that no test sees is printed: it needs a test, or it is equal in effect.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CODE = [
    "ragnb/stats/*.py",
    "ragnb/weights/*.py",
    "ragnb/diagnostics/gates.py",
    "ragnb/calibration/verdict.py:verdict_row,sides_of,_hopeless,reasons_of,_looks_of,_gain_key,_bias_key",
    "ragnb/calibration/sentences.py:summary",
    "ragnb/calibration/measures.py:over_constant,measured",
    "ragnb/comparison/differences.py",
    "ragnb/comparison/columns.py",
    "ragnb/comparison/row.py",
    "ragnb/comparison/estimates.py",
    "ragnb/comparison/pairs.py",
    "ragnb/comparison/ranking.py",
]
# The tests of each room, for `--by-file`: less than a minute each, the quickest files first.
ROOMS = {
    "ragnb/stats": ["tests/stats"],
    "ragnb/weights": [
        "tests/weights/test_total.py",
        "tests/weights/test_clusters.py",
        "tests/weights/test_conversations.py",
        "tests/weights/test_weights_noise.py",
        "tests/weights/test_corpus.py",
        "tests/weights/test_moments.py",
        "tests/weights/test_weights.py",
        "tests/weights/test_engines.py",
    ],
    "ragnb/diagnostics": ["tests/test_gates.py", "tests/test_decisions.py"],
    "ragnb/calibration": [
        "tests/calibration/test_corrected.py",
        "tests/calibration/test_calibration_looks.py",
        "tests/calibration/test_calibration_verdict.py",
    ],
    "ragnb/comparison": [
        "tests/comparison/test_comparison_estimates.py",
        "tests/comparison/test_comparison_rows.py",
        "tests/comparison/test_comparison_standings.py",
        "tests/comparison/test_comparison_changed.py",
        "tests/comparison/test_comparison_weights.py",
        "tests/comparison/test_ladder.py",
        "tests/comparison/test_comparison.py",
    ],
}
TESTS = [
    "test_stats*.py",
    "test_weights.py",
    "test_moments.py",
    "test_clusters.py",
    "test_engines.py",
    "test_corpus.py",
    "test_decisions.py",
    "test_gates.py",
    "test_planning.py",
    "test_calibration*.py",
    "test_corrected.py",
    "test_draw.py",
    "test_comparison*.py",
    "test_diagnostics.py",
    "test_assessment.py",
    "test_judging_order.py",
    "test_streams.py",
    "real/test_stats*.py",
    "real/test_calibration.py",
    "real/test_corrected.py",
    "real/test_comparison.py",
]
OTHER: dict[type, Any] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
# Coverage's own contexts do not see the tests that hypothesis runs.
CONTEXTS = """from coverage import Coverage

def pytest_runtest_setup(item):
    Coverage.current().switch_context(item.nodeid.partition("[")[0])
"""
PYTEST = ["-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist"]
# What rounding may leave: a tenth more of it decides nothing.
TOLERANCE = 1e-6
# Seconds: what takes longer hangs, and counts as seen.
PATIENCE = 240
PATIENCE_OF_A_ROOM = 900


def changeable(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what lies below a node, except words for readers (annotations, messages) and guards (``strict=``)."""
    if isinstance(node, ast.JoinedStr | ast.Raise):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":
        # Of `zip`: sequences of one length are paired alike without it.
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                yield from changeable(child)


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the node with one thing changed, in every way that could matter."""
    if isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            if type(op) in OTHER:
                ops = [*node.ops[:at], OTHER[type(op)](), *node.ops[at + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in OTHER:
        yield type(node)(**{**dict(ast.iter_fields(node)), "op": OTHER[type(node.op)]()})
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        value = node.value
        if 0 < abs(value) < TOLERANCE and not isinstance(value, bool):
            return
        more = value + 1 if value == int(value) else 1.1 * value
        yield ast.Constant(not value if isinstance(value, bool) else more)


class Swap(ast.NodeTransformer):
    """Put one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        """Return the other node for the one, and any other as it is."""
        return self.new if node is self.old else super().generic_visit(node)


def mutants(
    root: Path, code: list[str]
) -> Iterator[tuple[Path, ast.Module, ast.stmt, ast.AST, ast.AST]]:
    """Yield file, tree, statement, node and the changed node."""
    for pattern, _, names in (part.partition(":") for part in code):
        for path in sorted(root.glob(pattern)):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
            asked = (
                [node for node in functions if node.name in names.split(",")] if names else [tree]
            )
            for one in asked:
                statement: Any = None
                for node in changeable(one):
                    statement = node if isinstance(node, ast.stmt) else statement
                    for other in changed(node):
                        yield path, tree, statement, node, ast.copy_location(other, node)


def source_of(tree: ast.Module, node: ast.AST, other: ast.AST) -> str:
    """Return the source with one node changed."""
    text = ast.unparse(ast.fix_missing_locations(Swap(node, other).visit(tree)))
    Swap(other, node).visit(tree)
    return text


def run(root: Path, *words: str, limit: float | None = None) -> int:
    """Run Python in the copy and return its exit code; 1 where it does not end in time."""
    env = os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(
            [sys.executable, *words],
            cwd=root,
            env=env,
            timeout=limit,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ).returncode
    except subprocess.TimeoutExpired:
        return 1


def tests_by_line(root: Path) -> dict[tuple[str, int], list[str]]:
    """Run the tests once and return those that run each line of the library, those of few lines first."""
    (root / "contexts.py").write_text(CONTEXTS, encoding="utf-8")
    files = [str(path) for pattern in TESTS for path in sorted((root / "tests").rglob(pattern))]
    if run(root, "-m", "coverage", "run", "--source=ragnb", *PYTEST, "-p", "contexts", *files):
        raise SystemExit("the tests fail before anything is changed")
    found: dict[tuple[str, int], list[str]] = {}
    with sqlite3.connect(root / ".coverage") as data:
        rows = data.execute(
            "select file.path, context.context, numbits from line_bits join file on file.id = file_id "
            "join context on context.id = context_id where context <> ''"
        ).fetchall()
    size = Counter(test for _, test, _ in rows)
    for path, test, lines in sorted(rows, key=lambda row: size[row[1]]):
        file = str(Path(path).relative_to(root))
        for line in (
            8 * at + bit
            for at, byte in enumerate(lines)
            if byte
            for bit in range(8)
            if byte & 1 << bit
        ):
            found.setdefault((file, line), []).append(test)
    return found


class Room:
    """The tests of a room, which must pass before anything is changed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.green: set[str] = set()

    def tests(self, file: str) -> list[str]:
        """Return the doctests of a file and the tests of its room."""
        room = str(Path(file).parent)
        if room not in self.green:
            if run(self.root, *PYTEST, "-x", *ROOMS[room]):
                raise SystemExit(f"the tests of {room} fail before anything is changed")
            self.green.add(room)
        return [file, *ROOMS[room]]


class Lines:
    """The tests that run each line."""

    def __init__(self, root: Path) -> None:
        self.by_line = tests_by_line(root)

    def tests(self, file: str, lines: dict[int, None]) -> list[str]:
        """Return the tests of some lines and the doctests of their file."""
        # What runs on import is seen by the tests of the function whose default it is, else of the whole file.
        if not any((file, at) in self.by_line for at in lines):
            lines = dict.fromkeys(at for name, at in self.by_line if name == file)
        found = dict.fromkeys(test for at in lines for test in self.by_line.get((file, at), []))
        return [*found, file]


def main() -> None:
    """Print each change that no test sees, and the share that is seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--code", nargs="*", default=CODE, help="files, or files:function,function")
    parser.add_argument("--by-file", action="store_true", help="run the tests of a change's room")
    asked = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="mutations-")) / "copy"
    left_out = shutil.ignore_patterns(".git", ".venv", "build", "reports", "__pycache__", ".*cache")
    shutil.copytree(ROOT, root, ignore=left_out)
    rooms = Room(root)
    by_line = None if asked.by_file else Lines(root)
    pool = list(mutants(root, asked.code))
    chosen = random.Random(asked.seed).sample(pool, min(asked.n, len(pool)))
    print(f"{len(chosen)} of {len(pool)} changes", flush=True)
    outcome: Counter[str] = Counter()
    for path, tree, statement, node, other in chosen:
        file = str(path.relative_to(root))
        before = path.read_text(encoding="utf-8")
        words = f"{ast.unparse(node)}  ->  {ast.unparse(other)}"
        line: int = vars(node)["lineno"]
        if by_line is None:
            tests = rooms.tests(file)
        else:
            lines = {line: None, statement.lineno: None}
            lines |= dict.fromkeys(part.lineno for part in vars(statement).get("body", ()))
            tests = by_line.tests(file, lines)
        path.write_text(source_of(tree, node, other), encoding="utf-8")
        patience = PATIENCE if by_line else PATIENCE_OF_A_ROOM
        code = run(root, *PYTEST, "-x", *tests, limit=patience)
        path.write_text(before, encoding="utf-8")
        # 1 and 2: a test failed, or the module could not be imported.
        if code not in (0, 1, 2):
            raise SystemExit(f"pytest ended with {code} for {tests}")
        if code:
            outcome["seen"] += 1
        else:
            outcome["unseen"] += 1
            print(f"unseen  {file}:{line}  {words}  ({len(tests)} tests)", flush=True)
        if outcome.total() % 10 == 0:
            print(f"{outcome['seen']} of {outcome.total()} seen", flush=True)
    print(f"{outcome['seen']} of {len(chosen)} seen: {outcome['seen'] / max(1, len(chosen)):.1%}")
    shutil.rmtree(root.parent)


if __name__ == "__main__":
    main()
