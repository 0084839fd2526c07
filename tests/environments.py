"""Fresh virtual environments, and what they weigh: packages, megabytes and the time of an import."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
KEPT = re.compile(r"PATH|LANG|LC_\w+|TMPDIR|JAVA_HOME|PIP_\w+|SSL_\w+|\w+_proxy", re.IGNORECASE)
QUIET = {
    "RAGAS_DO_NOT_TRACK": "true",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
WITH_VENV = ("pip", "setuptools", "wheel")
LISTED = """
import importlib.metadata as metadata, json, sysconfig
print(json.dumps([sysconfig.get_path("purelib"), [
    [one.metadata["Name"].lower(), one.version, [*{str(path).split("/")[0] for path in one.files or ()}]]
    for one in metadata.distributions()
]]))
"""


def interpreter(version: str) -> Path | None:
    """Return the Python of a version, from PATH or from pyenv's folder; None where there is none."""
    found = [shutil.which(f"python{version}")]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found += sorted(pyenv.glob(f"versions/{version}.*/bin/python"), reverse=True)
    for path in filter(None, found):  # a shim of pyenv is there for versions that are not active
        asked = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.stdout.startswith(f"{version} "):
            return Path(done.stdout.split(maxsplit=1)[1].strip())
    return None


def install_wheel(folder: Path) -> dict[str, str]:
    """Return an environment whose ragnb is that of the wheel, installed without a network."""
    where = ["--no-index", "--no-deps", "--target", folder / "site", build_wheel(folder)]
    words = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "-q", *where]
    subprocess.run(list(map(str, words)), check=True, capture_output=True)
    return os.environ | {"PYTHONPATH": str(folder / "site")}


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout, without a network."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@dataclass(frozen=True)
class Environment:
    """A virtual environment in a folder of its own, which knows nothing of this checkout.

    Parameters
    ----------
    folder : Path
    """

    folder: Path

    @classmethod
    def make(cls, folder: Path, python: Path | str = sys.executable) -> Environment:
        subprocess.run([python, "-m", "venv", folder], check=True, env=cls._kept())
        return cls(folder)

    @staticmethod
    def _kept(**more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
        return kept | {"HOME": os.environ.get("HOME", "/")} | QUIET | more

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def pip(self, *words: object, **env: str) -> None:
        """Run pip, which has to succeed."""
        command = [self.python, "-m", "pip", "--disable-pip-version-check", *map(str, words)]
        done = subprocess.run(
            command, capture_output=True, text=True, env=self._kept(**env), check=False
        )
        if done.returncode:
            raise RuntimeError(f"pip {' '.join(map(str, words))}: {done.stderr or done.stdout}")

    def run(self, *words: object, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment in a folder, with a home of its own."""
        name, *rest = map(str, words)
        place = os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]])
        env = self._kept(PATH=place, HOME=str(self.folder), MPLBACKEND="Agg", **env)
        command = [self.folder / "bin" / name, *rest]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=cwd, env=env, check=False
        )

    def succeed(self, *words: object, cwd: Path) -> str:
        """Run a command that has to succeed, and return what it printed."""
        done = self.run(*words, cwd=cwd)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    def packages(self) -> dict[str, str]:
        """Return name and version of each package, without what a virtual environment brings."""
        return {name: version for name, version, _ in self._listed()[1] if name not in WITH_VENV}

    def megabytes(self) -> float:
        """Return the size of all packages in 10⁶ bytes, compiled files included, as `packages` counts them."""
        place, packages = self._listed()
        left_out = {top for name, _, tops in packages if name in WITH_VENV for top in tops} - {
            "..",
            "__pycache__",
        }
        parts = [part for part in Path(place).iterdir() if part.name not in left_out]
        return sum(map(_bytes, parts)) / 1e6

    def _listed(self) -> tuple[str, list[tuple[str, str, list[str]]]]:
        done = subprocess.run(
            [self.python, "-I", "-c", LISTED], capture_output=True, text=True, check=True
        )
        place, packages = json.loads(done.stdout)
        return place, packages

    def seconds(self, code: str, runs: int = 5, cwd: Path | None = None) -> float:
        """Return the processor time of a program over that of an empty one: the median after a first run."""
        timed = {one: list(self._seconds(one, runs, cwd)) for one in (code, "pass")}
        return statistics.median(timed[code]) - statistics.median(timed["pass"])

    def _seconds(self, code: str, runs: int, cwd: Path | None) -> Iterator[float]:
        for run in range(runs + 1):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(
                [self.python, "-c", code],
                capture_output=True,
                env=self._kept(),
                cwd=cwd,
                check=True,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if run:
                yield after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _bytes(part: Path) -> int:
    files = [part] if part.is_file() else [path for path in part.rglob("*") if path.is_file()]
    return sum(path.lstat().st_size for path in files)


def weighed(environment: Environment, module: str) -> dict[str, float]:
    """Return packages, MB and the processor time of an import, in seconds."""
    packages, megabytes = len(environment.packages()), round(environment.megabytes())
    return {
        "packages": packages,
        "MB": megabytes,
        "import s": round(environment.seconds(f"import {module}"), 2),
    }


def markdown(rows: Sequence[dict[str, object]]) -> str:
    """Return rows as a table of Markdown; the first column is text."""
    heads = list(rows[0])
    lines = [
        heads,
        ["---", *("---:" for _ in heads[1:])],
        *([row[head] for head in heads] for row in rows),
    ]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)
