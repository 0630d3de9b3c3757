"""Joins in the pipelines of a scenario: the other side is a stream or step by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.api.answers import Answers
from headrace.api.stream import Stream, Table
from headrace.core.errors import SchemaError
from headrace.testing.scenarios.content import Content


def join_within(stream: Stream, arguments: Content, known: Mapping[str, object]) -> Stream:
    """`join_within: {with: clicks, on: user, within: [0s, 1 minute], how: left}`."""
    found = arguments.fields(("with", "on", "within", "how", "pick", "where", "suffix"), needed=["with", "on", "within"])
    bounds = found["within"].texts()
    within: Any = bounds[0] if len(bounds) == 1 else tuple(bounds)
    options = {name: found[name].text() for name in ("how", "pick", "where", "suffix") if name in found}
    return stream.join_within(_other(found["with"], known), on=_on(found["on"]), within=within, **options)


def join(stream: Stream, arguments: Content, known: Mapping[str, object]) -> Stream:
    """`join: {with: prices, on: product}`, as of a time with `as_of` and `history`, and with `early`, which names a key, at once, too."""
    found = arguments.fields(("with", "on", "how", "suffix", "as_of", "history", "early", "ttl"), needed=["with", "on"])
    other: Any = _other(found["with"], known)
    if "as_of" in found:
        if not isinstance(other, Table) or "history" not in found:
            raise SchemaError(f"{arguments.place}: as_of needs a table and history", hint="as_of: ordered_at, history: 7 days")
        other = other.as_of(found["as_of"].text(), history=found["history"].text())
    options: dict[str, Any] = {name: found[name].text() for name in ("how", "suffix") if name in found}
    if "ttl" in found:
        options["ttl"] = None if found["ttl"].value is None else found["ttl"].text()
    joined = stream.join(other, on=_on(found["on"]), **options)
    if "early" not in found:
        return joined
    if not isinstance(joined, Answers):
        raise SchemaError(f"{arguments.place}: early answers are as of a time", hint="as_of: ordered_at, history: 7 days")
    return joined.emit(early=True, key=found["early"].texts())


def _other(content: Content, known: Mapping[str, object]) -> Stream:
    other = known.get(content.text())
    if not isinstance(other, Stream):
        raise SchemaError(f"{content.place}: there is no stream or step {content.text()!r}", hint=f"there are: {', '.join(known)}")
    return other


def _on(content: Content) -> Any:
    """Names of columns, or a mapping from left to right."""
    if isinstance(content.value, dict):
        return {left: right.text() for left, right in content.items()}
    return content.texts()
