"""Many subscribers of one view in one process, and many questions for keys: what each got, and when."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field

from websockets.asyncio.client import connect


@dataclass
class Heard:
    """What one subscriber has: its folded table, and how long after its commit each change came, in seconds."""

    rows: dict[str, float] = field(default_factory=dict)
    delays: list[float] = field(default_factory=list)
    epoch: int = 0


class Subscribers:
    """A process with many subscribers; a stalled one among them connects and takes nothing."""

    def listen(self, url: str, count: int, until: int) -> tuple[list[float], list[dict[str, float]]]:
        """Listen until every subscriber has an epoch; gives all delays and the tables."""
        heard = asyncio.run(self._listen(url, count, until))
        return [delay for one in heard for delay in one.delays], [one.rows for one in heard]

    def ask(self, host: str, port: int, paths: list[str], token: str, rate: float) -> list[float]:
        """Ask for paths at a steady rate; gives how long each answer took, counted from when it was due."""
        return asyncio.run(self._ask(host, port, paths, token, rate))

    async def _listen(self, url: str, count: int, until: int) -> list[Heard]:
        held = await connect(url, compression=None, max_queue=1, open_timeout=60)
        heard = [Heard() for _ in range(count)]
        limit = asyncio.Semaphore(50)
        try:
            await asyncio.gather(*(self._one(url, one, until, limit) for one in heard))
        finally:
            await held.close()
        return heard

    async def _one(self, url: str, heard: Heard, until: int, limit: asyncio.Semaphore) -> None:
        async with limit:
            socket = await connect(url, compression=None, open_timeout=60)
        async with socket:
            async for text in socket:
                now, message = time.time(), json.loads(text)
                for row in message.get("rows", ()):
                    heard.rows[row["key"]] = row["sent_at"]
                for change in message.get("changes", ()):
                    heard.rows[change["row"]["key"]] = change["row"]["sent_at"]
                    heard.delays.append(now - change["row"]["sent_at"])
                heard.epoch = message["epoch"]
                if heard.epoch >= until and message.get("last", True):
                    return

    async def _ask(self, host: str, port: int, paths: list[str], token: str, rate: float) -> list[float]:
        waits: list[float] = []
        waiting: asyncio.Queue[tuple[float, str]] = asyncio.Queue()
        workers = [asyncio.create_task(self._asking(host, port, token, waiting, waits)) for _ in range(16)]
        began = time.perf_counter()
        for number, path in enumerate(paths):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            waiting.put_nowait((due, path))
        answered = asyncio.create_task(waiting.join())
        done, _ = await asyncio.wait([answered, *workers], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            # A worker ends only if an answer was not what it should be.
            task.result()
        for worker in workers:
            worker.cancel()
        return waits

    async def _asking(self, host: str, port: int, token: str, waiting: asyncio.Queue[tuple[float, str]], waits: list[float]) -> None:
        reader, writer = await asyncio.open_connection(host, port)
        while True:
            due, path = await waiting.get()
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = int(next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")).split(b":")[1])
            await reader.readexactly(length)
            waits.append(time.perf_counter() - due)
            waiting.task_done()
