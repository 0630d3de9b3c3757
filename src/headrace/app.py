"""`App`: the user's declarations, their log, and their job."""

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
from headrace.core import html
from headrace.core.columns.names import Names
from headrace.core.columns.schema import SchemaLike
from headrace.core.durations import Duration, duration
from headrace.core.errors import PlanError, SettingsError
from headrace.core.nearest import choices
from headrace.core.settings import Settings, follow_log_level, load_settings
from headrace.core.where import caller, says_where
from headrace.log import Log
from headrace.log.errors import UnknownTopic
from headrace.log.tail import Tail, tail
from headrace.log.target import LogTopic
from headrace.log.topic import check_name
from headrace.plan.checks.source_columns import refuse_other_columns
from headrace.plan.checks.topics import refuse_a_place_for_two
from headrace.plan.nodes import Node, Source
from headrace.plan.picture import of_plan
from headrace.plan.plan import Output, Plan
from headrace.plan.watermarks import Watermark

if TYPE_CHECKING:
    from headrace.jobs.facts.epochs import Epochs
    from headrace.jobs.facts.report import Report
    from headrace.notebook.live_table import LiveTable
    from headrace.plan.explain import Explanation


_FIRST_ROWS = 5
_place: ContextVar[Path | None] = ContextVar("place", default=None)
_creates: ContextVar[bool] = ContextVar("creates", default=True)


@contextmanager
def apart(home: Path) -> Iterator[None]:
    """Apps declared in the block are copies that do not touch the originals.

    They live under `home`, whatever they declare, and have topics of its log in place of sources and sinks elsewhere.
    """
    token = _place.set(home.absolute())
    try:
        yield
    finally:
        _place.reset(token)


@contextmanager
def only_declared() -> Iterator[None]:
    """Apps declared in the block create nothing: no topic, and no home."""
    token = _creates.set(False)
    try:
        yield
    finally:
        _creates.reset(token)


class App(Declaration):
    """Streams, views and sinks under one name, and the job that keeps them up to date. Declaring starts no JVM.

    The log, jobs and views are under `home`; `HEADRACE_HOME` and `headrace.toml` set it too.

    >>> import tempfile
    >>> app = App("pageviews", home=tempfile.mkdtemp())
    >>> views = app.stream("page_views", schema="url string, user string")
    >>> app.view("visits", views.group("user", ttl=None).agg(visits="count(*)"))
    >>> app.log.topic("page_views").partitions
    1
    """

    @says_where
    def __init__(self, name: str, *, home: str | Path | None = None, settings: Settings | None = None) -> None:
        check_name(name, "app")
        super().__init__(name)
        self._apart, self._creates = _place.get(), _creates.get()
        self.settings = settings or load_settings(home=home)
        if self._apart is not None:
            self.settings = replace(self.settings, home=self._apart)
        follow_log_level(self.settings)

    @cached_property
    def log(self) -> Log:
        """The event log of the app's home."""
        return Log(self._log_path)

    @property
    def present_log(self) -> Log | None:
        """The same, or None if the home has no log yet."""
        return self.log if self._log_path.is_dir() else None

    @property
    def _log_path(self) -> Path:
        return self.settings.home / "log"

    @says_where
    def stream(  # noqa: PLR0913 - one option for each thing a stream is declared with
        self, name: str, schema: SchemaLike, *, key: Names = (), time: str | None = None, watermark: Watermark | None = None,
        late: str = "side", partitions: int = 1, source: Any = None, align: Duration | None = None,
    ) -> Stream:  # fmt: skip
        """A stream of a topic's records; the topic is created, with this number of partitions, if it does not exist.

        Commands that only read, such as `headrace explain`, create no topic; `headrace run` does so once the app is accepted.

        With `source`, such as `hr.kafka("topic", servers="...")`, the records come from another system, where the topic must exist.

        `time` is the event time, a column or a Spark SQL expression over columns, such as `timestamp_millis(ts)`; `watermark` says how far
        behind it records may arrive. Late records go to the topic `<name>.late`; `late="drop"` only counts them. With `align`, a job reads
        the stream at most this much event time ahead of the slowest other one that is not idle.
        """
        if self._apart is not None:
            source = None
        stream = super().stream(name, schema, key=key, time=time, watermark=watermark, late=late, source=source, align=align)
        if source is not None:
            return stream
        assert stream.node.declared_stream is not None
        node = self._on_topic(replace(stream.node.declared_stream, partitions=partitions))
        self._sources[name] = node
        return Stream(self, node)

    def sink(self, stream: Stream, target: Any, *, name: str | None = None) -> None:
        if self._apart is not None and not isinstance(target, LogTopic):
            target = LogTopic(f"in-place-of-sink-{len(self._outputs) + 1}")
        super().sink(stream, target, name=name)

    sink.__doc__ = Declaration.sink.__doc__

    @says_where
    def run(self, until: str | None = None, *, rows_per_epoch: int | None = None, as_json: bool = False, accept: bool = False) -> Report:
        """Run the app's job, or resume it where it stopped, until Ctrl-C, SIGTERM, or the end that `until` names.

        - `until="caught-up"`: read what is there; open windows stay open.
        - `until="flushed"`: the same, and close open windows, as if time had passed. A later record of such a window is late.
        - `until="end"`: declare the input complete forever. Every window closes, and all later records are late.

        An epoch reads at most about `rows_per_epoch` records of each stream, by default 4 million, and of a topic, in the log or in Kafka,
        about as many bytes as the setting `epoch_bytes` says. This bounds the memory of a job that is far behind.

        A job refuses a changed app, and shows what would change. With `accept` it continues with the changed app; a change that needs a
        rebuild is still refused.

        On a terminal a line on stderr shows the progress; elsewhere, and with `as_json` as JSON, a line is written every ten seconds.
        """
        from headrace.jobs.start.run import JobRun

        return JobRun(self.plan(), self.settings, self.log).run(until, rows_per_epoch, as_json=as_json, accept_changes=accept)

    @says_where
    def read(self, view: str, *, epoch: int | None = None, timeout: Duration = "30 seconds") -> pa.Table:
        """Read a view as it is now, one row per key.

        With `epoch`, wait until the job has finished that epoch, at most as long as `timeout`; the result may include later epochs.
        """
        declared = {output.name: output for output in self._outputs.values() if output.kind == "view"}
        if epoch is not None:
            from headrace.jobs.facts.epochs import wait_for

            wait_for(self.name, self.settings, epoch, duration(timeout))
        try:
            return self.log.snapshot(view).table.select(self.log.topic(view).columns.names)
        except UnknownTopic:
            if view in declared:
                return declared[view].node.columns.empty_table()
            raise PlanError(f"there is no view {view!r}", hint=choices(view, declared, "views"), where=caller()) from None

    def show(self, view: str, *, rows: int = 20) -> LiveTable:
        """A live table of a view in the cell of a notebook: its first rows, redrawn as they change, until `close()`.

        It needs the extra `notebook`: `pip install "headrace[notebook]"`.
        """
        try:
            from headrace.notebook.live_table import LiveTable
        except ImportError as error:
            raise SettingsError("a live table needs anywidget", hint='pip install "headrace[notebook]"') from error
        declared = {output.name: output for output in self._outputs.values() if output.kind == "view"}
        try:
            return LiveTable(self.log, view, declared[view].key, rows)
        except (KeyError, UnknownTopic):
            hint = f"views: {', '.join(declared) or 'none'}; each is there once its job has run"
            raise PlanError(f"there is no view {view!r} to show", hint=hint, where=caller()) from None

    def first_rows(self, node: Node) -> pa.Table | None:
        view = next((output for output in self._outputs.values() if output.kind == "view" and output.node == node), None)
        topic = view.name if view is not None else node.name if node.declared_stream else None
        log = self.present_log
        try:
            if topic is None or log is None:
                return None
            newest = list(tail(log, topic, Tail(last=_FIRST_ROWS, columns=tuple(log.topic(topic).columns.names))))
        except UnknownTopic:
            return None
        return pa.concat_tables(newest).slice(0, _FIRST_ROWS) if newest else None

    first_rows.__doc__ = Declaration.first_rows.__doc__

    def _repr_html_(self) -> str:
        """The app in a notebook: its plan as a picture."""
        return html.part(self.name, of_plan(self.plan()) if self._outputs else "")

    def epochs(self) -> Epochs:
        """The last epoch of the job, and of each view and sink, as the target itself says."""
        from headrace.jobs.facts.epochs import epochs_of

        return epochs_of(self.plan(), self.settings)

    def explain(self) -> Explanation:
        """What each step does, whether Headrace or Spark evaluates it, what it remembers and for how long. Print it."""
        from headrace.jobs.facts.explanation import explanation

        return explanation(self.plan(), self.settings, self.present_log)

    def plan(self) -> Plan:
        found = super().plan()
        for output in found.outputs:
            refuse_a_place_for_two(self.name, self._sources.values(), found.outputs, output, output.node.where)
        return found

    plan.__doc__ = Declaration.plan.__doc__

    def _output(self, output: Output, at: str | None) -> None:
        refuse_a_place_for_two(self.name, self._sources.values(), self._outputs.values(), output, at)
        if output.kind == "view":
            # It is a topic of the log.
            check_name(output.name, "view")
        super()._output(output, at)

    def _on_topic(self, source: Source) -> Source:
        """The stream with the partitions of its topic; the topic is created if it does not exist, and topics may be created."""
        from headrace.jobs.start.inputs import created

        log = self.log if self._creates else self.present_log
        if log is None or (self._creates and created(log, source)):
            return source
        try:
            present = log.topic(source.name)
        except UnknownTopic:
            return source
        refuse_other_columns(source, present.columns)
        return replace(source, partitions=present.partitions)
