"""The English messages of the library, read from its source: each text raised or warned, `{}` for a value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1] / "ragnb"
RAISED = {"RagnbError", "Stop", "BadParameter", "UsageError", "ClickException", "unknown"}
RAISED |= {"need_columns", "need_known", "_stop", "Refused", "DiskFull"}
LOSSES = {"unparsed", "left_out", "kept", "clipped", "bad_line"}
CHECKED = ("scenario", "schema")
"""Rooms whose ValueErrors and findings pydantic carries into a RagnbError."""


def templates() -> dict[str, str]:
    """Return each template with the place of its first use."""
    found: dict[str, str] = {}
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(LIBRARY.rglob("*.py"))
    }
    made = {name for tree in trees.values() for name in _makers(tree)}
    for path, tree in trees.items():
        room = path.relative_to(LIBRARY).parts[0]
        for function in _functions(tree):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and (_raises(node, room, made) or _reports(node)):
                    for text in _texts(node, function, tree):
                        found.setdefault(text, f"{path.relative_to(LIBRARY)}:{node.lineno}")
    return found


def _functions(tree: ast.Module) -> Iterator[ast.AST]:
    yield tree
    yield from (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def _makers(tree: ast.Module) -> Iterator[str]:
    """The functions that return an error, or only raise."""
    for node in _functions(tree):
        if isinstance(node, ast.FunctionDef) and getattr(node.returns, "id", "") in (
            "RagnbError",
            "NoReturn",
        ):
            yield node.name


def _raises(call: ast.Call, room: str, made: set[str]) -> bool:
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name == "warn":
        return any(isinstance(arg, ast.Name) and arg.id == "RagnbWarning" for arg in call.args)
    return name in RAISED | made or (name == "ValueError" and room in CHECKED)


def _reports(call: ast.Call) -> bool:
    """Whether a reader reports a loss that notes and cards show: ``report.add("kept", column, detail, n)``."""
    what = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    return getattr(call.func, "attr", "") == "add" and what in LOSSES


def _texts(call: ast.Call, function: ast.AST, tree: ast.Module) -> Iterator[str]:
    """The texts among a call's arguments: in places, behind names, returned by the functions that are called."""
    values = (
        [call.args[2]]
        if _reports(call)
        else [*call.args, *(keyword.value for keyword in call.keywords)]
    )
    names = {node.id for value in values for node in ast.walk(value) if isinstance(node, ast.Name)}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            values += [
                part.value for part in ast.walk(node) if isinstance(part, ast.Return) and part.value
            ]
    inside = ast.walk(function) if function is not tree else ()
    for node in (*tree.body, *inside):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id in names for target in targets):
            values.append(node.value)
    for value in values:
        yield from _spoken(value)


def _spoken(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value
    elif isinstance(node, ast.JoinedStr):
        text = "".join(
            part.value if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    else:
        text = ""
    if is_spoken(text):
        yield text
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)):
            yield from _spoken(child)


def is_spoken(text: str) -> bool:
    """Whether a text is a sentence or a part of one, rather than a name, a separator or an example."""
    if "__" in text or text.startswith("SELECT "):
        return False
    words = [word for word in text.replace("{}", " ").split() if any(map(str.isalpha, word))]
    return len(words) > 1 or (len(words) == 1 and "{}" in text and text != "{}")
