"""Cases → cells of judging: what each answer is judged against, what was cut, and the work on one cell."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from ragnb.errors import unknown
from ragnb.judging.asking import Judge, Options
from ragnb.judging.prompts import cut, evidence_rank, material, numbered, system_prompt
from ragnb.judging.verdict import TEXTS, parse_verdict
from ragnb.readers.cells import as_texts
from ragnb.schema import EvalCase, Rubric
from ragnb.store import Cell, Outcome, count_tokens, new_tag
from ragnb.weights import as_pandas

REPLY_TOKENS = 400


@dataclass(frozen=True)
class Task:
    """One answer to be judged: its cell, and what is told of its passages."""

    cell: Cell
    mode: str
    peek: str | None
    passages: int | None
    cut: int | None
    evidence: int | None


def frame_of(cases: Any) -> pd.DataFrame:
    """Return cases as a pandas frame of its own, one row a case, whatever kind they came as.

    Raises
    ------
    RagnbError
        Where there is no question column, or nothing at all.
    """
    if isinstance(cases, Iterable) and not hasattr(cases, "columns"):
        plain = (c.model_dump(exclude={"results"}) if isinstance(c, EvalCase) else dict(c) for c in cases)
        frame = pd.DataFrame(list(plain), dtype=object)
    else:
        frame = as_pandas(cases).reset_index(drop=True)
    if "question" not in frame.columns:
        raise unknown("column", "question", list(map(str, frame.columns)), "Read files with rn.read_cases.")
    if "sample_id" not in frame.columns:
        frame.insert(0, "sample_id", [str(number) for number in range(1, len(frame) + 1)])
    return frame


def text_of(value: Any) -> str | None:
    """A text that says something, else None."""
    return value if isinstance(value, str) and value.strip() else None


def passages_of(value: Any) -> list[str] | None:
    """The passages of a case: None where the system has not run; a lone text is one passage."""
    several = hasattr(value, "__iter__") and not isinstance(value, str | Mapping)
    return as_texts(list(value) if several else value)[0]


def tasks_of(frame: pd.DataFrame, model: str, rubric: Rubric, options: Options) -> list[Task]:
    """Return one task a row, in the order of the frame.

    Raises
    ------
    RagnbError
        For a `peek` that is no system of the frame.
    """
    rival = _rival(frame, options.peek)
    prompts = {mode: system_prompt(rubric, mode, options.lang) for mode in ("contexts", "peek", "alone")}
    return [_task(row, model, rubric, options, rival, prompts) for row in frame.to_dict("records")]


def _rival(frame: pd.DataFrame, peek: str | None) -> dict[Any, list[str]]:
    """The passages that the rival system retrieved, by sample."""
    if peek is None:
        return {}
    systems = sorted({str(name) for name in frame.get("system", ())})
    if peek not in systems:
        raise unknown("peek", peek, systems, "Name a system of the cases.")
    rows = frame[frame["system"] == peek].to_dict("records")
    found = {row["sample_id"]: passages_of(row.get("retrieved_contexts")) for row in rows}
    return {key: passages for key, passages in found.items() if passages is not None}


def _task(
    row: Mapping[Any, Any], model: str, rubric: Rubric, options: Options, rival: Mapping[Any, list[str]],
    prompts: Mapping[str, str],
) -> Task:  # fmt: skip
    question, answer = text_of(row.get("question")), text_of(row.get("answer"))
    own = passages_of(row.get("retrieved_contexts"))
    peeked = own is None and row["sample_id"] in rival
    passages = rival[row["sample_id"]] if peeked else own
    mode = "peek" if peeked else "alone" if passages is None else "contexts"
    inputs: dict[str, Any] = {"question": question}
    if passages is not None:
        shown, left_out = cut(passages, options.top_k, options.max_context_tokens)
        inputs["contexts"] = numbered(shown)
    inputs["answer"] = answer
    expected = text_of(row.get("ground_truth_answer")) or answer
    gold = passages_of(row.get("ground_truth_contexts")) or []
    told = count_tokens(prompts[mode]) + count_tokens(material(inputs, options.lang, tag="0" * 16))
    cell = Cell(
        sample_id=plain_id(row["sample_id"]),
        what=f"rubric/{mode}",
        inputs=inputs,
        model=model,
        # What of a rubric is not in the prompt and decides which numbers are taken; weights and bar are neither.
        parameters=options.about | {
            "rubric": [d.name for d in rubric.dimensions], "scale": [rubric.low, rubric.high, rubric.decimals],
        },
        prompt="\n".join([prompts[mode], material({}, options.lang, tag="")]),
        missing=tuple(name for name, text in (("question", question), ("answer", answer)) if text is None),
        tokens=told + REPLY_TOKENS,
        cluster=text_of(row.get("doc_name")),
    )  # fmt: skip
    if passages is None:
        return Task(cell, mode, None, None, None, None)
    rank = evidence_rank(passages, gold, expected)
    return Task(cell, mode, options.peek if peeked else None, len(passages), left_out, rank)


def plain_id(value: Any) -> str | int:
    """A sample id as JSON holds it."""
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, str | int) and not isinstance(value, bool) else str(value)


def rubric_work(judge: Judge, rubric: Rubric) -> Callable[[Cell], Awaitable[Outcome]]:
    """Return the work on one cell: ask, read, keep the verdict."""
    lang, names, text = judge.options.lang, [d.name for d in rubric.dimensions], {"type": "string"}
    number = {"type": "number" if rubric.decimals else "integer"}
    parts = {"tag": text, "analysis": text, **dict.fromkeys(names, number), "reason": text, "suggestion": text}
    schema = {"type": "object", "properties": parts, "required": list(parts), "additionalProperties": False}

    async def work(cell: Cell) -> Outcome:
        tag = new_tag()
        messages = [
            {"role": "system", "content": system_prompt(rubric, cell.what.removeprefix("rubric/"), lang)},
            {"role": "user", "content": material(cell.inputs, lang, tag)},
        ]
        passages = [passage["text"] for passage in cell.inputs.get("contexts", ())]
        shown = [cell.inputs["question"], *passages, cell.inputs["answer"]]
        verdict = await judge.ask(messages, schema, partial(parse_verdict, rubric=rubric, tag=tag, material=shown))
        said = {name: getattr(verdict, name) for name in TEXTS}
        return Outcome.of({**verdict.scores, **said, "parse_status": verdict.parse_status})

    return work


def weighted(rubric: Rubric, scores: Mapping[str, float]) -> float:
    """The weighted mean of the dimensions, to full precision; NaN where all of them weigh 0.

    Examples
    --------
    >>> weighted(Rubric(), {"accuracy": 8, "completeness": 6, "clarity": 10})
    7.8
    """
    total = math.fsum(d.weight for d in rubric.dimensions)
    return math.fsum(d.weight * scores[d.name] for d in rubric.dimensions) / total if total else math.nan
