"""The rating sheet as a notebook sees it: one answer at a time, marked by keys or by mouse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ragnb.markup import Safe, details, element, fragment, join
from ragnb.schema import Rubric
from ragnb.widgets.rating import Item, Rating
from ragnb.widgets.shown import NAMED, Html, Twin, button


class RatingSheet:
    """A sheet on which a person marks answers from 1 to 10, blind to judge and system.

    Keys 1 to 9 and 0 (for 10) mark one dimension after the other; the last one saves the item and shows the
    next. Every item is on disk before the next appears, and the sheet goes on where it was left.

    Parameters
    ----------
    items : path, frame or records
        As `ragnb.read_cases` takes them: ``sample_id, question, answer`` and, where there are, contexts, a
        reference answer, ``system`` and ``doc_name``.
    file : path
        Where the marks go, JSON Lines that `ragnb.read_ratings` reads; what stands there is taken up.
    rater : str
        Who rates.
    dimensions : sequence of str, optional
        By default those of `Rubric`.
    seed : int
        Of the order, which differs from rater to rater.
    lang : {"en", "zh"}

    Attributes
    ----------
    model : Rating
        The state; it can be driven without a browser.

    Raises
    ------
    RagnbError
        For items without ids or answers, and for a file that holds something else.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     items = [{"sample_id": "a", "question": "Why?", "answer": "Because."}]
    ...     sheet = RatingSheet(items, f"{folder}/marks.jsonl", rater="A", dimensions=["accuracy"])
    ...     _ = sheet.model.press("8")
    ...     print(Path(folder, "marks.jsonl").read_text(), end="")
    {"item_id": "a", "dimension": "accuracy", "rater": "A", "score": 8}
    """

    def __init__(
        self, items: Any, file: str | Path, *, rater: str, dimensions: Sequence[str] | None = None, seed: int = 0,
        lang: str = "en",
    ) -> None:  # fmt: skip
        names = [one.name for one in Rubric().dimensions] if dimensions is None else list(dimensions)
        self.model = Rating(items, file, rater=rater, dimensions=names, seed=seed, lang=lang)
        self._twin = Twin()

    def __repr__(self) -> str:
        return f"RatingSheet({self.model.rater!r}: {len(self.model.done)} of {len(self.model.items)})"

    def _repr_html_(self) -> str:
        return fragment(self._static(), lang=self.model.lang)

    def _head(self) -> list[Safe]:
        say, done, n = self.model.say, len(self.model.done), len(self.model.items)
        progress = element("p", say("rating.progress", done=done, n=n), class_="rg-note")
        return [element("h3", say("rating.title", rater=self.model.rater)), progress]

    def _static(self) -> Safe:
        return join([*self._head(), element("p", self.model.say("rating.static"), class_="rg-note")])

    def _ipython_display_(self) -> None:
        self._twin.display(self.view, repr(self), self._static(), self.model.lang)

    @cached_property
    def view(self) -> Any:
        """The widgets, made when they are first asked for."""
        import ipywidgets as ipw

        model, say = self.model, self.model.say
        style, self._item, self._said = Html(model.lang), Html(model.lang), Html(model.lang, live=True)
        style.show(self._twin.style())
        self._keys = ipw.Text(placeholder=say("rating.keys_hint"), style=NAMED, layout={"width": "330px"})
        self._keys.observe(lambda change: self._press(change["new"]), "value")
        self._marks = {name: self._row(name) for name in model.dimensions}
        tools = [
            button(say, "rating.back", lambda: self._do(model.back)),
            button(say, "rating.skip", lambda: self._do(model.skip)),
        ]
        self._rows = ipw.VBox([self._keys, *self._marks.values(), ipw.HBox(tools)])
        self._busy, self._seen, self._cleared = False, "", ""
        box = ipw.VBox([style.widget, self._item.widget, self._rows, self._said.widget])
        box.add_class("rg-editor")
        self._refresh()
        return box

    def _row(self, name: str) -> Any:
        import ipywidgets as ipw

        options = [(str(mark), mark) for mark in range(1, 11)]
        marks = ipw.ToggleButtons(
            options=options, value=None, description=name, style={"button_width": "44px"} | NAMED
        )
        marks.observe(lambda change: self._click(name, change["new"]), "value")
        marks.add_class("rg-row")
        return marks

    def _press(self, entry: str) -> None:
        if self._busy:
            return
        # Keys may come faster than answers to them: only what is new in the field counts, also past a clearing.
        seen = self._seen or (self._cleared if entry.startswith(self._cleared) else "")
        fresh = entry[len(seen) :] if entry.startswith(seen) else ""
        self._seen = entry
        item = self.model.item
        for key in fresh:
            self.model.press(key)
        self._refresh(clear=self.model.item is not item)

    def _click(self, name: str, mark: int | None) -> None:
        if not self._busy and mark is not None:
            self._do(lambda: self.model.mark(name, mark))

    def _do(self, act: Callable[[], None]) -> None:
        act()
        self._refresh()

    def _refresh(self, *, clear: bool = True) -> None:
        model, say, item = self.model, self.model.say, self.model.item
        done = element("p", say("rating.done", n=len(model.items), file=model.file.name))
        self._item.show(self._shown(item) if item else done)
        self._busy = True
        try:
            if clear:
                self._cleared, self._seen, self._keys.value = self._seen, "", ""
            self._keys.description = say("rating.keys", dimension=model.dimension)
            for name, row in self._marks.items():
                row.value = model.marks.get(name)
        finally:
            self._busy = False
        self._rows.layout.display = "flex" if item else "none"
        self._said.warn(model.problem, role="alert")
        if item:
            self._keys.focus()

    def _shown(self, item: Item) -> Safe:
        say = self.model.say
        parts = self._head()
        parts += [element("h4", say("rating.question")), _prose(item.question)]
        parts += [element("h4", say("rating.answer")), _prose(item.answer)]
        if item.reference:
            parts.append(details(say("rating.reference"), _prose(item.reference)))
        passages = join(map(_prose, item.contexts or [say("rating.no_contexts")]))
        parts.append(details(say("rating.contexts", n=len(item.contexts)), passages, opened=True))
        return join(parts)


def _prose(text: str) -> Safe:
    return element("blockquote", text, class_="rg-prose", dir="auto")
