"""A served view under load: many subscribers, one of them stalled, questions by key, a cold start with a million rows, SQL over them.

Epochs are written as the tasks of a job write them, ten a second, without Spark: the figures are those of the server. Writer, server and
clients share the cores. A delay is counted from the commit of an epoch to the message at the client. Every subscriber must end with the
very rows that were written. CPU is in cores: on a loaded machine it says more than the delays.

usage: python bench/serving.py [--quick]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from _harness import Worker, finish, machine, memory_megabytes, options, process_cpu_seconds
from _subscribers import Subscribers

from headrace.ops.servers.ports import free_ports
from headrace.serve.http.tokens import tokens_in
from headrace.testing.written import WrittenView

COLUMNS = "key string, sent_at double"
EPOCHS_A_SECOND, KEYS_AN_EPOCH = 10, 10


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    subscribers: int
    seconds: int
    questions: int
    rows: int


FULL = Size(subscribers=1_000, seconds=60, questions=15_000, rows=10_000_000)
QUICK = Size(subscribers=1_000, seconds=10, questions=2_500, rows=1_000_000)


class Writer:
    """Commits epochs at a steady rate, each with a few changed keys that say when it was committed."""

    def __init__(self, home: Path) -> None:
        self._view = WrittenView(home, COLUMNS, ["key"], name="live")
        self.truth: dict[str, float] = {}
        self.epoch()

    def epoch(self) -> int:
        now = time.time()
        first = self._view.number * KEYS_AN_EPOCH
        rows = {f"key-{number % 500}": now for number in range(first, first + KEYS_AN_EPOCH)}
        self.truth |= rows
        return self._view.epoch([{"key": key, "sent_at": sent_at} for key, sent_at in rows.items()])

    def write(self, seconds: float) -> None:
        began = time.perf_counter()
        for number in range(int(seconds * EPOCHS_A_SECOND)):
            time.sleep(max(0.0, began + number / EPOCHS_A_SECOND - time.perf_counter()))
            self.epoch()

    @property
    def reached(self) -> int:
        return self._view.number


@dataclass(frozen=True)
class Running:
    """A server in a process of its own."""

    port: int
    token: str
    process: subprocess.Popen[bytes]
    ready_after: float
    ready_cpu: float

    def get(self, path: str, body: bytes | None = None) -> bytes:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())


@contextmanager
def serving(home: Path) -> Iterator[Running]:
    (port,) = free_ports(1)
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "headrace", "serve", "--home", str(home), "--port", str(port)])
    server = Running(port, tokens_in(home / "serve").read, process, 0.0, 0.0)
    try:
        while True:
            try:
                server.get("/readyz")
                break
            except OSError:
                if process.poll() is not None:
                    raise
                time.sleep(0.02)
        yield Running(port, server.token, process, time.perf_counter() - began, process_cpu_seconds(process.pid))
    finally:
        process.terminate()
        process.wait()


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


def pushed(home: Path, size: Size) -> tuple[bool, dict[str, float]]:
    """Subscribers of a view that changes a hundred times a second, while one of them takes nothing."""
    writer, clients = Writer(home), Worker(Subscribers)
    with serving(home) as server:
        until = writer.reached + size.seconds * EPOCHS_A_SECOND
        clients.begin("listen", f"ws://127.0.0.1:{server.port}/api/v1/views/live?token={server.token}", size.subscribers, until)
        time.sleep(5)
        before, used = memory_megabytes(server.process.pid), process_cpu_seconds(server.process.pid)
        writer.write(size.seconds)
        listened, truth = clients.end(), dict(writer.truth)
        delays, tables = listened.value
        grown, used = memory_megabytes(server.process.pid) - before, process_cpu_seconds(server.process.pid) - used
        paths = [f"/api/v1/views/live/key-{number % 500}" for number in range(size.questions)]
        asking = threading.Thread(target=writer.write, args=(size.questions / 500,))
        asking.start()
        waits = clients.call("ask", "127.0.0.1", server.port, paths, server.token, 500.0).value
        asking.join()
    clients.close()
    right = len(tables) == size.subscribers and all(table == truth for table in tables)
    figures = {
        "delay p50": statistics.median(delays),
        "delay p99": p99(delays),
        "pull p50": statistics.median(waits),
        "pull p99": p99(waits),
    }
    cpu = {"push CPU of the server": used / size.seconds, "push CPU of the subscribers": listened.cpu_seconds / size.seconds}
    return right, {**figures, **cpu, "changes": float(len(delays)), "grown MB": grown}


def large(home: Path, size: Size) -> tuple[bool, dict[str, float]]:
    """A view of many rows: from a cold start to ready, SQL over it, and bytes a row."""
    view = WrittenView(home, "key string, country string, amount bigint", ["key"], name="big")
    for first in range(0, size.rows, 1_000_000):
        numbers = pl.int_range(first, first + 1_000_000, eager=True)
        frame = pl.DataFrame(
            {"key": "customer-" + numbers.cast(pl.String), "country": "c" + (numbers % 50).cast(pl.String), "amount": numbers % 1000}
        )
        view.write_frame(frame, pl.repeat(False, frame.height, eager=True))
        view.commit()
    with tempfile.TemporaryDirectory() as empty, serving(Path(empty)) as idle:
        base = memory_megabytes(idle.process.pid)
    with serving(home) as server:
        ready_after, ready_cpu, bytes_a_row = (
            server.ready_after,
            server.ready_cpu,
            (memory_megabytes(server.process.pid) - base) * 1024 * 1024 / size.rows,
        )
        query = json.dumps({"query": "select country, count(*) n, sum(amount) total from big group by country"}).encode()
        took = []
        for _ in range(10):
            began = time.perf_counter()
            answer = json.loads(server.get("/api/v1/sql", query))
            took.append(time.perf_counter() - began)
    expected = sum(number % 1000 for number in range(size.rows))
    right = sum(row["total"] for row in answer["rows"]) == expected and len(answer["rows"]) == 50
    with serving(home) as server:
        again = server.ready_after
    starts = {"cold start": ready_after, "cold start CPU": ready_cpu, "restart from the cache": again}
    # The first query also starts the process that answers, and shares the rows with it.
    return right, {**starts, "first sql": took[0], "sql": statistics.median(took), "bytes a row": bytes_a_row}


def main() -> None:
    size = QUICK if options(__doc__ or "").quick else FULL
    state = machine()
    print(f"machine: {state}; {size}", flush=True)
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as directory:
        exact, push = pushed(Path(directory) / "push", size)
        print(push, flush=True)
        right, many = large(Path(directory) / "large", size)
        print(many, flush=True)
    targets = {
        f"{size.subscribers} subscribers, 100 updates/s, p99 in s": {"got": round(push["delay p99"], 3), "at_most": 0.5},
        "memory that the server took while it pushed, in MB": {"got": round(push["grown MB"], 1), "at_most": 200.0},
        "pull by key at 500/s, p99 in s": {"got": round(push["pull p99"], 4), "at_most": 0.02},
        f"cold start with {size.rows:,} rows in s": {"got": round(many["cold start"], 2), "at_most": 5.0 * size.rows / 1_000_000},
        f"SQL aggregate over {size.rows:,} rows in s": {"got": round(many["sql"], 3), "at_most": 0.1 * size.rows / 1_000_000},
    }
    finish("serving", correct=exact and right, targets=targets, figures={**push, **many}, machine=state)


if __name__ == "__main__":
    main()
