"""Table layouts of tools: one row of ``layouts.toml`` per tool, converted to one row per sample.

A layout knows a tool's columns (`known_by`), calls them by our `names`, and may lay the cells out anew; through
`scored` it hands over what it knows of its metrics: range, direction, threshold, and which cells are failures.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ragnb.errors import RagnbError, listing, place
from ragnb.readers.cells import as_id
from ragnb.readers.facts import Direction
from ragnb.readers.kinds import as_number, set_skipped
from ragnb.readers.lists import parse_list
from ragnb.readers.names import WORDS, meanings, words_in
from ragnb.readers.owner import is_repeat_name, owner_rank, stack_systems
from ragnb.readers.raw import Lossy, Raw, Values, absent, clean_text, from_records, unpacked
from ragnb.readers.results import UNIT_SCALE, scored
from ragnb.readers.verdicts import note_verdicts
from ragnb.schema import METRICS

TOOLS = tomllib.loads(Path(__file__).with_name("layouts.toml").read_text(encoding="utf-8"))
_DUMPED = {"scores", "dataset", "binary_columns"}
_HAYSTACK = "_metric_"
_HIGHER_IS_BETTER = {"true": "higher", "false": "lower"}
_BROKEN = re.compile(
    r"^Error running|threw (an )?error|execution failed|^API (call )?error", re.IGNORECASE
)
# What would count them twice.
MEAN_OF_NAMED = "the mean of the named scores of a row"
# What only it counts, and how far rounding may take it from them.
MORE_THAN_NAMED = "counts assertions without a name too: a metric beside the named scores"
_ROUNDED_SCORE = 0.011
_LONG_KEYS = {"sample_id", "question", "system", "repeat", "doc_name"}


def sniff(tool: str, columns: Set[str]) -> bool:
    """Return whether columns are those of a tool's tables.

    Examples
    --------
    >>> sniff("ragas", {"user_input", "response"}), sniff("ragas", {"question", "answer"})
    (True, False)
    >>> sniff("deepeval", {"input", "context", "retrieval_context"})
    True
    >>> sniff("long", {"sample_id", "metric", "score"}), sniff("long", {"metric", "score"})
    (True, False)
    """
    rows = TOOLS[tool]["known_by"]
    known = any(
        all(any(fnmatchcase(name, sign) for name in columns) for sign in signs) for signs in rows
    )
    return known and _FITS.get(tool, bool)(columns)


def lay_out(raw: Raw, report: Lossy, tools: Iterable[str] = TOOLS) -> str:
    """Convert a tool's layout to one row per sample (or annotation) and return its name, else ``table``."""
    columns = set(raw.columns)
    if columns >= _DUMPED:
        raise RagnbError(
            f"{place(raw.file)}is a dumped result object (columns {listing(raw.columns)}), not a table of "
            "samples; save result.to_pandas() instead"
        )
    if "..." in columns:
        report.add(
            "left_out", "...", "columns that a printed table elides", len(raw.columns.pop("..."))
        )
    layout = next((tool for tool in tools if sniff(tool, columns)), "table")
    raw.rename(TOOLS.get(layout, {}).get("names", {}), report)
    if layout in _READ:
        raw.columns = {name: list(cells) for name, cells in raw.columns.items()}
        _READ[layout](raw, report)
    return layout


def declare_scales(raw: Raw, layout: str) -> None:
    """Declare the scales of the columns that a layout knows by the names of its metrics.

    A second column of a metric, with other values, is declared by nobody: one meaning counts once.
    """
    tool = TOOLS.get(layout, {})
    ends = tool.get("ends", ())
    seconds = {name for name in raw.columns if _twin(name, raw.scales, ends) is not None}
    for row in tool.get("metrics", ()):
        for name in raw.columns:
            if name not in raw.scales and name not in seconds and _matches(name, row):
                raw.scales[name] = {**UNIT_SCALE, "better": "higher", **_scale_in(row)}


def _scale_in(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row of a layout says of the scale of its metrics."""
    return {key: row[key] for key in UNIT_SCALE if key in row}


def _matches(name: str, row: Mapping[str, Any]) -> bool:
    return any(fnmatchcase(name, sign) for sign in row["match"])


def is_measure(name: str) -> bool:
    """Whether a column counts or times something, so that it is no candidate for a metric.

    Examples
    --------
    >>> is_measure("total_tokens"), is_measure("runDuration"), is_measure("top_k"), is_measure("helpfulness")
    (True, True, True, False)
    """
    known = WORDS["measures"]
    signs = (sign in name for sign in known["signs"])
    return (
        bool(words_in(name) & {*known["words"]}) or name.casefold() in known["names"] or any(signs)
    )


def _systems_beside(columns: Iterable[str]) -> list[str]:
    places = ((name, name.find(_HAYSTACK, 1)) for name in columns)
    return list(
        dict.fromkeys(name[:at] for name, at in places if 0 < at < len(name) - len(_HAYSTACK))
    )


def _read_haystack(raw: Raw, report: Lossy) -> None:
    """Stack the systems of ``comparative_scores``; columns that name no system are repeated for each."""
    systems = sorted(_systems_beside(raw.columns), key=len, reverse=True)
    placed: dict[str, tuple[str, str]] = {}
    for name in raw.columns:
        system = next((system for system in systems if name.startswith(f"{system}_")), None)
        if system is not None:
            short = name.removeprefix(f"{system}_").removeprefix("metric_")
            placed[name] = (system, short)
    stack_systems(raw, placed, report)


def _read_trulens(raw: Raw, report: Lossy) -> None:
    """Take texts out of JSON quotes, versions of an app for systems, and -1, an unparsed reply, for failed."""
    columns = raw.columns
    for name in [name for name in columns if name in ("input", "output")]:
        before, columns[name] = columns[name], [unpacked(cell, '".*"') for cell in columns[name]]
        n = sum(a is not b for a, b in zip(before, columns[name], strict=True))
        report.add("mapped", name, "taken out of its JSON quotes", n)
    apps = columns.get("app_name", ())
    versions = [
        f"{app} {version}"
        for app, version in zip(apps, columns.get("app_version", ()), strict=False)
    ]
    if len(set(versions)) > len({*map(str, apps)}):
        columns["system"] = versions
        report.add("mapped", "app_version", "system, behind app_name", len(raw))
    for name in [name for name in columns if f"{name}_calls" in columns]:
        # An empty list is two characters.
        calls = (not absent(cell) and len(str(cell)) > 2 for cell in columns[f"{name}_calls"])
        pairs = zip(columns[name], calls, strict=True)
        failed = [
            str(cell).strip() in ("-1", "-1.0") or (_empty(cell) and called)
            for cell, called in pairs
        ]
        better = {str(cell).casefold() for cell in columns.get(f"{name} direction", ())} - {
            "none",
            "nan",
        }
        scored(
            raw,
            name,
            columns[name],
            failed,
            scale={
                "better": _HIGHER_IS_BETTER.get(next(iter(better), ""))
                if len(better) == 1
                else None
            },
        )
        report.add("mapped", name, "-1 and calls without a score are failed", sum(failed))


def _read_mlflow(raw: Raw, report: Lossy) -> None:
    """Name the scorers' columns after them, yes is 1 and no is 0, and take texts out of inputs and outputs."""
    raw.rename(TOOLS["mlflow"]["sides"], report, _text_of_a_side)
    for name in [name for name in raw.columns if name.endswith(("/value", "/score"))]:
        scorer = name.removesuffix("/value").removesuffix("/score").removesuffix("/v1")
        words = TOOLS["mlflow"]["words"]
        cells = [words.get(str(cell).strip().casefold(), cell) for cell in raw.columns.pop(name)]
        report.add("mapped", name, scorer, len(cells))
        raw.rename(
            {f"{scorer}{end}": f"{scorer}__reason" for end in ("/rationale", "/v1/justification")},
            report,
        )
        failed = _broken(raw.columns.pop(f"{scorer}/error_message", [None] * len(cells)), cells)
        scored(raw, scorer, cells, failed)
        report.add(
            "mapped", f"{scorer}/error_message", f"{scorer}__status", len(cells) * any(failed)
        )


def _empty(cell: Any) -> bool:
    return absent(cell) or cell == ""


def _broken(errors: Iterable[Any], cells: Iterable[Any]) -> list[bool]:
    """Return which scores are failures: those that are not there beside an error."""
    return [_empty(cell) and not _empty(error) for error, cell in zip(errors, cells, strict=True)]


def _text_of_a_side(cell: Any, canonical: str) -> Any:
    """Return the text in an object of inputs or outputs: the one that is named so, or the only one."""
    cell = unpacked(cell, r"\s*\{.*")
    if not isinstance(cell, Mapping):
        return cell
    only = next(iter(cell.values())) if len(cell) == 1 else None
    text = cell.get(meanings(cell).get(canonical, "expected_response"), only)
    if isinstance(text, str):
        return text
    return cell


def _read_deepeval(raw: Raw, report: Lossy) -> None:
    """Take the name of a test case for its id, and spread its metrics."""
    if "name" in raw.columns and len({*map(str, raw.columns["name"])}) == len(raw):
        raw.rename({"name": "sample_id"}, report)
    name = next((name for name in ("metricsData", "metrics_data") if name in raw.columns), "")
    lists = [_metrics_in(cell) for cell in raw.columns.get(name, ())]
    if lists and all(row is None for row in lists):
        report.add("unparsed", name, "no lists of metrics, kept as they are", len(lists))
        return
    damaged = [row for row, found in enumerate(lists) if found is None]
    raw.lose(damaged, f"{name} is no list of metrics", report)
    lists = [row for row in lists if row is not None]
    columns = raw.columns
    columns.pop(name, None)
    report.add(
        "mapped",
        name,
        "a column a metric; thresholds become gates, verdicts are left out",
        len(lists),
    )
    for metric, found in from_records(
        {str(m.get("name")): m for m in reversed(row or [])} for row in lists
    ).items():
        results: list[Any] = [result or {} for result in found]
        scores = [result.get("score") for result in results]
        errors = [result.get("error") for result in results]
        verdicts = [result.get("success") for result in results]
        limits = [result.get("threshold") for result in results]
        reasons = [result.get("error") or result.get("reason") for result in results]
        # A case that did not pass and has no score was not measured.
        unmeasured = [_empty(s) and v is False for s, v in zip(scores, verdicts, strict=True)]
        broken = _broken(errors, scores)
        failed = [a or b for a, b in zip(unmeasured, broken, strict=True)]
        note_verdicts(raw, metric, scores, limits, verdicts)
        scored(raw, metric, scores, failed, reasons, _limit(results))


def _metrics_in(cell: Any) -> list[dict[str, Any]] | None:
    """Return the metrics in a cell, none of an empty one; None for what is no list of objects."""
    if absent(cell) or cell == "":
        return []
    items = parse_list(cell) if isinstance(cell, str) else cell
    listed = isinstance(items, list) and all(isinstance(metric, dict) for metric in items)
    if listed:
        return items
    return None


def _limit(results: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the threshold that all results of a metric share, if they do."""
    limits = {cell for result in results if not absent(cell := result.get("threshold"))}
    return {"threshold": limits.pop() if len(limits) == 1 else None}


def _read_promptfoo(raw: Raw, report: Lossy) -> None:
    """Spread the variables and the named scores, and take the provider (and prompt) for the system.

    The caller says which variable is the question, where its name does not: ``columns={"prompt": "question"}``.
    """
    columns = raw.columns
    rows = len(raw)
    errors = raw.cells("error")
    prompts = raw.cells("promptIdx")
    answers = raw.cells("answer")
    systems = [
        c.get("label") or c.get("id") if isinstance(c, dict) else c for c in raw.cells("system")
    ]
    if len(set(map(str, prompts))) > 1:
        systems = [
            f"{system or ''} prompt {prompt}"
            for system, prompt in zip(systems, prompts, strict=True)
        ]
    answers = [cell.get("output") if isinstance(cell, dict) else cell for cell in answers]
    columns |= {n: cells for n, cells in (("system", systems), ("answer", answers)) if n in columns}
    # A file without failureReason tells by an error beside no answer.
    codes = zip(raw.cells("failureReason"), _broken(errors, answers), strict=True)
    lost = [str(code) in ("2", "2.0") or (absent(code) and broken) for code, broken in codes]
    columns.pop("id", None)
    metrics = ["score"] if "score" in columns else []
    for name in ("vars", "namedScores"):
        spread = from_records(
            [cell if isinstance(cell, dict) else {} for cell in columns.pop(name, ())]
        )
        report.add("mapped", name, "a column each", rows * bool(spread))
        named = {f"{name}.{key}" if key in columns else key: cells for key, cells in spread.items()}
        columns |= named
        if name == "namedScores":
            metrics += named
    graded = [_assertions(cell) for cell in raw.cells("gradingResult")]
    for name in metrics:
        own = [row.get(name, {}) for row in graded]
        # A row's score counts an assertion that broke as 0.
        parts = [[*row.values()] if name == "score" else [row.get(name, {})] for row in graded]
        failed = [
            bad or any(c.get("broken") for c in row) for bad, row in zip(lost, parts, strict=True)
        ]
        cells = [cell.get("score", given) for cell, given in zip(own, columns[name], strict=True)]
        whys = zip(failed, errors, own, strict=True)
        reasons = [(error or cell.get("reason")) if bad else None for bad, error, cell in whys]
        limits = [cell.get("threshold") for cell in own]
        verdicts = [
            None if bad else cell.get("pass") for bad, cell in zip(failed, own, strict=True)
        ]
        note_verdicts(raw, name, cells, limits, verdicts)
        scored(raw, name, cells, failed, reasons, _limit(own))
        why = "the answer was not made or not scored (failureReason 2, or an error): failed"
        report.add("mapped", name, why, sum(failed))
    if len(metrics) > 1 and metrics[0] == "score":
        if _counts_more(columns["score"], [columns[name] for name in metrics[1:]]):
            report.add("kept", "score", MORE_THAN_NAMED, rows)
            return
        # The score of a row is the mean of its named scores, and would count them twice.
        raw.scales.pop("score", None)
        for name in ("score", "score__status", "score__reason"):
            columns.pop(name, None)
        report.add("left_out", "score", MEAN_OF_NAMED, rows)


def _read_promptfoo_csv(raw: Raw, report: Lossy) -> None:
    """Take the metrics and the answer of the one provider of a CSV export, whose scores have two decimals."""
    columns = raw.columns
    failed = [str(word) == "ERROR" for word in columns["Status"]]
    for name in list(columns):
        if name.startswith("Metric: "):
            scored(raw, name.removeprefix("Metric: "), columns.pop(name), failed)
            report.add("mapped", name, "a metric; the status ERROR is failed", len(failed))
    if "Score" in columns and raw.scales:
        named = [columns[name] for name in raw.scales]
        total = columns.pop("Score")
        scores = [None if bad else cell for bad, cell in zip(failed, total, strict=True)]
        if _counts_more(scores, named):
            scored(raw, "score", total, failed)
            report.add("kept", "Score", MORE_THAN_NAMED, len(failed))
        else:
            report.add("left_out", "Score", MEAN_OF_NAMED, len(failed))
    raw.rename(
        dict.fromkeys([name for name in columns if name.startswith("[")][:1], "answer"), report
    )


def _counts_more(scores: Iterable[Any], named: Sequence[Sequence[Any]]) -> bool:
    """Return whether the score of a row lies beyond its named scores, so that it is no mean of them alone."""
    for score, *parts in zip(scores, *named, strict=True):
        total = as_number(score)
        numbers = [number for cell in parts if (number := as_number(cell)) is not None]
        if total is None or len(numbers) < len(parts):
            continue
        if not min(numbers) - _ROUNDED_SCORE <= total <= max(numbers) + _ROUNDED_SCORE:
            return True
    return False


def _assertions(grading: Any) -> dict[str, dict[str, Any]]:
    """Return the result of each metric that one assertion gives; its named score leaves out a weight of 0."""
    made: dict[str, list[dict[str, Any]]] = {}
    if isinstance(grading, dict):
        for part in (grading or {}).get("componentResults") or ():
            about = part.get("assertion") or {}
            made.setdefault(str(about.get("metric")), []).append(
                {
                    "score": part.get("score"),
                    "pass": part.get("pass"),
                    "reason": part.get("reason"),
                    "threshold": about.get("threshold"),
                    "broken": bool(_BROKEN.search(str(part.get("reason"))[:200])),
                }
            )
    return {name: parts[0] for name, parts in made.items() if len(parts) == 1}


def _read_inspect(raw: Raw, report: Lossy) -> None:
    """Take letters for the numbers that inspect makes of them, and the text out of the model's output."""
    scores = [cell if isinstance(cell, dict) else {} for cell in raw.columns.pop("scores")]
    raw.columns["answer"] = [
        _completion(output)
        or next((score["answer"] for score in row.values() if score.get("answer")), None)
        for output, row in zip(raw.columns.pop("answer", [None] * len(raw)), scores, strict=True)
    ]
    spread = [
        {
            f"{scorer}.{key}" if key else scorer: (cell, score.get("explanation"))
            for scorer, score in row.items()
            for value in [score.get("value")]
            for key, cell in (value.items() if isinstance(value, dict) else [("", value)])
        }
        for row in scores
    ]
    for name, cells in from_records(spread).items():
        pairs = [cell or (None, None) for cell in cells]
        grades = TOOLS["inspect"]["grades"]
        failed = _broken(raw.cells("error"), cells)  # NaN without an error was not to be scored
        scored(
            raw, name, [grades.get(str(v), v) for v, _ in pairs], failed, [why for _, why in pairs]
        )
        report.add("mapped", f"scores.{name}", "C, P, I and N are 1, 0.5, 0 and 0", len(cells))


def _completion(output: Any) -> Any:
    """Return the text of a model's output."""
    if isinstance(output, dict):
        for choice in output.get("choices") or ():
            content = choice["message"].get("content")
            if isinstance(content, list):
                parts = content
            else:
                parts = [{"text": content}]
            return "\n".join(part["text"] for part in parts if part.get("text"))
    if isinstance(output, str):
        return output
    return None


def _read_flattened(raw: Raw, report: Lossy) -> None:
    """Take prefixes off the columns of LangSmith and Azure, and the thresholds and reasons of their metrics."""
    columns = raw.columns
    tool = TOOLS["flattened"]
    scores = []
    of_models = set()
    references = [name for name in columns if name.startswith("reference.")]
    for name in list(columns):
        side, _, rest = name.partition(".")
        evaluator, _, short = rest.rpartition(".")
        if short == "output" and evaluator:
            short = evaluator
        if name in references and (len(references) == 1 or "answer" in meanings([rest])):
            short = "ground_truth_answer"
        if side in tool["sides"] and short and short not in columns:
            raw.rename({name: short}, report)
            if side == "feedback" or (side == "outputs" and evaluator):
                scores.append(short)
            if side == "outputs":
                of_models |= {short}
    for name in scores:
        sides = (columns.get(f"{name.removesuffix('_score')}_{end}") for end in tool["verdicts"])
        beside = next((cells for cells in sides if cells is not None), None)
        base = name.removesuffix("_score")
        limit = columns.get(f"{name}_threshold", columns.get(f"{base}_threshold"))
        if beside is not None and name in columns:
            note_verdicts(raw, name, columns[name], limit or [None] * len(raw), beside)
    limits = {name: columns.pop(f"{name}_threshold", ()) for name in scores}
    differing = set()
    ended = {name: [*columns.get(f"{name}_status", ())] for name in scores}
    for name in scores:
        twin = _twin(name, scores, tool["ends"])
        if twin is not None and name in columns:
            if _alike(columns[name], columns[twin]):
                why = "said by another column of the metric too"
                report.add("left_out", name, why, len(columns.pop(name)))
            else:  # it stays, as a column that nobody declared: the total says that it leaves it out
                differing.add(name)
        raw.rename({f"{name}_reason": f"{name}__reason"}, report)
    counted = [name for name in scores if name in columns and name not in differing]
    for name in (name for name in counted if not is_measure(name)):
        failed = _broken(raw.cells("error"), columns[name])
        known = tool["metrics"] if name in of_models else ()
        row: dict[str, Any] = next(
            ({"better": "higher", **row} for row in known if _matches(name, row)), {}
        )
        scored(
            raw,
            name,
            columns[name],
            failed,
            (),
            _scale_in(row) | _limit({"threshold": cell} for cell in limits[name]),
        )
        set_skipped(raw, name, ended.get(name, ()), report)


def _twin(name: str, scores: Collection[str], ends: Collection[str]) -> str | None:
    """Return the column of the same metric that counts in place of one; None where there is none."""
    base, _, end = name.rpartition("_")
    if name.startswith("gpt_") and name[4:] in scores:
        return name[4:]
    if base in scores and end in ends:
        return base
    return None


def _alike(one: Iterable[Any], other: Iterable[Any]) -> bool:
    """Whether two columns never hold different scores in a row; an empty cell or a verdict is no other score."""
    pairs = zip(one, other, strict=True)
    return not any(_is_score(mine) and _is_score(its) and mine != its for mine, its in pairs)


def _is_score(cell: Any) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool) and not absent(cell)


def _read_phoenix(raw: Raw, report: Lossy) -> None:
    """Take the scores out of the objects of `evaluate_dataframe`, with their direction and how they ended."""
    for name in [name for name in raw.columns if name.endswith("_execution_details")]:
        metric = name.removesuffix("_execution_details")
        ends = [_object_of(cell).get("status") for cell in raw.columns.pop(name)]
        scores = [
            _object_of(cell) for cell in raw.columns.pop(f"{metric}_score", [None] * len(ends))
        ]
        directions = {str(score.get("direction")) for score in scores if score.get("direction")}
        failed = [end == "FAILED" for end in ends]
        reasons = [score.get("explanation") for score in scores]
        lower = "lower" if "minimize" in directions else "higher"
        scale = {"better": lower if directions else None}
        scored(raw, metric, [score.get("score") for score in scores], failed, reasons, scale)
        report.add("mapped", f"{metric}_score", "the score of an object, and its reason", len(ends))


def _object_of(cell: Any) -> Mapping[str, Any]:
    if isinstance(cell, str):
        items = parse_list(f"[{cell}]")
    else:
        items = [cell]
    if items and isinstance(items[0], Mapping):
        return items[0]
    return {}


def _read_annotations(raw: Raw, report: Lossy) -> None:
    """Say what was scored, and who by, a person or a judge; leave out scores that are not numbers."""
    if "traceId" in raw.columns:
        texts = [str(kind) not in ("NUMERIC", "BOOLEAN") for kind in raw.columns.pop("dataType")]
        spans = zip(
            raw.columns.pop("traceId"),
            raw.columns.pop("observationId", [None] * len(texts)),
            strict=True,
        )
        raw.columns["item_id"] = [":".join(filter(None, map(as_id, pair))) for pair in spans]
        raw.drop(texts, "dataType", "scores that are not numbers", report, need=True)
    columns = raw.columns
    who = TOOLS["phoenix"]["annotators"]
    columns["rater_kind"] = kinds = [
        who.get(str(kind).upper()) for kind in columns.pop("annotator_kind")
    ]
    names = columns.pop("user_id", [None] * len(raw))
    columns["rater"] = [as_id(name) or kind for name, kind in zip(names, kinds, strict=True)]


def judged(raw: Raw, report: Lossy) -> None:
    """Pivot annotations to one row per sample; human scores are excluded, ratings have their own reader."""
    people = [kind == "human" for kind in raw.columns["rater_kind"]]
    raw.drop(
        people, "annotator_kind", "human annotations; read_ratings reads them", report, need=True
    )
    _keep_directions(raw)
    names = {"item_id": "sample_id", "dimension": "metric", "score": "score", "comment": "comment"}
    raw.columns = {new: raw.columns[name] for name, new in names.items() if name in raw.columns}
    _read_long(raw, report)


def _keep_directions(raw: Raw) -> None:
    """Keep the direction that the metadata of annotations name, ``minimize`` or ``maximize``."""
    words = {"minimize": "lower", "maximize": "higher"}
    said: dict[str, set[str]] = {}
    for metric, cell in zip(raw.cells("dimension"), raw.cells("metadata"), strict=True):
        direction = str(_object_of(cell).get("direction"))
        if direction in words:
            said.setdefault(clean_text(metric), set()).add(direction)
    for metric, found in said.items():
        if len(found) == 1:
            word = found.pop()
            raw.verdicts[metric] = Direction(words[word], f"its metadata say {word}")


def _is_long(columns: Set[str]) -> bool:
    """Whether one column names the metric and another holds its score, of samples that are named."""
    names = set(meanings(columns))
    words = WORDS["long"]
    named = (
        columns & {*words["metric"]}
        and columns & {*words["score"]}
        and names & {"sample_id", "question"}
    )
    return bool(named and not names & set(METRICS))


def _read_long(raw: Raw, report: Lossy) -> None:
    """Turn the metrics into columns.

    Raises
    ------
    RagnbError
        Where one sample has two scores of one metric, with the line of the second.
    """
    word = {
        role: next((n for n in names if n in raw.columns), "")
        for role, names in WORDS["long"].items()
    }
    name = word["metric"]
    score = word["score"]
    reason = word["reason"]
    unnamed = [absent(metric) or not str(metric).strip() for metric in raw.columns[name]]
    raw.drop(unnamed, name, "scores that name no metric", report, need=True)
    columns = raw.columns
    keys = [n for n in columns if {*meanings([n])} & _LONG_KEYS or is_repeat_name(n)]
    for other in columns:
        named = other not in (*keys, name, score, reason) and owner_rank(other) is not None
        # Of a column that may name the system, where without it two rows are of one sample.
        if named and raw.distinct(*keys, name) < raw.distinct(*keys, name, other):
            keys.append(other)
    keys.sort(key=list(columns).index)
    rows: dict[tuple[str, ...], dict[str, int]] = {}
    for i, (metric, *key) in enumerate(
        zip(*(map(str, columns[n]) for n in (name, *keys)), strict=True)
    ):
        row_of_key = rows.setdefault(tuple(key), {})
        if row_of_key.setdefault(clean_text(metric), i) != i:
            raise RagnbError(
                f"{raw.where(i)}a second {metric!r} of one sample ({listing(keys)} are the same); name the column "
                "that distinguishes the rows: columns={'…': 'system'} or columns={'…': 'repeat'}"
            )
    samples = list(rows.values())
    firsts = [next(iter(row_of_key.values())) for row_of_key in samples]
    wide: dict[str, Values] = {n: [columns[n][i] for i in firsts] for n in keys}
    for other in (n for n in columns if n not in (*keys, name, score, reason)):
        if all(
            len({str(columns[other][i]) for i in row_of_key.values()}) == 1
            for row_of_key in samples
        ):
            wide[other] = [columns[other][i] for i in firsts]
        else:
            report.add("left_out", other, "differs between the metrics of a sample", len(raw))
    for metric in dict.fromkeys(metric for row_of_key in samples for metric in row_of_key):
        for source, made in ((score, metric), (reason, f"{metric}__reason")):
            if source:
                wide[made] = [
                    columns[source][row_of_key[metric]] if metric in row_of_key else None
                    for row_of_key in samples
                ]
    report.add("mapped", name, "one row a metric, turned to one row a sample", len(raw))
    raw.keep(firsts)
    raw.columns = wide


_READ = {
    "haystack": _read_haystack,
    "trulens": _read_trulens,
    "mlflow": _read_mlflow,
    "deepeval": _read_deepeval,
    "promptfoo": _read_promptfoo,
    "langfuse": _read_annotations,
    "phoenix": _read_annotations,
    "long": _read_long,
    "inspect": _read_inspect,
    "flattened": _read_flattened,
    "phoenix_evals": _read_phoenix,
    "promptfoo_csv": _read_promptfoo_csv,
}
_FITS = {"haystack": lambda columns: len(_systems_beside(columns)) > 1, "long": _is_long}
