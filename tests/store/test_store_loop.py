"""Paid work: what is kept, what is paid for, what a fault becomes; against a real endpoint on 127.0.0.1."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_server import DROP, Answer, Raw
from scipy.stats import t as student

import ragnb as rn
from ragnb.cli import main
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.schema import Profile
from ragnb.store import (
    CallFailed,
    Cell,
    Client,
    Outcome,
    Stop,
    Store,
    count_tokens,
    estimate,
    new_tag,
    run_cells,
)
from ragnb.store.client import retry_after
from ragnb.store.redaction import Redactor

ROOT = Path(__file__).resolve().parents[2]
CANARY = "sk-canary/7f3b9c1e+d4a2 8%5"


def client_of(server, **more):
    profile = {key: more.pop(key) for key in ("api_key_env", "model") if key in more}
    return Client(Profile(**({"base_url": server.base_url, "model": "small"} | profile)), **more)


def asking(client, **parameters):
    """Work that sends the cell's text and keeps the reply as the value."""

    async def work(cell):
        reply = await client.chat([{"role": "user", "content": cell.inputs["text"]}], **parameters)
        return Outcome.of(reply)

    return work


def cells_of(n, **more):
    return [Cell(f"s{i}", "echo", {"text": f"text {i}"}, model="small", **more) for i in range(n)]


def repeated(cells, n):
    return [replace(cell, repeat=number) for cell in cells for number in range(n)]


def echoed(llm_server, store, cells, **more):
    """Run cells, or as many as said, that ask for an echo."""
    client = client_of(llm_server, **more)
    cells = cells_of(cells) if isinstance(cells, int) else cells
    return run_cells(cells, asking(client), store, clients=[client])


def one(llm_server, store, reply, **more):
    """Run one cell against one reply; return its row."""
    llm_server.script = reply if callable(reply) else lambda request: reply
    return echoed(llm_server, store, 1, **({"retries": 0} | more)).frame.iloc[0]


def at_once(n, work):
    """Call a function of a number in as many threads, and wait for all."""
    threads = [threading.Thread(target=work, args=[number]) for number in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.fixture
def waits_are_not_told(monkeypatch):
    """How long one run waits for another is the machine's affair: no note, so no error, of that."""
    monkeypatch.setattr("ragnb.store.loop._QUIET", math.inf)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "runs.sqlite") as store:
        yield store


fails = pytest.mark.filterwarnings("ignore:.*cells failed:ragnb.errors.RagnbWarning")
stops = pytest.mark.filterwarnings("ignore:.*cells are saved:ragnb.errors.RagnbWarning")


# Cells and their keys

JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5)


@given(st.dictionaries(st.text(), JSON), st.dictionaries(st.text(), JSON))
def test_keys_are_equal_exactly_where_the_inputs_are(one, other):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (Cell("s", "m", one).key == Cell("s", "m", other).key) == same
    assert Cell("s", "m", one).key == Cell("s", "m", dict(reversed(one.items()))).key


def test_the_key_holds_all_that_may_change_a_result():
    base = {
        "sample_id": "s",
        "what": "m",
        "inputs": {"a": 1},
        "model": "x",
        "parameters": {"t": 0},
        "prompt": "p",
    }
    base |= {"repeat": 0, "missing": ()}
    changed = {
        "sample_id": 7,
        "what": "n",
        "inputs": {"a": 2},
        "model": "y",
        "parameters": {"t": 1},
    }
    changed |= {"prompt": "q", "repeat": 1, "missing": ("b",)}
    keys = [
        Cell(**base).key,
        *(Cell(**(base | {name: value})).key for name, value in changed.items()),
    ]
    assert len(set(keys)) == len(keys)
    assert Cell(**base).key == Cell(**base, calls=9, tokens=9, cluster="d.pdf").key
    assert Cell("1", "m", {}).key != Cell(1, "m", {}).key


def test_arrays_and_surrogates_make_keys_and_what_is_no_json_is_refused():
    assert Cell("s", "m", {"x": np.array([1.0, 2.0])}).key == Cell("s", "m", {"x": [1.0, 2.0]}).key
    assert (
        Cell("s", "m", {"x": "\ud800"}, prompt="\ud800").key != Cell("s", "m", {"x": "\ud801"}).key
    )
    for bad in (math.nan, {1}, object()):
        with pytest.raises(RagnbError, match="cannot be stored as JSON"):
            _ = Cell("s", "m", {"x": bad}).key


@pytest.mark.parametrize(
    "bad", [dict(status="ok"), dict(status="failed", value=1), dict(status="ok", value=math.nan)]
)
def test_an_outcome_is_a_value_or_a_reason_never_both_nor_nan(bad):
    with pytest.raises(RagnbError):
        Outcome(**bad)


def test_tokens_are_counted_to_about_a_third():
    for text in (
        "The standard warranty is 24 months from the date of purchase.",
        "退款须在三十天内提出申请。",
    ):
        assert abs(count_tokens(text) / 13 - 1) < 0.35, "tiktoken counts 13 in each"


# The loop and the store


def test_a_run_calls_once_a_cell_and_a_second_run_calls_nobody(llm_server, store):
    llm_server.script = lambda request: Answer(request.prompt.upper(), usage=(7, 3))
    client = client_of(llm_server, concurrency=4)
    cells = cells_of(10, cluster="d.pdf")
    run = run_cells(cells, asking(client), store, clients=[client])
    assert list(run.frame["value"]) == list(run.frame["reply"]) == [f"TEXT {i}" for i in range(10)]
    assert list(run.frame["sample_id"]) == [f"s{i}" for i in range(10)]
    assert set(run.frame["tokens_in"]) == {7}
    assert set(run.frame["calls"]) == {1}
    assert set(run.frame["cluster"]) == {"d.pdf"}
    assert run.counts == {"ok": 10, "not_applicable": 0, "failed": 0, "pending": 0}
    assert llm_server.most_at_once <= 4
    again = run_cells(cells, asking(client), store, clients=[client])
    assert len(llm_server.log) == 10
    assert again.frame.equals(run.frame)


def test_another_model_is_other_work_and_a_longer_run_takes_what_is_there(llm_server, store):
    client = client_of(llm_server)
    run_cells(cells_of(5), asking(client), store, clients=[client])
    longer = run_cells(cells_of(8), asking(client), store, clients=[client])
    assert len(llm_server.log) == 8
    assert longer.counts["ok"] == 8
    other = [Cell(c.sample_id, c.what, c.inputs, model="large") for c in cells_of(5)]
    run_cells(other, asking(client), store, clients=[client])
    assert len(llm_server.log) == 13
    assert list(store.runs()["cells"]) == [5, 8, 5]


def test_cells_without_their_fields_are_not_applicable_and_cost_nothing(llm_server, store):
    client = client_of(llm_server, max_calls=1)
    cells = [*cells_of(1), Cell("s1", "echo", {}, missing=("answer", "question"))]
    run = run_cells(cells, asking(client), store, clients=[client])
    assert list(run.frame["status"]) == ["ok", "not_applicable"]
    assert run.frame["reason"][1] == "no answer, question"
    assert len(llm_server.log) == 1


@fails
def test_what_the_work_raises_fails_that_cell_alone_and_a_second_run_takes_it_anew(
    llm_server, store
):
    client = client_of(llm_server)
    broken = {"s1"}

    async def work(cell):
        reply = await client.chat([{"role": "user", "content": cell.inputs["text"]}])
        if cell.sample_id in broken:
            raise KeyError("accuracy")
        if cell.sample_id == "s2":
            raise CallFailed("not understood", "the raw text")
        return Outcome.of(len(reply))

    run = run_cells(cells_of(4), work, store, clients=[client])
    assert list(run.frame["status"]) == ["ok", "failed", "failed", "ok"]
    assert "KeyError: 'accuracy'" in run.frame["reason"][1]
    assert list(run.frame["reply"]) == ["ok", "ok", "the raw text", "ok"]
    broken.clear()
    again = run_cells(cells_of(4), work, store, clients=[client])
    assert list(again.frame["status"]) == ["ok", "ok", "failed", "ok"]
    assert len(llm_server.log) == 6
    history = store.frame(run.id, attempts="all")
    assert Counter(history["sample_id"]) == {"s0": 1, "s1": 2, "s2": 2, "s3": 1}
    assert list(history[history["sample_id"] == "s1"]["status"]) == ["failed", "ok"]


def test_failed_cells_are_told_with_their_reasons(llm_server, store):
    llm_server.script = lambda request: Answer(None)
    client = client_of(llm_server)
    with pytest.warns(
        RagnbWarning, match=r"3 of 3 cells failed \(3 × the reply has no content\)"
    ) as said:
        run_cells(cells_of(3), asking(client), store, clients=[client])
    assert said[0].filename == __file__


def test_what_is_no_outcome_fails_in_words(llm_server, store):
    async def work(cell):
        return 0.5

    with pytest.warns(RagnbWarning, match="returned a float, not an Outcome"):
        run_cells(cells_of(1), work, store)


@fails
def test_a_cancelled_piece_of_work_fails_its_cell_and_not_the_run(store):
    async def work(cell):
        if cell.sample_id == "s1":
            raise asyncio.CancelledError
        return Outcome.of(1)

    run = run_cells(cells_of(3), work, store, concurrency=1)
    assert list(run.frame["status"]) == ["ok", "failed", "ok"]


def test_repeats_are_cells_of_their_own(llm_server, store):
    run = echoed(llm_server, store, repeated(cells_of(2), 3))
    assert list(run.frame["repeat"]) == [0, 1, 2, 0, 1, 2]
    assert len(llm_server.log) == 6


def test_the_same_cell_twice_is_paid_for_once(llm_server, store):
    run = echoed(llm_server, store, cells_of(3) + cells_of(3))
    assert len(run.frame) == 6
    assert set(run.frame["status"]) == {"ok"}
    assert len(llm_server.log) == 3


def test_an_estimate_counts_what_is_still_to_be_paid_and_sends_nothing(llm_server, store):
    client = client_of(llm_server)
    cells = [*cells_of(6, calls=2, tokens=100), Cell("s9", "echo", {}, missing=("text",))]
    before = estimate(cells, store)
    assert (before.cells, before.done, before.not_applicable, before.calls, before.tokens) == (
        7,
        0,
        1,
        12,
        600,
    )
    assert not llm_server.log
    assert store.runs().empty
    run_cells(cells[:4], asking(client), store, clients=[client])
    assert (estimate(cells, store).done, estimate(cells, store).calls) == (4, 4)


def test_no_cells_are_an_empty_run(store):
    run = run_cells([], asking(None), store)
    assert len(run.frame) == 0
    assert "value" in run.frame
    assert store.runs()["cells"].tolist() == [0]
    with pytest.raises(RagnbError, match="has no rows"):
        rn.compare(f"{store.path}#{run.id}", baseline=f"{store.path}#{run.id}")


# The file


def test_a_foreign_file_or_another_version_is_refused_and_left_as_it_is(tmp_path):
    text, database, newer, torn = (
        tmp_path / name for name in ("a.csv", "b.sqlite", "c.sqlite", "d.sqlite")
    )
    text.write_text("sample_id,score\n")
    with sqlite3.connect(database) as file:
        file.execute("CREATE TABLE mine (x)")
    file.close()
    Store(newer).close()
    file = sqlite3.connect(newer)
    file.execute("PRAGMA user_version = 9")
    file.commit()
    file.close()
    torn.write_bytes(newer.read_bytes()[:5000])
    words = {
        text: "not a ragnb store",
        database: "not a ragnb store",
        newer: "version 9",
        torn: "d.sqlite",
    }
    before = {path: path.read_bytes() for path in words}
    for path, said in words.items():
        with pytest.raises(RagnbError, match=said):
            Store(path)
        assert path.read_bytes() == before[path]
    with pytest.raises(RagnbError, match="is a folder"):
        Store(tmp_path)


def test_no_text_is_lost_that_was_paid_for(tmp_path):
    odd = "lone \ud800 half, nul \0, 甲, 😀, </script>"
    cell = Cell(odd, odd, {}, model=odd, cluster=odd)
    with Store(tmp_path / "a.sqlite") as store:
        run = store.plan([cell], name=odd, about={"note": odd})
        store.put([(cell, Outcome("ok", {"text": odd}, odd, (odd, odd)))])
        row = store.frame(run).iloc[0]
        assert (row["sample_id"], row["what"], row["value"], row["reply"]) == (
            odd,
            odd,
            {"text": odd},
            odd,
        )
        assert row["reason"] == odd.replace("\ud800", "\\ud800")
        assert len(store.runs()) == 1


def test_the_store_writes_json_and_commits_to_the_disk(tmp_path):
    path = tmp_path / "a.sqlite"
    with Store(path) as store:
        cell = cells_of(1)[0]
        store.plan([cell])
        store.put([(cell, Outcome.of({"score": 0.5}))])
        assert store._file.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
        file = sqlite3.connect(path)
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        for column in ("value", "replies"):
            json.loads(file.execute(f"SELECT {column} FROM attempts").fetchone()[0])
        file.close()


def test_a_cell_that_was_never_planned_is_refused_and_the_whole_write_with_it(store):
    run = store.plan(cells_of(2))
    with pytest.raises(RagnbError, match="belongs to no run"):
        store.put([(cells_of(1)[0], Outcome.of(1)), (Cell("x", "y", {}), Outcome.of(1))])
    assert set(store.frame(run)["status"]) == {"pending"}
    with pytest.raises(RagnbError, match="run='nothing' is not known"):
        store.frame("nothing")


def test_the_first_good_value_stands(store):
    cell = cells_of(1)[0]
    run = store.plan([cell])
    for outcome in (Outcome.failed("a"), Outcome.of(1), Outcome.of(2), Outcome.failed("b")):
        store.put([(cell, outcome)])
    assert store.frame(run)["value"].tolist() == [1]
    assert len(store.frame(run, attempts="all")) == 4


def test_claims_are_exclusive_and_end_with_release_lease_or_process(tmp_path, clock):
    path, cells = tmp_path / "a.sqlite", cells_of(6)
    keys = [cell.key for cell in cells]
    first, second, third = set(keys[:2]), set(keys[2:4]), set(keys[:3])
    with Store(path, lease=0.05) as one, Store(path) as other:
        one.plan(cells)
        assert one.claim(keys[:2], 0) == (first, set())
        other.renew()
        assert other.claim(keys[:4], 0) == (second, first)
        clock.pass_seconds(0.06)
        assert other.claim(keys[:2], 0) == (first, set())
        other.release()
        assert one.claim(keys, 0) == (set(keys), set())
    code = f"import os; from ragnb.store import Store; Store({str(path)!r}).claim({keys[:3]!r}, 0); os._exit(0)"
    with Store(path) as store:
        store.release()
        clock.pass_seconds(0.06)
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
        assert {key for (key,) in store._query("SELECT key FROM claims")} == third
        assert store.claim(keys, 0) == (set(keys), set())


def test_what_is_done_or_failed_since_the_mark_is_not_claimed(store):
    cells = cells_of(4)
    _, before, _, after = (cell.key for cell in cells)
    store.plan(cells)
    store.put(
        list(
            zip(
                cells,
                [Outcome.of(1), Outcome.failed("x"), Outcome.lacking(["answer"])],
                strict=False,
            )
        )
    )
    mark = store.mark()
    store.put([(cells[3], Outcome.failed("x"))])
    assert set(store.pending(cells)) == {before, after}
    assert store.claim([cell.key for cell in cells], mark) == ({before}, set())
    assert store.claim([after], mark + 1) == ({after}, set())


def test_two_runs_at_a_time_pay_once_a_cell_and_both_see_all(
    llm_server, tmp_path, waits_are_not_told
):
    llm_server.script = lambda request: Answer(request.prompt, seconds=0.01)
    found = {}

    def take(name):
        with Store(tmp_path / "a.sqlite") as store:
            found[name] = echoed(llm_server, store, 60, concurrency=3).frame

    at_once(3, take)
    assert Counter(request.prompt for request in llm_server.log) == {
        f"text {i}": 1 for i in range(60)
    }
    for frame in found.values():
        assert frame.equals(found[0])
        assert set(frame["status"]) == {"ok"}


@fails
def test_a_cell_that_failed_while_we_ran_is_not_tried_again_by_the_other(
    llm_server, tmp_path, waits_are_not_told
):
    llm_server.script = lambda request: Answer(None, seconds=0.05)
    path = tmp_path / "a.sqlite"

    def take(number):
        with Store(path) as store:
            echoed(llm_server, store, 8, concurrency=2)

    at_once(2, take)
    assert len(llm_server.log) == 8


# Calls


def steps(client, n, **parameters):
    """Work of n calls, one after the other; the value is their replies."""

    async def work(cell):
        replies = []
        for step in range(n):
            message = {"role": "user", "content": f"{cell.inputs['text']} step {step}"}
            replies.append(await client.chat([message], **parameters))
        return Outcome.of(replies)

    return work


def test_cells_that_need_no_call_run_within_a_budget_of_calls(llm_server, store):
    async def computed(cell):
        return Outcome.of(cell.inputs["text"])

    run = run_cells(
        cells_of(6, calls=0), computed, store, clients=[client_of(llm_server, max_calls=10)]
    )
    assert run.counts["ok"] == 6
    assert not llm_server.log


@stops
@pytest.mark.parametrize("parameters", [{}, {"temperature": 0}])
def test_a_cell_of_several_calls_resumes_at_its_first_missing_one(llm_server, tmp_path, parameters):
    llm_server.script = lambda request: Answer(request.prompt.upper(), usage=(5, 1))
    for budget in (2, 3, 4, 5, 50):
        client = client_of(llm_server, concurrency=2, max_calls=budget)
        with Store(tmp_path / "a.sqlite") as store:
            run = run_cells(
                cells_of(6, calls=1), steps(client, 5, **parameters), store, clients=[client]
            )
    assert Counter(request.prompt for request in llm_server.log) == {
        f"text {i} step {step}": 1 for i in range(6) for step in range(5)
    }
    assert run.frame["value"].tolist() == [
        [f"TEXT {i} STEP {step}" for step in range(5)] for i in range(6)
    ]
    assert run.frame["calls"].sum() <= 30, "what the store had is not counted as sent"
    with Store(tmp_path / "a.sqlite") as store:
        calls = store._query("SELECT reply FROM calls")
    wanted = sorted(reply for value in run.frame["value"] for reply in value)
    assert sorted(json.loads(reply) for (reply,) in calls) == wanted


@fails
def test_a_cell_that_failed_pays_again_for_its_last_call_alone_and_keeps_every_reply(
    llm_server, store
):
    bad = [Raw(500, "down"), "unreadable", "unreadable"]

    def script(request):
        return bad.pop() if bad and request.prompt.endswith("step 2") else request.prompt

    llm_server.script = script
    client = client_of(llm_server, retries=0)
    plain = steps(client, 3, temperature=0)

    async def work(cell):
        outcome = await plain(cell)
        if "unreadable" in outcome.value:
            raise CallFailed("unreadable")
        return outcome

    cells = cells_of(1, calls=3)
    for statuses in (["failed"], ["failed"] * 2, ["failed"] * 3, [*["failed"] * 3, "ok"]):
        run = run_cells(cells, work, store, clients=[client])
        history = store.frame(run.id, attempts="all")
        assert history["status"].tolist() == statuses
    assert history["calls"].tolist() == [3, 1, 1, 1]
    assert history["reply"].tolist() == [
        "unreadable",
        "unreadable",
        "text 0 step 1",
        "text 0 step 2",
    ]
    assert len(store._query("SELECT 1 FROM calls")) == 5


def test_equal_requests_are_paid_once_but_for_repeats_and_at_a_temperature(llm_server, store):
    llm_server.script = lambda request: Answer(f"reply {request.number}", seconds=0.02)
    client = client_of(llm_server)
    same = [Cell(f"s{i}", "echo", {"text": "the same"}, model="small") for i in range(4)]
    run = run_cells(same, asking(client, temperature=0), store, clients=[client])
    assert run.frame["value"].tolist() == ["reply 0"] * 4
    assert sorted(run.frame["calls"]) == [0, 0, 0, 1]
    other = [Cell("s1", "another", {"text": "the same"}, model="small")]
    assert (
        run_cells(other, asking(client, temperature=0), store, clients=[client]).counts["ok"] == 1
    )
    assert len(llm_server.log) == 1, "nor in another run"
    run_cells(repeated(same, 3), asking(client, temperature=0), store, clients=[client])
    assert len(llm_server.log) == 3, "a repeat is another request"
    drawn = [Cell(f"s{i}", "drawn", {"text": "the same"}, model="small", calls=2) for i in range(4)]

    async def twice(cell):
        message = [{"role": "user", "content": "the same"}]
        return Outcome.of([await client.chat(message, temperature=1) for _ in range(2)])

    values = run_cells(drawn, twice, store, clients=[client]).frame["value"]
    assert len(llm_server.log) == 3 + 8 == 3 + len({reply for value in values for reply in value})
    for more in ({"seed": 2}, {"max_tokens": 9}):
        cells = [Cell("s0", f"echo {more}", {"text": "the same"}, model="small")]
        run_cells(cells, asking(client, temperature=0, **more), store, clients=[client])
    assert len(llm_server.log) == 3 + 8 + 2


@fails
def test_the_random_tag_is_no_part_of_a_calls_key_and_a_stored_reply_has_the_new_one(
    llm_server, store
):
    llm_server.script = lambda request: f"the tag is {request.prompt.split()[0]}"
    client, tags = client_of(llm_server), []

    async def work(cell):
        tags.append(new_tag())
        message = {"role": "user", "content": f"{tags[-1]} {cell.inputs['text']}"}
        reply = await client.chat([message], temperature=0)
        await client.chat([{"role": "user", "content": f"{new_tag()} more"}], temperature=0)
        if len(tags) == 1:
            raise CallFailed("once more")
        return Outcome.of(reply)

    run_cells(cells_of(1), work, store, clients=[client])
    value = run_cells(cells_of(1), work, store, clients=[client]).frame["value"][0]
    assert value == f"the tag is {tags[1]}" != f"the tag is {tags[0]}"
    assert len(llm_server.log) == 3


# Faults of an endpoint

FAULTS = {
    "html": (
        Raw(200, "<html>login</html>", {"Content-Type": "text/html"}),
        "perhaps a page of a proxy",
    ),
    "html called json": (Raw(200, "<html>login</html>"), "none of this API"),
    "empty body": (Raw(200, ""), ""),
    "half a body": (Raw(200, '{"choices": [{"mess'), "none of this API"),
    "a list": (Raw(200, "[]"), "perhaps a page of a proxy"),
    "no choices": (Raw(200, '{"choices": []}'), "no choices"),
    "null choices": (Raw(200, '{"choices": null}'), "no choices"),
    "no message": (Raw(200, '{"choices": [{"finish_reason": "stop"}]}'), "no content"),
    "error in 200": (Raw(200, '{"error": {"message": "overloaded"}}'), "no choices"),
    "null content": (Answer(None), "no content"),
    "cut off": (Answer("half a rep", finish_reason="length"), "cut off"),
    "filtered": (Answer("", finish_reason="content_filter"), "filter"),
    "refused": (Answer(None, message={"refusal": "I cannot"}), "refused: I cannot"),
    "400": (
        Raw(400, '{"error": {"message": "max_tokens is too large"}}'),
        "max_tokens is too large",
    ),
    "500": (Raw(500, "down"), "HTTP 500: down"),
    "dropped": (DROP, "no connection"),
}


@fails
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_fails_the_cell_with_its_reason_and_never_becomes_a_value(llm_server, store, name):
    reply, words = FAULTS[name]
    row = one(llm_server, store, reply)
    assert row["status"] == "failed"
    assert words in row["reason"]
    assert row["value"] is None
    assert row["calls"] == len(llm_server.log) == 1
    if name in ("html", "cut off", "400", "refused"):
        kept = reply.content if isinstance(reply, Answer) else reply.body
        assert (kept or "I cannot") in row["reply"]


@fails
def test_a_slow_reply_is_given_up_after_the_timeout(llm_server, store):
    row = one(llm_server, store, Answer("late", seconds=3), timeout=0.1)
    assert (row["status"], row["reason"]) == ("failed", "no reply within 0.1 s (1 tries)")


@pytest.mark.parametrize(
    "fault",
    [Raw(429, "slow down"), Raw(500, "x"), Raw(503, "x"), DROP],
    ids=["429", "500", "503", "dropped"],
)
def test_passing_faults_are_tried_again_and_counted(llm_server, store, fault):
    row = one(llm_server, store, lambda request: fault if request.number < 2 else "fine", retries=4)
    assert (row["status"], row["value"], row["calls"]) == ("ok", "fine", 3)
    assert len(llm_server.log) == 3


@fails
def test_retries_end_and_are_not_multiplied_by_the_sdk(llm_server, store):
    row = one(llm_server, store, Raw(503, "down"), retries=2)
    assert row["reason"] == "HTTP 503: down (3 tries)"
    assert len(llm_server.log) == 3


def test_a_storm_of_429_holds_all_calls_for_as_long_as_it_asks(llm_server, store):
    times = []

    def script(request):
        times.append(time.monotonic())
        return Raw(429, "busy", {"Retry-After": "0.7"}) if request.number < 8 else "fine"

    llm_server.script = script
    client = client_of(llm_server, concurrency=8, max_calls=20)
    run = run_cells(cells_of(20), asking(client), store, clients=[client])
    assert run.counts["ok"] == 20
    assert len(times) == 28, "eight calls were turned away, then each cell was answered once"
    assert max(np.diff(sorted(times))) > 0.6
    assert client.budget.calls == 20, "what is turned away costs nothing"


@stops
def test_a_wait_beyond_patience_stops_the_run_and_leaves_it_open(llm_server, store):
    llm_server.script = lambda request: Raw(429, "come back", {"Retry-After": "3600"})
    client = client_of(llm_server)
    run = run_cells(cells_of(9), asking(client), store, clients=[client])
    assert "asks to wait 3600 s" in run.stopped
    assert run.counts["pending"] == 9
    llm_server.script = lambda request: "ok"
    assert run_cells(cells_of(9), asking(client), store, clients=[client]).counts["ok"] == 9


def test_retry_after_is_read_in_all_its_forms():
    from email.utils import formatdate

    assert retry_after({"retry-after": "3"}) == 3
    assert retry_after({"retry-after-ms": "250", "retry-after": "3"}) == 0.25
    assert 58 < retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)}) <= 61
    for bad in ("", "soon", "-5", "Mon, 99 Foo"):
        assert retry_after({"retry-after": bad}) == 0


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_a_refused_key_or_model_stops_the_run_after_one_call(llm_server, store, status):
    llm_server.script = lambda request: Raw(status, "no such key")
    client = client_of(llm_server, concurrency=1)
    with pytest.raises(Stop, match=f"HTTP {status}: no such key"):
        run_cells(cells_of(50), asking(client), store, clients=[client])
    assert len(llm_server.log) == 1
    assert store.frame(store.runs()["run"][0])["status"].eq("pending").all()


@fails
def test_one_forbidden_sample_among_good_ones_is_a_failed_cell(llm_server, store):
    llm_server.script = lambda r: Raw(403, "flagged") if r.prompt == "text 2" else "ok"
    run = echoed(llm_server, store, 4, concurrency=1)
    assert list(run.frame["status"]) == ["ok", "ok", "failed", "ok"]


# Budgets


@stops
def test_a_call_budget_is_never_passed_and_a_larger_one_goes_on(llm_server, store):
    llm_server.script = lambda request: Answer("ok", seconds=0.005)
    run = echoed(llm_server, store, 30, concurrency=8, max_calls=13)
    assert len(llm_server.log) == 13
    assert (run.counts["ok"], run.counts["pending"]) == (13, 17)
    assert "budget of 13 calls is used up" in run.stopped
    assert echoed(llm_server, store, 30, max_calls=17).counts["ok"] == 30
    assert len({request.prompt for request in llm_server.log}) == len(llm_server.log) == 30


@stops
def test_a_budget_of_calls_is_spent_on_whole_cells_to_its_last_call_and_none_is_paid_again(
    llm_server, store
):
    for more, calls, done in (({"max_calls": 10}, 10, 3), ({}, 24, 8)):
        client = client_of(llm_server, concurrency=4, **more)
        run = run_cells(cells_of(8, calls=3), steps(client, 3), store, clients=[client])
        assert (run.counts["ok"], len(llm_server.log)) == (done, calls)


@stops
def test_a_budget_is_spent_where_cells_need_less_than_they_said_and_its_message_has_the_last_numbers(
    llm_server, store
):
    llm_server.script = lambda request: Answer("ok", usage=(1000, 200), seconds=0.01)
    client = client_of(llm_server, concurrency=8, max_calls=30)
    run = run_cells(cells_of(40, calls=4), steps(client, 2), store, clients=[client])
    assert len(llm_server.log) == 30
    assert "the budget of 30 calls is used up; run it again" in run.stopped
    assert run.stopped.endswith("(used: 30 of 30 calls and 36,000 tokens)")
    client = client_of(llm_server, concurrency=8, max_tokens=6000)
    said = run_cells(
        cells_of(40, calls=4, tokens=10), steps(client, 2), store, clients=[client]
    ).stopped
    used = client.budget
    assert used.tokens >= 6000
    assert "6,000 tokens is used up" in said
    assert said.endswith(f"(used: {used.calls:,} calls and {used.tokens:,} of 6,000 tokens)")


@stops
def test_tokens_that_calls_under_way_may_not_need_do_not_end_a_run(llm_server, store):
    llm_server.script = lambda request: Answer("ok", usage=(5, 5), seconds=0.01)
    client = client_of(llm_server, concurrency=8, max_tokens=500)
    run = run_cells(cells_of(30, tokens=200), asking(client), store, clients=[client])
    assert run.counts["ok"] == 30
    assert client.budget.tokens == 300
    more = [Cell("s99", "echo", {"text": "more"}, model="small", tokens=200)]
    said = echoed(llm_server, store, more, max_tokens=150).stopped
    assert "is too small for the next call, which needs about 200" in said


@stops
def test_work_that_needs_more_calls_than_it_said_still_keeps_to_the_budget(llm_server, store):
    client = client_of(llm_server, concurrency=4, max_calls=10)
    run = run_cells(cells_of(8, calls=1), steps(client, 3), store, clients=[client])
    assert len(llm_server.log) == 10
    assert run.counts["pending"] == 8 - run.counts["ok"]
    assert run.counts["failed"] == 0


@stops
def test_a_token_budget_counts_what_the_endpoint_says_and_reserves_what_cells_expect(
    llm_server, store
):
    llm_server.script = lambda request: Answer("ok", usage=(90, 10))
    client = client_of(llm_server, concurrency=4, max_tokens=1000)
    run = run_cells(cells_of(30, tokens=100), asking(client), store, clients=[client])
    assert run.counts["ok"] == 10
    assert client.budget.tokens == 1000


def test_tokens_that_are_no_whole_numbers_leave_a_whole_store(llm_server, tmp_path, capsys):
    llm_server.script = lambda request: Answer("ok", usage=[(3.0, 2.5), ("7", "1")][request.number])
    client = client_of(llm_server, concurrency=1)
    with Store(tmp_path / "a.sqlite") as store:
        run = run_cells(cells_of(2), asking(client), store, clients=[client])
    assert run.frame["tokens_in"].tolist() == [3, 7]
    assert main(["runs", str(tmp_path / "a.sqlite"), "--verify"]) == 0


@pytest.mark.parametrize("count", [1e300, -5, 10**30, 1e10])
def test_a_usage_that_cannot_be_is_no_count_and_the_paid_reply_is_kept(llm_server, store, count):
    with pytest.warns(RagnbWarning, match="tokens, which cannot be") as said:
        row = one(llm_server, store, Answer("ok", usage=(count, count)))
    assert len(said) == 1
    assert (row["status"], row["value"], row["calls"]) == ("ok", "ok", 1)


@stops
def test_a_token_budget_holds_where_the_endpoint_tells_no_tokens(llm_server, store):
    llm_server.script = lambda request: Answer("ok", usage=None)
    run = echoed(llm_server, store, cells_of(30, tokens=100), concurrency=1, max_tokens=500)
    assert run.counts["ok"] == 5
    assert run.frame["tokens_in"].isna().all()


# Embeddings, and several calls of one cell


def test_embeddings_come_in_the_order_of_the_texts_are_counted_and_paid_once(llm_server, store):
    llm_server.embed = lambda text: [float(len(text)), 0.5]
    client = client_of(llm_server)

    async def work(cell):
        return Outcome.of(await client.embed(["a", "bbb", "cc"]))

    frame = run_cells(cells_of(3), work, store, clients=[client]).frame
    assert frame["value"].tolist() == [[[1.0, 0.5], [3.0, 0.5], [2.0, 0.5]]] * 3
    row = frame[frame["calls"] > 0].iloc[0]
    assert (row["calls"], row["tokens_in"], row["tokens_out"]) == (1, 9, 0)
    assert len(llm_server.log) == 1


@stops
def test_calls_that_a_cell_makes_at_a_time_keep_to_limits_retries_and_budgets(llm_server, store):
    llm_server.script = lambda r: (
        Raw(500, "x") if r.number == 0 else Answer("ok", usage=(4, 2), seconds=0.01)
    )
    client = client_of(llm_server, concurrency=2, max_calls=9)

    async def work(cell):
        said = [{"role": "user", "content": cell.inputs["text"]}]
        return Outcome.of(list(await asyncio.gather(client.chat(said), client.chat(said))))

    run = run_cells(cells_of(8, calls=2), work, store, clients=[client], concurrency=8)
    assert llm_server.most_at_once <= 2
    assert len(llm_server.log) == 9
    assert run.counts["ok"] >= 3
    assert set(run.frame["tokens_in"].dropna()) == {8}
    client = client_of(llm_server)
    assert run_cells(cells_of(8, calls=2), work, store, clients=[client]).counts["ok"] == 8
    assert len(llm_server.log) == 17, "one was turned away"
    with pytest.raises(RagnbError, match="is not open"):
        asyncio.run(client.chat([]))


# Keys


def leaves(folder):
    """Everything a run has left in a folder, as one text."""
    return "".join(
        path.read_bytes().decode("utf-8", "replace")
        for path in Path(folder).rglob("*")
        if path.is_file()
    )


@fails
def test_a_key_is_found_nowhere(llm_server, tmp_path, monkeypatch, caplog, capsys):
    monkeypatch.setenv("JUDGE_KEY", CANARY)
    monkeypatch.setenv("OPENAI_API_KEY", "another-key-of-the-user")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "yet-another-key-of-the-user")
    caplog.set_level(logging.DEBUG)
    seen = []

    def script(request):
        seen.append(request.headers["authorization"])
        echo = json.dumps({"error": f"bad key {CANARY} or Bearer {CANARY}, {CANARY[:14]}***"})
        page = Raw(200, f"<b>{CANARY}</b>")
        kinds = [f"your key is {CANARY}", Raw(400, echo), Raw(503, echo), page, Raw(401, echo)]
        return kinds[int(request.prompt.split()[1])]

    llm_server.script = script
    client = client_of(llm_server, api_key_env="JUDGE_KEY", retries=0, concurrency=1)
    said = [repr(client), str(vars(client)), repr(client.redact)]
    with Store(tmp_path / "a.sqlite") as store:
        with pytest.raises(Stop) as caught:
            run_cells(cells_of(5), asking(client), store, clients=[client])
        frame = store.frame(store.runs()["run"][0])
        said += [
            "".join(traceback.format_exception(caught.value)),
            frame.to_csv(),
            leaves(tmp_path),
        ]
        error = caught.value
        while error is not None:
            frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
            said.append(repr(vars(error)))
            said += [repr(f.f_locals) for f in frames if f.f_code.co_filename != __file__]
            error = error.__cause__ or error.__context__
    said += [caplog.text, *capsys.readouterr(), leaves(tmp_path)]
    assert seen == [f"Bearer {CANARY}"] * 5, "the key of the profile, and no other, is sent"
    assert list(frame["status"]) == ["ok", "failed", "failed", "failed", "pending"]
    assert frame["value"][0] == "your key is [key]"
    for text in said:
        for form in (CANARY, json.dumps(CANARY)[1:-1], "sk-canary/7f3", "another-key"):
            assert form not in text


def test_every_form_of_a_key_is_taken_out():
    from urllib.parse import quote

    from pydantic import SecretStr

    key = 'k/"é+' + "x" * 900
    redact = Redactor(SecretStr(key))
    for form in (
        key,
        json.dumps(key),
        quote(key),
        quote(key, safe=""),
        key[:20],
        f"{key}{key}",
        f"a{key}b",
    ):
        assert key[:8] not in redact(form)
        assert "xxxxxxxx" not in redact(form)
        assert "[key]" in redact(form)
    assert redact("nothing of it") == "nothing of it"


def test_a_key_that_is_not_set_is_asked_for_by_its_name(monkeypatch, llm_server):
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    with pytest.raises(RagnbError, match="JUDGE_KEY.*not set"):
        client_of(llm_server, api_key_env="JUDGE_KEY")


def test_without_a_key_none_of_the_users_is_sent(llm_server, store, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-for-somebody-else")
    one(llm_server, store, "ok")
    assert llm_server.log[0].headers["authorization"] == "Bearer no-key"


@pytest.mark.parametrize(
    "bad", [dict(concurrency=0), dict(timeout=0), dict(retries=-1), dict(timeout=math.nan)]
)
def test_settings_without_sense_are_refused(llm_server, bad):
    with pytest.raises(RagnbError, match=next(iter(bad))):
        client_of(llm_server, **bad)


# Where it runs


def test_it_runs_inside_a_running_event_loop(llm_server, store):
    client = client_of(llm_server)

    async def notebook():
        return run_cells(cells_of(3), asking(client), store, clients=[client])

    assert asyncio.run(notebook()).counts["ok"] == 3


SCRIPT = """
import sys, time
from ragnb.schema import Profile
from ragnb.store import Cell, Client, Outcome, Store, run_cells
client = Client(Profile(base_url=sys.argv[1], model="small"), concurrency=4)
async def work(cell):
    reply = await client.chat([{"role": "user", "content": cell.inputs["text"]}])
    return Outcome.of(reply)
cells = [Cell(f"s{i}", "echo", {"text": f"text {i}"}, model="small") for i in range(40)]
run_cells(cells, work, Store(sys.argv[2]), clients=[client])
"""


def interrupted(server, path, times):
    """Start the script, interrupt it when calls are under way, and return what it said."""
    words = [sys.executable, "-c", SCRIPT, server.base_url, str(path)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    while len(server.log) < 6:
        time.sleep(0.01)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    return process.communicate()[1]


def test_ctrl_c_waits_for_the_calls_under_way_and_says_how_to_go_on(llm_server, tmp_path):
    llm_server.script = lambda request: Answer(request.prompt, seconds=0.2)
    path = tmp_path / "a.sqlite"
    said = interrupted(llm_server, path, 1)
    assert re.search(
        r"stopped; \d+ of 40 cells are saved in .*a\.sqlite\. Run the same again to go on", said
    )
    with Store(path) as store:
        client = client_of(llm_server)
        paid = len(llm_server.log)
        assert store.frame(store.runs()["run"][0])["status"].eq("ok").sum() == paid, (
            "no paid call is lost"
        )
        run = run_cells(cells_of(40), asking(client), store, clients=[client])
    assert run.counts["ok"] == len(llm_server.log) == 40


def test_a_second_ctrl_c_gives_up_the_calls_under_way(llm_server, tmp_path):
    llm_server.script = lambda request: Answer("ok", seconds=0.01 if request.number < 4 else 60)
    said = interrupted(llm_server, tmp_path / "a.sqlite", 2)
    assert "stopped; 4 of 40" in said


def test_the_bar_counts_in_a_terminal(llm_server, store, capsys):
    client = client_of(llm_server)
    run_cells(cells_of(5), asking(client), store, clients=[client], progress=True)
    said = capsys.readouterr().err
    assert "5/5" in said
    assert "cell/s" in said
    run_cells(cells_of(6), asking(client), store, clients=[client])
    assert not capsys.readouterr().err, "no bar where nobody looks"


NOTEBOOK = """
from ragnb.schema import Profile
from ragnb.store import Cell, Client, Outcome, Store, run_cells
client = Client(Profile(base_url={base_url!r}, model="small", api_key_env="JUDGE_KEY"), retries=0)
async def work(cell):
    reply = await client.chat([{{"role": "user", "content": cell.inputs["text"]}}])
    return Outcome.of(reply)
store = Store({path!r})
cells = [Cell(f"s{{i}}", "echo", {{"text": f"text {{i}}"}}, model="small") for i in range(5)]
run_cells(cells[:4], work, store, clients=[client]).counts
"""


def test_in_a_notebook_there_is_a_bar_and_no_key(llm_server, tmp_path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("JUDGE_KEY", CANARY)
    echo = f"bad key {CANARY}"
    llm_server.script = lambda request: Raw(401, echo) if request.number == 4 else "ok"
    first = NOTEBOOK.format(base_url=llm_server.base_url, path=str(tmp_path / "a.sqlite"))
    sources = [
        "%xmode Verbose",
        first,
        "run_cells(cells, work, store, clients=[client])",
        "client, vars(client)",
    ]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in sources]
    )
    NotebookClient(notebook, allow_errors=True, timeout=60).execute()
    outputs = [cell.outputs for cell in notebook.cells]
    assert "4/4" in json.dumps(notebook.metadata["widgets"]), (
        "the bar is a widget that has come to its end"
    )
    assert "{'ok': 4, 'not_applicable': 0, 'failed': 0, 'pending': 0}" in str(outputs[1])
    assert "HTTP 401: bad key [key]" in str(outputs[2])
    assert outputs[3][0].output_type == "execute_result"
    for text in (nbformat.writes(notebook), leaves(tmp_path)):
        assert CANARY[:8] not in text


# The command line


@pytest.fixture
def filled(tmp_path):
    """A store with two runs: the second one is 0.1 better on ten of twelve samples."""
    path = tmp_path / "runs.sqlite"
    with Store(path) as store:
        for model, better in (("small", 0.0), ("large", 0.1)):
            cells = [
                Cell(f"s{i}", "faith", {}, model=model, cluster=f"d{i % 4}") for i in range(12)
            ]
            store.plan(cells, name=f"with {model}")
            done = [Outcome.of(i / 20 + better * (i < 10)) for i in range(12)]
            store.put(list(zip(cells, done, strict=True))[: 12 if better else 11])
            failed = Cell("s9", "rubric", {}, model=model)
            store.plan([failed])
            store.put([(failed, Outcome.failed("the reply has no content", "raw <b>reply</b>"))])
        runs = store.runs()
    return path, runs


def test_runs_of_one_instant_stand_in_the_order_in_which_they_were_planned(tmp_path, monkeypatch):
    monkeypatch.setattr("ragnb.store.store._now", lambda: "2026-01-01T00:00:00.000+00:00")
    with Store(tmp_path / "runs.sqlite") as runs:
        planned = [runs.plan([Cell(f"s{i}", "faith", {}, model="m")]) for i in range(9)]
        assert runs.runs()["run"].tolist() == planned


def test_runs_are_listed_and_shown(filled, capsys):
    path, runs = filled
    small, lost, large = runs["run"][:3]
    assert main(["runs", str(path)]) == 0
    said = capsys.readouterr().out
    assert re.search(rf"{small} +with small +12 +11 +0 +0 +1 ", said)
    assert main(["runs", str(path), lost[:6]]) == 0
    assert "the reply has no content" in capsys.readouterr().out
    assert main(["runs", str(path), "zz"]) == 2
    assert main(["runs", str(path), small, large]) == 2
    assert f"ragnb compare {path}#{large} {path}#{small}" in capsys.readouterr().err
    assert main(["runs", str(path) + "x"]) == 2
    assert not Path(str(path) + "x").exists()


FAITH = {"metrics": [rn.Metric("faith", 0, 1)]}


def test_a_comparison_of_runs_is_the_paired_mean_with_its_clustered_interval(filled):
    path, runs = filled
    small, lost, large = (f"{path}#{run}" for run in runs["run"][:3])
    row = rn.compare(large, baseline=small, **FAITH).iloc[0]
    difference, groups = np.array([0.1] * 10 + [0.0]), np.arange(11) % 4
    assert row["value"] == pytest.approx(difference.mean())
    assert (row["n_common"], row["n_clusters"], row["wins"], row["ties"]) == (11, 4, 10, 1)
    without = np.array([difference[groups != g].mean() for g in range(4)])
    se = np.sqrt(3 / 4 * np.sum((without - difference.mean()) ** 2))
    df = 11**2 / np.sum(np.bincount(groups) ** 2) - 1
    assert (row["high"] - row["low"]) / 2 == pytest.approx(student.ppf(0.975, df) * se)
    with pytest.raises(RagnbError):
        rn.compare(small, baseline=lost, **FAITH)


def test_mappings_are_compared_part_by_part_and_repeats_as_means(tmp_path):
    def planned(store, model, scores):
        cells = [Cell(i, "rubric", {}, model=model, repeat=r) for i in range(3) for r in range(2)]
        run = store.plan(cells)
        done = [Outcome.of({"accuracy": score, "analysis": "x"}) for score in scores]
        store.put(list(zip(cells, done, strict=True)))
        return f"{tmp_path / 'a.sqlite'}#{run}"

    with Store(tmp_path / "a.sqlite") as store:
        old, new = planned(store, "a", [1, 3, 5, 5, 2, 4]), planned(store, "b", [2, 4, 5, 5, 3, 5])
    known = {"metrics": [rn.Metric("accuracy", 1, 10)]}  # marks up to 5 may be on several scales
    table = rn.compare(new, baseline=old, **known)
    assert table["metric"].tolist() == ["accuracy", "weighted_score"]
    assert table["value"].tolist() == pytest.approx([2 / 3] * 2)
    assert table["n_common"].tolist() == [3, 3]
    assert rn.compare(old, baseline=old, **known)["ties"].tolist() == [3, 3]
