"""Bytes over a socket, as no HTTP client shows them."""

import socket


def received(connection: socket.socket) -> bytes:
    """All that comes until the other side closes the connection."""
    found = b""
    try:
        while block := connection.recv(65_536):
            found += block
    except ConnectionResetError:
        return found
    return found
