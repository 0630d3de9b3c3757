"""The steps of a plan that judge each record by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from headrace.plan.expressions import Typed
from headrace.plan.expressions.terms import Constant, Field
from headrace.plan.nodes import Node, Step

OPERATION = pa.field("op", pa.string())
PLACE = pa.struct([pa.field("partition", pa.int32()), pa.field("offset", pa.int64())])


@dataclass(frozen=True)
class Where(Step):
    """Only the records for which a condition is true."""

    passes_windows: ClassVar[bool] = True
    # A pane that is filtered out would leave an older one in place.
    counts_each: ClassVar[bool] = True

    condition: Typed

    def constant(self, name: str) -> Any:
        return self.input.constant(name)

    @property
    def expressions(self) -> Iterator[Typed]:
        yield self.condition

    @property
    def does(self) -> str:
        return f"where {self.condition.words}"


@dataclass(frozen=True)
class Select(Step):
    """Other columns, each from an expression."""

    passes_windows: ClassVar[bool] = True

    made: tuple[tuple[str, Typed], ...]

    def replaces(self, name: str) -> bool:
        term = dict(self.made)[name].term if name in self.columns.names else None
        return term is not None and not (isinstance(term, Field) and term.name == name)

    def constant(self, name: str) -> Any:
        term = dict(self.made)[name].term
        if isinstance(term, Field):
            return self.input.constant(term.name)
        return term.value if isinstance(term, Constant) else None

    def passed_as(self, name: str) -> str | None:
        return next((new for new, typed in self.made if isinstance(typed.term, Field) and typed.term.name == name), None)

    @property
    def keys(self) -> tuple[str, ...]:
        """The key under its new names, if each of its columns is passed on as it is."""
        passed = [self.passed_as(name) for name in self.input.keys]
        return tuple(name for name in passed if name is not None) if None not in passed else ()

    @property
    def keeps_key(self) -> str:
        return f"keep {', '.join(self.input.keys)}, the key of {self.input.name!r}, as it is in {self.name!r}"

    @property
    def expressions(self) -> Iterator[Typed]:
        return (typed for _, typed in self.made)

    @property
    def does(self) -> str:
        words = (name if typed.words.strip("`") == name else f"{typed.words} as {name}" for name, typed in self.made)
        return f"select {', '.join(words)}"


@dataclass(frozen=True)
class Retyped(Select):
    """The same columns for a union: those of null alone have their type in the other streams."""

    gives_types: ClassVar[bool] = True


@dataclass(frozen=True)
class Explode(Step):
    """One record for each element of an array column, under the name `into`."""

    array: Typed
    into: str

    def replaces(self, name: str) -> bool:
        return self.into == name

    @property
    def keys(self) -> tuple[str, ...]:
        return ()

    @property
    def keeps_key(self) -> str:
        return "make records of elements before the table is made: stream.flat_map(...).to_table(key)"

    @property
    def expressions(self) -> Iterator[Typed]:
        yield self.array

    @property
    def does(self) -> str:
        return f"one record for each element of {self.array.words}, as {self.into}"


@dataclass(frozen=True)
class WithPlace(Step):
    """The records of a declared stream, each with its partition and offset under the name `into`."""

    into: str

    @property
    def does(self) -> str:
        return f"partition and offset as {self.into}"


@dataclass(frozen=True)
class Transform(Step):
    """The result of a function from a PySpark DataFrame to a PySpark DataFrame; evaluated by Spark."""

    function: Callable[[Any], Any] = field(compare=False)

    @property
    def frame_function(self) -> Callable[[Any], Any]:
        return self.function

    @property
    def state_parts(self) -> dict[str, Any]:
        """The code of the function may change."""
        return {"returns": self.columns}

    @property
    def keys(self) -> tuple[str, ...]:
        return ()

    @property
    def does(self) -> str:
        return f"transform {getattr(self.function, '__qualname__', type(self.function).__name__)}"

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        return (self.function,)

    @property
    def foreign(self) -> str:
        return "its function takes a PySpark DataFrame"


@dataclass(frozen=True)
class Union(Node):
    """The records of several streams with the same columns."""

    streams: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.streams

    @property
    def keys(self) -> tuple[str, ...]:
        """That of the tables, and a column with another constant in each: two of them may have rows with the same key."""
        keys = self.streams[0].keys
        if not self.changes or not keys or any(set(node.keys) != set(keys) for node in self.streams):
            return ()
        return next(((*keys, name) for name in self.columns.names if self._differs(name)), ())

    @property
    def keeps_key(self) -> str:
        facts = next((node for node in self.streams if not node.changes), None)
        tables = "" if facts is None else f"make {facts.name!r} a table, too: .to_table(key). Then "
        return (
            f"{tables}give the tables the same key, and each another constant, which becomes a part of it: "
            """one.with_columns(origin="'one'").union(two.with_columns(origin="'two'"))"""
        )

    @property
    def does(self) -> str:
        return "union"

    def _differs(self, name: str) -> bool:
        """Whether a column has a constant in each of the tables, and another in each."""
        values = [node.constant(name) for node in self.streams]
        return None not in values and len(set(values)) == len(values)


@dataclass(frozen=True)
class KeyBy(Step):
    """The same records under another key."""

    key: tuple[str, ...]

    @property
    def keyed_by(self) -> tuple[str, ...]:
        return self.key

    @property
    def order_key(self) -> tuple[str, ...]:
        return self.key

    def constant(self, name: str) -> Any:
        return self.input.constant(name)

    @property
    def does(self) -> str:
        return f"key by {', '.join(self.key)}"


@dataclass(frozen=True)
class ToStream(Step):
    """The changes of a table as facts: the columns, and `op` with insert, update or delete."""

    @property
    def keys(self) -> tuple[str, ...]:
        return ()

    @property
    def changes(self) -> bool:
        return False

    @property
    def moves(self) -> bool:
        return False

    @property
    def facts_of(self) -> Node | None:
        return self.input

    @property
    def does(self) -> str:
        return "changes as facts"
