"""Citations in the text of an answer: every form in which systems write them, and the ids that they name."""

from __future__ import annotations

from functools import cached_property

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

_ENDS = " \t\r\n\"'`“”‘’"
_LOOSE_ENDS = _ENDS + "*_.。,;:，；：<>"
_AWKWARD = r"[\[\]［］()（）【】<>,;|，；、†\s]"
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
    anywhere = pl.DataFrame({"id": [] if known is None else known.drop_nulls().unique()}).cast(
        pl.String
    )
    if not len(rows) or not (len(ids) or len(anywhere)):
        return none, none
    rows, names = _without_awkward_ids(rows, ids)
    lookup = _Ids(names, anywhere)
    parts = []
    for form, pattern in PATTERNS.items():
        texts = pl.col("answer")
        if form == "parentheses":  # those of a link are a form of their own
            texts = texts.str.replace_all(PATTERNS["links"], "]")
        inside = _groups(rows, texts, pattern)
        if form == "sources":
            inside = pl.concat([inside, _groups(rows, texts, _DEFINED)])
        if form == "links":
            inside = inside.with_columns(pl.col("text").str.replace_all("%20", " ", literal=True))
        if form == "tags":
            inside = inside.with_columns(pl.col("text").str.replace_all(r"[\"']?\s*/?>", "\n"))
        met = lookup.met(inside, line=form == "sources")
        if form == "parentheses" and not alone:  # (2019) is a year
            met = met.filter(~pl.col("id").str.contains(r"^\d+$"))
        parts.append(met.select("row", "id", "known", form=pl.lit(form)))
    inline = pl.concat([none, *(one.select("row", "form", "id", "known") for one in parts)])
    own_numbering = inline.filter(pl.col("form") == "sources").select("row").unique()
    places, beyond = _places(rows.join(own_numbering, on="row", how="anti"))
    inline = pl.concat([inline, places]).unique(maintain_order=True)
    return inline, beyond


def _no_mentions() -> pl.DataFrame:
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
    keys: list[tuple[int, str, str]] = []
    by_row = awkward.group_by("row", maintain_order=True).agg("id")
    for row, names in by_row.iter_rows():
        text = texts[row]
        for nth, name in enumerate(sorted(names, key=len, reverse=True)):
            if name in text:
                key = f"\ue000{nth}\ue001"
                text = text.replace(name, key)
                keys.append((row, key, name))
        texts[row] = text
    rows = rows.with_columns(answer=as_series([texts[row] for row in rows["row"]]))
    called = pl.DataFrame(
        keys, schema={"row": pl.UInt32, "text": pl.String, "id": pl.String}, orient="row"
    )
    return rows, pl.concat([plain, called.select("row", "id", "text")])


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
        inside = inside.drop_nulls()
        stripped = inside.with_columns(pl.col("text").str.strip_chars(_ENDS))
        whole, rest = self._split(stripped)
        parts = rest.with_columns(
            pl.col("text").str.replace_all(_PARTS_OF_LINE if line else _PARTS, "\n").str.split("\n")
        ).explode("text")
        parts = parts.with_columns(pl.col("text").str.strip_chars(_LOOSE_ENDS))
        named, rest = self._split(parts.filter(pl.col("text") != ""))
        bare = pl.col("text").str.replace(_LABEL_BEFORE, "").str.strip_chars(_LOOSE_ENDS)
        labelled, rest = self._split(rest.with_columns(bare).filter(pl.col("text") != ""))
        year = pl.col("text").str.contains(r"^\d{4,}$")
        made_up = rest.filter(_shape(rest["text"]).is_in(self.shapes.implode()) & ~year)
        words = rest.with_row_index("part").with_columns(
            pl.col("text").str.extract_all(r"\S+").alias("text")
        )
        words = words.filter(pl.col("text").list.len() > 1).with_columns(
            size=pl.col("text").list.len()
        )
        words = words.explode("text").with_columns(pl.col("text").str.strip_chars(_LOOSE_ENDS))
        single, _ = self._split(words, everywhere=False)
        if not line:
            hits = pl.col("text").len().over("part")
            single = single.filter(hits == pl.col("size"))
        known = [one.select("row", "id", known=True) for one in (whole, named, labelled, single)]
        return pl.concat([*known, made_up.select("row", id="text", known=False)])

    def _split(
        self, texts: pl.DataFrame, everywhere: bool = True
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the texts that are ids, with these, and those that are none."""
        keys = ["row", "text"]
        columns = [*texts.columns, "id"]
        none = texts.clear().with_columns(id=pl.lit(None, pl.String))
        found = [none]
        rest = texts
        if len(rest):
            found.append(rest.join(self.exact, on=keys, maintain_order="left"))
            rest = rest.join(self.exact, on=keys, how="anti")
        if len(rest):
            lowered = rest.with_columns(spelt="text", text=pl.col("text").str.to_lowercase())
            found.append(lowered.join(self.folded, on=keys, maintain_order="left"))
            rest = lowered.join(self.folded, on=keys, how="anti").with_columns(text="spelt")
        if everywhere and len(rest) and len(self.anywhere):
            found.append(rest.join(self.anywhere, on="text", maintain_order="left"))
            rest = rest.join(self.anywhere, on="text", how="anti")
        return pl.concat([one.select(columns) for one in found]), rest.select(texts.columns)


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
    # Raised digits are digits.
    spelt = pl.col("text").str.replace_many([*_RAISED], [*_RAISED.values()])
    spans = texts.with_columns(spelt.str.replace_all(r"\s*[–—-]\s*", "-"))
    spans = spans.with_columns(pl.col("text").str.extract_all(r"\d+(?:-\d+)?")).explode("text")
    ends = pl.col("text").str.split("-").list.eval(pl.element().cast(pl.Int32))
    spans = spans.with_columns(first=ends.list.first(), last=ends.list.last())
    spans = spans.join(rows.select("row", "chunks"), on="row", maintain_order="left")
    width = pl.col("last") - pl.col("first")
    fits = (
        (pl.col("first") >= 1)
        & (width >= 0)
        & (width < _WIDEST_RANGE)
        & (pl.col("last") <= pl.col("chunks").list.len().fill_null(0))
    )
    all_fit = fits.all().over("row")
    beyond = spans.filter(~all_fit).select("row").unique()
    # An answer of which a number is no place shows no form either; see `Read.inline`.
    spans = spans.with_columns(known=all_fit).filter(width.is_between(0, _WIDEST_RANGE - 1))
    numbers = pl.int_ranges(pl.col("first"), pl.col("last") + 1)
    placed = spans.with_columns(place=numbers).explode("place")
    ids = pl.col("chunks").list.get(pl.col("place") - 1, null_on_oob=True)
    ids = pl.when(pl.col("place") > 0).then(ids)
    named = ids.fill_null(pl.when(~pl.col("known")).then(pl.col("place").cast(pl.String)))
    places = placed.select("row", form=pl.lit("numbers"), id=named, known="known")
    return places.unique(maintain_order=True), beyond
