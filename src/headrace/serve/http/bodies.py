"""JSON bodies of requests: each is a value, or an answer that says why not."""

from __future__ import annotations

import json
from typing import Any

from headrace.schema.values import float_of
from headrace.serve.http.problems import Problem


def parsed(body: bytes) -> Any:
    """The value of a body."""
    try:
        return json.loads(body, parse_constant=_refuse_constant, parse_float=float_of)
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"the body is not JSON: {error}") from error


def object_of(body: bytes, expected: str) -> dict[str, Any]:
    """The object of a body; `expected` is an example of one."""
    found = parsed(body)
    if not isinstance(found, dict):
        raise Problem(400, "the body is no object", hint=expected)
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"JSON has no {name}")
