"""From a path to a Scenario."""

from __future__ import annotations

from pathlib import Path

from ragnb.errors import RagnbError, did_you_mean
from ragnb.scenario.model import Scenario
from ragnb.scenario.source import read_text, text_of


def load_scenario(path: str | Path) -> Scenario:
    """Read a scenario from its YAML file.

    Parameters
    ----------
    path : str or Path
        A UTF-8 file of at most 1 MB. Paths in it are relative to its folder.

    Returns
    -------
    Scenario

    Raises
    ------
    RagnbError
        For a file that is not there, is not plain YAML, or holds settings that are not understood; with
        file, line and dotted key. The message never holds an endpoint's key.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "s.csv").write_text("faithfulness\\n0.5\\n")
    ...     _ = Path(folder, "s.yaml").write_text("scores: s.csv\\nlevel: 0.9\\n")
    ...     load_scenario(Path(folder, "s.yaml")).level
    0.9
    """
    try:
        return _load(Path(path))
    except RagnbError as error:
        message = str(error)
    raise RagnbError(message)  # anew: the first one's frames hold the file's text, and with it perhaps a key


def _load(file: Path) -> Scenario:
    try:
        if not file.is_file():
            beside = file.parent.resolve().iterdir()
            near = sorted(entry.name for entry in beside if entry.suffix in (".yaml", ".yml"))
            raise RagnbError(f"no scenario at {str(file)!r}; {did_you_mean(file.name, near)}")
        source = read_text(text_of(file), file)
    except OSError as error:
        raise RagnbError(f"cannot read the scenario {str(file)!r}: {error.strerror}") from None
    return Scenario._of_file(source.data, source, file)
