"""Scenarios from their files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ragnb.errors import RagnbError, did_you_mean, place
from ragnb.scenario.model import Scenario
from ragnb.scenario.source import dotted, read_text, text_of


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
    file = Path(path)
    try:
        if not file.is_file():
            beside = file.parent.resolve().iterdir()
            names = sorted(other.name for other in beside if other.suffix in (".yaml", ".yml"))
            raise RagnbError(f"no scenario at {str(file)!r}; {did_you_mean(file.name, names)}")
        return Scenario.of_file(read_text(text_of(file), file))
    except OSError as error:
        message = f"cannot read the scenario {str(file)!r}: {error.strerror}"
    except RagnbError as error:
        message = str(error)
    # A new error: the frames of the first one hold the file's text, and with it perhaps a key.
    raise RagnbError(message)


def metric_place(scenario: Scenario, name: str) -> str:
    """Return the file, line and key at which a scenario names a metric, as a message begins; else nothing.

    Examples
    --------
    >>> metric_place(Scenario.without_files(metrics=["faithfulness"]), "faithfulness")
    ''
    """
    if scenario.path is None:
        return ""
    source = read_text(text_of(scenario.path), scenario.path)
    listed = source.data.get("metrics")
    items = listed if isinstance(listed, list) else [listed]
    for i, item in enumerate(items):
        item_name = item.get("name") if isinstance(item, Mapping) else item
        if item_name == name:
            where = ("metrics", i) if isinstance(listed, list) else ("metrics",)
            return place(scenario.path, source.line(where), dotted(where))
    return ""
