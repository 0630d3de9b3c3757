"""The errors of the log, each with its own class.

LogError
├── UnknownTopic, TopicExists, TopicDeleted
├── CorruptLog            bytes on disk are not what was written; never served
├── OffsetOutOfRange      an offset that the log does not have
├── RecordTooLarge        over the topic's max.message.bytes
├── TimeAhead             a time further in the future than the topic allows
├── Fenced                a newer writer or group member has taken over
├── UnknownGroup, GroupInUse
├── ReceiptExpired        a message of a queue that another consumer may hold by now
├── RecordLost            an append that failed after it was written; send it again
├── DiskFailed            the disk refused a write or a sync
├── TransactionState      begin, commit and abort in an order without meaning
└── LogClosed             use after `Log.close`
"""

from __future__ import annotations

from headrace.core.errors import LogError


class UnknownTopic(LogError):
    """No topic has this name."""


class TopicExists(LogError):
    """A topic with this name already exists."""


class TopicDeleted(LogError):
    """The topic was deleted while it was in use."""


class CorruptLog(LogError):
    """Bytes on disk are not the bytes that were written. They are never served."""


class OffsetOutOfRange(LogError):
    """The log does not have this offset: it was removed by retention, or is not written yet."""


class RecordTooLarge(LogError):
    """A record is larger than its topic allows."""


class TimeAhead(LogError):
    """A record's time is further in the future than its topic allows."""


class Fenced(LogError):
    """A newer writer with the same id, or other members of the group, have taken over; what this one does no longer has an effect."""


class UnknownGroup(LogError):
    """No group has this name."""


class GroupInUse(LogError):
    """The group has live members, so its offsets cannot be changed from outside."""


class ReceiptExpired(LogError):
    """The message was acknowledged, returned, or delivered to another consumer."""


class RecordLost(LogError):
    """A written record was cut off before it became durable; it was never acknowledged."""


class DiskFailed(LogError):
    """The disk refused a write or a sync; nothing was acknowledged."""


class TransactionState(LogError):
    """Begin, commit and abort were called in a wrong order."""


class LogClosed(LogError):
    """The log was closed in this process."""


def closed_log(topic: str) -> LogClosed:
    return LogClosed(
        f"topic {topic!r} is used after its log was closed", hint="close producers and consumers before the log, or open it again"
    )
