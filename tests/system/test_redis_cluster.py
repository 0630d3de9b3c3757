"""Keys of a real Redis cluster of several nodes as an output."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from redis import exceptions

import headrace as hr
from headrace.connectors.patience import patiently
from headrace.testing.conformance import cases
from headrace.testing.conformance.cases import expect
from headrace.testing.conformance.observer import observed
from headrace.testing.conformance.subject import SubjectWriter, made
from headrace.testing.conformance.victim import Victim
from tests.support.redis_cluster import NODES, Cluster
from tests.system.test_redis_sink import RedisSubject

_numbers = itertools.count()
CASES = (
    cases.a_table_holds_the_latest_of_each_key,
    cases.each_task_has_its_own_epochs,
    cases.a_writer_killed_at_any_step_has_written_all_or_nothing,
    cases.a_writer_of_an_earlier_run_is_shut_out,
    cases.a_writer_held_up_before_its_commit_does_no_harm_when_it_wakes,
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as nodes:
        yield nodes


class ClusterSubject(RedisSubject):
    away = (
        *RedisSubject.away,
        exceptions.RedisClusterException,
        exceptions.ClusterDownError,
        exceptions.AskError,
        exceptions.TryAgainError,
    )

    def __init__(self, cluster: Cluster) -> None:
        name = f"spread-{next(_numbers)}"
        # Writers are told the address of a node that does not have their keys.
        url = cluster.urls[(cluster.holder(f"{{{name}}}") + 1) % NODES]
        self.target, self._cluster = hr.redis(name, url=url), cluster.client
        self.output().prepare(2)

    @property
    def client(self) -> Any:
        """The node that has the keys now."""
        node = self._cluster.get_redis_connection(self._cluster.get_node_from_key(self.target.tag))
        try:
            node.type(self.target.tag)
        except self.away:
            self._cluster.nodes_manager.initialize()
            raise
        return node

    def rows(self) -> list[dict[str, Any]]:
        return patiently(timedelta(seconds=30), super().rows, self.away)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_keys_of_a_cluster_keep_what_an_output_promises(case: Any, cluster: Cluster) -> None:
    case(ClusterSubject(cluster))


def test_an_epoch_is_there_once_when_its_slot_moves_and_when_its_node_is_lost_meanwhile(cluster: Cluster) -> None:
    subject = ClusterSubject(cluster)
    hand, slot = SubjectWriter(subject), subject.target.tag
    hand.write(1, made(1))
    with observed(subject):
        for epoch, fault in enumerate((cluster.move, cluster.lose), 2):
            writer = Victim(hand.output, hand.writer, epoch, made(epoch), f"{subject.stall}=delay(0.7)@1")
            writer.wait()
            fault(slot)
            assert writer.end() == 0, f"the writer gave up: {fault.__name__}"
            expect(subject, made(epoch))
            assert not hand.write(epoch, made(epoch))
            assert hand.output.last_epoch(hand.writer) == epoch
