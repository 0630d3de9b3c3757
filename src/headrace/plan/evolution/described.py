"""A plan as a job records it: its steps with state, its outputs and its sources, each with the parts of its fingerprint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace.core.durations import spelled
from headrace.plan.evolution.canonical import digest
from headrace.plan.evolution.fingerprints import Fingerprints
from headrace.plan.nodes import TUNABLE, Node, Source, upstream
from headrace.plan.plan import Output, Plan

Parts = Mapping[str, str]
CODE = "code"


@dataclass(frozen=True)
class StepIdentity:
    """A step with state. `addresses` are the names that it has by the views and sinks behind it; the first is its own."""

    name: str
    """Its name in the plan, which accounting and explanations use."""
    addresses: tuple[str, ...]
    does: str
    parts: Parts
    tunable: Parts = field(default_factory=dict)
    aggregates: Parts = field(default_factory=dict)
    """The aggregates by their fingerprints, as they were written."""
    sheds: bool = False
    """Whether aggregates can be dropped from its state."""

    @property
    def fingerprint(self) -> str:
        """Tells its state from that of every other step; its aggregates are told apart by their columns."""
        return digest(dict(self.parts))


@dataclass(frozen=True)
class OutputIdentity:
    """A view or sink. `table` names the steps whose live rows it shows, if there are some."""

    name: str
    kind: str
    does: str
    parts: Parts
    table: str = ""


@dataclass(frozen=True)
class SourceIdentity:
    """A stream that is read, and how it knows event time."""

    name: str
    does: str
    watermark: str = ""


@dataclass(frozen=True)
class Described:
    """All of a plan that a change is judged by."""

    steps: tuple[StepIdentity, ...] = ()
    outputs: tuple[OutputIdentity, ...] = ()
    sources: tuple[SourceIdentity, ...] = ()
    foreign: tuple[str, ...] = ()
    """The fingerprints of the steps that Spark evaluates: each reads the source once more, and Spark's checkpoint counts that."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, content: Mapping[str, Any]) -> Described:
        steps = tuple(StepIdentity(**{**step, "addresses": tuple(step["addresses"])}) for step in content["steps"])
        outputs = tuple(OutputIdentity(**output) for output in content["outputs"])
        return cls(steps, outputs, tuple(SourceIdentity(**source) for source in content["sources"]), tuple(content["foreign"]))


def described(plan: Plan) -> Described:
    """A plan as a job records it."""
    prints, addresses = Fingerprints(plan), _addresses(plan)
    steps = tuple(_step(node, prints, tuple(addresses[node.name])) for node in plan.nodes if node.stateful)
    outputs = tuple(_output(output, prints) for output in plan.outputs)
    foreign = tuple(sorted(prints.records(node) for node in plan.nodes if node.foreign))
    return Described(steps, outputs, tuple(map(_source, plan.sources)), foreign)


def tables_of(node: Node) -> tuple[str, ...]:
    """The steps whose live rows a node shows, with only stateless steps between that Headrace evaluates itself; none if some are not
    known."""
    if node.stateful:
        return (node.name,) if node.snapshots and not node.foreign else ()
    found = [tables_of(before) for before in node.inputs] if node.changes and not node.foreign else []
    return tuple(name for names in found for name in names) if all(found) else ()


def _step(node: Node, prints: Fingerprints, addresses: tuple[str, ...]) -> StepIdentity:
    tunable = {name: _spelled(getattr(node, name)) for name in TUNABLE if hasattr(node, name)}
    code = prints.code(node)
    tunable |= {CODE: code} if code else {}
    tunable |= {name: digest(part) for name, part in node.result_parts.items()}
    calls = {call.placeholder: str(call) for call in node.aggregates}
    # Records that wait one by one are in an order that all their arguments decide.
    return StepIdentity(node.name, addresses, node.does, prints.state(node), tunable, calls, bool(calls) and not node.gathers)


def _output(output: Output, prints: Fingerprints) -> OutputIdentity:
    tables = tables_of(output.node)
    parts, code = prints.output(output), prints.code(output.node)
    # A table has the rows that the former code made, and its views show them.
    parts |= {CODE: code} if code and not tables else {}
    return OutputIdentity(output.name, output.kind, output.does, parts, ", ".join(tables))


def _source(source: Source) -> SourceIdentity:
    rule = source.watermark
    return SourceIdentity(source.name, source.does, "" if rule is None else f"{rule}, at most {spelled(rule.max_ahead)} ahead")


def _addresses(plan: Plan) -> dict[str, list[str]]:
    """The names of the steps with state: chosen, or by what is behind them. No name depends on what else the app has."""
    found: dict[str, list[str]] = {}
    for output in plan.outputs:
        counted: Counter[str] = Counter()
        for node in _once(output.node):
            if node.stateful:
                kind = _kind(node)
                counted[kind] += 1
                number = f"-{counted[kind]}" if counted[kind] > 1 else ""
                found.setdefault(node.name, []).append(f"{output.name}/{kind}{number}")
    return {name: [name, *made] if _chosen(name) else made for name, made in found.items()}


def _once(node: Node) -> Iterator[Node]:
    """A node and all before it, each once, from the output to the sources: what is added in front moves no number of what is behind."""
    return iter({one.name: one for one in reversed(list(upstream(node)))}.values())


def _chosen(name: str) -> bool:
    """Whether a step was given its name: others are named after what they read."""
    return "." not in name


def _kind(node: Node) -> str:
    return node.name if _chosen(node.name) else node.name.rpartition(".")[2].partition("#")[0]


def _spelled(value: Any) -> str:
    return "none" if value is None else spelled(value)
