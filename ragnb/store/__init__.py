"""Paid work that is never lost: cells, the store that keeps them, the client that pays, the loop over them.

What judging and scoring share. A `Cell` is one piece of work; an async function makes an `Outcome` of it, with the
calls of a `Client`; `run_cells` does all that are not done yet and keeps each in a `Store`::

    client = Client(profile, max_calls=500)

    async def work(cell):
        reply = await client.chat([{"role": "user", "content": cell.inputs["question"]}], temperature=0)
        return Outcome.of(parse(reply.text))     # or Outcome.failed(reason); CallFailed does the same by raising

    with Store("runs.sqlite") as store:
        run = run_cells(cells, work, store, clients=[client])
    run.frame      # one row a cell, in their order

`estimate` says before what it would need. The key of a cell leaves nothing out that may change its result, so that
another model, prompt or parameter is other work; what is ``ok`` or ``not_applicable`` is never done twice.
"""

from ragnb.store.cells import CallFailed, Cell, Outcome, Stop, count_tokens, repeated
from ragnb.store.client import Client, Reply
from ragnb.store.estimate import Estimate, estimate
from ragnb.store.loop import Run, Stopped, run_cells
from ragnb.store.store import Store, StoreLike, opened

__all__ = [
    "CallFailed",
    "Cell",
    "Client",
    "Estimate",
    "Outcome",
    "Reply",
    "Run",
    "Stop",
    "Stopped",
    "Store",
    "StoreLike",
    "count_tokens",
    "estimate",
    "opened",
    "repeated",
    "run_cells",
]
