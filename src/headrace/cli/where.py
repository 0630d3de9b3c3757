"""The filter that `--where` gives: a condition in Spark SQL over the columns of a topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.log import Topic


def filter_of(text: str, topic: Topic) -> Callable[[pa.Table], pa.Table]:
    """A filter that keeps the rows for which the condition is true."""
    import polars as pl
    import pyarrow as pa

    from headrace.core.errors import PlanError
    from headrace.log.files.layout import BatchLayout
    from headrace.operators.expressions import compile as compiled
    from headrace.plan.expressions import check, parse

    layout = BatchLayout(topic)
    typed = check(parse(text, where="--where"), layout.schema(layout.visible_columns()))
    if typed.type != pa.bool_():
        raise PlanError(
            f"{text!r} is not a condition", hint="write one that is true or false: \"country = 'NL' and price > 10\"", where="--where"
        )
    condition = compiled(typed)
    # A row on which the condition fails, such as by a division by zero, does not satisfy it.
    holds = condition.value if condition.error is None else condition.value & condition.error.is_null()

    def keep(table: pa.Table) -> pa.Table:
        return table.filter(pl.DataFrame(pl.from_arrow(table)).select(holds.alias("kept"))["kept"].to_arrow())

    return keep
