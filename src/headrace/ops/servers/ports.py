"""Loopback ports for servers that must keep theirs over a restart."""

from __future__ import annotations

import random
import socket

# Below the range from which systems take the ports of outgoing connections (Linux from 32768): while a server is down, a client that keeps
# trying could otherwise be given the very port it asks for, and connect to itself.
_FIRST, _LAST = 15_000, 30_000


def free_ports(count: int) -> list[int]:
    """Ports on which no process listens at this moment."""
    found: set[int] = set()
    while len(found) < count:
        port = random.randint(_FIRST, _LAST)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.add(port)
    return sorted(found)
