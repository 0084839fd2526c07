"""Review of a question set: the sheet, its decisions by hand and in a spreadsheet, and the cases they leave."""

from __future__ import annotations

import csv
import html
import json
from pathlib import Path

import pandas as pd
import pytest

from ragnb.errors import RagnbError
from ragnb.scoring.generation import review_sheet, reviewed, with_decisions
from ragnb.texts import load
from ragnb.widgets import ReviewSheet
from ragnb.widgets.review import Review

COLUMNS = [
    "sample_id",
    "decision",
    "question",
    "ground_truth_answer",
    "comment",
    "doc_name",
    "kind",
    "evidence",
]


def cases() -> pd.DataFrame:
    """Four questions with what spreadsheets and CSV readers like to spoil; the last is unanswerable."""
    made = [
        {"kind": "single", "evidence": ["退货免运费，须在七日内。"], "seed": 1},
        {"kind": "multi", "evidence": ["a, b", 'said "no"\nto it']},
        {"kind": "single", "evidence": ["=SUM(A1)"]},
        {"kind": "unanswerable", "evidence": []},
    ]
    return pd.DataFrame(
        {
            "sample_id": ["001", "b", "1e5", "d"],
            "question": [
                "谁付运费？",
                "First line\nand second?",
                "=1+1 is?",
                "<script>alert(1)</script>?",
            ],
            "ground_truth_answer": ["商家。", "'quoted'", "-2", None],
            "doc_name": ["退货.md", "b.md", "c.md", None],
            "generation_params": made,
        },
        index=[7, 7, 9, 2],
    )


def saved(folder: Path) -> list[dict[str, str]]:
    """Read the file as any other program does."""
    with (folder / "review.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def review(folder: Path, **more) -> Review:
    return Review(cases(), folder / "review.csv", **{"lang": "en", **more})


def test_sheet_has_its_columns_in_the_order_of_the_cases():
    sheet = review_sheet(cases())
    assert list(sheet) == COLUMNS
    assert sheet["sample_id"].tolist() == ["001", "b", "1e5", "d"]
    assert set(sheet["decision"]) == set(sheet["comment"]) == {""}
    assert sheet["kind"].tolist() == ["single", "multi", "single", "unanswerable"]
    assert sheet["evidence"].tolist() == [
        "退货免运费，须在七日内。",
        'a, b\n\nsaid "no"\nto it',
        "=SUM(A1)",
        "",
    ]
    bare = review_sheet(cases()[["sample_id", "question", "ground_truth_answer"]])
    assert list(bare) == COLUMNS
    assert set(bare["doc_name"]) == set(bare["kind"]) == {""}


def test_decisions_leave_out_reword_and_mark_the_cases():
    given, was = cases(), cases()
    sheet = review_sheet(given)
    sheet["decision"] = ["keep", "EDIT ", "drop", ""]
    sheet.loc[1, ["question", "ground_truth_answer"]] = ["New?", ""]
    result = reviewed(given, sheet.sample(frac=1, random_state=1))
    pd.testing.assert_frame_equal(given, was)
    assert result.index.tolist() == [7, 7, 2]
    assert result["sample_id"].tolist() == ["001", "b", "d"]
    assert result["question"].tolist() == ["谁付运费？", "New?", given["question"].iloc[3]]
    assert result["ground_truth_answer"].isna().tolist() == [False, True, True]
    stated = was["generation_params"].tolist()
    assert result["generation_params"].tolist() == [
        stated[0] | {"reviewed": "keep"},
        stated[1] | {"reviewed": "edit"},
        stated[3],
    ]


def test_rows_that_are_not_in_the_sheet_are_not_reviewed():
    result = reviewed(cases(), pd.DataFrame({"sample_id": ["b"], "decision": ["keep"]}))
    same = [name for name in cases() if name != "generation_params"]
    pd.testing.assert_frame_equal(result[same], cases()[same])
    assert ["reviewed" in one for one in result["generation_params"]] == [False, True, False, False]


REFUSED = [
    (
        {"decision": "kep"},
        r"the decision 'kep' is not known; did you mean 'keep'\? \(have: keep, edit, drop\)",
    ),
    ({"sample_id": "x"}, "no case has the id 'x'"),
    ({"sample_id": "001"}, "the id '001' appears twice"),
    ({"decision": "edit", "question": " "}, "an edit needs a question"),
    ({"question": "New?"}, "question was changed, but the decision is ''"),
    (
        {"decision": "keep", "ground_truth_answer": "new"},
        "ground_truth_answer was changed, but .* is 'keep'",
    ),
]


@pytest.mark.parametrize(("cells", "words"), REFUSED)
def test_a_sheet_that_cannot_be_meant_is_refused_with_its_row(tmp_path, cells, words):
    sheet = review_sheet(cases())
    sheet.loc[2, list(cells)] = list(cells.values())
    with pytest.raises(RagnbError, match=rf"^the frame: row 3: {words}"):
        reviewed(cases(), sheet)
    file = tmp_path / "review.csv"
    sheet.to_csv(
        file, index=False
    )  # row 4 of a spreadsheet, whatever lines the cells before it have
    with pytest.raises(RagnbError, match=rf"review\.csv: row 4: {words}"):
        reviewed(cases(), file)


def test_cases_of_one_id_and_a_sheet_without_decisions_are_refused():
    with pytest.raises(RagnbError, match="two cases have the id 'b'"):
        review_sheet(cases().assign(sample_id=["a", "b", "b", "c"]))
    with pytest.raises(RagnbError, match="column='decision'"):
        reviewed(cases(), review_sheet(cases()).drop(columns="decision"))


@pytest.mark.parametrize("how", [{"encoding": "gb18030"}, {"sep": ";"}, {"lineterminator": "\r\n"}])
def test_the_file_of_a_spreadsheet_is_read(tmp_path, how):
    file, sheet = (
        tmp_path / "review.csv",
        review_sheet(cases()).assign(decision=["keep", "drop", "", "edit"]),
    )
    sheet.replace("\n", "\r\n", regex=True).to_csv(file, index=False, **how)
    encoding = how.get("encoding")
    assert with_decisions(cases(), file, encoding=encoding)["decision"].tolist() == [
        "keep",
        "drop",
        "",
        "edit",
    ]
    assert reviewed(cases(), file, encoding=encoding)["sample_id"].tolist() == ["001", "1e5", "d"]


def test_keys_decide_and_each_decision_is_on_disk_before_the_next_question(tmp_path):
    sheet = review(tmp_path)
    shown = []
    for key in ("k", "Ｄ", "k"):
        shown.append(sheet.item.key)
        sheet.press(key)
        assert [row["decision"] for row in saved(tmp_path)].count("") == 4 - len(shown)
    assert shown == ["001", "b", "1e5"]
    assert [row["decision"] for row in saved(tmp_path)] == ["keep", "drop", "keep", ""]
    assert list(saved(tmp_path)[0])[:8] == COLUMNS
    sheet.press("x")
    assert sheet.problem == load("en")("review.not_a_key", entry="x", keys="k, e, d")
    assert sheet.item.key == "d"


def test_an_edit_waits_for_another_wording_and_can_be_taken_back(tmp_path):
    sheet = review(tmp_path)
    sheet.press("e")
    sheet.press("k")  # typed before the field of the question had the focus
    assert sheet.problem == load("en")("review.editing")
    assert not (tmp_path / "review.csv").exists()
    sheet.enter("edit", [" ", "x"])
    assert sheet.problem == load("en")("review.no_question")
    sheet.enter("edit", [" 谁承担运费？ ", "商家。"])
    assert sheet.item.key == "b"
    assert not sheet.editing
    sheet.press("e")
    sheet.enter("edit", ["First line\nand second?", "'quoted'"])
    assert sheet.problem == load("en")("review.unchanged")
    rows = saved(tmp_path)
    assert [row["decision"] for row in rows] == ["edit", "", "", ""]
    assert rows[0]["question"] == "谁承担运费？"
    sheet.back()
    assert (sheet.item.key, sheet.editing, sheet.wording) == (
        "001",
        True,
        ["谁承担运费？", "商家。"],
    )
    sheet.enter("keep")
    assert saved(tmp_path)[0]["question"] == "谁付运费？"
    assert (
        reviewed(cases(), tmp_path / "review.csv")["question"].tolist()
        == cases()["question"].tolist()
    )


def test_the_sheet_resumes_and_takes_up_what_a_spreadsheet_wrote_meanwhile(tmp_path):
    first = review(tmp_path)
    first.note("clumsy")
    first.skip()
    first.press("d")
    again = review(tmp_path)
    assert again.item.key == "001"
    assert list(again.done) == ["b"]
    file = tmp_path / "review.csv"
    with_decisions(cases(), file).assign(
        decision=["", "drop", "drop", ""], comment=["", "twice", "", ""]
    ).iloc[::-1].to_csv(file, index=False)
    again.press("k")
    assert [row["decision"] for row in saved(tmp_path)] == ["keep", "drop", "drop", ""]
    assert [row["comment"] for row in saved(tmp_path)] == ["", "twice", "", ""]
    assert again.item.key == "d"
    again.press("k")
    assert again.item is None
    assert review(tmp_path).item is None
    before = file.read_bytes()
    again.skip()
    again.press("k")
    again.note("x")
    again.enter("edit", ["q", "a"])
    assert file.read_bytes() == before


def test_comments_are_saved_with_the_decision_and_at_once_after_it(tmp_path):
    sheet = review(tmp_path)
    sheet.note(" two questions in one ")
    sheet.press("d")
    assert saved(tmp_path)[0]["comment"] == "two questions in one"
    sheet.back()
    sheet.note("")
    assert saved(tmp_path)[0]["comment"] == ""
    assert saved(tmp_path)[0]["decision"] == "drop"


def test_a_file_of_another_kind_or_set_is_refused(tmp_path):
    with pytest.raises(RagnbError, match=r"ends in \.csv"):
        ReviewSheet(cases(), file=tmp_path / "review.xlsx")
    review(tmp_path).press("k")
    with pytest.raises(RagnbError, match="row 2: no case has the id '001'"):
        ReviewSheet(cases().iloc[1:], file=tmp_path / "review.csv")


def held(sheet: ReviewSheet) -> list:
    return json.loads(html.unescape(sheet._held.widget.value.split('data-held="')[1].split('"')[0]))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_widgets_show_the_question_and_pass_on_what_a_person_does(tmp_path, lang):
    sheet, say = ReviewSheet(cases(), file=tmp_path / "review.csv", lang=lang), load(lang)
    _ = sheet.view
    for words in ("谁付运费？", "商家。", "退货免运费，须在七日内。", "退货.md"):
        assert words in sheet._item.widget.value
    assert held(sheet) == ["", "", "谁付运费？", "商家。", ""]
    sheet._press("k")
    assert saved(tmp_path)[0]["decision"] == "keep"
    sheet._press("e")
    assert sheet._editor.layout.display == "flex"
    assert held(sheet) == ["e", say("review.edit"), "First line\nand second?", "'quoted'", ""]
    sheet._wording[0].value = "One line?"
    assert held(sheet)[2] == "One line?"
    save = sheet._editor.children[-1].children[0]
    save.click()
    assert saved(tmp_path)[1]["question"] == "One line?"
    sheet._choice.value = "drop"
    assert saved(tmp_path)[2]["decision"] == "drop"
    assert "<script>" not in sheet._item.widget.value
    assert say("review.no_answer") in sheet._item.widget.value
    assert say("review.no_evidence") in sheet._item.widget.value
    (tmp_path / "review.csv").write_text("sample_id,decision\nb,kep\n", encoding="utf-8")
    sheet._press("k")
    assert "kep" in sheet._wrong.widget.value
    assert sheet.model.item.key == "d"
    assert say("review.static") in sheet._repr_html_()
    assert repr(sheet) == "ReviewSheet('review.csv': 3 of 4)"
