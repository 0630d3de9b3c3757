"""Records as they came from their stream, where only the results of a user's function are at hand."""

from __future__ import annotations

import polars as pl

from headrace.core.columns.schema import schema
from headrace.engine.program.flow import Flow
from headrace.engine.program.program import Origin
from headrace.engine.provenance import Provenance
from headrace.operators.columns import ROW
from headrace.operators.expressions import REASON


def test_each_bad_result_of_a_function_is_told_though_it_has_no_column_of_the_stream() -> None:
    made = pl.DataFrame({"total": [1, 2, 3]}).with_row_index(ROW)
    came = Provenance.resembling(Origin("orders", schema("id string"), None, Flow()), made.drop(ROW))
    letters = came.dead("orders.transform", made[[0, 2]].with_columns(pl.lit("bad").alias(REASON))).frame
    assert letters.select("record", "partition").rows() == [('{"id":null}', None)] * 2
