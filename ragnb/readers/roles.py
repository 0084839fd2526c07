"""Whether answers are what a system said, or what it should say."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

import pandas as pd

from ragnb.errors import RagnbError, listing
from ragnb.readers.failures import NESTED
from ragnb.readers.names import WORDS, loose, plain, words_in

_ANSWERS = {plain(word) for word in WORDS["role"]["answer"]}
_OF_A_LOG = {plain(word) for word in WORDS["role"]["log"]}
# What only a system's answers stand beside.
_BESIDE_ANSWERS = {
    "retrieved_contexts",
    "system",
    "citations",
    "chunks",
    "ts",
    "ok",
    "ground_truth_answer",
    "repeat",
}
# Lists of what happened, which a system writes; a history of earlier turns stands beside questions of a test too.
_RECORDED = {*NESTED["lists"]} - {*NESTED["told"]}
# What a system says and no reference does; read in the first words only.
_REFUSED = re.compile(
    r"(i('m| am)? sorry|sorry|i (don'?t|do not) know|i (can'?t|cannot|could not|couldn'?t)|unable to|"
    r"no (relevant )?(information|answer)|(es tut mir leid|leider)|je (suis désolé|ne (sais|peux|trouve))|désolé|"
    r"lo siento|no (puedo|encuentro)|抱歉|对不起|無法|无法|未找到|没有找到|申し訳|죄송|к сожалению|извините)",
    re.IGNORECASE,
)


def is_open_role(frame: pd.DataFrame, names: Mapping[str, str]) -> bool:
    """Return whether nothing tells if the answers of a table are a system's or references.

    Parameters
    ----------
    frame : DataFrame
        Under canonical names, without scores.
    names : mapping of column to name
        What the columns are called in the file.

    Examples
    --------
    >>> asked = pd.DataFrame({"question": ["Who?"], "answer": ["Ann."]})
    >>> is_open_role(asked, {}), is_open_role(asked.assign(latency_ms=20), {})
    (True, False)
    """
    if not {"question", "answer"} <= {*frame.columns}:
        return False
    called = next((name for name, ours in names.items() if ours == "answer"), "answer")
    if plain(called) not in _ANSWERS or _BESIDE_ANSWERS & {*frame.columns}:
        return False
    others = [name for name in map(str, frame.columns) if name not in ("question", "answer")]
    # By their canonical names only: of the names in a file, 来源 (doc_name) and traceId (sample_id) alone would
    # say more, and a case names the source of its question, too. Where a sign is doubtful, ragnb asks.
    for name in others:
        # An id is no sign of a log, as cases have one too.
        if name != "sample_id" and {*plain(name).split("_"), *words_in(name)} & _OF_A_LOG:
            return False
    if any(loose(name) in _RECORDED and _holds_objects(frame[name]) for name in others):
        return False
    # A test asks each question once; users ask the same again.
    if frame["question"].duplicated().any():
        return False
    beginnings = frame["answer"].dropna().astype(str).str.slice(0, 80)
    # Each question of a test has its reference; a system may have given no answer.
    if frame["answer"].isna().any() or not beginnings.str.strip().all():
        return False
    return not any(_REFUSED.search(text) for text in beginnings)


def _holds_objects(cells: pd.Series) -> bool:
    """Whether a cell is a list of objects."""
    lists = (cell for cell in cells if isinstance(cell, list | tuple) and len(cell))
    return any(isinstance(cell[0], Mapping) for cell in lists)


def open_role(path: str | None, columns: list[str]) -> RagnbError:
    """Return the question whether answers are a system's or references, with a line for each reading.

    Examples
    --------
    >>> print(open_role("qa.csv", ["question", "answer"]))
    qa.csv: answers of a system, or reference answers? Its columns (question, answer) say neither. If a \
system gave them, it is a log: rn.assess(rn.read_traces('qa.csv')), or ragnb check --traces qa.csv. If a system \
should answer so, they are references, columns={'answer': 'ground_truth_answer'}, and the file holds cases: \
rn.read_cases('qa.csv', columns={'answer': 'ground_truth_answer'})
    """
    name = "frame"
    shell = ""  # a frame in memory cannot be given to the command line
    if path:
        name = repr(path)
        shell = f", or ragnb check --traces {shlex.quote(path)}"
    called = next((column for column in columns if plain(column) in _ANSWERS), "answer")
    return RagnbError(
        f"{path or 'the frame'}: answers of a system, or reference answers? Its columns ({listing(columns)}) say "
        f"neither. If a system gave them, it is a log: rn.assess(rn.read_traces({name})){shell}. If a system "
        f"should answer so, they are references, columns={{{called!r}: 'ground_truth_answer'}}, and the file "
        f"holds cases: rn.read_cases({name}, columns={{{called!r}: 'ground_truth_answer'}})"
    )
