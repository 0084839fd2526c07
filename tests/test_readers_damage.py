"""Damaged files of tools and tables that are too wide: a sentence with the file's name, never a traceback."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from ragnb.errors import RagnbError
from ragnb.readers import formats, read_scores
from ragnb.readers.guard import told_in_words


def test_whatever_damage_raises_is_a_sentence_that_is_cut(tmp_path):
    for error in (KeyError("x"), TypeError("unhashable " * 50_000), RecursionError("deep")):
        with pytest.raises(RagnbError) as told, told_in_words("run.eval"):
            raise error
        assert str(told.value).startswith("run.eval")
        assert type(error).__name__ in str(told.value)
        assert len(str(told.value)) < 600
    with pytest.raises(RagnbError, match="more memory") as told, told_in_words("run.eval"):
        raise MemoryError
    with pytest.raises(RagnbError) as told, told_in_words("run.eval"):
        raise RagnbError("y" * 200_000)
    assert len(str(told.value)) <= 3_000
    with pytest.raises(FileNotFoundError), told_in_words("run.eval"):
        raise FileNotFoundError("run.eval")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_line_of_a_million_columns_is_refused_before_it_is_parsed(
    tmp_path, monkeypatch, separator
):
    path = tmp_path / "wide.csv"
    path.write_text(separator.join(f"c{i}" for i in range(1_000_000)) + "\n", encoding="utf-8")
    monkeypatch.setattr(formats, "_rows", lambda *_: pytest.fail("it was parsed"))
    monkeypatch.setattr(formats, "_quick", lambda *_: pytest.fail("it was parsed"))
    with pytest.raises(RagnbError, match=r"has 1,000,000 columns or more, the most is 10,000"):
        read_scores(path)


def test_a_long_first_line_of_text_is_no_wide_table(tmp_path):
    path = tmp_path / "long.csv"
    quoted = '"' + "a, " * 20_000 + '"'
    path.write_text(f"question,{quoted},faithfulness\nWho?,x,0.5\n", encoding="utf-8")
    assert read_scores(path)["faithfulness"].tolist() == [0.5]


FILES = Path(__file__).with_name("tool_files")


def damaged(value, key, instead):
    """A JSON value with something else at each place of a key."""
    if isinstance(value, dict):
        return {k: instead if k == key else damaged(v, key, instead) for k, v in value.items()}
    return [damaged(v, key, instead) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("key", ["componentResults", "gradingResult", "vars", "response"])
@pytest.mark.parametrize("instead", ["a text", 7, [[3]], {"threshold": [1]}])
def test_a_damaged_file_of_promptfoo_is_read_or_told(tmp_path, key, instead):
    path = tmp_path / "out.json"
    whole = json.loads(next(FILES.glob("promptfoo*.json")).read_text(encoding="utf-8"))
    path.write_text(json.dumps(damaged(whole, key, instead)), encoding="utf-8")
    with suppress(RagnbError):
        assert len(read_scores(path))


def test_a_damaged_log_of_inspect_is_told(tmp_path):
    whole = next(FILES.glob("*.eval")).read_bytes()
    for place in range(30, len(whole), len(whole) // 25):
        path = tmp_path / f"{place}.eval"
        path.write_bytes(whole[:place] + b"\xff\x00\xaa\x55" * 8 + whole[place + 32 :])
        with suppress(RagnbError):
            assert len(read_scores(path))
