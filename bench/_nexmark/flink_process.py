"""Flink SQL in a process of its own, under the Python that has PyFlink: a request a line, an answer a line.

It imports nothing of Headrace: its Python has other packages.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

_DELAY = "INTERVAL '4' SECOND"
# The JVM writes to the same output.
_MARK = "answer: "


def environment(cores: int, jars: list[str], checkpoints: str) -> TableEnvironment:
    """A cluster of one process, in streaming mode."""
    settings = {
        "parallelism.default": str(cores),
        "table.local-time-zone": "UTC",
        "execution.checkpointing.interval": "10s",
        "execution.checkpointing.dir": f"file://{checkpoints}",
        "taskmanager.memory.process.size": "3g",
        "taskmanager.numberOfTaskSlots": str(cores),
        # As the benchmark's own settings for Flink.
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": "2s",
        "table.exec.mini-batch.size": "50000",
        "table.optimizer.distinct-agg.split.enabled": "true",
        "pipeline.jars": ";".join(f"file://{jar}" for jar in jars),
    }
    configuration = Configuration()
    for name, value in settings.items():
        configuration.set_string(name, value)
    return TableEnvironment.create(EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build())


def declare(tables: TableEnvironment, directory: str, columns: dict[str, str], suffix: str) -> None:
    """The files of a directory as tables, each named for its content and a suffix."""
    for name, listed in columns.items():
        timed = f", p AS PROCTIME(), WATERMARK FOR `dateTime` AS `dateTime` - {_DELAY}" if "dateTime" in listed else ""
        tables.execute_sql(
            f"CREATE TABLE {name}{suffix} ({listed}{timed}) WITH ('connector' = 'filesystem', "
            f"'path' = 'file://{directory}/{name}.parquet', 'format' = 'parquet', 'parquet.utc-timezone' = 'true')"
        )


def collected(tables: TableEnvironment, query: str) -> list[list[Any]]:
    """The rows that a query leaves: those that were retracted are gone."""
    held: dict[tuple[Any, ...], int] = {}
    with tables.execute_sql(query).collect() as rows:
        for row in rows:
            key = tuple(row)
            held[key] = held.get(key, 0) + (1 if row.get_row_kind().name in ("INSERT", "UPDATE_AFTER") else -1)
    return [list(key) for key, times in held.items() for _ in range(times)]


def discarded(tables: TableEnvironment, query: str, number: int) -> None:
    """Run a query to its end, and drop what it emits."""
    tables.execute_sql(f"CREATE TABLE nowhere{number} WITH ('connector' = 'blackhole') AS {query}").wait()


def main() -> None:
    options = json.loads(sys.argv[1])
    tables = environment(options["cores"], options["jars"], options["checkpoints"])
    for suffix, directory in options["directories"].items():
        declare(tables, directory, options["columns"], suffix)
    print(_MARK + json.dumps({"ready": True}), flush=True)
    for number, line in enumerate(sys.stdin):
        request = json.loads(line)
        began = time.perf_counter()
        try:
            if request["collect"]:
                rows = collected(tables, request["query"])
                Path(request["collect"]).write_text(json.dumps(rows, default=str))
            else:
                discarded(tables, request["query"], number)
            answer = {"seconds": time.perf_counter() - began}
        except Exception as error:  # noqa: BLE001 - whatever Flink says belongs to the one who asked
            answer = {"refused": str(error)[:20_000]}
        print(_MARK + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
