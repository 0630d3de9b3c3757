"""The embedded log: durable, partitioned, replayable topics in a directory, used by many processes with no server.

Called as `hr.log("topic")`, it is a topic as the target of a sink.
"""

import sys
from types import ModuleType

from headrace.log.consumer import Consumer
from headrace.log.delivery import Delivery, Placed
from headrace.log.files.partition import Appended
from headrace.log.groups.assignment import TopicPartition
from headrace.log.groups.consumer import GroupConsumer
from headrace.log.log import Log
from headrace.log.producer import Producer
from headrace.log.queue.message import Message
from headrace.log.queue.queue import Queue
from headrace.log.snapshot import Snapshot
from headrace.log.target import LogTopic
from headrace.log.topic import Topic, TopicConfig
from headrace.log.upkeep.compaction import Compacted
from headrace.log.upkeep.maintenance import PartitionReport
from headrace.log.upkeep.repair import RepairReport
from headrace.log.upkeep.retention import Removed

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
    """A function cannot be called `headrace.log` next to a folder of that name, so the folder itself is callable."""

    def __call__(self, topic: str, *, append_only: bool = False) -> LogTopic:
        return LogTopic(topic, append_only)


sys.modules[__name__].__class__ = _CallableModule
