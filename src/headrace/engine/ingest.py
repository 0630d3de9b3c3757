"""Ingest: records of a source that enter an epoch, and records that return from a step that Spark evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from headrace.engine.program.spark_step import SparkStep
from headrace.engine.provenance import Provenance, decoded
from headrace.engine.route import Result, Router
from headrace.operators.changes import TIME
from headrace.operators.columns import ROW
from headrace.operators.frames import with_constant

if TYPE_CHECKING:
    from headrace.engine.program.program import Origin


def ingest(router: Router, origin: Origin, records: pl.DataFrame, limit: int) -> Result:
    """Ingest a batch of a source; times above `limit` are not believed."""
    counts, taken = router.result.accounting, records.height
    records, undecoded = decoded(origin, records)
    if undecoded is not None:
        counts.add(origin.name, dead_letter=undecoded.frame.height)
        counts.explain(origin.name, dead_letter_reason=undecoded.frame.item(0, "reason"))
        router.put_aside(origin.name, undecoded)
    router.came = Provenance(origin, records)
    frame = records.with_row_index(ROW)
    if origin.moment is None:
        frame = with_constant(frame, TIME, None, pl.Int64)
    else:
        frame, bad = origin.moment.judged(frame, limit)
        router.dead(origin.name, bad)
    counts.add(origin.name, taken=taken, out=frame.height)
    router.flow(origin.flow, frame)
    return router.result


def resume(router: Router, step: SparkStep, frame: pl.DataFrame) -> Result:
    """Continue after expressions that Spark evaluated, with a frame that has its answers."""
    router.came, frame = router.came.arrived(frame)
    router.flow(step.flow, frame)
    return router.result


def resume_transformed(router: Router, step: SparkStep, frame: pl.DataFrame) -> Result:
    """Continue after a function of the user over a DataFrame, with its result."""
    origin, counts = router.came.origin, router.result.accounting
    counts.add(step.step, out=frame.height)
    router.came = Provenance.resembling(origin, frame)
    frame = frame.with_row_index(ROW)
    if origin.moment is not None:
        frame, bad = origin.moment.judged(frame)
        if bad is not None:
            counts.add(f"{step.step}.time", taken=frame.height + bad.height, out=frame.height)
            router.dead(f"{step.step}.time", bad)
    router.flow(step.flow, frame)
    return router.result
