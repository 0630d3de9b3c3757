"""Lag of each partition that a job reads from the log: records that wait, and for how long the first of them has."""

from __future__ import annotations

from typing import Any

from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.log.files.cursor import Cursor, ReadLimits


def lags_of(log: Log, plan: EpochPlan | None, now: int) -> list[dict[str, Any]]:
    """One dictionary a partition: stream, partition, records, seconds. `plan` is the job's last committed epoch."""
    found = []
    for stream, positions in ({} if plan is None else plan.positions).items():
        try:
            topic = log.topic(stream)
        except UnknownTopic:
            # It is read from another system.
            continue
        for partition in range(topic.partitions):
            place, position = log.partition(topic, partition), positions.get(partition, 0)
            state = place.state()
            records = max(0, state.visible - max(position, state.start))
            seconds = 0.0
            if records:
                batches = Cursor(place, max(position, state.start), outcomes=log.transactions).read(ReadLimits(rows=1), ("_appended_at",))
                if batches and batches[0].num_rows:
                    seconds = max(0.0, (now - int(batches[0].column(0).cast("int64")[0].as_py())) / 1_000_000)
            found.append({"stream": stream, "partition": partition, "records": records, "seconds": round(seconds, 3)})
    return found
