"""Windows and groups of a stream before their aggregation, and the results of windows."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from headrace.api.attributes import only_agg
from headrace.api.stream import Stream, Table
from headrace.core.durations import Duration, duration
from headrace.core.where import caller, says_where
from headrace.plan.aggregates.nodes import WindowAggregate
from headrace.plan.building.aggregating import emitting, group_aggregate, late_panes, refuse_unnamed, window_aggregate
from headrace.plan.windows.emit import RETRACTING, Emit
from headrace.plan.windows.kinds import Window


class Windowed:
    """The windows of a stream. `agg` says what to compute in them."""

    def __init__(self, stream: Stream, window: Window, by: tuple[str, ...], name: str | None = None) -> None:
        self._stream, self._window, self._by, self._name = stream, window, by, name

    if not TYPE_CHECKING:  # for mypy, a class with __getattr__ would have every attribute

        def __getattr__(self, name: str) -> object:
            raise AttributeError(only_agg(type(self).__name__, name), name=name, obj=self)

    def agg(self, *unnamed: str, **aggregates: str) -> Results:
        """Compute Spark SQL aggregates per window and key: `agg(views="count(*)")`.

        The result has the key, `window_start`, `window_end`, the aggregates, `pane` (early, on-time, late, idle) and `revision`.

        >>> orders.window(hr.tumbling("1 minute"), by="user").agg(orders="count(*)", most="max(amount)").name
        'orders.window'
        """
        after = self._stream.after()
        refuse_unnamed(unnamed, after.at)
        return Results(self._stream.namer, window_aggregate(after, self._window, self._by, aggregates, self._name))


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
        - `until`: after that, until the watermark is this far past the end, late records correct the result.
        - `late`: when they do so: "each" epoch that has some, or each time the watermark passes another multiple of a duration.

        Results of a window are numbered by `revision`. `mode="retracting"` retracts the previous one; `"accumulating"` emits all so far and
        keeps the previous one; `"discarding"` emits what arrived since the previous one.

        >>> hours = orders.window(hr.tumbling("1 hour"), by="user").agg(orders="count(*)")
        >>> hours.emit(early="5 seconds", until="1 day").name
        'orders.window'
        """
        at = caller()
        corrected, kept = late_panes(late, until, at)
        emit = Emit(until=kept, early=None if early is None else duration(early), every=every, late=corrected, mode=mode)
        return Results(self.namer, emitting(self.node, emit, at))


class Grouped:
    """The groups of a stream. `agg` says what to compute for them."""

    def __init__(self, stream: Stream, key: tuple[tuple[str, ...], timedelta | None], name: str | None = None) -> None:
        self._stream, self._key, self._name = stream, key, name

    if not TYPE_CHECKING:  # for mypy, a class with __getattr__ would have every attribute

        def __getattr__(self, name: str) -> object:
            raise AttributeError(only_agg(type(self).__name__, name), name=name, obj=self)

    def agg(self, *unnamed: str, **aggregates: str) -> Table:
        """Compute Spark SQL aggregates per key over all records so far: a table that every record of a key updates.

        >>> orders.group("user", ttl=None).agg(orders="count(*)")
        <Table 'orders.group': user string, orders bigint>
        """
        after = self._stream.after()
        refuse_unnamed(unnamed, after.at)
        return Table(self._stream.namer, group_aggregate(after, self._key, aggregates, self._name))
