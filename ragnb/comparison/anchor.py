"""The anchor: the accepted run that later ones are compared with, moved only by a person."""

from __future__ import annotations

import shutil
from pathlib import Path

from ragnb.comparison.source import located
from ragnb.errors import RagnbError
from ragnb.scenario.patch import plan_patch


def accept(run: str, scenario: Path) -> Path:
    """Keep the scores of a run beside a scenario and name them there as its ``anchor:``.

    The folders of runs are not in git, and a comparison next year needs the scores: they are copied.

    Parameters
    ----------
    run : str
        The folder of a run, ``reports/NAME/latest``, or a table of scores.
    scenario : Path
        The scenario file; only its line ``anchor:`` changes.

    Returns
    -------
    Path
        The copy, ``NAME.anchor.csv`` (or the ending of the table) beside the scenario.

    Raises
    ------
    RagnbError
        For a run that is not there or kept no scores, and a scenario that cannot be patched.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("s.csv", "old.csv"):
    ...         _ = Path(folder, name).write_text("sample_id,faithfulness\\n1,0.5\\n")
    ...     _ = Path(folder, "s.yaml").write_text("scores: s.csv\\n")
    ...     accept(f"{folder}/old.csv", Path(folder, "s.yaml")).name, Path(folder, "s.yaml").read_text()
    ('s.anchor.csv', 'scores: s.csv\\nanchor: s.anchor.csv\\n')
    """
    place = None if "#" in run else located(run)
    if place is None:
        raise RagnbError(
            f"{run}: there is no such table of scores or folder of a run to accept; name one, such as "
            "reports/NAME/latest"
        )
    if Path(place).is_dir():
        table = Path(place) / "scores.csv"
    else:
        table = Path(place)
    if not table.is_file():
        raise RagnbError(f"{place}: holds no scores.csv; accept a table of its scores instead")
    kept = scenario.with_name(f"{scenario.stem}.anchor{table.suffix}")
    patch = plan_patch(scenario, {"anchor": kept.name})
    if not (kept.exists() and kept.samefile(table)):
        shutil.copyfile(table, kept)
    patch.write()
    return kept
