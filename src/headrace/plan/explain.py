"""A plan in words: what each step does, which lane runs it and why, what it remembers and for how long."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import singledispatch

from headrace.core.durations import spelled
from headrace.core.schema import ddl
from headrace.plan.expressions import Typed
from headrace.plan.nodes import (
    Call,
    Explode,
    GroupAggregate,
    KeyBy,
    Node,
    Select,
    Source,
    ToStream,
    ToTable,
    Transform,
    Union,
    Where,
    WindowAggregate,
)
from headrace.plan.plan import Plan, View
from headrace.plan.windows import Hopping

ARROW, SPARK = "arrow", "spark"
_NOTHING = "nothing"


@dataclass(frozen=True)
class StepInWords:
    """One step or output of a plan. `reason` says why Spark itself must evaluate it, where it must."""

    step: str
    does: str
    reads: str
    lane: str
    reason: str
    state: str
    bound: str


@dataclass(frozen=True)
class Explanation:
    """A plan in words. `shards` is over how many parts the state of a step is spread, None before the job's first run."""

    steps: tuple[StepInWords, ...]
    shards: int | None = None

    def __str__(self) -> str:
        spread = "4 for each core, fixed by the first run" if self.shards is None else self.shards
        lines = [f"shards: {spread}"]
        for words in self.steps:
            lines += [words.step, f"  {words.does}"]
            lines += [f"  reads {words.reads}"] if words.reads else []
            lines += [f"  lane: {words.lane}{f', because {words.reason}' if words.reason else ''}"]
            lines += [f"  keeps {words.state}, bound: {words.bound}"] if words.bound else []
        return "\n".join(lines)


def explained(plan: Plan, shards: int | None = None) -> Explanation:
    """Every step in the order records meet them, then the views and sinks."""
    steps = [_in_words(node) for node in plan.nodes]
    outputs = [
        StepInWords(
            output.name,
            f"view by {', '.join(output.key)}" if isinstance(output, View) else f"sink to {output.target}",
            output.node.name, ARROW, "", _NOTHING, "",
        )
        for output in plan.outputs
    ]  # fmt: skip
    return Explanation((*steps, *outputs), shards)


def identity(plan: Plan) -> str:
    """What must stay the same for a job to go on with its state: one line a step."""
    return "\n".join(f"{words.step}: {words.does}{f' of {words.reads}' if words.reads else ''}" for words in explained(plan).steps)


def _in_words(node: Node) -> StepInWords:
    state, bound = _memory(node)
    reason = next((typed.reason for typed in _expressions(node) if not typed.fused), "")
    if isinstance(node, Transform):
        reason = "its function takes a PySpark DataFrame"
    reads = ", ".join(before.name for before in node.inputs)
    return StepInWords(node.name, _does(node), reads, SPARK if reason else ARROW, reason, state, bound)


@singledispatch
def _does(node: Node) -> str:
    raise TypeError(f"{type(node).__name__} has no words")


@_does.register
def _(node: Source) -> str:
    key = f", key {', '.join(node.key)}" if node.key else ""
    time = f", time {node.time}, watermark {node.watermark}" if node.time else ""
    return f"stream ({ddl(node.columns)}){key}{time}"


@_does.register
def _(node: Where) -> str:
    return f"where {_text(node.condition)}"


@_does.register
def _(node: Select) -> str:
    return f"select {', '.join(_named(name, typed) for name, typed in node.expressions)}"


@_does.register
def _(node: Explode) -> str:
    return f"one record for each element of {_text(node.expression)}, as {node.into}"


@_does.register
def _(node: Transform) -> str:
    return f"transform {getattr(node.function, '__qualname__', type(node.function).__name__)}"


@_does.register
def _(node: Union) -> str:
    return "union"


@_does.register
def _(node: KeyBy) -> str:
    return f"key by {', '.join(node.key)}"


@_does.register
def _(node: WindowAggregate) -> str:
    by = f" by {', '.join(node.by)}" if node.by else ""
    until = f", corrected until {spelled(node.emit.until)} after its end" if node.emit.until else ""
    return f"{node.window}{by}: {_aggregates(node)}{until}"


@_does.register
def _(node: GroupAggregate) -> str:
    return f"group by {', '.join(node.by)}: {_aggregates(node)}"


@_does.register
def _(node: ToTable) -> str:
    return f"latest record by {', '.join(node.key)}"


@_does.register
def _(node: ToStream) -> str:
    return "changes as facts"


def _memory(node: Node) -> tuple[str, str]:
    """What a step keeps, and when it lets go of it."""
    if isinstance(node, WindowAggregate):
        kept = node.emit.until + node.input.lateness
        if isinstance(node.window, Hopping):
            pane = timedelta(microseconds=math.gcd(_micros(node.window.size), _micros(node.window.hop)))
            return f"a row a key and pane of {spelled(pane)}", f"{spelled(node.window.size + kept)} behind the watermark"
        return "a row a key and session", f"{spelled(node.window.gap + kept)} after its last record"
    if isinstance(node, GroupAggregate | ToTable):
        return (
            "a row a key",
            f"{spelled(node.ttl)} after a key's last record" if node.ttl is not None else "none: as many as there are keys",
        )
    return _NOTHING, ""


def _expressions(node: Node) -> Iterator[Typed]:
    if isinstance(node, Where):
        yield node.condition
    elif isinstance(node, Select):
        yield from (typed for _, typed in node.expressions)
    elif isinstance(node, Explode):
        yield node.expression
    elif isinstance(node, WindowAggregate | GroupAggregate):
        for call in node.calls:
            yield from call.arguments
            if call.filter is not None:
                yield call.filter
        yield from (output.expression for output in node.outputs)


def _aggregates(node: WindowAggregate | GroupAggregate) -> str:
    calls = {call.placeholder: _call(call) for call in node.calls}
    words = []
    for output in node.outputs:
        text = _text(output.expression)
        for placeholder, call in calls.items():
            text = text.replace(f"`{placeholder}`", call)
        words.append(f"{text} as {output.name}")
    return ", ".join(words)


def _call(call: Call) -> str:
    arguments = ", ".join(_text(argument) for argument in call.arguments) or "*"
    return f"{call.function}({arguments})" + (f" filter (where {_text(call.filter)})" if call.filter is not None else "")


def _named(name: str, typed: Typed) -> str:
    text = _text(typed)
    return name if text.strip("`") == name else f"{text} as {name}"


def _text(typed: Typed) -> str:
    return " ".join(typed.expression.text.split())


def _micros(value: timedelta) -> int:
    return value // timedelta(microseconds=1)
