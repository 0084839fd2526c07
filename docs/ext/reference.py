"""The reference: scenario keys, commands, functions and result frames, from the models and docstrings.

What the library does not hold, or only in English, is in ``reference.<lang>.toml``.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import click
import frames
import schema
from markdown import code, heading, link, page, plain, prose, table, toctree

import ragnb as rn
from ragnb import plots, stats, widgets
from ragnb.cli import cli, terminal
from ragnb.readers.names import WORDS
from ragnb.readers.tools.known import TOOLS
from ragnb.scenario.source import flow

CODES = (
    "PASSED",
    "BLOCKED",
    "BAD_INPUT",
    "NOT_PROVEN",
    "OUR_ERROR",
    "HUNG_UP",
    "STOPPED",
    "TERMINATED",
)
COMMANDS: Mapping[str, click.Command] = cli.commands
METAVARS = {"INTEGER RANGE": "N", "INTEGER": "N", "FLOAT": "NUMBER", "TEXT": "WORD"}
METAVARS |= {"PATH": "FILE", "DIRECTORY": "FOLDER"}
SHOWN = 48  # characters of an example


def pages(lang: str) -> dict[str, str]:
    """Return the pages in one language: path below `generated/` → Markdown or reStructuredText."""
    words = prose("reference", lang)
    made = {"scenario": scenario, "commands": commands, "frames": result_frames, "files": files}
    say = words["page"]
    index = page(f"# {say['title']}", say["intro"], toctree(*made, "api/index"))
    out = {"reference/index.md": index} | {
        f"reference/{name}.md": write(words) for name, write in made.items()
    }
    return out | {f"reference/api/{name}.rst": text for name, text in api(words).items()}


# Scenario keys


def scenario(words: Mapping[str, Any]) -> str:
    """Return the page of scenario keys."""
    say, made = words["page"], schema.schema()
    head = [say[name] for name in ("key", "meaning", "type", "default")]
    parts = [f"# {say['scenario']}", say["scenario_intro"], f"**{say['minimal']}**", MINIMAL]
    parts += [f"## {say['editor']}", say["editor_intro"]]
    parts += [
        "```yaml\n# yaml-language-server: $schema=../docs/scenario.schema.json\n```",
        say["editor_checks"],
    ]
    for path, owner in schema.CLASSES.items():
        part = made["$defs"][owner.__name__] if path else made
        rows = []
        for name, field in owner.__pydantic_fields__.items():
            key = f"{path}.{name}".lstrip(".")
            told = words["scenario"][key]
            example = prose("reference", "en")["example"].get(key)
            if example is not None:
                told += f" {say['such_as']}`{name}: {flow(example)}`"
            shown = type_of(part["properties"][name], say)
            if key in schema.CLASSES:
                shown = f"[{shown}](#{_below(key)})"
            elif key == "rubric.passing":
                shown = say["same_keys"].format(key=f"[`gates`](#{_below('gates')})")
            needed = name in part.get("required", ())
            preset = f"*{say['required']}*" if needed else "—" if key == "name" else _default(field)
            rows.append([f"`{name}`", told, shown, preset])
        title = say["below"].format(key=path) if path else say["top"]
        parts += [
            f"({_below(path)})=\n## {title}",
            plain(part["description"]) if words["lang"] == "en" else "",
        ]
        parts.append(table(head, rows))
    return page(*parts)


MINIMAL = """```yaml
scores: my_scores.csv
doc: doc_name
metric_weights: {faithfulness: 2, context_recall: 1}
gates:
  - {name: faithful, metric: faithfulness, op: ">=", threshold: 0.8}
```"""


def _below(path: str) -> str:
    return f"scenario-{path.replace('.', '-')}".replace("_", "-") if path else "scenario-keys"


def type_of(field: Mapping[str, Any], say: Mapping[str, str]) -> str:
    """Return the type of a key in words, from its schema."""
    if "enum" in field:
        return say["one_of"].format(items=code(word for word in field["enum"] if word is not None))
    if "$ref" in field:
        return say["mapping"]
    if "const" in field:
        return f"`{field['const']}`"
    if field.get("format") == "path":
        return say["path"]
    if "anyOf" in field:
        kinds = [one for one in field["anyOf"] if one != {"type": "null"}]
        kinds = [one for one in kinds if "enum" not in one or len(kinds) == 1]  # beside any text
        return say["or"].join(dict.fromkeys(type_of(one, say) for one in kinds))
    kinds = [field["type"]] if isinstance(field["type"], str) else field["type"]
    kinds = [kind for kind in kinds if kind != "null"]
    if kinds == ["array"]:
        return say["list_of"].format(item=type_of(field["items"], say))
    if kinds == ["object"]:
        item = field.get("additionalProperties")
        return (
            say["map_of"].format(item=type_of(item, say))
            if isinstance(item, dict)
            else say["mapping"]
        )
    text = say["or"].join(say[kind] for kind in kinds)
    limits = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    return ", ".join(
        [text, *(f"{sign} {field[name]:g}" for name, sign in limits.items() if name in field)]
    )


def _default(field: Any) -> str:
    # What depends on a metric's name is shown as it is for a name that ragnb does not know.
    unknown = {"name": "", "metric": ""}
    value = field.get_default(call_default_factory=True, validated_data=unknown)
    if isinstance(value, tuple) and all(isinstance(one, str) for one in value):
        value = [*value]
    shown = isinstance(value, bool) or (
        isinstance(value, str | int | float | list) and value not in ("", [])
    )
    return f"`{flow(value)}`" if shown else "—"


# Commands


def commands(words: Mapping[str, Any]) -> str:
    """Return the page of commands: usage, arguments, options and exit codes."""
    say = words["page"]
    codes = [[f"`{getattr(terminal, name)}`", words["exit"][name]] for name in CODES]
    parts = [
        f"# {say['commands']}",
        say["commands_intro"],
        f"## {say['exit_codes']}",
        say["exit_intro"],
    ]
    parts.append(table([say["code"], say["help"]], codes))
    for name, command in COMMANDS.items():
        # With the settings of the group: a command keeps the first help option that it is asked for.
        context = click.Context(command, info_name=f"ragnb {name}", **cli.context_settings)
        usage = f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```"
        about, examples, exits = help_of(command)
        own = words.get("commands", {}).get(name)
        about, exits = (own["about"], own["exit"]) if own else (about, exits)
        rows = [[_flags(one, context), _help(one, words), _preset(one)] for one in options(command)]
        parts += [
            heading("command", name, f"`ragnb {name}`", 2),
            about,
            usage,
            f"```sh\n{examples}\n```",
        ]
        parts += [
            f"**{say['exit_codes']}** {exits}",
            table([say["option"], say["help"], say["default"]], rows),
        ]
    return page(*parts)


def help_of(command: click.Command) -> tuple[str, str, str]:
    """Return what the help of a command says: what it does, its examples, its exit codes."""
    text = inspect.cleandoc(command.help or "")
    text, _, exits = text.partition("Exit code:")
    paragraphs = [part for part in text.split("\n\n") if part.strip()]
    examples = [part for part in paragraphs if part.startswith("\b")]
    about = [" ".join(part.split()) for part in paragraphs if part not in examples]
    lines = [line.strip() for part in examples for line in part.splitlines()[2:]]
    shown = [re.sub(r" {2,}(?=\S)", "  # ", line) for line in lines]
    return "\n\n".join(map(plain, about)), "\n".join(shown), plain(" ".join(exits.split()))


def options(command: click.Command) -> list[click.Option]:
    """Return the options of a command."""
    return [one for one in command.params if isinstance(one, click.Option) and not one.hidden]


def _flags(option: click.Option, context: click.Context) -> str:
    metavar = "" if option.is_flag else f" {option.make_metavar(context)}"
    metavar = METAVARS.get(metavar.strip(), metavar.strip()).join((" ", "")) if metavar else ""
    return f"`{', '.join([*option.opts, *option.secondary_opts])}{metavar}`"


def _help(option: click.Option, words: Mapping[str, Any]) -> str:
    return plain(words.get("help", {}).get(option.help, option.help or ""))


def _preset(option: click.Option) -> str:
    plain_value = isinstance(option.default, str | int | float) and not isinstance(
        option.default, bool
    )
    return f"`{option.default}`" if plain_value and not option.multiple else ""


# Functions and classes


ROOMS: Mapping[str, tuple[ModuleType, tuple[str, ...]]] = {
    **{
        room: (rn, tuple(name for name in rn.__all__ if rn._ROOM_OF[name] == room))
        for room in dict.fromkeys(rn._ROOM_OF.values())
    },
    "plots": (plots, tuple(plots.__all__)),
    "widgets": (widgets, tuple(widgets.__all__)),
    "stats": (stats, tuple(stats.__all__)),
}
"""The pages of the Python API: the module that names are taken from, and the names."""


def api(words: Mapping[str, Any]) -> dict[str, str]:
    """Return the pages of the Python API: the index, a list of names for each room, and a page for each name."""
    say, rooms = words["page"], words["rooms"]
    intro = re.sub(r"\[([^]]+)\]\((\w+)\.md\)", r":doc:`\1 <../\2>`", say["api_intro"])
    index = [*_title(say["api"]), re.sub(r"(?<!`)`([^`:<]+)`(?!`)", r"``\1``", intro), ""]
    index += [".. toctree::", "   :maxdepth: 1", "", *(f"   {room}" for room in ROOMS), ""]
    out = {}
    for room, (module, names) in ROOMS.items():
        current = f".. py:currentmodule:: {module.__name__}"
        lines = [*_title(rooms[room]), current, ""]
        index += ["", rooms[room], "-" * 2 * len(rooms[room]), "", current, ""]
        for name in names:
            made = getattr(module, name)
            # Not in the sidebar of every page, which would make a build take half as long again.
            entry = [":orphan:", "", *_title(name), f":doc:`{rooms[room]} <{room}>`", "", current]
            entry += ["", *_entry(module.__name__, name, made, words), ""]
            out[_page_of(module, name)] = "\n".join(entry)
            what = (inspect.getdoc(made) or "").partition("\n\n")[0].replace("\n", " ")
            listed = f"- :py:obj:`~{module.__name__}.{name}`"
            if callable(made):
                listed += f" — {what}"
            lines.append(listed)
            index.append(listed)
        out[room] = "\n".join([*lines, ""])
    return out | {"index": "\n".join(index) + "\n"}


def _page_of(module: ModuleType, name: str) -> str:
    """Return the name of a page, different without regard to case: `Noise` and `noise` are two."""
    if inspect.isclass(getattr(module, name)):
        return f"{module.__name__}.{name}-class"
    return f"{module.__name__}.{name}"


def _title(text: str) -> list[str]:
    return [text, "=" * 2 * len(text), ""]


def _entry(module: str, name: str, made: Any, words: Mapping[str, Any]) -> Iterator[str]:
    if inspect.isclass(made):
        attributes = re.search(
            r"\nAttributes\n-+\n(.*?)(\n\n|\Z)", inspect.getdoc(made) or "", re.DOTALL
        )
        listed = re.findall(r"(?m)^(\w[\w, ]*?) ?(?::|$)", attributes[1]) if attributes else []
        yield from (f".. autoclass:: {module}.{name}", "   :members:")
        yield f"   :exclude-members: {', '.join(['model_config', *listed])}"
    elif callable(made):
        yield f".. autofunction:: {module}.{name}{signature(made)}"
    else:
        yield from (f".. py:data:: {module}.{name}", "", f"   {words['constants'][name]}")


def signature(function: Any) -> str:
    """Return the signature of a function, without types and with long defaults by their name."""
    named = {id(rn.RULES): "RULES", id(rn.DEFAULT_GATES): "DEFAULT_GATES"}

    class Named(str):
        __repr__ = str.__str__

    found = inspect.signature(function)
    parameters = [
        one.replace(
            annotation=one.empty,
            default=Named(named[id(one.default)]) if id(one.default) in named else one.default,
        )
        for one in found.parameters.values()
    ]
    return str(found.replace(parameters=parameters, return_annotation=found.empty))


# Result frames


def texts_of(name: str, words: Mapping[str, Any]) -> dict[str, str]:
    """Return what is said of the columns of a frame itself; an empty text is that of all frames."""
    about = words["frames"][name]
    own = texts_of(about["like"], words) if "like" in about else {}
    return {
        key: text or words["shared"][key]
        for key, text in {**own, **about.get("columns", {})}.items()
    }


def described(frame: Any, own: Mapping[str, str], shared: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a frame by the name they are described by, each with one real column."""
    known = {**shared, **own}
    found: dict[str, str] = {}
    for name in map(str, frame.columns):
        key = frames.described(name)
        found.setdefault(key if key in known else "<other>", name)
    return found


def result_frames(words: Mapping[str, Any]) -> str:
    """Return the page of result frames, column by column."""
    say, shared, results = words["page"], words["shared"], frames.results()
    parts = [f"# {say['frames']}", say["frames_intro"]]
    for name, about in words["frames"].items():
        own, frame = texts_of(name, words), results.get(name)
        head = [say["column"], say["meaning"]]
        if frame is None:
            rows = [[f"`{column}`", text] for column, text in own.items()]
        else:
            head += [say["type"], say["example"]]
            rows = [
                [
                    f"`{key}`",
                    {**shared, **own}[key],
                    f"`{frame[column].dtype}`",
                    _cell(frame[column]),
                ]
                for key, column in described(frame, own, shared).items()
            ]
        parts += [
            heading("frame", name, about["title"], 2),
            f"{say['from']} {about['from']}. {about['about']}",
        ]
        parts.append(table(head, rows))
    return page(*parts)


def _cell(column: Any) -> str:
    """Return an example of a column: its first value, cut short."""
    value = next((one for one in column if str(one) not in ("", "None", "nan", "<NA>")), None)
    if value is None:
        return "—"
    if isinstance(value, float):
        return f"`{value:.4g}`"
    text = " ".join(
        json.dumps(value, ensure_ascii=False, default=str).split()
        if isinstance(value, list | dict)
        else str(value).split()
    )
    return f"`{text[:SHOWN].replace('`', ' ')}{'…' * (len(text) > SHOWN)}`"


# Files


def files(words: Mapping[str, Any]) -> str:
    """Return the page of column names and tools that readers know."""
    say = words["page"]
    names = [[f"`{name}`", code(also)] for name, also in WORDS["columns"].items()]
    metrics = [
        [link("metric", name), code(one.aliases)] for name, one in rn.METRICS.items() if one.aliases
    ]
    tools = [
        [
            f"`{tool}`",
            "; ".join(code(signs) for signs in row["known_by"]),
            ", ".join(f"`{theirs}` → `{ours}`" for theirs, ours in row.get("names", {}).items())
            or "—",
        ]
        for tool, row in TOOLS.items()
    ]
    long = [[f"`{role}`", code(also)] for role, also in WORDS["long"].items()]
    head = [say["name"], say["also"]]
    return page(
        f"# {say['files']}",
        say["files_intro"],
        f"## {say['names']}",
        table(head, names),
        table(head, metrics),
        f"## {say['tools']}",
        say["tools_intro"],
        table([say["tool"], say["known_by"], say["renames"]], tools),
        f"## {say['long']}",
        say["long_intro"],
        table(head, long),
    )
