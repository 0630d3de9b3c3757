"""Redis's client as this package uses it: one for each process and server or cluster, and errors that say what to do.

All keys of a sink are in one slot, so in a cluster one node has them: it is written to like a single server. When the slot moves, or a
replica takes over, its new node is looked up again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from redis import Redis, RedisCluster
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode
from redis.exceptions import (
    AskError,
    AuthenticationError,
    ClusterDownError,
    ConnectionError,  # noqa: A004 - Redis's own
    NoPermissionError,
    RedisClusterException,
    RedisError,
    TimeoutError,  # noqa: A004 - Redis's own
    TryAgainError,
)
from redis.retry import Retry

from headrace.connectors.client_cache import ClientCache
from headrace.connectors.patience import patiently
from headrace.connectors.redis.declaration import RedisKeys
from headrace.core.errors import ConnectorError
from headrace.core.secret import Secret

Answer = TypeVar("Answer")
# A slot that is elsewhere (MOVED is a kind of ASK) or on its way, and an incomplete cluster, are waited for like a server.
_AWAY = (ConnectionError, TimeoutError, AskError, TryAgainError, ClusterDownError, RedisClusterException)
_clients = ClientCache[Redis | RedisCluster](close=lambda client: client.close())


def repeatedly(target: RedisKeys, what: str, work: Callable[[Redis], Answer]) -> Answer:
    """Do work that may be repeated with the server that has a target's keys; one that is away is waited for."""

    def attempt() -> Answer:
        try:
            return _asked(target, work)
        except AuthenticationError as error:
            raise _failure(target, what, error) from error

    try:
        return patiently(target.patience, attempt, _AWAY)
    except (RedisError, RedisClusterException) as error:
        raise _failure(target, what, error) from error


def once(target: RedisKeys, work: Callable[[Redis | RedisCluster], Answer]) -> Answer:
    """Do work with the server or cluster, whatever node has its keys; who asks repeats it."""
    client = _clients.get(target.url, lambda: _connected(target.url))
    try:
        return work(client)
    except _AWAY:
        if isinstance(client, RedisCluster):
            client.nodes_manager.initialize()
        raise


def _asked(target: RedisKeys, work: Callable[[Redis], Answer]) -> Answer:
    client = _clients.get(target.url, lambda: _connected(target.url))
    if isinstance(client, Redis):
        return work(client)
    try:
        node: ClusterNode = client.get_node_from_key(target.tag)  # type: ignore[no-untyped-call] # it has no annotations
        return work(client.get_redis_connection(node))
    except _AWAY:
        # Any known node tells which one has the slot now.
        client.nodes_manager.initialize()
        raise


def _connected(url: Secret) -> Redis | RedisCluster:
    # Attempts are counted here, where the work is known to be repeatable.
    once = Retry(NoBackoff(), 0)
    plain = Redis.from_url(url.reveal(), socket_timeout=30, socket_connect_timeout=10, retry=once)
    if not _in_cluster(plain):
        return plain
    plain.close()
    # A slot without a node at the moment may get another one.
    return RedisCluster.from_url(url.reveal(), socket_timeout=30, socket_connect_timeout=10, retry=once, require_full_coverage=False)


def _in_cluster(server: Redis) -> bool:
    try:
        return bool(server.info("cluster")["cluster_enabled"])
    except NoPermissionError:
        # If the query is not permitted, the URL is taken as one server.
        return False


def _failure(target: RedisKeys, what: str, error: Exception) -> ConnectorError:
    return ConnectorError(f"{what} {target} failed: {error}", hint="check the server, and url=")
