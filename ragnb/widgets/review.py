"""The sheet in which people keep, edit or drop generated questions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from ragnb.errors import RagnbError, place
from ragnb.files import write_whole
from ragnb.readers import to_csv_text
from ragnb.schema import records
from ragnb.scoring.generation import DECISIONS, WORDING, review_sheet, with_decisions
from ragnb.widgets.base import Items, Sheet, button, field, hear, make


class Review(Items):
    """The state of a review sheet.

    Parameters
    ----------
    cases : DataFrame
        As `ragnb.scoring.generation.review_sheet` takes them.
    file : path
        A ``.csv``: what is in it is taken up, also what was entered in a spreadsheet meanwhile.
    lang : {"en", "zh"}
    """

    kind = "review"
    # The first letters of keep, edit and drop, whatever the language.
    keys = MappingProxyType({word[0]: word for word in DECISIONS})
    shown_keys = ", ".join(keys)

    def __init__(self, cases: pd.DataFrame, file: str | Path, *, lang: str) -> None:
        questions = review_sheet(cases).rename(columns={"sample_id": "key"})
        super().__init__(list(questions.itertuples(index=False, name="Question")), file, lang)
        self.cases = cases
        self.name = self.file.name  # in the repr of the sheet
        if self.file.suffix.lower() != ".csv":
            raise RagnbError(
                f"{place(file)}a review is a CSV file; choose a name that ends in .csv"
            )
        self._take(self._read())
        self.skip()

    def press(self, entry: str) -> None:
        """Take a key, in any width and case; while a question is edited, keys decide nothing."""
        if not self.editing:
            super().press(entry)
        elif entry.strip():
            self.problem = self.say("review.editing")

    def enter(self, decision: str, wording: Sequence[str] = ()) -> None:
        """Save a decision and turn to the next question; ``edit`` waits for another wording."""
        self.problem = ""
        self.editing = decision == "edit"
        if self.item is None or (self.editing and not wording):
            return
        # The order of both is that of `WORDING`: the question, then its reference answer.
        old = [getattr(self.item, name) for name in WORDING]
        new = [text.strip() for text in wording] or old
        if self.editing and new == old:
            self.problem = self.say("review.unchanged")
        elif self.editing and not new[0]:
            self.problem = self.say("review.no_question")
        else:
            # A question that is kept or dropped after an edit has its generated wording again.
            self._save(self.item, {"decision": decision, **dict(zip(WORDING, new, strict=True))})
            self.skip()

    def _turn_to(self, at: int) -> None:
        super()._turn_to(at)
        saved = self.done.get(self.item.key, {}) if self.item else {}
        self.wording = [saved.get(name, getattr(self.item, name, "")) for name in WORDING]
        self.decision = saved.get("decision")
        self.editing = self.decision == "edit"

    def _read(self) -> pd.DataFrame:
        if self.file.exists():
            return with_decisions(self.cases, self.file)
        return review_sheet(self.cases)

    def _take(self, sheet: pd.DataFrame) -> None:
        """Take up the decisions and comments of a sheet."""
        rows = records(sheet)
        self.done = {row["sample_id"]: row for row in rows if row["decision"]}
        self.comments |= {row["sample_id"]: row["comment"] for row in rows if row["comment"]}

    def _save(self, item: Any, given: dict[str, str]) -> None:
        # Read again, as the file may have been edited in a spreadsheet since.
        sheet = self._read()
        if item.key in self.comments:
            given = given | {"comment": self.comments[item.key]}
        sheet.loc[sheet["sample_id"] == item.key, list(given)] = list(given.values())
        # Without the mark a spreadsheet garbles Chinese.
        write_whole(self.file, "\ufeff" + to_csv_text(sheet))
        self._take(sheet)


class ReviewSheet(Sheet):
    """A sheet on which a person keeps, edits or drops each question of a generated set.

    One question at a time, with its reference answer, the quotes that support it and its document. Keys: k keep,
    e edit, d drop. Every decision is on disk before the next question appears, and the sheet resumes where it was
    left. When the kernel does not answer, the sheet says that nothing is recorded.

    Parameters
    ----------
    cases : DataFrame
        With ``sample_id, question, ground_truth_answer`` and, where there are, ``doc_name`` and
        ``generation_params`` (``kind`` and ``evidence``).
    file : path
        A ``.csv`` with the columns ``sample_id, decision, question, ground_truth_answer, comment, doc_name, kind,
        evidence``; it can be edited in a spreadsheet just as well. `ragnb.scoring.generation.reviewed` applies it.
    lang : {"en", "zh"}

    Attributes
    ----------
    model : Review
        The state; it can be driven without a browser.

    Raises
    ------
    RagnbError
        For cases without questions or of one id, a file that is no ``.csv`` or holds other decisions.

    Examples
    --------
    >>> import tempfile
    >>> cases = pd.DataFrame({"sample_id": ["a"], "question": ["Why?"], "ground_truth_answer": ["Because."]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sheet = ReviewSheet(cases, file=f"{folder}/review.csv")
    ...     sheet.model.press("k")
    ...     print(Path(folder, "review.csv").read_text("utf-8-sig").splitlines()[1])
    a,keep,Why?,Because.,,,,
    """

    model: Review

    def __init__(self, cases: pd.DataFrame, *, file: str | Path, lang: str = "en") -> None:
        super().__init__(Review(cases, file, lang=lang))

    def _fields(self) -> list[Any]:
        say = self.model.say
        self._keys.description = say("review.keys")
        self._labels = {word: say(f"review.{word}") for word in DECISIONS}
        self._choice = make(
            "ToggleButtons",
            options=[(label, word) for word, label in self._labels.items()],
            value=None,
            description=say("review.decision"),
            style={"button_width": "84px", "description_width": "initial"},
        )
        self._choice.add_class("rg-row").add_class("rg-scores")
        hear(self, self._choice, partial(self._do, self.model.enter))
        look: dict[str, Any] = {"kind": "Textarea", "rows": 4, "continuous_update": False}
        self._wording = [field(say, f"rating.{key}", **look) for key in ("question", "reference")]
        for text in self._wording:
            text.add_class("rg-row")
            # Only so that the page learns what the kernel holds of the field, see `held`.
            hear(self, text, lambda _: self._refresh(clear=False))
        save = make("HBox", [button(say, "review.save", self._save_wording)])
        self._editor = make("VBox", [*self._wording, save], layout={"display": "none"})
        return [self._choice, self._editor]

    def _save_wording(self) -> None:
        wording = [text.value for text in self._wording]
        self._do(self.model.enter, "edit", wording)

    def _refresh_fields(self, clear: bool) -> list[str]:
        model = self.model
        was_hidden = self._editor.layout.display == "none"
        chosen = "edit" if model.editing else model.decision
        self._choice.value = chosen
        self._editor.layout.display = "flex" if model.editing else "none"
        if clear:  # else what is being typed stays
            for text, words in zip(self._wording, model.wording, strict=True):
                text.value = words
        if was_hidden and model.editing:
            self._wording[0].focus()
        return [self._labels.get(chosen or "", ""), *(text.value for text in self._wording)]
