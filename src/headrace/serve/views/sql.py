"""SELECT over views, answered by DuckDB on the rows in memory: parsed, allow-listed, generated again, then run in a locked database.

The text of the user never reaches the database: what runs is generated from the checked tree, and checked again. The database itself has no
access to files, the network, extensions or settings, and has bounds on time, rows and memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count, takewhile
from operator import is_not

import duckdb
import polars as pl
import pyarrow as pa
import sqlglot
from sqlglot import exp

from headrace.serve.http.problems import Problem
from headrace.serve.views.sql_functions import NAMES, NODES
from headrace.serve.views.table import PRESENT, TableSnapshot

_LONGEST = 100_000
_CONFIG = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}


@dataclass(frozen=True)
class SqlLimits:
    """The limits of one query."""

    seconds: float = 10.0
    rows: int = 100_000
    memory: str = "1GB"
    answer: int = 256 * 1024 * 1024
    """Bytes of the rows."""
    threads: int = 2


@dataclass(frozen=True)
class SqlResult:
    """The rows of a query; `complete` is false if there were more than the limit."""

    table: pa.Table
    complete: bool
    epochs: Mapping[str, int]


def run_sql(text: str, find: Callable[[str], TableSnapshot], limits: SqlLimits) -> SqlResult:
    """Answer a query; `find` returns a view by its name."""
    tree = checked(text)
    snapshots = _snapshots(tree, find)
    config: dict[str, str | bool | int | float | list[str]] = {**_CONFIG, "memory_limit": limits.memory, "threads": str(limits.threads)}
    with duckdb.connect(":memory:", config=config) as database:
        database.execute("SET TimeZone = 'UTC'")
        for name, snapshot in snapshots.items():
            _define(database, name, snapshot)
        database.execute("SET lock_configuration = true")
        table, complete = _answer(database, _generated(tree), limits)
    return SqlResult(table, complete, {name: snapshot.epoch for name, snapshot in snapshots.items()})


def checked(text: str) -> exp.Query:
    """The tree of one SELECT that uses nothing but tables, allowed functions and operators.

    It is the tree of the text that runs, which is read like the user's: a quoted name may become text without quotes there, as the unit of
    an interval or the length of a type, and would be more than a name.
    """
    tree = _allowed(text)
    runs = _generated(tree)
    if _generated(again := _allowed(runs)) != runs:
        raise Problem(400, "the query can be read in two ways", hint="leave out quotes where no name is meant")
    return again


def _generated(tree: exp.Query) -> str:
    # Comments are the user's own text.
    return tree.sql(dialect="duckdb", comments=False)


def _allowed(text: str) -> exp.Query:
    if len(text) > _LONGEST:
        raise Problem(413, f"the query has {len(text):,} characters, at most {_LONGEST:,} are taken")
    try:
        trees = [tree for tree in sqlglot.parse(text, dialect="duckdb") if tree is not None]
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise Problem(400, f"this is not SQL{_place(error)}", hint="SELECT … FROM view") from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise Problem(400, "only one SELECT is answered", hint="SELECT … FROM view")
    tree = trees[0]
    for node in tree.find_all(exp.Expression):
        _refuse(node)
    return tree


def _place(error: Exception) -> str:
    """Where the parser stopped; its own words name its classes."""
    found = error.errors[0] if isinstance(error, sqlglot.errors.ParseError) and error.errors else {}
    return f", line {found['line']}, near {found['highlight']!r}" if found.get("highlight") else ""


def _refuse(node: exp.Expression) -> None:
    if isinstance(node, exp.Table):
        if not isinstance(node.this, exp.Identifier):
            raise Problem(400, f"{node.sql(dialect='duckdb')!r} is not a view", hint="only views are read")
        if node.args.get("db") or node.args.get("catalog"):
            raise Problem(400, f"{node.sql(dialect='duckdb')!r}: a view has no schema or database before its name")
    elif isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        if node.name.lower() not in NAMES:
            raise Problem(400, f"function {node.name!r} is not allowed")
    elif isinstance(node, exp.Func) and type(node).__name__ not in NODES:
        raise Problem(400, f"function {node.sql_name().lower()!r} is not allowed")
    elif isinstance(node, exp.Command | exp.DDL | exp.DML | exp.Set | exp.Pragma | exp.Into | exp.Lock | exp.Parameter | exp.Placeholder):
        raise Problem(400, f"{type(node).__name__.lower()!r} is not part of a SELECT that is answered")


def _snapshots(tree: exp.Query, find: Callable[[str], TableSnapshot]) -> dict[str, TableSnapshot]:
    """The views that a query reads, each once however it is spelled."""
    tables = [table for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    found = dict[str, TableSnapshot]()
    for name in dict.fromkeys(table.name for table in tables if not _defined(table)):
        snapshot = find(name)
        found[snapshot.view.name] = snapshot
    return found


def _defined(table: exp.Table) -> bool:
    """Whether a name means a common table expression where it stands; elsewhere, the database would look for it in its own catalog."""
    name = table.name.lower()
    inside: exp.Expr = table
    while (outer := inside.parent) is not None:
        if isinstance(outer, exp.With):
            # An expression sees those before it, and itself if it may be recursive.
            seen = list(takewhile(partial(is_not, inside), outer.expressions))
            seen += [inside] if outer.args.get("recursive") else []
            outer = outer.parent or outer
        else:
            seen = [one for part in outer.args.values() if isinstance(part, exp.With) for one in part.expressions]
        if any(one.alias.lower() == name for one in seen):
            return True
        inside = outer
    return False


def _define(database: duckdb.DuckDBPyConnection, name: str, snapshot: TableSnapshot) -> None:
    """Define a view of the rows in memory, without a copy."""
    columns = ", ".join(_quoted(column) for column in snapshot.view.columns.names)
    selects = []
    for number, part in enumerate(snapshot.parts):
        source = f"_rows of {name} {number}"
        database.register(source, part.marked.to_arrow(compat_level=pl.CompatLevel.oldest()))
        selects.append(f"SELECT {columns} FROM {_quoted(source)} WHERE {PRESENT}")  # noqa: S608 - names are quoted
    if not selects:
        source = f"_rows of {name}"
        database.register(source, snapshot.view.columns.empty_table())
        selects = [f"SELECT {columns} FROM {_quoted(source)}"]  # noqa: S608 - names are quoted
    database.execute(f"CREATE VIEW {_quoted(name)} AS {' UNION ALL '.join(selects)}")


def _answer(database: duckdb.DuckDBPyConnection, text: str, limits: SqlLimits) -> tuple[pa.Table, bool]:
    timer = threading.Timer(limits.seconds, database.interrupt)
    timer.start()
    try:
        reader: pa.RecordBatchReader = database.sql(text).to_arrow_reader(min(limits.rows + 1, 10_000))
        _refuse_intervals(reader.schema)
        schema, batches, rows, size = reader.schema, list[pa.RecordBatch](), 0, 0
        for batch in reader:
            batches.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if size > limits.answer:
                raise Problem(413, f"the rows have more than {limits.answer:,} bytes", hint="ask for fewer rows or shorter values")
            if rows > limits.rows:
                break
    except (duckdb.Error, OSError) as error:
        raise _problem(error, limits) from error
    finally:
        timer.cancel()
    table = pa.Table.from_batches(batches, schema)
    table = _narrowed(table.rename_columns(_distinct(table.column_names)))
    return table.slice(0, limits.rows), rows <= limits.rows


def _problem(error: Exception, limits: SqlLimits) -> Problem:
    """What the database says of a query. After the first rows its errors come through Arrow, which keeps their text only."""
    text = _first_line(error)
    if isinstance(error, duckdb.InterruptException) or text.startswith("INTERRUPT Error"):
        return Problem(408, f"the query took longer than {limits.seconds:g} seconds")
    if isinstance(error, duckdb.OutOfMemoryException) or text.startswith("Out of Memory Error"):
        return Problem(413, f"the query needs more than {limits.memory} of memory")
    near = next((line for line in str(error).splitlines() if line.startswith(("Candidate ", "Did you mean"))), None)
    return Problem(400, text, hint=near)


def _refuse_intervals(schema: pa.Schema) -> None:
    """An interval of months, days and nanoseconds is a type of no format."""
    for field in schema:
        if "interval" in str(field.type):
            raise Problem(400, f"column {field.name!r} is an interval, which an answer cannot have", hint="epoch(…) has its seconds")


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
    lines: Iterable[str] = (line for line in str(error).splitlines() if line.strip())
    return next(iter(lines), "the query failed")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
