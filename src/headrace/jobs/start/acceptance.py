"""Refusals of a run before Spark starts: changed apps, outputs of others, and systems that do not answer."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from headrace.connectors.input import Input
from headrace.connectors.output import Output
from headrace.connectors.reachable import Reachable
from headrace.core.columns.schema import schema as schema_of
from headrace.core.errors import JobError, SettingsError
from headrace.core.settings import Settings
from headrace.engine.program.compiler import compiled
from headrace.jobs.directory import JobDirectory
from headrace.jobs.evolution.takeover import changes_of, refuse_unaccepted
from headrace.jobs.start.outputs import OwnTopic, has_topic, topics_of
from headrace.log import Log
from headrace.log.errors import TopicExists
from headrace.plan.evolution.comparison import Decisions
from headrace.plan.plan import Plan

_WAITS = 3.0
_log = logging.getLogger(__name__)


def accept(plan: Plan, settings: Settings, log: Log, place: JobDirectory, *, changed: bool = False) -> Decisions | None:
    """Raise if the job of a plan cannot run, as far as that is known without Spark. Nothing is changed.

    Returns the changes for a job that has begun; with `changed`, another version of the app is accepted.
    """
    refuse_a_cluster(settings)
    record = place.record()
    compiled(plan, 1 if record is None else record.shards)
    changes = changes_of(plan, place)
    if changes is not None:
        refuse_unaccepted(changes, place, accepted=changed)
    emptied = {*(() if changes is None else changes.emptied), *(() if record is None else record.emptied)}
    for topic in topics_of(plan):
        if topic.name not in emptied:
            _check_topic(topic, log, place)
    return changes


def refuse_a_cluster(settings: Settings) -> None:
    """Raise if executors would be on other machines and the settings do not allow this experiment."""
    if settings.cluster != "experimental" and not re.fullmatch(r"local(\[.*\])?", settings.master):
        raise SettingsError(
            f"master = {settings.master!r} runs executors outside of this process, which is experimental",
            why="the embedded log, which every job writes its accounting to, does not support several machines yet",
            hint='use master = "local[*]", or set cluster = "experimental" (HEADRACE_CLUSTER) and read docs/running.md, "On a cluster"',
        )


def reach(plan: Plan, inputs: Mapping[str, Input], outputs: Mapping[str, Output]) -> None:
    """Raise if a system that the job reads or writes does not answer, or lacks what is read. This may take the patience of its
    connector."""
    for source in plan.sources:
        if source.connector is not None:
            with _told_if_long(source.name):
                inputs[source.name].end()
    for name, output in outputs.items():
        if isinstance(output, Reachable):
            with _told_if_long(name):
                output.reach()


def _check_topic(topic: OwnTopic, log: Log, place: JobDirectory) -> None:
    owner = _owner(topic, place)
    if owner is not None:
        raise JobError(
            f"{topic.kind} {topic.name!r} of app {place.name!r} is a {owner[1]} of app {owner[0]!r} already",
            why="each would overwrite rows of the other",
            hint=f"give it a name of its own; if app {owner[0]!r} is not needed any more, headrace reset removes what it has",
        )
    if not has_topic(log, topic.name):
        return
    there = log.topic(topic.name)
    if not topic.grows and not there.columns.equals(schema_of(topic.columns)):
        raise TopicExists(
            f"topic {topic.name!r}, which job {place.name!r} needs as a {topic.kind}, already exists with other columns",
            hint="delete it (headrace topics delete), or use another name",
        )
    if topic.kind == "view" and place.record() is None and any(part["end"] for part in log.describe(topic.name)["partitions"]):
        raise JobError(
            f"view {topic.name!r} has rows, and job {place.name!r} has not begun",
            why="rows that an earlier job left would mix with those of this one",
            hint="remove them first: headrace reset app.py",
        )


def _owner(topic: OwnTopic, place: JobDirectory) -> tuple[str, str] | None:
    """Another job that writes the topic, and its purpose, where one of the two writes it as a view."""
    for other in place.others():
        kind = other.kinds().get(topic.name)
        if kind is not None and "side" not in (kind, topic.kind) and "view" in (kind, topic.kind):
            return other.name, kind
    return None


@contextmanager
def _told_if_long(name: str) -> Iterator[None]:
    """Say what is waited for, if that takes long."""
    timer = threading.Timer(_WAITS, lambda: _log.warning("waiting for the system behind %r, which does not answer yet", name))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
