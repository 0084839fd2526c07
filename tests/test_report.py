"""Reports that really run: the notebook by papermill, the page, the folder, and what a failure leaves."""

from __future__ import annotations

import html
import html.parser
import json
import os
import re
import shutil
import string
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from legible import complaints

import ragnb as rn
from ragnb import load_scenario
from ragnb.errors import RagnbError
from ragnb.files import slug
from ragnb.report import index, report, reports, run
from ragnb.report.folder import RunFolder, input_hash
from ragnb.report.study import study

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = ROOT / "scenarios"
FILES = {
    "report.ipynb",
    "report.html",
    "report.md",
    "scores.csv",
    "means.csv",
    "gates.json",
    "gates.junit.xml",
    "scenario.snapshot.yaml",
    "run.json",
}
SAME_BYTES = FILES - {"run.json"}
CANARY = "canary-key-5f3a9b71"


@pytest.fixture(scope="session")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="session")
def quickstart(out):
    return report(SCENARIOS / "quickstart.yaml", out=out)


@pytest.fixture(scope="session")
def keyed(tmp_path_factory, out):
    """A Chinese run of a scenario that names a key's variable, with overrides, while the key is set."""
    folder = tmp_path_factory.mktemp("scenario {of} 钥匙")
    text = (SCENARIOS / "simulated_judge.yaml").read_text(encoding="utf-8")
    text = text.replace("../data", (ROOT / "data").as_posix()).replace(
        "name: simulated_judge", "name: 模拟评判"
    )
    text += "llm_profiles:\n  judge: {base_url: http://localhost:1/v1, model: m, api_key_env: RAGNB_TEST_KEY,"
    text += " headers_env: {api-key: RAGNB_TEST_HEADER}}\n"
    (folder / "模拟.yaml").write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGNB_TEST_KEY", CANARY)
        patch.setenv("RAGNB_TEST_HEADER", CANARY)
        overrides = {"metric_weights": {"faithfulness": 2}, "level": 0.9}
        return report(folder / "模拟.yaml", out=out, overrides=overrides)


def all_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_run_leaves_these_files_and_nothing_else(quickstart, keyed, out):
    for result in (quickstart, keyed):
        assert {path.name for path in result.folder.iterdir()} == FILES
    assert quickstart.folder.parent == out / "quickstart"
    assert (quickstart.folder.parent / "latest.txt").read_text() == f"{quickstart.folder.name}\n"
    assert not list(out.rglob(".*"))
    hashed = input_hash(load_scenario(SCENARIOS / "quickstart.yaml"))
    assert re.fullmatch(rf"\d{{8}}T\d{{6}}Z-{hashed}", quickstart.folder.name)


def test_result_says_what_gates_json_says(quickstart):
    gates = json.loads((quickstart.folder / "gates.json").read_text(encoding="utf-8"))
    assert quickstart.blocked is gates["blocked"] is True
    said = (quickstart.folder / "report.md").read_text(encoding="utf-8")
    status, title, lead = re.search(r"\*\*. (.*?)\*\*: (.*)\n\n(.*)\n", said).groups()
    assert quickstart.verdict.startswith(f"{status}: {title} {lead} Overall score ")


def test_same_scenario_twice_gives_the_same_bytes(quickstart, tmp_path):
    """Elsewhere: beside an earlier run the report says what changed since then."""
    again = report(SCENARIOS / "quickstart.yaml", out=tmp_path)
    assert again.folder != quickstart.folder
    for name in SAME_BYTES:
        assert (again.folder / name).read_bytes() == (quickstart.folder / name).read_bytes(), name


def test_a_second_run_is_compared_with_the_first(quickstart, out):
    again = report(SCENARIOS / "quickstart.yaml", out=out)
    assert load_scenario(again.folder / "scenario.snapshot.yaml").baseline
    text = (again.folder / "report.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| Overall score"))
    assert re.search(r"\| 0\.000 .*(inconclusive|same)", row), row


def test_overrides_reach_the_run_and_its_record_but_not_the_file(keyed):
    snapshot = load_scenario(keyed.folder / "scenario.snapshot.yaml")
    assert (snapshot.level, snapshot.metric_weights) == (0.9, {"faithfulness": 2.0})
    means = pd.read_csv(keyed.folder / "means.csv").set_index("metric")
    assert means.loc[["faithfulness", "context_recall"], "weight"].tolist() == [2, 1]
    command = json.loads((keyed.folder / "run.json").read_text(encoding="utf-8"))["command"]
    assert (
        command
        == """ragnb report '模拟.yaml' -p 'metric_weights={"faithfulness": 2}' -p level=0.9"""
    )


def test_snapshot_gives_the_run_again(quickstart, tmp_path):
    from ragnb import assess

    assess(quickstart.folder / "scenario.snapshot.yaml").save(tmp_path)
    for name in ("scores.csv", "means.csv", "gates.json"):
        assert (tmp_path / name).read_bytes() == (quickstart.folder / name).read_bytes()


def test_run_json_holds_versions_hashes_and_time(quickstart):
    record = json.loads((quickstart.folder / "run.json").read_text(encoding="utf-8"))
    assert {"numpy", "pandas", "papermill"} <= set(record["packages"])
    assert {one["role"] for one in record["inputs"]} == {"scores", "traces", "gold", "cases"}
    assert all(re.fullmatch("[0-9a-f]{64}", one["sha256"]) for one in record["inputs"])
    assert record["command"] == "ragnb report quickstart.yaml"
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d", record["made_at"])


def test_no_file_holds_a_key_or_a_machine_path(quickstart, keyed):
    for path in all_files(quickstart.folder) + all_files(keyed.folder):
        data = path.read_bytes()
        assert CANARY.encode() not in data, path
        # The notebook and the snapshot lead from the run's folder to the scenario; they begin with "..".
        if path.suffix not in (".ipynb", ".yaml"):
            assert str(ROOT).encode() not in data, path
        assert not re.search(rb'"(/|[A-Z]:\\)[^"/>]', data), path


def test_executed_notebook_has_no_error_and_no_time(quickstart):
    notebook = nbformat.read(quickstart.folder / "report.ipynb", as_version=4)
    assert set(notebook.metadata.papermill) == {"parameters"}
    for cell in notebook.cells:
        assert not {"papermill", "execution"} & set(cell.metadata)
        assert not [
            output
            for output in cell.get("outputs", [])
            if output.output_type in ("error", "stream")
        ]


def test_parameters_lead_from_the_run_folder_to_the_scenario(quickstart):
    parameters = nbformat.read(
        quickstart.folder / "report.ipynb", as_version=4
    ).metadata.papermill.parameters
    assert (quickstart.folder / parameters.scenario).resolve() == SCENARIOS / "quickstart.yaml"
    assert parameters.out == "."


class Links(html.parser.HTMLParser):
    """Collect every element and every attribute that can make a browser ask for something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.asked: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.asked += [
            str(value)
            for name, value in attrs
            if name in ("src", "href", "srcset", "action", "data")
        ]
        self.ids += [str(value) for name, value in attrs if name == "id"]
        assert not [name for name, _ in attrs if name.startswith("on")]


def test_page_asks_nobody_and_its_links_arrive(quickstart, keyed):
    for result in (quickstart, keyed):
        text = result.html.read_text(encoding="utf-8")
        links = Links()
        links.feed(text)
        assert not {"link", "iframe", "object", "embed", "base"} & links.tags
        assert "default-src 'none'" in text
        assert not re.search(r"url\((?!#)", text)
        assert "@import" not in text
        assert len(links.ids) == len(set(links.ids))
        assert {name for name in links.asked if not name.startswith("#")} == set()
        own = {
            name[1:] for name in links.asked if not re.match("#[om]=", name)
        }  # the others are filters
        assert own <= set(links.ids)


def test_page_shows_the_sheet_without_code(quickstart, keyed):
    english, chinese = (result.html.read_text(encoding="utf-8") for result in (quickstart, keyed))
    for result, page in ((quickstart, english), (keyed, chinese)):
        title = re.search(r"<h1>(.*?)</h1>", page)[1]
        assert title
        assert title in result.verdict
    assert '<html lang="zh-CN">' in chinese
    assert "rn.assess" not in english + chinese
    assert english.count("<style>") == 1


BAD_NAMES = [
    "metric_weigths",
    "a b",
    "x; import os",
    "__class__",
    "",
    "1",
    "scenario",
    "out",
    "replace",
    "path",
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_unknown_parameters_are_refused_before_anything_runs(name, tmp_path):
    near = "did you mean 'metric_weights'" if name == "metric_weigths" else ""
    with pytest.raises(RagnbError, match=f"is not known.*{near}"):
        report(SCENARIOS / "quickstart.yaml", out=tmp_path, overrides={name: 1})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "bad",
    [
        {"level": 2},
        {"level": "0.9"},
        {"metric_weights": {"faithfulness": True}},
        {"lang": "fr"},
        {"scores": "absent.csv"},
        {"title": ...},
    ],
    ids=repr,
)
def test_bad_values_are_refused_before_anything_runs(bad, tmp_path):
    with pytest.raises(RagnbError):
        report(SCENARIOS / "quickstart.yaml", out=tmp_path, overrides=bad)
    assert not list(tmp_path.iterdir())


def test_objects_of_ours_pass_as_overrides(tmp_path):
    from ragnb import Gate, Metric

    given = {
        "metrics": [Metric("m", 1, 5)],
        "gates": (Gate("G", "m", ">=", 3),),
        "traces": Path("t"),
    }
    (tmp_path / "t").write_text("")
    (tmp_path / "s.csv").write_text("m\n1\n")
    (tmp_path / "s.yaml").write_text("scores: s.csv\n")
    settings, plain = run.check_parameters(tmp_path / "s.yaml", given)
    assert json.loads(json.dumps(plain)) == plain
    assert settings.metrics == (Metric("m", 1, 5),)
    assert settings.gates == (Gate("G", "m", ">=", 3),)


def test_results_files_need_no_scenario(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT / "data")
    overrides = {"gold": "quickstart/gold.json", "lang": "zh"}
    result = report("quickstart/traces.strong.jsonl", out=tmp_path, overrides=overrides)
    assert result.folder.parent.name.startswith("traces")
    record = json.loads((result.folder / "run.json").read_text(encoding="utf-8"))
    assert [one["role"] for one in record["inputs"]] == ["gold", "traces"]
    notebook = nbformat.read(
        result.folder / "report.ipynb", as_version=4
    ).metadata.papermill.parameters
    assert (
        result.folder / notebook.overrides.gold
    ).resolve() == ROOT / "data" / "quickstart" / "gold.json"


# Failures


@pytest.fixture
def small(tmp_path):
    """A scenario of two rows, and the place of its reports."""
    (tmp_path / "scores.csv").write_text("faithfulness,doc_name\n0.9,a\n0.7,b\n")
    (tmp_path / "small.yaml").write_text("scores: scores.csv\n")
    return tmp_path / "small.yaml"


def one_cell(path: Path, source: str) -> Path:
    parameters = nbformat.v4.new_code_cell(
        'scenario: str = ""\nout: str = ""\noverrides: dict = {}', metadata={"tags": ["parameters"]}
    )
    cells = [parameters, nbformat.v4.new_code_cell(source, id="broken")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_failing_cell_leaves_the_partial_notebook_and_earlier_runs(small):
    out = small.parent / "reports"
    first = report(small, out=out)
    before = {path: path.read_bytes() for path in all_files(out)}
    (small.parent / "scores.csv").write_text("faithfulness,doc_name\n1.9,a\n0.7,b\n")
    with pytest.raises(RagnbError) as caught:
        report(small, out=out)
    message = str(caught.value)
    assert "cell 'assess' (In [3])" in message
    assert "faithfulness" in message
    assert "\n" not in message
    (failed,) = [path for path in (out / "small").iterdir() if path.name.endswith(".failed")]
    assert str(failed / "report.ipynb") in message
    notebook = nbformat.read(failed / "report.ipynb", as_version=4)
    assert "RagnbError" in {
        o.get("ename") for cell in notebook.cells for o in cell.get("outputs", [])
    }
    assert {path: path.read_bytes() for path in before} == before
    assert {path.name for path in (out / "small").iterdir()} == {
        "latest.txt",
        first.folder.name,
        failed.name,
    }


def test_failing_cell_names_the_error_and_has_no_key(small, monkeypatch, tmp_path):
    small.write_text(
        "scores: scores.csv\nllm_profiles:\n"
        "  judge: {base_url: http://localhost:1, model: m, api_key_env: RAGNB_TEST_KEY}\n"
    )
    source = (
        "import os\nprint(dict(os.environ))\nraise KeyError(os.environ['RAGNB_TEST_KEY'] + '!')"
    )
    monkeypatch.setattr(run, "notebook_path", lambda _: one_cell(tmp_path / "bad.ipynb", source))
    monkeypatch.setenv("RAGNB_TEST_KEY", CANARY)
    with pytest.raises(RagnbError, match=r"cell 'broken' \(In \[3\]\): KeyError: '!'"):
        report(small, out=tmp_path / "reports")
    left = all_files(tmp_path / "reports")
    assert len(left) == 1
    assert CANARY not in left[0].read_text(encoding="utf-8")


def test_dead_kernel_is_told(small, monkeypatch, tmp_path):
    notebook = one_cell(tmp_path / "dies.ipynb", "import os\nos._exit(9)")
    monkeypatch.setattr(run, "notebook_path", lambda _: notebook)
    with pytest.raises(RagnbError, match="the kernel of the report died"):
        report(small, out=tmp_path / "reports")
    assert [path.suffix for path in (tmp_path / "reports" / "small").iterdir()] == [".failed"]


def test_warnings_of_the_kernel_are_handed_on_without_their_place(small):
    small.write_text(
        "scores: scores.csv\ngates:\n  - {name: G, metric: faithfullness_, op: '>=', threshold: 0.5}\n"
    )
    result = report(small, out=small.parent / "reports")
    assert any("refers to an unknown metric 'faithfullness_'" in text for text in result.warnings)
    assert str(ROOT) not in (result.folder / "report.ipynb").read_text(encoding="utf-8")


# Folders


@given(st.text())
def test_slug_is_one_safe_path_component(name):
    made = slug(name)
    assert re.fullmatch(r"[\w-]{1,60}", made)
    assert Path(made).name == made
    assert made.strip("-_") == made or made == name


ODD = [
    "con",
    "NUL",
    "../up",
    "..\\up",
    "C:\\x",
    "a:b",
    "a\u202eb",
    ".",
    "",
    "报告",
    "Ａ",
    "e\u0301",
]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_get_a_hash(name):
    assert re.fullmatch(r"[\w-]+-[0-9a-f]{8}", slug(name))


@given(st.text(string.ascii_letters + string.digits, min_size=1, max_size=30))
def test_plain_names_stay(name):
    assert slug(name).startswith(name)


def test_two_runs_of_one_second_have_two_folders(small):
    scenario = load_scenario(small)
    made = [RunFolder.make(small.parent / "out", scenario) for _ in range(3)]
    assert len({folder.final for folder in made}) == 3
    assert len({folder.done() for folder in made}) == 3


def test_input_hash_follows_settings_and_bytes(small):
    scenario = load_scenario(small)
    same, other = input_hash(load_scenario(small)), input_hash(scenario.replace(level=0.9))
    assert input_hash(scenario) == same != other
    (small.parent / "scores.csv").write_text("faithfulness,doc_name\n0.9,a\n0.8,b\n")
    assert input_hash(scenario) not in (same, other)


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_link_out_of_the_report_folder_is_refused(small, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "small").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RagnbError, match="link to a place outside"):
        report(small, out=tmp_path / "reports")
    assert not list((tmp_path / "elsewhere").iterdir())


# A batch


def made_scores(folder: Path, name: str, score: float, gates: str = "") -> Path:
    """Write a scenario of 24 questions from 6 documents around a score; return its file."""
    lines = [f"{i},q{i},a,d{i % 6}.pdf,{score + i % 3 / 100}\n" for i in range(24)]
    rows = "sample_id,question,answer,doc_name,faithfulness\n" + "".join(lines)
    (folder / f"{name}.csv").write_text(rows, encoding="utf-8")
    (folder / f"{name}.yaml").write_text(f"scores: {name}.csv\n{gates}", encoding="utf-8")
    return folder / f"{name}.yaml"


def test_a_batch_goes_on_after_a_failure_and_its_index_names_it(tmp_path):
    paths = [
        made_scores(tmp_path, name, score)
        for name, score in (("good", 0.9), ("弱", 0.4), ("bad", 1.9))
    ]
    (tmp_path / "bad.yaml").write_text("scores: gone.csv\n", encoding="utf-8")
    out = tmp_path / "reports"
    found = {made.scenario: made for made in reports(paths, out=out, jobs=2)}
    assert found[paths[2]].result is None
    assert "gone.csv" in found[paths[2]].error
    for path in paths[:2]:
        alone = report(path, out=tmp_path / "alone")
        text = (found[path].result.folder / "report.md").read_text(encoding="utf-8")
        assert text == (alone.folder / "report.md").read_text(encoding="utf-8")
    index(out, made=found.values())
    text = (out / "index.md").read_text(encoding="utf-8")
    assert re.search(r"No report this time\n\n- bad: .*gone\.csv", text)
    assert {row[0] for row in table_rows(text, 0)} == {"good", "弱"}
    means = rn.assess(tmp_path / "good.csv").means.set_index("metric").loc["weighted_score"]
    (row,) = [row for row in table_rows(text, 0) if row[0] == "good"]
    assert row[3] == f"{means['value']:.3f} · {means['low']:.3f}–{means['high']:.3f}"
    assert row[4] == "24"


# The index


def table_rows(text: str, place: int) -> list[list[str]]:
    """Return the cells of one of the tables of a Markdown text, its head left out."""
    tables = re.findall(r"(?m)(?:^\|.*\|\n)+", text)
    plain = re.sub(r"\[([^]]*)\]\(<[^>]*>\)", r"\1", tables[place])
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in plain.splitlines()[2:]
    ]


GATE = "gates:\n  - {{name: G, metric: faithfulness, op: '>=', threshold: {}}}\n"


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Reports of five scenarios, made by commands of their own: passed, failed, inconclusive, no gates, broken."""
    folder = tmp_path_factory.mktemp("history")
    out = folder / "reports"
    for score, gates in (
        (0.90, GATE.format(0.5)),
        (0.85, GATE.format(0.5)),
        (0.85, GATE.format(0.5)),
    ):
        report(made_scores(folder, "helpdesk", score, gates), out=out)
    report(made_scores(folder, "法务", 0.4, GATE.format(0.9)), out=out)
    report(made_scores(folder, "edge", 0.7, GATE.format(0.711)), out=out)
    report(made_scores(folder, "free", 0.7, "gates: []\n"), out=out)
    with pytest.raises(RagnbError):
        report(made_scores(folder, "broken", 1.9), out=out)
    (out / "judged" / "store").mkdir(parents=True)  # of `ragnb judge`, no run
    return out


def test_index_shows_every_run_below_the_folder_whoever_made_it(history):
    page = index(history)
    text = (history / "index.md").read_text(encoding="utf-8")
    latest, runs = table_rows(text, 0), table_rows(text, 1)
    words = {row[0]: row[2].split(" · ")[0] for row in latest}
    assert words == {
        "helpdesk": "● passed",
        "法务": "■ failed",
        "edge": "▲ inconclusive",
        "free": "○ no gates",
        "broken": "○ did not finish",
    }
    assert [row[0] for row in runs] == ["broken", "free", "edge", "法务", *["helpdesk"] * 3]
    folders = sorted(path.parent for path in history.glob("*/*/report.ipynb"))
    assert len(folders) == len(runs)
    links = Links()
    links.feed(page.read_text(encoding="utf-8"))
    linked = {
        (history / unquote(link)).resolve() for link in links.asked if not link.startswith("#")
    }
    assert linked == {path / f"report.{'ipynb' if path.suffix else 'html'}" for path in folders}
    assert "Latest runs: 1 failed, 1 inconclusive, 1 passed, 1 no gates, 1 did not finish" in text


def test_index_says_the_date_of_the_folder_and_the_sentence_of_the_run(history):
    rows = indexed(history, 0)
    row = next(row for row in rows if row[0] == "法务")
    (folder,) = history.glob("法务*/*Z-*")
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    stamp = folder.name
    assert row[1] == f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]} {stamp[9:11]}:{stamp[11:13]} UTC"
    assert record["verdict"] in row[2].replace("\\", "")


def test_index_says_how_the_total_changed_since_the_run_before(history):
    rows = indexed(history, 1)
    changes = [row[5] for row in rows if row[0] == "helpdesk"]
    totals = [float(row[3].split()[0]) for row in rows if row[0] == "helpdesk"]
    assert changes == ["0.000", f"{totals[1] - totals[2]:.3f}".replace("-", "−"), "first run"]
    assert totals[1] < totals[2]
    assert next(row[5] for row in rows if row[0] == "broken") == "—"


def copied(history, folder):
    """Copy the runs of one scenario; return the record of the newest."""
    shutil.copytree(history / "helpdesk", folder / "helpdesk")
    return max(path for path in (folder / "helpdesk").iterdir() if path.is_dir()) / "run.json"


def indexed(folder, place):
    """Make the index of a folder; return the cells of one of its tables."""
    index(folder)
    return table_rows((folder / "index.md").read_text(encoding="utf-8"), place)


def test_index_compares_no_totals_of_other_weights(history, tmp_path):
    latest = copied(history, tmp_path)
    record = json.loads(latest.read_text(encoding="utf-8"))
    record["weights"]["metric_weights"] = {"faithfulness": 2}
    latest.write_text(json.dumps(record), encoding="utf-8")
    assert indexed(tmp_path, 0)[0][5] == "other weights"


@pytest.mark.parametrize("left", ["", "[]", "{}", '{"overall": null, "scenario": 1}', "\x00"])
def test_a_run_whose_record_cannot_be_read_is_shown_as_one_that_did_not_finish(
    history, tmp_path, left
):
    copied(history, tmp_path).write_text(left, encoding="utf-8")
    row, *_ = indexed(tmp_path, 0)
    assert (row[0], row[2]) == ("helpdesk", "○ did not finish")


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ([], "○ no gates"),
        ([{"outcome": "fail"}], "■ failed"),
        ([{"outcome": "pass"}, {"outcome": "undecided"}], "▲ inconclusive"),
        ([{"outcome": "undecided", "blocks": True}], "▲ inconclusive"),
        (
            [{"outcome": "undecided", "blocks": True}, {"outcome": "fail", "blocks": True}],
            "■ failed",
        ),
        ([{"outcome": "undecided", "reason": "advisory"}], "○ no gates"),
        ([{"outcome": "no_data"}], "○ no data"),
        ([{"outcome": "no_data"}, {"outcome": "pass"}], "● passed"),
        ([{"outcome": "no_data", "blocks": True}, {"outcome": "pass"}], "○ no data"),
        ([{"outcome": "pass", "role": "completeness"}], "○ no gates"),
        (
            [{"outcome": "pass"}, {"outcome": "fail", "role": "completeness", "blocks": True}],
            "■ failed",
        ),
    ],
    ids=str,
)
def test_the_worst_gate_that_decides_is_the_outcome_of_a_run(history, tmp_path, rows, word):
    shutil.copytree(next(history.glob("法务*")), tmp_path / "x")
    (file,) = tmp_path.glob("x/*/gates.json")
    gates = [{"role": "quality", "reason": "", "blocks": False} | row for row in rows]
    file.write_text(json.dumps({"gates": gates}), encoding="utf-8")
    assert indexed(tmp_path, 1)[0][2] == word


def test_index_speaks_chinese(history):
    text = index(history, lang="zh").read_text(encoding="utf-8")
    assert '<html lang="zh-CN">' in text
    for word in ("通过", "未通过", "尚无定论", "未设门禁", "运行中断", "首次运行"):
        assert word in text


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_report_of_a_scenario_with_ratings_answers_whether_the_judge_can_be_trusted(out, lang):
    result = report(SCENARIOS / "rubric_judge.yaml", out=out, overrides={"lang": lang})
    assert {path.name for path in result.folder.iterdir()} == FILES | {
        "calibration.json",
        "calibration.md",
    }
    page = result.html.read_text(encoding="utf-8")
    section = re.search(r'<section id="judge".*?</section>', page, re.DOTALL)[0]
    card = json.loads((result.folder / "calibration.json").read_text(encoding="utf-8"))
    assert html.unescape(section).count(card["reasons"][0]) == 1
    assert all(row["dimension"] in section for row in card["verdicts"])


# Ratings alone


STUDY = {
    "report.ipynb",
    "report.html",
    "report.md",
    "calibration.json",
    "run.json",
    "scenario.snapshot.yaml",
    *(f"{name}.csv" for name in ("agreement", "bands", "corrected", "inflation", "labels_needed")),
    "recalibration.csv",
    "verdicts.csv",
}
DIMENSIONS = {"accuracy": "准确性", "completeness": "完整性", "clarity": "清晰度"}
RATERS = {"human1": "标注员1", "human2": "标注员2", "human3": "标注员3"}


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """Reports of ratings alone: of the quickstart, and of the same ratings with Chinese names."""
    folder = tmp_path_factory.mktemp("校准")
    ratings = pd.read_csv(ROOT / "data" / "quickstart" / "ratings.csv")
    ratings.to_csv(folder / "rated.csv", index=False)
    columns = {"item_id": "编号", "judge": "评判模型", **RATERS}
    chinese = ratings.replace({"dimension": DIMENSIONS}).rename(columns=columns)
    chinese.to_csv(folder / "人工标注.csv", index=False, encoding="gb18030")
    rubric = "rubric:\n  dimensions: [{name: 准确性}, {name: 完整性}, {name: 清晰度}]\n"
    rubric += "  passing: {metric: 准确性, op: '>=', threshold: 7}\n"
    gbk = "ratings: 人工标注.csv\nencoding: gb18030\nlang: zh\n"
    texts = {"rated": "ratings: rated.csv\n", "评判": gbk + rubric}
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MPLBACKEND", raising=False)  # one without pictures
        return {name: report(folder / f"{name}.yaml", out=folder / "reports") for name in texts}


def expected_card(lang: str) -> rn.CalibrationCard:
    ratings = rn.read_ratings(ROOT / "data" / "quickstart" / "ratings.csv")
    if lang == "zh":
        ratings = ratings.replace({"dimension": DIMENSIONS, "rater": RATERS})
    return rn.calibrate(ratings, scale=(1, 10), lang=lang)


def test_ratings_alone_give_the_calibration_of_the_judge(studies):
    for result in studies.values():
        assert {path.name for path in result.folder.iterdir()} == STUDY
        card = expected_card(result.lang)
        assert result.verdict == card.reasons[0]
        verdicts = pd.read_csv(result.folder / "verdicts.csv")
        assert verdicts[["dimension", "verdict"]].equals(card.verdicts[["dimension", "verdict"]])
        assert verdicts["share"].tolist() == pytest.approx(card.verdicts["share"].tolist())
        saved = (result.folder / "report.md").read_text(encoding="utf-8")
        shown = card.to_markdown()
        # The fingerprint of the data is of the names in it, too.
        assert re.sub("[0-9a-f]{64}", "", saved) == re.sub("[0-9a-f]{64}", "", shown)
        page = html.unescape(result.html.read_text(encoding="utf-8"))
        assert page.count("<figure>") == 7 * len(card.verdicts)
        assert all(name in page for name in card.verdicts["dimension"])
        links = Links()
        links.feed(page)
        assert {name for name in links.asked if not name.startswith("#")} == set()


def test_the_notebook_of_ratings_alone_draws_each_dimension_and_leaves_no_path(studies):
    for result in studies.values():
        notebook = nbformat.read(result.folder / "report.ipynb", as_version=4)
        parameters = notebook.metadata.papermill.parameters
        assert (result.folder / parameters.ratings).resolve().suffix == ".yaml"
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
        assert not [
            one for one in outputs if one.output_type == "error" or one.get("name") == "stdout"
        ]
        assert not complaints(outputs)
        assert sum("image/png" in output.get("data", {}) for output in outputs) == 4 * 3
        record = json.loads((result.folder / "run.json").read_text(encoding="utf-8"))
        assert record["judge"] == "NOT PROVEN"
        assert record["command"].startswith("ragnb report ")
        for path in all_files(result.folder):
            assert str(ROOT).encode() not in path.read_bytes(), path


def test_index_shows_the_verdict_on_a_judge(studies, tmp_path):
    out = next(iter(studies.values())).folder.parents[1]
    index(out)
    text = (out / "index.md").read_text(encoding="utf-8")
    rows = {row[0]: row for row in table_rows(text, 0)}
    for name, result in studies.items():
        assert rows[name][2] == f"▲ inconclusive · {result.verdict}"
        assert rows[name][3] == "—"
        assert rows[name][4] == "360"
    assert "Latest runs: 2 inconclusive" in text


@pytest.mark.parametrize(("off", "word"), [(0, "● passed"), (3, "■ failed")])
def test_index_says_passed_of_a_judge_to_trust_and_failed_of_one_to_reject(off, word, tmp_path):
    people = [1 + i % 9 for i in range(200)]
    rows = {"judge": [n + off * (-1) ** i for i, n in enumerate(people)], "human": people}
    pd.DataFrame(rows).to_csv(tmp_path / "r.csv", index=False)
    study(tmp_path / "r.csv", scale=(-2, 12)).save(
        tmp_path / "out" / "r" / "20260101T000000Z-00000000"
    )
    assert indexed(tmp_path / "out", 1)[0][2] == word


def test_ratings_without_a_judge_leave_the_partial_notebook(tmp_path):
    (tmp_path / "r.csv").write_text("item_id,human\na,1\nb,2\n")
    (tmp_path / "s.yaml").write_text("ratings: r.csv\n")
    with pytest.raises(RagnbError, match=r"cell 'calibrate' .*holds no scores of a judge"):
        report(tmp_path / "s.yaml", out=tmp_path / "reports")
    assert [path.suffix for path in (tmp_path / "reports" / "s").iterdir()] == [".failed"]


def test_a_study_needs_ratings_and_a_scale_of_two_numbers(small, tmp_path):
    with pytest.raises(RagnbError, match="names no ratings"):
        study(small)
    (tmp_path / "r.csv").write_text("judge,human\n1,2\n2,2\n3,3\n")
    assert study(tmp_path / "r.csv", scale="[1, 10]").card.scale == (1, 10)
    for bad in ("1-10", "1", [1, 5, 10], 10):
        with pytest.raises(RagnbError, match="is not two numbers"):
            study(tmp_path / "r.csv", scale=bad)
