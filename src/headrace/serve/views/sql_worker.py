"""The process that answers SQL: DuckDB over rows that it shares with the server, in a database without files, network or settings.

Not every function of DuckDB can be interrupted, and not all of its memory counts against its own limit. The limits of this process hold
whatever a query does: the system ends one that takes too long, and gives it no more memory.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import duckdb
import pyarrow as pa

from headrace.serve.views.sql_limits import FILES_AT_ONCE, GRACE, TOO_LONG

_PRESENT = "_present"
# Extension types of Arrow that every format has.
_EXTENSIONS = frozenset({"arrow.uuid", "arrow.json", "arrow.bool8"})
_CONFIG = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}


class _Refused(Exception):
    """A query without an answer: the status of HTTP, what happened, and what to do."""

    def __init__(self, status: int, fact: str, hint: str | None = None) -> None:
        super().__init__(fact)
        self.told = {"status": status, "fact": fact, "hint": hint}


def main(descriptor: int) -> None:
    """Answer queries until the server closes its end."""
    # Whoever started the server may have had it ignored.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    with socket.socket(fileno=descriptor) as server, server.makefile("wb") as answers:
        while (question := _question(server)) is not None:
            asked, files = question
            process = asked["process"] if most == resource.RLIM_INFINITY else min(asked["process"], most)
            resource.setrlimit(resource.RLIMIT_DATA, (process, most))
            signal.setitimer(signal.ITIMER_REAL, asked["seconds"] + GRACE)
            try:
                table, complete = _answered(asked, _views(asked, files))
            except _Refused as refused:
                _tell(answers, refused.told)
            else:
                _tell(answers, {"complete": complete})
                with pa.ipc.new_stream(answers, table.schema) as writer:
                    writer.write_table(table)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            answers.flush()


def _tell(answers: Any, told: Mapping[str, Any]) -> None:
    answers.write(json.dumps(told).encode() + b"\n")


def _question(server: socket.socket) -> tuple[dict[str, Any], list[pa.Table]] | None:
    """A query, and the runs of rows that it reads; None at the end."""
    size = server.recv(8, socket.MSG_WAITALL)
    if len(size) < 8:
        return None
    asked: dict[str, Any] = json.loads(server.recv(int.from_bytes(size), socket.MSG_WAITALL))
    tables = list[pa.Table]()
    while len(tables) < asked["files"]:
        _, descriptors, _, _ = socket.recv_fds(server, 1, FILES_AT_ONCE)
        tables += [_mapped(descriptor) for descriptor in descriptors]
    return asked, tables


def _mapped(descriptor: int) -> pa.Table:
    """The rows in a file, which are not copied."""
    try:
        return pa.ipc.open_stream(pa.py_buffer(mmap.mmap(descriptor, 0, prot=mmap.PROT_READ))).read_all()
    finally:
        os.close(descriptor)


def _views(asked: Mapping[str, Any], files: Sequence[pa.Table]) -> dict[str, list[pa.Table]]:
    """The parts of each view: a file has their rows, and the next one says which of them are present."""
    parts = [rows.append_column(_PRESENT, present.column(0)) for rows, present in zip(files[::2], files[1::2], strict=True)]
    views = dict[str, list[pa.Table]]()
    for name, number in asked["views"].items():
        views[name], parts = parts[:number], parts[number:]
    return views


def _answered(asked: Mapping[str, Any], views: Mapping[str, Sequence[pa.Table]]) -> tuple[pa.Table, bool]:
    config: dict[str, str | bool | int | float | list[str]] = {**_CONFIG, "memory_limit": asked["memory"], "threads": str(asked["threads"])}
    with duckdb.connect(":memory:", config=config) as database:
        database.execute("SET TimeZone = 'UTC'")
        for name, parts in views.items():
            _define(database, name, parts)
        database.execute("SET lock_configuration = true")
        return _run(database, asked)


def _define(database: duckdb.DuckDBPyConnection, name: str, parts: Sequence[pa.Table]) -> None:
    """Define a view of the present rows, without a copy."""
    columns = ", ".join(_quoted(column) for column in parts[0].column_names if column != _PRESENT)
    selects = []
    for number, part in enumerate(parts):
        source = f"_rows of {name} {number}"
        database.register(source, part)
        selects.append(f"SELECT {columns} FROM {_quoted(source)} WHERE {_PRESENT}")  # noqa: S608 - names are quoted
    database.execute(f"CREATE VIEW {_quoted(name)} AS {' UNION ALL '.join(selects)}")


def _run(database: duckdb.DuckDBPyConnection, asked: Mapping[str, Any]) -> tuple[pa.Table, bool]:
    most = asked["rows"]
    timer = threading.Timer(asked["seconds"], database.interrupt)
    timer.start()
    try:
        reader: pa.RecordBatchReader = database.sql(asked["text"]).to_arrow_reader(min(most + 1, 10_000))
        _refuse_types(reader.schema)
        schema, batches, rows, size = reader.schema, list[pa.RecordBatch](), 0, 0
        for batch in reader:
            batches.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if size > asked["answer"]:
                raise _Refused(413, f"the rows have more than {asked['answer']:,} bytes", "ask for fewer rows or shorter values")
            if rows > most:
                break
    except (duckdb.Error, OSError) as error:
        raise _refusal(error, asked) from error
    finally:
        timer.cancel()
    table = pa.Table.from_batches(batches, schema)
    table = _narrowed(table.rename_columns(_distinct(table.column_names)))
    return table.slice(0, most), rows <= most


def _refusal(error: Exception, asked: Mapping[str, Any]) -> _Refused:
    """What the database says of a query. After the first rows its errors come through Arrow, which keeps their text only."""
    text = _first_line(error)
    if isinstance(error, duckdb.InterruptException) or text.startswith("INTERRUPT Error"):
        return _Refused(408, TOO_LONG.format(asked["seconds"]))
    if isinstance(error, duckdb.OutOfMemoryException) or text.startswith("Out of Memory Error"):
        return _Refused(413, f"the query needs more than {asked['memory']} of memory")
    near = next((line for line in str(error).splitlines() if line.startswith(("Candidate ", "Did you mean"))), None)
    return _Refused(400, text, near)


def _refuse_types(schema: pa.Schema) -> None:
    """Types of DuckDB's own that formats do not have: an interval of months, days and nanoseconds, a union, a geometry, and others."""
    for field in schema:
        wrong = next(_of_no_format(field), None)
        if wrong is not None and pa.types.is_interval(wrong):
            raise _Refused(400, f"column {field.name!r} is an interval, which an answer cannot have", "epoch(…) has its seconds")
        if wrong is not None:
            raise _Refused(400, f"column {field.name!r} has a type that an answer cannot have: {field.type}", "cast it to varchar")


def _of_no_format(field: pa.Field) -> Iterator[pa.DataType]:
    """The types in a field that formats do not have."""
    kind = field.type
    named = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
    named = kind.extension_name if isinstance(kind, pa.BaseExtensionType) else named
    empty = pa.types.is_struct(kind) and not kind.num_fields
    if pa.types.is_interval(kind) or pa.types.is_union(kind) or empty or (named and named not in _EXTENSIONS):
        yield kind
    if pa.types.is_map(kind):
        parts = [kind.key_field, kind.item_field]
    elif pa.types.is_struct(kind):
        parts = list(kind.fields)
    else:
        parts = [kind.value_field] if pa.types.is_nested(kind) and not pa.types.is_union(kind) else []
    for part in parts:
        yield from _of_no_format(part)


def _distinct(names: Sequence[str]) -> list[str]:
    """Names of columns, each once, as the database itself names those of a subquery: url, url_1."""
    taken = list[str]()
    for name in names:
        numbered = (f"{name}_{number}" for number in count(1))
        taken.append(name if name not in taken else next(other for other in numbered if other not in taken and other not in names))
    return taken


def _narrowed(table: pa.Table) -> pa.Table:
    """Sums of whole numbers as whole numbers, where they fit: DuckDB gives them 128 bits."""
    for number, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            with suppress(pa.ArrowInvalid):
                table = table.set_column(number, field.name, table.column(number).cast(pa.int64()))
    return table


def _first_line(error: Exception) -> str:
    lines = (line for line in str(error).splitlines() if line.strip())
    return next(lines, "the query failed")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


if __name__ == "__main__":
    main(int(sys.argv[1]))
    # Without the end of the interpreter, at which DuckDB's binding reports what it has not released.
    os._exit(0)
