"""The place in the user's code that made a call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from types import FrameType
from typing import ParamSpec, TypeVar

from headrace.core.errors import HeadraceError, PlanError
from headrace.core.nearest import choices

_Parameters = ParamSpec("_Parameters")
_Given = TypeVar("_Given")

_PACKAGE = str(Path(__file__).resolve().parent.parent)


def caller() -> str | None:
    """The file and line of the nearest frame outside of Headrace, for errors that name what the user wrote."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.currentframe is the same call with a longer name
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def says_where(function: Callable[_Parameters, _Given]) -> Callable[_Parameters, _Given]:
    """Let errors that a function of the API raises name the line that called it, unless they already name one."""

    @wraps(function)
    def called(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> _Given:
        try:
            return function(*arguments, **options)
        except HeadraceError as error:
            error.where = error.where or caller()
            raise
        except TypeError:
            _refuse_call(function, arguments, options)
            raise

    return called


def _refuse_call(function: Callable[..., object], arguments: tuple[object, ...], options: Mapping[str, object]) -> None:
    """Raise if a function cannot be called with these arguments; otherwise the error came from inside it."""
    taken = signature(function)
    try:
        taken.bind(*arguments, **options)
    except TypeError as error:
        names = [name for name in taken.parameters if name != "self"]
        *_, owner, name = ("", *function.__qualname__.split("."))
        called = f"{owner if name == '__init__' else name}(...)"
        unknown = next((name for name in options if name not in names), None)
        if unknown is not None and not any(one.kind is Parameter.VAR_KEYWORD for one in taken.parameters.values()):
            raise PlanError(f"{called} has no option {unknown!r}", hint=choices(unknown, names, "it takes"), where=caller()) from None
        raise PlanError(f"{called}: {error}", hint=f"it takes: {', '.join(names)}", where=caller()) from None
