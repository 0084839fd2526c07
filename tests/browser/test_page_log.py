"""The page fixture is what browser tests lean on, so it is shown to see what it should."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser


def test_page_log_sees_requests_errors_and_dialogs(page, page_log, tmp_path):
    file = tmp_path / "loud.html"
    file.write_text(
        '<img src="absent.png"><script>console.error("told"); alert("hello")</script>'
        '<script>throw Error("thrown")</script>',
        encoding="utf-8",
    )
    page.goto(file.as_uri())
    assert [url.rsplit("/", 1)[-1] for url in page_log.requests] == ["loud.html", "absent.png"]
    assert "told" in page_log.errors
    assert any("thrown" in error for error in page_log.errors)
    assert page_log.dialogs == ["hello"]


def test_page_log_of_a_quiet_page_is_empty(page, page_log, tmp_path):
    file = tmp_path / "quiet.html"
    file.write_text("<!doctype html><title>quiet</title><p>差旅", encoding="utf-8")
    page.goto(file.as_uri())
    assert page_log.requests == [file.as_uri()]
    assert not page_log.errors
