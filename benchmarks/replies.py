"""How long hostile replies of a judge take to read, by their length: python benchmarks/replies.py

Each piece is repeated up to a number of characters, alone and after a verdict. Processor time in milliseconds, the
least of three. What is beyond 20,000 characters is not read.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ragnb.judging import parse_verdict

VERDICT = '{"analysis": "none", "accuracy": 8, "completeness": 7, "clarity": 9, "reason": "r"}'
PIECES = ['{"accuracy":', "{a:", '{"a":', "[{", '{"a":"b",', "`", '"', "the ", '{"accuracy":8} ']
LENGTHS = (10_000, 20_000, 190_000)


def milliseconds(call: Callable[[], object]) -> float:
    """Return the least processor time of three calls."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        call()
        taken.append(1000 * (time.process_time() - start))
    return min(taken)


def main() -> None:
    print("| piece | after a verdict | " + " | ".join(f"{n:,}" for n in LENGTHS) + " |")
    print("|---|---|" + "--:|" * len(LENGTHS))
    for piece in PIECES:
        for before in ("", VERDICT):
            cells = []
            for length in LENGTHS:
                reply = before + piece * (length // len(piece))
                cells.append(f"{milliseconds(lambda reply=reply: parse_verdict(reply)):.0f}")
            print(f"| `{piece}` | {'yes' if before else 'no'} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
