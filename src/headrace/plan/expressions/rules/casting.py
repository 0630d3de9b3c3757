"""The functions that are casts under another name: `int(x)`, `string(x)`, `date(x)`."""

from __future__ import annotations

import pyarrow as pa

from headrace.core.columns.schema import TIMESTAMP
from headrace.plan.expressions.kinds import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, FLOAT, INT, SMALLINT, STRING, TINYINT
from headrace.plan.expressions.site import Site, rule
from headrace.plan.expressions.terms import Term

_TARGETS: dict[str, pa.DataType] = {
    "boolean": BOOLEAN, "tinyint": TINYINT, "smallint": SMALLINT, "int": INT, "bigint": BIGINT, "float": FLOAT, "double": DOUBLE,
    "decimal": pa.decimal128(10, 0), "string": STRING, "binary": BINARY, "date": DATE, "timestamp": TIMESTAMP,
}  # fmt: skip


@rule(*_TARGETS, arguments=1)
def cast(site: Site, terms: tuple[Term, ...]) -> Term:
    return site.cast(terms[0], _TARGETS[site.name])
