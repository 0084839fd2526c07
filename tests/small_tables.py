"""Small tables and scenarios, in English and Chinese, whose outcomes can be told by looking at them."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Callable
from pathlib import Path

QUESTIONS, DOCUMENTS = 48, 8
GATE = "gates: [{{name: faithful, metric: faithfulness, op: '>=', threshold: {}{}}}]\n"
SCENARIOS = {  # exit code of ragnb check, from scores of .65 to .75 around .7
    "passing": (0, "scores: scores.csv\n" + GATE.format(0.5, "")),
    "blocked": (1, "scores: scores.csv\n" + GATE.format(0.9, "")),
    "inconclusive": (0, "scores: scores.csv\n" + GATE.format(0.7, ", undecided: pass")),
    "strict": (1, "scores: scores.csv\n" + GATE.format(0.7, ", undecided: block")),
    "broken": (2, "scores: scores.csv\nmetric_weight: {faithfulness: 2}\n"),
    "放行": (0, "scores: 得分.csv\nlang: zh\n" + GATE.format(0.5, "")),
    "拦截": (1, "scores: 得分.csv\nlang: zh\n" + GATE.format(0.9, "")),
    "有误": (2, "scores: 没有.csv\nlang: zh\n"),
}
COMPARED = {
    "same": 0,
    "worse": 1,
    "undecided": 3,
}  # exit code of scores.csv against the better table of that name


def faithfulness(n: int) -> float:
    """Return the score of question n; from .65 to .75."""
    return 0.7 + 0.01 * (5 * n % 11 - 5)


def _change(outcome: str, n: int) -> float:
    """Return by how much the baseline of an outcome is better at question n."""
    return {
        "same": 0.001 * (-1) ** n,
        "worse": 0.2,
        "undecided": 0.05 * (-1) ** (n // DOCUMENTS + n),
    }[outcome]


def write_tables(folder: Path) -> None:
    """Write scores, baselines and ratings into a folder, with the scenarios that read them.

    The judge of the ratings, from 1 to 5, is 1 off once in six, and never more.
    """
    for name, document in (("scores.csv", "handbook {}.pdf"), ("得分.csv", "差旅制度{}.pdf")):
        _write(folder / name, document, lambda n: 0.0)
    for outcome in COMPARED:
        _write(
            folder / f"{outcome}.csv",
            "handbook {}.pdf",
            lambda n, outcome=outcome: _change(outcome, n),
        )
    for name, (_, text) in SCENARIOS.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    with (folder / "ratings.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["item_id", "doc_name", "dimension", "judge", "human"])
        scores = [
            (1 + n % 5, (4 if n % 5 == 4 else n % 5 + 2) if n % 6 == 0 else 1 + n % 5)
            for n in range(240)
        ]
        rows.writerows(
            [f"a{n}", f"差旅制度{n % 20}.pdf", "accuracy", *both] for n, both in enumerate(scores)
        )


def scratch_repository(folder: Path) -> Path:
    """Commit the tables and scenarios to a new repository, beside a store that is not in git."""
    write_tables(folder)
    (folder / ".gitignore").write_text("reports/\n", encoding="utf-8")
    store = folder / "reports" / "passing" / "judged.sqlite"
    store.parent.mkdir(parents=True)
    store.write_bytes(b"raw replies")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(
        folder,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "commit",
        "-qm",
        "Add scenarios",
    )
    return folder


def git(folder: Path, *words: str) -> str:
    """Run git in a folder and return what it prints."""
    return subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def _write(path: Path, document: str, change: Callable[[int], float]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["sample_id", "doc_name", "question", "faithfulness"])
        rows.writerows(
            [
                f"q{n:02d}",
                document.format(n % DOCUMENTS),
                f"Question {n}?",
                round(faithfulness(n) + change(n), 4),
            ]
            for n in range(QUESTIONS)
        )
