"""Alerts of an app: conditions over measured facts of its job, checked when they are declared."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from headrace.core.durations import spelled
from headrace.core.errors import PlanError

FACTS: Mapping[str, str] = {
    "running": "1 if the job runs, else 0",
    "failed": "1 if its last run failed or was killed",
    "lag_records": "records that wait to be taken in",
    "lag_seconds": "event time between the records that wait and those taken in",
    "lag_growth": "by how many records a second the lag has grown in the last five minutes",
    "watermark_delay": "seconds between the watermark and the wall clock",
    "watermark_held": "seconds of event time that the slowest partition is behind the fastest",
    "late_share": "late records among those of the last five minutes",
    "dead_letters": "dead letters of the last five minutes",
    "dead_letter_share": "dead letters among the records of the last five minutes",
    "duplicate_share": "duplicates among the records of the last five minutes",
    "in_rate": "records a second that were taken in, over the last five minutes",
    "out_rate": "rows a second that views and sinks were given, over the last five minutes",
    "state_rows": "rows that all steps keep",
    "state_bytes": "bytes of state",
    "state_growth": "by which share the bytes of state have grown in the last hour",
    "epoch_seconds": "how long the last epoch took",
    "commit_age": "seconds since the last epoch was committed",
    "restarts": "how often the job was started again in this run",
}
"""The facts that a condition may name, and what each means."""

_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_COMPUTED: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip


@dataclass(frozen=True)
class Alert:
    """A condition that is told once it has held for a while, and once more when it does not any longer."""

    name: str
    condition: str
    held_for: timedelta
    message: str
    where: str | None = None

    def __post_init__(self) -> None:
        tree = self._tree()
        for node in ast.walk(tree):
            self._check(node)
        if not isinstance(tree, ast.Compare | ast.BoolOp | ast.UnaryOp):
            raise self._refused("it compares nothing")
        if self.held_for < timedelta(0):
            raise PlanError(f"for_={spelled(self.held_for)} of alert {self.name!r} is negative", hint='for_="5 minutes"', where=self.where)

    @property
    def facts(self) -> tuple[str, ...]:
        """The facts that the condition names."""
        return tuple(dict.fromkeys(node.id for node in ast.walk(self._tree()) if isinstance(node, ast.Name)))

    def holds(self, facts: Mapping[str, float | None]) -> bool:
        """Whether the condition is true; a fact that is not known makes it false."""
        if any(facts.get(name) is None for name in self.facts):
            return False
        try:
            return bool(_value(self._tree(), facts))
        except ZeroDivisionError:
            return False

    def _tree(self) -> ast.expr:
        try:
            return ast.parse(self.condition, mode="eval").body
        except (SyntaxError, ValueError) as error:
            raise self._refused("it cannot be read") from error

    def _check(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name) and node.id not in FACTS:
            near = get_close_matches(node.id, FACTS, n=3) or sorted(FACTS)
            raise PlanError(f"alert {self.name!r}: {node.id!r} is not measured", hint=f"facts: {', '.join(near)}", where=self.where)
        number = isinstance(node, ast.Constant) and isinstance(node.value, int | float)
        allowed = (ast.Name, ast.Load, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.BinOp, ast.UnaryOp, ast.Not, ast.USub)
        if not number and not isinstance(node, (*allowed, *_COMPARED, *_COMPUTED)):
            raise self._refused(f"{type(node).__name__.lower()!r} is not part of a condition")

    def _refused(self, fact: str) -> PlanError:
        return PlanError(
            f"alert {self.name!r}: {self.condition!r} is not a condition: {fact}",
            hint='compare facts with numbers: "late_share > 0.01 and in_rate > 10"',
            where=self.where,
        )


def _value(node: ast.expr, facts: Mapping[str, float | None]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return facts[name]
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_value(value, facts) for value in values)
        case ast.BoolOp(values=values):
            return any(_value(value, facts) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, facts)
        case ast.UnaryOp(operand=operand):
            return -_value(operand, facts)
        case ast.BinOp(left=left, op=kind, right=right):
            return _COMPUTED[type(kind)](_value(left, facts), _value(right, facts))
        case ast.Compare(left=left, ops=kinds, comparators=others):
            values = [_value(part, facts) for part in (left, *others)]
            return all(_COMPARED[type(kind)](*pair) for kind, pair in zip(kinds, pairwise(values), strict=True))
    raise AssertionError(f"{type(node).__name__} was checked")


def _minutes(number: int) -> timedelta:
    return timedelta(minutes=number)


BUILT_IN: tuple[Alert, ...] = (
    Alert("failed", "failed == 1", _minutes(0), "the job failed or was killed; headrace why tells how it ended"),
    Alert("lag grows", "lag_records > 10000 and lag_growth > 0", _minutes(10), "the job falls behind; look for a slow sink or a hot key"),
    Alert("watermark held", "watermark_held > 60", _minutes(5), "one partition holds the watermark; headrace why names it"),
    Alert("late records", "late_share > 0.01", _minutes(5), "more than one record in a hundred is late; headrace lateness tells what fits"),
    Alert("dead letters", "dead_letters > 0", _minutes(0), "records could not be read or computed; their topic has the reasons"),
    Alert("state grows", "state_bytes > 100000000 and state_growth > 0.5", _minutes(30), "state grew by half in an hour; is it bounded?"),
    Alert("long epochs", "epoch_seconds > 60", _minutes(5), "epochs take more than a minute; let them take in less: --rows-per-epoch"),
    Alert("old commit", "commit_age > 300 and lag_records > 0", _minutes(1), "records wait, and no epoch was committed for five minutes"),
)
"""The alerts that every job has."""
