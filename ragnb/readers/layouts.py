"""How tools lay out their tables: one row of `LAYOUTS` a tool, which brings a table to one row a sample.

A layout looks at the column names (`sniff`), calls columns by our `names`, and lays the cells out anew (`read`);
through `scored` it hands over what it knows of its metrics: range, direction, threshold, and which cells are
failures and no scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ragnb.errors import RagnbError, listing, place
from ragnb.readers.cells import NO_NUMBER, NUMBER, as_id, parse_list
from ragnb.readers.names import REPEAT_NAMES, SYSTEM_NAMES, WORDS, meanings
from ragnb.readers.raw import Lossy, Raw, Scale, Values, absent, clean_text, from_records, is_text, unpacked
from ragnb.schema import CASE_COLUMNS, METRICS

_DUMPED = {"scores", "dataset", "binary_columns"}
_HAYSTACK = "_metric_"
_DEEPEVAL = ("metricsData", "metrics_data")
_MLFLOW = ("/value", "/v1/score")
_MLFLOW_SIDES = {"inputs": "question", "outputs": "answer", "expectations": "ground_truth_answer"}
_YES = {"yes": 1.0, "no": 0.0}
_WHO = {"ANNOTATION": "human", "HUMAN": "human", "EVAL": "judge", "LLM": "judge"}
_LONG_NAMES = ("metric", "metric_name", "scorer", "指标", "评估指标", "指标名称")
_LONG_SCORES = ("score", "value", "metric_value", "分数", "得分")
_LONG_REASONS = ("reason", "explanation", "comment", "rationale", "理由")
_UNIT = Scale()
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
    read: Callable[[Raw, Lossy], None] | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    def lay_out(self, raw: Raw, report: Lossy) -> None:
        """Bring a table of this layout to one row a sample (or rating)."""
        if self.read or self.names:
            raw.columns = {name: list(cells) for name, cells in raw.columns.items()}
        raw.rename(self.names, report)
        if self.read:
            self.read(raw, report)


def lay_out(raw: Raw, report: Lossy) -> str:
    """Bring a tool's layout to one row a sample and return its name, ``table`` where no tool is known by it."""
    columns = set(raw.columns)
    if columns >= _DUMPED:
        raise RagnbError(
            f"{place(raw.file)}is a dumped result object (columns {listing(raw.columns)}), not a table of "
            "samples; save result.to_pandas() instead"
        )
    if "..." in columns:
        report.add("left_out", "...", "columns that a printed table elides", len(raw.columns.pop("...")))
    for layout in LAYOUTS.values():
        if layout.sniff(columns):
            layout.lay_out(raw, report)
            return layout.name
    return "table"


def check_samples(raw: Raw) -> None:
    """Refuse totals, one row a system or setting, and rows that do not fit the header."""
    known = ({*CASE_COLUMNS} - {"system"}) & raw.columns.keys()
    texts = [name for name, cells in raw.columns.items() if not known and _is_text(cells)]
    if texts and (raw.uneven or raw.distinct(*texts) == len(raw)):
        raise RagnbError(
            f"{place(raw.file)}is a table of totals, one row a system or setting (columns "
            f"{listing(raw.columns)}), with no question and no sample id; bring the table they were "
            "computed from, one row a sample; or, if these are samples, say which column is the question: "
            "columns={'…': 'question'}"
        )
    raw.check_even()


def _is_text(cells: Values) -> bool:
    if isinstance(cells, pd.Series) and not is_text(cells):
        return False
    words = {cell.strip().casefold() for cell in cells if isinstance(cell, str)}
    return not all(NUMBER.fullmatch(word) for word in words - NO_NUMBER)


def scored(
    raw: Raw, name: str, cells: Values, failed: Sequence[bool] = (), reasons: Values | None = None, *,
    scale: Scale = _UNIT,
) -> None:  # fmt: skip
    """Set a metric's column, its failed cells marked as such and emptied, and hand over its scale."""
    raw.columns[name] = cells
    if any(failed):
        raw.columns[name] = [None if bad else cell for bad, cell in zip(failed, cells, strict=True)]
        raw.columns[f"{name}__status"] = ["failed" if bad else None for bad in failed]
    if reasons is not None:
        raw.columns[f"{name}__reason"] = reasons
    raw.scales[name] = scale


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
    apps = columns.get("app_name", ())
    versions = [f"{app} {version}" for app, version in zip(apps, columns.get("app_version", ()), strict=False)]
    if len(set(versions)) > len({*map(str, apps)}):
        columns["system"] = versions
        report.add("mapped", "app_version", "system, behind app_name", len(raw))
    for name in [name for name in columns if f"{name}_calls" in columns]:
        failed = [str(cell).strip() in ("-1", "-1.0") for cell in columns[name]]
        better = {str(cell).casefold() for cell in columns.get(f"{name} direction", ())} - {"none", "nan"}
        scored(raw, name, columns[name], failed, scale=Scale(better="lower" if better == {"false"} else "higher"))
        report.add("mapped", name, "-1 is failed", sum(failed))


def _read_mlflow(raw: Raw, report: Lossy) -> None:
    """Name the scorers' columns after them, yes is 1 and no is 0, and take texts out of inputs and outputs."""
    raw.rename(_MLFLOW_SIDES, report, _text_of_a_side)
    for name in [name for name in raw.columns if name.endswith(_MLFLOW)]:
        scorer = name.removesuffix(_MLFLOW[0]).removesuffix(_MLFLOW[1])
        cells = [_YES.get(str(cell).strip().casefold(), cell) for cell in raw.columns.pop(name)]
        report.add("mapped", name, scorer, len(cells))
        raw.rename({f"{scorer}{end}": f"{scorer}__reason" for end in ("/rationale", "/v1/justification")}, report)
        errors = raw.columns.pop(f"{scorer}/error_message", [None] * len(cells))
        failed = [not _empty(error) and _empty(cell) for error, cell in zip(errors, cells, strict=True)]
        scored(raw, scorer, cells, failed)
        report.add("mapped", f"{scorer}/error_message", f"{scorer}__status", len(errors) * any(failed))


def _empty(cell: Any) -> bool:
    return absent(cell) or cell == ""


def _text_of_a_side(cell: Any, canonical: str) -> Any:
    """Return the text in an object of inputs or outputs: the one that is named so, or the only one."""
    cell = unpacked(cell, r"\s*\{.*")
    if not isinstance(cell, Mapping):
        return cell
    only = next(iter(cell.values())) if len(cell) == 1 else None
    text = cell.get(meanings(cell).get(canonical, "expected_response"), only)
    return text if isinstance(text, str) else cell


def _read_deepeval(raw: Raw, report: Lossy) -> None:
    """Take the name of a test case for its id, and spread its metrics."""
    columns = raw.columns
    name = next((name for name in _DEEPEVAL if name in columns), None)
    if name is None:
        return
    if "name" in columns and len({*map(str, columns["name"])}) == len(raw):
        raw.rename({"name": "sample_id"}, report)
    cells = [parse_list(cell) if isinstance(cell, str) else cell for cell in columns[name]]
    given = [cell for cell in cells if not absent(cell)]
    if not all(isinstance(cell, list) and all(isinstance(m, dict) for m in cell) for cell in given):
        report.add("unparsed", name, "no lists of metrics, kept as they are", len(cells))
        return
    del columns[name]
    cases = [{str(m.get("name")): m for m in reversed(cell)} if isinstance(cell, list) else {} for cell in cells]
    report.add("mapped", name, "a column a metric; thresholds and verdicts are left out", len(cells))
    for metric in dict.fromkeys(key for case in cases for key in reversed(case)):
        results = [case.get(metric, {}) for case in cases]
        limits = {m["threshold"] for m in results if isinstance(m.get("threshold"), int | float)}
        failed = [bool(m.get("error")) and absent(m.get("score")) for m in results]
        scale = Scale(threshold=limits.pop() if len(limits) == 1 else None)
        reasons = [m.get("error") or m.get("reason") for m in results]
        scored(raw, metric, [m.get("score") for m in results], failed, reasons, scale=scale)


def _read_promptfoo(raw: Raw, report: Lossy) -> None:
    """Spread the variables and the named scores, and take the provider (and prompt) for the system.

    The caller says which variable is the question, where its name does not: ``columns={"prompt": "question"}``.
    """
    columns, rows = raw.columns, len(raw)
    systems = [c.get("label") or c.get("id") if isinstance(c, dict) else c for c in raw.cells("provider")]
    prompts = raw.cells("promptIdx")
    if len(set(map(str, prompts))) > 1:
        systems = [f"{system or ''} prompt {prompt}" for system, prompt in zip(systems, prompts, strict=True)]
    answers = [cell.get("output") if isinstance(cell, dict) else cell for cell in raw.cells("response")]
    errors = raw.cells("error")
    # A file without failureReason tells by an error beside no answer.
    failed = [
        str(code) in ("2", "2.0") or (absent(code) and _empty(answer) and not _empty(error))
        for code, answer, error in zip(raw.cells("failureReason"), answers, errors, strict=True)
    ]
    columns.pop("id", None)
    samples = columns["testIdx"]
    for name, canonical, cells in (
        ("testIdx", "sample_id", samples), ("provider", "system", systems), ("response", "answer", answers)
    ):  # fmt: skip
        if columns.pop(name, None) is not None:
            columns[canonical] = cells
            report.add("mapped", name, canonical, rows)
    metrics = ["score"] if "score" in columns else []
    for name in ("vars", "namedScores"):
        spread = from_records([cell if isinstance(cell, dict) else {} for cell in columns.pop(name, ())])
        report.add("mapped", name, "a column each", rows * bool(spread))
        for key, cells in spread.items():
            column = f"{name}.{key}" if key in columns else key
            columns[column] = cells
            metrics += [column] if name == "namedScores" else []
    reasons = [error if bad else None for bad, error in zip(failed, errors, strict=True)] if any(failed) else None
    for name in metrics:
        scored(raw, name, columns[name], failed, reasons)
        report.add("mapped", name, "the answer was not made or not scored (failureReason 2): failed", sum(failed))


def _annotations(raw: Raw, report: Lossy) -> None:
    """Say what was scored, and who by, a person or a judge; leave out scores that are no numbers."""
    if "traceId" in raw.columns:
        texts = [str(kind) not in ("NUMERIC", "BOOLEAN") for kind in raw.columns.pop("dataType")]
        spans = zip(raw.columns.pop("traceId"), raw.columns.pop("observationId", [None] * len(texts)), strict=True)
        raw.columns["item_id"] = [":".join(filter(None, map(as_id, pair))) for pair in spans]
        raw.drop(texts, "dataType", "scores that are no numbers", report, need=True)
    columns = raw.columns
    columns["rater_kind"] = kinds = [_WHO.get(str(kind).upper()) for kind in columns.pop("annotator_kind")]
    names = columns.pop("user_id", [None] * len(raw))
    columns["rater"] = [as_id(name) or kind for name, kind in zip(names, kinds, strict=True)]


def _read_ratings(raw: Raw, report: Lossy) -> None:
    _annotations(raw, report)
    neither = [kind is None for kind in raw.columns["rater_kind"]]
    raw.drop(neither, "annotator_kind", "scores that neither a person nor a judge gave", report)


langfuse = Layout(
    "langfuse",
    lambda columns: {"name", "value", "source", "dataType", "traceId"} <= columns,
    _read_ratings,
    {"name": "dimension", "value": "score", "source": "annotator_kind", "authorUserId": "user_id"},
)
phoenix = Layout(
    "phoenix",
    lambda columns: {"annotator_kind", "annotation_name"} <= columns and bool({"score", "result.score"} & columns),
    _read_ratings,
    WORDS["annotations"],
)


def _is_long(columns: Set[str]) -> bool:
    """Whether one column names the metric and another holds its score, of samples that are named."""
    names = set(meanings(columns))
    named = columns & {*_LONG_NAMES} and columns & {*_LONG_SCORES} and names & {"sample_id", "question"}
    return langfuse.sniff(columns) or phoenix.sniff(columns) or bool(named and not names & set(METRICS))


def _read_long(raw: Raw, report: Lossy) -> None:
    """Turn the metrics into columns; what people scored is left out, ratings have a reader of their own.

    Raises
    ------
    RagnbError
        Where one sample has two scores of one metric, with the line of the second.
    """
    for layout in (langfuse, phoenix):
        if layout.sniff(set(raw.columns)):
            raw.rename(layout.names, report)
            _annotations(raw, report)
            people = [kind == "human" for kind in raw.columns["rater_kind"]]
            raw.drop(people, "annotator_kind", "annotations by people; read_ratings reads them", report, need=True)
            names = {"item_id": "sample_id", "dimension": "metric", "score": "score", "comment": "comment"}
            raw.columns = {new: raw.columns[name] for name, new in names.items() if name in raw.columns}
    name = next(name for name in _LONG_NAMES if name in raw.columns)
    unnamed = [absent(metric) or not str(metric).strip() for metric in raw.columns[name]]
    raw.drop(unnamed, name, "scores that name no metric", report, need=True)
    columns = raw.columns
    score = next(name for name in _LONG_SCORES if name in columns)
    reason = next((name for name in _LONG_REASONS if name in columns), None)
    keys = [n for n in columns if {*meanings([n])} & _LONG_KEYS or n.casefold() in (*SYSTEM_NAMES, *REPEAT_NAMES)]
    metrics = [clean_text(str(metric))[0] for metric in columns[name]]
    samples: dict[tuple[str, ...], dict[str, int]] = {}
    for i, (metric, *key) in enumerate(zip(metrics, *(columns[n] for n in keys), strict=True)):
        if samples.setdefault(tuple(map(str, key)), {}).setdefault(metric, i) != i:
            raise RagnbError(
                f"{raw.where(i)}a second {metric!r} of one sample ({listing(keys)} are the same); name the column "
                "that tells the rows apart: columns={'…': 'system'} or columns={'…': 'repeat'}"
            )
    firsts = [next(iter(rows.values())) for rows in samples.values()]
    wide: dict[str, Values] = {}
    for other in [*keys, *(n for n in columns if n not in (*keys, name, score, reason))]:
        cells = columns[other]
        if other in keys or all(len({str(cells[i]) for i in rows.values()}) == 1 for rows in samples.values()):
            wide[other] = [cells[i] for i in firsts]
        else:
            report.add("left_out", other, "differs between the metrics of a sample", len(cells))
    for metric in dict.fromkeys(metric for rows in samples.values() for metric in rows):
        for source, made in ((score, metric), (reason, f"{metric}__reason")):
            if source:
                cells = [columns[source][rows[metric]] if metric in rows else None for rows in samples.values()]
                wide[made] = cells
    report.add("mapped", name, "one row a metric, turned to one row a sample", len(raw))
    raw.keep(firsts)
    raw.columns = wide


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
        Layout(
            "mlflow",
            lambda columns: any(name.endswith(_MLFLOW) for name in columns),
            _read_mlflow,
            {"request_id": "sample_id"},
        ),
        Layout(
            "deepeval",
            lambda columns: bool({*_DEEPEVAL} & columns)
            or ("context" in columns and bool({"retrievalContext", "retrieval_context"} & columns)),
            _read_deepeval,
            {"context": "ground_truth_contexts"},  # what should be retrieved, not what was
        ),
        Layout("promptfoo", lambda columns: {"vars", "testIdx"} <= columns, _read_promptfoo),
        Layout(
            "spans",  # of Phoenix, and its retrieved documents, whose document is a text and not a name
            lambda columns: ("document" in columns and bool({"document_position", "document_score"} & columns))
            or "attributes.input.value" in columns,
            names=WORDS["spans"],
        ),
        Layout(
            "rgb",
            lambda columns: {"query", "answer", "positive", "negative"} <= columns,
            names={"answer": "ground_truth_answer"},
        ),
        Layout("long", _is_long, _read_long),
        Layout(
            "ragas",  # what to_pandas() prints, from June 2023 on
            lambda columns: columns >= {"question", "answer", "contexts"}
            or ("user_input" in columns and bool({"response", "retrieved_contexts", "reference"} & columns)),
        ),
    )
}
