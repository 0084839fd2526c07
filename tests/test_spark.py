"""PySpark: every statistic is that of the same rows in pandas, and rows stay on the executors."""

import importlib.util
import os
import shutil
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ragnb as rn
from ragnb.errors import RagnbError
from ragnb.inputs import streams
from ragnb.readers import executors
from ragnb.traces import answer_counts, join_report, outcome_counts, repeated_answers

CLOSE = {"rtol": 1e-10, "atol": 1e-10}
METRICS = ("faithfulness", "answer_relevancy", "context_recall", "noise_sensitivity")


def scored(n=1200, seed=3):
    """Made rows: two systems on the same questions, gaps, statuses, documents in several forms of one name."""
    rng = np.random.default_rng(seed)
    ids = [f"q{i // 2}" for i in range(n)]
    docs = [None, "甲.pdf", "re\u0301sume\u0301", "r\u00e9sum\u00e9", "b", ""]
    frame = pd.DataFrame(
        {
            "qid": ids,
            "user_input": [f"问题 {i}" for i in ids],
            "response": [f"answer {i}" for i in range(n)],
            "doc_name": [docs[(i // 2) % len(docs)] for i in range(n)],
            "model": ["a", "b"] * (n // 2),
            "kind": [["图", "表", None][i // 2 % 3] for i in range(n)],
            "latency": rng.random(n).round(3),
        }
    )
    for name in METRICS:
        frame[name] = np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 101, n) / 100)
    gone = frame["faithfulness"].isna()
    words = rng.choice(["failed", "not_applicable"], n)
    frame["faithfulness__status"] = np.where(gone, words, "ok")
    return frame


def traced(n=800, seed=5):
    """Made traces of two systems, and the gold they are compared with."""
    rng = np.random.default_rng(seed)
    k = rng.integers(0, 110, n)
    said = [
        lambda i: "Not in context",
        lambda i: f"It is {i} days. citations: [d{i}#1]",
        lambda i: "Maybe. citations: [x]",
        lambda i: "",
    ]
    traces = pd.DataFrame(
        {
            "sample_id": [f"q{i}" for i in k],
            "question": [f"问题{i}?" for i in k],
            "answer": [said[int(j)](i) for i, j in zip(k, rng.integers(0, 4, n), strict=True)],
            "system": ["新", "old"] * (n // 2),
            "chunks": [[{"id": f"d{i}#1"}, {"id": "z"}] if i % 3 else [] for i in k],
            "ok": rng.random(n) < 0.8,
        }
    )
    gold = pd.DataFrame(
        {
            "sample_id": [f"q{i}" for i in range(100)],
            "question": [f"问题{i}?" for i in range(100)],
            "answerable": [i % 4 != 0 for i in range(100)],
            "gold_ids": [[f"d{i}#1"] if i % 4 else [] for i in range(100)],
            "gold_claim": [f"{i} days" for i in range(100)],
            "doc_name": [f"doc{i % 7}" for i in range(100)],
        }
    )
    return traces, gold


def told(sheet):
    """The numbers of a sheet."""
    found = [
        sheet.means,
        sheet.gates,
        sheet.systems,
        sheet.documents,
        sheet.slices,
        sheet.modes,
        sheet.spread,
    ]
    return [*found, sheet.outcomes, sheet.ledger]


def same(got, want):
    for mine, theirs in zip(told(got), told(want), strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            pd.testing.assert_frame_equal(mine, theirs, **CLOSE)
    assert (got.verdict, got.rows) == (want.verdict, want.rows)
    assert [code for code in got.notes["code"] if code != "streamed"] == want.notes["code"].tolist()


if importlib.util.find_spec("pyspark"):  # the extra `spark`, and Java

    @pytest.fixture(scope="module")
    def spark():
        if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
            pytest.skip("no Java (looked for JAVA_HOME and java)")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers need ragnb
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pyspark.sql import SparkSession

            build = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
            session = build.config("spark.sql.shuffle.partitions", "2").getOrCreate()
            session.sparkContext.setLogLevel("OFF")
            yield session
            session.stop()

    pytestmark = pytest.mark.filterwarnings("ignore")

    @pytest.fixture(scope="module")
    def rows(spark, tmp_path_factory):
        """Scores as Spark reads them from three files, and in pandas."""
        folder, table = tmp_path_factory.mktemp("scores"), scored()
        for i in range(3):
            pl.from_pandas(table[400 * i : 400 * (i + 1)]).write_parquet(
                folder / f"part-{i}.parquet"
            )
        return spark.read.parquet(str(folder)), table

    @pytest.fixture(scope="module")
    def answers(spark):
        traces, gold = traced()
        shape = "sample_id string, question string, answer string, system string, chunks array<struct<id:string>>"
        return (
            spark.createDataFrame(traces, schema=f"{shape}, ok boolean").repartition(3),
            traces,
            gold,
        )

    @pytest.fixture
    def collected(monkeypatch):
        """How many rows each query brought to the driver."""
        from pyspark.sql.classic.dataframe import DataFrame

        seen = []
        for name in ("collect", "toArrow", "toPandas"):
            real = getattr(DataFrame, name)

            def spy(self, *args, real=real, **kwargs):
                found = real(self, *args, **kwargs)
                seen.append(len(found))
                return found

            monkeypatch.setattr(DataFrame, name, spy)
        return seen

    def test_every_statistic_is_that_of_pandas(rows, monkeypatch):
        monkeypatch.setattr(executors, "ROWS", 100)  # several batches in each task, merged there
        frame, table = rows
        weights = {
            "doc_weights": {"r\u00e9sum\u00e9": 3, "b": 0.0},
            "metric_weights": {"faithfulness": 0.5},
        }
        clean = table.assign(doc_name=table["doc_name"].replace("", None))
        for call, how in (
            (rn.weighted_means, weights),
            (rn.weighted_means, {**weights, "by": "kind", "cluster": "model"}),
            (lambda rows, **k: rn.moments(rows, by="model").means(**k), weights),
            (rn.diagnose, weights),
            (rn.compare, {"baseline": "b"}),
        ):
            blank = (
                call is rn.compare
            )  # files, and what compare reads, know no document without a name
            got, want = call(frame, **how), call(clean if blank else table, **how)
            if call is rn.diagnose:  # equal scores are shown in another order
                scores = [
                    [[one["score"] for one in worst] for worst in found["worst"]]
                    for found in (got, want)
                ]
                assert scores[0] == scores[1]
                got, want = got.drop(columns="worst"), want.drop(columns="worst")
            pd.testing.assert_frame_equal(got, want, **CLOSE)
        with pytest.raises(RagnbError, match="lies outside"):
            rn.weighted_means(frame.withColumn("faithfulness", frame["faithfulness"] + 1))

    def test_rows_that_are_weighed_and_sorted_stay_a_query(rows):
        frame, table = rows
        for call, new in (
            (rn.weigh, ["weighted_score", "sample_weight"]),
            (rn.failure_modes, ["failure_mode"]),
        ):
            got, want = call(frame), call(table)
            assert type(got) is type(frame)
            keys = ["qid", "model"]
            ours = got.select(*keys, *new).toPandas().sort_values(keys, ignore_index=True)
            theirs = want[[*keys, *new]].sort_values(keys, ignore_index=True)
            pd.testing.assert_frame_equal(ours, theirs, check_dtype=False, **CLOSE)

    def test_agreement_is_that_of_pandas(spark):
        rng = np.random.default_rng(2)
        human = rng.integers(1, 6, 400)
        ratings = pd.DataFrame(
            {
                "human": human,
                "judge": np.clip(human + rng.integers(-1, 2, 400), 1, 5),
                "cluster": rng.integers(0, 30, 400).astype(str),
                "dimension": ["a", "b"] * 200,
            }
        )
        got, want = (
            rn.agreement(one, scale=(1, 5)) for one in (spark.createDataFrame(ratings), ratings)
        )
        pd.testing.assert_frame_equal(got, want, **CLOSE)

    def test_a_sheet_of_scores_is_that_of_pandas_and_only_the_worst_rows_are_fetched(
        rows, collected, monkeypatch
    ):
        frame, table = rows
        want = rn.assess(table)
        monkeypatch.setattr(streams, "MOST_SHOWN", 50)
        found = rn.assess(frame)
        same(found, want)
        assert found.streamed
        np.testing.assert_allclose(
            found.scores["weighted_score"].head(50),
            want.scores["weighted_score"].sort_values().head(50),
            **CLOSE,
        )
        named = {one["sample_id"] for worst in found.diagnoses["worst"] for one in worst}
        assert named <= set(found.scores["sample_id"])
        assert max(collected) <= 50
        assert (
            sum(n > executors.WIDTH for n in collected) <= 2
        )  # the worst rows, and those of the findings

    def test_labels_are_those_of_pandas(answers, collected):
        frame, traces, gold = answers
        labelled, want = rn.label_traces(frame, gold=gold), rn.label_traces(traces, gold=gold)
        assert type(labelled) is type(frame)
        assert max(collected, default=0) <= executors.WIDTH
        got = labelled.drop("chunks", "gold_ids", "citations_predicted").toPandas()
        keys = ["sample_id", "system", "answer", "ok"]
        ours = got.sort_values(keys, ignore_index=True)
        theirs = want[got.columns].sort_values(keys, ignore_index=True)
        for name in ours:
            assert ours[name].astype(object).where(ours[name].notna(), None).tolist() == (
                theirs[name].astype(object).where(theirs[name].notna(), None).tolist()
            ), name
        pd.testing.assert_frame_equal(
            rn.refusal_metrics(labelled, by="system"),
            rn.refusal_metrics(want, by="system"),
            **CLOSE,
        )
        pd.testing.assert_frame_equal(outcome_counts(labelled), outcome_counts(want))
        assert repeated_answers(labelled) == repeated_answers(want) != {}
        assert answer_counts(labelled).items() <= want.attrs["join"].items()

    @pytest.mark.parametrize("join", ["auto", "question"])
    def test_traces_meet_gold_as_in_pandas(answers, join):
        frame, traces, gold = answers
        got, want = (join_report(one, gold=gold[5:], join=join) for one in (frame, traces))
        lists = {key for key, value in want.items() if isinstance(value, list)}
        counts = [
            {key: value for key, value in one.items() if key not in lists} for one in (got, want)
        ]
        assert counts[0] == counts[1]
        for key in lists:
            assert set(got[key]) <= set(traces["sample_id"]) | set(traces["question"]) | set(
                gold["sample_id"]
            )
        other = gold.assign(sample_id=[f"other{i}" for i in range(len(gold))])
        assert join_report(frame, gold=other)["by"] == "question"

    def test_a_batch_without_an_id_of_gold_is_still_joined_by_id(spark):
        traces = pd.DataFrame(
            {"sample_id": ["a", "x"], "question": ["1", "1"], "answer": ["Yes.", "Yes."]}
        )
        gold = pd.DataFrame(
            {"sample_id": ["a", None], "question": ["2", "1"], "answerable": [False, True]}
        )
        frame = spark.createDataFrame(traces).repartition(2, "sample_id")
        got = rn.label_traces(frame, gold=gold).toPandas().sort_values("sample_id")
        want = rn.label_traces(traces, gold=gold)
        assert got["label"].fillna("").tolist() == want["label"].fillna("").tolist()

    def test_the_same_traces_are_sampled(answers):
        frame, traces, _ = answers
        got = rn.sample_traces(frame, share=0.2).toPandas()["sample_id"]
        assert sorted(got) == sorted(rn.sample_traces(traces, share=0.2)["sample_id"])

    def test_a_sheet_of_traces_is_that_of_pandas(answers, tmp_path):
        frame, traces, gold = answers
        gold.to_json(tmp_path / "gold.jsonl", orient="records", lines=True, force_ascii=False)
        got, want = (rn.assess(one, gold=tmp_path / "gold.jsonl") for one in (frame, traces))
        same(got, want)
        assert set(got.scores["label"].dropna()) == set(want.scores["label"].dropna())

    def test_what_cannot_be_read_is_refused_by_name(rows):
        frame, _ = rows
        with pytest.raises(RagnbError, match="'user_input' and 'query' both mean 'question'"):
            rn.assess(frame.withColumn("query", frame["user_input"]))
        with pytest.raises(RagnbError, match="columns"):
            rn.assess(frame, columns={"nothing": "question"})
        with pytest.raises(RagnbError, match="column 'faithfulness'"):
            rn.assess(frame.withColumn("faithfulness", frame["qid"]))
        with pytest.raises(RagnbError, match="traces have no column 'answer'"):
            rn.label_traces(frame.select("qid"))

    def test_gold_in_the_traces_is_that_of_all_rows_not_of_a_batch(spark):
        rows = {
            "sample_id": ["a", "b"],
            "question": ["x", "y"],
            "answer": ["Yes. citations: [d]", "Yes."],
        }
        traces = pd.DataFrame(rows | {"answerable": True, "gold_ids": [["d"], None]})
        shape = "sample_id string, question string, answer string, answerable boolean, gold_ids array<string>"
        frame = spark.createDataFrame(traces, schema=shape).repartition(2, "sample_id")
        got = rn.label_traces(frame).toPandas().sort_values("sample_id")["label"]
        assert got.tolist() == rn.label_traces(traces)["label"].tolist() == ["OK", "ANS_NO_HIT"]
