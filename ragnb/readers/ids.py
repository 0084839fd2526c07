"""The column of question ids: one that repeats as questions do, or differs in each row."""

from __future__ import annotations

from ragnb.readers.names import plain, rename_columns
from ragnb.readers.owner import ROW_WORDS, free_sample_id, owner_rank
from ragnb.readers.raw import Lossy, Raw
from ragnb.schema import CASE_COLUMNS, METRICS

_IDS = ROW_WORDS["ids"]
_ID_ENDS = {plain(word) for word in _IDS["ends"]}
_RANKED_IDS = [plain(word) for word in (*_IDS["question"], *_IDS["passage"])]
_PASSAGE_IDS = {plain(word) for word in _IDS["passage"]}
# Names that any row may have: ids only where they repeat as questions do.
_WEAK_IDS = {plain(word) for word in _IDS["weak"]}


def identify(raw: Raw, report: Lossy) -> None:
    """Call the column of question ids ``sample_id``: one that repeats as questions do, or differs in each row.

    An ``id`` that only numbers rows makes way for the id of a question that repeats.
    """
    size = len(raw)
    named = [
        name
        for name in raw.columns
        if plain(name) in _RANKED_IDS and name not in CASE_COLUMNS and raw.is_plain(name)
    ]
    named.sort(key=lambda name: _RANKED_IDS.index(plain(name)))
    has_questions = "question" in raw.columns
    if "sample_id" in raw.columns:
        # A `sample_id` that repeats is already that of questions.
        if raw.distinct("sample_id") < size:
            return
        repeated = [
            name
            for name in named
            if plain(name) not in _WEAK_IDS and _repeats_as_questions(raw, name)
        ]
        if repeated and "row_id" not in raw.columns and not has_questions:
            free_sample_id(raw, report)
            rename_columns(raw, {repeated[0]: "sample_id"}, report)
        return
    # Any name that ends as an id may be that of a question, where nothing else tells the questions apart.
    ends: list[str] = []
    if not has_questions:
        ends = [name for name in raw.columns if _ends_as_id(name)]
    for name in dict.fromkeys([*named, *ends]):
        if plain(name) in _PASSAGE_IDS and has_questions:
            continue
        weak = plain(name) in _WEAK_IDS
        differs = not weak and raw.distinct(name) == size
        is_of_questions = not weak and has_questions and _goes_with(raw, name)
        if differs or is_of_questions or _repeats_as_questions(raw, name):
            rename_columns(raw, {name: "sample_id"}, report)
            if differs:
                evidence = "differs in each row"
            else:
                evidence = "repeats as questions do"
            raw.fact(None, "row", "answers", f"the id {name} {evidence}")
            return


def _ends_as_id(name: str) -> bool:
    """Return whether a name that has no other meaning ends with a word for an id, behind another word."""
    words = plain(name).split("_")
    ours = name in CASE_COLUMNS or name in METRICS or "__" in name
    return not ours and words[-1] in _ID_ENDS and owner_rank(name) is None and len(words) > 1


def _repeats_as_questions(raw: Raw, name: str) -> bool:
    """Return whether each value of a column occurs once for each value of a column that names systems."""
    size = len(raw)
    values = raw.distinct(name)
    if not 1 < values < size:
        return False
    owners = [other for other in raw.columns if owner_rank(other) is not None and other != name]
    for owner in owners:
        systems = raw.distinct(owner)
        once_each = raw.distinct(name, owner) == size
        # Some systems may lack questions, but at least half of all pairs must be there.
        mostly_complete = 2 * size >= values * systems
        if systems > 1 and once_each and mostly_complete:
            return True
    return False


def _goes_with(raw: Raw, name: str) -> bool:
    """Return whether ids and questions go together, one for one."""
    n_pairs = raw.distinct("question", name)
    return n_pairs == raw.distinct(name) == raw.distinct("question")
