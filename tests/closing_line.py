"""What the last line of a stage says, read back from the text of a terminal in either language."""

from __future__ import annotations

import re

PATTERNS = (
    r"Cells asked: (?P<asked>[\d,]+)(, (?P<probes>\d+) of them probes)? "
    r"\((?P<done>[\d,]+) done now, (?P<reused>[\d,]+) reused, "
    r"(?P<not_applicable>[\d,]+) not applicable, (?P<failed>[\d,]+) failed"
    r"(, (?P<pending>[\d,]+) pending)?\)\. "
    r"Requests sent: (?P<sent>[\d,]+)(, not counting those of the system's own functions)?\.",
    r"共 (?P<asked>[\d,]+) 个单元(（其中探测 (?P<probes>\d+) 个）)?："
    r"本次完成 (?P<done>[\d,]+) 个，沿用 (?P<reused>[\d,]+) 个，"
    r"不适用 (?P<not_applicable>[\d,]+) 个，失败 (?P<failed>[\d,]+) 个"
    r"(，尚未完成 (?P<pending>[\d,]+) 个)?。"
    r"发出请求 (?P<sent>[\d,]+) 次(，系统自有函数发出的不计)?。",
)


def closing(said: str) -> dict[str, int]:
    """The numbers of the last line; it must be of this form, and its parts must add up to the whole."""
    last = said.splitlines()[-1]
    found = next(filter(None, (re.fullmatch(pattern, last) for pattern in PATTERNS)), None)
    assert found, last
    numbers = {
        name: int((text or "0").replace(",", "")) for name, text in found.groupdict().items()
    }
    parts = ("done", "reused", "not_applicable", "failed", "pending")
    assert numbers["asked"] == sum(numbers[part] for part in parts), last
    return numbers
