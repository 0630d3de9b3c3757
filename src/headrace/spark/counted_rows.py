"""Counted rows between tasks: a sender tells each shard how many rows it gets, and a receiver acts only when all of them have arrived.

A stream between the JVM and Python that is cut at a batch boundary ends like a complete one: a task that was canceled in its input would
take a part of an epoch for all of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headrace.core.errors import JobError
from headrace.engine.accounting import Accounting
from headrace.engine.packet import Packet
from headrace.operators.event_time.epoch_time import EpochTime
from headrace.spark import wire
from headrace.spark.packet_files import PacketFiles

_WHY = "the task was canceled, or lost its connection, in the middle of its input: nothing of it is written"
_HINT = "start the job again; it continues from its last epoch"


class CutInput(JobError):
    """A task received less than was sent to it; nothing of it was written."""


@dataclass
class Outbox:
    """The rows that a task sends on."""

    shards: int
    files: PacketFiles | None = None
    _sent: Counter[int] = field(default_factory=Counter)

    def lines(self, packets: Iterable[Packet], accounting: Accounting, time: EpochTime, home: int) -> list[wire.Line]:
        """The output of a stage: its packets, and its counts under the shard `home`."""
        return self.counted(wire.lines(packets, accounting, time, home, self.files))

    def counted(self, lines: list[wire.Line]) -> list[wire.Line]:
        self._sent.update(line[0] for line in lines)
        return lines

    def passed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of an earlier stage that pass unchanged."""
        self._sent.update(rows.column("shard").to_pylist())
        return rows

    def beats(self, time: EpochTime, sender: int, senders: int) -> list[wire.Line]:
        """The end: every shard is told that time moved, and how many rows it gets from this sender."""
        return [wire.beat(shard, f"{sender}/{senders}", self._sent[shard], time) for shard in range(self.shards)]


class Inbox:
    """The rows that arrive at a task, by shard."""

    def __init__(self) -> None:
        self._rows: dict[int, list[Any]] = defaultdict(list)

    def take(self, rows: Iterable[Any]) -> None:
        for row in rows:
            self._rows[row["shard"]].append(row)

    def complete(self, shards: Sequence[int], senders: int | None = None) -> dict[int, list[Any]]:
        """All rows of these shards, by the numbers of their senders, whatever their order of arrival. Raises if some are missing.

        `senders` is their number, if it differs from what they say themselves.
        """
        for shard in shards:
            check_complete(self._rows.get(shard, []), shard, senders)
        return {shard: _in_order(rows) for shard, rows in sorted(self._rows.items())}


def _in_order(rows: Sequence[Any]) -> list[Any]:
    """The rows of a shard by the number of their sender: the rows of a sender are consecutive, and its beat comes last.

    Readers have their records in the order of partitions and offsets, so the records of a key stay in their order.
    """
    parts, part = list[tuple[int, list[Any]]](), list[Any]()
    for row in rows:
        part.append(row)
        if row["target"] == wire.BEAT:
            parts.append((int(row["kind"].partition("/")[0]), part))
            part = []
    return [row for _, sent in sorted(parts, key=lambda sent: sent[0]) for row in sent] + part


def check_complete(rows: Sequence[Any], shard: int, senders: int | None = None) -> None:
    """Raise unless every sender's rows to a shard are there."""
    beats = [row for row in rows if row["target"] == wire.BEAT]
    expected = senders if senders is not None else max((int(row["kind"].partition("/")[2]) for row in beats), default=1)
    sent = sum(int(bytes(row["blob"])) for row in beats)
    if len(beats) != expected or len(rows) - len(beats) != sent:
        raise CutInput(
            f"shard {shard} got {len(rows) - len(beats)} rows from {len(beats)} of {expected} senders, who sent it {sent} or more",
            why=_WHY,
            hint=_HINT,
        )


def missing_shards(found: Sequence[int], expected: Sequence[int]) -> CutInput:
    """The error of a task that received nothing of some of its shards."""
    return CutInput(f"a task got shards {sorted(found)} of its shards {sorted(expected)}", why=_WHY, hint=_HINT)


def shards_of(task: int, tasks: int, shards: int) -> list[int]:
    """The shards that a task has.

    >>> shards_of(1, 2, 4)
    [2, 3]
    """
    return [shard for shard in range(shards) if task_of(shard, tasks, shards) == task]


def task_of(shard: int, tasks: int, shards: int) -> int:
    """The task that has a shard: contiguous ranges of shards, which are ranges of key groups."""
    return shard * tasks // shards
