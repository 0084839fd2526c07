"""Which passages answers cite: a field, a list in the text, or an inline form that the answers themselves show.

Answers are untrusted text: every regular expression here runs in linear time (Rust's ``regex``). An inline
citation counts only if it names an id that is known, from the passages of its row or from gold, one that differs
from such an id in its digits alone (``p9`` beside ``p1``: it is made up), or a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

import narwhals as nw

from ragnb.errors import RagnbError
from ragnb.polars import pl
from ragnb.traces.columns import distinct
from ragnb.traces.inline import inline_citations
from ragnb.weights import collected

Split = Literal["space", "comma"]
SEPARATORS: dict[Split, str] = {"space": r"[\s，、]+", "comma": "，"}
LONGEST_LIST = 2_000  # characters between the brackets of a list of sources
# Characters behind a list within which a second bracket may be the one that closes it.
FARTHEST_BRACKET = 200
# The list, whether a bracket closes it, and what follows on the line up to a further bracket.
CITATIONS = r"(?i)citations\s*[:：]\s*\[([^\[\]]*)(\]?)([^\[\]\n]*\]?)"
QUOTED = r"""(?s)^(?:"(.*)"|'(.*)'|`(.*)`)$"""

Citations = Literal[
    "auto",
    "list",
    "inline",
    "brackets",
    "parentheses",
    "lenticular",
    "footnotes",
    "links",
    "tags",
    "sources",
    "numbers",
]
# Inline forms as people see them.
FORMS: dict[str, str] = {
    "brackets": "[id]",
    "parentheses": "(id)",
    "lenticular": "【id】",
    "footnotes": "[^id]",
    "links": "[text](id)",
    "tags": "<cite>id</cite>",
    "sources": "source: id",
    "numbers": "[1]",
}
SHAPES = {"field": "a field", "list": "citations: [id, id]", **FORMS}
CHOICES: tuple[Citations, ...] = get_args(Citations)
# Answers of which a second form names other ids, at most, for the first to be read without a question.
TOLERATED = 0.05
Key = TypeVar("Key")


def cited(answers: pl.Series, split: Split) -> tuple[pl.Series, pl.Series]:
    """Return the distinct ids of the first ``citations: [...]`` of each answer, and which lists are not taken.

    Parameters
    ----------
    answers : series of str
        In NFC.
    split : {"space", "comma"}
        What parts ids: commas (also ``，、``) and white space, or commas alone (also ``，``).

    Returns
    -------
    (series of list of str, series of bool)
        Null where no list stands. True where a list opens that cannot be taken whole: it never closes within
        2,000 characters, or a bracket stands inside it. It is never cut.

    Examples
    --------
    >>> import polars as pl
    >>> lists, flagged = cited(pl.Series(["citations: [a, b c]", "citations: [a[1], b]", "no"]), "space")
    >>> lists.to_list(), flagged.to_list()
    ([['a', 'b', 'c'], None, None], [False, True, False])
    """
    groups = answers.str.extract_groups(CITATIONS)
    inside, closed, after = (groups.struct.field(name) for name in groups.struct.fields)
    # A second `]` on the line, with no `[` before it, means that an id holds a bracket.
    has_inner = after.str.ends_with("]") & (after.str.len_chars() <= FARTHEST_BRACKET + 1)
    is_whole = (closed == "]") & ~has_inner & (inside.str.len_chars() <= LONGEST_LIST)
    # Answers cite the same passages again and again: each list is taken apart once.
    lists = pl.DataFrame({"inside": inside.set(~is_whole, None)})
    parts = pl.col("inside").str.replace_all(SEPARATORS[split], ",").str.split(",")
    # Of the three groups of QUOTED, one for each kind of quotes, two are empty.
    unquoted = pl.element().str.strip_chars().str.replace(QUOTED, "$1$2$3").str.strip_chars()
    not_blank = pl.element().filter(pl.element() != "")
    ids = parts.list.eval(unquoted).list.eval(not_blank)
    table = lists.unique().with_columns(ids=ids.list.unique(maintain_order=True))
    lists = lists.join(table, on="inside", how="left", maintain_order="left")
    is_flagged = inside.is_not_null() & ~is_whole.fill_null(False)
    return lists["ids"], is_flagged


@dataclass(frozen=True)
class Read:
    """What a batch of answers cites, before one form is chosen.

    Attributes
    ----------
    lists : series of list of str
        Of the field, else of the list in the text; null where there is neither.
    place : series of str
        ``field`` or ``list``, null where there is neither.
    flagged : series of bool
        Where a list in the text cannot be taken whole.
    inline : DataFrame
        ``row, form, id, known``: the citations that each inline form finds where no list is read, and whether the
        id is one of those that are known.
    seen : dict of system to Seen
    """

    lists: pl.Series
    place: pl.Series
    flagged: pl.Series
    inline: pl.DataFrame
    seen: dict[str | None, Seen]


@dataclass
class Seen:
    """How many answers of a system cite in which form.

    Attributes
    ----------
    answers : int
        Answers that are no refusals.
    listed : dict of str to int
        Those with a ``field``, and those with a ``list`` in the text.
    forms : dict of str to int
        Those in which an inline form finds an id.
    differ : dict of (form, form) to int
        Those in which the first form names an id that the second does not.
    numeric : bool
        Whether an id is a number, so that a number in brackets is no place.
    beyond : int
        Answers with a number in brackets that no passage has.
    """

    answers: int = 0
    listed: dict[str, int] = field(default_factory=dict)
    forms: dict[str, int] = field(default_factory=dict)
    differ: dict[tuple[str, str], int] = field(default_factory=dict)
    numeric: bool = False
    beyond: int = 0


def merged(parts: Sequence[Mapping[str | None, Seen]]) -> dict[str | None, Seen]:
    """Return what several batches of answers show, by system.

    Examples
    --------
    >>> merged([{None: Seen(2, forms={"links": 1})}, {None: Seen(3, forms={"links": 2})}])[None].forms
    {'links': 3}
    """
    whole: dict[str | None, Seen] = {}
    for part in parts:
        for system, seen in part.items():
            into = whole.setdefault(system, Seen())
            into.answers += seen.answers
            into.beyond += seen.beyond
            into.numeric = into.numeric or seen.numeric
            into.listed = _summed(into.listed, seen.listed)
            into.forms = _summed(into.forms, seen.forms)
            into.differ = _summed(into.differ, seen.differ)
    return whole


def _summed(counts: Mapping[Key, int], more: Mapping[Key, int]) -> dict[Key, int]:
    both = {**counts, **more}
    return {key: counts.get(key, 0) + more.get(key, 0) for key in both}


def chosen(seen: Mapping[str | None, Seen], citations: Citations) -> dict[str | None, str]:
    """Return how the answers of each system are read: ``list``, ``inline`` or one inline form.

    Raises
    ------
    RagnbError
        Where two forms name different ids.

    Examples
    --------
    >>> chosen({None: Seen(80, forms={"brackets": 80})}, "auto")
    {None: 'brackets'}
    >>> chosen({None: Seen(80, forms={"brackets": 50, "links": 30}, differ={("links", "brackets"): 30})}, "auto")
    Traceback (most recent call last):
    ragnb.errors.RagnbError: answers cite in two forms, and the rates depend on which is read: 50 of 80 as [id], \
30 as [text](id); set citations: brackets or citations: links to read one of them, or citations: inline to read all
    """
    if citations != "auto":
        return dict.fromkeys(seen, citations)
    return {system: _form_of(of_system, system) for system, of_system in seen.items()}


def _form_of(seen: Seen, system: str | None) -> str:
    """Return the form that the answers of one system show."""
    forms = dict(seen.forms)
    # A number in brackets is taken for a place among the passages only where no id is a number, and where hardly
    # any answer has a number beyond its passages.
    n_placed = forms.get("numbers", 0)
    are_misplaced = seen.beyond > TOLERATED * (seen.beyond + n_placed)
    if seen.numeric or are_misplaced:
        forms.pop("numbers", None)
    if not forms:
        return "list"
    leading = max(forms, key=lambda form: forms[form])
    for form, n in forms.items():
        differing = seen.differ.get((form, leading), 0)
        if form != leading and differing > TOLERATED * (forms[leading] + differing):
            raise _two_forms(seen, system, (leading, forms[leading]), (form, n))
    n_listed = sum(seen.listed.values())
    if not n_listed:
        return leading
    # Where nearly all answers have a list, the few that cite inline instead are read as citing nothing.
    if forms[leading] > TOLERATED * (n_listed + forms[leading]):
        name = max(seen.listed, key=lambda place: seen.listed[place])
        raise _two_forms(seen, system, (name, n_listed), (leading, forms[leading]))
    return "list"


def _two_forms(
    seen: Seen, system: str | None, first: tuple[str, int], second: tuple[str, int]
) -> RagnbError:
    """Return the question which of two forms counts."""
    who = "" if system is None else f"system {system!r}: "
    form, n = first
    other, n_other = second
    setting = "list" if form == "field" else form  # which takes the field, too
    return RagnbError(
        f"{who}answers cite in two forms, and the rates depend on which is read: {n} of {seen.answers} as "
        f"{SHAPES[form]}, {n_other} as {SHAPES[other]}; set citations: {setting} or citations: {other} to read "
        "one of them, or citations: inline to read all"
    )


def read(
    rows: pl.DataFrame, *, split: Split, citations: Citations, known: pl.Series | None = None
) -> Read:
    """Return what the answers cite in every form that may count.

    Parameters
    ----------
    rows : DataFrame
        ``answer, refused, citations, chunks, gold_ids`` and ``system`` (null for none).
    split : {"space", "comma"}
    citations : one of `CHOICES`
    known : series of str, optional
        Further ids that may be cited, as all those of gold.
    """
    given = rows["citations"]
    is_given = given.is_not_null()
    # Of an answer with a field the text is not searched for a list.
    in_text, flagged = cited(rows["answer"].set(is_given, None), split)
    lists = distinct(given).zip_with(is_given, in_text)
    sources = pl.DataFrame({"field": is_given, "list": in_text.is_not_null()})
    where = pl.when("field").then(pl.lit("field")).when("list").then(pl.lit("list"))
    place = sources.select(where).to_series()
    answered = (~rows["refused"]).fill_null(False)
    searched = rows.select(
        "chunks", "gold_ids", answer="answer", row=pl.int_range(pl.len(), dtype=pl.UInt32)
    )
    without_lists = pl.col("answer").str.replace_all(CITATIONS, "")
    if citations in FORMS:  # counts alone, also where there is a list
        lists = lists.clear(len(rows))
        place = place.clear(len(rows))
        searched = searched.filter(answered).with_columns(without_lists)
    elif citations == "list":
        searched = searched.clear()
    elif given.list.len().max() == 0:
        # A field that is empty in every row says that nothing is cited: what the texts cite may contradict it.
        searched = searched.filter(answered & (place != "list").fill_null(True) & ~flagged)
        searched = searched.with_columns(without_lists)
    else:
        searched = searched.filter(answered & place.is_null() & ~flagged)
    ids = _known(searched)
    inline, beyond = inline_citations(searched, ids, known, alone=citations == "parentheses")
    seen = _seen(rows, answered, place, inline, beyond, ids)
    return Read(lists, place, flagged, inline, seen)


def taken(found: Read, systems: pl.Series, forms: Mapping[str | None, str]) -> pl.DataFrame:
    """Return the citations of the form that was chosen for each system.

    Returns
    -------
    DataFrame
        ``citations_predicted``, ``citations_flagged`` and ``citations_form``: where they were read, null for none.
    """
    of_system = pl.DataFrame(
        {"system": [*forms], "chosen": [*forms.values()]},
        schema={"system": pl.String, "chosen": pl.String},
    )
    rows = pl.DataFrame({"system": systems.cast(pl.String)}).with_row_index("row")
    rows = rows.join(of_system, on="system", how="left", nulls_equal=True, maintain_order="left")
    counts = (pl.col("form") == pl.col("chosen")) | (pl.col("chosen") == "inline")
    of_form = found.inline.join(rows, on="row", maintain_order="left").filter(counts)
    grouped = of_form.group_by("row", maintain_order=True).agg(
        inline=pl.col("id").drop_nulls().unique(maintain_order=True), form=pl.col("form").first()
    )
    table = rows.with_columns(lists=found.lists, place=found.place)
    table = table.join(grouped, on="row", how="left", maintain_order="left")
    return table.select(
        citations_predicted=pl.coalesce("lists", "inline"),
        citations_flagged=found.flagged,
        citations_form=pl.coalesce("place", "form").cast(pl.Enum([*SHAPES])),
    )


def tried(citations: str) -> list[str]:
    """Return the forms that a setting looks for, in order.

    Examples
    --------
    >>> tried("list"), tried("brackets")
    (['field', 'list'], ['brackets'])
    """
    if citations in FORMS:
        return [citations]
    if citations == "list":
        return ["field", "list"]
    return [*SHAPES]


def citation_forms(labelled: Any) -> list[dict[str, Any]]:
    """Return how many answers of each system cite in each form: ``system, form, n, of``, the most frequent first.

    Parameters
    ----------
    labelled : DataFrame of any engine
        With ``answered, citations_predicted, citations_form`` and perhaps ``system``; refusals do not count.

    Examples
    --------
    >>> rows = pl.DataFrame({"answered": [True, True, False], "citations_form": ["links", "links", None]})
    >>> citation_forms(rows)
    [{'system': None, 'form': 'links', 'n': 2, 'of': 2}]
    """
    rows = nw.from_native(labelled)
    has_systems = "system" in rows.collect_schema().names()
    system_column = nw.col("system") if has_systems else nw.lit(None, nw.String)
    answered = rows.filter(nw.col("answered").fill_null(False)).select(
        system_column.cast(nw.String).alias("system"), nw.col("citations_form").cast(nw.String)
    )
    counts = answered.group_by("system", "citations_form").agg(nw.len().alias("n"))
    table: Any = collected(counts)
    groups = list(table.iter_rows())
    n_answers: dict[str | None, int] = {}
    for system, _, n in groups:
        n_answers[system] = n_answers.get(system, 0) + n
    forms = [
        {"system": system, "form": form, "n": int(n), "of": int(n_answers[system])}
        for system, form, n in groups
    ]
    return sorted(forms, key=lambda row: (str(row["system"]), -row["n"], str(row["form"])))


def _known(rows: pl.DataFrame) -> pl.DataFrame:
    """Return ``row, id``: the ids of the passages and of the gold of each row."""
    both = [
        rows.select("row", id=name).explode("id").drop_nulls() for name in ("chunks", "gold_ids")
    ]
    return pl.concat(both).unique(maintain_order=True)


def _seen(
    rows: pl.DataFrame,
    answered: pl.Series,
    place: pl.Series,
    inline: pl.DataFrame,
    beyond: pl.DataFrame,
    ids: pl.DataFrame,
) -> dict[str | None, Seen]:
    """Count the answers of each system that cite in each form."""
    systems = rows.select("system", row=pl.int_range(pl.len(), dtype=pl.UInt32))
    numeric = ids.filter(pl.col("id").str.contains(r"^\d+$")).select("row").unique()
    marks = systems.with_columns(
        answered=answered,
        field=(place == "field").fill_null(False),
        list=(place == "list").fill_null(False),
        numeric=pl.col("row").is_in(numeric["row"].implode()),
        beyond=pl.col("row").is_in(beyond["row"].implode()),
    )
    counts = marks.group_by("system").agg(
        pl.col("answered", "beyond").sum(),
        pl.col("numeric").any(),
        (pl.col("field", "list") & pl.col("answered")).sum(),
    )
    seen_by_system: dict[str | None, Seen] = {}
    for row in counts.iter_rows(named=True):
        listed = {name: row[name] for name in ("field", "list") if row[name]}
        seen = Seen(row["answered"], listed, numeric=row["numeric"], beyond=row["beyond"])
        seen_by_system[row["system"]] = seen
    # What is made up shows no form: it is read in the form that known ids show.
    grouped = inline.filter("known").group_by("row", "form").agg(pl.col("id").unique())
    by_form = {str(form): part for (form,), part in grouped.group_by("form")}
    for form in [name for name in FORMS if name in by_form]:
        of_form = by_form[form].join(systems, on="row")
        for system, n in of_form.group_by("system").agg(pl.len()).rows():
            seen_by_system[system].forms[form] = n
        for other in by_form:
            if other == form:
                continue
            beside = of_form.join(by_form[other].select("row", other="id"), on="row", how="left")
            not_in_other = pl.col("id").list.set_difference(pl.col("other").fill_null([]))
            differs = not_in_other.list.len() > 0
            for system, n in beside.group_by("system").agg(differs.sum()).rows():
                seen_by_system[system].differ[form, other] = n
    return seen_by_system
