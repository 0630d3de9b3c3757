"""Windows and groups of a stream before their aggregation, and the results of windows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa

from headrace.api.arguments import refuse_twice, refuse_unnamed, typed_field
from headrace.api.stream import Stream, Table
from headrace.core.durations import Duration, duration
from headrace.core.errors import PlanError
from headrace.core.where import caller, says_where
from headrace.plan.aggregates.checked import aggregation
from headrace.plan.aggregates.nodes import PANE_COLUMNS, GroupAggregate, WindowAggregate
from headrace.plan.windows.emit import ON_TIME, RETRACTING, Emit
from headrace.plan.windows.kinds import Window


class Windowed:
    """The windows of a stream. `agg` says what to compute in them."""

    def __init__(self, stream: Stream, window: Window, by: tuple[str, ...], name: str | None = None) -> None:
        self._stream, self._window, self._by, self._name = stream, window, by, name

    def agg(self, *unnamed: str, **aggregates: str) -> Results:
        """Compute Spark SQL aggregates per window and key: `agg(views="count(*)")`.

        The result has the key, `window_start`, `window_end`, the aggregates, `pane` (early, on-time, late, idle) and `revision`.
        """
        at = caller()
        refuse_unnamed(unnamed, at)
        node = self._stream.node
        calls, outputs = aggregation(aggregates, node.columns, at, self._stream.namer.aggregates)
        keys = [node.columns.field(name) for name in self._by]
        results = [typed_field(output.name, output.expression, aggregates[output.name], at) for output in outputs]
        columns = pa.schema([*keys, *self._window.columns, *results, *PANE_COLUMNS])
        refuse_twice(columns, at)
        name = self._stream.namer.step_name(f"{node.name}.window", self._name)
        return Results(self._stream.namer, WindowAggregate(name, columns, at, node, self._by, calls, outputs, self._window))


class Results(Stream):
    """The results of windows: a stream. `emit` says when a window emits them."""

    node: WindowAggregate

    @says_where
    def emit(
        self,
        *,
        early: Duration | None = None,
        every: int | None = None,
        late: Duration | None = "each",
        until: Duration | None = None,
        mode: str = RETRACTING,
    ) -> Results:
        """Say when windows emit results. A window always emits one when the watermark passes its end.

        - `early`: before that, each time the watermark passes another multiple of this, for windows with new records.
        - `every`: before that, at the end of an epoch, for windows with that number of new records.
        - `until`: after that, until the watermark is so far past the end, late records correct the result.
        - `late`: when they do so: "each" epoch that has some, or each time the watermark passes another multiple of a duration.

        Results of a window are numbered by `revision`. `mode="retracting"` retracts the previous one; `"accumulating"` emits all so far and
        keeps the previous one; `"discarding"` emits what arrived since the previous one.
        """
        at = caller()
        if self.node.emit is not ON_TIME:
            raise PlanError(
                f"emit() of {self.name!r} a second time",
                why="it would undo the first",
                hint='say everything in one: emit(early="5 seconds", until="1 hour")',
                where=at,
            )
        if until is None and late not in ("each", None):
            raise PlanError(f"late={late!r} without until=", why="nothing would be taken in late", hint='give until="1 hour" too', where=at)
        if until is not None and late is None:
            raise PlanError("late=None with until=", why="late records would be taken in and never shown", hint="leave one out", where=at)
        emit = Emit(
            until=timedelta(0) if until is None else duration(until),
            early=None if early is None else duration(early),
            every=every,
            late=timedelta(0) if late is None or late == "each" else duration(late),
            mode=mode,
        )
        return Results(self.namer, replace(self.node, emit=emit))


class Grouped:
    """The groups of a stream. `agg` says what to compute for them."""

    def __init__(self, stream: Stream, by: tuple[str, ...], ttl: timedelta | None, name: str | None = None) -> None:
        self._stream, self._by, self._ttl, self._name = stream, by, ttl, name

    def agg(self, *unnamed: str, **aggregates: str) -> Table:
        """Compute Spark SQL aggregates per key over all records so far: a table that every record of a key updates."""
        at = caller()
        refuse_unnamed(unnamed, at)
        node = self._stream.node
        calls, outputs = aggregation(aggregates, node.columns, at, self._stream.namer.aggregates)
        results = [typed_field(output.name, output.expression, aggregates[output.name], at) for output in outputs]
        columns = pa.schema([*(node.columns.field(name) for name in self._by), *results])
        refuse_twice(columns, at)
        name = self._stream.namer.step_name(f"{node.name}.group", self._name)
        return Table(self._stream.namer, GroupAggregate(name, columns, at, node, self._by, calls, outputs, self._ttl))
