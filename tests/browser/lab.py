"""A real JupyterLab or Voila on a port of its own, with folders of its own, ended by its own process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-for-one-test"
CONNECTED = """() => {
  const kernel = window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel;
  return kernel?.connectionStatus === 'connected' && kernel.status === 'idle';
}"""
RUN = "() => window.jupyterapp.commands.execute('notebook:run-all-cells')"


def notebook(path: Path, *cells: str) -> Path:
    """Write a notebook of these code cells."""
    import nbformat

    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell, id=f"c{i}") for i, cell in enumerate(cells)]
    )
    made.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    nbformat.write(made, path)
    return path


class Server:
    """A server that runs inside a ``with``; everything it writes lies in `folder`."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder, self.words = folder, words
        self.url = ""

    def __enter__(self) -> Any:
        home = self.folder / f"home-{self.words[0]}"
        config = home / "config"
        (config / "labconfig").mkdir(parents=True)
        off = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
        (config / "labconfig" / "page_config.json").write_text(json.dumps(off), encoding="utf-8")
        names = {"CONFIG_DIR": config, "DATA_DIR": home / "data", "RUNTIME_DIR": home / "run"}
        folders = {f"JUPYTER_{name}": str(path) for name, path in names.items()}
        folders |= {
            "IPYTHONDIR": str(home / "ipython"),
            "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        }
        folders |= {"JUPYTERLAB_WORKSPACES_DIR": str(home / "spaces"), "HOME": str(home)}
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self.log = (self.folder / "server.log").open("w", encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, "-m", *self.words],
            env={**os.environ, **folders, "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"},
            cwd=self.folder,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            self.wait(home / "run")
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait(self, runtime: Path) -> None:
        """Wait until the server tells its address."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            for found in runtime.glob(f"jpserver-{self.process.pid}.json"):
                with suppress(json.JSONDecodeError):
                    self.url = json.loads(found.read_text(encoding="utf-8"))["url"]
                    return
            time.sleep(0.1)
        raise RuntimeError((self.folder / "server.log").read_text(encoding="utf-8"))

    def __exit__(self, *_: object) -> None:
        """End the server and the kernels it started: they are one session of processes, its own."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()


class Lab(Server):
    """JupyterLab."""

    def __init__(self, folder: Path) -> None:
        words = [
            "jupyterlab",
            "--no-browser",
            "--ServerApp.port=0",
            "--ServerApp.ip=127.0.0.1",
            "--allow-root",
        ]
        words += [f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}"]
        super().__init__(
            folder, *words, "--LabApp.expose_app_in_browser=True", "--ServerApp.log_level=WARN"
        )

    def open(self, page: Any, name: str, *, run: bool = True) -> None:
        """Open a notebook of the folder, wait for its kernel, and run it."""
        page.goto(f"{self.url}doc/tree/{name}?token={TOKEN}")
        page.wait_for_function(CONNECTED, timeout=60_000)
        if run:
            page.evaluate(RUN)


class Voila(Server):
    """One notebook as a Voila page."""

    def __init__(self, folder: Path, name: str, port: int) -> None:
        words = ["voila", name, "--no-browser", f"--port={port}", "--Voila.ip=127.0.0.1"]
        super().__init__(folder, *words)
        self.url = f"http://127.0.0.1:{port}/"

    def wait(self, runtime: Path) -> None:
        """Wait until the port answers; Voila leaves no file that names it."""
        import socket

        port = int(self.url.rsplit(":", 1)[1].strip("/"))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            time.sleep(0.1)
        raise RuntimeError((self.folder / "server.log").read_text(encoding="utf-8"))
