"""A page of a real Chromium that writes down what it asks for and what goes wrong in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page


@dataclass
class PageLog:
    """Addresses asked for, and errors of the console and of scripts, in order."""

    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


@pytest.fixture
def page_log() -> PageLog:
    return PageLog()


@pytest.fixture
def page(chromium: Browser, page_log: PageLog) -> Iterator[Page]:
    """An empty page in a context of its own; `page_log` holds what it did."""
    context = chromium.new_context()
    page = context.new_page()
    page.on("request", lambda request: page_log.requests.append(request.url))
    page.on(
        "console", lambda line: page_log.errors.append(line.text) if line.type == "error" else None
    )
    page.on("pageerror", lambda error: page_log.errors.append(str(error)))

    def dismiss(dialog) -> None:
        page_log.dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    yield page
    context.close()
