"""The declaring half of an app: streams in, views and sinks out."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pyarrow as pa

from headrace.api.arguments import node_of
from headrace.api.stream import Stream, Table
from headrace.core.columns.names import Names, listed
from headrace.core.columns.schema import SchemaLike
from headrace.core.columns.schema import schema as schema_of
from headrace.core.durations import Duration, duration
from headrace.core.errors import PlanError
from headrace.core.where import caller, says_where
from headrace.plan.aggregates.checked import check_own
from headrace.plan.aggregates.user_aggregate import Aggregate
from headrace.plan.alerts import Alert
from headrace.plan.building import outputs, sources
from headrace.plan.building.sources import SourceArguments
from headrace.plan.building.step_place import StepPlace
from headrace.plan.nodes import Node, Source
from headrace.plan.plan import Output, Plan
from headrace.plan.watermarks import Watermark


class Declaration:
    """Streams, views and sinks under one name. Declaring starts nothing."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._names: Counter[str] = Counter()
        self._sources: dict[str, Source] = {}
        self._outputs: dict[str, Output] = {}
        self._alerts: dict[str, Alert] = {}
        self.aggregates: dict[str, Aggregate] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @says_where
    def stream(  # noqa: PLR0913 - one option for each thing a stream is declared with
        self, name: str, schema: SchemaLike, *, key: Names = (), time: str | None = None, watermark: Watermark | None = None,
        late: str = "side", source: Any = None, align: Duration | None = None,
    ) -> Stream:  # fmt: skip
        """A stream of a topic's records. `time` is the event time, a column or a Spark SQL expression over columns, such as
        `timestamp_millis(ts)`; `watermark` says how far behind it records may come.

        With `source`, as `hr.kafka("topic", ...)`, the records come from another system.

        Late records go to the topic `<name>.late`, with step, reason, watermark, window_start and window_end (with `late_`
        before a name that the stream has itself); `late="drop"` only counts them.

        With `align` a job reads it at most so much event time ahead of the slowest other stream that is not idle.
        """
        at = caller()
        columns, length = schema_of(schema), None if align is None else duration(align)
        if name in self._sources:
            raise PlanError(f"stream {name!r} is declared twice", hint="declare it once and use it as often as needed", where=at)
        node = sources.source(name, SourceArguments(columns, key, time, watermark, late, source, length), at)
        self._sources[name] = node
        return Stream(self, node)

    def table(self, name: str, schema: SchemaLike, *, key: Names, source: Any) -> Table:
        """Declare a table: the latest record of each key of a topic of another system. A record without a value removes its key.

        With `source=hr.kafka("users", ...)` that is a compacted topic. Records of a key apply in the order of the topic.
        """
        keys = listed(key)
        stream = self.stream(name, schema, key=keys, source=sources.table_source(name, keys, source, caller()))
        return stream.to_table(keys)

    @says_where
    def view(self, name: str, stream: Stream, *, key: Names = ()) -> None:
        """Keep results as a table that readers query under `name`. Give `key` if the results have no key of their own.

        With a key that lacks columns of the results' own key, the view has the latest result for each value, by event time.
        """
        _refuse_stream(name, "a view's name", 'the name comes first: app.view("name", stream)')
        after = StepPlace(self, node_of(stream, f"view {name!r}", self), caller())
        self._output(outputs.view(after, name, key), after.at)

    @says_where
    def sink(self, stream: Stream, target: Any, *, name: str | None = None) -> None:
        """Write the records of a stream, or the changes of a table, to another system, each epoch once.

        If the target has a key that lacks columns of the results' own key, it gets the latest result for each value, by event time.
        """
        _refuse_stream(target, "a target", 'the stream comes first: app.sink(stream, hr.log("topic"))')
        after = StepPlace(self, node_of(stream, f"a sink to {target}", self), caller())
        self._output(outputs.sink(after, target, name), after.at)

    @says_where
    def aggregate(self, name: str, function: Aggregate) -> None:
        """Register an aggregate function of your own: afterwards `agg(mean="geometric_mean(price)")` works."""
        check_own(name, function, caller())
        self.aggregates[name.lower()] = function

    @says_where
    def alert(self, condition: str, *, for_: Duration = "0 seconds", message: str, name: str | None = None) -> None:
        """Send an alert when a condition over the facts of the job has been true for a while, and when it no longer is: once each.

        `condition` compares facts with numbers, as in `"late_share > 0.01 and in_rate > 10"`. Alerts go to the log, to the settings
        `alert_webhook` and `alert_mail`, and to the page. An alert with the name of a built-in one replaces it.
        """
        called = name or condition
        if called in self._alerts:
            raise PlanError(f"two alerts are called {called!r}", hint="give one of them another name=", where=caller())
        self._alerts[called] = Alert(called, condition, duration(for_), message, caller())

    def plan(self) -> Plan:
        """The plan of what was declared so far; raises what a run would refuse."""
        return Plan(self.name, tuple(self._outputs.values()), tuple(self._alerts.values()))

    def step_name(self, base: str, name: str | None = None) -> str:
        """A name for a step: the one that the user chose, or one after what the step reads."""
        if name is not None:
            return self._chosen_name(name)
        self._names[base] += 1
        return base if self._names[base] == 1 else f"{base}#{self._names[base]}"

    def _chosen_name(self, name: str) -> str:
        at = caller()
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
            raise PlanError(f"a step is called {name!r}", hint="use letters, digits, _ and -, with a letter first", where=at)
        self._names[name] += 1
        if self._names[name] > 1:
            raise PlanError(f"two steps are called {name!r}", why="state is found by its name", hint="give each its own", where=at)
        return name

    def first_rows(self, node: Node) -> pa.Table | None:
        """Some rows of a node, for a notebook; None where nothing keeps them."""
        return None

    def _output(self, output: Output, at: str | None) -> None:
        if output.name in self._outputs:
            raise PlanError(f"two outputs are called {output.name!r}", hint="give each its own name", where=at)
        self._outputs[output.name] = output


def _refuse_stream(given: object, place: str, hint: str) -> None:
    if isinstance(given, Stream):
        raise PlanError(f"{given!r} in the place of {place}", hint=hint)
