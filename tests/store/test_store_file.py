"""Stores that others hold, that are damaged, or that ragnb wrote before: told by name, bounded, never changed."""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import chdir, closing
from pathlib import Path

import pytest
from judge_server import examiner
from llm_server import Answer, LlmServer

from ragnb.cli import main
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.schema import Profile
from ragnb.store import Cell, Client, Outcome, Store, estimate, run_cells
from ragnb.store.loop import _QUIET
from ragnb.store.store import opened

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = json.dumps(
    ["build-7 ab12 0000 pid:[4]", 4711, 1.5, "f00d"]
)  # as the first version wrote it
told = pytest.mark.filterwarnings("default::ragnb.errors.RagnbWarning")


def cells_of(n, model="small"):
    return [
        Cell(f"s{i}", "echo", {"text": f"text {i}"}, model=model, cluster="d") for i in range(n)
    ]


def claimed(path, owner, until, n=3):
    """Plan six cells and have a holder claim some of them."""
    with Store(path) as store:
        store.plan(cells_of(6))
        with store._writing() as file:
            rows = [(cell.key, owner, until) for cell in cells_of(n)]
            file.executemany("INSERT INTO claims VALUES (?, ?, ?)", rows)


def shouting(store, **more):
    async def work(cell):
        return Outcome.of(cell.inputs["text"])

    return run_cells(cells_of(6), work, store, **more)


# Waits


@pytest.mark.parametrize("ahead", [86400, 60, 1e300])
@pytest.mark.parametrize(
    "owner", [ELSEWHERE, "a name", Store(None)._owner], ids=["first", "any", "ours"]
)
def test_a_claim_without_a_sign_of_life_holds_for_one_lease_whatever_its_date(
    tmp_path, monkeypatch, owner, ahead
):
    monkeypatch.setattr("ragnb.store.loop._QUIET", 0)  # the first look that finds claims is told
    claimed(tmp_path / "a.sqlite", owner, time.time() + ahead)
    with Store(tmp_path / "a.sqlite", lease=0.6) as store:
        with pytest.warns(RagnbWarning) as said:
            run = shouting(store)
        assert run.counts["ok"] == 6
    texts = [str(one.message) for one in said]
    assert re.match(
        r"waiting for 3 cells claimed by another process: process .+ on \S+ \(until ", texts[0]
    )
    who = {ELSEWHERE: "process 4711 on build-7", "a name": "process ? on ?"}.get(owner, "process ")
    assert all(who in text for text in texts[:2])
    assert re.search(r"showed no activity; its 3 cells are taken over", texts[1])


@pytest.mark.parametrize("step", [-86400.0, 86400.0])
def test_a_step_of_the_clock_neither_ends_a_living_claim_nor_prolongs_a_dead_one(
    tmp_path, clock, step
):
    with (
        Store(tmp_path / "a.sqlite", lease=0.5) as one,
        Store(tmp_path / "a.sqlite", lease=0.5) as other,
    ):
        one.plan(cells_of(2))
        keys = {cell.key for cell in cells_of(2)}
        assert one.claim([*keys], 0) == (keys, set())
        assert other.claim([*keys], 0) == (set(), keys)
        clock.day += step
        assert other.claim([*keys], 0) == (set(), keys)
        for _ in range(4):
            clock.pass_seconds(0.2)
            one.renew()
            assert other.claim([*keys], 0) == (set(), keys)
        clock.pass_seconds(0.6)
        assert other.claim([*keys], 0) == (keys, set())


@told
def test_a_wait_is_told_on_stderr_by_name_before_the_lease_ends(
    tmp_path, llm_server, monkeypatch, capsys
):
    """Another host holds the answer for a day; it is judged after a lease, here of a second."""
    assert 0 < _QUIET < Store(None).lease
    monkeypatch.setattr("ragnb.store.loop._QUIET", 0)  # the first look that finds claims is told
    llm_server.script = examiner
    case = {
        "sample_id": "a",
        "question": "How long?",
        "answer": "730 days.",
        "retrieved_contexts": ["730 days."],
    }
    (tmp_path / "cases.jsonl").write_text(json.dumps(case), encoding="utf-8")
    judge = f"llm_profiles:\n  judge: {{base_url: '{llm_server.base_url}', model: small}}\n"
    (tmp_path / "mine.yaml").write_text(f"cases: cases.jsonl\n{judge}", encoding="utf-8")
    words = ["judge", "mine.yaml", "--store", "a.sqlite", "--out", "out.csv", "--no-probes"]
    monkeypatch.chdir(tmp_path)
    assert main(words) == 0
    with sqlite3.connect(tmp_path / "a.sqlite") as file:
        keys = [key for (key,) in file.execute("SELECT key FROM cells")]
        for table in ("attempts", "calls"):
            file.execute(f"DELETE FROM {table}")
            file.execute("DELETE FROM sqlite_sequence WHERE name = ?", [table])
        rows = [(key, ELSEWHERE, time.time() + 86400) for key in keys]
        file.executemany("INSERT INTO claims VALUES (?, ?, ?)", rows)
    file.close()
    monkeypatch.setitem(Store.__init__.__kwdefaults__, "lease", 1.0)
    capsys.readouterr()
    assert main(words) == 0
    said = capsys.readouterr().err.splitlines()
    waiting = "ragnb: note: waiting for 1 cells claimed by another process: process 4711 on build-7"
    assert said[0].startswith(waiting)
    assert said[1].startswith("ragnb: note: process 4711 on build-7 showed no activity")
    assert len(llm_server.log) == 2


@told
def test_a_store_that_another_process_writes_to_without_an_end_is_given_up_with_its_name(
    tmp_path, capfd
):
    path = tmp_path / "a.sqlite"
    claimed(path, ELSEWHERE, time.time() + 86400)
    with sqlite3.connect(path, isolation_level=None) as other, Store(path, lease=0.5) as store:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            RagnbError, match=r"process 4711 on build-7 has been writing .* for 0\.5 s"
        ):
            store.plan(cells_of(7))
        other.execute("ROLLBACK")
        assert store.plan(cells_of(7))
    other.close()


def test_claims_are_shown_by_process_and_host(tmp_path, capsys):
    path = tmp_path / "a.sqlite"
    claimed(path, ELSEWHERE, 4e9)
    keys = {cell.key for cell in cells_of(5)[3:]}
    with Store(path) as store:
        assert store.claim([*keys], 0) == (keys, set())
        assert main(["runs", str(path), "--claims"]) == 0
        said = capsys.readouterr().out
        rows = store.claims().set_index("process")
    assert re.search(r"4711 +build-7 +3 +— +2096-10-02T07:06:40\n", said)
    assert re.search(rf"{os.getpid()} +\S+ +2 +20\d\d-\S+ +20\d\d-", said)
    assert rows.loc[4711, "cells"] == 3
    with Store(path) as store:
        store._file.execute("UPDATE claims SET owner = 'some other name'")
        assert main(["runs", str(path), "--claims"]) == 0
        assert re.search(r"\? +\? +5 +— +2096", capsys.readouterr().out)
        store._file.execute("DELETE FROM claims")
    assert main(["runs", str(path), "--claims", "--lang", "zh"]) == 0
    assert "没有被占用" in capsys.readouterr().out


def test_a_store_that_may_not_be_written_is_refused_at_once(tmp_path, monkeypatch):
    Store(tmp_path / "a.sqlite").close()
    read_only = sqlite3.OperationalError("attempt to write a readonly database")
    read_only.sqlite_errorcode = sqlite3.SQLITE_READONLY

    def pragma(file, words):
        if words.startswith("journal_mode"):
            raise read_only
        return file.execute(f"PRAGMA {words}").fetchone()[0]

    monkeypatch.setattr("ragnb.store.store.pragma", pragma)
    monkeypatch.setattr("ragnb.store.store.time.sleep", lambda _: pytest.fail("it waits"))
    with pytest.raises(RagnbError, match="attempt to write a readonly database"):
        Store(tmp_path / "a.sqlite", lease=30)


# Damage


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store of two runs, its texts long enough for chains of pages, and what it holds."""
    path, draw = tmp_path_factory.mktemp("store") / "a.sqlite", random.Random(5)
    with Store(path) as store:
        for model in ("small", "large"):
            cells = cells_of(40, model)
            store.plan(cells, name=f"with {model} sk-{'a1' * 8}", about={"model": model})
            replies = ["甲 reply " * draw.choice([1, 30, 600, 3000]) for _ in cells]
            done = [Outcome("ok", {"accuracy": i}, None, (text,)) for i, text in enumerate(replies)]
            store.put(list(zip(cells, done, strict=True)))
        frames = [store.frame(run).to_json() for run in store.runs()["run"]]
    return path.read_bytes(), frames


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_of_an_earlier_version_is_refused_by_name_and_left_as_it_is(
    whole, tmp_path, capsys, version
):
    path = tmp_path / "old.sqlite"
    path.write_bytes(whole[0])
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA user_version = {version}")
        file.commit()
    before = path.read_bytes()
    with pytest.raises(
        RagnbError, match=f"a store of version {version}; this ragnb reads version 3"
    ):
        Store(path)
    for more in ([], ["--claims"], ["--verify"], ["--export", str(tmp_path / "a.jsonl")]):
        assert main(["runs", str(path), *more]) == 2, more
        assert f"a store of version {version}" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["old.sqlite"]


def test_a_new_store_is_made_where_only_the_log_of_a_deleted_one_is_left(tmp_path):
    path, cells = tmp_path / "a.sqlite", cells_of(1)
    Path(f"{path}-wal").write_bytes(b"x" * 100)
    assert estimate(cells, path).done == 0
    assert not path.exists()
    with Store(path) as store:
        store.plan(cells)
    assert main(["runs", str(path), "--verify"]) == 0


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def damage(data, kind, draw):
    bad, pages = bytearray(data), len(data) // 4096
    place = draw.randrange(pages) * 4096
    if kind == "zeroed page":
        bad[place : place + 4096] = bytes(4096)
    elif kind == "garbage":
        start = draw.randrange(100, len(bad) - 5000)
        bad[start : start + 3000] = draw.randbytes(3000)
    elif kind == "cut off":
        del bad[draw.randrange(8192, len(bad) - 1) :]
    elif kind == "root":
        bad[4096 * draw.choice([1, 2, 3, 4]) + 3] ^= 0xFF
    return bytes(bad)


@pytest.mark.parametrize("kind", ["zeroed page", "garbage", "cut off", "root"])
def test_a_damaged_store_is_refused_untouched_and_all_that_can_be_read_is_saved(
    whole, tmp_path, capsys, kind
):
    draw = random.Random(kind)
    for n in range(4):
        path, saved = tmp_path / f"{n}.sqlite", tmp_path / f"{n}.jsonl"
        bad = damage(whole[0], kind, draw)
        path.write_bytes(bad)
        with pytest.raises(
            RagnbError, match=rf"damaged.*ragnb runs {path} --verify.*--export saved\.jsonl"
        ):
            Store(path)
        assert main(["runs", str(path)]) == 2
        assert main(["runs", str(path), "--verify"]) == 2
        said = capsys.readouterr().out
        assert f"ragnb runs {path} --export saved.jsonl" in said
        assert f"sqlite3 {path} .recover" in said
        assert main(["runs", str(path), "--export", str(saved)]) == 2
        assert "Lost: " in capsys.readouterr().out
        rows = lines_of(saved)
        end = rows[-1]
        attempts = [row for row in rows if row["type"] == "attempt"]
        assert len(attempts) == end["rows"]["attempts"]
        assert len(attempts) + end["lost"]["attempts"] == 80
        assert len(attempts) > 50 or kind == "cut off"
        known = {row["id"]: row for row in attempts if "damaged" not in row}
        assert all(row["value"] == {"accuracy": (number - 1) % 40} for number, row in known.items())
        assert path.read_bytes() == bad
        names = {f"{i}.{end}" for i in range(n + 1) for end in ("sqlite", "jsonl")}
        assert set(os.listdir(tmp_path)) == names


@pytest.mark.parametrize("length", [16, 100, 4096])
def test_a_store_without_its_first_page_is_refused_with_the_repair_of_sqlite(
    whole, tmp_path, capsys, length
):
    path = tmp_path / "a.sqlite"
    bad = bytes(length) + whole[0][length:]
    path.write_bytes(bad)
    with pytest.raises(
        RagnbError, match=rf"its first page is overwritten.*sqlite3 {path} \.recover"
    ):
        Store(path)
    for more in ([], ["--claims"], ["--verify"], ["--export", str(tmp_path / "a.jsonl")]):
        assert main(["runs", str(path), *more]) == 2, more
        assert f"sqlite3 {path} .recover" in capsys.readouterr().err
    assert path.read_bytes() == bad
    assert os.listdir(tmp_path) == ["a.sqlite"]


def test_texts_that_are_not_what_was_written_are_found_and_marked(whole, tmp_path, capsys):
    changes = [
        (b'{"accuracy":7}', b'{"accuracy":7,'),
        (b'"model":"small"', b'"model":"smell"'),
        ("甲".encode(), b"\xff\xfe\xfd"),
    ]
    for n, (old, new) in enumerate(changes):
        path, saved = tmp_path / f"{n}.sqlite", tmp_path / "saved.jsonl"
        path.write_bytes(whole[0].replace(old, new, 1))
        with pytest.raises(RagnbError, match=r"1 of \d+ rows of .* are not what was written"):
            Store(path)
        assert main(["runs", str(path), "--export", str(saved)]) == 2
        assert "1 rows, marked as damaged" in capsys.readouterr().out
        rows = lines_of(saved)
        assert sum(row.get("damaged", False) for row in rows[:-1]) == rows[-1]["damaged"] == 1
        assert rows[-1]["rows"]["attempts"] == 80


def test_no_call_is_made_where_the_store_is_damaged(whole, tmp_path, llm_server, capsys):
    llm_server.script = examiner
    (tmp_path / "cases.jsonl").write_text(
        '{"question": "How long?", "answer": "730 days."}', encoding="utf-8"
    )
    judge = f"llm_profiles:\n  judge: {{base_url: '{llm_server.base_url}', model: small}}\n"
    (tmp_path / "mine.yaml").write_text(f"cases: cases.jsonl\n{judge}", encoding="utf-8")
    store = tmp_path / "a.sqlite"
    store.write_bytes(damage(whole[0], "garbage", random.Random(1)))
    before = store.read_bytes()
    words = [str(tmp_path / "mine.yaml"), "--store", str(store), "--out", str(tmp_path / "o.csv")]
    for command in (["judge"], ["evaluate", "--metric", "context_relevance"]):
        assert main([*command, *words]) == 2
        assert "--verify" in capsys.readouterr().err
    assert not llm_server.log
    assert store.read_bytes() == before


@pytest.fixture
def killed(tmp_path):
    """A store as kill -9 leaves it: what was kept last lies in its log alone."""
    path = tmp_path / "a.sqlite"
    code = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from ragnb.store import Cell, Outcome, Store
store = Store({str(path)!r})
cells = [Cell(f"s{{i}}", "echo", {{}}, model="small") for i in range(30)]
store.plan(cells)
for cell in cells:
    store.put([(cell, Outcome.of({{"accuracy": 7}}))])
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert path.with_name("a.sqlite-wal").stat().st_size > 4096
    return path


def test_verify_and_export_change_nothing_and_see_what_lies_in_the_log(killed, tmp_path, capsys):
    before = {file.name: file.read_bytes() for file in killed.parent.iterdir()}
    assert main(["runs", str(killed), "--verify"]) == 0
    assert (
        "1 runs, 30 cells (30 uses in runs), 30 attempts, 0 calls, 0 claims"
        in capsys.readouterr().out
    )
    assert main(["runs", str(killed), "--export", str(tmp_path / "out" / "a.jsonl")]) == 0
    rows = lines_of(tmp_path / "out" / "a.jsonl")
    assert sum(row["type"] == "attempt" for row in rows) == 30
    assert rows[-1]["lost"] == dict.fromkeys(
        ["runs", "cells", "plan", "attempts", "calls", "claims"], 0
    )
    assert {name: (killed.parent / name).read_bytes() for name in before} == before


def test_a_log_whose_middle_is_damaged_is_not_passed_over_in_silence(killed, capsys):
    log = killed.with_name("a.sqlite-wal")
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    before = killed.read_bytes(), log.read_bytes()
    with pytest.raises(RagnbError, match="write-ahead log is damaged at frame"):
        Store(killed)
    assert main(["runs", str(killed), "--verify"]) == 2
    assert "write-ahead log is damaged" in capsys.readouterr().out
    assert (killed.read_bytes(), log.read_bytes()) == before
    # SQLite reads a log up to its damage: all that was committed before is saved, in order.
    assert main(["runs", str(killed), "--export", str(killed.with_name("a.jsonl"))]) == 2
    rows = lines_of(killed.with_name("a.jsonl"))
    saved = [row["id"] for row in rows if row["type"] == "attempt"]
    assert saved == [*range(1, len(saved) + 1)]
    assert 5 < len(saved) < 30


def test_a_store_that_was_killed_while_its_log_was_copied_into_it_is_whole(tmp_path, capsys):
    """Before each page of the copy, from the first, which says how many there are, to the last."""
    path, page = tmp_path / "a.sqlite", 4096
    log = Path(f"{path}-wal")
    with Store(path) as store:
        run = store.plan(cells_of(40))
        store.put([(cell, Outcome.of(1)) for cell in cells_of(40)])
        wanted = store.frame(run)
        before, in_log = path.read_bytes(), log.read_bytes()
    after = path.read_bytes()
    assert len(after) > 8 * page > len(before)
    for end in range(0, len(after) + page, page):
        path.write_bytes(after[:end] + before[end:])
        log.write_bytes(in_log)
        assert main(["runs", str(path), "--verify"]) == 0, end
        with Store(path) as store:
            assert store.frame(run).equals(wanted), end
        path.write_bytes(after[:end] + before[end:])
        log.write_bytes(in_log[: len(in_log) // 2])
        told = main(["runs", str(path), "--verify"])
        # Half of the log does not hold the pages that the file lacks.
        assert told == (2 if 0 < end < len(after) else 0), end
    capsys.readouterr()


def test_a_size_that_no_file_has_is_told_at_once(tmp_path, capsys):
    path = tmp_path / "a.sqlite"
    with Store(path) as store:
        store.plan(cells_of(3))
    data = bytearray(path.read_bytes())
    data[28:32] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    assert main(["runs", str(path), "--verify"]) == 2
    missing = 2**32 - 1 - len(data) // 4096
    assert f"its last {missing} pages are missing" in capsys.readouterr().out


def test_an_empty_store_beside_a_full_log_is_damaged(killed):
    killed.write_bytes(b"")
    log = killed.with_name("a.sqlite-wal").read_bytes()
    with pytest.raises(RagnbError, match=r"it is empty, and its log is not.*\.recover"):
        Store(killed)
    assert main(["runs", str(killed), "--export", str(killed.with_name("a.jsonl"))]) == 2
    assert killed.with_name("a.sqlite-wal").read_bytes() == log


def test_a_torn_end_of_the_log_is_what_a_crash_leaves_and_no_damage(killed, capsys):
    log = killed.with_name("a.sqlite-wal")
    log.write_bytes(log.read_bytes()[:-2000])
    assert main(["runs", str(killed), "--verify"]) == 0
    with Store(killed) as store:
        assert store.frame(store.runs()["run"][0])["status"].eq("ok").sum() == 29


def test_a_store_is_verified_while_a_run_writes_to_it(tmp_path, llm_server, capsys):
    llm_server.script = lambda request: Answer("ok", seconds=0.005)
    client = Client(Profile(base_url=llm_server.base_url, model="small"), concurrency=2)
    codes = []

    async def work(cell):
        reply = await client.chat([{"role": "user", "content": "hi"}])
        if not int(cell.sample_id[1:]) % 10:
            codes.append(main(["runs", str(tmp_path / "a.sqlite"), "--verify"]))
            Store(tmp_path / "a.sqlite").close()
        return Outcome.of(reply)

    with Store(tmp_path / "a.sqlite") as store:
        run_cells(cells_of(60), work, store, clients=[client])
    assert codes == [0] * 6


def test_an_export_holds_no_key_that_an_older_store_kept(tmp_path, capsys):
    """Before keys were refused, they stood among the parameters of cells."""
    path, key = tmp_path / "a.sqlite", "sk-canary/5d1f0a77+e8"
    cell = Cell("s1", "echo", {})
    kept = {"extra_body": {"api_key": "mine-4711", "user": f"Bearer {key}"}}
    cell.__dict__["about"] = cell.about | {"parameters": kept}
    with Store(path) as store:
        store.plan([cell])
        store.put([(cell, Outcome("ok", {"said": key}, None, (f"as {key}, you know", "plain")))])
        key_of_cell = cell.key
    assert main(["runs", str(path), "--export", str(tmp_path / "a.jsonl")]) == 0
    text = (tmp_path / "a.jsonl").read_text(encoding="utf-8")
    for canary in ("mine-4711", key, "5d1f0a77"):
        assert canary not in text
    rows = lines_of(tmp_path / "a.jsonl")
    assert [row["key"] for row in rows if row["type"] in ("cell", "attempt")] == [key_of_cell] * 2
    assert rows[3]["replies"] == ["as ***, you know", "plain"]


def test_what_is_no_store_has_nothing_to_verify_or_export(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("sample_id,score\n" * 1000, encoding="utf-8")
    with sqlite3.connect(tmp_path / "b.sqlite") as file:
        file.execute("CREATE TABLE mine (x)")
    file.close()
    Store(tmp_path / "c.sqlite").close()
    with sqlite3.connect(tmp_path / "c.sqlite") as file:
        file.execute("PRAGMA user_version = 9")
    file.close()
    for name, words in (
        ("a.csv", "not a ragnb store"),
        ("b.sqlite", "not a ragnb store"),
        ("c.sqlite", "version 9"),
        ("d", "no such store"),
    ):
        for more in (["--verify"], ["--export", str(tmp_path / "out.jsonl")]):
            assert main(["runs", str(tmp_path / name), *more]) == 2
            assert words in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()
    assert main(["runs", str(tmp_path / "c.sqlite"), "--verify", "--claims"]) == 2
    assert "one at a time" in capsys.readouterr().err
    Store(tmp_path / "e.sqlite").close()
    assert main(["runs", str(tmp_path / "e.sqlite"), "--export", str(tmp_path / "e.sqlite")]) == 2


def test_a_whole_store_is_opened_with_what_it_held(whole, tmp_path):
    (tmp_path / "a.sqlite").write_bytes(whole[0])
    with Store(tmp_path / "a.sqlite") as store:
        assert [store.frame(run).to_json() for run in store.runs()["run"]] == whole[1]


def test_a_store_whose_mark_is_overwritten_is_damaged_and_a_chain_of_pages_that_bites_its_tail_ends(
    whole, tmp_path
):
    marked = bytearray(whole[0])
    marked[68:72] = b"oops"
    (tmp_path / "a.sqlite").write_bytes(marked)
    with pytest.raises(RagnbError, match="damaged .its application id is overwritten"):
        Store(tmp_path / "a.sqlite")
    looped = bytearray(whole[0])
    for number in range(1, len(looped) // 4096):
        if looped[number * 4096] == 0:  # a page of a chain begins with the number of the next
            looped[number * 4096 : number * 4096 + 4] = (number + 1).to_bytes(4, "big")
    (tmp_path / "b.sqlite").write_bytes(looped)
    assert main(["runs", str(tmp_path / "b.sqlite"), "--export", str(tmp_path / "b.jsonl")]) == 2
    assert lines_of(tmp_path / "b.jsonl")[-1]["damaged"] > 0


@pytest.mark.parametrize("seed", [10, 12, 13])
def test_any_bytes_in_a_store_are_reported_in_words(whole, tmp_path, capsys, seed):
    draw, path = random.Random(seed), tmp_path / "a.sqlite"
    for _ in range(4):
        bad = bytearray(whole[0])
        for _ in range(draw.choice([30, 400, 3000])):
            bad[draw.choice([draw.randrange(100, 4096), draw.randrange(100, len(bad))])] = (
                draw.randrange(256)
            )
        path.write_bytes(bad)
        for more in (["--verify"], ["--export", str(tmp_path / "a.jsonl")], ["--claims"], []):
            assert main(["runs", str(path), *more]) in (0, 2), more
        assert "Traceback" not in capsys.readouterr().err
    assert path.read_bytes() == bad


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A store of two judgements, and the words that judge with it again."""
    folder = tmp_path_factory.mktemp("judged")
    rows = [{"sample_id": n, "question": "How long?", "answer": f"{n} days."} for n in (1, 2)]
    (folder / "cases.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with LlmServer() as server:
        server.script = examiner
        judge = f"llm_profiles:\n  judge: {{base_url: '{server.base_url}', model: small}}\n"
        (folder / "mine.yaml").write_text(f"cases: cases.jsonl\n{judge}", encoding="utf-8")
        words = [
            "judge",
            str(folder / "mine.yaml"),
            "--no-probes",
            "--out",
            str(folder / "o.csv"),
            "--store",
        ]
        with chdir(folder):  # its record of what it judged goes below the working directory
            assert main([*words, str(folder / "a.sqlite")]) == 0
        yield (folder / "a.sqlite").read_bytes(), words


@pytest.mark.parametrize(
    "change",
    [
        *[
            f"update attempts set value = '{value}'"
            for value in ("{}", "[1]", '{"accuracy": "x"}', "NaN")
        ],
        f"update attempts set value = '{'[' * 99999}'",
        "update attempts set value = null",
        "update attempts set seconds = 1e308 * 10",
        "update attempts set replies = '[1, 2]'",
        "update attempts set tokens_in = 'x'",
        "update runs set about = '3'",
        "insert into claims values ('k', 'nobody', 'zz')",
        "update attempts set value = replace(value, '9', '8')",
        "update calls set reply = '\"other\"'",
        "update cells set model = 'other'",
        "update plan set position = 'x' where position = 1",
        "delete from plan where position = 1",
        "delete from calls where id = 1",
    ],
)
def test_rows_that_ragnb_never_writes_are_reported_and_refused(judged, tmp_path, capsys, change):
    path, saved = tmp_path / "a.sqlite", tmp_path / "a.jsonl"
    path.write_bytes(judged[0])
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA ignore_check_constraints = ON")
        assert file.execute(change).rowcount
        file.commit()
    capsys.readouterr()
    assert main(["runs", str(path), "--verify"]) == 2
    assert re.search("are not what was written|are missing", capsys.readouterr().out)
    for words in (["runs", str(path)], ["runs", str(path), "--claims"], [*judged[1], str(path)]):
        assert main(words) == 2
        assert "--verify" in capsys.readouterr().err
    assert main(["runs", str(path), "--export", str(saved)]) == 2


@pytest.mark.parametrize("part", [0.5, 100])
def test_an_export_of_a_cut_file_says_what_is_lost(judged, tmp_path, capsys, part):
    path = tmp_path / "a.sqlite"
    path.write_bytes(judged[0][: part if part > 1 else int(len(judged[0]) * part)])
    assert main(["runs", str(path), "--export", str(tmp_path / "a.jsonl")]) == 2
    said = capsys.readouterr().out
    assert "Lost: " in said
    assert main(["runs", str(path), "--verify"]) == 2
    for text in (said, capsys.readouterr().out):
        assert re.search(r"the file is cut: its last \d+ pages are missing", text)


@pytest.mark.parametrize("database", [False, True])
def test_what_reads_never_makes_a_store(tmp_path, capsys, database):
    path = tmp_path / "a.sqlite"
    path.touch()
    if database:
        with closing(sqlite3.connect(path)) as file:
            file.execute("PRAGMA user_version = 0")
            file.execute("CREATE TABLE x (y)")
            file.execute("DROP TABLE x")
    before = path.read_bytes()
    for more in ([], ["--claims"], ["--verify"], ["--export", str(tmp_path / "a.jsonl")]):
        assert main(["runs", str(path), *more]) == 2, more
        assert (
            "is not a ragnb store; name one that judging or scoring wrote, or a new file"
            in capsys.readouterr().err
        )
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.sqlite"]
    Store(path).close()
    assert main(["runs", str(path)]) == 0


def test_a_store_that_a_kill_left_without_tables_is_an_empty_one(tmp_path):
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    assert path.stat().st_size > 0
    with Store(path, new=False) as store:
        assert store.runs().empty
    with opened(path, new=False) as store:
        assert store.claims().empty
    assert main(["runs", str(path), "--verify"]) == 0
    with Store(path) as store:
        assert store.runs().empty
    with Store(path, new=False) as store:
        assert store.runs().empty


def test_a_file_of_others_without_tables_is_no_store(tmp_path):
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA application_id = 7")
    with pytest.raises(RagnbError, match="not a ragnb store"):
        Store(path, new=False)
