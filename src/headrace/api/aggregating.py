"""Windows and groups of a stream, before it is said what is computed of them, and the results of windows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa

from headrace.api.arguments import refuse_twice, typed_field
from headrace.api.stream import Stream, Table
from headrace.core.durations import Duration, duration
from headrace.core.errors import PlanError
from headrace.core.where import caller, says_where
from headrace.plan.aggregates import aggregation
from headrace.plan.aggregation import PANE_COLUMNS, GroupAggregate, WindowAggregate
from headrace.plan.emit import RETRACTING, Emit
from headrace.plan.windows import Window


class Windowed:
    """Windows of a stream, before it is said what is computed in them."""

    def __init__(self, stream: Stream, window: Window, by: tuple[str, ...]) -> None:
        self._stream, self._window, self._by = stream, window, by

    def agg(self, **aggregates: str) -> Results:
        """Aggregates per window and key, each a Spark SQL aggregate expression: `agg(views="count(*)")`.

        The result has the key, `window_start`, `window_end`, the aggregates, `pane` (early, on-time, late, idle) and `revision`.
        """
        at = caller()
        node = self._stream.node
        calls, outputs = aggregation(aggregates, node.columns, at, self._stream.namer.aggregates)
        keys = [node.columns.field(name) for name in self._by]
        results = [typed_field(output.name, output.expression, aggregates[output.name], at) for output in outputs]
        columns = pa.schema([*keys, *self._window.columns, *results, *PANE_COLUMNS])
        refuse_twice(columns, at)
        name = self._stream.namer.step_name(f"{node.name}.window")
        return Results(self._stream.namer, WindowAggregate(name, columns, at, node, self._by, calls, outputs, self._window))


class Results(Stream):
    """The results of windows. `emit` says when they are given out."""

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
        """When results are given out; a window always gives one when the watermark passes its end.

        Before that, `early`: each time the watermark passes another multiple of this, for windows that have something new; `every`:
        at the end of an epoch in which so many records have come. After it, until the watermark is `until` further, late records
        correct the result, `late="each"` at once, or each time the watermark passes another multiple of a duration. Panes are
        numbered by `revision`.

        `mode="retracting"` takes back what was given out before; `"accumulating"` gives all so far and lets it stand; `"discarding"`
        gives what came since the last pane.
        """
        at = caller()
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
    """The groups of a stream, before it is said what is computed of them."""

    def __init__(self, stream: Stream, by: tuple[str, ...], ttl: timedelta | None) -> None:
        self._stream, self._by, self._ttl = stream, by, ttl

    def agg(self, **aggregates: str) -> Table:
        """Aggregates per key over everything so far: a table that every record of a key updates."""
        at = caller()
        node = self._stream.node
        calls, outputs = aggregation(aggregates, node.columns, at, self._stream.namer.aggregates)
        results = [typed_field(output.name, output.expression, aggregates[output.name], at) for output in outputs]
        columns = pa.schema([*(node.columns.field(name) for name in self._by), *results])
        refuse_twice(columns, at)
        name = self._stream.namer.step_name(f"{node.name}.group")
        return Table(self._stream.namer, GroupAggregate(name, columns, at, node, self._by, calls, outputs, self._ttl))
