"""Spark's side of Nexmark: its own SQL over streams of Parquet files, an epoch a file or a few."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from _processes import cpu_seconds
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from . import files
from .peer_sql import SPARK, SPARK_UPDATES
from .queries import QUERIES
from .sides import Inputs, Refused, Spent
from .site import COLUMNS

# A view that is read twice in one query loses its watermark on one side: each is a stream of its own.
_VIEWS = {"bid": "bid", "bid2": "bid", "auction": "auction", "person": "person"}
_NUMBERS = ("auction", "id", "bidder")


class PlainSpark:
    """Runs the queries as Spark's own, each in the mode that Spark takes it in."""

    name = "spark"

    def __init__(self, spark: SparkSession, inputs: Inputs) -> None:
        self._spark, self._inputs = spark, inputs

    def answer(self, query: str) -> pl.DataFrame | Refused:
        if query not in SPARK:
            return Refused("it has no rows before a row in a stream")
        parts: list[pa.Table] = []
        try:
            frame = self._frame(query, self._inputs.few)
            self._run(query, frame.writeStream.foreachBatch(lambda batch, _: parts.append(batch.toArrow())))
        except AnalysisException as error:
            return Refused(str(error).strip().splitlines()[0])
        found = pl.from_arrow(pa.concat_tables(parts))
        assert isinstance(found, pl.DataFrame)
        if query in SPARK_UPDATES:
            *key, grows = SPARK_UPDATES[query]
            found = found.sort(grows).unique(key, keep="last")
        number = next((name for name in _NUMBERS if name in found.columns), None)
        return found if number is None else found.filter(pl.col(number) >= 0)

    def spend(self, query: str, amount: str) -> Spent:
        frame = self._frame(query, self._inputs.all[amount])
        before, began = cpu_seconds(), time.perf_counter()
        self._run(query, frame.writeStream.format("noop"))
        return Spent(cpu_seconds() - before, time.perf_counter() - began)

    def _frame(self, query: str, directory: Path) -> DataFrame:
        self._spark.read.parquet(str(files.whole(directory) / "side.parquet")).createOrReplaceTempView("side")
        for view, name in _VIEWS.items():
            source = self._spark.readStream.schema(COLUMNS[name]).option("maxFilesPerTrigger", QUERIES[query].files_an_epoch)
            stream = source.parquet(str(files.parts(directory, name))).withWatermark("dateTime", "4 seconds")
            stream.createOrReplaceTempView(view)
        return self._spark.sql(SPARK[query].format(side="side", **{view: view for view in _VIEWS}))

    def _run(self, query: str, writer: Any) -> None:
        mode = "update" if query in SPARK_UPDATES else "append"
        with tempfile.TemporaryDirectory() as checkpoint:
            started = writer.outputMode(mode).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            started.awaitTermination()
