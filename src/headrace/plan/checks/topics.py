"""The topics that an app reads and writes: no output goes where the app reads, or where another of its outputs is."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.core.errors import PlanError
from headrace.plan.nodes import Source
from headrace.plan.plan import Output
from headrace.plan.topics import accounting_topic, dead_topic, hot_topic, late_topic

Address = tuple[str, ...]


def refuse_a_place_for_two(app: str, sources: Iterable[Source], outputs: Iterable[Output], output: Output, where: str | None) -> None:
    """Raise if an output writes where something else of the app is."""
    address = output.address
    held = None if address is None else _taken(app, sources, [other for other in outputs if other is not output]).get(address)
    if address is None or held is None:
        return
    raise PlanError(
        f"{output.kind} {output.name!r} would write to topic {address[-1]!r}, which has the {held}",
        why="a job that writes where it reads would never end, and readers of a topic could not tell what a record of it means",
        hint="name another topic",
        where=where,
    )


def _taken(app: str, sources: Iterable[Source], outputs: Iterable[Output]) -> dict[Address, str]:
    """The owner of each topic of an app, by its address."""
    found: dict[Address, str] = {("log", topic(app)): "accounts of the job" for topic in (accounting_topic, hot_topic)}
    for source in sources:
        name = source.name
        address: Address | None = ("log", name) if source.connector is None else getattr(source.connector, "address", None)
        if address is not None:
            found[address] = f"records of stream {name!r}"
        found |= {("log", late_topic(name)): f"late records of stream {name!r}", ("log", dead_topic(name)): f"dead letters of {name!r}"}
    for output in outputs:
        if output.kind == "view" and output.address is not None:
            found[output.address] = f"rows of view {output.name!r}"
    return found
