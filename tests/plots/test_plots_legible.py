"""Charts stay legible at 4 and 12 metrics, of 1, 2 and 5 systems, with long names, one document or no score."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from legible import assert_legible

import ragnb as rn
from ragnb import plots

NAMES = ["faithfulness", "answer_relevancy", "context_recall", "noise_sensitivity"]


LONG = [
    "llm_context_precision_with_reference",
    "nv_response_groundedness_of_the_whole_answer",
    "topic_adherence",
]
WIDE = [
    "忠实度",
    "带参考答案的上下文精确率（大模型评判）",
    "回答依据充分性评分（英伟达实现）",
    "噪声敏感度",
]


def sized(metrics, systems, lang, docs=7, empty=False):
    """Synthetic scores with long names, a gap in the third metric, and no score in the fifth."""
    rng = np.random.default_rng(metrics)
    known, more = (WIDE, "指标") if lang == "zh" else ([*NAMES, *LONG], "metric_")
    names = [*known, *(f"{more}{k}" for k in range(9))][:metrics]
    values = (
        np.full((42 * systems, metrics), np.nan)
        if empty
        else rng.beta(4, 2, (42 * systems, metrics))
    )
    frame = pd.DataFrame(values, columns=names)
    frame[names[2]] = frame[names[2]].where(rng.uniform(size=len(frame)) < 0.7)
    if metrics > 4:
        frame[names[4]] = np.nan
    who = (
        "检索加重排的系统二〇二六年版" if lang == "zh" else "hybrid-retrieval-with-a-reranker-2026"
    )
    doc = (
        "操作手册与差旅报销制度第{}号.pdf"
        if lang == "zh"
        else "operations_handbook_and_policy_{}.pdf"
    )
    frame["system"] = [f"{who}{k % systems}" for k in range(len(frame))]
    frame["document"] = [doc.format(k % docs) for k in range(len(frame))]
    return frame, [rn.Metric(name) if name not in rn.METRICS else name for name in names]


SIZES = [(metrics, systems, 7, False) for metrics in (4, 12) for systems in (1, 2, 5)]
SIZES += [(4, 1, 1, False), (4, 1, 7, True)]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(("metrics", "systems", "docs", "empty"), SIZES)
def test_no_text_leaves_its_figure_or_lies_on_another(metrics, systems, docs, empty, lang):
    if lang == "zh" and plots.cjk_font() is None:
        pytest.skip("no font with Chinese characters is installed")
    frame, chosen = sized(metrics, systems, lang, docs, empty)
    by = "system" if systems > 1 else None
    means = rn.weighted_means(frame, metrics=chosen, by=by, doc="document")
    counts = frame.groupby(["system", "document"]).size().rename("n").reset_index()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ax in (
            plots.radar(means, by=by, lang=lang),
            plots.intervals(means, by=by, lang=lang),
            plots.distribution(frame, metrics=chosen[:6], by=by, lang=lang),
            plots.outcomes(counts, label="document", by=by, lang=lang),
        ):
            assert_legible(ax.figure.figure)
