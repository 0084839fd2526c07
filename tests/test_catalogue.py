"""The generated pages of the site: every entry is there once, in both languages, and nothing is left over."""

from __future__ import annotations

import ast
import json
import re
import sys
import warnings
from pathlib import Path

import jsonschema
import pandas as pd
import pytest
from llm_server import LlmServer
from pipeline_server import model

import ragnb as rn
from ragnb import texts
from ragnb.errors import RagnbError
from ragnb.scenario.source import read_text

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "ext"))

import catalogue  # noqa: E402
import frames  # noqa: E402
import reference  # noqa: E402
import schema  # noqa: E402
from markdown import prose  # noqa: E402

LANGUAGES = texts.LANGUAGES
every_language = pytest.mark.parametrize("lang", LANGUAGES)
NO_RULE = {name for name in catalogue.METRICS if name not in catalogue.RULES}


@pytest.fixture(scope="module")
def pages():
    return {lang: catalogue.pages(lang) | reference.pages(lang) for lang in LANGUAGES}


# The catalogue


@every_language
def test_every_metric_rule_gate_label_and_note_has_its_entry_and_none_is_left_over(lang):
    told = prose("catalogue", lang)
    assert set(catalogue.METRICS) == {"weighted_score", *rn.METRICS}
    differ = set(told["metrics"]) ^ set(catalogue.METRICS)
    assert not differ, f"[metrics] of docs/ext/catalogue.{lang}.toml: {sorted(differ)}"
    assert set(told["computed"]) == set(catalogue.SCORERS) - set(rn.METRICS)
    assert set(told["rules"]) == {rule.name for rule in rn.RULES}
    assert set(told["gates"]) == {
        *(gate.name for gate in rn.DEFAULT_GATES),
        *catalogue.COMPLETENESS,
    }
    assert set(told["labels"]) == set(catalogue.COUNTED) == set(texts.entry(lang, "label"))
    assert set(told["modes"]) == set(catalogue.MODES) == set(texts.entry(lang, "mode"))
    assert set(told["family"]) == {metric.family for metric in catalogue.METRICS.values()}
    codes = catalogue.note_codes()
    assert {group: set(notes) for group, notes in told["notes"].items()} == {
        g: set(c) for g, c in codes.items()
    }


@every_language
def test_a_metric_says_what_the_library_does_not(lang):
    for name, told in prose("catalogue", lang)["metrics"].items():
        metric = catalogue.METRICS[name]
        assert {"variants", "threshold"} <= set(told), name
        assert ("low" in told) == (name in NO_RULE), name  # else its rule names causes and actions
        assert ("needs" in told) == (not metric.needs), name
        assert ("formula" in told) == (lang == "zh" and bool(metric.variant)), name
        assert (
            ("name" in told) == ("gloss" in told) == (name not in texts.entry(lang, "metrics"))
        ), name


def test_the_two_languages_have_the_same_prose():
    def shape(tree):
        return {
            key: shape(value) if isinstance(value, dict) else None for key, value in tree.items()
        }

    def but_formula(tree):
        return {
            name: {key: None for key in row if key != "formula"}
            for name, row in tree["metrics"].items()
        }

    first, second = (prose("catalogue", lang) for lang in LANGUAGES)
    assert but_formula(first) == but_formula(second)
    assert shape({k: v for k, v in first.items() if k != "metrics"}) == shape(
        {k: v for k, v in second.items() if k != "metrics"}
    )
    first, second = (prose("reference", lang) for lang in LANGUAGES)
    only_english, only_chinese = {"example"}, {"commands", "help"}
    assert set(first) - set(second) == only_english
    assert set(second) - set(first) == only_chinese
    assert shape({k: v for k, v in first.items() if k in second}) == shape(
        {k: v for k, v in second.items() if k in first}
    )


def test_every_code_that_the_library_writes_is_in_the_catalogue():
    known = {name for codes in catalogue.note_codes().values() for name in codes}
    found = set()
    sources = [file.read_text(encoding="utf-8") for file in (ROOT / "ragnb").rglob("*.py")]
    for source in (source for source in sources if "note" in source):
        for call in ast.walk(ast.parse(source)):
            name = getattr(getattr(call, "func", None), "id", "")
            if isinstance(call, ast.Call) and name in ("note_row", "_note", "note", "add"):
                place = 1 if name == "_note" else 0
                if len(call.args) > place and isinstance(call.args[place], ast.Constant):
                    found.add(call.args[place].value)
            # Rows of notes that may hold: the code stands behind the condition.
            elements = call.elts if isinstance(call, ast.Tuple) else []
            if (
                "holding_notes" in source
                and len(elements) == 4
                and not isinstance(elements[3], ast.Constant)
            ):
                found |= {
                    node.value for node in ast.walk(elements[1]) if isinstance(node, ast.Constant)
                }
    found = {code for code in found if isinstance(code, str)}
    assert len(found) > 40
    assert found <= known


def test_the_notes_of_real_runs_are_in_the_catalogue():
    codes = set(catalogue.note_codes()["run"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("simulated_judge", "rubric_judge"):
            assert set(rn.assess(ROOT / f"scenarios/{name}.yaml").notes["code"]) <= codes
    assert set(frames.sheet().notes["code"]) <= codes
    assert set(frames.card().notes["code"]) <= set(catalogue.note_codes()["calibration"])


def test_the_rates_that_a_label_counts_in_are_those_that_labelling_gives():
    labelled = frames.results()["label_traces"]
    for label, rates in catalogue.COUNTED.items():
        rows = labelled[labelled["label"] == label]
        assert len(rows), label
        for rate in rates:
            assert (rows[rate] == 1).all(), (label, rate)


@every_language
def test_every_anchor_is_on_a_page_and_every_link_has_its_anchor(lang, pages):
    text = {name: text for name, text in pages[lang].items() if name.endswith(".md")}
    targets = re.findall(r"(?m)^\(([\w-]+)\)=$", "\n".join(text.values()))
    assert len(targets) == len(set(targets))
    assert set(catalogue.anchors()) <= set(targets)
    assert len(catalogue.anchors()) == len(set(catalogue.anchors()))
    for name, page in text.items():
        assert set(re.findall(r"\]\(#([\w-]+)\)", page)) <= set(targets), name
    index = text["catalogue/index.md"]
    assert set(catalogue.anchors()) <= set(re.findall(r"\(#([\w-]+)\)", index))


@every_language
def test_no_page_is_empty_and_none_says_nothing(lang, pages):
    names = sum(len(names) for _, names in reference.ROOMS.values())
    assert len(pages[lang]) == 6 + 5 + 1 + len(reference.ROOMS) + names
    for name, page in pages[lang].items():
        assert len(page.splitlines()) > 5, name
        assert not re.search(r"\| *(None|nan|<NA>) *\|", page), name
        assert "{toctree}" in page or not re.search(r"(?<!`)\{[a-z]\w*\}", page), name


def test_thresholds_and_ranges_on_the_pages_are_those_of_the_library(pages):
    metrics = pages["en"]["catalogue/metrics.md"]
    for name, metric in rn.METRICS.items():
        part = metrics.split(f"| Identifier | `{name}` |", 1)[1].split("\n(metric-")[0]
        assert f"| Range | {metric.low:g} to {metric.high:g} |" in part
        assert f"{metric.better} is better" in part
        for rule in rn.RULES:
            if rule.name == name:
                assert (
                    f"warning {'below' if metric.better == 'higher' else 'above'} {rule.warning:g}"
                    in part
                )
    gates = pages["en"]["catalogue/gates.md"]
    assert (
        rn.Scenario.without_files(
            **read_text(re.search(r"```yaml\n(.*?)```", gates, re.S)[1], Path("g")).data
        ).gates
        == rn.DEFAULT_GATES
    )


# The schema of a scenario


def test_the_schema_is_one_that_editors_read():
    jsonschema.Draft7Validator.check_schema(CHECK.schema)

    def parts(tree):
        yield tree
        for below in (
            tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
        ):
            yield from parts(below)

    for part in parts(CHECK.schema):  # what stands beside a $ref is not read in this draft
        assert not isinstance(part, dict) or "$ref" not in part or len(part) == 1


def test_the_schema_is_current():
    assert schema.FILE.read_text(encoding="utf-8") == schema.text(), "run python docs/ext/schema.py"


def test_every_key_is_described_and_every_example_is_accepted_by_schema_and_model():
    keys = dict(schema.fields())
    examples = prose("reference", "en")["example"]
    assert set(prose("reference", "en")["scenario"]) == set(keys) >= set(examples)
    made = schema.schema()
    parts = {"": made} | {
        path: made["$defs"][owner.__name__] for path, owner in schema.CLASSES.items() if path
    }
    for key, value in examples.items():
        path, _, name = key.rpartition(".")
        rule = {"$defs": made["$defs"], **parts[path]["properties"][name]}
        jsonschema.Draft7Validator(rule).validate(value)
    for path, part in parts.items():
        for name, field in part["properties"].items():
            assert len(field["description"]) > 8, (path, name)


CHECK = jsonschema.Draft7Validator(schema.schema())


def valid(data):
    return CHECK.is_valid(data)


def plain_data(text, name="s.yaml"):
    return json.loads(json.dumps(read_text(text, Path(name)).data, default=float))


def readme_scenarios():
    pages = [ROOT / "README.md", ROOT / "README.zh.md", ROOT / "docs" / "en" / "tour.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    return re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize(
    "file", sorted((ROOT / "scenarios").glob("*.yaml")), ids=lambda file: file.stem
)
def test_the_schema_accepts_the_scenarios(file):
    CHECK.validate(plain_data(file.read_text(encoding="utf-8")))


def test_the_schema_accepts_the_scenarios_of_the_readme_and_of_the_page(pages):
    blocks = [*readme_scenarios(), reference.MINIMAL.removeprefix("```yaml\n").removesuffix("```")]
    assert len(blocks) > 3
    for block in blocks:
        CHECK.validate(plain_data(block))


BASE = {"cases": "c.jsonl"}
WRONG = [
    {"metric_weight": {"faithfulness": 1}},
    {"levels": 0.9},
    {"gates": [{"nam": "a", "metric": "b"}]},
    {"name": " "},
    {"doc": ""},
    {"scores": ""},
    {"encoding": ""},
    {"lang": "fr"},
    {"level": 1.5},
    {"level": "high"},
    {"orient": "yes"},
    {"undecided": "maybe"},
    {"corpus": "all"},
    {"no_data": "ignore"},
    {"split": ";"},
    {"join": "id"},
    {"containment": "cjk"},
    {"sample": 2},
    {"sample": 0},
    {"metric_weights": {"faithfulness": -1}},
    {"metric_weights": {"faithfulness": "1"}},
    {"metric_weights": ["faithfulness"]},
    {"doc_weights": {"a.pdf": "2"}},
    {"allow": {"lines": 2}},
    {"allow": 0.1},
    {"bands": {"good": 2}},
    {"bands": {"best": 0.9}},
    {"gates": [{"name": "a", "metric": "b"}]},
    {"gates": [{"name": "a", "metric": "b", "op": ">", "threshold": 1}]},
    {"gates": [{"name": "a", "metric": "b", "op": ">=", "threshold": "1"}]},
    {
        "gates": [
            {"name": "a", "metric": "b", "op": ">=", "threshold": 1, "not_worse_than": "baseline"}
        ]
    },
    {"gates": [{"name": "a", "metric": "b", "not_worse_than": "last"}]},
    {"gates": {"name": "a", "metric": "b", "op": ">=", "threshold": 1}},
    {"metrics": "faithfulness"},
    {"metrics": [{"low": 1}]},
    {"metrics": [{"name": "a", "better": "more"}]},
    {"refusal": "no"},
    {"patterns": [" "]},
    {"partial": [""]},
    {"slices": "kind"},
    {"columns": ["a"]},
    {"where": {"a": [1]}},
    {"generation": {"questions": 0}},
    {"generation": {"unanswerable": 2}},
    {"generation": {"seed": 0.5}},
    {"system": {"retrieve": "search"}},
    {"system": "mine"},
    {"documents_may_fail": 1},
    {"rescale": "true"},
    {"llm_profiles": {"judges": {"base_url": "https://e.org/v1", "model": "m"}}},
    {"llm_profiles": {"judge": {"base_url": "e.org", "model": "m"}}},
    {"llm_profiles": {"judge": {"model": "m"}}},
    {
        "llm_profiles": {
            "judge": {"base_url": "https://e.org/v1", "model": "m", "api_key_env": "sk-1"}
        }
    },
    {"llm_profiles": {"judge": {"base_url": "https://e.org/v1", "model": "m", "api_key": "k"}}},
    {"rubric": {"dimensions": [{"weight": 1}]}},
    {"rubric": {"decimals": "no"}},
    {"rubric": {"anchors": [{"question": "q", "answer": "a"}]}},
    {"rubric": {"passing": {"metric": "accuracy"}}},
    {"rubric": {"dimensions": [{"name": "tone", "bands": {"5": 1}}]}},
]
RIGHT = [
    {},
    {"level": 0.9},
    {"title": None},
    {"gates": None},
    {"gates": []},
    {"sample": True},
    {"sample": 0.01},
    {"where": {"system": "a", "n": 1, "ok": True}},
    {"metrics": ["faithfulness", {"name": "tone", "low": 1, "high": 5}]},
    {"gates": [{"name": "a", "metric": "faithfulness", "op": ">=", "threshold": 0.5}]},
    {"gates": [{"name": "a", "metric": "faithfulness", "not_worse_than": "baseline", "by": 0.02}]},
    {
        "llm_profiles": {
            "judge": {
                "base_url": "https://e.org/v1",
                "model": "m",
                "headers_env": {"api-key": "KEY"},
            }
        }
    },
    {"rubric": {"passing": {"metric": "accuracy", "op": ">=", "threshold": 8}}},
    {"bands": {"good": 0.9}},
    {"baseline": "base.csv"},
    {"doc_weights": {"a.pdf": 0}},
    {
        "rubric": {
            "low": 0,
            "high": 5,
            "passing": {"metric": "tone", "op": ">=", "threshold": 3},
            "dimensions": [{"name": "tone", "bands": {"4-5": "warm"}}],
        }
    },
]


def accepted(settings, folder):
    (folder / "c.jsonl").write_text('{"question": "q"}\n', encoding="utf-8")
    (folder / "s.yaml").write_text(json.dumps(BASE | settings), encoding="utf-8")
    try:
        rn.load_scenario(folder / "s.yaml")
    except RagnbError:
        return False
    return True


@pytest.mark.parametrize("settings", WRONG, ids=lambda one: json.dumps(one)[:60])
def test_what_the_model_refuses_by_its_form_the_schema_refuses(settings, tmp_path):
    assert not accepted(settings, tmp_path)
    assert not valid(BASE | settings)


@pytest.mark.parametrize("settings", RIGHT, ids=lambda one: json.dumps(one)[:60])
def test_what_the_model_accepts_the_schema_accepts(settings, tmp_path):
    assert accepted(settings, tmp_path)
    assert valid(BASE | settings)


WHOLE = {
    "metrics": lambda row: {"metrics": [{"name": "x"} | row]},
    "gates": lambda row: {
        "gates": [{"name": "x", "metric": "faithfulness", "op": ">=", "threshold": 0.5} | row]
    },
    "llm_profiles": lambda row: {
        "llm_profiles": {"judge": {"base_url": "https://e.org/v1", "model": "m"} | row}
    },
    "rubric.dimensions": lambda row: {"rubric": {"dimensions": [{"name": "accuracy"} | row]}},
    "rubric.anchors": lambda row: {
        "rubric": {
            "dimensions": [{"name": "accuracy"}],
            "anchors": [{"question": "q", "answer": "a", "scores": {"accuracy": 5}} | row],
        }
    },
}
VALUES = (
    None,
    "",
    "a",
    "0.5",
    0,
    -1,
    0.5,
    2,
    True,
    [],
    ["a"],
    [1],
    {},
    {"a": 1},
    {"a": "b"},
    [{"name": "x"}],
)


def test_no_value_of_any_key_is_marked_as_wrong_that_the_model_accepts(tmp_path):
    (tmp_path / "c.jsonl").write_text("{}", encoding="utf-8")
    examples, both = prose("reference", "en")["example"], 0
    for key, _ in schema.fields():
        path, _, name = key.rpartition(".")
        wrap = WHOLE.get(path, lambda row, path=path: {path: row} if path else row)
        for value in (*VALUES, examples.get(key)):
            settings = BASE | wrap({name: value})
            try:
                rn.Scenario({"folder": tmp_path}, None, **settings)
            except RagnbError:
                continue
            assert valid(settings), (key, value)
            both += 1
    assert both > 200


def test_a_scenario_without_input_is_refused_by_both():
    assert not valid({"name": "a"})
    assert not valid({"scores": None})
    assert valid({"scores": "a.csv"})


# The other pages of the reference


def test_every_command_and_option_is_described_in_both_languages(pages):
    chinese = prose("reference", "zh")
    assert set(chinese["commands"]) == set(reference.COMMANDS)
    helps = {
        option.help
        for command in reference.COMMANDS.values()
        for option in reference.options(command)
    }
    differ = set(chinese["help"]) ^ helps
    assert not differ, f"[help] of docs/ext/reference.zh.toml: {sorted(differ)}"
    for lang in LANGUAGES:
        page = pages[lang]["reference/commands.md"]
        for name, command in reference.COMMANDS.items():
            part = page.split(f"(command-{name})=")[1].split("\n(command-")[0]
            for option in reference.options(command):
                assert all(f"{flag}" in part for flag in option.opts), (name, option.opts)
            codes = {*re.findall(r"\b(\d+)\b", reference.help_of(command)[2])}
            assert codes <= {*re.findall(r"\b(\d+)\b", chinese["commands"][name]["exit"])}, name
    numbers = {str(getattr(reference.terminal, name)) for name in reference.CODES}
    assert {*re.findall(r"(?m)^\| `(\d+)` \|", pages["en"]["reference/commands.md"])} == numbers


def test_every_public_name_has_a_page_of_the_api(pages):
    written = {
        name: page for name, page in pages["en"].items() if name.startswith("reference/api/")
    }
    assert len({name.casefold() for name in written}) == len(written)
    directive = re.compile(r"(?m)^\.\. (?:autofunction|autoclass|py:data):: ([\w.]+)")
    found = [name for page in written.values() for name in directive.findall(page)]
    assert all(len(directive.findall(page)) <= 1 for page in written.values())
    modules = (rn, reference.plots, reference.widgets, reference.stats)
    assert sorted(found) == sorted(
        f"{module.__name__}.{name}" for module in modules for name in module.__all__
    )
    assert set(prose("reference", "en")["rooms"]) == set(reference.ROOMS)


@pytest.fixture(scope="module")
def served():
    """The frames that need a model, which a simulated one on 127.0.0.1 gives."""
    cases = rn.read_cases(frames.DATA / "cases.jsonl")
    cases = cases[cases["system"] == "strong"].drop(columns="system").head(4).reset_index(drop=True)
    passages = [
        {"doc_name": "a", "text": f"The pump number {n} has a warranty of {n} days."}
        for n in range(3, 9)
    ]
    with LlmServer(model) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = rn.Client(rn.Profile(base_url=server.base_url, model="small"))
        judged = rn.judge(cases, client=client, progress=False)
        improved = rn.improve(
            cases,
            client=client,
            system=lambda question, answer, suggestion: "A new answer.",
            attempts=1,
            threshold=10,
            progress=False,
        )
        generated = rn.generate_cases(pd.DataFrame(passages), client=client, n=3, progress=False)
    found = {
        "noise": judged.noise,
        "probes": judged.probes,
        "gain": improved.gain,
        "generate_cases": generated,
    }
    return found | {"judge": frames.added(judged, cases)}


def test_every_frame_is_described_column_by_column(served):
    words = prose("reference", "en")
    results = frames.results() | served
    assert set(words["frames"]) == set(results)
    used = set()
    for name, frame in results.items():
        own, listed = reference.texts_of(name, words), words["frames"][name].get("columns", {})
        found = set(reference.described(frame, own, words["shared"]))
        assert found - set(own) - set(words["shared"]) == set(), name
        known = {*own, *words["shared"]}
        other = [c for c in map(str, frame.columns) if frames.described(c) not in known]
        where = f"[frames.{name}.columns] of docs/ext/reference.*.toml"
        assert bool(other) == ("<other>" in own), f"{where}: describe {other}"
        assert set(listed) <= found, name
        if name in served:
            assert found == set(own), name
        used |= (found - set(own)) | {column for column, text in listed.items() if not text}
    assert used == set(words["shared"])


def test_the_frames_of_a_sheet_and_of_a_card_have_a_table_each():
    told = " ".join(row["from"] for row in prose("reference", "en")["frames"].values())
    for owner, names in (("sheet", vars(frames.sheet())), ("card", vars(frames.card()))):
        for name, value in names.items():
            if isinstance(value, pd.DataFrame) and name not in ("systems", "common"):
                assert f"{owner}.{name}`" in told or f").{name}`" in told, (owner, name)
