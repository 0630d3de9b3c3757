"""A stand-in for Python where Spark starts one: a fork of the fork server does the work, and this process ends as that does.

It runs alone, without this package or any other, and takes some milliseconds. Where there is no fork server it becomes the requested
Python.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys


def main() -> int:
    arguments = sys.argv[1:]
    # Spark puts a zip of its own before the installed pyspark, and modules from a zip are compiled again in each process. The path that the
    # job itself was started with leads to the installed one.
    environment = {**os.environ, "PYTHONPATH": os.environ["HEADRACE_WORKER_PATH"]}
    fork_server = _fork_server() if arguments[:1] == ["-m"] else None
    if fork_server is None:
        os.execve(sys.executable, [sys.executable, *arguments], environment)  # noqa: S606 - what Spark asked for
    directory = os.getcwd()  # noqa: PTH109 - pathlib takes as long to load as all the rest
    asked = json.dumps({"arguments": arguments, "environment": environment, "directory": directory}).encode()
    # A signal that arrives before the child is known waits for it: the child may be at work already.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    socket.send_fds(fork_server, [len(asked).to_bytes(4, "big")], [0, 1, 2])
    fork_server.sendall(asked)
    child = _number(fork_server)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    return _number(fork_server)


def _fork_server() -> socket.socket | None:
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.connect(os.environ["HEADRACE_FORK_SERVER"])
    except (KeyError, OSError):
        return None
    return found


def _number(fork_server: socket.socket) -> int:
    answer = fork_server.recv(4, socket.MSG_WAITALL)
    if len(answer) < 4:
        sys.exit(1)
    return int.from_bytes(answer, "big")


if __name__ == "__main__":
    sys.exit(main())
