"""Shared parts of all benchmarks: interleaved pairs, workers in processes of their own, the machine's state, and the last line."""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Reply:
    """What a call in a worker gave, and what it cost there."""

    value: Any
    cpu_seconds: float
    peak_megabytes: float


class Worker:
    """An object that lives in a fresh process and answers method calls, so that two sides share no interpreter and no memory."""

    def __init__(self, factory: Callable[..., Any], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, factory, arguments), daemon=True)
        self._process.start()
        theirs.close()

    def call(self, method: str, *arguments: Any) -> Reply:
        self.begin(method, *arguments)
        return self.end()

    def begin(self, method: str, *arguments: Any) -> None:
        """Send a call without waiting, to have two workers busy at once."""
        self._connection.send((method, arguments))

    def end(self) -> Reply:
        reply = self._connection.recv()
        if isinstance(reply, BaseException):
            raise reply
        assert isinstance(reply, Reply)
        return reply

    def close(self) -> None:
        self._connection.close()
        self._process.join()


def _serve(connection: Connection, factory: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    served = factory(*arguments)
    with contextlib.suppress(EOFError):
        while True:
            method, parameters = connection.recv()
            # Writing 5 makes the kernel forget the former peak of this process's memory.
            Path("/proc/self/clear_refs").write_text("5")
            before = _cpu_seconds()
            try:
                value = getattr(served, method)(*parameters)
            except Exception as error:  # noqa: BLE001 - whatever happened belongs to the caller
                connection.send(error)
                continue
            connection.send(Reply(value, _cpu_seconds() - before, memory_megabytes(os.getpid(), "VmHWM")))


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def memory_megabytes(pid: int, kind: str = "VmRSS") -> float:
    """`kind` of /proc/PID/status: VmRSS is the memory now, VmHWM its peak."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(f"{kind}:"))
    return int(line.split()[1]) / 1024


def process_cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Measure:
    """The same work on both sides, pair after pair; the ratio of a pair says how many times the peer's figure ours is."""

    name: str
    unit: str
    ours: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)
    notes: dict[str, float] = field(default_factory=dict)

    @property
    def ratios(self) -> list[float]:
        return [ours / peer for ours, peer in zip(self.ours, self.peer, strict=True)]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    def note_most(self, name: str, value: float) -> None:
        self.notes[name] = round(max(value, self.notes.get(name, 0.0)), 3)

    def show(self) -> str:
        ours, peer = statistics.median(self.ours), statistics.median(self.peer)
        spread = f"{min(self.ratios):.2f} to {max(self.ratios):.2f}"
        notes = ", ".join(f"{name} {value:g}" for name, value in self.notes.items())
        return f"{self.name:<52} {ours:>14,.4g} {peer:>14,.4g} {self.unit:<9} ratio {self.ratio:6.2f} ({spread})  {notes}"

    def figures(self) -> dict[str, Any]:
        return {
            "unit": self.unit,
            "ours": _short(statistics.median(self.ours)),
            "peer": _short(statistics.median(self.peer)),
            "ratio": _short(self.ratio),
            "ratio_range": [_short(min(self.ratios)), _short(max(self.ratios))],
            **self.notes,
        }


def interleave(pairs: int, ours: Callable[[], object], peer: Callable[[], object]) -> None:
    """Run peer, ours, peer, ours, ...: what disturbs the machine for a while then disturbs both."""
    for _ in range(pairs):
        peer()
        ours()


def machine() -> dict[str, Any]:
    """How fast this machine is at this moment: a fixed amount of Python, and what making a small append durable takes."""
    started = time.perf_counter()
    sum(range(10_000_000))
    python_seconds = time.perf_counter() - started
    waits = []
    with tempfile.NamedTemporaryFile(buffering=0) as file:
        for _ in range(50):
            file.write(b"x" * 100)
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            waits.append((time.perf_counter() - started) * 1000)
    return {
        "cores": os.cpu_count(),
        "python_loop_seconds": round(python_seconds, 3),
        "fdatasync_milliseconds": round(statistics.median(waits), 3),
        "load": round(os.getloadavg()[0], 2),
    }


def options(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="smaller and fewer: under two minutes")
    return parser.parse_args()


def finish(bench: str, *, correct: bool, targets: dict[str, dict[str, float]], **more: Any) -> None:
    """Print the result as the last line, and end with code 1 if the answers were wrong; a missed target is only reported."""
    print(json.dumps({"bench": bench, "correct": correct, "targets": targets, **more}), flush=True)
    sys.exit(0 if correct else 1)


def at_least(measure: Measure, bound: float) -> dict[str, float]:
    return {"got": _short(measure.ratio), "at_least": bound}


def at_most(measure: Measure, bound: float) -> dict[str, float]:
    return {"got": _short(measure.ratio), "at_most": bound}


def _short(number: float) -> float:
    return float(f"{number:.4g}")
