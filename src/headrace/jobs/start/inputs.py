"""The topics that the streams of an app read from the log."""

from __future__ import annotations

from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.plan.nodes import Source
from headrace.plan.plan import Plan

# A job judges times by its watermark's max_ahead and keeps the records; the log alone would refuse them.
CONFIG = {"message.timestamp.after.max.ms": -1}


def create_inputs(log: Log, plan: Plan) -> list[str]:
    """Create the missing topics of a plan's streams; returns their names."""
    return [source.name for source in plan.sources if source.connector is None and created(log, source)]


def created(log: Log, source: Source) -> bool:
    """Create the topic of a stream. False if it existed."""
    try:
        log.topic(source.name)
    except UnknownTopic:
        log.create_topic(
            source.name,
            partitions=1 if source.partitions is None else source.partitions,
            schema=source.columns,
            key=source.key,
            # The log knows the time of a record by a column; a computed time is known to its readers.
            time=None if source.time is None else source.time.column,
            config=CONFIG,
            exist_ok=True,
        )
        return True
    return False
