"""The declaring half of an app: streams in, views and sinks out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from headrace.api.arguments import node_of
from headrace.api.stream import Stream, Table
from headrace.core.durations import Duration, duration
from headrace.core.errors import PlanError
from headrace.core.names import Names, listed
from headrace.core.schema import SchemaLike, type_name
from headrace.core.schema import schema as schema_of
from headrace.core.where import caller, says_where
from headrace.plan.aggregates import check_own
from headrace.plan.nodes import Node, Source, column
from headrace.plan.own import Aggregate
from headrace.plan.plan import Output, Plan, Sink, View
from headrace.plan.sinks import check_target, folding_key
from headrace.plan.tables import ToTable
from headrace.plan.watermarks import Bounded, LossBudget, Watermark


class Declaration:
    """Streams, views and sinks under one name. Declaring starts nothing."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._names: Counter[str] = Counter()
        self._sources: dict[str, Source] = {}
        self._outputs: dict[str, Output] = {}
        self.aggregates: dict[str, Aggregate] = {}

    @says_where
    def stream(  # noqa: PLR0913 - one option for each thing a stream is declared with
        self, name: str, schema: SchemaLike, *, key: Names = (), time: str | None = None, watermark: Watermark | None = None,
        late: str = "side", source: Any = None, align: Duration | None = None,
    ) -> Stream:  # fmt: skip
        """A stream of a topic's records. `time` is the column with the event time, `watermark` how far behind it may come.

        With `source`, as `hr.kafka("topic", ...)`, the records come from another system.

        Late records go to the topic `<name>.late`, with step, reason, watermark, window_start and window_end (with `late_`
        before a name that the stream has itself); `late="drop"` only counts them.

        With `align` a job reads it at most so much event time ahead of the slowest other stream that is not idle.
        """
        at = caller()
        keys, length = listed(key), None if align is None else duration(align)
        node = Source(name, schema_of(schema), at, keys, time, watermark, late, source, length)
        self._check_source(node)
        if source is not None:
            source.check(node.columns)
        self._sources[name] = node
        return Stream(self, node)

    def table(self, name: str, schema: SchemaLike, *, key: Names, source: Any) -> Table:
        """A topic of another system as a table: its latest record of each key holds, and a record without a value removes its key.

        With `source=hr.kafka("users", ...)` that is a compacted topic and its tombstones. Records of a key count in the order of the
        topic.
        """
        at, keys = caller(), listed(key)
        if not keys or not hasattr(source, "as_table"):
            raise PlanError(
                f"table {name!r} has no key, or no source that tells what is removed", hint='key="id", source=hr.kafka(...)', where=at
            )
        stream = self.stream(name, schema, key=keys, source=source.as_table(keys))
        return stream.to_table(keys)

    @says_where
    def view(self, name: str, stream: Stream, *, key: Names = ()) -> None:
        """Keep results as a table that readers query under `name`. `key` is needed where the results have none of their own.

        Under a key that does not hold their own key, a view has the latest of the results, by event time.
        """
        at = caller()
        node = node_of(stream, f"view {name!r}")
        keys = listed(key) or node.keys
        if not keys:
            raise PlanError(
                f"view {name!r}: nothing tells the records of {node.name!r} apart",
                why="a view has one row a key",
                hint='make it a table first: stream.to_table(key="...")',
                where=at,
            )
        for part in keys:
            column(node, part, f"key of view {name!r}")
        if not node.keys or not set(node.keys) <= set(keys):
            node = self._latest(node, keys, at)
        self._output(View(name, node, keys), at)

    @says_where
    def sink(self, stream: Stream, target: Any, *, name: str | None = None) -> None:
        """Write the records of a stream, or the changes of a table, to another system, each epoch once.

        Where the target has a key that does not hold the results' own, it gets the latest of the results, by event time.
        """
        at, node = caller(), node_of(stream, f"a sink to {target}")
        called = name or self.step_name(f"{node.name}.sink")
        key = folding_key(node, check_target(called, node, target, at))
        if key and not (node.keys and set(node.keys) <= set(key)):
            node = self._latest(node, key, at)
        self._output(Sink(called, node, target), at)

    @says_where
    def aggregate(self, name: str, function: Aggregate) -> None:
        """Let `agg` know an aggregate function of your own: afterwards `agg(mean="geometric_mean(price)")` works."""
        check_own(name, function, caller())
        self.aggregates[name.lower()] = function

    def plan(self) -> Plan:
        """What was declared so far."""
        return Plan(self.name, tuple(self._outputs.values()))

    def step_name(self, base: str) -> str:
        """A name for a step: the same for the same declaration, whatever else the app has."""
        self._names[base] += 1
        return base if self._names[base] == 1 else f"{base}#{self._names[base]}"

    def _latest(self, node: Node, key: tuple[str, ...], at: str | None) -> ToTable:
        """Records of one key lie on many shards: one must decide which is the latest."""
        return ToTable(self.step_name(f"{node.name}.table"), node.columns, at, node, key, None)

    def _output(self, output: Output, at: str | None) -> None:
        if output.name in self._outputs:
            raise PlanError(f"two outputs are called {output.name!r}", hint="give each its own name", where=at)
        self._outputs[output.name] = output

    def _check_source(self, node: Source) -> None:
        if node.name in self._sources:
            raise PlanError(
                f"stream {node.name!r} is declared twice", hint="declare it once and use it as often as needed", where=node.where
            )
        for name in node.key:
            kind = column(node, name, "key").type
            if pa.types.is_nested(kind):
                raise PlanError(
                    f"key {name!r} of stream {node.name!r} is {type_name(kind)}",
                    why="records are spread and told apart by plain values",
                    hint="name columns that are no arrays, maps or structs",
                    where=node.where,
                )
        if node.late not in ("side", "drop"):
            raise PlanError(
                f"late={node.late!r} is not known", hint='"side" (to the topic <stream>.late) or "drop" (only counted)', where=node.where
            )
        if node.watermark is not None and node.time is None:
            raise PlanError(
                f"stream {node.name!r} has a watermark but no time", hint="name the column with the event time: time=", where=node.where
            )
        if node.time is not None:
            self._check_time(node, node.time)

    def _check_time(self, node: Node, time: str) -> None:
        field = column(node, time, "time")
        if str(field.type) not in ("timestamp[us, tz=UTC]", "timestamp[us]"):
            raise PlanError(f"time {time!r} of stream {node.name!r} is {field.type}", hint="declare it as timestamp", where=node.where)
        assert isinstance(node, Source)
        if node.watermark is not None and not isinstance(node.watermark, Bounded | LossBudget):
            raise PlanError(
                f"watermark={node.watermark!r} of stream {node.name!r} is no watermark",
                hint='say how late records may be: watermark=hr.bounded("30 seconds")',
                where=node.where,
            )
        if node.watermark is None:
            raise PlanError(
                f"stream {node.name!r} has a time but no watermark",
                why="no window of it would ever close",
                hint='say how late records may be: watermark=hr.bounded("30 seconds")',
                where=node.where,
            )
