"""Topics to which random things happen, and the records that a job must take in of them: each committed one once, no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import headrace as hr
from headrace.core.clock import ManualClock, to_datetime
from headrace.log import Producer
from headrace.log.errors import Fenced

NOON = to_datetime(ManualClock().now())
TOPICS = ("orders", "prices")
COLUMNS = "n bigint, item string, text string, at timestamp"
Act = Callable[[], None]


class World:
    """An app over a topic and a compacted topic of small segments, and writers with transactions that end well, badly, or late."""

    def __init__(self, home: Path, seed: int) -> None:
        self.chance = Random(seed)
        self.app = hr.App("random", home=home)
        counted = []
        for name in TOPICS:
            stream = self.app.stream(name, COLUMNS, key="item", time="at", watermark=hr.bounded("10 minutes", idle="1 second"))
            self.app.sink(stream, hr.log(f"{name}_kept"))
            counted.append(stream.window(hr.tumbling("1 minute")).agg(records="count(*)"))
        for name, counts in zip(TOPICS, counted, strict=True):
            self.app.view(f"{name}_per_minute", counts)
        self.log = self.app.log
        for name in TOPICS:
            config = {"segment.bytes": 1024, "cleanup.policy": "compact" if name == "prices" else "delete"}
            self.log.alter_topic(name, partitions=self.chance.randint(1, 2), config=config)
        self.committed: dict[str, list[dict[str, Any]]] = {name: [] for name in TOPICS}
        self._open: dict[str, tuple[Producer, list[tuple[str, dict[str, Any]]]]] = {}
        self._sent = 0

    def disturb(self) -> None:
        """Let something happen that a job must not notice."""
        acts: list[tuple[Act, int]] = [
            (self._send, 5), (self._begin, 3), (self._send_more, 4), (lambda: self._end(commit=True), 2),
            (lambda: self._end(commit=False), 2), (self._compact, 2), (self._add_partition, 1),
        ]  # fmt: skip
        (act,) = self.chance.choices([act for act, _ in acts], [weight for _, weight in acts])
        act()

    def settle(self) -> None:
        """Let every transaction end."""
        while self._open:
            self._end(commit=self.chance.random() < 0.5)

    def expected(self, topic: str) -> Counter[int]:
        return Counter(row["n"] for row in self.committed[topic])

    def per_minute(self, topic: str) -> Counter[Any]:
        return Counter(row["at"].replace(second=0) for row in self.committed[topic])

    def _row(self, minutes: float = 0.0) -> dict[str, Any]:
        self._sent += 1
        at = NOON + timedelta(minutes=minutes, seconds=self.chance.randrange(300))
        return {"n": self._sent, "item": f"i{self.chance.randrange(4)}", "text": "x" * self.chance.randrange(400), "at": at}

    def _send(self) -> None:
        topic = self.chance.choice(TOPICS)
        with self.log.producer() as producer:
            for _ in range(self.chance.randint(1, 4)):
                row = self._row()
                producer.send(topic, row)
                self.committed[topic].append(row)

    def _begin(self) -> None:
        free = [name for name in ("a", "b", "c") if name not in self._open]
        if free:
            name = self.chance.choice(free)
            producer = self.log.producer(transactional_id=name)
            producer.begin_transaction()
            self._open[name] = producer, []
            self._send_more()

    def _send_more(self) -> None:
        """More records in a transaction that is open. Their times are those of others; what they do to time shows if they are aborted."""
        if self._open:
            name = self.chance.choice(sorted(self._open))
            producer, rows = self._open[name]
            topic, row = self.chance.choice(TOPICS), self._row()
            rows.append((topic, row))
            try:
                producer.send(topic, row)
                producer.flush()
            except Fenced:
                # On a slow machine a transaction may be open for longer than a minute: then it was aborted.
                del self._open[name]

    def _end(self, *, commit: bool) -> None:
        if not self._open:
            return
        producer, rows = self._open.pop(self.chance.choice(sorted(self._open)))
        with suppress(Fenced), producer:
            if commit:
                producer.commit_transaction()
                for topic, row in rows:
                    self.committed[topic].append(row)
            else:
                # A time far ahead: were it believed, all that comes later would be late.
                producer.send(self.chance.choice(TOPICS), self._row(minutes=50))
                producer.flush()
                producer.abort_transaction()

    def _compact(self) -> None:
        for report in self.log.maintain("prices", force=True):
            assert report.error is None

    def _add_partition(self) -> None:
        topic = self.log.topic(self.chance.choice(TOPICS))
        if topic.partitions < 4:
            self.log.alter_topic(topic.name, partitions=topic.partitions + 1)
