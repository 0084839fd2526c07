"""Every line of the card of every real file works, or names the choice that is open."""

from pathlib import Path

import pytest
from card_lines import run_lines

import ragnb as rn
from ragnb.errors import RagnbError

# Of a known metric on a scale of its own, a warning says that its rule does not fit.
pytestmark = pytest.mark.filterwarnings("ignore::ragnb.errors.RagnbWarning")
FOLDERS = ("meaning", "scores", "score_tables", "tool_files", "ratings", "cases", "traces")
READ = {".csv", ".json", ".jsonl", ".parquet", ".eval", ".gz", ".tsv", ".xlsx"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_line_of_a_card_of_a_real_file_works(shared, folder):
    files = [
        path
        for path in sorted(Path(shared / "data" / folder).rglob("*"))
        if path.is_file() and path.suffix in READ and path.name != "expected.json"
    ]
    assert files
    wrong = []
    for path in files:
        try:
            card = rn.inspect_file(path)
        except RagnbError:
            continue  # which says what the file is
        try:
            run_lines(card)
        except AssertionError as error:
            wrong.append(f"{path.name}: {str(error)[:400]}")
    assert not wrong, "\n".join(wrong)
