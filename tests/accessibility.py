"""What axe finds in a page."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# axe describes each element that passes, too, with a selector: half of its time, and nobody reads it.
VIOLATIONS_ALONE = {"resultTypes": ["violations"], "selectors": False}


def violations(
    page: Page, context: str | None = None, rules: list[str] | None = None
) -> list[dict[str, Any]]:
    """Return the violations of all rules, or of those named, in a page or a part of it."""
    options: dict[str, Any] = dict(VIOLATIONS_ALONE)
    if rules:
        options["runOnly"] = rules
    return Axe().run(page, context=context, options=options).response["violations"]
