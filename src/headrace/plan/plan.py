"""A whole plan: the sources, and the views and sinks that want results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.core.errors import PlanError
from headrace.plan.changing import refuse_changes_where_only_facts_fit
from headrace.plan.checks import check
from headrace.plan.event_time import refuse_an_alignment_that_may_stop
from headrace.plan.nodes import Node, Source
from headrace.plan.remarks import remark
from headrace.plan.sinks import Target, folding_key
from headrace.plan.topics import accounting_topic, dead_topic, hot_topic, late_topic


@dataclass(frozen=True)
class View:
    """A table that readers query: the changelog of a node folded by key."""

    name: str
    node: Node
    key: tuple[str, ...]

    @property
    def folds_by(self) -> tuple[str, ...]:
        return self.key

    @property
    def does(self) -> str:
        return f"view by {', '.join(self.key)}"


@dataclass(frozen=True)
class Sink:
    """A node's records, written elsewhere; `target` is a connector's declaration."""

    name: str
    node: Node
    target: Target

    @property
    def key(self) -> tuple[str, ...]:
        """Records of a sink lie where they come from: no key spreads them."""
        return ()

    @property
    def folds_by(self) -> tuple[str, ...]:
        """The key by which its rows replace each other; a sink of facts has none."""
        return folding_key(self.node, self.target)

    @property
    def does(self) -> str:
        return f"sink to {self.target}"


Output = View | Sink


@dataclass(frozen=True)
class Plan:
    """What an app means: every node that an output needs, in an order in which inputs come first."""

    name: str
    outputs: tuple[Output, ...]

    def __post_init__(self) -> None:
        if not self.outputs:
            raise PlanError(
                f"app {self.name!r} has no view and no sink", why="nothing would be computed", hint='declare app.view("name", stream)'
            )
        check(self.nodes)
        self._refuse_a_name_for_two()
        refuse_an_alignment_that_may_stop(self.sources)
        for output in self.outputs:
            if isinstance(output, Sink):
                refuse_changes_where_only_facts_fit(output.name, output.node, output.target)
        remark(self.nodes)

    @property
    def nodes(self) -> tuple[Node, ...]:
        found: dict[str, Node] = {}
        for output in self.outputs:
            for node in _upstream(output.node):
                if found.setdefault(node.name, node) is not node and found[node.name] != node:
                    raise PlanError(
                        f"two steps are called {node.name!r}",
                        why="an aggregation has one way to give out results, and one state",
                        hint="where it is given out in two ways, write window(...).agg(...) again before the other emit(...)",
                        where=node.where,
                    )
        return tuple(found.values())

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(node for node in self.nodes if isinstance(node, Source))

    def readers(self, node: Node) -> list[Node | Output]:
        """What takes in the records of a node."""
        # A stream that is united with itself is read twice.
        steps: list[Node | Output] = [other for other in self.nodes for taken in other.inputs if taken.name == node.name]
        return steps + [output for output in self.outputs if output.node.name == node.name]

    def _refuse_a_name_for_two(self) -> None:
        """Records are sent to steps, outputs and topics by name; what comes from elsewhere has no topic here."""
        taken = {node.name for node in self.nodes if not isinstance(node, Source) or node.connector is None}
        taken |= {topic(source.name) for source in self.sources for topic in (late_topic, dead_topic)}
        taken |= {accounting_topic(self.name), hot_topic(self.name)}
        for output in self.outputs:
            if output.name in taken:
                kind = "view" if isinstance(output, View) else "sink"
                raise PlanError(
                    f"{kind} {output.name!r} has the name of a stream, a step or a topic of the app",
                    why="what is meant for the one would come to the other",
                    hint="give it a name of its own",
                    where=output.node.where,
                )


def _upstream(node: Node) -> Iterator[Node]:
    for before in node.inputs:
        yield from _upstream(before)
    yield node
