"""Spark counts page views per URL and minute, and writes each count that changed back to the log, once."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.cli.demos.visitors import TOPIC
from headrace.core.schema import ddl
from headrace.core.settings import Settings
from headrace.log import Log, Topic

RESULT = "views_per_url"
_WATERMARK = "10 seconds"
_PATIENCE = 5.0
# Half of the work until the first counts is that of the second compiler (30 seconds of the JVM's time with it, 16 without).
_SOON = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


def create(log: Log) -> Topic:
    """The topic of counts: the last record of a URL and minute is its count."""
    return log.create_topic(
        RESULT, schema="url string, minute timestamp, views bigint", key=["url", "minute"], time="minute",
        config={"retention.ms": 3_600_000, "segment.bytes": 16 * 1024 * 1024}, exist_ok=True,
    )  # fmt: skip


class Counting:
    """The running query. It starts in a thread of its own, so that whoever shows it is never held up."""

    def __init__(self, log: Log, settings: Settings, directory: Path, start: Mapping[int, int]) -> None:
        self._log = log
        self._begin = start
        self._settings = settings
        self._directory = directory
        # A new run counts anew: its epochs must not look like those of the run before.
        self._writer = f"pageviews {secrets.token_hex(8)}"
        self._session: Any = None
        self._query: Any = None
        self._wanted = True
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._start, name="spark", daemon=True)
        self._thread.start()

    def progress(self) -> dict[str, Any] | None:
        """Spark's report on the last batch, None before there is one."""
        query = self._query
        if query is None:
            return None
        if query.exception() is not None:
            self.error = query.exception()
        report = query.lastProgress
        return None if report is None else dict(report)

    def stop(self) -> None:
        """End the query, the session and its processes. A session that is still starting ends with this process, which it notices."""
        self._wanted = False
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            return
        if self._query is not None:
            self._query.stop()
        if self._session is not None:
            from headrace.spark.session import stop

            stop(self._session)

    def _start(self) -> None:
        from headrace.core.errors import HeadraceError
        from headrace.spark.session import session

        try:
            running = session(self._settings, name="pageviews", cores=1, output=self._directory / "spark.log", config=_SOON)
        except HeadraceError as error:
            self.error = error
            return
        self._session = running
        if self._wanted:
            self._query = self._counted(running)

    def _counted(self, session: Any) -> Any:
        from pyspark.sql import functions as sql

        from headrace.connectors.log.source import FORMAT, options, source

        session.dataSource.register(source())
        columns = ddl(self._log.topic(TOPIC).columns)
        views = session.readStream.format(FORMAT).schema(columns).options(**options(self._log.path, TOPIC, self._begin)).load()
        counts = (
            views.withWatermark("viewed_at", _WATERMARK)
            .groupBy("url", sql.window("viewed_at", "1 minute"))
            .agg(sql.count("*").alias("views"))
            .select("url", sql.col("window.start").alias("minute"), "views")
        )
        return (
            counts.writeStream.outputMode("update")
            .option("checkpointLocation", str(self._directory / "checkpoint"))
            .foreachBatch(self._store)
            .start()
        )

    def _store(self, counts: Any, epoch: int) -> None:
        changed: pa.Table = counts.toArrow()
        self._log.append_epoch(RESULT, changed, writer=self._writer, epoch=epoch)
