"""pytest: the gates of a scenario as tests, and the gates of rows in a test of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ragnb.sheet import Assessment

_OPTION = "--ragnb-scenario"


def assert_gates(result: Any, scenario: Any = None) -> None:
    """Fail the running test if a gate blocks, skip it if none blocks and one is not decided.

    Parameters
    ----------
    result : Assessment, DataFrame or path
        What `ragnb.assess` returned, or what it takes.
    scenario : Scenario or path, optional
        Whose settings, gates among them, apply to a frame; its own files are not read.

    Raises
    ------
    AssertionError
        With the sentence of every gate that blocks.
    ragnb.errors.RagnbError
        As `ragnb.assess`.

    Examples
    --------
    >>> import pandas as pd, ragnb as rn
    >>> scores = pd.DataFrame({"faithfulness": [0.9, 0.8, 0.85, 0.95] * 5, "doc_name": range(20)})
    >>> assert_gates(rn.assess(scores, gates=[rn.Gate("G", "faithfulness", ">=", 0.3)]))
    """
    from ragnb.scenario import Scenario, load_scenario
    from ragnb.scenario.fields import SOURCES
    from ragnb.sheet import Assessment, assess

    __tracebackhide__ = True
    sheet = result
    if not isinstance(result, Assessment):
        if scenario is None:
            given = Scenario.without_files()
        else:
            given = scenario
        if isinstance(given, str | Path):
            given = load_scenario(given)
        sheet = assess(
            result, **{key: getattr(given, key) for key in given.model_fields_set - {*SOURCES}}
        )
    told = {
        kind: "\n".join(f"{title}: {words}" for title, one, words in _cases(sheet) if one == kind)
        for kind in ("failure", "skipped")
    }
    if told["failure"]:
        raise AssertionError(told["failure"])  # an assert would be left out by python -O
    if told["skipped"]:
        pytest.skip(told["skipped"])


@cache
def _sheet(scenario: Path) -> Assessment:
    from ragnb.sheet import assess

    return assess(scenario)


def _cases(sheet: Assessment) -> list[tuple[str, str, str]]:
    """Return the title of each gate, what it is in JUnit, and its sentence; nothing that decides is skipped."""
    from ragnb.sheet.formatter import Formatter
    from ragnb.sheet.gates import deciding
    from ragnb.sheet.sections.gates import cases

    listed = [(title, kind, words) for title, kind, _, words in cases(Formatter(sheet))]
    if len(deciding(sheet.gates)):
        return listed
    return [*listed, ("gates", "skipped", sheet.verdict)]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    words = "a scenario whose gates are tests, one each; may be given several times"
    parser.getgroup("ragnb").addoption(
        _OPTION, action="append", default=[], metavar="FILE", help=words
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect the scenarios like files that are named on the command line."""
    config.args += [name for name in config.getoption(_OPTION) if name not in config.args]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return the collector of a scenario that the option names."""
    named = [
        parent.config.invocation_params.dir / name for name in parent.config.getoption(_OPTION)
    ]
    if file_path in [*map(Path.resolve, named)]:
        return _Gates.from_parent(parent, path=file_path)
    return None


class _Gates(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        from ragnb.errors import RagnbError

        try:
            cases = _cases(_sheet(self.path))
        except RagnbError as error:
            raise self.CollectError(str(error)) from None
        for title, kind, words in cases:
            yield _Gate.from_parent(self, name=title, kind=kind, words=words)


class _Gate(pytest.Item):
    def __init__(self, *, kind: str, words: str, **how: Any) -> None:
        super().__init__(**how)
        self.kind = kind
        self.words = words

    def runtest(self) -> None:
        if self.kind == "failure":
            pytest.fail(self.words, pytrace=False)
        if self.kind == "skipped":
            pytest.skip(self.words)


@pytest.fixture
def ragnb_assess(request: pytest.FixtureRequest) -> Callable[..., Assessment]:
    """Return `ragnb.assess`, which takes the scenario of ``--ragnb-scenario`` where no source is given."""
    from ragnb.sheet import assess

    named = request.config.getoption(_OPTION)

    def of(source: Any = None, **settings: Any) -> Assessment:
        if source is None and len(named) != 1:
            pytest.fail(
                f"{_OPTION} names {len(named)} scenarios; name one, or write ragnb_assess('mine.yaml')"
            )
        if source is None:
            path = request.config.invocation_params.dir / named[0]
        else:
            path = source
        if settings or source is not None:
            return assess(path, **settings)
        return _sheet(path.resolve())

    return of
