"""Dead letters of a job by step and reason, read from their topics; a query costs only what came since the last one.

A reason may have values of its record in it. Those are replaced, and only some reasons are told apart: each is a label of a metric.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from headrace.jobs.facts.description import JobDescription
from headrace.jobs.start.outputs import letters_topic
from headrace.log import Log
from headrace.log.consumer import Consumer
from headrace.log.errors import UnknownTopic
from headrace.plan.topics import dead_topic

OTHER = "other"
_MOST = 20
_LONGEST = 120
_VALUES = re.compile(r"""'[^']*'|"[^"]*"|\d+""")


class DeadReasons:
    """Follows the topics of dead letters of one job."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._consumers: dict[str, Consumer] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def read(self, description: JobDescription) -> list[dict[str, Any]]:
        """One dictionary for each step and kind of reason: step, reason, records."""
        steps = {step.name for step in description.steps} | {output.name for output in description.outputs}
        for topic in self._topics(description):
            while (table := self._consumers[topic].poll(timeout="0s", columns=("step", "reason"))) is not None:
                # Other jobs that read the same stream write to the same topic.
                self._count(row for row in table.to_pylist() if row["step"] in steps)
        return [{"step": step, "reason": reason, "records": records} for (step, reason), records in sorted(self._counts.items())]

    def _topics(self, description: JobDescription) -> Iterable[str]:
        streams = [dead_topic(step.name) for step in description.steps if step.kind == "stream"]
        sinks = [letters_topic(output.name) for output in description.outputs if output.kind == "sink"]
        for topic in (*streams, *sinks):
            try:
                self._log.topic(topic)
                if topic not in self._consumers:
                    self._consumers[topic] = self._log.consumer(topic)
            except UnknownTopic:
                self._consumers.pop(topic, None)
                continue
            yield topic

    def _count(self, rows: Iterable[dict[str, Any]]) -> None:
        for row in rows:
            found = (row["step"], _VALUES.sub("…", row["reason"] or "unknown")[:_LONGEST])
            known = found in self._counts or len(self._counts) < _MOST
            self._counts[found if known else (row["step"], OTHER)] += 1
