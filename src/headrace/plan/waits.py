"""Streams that wait for tables, by source: some sources are read to their end at the job's first start before others begin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.core.errors import PlanError
from headrace.plan.nodes import Node

Waits = Mapping[str, frozenset[str]]


def waits(nodes: Iterable[Node]) -> dict[str, frozenset[str]]:
    """The sources that wait, each with those that it waits for. A source that is on both sides of a step does not wait for itself."""
    found: dict[str, frozenset[str]] = {}
    for node in nodes:
        awaited = _sources(node.awaited)
        for name in _sources(before for before in node.inputs if before not in node.awaited) - awaited if awaited else ():
            found[name] = found.get(name, frozenset()) | awaited
            if name in _reached(found, awaited):
                raise PlanError(
                    f"{name!r} waits for {', '.join(map(repr, sorted(awaited)))}, which waits for {name!r}",
                    why="neither would ever be read",
                    hint="let one of the joins not wait: join(..., wait=None)",
                    where=node.where,
                )
    return found


def _sources(nodes: Iterable[Node]) -> frozenset[str]:
    return frozenset(name for node in nodes for name in ([node.name] if node.declared_stream else _sources(node.inputs)))


def _reached(known: Waits, names: frozenset[str]) -> frozenset[str]:
    """All that some sources wait for, directly or indirectly."""
    further = frozenset(after for name in names for after in known.get(name, ())) - names
    return names if not further else _reached(known, names | further)
