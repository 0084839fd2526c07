"""Answers that say the same word for word to different questions: a refusal that nobody named looks like that."""

from __future__ import annotations

import pandas as pd


def repeated_answers(labelled: pd.DataFrame, *, least: int = 3, most: int = 3) -> dict[str, int]:
    """Count the questions that got one and the same answer, which counts as an answer and hits no gold id.

    Parameters
    ----------
    labelled : DataFrame
        What `label_traces` returns.
    least : int
        How many questions an answer must be given to.
    most : int
        How many answers are returned, the most frequent first.

    Returns
    -------
    dict of str to int
        Answer → different questions. Refusals, whole or in part, and answers with a right citation are left out.

    Examples
    --------
    >>> from ragnb.traces import label_traces
    >>> said = pd.DataFrame({"question": ["a", "b", "c"], "answer": ["无法回答"] * 3})
    >>> repeated_answers(label_traces(said)), repeated_answers(label_traces(said, refusal=["无法回答"]))
    ({'无法回答': 3}, {})
    """
    yes = labelled[["answered", "hit", "partial"]].eq(True).fillna(False).astype(bool)
    misses = labelled[yes["answered"] & ~yes["hit"] & ~yes["partial"]]
    said = misses[["question", "answer"]].drop_duplicates()["answer"].astype(str).str.strip().value_counts()
    return {str(text): int(n) for text, n in said.head(most).items() if n >= least}
