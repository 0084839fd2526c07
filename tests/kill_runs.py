"""Kill runs at random moments and look whether anything paid for was lost or paid twice.

python tests/kill_runs.py BASE_URL FOLDER KILLS SEED

One process imports everything once and forks a child for each try. The child runs its cells against the endpoint
and writes a line for each cell that counts as done; the parent sends it SIGKILL at a random moment, then starts
the next child on the same store, until the run is whole; then comes the next store. What happened is printed as
JSON.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from llm_server import Answer, LlmServer, Request

from ragnb.schema import Profile
from ragnb.store import Cell, Client, Outcome, Store, run_cells

CELLS, CONCURRENCY = 24, 4
STEADY = [
    "sample_id",
    "status",
    "value",
    "reason",
    "reply",
    "calls",
    "tokens_in",
    "tokens_out",
    "key",
]


def cells_of(store: str) -> list[Cell]:
    return [
        Cell(f"s{i}", "echo", {"text": f"{store} cell {i}"}, model="small") for i in range(CELLS)
    ]


class Telling(Store):
    """A store that tells what it has kept, only after it is kept."""

    tell = 1

    def put(self, items: Any, refused: Any = ()) -> list[int]:
        items = list(items)
        numbers = super().put(items, refused)
        done = [item[0].sample_id for item in items if isinstance(item, tuple)]
        os.write(self.tell, "".join(f"{name}\n" for name in done).encode())
        return numbers


def child(base_url: str, path: Path, number: int, pipe: int) -> None:
    """Run the cells of one store; the request names the try, the key does not."""
    client = Client(Profile(base_url=base_url, model="small"), concurrency=CONCURRENCY)

    async def work(cell: Cell) -> Outcome:
        reply = await client.chat(
            [{"role": "user", "content": f"{cell.inputs['text']} try {number}"}]
        )
        return Outcome.of(reply)

    with Telling(path) as store:
        store.tell = pipe
        run_cells(cells_of(path.stem), work, store, clients=[client])


def attempt(base_url: str, path: Path, number: int, seconds: float) -> dict[str, Any]:
    """Fork a child, kill it after some seconds, and return what it told."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            child(base_url, path, number, writing)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(writing)
    told, end = b"", time.monotonic() + seconds
    while (rest := end - time.monotonic()) > 0 and select.select([reading], [], [], rest)[0]:
        if not (piece := os.read(reading, 4096)):
            break
        told += piece
    # The pipe ends when the child does; else its time is over.
    killed = time.monotonic() >= end
    if killed:
        os.kill(pid, signal.SIGKILL)
        while piece := os.read(reading, 4096):
            told += piece
    os.close(reading)
    status = os.waitpid(pid, 0)[1]
    assert killed or status == 0, f"the child ended with {status}"
    return {
        "store": path.stem,
        "try": number,
        "killed": os.WIFSIGNALED(status),
        "told": told.decode().split(),
    }


def main(base_url: str, folder: str, kills: int, seed: int) -> None:
    rng, tries, done, stores = random.Random(seed), [], 0, 0
    with open(os.devnull, "w") as nowhere:  # all that a run imports is there before the first fork
        child(base_url, Path(folder) / "undisturbed.sqlite", 0, nowhere.fileno())
    begun = time.monotonic()
    attempt(base_url, Path(folder) / "usual.sqlite", 0, 120)
    usual = time.monotonic() - begun
    while done < kills:
        path, whole = Path(folder) / f"store{stores}.sqlite", False
        while not whole:
            seconds = rng.uniform(0, usual) if done < kills else 120
            tries.append(attempt(base_url, path, len(tries) + 1, seconds))
            done, whole = done + tries[-1]["killed"], not tries[-1]["killed"]
        stores += 1
    print(json.dumps(tries))


def check(kills: int, folder: Path, seed: int = 1) -> dict[str, int]:
    """Kill runs, and return how often each promise was broken, with what was tried; the promises are 0."""
    with LlmServer(reply) as server:
        words = [sys.executable, __file__, server.base_url, str(folder), str(kills), str(seed)]
        path = os.pathsep.join(
            [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        env = os.environ | {"PYTHONPATH": path}
        done = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
        assert done.returncode == 0, done.stderr
        log = [request.prompt for request in server.log]
    tries = json.loads(done.stdout)
    found = Counter(kills=sum(one["killed"] for one in tries), tries=len(tries), requests=len(log))
    asked: dict[tuple[str, str], list[int]] = defaultdict(list)
    for prompt in log:
        store, _, cell, _, number = prompt.split()
        asked[store, f"s{cell}"].append(int(number))
    told = {(one["store"], cell): one["try"] for one in tries for cell in one["told"]}
    in_flight = Counter[int]()
    for name, numbers in asked.items():
        found["asked_twice_in_a_try"] += len(numbers) - len(set(numbers))
        found["paid_again_after_it_was_kept"] += sum(
            number > told.get(name, 10**9) for number in numbers
        )
        in_flight.update(numbers[:-1])
    found["more_lost_than_under_way"] = sum(n > CONCURRENCY for n in in_flight.values())
    found["lost_in_flight"] = sum(in_flight.values())
    with Store(folder / "undisturbed.sqlite") as store:
        wanted = store.frame(store.runs()["run"][0])
    for name in sorted({one["store"] for one in tries}):
        with Store(folder / f"{name}.sqlite") as store:
            run = store.runs()["run"]
            frame, history = store.frame(run[0]), store.frame(run[0], attempts="all")
        found["told_and_not_kept"] += sum(
            (name, cell) in told for cell in set(wanted["sample_id"]) - kept(frame)
        )
        found["kept_twice"] += len(history) - history["key"].nunique()
        found["other_frames"] += not same(frame, wanted, name)
    return dict(found)


def kept(frame: Any) -> set[str]:
    return set(frame.loc[frame["status"] == "ok", "sample_id"])


def same(frame: Any, wanted: Any, name: str) -> bool:
    """Whether a frame is that of the undisturbed run, but for the store's name in the texts, times and keys."""
    left, right = (
        one[STEADY[:-1]].replace({which: "X"}, regex=True)
        for one, which in ((frame, f"{name} "), (wanted, "undisturbed "))
    )
    return bool(left.equals(right))


def reply(request: Request) -> Answer:
    """The text of the cell, without the try, after a moment."""
    return Answer(request.prompt.rsplit(" try ")[0], seconds=0.004)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
