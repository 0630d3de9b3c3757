"""The parts of a log that producers, consumers and groups use."""

from __future__ import annotations

from typing import Protocol

from headrace.core.clock import Clock
from headrace.log.files.partition import Partition
from headrace.log.groups.group import Group
from headrace.log.groups.offsets import Offsets
from headrace.log.topic import Topic
from headrace.log.transactions import Transactions


class Storage(Protocol):
    """Topics, their partitions, the end of transactions, groups with their offsets, and the time."""

    @property
    def clock(self) -> Clock: ...

    @property
    def transactions(self) -> Transactions: ...

    @property
    def offsets(self) -> Offsets: ...

    def group(self, name: str) -> Group: ...

    def group_names(self) -> list[str]: ...

    def topic(self, name: str) -> Topic: ...

    def topics(self, *, internal: bool = False) -> list[Topic]: ...

    def partition(self, topic: Topic, index: int) -> Partition: ...
