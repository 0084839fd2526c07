"""pytest: the gates of a scenario as tests, and the gates of rows in a test of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
        settings = Scenario.without_files() if scenario is None else scenario
        if isinstance(settings, str | Path):
            settings = load_scenario(settings)
        # Only what was set: `assess` has defaults of its own, and takes the frame in place of files.
        names = settings.model_fields_set - {*SOURCES}
        sheet = assess(result, **{name: getattr(settings, name) for name in names})
    cases = _cases(sheet)
    failures = [f"{case.title}: {case.sentence}" for case in cases if case.kind == "failure"]
    skipped = [f"{case.title}: {case.sentence}" for case in cases if case.kind == "skipped"]
    if failures:
        raise AssertionError("\n".join(failures))  # an assert would be left out by python -O
    if skipped:
        pytest.skip("\n".join(skipped))


@cache
def _sheet(scenario: Path) -> Assessment:
    """Return the assessment of a scenario, once for all tests of a run."""
    from ragnb.sheet import assess

    return assess(scenario)


class _Case(NamedTuple):
    """A gate as a test: its title, what it is in JUnit (``failure``, ``skipped`` or else), and its sentence."""

    title: str
    kind: str
    sentence: str


def _cases(sheet: Assessment) -> list[_Case]:
    """Return a case for each gate, and a skipped one where no gate decides."""
    from ragnb.sheet.formatter import Formatter
    from ragnb.sheet.gates import deciding
    from ragnb.sheet.sections.gates import cases

    listed = [_Case(title, kind, words) for title, kind, _, words in cases(Formatter(sheet))]
    # Without it a run in which nothing was decided would pass.
    if not len(deciding(sheet.gates)):
        listed.append(_Case("gates", "skipped", sheet.verdict))
    return listed


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
    # As typed, relative to where pytest was started; that may be another folder than its rootdir.
    started_in = parent.config.invocation_params.dir
    named = [(started_in / name).resolve() for name in parent.config.getoption(_OPTION)]
    if file_path in named:
        return _Gates.from_parent(parent, path=file_path)
    return None


class _Gates(pytest.File):
    """A scenario, whose gates are tests."""

    def collect(self) -> Iterator[pytest.Item]:
        from ragnb.errors import RagnbError

        try:
            cases = _cases(_sheet(self.path))
        except RagnbError as error:
            raise self.CollectError(str(error)) from None
        for case in cases:
            yield _Gate.from_parent(self, name=case.title, kind=case.kind, words=case.sentence)


class _Gate(pytest.Item):
    """A gate, which fails where it blocks and is skipped where it is not decided."""

    def __init__(self, *, kind: str, words: str, **settings: Any) -> None:
        super().__init__(**settings)
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
        if source is not None:
            return assess(source, **settings)
        if len(named) != 1:
            pytest.fail(
                f"{_OPTION} names {len(named)} scenarios; name one, or write ragnb_assess('mine.yaml')"
            )
        path = request.config.invocation_params.dir / named[0]
        if settings:
            return assess(path, **settings)
        return _sheet(path.resolve())

    return of
