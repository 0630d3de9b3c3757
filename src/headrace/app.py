"""`App`: what the user declares, the log it lives on, and its job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.core.durations import Duration, duration
from headrace.core.errors import PlanError
from headrace.core.names import Names
from headrace.core.schema import SchemaLike, ddl
from headrace.core.settings import Settings, follow_log_level, load_settings
from headrace.core.where import caller, says_where
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.log.target import LogTopic
from headrace.log.topic import check_name
from headrace.plan.nodes import Source
from headrace.plan.plan import Output, View
from headrace.plan.watermarks import Watermark

if TYPE_CHECKING:
    from headrace.jobs.epochs import Epochs
    from headrace.jobs.report import Report
    from headrace.plan.explain import Explanation

_place: ContextVar[Path | None] = ContextVar("place", default=None)


@contextmanager
def apart(home: Path) -> Iterator[None]:
    """Apps declared in the block are copies that touch nothing of the originals.

    They live under `home`, whatever they say themselves, and have topics of its log where they name sources and sinks elsewhere.
    """
    token = _place.set(home.absolute())
    try:
        yield
    finally:
        _place.reset(token)


class App(Declaration):
    """Streams, views and sinks under one name, and the job that keeps them true. Declaring starts no JVM.

    The log, jobs and views live under `home`; `HEADRACE_HOME` and `headrace.toml` set it too.

    >>> import tempfile
    >>> app = App("pageviews", home=tempfile.mkdtemp())
    >>> views = app.stream("page_views", schema="url string, user string")
    >>> app.view("visits", views.group("user", ttl=None).agg(visits="count(*)"))
    >>> app.log.topic("page_views").partitions
    1
    """

    @says_where
    def __init__(self, name: str, *, home: str | Path | None = None, kafka: str | None = None, settings: Settings | None = None) -> None:
        check_name(name, "app")
        super().__init__(name)
        self._apart = _place.get()
        self.settings = settings or load_settings(home=home, kafka=kafka)
        if self._apart is not None:
            self.settings = replace(self.settings, home=self._apart, kafka=None)
        if self.settings.kafka is not None:
            raise PlanError(
                f"app {name!r}: kafka={self.settings.kafka!r} in place of the embedded log is not built yet",
                hint="leave kafka= away to use the embedded log",
                where=caller(),
            )
        follow_log_level(self.settings)

    @cached_property
    def log(self) -> Log:
        """The event log of the app's home."""
        return Log(self.settings.home / "log")

    @says_where
    def stream(  # noqa: PLR0913 - one option for each thing a stream is declared with
        self, name: str, schema: SchemaLike, *, key: Names = (), time: str | None = None, watermark: Watermark | None = None,
        late: str = "side", partitions: int = 1, source: Any = None, align: Duration | None = None,
    ) -> Stream:  # fmt: skip
        """A stream of a topic's records; the topic is created, with so many partitions, if it isn't there.

        With `source`, as `hr.kafka("topic", servers="...")`, the records come from another system, where the topic must be.

        `time` is the column with the event time, `watermark` how far behind it may come. Late records go to the topic
        `<name>.late`; `late="drop"` only counts them. With `align` a job reads the stream at most so much event time ahead of the
        slowest other one that is not idle.
        """
        if self._apart is not None:
            source = None
        stream = super().stream(name, schema, key=key, time=time, watermark=watermark, late=late, source=source, align=align)
        if source is not None:
            return stream
        assert isinstance(stream.node, Source)
        node = replace(stream.node, partitions=self._have_topic(stream.node, partitions))
        self._sources[name] = node
        return Stream(self, node)

    def sink(self, stream: Stream, target: Any, *, name: str | None = None) -> None:
        if self._apart is not None and not isinstance(target, LogTopic):
            target = LogTopic(f"in-place-of-sink-{len(self._outputs) + 1}")
        super().sink(stream, target, name=name)

    sink.__doc__ = Declaration.sink.__doc__

    def run(self, until: str | None = None, *, rows_per_epoch: int | None = None) -> Report:
        """Run the app's job until it is stopped, or go on with it where it stopped.

        `until="caught-up"` takes in what is there and keeps open windows open; `until="end"` says that the input is
        complete, so that every window fires. An epoch takes in what waits, of each stream at most about `rows_per_epoch`
        records, or 4 million: so many need memory, however far the job is behind, as with a sink that is slow.
        """
        from headrace.jobs.running import JobRun

        return JobRun(self.plan(), self.settings, self.log).run(until, rows_per_epoch)

    def read(self, view: str, *, epoch: int | None = None, timeout: Duration = "30 seconds") -> pa.Table:
        """What a view holds now: one row a key.

        With `epoch`, what it holds when everything of that epoch is in it, and perhaps more: the read waits until the job is done with
        it, at most as long as `timeout`.
        """
        declared = {output.name: output for output in self._outputs.values() if isinstance(output, View)}
        if epoch is not None:
            from headrace.jobs.epochs import wait_for

            wait_for(self.name, self.settings, epoch, duration(timeout))
        try:
            return self.log.snapshot(view).table.select(self.log.topic(view).columns.names)
        except UnknownTopic:
            if view in declared:
                return declared[view].node.columns.empty_table()
            raise PlanError(f"there is no view {view!r}", hint=f"views: {', '.join(declared) or 'none'}", where=caller()) from None

    def epochs(self) -> Epochs:
        """How far the job is, and each view and sink, by what the target itself says."""
        from headrace.jobs.epochs import epochs_of

        return epochs_of(self.plan(), self.settings, self.log)

    def explain(self) -> Explanation:
        """What each step does, which lane runs it and why, what it remembers and for how long. Print it."""
        from headrace.jobs.explanation import explanation

        return explanation(self.plan(), self.settings, self.log)

    def _output(self, output: Output, at: str | None) -> None:
        if isinstance(output, View):
            # It is a topic of the log.
            check_name(output.name, "view")
        super()._output(output, at)

    def _have_topic(self, source: Source, partitions: int) -> int:
        """See to it that the topic is there; how many partitions it has."""
        try:
            present = self.log.topic(source.name)
        except UnknownTopic:
            # A job judges times by its watermark's max_ahead and keeps the records; the log alone would refuse them.
            config = {"message.timestamp.after.max.ms": -1}
            self.log.create_topic(
                source.name, partitions=partitions, schema=source.columns, key=source.key, time=source.time, config=config, exist_ok=True
            )
            return partitions
        if not present.columns.equals(source.columns):
            raise PlanError(
                f"stream {source.name!r} is declared as {ddl(source.columns)}, its topic has {ddl(present.columns)}",
                why="records would lose a column, or not be read at all",
                hint="declare the columns of the topic, or use another name",
                where=source.where,
            )
        return present.partitions
