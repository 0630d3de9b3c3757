"""Streams and tables as the user declares them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.api.arguments import Namer, columns_of, node_of, refuse_twice, refuse_without_ttl, typed_field
from headrace.core.counts import counts
from headrace.core.durations import Duration, duration
from headrace.core.errors import PlanError
from headrace.core.names import Names, listed
from headrace.core.schema import SchemaLike, quoted, type_name
from headrace.core.schema import schema as schema_of
from headrace.core.where import caller, says_where
from headrace.plan.clocked import ProcessingTime
from headrace.plan.dedup import Dedup
from headrace.plan.expressions import Expression, Typed, check, expand, parse, parse_select
from headrace.plan.nodes import Node, column
from headrace.plan.previous import PREVIOUS, WithPrevious
from headrace.plan.process import IN_TIME, Logic, Process
from headrace.plan.steps import OPERATION, Explode, KeyBy, Select, ToStream, Transform, Union, Where
from headrace.plan.tables import ToTable
from headrace.plan.top import Top, window_of
from headrace.plan.windows import Window

if TYPE_CHECKING:
    from headrace.api.aggregating import Grouped, Windowed


class Stream:
    """Facts as they happen. Every method gives a new stream or table; nothing runs."""

    def __init__(self, namer: Namer, node: Node) -> None:
        self.namer = namer
        self.node = node

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def columns(self) -> pa.Schema:
        return self.node.columns

    @says_where
    def where(self, condition: str) -> Stream:
        """Only the records for which a Spark SQL condition is true."""
        at = caller()
        typed = self._typed(parse(condition, at))
        if typed.type is not None and not pa.types.is_boolean(typed.type) and not pa.types.is_null(typed.type):
            raise PlanError(f"where({condition!r}) is {type_name(typed.type)}, not a condition", hint="compare it with something", where=at)
        return self._then(lambda name: Where(name, self.columns, at, self.node, typed), "where")

    def select(self, *columns: str) -> Stream:
        """These columns, as a Spark SQL select list: `select("url, upper(user) as user")`, or one text a column."""
        at = caller()
        if not columns:
            raise PlanError(f"select() of {self.name!r} without a column", hint='name at least one: select("url")', where=at)
        named = expand([pair for text in columns for pair in parse_select(text, at)], self.columns)
        return self._project([(name, self._typed(expression)) for name, expression in named], at, "select")

    def with_columns(self, **columns: str) -> Stream:
        """All columns, and these besides or in place of those of the same name."""
        at = caller()
        made = {name: self._typed(parse(text, at)) for name, text in columns.items()}
        # Spark does not tell upper from lower case: Amount takes the place of amount.
        placed = {name.lower(): name for name in made}
        kept = {placed.get(name.lower(), name): self._typed(parse(quoted(name), at)) for name in self.columns.names}
        return self._project([*(kept | made).items()], at, "with_columns")

    def flat_map(self, array: str, into: str) -> Stream:
        """One record for each element of an array, beside the other columns: `flat_map("split(text, ' ')", into="word")`."""
        at = caller()
        typed = self._typed(parse(array, at))
        if typed.type is None or not pa.types.is_list(typed.type):
            raise PlanError(f"{array} is not an array", hint="give an expression that makes one, such as split(...)", where=at)
        element = pa.field(into, typed.type.value_type)
        columns = pa.schema([*(field for field in self.columns if field.name != into), element])
        return self._then(lambda name: Explode(name, columns, at, self.node, typed, into), "flat_map")

    def explode(self, column_name: str, into: str | None = None) -> Stream:
        """One record for each element of an array column, under its name or under `into`."""
        return self.flat_map(quoted(column_name), into or column_name)

    @says_where
    def transform(self, function: Callable[[Any], Any], schema: SchemaLike | None = None) -> Stream:
        """Whatever a function from a PySpark DataFrame to a PySpark DataFrame makes of it; `schema` if it changes the columns."""
        at = caller()
        if not callable(function):
            raise PlanError(f"transform({function!r}) is no function", hint="give one from a DataFrame to a DataFrame", where=at)
        columns = self.columns if schema is None else schema_of(schema)
        return self._then(lambda name: Transform(name, columns, at, self.node, function), "transform")

    def union(self, *others: Stream) -> Stream:
        """The records of this stream and others with the same columns."""
        at = caller()
        nodes = (self.node, *(node_of(other, f"union of {self.name!r} with one") for other in others))
        for node in nodes:
            if not node.columns.equals(self.columns):
                raise PlanError(
                    f"union of {self.name!r} and {node.name!r}: their columns differ",
                    hint=f"give both the columns {', '.join(self.columns.names)}",
                    where=at,
                )
        return self._then(lambda name: Union(name, self.columns, at, nodes), "union")

    def key_by(self, *columns: str) -> Stream:
        """The same records under another key."""
        at = caller()
        if not columns:
            raise PlanError(f"key_by() of {self.name!r} without a column", hint='name at least one: key_by("url")', where=at)
        for name in columns:
            column(self.node, name, "key_by")
        return self._then(lambda name: KeyBy(name, self.columns, at, self.node, columns), "key_by")

    @says_where
    def window(self, window: Window, by: Names = ()) -> Windowed:
        """Windows in event time, per key if `by` names columns; `agg` says what is computed in each."""
        from headrace.api.aggregating import Windowed

        at = caller()
        if not hasattr(window, "identity"):
            raise PlanError(f"window({window!r}) is no window", hint='say which kind: hr.tumbling("1 minute")', where=at)
        if not self.node.watermarked and not isinstance(window, ProcessingTime):
            raise PlanError(
                f"{self.name!r} has windows but no watermark",
                why="no window would ever close",
                hint='declare the stream with time= and watermark=hr.bounded("30 seconds")',
                where=at,
            )
        return Windowed(self, window, columns_of(by, self.node, "window by"))

    @says_where
    def group(self, by: Names, *, ttl: Duration | None = "required") -> Grouped:
        """All records of a key so far. `ttl` is the event time without a record after which a key is forgotten; None: never."""
        from headrace.api.aggregating import Grouped

        at = caller()
        refuse_without_ttl(ttl, f"group({by!r}) of {self.name!r}", at)
        names = columns_of(by, self.node, "group by")
        if not names:
            raise PlanError(
                f"group() of {self.name!r} has no key",
                hint='for one total of everything: window(hr.global_()), with emit(early="1 second")',
                where=at,
            )
        return Grouped(self, names, duration(ttl) if ttl is not None else None)

    @says_where
    def dedup(self, keys: Names, *, ttl: Duration | None = "required") -> Stream:
        """Of the records of a key less than `ttl` apart in event time only the first; the others are counted as duplicates.

        The first is the first that came: by offset in a partition, by partition and offset in an epoch. A record behind the watermark
        is late. With `ttl=None` only the first record of a key ever goes on, and every key is kept.
        """
        return self._dedup(columns_of(keys, self.node, "dedup by"), ttl, f"dedup({keys!r})", "dedup")

    @says_where
    def distinct(self, *, ttl: Duration | None = "required") -> Stream:
        """Each record once: of those less than `ttl` apart that are the same in every column only the first, as `dedup` has it."""
        return self._dedup(tuple(self.columns.names), ttl, "distinct()", "distinct")

    @says_where
    def with_previous(self, *columns: str, by: Names, ttl: Duration | None = "required") -> Stream:
        """Each record with columns of the record of its key before it in event time, as `previous_<column>`; null if there is none.

        A record goes on when the watermark has passed it, and is late behind it. Without `columns` all are taken but the key. A record
        `ttl` or more before does not count; `ttl=None` keeps the last record of every key.
        """
        at = caller()
        names = columns_of(by, self.node, "with_previous by")
        refuse_without_ttl(ttl, f"with_previous(by={by!r}) of {self.name!r}", at)
        if not names:
            raise PlanError(f"with_previous() of {self.name!r} has no key", hint="say whose records follow each other: by=", where=at)
        others = tuple(name for name in self.columns.names if name not in names)
        taken = columns_of(columns, self.node, "with_previous") if columns else others
        made = pa.schema([*self.columns, *(self.columns.field(name).with_name(f"{PREVIOUS}{name}").with_nullable(True) for name in taken)])
        refuse_twice(made, at)
        length = None if ttl is None else duration(ttl)
        return self._then(lambda name: WithPrevious(name, made, at, self.node, names, taken, length), "previous")

    @says_where
    def process(  # noqa: PLR0913 - one option for each part of the logic
        self, function: Callable[..., Any], *, by: Names, state: SchemaLike = "", returns: SchemaLike | None = None,
        on_timer: Callable[..., Any] | None = None, ttl: Duration | None = "required", order: str = IN_TIME, vectorised: bool = False,
    ) -> Stream:  # fmt: skip
        """Logic of your own for each key, with state and timers in event time; `returns` are the columns of the rows it makes.

        `function(event, state, timers)` is called for each event of a key in the order of event time, when the watermark has passed it,
        and yields rows. `state` is a row a key, its columns attributes. `timers.after("5 minutes")` or `timers.at(moment)` let
        `on_timer(timer, state, timers)` be called when event time has come there, before the events of that moment. A key is forgotten
        `ttl` after its last event and timer. An event for which the function raises is a dead letter.

        `order="arrival"` gives events as they come, without waiting. With `vectorised=True` it is `function(events, states)` over frames
        of all keys, and gives both back.
        """
        at = caller()
        kept = schema_of(state) if state else pa.schema([])
        made = self.columns if returns is None else schema_of(returns)
        if ttl == "required" and not len(kept) and on_timer is None and not vectorised:
            ttl = None
        refuse_without_ttl(ttl, f"process(by={by!r}) of {self.name!r}", at)
        names, length = columns_of(by, self.node, "process by"), None if ttl is None else duration(ttl)
        logic = Logic(function, on_timer, vectorised)
        return self._then(lambda name: Process(name, made, at, self.node, names, kept, logic, length, order), "process")

    @says_where
    def to_table(self, key: Names, *, ttl: Duration | None = None) -> Table:
        """The latest record per key, by event time.

        Right behind `to_stream()` it undoes that: what the changes say is done to the rows, so that a deleted one is gone, and `op` with
        it. Behind other steps, and under a key that names `op`, changes are facts like any others: a delete is the latest, and stays.
        """
        at = caller()
        names = columns_of(key, self.node, "key")
        if not names:
            raise PlanError(f"to_table() of {self.name!r} has no key", hint="name the columns of which it has one row each", where=at)
        before = self.node.input if isinstance(self.node, ToStream) and OPERATION.name not in names else self.node
        length = None if ttl is None else duration(ttl)
        return Table(self.namer, ToTable(self.namer.step_name(f"{self.name}.table"), before.columns, at, before, names, length))

    @says_where
    def top(self, count: int, *, by: str, per: Names = ()) -> Table:
        """The rows with the largest value of the column `by`, so many of everything, or of each value of the columns `per`.

        `per="window"` means each window. Of equal rows those with the smallest key come first; rows without a value have no place. What
        leaves the top is taken back.
        """
        at = caller()
        score = column(self.node, by, "top by").name
        if not counts(count) or pa.types.is_nested(self.columns.field(score).type):
            raise PlanError(
                f"top({count!r}, by={by!r}) of {self.name!r} has no order",
                why="rows are put in the order of a plain value",
                hint="give a whole number above zero, and a column that is no array, map or struct",
                where=at,
            )
        window = window_of(self.node)
        names = [name for part in listed(per) for name in (window if part == "window" and window else (part,))]
        groups = columns_of(names, self.node, "top per")
        closes = bool(window) and set(window) <= set(groups)
        name = self.namer.step_name(f"{self.name}.top")
        shards = Top(f"{name}.shards", self.columns, at, self.node, count, score, groups, closes, shared=True)
        return Table(self.namer, Top(name, self.columns, at, shards, count, score, groups, closes))

    def to_stream(self) -> Stream:
        """The changes of a table or of corrected results as facts: the columns, and `op` with insert, update or delete.

        The time of an insert or update is that of the new record. A delete has the columns of the record that is gone; its time is
        when that expired, or else the watermark at which it went, or the record's own time if it is later.
        """
        at = caller()
        if not self.node.keys:
            raise PlanError(
                f"to_stream() of {self.name!r}: nothing tells its records apart",
                why="a record that replaces another could not be told from a new one",
                hint="keep the columns of its key in every step before it",
                where=at,
            )
        columns = pa.schema([*self.columns, OPERATION])
        refuse_twice(columns, at)
        return Stream(self.namer, ToStream(self.namer.step_name(f"{self.name}.stream"), columns, at, self.node))

    def _dedup(self, by: tuple[str, ...], ttl: Duration | None, said: str, kind: str) -> Stream:
        at = caller()
        refuse_without_ttl(ttl, f"{said} of {self.name!r}", at)
        length = None if ttl is None else duration(ttl)
        if not by or length == timedelta(0):
            raise PlanError(
                f"{said} of {self.name!r} with ttl={ttl!r} compares nothing",
                why="no record would be a duplicate",
                hint="name a key, and a ttl above zero",
                where=at,
            )
        nested = next((name for name in by if pa.types.is_nested(self.columns.field(name).type)), None)
        if nested is not None:
            raise PlanError(
                f"{said} of {self.name!r}: {nested!r} is {type_name(self.columns.field(nested).type)}",
                why="only plain values are compared",
                hint="name columns that are no arrays, maps or structs",
                where=at,
            )
        return self._then(lambda name: Dedup(name, self.columns, at, self.node, by, length), kind)

    def _project(self, expressions: list[tuple[str, Typed]], at: str | None, kind: str) -> Stream:
        columns = pa.schema([typed_field(name, typed, typed.expression.text, at) for name, typed in expressions])
        return self._then(lambda name: Select(name, columns, at, self.node, tuple(expressions)), kind)

    def _typed(self, expression: Expression) -> Typed:
        return check(expression, self.columns)

    def _then(self, make: Callable[[str], Node], kind: str) -> Stream:
        return self._like(make(self.namer.step_name(f"{self.name}.{kind}")))

    def _like(self, node: Node) -> Stream:
        return Stream(self.namer, node)


class Table(Stream):
    """The latest value per key. Its steps work on its changes and keep it a table."""

    def _like(self, node: Node) -> Stream:
        return Table(self.namer, node)
