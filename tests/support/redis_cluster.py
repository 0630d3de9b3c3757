"""A real Redis cluster on loopback: three nodes that share out the slots, and one that can take over from any of them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self

from redis import Redis, RedisCluster
from redis.crc import key_slot

from headrace.ops.servers.ports import free_ports
from headrace.ops.servers.redis import RedisServer
from tests.support.processes import until

NODES, SLOTS = 3, 16_384
_SPARE = NODES
_PASSWORD = "s3same"


class Cluster:
    """Three nodes with slots, and one without."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self.nodes = [RedisServer(settings=_settings(port)) for port in free_ports(NODES + 1)]
        self._clients = [Redis(port=node.port, password=_PASSWORD, decode_responses=True) for node in self.nodes]

    @property
    def urls(self) -> list[str]:
        return [f"redis://:{_PASSWORD}@127.0.0.1:{node.port}/0" for node in self.nodes]

    def __enter__(self) -> Self:
        with ExitStack() as started:
            for node in self.nodes:
                started.enter_context(node)
            self._join()
            self.client = RedisCluster.from_url(self.urls[0], decode_responses=True)
            started.callback(self.client.close)
            self._open = started.pop_all()
        return self

    def __exit__(self, *failure: object) -> None:
        for client in self._clients:
            client.close()
        self._open.close()

    def _join(self) -> None:
        first, *others = self._clients
        share = SLOTS // NODES
        for number, client in enumerate(self._clients[:NODES]):
            last = SLOTS - 1 if number == NODES - 1 else (number + 1) * share - 1
            client.execute_command("CLUSTER ADDSLOTSRANGE", number * share, last)
        for other, node in zip(others, self.nodes[1:], strict=True):
            first.execute_command(f"CLUSTER MEET 127.0.0.1 {node.port} {other.config_get('cluster-port')['cluster-port']}")
        self.wait_until_whole()

    def wait_until_whole(self) -> None:
        """Until every node says that all slots are served."""
        until(lambda: all(client.execute_command("CLUSTER INFO")["cluster_state"] == "ok" for client in self._clients))

    def holder(self, key: str) -> int:
        """Which node has the slot of a key, by its own word."""
        slot = _slot(key)
        (owner,) = [number for number, ranges in enumerate(self._ranges()) if any(first <= slot <= last for first, last in ranges)]
        return owner

    def move(self, key: str) -> None:
        """Give the slot of a key, with all keys in it, to the next node."""
        slot, source = _slot(key), self.holder(key)
        target, names = (source + 1) % NODES, self._names()
        self._clients[target].execute_command("CLUSTER SETSLOT", slot, "IMPORTING", names[source])
        self._clients[source].execute_command("CLUSTER SETSLOT", slot, "MIGRATING", names[target])
        while keys := self._clients[source].execute_command("CLUSTER GETKEYSINSLOT", slot, 100):
            self._clients[source].migrate("127.0.0.1", self.nodes[target].port, keys, 0, 10_000, auth=_PASSWORD)
        for number in (target, source, (source + 2) % NODES):
            self._clients[number].execute_command("CLUSTER SETSLOT", slot, "NODE", names[target])

    def lose(self, key: str) -> None:
        """Kill the node that has the slot of a key for good; another one has its data, and takes over."""
        holder, spare = self.holder(key), self._clients[_SPARE]
        spare.execute_command("CLUSTER REPLICATE", self._names()[holder])
        until(lambda: spare.info("replication").get("master_link_status") == "up")
        until(lambda: spare.info("replication")["slave_repl_offset"] >= self._clients[holder].info("replication")["master_repl_offset"])
        self.nodes[holder].kill()

    def _names(self) -> list[str]:
        return [client.execute_command("CLUSTER MYID") for client in self._clients]

    def _ranges(self) -> list[list[tuple[int, int]]]:
        """The ranges of slots of each node."""
        held = self._clients[0].execute_command("CLUSTER SLOTS")
        ports = {node.port: number for number, node in enumerate(self.nodes)}
        found: list[list[tuple[int, int]]] = [[] for _ in self.nodes]
        for first, last, (_, port, *_rest), *_ in held:
            found[ports[port]].append((first, last))
        return found


def _slot(key: str) -> int:
    return int(key_slot(key.encode()))


def _settings(bus: int) -> dict[str, str]:
    return {
        "requirepass": _PASSWORD,
        "masterauth": _PASSWORD,
        "cluster-enabled": "yes",
        # Not the port of clients plus 10,000: that may be anybody's.
        "cluster-port": str(bus),
        # How long a node may be silent before another takes over.
        "cluster-node-timeout": "1000",
        "repl-diskless-sync-delay": "0",
    }
