"""A complete corpus: documents that are all there are, against loops and a simulation; few documents."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from engines import EVERY_ENGINE as ENGINES
from engines import on

import ragnb as rn
from ragnb.errors import RagnbError
from ragnb.weights import notes

INSIDE = "question within document"


def questions(seed=0, gaps=0.2, repeats=1):
    rng = np.random.default_rng(seed)
    rows = []
    for d in range(7):
        for q in range(rng.integers(1, 12)):
            level = np.clip(0.6 + 0.05 * d + rng.normal(0, 0.15), 0, 1)
            for _ in range(repeats):
                score = float(np.clip(level + rng.normal(0, 0.02), 0, 1))
                seen = None if rng.random() < gaps else score
                rows.append((f"文档{d}", f"{d}-{q}", seen, float(rng.random() < 0.8)))
    return pd.DataFrame(rows, columns=["doc_name", "sample_id", "faithfulness", "context_recall"])


def by_loops(values, documents, weights, repeats=None):
    """se and df of the formula, document by document; `repeats` are the rows that each value is the mean of."""
    r = np.ones(len(values)) if repeats is None else repeats
    parts = {d: (values[documents == d], r[documents == d]) for d in sorted(set(documents))}
    parts = {d: (x, k) for d, (x, k) in parts.items() if len(x) and weights.get(d, 1) > 0}
    mass = sum(weights.get(d, 1) * k.sum() for d, (_, k) in parts.items())
    freedom = sum(len(x) - 1 for x, _ in parts.values())
    pool = sum(((x - x.mean()) ** 2).sum() for x, _ in parts.values()) / freedom
    variance, fourth = 0.0, 0.0
    for d, (x, k) in parts.items():
        share = weights.get(d, 1) * k.sum() / mass
        shrunk = (((x - x.mean()) ** 2).sum() + 5 * pool) / (len(x) + 4)
        part = share**2 * shrunk * (k**2).sum() / k.sum() ** 2
        variance, fourth = variance + part, fourth + part**2 / (len(x) + 4)
    return np.sqrt(variance), min(variance**2 / fourth, freedom)


def wilson(p, se, df, level=0.95):
    n, t = p * (1 - p) / se**2, scipy.stats.t.ppf(0.5 + level / 2, df)
    centre, half = p + t**2 / n / 2, t * np.sqrt(p * (1 - p) / n + t**2 / n**2 / 4)
    return (centre - half) / (1 + t**2 / n), (centre + half) / (1 + t**2 / n)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("weights", [{}, {"文档1": 4.0, "文档2": 0.5, "文档3": 0.0}])
def test_a_complete_corpus_is_stratified_by_document(engine, weights):
    frame = questions()
    table = rn.weighted_means(
        on(engine, frame.to_dict("list")), doc_weights=weights, corpus="complete"
    )
    plain = rn.weighted_means(frame, doc_weights=weights)
    assert table["value"].tolist() == pytest.approx(plain["value"].tolist())
    total = rn.weighted_score(frame)
    for metric, values in [("faithfulness", frame["faithfulness"]), ("weighted_score", total)]:
        row = table.set_index("metric").loc[metric]
        there = values.notna()
        se, df = by_loops(
            values[there].to_numpy(), frame.loc[there, "doc_name"].to_numpy(), weights
        )
        assert [row["se"], row["df"]] == pytest.approx([se, df], rel=1e-9)
        assert [row["low"], row["high"]] == pytest.approx(wilson(row["value"], se, df), rel=1e-9)
        used = there & (frame["doc_name"].map(weights).fillna(1.0) > 0)
        assert (row["n_clusters"], row["cluster_unit"]) == (used.sum(), INSIDE)


def test_repeats_are_averaged_by_question_first():
    frame = questions(repeats=3, gaps=0.3)
    row = rn.weighted_means(frame, corpus="complete").iloc[0]
    there = frame.dropna(subset="faithfulness")
    asked = (
        there.groupby(["doc_name", "sample_id"])["faithfulness"].agg(["mean", "size"]).reset_index()
    )
    se, df = by_loops(
        asked["mean"].to_numpy(), asked["doc_name"].to_numpy(), {}, asked["size"].to_numpy(float)
    )
    assert [row["se"], row["df"]] == pytest.approx([se, df])
    assert (row["n"], row["n_clusters"]) == (len(there), len(asked))


def test_questions_that_differ_by_little_differ():
    """A spread far below the scale is no rounding error."""
    frame = questions(gaps=0.0)
    near = frame.assign(faithfulness=0.5 + (frame["faithfulness"] - 0.5) * 1e-5)
    row, wide = (rn.weighted_means(one, corpus="complete").iloc[0] for one in (near, frame))
    assert row["se"] == pytest.approx(wide["se"] * 1e-5, rel=1e-6)


def test_a_question_asked_about_two_documents_is_two():
    frame = questions(gaps=0.0)
    shared = pd.concat([frame, frame.assign(sample_id="same")], ignore_index=True)
    row = rn.weighted_means(
        shared.drop_duplicates(["doc_name", "sample_id"]), corpus="complete"
    ).iloc[0]
    kept = shared.drop_duplicates(["doc_name", "sample_id"])
    se, _ = by_loops(kept["faithfulness"].to_numpy(), kept["doc_name"].to_numpy(), {})
    assert row["se"] == pytest.approx(se)


def test_no_cluster_is_said_to_dominate_where_questions_are_the_units():
    names = ["big"] * 50 + ["small"] * 10
    frame = pd.DataFrame({"faithfulness": np.linspace(0, 1, 60), "doc_name": names})
    frame["question"] = [f"q{i // 2}" for i in range(60)]
    assert rn.weighted_means(frame).loc[0, ["top_cluster", "top_share"]].tolist() == [
        "big",
        pytest.approx(5 / 6),
    ]
    complete = rn.weighted_means(frame, corpus="complete")
    assert complete["top_cluster"].eq("").all()
    assert complete["top_share"].isna().all()


def test_too_few_questions_a_document_take_the_documents_for_a_sample():
    rows = [(f"d{i}", float(x)) for i, x in enumerate((0.5, 0.6, 0.9, 0.7, 0.8, 0.6))]
    rows += [("d0", 0.4), ("d1", 0.5), ("d2", 0.7), ("d3", 0.8)]  # Σ(N − 1) = 4
    frame = pd.DataFrame(rows, columns=["doc_name", "faithfulness"])
    four = rn.weighted_means(frame, corpus="complete").iloc[0]
    sample = rn.weighted_means(frame).iloc[0]
    assert (
        four[["low", "high", "cluster_unit"]].tolist()
        == sample[["low", "high", "cluster_unit"]].tolist()
    )
    more = pd.concat(
        [frame, pd.DataFrame([("d4", 0.75)], columns=frame.columns)], ignore_index=True
    )
    assert rn.weighted_means(more, corpus="complete").loc[0, "cluster_unit"] == INSIDE


def test_scores_all_alike_about_all_documents_count_as_independent_questions():
    frame = pd.DataFrame({"doc_name": [*"aaaaabbbbb"], "faithfulness": [1.0] * 10})
    row = rn.weighted_means(frame, corpus="complete").iloc[0]
    t = scipy.stats.t.ppf(0.975, 8)
    assert (row["low"], row["high"]) == (pytest.approx(1 / (1 + t**2 / 10)), 1.0)


def test_the_interval_of_a_complete_corpus_covers_the_mean_over_new_questions():
    rng = np.random.default_rng(7)
    levels, hits, narrower = rng.beta(4, 1.5, 6), 0, []
    truth = levels.mean()
    for _ in range(300):
        x = (rng.random((6, 12)) < levels[:, None]).astype(float)
        frame = pd.DataFrame({"doc_name": np.repeat([*"abcdef"], 12), "compliance": x.ravel()})
        row = rn.weighted_means(frame, metrics="compliance", corpus="complete").iloc[0]
        hits += row["low"] <= truth <= row["high"]
        narrower.append(row["high"] - row["low"])
    assert 0.91 <= hits / 300 <= 0.99
    wide = rn.weighted_means(frame, metrics="compliance").iloc[0]
    assert np.median(narrower) < wide["high"] - wide["low"]


@pytest.mark.parametrize("weights", [{}, {"文档1": 4.0, "文档2": 0.5, "文档3": 0.0}])
def test_the_paired_difference_over_all_documents_is_stratified_too(weights):
    frame = questions(gaps=0.1)
    rng = np.random.default_rng(1)
    other = frame.assign(
        faithfulness=(frame["faithfulness"] + rng.normal(0.03, 0.1, len(frame))).clip(0, 1)
    )
    both = pd.concat([frame.assign(system="old"), other.assign(system="new")], ignore_index=True)
    row = rn.compare(both, baseline="old", corpus="complete", doc_weights=weights).iloc[0]
    d = (other["faithfulness"] - frame["faithfulness"]).dropna()
    documents = frame.loc[d.index, "doc_name"]
    se, df = by_loops(d.to_numpy(), documents.to_numpy(), weights)
    mean, half = (
        np.average(d, weights=documents.map(weights).fillna(1.0)),
        scipy.stats.t.ppf(0.975, df) * se,
    )
    assert [row["se"], row["low"]] == pytest.approx([se, mean - half])
    assert row["cluster_unit"] == INSIDE
    with pytest.raises(RagnbError, match="corpus='sample'"):
        rn.weight_map(both, baseline="old", corpus="complete")
    assert len(rn.weight_map(both, baseline="old").flips) == 2


def test_a_complete_corpus_is_said_in_words_and_a_setting_of_a_scenario():
    frame = questions(gaps=0.0)
    sheet = rn.assess(frame, corpus="complete")
    assert sheet.means.loc[0, "cluster_unit"] == INSIDE
    assert "corpus_complete" in set(sheet.notes["code"])
    assert "distinct questions" in sheet.verdict
    assert "全部语料" in rn.assess(frame, corpus="complete", lang="zh").notes["text"].str.cat()
    assert "corpus_complete" not in set(notes(rn.weighted_means(frame))["code"])


@pytest.mark.parametrize(
    ("frame", "options", "words"),
    [
        (questions(), {"corpus": "full"}, "sample"),
        (questions(), {"corpus": "complete", "cluster": "sample_id"}, "cluster='sample_id'"),
        (questions().drop(columns="doc_name"), {"corpus": "complete"}, "doc_name"),
    ],
)
def test_a_complete_corpus_needs_its_documents(frame, options, words):
    with pytest.raises(RagnbError, match=words):
        rn.weighted_means(frame, **options)


def test_moments_of_a_complete_corpus_merge_are_stored_and_have_no_bootstrap(tmp_path):
    frame = questions(repeats=2)
    whole = rn.moments(frame, corpus="complete")
    of = frame["doc_name"].isin
    parts = [rn.moments(frame[of(d)], corpus="complete") for d in (["文档1"], ["文档2", "文档4"])]
    joined = rn.moments(frame[of(["文档1", "文档2", "文档4"])], corpus="complete")
    pd.testing.assert_frame_equal(parts[0].merge(parts[1]).means(), joined.means())
    with pytest.raises(RagnbError, match="different corpus"):
        whole.merge(rn.moments(frame))
    read = rn.Moments.from_parquet(whole.to_parquet(tmp_path / "m.parquet"))
    pd.testing.assert_frame_equal(read.means(), whole.means())
    with pytest.raises(RagnbError, match="resamples documents"):
        whole.bootstrap()


# Few documents


def test_few_documents_are_no_cliff():
    """What a weight of 2.4 and one of 2.5 say of five documents is the same but for the third digit."""
    rng = np.random.default_rng(1)
    scores = np.clip(rng.normal(0.9, 0.05, 100), 0, 1)
    frame = pd.DataFrame({"doc_name": np.repeat([*"abcde"], 20), "faithfulness": scores})
    ends = [
        rn.weighted_means(frame, doc_weights={"a": heavy}).loc[0, ["low", "high"]].to_numpy(float)
        for heavy in (2.4, 2.5)
    ]
    assert np.abs(ends[0] - ends[1]).max() < 0.002
    assert ends[0][1] - ends[0][0] < 0.05


def test_scores_all_alike_count_as_the_questions_of_documents_that_go_together():
    frame = pd.DataFrame({"doc_name": np.repeat([*"abcdefghij"], 30), "faithfulness": [1.0] * 300})
    size = 10 * sum(1 / k for k in range(1, 31))
    assert rn.weighted_means(frame).loc[0, "low"] == pytest.approx(0.025 ** (1 / size))


def test_the_interval_of_a_group_of_one_document_does_not_depend_on_that_documents_weight():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"faithfulness": rng.random(26), "doc_name": ["a"] * 20 + ["b"] * 6})
    frame["system"] = ["x"] * 20 + ["y"] * 6

    def of_y(weight):
        means = rn.weighted_means(
            frame, corpus="complete", by="system", doc_weights={"a": 1.0, "b": weight}
        ).set_index(["system", "metric"])
        return means.loc[("y", "faithfulness"), ["value", "low", "high", "se", "df"]].to_numpy(
            dtype=float
        )

    np.testing.assert_allclose(of_y(0.01), of_y(1.0), rtol=1e-12)


def test_a_range_of_tokens_leaves_the_mean_its_digits():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"tokens": rng.normal(463, 100, 60).round()})
    tokens = rn.Metric("tokens", 0, 2.0**63, better="lower", role="quality")
    row = rn.weighted_means(frame, metrics=[tokens]).iloc[0]
    mean, se = frame["tokens"].mean(), frame["tokens"].std() / np.sqrt(60)
    half = scipy.stats.t.ppf(0.975, 59) * se
    assert [row["value"], row["se"]] == pytest.approx([mean, se], rel=1e-12)
    assert [row["low"], row["high"]] == pytest.approx([mean - half, mean + half], rel=1e-12)
    gate = {"name": "T", "metric": "tokens", "op": "<=", "threshold": 400}
    assert rn.assess(frame, metrics=[tokens], gates=[gate]).blocked
