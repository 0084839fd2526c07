"""``ragnb open``: a window in the browser for people without a notebook."""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path

import click

from ragnb import texts
from ragnb.cli import terminal
from ragnb.cli.terminal import PASSED, command
from ragnb.errors import RagnbError, require
from ragnb.example import samples_folder

_HERE = "127.0.0.1"
_TEMPLATES = Path(__file__).parents[2] / "widgets" / "window"


@command("open")
def open_command(folder: Path | None, port: int | None, no_browser: bool, lang: str | None) -> int:
    """Open a window in the browser: choose a scenario, set weights, run it, read the report, compare runs.

    FOLDER holds the scenarios; by default scenarios/ of the working directory if it exists, else the working
    directory. Reports are written to reports/ of the working directory, as by ragnb run.

    The window is a page that this computer serves to itself (127.0.0.1), with a token in its address. Ctrl-C ends
    it and stops what runs; calls already paid for are kept.

    \b
    Examples
      ragnb open
      ragnb open my_scenarios --lang zh

    Exit code: 0 after Ctrl-C, 2 without a scenario.
    """
    require("voila", extra="app")
    from ragnb.report.kernel import fill_in

    folder = (folder or _usual_folder()).resolve()
    _need_scenarios(folder)
    # Without a token, other users of this computer could open the page.
    token = secrets.token_urlsafe(24)
    port = port or _free_port()
    address = f"http://{_HERE}:{port}/?token={token}"
    parameters = {"folder": str(folder), "home": str(Path.cwd())}
    if lang:
        parameters["lang"] = lang
    with tempfile.TemporaryDirectory(prefix="ragnb-", ignore_cleanup_errors=True) as place:
        notebook = Path(place) / "studio.ipynb"
        fill_in(samples_folder() / "notebooks" / "studio.ipynb", notebook, parameters)

        def opened() -> None:
            click.echo(texts.load(terminal.speaking())("open.ready", address=address))
            if not no_browser:
                webbrowser.open(address)

        _serve(notebook, port=port, token=token, opened=opened)
    return PASSED


def _usual_folder() -> Path:
    scenarios = Path("scenarios")
    if scenarios.is_dir():
        return scenarios
    return Path()


def _need_scenarios(folder: Path) -> None:
    if not folder.is_dir():
        raise RagnbError(f"{folder}: there is no such folder; name one with scenarios (.yaml)")
    if not any(path.suffix.lower() in (".yaml", ".yml") for path in folder.iterdir()):
        raise RagnbError(
            f"{folder}: no scenario (.yaml) in it; name another folder, or write one with ragnb init"
        )


def _free_port() -> int:
    """Return a port that nobody listens on; another process may still take it first."""
    with socket.socket() as probe:
        probe.bind((_HERE, 0))  # 0 lets the system choose
        return int(probe.getsockname()[1])


def _serve(notebook: Path, *, port: int, token: str, opened: Callable[[], None]) -> None:
    """Serve a notebook until Ctrl-C or SIGTERM; its kernels end with the server."""
    from tornado.ioloop import IOLoop
    from traitlets.config import Config

    from ragnb.inputs.stages import HOME

    # Kernels inherit both: where reports are, and what a template of ours is looked for in.
    os.environ[HOME] = str(Path.cwd())
    paths = [str(_TEMPLATES)]
    if os.environ.get("JUPYTER_PATH"):
        paths.append(os.environ["JUPYTER_PATH"])
    os.environ["JUPYTER_PATH"] = os.pathsep.join(paths)
    config = Config(
        Voila={
            "ip": _HERE,
            "port": port,
            "port_retries": 0,  # the address is printed with this port
            "token": token,
            "open_browser": False,
            "log_level": "ERROR",
            "tornado_settings": {"ws_ping_interval": 30000, "ws_ping_timeout": 30000},  # ms
        },
        KernelManager={"transport": "ipc"} if os.name == "posix" else {},
        VoilaConfiguration={"template": "ragnb"},
    )
    server = require("voila.app", extra="app").Voila(config=config)
    server.initialize([str(notebook)])
    IOLoop.current().add_callback(opened)
    server.start()
