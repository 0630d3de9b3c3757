"""Streams and tables as the user declares them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.api.arguments import Namer, node_of, refuse_another_app
from headrace.api.as_of import AsOf
from headrace.api.attributes import no_attribute
from headrace.core import html
from headrace.core.columns.names import Names
from headrace.core.columns.schema import SchemaLike, declared, quoted
from headrace.core.columns.schema import schema as schema_of
from headrace.core.durations import Duration
from headrace.core.where import caller, says_where
from headrace.plan.building import aggregating, keyed, stateless
from headrace.plan.building.as_of_joins import as_of_join, versioned_table
from headrace.plan.building.joins import JoinArguments, Near, Within, interval_join, join
from headrace.plan.building.lookups import Calls, LookupArguments, lookup
from headrace.plan.building.matching import MatchArguments, match
from headrace.plan.building.processing import ProcessArguments, process
from headrace.plan.building.scoring import ScoreArguments, score
from headrace.plan.building.step_place import StepPlace
from headrace.plan.building.tops import TopArguments, top
from headrace.plan.joins.join import INNER, On
from headrace.plan.joins.remote_lookup import Answering
from headrace.plan.nodes import Node
from headrace.plan.picture import of_node
from headrace.plan.process import IN_TIME, Logic
from headrace.plan.side_streams import dead_of, late_of
from headrace.plan.windows.kinds import Window

if TYPE_CHECKING:
    from headrace.api.aggregating import Grouped, Windowed


class Stream:
    """Facts as they happen. Every method returns a new stream or table, and runs nothing.

    The examples of its methods use these streams and this table:

    >>> import tempfile
    >>> import headrace as hr
    >>> app = hr.App("shop", home=tempfile.mkdtemp())
    >>> timed = {"time": "at", "watermark": hr.bounded("30 seconds")}
    >>> orders = app.stream("orders", "id int, user string, amount double, tags array<string>, at timestamp", key="id", **timed)
    >>> clicks = app.stream("clicks", "user string, ad string, at timestamp", key="user", **timed)
    >>> users = app.stream("users", "user string, city string, at timestamp", key="user", **timed).to_table("user")
    """

    def __init__(self, namer: Namer, node: Node) -> None:
        self.namer = namer
        self.node = node

    @property
    def name(self) -> str:
        """The name of its last step, as in the accounting."""
        return self.node.name

    @property
    def columns(self) -> pa.Schema:
        """Its columns, as an Arrow schema."""
        return self.node.columns

    @says_where
    def where(self, condition: str) -> Stream:
        """Keep the records for which a Spark SQL condition is true; false and null are dropped, and counted as `filtered`.

        >>> orders.where("amount > 100 and user is not null").name
        'orders.where'
        """
        return self._like(stateless.where(self.after(), condition))

    @says_where
    def select(self, *columns: str) -> Stream:
        """Keep or compute columns, as in a Spark SQL select list: `select("url, upper(user) as user")`, in one text or several.

        >>> orders.select("id", "upper(user) as user").columns.names
        ['id', 'user']
        """
        return self._like(stateless.select(self.after(), columns))

    def with_columns(self, **columns: str) -> Stream:
        """Add computed columns: `with_columns(tax="amount * 0.2")`. A column of the same name is replaced.

        >>> orders.with_columns(tax="amount * 0.2").columns.names
        ['id', 'user', 'amount', 'tags', 'at', 'tax']
        """
        return self._like(stateless.with_columns(self.after(), columns))

    @says_where
    def with_place(self, into: str = "place") -> Stream:
        """Add the place of each record in its topic, as a struct of `partition` and `offset`: evidence that results can carry along.

        Call it on the stream that `app.stream(...)` returns; results of later steps have no place of their own.

        >>> orders.with_place().columns.names
        ['id', 'user', 'amount', 'tags', 'at', 'place']
        """
        return self._like(stateless.with_place(self.after(), into))

    @says_where
    def flat_map(self, array: str, into: str) -> Stream:
        """Make one record of each element of an array, with the other columns: `flat_map("split(text, ' ')", into="word")`.

        >>> orders.flat_map("split(user, ' ')", into="word").columns.names
        ['id', 'user', 'amount', 'tags', 'at', 'word']
        """
        return self._like(stateless.flat_map(self.after(), array, into))

    @says_where
    def explode(self, column_name: str, into: str | None = None) -> Stream:
        """Make one record of each element of an array column, under its own name or `into`.

        >>> orders.explode("tags").columns.field("tags").type
        DataType(string)
        >>> orders.explode("tags", into="tag").columns.names
        ['id', 'user', 'amount', 'tags', 'at', 'tag']
        """
        return self.flat_map(quoted(column_name), into or column_name)

    @says_where
    def transform(self, function: Callable[[Any], Any], schema: SchemaLike | None = None) -> Stream:
        """Apply a function from a PySpark DataFrame to a PySpark DataFrame; give `schema` if it changes the columns.

        >>> orders.transform(lambda frame: frame.dropDuplicates(["id"])).columns.names
        ['id', 'user', 'amount', 'tags', 'at']
        """
        return self._like(stateless.transform(self.after(), function, None if schema is None else schema_of(schema)))

    def union(self, *others: Stream) -> Stream:
        """Combine the records of this stream and others with the same columns. `null as x` takes the type of x in the others.

        >>> clicks.select("user, at").union(orders.select("user, at"))
        <Stream 'clicks.select.union': user string, at timestamp>
        """
        nodes = [node_of(other, f"union of {self.name!r} with one", self.namer) for other in others]
        return self._like(stateless.union(self.after(), nodes))

    @says_where
    def join_within(  # noqa: PLR0913 - one option for each part of the question
        self, other: Stream, *, on: On, within: Within | None = None, how: str = INNER, pick: str = "all", where: str | None = None,
        suffix: str = "_right",
    ) -> Stream:  # fmt: skip
        """Join records of two streams with equal `on` whose times are near: the right one from `before` before to `after` after the left.

        `within=(before, after)` includes both ends; a single duration applies in both directions. `on` is a name, several, or a mapping
        from left to right. A result has the left columns, then the right ones without `on`, with `suffix` where a name is taken. Its time
        is the later one. `where` is one more condition, over the columns of a result. `pick="first"` or `"last"` takes one match of each
        left record, by the right time.

        A left, right or full join emits a row without a match when the watermark proves that none can come; a picked match is emitted then,
        too. A key with a null matches nothing. A record behind the watermark is late.

        >>> matched = orders.join_within(clicks, on="user", within=("30 minutes", "0s"), how="left", pick="last")
        >>> matched.columns.names
        ['id', 'user', 'amount', 'tags', 'at', 'ad', 'at_right']
        """
        right = node_of(other, f"join of {self.name!r} with one", self.namer)
        return Stream(self.namer, interval_join(self.after(), right, JoinArguments(on, how, suffix), Near(within, pick, where)))

    @says_where
    def join(  # noqa: PLR0913 - one option for each part of the question
        self, table: Stream | AsOf, *, on: On, how: str = INNER, suffix: str = "_right", broadcast: bool = False,
        ttl: Duration | None = "required", wait: str | None = "snapshot",
    ) -> Stream:  # fmt: skip
        """Join with a table. Columns are those of `join_within`.

        - A stream with a table: each record with the row of its key. The changes of an epoch are applied before its records are joined;
          later ones correct nothing. `how` is inner or left. With `broadcast` every task has the whole table. When the job first starts,
          the stream waits until the table has been read up to its end at that moment, unless `wait=None`.
        - A stream with `table.as_of(column, history=...)`: each record with the version that was valid at the time in its column.
        - A table with a table: a table that every change of either keeps up to date, by key, foreign key or many to many. `how` is inner,
          left, right or full. `ttl=None` says that tables without a ttl may be kept forever.

        >>> orders.join(users, on="user", how="left").columns.names
        ['id', 'user', 'amount', 'tags', 'at', 'city', 'at_right']
        >>> orders.join(users.as_of("at", history="1 day"), on="user").name
        'orders.join#2'
        """
        from headrace.api.answers import Answers

        after, asked = self.after(), JoinArguments(on, how, suffix, broadcast, ttl, wait)
        role = f"join of {self.name!r} with one"
        if isinstance(table, AsOf):
            refuse_another_app(table.versions.node, table.namer, role, self.namer)
            return Answers(self.namer, as_of_join(after, table.versions, asked))
        made = join(after, node_of(table, role, self.namer), asked)
        return Table(self.namer, made) if made.changes else Stream(self.namer, made)

    @says_where
    def lookup(  # noqa: PLR0913 - one option for each part of the question
        self, function: Callable[[pa.Table], Any] | Answering, *, on: On, returns: SchemaLike, how: str = INNER,
        cache: Duration = "10 minutes", timeout: Duration = "10 seconds", parallel: int = 4, batch: int = 1_000, retries: int = 3,
        backoff: Duration = "100 ms", name: str | None = None,
    ) -> Stream:  # fmt: skip
        """Join with another system that has no changelog: ask it for the row of each record's key.

        `function(keys)` gets an Arrow table with different keys, `batch` at most, and returns rows with the key and the columns `returns`:
        a list of dictionaries, an Arrow table or a Polars frame, with one row or none for each key. `hr.http`, `hr.postgres` or `hr.redis`
        in its place asks that system. `on` is a name, several, or a mapping from the names here to those there. A record whose key has no
        row is filtered and counted, or with `how="left"` has nulls. A null in a key is not asked for, and has no row.

        An answer is kept for `cache`, by the wall clock of the epochs. A call that raises, or takes longer than `timeout`, is repeated
        `retries` times, after `backoff`, twice that, and so on; then records of its keys are dead letters with the reason, and so are those
        of keys with several rows or with values of other types. `parallel` calls run at a time, in threads of their own.

        The answers of an epoch are stored with it: an epoch that is repeated after a crash does not ask again.

        >>> def names(keys):
        ...     return [{"user": user, "name": user.title()} for user in keys["user"].to_pylist()]
        >>> orders.lookup(names, on="user", returns="name string").columns.names
        ['id', 'user', 'amount', 'tags', 'at', 'name']
        """
        calls = Calls(timeout, parallel, batch, retries, backoff)
        asked = LookupArguments(function, on, schema_of(returns), how, cache, calls)
        return Stream(self.namer, lookup(self.after(), asked, name))

    @says_where
    def late(self) -> Stream:
        """The late records of a declared stream, with their columns and `step`, `reason`, `watermark` and the window that they missed.

        They come in the epoch in which they are found late. Their time is the watermark that they were late for, so none of them is late
        again. Records that are late or bad in steps after this go to the topics, and not to this stream.

        >>> orders.late().group("user", ttl=None).agg(late="count(*)")
        <Table 'orders.late.group': user string, late bigint>
        """
        return Stream(self.namer, late_of(self.node, caller()))

    @says_where
    def dead(self) -> Stream:
        """The dead letters of a stream that the app declares: `step`, `reason`, `partition` and `offset`, and `record` as JSON.

        Their time is that of `late()`, or the wall clock where there is no watermark yet.

        >>> orders.dead().columns.names
        ['step', 'reason', 'partition', 'offset', 'record']
        """
        return Stream(self.namer, dead_of(self.node, caller()))

    def key_by(self, *columns: str) -> Stream:
        """Give the records another key.

        >>> clicks.key_by("ad").name
        'clicks.key_by'
        """
        return self._like(stateless.key_by(self.after(), columns))

    @says_where
    def window(self, window: Window, by: Names = (), *, name: str | None = None) -> Windowed:
        """Divide the records into windows of event time, per key if `by` names columns; `agg` then says what to compute.

        `name` identifies the step and its state, whatever is declared around it.

        >>> orders.window(hr.tumbling("1 minute"), by="user").agg(spent="sum(amount)").columns.names
        ['user', 'window_start', 'window_end', 'spent', 'pane', 'revision']
        """
        from headrace.api.aggregating import Windowed

        return Windowed(self, window, aggregating.window_key(self.after(), window, by), name)

    @says_where
    def group(self, by: Names, *, ttl: Duration | None = "required", name: str | None = None) -> Grouped:
        """Group all records of a key; `agg` then says what to compute. A key without records for `ttl` is forgotten; with None, never.

        >>> orders.group("user", ttl="30 days").agg(orders="count(*)", spent="sum(amount)")
        <Table 'orders.group': user string, orders bigint, spent double>
        """
        from headrace.api.aggregating import Grouped

        return Grouped(self, aggregating.group_key(self.after(), by, ttl), name)

    @says_where
    def dedup(self, keys: Names, *, ttl: Duration | None = "required", name: str | None = None) -> Stream:
        """Pass the first record of a key; drop those less than `ttl` later in event time, and count them as duplicates.

        The first is the one that came first: by offset within a partition, by partition and offset within an epoch. A record behind the
        watermark is late. With `ttl=None` only the first record of a key ever passes, and every key is kept.

        >>> orders.dedup("id", ttl="24 hours").name
        'orders.dedup'
        """
        return self._like(keyed.dedup(self.after(), keys, ttl, name))

    @says_where
    def distinct(self, *, ttl: Duration | None = "required") -> Stream:
        """Drop repeated records: `dedup` by all columns.

        >>> clicks.distinct(ttl="1 hour").name
        'clicks.distinct'
        """
        return self._like(keyed.distinct(self.after(), ttl))

    @says_where
    def with_previous(self, *columns: str, by: Names, ttl: Duration | None = "required", name: str | None = None) -> Stream:
        """Add columns of the previous record of the same key, in event time, as `previous_<column>`; null if there is none.

        A record passes when the watermark has passed it; behind the watermark it is late. Without `columns`, all but the key are added. A
        record `ttl` or more before does not count; `ttl=None` keeps the last record of every key.

        >>> orders.with_previous("amount", by="user", ttl="1 day").columns.names
        ['id', 'user', 'amount', 'tags', 'at', 'previous_amount']
        """
        return self._like(keyed.with_previous(self.after(), columns, by, ttl, name))

    @says_where
    def process(  # noqa: PLR0913 - one option for each part of the logic
        self, function: Callable[..., Any], *, by: Names, state: SchemaLike = "", returns: SchemaLike | None = None,
        on_timer: Callable[..., Any] | None = None, ttl: Duration | None = "required", order: str = IN_TIME, vectorized: bool = False,
        name: str | None = None, vectorised: bool = False,
    ) -> Stream:  # fmt: skip
        """Run your own logic for each key, with state and timers in event time; `returns` are the columns of the rows it makes.

        `function(event, state, timers)` is called for each event of a key, in the order of event time, when the watermark has passed it. It
        yields rows. `state` is one row per key, with its columns as attributes. After `timers.after("5 minutes")` or `timers.at(moment)`,
        `on_timer(timer, state, timers)` is called when event time gets there, before the events of that moment. A key is forgotten `ttl`
        after its last event and timer. An event for which the function raises is a dead letter.

        `order="arrival"` passes events as they come, without waiting. With `vectorized=True` the call is `function(events, states)`, with
        frames of all keys, and returns results and states; `vectorised` is an alias.

        >>> def running(event, state, timers):
        ...     state.total = (state.total or 0) + event.amount
        ...     yield {"user": event.user, "total": state.total}
        >>> orders.process(running, by="user", state="total double", returns="user string, total double", ttl="30 days")
        <Stream 'orders.process': user string, total double>
        """
        after, logic = self.after(), Logic(function, on_timer, vectorized or vectorised)
        kept, made = schema_of(state) if state else pa.schema([]), None if returns is None else schema_of(returns)
        return self._like(process(after, ProcessArguments(logic, by, kept, made, ttl, order), name))

    @says_where
    def match(  # noqa: PLR0913 - one option for each part of a pattern
        self, *, by: Names, pattern: str, define: Mapping[str, str] | None = None, within: Duration | None = None,
        measures: Mapping[str, str] | None = None, where: str | None = None, after: str = "past last row", rows: str = "one",
        skip: str | None = None, order: Names | None = None,
    ) -> Stream:  # fmt: skip
        """Find a pattern among the records of each key, in the order of event time, as SQL's MATCH_RECOGNIZE does.

        `define` has the condition of each variable, `where` one of the complete match, `measures` the columns of the result; `evidence`
        has the partition and offset of each of its events. First and last record are at most `within` apart. A match is emitted when the
        watermark proves that no preferred one can follow; that moment is its event time. A record behind the watermark is late.

        `after` says where the search continues: "past last row", "next row", "first B" or "last B". `rows="all"` emits every row of a
        match. `skip="others"` skips records that do not fit. `order` has columns by which records of one time are ordered, ascending; where
        they are equal, partition and offset decide. docs/patterns.md has the language.

        >>> large = {"A": "amount > 500"}
        >>> orders.match(by="user", pattern="A{3}", define=large, within="5 minutes", measures={"spent": "sum(A.amount)"}).columns.names
        ['user', 'spent', 'evidence']
        """
        asked = MatchArguments(by, pattern, define or {}, within, measures or {}, where, after, rows, skip, order)
        return Stream(self.namer, match(self.after(), asked))

    @says_where
    def score(
        self, model: Any, *, inputs: Names, output: str = "score", returns: str = "double", version: str | None = None
    ) -> Stream:  # fmt: skip
        """Add the column `output` with the score that a model computes from the columns `inputs`.

        `model` is the path of an ONNX file, which is loaded once per worker (with two classes, the score is the probability of the second),
        or a function from an Arrow table of the inputs to one value per row. A record for which it raises is a dead letter.

        It may also be a table with the columns `version` and `model`, the contents of ONNX files. The row with the greatest version is in
        force from the epoch in which it arrives, which stays the same when the epoch is repeated; `version=` names a column for it.

        >>> import pyarrow.compute as pc
        >>> orders.score(lambda table: pc.divide(table["amount"], 1000), inputs="amount", output="risk").columns.names
        ['id', 'user', 'amount', 'tags', 'at', 'risk']
        """
        used = node_of(model, f"score() of {self.name!r} with one", self.namer) if isinstance(model, Table) else model
        return Stream(self.namer, score(self.after(), ScoreArguments(used, inputs, output, returns, version)))

    @says_where
    def to_table(self, key: Names, *, ttl: Duration | None = None, name: str | None = None) -> Table:
        """Keep the latest record of each key, by event time; with `ttl`, remove a key without records for that long.

        Directly after `to_stream()` it undoes that: it applies the changes, so a deleted row is gone, and so is `op`. After other steps, or
        with `op` in the key, changes are facts like any others: a delete is the latest record, and stays.

        >>> orders.to_table("user", ttl="30 days").name
        'orders.table'
        """
        return Table(self.namer, keyed.to_table(self.after(), key, ttl, name))

    @says_where
    def top(self, count: int, *, by: str, per: Names = (), rank: str = "", name: str | None = None) -> Table:
        """Keep the `count` rows with the largest value of the column `by`, overall or for each value of the columns `per`.

        `per="window"` means each window. Of equal rows those with the smallest key come first; rows without a value are never in the top. A
        row that leaves the top is retracted. `rank="rank"` adds a column of that name with the place of each row, from 1; a row whose place
        changes is updated.

        Over facts, such as the records of a stream, `rank` is needed: the place tells the rows apart. Of equal facts the earliest comes
        first. Only the best are kept, for as long as the job lives.

        >>> orders.group("user", ttl=None).agg(spent="sum(amount)").top(10, by="spent", rank="place")
        <Table 'orders.group.top': user string, spent double, place bigint>
        """
        return Table(self.namer, top(self.after(), TopArguments(count, by, per, rank), name))

    def to_stream(self) -> Stream:
        """Turn the changes of a table, or of corrected results, into facts: the columns, and `op` with insert, update or delete.

        The time of an insert or update is that of the new record. A delete has the columns of the removed record. Its time is when that
        expired, or else the watermark at which it was removed, or the record's own time if that is later.

        >>> users.to_stream().columns.names
        ['user', 'city', 'at', 'op']
        """
        return Stream(self.namer, keyed.to_stream(self.after()))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {declared(self.columns)}>"

    if not TYPE_CHECKING:  # for mypy, a class with __getattr__ would have every attribute

        def __getattr__(self, name: str) -> object:
            known = () if name.startswith("_") or name in ("node", "namer") else self.columns.names
            raise AttributeError(no_attribute(type(self).__name__, name, known), name=name, obj=self)

    def _repr_html_(self) -> str:
        """The stream in a notebook: what it is made of, its columns, and its first rows where the log has them."""
        rows = self.namer.first_rows(self.node)
        shown = html.table(rows.to_pylist(), rows.column_names) if rows is not None and rows.num_rows else ""
        return (
            f"{html.part(self.name, of_node(self.node))}{html.schema(self.columns, self.node.keys or ())}{html.part('first rows', shown)}"
        )

    def after(self) -> StepPlace:
        """The place of a step behind this one, at the line of the user's call."""
        return StepPlace(self.namer, self.node, caller())

    def _like(self, node: Node) -> Stream:
        return Stream(self.namer, node)


class Table(Stream):
    """The latest row of each key. It has the methods of a stream; they follow its changes, and most return a table."""

    @says_where
    def as_of(self, column: str, *, history: Duration) -> AsOf:
        """The table as it was at the time in a column of the stream that joins it: `orders.join(prices.as_of("ordered_at", ...), on=...)`.

        A version is valid from the time of its record until that of the next one of its key. A record is joined when the watermark has
        passed that time, so the order of arrival changes nothing; `emit` of the join can emit a result earlier. A record whose time is more
        than `history` behind the watermark is late, and so is a version behind the watermark.

        >>> orders.join(users.as_of("at", history="7 days"), on="user").columns.names
        ['id', 'user', 'amount', 'tags', 'at', 'city', 'at_right']
        """
        return AsOf(self.namer, versioned_table(self.node, column, history, caller()))

    def _like(self, node: Node) -> Stream:
        return Table(self.namer, node)
