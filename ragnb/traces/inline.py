"""Citations in the text of an answer: every form in which systems write them, and the ids that they name."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ragnb.polars import pl
from ragnb.traces.columns import as_series

_LABELS = (
    "sources?|references?|refs?|citations?|cited from|来源|來源|出处|出處|引用|参考|參考|"
    "参考来源|参考文献|资料来源|資料來源|quellen?|fuentes?|fonti?|出典|参照|источники?|출처"
)
_NUMBERED = r"[ \t]*(?:[-*•]|\d{1,3}[.)]|\[\^?\d{1,3}\]:?)[ \t]*"
# What holds the ids of each form: one group.
PATTERNS: dict[str, str] = {
    "brackets": r"[\[［]([^\[\]［］\n]+)[\]］]",
    "parentheses": r"[(（]([^()（）\n]+)[)）]",
    "lenticular": r"【([^【】\n]+)】",
    "footnotes": r"\[\^([^\[\]\n]+)\]",
    "links": r"\]\(<?([^()<>\n]+)>?\)",
    "tags": (
        r"(?i)<(?:cite|citation|ref|source|sup)s?\b(?:[^<>]*?\b(?:id|ref|src|source|doc|name)\s*=\s*[\"'])?"
        r"([^<>]*(?:>[^<>]*)?)"
    ),
    # A label and the rest of its line, with the lines of a list below; or a numbered line at the end of an answer.
    "sources": (
        rf"(?im)(?:^|[^\p{{L}}])(?:{_LABELS})[*_]{{0,3}}\s*[:：][*_]{{0,3}}[ \t]*"
        rf"([^\n]*(?:\n{_NUMBERED}[^\n]+)*)"
    ),
}
_DEFINED = r"(?m)^\s*\[\^?\d{1,3}\]:?[ \t]+([^\n]+)$"
# `]`, `)` and the like part ids only in a line after a label, whose ids may stand in any form.
_AND = r"\s(?:[-–—•&]|and|und|et|y|и|和|及|与)\s"
_PARTS = rf"[,;|，；、†\n]|{_AND}"
_PARTS_OF_LINE = rf"[,;|，；、†\n\[\]［］()（）【】<>]|{_AND}"
_LABEL_BEFORE = (
    rf"(?i)^(?:[-*•]\s*|\d{{1,3}}[.)]\s+)?(?:see\s+|vgl\.?\s+|voir\s+|见\s*|參見\s*|参见\s*)?"
    rf"(?:(?:{_LABELS}|doc|document|passage|chunk|id|文档|文件|段落)\s*[:：#]\s*)?"
)

# What is stripped from the ends of an id in brackets, and from the ends of the parts of a text.
_ENDS = " \t\r\n\"'`“”‘’"
_LOOSE_ENDS = _ENDS + "*_.。,;:，；：<>"
# What an id may hold that the patterns or the cutting into parts would take for an end of it.
_AWKWARD = r"[\[\]［］()（）【】<>,;|，；、†\s]"
# Numbers of passages with ranges and further numbers; of four digits it would be a year.
_NUMBER = r"\d{1,3}(?:\s*[-–—,，、;]\s*\d{1,3})*"
_PLACES = (
    rf"[\[［【]\s*\^?\s*({_NUMBER})\s*(?:†[^\[\]【】\n]*)?[\]］】]",
    rf"(?i)<(?:cite|sup|citation|ref)\b[^<>]*>\s*\[?\s*({_NUMBER})\s*\]?\s*</",
    r"(?:[\p{P}\p{Han}\p{Hangul}\p{Hiragana}\p{Katakana}]|\p{L}{3})([⁰¹²³⁴⁵⁶⁷⁸⁹]+(?:[˒,⁻⁃][⁰¹²³⁴⁵⁶⁷⁸⁹]+)*)",
)
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁃˒", "0123456789--,", strict=True))
_WIDEST_RANGE = 50  # sources in [3-7]; what spans more, such as [1990-2020], is no citation


def inline_citations(
    rows: pl.DataFrame, ids: pl.DataFrame, known: pl.Series | None, alone: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return ``row, form, id, known`` of every inline citation, and the rows with numbers that are no places."""
    none = _no_mentions()
    ids_of_gold: Any = [] if known is None else known.drop_nulls().unique()
    anywhere = pl.DataFrame({"id": ids_of_gold}).cast(pl.String)
    if not len(rows) or not (len(ids) or len(anywhere)):
        return none, none
    rows, names = _without_awkward_ids(rows, ids)
    lookup = _Ids(names, anywhere)
    parts = [none]
    for form, pattern in PATTERNS.items():
        mentions = lookup.met(_inside(rows, form, pattern), line=form == "sources")
        if form == "parentheses" and not alone:  # (2019) is a year
            mentions = mentions.filter(~pl.col("id").str.contains(r"^\d+$"))
        parts.append(mentions.select("row", pl.lit(form).alias("form"), "id", "known"))
    inline = pl.concat(parts)
    # The numbers of an answer with a list of sources are places in that list, not among the passages.
    own_numbering = inline.filter(pl.col("form") == "sources").select("row").unique()
    places, beyond = _places(rows.join(own_numbering, on="row", how="anti"))
    inline = pl.concat([inline, places]).unique(maintain_order=True)
    return inline, beyond


def _inside(rows: pl.DataFrame, form: str, pattern: str) -> pl.DataFrame:
    """Return ``row, text``: what each mention of a form holds, where ids may be."""
    texts = pl.col("answer")
    if form == "parentheses":  # those of a link are a form of their own
        texts = texts.str.replace_all(PATTERNS["links"], "]")
    inside = _groups(rows, texts, pattern)
    if form == "sources":
        return pl.concat([inside, _groups(rows, texts, _DEFINED)])
    if form == "links":  # in an address a blank is written as %20
        return inside.with_columns(pl.col("text").str.replace_all("%20", " ", literal=True))
    if form == "tags":
        # The end of the opening tag parts the id in an attribute from the one in the text.
        return inside.with_columns(pl.col("text").str.replace_all(r"[\"']?\s*/?>", "\n"))
    return inside


def _no_mentions() -> pl.DataFrame:
    """Return the table of mentions without a row."""
    columns = {"row": pl.UInt32, "form": pl.String, "id": pl.String, "known": pl.Boolean}
    return pl.DataFrame(schema=columns)


def _groups(rows: pl.DataFrame, texts: pl.Expr, pattern: str) -> pl.DataFrame:
    """Return ``row, text``: what the group of a pattern holds wherever it is found."""
    groups = rows.select("row", text=texts.str.extract_all(pattern))
    groups = groups.filter(pl.col("text").list.len() > 0).explode("text")
    return groups.with_columns(pl.col("text").str.extract(pattern, 1))


def _without_awkward_ids(
    rows: pl.DataFrame, ids: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Replace ids that hold blanks, brackets or commas in the answers by names without, the longest first.

    Returns
    -------
    DataFrame, DataFrame
        The rows, and ``row, id, text``: how each id is called in them.
    """
    plain = ids.select("row", "id", text="id")
    awkward = ids.filter(pl.col("id").str.contains(_AWKWARD))
    if not len(awkward):
        return rows, plain
    texts = dict(rows.select("row", "answer").iter_rows())
    replaced: list[tuple[int, str, str]] = []  # row, id, and the name in its place
    by_row = awkward.group_by("row", maintain_order=True).agg("id")
    for row, names in by_row.iter_rows():
        text = texts[row]
        # The longest first, as a shorter id may be a part of a longer one.
        for nth, name in enumerate(sorted(names, key=len, reverse=True)):
            if name in text:
                # Made of private-use characters, at which no pattern parts a text.
                placeholder = f"\ue000{nth}\ue001"
                text = text.replace(name, placeholder)
                replaced.append((row, name, placeholder))
        texts[row] = text
    rows = rows.with_columns(answer=as_series([texts[row] for row in rows["row"]]))
    called = pl.DataFrame(
        replaced, schema={"row": pl.UInt32, "id": pl.String, "text": pl.String}, orient="row"
    )
    return rows, pl.concat([plain, called])


class _Ids:
    """The ids that answers may cite: to the letter, else without regard to case, else one of all of gold."""

    def __init__(self, of_row: pl.DataFrame, anywhere: pl.DataFrame) -> None:
        self.exact = of_row
        self.anywhere = anywhere.select("id", text="id")

    @cached_property
    def shapes(self) -> pl.Series:
        """The ids that have digits, with 0 for each number."""
        texts = pl.concat([self.exact["text"], self.anywhere["text"]]).unique()
        return _shape(texts.filter(texts.str.contains(r"\d"))).unique()

    @cached_property
    def folded(self) -> pl.DataFrame:
        """In lower case, without those that differ in case alone."""
        lower = pl.col("text").str.to_lowercase()
        return self.exact.with_columns(lower).unique(["row", "text"], keep="none")

    def met(self, inside: pl.DataFrame, *, line: bool) -> pl.DataFrame:
        """Return ``row, id, known``: of each text the whole if it is an id, else its parts, else its words.

        Words count if all of them are ids, or, in the `line` after a label, any.
        """
        text = pl.col("text")
        inside = inside.drop_nulls()
        whole, rest = self._split(inside.with_columns(text.str.strip_chars(_ENDS)))

        separators = _PARTS_OF_LINE if line else _PARTS
        parts = rest.with_columns(text.str.replace_all(separators, "\n").str.split("\n"))
        parts = parts.explode("text").with_columns(text.str.strip_chars(_LOOSE_ENDS))
        named, rest = self._split(parts.filter(text != ""))

        without_label = text.str.replace(_LABEL_BEFORE, "").str.strip_chars(_LOOSE_ENDS)
        labelled, rest = self._split(rest.with_columns(without_label).filter(text != ""))

        is_year = text.str.contains(r"^\d{4,}$")
        made_up = rest.filter(_shape(rest["text"]).is_in(self.shapes.implode()) & ~is_year)

        words = rest.with_row_index("part").with_columns(text.str.extract_all(r"\S+"))
        words = words.filter(text.list.len() > 1).with_columns(size=text.list.len())
        words = words.explode("text").with_columns(text.str.strip_chars(_LOOSE_ENDS))

        single, _ = self._split(words, everywhere=False)
        if not line:
            n_ids = text.len().over("part")
            single = single.filter(n_ids == pl.col("size"))

        known = [ids.select("row", "id", known=True) for ids in (whole, named, labelled, single)]
        return pl.concat([*known, made_up.select("row", id="text", known=False)])

    def _split(
        self, texts: pl.DataFrame, everywhere: bool = True
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the texts that are ids, with these, and those that are none."""
        keys = ["row", "text"]
        columns = [*texts.columns, "id"]
        matches = [texts.clear().with_columns(id=pl.lit(None, pl.String))]
        rest = texts
        if len(rest):
            matches.append(rest.join(self.exact, on=keys, maintain_order="left"))
            rest = rest.join(self.exact, on=keys, how="anti")
        if len(rest):
            lower = pl.col("text").str.to_lowercase()
            lowered = rest.with_columns(as_written="text", text=lower)
            matches.append(lowered.join(self.folded, on=keys, maintain_order="left"))
            rest = lowered.join(self.folded, on=keys, how="anti").with_columns(text="as_written")
        if everywhere and len(rest) and len(self.anywhere):
            matches.append(rest.join(self.anywhere, on="text", maintain_order="left"))
            rest = rest.join(self.anywhere, on="text", how="anti")
        return pl.concat([part.select(columns) for part in matches]), rest.select(texts.columns)


def _shape(texts: pl.Series) -> pl.Series:
    """Return ids in lower case with 0 for each number: those that are numbered alike have one shape."""
    return texts.str.to_lowercase().str.replace_all(r"\d+", "0")


def _places(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the citations by numbers in brackets, and the rows with a number that is no place of a passage.

    Such a number is an id of its own, which no passage has.
    """
    none = _no_mentions()
    texts = pl.concat([_groups(rows, pl.col("answer"), pattern) for pattern in _PLACES])
    if not len(texts):
        return none, none
    spans = _spans(texts).join(rows.select("row", "chunks"), on="row", maintain_order="left")
    first = pl.col("first")
    last = pl.col("last")
    is_range = (last - first).is_between(0, _WIDEST_RANGE - 1)
    fits = (first >= 1) & is_range & (last <= pl.col("chunks").list.len().fill_null(0))
    all_fit = fits.all().over("row")
    beyond = spans.filter(~all_fit).select("row").unique()
    # An answer of which a number is no place shows no form either; see `Read.inline`.
    spans = spans.with_columns(known=all_fit).filter(is_range)
    placed = spans.with_columns(place=pl.int_ranges(first, last + 1)).explode("place")
    place = pl.col("place")
    # At place 0 Polars would take the last passage.
    of_place = pl.when(place > 0).then(pl.col("chunks").list.get(place - 1, null_on_oob=True))
    made_up = pl.when(~pl.col("known")).then(place.cast(pl.String))
    ids = of_place.fill_null(made_up)
    places = placed.select("row", form=pl.lit("numbers"), id=ids, known="known")
    return places.unique(maintain_order=True), beyond


def _spans(texts: pl.DataFrame) -> pl.DataFrame:
    """Return ``row, text, first, last``: the numbers in texts such as ``1, 3-5``, of a single one both ends."""
    # Raised digits are digits.
    digits = pl.col("text").str.replace_many([*_RAISED], [*_RAISED.values()])
    spans = texts.with_columns(digits.str.replace_all(r"\s*[–—-]\s*", "-"))
    spans = spans.with_columns(pl.col("text").str.extract_all(r"\d+(?:-\d+)?")).explode("text")
    ends = pl.col("text").str.split("-").list.eval(pl.element().cast(pl.Int32))
    return spans.with_columns(first=ends.list.first(), last=ends.list.last())
