"""A proxy that cuts connections: each after a number of bytes that a seed decides, or not at all."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from random import Random

_BLOCK = 4096


class Cutter:
    """Forwards to a port of this machine; a connection is cut amid a block, on both sides at once."""

    def __init__(self, target: int, random: Random, share: float = 0.5, most: int = 12_000) -> None:
        self._target, self._random, self._share, self._most = target, random, share, most
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.port: int = self._listener.getsockname()[1]
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        self.cut_all()

    def cut_all(self) -> None:
        """Cut every connection now."""
        with self._lock:
            for one in list(self._open):
                _cut(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open |= {client, server}
            budget = self._random.randrange(self._most) if self._random.random() < self._share else None
            threading.Thread(target=self._forward, args=(client, server, None), daemon=True).start()
            threading.Thread(target=self._forward, args=(server, client, budget), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, budget: int | None) -> None:
        try:
            while block := source.recv(_BLOCK):
                if budget is not None:
                    block, budget = block[:budget], budget - len(block)
                target.sendall(block)
                if budget is not None and budget <= 0:
                    self.cuts += 1
                    break
        except OSError:
            pass  # the other direction was cut, or a process was killed: both ends are closed below
        with self._lock:
            self._open -= {source, target}
        _cut(source)
        _cut(target)


def _cut(one: socket.socket) -> None:
    # It may be cut already.
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
