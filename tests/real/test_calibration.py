"""Judges of real ratings: the published agreement, the quoted bands, and verdicts that those numbers call for."""

import json

import numpy as np
import pandas as pd
import pytest
from jackknifed import wide

from ragnb.calibration import agreement, calibrate
from ragnb.cli import main

SETS = {
    "mtrag": ("mtrag", "judge10", "human10", (1, 10), ["faithfulness", "overall3"], "_10pt"),
    "hanna": (
        "hanna",
        "judge_Beluga-13B",
        "human",
        (1, 5),
        ["coherence", "relevance"],
        "_beluga13b",
    ),
    "ragchecker": (
        "ragchecker_meta",
        "judge",
        "human",
        (-2, 2),
        ["completeness", "correctness", "overall"],
        "",
    ),
}
COLUMNS = {
    "n": "n",
    "n_clusters": "n_clusters",
    "mean_judge": "mean_judge",
    "mean_human": "mean_human",
    "within": "within_tol/rate",
    "within_rounded": "within1_rounded",
    "exact": "exact_agreement_rounded",
    "mae": "mae",
    "bias": "bias/mean",
    "slope": "bland_altman/slope_diff_on_mean",
    "kendall": "corr/kendall_b",
    "kendall_by_system": "corr/system_level/kendall_b",
    "qwk": "qwk_rounded",
}


@pytest.fixture(scope="module")
def ratings(shared):
    names = {file for file, *_ in SETS.values()}
    return {name: pd.read_csv(shared / "data" / "ratings" / f"{name}.csv") for name in names}


@pytest.mark.parametrize("source", SETS)
def test_agreement_is_the_references(ratings, reference, source):
    file, judge, human, scale, dimensions, ending = SETS[source]
    frame = ratings[file]
    frame = frame[frame["dimension"].isin(dimensions)]
    for row in wide(agreement(frame, judge=judge, human=human, scale=scale)).to_dict("records"):
        wanted = reference[f"{source}_{row['dimension']}{ending}"]
        for column, path in COLUMNS.items():
            want = wanted
            for part in path.split("/"):
                want = want.get(part, {})
            if want and not (
                "system" in path and source == "ragchecker"
            ):  # its systems are pairs of systems
                assert row[column] == pytest.approx(
                    want["value"], abs=want["tol"] + 1e-12, nan_ok=True
                ), column


@pytest.fixture(scope="module")
def overall(ratings):
    rows = ratings["mtrag"]
    return calibrate(
        rows[rows["dimension"] == "overall3"], judge="judge10", human="human10", scale=(1, 10)
    )


def test_the_judge_of_mtrag_is_not_trusted_and_inflates_the_reference_texts(overall):
    assert overall.verdict in ("NOT PROVEN", "REJECT")
    assert "INFLATED" in overall.sides
    by_system = overall.inflation[overall.inflation["kind"] == "system"].set_index("group")
    assert by_system.loc["reference", "inflated"]
    assert not by_system.loc[["gpt-4o", "llama-3.1-405b-instruct"], "inflated"].any()
    assert by_system["value"].round(2).to_dict() == {
        "gpt-4o": -0.41,
        "llama-3.1-405b-instruct": -0.68,
        "reference": 0.59,
    }
    row = overall.verdicts.iloc[0]
    assert (round(row["share"], 3), round(row["constant"], 3)) == (0.516, 0.776)
    assert not row["beats_constant"]


def test_the_bands_of_mtrag_are_those_of_the_reference(overall, reference):
    found = overall.bands.set_index("band")
    for band, want in reference["mtrag_overall3_10pt"]["judge_score_bands"].items():
        row = found.loc[band]
        assert (row["n"], row["n_clusters"]) == (want["n"], want["clusters"])
        assert [row["share"], row["bias"]] == pytest.approx(
            [want["within"], want["bias"]], abs=1e-9
        )
    assert found.loc["10", ["share", "bias"]].round(2).tolist() == [0.74, 0.86]
    assert found.loc["1", ["share", "bias"]].round(1).tolist() == [0.0, -4.1]
    assert round(found.loc["8", "share"], 2) == 0.36
    assert set(found.loc[found["n_clusters"] < 5, "verdict"]) == {"too few"}


def test_recalibration_hurts_nobody_in_silence(overall, reference):
    want, rows = reference["mtrag_overall3_10pt"]["recal"], overall.recalibration.set_index("map")
    for name, short in (
        ("raw", "raw"),
        ("linear", "linear"),
        ("isotonic", "isotonic"),
        ("constant", "constant_median"),
    ):
        assert rows.loc[name, "mae"] == pytest.approx(want[f"mae_{short}"]["value"], abs=2e-6)
        assert rows.loc[name, "share"] == pytest.approx(want[f"within_{short}"]["value"], abs=1e-3)


def test_more_labels_will_not_help_a_judge_below_the_target(overall):
    assert overall.labels_needed["reason"].tolist() == ["share_at_or_below_target"]
    assert overall.labels_needed["total"].isna().all()
    assert any("More labels will not help" in line for line in overall.reasons)


def test_the_five_judges_of_hanna_stand_side_by_side(ratings):
    rows = ratings["hanna"]
    judges = [name for name in rows if name.startswith("judge_")]
    rows = rows[rows["dimension"].isin(["coherence", "complexity"])]
    card = calibrate(rows, judge=judges, scale=(1, 5), missing="outside")
    assert card.verdicts[["judge", "dimension"]].drop_duplicates().shape == (10, 2)
    assert card.verdict == "REJECT"
    for (judge, dimension), row in wide(card.table).groupby(["judge", "dimension"]):
        own = rows[(rows["dimension"] == dimension) & rows[judge].between(1, 5)]
        assert row["n"].item() == len(own)
        assert row["within"].item() == pytest.approx(
            np.mean(np.abs(own[judge] - own["human"]) <= 1 + 1e-9)
        )
        one = card.only(judge=judge, dimension=dimension)
        assert (
            one.verdict
            == card.verdicts.set_index(["judge", "dimension"]).loc[(judge, dimension), "verdict"]
        )
        assert len(one.reasons) > 5


def test_the_five_judges_of_hanna_stand_side_by_side_from_the_command_line(
    shared, ratings, tmp_path, capsys
):
    source, card = shared / "data" / "ratings" / "hanna.csv", tmp_path / "card.json"
    said = ["--scale", "1", "5", "--dimension", "coherence", "--json", str(card)]
    assert main(["calibrate", str(source), *said]) == 2
    assert "--missing" in capsys.readouterr().err
    assert main(["calibrate", str(source), *said, "--missing", "outside"]) == 1
    out = capsys.readouterr().out
    rows = ratings["hanna"]
    rows = rows[rows["dimension"] == "coherence"]
    judges = [name for name in rows if name.startswith("judge_")]
    assert len(judges) == 5
    found = json.loads(card.read_text(encoding="utf-8"))["table"]
    table = {row["judge"]: row for row in found if row["measure"] == "within"}
    assert set(table) == set(judges)
    for judge in judges:
        own = rows[rows[judge].between(1, 5)]
        assert judge in out
        assert table[judge]["n"] == len(own)
        assert table[judge]["value"] == pytest.approx(
            np.mean(np.abs(own[judge] - own["human"]) <= 1 + 1e-9)
        )


def test_unparsed_runs_of_hannas_judges_are_refused_unless_declared(ratings):
    with pytest.raises(ValueError, match="outside the scale"):
        agreement(ratings["hanna"], judge="judge_Mistral-7B", scale=(1, 5))


def test_single_raters_of_mtrag_give_the_ceiling_and_alpha_of_the_reference(
    shared, ratings, reference
):
    people = pd.read_csv(shared / "data" / "ratings" / "mtrag_raters.csv")
    judged = ratings["mtrag"][["item_id", "system", "dimension", "judge10"]]
    rows = people.merge(judged, on=["item_id", "system", "dimension"])
    rows["score"] = 1 + 3 * (rows["score"] - 1)
    table = wide(agreement(rows, judge="judge10", human="score", scale=(1, 10))).set_index(
        "dimension"
    )
    for dimension, want in reference["mtrag_human_ceiling"].items():
        if dimension in table.index:
            assert table.loc[dimension, "ceiling"] == pytest.approx(
                want["loo_within1_on_10pt"]["value"], abs=1e-9
            )
            # On one tenfold scale in place of the raters' own: α does not change.
            assert table.loc[dimension, "alpha"] == pytest.approx(
                want["kripp_interval"]["value"], abs=1e-9
            )
