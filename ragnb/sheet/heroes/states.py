"""What a page begins with: the states of a kind of run, of which the first that holds speaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ragnb.markup.blocks import Action, Mark
from ragnb.sheet.formatter import Formatter


class State(NamedTuple):
    """A row of a catalogue of heroes.

    Attributes
    ----------
    key : str
        Names the state and its texts: ``hero.<key>.status``, ``.title`` and ``.lead``.
    tone : str
        The mark of its status.
    holds : function of the facts
        Whether it is so; the states before it in the catalogue do not hold.
    """

    key: str
    tone: str
    holds: Callable[[Any], bool]


class Hero(NamedTuple):
    """The first lines of a page.

    Attributes
    ----------
    key : str
        The state.
    tone, status : str
        The mark and the words beside it.
    title, lead : str
        One sentence, and what it rests on.
    action : Action or None
        What to run next.
    """

    key: str
    tone: str
    status: str
    title: str
    lead: str
    action: Action | None = None

    @property
    def mark(self) -> Mark:
        """The status with its mark."""
        return Mark(self.tone, self.status)


def first_state(states: Sequence[State], facts: Any) -> State:
    """Return the first state that holds; the last of a catalogue always does.

    Examples
    --------
    >>> states = [State("empty", "bad", lambda n: n == 0), State("rest", "none", lambda n: True)]
    >>> first_state(states, 3).key
    'rest'
    """
    return next(state for state in states if state.holds(facts))


def say_state(
    w: Formatter, state: State, words: dict[str, Any], action: Action | None = None
) -> Hero:
    """Return the first lines of a state in the language of the page."""
    return Hero(
        key=state.key,
        tone=state.tone,
        status=w.say(f"hero.{state.key}.status", **words),
        title=w.say(f"hero.{state.key}.title", **words),
        lead=w.say(f"hero.{state.key}.lead", **words),
        action=action,
    )
