"""The nodes of a plan: streams and tables, and the steps between them. Frozen; they say what, never how.

Every node knows its columns, so that a mistake is found at the line that made it, and its words, so that a plan can be explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from headrace.core.columns.schema import declared as declared_columns
from headrace.core.errors import PlanError
from headrace.core.nearest import choices
from headrace.core.where import caller
from headrace.plan.expressions import Typed
from headrace.plan.source_time import EventTime
from headrace.plan.watermarks import Watermark

if TYPE_CHECKING:
    from headrace.plan.aggregates.nodes import TypedCall
    from headrace.plan.windows.emit import Emit
    from headrace.plan.windows.kinds import Window

# Fields that may change while state is kept: from then on the new value counts.
TUNABLE = ("ttl",)


@dataclass(frozen=True)
class NamedExpression:
    """A column and the expression that makes it."""

    name: str
    expression: Typed


@dataclass(frozen=True)
class StateSummary:
    """The state of a step and when it is removed, in words."""

    state: str = "nothing"
    bound: str = ""


@dataclass(frozen=True)
class FactsOnly:
    """Why a step cannot read results that change, in words: `what` it makes of them, the reason, and what to do instead."""

    what: str
    why: str
    hint: str = "take the changes as facts first: .to_stream()"


@dataclass(frozen=True)
class Node:
    """A stream or table of records. `where` is the user's file and line; `name` is unique in its app.

    What holds for every node of a kind is a constant of its class; a property may depend on the node.
    """

    stateful: ClassVar[bool] = False
    """Whether an operator with state computes it."""
    tabular: ClassVar[bool] = False
    """Whether it is a table: a row may be replaced however long after its own time."""
    at_hand: ClassVar[bool] = False
    """Whether its operator can return all live rows to a co-located step."""
    counts_each: ClassVar[bool] = False
    """Whether each input record counts once, so that one that repeats another would count twice."""
    passes_windows: ClassVar[bool] = False
    """Whether its rows are those of its one input, each in the same window."""
    gives_types: ClassVar[bool] = False
    """Whether it gives a type to columns of its input that have none."""
    totals: ClassVar[bool] = False
    """Whether its state sums up rows, so that a retraction must find the sum that its row is in."""
    ordered: ClassVar[bool] = False
    """Whether its result depends on the order of records, so that they need an event time."""

    name: str
    columns: pa.Schema = field(compare=False)
    where: str | None = field(compare=False)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def awaited(self) -> tuple[Node, ...]:
        """Those of its inputs that are read to their end at the job's first start before any record of the others is read."""
        return ()

    @property
    def ports(self) -> tuple[str, ...]:
        """The port at which each of the inputs enters; a step with one kind of input has one port, without a name."""
        return ("",) * len(self.inputs)

    @property
    def followed(self) -> tuple[Node, ...]:
        """The inputs whose changes and times it passes on; a table that is only looked up is not one of them."""
        return self.inputs

    @property
    def changes(self) -> bool:
        """Whether its records update or delete earlier ones: a changelog, not a stream of facts."""
        return any(node.changes for node in self.followed)

    @property
    def moves(self) -> bool:
        """Whether a row may be on another shard when it has changed: one shard retracts it, and another adds it."""
        return not self.stateful and any(node.moves for node in self.followed)

    @property
    def restates(self) -> bool:
        """Whether its records repeat the content of earlier ones without retracting them."""
        return any(node.restates for node in self.followed)

    @property
    def revises(self) -> bool:
        """Whether later records replace, retract or repeat earlier ones, so that they are not facts."""
        return self.changes or self.restates

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that identify its records; empty if there are none."""
        return ()

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The columns of its input by which the step groups records; empty if it treats all alike."""
        return ()

    @property
    def expires_after(self) -> timedelta | None:
        """How long after a record its key is forgotten, in event time; None: never, or there is nothing to forget."""
        return None

    @property
    def waits(self) -> bool:
        """Whether a record is processed only when the watermark has passed it."""
        return False

    @property
    def judges_lateness(self) -> bool:
        """Whether a record behind the watermark may be late for it."""
        return self.waits

    @property
    def endless(self) -> bool:
        """Whether its results are emitted, or retracted, however long after the watermark has passed their time."""
        return False

    @property
    def facts_only(self) -> FactsOnly | None:
        """Why it refuses results that change; None where it accepts them."""
        return None

    @property
    def watermarked(self) -> bool:
        return bool(self.followed) and all(node.watermarked for node in self.followed)

    @property
    def lateness(self) -> timedelta:
        """How far behind the watermark its records may be, because an earlier step still corrects results."""
        return max((node.lateness for node in self.followed), default=timedelta(0))

    @property
    def settles(self) -> timedelta | None:
        """How long after its time a record may still be retracted, at most and exclusively; None where there is no limit."""
        longest = timedelta(0)
        for bound in [node.settles for node in self.followed if node.changes]:
            if bound is None:
                return None
            longest = max(longest, bound)
        return longest

    @property
    def expressions(self) -> Iterator[Typed]:
        """The expressions that are evaluated for each input record."""
        return iter(())

    @property
    def results(self) -> tuple[NamedExpression, ...]:
        """The expressions that are evaluated for each result that an operator emits."""
        return ()

    @property
    def placeholders(self) -> tuple[pa.Field, ...]:
        """The columns that `results` are evaluated over, in addition to those that are emitted as they are."""
        return ()

    @property
    def does(self) -> str:
        """What the step does, in words. They decide whether a job may keep its state."""
        raise TypeError(f"{type(self).__name__} has no words")

    @property
    def state_summary(self) -> StateSummary:
        return StateSummary()

    @property
    def gathers(self) -> bool:
        """Whether all records of a key must be co-located one by one, so that none can be merged before that."""
        return False

    @property
    def order_key(self) -> tuple[str, ...]:
        """The columns by which facts are in order, under the names that they had: the key of their stream, or of key_by."""
        return self.inputs[0].order_key if self.inputs else ()

    @property
    def spread_by(self) -> tuple[str, ...]:
        """The columns that decide the shard of a record, where every shard has all that records may need; empty elsewhere."""
        return ()

    @property
    def colocated_with(self) -> str:
        """The table that it is co-located with, and whose rows it reads; empty where it has tasks and rows of its own."""
        return ""

    @property
    def windowing(self) -> Window | None:
        """The windows that it computes results over; None where there are none."""
        return None

    @property
    def panes(self) -> Emit | None:
        """When its windows emit; None where there are none."""
        return None

    @property
    def again(self) -> bool:
        """Whether a window may emit several panes: by its own triggers, or because results of an earlier step arrive late."""
        return False

    @property
    def aggregates(self) -> tuple[TypedCall, ...]:
        """The aggregate calls that it computes."""
        return ()

    @property
    def keeps_all(self) -> str:
        """In words, what keeps every row of its input; empty where nothing does."""
        return ""

    @property
    def latest_by(self) -> tuple[str, ...]:
        """The key of which it keeps the latest row of its input; empty where it does not."""
        return ()

    @property
    def expires_with_window(self) -> bool:
        """Whether its rows expire with their window."""
        return False

    @property
    def frame_function(self) -> Callable[[Any], Any] | None:
        """The user's function from a PySpark DataFrame to another that makes its records; None for all other steps."""
        return None

    @property
    def opaque(self) -> bool:
        """Whether only the user's function knows what it does with the columns."""
        return self.frame_function is not None

    @property
    def rule(self) -> Watermark | None:
        """The watermark that it declares; None for steps, and for streams without event time."""
        return None

    @property
    def declared_stream(self) -> Source | None:
        """Itself, if the app declares it as a stream, so that no other node is before it; None for steps."""
        return None

    def replaces(self, name: str) -> bool:
        """Whether a column of this name has other content than before the step."""
        return False

    def passed_as(self, name: str) -> str | None:
        """The column that has a column of its input as it was; None if it has none."""
        return name

    def constant(self, name: str) -> Any:
        """The value that a column has in all its records; None where it has several, or is not known to have one."""
        return None

    @property
    def keeps_key(self) -> str:
        """In words, how the key of its input would be that of its records; for steps that have none."""
        return f"keep the columns of its key in every step before {self.name!r}"

    @property
    def side_of(self) -> Source | None:
        """The stream whose late records or dead letters it has; None for all other nodes."""
        return None

    @property
    def versions(self) -> Node | None:
        """The stream of facts whose records are the versions of its rows; None where versions are not known."""
        return None

    @property
    def facts_of(self) -> Node | None:
        """The node whose changes it passes on as facts; None where it makes no facts of changes."""
        return None

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """The user's functions that it calls, and whose code may change while its state is kept."""
        return ()

    @property
    def state_parts(self) -> dict[str, Any]:
        """What its state depends on in addition to its inputs, by name; a change of one of these needs a rebuild."""
        return {part.name: getattr(self, part.name) for part in fields(self) if part.name not in _NO_PART}

    @property
    def result_parts(self) -> dict[str, Any]:
        """What its results depend on and its state does not, by name; a change of one of these counts from then on."""
        return {}

    @property
    def snapshots(self) -> bool:
        """Whether its state has all its live rows, so that they can be emitted again for a new output."""
        return False

    @property
    def foreign(self) -> str:
        """Why Spark itself must evaluate the step; empty where it need not."""
        typed = (*self.expressions, *(result.expression for result in self.results))
        return next((one.reason for one in typed if not one.fused), "")


# Fields that are not part of what a node computes, or that are inputs.
_NO_PART = frozenset({*(part.name for part in fields(Node)), "input", "streams", "source", *TUNABLE})


@dataclass(frozen=True)
class Source(Node):
    """Records of a topic, with their event time."""

    key: tuple[str, ...]
    time: EventTime | None
    watermark: Watermark | None
    late: str = "side"
    connector: Any = field(default=None, compare=False)
    """What declares the topic of another system; None for a topic of the log."""
    align: timedelta | None = field(default=None, compare=False)
    """How far it may be read ahead of the slowest other stream, in event time."""
    partitions: int | None = field(default=None, compare=False)
    """How many its topic has, where that is known."""

    @property
    def watermarked(self) -> bool:
        return self.watermark is not None

    @property
    def rule(self) -> Watermark | None:
        return self.watermark

    @property
    def order_key(self) -> tuple[str, ...]:
        return self.key

    @property
    def declared_stream(self) -> Source:
        return self

    @property
    def state_parts(self) -> dict[str, Any]:
        """A topic, and the event time. Columns count where they are read; a record that lacks one which is not null is a dead letter."""
        needed = [column.name for column in self.columns if not column.nullable]
        from_elsewhere = None if self.connector is None else [self.connector, self.columns]
        time = None if self.time is None else self.time.typed
        return {"topic": self.name, "time": time, "not null": needed, "source": from_elsewhere}

    @property
    def does(self) -> str:
        key = f", key {', '.join(self.key)}" if self.key else ""
        time = f", time {self.time}, watermark {self.watermark}" if self.time else ""
        return f"stream ({declared_columns(self.columns)}){key}{time}"


@dataclass(frozen=True)
class Step(Node):
    """A node made from one other."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def keys(self) -> tuple[str, ...]:
        kept = self.input.keys
        return kept if all(name in self.columns.names for name in kept) else ()


@dataclass(frozen=True)
class KeyedStep(Step):
    """A step that keeps state for each key, and needs the records of a key one by one."""

    stateful: ClassVar[bool] = True
    counts_each: ClassVar[bool] = True

    by: tuple[str, ...]

    @property
    def keyed_by(self) -> tuple[str, ...]:
        return self.by

    @property
    def gathers(self) -> bool:
        return True


@dataclass(frozen=True)
class TableStep(Step):
    """A step that keeps rows, each of which is live until it is replaced or retracted."""

    stateful: ClassVar[bool] = True

    @property
    def changes(self) -> bool:
        return True

    @property
    def restates(self) -> bool:
        return False


def column(node: Node, name: str, role: str) -> pa.Field:
    """A column of a node by its name, or an error that says what there is."""
    if name not in node.columns.names:
        raise PlanError(
            f"{role} {name!r}: {node.name!r} has no such column",
            hint=choices(name, node.columns.names, "columns"),
            where=caller() or node.where,
        )
    return node.columns.field(name)


def told_apart(node: Node) -> str:
    """What would tell the records of a node apart that change and have no key: a remedy, in words."""
    lost = next((before for before in node.followed if before.changes and not before.keys), None)
    return node.keeps_key if lost is None else told_apart(lost)


def facts_first(node: Node) -> str:
    """How a step that accepts only facts can follow a node whose results change, in words. Panes that repeat others retract nothing."""
    mode = 'emit panes with mode="retracting", then ' if node.restates else ""
    return f"{mode}take the changes as facts first: .to_stream()"


def timed_first(node: Node) -> str:
    """How a node gets event time and a watermark, in words."""
    sources = (before.declared_stream for before in upstream(node))
    tables = [source for source in sources if source is not None and bool(getattr(source.connector, "table_by", ()))]
    if not tables:
        return 'declare the stream with time= and watermark=hr.bounded("30 seconds")'
    declared = f'app.stream({tables[0].name!r}, ..., time=, watermark=hr.bounded("30 seconds"), source=...), then .to_table(key)'
    return f"app.table has no event time; read the topic as a stream: {declared}"


def upstream(node: Node) -> Iterator[Node]:
    """A node and all before it, inputs first."""
    for before in node.inputs:
        yield from upstream(before)
    yield node
