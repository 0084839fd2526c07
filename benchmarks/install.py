"""What an installation of ragnb and of other tools brings: packages, megabytes, processor time of the import.

    python benchmarks/install.py [--only ragnb ragas] [--json out.json]

Each row is a fresh virtual environment, filled by `pip install` from the package index; needs a network and 10 GB.
The wheel of ragnb is built from this checkout. Megabytes are 10⁶ bytes in site-packages, compiled files
included, without pip and setuptools. The time is user and system, less that of an empty program, median of five.
ragnb loads its packages when they are used: the time of a first result is measured too.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from environments import ROOT, Environment, build_wheel, markdown, weighed

EXTRAS = ("", "notebook", "judge", "ragas", "readers", "documents", "duckdb", "spark", "all")
PEERS = {  # what is installed, and what its users import
    "ragas": (
        ["ragas==0.4.3", "langchain-community==0.4.1"],
        "ragas",
    ),  # with a newer one it cannot be imported
    "deepeval": (["deepeval==4.3.1"], "deepeval"),
    "trulens": (["trulens==2.16.0"], "trulens.core"),
    "mlflow": (["mlflow==3.17.2"], "mlflow"),
}
SCORES = ROOT / "data" / "quickstart" / "scores_simulated.csv"
FIRST_RESULT = f"import ragnb; ragnb.assess({str(SCORES)!r})"


def main() -> None:
    """Install, measure and print one row after the other, then the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=["ragnb", *PEERS], default=["ragnb", *PEERS])
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        wheel = build_wheel(Path(folder))
        own = [
            (
                f"ragnb[{extra}]".removesuffix("[]"),
                [f"{wheel}[{extra}]".removesuffix("[]")],
                "ragnb",
            )
            for extra in EXTRAS
            if "ragnb" in asked.only
        ]
        others = [(" ".join(PEERS[name][0]), *PEERS[name]) for name in PEERS if name in asked.only]
        for name, wanted, module in own + others:
            with tempfile.TemporaryDirectory(dir=folder) as place:
                environment = Environment.make(Path(place) / "venv")
                environment.pip("install", *wanted)
                rows.append({"installed": f"`{name}`", **weighed(environment, module)})
                if name == "ragnb":
                    first = environment.seconds(FIRST_RESULT)
            print(*rows[-1].values(), flush=True)
    print(
        f"\nPython {platform.python_version()}, {platform.system()}, {datetime.now(UTC):%Y-%m-%d}\n"
    )
    print(markdown(rows))
    if "ragnb" in asked.only:
        print(f"ragnb, import and first result: {first:.2f} s")
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
