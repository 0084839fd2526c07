"""A run that is killed loses only the calls under way: ``benchmarks/store.py`` kills a hundred times."""

from __future__ import annotations

import sys

import pytest
from kill_runs import check

BROKEN = [
    "asked_twice_in_a_try",
    "paid_again_after_it_was_kept",
    "more_lost_than_under_way",
    "told_and_not_kept",
    "kept_twice",
    "other_frames",
]


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 and fork are of Unix")
def test_kill_9_at_random_moments_loses_nothing_and_pays_nothing_twice(tmp_path):
    found = check(kills=20, folder=tmp_path)
    assert found["kills"] == 20
    assert found["lost_in_flight"] > 0, "some calls were under way when the kill came"
    assert {name: found[name] for name in BROKEN} == dict.fromkeys(BROKEN, 0)
