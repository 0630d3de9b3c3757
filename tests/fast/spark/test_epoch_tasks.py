"""Calls of Spark's driver into Python, which it makes for each batch."""

from __future__ import annotations

import os
import resource
import socket
from contextlib import ExitStack

from py4j import java_gateway

from headrace.spark.epoch_tasks import accept_at_any_socket

OLD_LIMIT = 1_024


def test_a_call_is_received_at_a_socket_of_any_number() -> None:
    accept_at_any_socket()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as opened:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        while (number := os.open(os.devnull, os.O_RDONLY)) <= OLD_LIMIT:
            opened.callback(os.close, number)
        opened.callback(os.close, number)
        server = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        assert server.fileno() > OLD_LIMIT
        assert java_gateway.select.select([server], [], [], 0) == ([], [], [])
        opened.enter_context(socket.create_connection(server.getsockname()))
        assert java_gateway.select.select([server], [], [], 60) == ([server], [], [])
