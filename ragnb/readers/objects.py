"""Objects of other libraries as plain values: passages with their text, records, results of evaluators.

What such an object prints is never its text: LlamaIndex cuts it, others print an address. An object without a text
is refused with its type, and a printed one in a file is read only where all of it can be.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
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
    # LlamaIndex's NodeWithScore holds the score; its node has the id and the metadata.
    inner = getattr(item, "node", None)
    for name, attributes in _BESIDE.items():
        value = _first(item, attributes)
        if value is None:
            value = _first(inner, attributes)
        if isinstance(value, Mapping):
            value = dict(value)
        if value is not None:
            fields[name] = value
    return fields


def _text_of(item: Any) -> str | None:
    """Return the text of a passage object, or of the object in it; None where there is none."""
    for name in TEXT_ATTRIBUTES:
        text = None
        # The properties of a node without text raise.
        with suppress(Exception):
            text = getattr(item, name, None)
            if callable(text):
                text = text()
        if isinstance(text, str):
            return text
    for name in ("node", "document", "chunk", "doc"):
        inner = getattr(item, name, None)
        if isinstance(inner, str):
            return inner
        if inner is not None and is_object(inner):
            return _text_of(inner)
    return None


def _first(holder: Any, names: Iterable[str]) -> Any:
    """Return the first of some attributes that holds a text, a number or a mapping with something in it."""
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
        of_item = _printed(item)
        if of_item is None:
            return None
        passages += of_item
    return passages


def _expression(text: str) -> str:
    """Return a print as an expression of Python, as far as it can be one."""
    document = _LANGCHAIN.fullmatch(text)
    if document:
        arguments = ", ".join(part for part in document.groups() if part)
        text = f"Document({arguments})"

    def without_member(match: re.Match[str]) -> str:
        # `<ObjectType.TEXT: '1'>` is no Python. The pattern matches quoted texts too, so that such a member inside
        # a text stays as it is.
        return "None" if match[1] else match[0]

    return _MEMBER.sub(without_member, text)


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
        if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
            return texts
        return None
    arguments = {keyword.arg: keyword.value for keyword in item.keywords if keyword.arg}
    text = _first_literal(arguments, TEXT_ATTRIBUTES)
    if isinstance(text, str) and text:
        fields: dict[str, Any] = {"text": text}
        for name, sources in _BESIDE.items():
            value = _first_literal(arguments, sources)
            if value is not None:
                fields[name] = value
        return [fields]
    # Such as NodeWithScore(node=TextNode(…), score=0.5) and ScoredDocument(document=Document(…)).
    inner = next((arguments[name] for name in ("node", "document") if name in arguments), None)
    if inner is None:
        return None
    return _printed(inner)


def _first_literal(arguments: Mapping[str, ast.expr], names: Iterable[str]) -> Any:
    """Return the value of the first of some arguments that is there; None where it is no literal."""
    for name in names:
        if name in arguments:
            return _literal(arguments[name])
    return None


def _literal(value: ast.expr) -> Any:
    """Return the value of an expression of literals; None of any other, and of one that is too deep."""
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
        values = {name: getattr(row, name) for name in fields}
        # A model has all its fields, even those that nobody set, such as the rubrics of a ragas sample.
        return {name: value for name, value in values.items() if value is not None}
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
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
        scores = result.get("individual_scores") if isinstance(result, Mapping) else None
        if isinstance(scores, list):
            columns[str(name)] = list(scores)
    n_rows = max(map(len, columns.values()), default=0)
    run = getattr(source, "run_name", None)
    if run:
        columns["system"] = [str(run)] * n_rows
    return columns


def _are_evaluations(results: Any) -> bool:
    """Return whether a value is a list of LlamaIndex's results: a score or a verdict beside what was asked."""
    if not isinstance(results, list) or not results:
        return False
    attributes = ("score", "passing", "feedback")
    return all(
        is_object(result) and all(hasattr(result, name) for name in attributes)
        for result in results
    )


# What LlamaIndex's results call a text.
_OF_EVALUATION = {
    "question": "query",
    "answer": "response",
    "retrieved_contexts": "contexts",
}


def _of_evaluations(by_metric: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the columns of lists of LlamaIndex's results; row n of each is about the same answer."""
    columns: dict[str, list[Any]] = {}
    n_rows = max(map(len, by_metric.values()))
    for name, attribute in _OF_EVALUATION.items():
        cells = [_first_filled(by_metric.values(), row, attribute) for row in range(n_rows)]
        if any(cell is not None for cell in cells):
            columns[name] = [list(cell) if isinstance(cell, tuple) else cell for cell in cells]
    for metric, results in by_metric.items():
        invalid = [bool(getattr(result, "invalid_result", False)) for result in results]
        gaps = [None] * (n_rows - len(results))
        scores = [_score_of(result, bad) for result, bad in zip(results, invalid, strict=True)]
        columns[metric] = [*scores, *gaps]
        if any(invalid):
            columns[f"{metric}__status"] = ["failed" if bad else None for bad in invalid] + gaps
        reasons = [getattr(result, "invalid_reason", None) or result.feedback for result in results]
        columns[f"{metric}__reason"] = [*reasons, *gaps]
    return columns


def _first_filled(lists: Iterable[Sequence[Any]], row: int, attribute: str) -> Any:
    """Return what the first list with such an attribute in a row holds there; None where none does.

    An evaluator keeps only the texts that it looked at.
    """
    for results in lists:
        if row < len(results):
            value = getattr(results[row], attribute, None)
            if value:
                return value
    return None


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
    # Arrays and series have a dtype.
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
