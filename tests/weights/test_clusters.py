"""What moves together, on every engine: documents, else questions that repeat, else rows."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from engines import EVERY_ENGINE as ENGINES
from engines import on
from scipy import stats as scipy_stats

import ragnb as rn
from ragnb import stats
from ragnb.diagnostics import failure_summary
from ragnb.errors import RagnbError
from ragnb.weights import notes
from ragnb.weights.cells import centres
from ragnb.weights.clusters import question_of

QUESTIONS, REPEATS = 40, 5


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def repeated(key="sample_id"):
    rng = np.random.default_rng(5)
    hard = np.repeat(rng.uniform(0.2, 0.8, QUESTIONS), REPEATS)
    n = QUESTIONS * REPEATS
    scores = np.clip(hard + rng.normal(0, 0.05, n), 0, 1)
    return {
        key: np.repeat([f"问 {i}" for i in range(QUESTIONS)], REPEATS).tolist(),
        "faithfulness": [None if i % 17 == 0 else float(s) for i, s in enumerate(scores)],
        "over_refusal": (hard > 0.5).astype(float).tolist(),
        "system": (list("abcde") * QUESTIONS),
    }


def by_hand(columns, metric="faithfulness"):
    x = np.array([math.nan if v is None else v for v in columns[metric]])
    return stats.clustered_mean(x, columns.get("sample_id", columns.get("question")), ends=(0, 1))


@pytest.mark.parametrize("key", ["sample_id", "question"])
def test_repeated_questions_are_the_clusters_of_every_function(engine, key):
    columns = repeated(key)
    frame, want = on(engine, columns), by_hand(columns)
    row = rn.weighted_means(frame).iloc[0]
    assert (row["n"], row["n_clusters"]) == (want.n, QUESTIONS)
    assert [row["value"], row["se"]] == pytest.approx([want.value, want.se], rel=1e-9)
    assert [row["low"], row["high"]] == pytest.approx([want.low, want.high], rel=1e-9)
    reduced = rn.moments(frame)
    assert reduced.unit == "question"
    assert reduced.bootstrap(resamples=100)["n_clusters"].iloc[0] == QUESTIONS
    found = rn.diagnose(frame, rules=[rn.Rule("faithfulness", 0.99)])
    assert found[["low", "high"]].values.tolist()[0] == pytest.approx(
        [want.low, want.high], rel=1e-9
    )
    assert found["n_clusters"].tolist() == [QUESTIONS]
    assert set(failure_summary(frame)["n_clusters"]) == {QUESTIONS}
    rates = rn.refusal_metrics(frame).iloc[0]
    assert rates["n_clusters"] == QUESTIONS
    assert rates["se"] == pytest.approx(by_hand(columns, "over_refusal").se, rel=1e-9)
    assert rn.weighted_means(frame, cluster="system")["n_clusters"].iloc[0] == 5
    assert "questions_independent" in set(notes(rn.weighted_means(frame))["code"])


def test_one_answer_a_question_and_system_counts_as_rows_within_a_system(engine):
    columns = repeated()
    frame = on(engine, columns)
    table = rn.weighted_means(frame, by="system", metrics="faithfulness").query(
        "metric == 'faithfulness'"
    )
    assert (table["n_clusters"] == table["n"]).all()
    pandas = pd.DataFrame(columns)
    for name, row in table.set_index("system").iterrows():
        alone = rn.weighted_means(pandas[pandas["system"] == name], metrics="faithfulness").iloc[0]
        assert row[["value", "low", "high", "se"]].tolist() == pytest.approx(
            alone[["value", "low", "high", "se"]].tolist(), rel=1e-12
        )
    pooled = rn.moments(frame, by="system").pooled().means()
    want = rn.weighted_means(frame)
    pd.testing.assert_frame_equal(pooled, want, rtol=1e-12)


def test_questions_asked_once_are_rows(engine):
    columns = {"sample_id": ["a", "b", "c", None, None], "question": ["q"] * 5}
    columns["faithfulness"] = [0.1, 0.5, 1, 0, 1]
    reduced = rn.moments(on(engine, columns))
    assert reduced.unit == "row"
    assert reduced.means()["n_clusters"].tolist() == [5, 5]
    nameless = {"sample_id": pa.array([None] * 4, pa.string()), "question": list("aabb")}
    nameless["faithfulness"] = [0, 1.0] * 2
    assert rn.weighted_means(on(engine, nameless))["n_clusters"].tolist() == [2, 2]


def test_rows_without_a_document_go_by_question_where_others_go_by_document(engine):
    columns = {
        "doc_name": ["a", "a", "b", None, None, None, None, "a"],
        "question": ["q1", "q2", "q3", "q4", "q4", "q5", None, "q4"],
        "faithfulness": [0.1, 0.3, 0.9, 0.5, 0.6, 0.2, 1.0, 0.0],
    }
    frame = on(engine, columns)
    clusters = ["a", "a", "b", "q4", "q4", "q5", "none", "a"]
    want = stats.clustered_mean(columns["faithfulness"], clusters, ends=(0, 1))
    row = rn.weighted_means(frame).iloc[0]
    assert (row["n_clusters"], row["se"]) == (5, pytest.approx(want.se, rel=1e-9))
    single = columns | {"question": ["q1", "q2", "q3", "q4", "q6", "q5", None, "q4"]}
    assert rn.weighted_means(on(engine, single)).iloc[0]["n_clusters"] == 6
    within = rn.moments(frame, by="doc_name")
    assert within.means()["n_clusters"].tolist() == [3, 3, 1, 1, 3, 3]
    assert within.pooled().means()["n_clusters"].tolist() == [5, 5]
    first = columns | {
        "question": [name and name.replace("q4", "q0") for name in columns["question"]]
    }
    assert rn.moments(on(engine, first), by="doc_name").pooled().means()["n_clusters"].tolist() == [
        5,
        5,
    ]


def test_within_a_document_the_questions_that_repeat_are_clusters(engine):
    columns = {
        "doc_name": [*"aaaabbbb"],
        "question": ["q1", "q1", "q2", "q3", "q4", "q4", "q5", "q5"],
    }
    columns["faithfulness"] = [0.1, 0.2, 0.9, 0.6, 0.5, 0.3, 1.0, 0.8]
    table = rn.weighted_means(on(engine, columns), by="doc_name")
    for place, row in table.query("metric == 'faithfulness'").set_index("doc_name").iterrows():
        own = [doc == place for doc in columns["doc_name"]]
        scores, asked = (np.array(columns[name])[own] for name in ("faithfulness", "question"))
        want = stats.clustered_mean(scores, asked, ends=(0, 1))
        assert (row["cluster_unit"], row["n_clusters"]) == ("question", len({*asked}))
        assert row[["se", "low", "high"]].tolist() == pytest.approx([want.se, want.low, want.high])


def test_lists_of_turns_tell_questions_too():
    turns = [[{"role": "user", "content": text}] for text in "aabb"]
    frame = pd.DataFrame({"question": turns, "faithfulness": [0.1, 0.2, 0.3, 0.4]})
    assert rn.weighted_means(frame)["n_clusters"].tolist() == [2, 2]


def test_parts_of_which_one_repeats_questions_are_merged_only_by_a_named_cluster():
    frame = pd.DataFrame({"sample_id": list("aabc"), "faithfulness": [0.1, 0.2, 0.3, 0.9]})
    one, two = frame[:2], frame[2:]
    with pytest.raises(RagnbError, match=r"make both with moments\(..., cluster='sample_id'\)"):
        rn.moments(one).merge(rn.moments(two))
    merged = rn.moments(one, cluster="sample_id").merge(rn.moments(two, cluster="sample_id"))
    assert merged.means()["se"].tolist() == pytest.approx(
        rn.weighted_means(frame)["se"].tolist(), rel=1e-12
    )
    assert rn.moments(frame).merge(rn.moments(frame[:0])).means()["n_clusters"].tolist() == [3, 3]


# Metrics without a finite range

ENDLESS = [rn.Metric("gain", -math.inf, math.inf), rn.Metric("drift", -math.inf, math.inf)]


def far(offset, sd=0.3, n=400, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "gain": [
            None if i % 11 == 0 else float(x) for i, x in enumerate(offset + rng.normal(0, sd, n))
        ],
        "drift": (rng.normal(0, sd, n) - offset / 3).tolist(),
        "doc_name": rng.integers(0, 25, n).astype(str).tolist(),
    }


@pytest.mark.parametrize("offset", [1e6, 3e7, 1e11])
@pytest.mark.parametrize("documents", [True, False], ids=["documents", "rows"])
def test_spread_is_found_however_far_from_zero_scores_lie(engine, documents, offset):
    columns = far(offset)
    if not documents:
        del columns["doc_name"]
    frame = on(engine, columns)
    gain = np.array([math.nan if x is None else x for x in columns["gain"]])
    for metric, x in (("gain", gain), ("drift", np.array(columns["drift"]))):
        shifted = stats.clustered_mean(x - np.nanmean(x), columns.get("doc_name"))
        row = rn.weighted_means(frame, metrics=ENDLESS).set_index("metric").loc[metric]
        assert row["se"] == pytest.approx(shifted.se, rel=1e-6)
        assert row["value"] == pytest.approx(np.nanmean(x), rel=1e-14)
        assert row["high"] - row["low"] == pytest.approx(shifted.high - shifted.low, rel=1e-3)
    total = rn.weighted_score(pd.DataFrame(columns), metrics=ENDLESS, metric_weights={"drift": 3})
    want = stats.clustered_mean(total - total.mean(), columns.get("doc_name"))
    found = rn.weighted_means(frame, metrics=ENDLESS, metric_weights={"drift": 3}).iloc[-1]
    assert [found["value"], found["se"]] == pytest.approx([total.mean(), want.se], rel=1e-6)


def test_merged_parts_of_scores_far_from_zero_are_the_rows_at_once(tmp_path):
    columns = {name: column for name, column in far(1e9, n=600).items() if name != "doc_name"}
    frame = pd.DataFrame(columns)
    parts = [rn.moments(frame[i : i + 200], metrics=ENDLESS) for i in (0, 200, 400)]
    stored = rn.Moments.from_parquet(
        parts[0].merge(parts[1]).merge(parts[2]).to_parquet(tmp_path / "m.parquet")
    )
    got, want = stored.means(), rn.weighted_means(frame, metrics=ENDLESS)
    pd.testing.assert_frame_equal(got, want, rtol=1e-7)
    assert want["se"].iloc[0] == pytest.approx(scipy_stats.sem(frame["gain"].dropna()), rel=1e-6)
    boot = rn.moments(frame, metrics=ENDLESS).bootstrap(resamples=4000)
    assert boot["se"].tolist() == pytest.approx(want["se"].tolist(), rel=0.06)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e12])
def test_scores_all_alike_without_a_range_have_no_interval_and_a_note(engine, value):
    columns = {"gain": [value] * 30, "doc_name": [str(i % 7) for i in range(30)]}
    for left_out in ([], ["doc_name"]):
        frame = on(
            engine, {name: column for name, column in columns.items() if name not in left_out}
        )
        table = rn.weighted_means(frame, metrics=ENDLESS[:1])
        assert table["value"].tolist() == [value, value]
        assert table[["low", "high"]].isna().all(axis=None)
        told = notes(table).set_index("code")["text"]
        assert "gain" in told["all_alike"]
        assert "gain" in notes(table, lang="zh").set_index("code").loc["all_alike", "text"]


def test_bounded_scores_keep_the_middle_of_their_range():
    assert centres([rn.Metric("a", 1, 5)], [4.9]).tolist() == [3.0]


def test_ids_that_a_reader_made_hide_no_repeated_question(tmp_path, engine):
    """Repeats without ids are numbered by row; the question still tells what moves together."""
    columns = {
        "user_input": [f"第{i // 5}个问题" for i in range(200)],
        "response": [str(i) for i in range(200)],
    }
    columns["faithfulness"] = [(i // 5 * 7 % 11 + i % 3) / 13 for i in range(200)]
    want = stats.clustered_mean(columns["faithfulness"], columns["user_input"], ends=(0, 1))
    twice = pd.concat([pd.DataFrame(columns).assign(model=name) for name in ("m1", "m2")])
    for frame, n in ((pd.DataFrame(columns), 200), (twice, 400)):
        frame.to_csv(tmp_path / "s.csv", index=False)
        read = rn.read_scores(tmp_path / "s.csv")
        rows = rn.weighted_means(on(engine, read.to_dict("list"))).iloc[0]
        assert (rows["n"], rows["n_clusters"], rows["cluster_unit"]) == (n, 40, "question")
        assert rows["se"] == pytest.approx(want.se, rel=1e-9)
    assert rn.assess(tmp_path / "s.csv").means["n_clusters"].eq(40).all()


def test_ids_that_are_finer_than_texts_and_texts_that_are_finer_than_ids():
    rows = {"sample_id": list("aabbcd"), "question": ["q1", "q1", "q2", "q2", "q2", "q3"]}
    rows["faithfulness"] = [0.5] * 6
    assert rn.moments(pd.DataFrame(rows)).means()["n_clusters"].tolist() == [3, 3]
    rows["question"] = [f"q{i}" for i in range(5)] + ["q0"]
    assert rn.moments(pd.DataFrame(rows)).means()["n_clusters"].tolist() == [4, 4]


def test_scores_all_alike_are_noted_from_two_clusters_on():
    for n, noted in ((1, False), (2, True)):
        table = rn.weighted_means(pd.DataFrame({"gain": [3.0] * n}), metrics=ENDLESS[:1])
        assert (notes(table)["code"] == "all_alike").any() == noted, n


def test_of_two_placeholders_the_one_on_more_rows_is_the_question():
    scores = pd.DataFrame({"sample_id": ["a", "a", None], "question": ["x"] * 3})
    assert question_of(scores, doc="doc_name") == "question"


@pytest.mark.parametrize(("weight", "clusters"), [(1e-13, 2), (1.001e-13, 3)])
def test_a_document_whose_weight_is_lost_in_rounding_is_no_cluster(weight, clusters):
    frame = pd.DataFrame({"doc_name": [*"aabc"], "faithfulness": [0.5, 0.75, 1.0, 0.25]})
    row = rn.weighted_means(frame, doc_weights={"b": weight}).iloc[0]
    weights = [1.0, 1.0, weight, 1.0]
    alone = stats.clustered_mean(frame["faithfulness"], frame["doc_name"], weights=weights)
    assert row["n_clusters"] == alone.n_clusters == clusters


@pytest.mark.parametrize(("start", "slope"), [(1, 9), (10, -9), (-3, 0.5)])
def test_what_unseen_documents_may_cost_is_the_same_share_on_every_scale(start, slope):
    rng = np.random.default_rng(2)
    shares = rng.beta(4, 1, 60).round(2)
    frame = pd.DataFrame({"doc_name": np.repeat([f"d{i}" for i in range(12)], 5)})
    better = "higher" if slope > 0 else "lower"
    scale = rn.Metric("m", *sorted([start, start + slope]), better=better)
    usual = rn.weighted_means(frame.assign(m=shares), metrics=rn.Metric("m", 0, 1)).iloc[0]
    other = rn.weighted_means(frame.assign(m=start + slope * shares), metrics=scale).iloc[0]
    assert 0 < usual["share_unseen"] < 1
    assert other["share_unseen"] == pytest.approx(usual["share_unseen"])
    assert other["low_if"] == pytest.approx(start + slope * usual["low_if"])
