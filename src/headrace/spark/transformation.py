"""A function of the user's over a PySpark DataFrame: it sees the records of its stream and nothing else.

Whatever it does to partitions, its results meet the epoch's time again in the following shuffle: each shard has a beat.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame

from headrace.core.columns.schema import ddl, quoted, schema
from headrace.core.errors import PlanError
from headrace.engine.program.program import Program
from headrace.engine.program.spark_step import SparkStep
from headrace.operators.state.blob import decode, encode
from headrace.plan.expressions.kinds import plain
from headrace.spark import wire
from headrace.spark.arrow import typed_table
from headrace.spark.counted_rows import Outbox
from headrace.spark.placement import PLACE, placed
from headrace.spark.schema import DDL
from headrace.spark.stage import Stage, task_number

_MADE = "made"


def transformed(rows: DataFrame, program: Program, cut: SparkStep, tasks: int) -> DataFrame:
    """The rows of the wire after a user's function."""
    # Both halves come from one shuffle, which Spark runs once, so that the source is not read a second time. No filter may follow it, since
    # Spark would move it ahead of the shuffle and split that in two: the stages filter their own rows.
    rows = rows.repartition("shard")
    given = rows.mapInArrow(_Records(cut.name, cut.columns), ddl(cut.columns))
    packed = _made(cut, given).mapInArrow(_Pack(cut, program.shards), DDL)
    met = placed(rows.unionByName(packed), program.shards, tasks).repartition(tasks, PLACE)
    return met.mapInArrow(_TakeBack(program, cut.name, tasks), DDL)


def _made(cut: SparkStep, given: DataFrame) -> DataFrame:
    """The results of the function, checked against its declared columns."""
    assert cut.function is not None
    assert cut.made is not None
    try:
        made = cut.function(given)
    except Exception as error:  # whatever it raises, the function is the user's
        raise PlanError(f"the function of step {cut.step!r} failed: {type(error).__name__}: {error}", where=cut.where) from error
    if not isinstance(made, DataFrame):
        raise PlanError(
            f"the function of step {cut.step!r} returns {type(made).__name__}, not a PySpark DataFrame",
            hint="return the frame it made",
            where=cut.where,
        )
    wanted = {one.name: plain(one.type) for one in cut.made}
    found = {one.name: plain(schema(f"{quoted(one.name)} {one.dataType.simpleString()}").field(0).type) for one in made.schema.fields}
    if found != wanted:
        said = ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in made.schema.fields)
        raise PlanError(
            f"the function of step {cut.step!r} makes ({said}), not ({ddl(cut.made)})",
            hint=f'declare what it makes: transform(function, schema="{said}")',
            where=cut.where,
        )
    # By number: PySpark reads a dot in a name as a path into a struct.
    ordered = made.toDF(*(str(place) for place in range(len(found))))
    return ordered.select(*(str(list(found).index(name)) for name in cut.made.names))


class _Records(Stage):
    """The records of a cut's packets as rows."""

    def __init__(self, cut: str, columns: pa.Schema) -> None:
        self._cut = cut
        self._columns = columns

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch.filter(pc.equal(batch.column("target"), self._cut)).column("blob"):
                yield from typed_table(decode(blob.as_py()), self._columns).combine_chunks().to_batches()


class _Pack(Stage):
    """Rows as packets that have a shard but do not know their epoch."""

    def __init__(self, cut: SparkStep, shards: int) -> None:
        assert cut.made is not None
        self._cut = cut.name
        self._columns = list(cut.made.names)
        self._shards = shards

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        shard = context.partitionId() % self._shards if context is not None else 0
        for batch in batches:
            frame = pl.from_arrow(batch.rename_columns(self._columns))
            assert isinstance(frame, pl.DataFrame)
            if frame.height:
                known = {"shard": shard, "target": self._cut, "kind": _MADE, "blob": encode(frame)}
                yield pa.RecordBatch.from_pylist([known], schema=wire.SCHEMA)


class _TakeBack(Stage):
    """Takes the results of the function back into the program; a beat of the same shard tells the time."""

    def __init__(self, program: Program, cut: str, tasks: int) -> None:
        self._program = program
        self._cut = cut
        self._tasks = tasks

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[pl.DataFrame] = []
        time, home, outbox = None, 0, Outbox(self._program.shards)
        for batch in (one.select(wire.SCHEMA.names) for one in batches):
            mine = pc.equal(batch.column("target"), self._cut)
            # The input of the function passes here too, and ends here.
            made = pc.and_(mine, pc.equal(batch.column("kind"), _MADE))
            waiting += [decode(blob.as_py()) for blob in batch.filter(made).column("blob")]
            others = batch.filter(pc.invert(mine))
            if others.num_rows:
                (row,) = others.slice(0, 1).to_pylist()
                time, home = wire.time_of(row), row["shard"]
                yield outbox.passed(others.filter(pc.not_equal(others.column("target"), wire.BEAT)))
        if time is None:
            # Every task has a shard, and every shard a beat: without one the input was cut, and the result is discarded.
            return
        if waiting:
            result = self._program.resume_transformed(self._cut, pl.concat(waiting), time)
            yield wire.batch(outbox.lines(result.packets, result.accounting, time, home))
        yield wire.batch(outbox.beats(time, task_number(), self._tasks))
