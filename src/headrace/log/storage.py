"""What producers, consumers and groups need of a log."""

from __future__ import annotations

from typing import Protocol

from headrace.core.clock import Clock
from headrace.log.partition import Partition
from headrace.log.topic import Topic
from headrace.log.transactions import Transactions


class Storage(Protocol):
    """Topics, their partitions, the end of transactions, and the time."""

    @property
    def clock(self) -> Clock: ...

    @property
    def transactions(self) -> Transactions: ...

    def topic(self, name: str) -> Topic: ...

    def partition(self, topic: Topic, index: int) -> Partition: ...
