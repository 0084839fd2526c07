"""Search in Chinese without a dictionary: pairs of neighbouring characters, in the index and in the query."""

from __future__ import annotations

import re

from sphinx.search import SearchLanguage

_RUNS = re.compile(r"[\u3400-\u9fff]+|[^\W\u3400-\u9fff]+")


class Pairs(SearchLanguage):
    """Pages are found by every word of a query, whether a dictionary knows the word or not."""

    lang = "zh"
    language_name = "Chinese"
    js_splitter_code = r"""
var splitQuery = query => (query.match(/[\u3400-\u9fff]+|(?:(?![\u3400-\u9fff])[\p{L}\p{N}_])+/gu) || []).flatMap(run =>
  /^[\u3400-\u9fff]{2,}$/.test(run) ? Array.from(run).slice(1).map((sign, k) => run[k] + sign) : [run]);
"""

    def split(self, input: str) -> list[str]:
        """Split a text into words; a run of Chinese becomes its pairs."""
        return [part for run in _RUNS.findall(input) for part in self._pairs(run)]

    @staticmethod
    def _pairs(run: str) -> list[str]:
        if len(run) < 2 or not "\u3400" <= run[0] <= "\u9fff":
            return [run]
        return [run[k : k + 2] for k in range(len(run) - 1)]
