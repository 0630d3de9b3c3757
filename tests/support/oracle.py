"""Spark as the judge of expressions: what it computes for each row, and for which rows it raises."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.classic.column import Column

# Small enough for Spark to generate code for the whole chunk: where it falls back to interpreting, it evaluates arguments in
# another order, and real queries do not.
CHUNK = 24
SETTINGS = {
    # Shared subexpressions would be taken out of TryEval and raise for the whole batch.
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.codegen.factoryMode": "CODEGEN_ONLY",
    "spark.sql.codegen.methodSplitThreshold": "1000000",
}


@dataclass(frozen=True)
class Verdict:
    """Spark's result of one expression: its values, and the rows where evaluating it raised."""

    values: pa.Array
    raised: pa.BooleanArray


class Oracle:
    """Evaluates many expressions over one table, row by row, in few jobs.

    Each expression is wrapped in Spark's own TryEval, in generated code as in a real query: the struct around the value
    is null exactly where evaluating it raised.
    """

    def __init__(self, spark: SparkSession, table: pa.Table) -> None:
        self._spark = spark
        # A checkpoint keeps the optimizer from folding the whole query into constants.
        self._frame: DataFrame = spark.createDataFrame(table).localCheckpoint()

    def __enter__(self) -> "Oracle":
        self._before = {name: self._spark.conf.get(name, None) for name in SETTINGS}
        for name, value in SETTINGS.items():
            self._spark.conf.set(name, value)
        return self

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            if value is None:
                self._spark.conf.unset(name)
            else:
                self._spark.conf.set(name, value)

    def verdicts(self, texts: Sequence[str]) -> dict[str, Verdict]:
        """One verdict for each text, except for those that Spark's optimizer already fails to fold."""
        found: dict[str, Verdict] = {}
        for start in range(0, len(texts), CHUNK):
            found |= self._judged(texts[start : start + CHUNK])
        return found

    def _judged(self, texts: Sequence[str]) -> dict[str, Verdict]:
        tried = self._frame.select(*(self._tried(text).alias(f"c{place}") for place, text in enumerate(texts)))
        parts = [part for place in range(len(texts)) for part in (f"c{place}.value as v{place}", f"c{place} is null as r{place}")]
        try:
            table = tried.selectExpr(*parts).toArrow().combine_chunks()
        except (PySparkException, Py4JJavaError):
            half = len(texts) // 2
            return self._judged(texts[:half]) | self._judged(texts[half:]) if half else {}
        return {text: Verdict(*(_whole(table.column(f"{name}{place}")) for name in "vr")) for place, text in enumerate(texts)}

    def types(self, texts: Sequence[str]) -> list[str]:
        """Spark's names of the result types."""
        return [field.dataType.simpleString() for field in self._frame.select(*map(sql.expr, texts)).schema]

    def refuses(self, text: str) -> bool:
        """True when Spark's analysis refuses the expression."""
        try:
            self._frame.select(sql.expr(text)).schema  # noqa: B018  the schema is what makes Spark analyze
        except (AnalysisException, ParseException):
            return True
        return False

    def _tried(self, text: str) -> Column:
        jvm = self._spark._jvm
        utilities = getattr(jvm.org.apache.spark.sql.classic, "ExpressionUtils")  # noqa: B009  a JVM package answers getattr only
        wrapped = sql.struct(sql.expr(text).alias("value"))
        tried = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(utilities.expression(wrapped._jc))
        return Column(utilities.column(tried))


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
