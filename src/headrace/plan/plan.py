"""A whole plan: the sources, and the views and sinks that need results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from headrace.core.errors import PlanError
from headrace.core.promise import IN_LOG
from headrace.plan.alerts import Alert
from headrace.plan.checks.all_checks import check
from headrace.plan.checks.columns import refuse_columns_of_no_type
from headrace.plan.checks.event_time import refuse_an_alignment_that_may_stop
from headrace.plan.checks.over_changes import refuse_changes_where_only_facts_fit
from headrace.plan.checks.remarks import remark
from headrace.plan.nodes import Node, Source, upstream
from headrace.plan.sinks import Target, folding_key
from headrace.plan.topics import accounting_topic, dead_topic, hot_topic, late_topic
from headrace.plan.waits import waits


@dataclass(frozen=True)
class View:
    """A table that readers query: the changelog of a node folded by key."""

    kind: ClassVar[str] = "view"

    name: str
    node: Node
    key: tuple[str, ...]

    @property
    def address(self) -> tuple[str, ...] | None:
        """The topic that its records are in, unlike any other of the app."""
        return ("log", self.name)

    @property
    def topic(self) -> str | None:
        """The topic of the log that it is written to."""
        return self.name

    @property
    def folds_by(self) -> tuple[str, ...]:
        return self.key

    @property
    def does(self) -> str:
        return f"view by {', '.join(self.key)}"

    @property
    def promise(self) -> str:
        """The guarantee to its readers, and its mechanism."""
        return str(IN_LOG)


@dataclass(frozen=True)
class Sink:
    """A node's records, written elsewhere; `target` is a connector's declaration."""

    kind: ClassVar[str] = "sink"

    name: str
    node: Node
    target: Target

    @property
    def address(self) -> tuple[str, ...] | None:
        """The topic that its records are in; None where the target has no topic."""
        return getattr(self.target, "address", None)

    @property
    def topic(self) -> str | None:
        """The topic of the log that it is written to; None where another system has its records."""
        kind, *rest = self.address or ("",)
        return rest[0] if kind == "log" else None

    @property
    def key(self) -> tuple[str, ...]:
        """The columns by which its records are distributed over tasks where no operator does so: those of a key have one writer, in their
        order."""
        return self.folds_by or self.target.key

    @property
    def folds_by(self) -> tuple[str, ...]:
        """The key by which its rows replace each other; a sink of facts has none."""
        return folding_key(self.node, self.target)

    @property
    def does(self) -> str:
        return f"sink to {self.target}"

    @property
    def promise(self) -> str:
        """The guarantee to its readers, and its mechanism."""
        return str(self.target.promise)


Output = View | Sink


class ReadingStep(NamedTuple):
    """A step that reads a node, and the port at which it does."""

    step: Node
    port: str = ""


@dataclass(frozen=True)
class Plan:
    """The meaning of an app: every node that an output needs, inputs first."""

    name: str
    outputs: tuple[Output, ...]
    alerts: tuple[Alert, ...] = ()

    def __post_init__(self) -> None:
        if not self.outputs:
            raise PlanError(
                f"app {self.name!r} has no view and no sink", why="nothing would be computed", hint='declare app.view("name", stream)'
            )
        check(self.nodes)
        self._refuse_a_name_for_two()
        refuse_an_alignment_that_may_stop(self.sources)
        waits(self.nodes)
        for output in self.outputs:
            refuse_columns_of_no_type(output.node)
        for sink in self.sinks:
            refuse_changes_where_only_facts_fit(sink.name, sink.node, sink.target)
        remark(self.nodes)

    @property
    def nodes(self) -> tuple[Node, ...]:
        found: dict[str, Node] = {}
        for output in self.outputs:
            for node in upstream(output.node):
                if found.setdefault(node.name, node) is not node and found[node.name] != node:
                    raise PlanError(
                        f"two steps are called {node.name!r}",
                        why="a step has one way to emit results, and one state",
                        hint="to emit in two ways, write window(...).agg(...), or join(...), again before the other emit(...)",
                        where=node.where,
                    )
        return tuple(found.values())

    @property
    def views(self) -> tuple[View, ...]:
        return tuple(output for output in self.outputs if isinstance(output, View))

    @property
    def sinks(self) -> tuple[Sink, ...]:
        return tuple(output for output in self.outputs if isinstance(output, Sink))

    @property
    def side_streams(self) -> tuple[tuple[Node, Source], ...]:
        """The late records and dead letters that steps read, each with the stream that they are of."""
        return tuple((node, source) for node in self.nodes if (source := node.side_of))

    @property
    def beyond_side_streams(self) -> frozenset[str]:
        """The steps that read late records or dead letters. What is late or bad there is not fed to such a stream again."""
        return frozenset(node.name for node in self.nodes if any(before.side_of is not None for before in upstream(node)))

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(source for node in self.nodes if (source := node.declared_stream))

    def steps_after(self, node: Node) -> list[ReadingStep]:
        """The steps that read a node, each with its port. Late records and dead letters do not count as reading."""
        # A stream that is merged or joined with itself is read twice.
        return [
            ReadingStep(other, port)
            for other in self.nodes
            if other.side_of is None
            for taken, port in zip(other.inputs, other.ports, strict=True)
            if taken.name == node.name
        ]

    def feeding_sides_of(self, source: Source) -> list[Node]:
        """A stream and the steps behind it, whose late records and dead letters are in its side topics."""
        beyond = self.beyond_side_streams
        return [node for node in self.nodes if node.name not in beyond and source.name in {before.name for before in upstream(node)}]

    def outputs_after(self, node: Node) -> list[Output]:
        """The views and sinks that have the records of a node."""
        return [output for output in self.outputs if output.node.name == node.name]

    def _refuse_a_name_for_two(self) -> None:
        """Records are sent to steps, outputs and topics by name; sources elsewhere have no topic here."""
        taken = {node.name for node in self.nodes if not ((source := node.declared_stream) and source.connector)}
        taken |= {topic(source.name) for source in self.sources for topic in (late_topic, dead_topic)}
        taken |= {accounting_topic(self.name), hot_topic(self.name)}
        for output in self.outputs:
            if output.name in taken:
                raise PlanError(
                    f"{output.kind} {output.name!r} has the name of a stream, a step or a topic of the app",
                    why="a view is a topic of its name, so records of the one would be in the other",
                    hint="give it a name of its own",
                    where=output.node.where,
                )
