"""Patching a scenario: the values change, and nothing else in the file does."""

from __future__ import annotations

import difflib
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ragnb import load_scenario, patch_scenario
from ragnb.errors import RagnbError
from ragnb.scenario import plan_patch

CHINESE = "322_双源CT成像技术.pdf"
SCENARIO = f"""\
# Ours; do not touch   the spacing.
scores:   s.csv   # relative

metric_weights:   # how much each counts
  faithfulness:   0.40    # from the survey
  "context_recall": 0.30
  # answer_correctness: 1.0

doc_weights: {{{CHINESE}: 2.0,   'a, b.pdf' : 0.50}}   # from usage
level: 0.90
gates:
- {{name: G, metric: faithfulness, op: ">=", threshold: 0.8}}
llm_profiles:
  judge:
    base_url: 'http://127.0.0.1:1/v1'
    model: small
# the end
"""


def scenario(folder: Path, text: str = SCENARIO) -> Path:
    (folder / "s.csv").write_text("faithfulness,doc_name\n0.5,a\n", encoding="utf-8")
    path = folder / "s.yaml"
    path.write_bytes(text.encode())
    return path


def changed_lines(before: str, after: str) -> list[str]:
    return [
        line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"
    ]


def test_only_the_characters_of_the_value_change(tmp_path):
    path = scenario(tmp_path)
    assert patch_scenario(path, metric_weights={"faithfulness": 0.55}) == [
        "metric_weights.faithfulness"
    ]
    assert path.read_bytes().decode() == SCENARIO.replace("0.40", "0.55")


def test_value_in_braces_changes_and_its_neighbours_stay(tmp_path):
    path = scenario(tmp_path)
    assert patch_scenario(path, doc_weights={"a, b.pdf": 3}) == ["doc_weights.a, b.pdf"]
    assert path.read_bytes().decode() == SCENARIO.replace("0.50", "3")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("tail", [True, False])
def test_line_ends_and_byte_order_mark_survive(tmp_path, newline, bom, tail):
    text = bom + SCENARIO.replace("\n", newline)
    text = text if tail else text.removesuffix(newline)
    path = scenario(tmp_path, text)
    weights = {"faithfulness": 0.1, "answer_correctness": 0.2}
    patch_scenario(path, metric_weights=weights, doc_weights={"新.pdf": 4})
    after = path.read_bytes().decode()
    expected = text.replace("0.40", "0.1").replace("0.50}", "0.50, 新.pdf: 4}")
    row = '  "context_recall": 0.30' + newline
    assert after == expected.replace(row, row + "  answer_correctness: 0.2" + newline)
    assert load_scenario(path).doc_weights["新.pdf"] == 4


@pytest.mark.parametrize("tail", ["\n", "", "\n# foot\n", "\n...\n", "\n# foot\n...\n# after\n"])
def test_missing_blocks_are_added_at_the_end(tmp_path, tail):
    path = scenario(tmp_path, "scores: s.csv" + tail)
    weights = {"faithfulness": 0.25}
    assert patch_scenario(path, metric_weights=weights, doc_weights={CHINESE: 2.5, "yes": 3.0}) == [
        "metric_weights.faithfulness",
        f"doc_weights.{CHINESE}",
        "doc_weights.yes",
    ]
    made = f'metric_weights:\n  faithfulness: 0.25\ndoc_weights:\n  {CHINESE}: 2.5\n  "yes": 3.0\n'
    head, dots, rest = ("scores: s.csv" + tail).partition("...")
    assert (
        path.read_text(encoding="utf-8")
        == head + ("" if head.endswith("\n") else "\n") + made + dots + rest
    )


@pytest.mark.parametrize(
    ("block", "made"),
    [
        ("metric_weights:\n", "metric_weights:\n  faithfulness: 2.0\n"),
        ("metric_weights: # none yet\n", "metric_weights: # none yet\n  faithfulness: 2.0\n"),
        ("metric_weights: {}\n", "metric_weights: {faithfulness: 2.0}\n"),
        ("metric_weights: ~  # none\n", "metric_weights: {faithfulness: 2.0}  # none\n"),
        (
            "metric_weights:\n    clarity: 1\n",
            "metric_weights:\n    clarity: 1\n    faithfulness: 2.0\n",
        ),
        (
            "metric_weights: {\n clarity: 1, # c\n}\n",
            "metric_weights: {\n clarity: 1, faithfulness: 2.0, # c\n}\n",
        ),
        (
            "metric_weights:\n  ? clarity\n  : 1\n",
            "metric_weights:\n  ? clarity\n  : 1\n  faithfulness: 2.0\n",
        ),
        ("metric_weights: {clarity: 1}", "metric_weights: {clarity: 1, faithfulness: 2.0}"),
        ("metric_weights:\n  clarity: 1", "metric_weights:\n  clarity: 1\n  faithfulness: 2.0\n"),
    ],
)
def test_entry_is_added_in_the_form_of_its_block(tmp_path, block, made):
    for head, foot in (("scores: s.csv\n", ""), ("", "scores: s.csv\n")):
        if foot and not block.endswith("\n"):
            continue
        path = scenario(tmp_path, head + block + foot)
        patch_scenario(path, metric_weights={"faithfulness": 2.0})
        assert path.read_text(encoding="utf-8") == head + made + foot


def test_whole_file_in_braces_is_patched(tmp_path):
    path = scenario(tmp_path, "{scores: s.csv, metric_weights: , level: 0.9}")
    patch_scenario(path, metric_weights={"faithfulness": 2.0}, doc_weights={"a": 0.5})
    assert path.read_text() == (
        '{scores: s.csv, metric_weights: {faithfulness: 2.0} , level: 0.9, doc_weights: {"a": 0.5}}'
    )


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("{scores: s.csv, title}", "{scores: s.csv, title, metric_weights: {faithfulness: 2.0}}"),
        (
            "{scores: s.csv, title # a: b\n}",
            "{scores: s.csv, title, metric_weights: {faithfulness: 2.0} # a: b\n}",
        ),
        (
            "{metric_weights, scores: s.csv}",
            "{metric_weights: {faithfulness: 2.0}, scores: s.csv}",
        ),
        (
            "scores: s.csv\n? metric_weights # a: b\n:\n",
            "scores: s.csv\n? metric_weights # a: b\n:\n    faithfulness: 2.0\n",
        ),
        (
            "scores: s.csv\n? title\n",
            "scores: s.csv\n? title\nmetric_weights:\n  faithfulness: 2.0\n",
        ),
        (
            "? title # a: b\nscores: s.csv\n",
            "? title # a: b\nscores: s.csv\nmetric_weights:\n  faithfulness: 2.0\n",
        ),
    ],
)
def test_key_without_a_colon_is_a_key_without_a_value(tmp_path, text, made):
    path = scenario(tmp_path, text)
    patch_scenario(path, metric_weights={"faithfulness": 2.0})
    assert path.read_text() == made
    assert load_scenario(path).metric_weights == {"faithfulness": 2.0}


def test_key_without_a_colon_that_would_need_another_form_is_refused(tmp_path):
    text = "scores: s.csv\n? metric_weights\n"
    path = scenario(tmp_path, text)
    with pytest.raises(RagnbError, match=r"s\.yaml: .*change metric_weights.faithfulness manually"):
        patch_scenario(path, metric_weights={"faithfulness": 2.0})
    assert path.read_text() == text


@pytest.mark.parametrize("text", ["scores: s.csv\n", "scores: s.csv\nmetric_weights:\n", SCENARIO])
def test_all_weights_1_and_no_key_write_nothing(tmp_path, text):
    path = scenario(tmp_path, text)
    before = path.stat().st_ino
    weights = {"answer_relevancy": 1.0, "clarity": 0.2}
    assert patch_scenario(path, metric_weights=weights, doc_weights={"x": 1}) == []
    assert path.read_bytes().decode() == text
    assert path.stat().st_ino == before


def test_weight_1_of_a_key_that_stands_there_is_written(tmp_path):
    path = scenario(tmp_path)
    assert patch_scenario(path, metric_weights={"faithfulness": 1.0}) == [
        "metric_weights.faithfulness"
    ]
    assert path.read_bytes().decode() == SCENARIO.replace("0.40", "1.0")


def test_weight_1_of_a_metric_that_weighs_otherwise_is_written(tmp_path):
    path = scenario(
        tmp_path, "scores: s.csv\nmetrics: [{name: tone, low: 1, high: 5, weight: 3}]\n"
    )
    given = {"clarity": 1.0, "over_refusal": 1.0, "tone": 1.0, "faithfulness": 1.0}
    assert patch_scenario(path, metric_weights=given) == [
        "metric_weights.clarity",
        "metric_weights.over_refusal",
        "metric_weights.tone",
    ]
    assert (
        patch_scenario(scenario(tmp_path, "scores: s.csv\n"), metric_weights={"clarity": 0.2}) == []
    )


def test_blank_and_the_same_value_in_another_form_change_nothing(tmp_path):
    path = scenario(tmp_path)
    given = {"faithfulness": None, "context_recall": " ", "clarity": ""}
    assert (
        patch_scenario(
            path, metric_weights=given, doc_weights={CHINESE: 2}, llm_profiles={"answer": {}}
        )
        == []
    )
    assert patch_scenario(path) == []
    assert path.read_bytes().decode() == SCENARIO


def test_document_names_are_one_in_every_unicode_spelling(tmp_path):
    name = "é_报告.pdf"
    spelled = unicodedata.normalize("NFD", name)
    path = scenario(tmp_path, f"scores: s.csv\ndoc_weights:\n  {spelled}: 2\n")
    assert patch_scenario(path, doc_weights={unicodedata.normalize("NFC", name): 3}) == [
        f"doc_weights.{spelled}"
    ]
    assert path.read_text(encoding="utf-8") == f"scores: s.csv\ndoc_weights:\n  {spelled}: 3\n"
    patch_scenario(path, drop={"doc_weights": [name]})
    assert load_scenario(path).doc_weights == {}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("doc_weights:\n  a: 1.5 # x\n  b: 2\n", "doc_weights:\n  b: 2\n"),
        ("doc_weights:\n  b: 2\n  a: 1.5 # x", "doc_weights:\n  b: 2\n"),
        ("doc_weights:\n  # why\n  a: 1.5\n", "doc_weights:\n  # why\n"),
        ("doc_weights: {a: 1.5}\n", "doc_weights: {}\n"),
        ("doc_weights: {a: 1.5, b: 2}\n", "doc_weights: {b: 2}\n"),
        ("doc_weights: {b: 2 , a: 1.5 }\n", "doc_weights: {b: 2 }\n"),
        (
            "doc_weights: {b: 2, # two\n a: 1.5 # one\n}\n",
            "doc_weights: {b: 2, # two\n  # one\n}\n",
        ),
        ("doc_weights: {b: 2, a: 1.5,}\n", "doc_weights: {b: 2, }\n"),
    ],
)
def test_dropped_entry_leaves_its_neighbours(tmp_path, before, after):
    path = scenario(tmp_path, "scores: s.csv\n" + before)
    assert patch_scenario(path, drop={"doc_weights": ["a", "not there"]}) == ["doc_weights.a"]
    assert path.read_text() == "scores: s.csv\n" + after
    assert "a" not in load_scenario(path).doc_weights


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{b: 2, a: 1.5,}", "{b: 2, new.pdf: 3.0,}"),
        ("{a: 1.5 ,}", "{new.pdf: 3.0 ,}"),
        ("{a: 1.5, b: 2}", "{b: 2, new.pdf: 3.0}"),
        ("{b: 2, # two\n a: 1.5 # one\n}", "{b: 2, # two\n new.pdf: 3.0 # one\n}"),
    ],
)
def test_new_entry_takes_the_place_of_the_last_one_that_goes(tmp_path, before, after):
    path = scenario(tmp_path, f"scores: s.csv\ndoc_weights: {before}\n")
    patch_scenario(path, doc_weights={"new.pdf": 3.0}, drop={"doc_weights": ["a"]})
    assert path.read_text() == f"scores: s.csv\ndoc_weights: {after}\n"


def test_profiles_keep_their_quotes_and_gain_fields(tmp_path):
    path = scenario(tmp_path)
    judge = {"base_url": "https://host:8/v1", "model": "large: one", "api_key_env": "JUDGE_KEY"}
    answer = {"base_url": "http://127.0.0.1:2/v1", "model": "m/7b"}
    assert patch_scenario(
        path, llm_profiles={"judge": judge, "answer": answer, "dataset": None}
    ) == [
        "llm_profiles.judge.base_url",
        "llm_profiles.judge.model",
        "llm_profiles.judge.api_key_env",
        "llm_profiles.answer.base_url",
        "llm_profiles.answer.model",
    ]
    expected = SCENARIO.replace("http://127.0.0.1:1/v1", "https://host:8/v1").replace(
        "    model: small\n",
        '    model: "large: one"\n    api_key_env: JUDGE_KEY\n'
        '  answer:\n    base_url: http://127.0.0.1:2/v1\n    model: "m/7b"\n',
    )
    assert path.read_bytes().decode() == expected
    assert load_scenario(path).llm_profiles["judge"].model == "large: one"


def test_headers_of_a_profile_are_set_as_a_whole(tmp_path):
    head = "scores: s.csv\nllm_profiles:\n  judge:\n    base_url: http://h/v1\n    model: m\n"
    path = scenario(
        tmp_path, head + "    headers_env:\n      api-key: OLD  # before\n      x-team: TEAM\n"
    )
    changed = patch_scenario(
        path, llm_profiles={"judge": {"headers_env": {"x-org": "ORG", "x-team": "TEAM"}}}
    )
    assert changed == [
        "llm_profiles.judge.headers_env.api-key",
        "llm_profiles.judge.headers_env.x-org",
    ]
    assert path.read_text() == head + "    headers_env:\n      x-team: TEAM\n      x-org: ORG\n"


def test_literal_key_of_a_profile_is_refused_and_not_repeated(tmp_path):
    path = scenario(tmp_path)
    key = "sk-" + "a1b2" * 8
    for profile in ({"api_key": key}, {"model": key}, {"api_key_env": key}):
        with pytest.raises(RagnbError) as caught:
            patch_scenario(path, llm_profiles={"judge": profile})
        assert key not in str(caught.value)
    assert path.read_bytes().decode() == SCENARIO


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"metric_weights": {"faithfulness": float("nan")}},
            "line 5, key 'metric_weights.faithfulness'",
        ),
        ({"metric_weights": {"faithfulness": -1.0}}, "at least 0"),
        ({"metric_weights": {"faithfulness": True}}, "is not a number"),
        ({"metric_weights": {"faithfulness": "0.3"}}, "is not a number"),
        ({"metric_weights": {"context_recal": 2}}, "did you mean 'context_recall'"),
        ({"doc_weights": {"a\u202eb": 2}}, "invisible"),
        ({"doc_weights": {" ": 2}}, "blank"),
        ({"doc_weights": [1]}, "is not a mapping"),
        ({"llm_profiles": {"juge": {"model": "m"}}}, "llm_profiles"),
        ({"drop": {"gates": ["G"]}}, "drop='gates' is not known"),
    ],
)
def test_what_a_scenario_cannot_hold_is_refused_and_not_written(tmp_path, given, words):
    path = scenario(tmp_path)
    with pytest.raises(RagnbError, match=re.escape(words)):
        patch_scenario(path, **given)
    assert path.read_bytes().decode() == SCENARIO
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["s.csv", "s.yaml"]


def test_file_that_changed_since_it_was_read_is_refused(tmp_path):
    path = scenario(tmp_path)
    read = load_scenario(path)
    patch = plan_patch(path, {"metric_weights": {"faithfulness": 0.1}}, since=read)
    path.write_bytes(SCENARIO.replace("0.90", "0.95").encode())
    with pytest.raises(RagnbError, match="changed since it was read"):
        patch.write()
    with pytest.raises(RagnbError, match="changed since it was read"):
        patch_scenario(path, metric_weights={"faithfulness": 0.1}, since=read)
    patch_scenario(
        path, metric_weights={"faithfulness": 0.1}, since=load_scenario(path).replace(level=0.8)
    )
    assert path.read_bytes().decode() == SCENARIO.replace("0.90", "0.95").replace("0.40", "0.1")


def test_plan_shows_its_diff_and_writes_nothing(tmp_path):
    path = scenario(tmp_path)
    patch = plan_patch(path, {"metric_weights": {"faithfulness": 0.1}})
    lines = patch.diff.splitlines()
    assert [line for line in lines[3:] if line[0] in "+-"] == [
        "-  faithfulness:   0.40    # from the survey",
        "+  faithfulness:   0.1    # from the survey",
    ]
    assert path.read_bytes().decode() == SCENARIO
    assert plan_patch(path, {}).diff == ""
    assert plan_patch(path, {}, drop={"doc_weights": [CHINESE]}).changed == [
        f"doc_weights.{CHINESE}"
    ]


def test_new_file_reads_the_same_inputs_from_another_folder(tmp_path):
    path = scenario(tmp_path)
    other = tmp_path / "其他" / "new.yaml"
    other.parent.mkdir()
    assert patch_scenario(path, metric_weights={"faithfulness": 0.1}, to=other) == [
        "scores",
        "metric_weights.faithfulness",
    ]
    expected = SCENARIO.replace("0.40", "0.1").replace("s.csv ", "../s.csv ")
    assert other.read_bytes().decode() == expected
    assert path.read_bytes().decode() == SCENARIO
    made = load_scenario(other)
    assert (made.name, made.scores) == ("new", load_scenario(path).scores)
    with pytest.raises(RagnbError, match="choose another name"):
        patch_scenario(path, to=other)
    with pytest.raises(RagnbError, match=r"end in \.yaml"):
        patch_scenario(path, to=tmp_path / "s.csv")
    beside = tmp_path / "beside.yaml"
    assert patch_scenario(path, to=beside) == []
    assert beside.read_bytes().decode() == SCENARIO


def test_permissions_and_links_survive(tmp_path):
    path = scenario(tmp_path)
    path.chmod(0o600)
    link = tmp_path / "link.yaml"
    link.symlink_to("s.yaml")
    patch_scenario(link, metric_weights={"faithfulness": 0.1})
    assert link.is_symlink()
    assert path.read_bytes().decode() == SCENARIO.replace("0.40", "0.1")
    assert path.stat().st_mode & 0o777 == 0o600


def test_place_that_cannot_be_written_is_told(tmp_path):
    path = scenario(tmp_path)
    with pytest.raises(RagnbError, match="cannot be written"):
        patch_scenario(
            path, metric_weights={"faithfulness": 0.1}, to=tmp_path / "s.csv" / "new.yaml"
        )


# Any file, any weights

NAMES = [
    "faithfulness",
    "context_recall",
    "clarity",
    CHINESE,
    "a, b.pdf",
    "it's: #1 {x}.pdf",
    "no",
    "1e3",
    "é",
]
NAMES += ['"q"']
WEIGHT = st.floats(0, 1e300, allow_subnormal=False) | st.integers(0, 10**6)
MAPPING = st.dictionaries(st.sampled_from(NAMES), WEIGHT, max_size=5)
METRIC_NAMES = [
    "faithfulness",
    "context_recall",
    "clarity",
    "answer_relevancy",
    "noise_sensitivity",
]
METRIC_MAPPING = st.dictionaries(st.sampled_from(METRIC_NAMES), WEIGHT, max_size=5)
COMMENT = st.sampled_from(["", "  # 说明", " #x", "   # a: 1"])


def quoted(draw, name: str) -> str:
    if re.fullmatch(r"\w+", name) and draw(st.booleans()):
        return name
    single = "'" + name.replace("'", "''") + "'"
    return draw(st.sampled_from([single, '"' + name.replace('"', '\\"') + '"']))


@st.composite
def block(draw, key: str, weights: dict[str, float]) -> str:
    rows = [
        (quoted(draw, name), repr(float(value)).replace("e", ".0e").replace(".0.0e", ".0e"))
        for name, value in weights.items()
    ]
    rows = [(name, re.sub(r"(\.\d+)\.0e", r"\1e", number)) for name, number in rows]
    if not rows or draw(st.booleans()):
        inner = draw(st.sampled_from([", ", " ,  ", ",\n   "])).join(
            f"{name}: {number}" for name, number in rows
        )
        return f"{key}: {{{inner}{draw(st.sampled_from(['', ' ']))}}}{draw(COMMENT)}\n"
    indent = draw(st.sampled_from(["  ", "    "]))
    lines = [
        f"{indent}{name}:{draw(st.sampled_from([' ', '   ']))}{n}{draw(COMMENT)}\n"
        for name, n in rows
    ]
    gap = draw(st.sampled_from(["", "\n", f"{indent}# between\n"]))
    return f"{key}:{draw(COMMENT)}\n" + gap.join(lines)


@st.composite
def files(draw) -> str:
    parts = [
        "scores: s.csv  # 数据\n",
        "title: >-\n  two\n  lines\n\n",
        "gates: []\n",
        "# 注释\n",
        "\n",
    ]
    parts = draw(st.permutations(parts))
    for key in ("metric_weights", "doc_weights"):
        if (
            weights := draw(st.none() | (METRIC_MAPPING if key == "metric_weights" else MAPPING))
        ) is not None:
            parts = [*parts, draw(block(key, weights))]
    text = "".join(draw(st.permutations(parts)))
    text = text if draw(st.booleans()) else text.removesuffix("\n")
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from(["", "\ufeff"])) + text


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("any")


@given(
    text=files(),
    metric=METRIC_MAPPING,
    doc=MAPPING,
    drop=st.lists(st.sampled_from(NAMES), max_size=3),
)
def test_any_patch_sets_its_values_and_keeps_the_rest(folder, text, metric, doc, drop):
    path = scenario(folder, text)
    before = load_scenario(path)
    expected = {
        name: value for name, value in (before.doc_weights | doc).items() if name not in drop
    }
    given = {"metric_weights": metric, "doc_weights": doc, "drop": {"doc_weights": drop}}
    changed = patch_scenario(path, **given)
    once = path.read_bytes()
    after = load_scenario(path)
    default = {"clarity": 0.2}
    for name, value in metric.items():
        assert after.metric_weights.get(name, default.get(name, 1.0)) == value
    assert {n: v for n, v in after.doc_weights.items() if v != 1} == {
        n: v for n, v in expected.items() if v != 1
    }
    assert patch_scenario(path, **given) == []
    assert path.read_bytes() == once
    own = {"metric_weights", "doc_weights"}
    assert after.model_dump(exclude=own) == before.model_dump(exclude=own)
    assert (once == text.encode()) == (changed == [])


@given(text=files(), metric=METRIC_MAPPING, doc=MAPPING)
def test_patch_and_back_gives_the_same_bytes_where_values_were_only_replaced(
    folder, text, metric, doc
):
    path = scenario(folder, text)
    before = load_scenario(path)
    metric = {name: value for name, value in metric.items() if name in before.metric_weights}
    doc = {name: value for name, value in doc.items() if name in before.doc_weights}
    for own, more in ((before.metric_weights, metric), (before.doc_weights, doc)):
        assume(not own or any((own | more).values()))
    patch_scenario(path, metric_weights=metric, doc_weights=doc)
    there = path.read_bytes().decode()
    assert comments(there) == comments(text)
    patch_scenario(path, metric_weights=before.metric_weights, doc_weights=before.doc_weights)
    assert path.read_bytes().decode() == text


def comments(text: str) -> list[str]:
    return re.findall(r"#[^\r\n]*", text.replace("#1", ""))
