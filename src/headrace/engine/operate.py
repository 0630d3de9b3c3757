"""One shard of an operator at work in an epoch: its packets go in, and what it emits is routed on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from headrace.engine.packet import ROWS, Packet
from headrace.engine.provenance import Provenance
from headrace.engine.route import Result, Router
from headrace.engine.side_topics import why_late
from headrace.engine.suspects import Suspects
from headrace.operators.changes import ADD, OP, RETRACT, TIME
from headrace.operators.contract import ONLY, Arrived, Outcome, Stateful, Tabular
from headrace.operators.state.store import Store

if TYPE_CHECKING:
    from headrace.engine.program.program import Operator


@dataclass(frozen=True)
class OperatorShard:
    """One shard of an operator with its state."""

    operator: str
    shard: int
    state: Stateful
    before: Stateful | None = None
    """The same shard of the operator that this one is co-located with."""


def operate(router: Router, place: OperatorShard, packets: Sequence[Packet], store: Store) -> Result:
    """Let one shard take in its packets of an epoch, and time move on."""
    name, operator = place.operator, router.program.operators[place.operator]
    suspects = Suspects([packet for packet in packets if packet.kind != ROWS])
    table = None if place.before is None else partial(table_of, router.program.operators[operator.colocated_with], place.before)
    rows = {port: entry.arrived(packets) for port, entry in operator.entries.items()}
    outcome = place.state.run(Arrived(rows.get(ONLY, ()), suspects.numbered(), table, rows), router.time, store)
    counts = router.result.accounting
    counts.keep(name, *place.state.size)
    if outcome.counts:
        counts.add(name, **outcome.counts)
    if outcome.scored is not None:
        counts.scored(name, *outcome.scored)
    _put_aside(router, place, outcome, suspects)
    if outcome.results:
        _emit(router, operator, name, pl.concat(outcome.results, how="diagonal"))
    return router.result


def _put_aside(router: Router, place: OperatorShard, outcome: Outcome, suspects: Suspects) -> None:
    """Route late records, bad ones and failed timers to their side topics."""
    name, counts = place.operator, router.result.accounting
    if outcome.late is not None:
        for stream, late in suspects.judged(outcome.late):
            counts.explain(name, late_reason=why_late(late.head(1), router.time.before).item())
            for packet in Provenance(router.program.origins[stream]).late(name, late, router.time.before, place.shard):
                router.put_aside(name, packet)
    if outcome.bad is not None:
        # They were counted out when they entered the state.
        counts.add(name, out=-outcome.bad.height)
        router.dead(name, outcome.bad)
    if outcome.failed is not None:
        counts.add(f"{name}.timers", taken=outcome.failed.height)
        router.dead(f"{name}.timers", outcome.failed)


def table_of(operator: Operator, state: Stateful) -> pl.DataFrame | None:
    """All live rows of an operator, as it emits them."""
    assert isinstance(state, Tabular)
    rows = state.table()
    if rows is None:
        return None
    made, _ = operator.made(rows)
    return made


def _emit(router: Router, operator: Operator, name: str, results: pl.DataFrame) -> None:
    made, failed = operator.made(results)
    for bad in failed:
        _fail(router, name, bad)
        if operator.upserts:
            # What was emitted of these keys before does not hold.
            (entry,) = operator.entries.values()
            nothing = bad.select_seq(*entry.by, TIME, pl.lit(RETRACT, pl.Int8).alias(OP))
            made = pl.concat([made, nothing], how="diagonal")
    router.flow(operator.flow, made)


def _fail(router: Router, name: str, bad: pl.DataFrame) -> None:
    """Results that cannot be computed are dead letters of their own, with their key and window: no record is lost with them."""
    # What never held was never emitted, so its retraction has no effect.
    bad = bad.filter(pl.col(OP) == ADD)
    if bad.is_empty():
        return
    router.result.accounting.add(f"{name}.results", taken=bad.height)
    router.dead(f"{name}.results", bad)
