"""Canonical text of whatever a plan is made of: equal exactly where two declarations compute the same.

Names of Python variables, blanks, comments, docstrings and line numbers are not part of it. An object is told by what pickle would store
of it, and by its class alone where that stores nothing: a lock, a connection.
"""

from __future__ import annotations

import copyreg
import dataclasses
import enum
import hashlib
import os
import random
import types
import weakref
from collections.abc import Iterable, Mapping, Set
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.core.secret import Secret
from headrace.plan.evolution.code import class_parts, descriptor_parts, function_parts, is_builtin, of_the_user
from headrace.plan.expressions import Expression, Typed
from headrace.plan.nodes import Node

# What every node has: none of it says what the node computes.
COMMON = frozenset(field.name for field in dataclasses.fields(Node))
_PLAIN = (bool, int, float, complex, str, bytes, Decimal, date, time, tzinfo, type(None), type(...))
# These differ from run to run without a change of the app.
_RANDOM = (random.Random, np.random.Generator, np.random.BitGenerator, np.random.RandomState)
_PER_RUN = (*_RANDOM, type(os.environ), weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)
# Of pickle: buffers are part of what an object gives.
_PROTOCOL = 4


class _Unreadable(Exception):
    """Pickle stores nothing of an object."""


def digest(*parts: Any) -> str:
    """A short hash of the canonical text of some values.

    >>> digest(1, "a") == digest(1, "a"), digest(1, "a") == digest("1", "a")
    (True, False)
    """
    return hashlib.sha256("\n".join(canonical(part) for part in parts).encode()).hexdigest()[:16]


def canonical(value: Any) -> str:
    """A value as text, the same for equal values."""
    return _CanonicalWriter().text(value)


class _CanonicalWriter:
    def __init__(self) -> None:
        # An object may refer to its owner.
        self._open: list[int] = []
        # Parts of expressions, by their identity.
        self._texts: dict[int, str] = {}
        # Functions and classes of the user's, in the order in which they were met: each is written once, however often it is referred to.
        self._code: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._in_code = False
        self._in_package = 0

    def text(self, value: Any) -> str:
        lines = [self._written(value)]
        self._in_code = True
        while len(self._code) >= len(lines):
            lines.append(self._definition(self._code[len(lines) - 1]))
        return "\n".join(lines)

    def _definition(self, value: Any) -> str:
        if isinstance(value, type):
            return f"class {self._named(class_parts(value))}"
        return f"function {self._named(function_parts(value))}"

    def _written(self, value: Any) -> str:
        if id(value) in self._texts:
            return self._texts[id(value)]
        if isinstance(value, enum.Enum):
            return f"{type(value).__qualname__}.{value.name}{f' {self._class(type(value))}' if _of_the_user(value) else ''}"
        if isinstance(value, _PLAIN) and not _of_the_user(value):
            return f"{type(value).__name__} {value!r}"
        if id(value) in self._open:
            return f"<{len(self._open) - self._open.index(id(value))} up>"
        self._open.append(id(value))
        try:
            return self._compound(value)
        finally:
            self._open.pop()

    def _compound(self, value: Any) -> str:
        if isinstance(value, Typed):
            self._write_parts(value.term)
            # Only Spark knows what it evaluates itself; there the text as it was read tells expressions apart.
            return self._listed("expression", [value.term] if value.fused else [value.term, value.expression, value.type])
        if isinstance(value, Expression):
            return self._written(value.root)
        if isinstance(value, _PER_RUN):
            return self._class(type(value))
        if isinstance(value, pa.Schema):
            return self._listed("schema", [[field.name, field.type, field.nullable] for field in value])
        if isinstance(value, timedelta | pa.DataType | pa.Scalar | Secret):
            return "secret" if isinstance(value, Secret) else f"{type(value).__name__} {value}"
        if isinstance(value, Mapping | Set | list | tuple) and not _of_the_user(value):
            return self._collection(value)
        if isinstance(value, type | types.ModuleType):
            return self._class(value) if isinstance(value, type) else f"module {value.__name__}"
        return self._callable(value) or self._object(value)

    def _collection(self, value: Any) -> str:
        """Code may read what it refers to in order, and tell a list from a tuple; a plan does neither."""
        kind = f" {type(value).__name__}" if self._in_code else ""
        if isinstance(value, Mapping):
            items = [f"{self._written(key)}: {self._written(held)}" for key, held in value.items()]
            return f"map{kind}({', '.join(items if self._in_code else sorted(items))})"
        if isinstance(value, Set):
            return f"set{kind}({', '.join(sorted(self._written(one) for one in sorted(value, key=_rank)))})"
        return self._listed(f"list{kind}", value)

    def _write_parts(self, term: Any) -> None:
        """Write the parts of an expression, the innermost first: one with hundreds of operators in a row is as deep as that."""
        parts, found = [term], list[Any]()
        while parts:
            part = parts.pop()
            if isinstance(part, list | tuple):
                parts += part
            elif _of_expressions(part):
                found.append(part)
                parts += [getattr(part, field.name) for field in dataclasses.fields(part)]
        for part in reversed(found):
            self._texts[id(part)] = self._written(part)

    def _listed(self, kind: str, values: Iterable[Any]) -> str:
        return f"{kind}({', '.join(self._written(one) for one in values)})"

    def _named(self, values: Mapping[str, Any]) -> str:
        """Values by names, whose order says nothing."""
        return f"map({', '.join(f'str {name!r}: {self._written(values[name])}' for name in sorted(values))})"

    def _class(self, kind: type) -> str:
        """A class by its name, or, where the user wrote it, by its place among definitions."""
        return self._defined(kind) if of_the_user(kind.__module__) else f"class {kind.__module__}.{kind.__qualname__}"

    def _defined(self, value: Any) -> str:
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._code)
            self._code.append(value)
        return f"definition {self._numbers[id(value)]}"

    def _callable(self, value: Any) -> str:
        parts = descriptor_parts(value)
        if parts is not None:
            return self._listed(type(value).__name__, parts)
        if isinstance(value, types.FunctionType):
            return self._defined(value)
        if is_builtin(value):
            owner = getattr(value, "__self__", None)
            of = "" if owner is None or isinstance(owner, types.ModuleType) else f" of {self._written(owner)}"
            return f"{getattr(value, '__module__', '')}.{value.__qualname__}{of}"
        return ""

    def _object(self, value: Any) -> str:
        kind = type(value)
        if isinstance(value, Node):
            return self._node(value)
        if dataclasses.is_dataclass(value) and not _of_the_user(value):
            # Of an expression, what is not compared is where it stands in a text.
            fields = [field.name for field in dataclasses.fields(value) if field.compare or not _of_expressions(value)]
            return f"{self._class(kind)} {self._named({name: getattr(value, name) for name in fields})}"
        if isinstance(value, np.ndarray):
            return f"array {value.dtype} {value.shape} {value.tobytes().hex() if value.dtype != object else self._written(value.tolist())}"
        return self._class(kind) if str(kind.__module__).partition(".")[0] == "headrace" else self._content(value)

    def _content(self, value: Any) -> str:
        """An object by what pickle stores. Of a package's object all must be stored, or it is no value: a client, a thread."""
        packaged = not _of_the_user(value)
        self._in_package += packaged
        in_code, self._in_code = self._in_code, True
        try:
            return f"{self._class(type(value))} {self._written(_stored(value))}"
        except _Unreadable:
            if packaged and self._in_package > 1:
                raise
            return self._class(type(value))
        finally:
            self._in_package -= packaged
            self._in_code = in_code

    def _node(self, node: Node) -> str:
        """A node that a step refers to by what it says itself; what it reads has a fingerprint of its own."""
        if not node.inputs:
            return f"node {node.name}"
        fields = {field.name: getattr(node, field.name) for field in dataclasses.fields(node) if field.name not in COMMON}
        return f"node {type(node).__name__} {self._named({name: held for name, held in fields.items() if not isinstance(held, Node)})}"


def _stored(value: Any) -> Any:
    """What pickle stores of an object: how to make it, its state and its items."""
    write = copyreg.dispatch_table.get(type(value))
    try:
        stored: Any = value.__reduce_ex__(_PROTOCOL) if write is None else write(value)
    except Exception as error:
        raise _Unreadable from error
    if isinstance(stored, str):
        return stored
    function, given, state, items, pairs = (*stored, None, None, None)[:5]
    if isinstance(state, dict) and all(isinstance(name, str) for name in state):
        # Attributes have no order.
        state = sorted(state.items())
    return [function, given, state, None if items is None else list(items), None if pairs is None else list(pairs)]


def _of_expressions(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and type(value).__module__.startswith("headrace.plan.expressions")


def _of_the_user(value: Any) -> bool:
    return of_the_user(type(value).__module__)


def _rank(value: Any) -> tuple[str, int]:
    """The place of an element of a set of functions or classes, which the set itself does not order."""
    code = getattr(value, "__code__", None)
    return str(getattr(value, "__qualname__", "")), 0 if code is None else int(code.co_firstlineno)
