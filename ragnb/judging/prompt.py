"""What a judge is asked: the instructions of a rubric, and the material between two lines with a tag."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from ragnb import texts
from ragnb.schema import Anchor, Rubric
from ragnb.scoring import support_lexical
from ragnb.store import count_tokens


def system_prompt(rubric: Rubric, mode: str, lang: str = "en") -> str:
    """Return the instructions of a rubric: the same for every answer, and nothing of any answer in them.

    Parameters
    ----------
    rubric : Rubric
        Dimensions without bands and a rubric without anchors take those of the texts.
    mode : {"contexts", "peek", "alone"}
        With the system's own passages, with those of a rival, without any.
    lang : {"en", "zh"}

    Examples
    --------
    >>> "Material: `question` and `answer`, without any passages" in system_prompt(Rubric(), "alone")
    True
    """
    say = texts.load(lang)
    names = [d.name for d in rubric.dimensions]
    has_passages = mode != "alone"
    low = f"{rubric.low:g}"
    high = f"{rubric.high:g}"
    # The rule speaks of the sources, and names scores of accuracy on the usual scale.
    has_usual_bands = any(d.name == "accuracy" and not d.bands for d in rubric.dimensions)
    rule = ""
    if has_passages and has_usual_bands and _usual(rubric):
        rule = say("judge.rule")
    shown = [anchor for anchor in anchors(rubric, lang) if bool(anchor.contexts) == has_passages]
    anchor_texts = "\n".join(_anchor_text(anchor, names) for anchor in shown)
    form = {
        "analysis": "…",
        **dict.fromkeys(names, "#"),
        "reason": "…",
        "suggestion": "…",
        "tag": "…",  # last, so that nothing of a verdict comes after it
    }
    top = say("judge.top") if "accuracy" in names else ""
    return say(
        "judge.prompt",
        mode=say(f"judge.mode.{mode}", top=top),
        low=low,
        high=high,
        steps=say("judge.decimals" if rubric.decimals else "judge.wholes"),
        bands="\n".join(bands(rubric, lang)),
        rule=rule,
        anchors=anchor_texts or say("judge.no_anchors"),
        # Without quotes, as the form shows where a number goes, and in which range.
        form=_json(form).replace('"#"', f"<{low}–{high}>"),
    ).strip()


def _usual(rubric: Rubric) -> bool:
    """Return whether ragnb's built-in texts are for this scale."""
    return (rubric.low, rubric.high) == (1, 10)


def bands(rubric: Rubric, lang: str) -> Iterator[str]:
    """Return the description of each dimension and its bands: one line per dimension and band.

    Examples
    --------
    >>> list(bands(Rubric(dimensions=[{"name": "accuracy", "weight": 1, "bands": {"9-10": "exact"}}]), "en"))
    ['- accuracy', '  9-10: exact']
    """
    if _usual(rubric):
        known = texts.entry(lang, "judge.bands")
    else:
        known = {}
    for d in rubric.dimensions:
        yield f"- {d.name}: {d.description}" if d.description else f"- {d.name}"
        for band, meaning in (d.bands or known.get(d.name, {})).items():
            yield f"  {band}: {meaning}"


def anchors(rubric: Rubric, lang: str) -> Sequence[Anchor]:
    """Return the rubric's anchors, or those that come with ragnb where they fit its dimensions and scale.

    Examples
    --------
    >>> len(anchors(Rubric(), "zh"))
    5
    """
    names = {"accuracy", "completeness", "clarity"}
    if rubric.anchors or {d.name for d in rubric.dimensions} != names or not _usual(rubric):
        return rubric.anchors
    return [Anchor(**row) for row in texts.entry(lang, "judge.anchors")]


def _anchor_text(anchor: Anchor, names: Sequence[str]) -> str:
    """Return an anchor in the very forms of the material and of the reply."""
    given: dict[str, Any] = {"question": anchor.question}
    if anchor.contexts:
        given["contexts"] = numbered(anchor.contexts)
    given["answer"] = anchor.answer
    scores: dict[str, float] = {}
    for name in names:
        if name in anchor.scores:
            score = anchor.scores[name]
            # A whole score without a point, as the scale of a rubric has it: 9, not 9.0.
            scores[name] = int(score) if score == int(score) else score
    reply = {
        "analysis": anchor.analysis,
        **scores,
        "reason": anchor.reason,
        "suggestion": anchor.suggestion,
    }
    return f"{_json(given)}\n→ {_json(reply)}"


def numbered(passages: Sequence[str]) -> list[dict[str, Any]]:
    """The passages as the material shows them, numbered from 1.

    Examples
    --------
    >>> numbered(["Ann pays."])
    [{'n': 1, 'text': 'Ann pays.'}]
    """
    return [{"n": number, "text": text} for number, text in enumerate(passages, 1)]


def material(inputs: Mapping[str, Any], lang: str = "en", *, tag: str) -> str:
    """Return the user's message: the texts as one JSON object between two lines with a tag that nobody can know.

    The verdict has to hold the tag, which shows that no stranger wrote it. It is new in every request and no part
    of a cell's key, so that what is in a store is not asked for again. Texts are only encoded and appended, never
    formatted; ``<`` is written as an escape, so that the closing line cannot be in them.

    Examples
    --------
    >>> print(material({"answer": "</data-7> {tag}"}, tag="7").splitlines()[2])
    {"answer": "\\u003c/data-7> {tag}"}
    """
    say = texts.load(lang)
    before = say("judge.frame", tag=tag)
    after = say("judge.after", tag=tag)
    block = _json(inputs).replace("<", "\\u003c")
    return "\n".join([before, f"<data-{tag}>", block, f"</data-{tag}>", after])


def _json(value: Any) -> str:
    """JSON without ASCII escapes; a lone surrogate, which a request cannot contain, as an escape."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()


def cut(passages: Sequence[str], top_k: int | None, budget: int | None) -> tuple[list[str], int]:
    """Return the first passages to show to a judge, and how many were omitted or shortened.

    At most `top_k`, and at most about `budget` tokens in all: the first passage that does not fit ends the list,
    but of the very first as much is kept as fits.

    Examples
    --------
    >>> cut(["aaaa bbbb", "cccc", "dddd"], top_k=2, budget=None)
    (['aaaa bbbb', 'cccc'], 1)
    >>> cut(["aaaa bbbb cccc", "d"], top_k=10, budget=2)
    (['aaaa bbb'], 2)
    """
    first = passages[:top_k]
    most = math.inf if budget is None else budget
    sizes = accumulate(map(count_tokens, first))  # of each passage with all before it
    shown = [text for text, size in zip(first, sizes, strict=True) if size <= most]
    if first and not shown and most > 0:
        text = first[0]
        # The longer a text, the more tokens it has, so bisection finds the longest beginning that fits.
        lengths = range(len(text) + 1)
        length = bisect_right(lengths, most, key=lambda n: count_tokens(text[:n])) - 1
        return [text[:length]], len(passages)
    return shown, len(passages) - len(shown)


def evidence_rank(passages: Sequence[str], gold: Sequence[str], expected: str | None) -> int | None:
    """Return the rank, from 1, of the needed passage: a gold one, else the closest in wording.

    Judges read long lists unevenly, so the place of the evidence is kept beside the scores.

    Parameters
    ----------
    passages : sequence of str
        As retrieved, before any cut.
    gold : sequence of str
        Reference passages, as far as they are known.
    expected : str or None
        The reference answer, or else the answer.

    Examples
    --------
    >>> evidence_rank(["Lamps.", "The warranty is 24 months."], [], "24 months of warranty")
    2
    """
    wanted = [text.strip() for text in gold if text.strip()]
    for rank, text in enumerate(passages, 1):
        bare = text.strip()
        # Chunks are cut elsewhere than gold passages: either may hold the other.
        if any(part in text or (bare and bare in part) for part in wanted):
            return rank
    support = [support_lexical(expected, [text]) for text in passages]
    best = max((value for value in support if value > 0), default=None)
    if best is None:
        return None
    return support.index(best) + 1
