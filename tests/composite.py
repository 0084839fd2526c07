"""Run a composite GitHub Action as a runner does, as far as action.yml goes; what it does not know is an error."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

TOKEN = re.compile(r"\s*('(?:[^']|'')*'|==|!=|&&|\|\||!|[()]|[\w.-]+)")
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")
STATUS = re.compile(r"\b(always|success|failure)\(")


@dataclass
class Step:
    """What became of a step: success, failure or skipped, its exit code, outputs and log."""

    outcome: str
    code: int | None = None
    outputs: dict[str, str] = field(default_factory=dict)
    log: str = ""


class Composite:
    """A run of a composite action.

    Parameters
    ----------
    action : Path
        The folder of ``action.yml``, as the runner has checked it out.
    workspace : Path
        The checkout of the repository that uses the action.
    temp : Path
        ``RUNNER_TEMP``, and the home of the user.
    inputs : mapping
        ``with:`` of the caller.
    python : str
        What ``actions/setup-python`` finds.
    given : mapping of str to mapping
        Outputs of steps that are not run, by their id.
    env : mapping, optional
        Variables of the runner beyond PATH and its own.
    """

    def __init__(
        self,
        action: Path,
        *,
        workspace: Path,
        temp: Path,
        inputs: Mapping[str, str],
        python: str = sys.executable,
        given: Mapping[str, Mapping[str, str]] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.meta = YAML(typ="safe").load(action / "action.yml")
        self.workspace, self.temp, self.python, self.given = workspace, temp, python, given or {}
        declared: dict[str, Any] = self.meta["inputs"]
        if unknown := inputs.keys() - declared.keys():
            raise KeyError(f"inputs that the action has not: {sorted(unknown)}")
        if lacking := [
            name for name, row in declared.items() if row.get("required") and name not in inputs
        ]:
            raise KeyError(f"required inputs: {lacking}")
        self.inputs = {
            name: str(inputs.get(name, row.get("default", ""))) for name, row in declared.items()
        }
        self.env = {"PATH": os.environ["PATH"], "HOME": str(temp), "CI": "true", **(env or {})}
        places = {"GITHUB_ACTION_PATH": action, "GITHUB_WORKSPACE": workspace, "RUNNER_TEMP": temp}
        self.env |= {name: str(place) for name, place in places.items()}
        self.summary = temp / "summary.md"
        self.steps: dict[str, Step] = {}
        self.outputs: dict[str, str] = {}
        self.kept: list[Path] = []

    def run(self) -> Composite:
        """Run the steps; `steps` tells what became of each, `kept` what was uploaded, `code` how it ended."""
        self.summary.touch()
        rows = self.meta["runs"]["steps"]
        for n, row in enumerate(rows):
            key = row.get("id") or row.get("name") or row["uses"].partition("@")[0]
            condition = str(row.get("if", "success()"))
            if not STATUS.search(condition):
                condition = f"success() && ({condition})"
            self.steps[key] = (
                self._step(key, row, n) if self._evaluate(condition) else Step("skipped")
            )
        self.outputs = {
            name: self._filled(row["value"]) for name, row in self.meta["outputs"].items()
        }
        return self

    @property
    def code(self) -> int:
        """The exit code of the last step that failed, 0 where none did."""
        failed = [step.code for step in self.steps.values() if step.outcome == "failure"]
        return int(failed[-1] or 0) if failed else 0

    def _step(self, key: str, row: dict[str, Any], n: int) -> Step:
        if key in self.given:
            return Step("success", 0, dict(self.given[key]))
        if "uses" in row:
            given = {name: self._filled(str(value)) for name, value in row.get("with", {}).items()}
            return Step("success", 0, self._used(row["uses"].partition("@")[0], given))
        if left := row.keys() - {"name", "id", "if", "shell", "env", "run"}:
            raise NotImplementedError(f"{key}: {sorted(left)}")
        if row["shell"] != "bash":
            raise NotImplementedError(f"{key}: shell {row['shell']}")
        script, files = self.temp / f"step-{n}.sh", {}
        script.write_text(self._filled(row["run"]), encoding="utf-8")
        for name in ("OUTPUT", "ENV", "PATH"):
            files[name] = self.temp / f"step-{n}.{name}"
            files[name].touch()
        env = self.env | {
            name: self._filled(str(value)) for name, value in row.get("env", {}).items()
        }
        env |= {f"GITHUB_{name}": str(path) for name, path in files.items()}
        env["GITHUB_STEP_SUMMARY"] = str(self.summary)
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        done = subprocess.run(
            words,
            cwd=self.workspace,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        self.env |= _pairs(files["ENV"])
        if added := files["PATH"].read_text(encoding="utf-8").split("\n")[:-1]:
            self.env["PATH"] = os.pathsep.join([*reversed(added), self.env["PATH"]])
        outcome = "failure" if done.returncode else "success"
        return Step(outcome, done.returncode, _pairs(files["OUTPUT"]), done.stdout.decode())

    def _used(self, name: str, asked: dict[str, str]) -> dict[str, str]:
        """Do what an action of others would do, and return its outputs."""
        if name == "actions/setup-python":
            return {"python-path": self.python}
        if name == "actions/upload-artifact":
            for pattern in asked["path"].split():
                self.kept += Path("/").glob(pattern.lstrip("/"))
            return {}
        raise NotImplementedError(f"{name} is not known to this runner")

    # Expressions

    def _filled(self, text: str) -> str:
        return EXPRESSION.sub(lambda found: _text(self._evaluate(found[1])), text)

    def _evaluate(self, expression: str) -> Any:
        tokens, at = [], 0
        while at < len(expression.rstrip()):
            if (found := TOKEN.match(expression, at)) is None:
                raise SyntaxError(f"{expression!r} at {at}")
            tokens.append(found[1])
            at = found.end()
        value = self._any(tokens)
        if tokens:
            raise SyntaxError(f"{expression!r}: {tokens} left over")
        return value

    def _any(self, tokens: list[str]) -> Any:
        value = self._all(tokens)
        while tokens[:1] == ["||"]:
            tokens.pop(0)
            other = self._all(tokens)
            value = value or other
        return value

    def _all(self, tokens: list[str]) -> Any:
        value = self._equal(tokens)
        while tokens[:1] == ["&&"]:
            tokens.pop(0)
            other = self._equal(tokens)
            value = value and other
        return value

    def _equal(self, tokens: list[str]) -> Any:
        value = self._one(tokens)
        if tokens[:1] in (["=="], ["!="]):
            equals = tokens.pop(0) == "=="
            return (_text(value).lower() == _text(self._one(tokens)).lower()) == equals
        return value

    def _one(self, tokens: list[str]) -> Any:
        token = tokens.pop(0)
        if token == "!":
            return not self._one(tokens)
        if token == "(":
            value = self._any(tokens)
            if tokens.pop(0) != ")":
                raise SyntaxError("a parenthesis is open")
            return value
        if token.startswith("'"):
            return token[1:-1].replace("''", "'")
        if tokens[:2] == ["(", ")"]:
            del tokens[:2]
            failed = any(step.outcome == "failure" for step in self.steps.values())
            return {"always": True, "success": not failed, "failure": failed}[token]
        return self._named(token)

    def _named(self, name: str) -> str:
        match name.split("."):
            case ["inputs", key]:
                return self.inputs[key]
            case ["steps", key, "outcome"]:
                return self.steps[key].outcome
            case ["steps", key, "outputs", output]:
                (row,) = [row for row in self.meta["runs"]["steps"] if row.get("id") == key]
                if "run" in row and f"{output}=" not in row["run"]:
                    raise KeyError(f"{name}: the step does not write it")
                return self.steps[key].outputs.get(output, "")
        raise KeyError(f"{name} is not known to this runner")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pairs(file: Path) -> dict[str, str]:
    lines = file.read_text(encoding="utf-8").splitlines()
    if wrong := [line for line in lines if "=" not in line or "<<" in line]:
        raise NotImplementedError(f"{wrong}: only NAME=VALUE is read")
    return dict(line.split("=", 1) for line in lines)
