"""Settings of a member of a consumer group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.core.durations import duration, spelled
from headrace.core.errors import SettingsError
from headrace.log.consumer import Place
from headrace.log.groups.assignment import STRATEGIES, TopicPartition

Callback = Callable[[list[TopicPartition]], None]


@dataclass(frozen=True)
class GroupSettings:
    """The settings of a member of a group. `start` applies to partitions for which the group has not committed an offset.

    `on_assigned` and `on_revoked` are called with the partitions that come and go, inside of `poll` and `close`. `on_lost` is called with
    those that others already read because this member was silent for too long (without it, `on_revoked` is called). `instance` is a name
    that survives a restart: a member that joins with it replaces the previous one at once.
    """

    start: Place = "beginning"
    assignment: str = "range"
    auto_commit: bool = True
    commit_interval: timedelta = timedelta(seconds=5)
    session_timeout: timedelta = timedelta(seconds=10)
    heartbeat_interval: timedelta = timedelta(seconds=3)
    instance: str | None = None
    on_assigned: Callback | None = None
    on_revoked: Callback | None = None
    on_lost: Callback | None = None

    def __post_init__(self) -> None:
        if self.assignment not in STRATEGIES:
            raise SettingsError(f"assignment={self.assignment!r} is not known", hint=f"use one of {', '.join(STRATEGIES)}")
        if not timedelta(0) < self.heartbeat_interval < self.session_timeout:
            raise SettingsError(
                f"heartbeat_interval is {spelled(self.heartbeat_interval)}, session_timeout {spelled(self.session_timeout)}",
                why="a member without a heartbeat for session_timeout counts as dead",
                hint="make the interval about a third of the time-out",
            )
        if self.commit_interval < timedelta(0):
            raise SettingsError(f"commit_interval is {spelled(self.commit_interval)}", hint="use 0 seconds or more")


def group_settings(**settings: Any) -> GroupSettings:
    """Settings with durations as people write them."""
    for name in ("commit_interval", "session_timeout", "heartbeat_interval"):
        if name in settings:
            settings[name] = duration(settings[name])
    return GroupSettings(**settings)
