"""Objects of other libraries as plain values: passages with their text, records, results of evaluators.

What such an object prints is never its text: LlamaIndex cuts it, others print an address. An object without a text
is refused with its type, and a printed one in a file is read only where all of it can be.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from ragnb.errors import RagnbError

# Where the text of a passage object is, the surest first. LangChain calls it page_content, Haystack content;
# get_content() of LlamaIndex knows where a node keeps its own.
TEXT_ATTRIBUTES = ("get_content", "page_content", "content", "text")
# What is taken of a passage object beside its text, under the name that passages of files have.
_BESIDE = {
    "id": ("id", "id_", "node_id", "chunk_id", "doc_id"),
    "score": ("score",),
    "metadata": ("metadata", "meta"),
}
_PLAIN = (str, bytes, int, float, bool, list, tuple, set, dict, type(None))
# The beginning of what objects print, in a list or alone; an address stands in what says nothing else.
_PRINTED = re.compile(
    r"\[?\s{0,9}(<[\w.]+ object at 0x|<[\w.]+\(|array\(\[|Node ID: \S+\s+Text: |page_content=['\"]|"
    r"(Document|NodeWithScore|TextNode|ImageNode|IndexNode|Node|ScoredDocument|Chunk|Passage|RetrievedContext|"
    r"SearchResult|ScoredPoint|Hit|Result|[A-Z]\w{0,30}(Document|Node|Chunk|Passage|Result))\((?=[\w]+=))"
)
_QUOTED = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
# A member of an enumeration, as it stands among the fields that LlamaIndex prints; texts are passed over.
_MEMBER = re.compile(rf"{_QUOTED}|(<[\w.]+: (?:'[^']*'|\d+|None)>)", re.DOTALL)
# What str() makes of a document of LangChain.
_LANGCHAIN = re.compile(rf"(page_content={_QUOTED})(?:\s+(metadata=\{{.*\}}))?", re.DOTALL)
LONGEST_PRINT = 1 << 20  # characters of a printed object that are parsed


def is_object(value: Any) -> bool:
    """Return whether a value is an object of some library, not a value that files hold.

    Examples
    --------
    >>> is_object(object()), is_object({"text": "a"}), is_object("a")
    (True, False, False)
    """
    return not isinstance(value, (*_PLAIN, Mapping)) and not hasattr(value, "dtype")


def passage_fields(item: Any) -> dict[str, Any] | None:
    """Return the text, id, score and metadata of a passage object as a dict; None for one without a text.

    Examples
    --------
    >>> from types import SimpleNamespace as Document
    >>> passage_fields(Document(page_content="One passage.", metadata={"source": "a.pdf"}))
    {'text': 'One passage.', 'metadata': {'source': 'a.pdf'}}
    """
    text = _text_of(item)
    if text is None:
        return None
    fields: dict[str, Any] = {"text": text}
    inner = getattr(item, "node", None)
    for name, sources in _BESIDE.items():
        for holder in (item, inner):
            found = _first(holder, sources)
            if found is not None and name not in fields:
                fields[name] = dict(found) if isinstance(found, Mapping) else found
    return fields


def _text_of(item: Any) -> str | None:
    for name in TEXT_ATTRIBUTES:
        held = None
        # The properties of a node without text raise.
        with suppress(Exception):
            held = getattr(item, name, None)
            if callable(held):
                held = held()
        if isinstance(held, str):
            return held
    for name in ("node", "document", "chunk", "doc"):
        inner = getattr(item, name, None)
        if isinstance(inner, str):
            return inner
        if inner is not None and is_object(inner):
            return _text_of(inner)
    return None


def _first(holder: Any, names: Iterable[str]) -> Any:
    for name in names:
        value = getattr(holder, name, None)
        if isinstance(value, str | int | float) or (isinstance(value, Mapping) and value):
            return value
    return None


def no_text(item: Any, where: str = "") -> RagnbError:
    """Return the refusal of a passage object that has no text, with its type."""
    kind = type(item)
    return RagnbError(
        f"{where}a passage is a {kind.__module__}.{kind.__qualname__} and has no text "
        f"({', '.join(TEXT_ATTRIBUTES)}); pass texts, such as [one.text for one in passages]"
    )


def printed_passages(text: str) -> list[Any] | None:
    """Return the passages that a printed list of objects or array holds; None if it cannot be read whole.

    Nothing is run: the print is parsed, and the texts are taken out of it.

    Examples
    --------
    >>> printed_passages("[Document(metadata={'source': 'a.pdf'}, page_content='One.')]")
    [{'text': 'One.', 'metadata': {'source': 'a.pdf'}}]
    >>> printed_passages("array(['One.', 'Two.'], dtype=object)"), printed_passages("[<Node object at 0x7f>]")
    (['One.', 'Two.'], None)
    """
    if len(text) > LONGEST_PRINT:
        return None
    try:
        tree = ast.parse(_expression(text.strip()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if isinstance(tree, ast.List | ast.Tuple):
        items = tree.elts
    else:
        items = [tree]
    passages: list[Any] = []
    for item in items:
        found = _printed(item)
        if found is None:
            return None
        passages += found
    return passages


def _expression(text: str) -> str:
    """Return a print as an expression of Python, as far as it can be one."""
    document = _LANGCHAIN.fullmatch(text)
    if document:
        text = f"Document({', '.join(part for part in document.groups() if part)})"
    return _MEMBER.sub(lambda match: "None" if match[1] else match[0], text)


def _printed(item: ast.expr) -> list[Any] | None:
    """Return the passages of one printed value: a text, an array of them, or an object with a text."""
    if isinstance(item, ast.Constant):
        if isinstance(item.value, str):
            return [item.value]
        return None
    if not isinstance(item, ast.Call):
        return None
    if isinstance(item.func, ast.Name) and item.func.id == "array":
        texts = _literal(item.args[0]) if item.args else None
        whole = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
        if whole:
            return texts
        return None
    fields = {word.arg: word.value for word in item.keywords if word.arg}
    text = next((_literal(fields[name]) for name in TEXT_ATTRIBUTES if name in fields), None)
    if isinstance(text, str) and text:
        found: dict[str, Any] = {"text": text}
        for name, sources in _BESIDE.items():
            held = next((_literal(fields[one]) for one in sources if one in fields), None)
            if held is not None:
                found[name] = held
        return [found]
    inner = next((fields[one] for one in ("node", "document") if one in fields), None)
    if inner is None:
        return None
    return _printed(inner)


def _literal(value: ast.expr) -> Any:
    with suppress(ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return ast.literal_eval(value)
    return None


def is_print(text: str) -> bool:
    """Return whether a text is what objects print, in place of their texts.

    Examples
    --------
    >>> is_print("[Document(page_content='a')]"), is_print("[Have it reissued]")
    (True, False)
    """
    return bool(_PRINTED.match(text.lstrip()))


# Records and results in memory


def as_record(row: Any) -> Mapping[str, Any] | None:
    """Return a row as a mapping: a dict, a pydantic model or a dataclass; None for anything else.

    Examples
    --------
    >>> as_record({"a": 1}), as_record(7)
    ({'a': 1}, None)
    """
    if isinstance(row, Mapping):
        return row
    fields = getattr(type(row), "model_fields", None)
    if isinstance(fields, Mapping):
        held = {name: getattr(row, name) for name in fields}
        return {name: value for name, value in held.items() if value is not None}
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {one.name: getattr(row, one.name) for one in dataclasses.fields(row)}
    return None


def columns_of_results(source: Any) -> dict[str, list[Any]] | None:
    """Return the columns of what evaluators of other libraries give, a metric each; None for anything else.

    Read are Haystack's ``EvaluationRunResult`` and the dict of lists of LlamaIndex's ``BatchEvalRunner``.
    """
    inputs = getattr(source, "inputs", None)
    results = getattr(source, "results", None)
    if isinstance(inputs, Mapping) and isinstance(results, Mapping):
        return _of_haystack(source, inputs, results)
    if isinstance(source, Mapping) and source and all(map(_are_evaluations, source.values())):
        return _of_evaluations(source)
    if _are_evaluations(source):
        return _of_evaluations({"score": source})
    return None


def _of_haystack(
    source: Any, inputs: Mapping[str, Any], results: Mapping[str, Any]
) -> dict[str, list[Any]]:
    columns = {str(name): list(cells) for name, cells in inputs.items()}
    for name, result in results.items():
        if isinstance(result, Mapping):
            scores = result.get("individual_scores")
        else:
            scores = None
        if isinstance(scores, list):
            columns[str(name)] = list(scores)
    size = max(map(len, columns.values()), default=0)
    run = getattr(source, "run_name", None)
    if run:
        columns["system"] = [str(run)] * size
    return columns


def _are_evaluations(results: Any) -> bool:
    """Return whether a value is a list of LlamaIndex's results: a score or a verdict beside what was asked."""
    wanted = ("score", "passing", "feedback")
    return (
        isinstance(results, list)
        and bool(results)
        and all(is_object(one) and all(hasattr(one, name) for name in wanted) for one in results)
    )


def _of_evaluations(by_metric: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    size = max(map(len, by_metric.values()))
    texts: dict[str, Callable[[Any], Any]] = {
        "question": lambda one: getattr(one, "query", None),
        "answer": lambda one: getattr(one, "response", None),
        "retrieved_contexts": lambda one: getattr(one, "contexts", None),
    }
    for name, read in texts.items():
        cells = [
            next(
                (read(own[i]) for own in by_metric.values() if i < len(own) and read(own[i])), None
            )
            for i in range(size)
        ]
        if any(cell is not None for cell in cells):
            columns[name] = [list(cell) if isinstance(cell, tuple) else cell for cell in cells]
    for metric, results in by_metric.items():
        invalid = [bool(getattr(one, "invalid_result", False)) for one in results]
        gaps = [None] * (size - len(results))
        scores = [_score_of(one, bad) for one, bad in zip(results, invalid, strict=True)]
        columns[metric] = [*scores, *gaps]
        if any(invalid):
            columns[f"{metric}__status"] = ["failed" if bad else None for bad in invalid] + gaps
        reasons = [getattr(one, "invalid_reason", None) or one.feedback for one in results]
        columns[f"{metric}__reason"] = [*reasons, *gaps]
    return columns


def _score_of(result: Any, invalid: bool) -> float | None:
    """Return the score of a result, of one that only passes or fails 1 or 0; None of an invalid one."""
    if invalid:
        return None
    if result.score is not None:
        return float(result.score)
    if result.passing is None:
        return None
    return float(result.passing)


def dict_of_lists(source: Any) -> dict[str, list[Any]] | None:
    """Return a mapping of columns as lists of one length; None for anything else.

    Raises
    ------
    RagnbError
        For lists that differ in length.

    Examples
    --------
    >>> dict_of_lists({"question": ["Who?"], "faithfulness": (1.0,)}), dict_of_lists({"question": "Who?"})
    ({'question': ['Who?'], 'faithfulness': [1.0]}, None)
    """
    if not isinstance(source, Mapping) or not source:
        return None
    if not all(
        isinstance(cells, list | tuple) or hasattr(cells, "dtype") for cells in source.values()
    ):
        return None
    columns = {str(name): list(cells) for name, cells in source.items()}
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len({*lengths.values()}) > 1:
        listed = ", ".join(f"{name}: {n}" for name, n in lengths.items())
        raise RagnbError(
            f"the lists differ in length ({listed}); every column needs one cell a row"
        )
    return columns
