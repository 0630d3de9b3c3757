"""The embedded log: durable, partitioned, replayable topics in a directory, used by many processes with no server.

Called as `hr.log("topic")`, it is a topic as the target of a sink.
"""

import sys
from types import ModuleType

from headrace.log.assignment import TopicPartition
from headrace.log.compaction import Compacted
from headrace.log.consumer import Consumer
from headrace.log.delivery import Delivery, Placed
from headrace.log.group_consumer import GroupConsumer
from headrace.log.log import Log
from headrace.log.maintenance import PartitionReport
from headrace.log.message import Message
from headrace.log.partition import Appended
from headrace.log.producer import Producer
from headrace.log.queue import Queue
from headrace.log.repair import RepairReport
from headrace.log.retention import Removed
from headrace.log.snapshot import Snapshot
from headrace.log.target import LogTopic
from headrace.log.topic import Topic, TopicConfig

__all__ = [
    "Appended",
    "Compacted",
    "Consumer",
    "Delivery",
    "GroupConsumer",
    "Log",
    "LogTopic",
    "Message",
    "PartitionReport",
    "Placed",
    "Producer",
    "Queue",
    "Removed",
    "RepairReport",
    "Snapshot",
    "Topic",
    "TopicConfig",
    "TopicPartition",
]


class _CallableModule(ModuleType):
    """A function cannot be called `headrace.log` beside a folder of that name, so the folder is the function."""

    def __call__(self, topic: str, *, append_only: bool = False) -> LogTopic:
        return LogTopic(topic, append_only)


sys.modules[__name__].__class__ = _CallableModule
