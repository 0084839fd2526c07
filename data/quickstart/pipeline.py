"""Two small systems over the corpus: BM25, an extractive answerer, citations and refusals. No model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import bm25s

Row = dict[str, Any]
REFUSAL = {"en": "not in context", "zh": "资料中没有相关内容"}
STOCK = {"en": "Please ask the department in charge for details.", "zh": "详情请咨询主管部门。"}
_RUN = re.compile(r"([\u4e00-\u9fff]+)|([a-z0-9]+)")
_SENTENCE = re.compile(r"(?<=[。！？])|(?<=[.!?])\s+")
_STOP = re.compile(
    r"\b(?:a|an|and|any|are|as|at|be|by|can|do|does|for|from|have|how|i|in|is|it|its|get|may|me|must|my|need|of|on"
    r"|or|the|to|under|up|was|we|what|when|where|which|who|with|you|your)\b"
)
_STOP_ZH = re.compile(
    "多少|多久|多长|什么|哪些|哪一|怎么|为什么|可以|最多|最晚|分别|时候|情况|应该|[的了吗要到是有能谁和在各几]"
)


def characters(text: str) -> list[str]:
    """Words as they stand, every word counted; one token a Chinese character."""
    return [t for run, word in _RUN.findall(text.lower()) for t in (run or [word])]


def bigrams(text: str) -> list[str]:
    """Content words without a plural s; pairs of characters in Chinese."""
    tokens: list[str] = []
    for run, word in _RUN.findall(_STOP_ZH.sub(" ", _STOP.sub(" ", text.lower()))):
        if run:
            tokens += [run[i : i + 2] for i in range(max(1, len(run) - 1))]
        else:
            tokens.append(word[:-1] if len(word) > 3 and word.endswith("s") else word)
    return tokens


@dataclass(frozen=True)
class System:
    """The settings of one system."""

    name: str
    tokens: Callable[[str], list[str]]
    k1: float
    b: float
    top: int
    titles: bool  # titles are indexed, and an answer opens with the title of its document
    rerank: bool  # the best candidates are ordered anew by the share of the question they cover
    threshold: dict[str, float]  # an answer needs a sentence that covers this share of the question
    sentences: int
    list_field: bool  # citations in a field of the trace; otherwise at the end of the answer
    longest: int  # characters of an answer; past it the citations are left out


WEAK = System(
    "weak", characters, 0.4, 0.0, 2, False, False, {"en": 0.33, "zh": 0.38}, 1, False, 172
)
STRONG = System("strong", bigrams, 1.2, 0.75, 5, True, True, {"en": 0.4, "zh": 0.25}, 2, True, 400)


class Pipeline:
    """A system over a corpus: `ask` takes a question and gives its trace."""

    def __init__(self, system: System, corpus: list[Row]) -> None:
        self.system, self.corpus = system, corpus
        texts = [
            f"{row['title']} {row['text']}" if system.titles else row["text"] for row in corpus
        ]
        passages = [system.tokens(text) for text in texts]
        self.bags = [set(tokens) for tokens in passages]
        self.index = bm25s.BM25(method="lucene", k1=system.k1, b=system.b, dtype="float64")
        self.index.index(passages, show_progress=False)

    def weight(self, token: str) -> float:
        """Inverse document frequency; the weak system gives every token the same weight."""
        if not self.system.rerank:
            return 1.0
        return math.log(1 + len(self.bags) / (0.5 + sum(token in bag for bag in self.bags)))

    def covered(self, asked: set[str], seen: set[str]) -> float:
        """Share of the question's weight that stands in some text."""
        return math.fsum(map(self.weight, asked & seen)) / math.fsum(map(self.weight, asked))

    def retrieve(self, question: str) -> list[tuple[int, float]]:
        """Rows of the best passages with their scores, best first; equal scores in corpus order."""
        asked = self.system.tokens(question)
        scores = [round(float(score), 4) for score in self.index.get_scores(asked)]
        order = sorted(
            (i for i, score in enumerate(scores) if score > 0), key=lambda i: (-scores[i], i)
        )
        if self.system.rerank:
            order = order[: 2 * self.system.top]
            top = max(scores)
            scores = [
                round(score / top + self.covered(set(asked), self.bags[i]), 4)
                if i in order
                else 0.0
                for i, score in enumerate(scores)
            ]
            order.sort(key=lambda i: (-scores[i], i))
        return [(i, scores[i]) for i in order[: self.system.top]]

    def select(self, question: str, language: str, found: list[int]) -> list[tuple[str, str]]:
        """Sentences that cover most of the question, with their passage ids; none under the threshold."""
        asked = set(self.system.tokens(question))
        picked = []
        for rank, i in enumerate(found):
            for sentence in filter(None, _SENTENCE.split(self.corpus[i]["text"])):
                share = self.covered(asked, set(self.system.tokens(sentence)))
                if self.system.titles:
                    share = (share + self.covered(asked, self.bags[i])) / 2
                picked.append((-round(share, 6), rank, sentence, self.corpus[i]["id"]))
        picked.sort(key=lambda item: item[:2])
        if not picked or -picked[0][0] < self.system.threshold[language]:
            return []
        close = [item for item in picked if item[0] <= 0.85 * picked[0][0]]
        return [(text, chunk) for _, _, text, chunk in close[: self.system.sentences]]

    def write(self, language: str, picked: list[tuple[str, str]]) -> str:
        """The answer's text: the sentences after the title (strong), or before a stock phrase (weak)."""
        if not picked:
            return REFUSAL[language]
        gap = "" if language == "zh" else " "
        text = gap.join(sentence for sentence, _ in picked)
        if not self.system.titles:
            return f"{text}{gap}{STOCK[language]}"
        title = next(row["title"] for row in self.corpus if row["id"] == picked[0][1])
        return f"{title}{'：' if language == 'zh' else ': '}{text}"

    def ask(self, question: Row) -> Row:
        """Answer one question: its text, whether it is a refusal, citations, chunks, the answer as sent."""
        found = self.retrieve(question["q"])
        picked = self.select(question["q"], question["language"], [i for i, _ in found])
        cited = list(dict.fromkeys(chunk for _, chunk in picked))
        text = self.write(question["language"], picked)
        tail = f"\ncitations: [{', '.join(cited)}]" if cited and not self.system.list_field else ""
        sent = text + tail if len(text + tail) <= self.system.longest else text
        chunks = [{"id": self.corpus[i]["id"], "score": score} for i, score in found]
        return {
            "text": text,
            "refused": not picked,
            "cited": cited,
            "chunks": chunks,
            "answer": sent,
        }
