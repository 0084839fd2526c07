"""How tools lay out their tables: one row of `LAYOUTS` a tool, which brings a table to one row a sample.

A layout looks at the column names (`sniff`) and lays the cells out anew (`read`); through `scored` it hands over
what it knows of its metrics: range, direction, threshold, and which cells are failures and no scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragnb.errors import RagnbError, listing, place
from ragnb.readers.cells import NO_NUMBER, as_id, parse_list
from ragnb.readers.lossy import Lossy
from ragnb.readers.names import REPEAT_NAMES, SYSTEM_NAMES, WORDS, meanings
from ragnb.readers.numbers import NUMBER
from ragnb.readers.raw import Raw, Scale, Values, absent, clean_text, is_text, unpacked
from ragnb.schema import CASE_COLUMNS, METRICS

_CASE_ONLY = set(CASE_COLUMNS) - {"system"}
_DUMPED = {"scores", "dataset", "binary_columns"}
_HAYSTACK = "_metric_"
_DEEPEVAL = ("metricsData", "metrics_data")
_MLFLOW = ("/value", "/v1/score")
_MLFLOW_REASONS = ("/rationale", "/v1/justification")
_MLFLOW_SIDES = {"inputs": "question", "outputs": "answer", "expectations": "ground_truth_answer"}
_YES = {"yes": 1.0, "no": 0.0}
_LANGFUSE_KINDS = {"ANNOTATION": "human", "EVAL": "judge"}
_LANGFUSE_NUMBERS = ("NUMERIC", "BOOLEAN")
_PHOENIX_KINDS = {"HUMAN": "human", "LLM": "judge"}
_LONG_NAMES = ("metric", "metric_name", "scorer", "指标", "评估指标", "指标名称")
_LONG_SCORES = ("score", "value", "metric_value", "分数", "得分")
_LONG_REASONS = ("reason", "explanation", "comment", "rationale", "理由")
_LONG_KEYS = {"sample_id", "question", "system", "repeat", "doc_name"}


@dataclass(frozen=True)
class Layout:
    """A tool's layout: whether columns are its, and how a table of them is brought to one row a sample.

    Examples
    --------
    >>> LAYOUTS["ragas"].sniff({"user_input", "response"}), LAYOUTS["ragas"].sniff({"question", "answer"})
    (True, False)
    >>> LAYOUTS["deepeval"].sniff({"input", "context", "retrieval_context"})
    True
    >>> LAYOUTS["long"].sniff({"sample_id", "metric", "score"}), LAYOUTS["long"].sniff({"metric", "score"})
    (True, False)
    """

    name: str
    sniff: Callable[[Set[str]], bool]
    read: Callable[[Raw, Lossy], None]


def lay_out(raw: Raw, report: Lossy) -> str:
    """Bring a tool's layout to one row a sample and return its name, ``table`` where no tool is known by it."""
    columns = set(raw.columns)
    if columns >= _DUMPED:
        raise RagnbError(
            f"{place(raw.file)}is a dumped result object (columns {listing(raw.columns)}), not a table of "
            "samples; save result.to_pandas() instead"
        )
    for name in [name for name in raw.columns if name == "..."]:
        report.add("left_out", name, "columns that a printed table elides", len(raw.columns.pop(name)))
    layout = next((layout for layout in LAYOUTS.values() if layout.sniff(columns)), None)
    if layout is not None and layout.read is not _leave:
        raw.columns = {name: list(cells) for name, cells in raw.columns.items()}
        layout.read(raw, report)
    return "table" if layout is None else layout.name


def check_samples(raw: Raw) -> None:
    """Refuse totals, one row a system or setting, and rows that do not fit the header."""
    known = _CASE_ONLY & set(raw.columns)
    texts = [cells for cells in raw.columns.values() if not known and _is_text(cells)]
    if texts:
        keys = {tuple(map(str, key)) for key in zip(*texts, strict=True)}
        if len(keys) == len(raw) or raw.uneven:
            raise RagnbError(
                f"{place(raw.file)}is a table of totals, one row a system or setting (columns "
                f"{listing(raw.columns)}), with no question and no sample id; bring the table they were "
                "computed from, one row a sample; or, if these are samples, say which column is the question: "
                "columns={'…': 'question'}"
            )
    raw.check_even(commas=True)


def _is_text(cells: Values) -> bool:
    if isinstance(cells, pd.Series) and not is_text(cells):
        return False
    words = {cell.strip().casefold() for cell in cells if isinstance(cell, str)}
    return not all(NUMBER.fullmatch(word) for word in words - NO_NUMBER)


def scored(
    raw: Raw, name: str, cells: Values, failed: Sequence[bool] = (), reasons: Values | None = None, *,
    scale: Scale | None = None,
) -> None:  # fmt: skip
    """Set a metric's column, its failed cells marked as such and emptied, and hand over its scale."""
    raw.columns[name] = cells
    if any(failed):
        raw.columns[name] = [None if bad else cell for bad, cell in zip(failed, cells, strict=True)]
        raw.columns[f"{name}__status"] = ["failed" if bad else None for bad in failed]
    if reasons is not None:
        raw.columns[f"{name}__reason"] = reasons
    if scale is not None:
        raw.scales[name] = scale


def _leave(raw: Raw, report: Lossy) -> None:
    """Leave a table as it is, a row a sample."""


def _systems_beside(columns: Iterable[str]) -> list[str]:
    found = ((name, name.find(_HAYSTACK, 1)) for name in columns)
    return list(dict.fromkeys(name[:at] for name, at in found if 0 < at < len(name) - len(_HAYSTACK)))


def _read_haystack(raw: Raw, report: Lossy) -> None:
    """Stack the systems of ``comparative_scores`` under each other; columns that name no system go to each."""
    wide, rows = raw.columns, len(raw)
    systems = sorted(_systems_beside(wide), key=len, reverse=True)
    owner = {name: next((s for s in systems if name.startswith(f"{s}_")), None) for name in wide}
    order = [system for system in dict.fromkeys(owner.values()) if system is not None]
    short = {n: n.removeprefix(f"{owner[n]}_").removeprefix("metric_") for n in wide if owner[n]}
    shared = [name for name in wide if owner[name] is None]
    long = {name: wide[name] * len(order) for name in shared}
    long["system"] = [system for system in order for _ in range(rows)]
    named = {(short[name], owner[name]): cells for name, cells in reversed(wide.items()) if name in short}
    for column in dict.fromkeys(short.values()):
        long[column] = [cell for system in order for cell in named.get((column, system), [None] * rows)]
    for name in short:
        report.add("mapped", name, f"{short[name]} of system {owner[name]}", rows)
    for name in shared:
        report.add("kept", name, "one column for every system", rows)
    raw.keep([*range(rows)] * len(order))
    raw.columns = long


def _read_trulens(raw: Raw, report: Lossy) -> None:
    """Take texts out of JSON quotes, versions of an app for systems, and -1, an unparsed reply, for failed."""
    columns = raw.columns
    for name in ("input", "output"):
        if name in columns:
            before, columns[name] = columns[name], [unpacked(cell, '".*"') for cell in columns[name]]
            n = sum(a is not b for a, b in zip(before, columns[name], strict=True))
            report.add("mapped", name, "taken out of its JSON quotes", n)
    apps = columns.get("app_name") or []
    versions = [f"{app} {version}" for app, version in zip(apps, columns.get("app_version") or [], strict=False)]
    if versions and len(set(versions)) > len({*map(str, apps)}):
        columns["system"] = versions
        report.add("mapped", "app_version", "system, behind app_name", len(raw))
    for name in [name for name in columns if f"{name}_calls" in columns]:
        failed = [_is_minus_one(cell) for cell in columns[name]]
        better = {str(cell).casefold() for cell in columns.get(f"{name} direction", ())} - {"none", "nan"}
        scored(raw, name, columns[name], failed, scale=Scale(better="lower" if better == {"false"} else "higher"))
        report.add("mapped", name, "-1 is failed", sum(failed))


def _is_minus_one(cell: Any) -> bool:
    try:
        return not isinstance(cell, bool) and float(cell) == -1
    except (TypeError, ValueError):
        return False


def _read_mlflow(raw: Raw, report: Lossy) -> None:
    """Name the scorers' columns after them, yes is 1 and no is 0, and take texts out of inputs and outputs."""
    columns = raw.columns
    raw.rename(_MLFLOW_SIDES, report, _text_of_a_side)
    raw.rename({"request_id": "sample_id"}, report)
    for name in [name for name in columns if name.endswith(_MLFLOW)]:
        scorer = name.removesuffix(_MLFLOW[0]).removesuffix(_MLFLOW[1])
        cells = [_YES.get(str(cell).strip().casefold(), cell) for cell in columns.pop(name)]
        report.add("mapped", name, scorer, len(cells))
        columns[scorer] = cells
        raw.rename({scorer + end: f"{scorer}__reason" for end in _MLFLOW_REASONS}, report)
        errors = columns.pop(f"{scorer}/error_message", [None] * len(cells))
        failed = [not _empty(error) and _empty(cell) for error, cell in zip(errors, cells, strict=True)]
        scored(raw, scorer, cells, failed, scale=Scale())
        report.add("mapped", f"{scorer}/error_message", f"{scorer}__status", len(errors) * any(failed))


def _empty(cell: Any) -> bool:
    return absent(cell) or cell == ""


def _text_of_a_side(cell: Any, canonical: str) -> Any:
    """Return the text in an object of inputs or outputs: the one that is named so, or the only one."""
    cell = unpacked(cell, r"\s*\{.*")
    if not isinstance(cell, Mapping):
        return cell
    named = meanings(cell).get(canonical, "expected_response")
    held = cell[named] if named in cell else next(iter(cell.values())) if len(cell) == 1 else cell
    return held if isinstance(held, str) else cell


def _read_deepeval(raw: Raw, report: Lossy) -> None:
    """Take ``context`` for the reference contexts, the name of a test case for its id, and spread its metrics."""
    columns = raw.columns
    raw.rename({"context": "ground_truth_contexts"}, report)
    name = next((name for name in _DEEPEVAL if name in columns), None)
    if name is None:
        return
    if "name" in columns and len({*map(str, columns["name"])}) == len(raw):
        columns["sample_id"] = columns.pop("name")
        report.add("mapped", "name", "sample_id", len(raw))
    cells = [parse_list(cell) if isinstance(cell, str) else cell for cell in columns[name]]
    given = [cell for cell in cells if not absent(cell)]
    if not all(isinstance(cell, list) and all(isinstance(m, dict) for m in cell) for cell in given):
        report.add("unparsed", name, "no lists of metrics, kept as they are", len(cells))
        return
    del columns[name]
    held: list[list[dict[str, Any]]] = [cell if isinstance(cell, list) else [] for cell in cells]
    report.add("mapped", name, "a column a metric; thresholds and verdicts are left out", len(held))
    for metric in dict.fromkeys(str(m.get("name")) for cell in held for m in cell):
        found = [next((m for m in cell if m.get("name") == metric), {}) for cell in held]
        limits = {m["threshold"] for m in found if isinstance(m.get("threshold"), int | float)}
        failed = [bool(m.get("error")) and absent(m.get("score")) for m in found]
        scale = Scale(threshold=limits.pop() if len(limits) == 1 else None)
        reasons = [m.get("error") or m.get("reason") for m in found]
        scored(raw, metric, [m.get("score") for m in found], failed, reasons, scale=scale)


def _read_promptfoo(raw: Raw, report: Lossy) -> None:
    """Spread the variables and the named scores, and take the provider (and prompt) for the system.

    The caller says which variable is the question, where its name does not: ``columns={"prompt": "question"}``.
    """
    columns, rows = raw.columns, len(raw)
    named = [c.get("label") or c.get("id") if isinstance(c, dict) else c for c in columns.pop("provider", [])]
    taken = {"sample_id": columns.pop("testIdx"), "system": named}
    prompts = columns.get("promptIdx", [])
    if len(set(map(str, prompts))) > 1:
        taken["system"] = [f"{a} prompt {b}" for a, b in zip(taken["system"] or [""] * rows, prompts, strict=True)]
    outputs = [cell.get("output") if isinstance(cell, dict) else cell for cell in columns.pop("response", [])]
    errors, codes = (columns.get(name, [None] * rows) for name in ("error", "failureReason"))
    # A file without failureReason tells by an error beside no answer.
    silent = [_empty(output) for output in outputs] or [True] * rows
    told = zip(codes, silent, errors, strict=True)
    failed = [str(c) in ("2", "2.0") or (absent(c) and none and not _empty(e)) for c, none, e in told]
    spread = {name: _spread(columns.pop(name, [])) for name in ("vars", "namedScores")}
    columns.pop("id", None)
    columns.update({name: cells for name, cells in (*taken.items(), ("answer", outputs)) if cells})
    metrics = ["score"] if "score" in columns else []
    for name, found in spread.items():
        for key, cells in found.items():
            made = f"{name}.{key}" if key in columns else key
            columns[made] = cells
            metrics += [made] if name == "namedScores" else []
        report.add("mapped", name, "a column each", rows * bool(found))
    reasons = [error if bad else None for bad, error in zip(failed, errors, strict=True)] if any(failed) else None
    for name in metrics:
        scored(raw, name, columns[name], failed, reasons, scale=Scale())
        report.add("mapped", name, "the answer was not made or not scored (failureReason 2): failed", sum(failed))
    for name, canonical in (("testIdx", "sample_id"), ("provider", "system"), ("response", "answer")):
        report.add("mapped", name, canonical, rows * (canonical in columns))


def _spread(cells: list[Any]) -> dict[str, list[Any]]:
    held = [cell if isinstance(cell, dict) else {} for cell in cells]
    return {key: [cell.get(key) for cell in held] for key in dict.fromkeys(k for cell in held for k in cell)}


def _read_spans(raw: Raw, report: Lossy) -> None:
    """Call documents of a row each passages, which `read_cases` folds to one row a span; name what spans hold."""
    raw.rename(WORDS["spans"], report, lambda cell, _: _document_texts(cell))


def _document_texts(cell: Any) -> Any:
    """Return the texts of a list of documents; anything else as it is."""
    held = parse_list(cell) if isinstance(cell, str) else cell if isinstance(cell, list) else None
    found = [one.get("document.content") if isinstance(one, dict) else None for one in held or []]
    return found if found and None not in found else cell


def _read_rgb(raw: Raw, report: Lossy) -> None:
    """Take ``answer`` for the reference answer."""
    raw.columns = {"ground_truth_answer" if n == "answer" else n: cells for n, cells in raw.columns.items()}
    report.add("mapped", "answer", "ground_truth_answer", len(raw))


def scored_ids(raw: Raw) -> Values:
    """Return of each row of Langfuse the trace that was scored, and the observation in it, if any."""
    traces, spans = (raw.columns.get(name, [None] * len(raw)) for name in ("traceId", "observationId"))
    return [":".join(filter(None, map(as_id, pair))) for pair in zip(traces, spans, strict=True)]


def _rate_langfuse(raw: Raw, report: Lossy) -> None:
    """Take annotations for human scores and evaluators' for the judge's; text and API scores are left out."""
    by = [str(source) in _LANGFUSE_KINDS for source in raw.columns["source"]]
    raw.drop([not kept for kept in by], "source", "scores that neither a person nor an evaluator gave", report)
    texts = [str(kind) not in _LANGFUSE_NUMBERS for kind in raw.columns["dataType"]]
    raw.drop(texts, "dataType", "scores that are no numbers", report)
    columns = raw.columns
    kinds = [_LANGFUSE_KINDS[source] for source in columns["source"]]
    authors = [as_id(author) for author in columns.get("authorUserId", [None] * len(raw))]
    raters = ["judge" if kind == "judge" else author for kind, author in zip(kinds, authors, strict=True)]
    if all(rater is None or rater == "judge" for rater in raters):
        raters = list(kinds)
    raw.columns = {
        "item_id": scored_ids(raw), "dimension": columns["name"], "rater": raters, "rater_kind": kinds,
        "score": columns["value"], **{name: columns[name] for name in ("comment", "timestamp") if name in columns},
    }  # fmt: skip


def _rate_phoenix(raw: Raw, report: Lossy) -> None:
    """Take rows of people for human scores and rows of models for the judge's; those of code are left out."""
    code = [str(kind).upper() not in _PHOENIX_KINDS for kind in raw.columns["annotator_kind"]]
    raw.drop(code, "annotator_kind", "annotations by code", report)
    columns = raw.columns
    columns["rater_kind"] = kinds = [_PHOENIX_KINDS[str(kind).upper()] for kind in columns.pop("annotator_kind")]
    for name in ("result.score", "result.label", "result.explanation"):
        if name in columns:
            columns.setdefault(name.removeprefix("result."), columns.pop(name))
    who = columns.pop("user_id", columns.pop("identifier", [None] * len(raw)))
    columns["rater"] = [kind if _empty(name) else str(name) for kind, name in zip(kinds, who, strict=True)]


langfuse = Layout("langfuse", lambda columns: {"name", "value", "source", "dataType"} <= columns, _rate_langfuse)
phoenix = Layout(
    "phoenix",
    lambda columns: "annotator_kind" in columns and bool({"score", "result.score"} & columns),
    _rate_phoenix,
)


def _is_long(columns: Set[str]) -> bool:
    """Whether one column names the metric and another holds its score, of samples that are named."""
    told = set(meanings(columns))
    named = columns & {*_LONG_NAMES} and columns & {*_LONG_SCORES} and told & {"sample_id", "question"}
    return _is_langfuse(columns) or _is_phoenix(columns) or bool(named and not told & set(METRICS))


def _is_langfuse(columns: Set[str]) -> bool:
    return langfuse.sniff(columns) and "traceId" in columns


def _is_phoenix(columns: Set[str]) -> bool:
    return phoenix.sniff(columns) and "annotation_name" in columns


def _read_long(raw: Raw, report: Lossy) -> None:
    """Turn the metrics into columns; what people scored is left out, ratings have a reader of their own.

    Raises
    ------
    RagnbError
        Where one sample has two scores of one metric, with the line of the second.
    """
    _read_annotations(raw, report)
    name = next(name for name in _LONG_NAMES if name in raw.columns)
    unnamed = [absent(metric) or not str(metric).strip() for metric in raw.columns[name]]
    raw.drop(unnamed, name, "scores that name no metric", report, need=True)
    columns = raw.columns
    score = next(name for name in _LONG_SCORES if name in columns)
    reason = next((name for name in _LONG_REASONS if name in columns), None)
    keys = [n for n in columns if {*meanings([n])} & _LONG_KEYS or n.casefold() in (*SYSTEM_NAMES, *REPEAT_NAMES)]
    rows: dict[tuple[str, ...], dict[str, int]] = {}
    metrics = [clean_text(str(metric))[0] for metric in columns[name]]
    for i, (metric, *key) in enumerate(zip(metrics, *(columns[n] for n in keys), strict=True)):
        held = rows.setdefault(tuple(map(str, key)), {})
        if metric in held:
            raise RagnbError(
                f"{raw.where(i)}a second {metric!r} of one sample ({listing(keys)} are the same); name the column "
                "that tells the rows apart: columns={'…': 'system'} or columns={'…': 'repeat'}"
            )
        held[metric] = i
    firsts = [next(iter(held.values())) for held in rows.values()]
    wide: dict[str, list[Any]] = {n: [columns[n][i] for i in firsts] for n in keys}
    for other in [n for n in columns if n not in (*keys, name, score, reason)]:
        cells = columns[other]
        if all(len({str(cells[i]) for i in held.values()}) == 1 for held in rows.values()):
            wide[other] = [cells[i] for i in firsts]
        else:
            report.add("left_out", other, "differs between the metrics of a sample", len(cells))
    for metric in dict.fromkeys(m for held in rows.values() for m in held):
        at = [held.get(metric) for held in rows.values()]
        wide[metric] = [None if i is None else columns[score][i] for i in at]
        if reason:
            wide[f"{metric}__reason"] = [None if i is None else columns[reason][i] for i in at]
    report.add("mapped", name, "one row a metric, turned to one row a sample", len(raw))
    raw.keep(firsts)
    raw.columns = wide


def _read_annotations(raw: Raw, report: Lossy) -> None:
    """Bring an export of Langfuse or Phoenix to a sample, a metric, a score and a comment."""
    people = "annotations by people; read_ratings reads them"
    if _is_langfuse(set(raw.columns)):
        raw.drop([kind == "ANNOTATION" for kind in raw.columns["source"]], "source", people, report, need=True)
        texts = [kind not in _LANGFUSE_NUMBERS for kind in raw.columns["dataType"]]
        raw.drop(texts, "dataType", "scores that are no numbers", report, need=True)
        name, score, comment, ids = "name", "value", "comment", scored_ids(raw)
    elif _is_phoenix(set(raw.columns)):
        by_people = [str(kind).upper() == "HUMAN" for kind in raw.columns["annotator_kind"]]
        raw.drop(by_people, "annotator_kind", people, report, need=True)
        name, score = "annotation_name", "score" if "score" in raw.columns else "result.score"
        comment = score.replace("score", "explanation")
        ids = raw.columns.get("context.span_id", raw.columns.get("span_id", [None] * len(raw)))
    else:
        return
    report.add("mapped", name, "metric", len(raw))
    kept = {"sample_id": ids, "metric": raw.columns[name], "score": raw.columns[score]}
    raw.columns = kept | ({"comment": raw.columns[comment]} if comment in raw.columns else {})


haystack = Layout("haystack", lambda columns: len(_systems_beside(columns)) > 1, _read_haystack)
trulens = Layout(
    "trulens",
    lambda columns: {"record_id", "input"} <= columns
    and bool({"app_json", "record_json", "app_id"} & columns or any(name.endswith("_calls") for name in columns)),
    _read_trulens,
)
# The layouts of tools, in the order in which they are looked for.
LAYOUTS = {
    layout.name: layout
    for layout in (
        haystack,
        trulens,
        Layout("mlflow", lambda columns: any(name.endswith(_MLFLOW) for name in columns), _read_mlflow),
        Layout(
            "deepeval",  # whose context is what should be retrieved, not what was
            lambda columns: bool({*_DEEPEVAL} & columns)
            or ("context" in columns and bool({"retrievalContext", "retrieval_context"} & columns)),
            _read_deepeval,
        ),
        Layout("promptfoo", lambda columns: {"vars", "testIdx"} <= columns, _read_promptfoo),
        Layout(
            "spans",  # of Phoenix, and its retrieved documents, whose document is a text and not a name
            lambda columns: ("document" in columns and bool({"document_position", "document_score"} & columns))
            or "attributes.input.value" in columns,
            _read_spans,
        ),
        Layout("rgb", lambda columns: {"query", "answer", "positive", "negative"} <= columns, _read_rgb),
        Layout("long", _is_long, _read_long),
        Layout(
            "ragas",  # what to_pandas() prints, from June 2023 on
            lambda columns: columns >= {"question", "answer", "contexts"}
            or ("user_input" in columns and bool({"response", "retrieved_contexts", "reference"} & columns)),
            _leave,
        ),
    )
}
