"""A victim process that writes an epoch, to be killed at a failpoint or stopped there."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event

from headrace.connectors.output import Output, Writer, WriterFenced
from headrace.core import failpoints
from headrace.testing.conformance.subject import Letters, Row, changes_of

# Counted in short waits: on a machine that stands still for a while, a single long wait would time out with nothing done.
_WAITS, _WAIT = 120, 0.5
_context = multiprocessing.get_context("forkserver")
# The imports that the outputs of this package need are loaded once, not by each process: Iceberg's take a second. Missing ones are skipped.
_SINKS = ("delta", "iceberg", "kafka", "log", "parquet", "postgres", "redis", "search")
LOADED = (*(f"headrace.connectors.{sink}.output" for sink in _SINKS), "pyiceberg.io.pyarrow")
_context.set_forkserver_preload([__name__, *LOADED])


class Victim:
    """A process that writes one epoch with failpoints set."""

    def __init__(self, output: Output, writer: Writer, epoch: int, rows: Sequence[Row], rules: str) -> None:
        self._arrived = _context.Event()
        work = (output, writer, epoch, rows)
        self._process: BaseProcess = _context.Process(target=_write, args=(work, rules, self._arrived))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def wait(self) -> None:
        """Wait until it has reached the failpoint that the rules name."""
        assert any(self._arrived.wait(_WAIT) for _ in range(_WAITS)), "the writer did not reach its failpoint"

    def killed(self) -> bool:
        """Wait for its end: True if a failpoint killed it, False if it finished its work."""
        code = self.end()
        assert code in (0, -signal.SIGKILL), f"the writer ended with code {code}"
        return code != 0

    def end(self) -> int:
        """Wait for its end, and return its exit code."""
        for _ in range(_WAITS):
            self._process.join(_WAIT)
            if self._process.exitcode is not None:
                break
        else:
            self._process.kill()
            self._process.join()
            raise AssertionError("the writer did not end")
        code = self._process.exitcode
        self._process.close()
        return code


def _write(work: tuple[Output, Writer, int, Sequence[Row]], rules: str, arrived: Event) -> None:
    output, writer, epoch, rows = work
    failpoints.configure(rules)
    threading.Thread(target=_watch, args=(rules.partition("=")[0], arrived), daemon=True).start()
    try:
        output.write(writer, epoch, changes_of(rows), Letters())
        output.publish(writer.job, writer.sink, epoch)
    except WriterFenced:
        sys.exit(1)


def _watch(failpoint: str, arrived: Event) -> None:
    while not failpoints.hits[failpoint]:
        time.sleep(0.005)
    arrived.set()
