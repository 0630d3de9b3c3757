"""The embedded log: durable, partitioned, replayable topics in a directory, used by many processes with no server."""

from headrace.log.consumer import Consumer
from headrace.log.delivery import Delivery, Placed
from headrace.log.group_consumer import GroupConsumer
from headrace.log.log import Log
from headrace.log.message import Message
from headrace.log.partition import Appended
from headrace.log.producer import Producer
from headrace.log.queue import Queue
from headrace.log.snapshot import Snapshot
from headrace.log.topic import Topic, TopicConfig

__all__ = [
    "Appended",
    "Consumer",
    "Delivery",
    "GroupConsumer",
    "Log",
    "Message",
    "Placed",
    "Producer",
    "Queue",
    "Snapshot",
    "Topic",
    "TopicConfig",
]
