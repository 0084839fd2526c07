"""Run a notebook by papermill in a kernel of this very Python, whatever kernels are installed."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ragnb.errors import unknown

_LONGEST_SOCKET = 90
_TYPED, _ASSIGNED = re.compile(r"(?m)^(\w+): \w+ = "), re.compile(r"(?m)^(\w+) = ")


def execute(
    notebook: Path, target: Path, parameters: Mapping[str, Any], *, env: Mapping[str, str], progress: bool = True
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
    import papermill

    bar = {"desc": "Executing", "unit": "cell", "disable": None if progress else True, "leave": False}
    with tempfile.TemporaryDirectory(prefix="ragnb-", ignore_cleanup_errors=True) as folder:
        manager = _manager(Path(folder), env)
        try:
            # Asked politely to shut down, a kernel may still write to the terminal.
            return papermill.execute_notebook(
                _literal(notebook), _literal(target), parameters=dict(parameters), kernel_name="ragnb",
                language="python", cwd=str(target.parent), progress_bar=bar, kernel_manager_class=manager,
                shutdown_kernel="immediate",
            )  # fmt: skip
        finally:
            for made in manager.made:  # an interrupt can come before papermill knows its kernel
                if (process := getattr(made.provisioner, "process", None)) is not None:
                    process.kill()
                    process.wait()


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
    for name in [name for cell in injected[-1:] for name in _ASSIGNED.findall(cell) if name not in known]:
        raise unknown("parameter", name, known)


def _literal(path: Path) -> str:
    """papermill fills in ``str.format`` fields of paths: a brace in a path stays a brace."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _manager(folder: Path, env: Mapping[str, str]) -> Any:
    """Return a class of kernel managers that know one kernel: this Python, with its files in `folder`."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    words = "-m ipykernel_launcher -f {connection_file} --ignore-cwd --HistoryManager.enabled=False"
    # A profile of its own: startup files of the user's would run in the report.
    own = {"IPYTHONDIR": str(folder / "ipython"), **env}
    # Sockets in a folder that only this user opens; their paths must be short, and Windows has none.
    with_sockets = os.name == "posix" and len(str(folder)) <= _LONGEST_SOCKET
    where = {"transport": "ipc", "ip": str(folder / "k")} if with_sockets else {}

    class ThisPython(AsyncKernelManager):
        made: ClassVar[list[Any]] = []
        kernel_spec = KernelSpec(argv=[sys.executable, *words.split()], language="python", env=own)

        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings, connection_file=str(folder / "k.json"), **where)
            self.made.append(self)

    return ThisPython
