"""Run a notebook by papermill in a kernel of this very Python; tidy what ran."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ragnb.errors import unknown
from ragnb.progress import is_hidden

_LONGEST_SOCKET = 90  # bytes of a folder's name; a socket's whole path may have 107
_WARNING = re.compile(r"^.*?:\d+: (\w*Warning): (.*)\n(?:[ \t]+.*\n?)?", re.MULTILINE)
_CONNECTION = "k.json"
# The collector would take a tenth of the imports. At the end of stdin the process that started this one is gone.
_LAUNCH = """import gc, sys; gc.disable(); import ragnb; ragnb.assess; gc.enable()
from ipykernel.kernelapp import launch_new_instance
sys.stdin.readline() and launch_new_instance()"""
_TYPED = re.compile(r"(?m)^(\w+): \w+ = ")
_ASSIGNED = re.compile(r"(?m)^(\w+) = ")


def execute(
    notebook: Path,
    target: Path,
    parameters: Mapping[str, Any],
    *,
    env: Mapping[str, str],
    progress: bool = True,
) -> Any:
    """Run a notebook with its working directory in the folder of `target`, and write it there.

    Parameters
    ----------
    notebook, target : Path
        The notebook as shipped, and where the executed one goes; also what a failing cell leaves.
    parameters : mapping
        What JSON can hold.
    env : mapping of str to str
        Environment variables of the kernel: keys, which it has no use for, are given as empty.
    progress : bool
        Show a bar on a terminal.

    Returns
    -------
    NotebookNode

    Raises
    ------
    PapermillExecutionError
        When a cell fails.
    RuntimeError
        When the kernel dies.
    """
    bar = {
        "desc": "report",
        "unit": "cell",
        "disable": is_hidden(None if progress else False),
        "leave": False,
    }
    with tempfile.TemporaryDirectory(prefix="ragnb-", ignore_cleanup_errors=True) as folder:
        process = _start(Path(folder), target.parent, env)
        try:
            # Asked politely to shut down, a kernel may still write to the terminal.
            return _papermill().execute_notebook(
                _literal(notebook),
                _literal(target),
                parameters=dict(parameters),
                kernel_name="ragnb",
                language="python",
                cwd=str(target.parent),
                progress_bar=bar,
                kernel_manager_class=_manager(Path(folder), process),
                shutdown_kernel="immediate",
            )
        finally:
            process.kill()  # an interrupt can come before papermill knows its kernel
            process.wait()


def fill_in(notebook: Path, target: Path, parameters: Mapping[str, Any]) -> None:
    """Write a notebook with its parameters filled in, without running it."""
    _papermill().execute_notebook(
        _literal(notebook),
        _literal(target),
        parameters=dict(parameters),
        prepare_only=True,
        progress_bar=False,
    )


def _papermill() -> Any:
    """Import papermill without the 2 s that rfc3987-syntax takes to compile its grammar.

    papermill imports nbformat, that jsonschema, and that (4.26) rfc3987-syntax: to check the format "iri", which
    no notebook has. jsonschema is given a function that imports the real one when it is called.
    """
    name = "rfc3987_syntax"
    late: Any = ModuleType(name)
    late.is_valid_syntax = lambda *args: importlib.import_module(name).is_valid_syntax(*args)
    put = sys.modules.setdefault(name, late) is late
    try:
        return importlib.import_module("papermill")
    finally:
        if put:
            del sys.modules[name]


def refuse_unknown(ran: Sequence[str]) -> None:
    """Refuse a parameter that the notebook does not have; papermill itself only warns of it.

    Parameters
    ----------
    ran : sequence of str
        The cells that ran, IPython's ``In``: the typed parameters of the notebook, and papermill's own cell.

    Examples
    --------
    >>> refuse_unknown(["new: str = 'a.csv'", "# Parameters\\nnew = 'b.csv'"])
    >>> refuse_unknown(["new: str = 'a.csv'", "# Parameters\\nnwe = 'b.csv'"])
    Traceback (most recent call last):
    ragnb.errors.RagnbError: parameter='nwe' is not known; did you mean 'new'? (have: new)
    """
    known = dict.fromkeys(name for cell in ran for name in _TYPED.findall(cell))
    injected = [cell for cell in ran if cell.startswith("# Parameters\n")]
    for cell in injected[-1:]:
        for name in _ASSIGNED.findall(cell):
            if name not in known:
                raise unknown("parameter", name, known)


def _literal(path: Path) -> str:
    """papermill fills in ``str.format`` fields of paths: a brace in a path stays a brace."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _start(folder: Path, cwd: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start this Python as a kernel with its files in `folder`; it imports while this process does."""
    # A profile of its own: startup files of the user's would run in the report.
    environment = {"IPYTHONDIR": str(folder / "ipython"), **env}
    if os.name == "posix":  # ipykernel ends itself when this process is gone
        environment |= {"JPY_PARENT_PID": str(os.getpid())}
    # -P: no file of the working directory is imported in the place of a package.
    words = [sys.executable, "-P", "-c", _LAUNCH, "-f", str(folder / _CONNECTION), "--ignore-cwd"]
    return subprocess.Popen(
        [*words, "--HistoryManager.enabled=False"],
        cwd=cwd,
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C reaches this process alone, and a kill all that the kernel started
    )


def _manager(folder: Path, process: subprocess.Popen[bytes]) -> Any:
    """Return a class of kernel managers that know one kernel: the process that was started."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    # Sockets in a folder that only this user opens; their paths must be short, and Windows has none.
    with_sockets = os.name == "posix" and len(str(folder)) <= _LONGEST_SOCKET
    where = {}
    if with_sockets:
        where = {"transport": "ipc", "ip": str(folder / "k")}

    class ThisPython(AsyncKernelManager):
        kernel_spec = KernelSpec(argv=[sys.executable], language="python")

        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings, connection_file=str(folder / _CONNECTION), **where)

        async def _async_launch_kernel(self, kernel_cmd: list[str], **kw: Any) -> None:
            """Let the process go on: the connection file is written."""
            provisioner: Any = self.provisioner
            provisioner.process = process
            provisioner.pid = process.pid
            provisioner.pgid = (
                process.pid
            )  # the process leads a session, and so a group, of its own
            waiting: Any = process.stdin
            waiting.write(b"\n")
            waiting.close()

    return ThisPython


def tidy(notebook: Any) -> list[str]:
    """Take times and machine paths out of an executed notebook, in place; return the warnings of ragnb in it.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> text = "/x/y.py:3: RagnbWarning: look here\\n  assess(x)\\n"
    >>> cell = {"metadata": {}, "outputs": [{"output_type": "stream", "name": "stderr", "text": text}]}
    >>> tidy(SimpleNamespace(cells=[cell], metadata={}))
    ['look here']
    """
    notebook.metadata["papermill"] = {
        "parameters": notebook.metadata.get("papermill", {}).get("parameters", {})
    }
    warnings: list[str] = []
    for cell in notebook.cells:
        for key in ("papermill", "execution"):
            cell["metadata"].pop(key, None)
        # papermill gives its own cell a random id.
        if "injected-parameters" in cell["metadata"].get("tags", []):
            cell["id"] = "injected-parameters"
        for output in cell.get("outputs", []):
            if output.get("name") != "stderr":
                continue
            for kind, text in _WARNING.findall(output["text"]):
                if kind == "RagnbWarning":
                    warnings.append(text)
            # Without the path and the line of code, which differ from machine to machine.
            output["text"] = _WARNING.sub(r"\1: \2\n", output["text"])
    return list(dict.fromkeys(warnings))
