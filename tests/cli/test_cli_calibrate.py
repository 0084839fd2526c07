"""`ragnb calibrate` as a user runs it: exit codes by verdict, the card as files, labels and the golden set."""

from __future__ import annotations

import csv
import json
import re
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

import ragnb as rn
from ragnb.cli import main

QUICKSTART = Path(__file__).resolve().parents[2] / "data" / "quickstart"
RATINGS, JUDGED = QUICKSTART / "ratings.csv", QUICKSTART / "judged_simulated.csv"

# On the command line warnings are printed, not raised.
pytestmark = pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")


@pytest.fixture
def run(run):
    return partial(run, "calibrate")


@pytest.fixture
def ratings(tmp_path):
    """Write ratings of 200 items whose judge is off by as much as asked."""

    def write(off: float, name: str = "r.csv") -> Path:
        people = [1 + i % 9 for i in range(200)]
        judge = [human + off * (-1 if i % 2 else 1) for i, human in enumerate(people)]
        frame = pd.DataFrame(
            {"item_id": range(200), "judge": judge, "human": people, "cluster": range(200)}
        )
        frame.to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return write


# Exit codes


@pytest.mark.parametrize(("off", "code", "word"), [(0.5, 0, "TRUST"), (3, 1, "REJECT")])
def test_exit_code_says_the_verdict(run, ratings, off, code, word):
    found, out, err = run(ratings(off), "--scale", -3, 13)
    assert (found, err) == (code, "")
    assert word in out.splitlines()[0]


@pytest.mark.parametrize(
    ("cut", "code", "word"),
    [
        ([], 3, "NOT PROVEN"),
        (["--dimension", "completeness"], 0, "TRUST"),
    ],
)
def test_what_is_not_proven_exits_3_and_one_dimension_of_it_0(run, cut, code, word):
    found, out, _ = run(RATINGS, "--scale", 1, 10, *cut)
    assert found == code
    assert word in out.splitlines()[0]


def test_options_reach_the_card(run, tmp_path):
    path = tmp_path / "card.json"
    options = [
        "--tolerance",
        2,
        "--target",
        0.7,
        "--delta",
        0.3,
        "--level",
        0.9,
        "--seed",
        5,
        "--lang",
        "zh",
    ]
    about = ["--about", "judge_id=simulated", "--about", "drawn_at_random=true"]
    run(RATINGS, "--dimension", "accuracy", "--scale", 1, 10, *options, *about, "--json", path)
    card = json.loads(path.read_text(encoding="utf-8"))
    frame = rn.read_ratings(RATINGS)
    want = rn.calibrate(
        frame[frame["dimension"] == "accuracy"],
        scale=(1, 10),
        tolerance=2,
        target=0.7,
        delta=0.3,
        level=0.9,
        seed=5,
        lang="zh",
        about={"judge_id": "simulated", "drawn_at_random": True},
    )
    assert card == json.loads(json.dumps(want.to_dict()))
    assert card["footer"]["judge_id"] == "simulated"


def test_cluster_column_is_the_one_asked_for(run, tmp_path):
    run(RATINGS, "--cluster", "language", "--scale", 1, 10, "--json", tmp_path / "card.json")
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert {row["n_clusters"] for row in card["verdicts"]} == {2}


def test_columns_of_other_names_are_taken(run, ratings, tmp_path):
    frame = pd.read_csv(ratings(0.5)).rename(columns={"judge": "gpt", "human": "ann"})
    frame.assign(bo=frame["ann"]).to_csv(tmp_path / "named.csv", index=False)
    assert run(tmp_path / "named.csv", "--scale", 0, 10)[0] == 2
    named = ["--judge", "gpt", "--human", "ann", "--human", "bo"]
    assert run(tmp_path / "named.csv", *named, "--scale", 0, 10)[0] == 0
    both = frame.assign(gpt2=frame["gpt"] + 5)
    both.to_csv(tmp_path / "two.csv", index=False)
    judges = ["--judge", "gpt", "--judge", "gpt2", "--human", "ann"]
    code, out, _ = run(tmp_path / "two.csv", *judges, "--scale", 0, 15)
    assert code == 1
    assert "gpt2" in out


def test_sentinels_must_be_declared(run, ratings, tmp_path):
    frame = pd.read_csv(ratings(0.5))
    frame.loc[3, "judge"] = -1
    frame.to_csv(tmp_path / "s.csv", index=False)
    code, _, err = run(tmp_path / "s.csv")
    assert code == 2
    assert "s.csv, line 5" in err
    assert "set --missing -1 if" in err
    assert "--scale -1 1, if" in err
    want = run(tmp_path / "s.csv", "--missing", -1, "--scale", 0, 10)
    assert want[0] == 0
    assert run(tmp_path / "s.csv", "--missing", "outside", "--scale", 0, 10) == want
    code, _, err = run(tmp_path / "s.csv", "--scale", 0, 10)
    assert code == 2
    assert "set --missing -1 if it means no score, --missing outside if all of them do" in err
    for words, told in (
        (["outside"], "--missing outside needs the scale"),
        (["none"], "neither a number nor"),
    ):
        code, _, err = run(tmp_path / "s.csv", "--missing", *words)
        assert code == 2
        assert told in err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "nothing to calibrate"),
        (["nowhere.csv"], "there is no such file"),
        ([RATINGS, "--dimension", "accurcy"], "did you mean 'accuracy'"),
        ([RATINGS, "--about", "x"], "KEY=VALUE"),
        ([RATINGS, "--out", "x.csv"], "--sample or --golden"),
        ([JUDGED], "--judged …"),
        ([RATINGS, "--target", 2], "target"),
        (["--sample", 5, JUDGED], "--out"),
        (["--golden"], "--out"),
        (["--golden", RATINGS, JUDGED], "one file"),
    ],
)
def test_bad_input_is_one_line_on_stderr_and_2(run, args, words):
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1


# The card as files


def test_card_is_printed_unless_it_is_written(run, tmp_path):
    _, printed, _ = run(RATINGS, "--scale", 1, 10)
    _, told, _ = run(RATINGS, "--scale", 1, 10, "--markdown", tmp_path / "card.md")
    card = rn.calibrate(rn.read_ratings(RATINGS), scale=(1, 10))
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == printed == card.to_markdown()
    assert told.splitlines() == list(card.reasons)


def test_page_opens_by_itself_and_holds_verdict_charts_and_numbers(run, tmp_path):
    path = tmp_path / "card.html"
    run(RATINGS, "--dimension", "accuracy", "--scale", 1, 10, "--html", path, "--lang", "zh")
    page = path.read_text(encoding="utf-8")
    assert "评判可信度" in page
    assert page.count("<figure>") == 7
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)=\"(?!#|data:)", page)
    assert "84.2 %" in page


def test_page_of_several_dimensions_has_a_part_for_each(run, tmp_path):
    two = ["--dimension", "accuracy", "--dimension", "clarity"]
    run(RATINGS, *two, "--scale", 1, 10, "--html", tmp_path / "card.html")
    page = (tmp_path / "card.html").read_text(encoding="utf-8")
    assert "Judge trust" in page
    assert page.count("<figure>") == 14
    for name in ("accuracy", "clarity"):
        assert re.search(rf'<section id="part-\d" aria-label="{name}"', page)


def test_strangers_names_stay_text_on_the_page(run, tmp_path):
    frame = pd.read_csv(RATINGS)
    payload = "<img src=x onerror=alert(1)>"
    hostile = frame.assign(dimension=payload, item_id=range(len(frame)), system=payload)
    hostile.to_csv(tmp_path / "r.csv", index=False)
    run(tmp_path / "r.csv", "--scale", 1, 10, "--html", tmp_path / "card.html")
    assert "<img" not in (tmp_path / "card.html").read_text(encoding="utf-8")


# Labels


def table(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_from_a_judged_table_to_a_card(run, tmp_path):
    """Draw, rate, calibrate: the way of a user with a judge and no labels yet."""
    sheet = tmp_path / "labels.csv"
    code, out, err = run("--sample", 60, JUDGED, "--out", sheet, "--seed", 1)
    assert (code, err) == (0, "")
    assert "60 of 160" in out
    command = out.splitlines()[-1].split("ragnb calibrate ")[1].split()
    key = {row["item_id"]: row for row in table(tmp_path / "labels.judge.csv")}
    for rater, off in (("ann", 0), ("bo", 1)):
        rows = table(sheet)
        for i, row in enumerate(rows):
            for name in ("accuracy", "completeness", "clarity"):
                row[name] = min(10, max(1, int(key[row["item_id"]][name]) + off * (-1) ** i))
        with (tmp_path / f"{rater}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    files = [tmp_path / "ann.csv", tmp_path / "bo.csv"]
    options = ["--scale", 1, 10, "--json", tmp_path / "card.json", "--dimension", "accuracy"]
    code, out, _ = run(*files, *command[1:], *options)
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert code == 0
    assert [card["verdicts"][0][name] for name in ("n", "n_clusters")] == [60, 14]
    assert card["footer"]["raters"] == 2


def test_sample_is_told_in_chinese_too(run, tmp_path):
    _, out, _ = run(
        "--sample",
        10,
        JUDGED,
        "--out",
        tmp_path / "l.csv",
        "--lang",
        "zh",
        "--dimension",
        "accuracy",
    )
    assert "从 160 个" in out
    assert list(table(tmp_path / "l.csv")[0]) == [
        "item_id",
        "question",
        "answer",
        "accuracy",
        "rater",
        "comment",
    ]


def test_a_judged_table_gives_the_corrected_mean_more_answers(run, tmp_path):
    run(RATINGS, "--judged", JUDGED, "--scale", 1, 10, "--json", tmp_path / "card.json")
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert {row["n_judged"] for row in card["corrected"] if row["way"] == "corrected"} != {0}


def test_a_judged_table_without_the_dimension_of_the_ratings_is_asked_for_it(run, tmp_path):
    about = {"item_id": [f"i{k}" for k in range(90)], "judge": [1 + k % 9 for k in range(90)]}
    judged = pd.DataFrame(about)
    rated = judged[:60].drop(columns="judge").assign(human=judged["judge"], dimension="accuracy")
    rated.to_csv(tmp_path / "people.csv", index=False)
    judged.to_csv(tmp_path / "judged.csv", index=False)
    asked = (tmp_path / "people.csv", "--judged", tmp_path / "judged.csv", "--scale", 1, 10)
    code, _out, err = run(*asked)
    assert code == 2
    assert "judged: column='dimension' does not exist" in err
    named = judged.assign(dimension="accuracy")
    # Of a dimension that nobody rated there is nothing to correct.
    other = judged.assign(dimension="clarity")
    pd.concat([named, other]).to_csv(tmp_path / "judged.csv", index=False)
    card = tmp_path / "card.json"
    assert run(*asked, "--json", card)[0] == 0
    assert {row["n_judged"] for row in json.loads(card.read_text())["corrected"]} == {30}
    pd.concat([named[:60], other]).to_csv(tmp_path / "judged.csv", index=False)
    assert run(*asked, "--json", card)[0] == 0
    assert {row["n_judged"] for row in json.loads(card.read_text())["corrected"]} == {0}


# The golden set


def test_golden_set_from_template_to_check(run, tmp_path):
    path = tmp_path / "golden.csv"
    code, out, _ = run("--golden", "--out", path)
    assert code == 0
    assert f"ragnb calibrate --golden {path}" in out
    for lang, words in (("en", "9 of 9 rows have no score"), ("zh", "9 项中有 9 项缺少")):
        code, out, _ = run("--golden", path, "--lang", lang)
        assert (code, words in out) == (3, True)
    path.with_name("no.csv").write_text("item_id,judge\nG1,9\n", encoding="utf-8")
    assert run("--golden", path.with_name("no.csv"))[0] == 2  # there is no column to fill in
    assert run("--golden", "--out", path)[0] == 2  # never written over
    filled = pd.read_csv(path).assign(judge=8.0, human=9.0)
    for last, code, words in ((9.0, 0, "All 9"), (5, 1, "1 of 9"), (None, 3, "have no score")):
        filled.assign(human=[9.0] * 8 + [last]).to_csv(path, index=False)
        found, out, _ = run("--golden", path)
        assert found == code
        assert words in out
    filled.assign(human=[9.0] * 8 + [6]).to_csv(path, index=False)
    assert run("--golden", path, "--tolerance", 2)[0] == 0


def test_help_says_exit_codes_and_examples(run):
    code, out, _ = run("--help")
    assert code == 0
    assert "3 NOT PROVEN" in out
    assert "--sample 120 judged.csv" in out


def test_a_file_that_lost_ratings_is_no_ground_for_trust(tmp_path, capsys):
    lines = [
        json.dumps({"item_id": str(i), "judge": i % 6 + 2, "human": i % 6 + 2}) for i in range(400)
    ]
    (tmp_path / "r.jsonl").write_text(
        "\n".join(line[: 20 if i % 4 == 0 else 99] for i, line in enumerate(lines))
    )
    assert main(["calibrate", str(tmp_path / "r.jsonl"), "--scale", "1", "10"]) == 2
    assert "100 of 400 input lines are damaged or lost" in capsys.readouterr().err
    frame = rn.read_ratings(tmp_path / "r.jsonl")
    told = {
        "en": "100 of 400 input lines are damaged or lost",
        "zh": "400 行输入中有 100 行损坏或丢失",
    }
    for lang, words in told.items():
        card = rn.calibrate(frame, scale=(1, 10), lang=lang)
        assert card.notes["code"].tolist()[0] == "damaged"
        assert words in card.notes["text"][0]
    whole = frame.assign(judge=frame["judge"])
    whole.attrs = {}
    assert "damaged" not in rn.calibrate(whole, scale=(1, 10)).notes["code"].tolist()
