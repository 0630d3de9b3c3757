"""Spark's Python daemon on this machine, which gives a task to the process that has the state of its shards in memory.

Each level of stateful steps has a daemon to itself (`spark/query.py`), and all other tasks share one.

Spark's own daemon lets a process serve one connection for good, and Spark takes the connection that was idle for longest: shards move
between processes, each of which must first read what the others did. Here a process serves any connection that has a task for it. Toward
Spark it behaves like Spark's daemon: a new connection is told a pid, and a pid on the standard input is to be killed.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import socket
import struct
import sys
import traceback
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from pyspark.daemon import manager, worker
from pyspark.serializers import SpecialLengths
from pyspark.util import enable_faulthandler

from headrace.spark.workers.worker import left_state, retired

_NUMBER = struct.Struct(">i")
# The beginning of a task: the kind of message, its length, and the number of the task in its stage.
_TASK = struct.Struct(">iii")
# More processes for each core than this only wait for each other.
_PROCESSES = 4 * (os.cpu_count() or 1)
_ENDED, _DONE, _STATEFUL = b"e", b"d", b"s"


@dataclass(eq=False)
class _Process:
    """A process that runs tasks, one at a time; `serves` is its present connection."""

    pid: int
    channel: socket.socket
    serves: _Connection | None = None
    tasks: set[int] = field(default_factory=set)
    """The numbers of tasks whose state is in its memory."""


@dataclass(eq=False)
class _Connection:
    """A connection, which Spark takes for a process. It has no task while `task` is None."""

    spark: socket.socket
    pid: int
    task: int | None = None


class Daemon:
    """Listens at a socket, has processes, and connects the two."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._processes: list[_Process] = []
        self._connections: list[_Connection] = []

    def serve(self) -> None:
        """Serve until Spark closes the standard input."""
        self._selector.register(0, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        while True:
            # Finished processes come first: a task may be for one of them.
            for key, _ in sorted(self._selector.select(), key=lambda event: not isinstance(event[0].data, _Process)):
                if key.fileobj == 0:
                    if not (asked := os.read(0, _NUMBER.size)):
                        return
                    self._kill(*_NUMBER.unpack(asked))
                elif key.fileobj is self._listener:
                    self._accept()
                # Earlier events of this round may have ended others.
                elif key.data in self._connections:
                    self._begin(key.data)
                elif key.data in self._processes:
                    self._finish(key.data)

    def _accept(self) -> None:
        # A pid for each connection: Spark distinguishes them by it.
        named = {connection.pid for connection in self._connections}
        process = next((process for process in self._processes if process.pid not in named), None) or self._fork()
        spark, _address = self._listener.accept()
        connection = _Connection(spark, process.pid)
        # A connection that was closed again is noticed when it is asked for a task.
        with suppress(ConnectionError):
            spark.sendall(_NUMBER.pack(process.pid))
        self._connections.append(connection)
        self._selector.register(spark, selectors.EVENT_READ, connection)

    def _begin(self, connection: _Connection) -> None:
        """Give the task of a connection to a process."""
        try:
            head = connection.spark.recv(_TASK.size, socket.MSG_PEEK)
        except ConnectionError:
            head = b""
        if not head:
            self._drop(connection)
            return
        kind, _length, number = _TASK.unpack(head) if len(head) == _TASK.size else (0, 0, -1)
        connection.task = number if kind == SpecialLengths.START_OF_INIT_MESSAGE else -1
        self._selector.unregister(connection.spark)
        process = self._chosen(connection.task)
        process.serves = connection
        try:
            socket.send_fds(process.channel, [_DONE], [connection.spark.fileno()])
        except ConnectionError:
            # It has just ended; Spark sees its task fail, and repeats it.
            self._finish(process)

    def _chosen(self, task: int) -> _Process:
        """The process that has the task's state; else one without state, so that those with state stay free for their own."""
        idle = [process for process in self._processes if process.serves is None]
        for process in idle:
            if task in process.tasks:
                return process
        for process in idle:
            if not process.tasks:
                return process
        return idle[0] if idle and len(self._processes) >= _PROCESSES else self._fork()

    def _finish(self, process: _Process) -> None:
        """Read how a task has ended; a process that says nothing has ended itself."""
        try:
            said = process.channel.recv(1)
        except ConnectionError:
            said = b""
        connection, process.serves = process.serves, None
        if said in (b"", _ENDED):
            self._selector.unregister(process.channel)
            process.channel.close()
            self._processes.remove(process)
        if connection is None:
            return
        if not said:
            self._drop(connection)
            return
        if said == _STATEFUL and connection.task is not None:
            for other in self._processes:
                other.tasks.discard(connection.task)
            process.tasks.add(connection.task)
        connection.task = None
        self._selector.register(connection.spark, selectors.EVENT_READ, connection)

    def _kill(self, pid: int) -> None:
        """Spark has given up a connection: end it, and the process that serves it."""
        for connection in [connection for connection in self._connections if connection.pid == pid]:
            serving = [process for process in self._processes if process.serves is connection]
            for process in serving:
                # It may have ended by itself, which its socket reports next.
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            if not serving:
                self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        with suppress(KeyError):
            self._selector.unregister(connection.spark)
        connection.spark.close()
        self._connections.remove(connection)

    def _fork(self) -> _Process:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            self._selector.close()
            for inherited in (
                ours, self._listener, *(process.channel for process in self._processes), *(known.spark for known in self._connections)
            ):  # fmt: skip
                inherited.close()
            _live(its)
        its.close()
        process = _Process(pid, ours)
        self._processes.append(process)
        self._selector.register(ours, selectors.EVENT_READ, process)
        return process


def _live(channel: socket.socket) -> NoReturn:
    """Be a process that runs the tasks it is given."""
    code = 1
    try:
        with enable_faulthandler():
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.close(nothing)
            code = _work(channel)
    except BaseException:  # noqa: BLE001 - as an interpreter does
        traceback.print_exc()
    finally:
        os._exit(code)


def _work(channel: socket.socket) -> int:
    while True:
        said, passed, _flags, _address = socket.recv_fds(channel, 1, 1)
        if not said:
            return 0
        with socket.socket(fileno=passed[0]) as spark:
            code = worker(spark, True)
        if code or retired():
            channel.send(_ENDED)
            return 0
        # At once: the next task may come right after Spark has seen the end of this one.
        channel.send(_STATEFUL if left_state() else _DONE)
        gc.collect()


def main() -> None:
    """Be Spark's daemon."""
    os.setpgid(0, 0)
    place = Path(os.environ["PYTHON_WORKER_FACTORY_SOCK_DIR"]) / f".{uuid.uuid4()}.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(place))
        listener.listen(1024)
        name = str(place).encode()
        os.write(1, _NUMBER.pack(len(name)) + name)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            Daemon(listener).serve()
        finally:
            place.unlink(missing_ok=True)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            # The message that Spark's own daemon sends its processes at the end.
            os.kill(0, signal.SIGHUP)


if __name__ == "__main__":
    if os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "").lower() == "true":
        main()
    else:
        manager()
