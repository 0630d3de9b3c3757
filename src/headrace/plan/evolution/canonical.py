"""Canonical text of whatever a plan is made of: equal exactly where two declarations compute the same.

Names of Python variables, blanks, comments, docstrings and line numbers are not part of it. An object that cannot be looked into is told
by its class alone.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import inspect
import re
import sys
import types
from collections.abc import Mapping, Set
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.core.secret import Secret
from headrace.plan.expressions import Expression, Typed
from headrace.plan.nodes import Node

# What every node has: none of it says what the node computes.
COMMON = frozenset(field.name for field in dataclasses.fields(Node))
_PLAIN = (bool, int, float, complex, str, bytes, Decimal, date, time, tzinfo, type(None), type(...))


def digest(*parts: Any) -> str:
    """A short hash of the canonical text of some values.

    >>> digest(1, "a") == digest(1, "a"), digest(1, "a") == digest("1", "a")
    (True, False)
    """
    return hashlib.sha256("\n".join(canonical(part) for part in parts).encode()).hexdigest()[:16]


def canonical(value: Any) -> str:
    """A value as text, the same for equal values."""
    return _CanonicalWriter().written(value)


class _CanonicalWriter:
    def __init__(self) -> None:
        # A function may refer to itself, and an object to its owner.
        self._open: list[int] = []
        # Parts of expressions, by their identity.
        self._texts: dict[int, str] = {}

    def written(self, value: Any) -> str:
        if id(value) in self._texts:
            return self._texts[id(value)]
        if isinstance(value, enum.Enum):
            return f"{type(value).__qualname__}.{value.name}"
        if isinstance(value, _PLAIN):
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
            return self.written(value.root)
        if isinstance(value, pa.Schema):
            return self._listed("schema", [[field.name, field.type, field.nullable] for field in value])
        if isinstance(value, timedelta | re.Pattern | pa.DataType | pa.Scalar | Secret):
            return "secret" if isinstance(value, Secret) else f"{type(value).__name__} {value}"
        if isinstance(value, Mapping):
            return self._listed("map", sorted(f"{self.written(key)}: {self.written(held)}" for key, held in value.items()))
        if isinstance(value, Set):
            return self._listed("set", sorted(self.written(one) for one in value))
        if isinstance(value, list | tuple):
            return self._listed("list", value)
        if isinstance(value, type | types.ModuleType):
            return self._class(value) if isinstance(value, type) else f"module {value.__name__}"
        if callable(value) and not dataclasses.is_dataclass(value):
            return self._callable(value)
        return self._object(value)

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
            self._texts[id(part)] = self.written(part)

    def _listed(self, kind: str, values: Any) -> str:
        return f"{kind}({', '.join(one if isinstance(one, str) and kind in ('map', 'set') else self.written(one) for one in values)})"

    def _object(self, value: Any) -> str:
        kind = type(value)
        if isinstance(value, Node):
            return self._node(value)
        if dataclasses.is_dataclass(value):
            # Of an expression, what is not compared is where it stands in a text.
            fields = [field.name for field in dataclasses.fields(value) if field.compare or not _of_expressions(value)]
            return f"{self._class(kind)} {self.written({name: getattr(value, name) for name in fields})}"
        if isinstance(value, np.ndarray):
            return f"array {value.dtype} {value.shape} {value.tobytes().hex() if value.dtype != object else value.tolist()}"
        state = getattr(value, "__dict__", None) if _of_the_user(kind.__module__) else None
        return self._class(kind) if state is None else f"{self._class(kind)} {self.written(state)}"

    def _node(self, node: Node) -> str:
        """A node that a step refers to by what it says itself; what it reads has a fingerprint of its own."""
        if not node.inputs:
            return f"node {node.name}"
        fields = {field.name: getattr(node, field.name) for field in dataclasses.fields(node) if field.name not in COMMON}
        return f"node {type(node).__name__} {self.written({name: held for name, held in fields.items() if not isinstance(held, Node)})}"

    def _class(self, kind: type) -> str:
        """A class by its name and, where the user wrote it, by what is in its body."""
        name = f"class {kind.__module__}.{kind.__qualname__}"
        if not _of_the_user(kind.__module__):
            return name
        body = {key: held for key, held in vars(kind).items() if not (key.startswith("__") and key not in ("__call__", "__init__"))}
        body = {key: held for key, held in body.items() if not key.startswith("_abc_")}
        bases = [base for base in kind.__bases__ if _of_the_user(base.__module__)]
        return f"class {kind.__qualname__} {self.written(bases)} {self.written(body)}"

    def _callable(self, value: Any) -> str:
        if isinstance(value, functools.partial):
            return f"partial {self.written(value.func)} {self.written(value.args)} {self.written(value.keywords)}"
        if isinstance(value, types.MethodType):
            return f"method {self.written(value.__func__)} of {self.written(value.__self__)}"
        if isinstance(value, staticmethod | classmethod):
            return self.written(value.__func__)
        value = inspect.unwrap(value)
        if not isinstance(value, types.FunctionType):
            named = getattr(value, "__qualname__", None)
            return f"{getattr(value, '__module__', '')}.{named}" if named is not None else self._object(value)
        if not _of_the_user(value.__module__ or ""):
            return f"function {value.__module__}.{value.__qualname__}"
        given = [value.__defaults__, value.__kwdefaults__, _closure(value), _globals(value)]
        return f"function {self._code(value.__code__, value.__doc__)} {self._listed('held', given)}"

    def _code(self, code: types.CodeType, doc: str | None = None) -> str:
        constants = [self._code(one) if isinstance(one, types.CodeType) else self.written(one) for one in code.co_consts]
        if doc is not None and code.co_consts and code.co_consts[0] == doc:
            constants = constants[1:]
        names = (code.co_names, code.co_argcount, code.co_kwonlyargcount, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        return f"code {code.co_code.hex()} {constants} {names}"


def _of_expressions(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and type(value).__module__.startswith("headrace.plan.expressions")


def _closure(function: types.FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if cell != types.CellType()}


def _globals(function: types.FunctionType) -> dict[str, Any]:
    """The global values that a function reads; of a module of the user's, those of its parts that it names."""
    names, held = _names(function.__code__), dict[str, Any]()
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        if isinstance(value, types.ModuleType) and _of_the_user(value.__name__):
            value = {part: getattr(value, part) for part in sorted(names) if hasattr(value, part)}
        held[name] = value
    return held


def _names(code: types.CodeType) -> set[str]:
    inner = [_names(one) for one in code.co_consts if isinstance(one, types.CodeType)]
    return set(code.co_names).union(*inner)


def _of_the_user(module: str) -> bool:
    """Whether a module may be the user's own: those of packages change with their versions, which the user chooses."""
    found = sys.modules.get(module)
    file = getattr(found, "__file__", None) or ""
    first = module.partition(".")[0]
    return first not in sys.stdlib_module_names and first != "headrace" and "site-packages" not in file
