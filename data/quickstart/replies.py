"""Replies of a judge that no one asked: what judge_server.py sends, in the forms that real endpoints send."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from ragnb.judging.plan import probe_cases
from ragnb.schema import Rubric

Row = dict[str, Any]
ASKED = (  # right, half right, wrong and invented answers, and refusals of both kinds; people rated all of them
    ("weak", ("zh-02", "zh-10", "zh-33", "zh-41", "en-04", "en-20")),
    ("strong", ("zh-12", "zh-29", "en-24", "en-35")),
)
RETRIED = (  # what the weak system answers when it is asked again, with accuracy, completeness and clarity
    ("zh-10", "婚假为13天；陪产假为20天，可以分两次休。", (10, 10, 8)),
    ("zh-33", "国外出差的住宿标准参照国内一线城市，每晚不超过450元。", (2, 2, 8)),
    ("en-04", "You need the serial number and a photo of the fault.", (7, 6, 8)),
    (
        "en-04",
        "Send the serial number and a photo of the fault; we answer within two business days.",
        (10, 10, 9),
    ),
)
WIDE = str.maketrans({":": "：", ",": "，"})
REFUSALS = ("not in context", "资料中没有相关内容")
PROBE_SCORES = {"good": (10, 9, 9), "bad": (2, 3, 8), "injected": (2, 2, 7)}
WHY = {
    "en": ("Checked against the passage.", "By rule.", "None."),
    "zh": ("已对照段落。", "按规则。", "无。"),
}
PROSE = "The answer holds one half of what was asked; a 7 would be fair."
DIMENSIONS = ("accuracy", "completeness", "clarity")


def verdict(scores: tuple[int, ...], texts: tuple[str, str, str]) -> Row:
    """A reply in the order that the prompt asks for."""
    marks = dict(zip(DIMENSIONS, scores, strict=True))
    return {"analysis": texts[0], **marks, "reason": texts[1], "suggestion": texts[2]}


def texts_of(facts: list[str], row: Row) -> tuple[str, str, str]:
    """Analysis, reason and suggestion by rule, in the question's language."""
    answer, chinese = row["answer"], row["language"] == "zh"
    if not facts and answer in REFUSALS:
        told = ("资料里没有答案，回答也这样说。", "拒答得当。", "无。")
        return (
            told
            if chinese
            else (
                "The passages do not say, and neither does the answer.",
                "Rightly refused.",
                "None.",
            )
        )
    if not facts:
        told = ("资料里没有答案，回答却给了另一件事的数字。", "答非所问。", "直接说资料中没有。")
        other = (
            "The passages do not say; the answer has figures of something else.",
            "Not what was asked.",
        )
        return told if chinese else (*other, "Say that the passages do not tell.")
    there = [fact for fact in facts if fact.lower() in answer.lower()]
    gone = [fact for fact in facts if fact not in there]
    if chinese:
        said = f"回答包含：{'、'.join(there) or '无'}；缺少：{'、'.join(gone) or '无'}。"
        return said, "按要点逐条核对。", f"补上：{'、'.join(gone)}。" if gone else "无。"
    said = f"The answer holds: {'; '.join(there) or 'nothing'}. It lacks: {'; '.join(gone) or 'nothing'}."
    return said, "Compared fact by fact.", f"Add: {'; '.join(gone)}." if gone else "None."


def shaped(number: int, reply: Row) -> str:
    """JSON as it should be, in a fence, or with the signs of a Chinese keyboard."""
    text = json.dumps(reply, ensure_ascii=False)
    if number % 4 == 1:
        return f"```json\n{text}\n```"
    return re.sub(r'"([^"]*)"', r"“\1”", text).translate(WIDE) if number % 4 == 3 else text


def replies(judged: list[Row], questions: list[Row], seed: int = 20250305) -> list[Row]:
    """One row an answer: its question, its text, and the replies in their order, to be begun again at the end.

    The first judgement has the scores of `judged`; the second differs by a point at most. One first reply is
    prose, so that the judge must be asked again.
    """
    rng = random.Random(seed)
    facts = {question["qid"]: question["key_facts"] for question in questions}
    of = {(row["system"], row["sample_id"]): row for row in judged}
    rows = []
    for number, place in enumerate((system, qid) for system, qids in ASKED for qid in qids):
        row = of[place]
        first = tuple(row[name] for name in DIMENSIONS)
        second = tuple(max(1, min(10, score + rng.choice((-1, 0, 0, 0, 1)))) for score in first)
        told = [
            shaped(number, verdict(scores, texts_of(facts[place[1]], row)))
            for scores in (first, second)
        ]
        rows.append(line(row, [PROSE, *told] if place[1] == "zh-10" else told))
    for lang, why in WHY.items():
        known: dict[
            tuple[str, str], Row
        ] = {}  # an order planted in a passage changes neither question nor answer
        for probe in probe_cases(Rubric(), lang).to_dict("records"):
            known.setdefault(
                (probe["question"], probe["answer"]),
                {str(key): cell for key, cell in probe.items()},
            )
        for row in known.values():
            text = json.dumps(verdict(PROBE_SCORES[row["kind"]], why), ensure_ascii=False)
            rows.append(line(row | {"system": f"probes in {lang}"}, [text]))
    for qid, answer, scores in RETRIED:
        row = of["weak", qid] | {"system": "retried", "answer": answer}
        rows.append(
            line(row, [json.dumps(verdict(scores, texts_of(facts[qid], row)), ensure_ascii=False)])
        )
    return rows


def line(row: Row, texts: list[str]) -> Row:
    """A row of judge_replies.jsonl."""
    head = {"sample_id": row["sample_id"], "system": row["system"], "origin": "simulated"}
    return head | {"question": row["question"], "answer": row["answer"], "replies": texts}
