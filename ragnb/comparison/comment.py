"""A comparison as the comment of a pull request: the verdict, the table, and the questions that became worse."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from ragnb import texts
from ragnb.comparison.view import View
from ragnb.markup import count, is_missing, number, one_line

MARK = "<!-- ragnb compare -->"
"""The first line, not shown by GitHub, by which the comment is found and updated."""
MOST = 60_000
"""Characters; GitHub takes 65,536."""
QUESTIONS = 10  # named in a comment on a pull request
_LONGEST_TEXT = 1_500  # characters: GitHub refuses comments of more than 65,536
# What GitHub turns into links: an @ or a # before a word, the :// of an address, and www. before a name.
_LEADS_ELSEWHERE = re.compile(r"([@#])(?=\w)|(?<=\w)(://)|\b(www)(?=\.)")


def comment(view: View, changed: pd.DataFrame) -> str:
    """Return Markdown for a comment.

    Parameters
    ----------
    view : View
    changed : DataFrame
        What `ragnb.changed_questions` returns.

    Returns
    -------
    str
        At most `MOST` characters. Questions and answers stand in code blocks, so that nothing in them is rendered,
        notifies anybody or links elsewhere; what does not fit is counted.

    Examples
    --------
    >>> view = View("en", "new compared with old", {"worse: weighted_score −0.100": "worse"}, [], [])
    >>> print(comment(view, pd.DataFrame({"change": []})))
    <!-- ragnb compare -->
    ## new compared with old
    <BLANKLINE>
    ■ worse: weighted_score −0.100
    <BLANKLINE>
    """
    say = texts.load(view.lang)
    text = f"{MARK}\n{harmless(view.markdown())}"
    worse = changed[changed["change"].isin(["broken", "worse"])]
    # Those that passed before come first.
    worse = worse.sort_values("change", key=lambda column: column != "broken", kind="stable")
    if worse.empty:
        return _cut(text)
    head = f"\n## {say('compare.became_worse')}\n\n"
    # How many do not fit is known only in the end; until then a placeholder of three characters keeps the room.
    end = f"\n{say('compare.more_worse', n='{n}')}\n"
    room = MOST - len(text) - len(head) - len(end)
    shown: list[str] = []
    for row in worse.head(QUESTIONS).to_dict("records"):
        question = _question(row, say)
        room -= len(question)
        if room < 0:
            break
        shown.append(question)
    left_out = len(worse) - len(shown)
    text += head + "".join(shown)
    if left_out > 0:
        text += f"\n{say('compare.more_worse', n=count(left_out))}\n"
    return _cut(text)


def _cut(text: str) -> str:
    """Return a text of at most `MOST` characters."""
    if len(text) <= MOST:
        return text
    return f"{text[: MOST - 3]}…\n"


def harmless(markdown: str) -> str:
    """Return Markdown in which no name notifies a person, refers to an issue or becomes a link.

    Examples
    --------
    >>> [*map(ascii, map(harmless, ["ask @octocat", "see #12", "https://x.org", "a @ b"]))]
    ["'ask @\\\\u200boctocat'", "'see #\\\\u200b12'", "'https\\\\u200b://x.org'", "'a @ b'"]
    """

    def broken(match: re.Match[str]) -> str:
        sign, address, www = match.groups()
        # An invisible zero-width space keeps the sign from becoming a link with what follows, or precedes, it.
        if address:
            return f"\u200b{address}"
        return f"{sign or www}\u200b"

    return _LEADS_ELSEWHERE.sub(broken, markdown)


def _question(row: Mapping[Any, Any], say: Any) -> str:
    """Return a question that became worse, folded, with both answers."""
    scores = f"{number(row['baseline_value'])} → {number(row['candidate_value'])}"
    name = harmless(html.escape(one_line(row.get("sample_id", ""), 80)))
    change = say(f"compare.changed_{row['change']}")
    # `<summary>` is HTML: no Markdown is read in it.
    lines = [f"<details><summary>{name} · {change} · {scores}</summary>\n"]
    texts_of_row = {
        "compare.asked_question": row.get("question"),
        "compare.answer_before": row.get("baseline_answer"),
        "compare.answer_now": row.get("candidate_answer"),
    }
    for key, text in texts_of_row.items():
        if not is_missing(text) and str(text).strip():
            lines.append(f"{say(key)}\n\n{fenced(str(text))}\n")
    return "\n".join([*lines, "</details>\n\n"])


def fenced(text: str) -> str:
    """Return a text in a fence longer than any in it, cut where it is long.

    Examples
    --------
    >>> print(fenced("a ``` fence"))
    ````text
    a ``` fence
    ````
    """
    if len(text) <= _LONGEST_TEXT:
        cut = text
    else:
        cut = text[: _LONGEST_TEXT - 1] + "…"
    longest = max((len(run) for run in re.findall(r"`+", cut)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{cut}\n{fence}"
