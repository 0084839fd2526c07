"""Answers drawn for labels: equal chances, every group its part, raters blind; the sheet comes back."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragnb.calibration import (
    check_golden,
    draw_labels,
    golden_template,
    read_judged,
    read_labels,
    read_ratings,
    write_labels,
)
from ragnb.calibration.labels import BANDS
from ragnb.errors import RagnbError, RagnbWarning

QUICKSTART = Path(__file__).resolve().parents[2] / "data" / "quickstart" / "judged_simulated.csv"


def scored(n=300, seed=0):
    """Answers of two systems in documents of unequal size, with two dimensions."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sample_id": [f"q{i:03d}" for i in range(n)],
            "system": rng.choice(["a", "b"], n, p=[0.3, 0.7]),
            "doc_name": rng.choice([f"d{i}" for i in range(20)], n, p=np.arange(1, 21) / 210),
            "question": "why",
            "answer": "so",
            "retrieved_contexts": [["one", "two"]] * n,
            "accuracy": rng.integers(1, 11, n).astype(float),
            "clarity": rng.integers(1, 11, n).astype(float),
        }
    )


def keys(drawn):
    return list(zip(drawn["sample_id"], drawn["system"], strict=True))


def test_draws_as_many_as_asked_and_each_once():
    drawn = draw_labels(scored(), n=120)
    assert len(set(keys(drawn))) == len(drawn) == drawn["item_id"].nunique() == 120
    assert drawn.attrs["dimensions"] == ["accuracy", "clarity"]
    assert drawn.attrs["population"] == 300


@settings(max_examples=25)
@given(st.integers(1, 150), st.integers(0, 50))
def test_each_system_and_band_gets_its_part(n, seed):
    everything = draw_labels(scored(150, 3), n=150)
    groups = Counter(zip(everything["system"], everything["band"], strict=True))
    drawn = draw_labels(scored(150, 3), n=n, seed=seed)
    got = Counter(zip(drawn["system"], drawn["band"], strict=True))
    assert all(abs(got[group] - n * size / 150) < 1 + 1e-9 for group, size in groups.items())


@settings(max_examples=25)
@given(st.integers(20, 150), st.integers(0, 50))
def test_each_cluster_of_a_group_gets_its_part(n, seed):
    everything = draw_labels(scored(150, 3), n=150)
    columns = ["system", "band", "cluster"]
    sizes = everything.groupby(columns).size()
    got = (
        draw_labels(scored(150, 3), n=n, seed=seed)
        .groupby(columns)
        .size()
        .reindex(sizes.index, fill_value=0)
    )
    assert ((got - n * sizes / 150).abs() < 1 + 1e-9).all()


def test_every_answer_has_the_same_chance():
    """A cluster of one is drawn as often as each of a crowd."""
    frame, draws = scored(40, 5), 250
    drawn = Counter(
        key for seed in range(draws) for key in keys(draw_labels(frame, n=10, seed=seed))
    )
    chances = np.array(
        [drawn[key] / draws for key in zip(frame["sample_id"], frame["system"], strict=True)]
    )
    assert abs(chances - 0.25).max() < 4 * (0.25 * 0.75 / draws) ** 0.5
    alone = ~frame["doc_name"].duplicated(keep=False).to_numpy()
    assert abs(chances[alone].mean() - 0.25) < 4 * (0.25 * 0.75 / draws / alone.sum()) ** 0.5


def test_bands_are_thirds_of_the_range_of_the_judges_mean():
    drawn = draw_labels(scored(), n=300)
    mean = drawn[["accuracy", "clarity"]].mean(axis=1)
    step = (mean.max() - mean.min()) / 3
    for score, band in zip(mean, drawn["band"], strict=True):
        assert (
            mean.min() + BANDS.index(band) * step - 1e-9
            <= score
            <= mean.min() + (BANDS.index(band) + 1) * step + 1e-9
        )


def test_the_same_seed_draws_the_same_in_any_order():
    frame = scored()
    expected = draw_labels(frame, n=50, seed=7)
    pd.testing.assert_frame_equal(
        draw_labels(frame.sample(frac=1, random_state=1), n=50, seed=7), expected
    )
    assert keys(draw_labels(frame, n=50, seed=8)) != keys(expected)


def test_dimensions_can_be_chosen_and_come_from_rows():
    frame = scored()
    assert draw_labels(frame, n=5, dimensions=["clarity"]).attrs["dimensions"] == ["clarity"]
    rows = frame.melt(
        ["sample_id", "system", "doc_name"], ["accuracy", "clarity"], "dimension", "judge"
    )
    by_row, by_column = draw_labels(rows, n=50, seed=2), draw_labels(frame, n=50, seed=2)
    assert keys(by_row) == keys(by_column)
    assert by_row["accuracy"].tolist() == by_column["accuracy"].tolist()
    assert draw_labels(
        rows[["sample_id", "system", "judge"]].drop_duplicates(["sample_id", "system"]), n=5
    ).attrs["dimensions"] == ["overall"]


def test_what_cannot_be_drawn_is_said():
    with pytest.warns(RagnbWarning, match="only 300"):
        assert len(draw_labels(scored(), n=400)) == 300
    gaps = scored().assign(accuracy=None, clarity=lambda f: f["clarity"].where(f.index > 2))
    with pytest.warns(RagnbWarning, match="3 answers without"):
        assert len(draw_labels(gaps.astype({"accuracy": float}), n=297)) == 297
    with pytest.raises(RagnbError, match=r"'clarityy' does not exist; did you mean 'clarity'"):
        draw_labels(scored(), n=5, dimensions=["clarityy"])
    with pytest.raises(RagnbError, match="no judge score"):
        draw_labels(scored()[["sample_id", "question"]], n=5)
    with pytest.raises(RagnbError, match="more than once"):
        draw_labels(pd.concat([scored(), scored()]), n=5)
    for n in (0, 2.5, True):
        with pytest.raises(RagnbError, match="whole number"):
            draw_labels(scored(), n=n)


# The sheet


def table(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_raters_see_neither_the_judge_nor_the_system(tmp_path):
    drawn = draw_labels(scored(), n=30)
    sheet, key = write_labels(drawn, tmp_path / "labels.csv")
    assert key == tmp_path / "labels.judge.csv"
    first = table(sheet)[0]
    assert list(first) == [
        "item_id",
        "question",
        "answer",
        "retrieved_contexts",
        "accuracy",
        "clarity",
        "rater",
        "comment",
    ]
    assert first["retrieved_contexts"] == "[1] one\n\n[2] two"
    assert {row[name] for row in table(sheet) for name in ("accuracy", "clarity", "rater")} == {""}
    assert not any(
        word in sheet.read_text(encoding="utf-8") for word in ("q0", "q1", "q2", ",a,", ",b,")
    )
    assert list(table(key)[0]) == [
        "item_id",
        "sample_id",
        "system",
        "cluster",
        "band",
        "inclusion_probability",
        "accuracy",
        "clarity",
    ]


def test_a_sheet_opens_in_a_spreadsheet_with_chinese_and_without_formulas(tmp_path):
    frame = scored(2).assign(question=["问题", "=1+1"])
    sheet, _ = write_labels(draw_labels(frame, n=2), tmp_path / "labels.csv")
    assert sheet.read_bytes().startswith(b"\xef\xbb\xbf")
    assert {row["question"] for row in table(sheet)} == {"问题", "'=1+1"}


def test_a_sheet_is_never_written_over(tmp_path):
    drawn = draw_labels(scored(), n=3)
    write_labels(drawn, tmp_path / "labels.csv")
    with pytest.raises(RagnbError, match="may contain ratings"):
        write_labels(drawn, tmp_path / "labels.csv")


def test_a_drawn_table_that_was_built_again_is_written_once_its_dimensions_are_named(tmp_path):
    drawn = draw_labels(scored(), n=3)
    again = pd.DataFrame(drawn.to_dict("list"))
    with pytest.raises(RagnbError, match="which of its columns people rate.*accuracy, clarity"):
        write_labels(again, tmp_path / "again.csv")
    with pytest.raises(RagnbError, match="did you mean 'clarity'"):
        write_labels(again, tmp_path / "again.csv", dimensions=["accuracy", "clarty"])
    want = write_labels(drawn, tmp_path / "labels.csv")
    found = write_labels(again, tmp_path / "again.csv", dimensions=["accuracy", "clarity"])
    assert [table(file) for file in found] == [table(file) for file in want]


def fill(sheet, to, score, rater=""):
    rows = table(sheet)
    with to.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(
            {**row, "accuracy": score, "clarity": score + 1, "rater": rater} for row in rows
        )
    return to


def test_a_filled_sheet_comes_back_with_its_key(tmp_path):
    frame = scored()
    drawn = draw_labels(frame, n=30)
    sheet, key = write_labels(drawn, tmp_path / "labels.csv")
    back = read_labels(fill(sheet, tmp_path / "ann.csv", 6), key)
    pd.testing.assert_frame_equal(back, read_ratings(tmp_path / "ann.csv", judged=key))
    assert len(back) == 60
    assert set(back["human"]) == {6, 7}
    truth = frame.melt(
        ["sample_id", "system", "doc_name"], ["accuracy", "clarity"], "dimension", "judge"
    )
    joined = back.merge(truth, on=["sample_id", "system", "dimension"])
    assert len(joined) == 60
    assert (joined["judge_x"] == joined["judge_y"]).all()
    assert (joined["cluster"] == joined["doc_name"]).all()


def test_a_sheet_a_rater_comes_back_as_raters(tmp_path):
    sheet, key = write_labels(draw_labels(scored(), n=10), tmp_path / "labels.csv")
    two = [fill(sheet, tmp_path / "ann.csv", 6), fill(sheet, tmp_path / "bo.csv", 4)]
    back = read_labels(two, key)
    assert back.groupby("rater")["human"].min().to_dict() == {"ann": 6, "bo": 4}
    assert len(back) == 40
    same = [fill(sheet, path, 6, rater="ann") for path in two]
    with pytest.raises(RagnbError, match="twice"):
        read_labels([same[0], same[0]], key)


def test_half_a_sheet_comes_back_as_far_as_it_is_filled(tmp_path):
    sheet, key = write_labels(draw_labels(scored(), n=10), tmp_path / "labels.csv")
    rows = sheet.read_text(encoding="utf-8-sig")
    sheet.write_text(rows.replace('[2] two",,', '[2] two",5,', 1), encoding="utf-8")
    back = read_labels(sheet, key)
    assert back["human"].tolist() == [5]


def test_quickstart_answers_are_drawn_over_all_documents():
    drawn = draw_labels(read_judged(QUICKSTART), n=60, seed=1)
    assert drawn["cluster"].nunique() == 14
    assert Counter(drawn["system"]) == {"weak": 30, "strong": 30}
    assert set(drawn["band"]) == set(BANDS)


# The golden set


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_golden_template_has_three_hard_questions_in_every_dimension(lang):
    template = golden_template(lang=lang)
    assert template["item_id"].nunique() == template["hint"].nunique() == 3
    assert Counter(template["dimension"]) == {"accuracy": 3, "completeness": 3, "clarity": 3}
    assert template[["doc_name", "question", "answer", "judge", "human"]].isna().all(axis=None)


def test_golden_set_tells_whether_all_lie_within_a_point():
    filled = golden_template().assign(judge=9.0, human=[8, 9, 10, 8, 9, 10, 8, 9, 10])
    assert check_golden(read_ratings(filled))["within"].all(skipna=False)
    off = filled.assign(human=[8, 9, 10, 8, 7.9, 10, 8, 9, 10])
    checked = check_golden(read_ratings(off))
    assert checked.loc[~checked["within"], "difference"].round(6).tolist() == [1.1]
    assert check_golden(read_ratings(off), tolerance=2)["within"].all()
    open_ = filled.assign(human=[8, 9, 10, 8, None, 10, 8, 9, 10])
    assert check_golden(read_ratings(open_))["within"].isna().sum() == 1


def test_golden_set_takes_the_mean_of_raters():
    rows = [{"item_id": "G1", "judge": 9, "human1": 7, "human2": 9}]
    assert check_golden(read_ratings(rows))["human"].tolist() == [8]
    with pytest.raises(RagnbError, match="'judge' is not known; did you mean 'judg'"):
        check_golden(read_ratings(rows).rename(columns={"judge": "judg"}))
