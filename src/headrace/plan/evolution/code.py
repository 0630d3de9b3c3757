"""Parts of the user's functions and classes: equal exactly where the code does the same.

Docstrings, comments, line numbers and names of local variables are not part of it. Code of packages is known by its name alone: it changes
with the package's version, which the user chooses.
"""

from __future__ import annotations

import dis
import functools
import importlib.util
import inspect
import sys
import types
from collections.abc import Iterator
from typing import Any

# Attributes of a class whose names begin with two underscores and that say what it does, without being functions.
_DECLARED = frozenset({"__annotations__", "__slots__"})
_DESCRIPTORS = (types.FunctionType, staticmethod, classmethod, property)
_CACHED = type(functools.cache(len))
_BUILTIN = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType,
    types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
)  # fmt: skip


def of_the_user(module: object) -> bool:
    """Whether a module may be the user's own, and not one of Python, of Headrace or of another package."""
    if not isinstance(module, str):
        # Types that are not written in Python need not name theirs.
        return False
    return _may_be_of_the_user(module, getattr(sys.modules.get(module), "__file__", None) or "")


def is_builtin(value: Any) -> bool:
    """Whether a value is a function or method that is not written in Python."""
    return isinstance(value, _BUILTIN)


def descriptor_parts(value: Any) -> list[Any] | None:
    """The functions that a method, a property or a cached function is made of; None for everything else."""
    if isinstance(value, staticmethod | classmethod):
        return [value.__func__]
    if isinstance(value, property):
        return [value.fget, value.fset, value.fdel]
    if isinstance(value, functools.cached_property):
        return [value.func]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, _CACHED):
        return [inspect.unwrap(value)]
    return None


def function_parts(function: types.FunctionType) -> dict[str, Any]:
    """A function by its code, its defaults, its closure and the globals that it reads; one of a package by its name and its closure."""
    parts: dict[str, Any] = {"closure": _closure(function)}
    module = function.__globals__.get("__name__") or function.__module__ or ""
    if not of_the_user(module):
        return parts | {"name": f"{module}.{function.__qualname__}"}
    defaults = [function.__defaults__, sorted((function.__kwdefaults__ or {}).items())]
    return parts | {"code": _code(function.__code__), "defaults": defaults, "globals": _globals(function)}


def class_parts(kind: type) -> dict[str, Any]:
    """A class of the user's by its name, its bases and its body."""
    body = {name: value for name, value in vars(kind).items() if _says_what_it_does(name, value)}
    return {"name": kind.__qualname__, "bases": list(kind.__bases__), "metaclass": type(kind), "body": body}


def _says_what_it_does(name: str, value: Any) -> bool:
    if name.startswith("__") and name.endswith("__"):
        return name in _DECLARED or isinstance(value, _DESCRIPTORS)
    return not name.startswith("_abc_") and not is_builtin(value)


def _code(code: types.CodeType) -> list[Any]:
    """The instructions, with constants in place of their numbers: a docstring is a constant that no instruction reads."""
    steps = [[step.opname, _argument(step)] for step in dis.get_instructions(code)]
    count = code.co_argcount + code.co_kwonlyargcount
    spread = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    called = [count, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_varnames[:count], spread]
    return [steps, code.co_names, called, code.co_exceptiontable]


def _argument(step: dis.Instruction) -> Any:
    if step.opcode not in dis.hasconst:
        return step.arg
    return _code(step.argval) if isinstance(step.argval, types.CodeType) else [step.argval]


def _closure(function: types.FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if cell != types.CellType()}


def _globals(function: types.FunctionType) -> dict[str, Any]:
    """The global values that a function reads, and the modules that it imports; of a module of the user's, the parts that it names."""
    steps = list(_instructions(function.__code__))
    read = {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    # Two constants come before: how many packages up the import begins, and the names that it takes.
    imported = {"." * steps[place - 2].argval + step.argval for place, step in enumerate(steps) if step.opname == "IMPORT_NAME"}
    names = _names(function.__code__)
    found = {name: function.__globals__[name] for name in sorted(read & function.__globals__.keys())}
    found |= {f"import {name}": module for name in sorted(imported) if (module := _imported(name, function)) is not None}
    return {name: _named_parts(value, names, set()) for name, value in found.items()}


def _named_parts(value: Any, names: set[str], open_modules: set[str]) -> Any:
    if not isinstance(value, types.ModuleType) or not of_the_user(value.__name__) or value.__name__ in open_modules:
        return value
    within = open_modules | {value.__name__}
    return {name: _named_parts(getattr(value, name), names, within) for name in sorted(names) if hasattr(value, name)}


def _imported(name: str, function: types.FunctionType) -> types.ModuleType | None:
    """A module of the user's that a function imports when it is called; None for others, and where it is not found."""
    try:
        name = importlib.util.resolve_name(name, function.__globals__.get("__package__")) if name.startswith(".") else name
        if name in sys.modules:
            return sys.modules[name] if of_the_user(name) else None
        # A search for a part of a package would import the package.
        package = importlib.util.find_spec(name.partition(".")[0])
        if package is None or not _may_be_of_the_user(name, package.origin or ""):
            return None
        return importlib.import_module(name)
    except Exception:  # noqa: BLE001 - whatever a module raises, its importer meets it
        return None


def _instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _instructions(constant)


def _names(code: types.CodeType) -> set[str]:
    inner = [_names(one) for one in code.co_consts if isinstance(one, types.CodeType)]
    return set(code.co_names).union(*inner)


def _may_be_of_the_user(module: str, file: str) -> bool:
    first = module.partition(".")[0]
    packaged = "site-packages" in file or "dist-packages" in file
    return first not in sys.stdlib_module_names and first != "headrace" and not packaged
