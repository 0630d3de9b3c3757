"""Errors of the user's functions, with the user's line that raised them."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PACKAGE = str(Path(__file__).resolve().parent.parent)


def raised(error: Exception, function: Callable[..., Any] | None) -> str:
    """The kind of an error, its text and the line, or the beginning of the function if no line of it raised."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_PACKAGE)]
    code = getattr(function, "__code__", None)
    # An expression that it returned may fail later, in a library.
    mine = own if code is None else [frame for frame in own if frame.filename == code.co_filename]
    if mine:
        place = f" ({Path(mine[-1].filename).name}:{mine[-1].lineno})"
    elif code is not None and not code.co_filename.startswith(_PACKAGE):
        place = f" ({Path(code.co_filename).name}:{code.co_firstlineno})"
    else:
        place = ""
    # Polars prints its whole plan after the first line.
    text = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {text}{place}" if text else f"{type(error).__name__}{place}"
