"""Where in the user's code a call was made."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import ParamSpec, TypeVar

from headrace.core.errors import HeadraceError

_Parameters = ParamSpec("_Parameters")
_Given = TypeVar("_Given")

_PACKAGE = str(Path(__file__).resolve().parent.parent)


def caller() -> str | None:
    """The file and line of the nearest frame outside of Headrace, for errors that point at what the user wrote."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.currentframe is the same call with a longer name
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def says_where(function: Callable[_Parameters, _Given]) -> Callable[_Parameters, _Given]:
    """Let the errors that a function of the API raises point at the line that called it, where they name none themselves."""

    @wraps(function)
    def called(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> _Given:
        try:
            return function(*arguments, **options)
        except HeadraceError as error:
            error.where = error.where or caller()
            raise

    return called
