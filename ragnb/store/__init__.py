"""Durable judge calls: cells and their calls, the store, the client, and the loop over cells.

What judging and scoring share. A `Cell` is one piece of work; an async function makes an `Outcome` of it, with the
calls of a `Client`; `run_cells` does all that are not done yet and keeps each, and each call, in a `Store`::

    client = Client(profile, max_calls=500)

    async def work(cell):
        reply = await client.chat([{"role": "user", "content": cell.inputs["question"]}], temperature=0)
        return Outcome.of(parse(reply))          # or Outcome.failed(reason); CallFailed does the same by raising

    with Store("runs.sqlite") as store:
        run = run_cells(cells, work, store, clients=[client])
    run.frame      # one row per cell, in their order

`estimate` says before what it would need. The key of a cell leaves nothing out that may change its result, so that
another model, prompt or parameter is other work; what is ``ok`` or ``not_applicable`` is never done twice. A call
is keyed by its request: what was answered is not paid for again, whichever cell or run asks it.
"""

from ragnb.store.budget import count_tokens
from ragnb.store.calls import Call, CallFailed, Cell, Outcome, Stop
from ragnb.store.client import Client, new_tag
from ragnb.store.costs import unit_costs as unit_costs
from ragnb.store.loop import Estimate, Run, Stopped, estimate, run_cells, total_account
from ragnb.store.store import Store, StoreLike, opened, systems_of
