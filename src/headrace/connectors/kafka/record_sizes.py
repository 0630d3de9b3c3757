"""Sizes of a topic's records, learned by partition from those that were looked at: Kafka tells none before they are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from headrace.connectors.kafka.reading import Spans

# The share of the last look in the average; the rest is what looks before it showed.
_NEWEST = 0.5


class RecordSizes:
    """The average size of the records of each partition, of which the newest count most."""

    def __init__(self) -> None:
        self._average: dict[int, float] = {}

    def learn(self, messages: Iterable[Any]) -> None:
        """Take in what some messages show."""
        seen: dict[int, list[int]] = defaultdict(list)
        for message in messages:
            seen[message.partition()].append(len(message.value() or b"") + len(message.key() or b""))
        for partition, sizes in seen.items():
            mean = sum(sizes) / len(sizes)
            self._average[partition] = mean * _NEWEST + self._average.get(partition, mean) * (1 - _NEWEST)

    def expected(self, spans: Spans) -> float | None:
        """About how many bytes some ranges have; None before any record was seen.

        A partition of which nothing was seen is like the largest of the others.
        """
        if not self._average:
            return None
        largest = max(self._average.values())
        return sum((last - first) * self._average.get(index, largest) for index, (first, last) in spans.items())
