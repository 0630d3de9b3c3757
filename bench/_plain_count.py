"""Plain Spark: cards with more than five payments in a minute, by micro-batches over a topic of the log, until standard input ends.

Windows of a minute begin every ten seconds, and every change of a count is written: Spark has no window that ends with each payment.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path

from _fraud_jobs import COUNTED
from _spark_side import PlainSource
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from headrace.cli.demos.fraud.rules import PAYMENTS
from headrace.core.settings import Settings
from headrace.log import Log
from headrace.spark.session import session

COLUMNS = "id string, card string, paid_at timestamp"


def main(home: Path) -> None:
    with Log(home / "log") as log:
        log.create_topic(COUNTED, partitions=2, schema="card string, n bigint", exist_ok=True)
    settings = Settings(home=home, master="local[2]", driver_memory="3g")
    spark = session(settings, name="plain", cores=2, output=home / "spark.log")
    spark.dataSource.register(PlainSource)
    path = str(home / "log")
    source = spark.readStream.format("plain-log").option("path", path).option("topic", PAYMENTS).option("rows", 1_000_000)
    payments = source.option("columns", COLUMNS).load().withWatermark("paid_at", "1 second")
    counted = payments.groupBy(F.window("paid_at", "1 minute", "10 seconds"), "card").agg(F.count("*").alias("n"))
    alerts = counted.where("n > 5").select("card", "n")
    with Log(home / "log") as log, log.producer(acks="all") as producer, tempfile.TemporaryDirectory() as checkpoint:

        def write(batch: DataFrame, number: int) -> None:
            found = batch.toArrow()
            if found.num_rows:
                producer.send_table(COUNTED, found)

        query = alerts.writeStream.foreachBatch(write).outputMode("update").option("checkpointLocation", checkpoint).start()
        threading.Thread(target=lambda: (sys.stdin.read(), query.stop()), daemon=True).start()
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
