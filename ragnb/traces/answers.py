"""Rules on answers, written once in Polars: refusals, and whether an answer contains a claim.

Answers are untrusted text: every regular expression here runs on an engine that takes linear time (Rust's
``regex``), which has no look-around and no back-references.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragnb.errors import RagnbError
from ragnb.polars import pl

PHRASE = r"[a-z0-9][a-z0-9\-\s]{4,}"
# A place where no Latin word or number goes on.
EDGE = "(?:(?<![A-Za-z0-9])|(?![A-Za-z0-9]))"
# Characters that every text in Unicode form NFC may hold in any order, in the ranges that answers are written in.
SETTLED = (
    r"\x{0}-\x{2FF}\x{400}-\x{482}\x{2010}-\x{2027}\x{2030}-\x{205E}\x{20A0}-\x{20CF}\x{2190}-\x{21FF}"
    r"\x{2500}-\x{27BF}\x{3000}-\x{3029}\x{3031}-\x{3098}\x{309B}-\x{312F}\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}"
    r"\x{AC00}-\x{D7A3}\x{FF00}-\x{FFEF}\x{1F300}-\x{1FAFF}"
)
# What composing or lower-casing may change.
CHANGEABLE = rf"[[^{SETTLED}]\p{{Changes_When_Lowercased}}]"


def composed(texts: pl.Series) -> pl.Series:
    """Return texts in Unicode form NFC.

    Only texts that may change are normalised, which takes seven times as long as looking for them.

    Examples
    --------
    >>> import polars as pl
    >>> composed(pl.Series(["e\\u0301", "e", None])).to_list() == ["\\u00e9", "e", None]
    True
    """
    rows = (texts.str.len_bytes() != texts.str.len_chars()).fill_null(False).arg_true()
    rows = rows.filter(texts.gather(rows).str.contains(f"[^{SETTLED}]"))
    if len(rows):
        return texts.clone().scatter(rows, texts.gather(rows).str.normalize("NFC"))
    return texts


def trimmed_and_lowered(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return texts in NFC, their ends without white space, and these lower-cased: one scan finds what needs work.

    Examples
    --------
    >>> import polars as pl
    >>> [series.to_list() for series in trimmed_and_lowered(pl.Series([" No ", "資料", None]))]
    [['No', '資料', None], ['no', '資料', None]]
    """
    rows = texts.str.contains(CHANGEABLE).fill_null(False).arg_true()
    kept = texts.clone().scatter(rows, composed(texts.gather(rows))).str.strip_chars()
    return kept, kept.clone().scatter(rows, kept.gather(rows).str.to_lowercase())


def matches(patterns: Sequence[str], option: str) -> pl.Expr:
    """Return whether one of the patterns is found in ``answer``, trimmed and in NFC; case is ignored.

    Raises
    ------
    RagnbError
        For a pattern that is empty or that the engine does not take; `option` is what it is called in words.

    Examples
    --------
    >>> import polars as pl
    >>> pl.DataFrame({"answer": ["I cannot say"]}).select(matches(["^i CANNOT"], "patterns")).item()
    True
    """
    conditions = [pl.lit(False)]
    for pattern in patterns:
        if not pattern.strip():
            raise RagnbError(
                f"{option}={list(patterns)!r} contains an empty pattern, which matches every answer"
            )
        ignoring_case = f"(?i)(?:{pattern})"
        try:
            pl.Series([""]).str.contains(ignoring_case)
        except pl.exceptions.PolarsError as error:
            # The engine quotes the pattern, marks the place, and says what is wrong in a line of its own.
            lines = [line for line in str(error).splitlines() if line.startswith("error: ")]
            reason = lines[0] if lines else str(error)
            raise RagnbError(
                f"{option}: {pattern!r} is not supported ({reason.removeprefix('error: ')}); "
                "look-around and back-references are excluded because they can hang"
            ) from None
        conditions.append(pl.col("answer").str.contains(ignoring_case))
    return pl.any_horizontal(conditions)


def claim_texts(claims: pl.Series, whole: bool) -> pl.DataFrame:
    """Return the texts of each claim that an answer may contain, lower-cased, one row per text.

    Parameters
    ----------
    claims : series of str
        Distinct.
    whole : bool
        Whether a claim that has no Latin phrase, or is not Latin, also counts as it is: the Latin rule sees
        nothing in ``歐洲`` or in ``60%``.

    Returns
    -------
    DataFrame
        ``claim, text, alone``. Phrases are runs of ≥ 5 of ``a-z 0-9 -`` and white space, trimmed. What must stand
        `alone` counts only outside a longer Latin word or number.

    Examples
    --------
    >>> import polars as pl
    >>> claim_texts(pl.Series(["for 30 days; paid in full, 8", "235"]), True).select("text", "alone").rows()
    [('for 30 days', False), ('paid in full', False), ('235', True)]
    """
    claim = pl.col("claim")
    trimmed = claim.str.extract_all(PHRASE).list.eval(pl.element().str.strip_chars())
    listed = claims.alias("claim").to_frame()
    listed = listed.with_columns(text=trimmed.list.unique(maintain_order=True), alone=pl.lit(False))
    phrases = listed.explode("text").drop_nulls()
    has_no_phrase = pl.col("text").list.len() == 0
    is_not_ascii = claim.str.len_bytes() != claim.str.len_chars()
    whole_claims = listed.filter((claim != "") & (has_no_phrase | is_not_ascii) & whole)
    whole_claims = whole_claims.with_columns(
        text=claim, alone=claim.str.contains(r"^[a-z0-9]|[a-z0-9]$")
    )
    return pl.concat([phrases, whole_claims])


def holds(answers: pl.Series, claims: pl.Series, whole: bool) -> pl.Series:
    """Return for each answer whether it contains one of the `claim_texts` of its claim; null without either.

    Parameters
    ----------
    answers, claims : (N,) series of str
        Trimmed and lower-cased.
    whole : bool

    Examples
    --------
    >>> import polars as pl
    >>> holds(pl.Series(["在歐洲開創", "12350", None]), pl.Series(["歐洲", "235", "x"]), True).to_list()
    [True, False, None]
    """
    pairs = pl.DataFrame({"answer": answers, "claim": claims}).with_row_index("row")
    pairs = pairs.filter(pl.col("claim") != "").drop_nulls()
    unknown = pl.Series([None], dtype=pl.Boolean).new_from_index(0, len(answers))
    contains = unknown.scatter(pairs["row"], False)
    texts = claim_texts(pairs["claim"].unique(maintain_order=True), whole)
    pairs = pairs.join(texts, on="claim")
    pairs = pairs.filter(pl.col("answer").str.contains(pl.col("text"), literal=True))
    rows = set(pairs.filter(~pl.col("alone"))["row"].to_list())
    # A claim that must stand alone needs look-around, which the engine of Polars lacks: Python checks these rows.
    for row, text, answer in pairs.filter("alone").select("row", "text", "answer").iter_rows():
        if occurs_whole(text, answer):
            rows.add(row)
    # Polars before 1.36 takes places in their order only.
    return contains.scatter(sorted(rows), True)


def occurs_whole(claim: str, answer: str) -> bool:
    """Whether a claim occurs in an answer, and not inside a longer Latin word or number.

    Examples
    --------
    >>> occurs_whole("235", "因235朔望月"), occurs_whole("235", "12350")
    (True, False)
    """
    return bool(claim) and re.search(f"{EDGE}{re.escape(claim)}{EDGE}", answer) is not None
