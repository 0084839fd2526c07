"""Conversations are the clusters, turns are in order, and the change over turns is that within conversations."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats

import ragnb as rn
from ragnb.weights.conversations import (
    conversation_cluster,
    conversation_column,
    turn_column,
    turn_trends,
)


def talk(conversations=40, slope=-0.02, seed=0, harder=0.0, key="conversation_id"):
    """Conversations of 1 to 12 turns; `harder` lowers the scores of long ones as a whole."""
    rng = np.random.default_rng(seed)
    rows = []
    for c in range(conversations):
        level, length = rng.normal(0.75, 0.08), int(rng.integers(1, 13))
        for turn in range(1, length + 1):
            score = level + slope * turn - harder * length + rng.normal(0, 0.03)
            row = {key: f"c{c}", "turn": turn, "question": f"{c}: {turn}?"}
            rows.append(row | {"faithfulness": float(np.clip(score, 0, 1))})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    "key", ["conversation", "conversation_id", "Session ID", "sessionId", "thread_id", "会话编号"]
)
def test_a_conversation_is_the_cluster_under_any_of_its_names(key):
    frame = talk(key=key)
    means = rn.weighted_means(frame)
    wanted = rn.weighted_means(frame.rename(columns={key: "c"}), cluster="c")
    assert means["cluster_unit"].unique().tolist() == ["conversation"]
    columns = ["metric", "value", "low", "high", "n_clusters"]
    pd.testing.assert_frame_equal(means[columns], wanted[columns])
    assert "from 40 conversations" in rn.assess(frame).verdict
    assert "来自 40 个会话" in rn.assess(frame, lang="zh").verdict


@pytest.mark.parametrize("engine", [pl.from_pandas, lambda frame: pl.from_pandas(frame).lazy()])
def test_every_engine_knows_conversations(engine):
    frame = talk()
    pd.testing.assert_frame_equal(rn.weighted_means(engine(frame)), rn.weighted_means(frame))
    assert conversation_column(engine(frame)) == "conversation_id"
    assert turn_column(engine(frame)) == "turn"


def test_what_tells_no_conversations_is_no_cluster():
    frame = talk()
    apart = frame.assign(conversation_id=range(len(frame)))
    assert conversation_column(apart) is None
    assert conversation_column(frame.assign(conversation_id="one")) is None
    # Three sessions in which the same questions were asked are three runs.
    asked = [f"{k}?" for k in range(20)] * 3
    runs = pd.DataFrame({"session_id": np.repeat([*"abc"], 20), "question": asked})
    assert conversation_column(runs.assign(faithfulness=1.0)) is None
    messages = frame.rename(columns={"conversation_id": "id"})
    messages["conversation"] = [[{"role": "user", "content": "Hi"}]] * len(frame)
    assert conversation_column(messages) is None


def test_a_cluster_that_somebody_names_stays():
    frame = talk().assign(team=lambda rows: rows["conversation_id"].str[-1])
    sheet = rn.assess(frame, cluster="team")
    assert sheet.means["cluster_unit"].unique().tolist() == ["cluster"]
    assert sheet.means["n_clusters"].iloc[0] == 10


def test_documents_that_hold_whole_conversations_are_the_clusters():
    frame = talk()
    of_document = frame["conversation_id"].str[-1]
    assert conversation_cluster(frame.assign(doc_name=of_document)) is None
    means = rn.weighted_means(frame.assign(doc_name=of_document))
    assert means["n_clusters"].iloc[0] == 10
    across = frame.assign(doc_name=[f"{k % 7}.pdf" for k in range(len(frame))])
    assert conversation_cluster(across) == "conversation_id"
    assert rn.weighted_means(across)["n_clusters"].iloc[0] == 40


def test_systems_are_compared_by_conversation():
    both = pd.concat([talk().assign(system="a"), talk(seed=1).assign(system="b")])
    both = both[both["question"].duplicated(keep=False)]
    table = rn.compare(both, baseline="a")
    assert table["cluster_unit"].unique().tolist() == ["conversation"]
    named = both.rename(columns={"conversation_id": "c"})
    wanted = rn.compare(named, baseline="a", cluster="c")
    pd.testing.assert_series_equal(table["low"], wanted["low"])
    assert "conversations" in next(
        iter(rn.assess(both[both["system"] == "a"]).verdict.splitlines())
    )


def test_groups_that_are_numbers_come_in_their_order():
    means = rn.weighted_means(talk(), by="turn")
    assert list(dict.fromkeys(means["turn"])) == [str(k) for k in range(1, 13)]
    table = rn.assess(talk()).slices
    assert list(dict.fromkeys(table["group"])) == [str(k) for k in range(1, 13)]
    first = means[(means["turn"] == "1") & (means["metric"] == "faithfulness")]["value"].item()
    frame = talk()
    assert first == pytest.approx(frame.loc[frame["turn"] == 1, "faithfulness"].mean())


# The change over turns


def by_statsmodels_and_a_loop(frame, level=0.95):
    """Return the slope with a dummy for each conversation, and its jackknife over conversations."""
    smf = pytest.importorskip("statsmodels.formula.api")

    def slope(rows):
        return smf.ols("faithfulness ~ turn + C(conversation_id)", rows).fit().params["turn"]

    names = frame["conversation_id"].unique()
    sizes = frame["conversation_id"].value_counts()
    several = [name for name in names if sizes[name] > 1]
    kept = frame[frame["conversation_id"].isin(several)]
    whole = slope(kept)
    without = [slope(kept[kept["conversation_id"] != name]) for name in several]
    g = len(several)
    se = math.sqrt((g - 1) / g * sum((one - whole) ** 2 for one in without))
    n = sizes[several].to_numpy(float)
    df = n.sum() ** 2 / (n**2).sum() - 1
    half = scipy.stats.t.ppf(0.5 + level / 2, df) * se
    return whole, whole - half, whole + half


def test_the_slope_is_that_of_a_regression_with_a_level_for_each_conversation():
    frame = talk(12)
    found = turn_trends(frame, ["faithfulness"], turn="turn", conversation="conversation_id").iloc[
        0
    ]
    wanted = by_statsmodels_and_a_loop(frame)
    assert [found["slope"], found["low"], found["high"]] == pytest.approx(list(wanted))


def test_rows_without_a_score_or_a_turn_are_left_out():
    frame = talk(12)
    gaps = frame.astype({"turn": float})
    gaps.loc[gaps.index[::7], "faithfulness"] = np.nan
    gaps.loc[gaps.index[::5], "turn"] = np.nan
    how = {"turn": "turn", "conversation": "conversation_id"}
    found = turn_trends(gaps, ["faithfulness"], **how)
    whole = turn_trends(gaps.dropna(subset=["faithfulness", "turn"]), ["faithfulness"], **how)
    assert np.isfinite(found["slope"].item())
    pd.testing.assert_frame_equal(found, whole)


def test_p_of_a_slope_is_the_level_at_which_its_interval_touches_0():
    frame = talk(6, slope=-0.004, seed=3)
    frame = frame[
        (frame["conversation_id"] != frame["conversation_id"].iloc[0]) | (frame["turn"] < 4)
    ]
    how = {"turn": "turn", "conversation": "conversation_id"}
    p = turn_trends(frame, ["faithfulness"], **how).iloc[0]["p"]
    row = turn_trends(frame, ["faithfulness"], level=1 - p, **how).iloc[0]
    assert 0.001 < p < 0.999
    assert min(abs(row["low"]), abs(row["high"])) == pytest.approx(0, abs=1e-12)


def test_hard_long_conversations_are_not_taken_for_a_decay():
    frame = talk(80, slope=0.0, harder=0.03, seed=4)
    means = rn.weighted_means(frame, by="turn").set_index(["turn", "metric"])["value"]
    assert means["12", "faithfulness"] < means["1", "faithfulness"] - 0.1
    row = turn_trends(frame, ["faithfulness"], turn="turn", conversation="conversation_id").iloc[0]
    assert row["low"] < 0 < row["high"]
    assert "No conclusive change" in str(rn.assess(frame).section("turns"))


@pytest.mark.parametrize(
    ("lang", "slope", "words"),
    [
        ("en", -0.02, "Overall score falls by 0.0"),
        ("en", 0.015, "Overall score rises by 0.0"),
        ("zh", -0.02, "每轮下降 0.0"),
    ],
)
def test_the_page_says_how_quality_changes(lang, slope, words):
    sheet = rn.assess(talk(slope=slope), lang=lang)
    section = sheet.section("turns")
    assert words in section.finding
    assert str(section).count("\n| 1") == 4  # turns 1, 10, 11 and 12
    row = sheet.turns.set_index("metric").loc["weighted_score"]
    assert f"{abs(row['slope']):.3f}" in section.finding
    assert sheet.to_html().count('id="turns"') == 1
    assert sheet.section("documents") is None  # not told twice


def test_systems_have_their_own_turns():
    both = pd.concat([talk().assign(system="a"), talk(slope=0.0, seed=2).assign(system="b")])
    sheet = rn.assess(both)
    assert set(sheet.turns["system"]) == {"a", "b"}
    assert sheet.section("turns").name.startswith("Turns · ")


def test_without_turns_there_is_no_such_section():
    assert rn.assess(talk().drop(columns="turn")).section("turns") is None
    alone = talk().drop(columns="conversation_id")
    assert rn.assess(alone).section("turns") is None


def test_messages_tell_the_turn(tmp_path):
    lines = []
    for c in range(6):
        said = []
        for turn in range(1, 4):
            said += [{"role": "user", "content": f"{c}: {turn}?"}]
            line = {"session_id": f"s{c}", "messages": list(said), "faithfulness": 1 - turn / 10}
            lines.append(json.dumps(line))
            said += [{"role": "assistant", "content": "so"}]
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    frame = rn.read_scores(path, columns={"messages": "question"})
    assert frame["question"].tolist()[:3] == ["0: 1?", "0: 2?", "0: 3?"]
    assert frame["turn"].tolist()[:4] == [1, 2, 3, 1]
    sheet = rn.assess(path, columns={"messages": "question"})
    row = sheet.turns.set_index("metric").loc["faithfulness"]
    assert row["slope"] == pytest.approx(-0.1)
    assert sheet.means["n_clusters"].iloc[0] == 6


def test_scores_that_never_change_are_said_to():
    sheet = rn.assess(talk().assign(faithfulness=0.8))
    assert "changes in no conversation" in sheet.section("turns").finding
    assert sheet.turns["p"].isna().all()


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", "Conversations, the clusters of every interval: session_id"),
        ("zh", "会话的轮次：turn"),
    ],
)
def test_the_card_of_a_file_says_what_the_columns_are(tmp_path, lang, words):
    talk(key="session_id").to_csv(tmp_path / "talk.csv", index=False)
    card = str(rn.inspect_file(tmp_path / "talk.csv", lang=lang))
    assert words in card
    notes = rn.assess(tmp_path / "talk.csv").notes["text"]
    assert not notes.str.contains("turn.", regex=False).any()


def test_the_trend_leaves_out_one_cluster_after_another_and_lone_conversations_are_clusters():
    rng = np.random.default_rng(12)
    names = np.repeat([f"c{k}" for k in range(8)], [4, 1, 3, 5, 2, 3, 4, 1])
    documents = pd.Series(names).map(
        {"c0": "a", "c1": "a", "c2": None, "c3": "b", "c4": None, "c5": "b", "c6": "c", "c7": None}
    )
    frame = pd.DataFrame({"conversation_id": names, "doc": documents})
    frame["turn"] = frame.groupby("conversation_id").cumcount() + 1
    frame["faithfulness"] = rng.uniform(0, 1, len(frame)) - 0.02 * frame["turn"]
    found = turn_trends(
        frame, ["faithfulness"], turn="turn", conversation="conversation_id", cluster="doc"
    ).iloc[0]

    def slope(rows):
        mean = rows.groupby("conversation_id")[["turn", "faithfulness"]].transform("mean")
        x = rows["turn"] - mean["turn"]
        return (x * (rows["faithfulness"] - mean["faithfulness"])).sum() / (x * x).sum()

    cluster = frame["doc"].fillna(frame["conversation_id"])
    # c7 is a cluster by itself, and tells nothing of a trend.
    clusters = [name for name in cluster.unique() if name != "c7"]
    without = np.array([slope(frame[cluster != name]) for name in clusters])
    g = len(clusters)
    se = np.sqrt((g - 1) / g * np.sum((without - slope(frame)) ** 2))
    sizes = cluster.value_counts()[clusters]
    df = sizes.sum() ** 2 / (sizes**2).sum() - 1
    margin = scipy.stats.t.ppf(0.975, df) * se
    assert (found["slope"], found["high"] - found["slope"]) == pytest.approx((slope(frame), margin))
    assert (found["n"], found["n_conversations"]) == (len(frame), 6)
