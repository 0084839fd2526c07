"""Paid work: what is kept, what is paid for, what a fault becomes; against a real endpoint on 127.0.0.1."""

from __future__ import annotations

import pytest
from llm_server import Answer

from ragnb.schema import Profile
from ragnb.work import Cell, Client, Outcome, Store, run_cells


def profile_of(server, **more):
    return Profile(base_url=server.base_url, model="small", **more)


def asking(client, **parameters):
    """Work that sends the cell's text and keeps the reply as the value."""

    async def work(cell):
        reply = await client.chat([{"role": "user", "content": cell.inputs["text"]}], **parameters)
        return Outcome.of(reply.text)

    return work


def cells_of(n, **more):
    return [Cell(f"s{i}", "echo", {"text": f"text {i}"}, model="small", **more) for i in range(n)]


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "runs.sqlite") as store:
        yield store


def test_a_run_calls_once_a_cell_and_a_second_run_calls_nobody(llm_server, store):
    llm_server.script = lambda request: Answer(request.prompt.upper(), usage=(7, 3))
    client = Client(profile_of(llm_server), concurrency=4)
    cells = cells_of(10)
    run = run_cells(cells, asking(client), store, clients=[client])
    assert list(run.frame["value"]) == [f"TEXT {i}" for i in range(10)]
    assert set(run.frame["tokens_in"]) == {7}
    assert len(llm_server.log) == 10
    again = run_cells(cells, asking(client), store, clients=[client])
    assert len(llm_server.log) == 10
    assert again.frame.equals(run.frame)
