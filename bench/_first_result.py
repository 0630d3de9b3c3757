"""One fresh process of the start-up benchmark: runs the query, ours or plain PySpark's, and says when it began.

usage: python bench/_first_result.py headrace|spark HOME TOPIC VIEW
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import pyspark.sql  # noqa: F401 - what both need is loaded before the clock starts


def headrace_query(home: str, topic: str, view: str) -> None:
    from _payments import COLUMNS, PARTITIONS
    from _spark_job import tumbling

    import headrace as hr

    app = hr.App(f"first-{view}", home=home)
    payments = app.stream(
        topic, schema=COLUMNS, key="card", time="at", watermark=hr.bounded("10 seconds", idle="1 hour"), partitions=PARTITIONS
    )
    app.view(view, tumbling(payments))
    print(time.time(), flush=True)
    app.run(until="caught-up")


def spark_query(home: str, topic: str, view: str) -> None:
    from _spark_side import PlainSink, PlainSource, payments, windowed
    from pyspark.sql import SparkSession

    print(time.time(), flush=True)
    spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
    # Two hundred tasks a batch, Spark's default, would be no honest comparison on a few cores.
    spark.conf.set("spark.sql.shuffle.partitions", os.cpu_count() or 2)
    spark.dataSource.register(PlainSource)
    spark.dataSource.register(PlainSink)
    result = windowed(payments(spark, Path(home) / "log", topic, 1_000_000_000))
    writer = result.writeStream.format("plain-log-sink").option("path", str(Path(home) / "log")).option("topic", view)
    with tempfile.TemporaryDirectory() as checkpoint:
        writer.outputMode("append").option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    {"headrace": headrace_query, "spark": spark_query}[sys.argv[1]](*sys.argv[2:])
