"""Expressions that Spark evaluates: the needed columns of records leave their packet, and the records continue with Spark's answers.

A packet travels ahead of its records through the same task, in order, so that each answer finds its record; columns that Spark does not
need never leave the packet. A record for which Spark raises an error has no answer and becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.classic.column import Column

from headrace.core.columns.schema import ddl, type_name
from headrace.core.errors import PlanError
from headrace.engine.program.program import Program
from headrace.engine.program.spark_step import SparkStep
from headrace.engine.spark_answers import VALUE, answer_name
from headrace.operators.state.blob import decode
from headrace.plan.expressions import Typed
from headrace.plan.expressions.syntax.nodes import Foreign
from headrace.spark import wire
from headrace.spark.arrow import typed_table
from headrace.spark.counted_rows import Outbox
from headrace.spark.schema import DDL
from headrace.spark.stage import Both, Stage

_WIRE = "_wire"
_SHAPE = f"{_WIRE} struct<{DDL.replace(' ', ': ').replace(',:', ',')}>"


def evaluated(spark: SparkSession, rows: DataFrame, program: Program, cuts: Sequence[SparkStep]) -> DataFrame:
    """The rows of the wire after some cuts: what went into one continues with Spark's answers, everything else passes."""
    stage: Stage = _Spread(cuts[0].name, _needed(cuts[0]))
    for cut, following in zip(cuts, [*cuts[1:], None], strict=True):
        spread = rows.mapInArrow(stage, ", ".join(part for part in (_SHAPE, ddl(_needed(cut))) if part))
        answers = [_answer(spark, spread, typed).alias(f"answer{place}") for place, typed in enumerate(cut.expressions)]
        rows = spread.select(_WIRE, *answers)
        stage = _Gather(program, cut.name)
        if following is not None:
            stage = Both(stage, _Spread(following.name, _needed(following)))
    return rows.mapInArrow(stage, DDL)


def _needed(cut: SparkStep) -> pa.Schema:
    """The columns that Spark must see."""
    everything = any(isinstance(node, Foreign) for typed in cut.expressions for node in typed.expression.root.walk())
    names = {name.lower() for typed in cut.expressions for name in typed.expression.columns}
    return pa.schema([pa.field(one.name, one.type) for one in cut.columns if everything or one.name.lower() in names])


def _answer(spark: SparkSession, frame: DataFrame, typed: Typed) -> Column:
    """The expression in a struct that is null where its evaluation raised an error."""
    try:
        found = frame.select(sql.expr(typed.expression.text).alias(VALUE)).schema[VALUE].dataType.simpleString()
    except (AnalysisException, ParseException) as error:
        raise PlanError(f"Spark refuses {typed.expression.text!r}: {error}", where=typed.expression.where) from error
    wanted = found if typed.type is None else type_name(typed.type)
    if found != wanted:
        raise PlanError(
            f"{typed.expression.text!r} is {found} to Spark, not {wanted}",
            hint=f"say which: cast({typed.expression.text} as {wanted})",
            where=typed.expression.where,
        )
    jvm: Any = spark._jvm  # noqa: SLF001 - only the JVM has a form of "try" that takes any expression
    utilities = getattr(jvm.org.apache.spark.sql.classic, "ExpressionUtils")  # noqa: B009 - a JVM package answers getattr only
    guarded = sql.struct(sql.expr(typed.expression.text).alias(VALUE))
    tried = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(utilities.expression(guarded._jc))  # noqa: SLF001
    return Column(utilities.column(tried))


class _Spread(Stage):
    """Lets every record of a cut's packets follow its packet."""

    def __init__(self, cut: str, columns: pa.Schema) -> None:
        self._cut = cut
        self._columns = columns

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place, target in enumerate(batch.column("target").to_pylist()):
                yield self._packet(batch.slice(place, 1))
                if target == self._cut:
                    yield from self._records(decode(batch.column("blob")[place].as_py()))

    def _packet(self, row: pa.RecordBatch) -> pa.RecordBatch:
        shaped = pa.StructArray.from_arrays(row.columns, fields=list(wire.SCHEMA))
        return pa.RecordBatch.from_arrays([shaped, *(pa.nulls(1, one.type) for one in self._columns)], [_WIRE, *self._columns.names])

    def _records(self, frame: pl.DataFrame) -> Iterator[pa.RecordBatch]:
        nothing = pa.nulls(frame.height, pa.struct(list(wire.SCHEMA)))
        table = typed_table(frame, self._columns) if len(self._columns) else None
        columns = [] if table is None else [table.column(name) for name in self._columns.names]
        yield from pa.table([nothing, *columns], names=[_WIRE, *self._columns.names]).combine_chunks().to_batches()


class _Gather(Stage):
    """Combines each packet with Spark's answers to its records, and continues after the cut."""

    def __init__(self, program: Program, cut: str) -> None:
        self._program = program
        self._cut = cut

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        packet: dict[str, Any] = {}
        frame, answers, beats = pl.DataFrame(), list[pa.RecordBatch](), list[dict[str, Any]]()
        outbox = Outbox(self._program.shards)
        for batch in batches:
            for part, packets in _runs(batch):
                if not packets:
                    answers.append(part)
                    if sum(one.num_rows for one in answers) == frame.height:
                        yield self._go_on(packet, frame, pa.Table.from_batches(answers), outbox)
                    continue
                rows = pa.RecordBatch.from_struct_array(part.column(_WIRE)).cast(wire.SCHEMA)
                last = rows.slice(rows.num_rows - 1)
                if last.column("target")[0].as_py() == self._cut:
                    # Its records follow.
                    (packet,) = last.to_pylist()
                    frame, answers, rows = decode(packet["blob"]), [], rows.slice(0, rows.num_rows - 1)
                ends = pc.equal(rows.column("target"), wire.BEAT)
                beats += rows.filter(ends).to_pylist()
                yield outbox.passed(rows.filter(pc.invert(ends)))
        if beats:
            # Rows from here are not those that the sender of these counted.
            yield wire.batch(outbox.beats(wire.time_of(beats[0]), *map(int, beats[0]["kind"].split("/"))))

    def _go_on(self, packet: dict[str, Any], frame: pl.DataFrame, answers: pa.Table, outbox: Outbox) -> pa.RecordBatch:
        time = wire.time_of(packet)
        names = [answer_name(typed) for typed in self._program.cuts[self._cut].expressions]
        found = pl.from_arrow(answers.drop_columns([_WIRE]).rename_columns(names))
        assert isinstance(found, pl.DataFrame)
        result = self._program.resume(self._cut, frame.hstack(found), time, packet["shard"])
        return wire.batch(outbox.lines(result.packets, result.accounting, time, packet["shard"]))


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Stretches of a batch that are packets, or records of the packet before them."""
    packets = np.asarray(batch.column(_WIRE).is_valid())
    edges = [0, *(np.flatnonzero(packets[1:] != packets[:-1]) + 1).tolist(), len(packets)]
    for first, last in pairwise(edges):
        if last > first:
            yield batch.slice(first, last - first), bool(packets[first])
