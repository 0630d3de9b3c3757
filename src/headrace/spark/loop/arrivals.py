"""The pause of a loop without new records: an append to the log ends it at once; other systems are asked again after some milliseconds."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.connectors.input import Input
from headrace.connectors.log.input import LogInput
from headrace.log.bell import Watch, wait
from headrace.spark.timed_inputs import TimedInput

# In seconds. Time may pass, or a partition be added, without an append.
_POLL, _LONGEST = 0.01, 0.05


class Arrivals:
    """Waits for records of some inputs."""

    def __init__(self, inputs: Iterable[Input]) -> None:
        sources = [found.records if isinstance(found, TimedInput) else found for found in inputs]
        self._topics = [found for found in sources if isinstance(found, LogInput)]
        self._longest = _LONGEST if len(self._topics) == len(sources) else _POLL
        self._watches: list[Watch] = []

    def listen(self) -> None:
        """Begin to listen. Call it before a look for records: then none that comes after the look is missed."""
        self._watches = [watch for topic in self._topics for watch in topic.watches()]

    def wait(self) -> None:
        """Return when a topic has changed since `listen`, or after a short while."""
        wait(self._watches, self._longest)
