"""Overhead of the loop over paid cells, its throughput, and a hundred kills; prints a table and a line.

python benchmarks/store.py [--cells 1000] [--runs 3] [--kills 100]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from kill_runs import check

from ragnb.schema import Profile
from ragnb.store import Cell, Client, Outcome, Store, run_cells

CONCURRENCY = 16
SERVER = r"""
import asyncio, json, re, sys

BODY = json.dumps({
    "id": "c", "object": "chat.completion", "created": 0, "model": "small",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
}).encode()
HEAD = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()

async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(re.search(rb"(?i)content-length: *(\d+)", head)[1]))
            await asyncio.sleep(float(sys.argv[1]))
            writer.write(HEAD + BODY)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


def timed(cells: int, seconds: float, folder: Path, way: str) -> tuple[float, float]:
    """Wall and processor seconds of a run against an endpoint that answers after some seconds."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(seconds)], stdout=subprocess.PIPE, text=True
    )
    try:
        base_url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        client = Client(Profile(base_url=base_url, model="small"), concurrency=CONCURRENCY)
        run = ours if way == "ragnb" else bare
        with Store(folder / f"{way}{seconds}{time.time()}.sqlite") as store:
            run(
                client, [cell(-1 - i) for i in range(CONCURRENCY)], store
            )  # imports and first connections
            wall, processor = time.perf_counter(), time.process_time()
            run(client, [cell(i) for i in range(cells)], store)
            return time.perf_counter() - wall, time.process_time() - processor
    finally:
        server.terminate()
        server.wait()


def cell(number: int) -> Cell:
    return Cell(number, "echo", {"text": f"Is answer {number} right? " * 20}, model="small")


def ours(client: Client, cells: list[Cell], store: Store) -> None:
    async def work(cell: Cell) -> Outcome:
        reply = await client.chat([{"role": "user", "content": cell.inputs["text"]}], temperature=0)
        return Outcome.of(reply)

    assert run_cells(cells, work, store, clients=[client]).counts["ok"] == len(cells)


def bare(client: Client, cells: list[Cell], store: Store) -> None:
    """The SDK alone: gather, a semaphore, nothing kept."""
    import asyncio

    import openai

    async def all_of_them() -> None:
        places = asyncio.Semaphore(CONCURRENCY)
        async with openai.AsyncOpenAI(
            api_key="none", base_url=client.profile.base_url, max_retries=0
        ) as sdk:

            async def one(cell: Cell) -> str:
                async with places:
                    said = [{"role": "user", "content": cell.inputs["text"]}]
                    got = await sdk.chat.completions.create(
                        model="small", messages=said, temperature=0
                    )
                    return got.choices[0].message.content

            await asyncio.gather(*map(one, cells))

    asyncio.run(all_of_them())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    n = given.cells
    with tempfile.TemporaryDirectory() as folder:
        print(f"{n} cells, {CONCURRENCY} at a time, best of {given.runs} in turn\n")
        print(
            "| endpoint answers | way | wall s | processor ms a cell | share of ideal throughput |"
        )
        print("|---|---|---|---|---|")
        for seconds in (0.0, 0.2):
            found: dict[str, list[tuple[float, float]]] = {"bare": [], "ragnb": []}
            for _ in range(given.runs):
                for way, times in found.items():
                    times.append(timed(n, seconds, Path(folder), way))
            for way, times in found.items():
                wall, processor = min(t[0] for t in times), min(t[1] for t in times)
                ideal = f"{-(-n // CONCURRENCY) * seconds / wall:.1%}" if seconds else "—"
                name = (
                    "ragnb: kept, counted, resumable"
                    if way == "ragnb"
                    else "openai SDK alone, nothing kept"
                )
                when = f"after {seconds * 1000:.0f} ms" if seconds else "at once"
                print(f"| {when} | {name} | {wall:.2f} | {1000 * processor / n:.2f} | {ideal} |")
    if given.kills:
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            found = check(given.kills, Path(folder))
            print(
                f"\nkill -9 at random moments, {time.monotonic() - begun:.0f} s: {json.dumps(found)}"
            )


if __name__ == "__main__":
    main()
