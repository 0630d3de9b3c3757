"""A topic of the embedded log as the target of a sink."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LogTopic:
    """Records of a stream, or the latest row of each key of a table, appended to a topic; each epoch once."""

    topic: str
