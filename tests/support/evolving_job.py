"""A job that goes on as other versions of its app, compared with a driver that runs its last version from the beginning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import headrace as hr
from headrace.core.columns.schema import schema
from headrace.plan.evolution.comparison import KEEP, REFUSED, Decisions, compared
from headrace.plan.evolution.described import described
from headrace.plan.nodes import Source
from headrace.testing.records import sent_table
from tests.support.evolving import Spec

NAME = "evolving"
_CLICKS = Source("clicks", schema("user string, page string, price bigint, at timestamp"), None, (), None, None)


class EvolvingJob:
    """The versions of an app, the records that its job gets, one batch for each epoch, and what accepted changes have announced."""

    def __init__(self, home: Path, spec: Spec) -> None:
        self.home, self.spec = home, spec
        self._sent: list[list[dict[str, Any]]] = []
        self._announced: set[str] = set()
        self._younger: set[str] = set()
        self._differs = False

    @property
    def app(self) -> hr.App:
        return self.spec.declare(hr.App(NAME, home=self.home))

    def send(self, rows: list[dict[str, Any]]) -> None:
        """Records for the next epoch."""
        self._sent.append(rows)
        with self.app.log.producer(acks="all") as producer:
            producer.send_table("clicks", sent_table(_CLICKS, rows))

    def changes(self, spec: Spec) -> Decisions:
        return compared(described(self.spec.app().plan()), described(spec.app().plan()))

    def accept(self, spec: Spec) -> None:
        """Note what a change announces; the next run makes it."""
        changes = self.changes(spec)
        assert changes.status != REFUSED
        self.spec = spec
        outputs = {decision.name: decision for decision in changes.decisions if decision.kind in ("view", "sink")}
        self._announced &= outputs.keys()
        self._younger &= outputs.keys()
        self._differs |= any(decision.differs for decision in changes.decisions if decision.kind in ("stream", "step"))
        for name, decision in outputs.items():
            if self._differs or (decision.differs and decision.decision == KEEP):
                self._announced.add(name)
            elif decision.differs:
                self._younger.add(name)

    def begins_with_a_snapshot(self, view: str) -> bool:
        """Whether a view has all rows, although it is younger than its job."""
        return view not in self._younger

    def check(self) -> int:
        """Compare each view of which no difference was announced; returns the number of them."""
        with hr.TestDriver(self.spec.app()) as scratch:
            for rows in self._sent:
                scratch.send("clicks", rows)
            app = self.app
            views = [name for name, out in self.spec.outputs.items() if not out.sink and name not in self._announced]
            for name in views:
                found, wanted = _plain(app.read(name)), _plain(scratch.rows(name))
                if name in self._younger:
                    assert set(found) <= set(wanted), name
                else:
                    assert found == wanted, name
        return len(views)


def _plain(rows: pa.Table | list[dict[str, Any]]) -> list[str]:
    listed = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    return sorted(repr({name: str(value) for name, value in row.items()}) for row in listed)
