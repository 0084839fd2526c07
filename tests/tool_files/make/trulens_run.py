"""Evaluate with TruLens in a local database. It writes the files trulens_*.

python make/trulens_run.py
"""

from __future__ import annotations

import os
import tempfile
from importlib.metadata import version

from questions import FOLDER, rows
from relative import relative
from scores import contains, overlap, support
from trulens.apps.app import TruApp
from trulens.core import Metric, Selector, TruSession
from trulens.core.otel.instrument import instrument
from trulens.otel.semconv.trace import SpanAttributes

CHOSEN = ["zh-01", "zh-03", "zh-20", "zh-34", "en-11", "en-13", "en-35"]  # a record is long
data = {row["question"]: row for row in rows() if row["sample_id"] in CHOSEN}


class Recorded:
    """An application that plays back contexts and answers."""

    @instrument(
        span_type=SpanAttributes.SpanType.RETRIEVAL,
        attributes={
            SpanAttributes.RETRIEVAL.QUERY_TEXT: "question",
            SpanAttributes.RETRIEVAL.RETRIEVED_CONTEXTS: "return",
        },
    )
    def retrieve(self, question: str) -> list[str]:
        """Return the contexts."""
        return data[question]["retrieved_contexts"]

    @instrument(span_type=SpanAttributes.SpanType.RECORD_ROOT)
    def query(self, question: str) -> str:
        """Return the answer."""
        self.retrieve(question)
        return data[question]["answer"]


def answer_contains(question: str, answer: str) -> float:
    """Look for the reference in the answer."""
    return contains(answer, data[question]["reference"])


def token_overlap(question: str, answer: str) -> tuple[float, dict[str, str]]:
    """Compare the answer with the reference, and give a reason."""
    score = overlap(answer, data[question]["reference"])
    return score, {"reason": f"{score:.0%} of the reference's words"}


def context_support(question: str, answer: str) -> float:
    """Compare the answer with the contexts; an error without contexts."""
    return support(answer, data[question]["retrieved_contexts"])


selectors = {"question": Selector.select_record_input(), "answer": Selector.select_record_output()}
metrics = [
    Metric(name=name, implementation=function, selectors=selectors)
    for name, function in {
        "Answer Contains": answer_contains,
        "Token Overlap": token_overlap,
        "Context Support": context_support,
    }.items()
]
stem = FOLDER / f"trulens_{version('trulens')}"
with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    session = TruSession(database_url="sqlite:///trulens.sqlite")
    session.reset_database()
    app = Recorded()
    recorder = TruApp(
        app, app_name="quickstart", app_version="strong", main_method=app.query, feedbacks=metrics
    )
    for question in data:
        with recorder:
            app.query(question)
    session.force_flush()
    recorder.compute_feedbacks()
    session.force_flush()
    records, _ = session.get_records_and_feedback()
    table = records.sort_values("ts").map(
        lambda cell: relative(cell) if isinstance(cell, str) else cell
    )
    table.to_csv(f"{stem}_records.csv", index=False)
    session.get_leaderboard().to_csv(f"{stem}_leaderboard.csv")
