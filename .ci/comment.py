"""Write a file as the comment of a pull request, or update the one that is there; Python's own library suffices.

Called by the action with GITHUB_TOKEN, GITHUB_API_URL, GITHUB_REPOSITORY and GITHUB_EVENT_PATH set. The comment is
found by the first line of the file. A comment that cannot be written is a warning: the gates decide the job.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

PAGE = 100
MOST_PAGES = 30


class NoRedirect(HTTPRedirectHandler):
    """The token goes to the address it is for, and to no other."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


OPENER = build_opener(NoRedirect)


def ask(method: str, path: str, body: Any = None) -> Any:
    request = Request(
        f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )
    with OPENER.open(request, timeout=30) as reply:
        return json.load(reply)


def ours(number: int, mark: str) -> list[int]:
    """Return the comments that begin with the mark and were written by a bot: people may quote it."""
    found: list[int] = []
    for page in range(1, MOST_PAGES + 1):
        rows = ask("GET", f"issues/{number}/comments?per_page={PAGE}&page={page}")
        found += [
            row["id"]
            for row in rows
            if row["body"].startswith(mark) and row["user"]["type"] == "Bot"
        ]
        if len(rows) < PAGE:
            break
    return found


def write(body: str) -> str:
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    if "pull_request" not in event:
        return "no pull request started this job; no comment is written"
    number = int(event["pull_request"]["number"])
    for comment in ours(number, body.split("\n", 1)[0]):
        try:
            ask("PATCH", f"issues/comments/{comment}", {"body": body})
            return f"comment {comment} is updated"
        except HTTPError as error:
            if error.code not in (403, 404):  # another bot's, or deleted meanwhile
                raise
    ask("POST", f"issues/{number}/comments", {"body": body})
    return "a comment is written"


def main() -> None:
    body = Path(sys.argv[1]).read_text(encoding="utf-8")
    try:
        print(write(body))
    except HTTPError as error:
        hint = (
            "; the job needs permissions: pull-requests: write" if error.code in (401, 403) else ""
        )
        print(f"::warning::the comment was not written: HTTP {error.code}{hint}")
    except (URLError, OSError, ValueError, KeyError) as error:
        print(f"::warning::the comment was not written: {type(error).__name__}")


if __name__ == "__main__":
    main()
