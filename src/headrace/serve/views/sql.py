"""SELECT over views: parsed, allow-listed, generated again, then answered by DuckDB in a process of its own.

The text of the user never reaches the database: what runs is generated from the checked tree, and checked again. The database itself has no
access to files, the network, extensions or settings, and has bounds on time, rows and memory (`sql_worker.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from operator import is_not

import sqlglot
from sqlglot import exp

from headrace.serve.http.problems import Problem
from headrace.serve.views.sql_functions import NAMES, NODES
from headrace.serve.views.table import TableSnapshot

_LONGEST = 100_000
# Its warnings have the text of queries, which may have secrets; what it does not understand is refused.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


@dataclass(frozen=True)
class SqlQuestion:
    """A checked query, and the views that it reads."""

    text: str
    snapshots: Mapping[str, TableSnapshot]


def question_of(text: str, find: Callable[[str], TableSnapshot]) -> SqlQuestion:
    """The query of a text; `find` returns a view by its name."""
    tree = checked(text)
    return SqlQuestion(_generated(tree), _snapshots(tree, find))


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
