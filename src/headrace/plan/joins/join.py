"""Base class of joins: two inputs, the columns that must be equal, and the columns of a result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from headrace.core.columns.names import Names, listed
from headrace.core.columns.schema import type_name
from headrace.core.errors import PlanError
from headrace.plan.expressions import kinds
from headrace.plan.nodes import Node, column

LEFT, RIGHT = "left", "right"
INNER, FULL = "inner", "full"
KINDS = (INNER, LEFT, RIGHT, FULL)
On = Names | Mapping[str, str]


@dataclass(frozen=True)
class Sides:
    """Two nodes, the pairs of columns that must be equal, and what is added to the name of a right column that is taken."""

    left: Node
    right: Node
    on: tuple[tuple[str, str], ...]
    how: str
    suffix: str = "_right"

    @property
    def left_on(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.on)

    @property
    def right_on(self) -> tuple[str, ...]:
        return tuple(name for _, name in self.on)

    @property
    def keeps_left(self) -> bool:
        """Whether a left row without a match is a result."""
        return self.how in (LEFT, FULL)

    @property
    def keeps_right(self) -> bool:
        """Whether a right row without a match is a result."""
        return self.how in (RIGHT, FULL)

    @property
    def shown(self) -> dict[str, str]:
        """The name in the result of each right column; those that must be equal have that of the left one."""
        equal = {right: left for left, right in self.on}
        # Expressions do not distinguish upper from lower case.
        taken = {name.lower() for name in self.left.columns.names}
        return {name: equal.get(name) or (f"{name}{self.suffix}" if name.lower() in taken else name) for name in self.right.columns.names}

    @property
    def columns(self) -> pa.Schema:
        """All left columns, then the right ones that are not compared. A right row without a match shows its own values under `on`."""
        compared = {left: self.right.columns.field(right).nullable for left, right in self.on}
        left = [self._nullable(field, self.keeps_right and compared.get(field.name, True)) for field in self.left.columns]
        rest = [field for field in self.right.columns if field.name not in self.right_on]
        return pa.schema([*left, *(self._nullable(field, self.keeps_left).with_name(self.shown[field.name]) for field in rest)])

    @property
    def words(self) -> str:
        equal = ", ".join(left if left == right else f"{left} = {right}" for left, right in self.on)
        return f"{self.how} join on {equal}"

    def _nullable(self, field: pa.Field, missing: bool) -> pa.Field:
        return field.with_nullable(True) if missing else field


@dataclass(frozen=True)
class Join(Node):
    """A step with a left and a right input, co-located by the columns that must be equal."""

    stateful: ClassVar[bool] = True

    sides: Sides

    def __post_init__(self) -> None:
        if not isinstance(self.sides.suffix, str):
            raise PlanError(f"suffix={self.sides.suffix!r} of {self.said} is not text", hint='suffix="_right"', where=self.where)
        twice = self._twice()
        if twice:
            raise PlanError(
                f"{self.said} has two columns {' and '.join(map(repr, twice))}",
                hint=f"give another suffix= than {self.sides.suffix!r}, or rename one: select(...) with as",
                where=self.where,
            )

    @property
    def said(self) -> str:
        return f"the join of {self.sides.left.name!r} and {self.sides.right.name!r}"

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.sides.left, self.sides.right)

    @property
    def ports(self) -> tuple[str, ...]:
        return (LEFT, RIGHT)

    @property
    def gathers(self) -> bool:
        return True

    @property
    def state_parts(self) -> dict[str, Any]:
        """Arguments, as the user calls them. What each side is, its own steps say."""
        return {"on": self.sides.on, "how": self.sides.how, "suffix": self.sides.suffix}

    def _twice(self) -> tuple[str, ...]:
        """The names of two columns that are one name in an expression, of which one was renamed or both sides have one."""
        sides = self.sides
        right = {name: shown for name, shown in sides.shown.items() if name not in sides.right_on}
        for name, shown in right.items():
            others = [other for one, other in right.items() if one != name and (name != shown or one != other)]
            same = next((other for other in (*sides.left.columns.names, *others) if other.lower() == shown.lower()), None)
            if same is not None:
                return tuple(dict.fromkeys((shown, same)))
        return ()

    def refuse_hows(self, known: Sequence[str]) -> None:
        """A kind of join that this one cannot be."""
        if self.sides.how not in known:
            raise PlanError(f"how={self.sides.how!r} of {self.said} is not known here", hint=f"one of {', '.join(known)}", where=self.where)


def pairs_of(on: On, left: Node, right: Node, at: str | None) -> tuple[tuple[str, str], ...]:
    """The columns that must be equal: names that both sides have, or a mapping from those of the left to those of the right."""
    pairs = tuple(on.items()) if isinstance(on, Mapping) else tuple((name, name) for name in listed(on))
    if not pairs:
        raise PlanError(
            f"the join of {left.name!r} and {right.name!r} compares no column",
            why="every row would meet every other",
            hint='name the columns that must be equal: on="user", or on={"user": "id"}',
            where=at,
        )
    for mine, other in pairs:
        one, two = column(left, mine, "join on").type, column(right, other, "join on").type
        if not one.equals(two):
            raise PlanError(
                f"join on {mine!r}, which is {type_name(one)} in {left.name!r}, and {other!r}, which is {type_name(two)} in {right.name!r}",
                why="keys of two types are found on two shards, and never meet",
                hint=f"give both one type: {' and '.join(_casts((left, mine), (right, other)))}",
                where=at,
            )
        if pa.types.is_nested(one):
            raise PlanError(
                f"join on {mine!r}, which is {type_name(one)}",
                why="records are spread and compared by plain values",
                hint="take a part of it into a column first: with_columns(...)",
                where=at,
            )
    _refuse_twice([mine for mine, _ in pairs], at)
    _refuse_twice([other for _, other in pairs], at)
    return pairs


def _casts(*columns: tuple[Node, str]) -> Iterator[str]:
    """The casts that give two columns one type that has the values of both, in words."""
    one, two = (node.columns.field(name).type for node, name in columns)
    both = kinds.STRING if kinds.STRING in (one, two) else kinds.common(one, two) or kinds.STRING
    for node, name in columns:
        if node.columns.field(name).type != both:
            first = f", before it is the key of {node.name!r}" if node.changes and name in node.keys else ""
            yield f"with_columns({name}='cast({name} as {kinds.named(both)})') of {node.name!r}{first}"


def _refuse_twice(names: Iterable[str], at: str | None) -> None:
    seen = set[str]()
    for name in names:
        if name in seen:
            raise PlanError(f"join on {name!r} twice", hint="name it once", where=at)
        seen.add(name)
