"""What tests on the real data share."""

import json

import pytest


@pytest.fixture(scope="session")
def reference(shared):
    """Values computed from the real ratings by others."""
    return json.loads((shared / "reference" / "reference.json").read_text(encoding="utf-8"))
