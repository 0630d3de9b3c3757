"""The parent of every Python process that Spark starts on this machine, with all their modules loaded: each is a fork, ready at once.

A job begins with six such processes, one after the other, each of which would load for half a second to two seconds; the parent loads while
the JVM starts. Modules are only loaded here: a library with running threads could not be forked. The protocol is that of `interpreter.py`:
three streams and what to run; then back the pid and in the end the exit code.
"""

from __future__ import annotations

import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

_STREAMS = 3


class ForkServer:
    """Listens at a socket for what to run, until the process that started it is gone."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._alarm, alarm = socket.socketpair()
        alarm.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._own: list[Any] = [self._listener, self._alarm, alarm, self._selector]
        self._clients: dict[int, socket.socket] = {}
        signal.set_wakeup_fd(alarm.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        for source in (sys.stdin, self._listener, self._alarm):
            self._selector.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is self._listener:
                    self._take()
                elif key.fileobj is self._alarm:
                    self._alarm.recv(4096)
                    self._bury()
                elif key.data in self._clients:
                    # The client is gone: its child ends too, if it has not ended in the same moment.
                    os.kill(key.data, signal.SIGKILL)
                    self._leave(key.data)

    def _take(self) -> None:
        """Let a child do what the next client asks for."""
        client, _address = self._listener.accept()
        try:
            asked, streams = _asked(client)
        except (EOFError, OSError):
            client.close()
            return
        child = os.fork()
        if child == 0:
            for inherited in (client, *self._own, *self._clients.values()):
                inherited.close()
            _live(asked, streams)
        for stream in streams:
            os.close(stream)
        self._clients[child] = client
        self._selector.register(client, selectors.EVENT_READ, child)
        self._tell(child, child)

    def _bury(self) -> None:
        """Report the children that have ended."""
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                child, code = found[0], os.waitstatus_to_exitcode(found[1])
                if child in self._clients:
                    # As in a shell: a signal counts from 128.
                    self._tell(child, code if code >= 0 else 128 - code)
                    self._leave(child)

    def _tell(self, child: int, number: int) -> None:
        # The client may be gone by now.
        with suppress(ConnectionError):
            self._clients[child].sendall(number.to_bytes(4, "big"))

    def _leave(self, child: int) -> None:
        client = self._clients.pop(child)
        self._selector.unregister(client)
        client.close()


def _asked(client: socket.socket) -> tuple[dict[str, Any], list[int]]:
    head, streams, _flags, _address = socket.recv_fds(client, 4, _STREAMS)
    size = int.from_bytes(head, "big")
    text = client.recv(size, socket.MSG_WAITALL) if size else b""
    if not size or len(text) < size:
        raise EOFError
    found: dict[str, Any] = json.loads(text)
    return found, streams


def _live(asked: dict[str, Any], streams: list[int]) -> NoReturn:
    """Be the process that a client asked for."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(asked["directory"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        # This process may have begun with another path.
        sys.path[:0] = [part for part in os.environ["PYTHONPATH"].split(os.pathsep) if part and part not in sys.path]
        module, *arguments = asked["arguments"][1:]
        sys.argv = [module, *arguments]
        # Otherwise Python warns that it is already loaded.
        sys.modules.pop(module, None)
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:  # noqa: BLE001 - as an interpreter does
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _load() -> None:
    import pandas as pd  # noqa: F401 - Spark loads it in every worker that is given Arrow
    import pyspark.sql.streaming.python_streaming_source_runner
    import pyspark.sql.worker.create_data_source
    import pyspark.sql.worker.lookup_data_sources
    import pyspark.sql.worker.plan_data_source_read
    import pyspark.sql.worker.python_streaming_sink_runner
    import pyspark.sql.worker.write_into_data_source  # noqa: F401

    from headrace.spark import evaluation, level, reading, source, transformation, writing  # noqa: F401
    from headrace.spark.workers import daemon  # noqa: F401
    from headrace.spark.workers.worker import settle

    settle()


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        place = Path(listener.getsockname())
        # New clients wait; a signal has no process to reach yet.
        _load()
        ForkServer(listener).serve()
        # Killed processes may have left sockets here, and ending ones may still remove their own.
        shutil.rmtree(place.parent, ignore_errors=True)
