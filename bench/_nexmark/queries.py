"""All queries of the benchmark, by name, as an app declares them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import headrace as hr
from headrace.api.declaration import Declaration
from headrace.api.stream import Stream

from . import grouped, joined, stateless, windowed
from .site import Site

OUT = "out"


@dataclass(frozen=True)
class Query:
    """One query: the streams that it reads, and whether its results are facts, or rows that change and are read as a view."""

    name: str
    declare: Callable[[Site], Stream]
    reads: tuple[str, ...] = ("bid",)
    facts: bool = True
    light: bool = False
    """Whether an event costs so little that it is measured over more events, and over more of them in an epoch."""

    @property
    def files_an_epoch(self) -> int:
        """How many files of events an epoch has."""
        return 5 if self.light else 1

    def output(self, app: Declaration, site: Site, name: str = OUT) -> None:
        """Declare the query and its one output."""
        if self.facts:
            app.sink(self.declare(site), hr.log(name), name=name)
        else:
            app.view(name, self.declare(site))


QUERIES = {
    query.name: query
    for query in (
        Query("q0", stateless.q0, light=True),
        Query("q1", stateless.q1, light=True),
        Query("q2", stateless.q2, light=True),
        Query("q3", joined.q3, ("person", "auction"), facts=False),
        Query("q4", joined.q4, ("auction", "bid"), facts=False),
        Query("q5", joined.q5, light=True),
        Query("q6", joined.q6, ("auction", "bid")),
        Query("q7", joined.q7),
        Query("q8", joined.q8, ("person", "auction")),
        Query("q9", joined.q9, ("auction", "bid"), facts=False),
        Query("q10", stateless.q10, light=True),
        Query("q11", windowed.q11, light=True),
        Query("q12", windowed.q12, light=True),
        Query("q13", joined.q13, ("side", "bid"), light=True),
        Query("q14", stateless.q14, light=True),
        Query("q15", grouped.q15, facts=False, light=True),
        Query("q16", grouped.q16, facts=False),
        Query("q17", grouped.q17, facts=False, light=True),
        Query("q18", grouped.q18, facts=False),
        Query("q19", grouped.q19, facts=False),
        Query("q20", joined.q20, ("auction", "bid")),
        Query("q21", stateless.q21, light=True),
        Query("q22", stateless.q22, light=True),
    )
}
