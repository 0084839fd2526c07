"""Write every result frame of the main functions to a file, or compare them with such a file.

``python benchmarks/snapshot.py before.json`` writes the numbers of the quickstart and of the real data beside the
checkout (``../shared/data``, or the folder given with ``--data``); ``python benchmarks/snapshot.py --against
before.json`` computes them again and lists what moved by more than ``--tolerance``. Numbers are kept at 12 digits.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import ragnb as rn

ROOT = Path(__file__).resolve().parents[1]
QUICKSTART = ROOT / "data" / "quickstart"
SHEET = ("means", "systems", "documents", "slices", "diagnoses", "modes", "outcomes", "gates")
RATINGS = {
    "mtrag": {"judge": "judge10", "human": "human10", "scale": (1, 10)},
    "hanna": {"judge": "judge_Beluga-13B", "human": "human", "scale": (1, 5)},
    "ragchecker_meta": {"scale": (-2, 2)},
}
TABLES = ("score_tables/**/*.csv", "scores/*.csv", "tool_files/*[!d]")
NORTHWIND = [("gpt_groundedness", 1, 5), ("gpt_relevance", 1, 5)]

KEYS = (
    "system",
    "slice",
    "group",
    "document",
    "doc_name",
    "metric",
    "gate",
    "rule",
    "label",
    "failure_mode",
    "judge",
    "dimension",
    "measure",
    "band",
    "kind",
    "map",
    "way",
)

Frames = dict[str, Any]
Task = tuple[str, Callable[[], Frames]]


def plain(value: Any) -> Any:
    """Return a cell as JSON holds it, numbers at 12 digits, None where it is missing."""
    if isinstance(value, list | tuple | dict):
        return json.loads(json.dumps(value, default=str))
    if pd.isna(value):
        return None
    if isinstance(value, bool | str):
        return value
    return float(f"{float(value):.12g}") if hasattr(value, "__float__") else str(value)


def sheet(*args: Any, **options: Any) -> Frames:
    """Return the frames of one assessment."""
    done = rn.assess(*args, **options)
    return {name: getattr(done, name) for name in SHEET}


def scored(frame: pd.DataFrame, **options: Any) -> Frames:
    """Return means, the total by document and the diagnoses of one scores frame."""
    first = rn.weighted_means(frame, **options)["metric"].iloc[0]
    weights = {"metric_weights": {} if first == "weighted_score" else {first: 2.0}}
    out = {
        "weighted_means": rn.weighted_means(frame, **options),
        "diagnose": rn.diagnose(frame, **options),
    }
    out["weighted"] = rn.weighted_means(frame, **options, **weights)
    if "doc_name" in frame and frame["doc_name"].nunique() > 1:
        out["by_document"] = rn.weighted_means(frame, by="doc_name", **options)
        first = sorted(frame["doc_name"].dropna())[0]
        out["doc_weights"] = rn.weighted_means(frame, doc_weights={first: 3.0}, **options)
    return out


def labelled(traces: Path, gold: Path, **options: Any) -> Frames:
    """Return the rates of one trace file."""
    frame = rn.label_traces(rn.read_traces(traces), gold=rn.read_gold(gold), **options)
    return {"refusal_metrics": rn.refusal_metrics(frame)}


def rated(frame: pd.DataFrame, **options: Any) -> Frames:
    """Return the card's frames and the corrected mean of one set of ratings."""
    out: Frames = {}
    for dimension, rows in frame.groupby("dimension"):
        card = rn.calibrate(rows, **options)
        for name in ("table", "verdicts", "bands", "inflation", "recalibration", "labels_needed"):
            out[f"{dimension}/{name}"] = getattr(card, name)
        out[f"{dimension}/agreement"] = rn.agreement(rows, **options)
        human = options.get("human", "human")
        some = rows.reset_index(drop=True)
        some[human] = some[human].where(some.index % 3 == 0)
        out[f"{dimension}/corrected"] = rn.corrected_mean(some, **options)
    return out


def tasks(data: Path) -> Iterator[Task]:
    """Yield the name of each input with the function that computes its frames."""
    for path in sorted((ROOT / "scenarios").glob("*.yaml")):
        yield f"scenario/{path.stem}", lambda path=path: sheet(path)
    for path in sorted(QUICKSTART.glob("scores*.csv")):
        metrics = [rn.Metric("support_lexical")]
        yield (
            f"quickstart/{path.stem}",
            lambda path=path, m=metrics: scored(rn.read_scores(path, metrics=m)),
        )
    gold = QUICKSTART / "gold.json"
    for path in sorted(QUICKSTART.glob("traces.*.jsonl")):
        yield f"quickstart/{path.stem}", lambda path=path: labelled(path, gold)
    yield "quickstart/ratings", lambda: rated(rn.read_ratings(QUICKSTART / "ratings.csv"))
    for path in sorted(data.glob("traces/*/*trace*")):
        gold = path.parent / ("qaset_dupq.json" if "dupq" in path.name else "qaset.json")
        for containment in ("auto", "latin"):
            name = f"traces/{path.parent.name}/{path.name}/{containment}"
            yield (
                name,
                lambda p=path, g=gold, c=containment: labelled(
                    p, g, containment=c, join="question"
                ),
            )
            yield (
                f"{name}/assess",
                lambda p=path, g=gold, c=containment: sheet(p, gold=g, containment=c),
            )
    tables = [file for pattern in TABLES for file in sorted(data.glob(pattern))]
    for path in tables:
        own = (
            {"metrics": [rn.Metric(*row) for row in NORTHWIND]} if "northwind" in path.name else {}
        )
        name = str(path.relative_to(data))
        yield f"{name}/assess", lambda p=path, o=own: sheet(p, **o)
        yield name, lambda p=path, o=own: scored(rn.read_scores(p, **o), **o)
    for name, options in RATINGS.items():
        path = data / "ratings" / f"{name}.csv"
        if path.exists():
            yield f"ratings/{name}", lambda p=path, o=options: rated(pd.read_csv(p), **o)


def snapshot(data: Path) -> dict[str, Any]:
    """Return every frame as name -> column -> list of cells; a refusal is kept as its message."""
    out: dict[str, Any] = {}
    for name, compute in tasks(data):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                found = compute()
        except ValueError as error:
            out[name] = {
                "refused": {"message": [str(error).replace(f"{data}/", "").splitlines()[0][:80]]}
            }
            continue
        for frame_name, frame in found.items():
            if frame is not None:
                cells = {str(column): [plain(cell) for cell in frame[column]] for column in frame}
                out[f"{name}:{frame_name}"] = cells
    return out


def moved(before: Any, after: Any, tolerance: float) -> bool:
    """Return whether two cells differ."""
    if isinstance(before, float | int) and isinstance(after, float | int):
        return not math.isclose(before, after, rel_tol=tolerance, abs_tol=tolerance)
    return bool(before != after)


def keyed(frame: dict[str, list[Any]], keys: list[str]) -> dict[Any, int]:
    """Return the row of each key; of a key that stands in several rows, none."""
    rows = list(zip(*(map(str, frame[key]) for key in keys), strict=True))
    return {row: i for i, row in enumerate(rows) if rows.count(row) == 1} if keys else {}


def differences(before: dict[str, Any], after: dict[str, Any], tolerance: float) -> Iterator[str]:
    """Yield one line for each frame or column that differs; rows are paired by what names them."""
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            yield f"{name}: {'gone' if name in before else 'new'}"
            continue
        old, new = (found[name].get("refused", found[name]) for found in (before, after))
        shared = [column for column in old if column in new]
        first, second = (
            keyed(frame, [key for key in KEYS if key in shared]) for frame in (old, new)
        )
        if not first or not second:
            first = second = {
                i: i for i in range(min(len(next(iter(f.values()), [])) for f in (old, new)))
            }
        rows = [key for key in first if key in second]
        lost, made = len(first) - len(rows), len(second) - len(rows)
        if lost or made:
            yield f"{name}: {lost} rows gone, {made} new, {len(rows)} compared"
        for column in shared:
            pairs = [(old[column][first[key]], new[column][second[key]]) for key in rows]
            changed = [(a, b) for a, b in pairs if moved(a, b, tolerance)]
            if changed:
                a, b = changed[0]
                yield f"{name}.{column}: {len(changed)} of {len(pairs)} moved, first {a!r} -> {b!r}"[
                    :300
                ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path, help="where to write")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--tolerance", type=float, default=1e-12)
    options = parser.parse_args()
    found = snapshot(options.data)
    if options.file:
        options.file.write_text(json.dumps(found, ensure_ascii=False, indent=0), encoding="utf-8")
        print(f"{len(found)} frames written to {options.file}")
    if options.against:
        before = json.loads(options.against.read_text(encoding="utf-8"))
        lines = list(differences(before, found, options.tolerance))
        print("\n".join(lines) or f"{len(found)} frames, all equal")
        return bool(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
