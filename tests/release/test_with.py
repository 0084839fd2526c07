"""The pages *Use it with* whose packages the tests do not have run in an environment of their own."""

from __future__ import annotations

import pytest
from environments import ROOT, Environment
from test_docs import APART

PACKAGES = {
    "great_tables": "great-tables",
    "haystack": "haystack-ai",
    "llama_index": "llama-index-core",
    "marimo": "marimo",
    "mlflow": "mlflow",
}
# What tests/conftest.py and tests/test_docs.py import.
TOOLS = ("hypothesis", "nbval", "pytest", "pytest-xdist")


@pytest.fixture(scope="module")
def beside(environment, wheel) -> Environment:
    """An environment with the wheel and all tools that only a page uses."""
    made = environment()
    made.pip("install", f"{wheel}[notebook]", *PACKAGES.values(), *TOOLS)
    return made


def test_each_tool_has_a_package():
    assert set(PACKAGES) == set(APART.values())


@pytest.mark.parametrize("page", sorted(APART))
def test_the_page_of_a_tool_runs_beside_it(page, beside):
    tests = ROOT / "tests" / "test_docs.py"
    # What these tools warn of in each other is theirs.
    quiet = ("-n", "0", "-v", "-W", "default")
    beside.succeed("pytest", *quiet, tests, "-k", f"blocks and en-{page}", cwd=ROOT)
