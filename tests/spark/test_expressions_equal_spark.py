"""Every expression that runs without Spark gives what Spark gives: the same type, the same bits, a fault where Spark raises."""

from collections.abc import Iterator

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headrace.core.columns.schema import schema as columns
from headrace.core.columns.schema import type_name
from headrace.core.errors import PlanError
from headrace.plan.expressions import FUSED, Typed, check, parse
from headrace.plan.expressions.casts import cast_reason, castable
from headrace.plan.expressions.functions import FUNCTIONS
from headrace.plan.expressions.syntax.nodes import Case, Cast, FunctionCall, SyntaxNode
from headrace.plan.expressions.unfused import UNFUSED
from tests.support.agreement import disagreements
from tests.support.expression_cases import CASTS, SOURCES, TARGETS, cases
from tests.support.expression_trees import any_trees
from tests.support.nasty import nasty_frame, nasty_table, never_null_table
from tests.support.oracle import Oracle, Verdict

TABLE = nasty_table()
CASES = cases()
FRAME = nasty_frame()


@pytest.fixture(scope="module")
def oracle(spark) -> Iterator[Oracle]:
    with Oracle(spark, TABLE) as judge:
        yield judge


def fused(texts: list[str], schema: pa.Schema = TABLE.schema) -> dict[str, Typed]:
    checked = {text: check(parse(text), schema) for text in texts}
    return {text: typed for text, typed in checked.items() if typed.fused}


def allowed_casts() -> list[str]:
    kinds = {name: columns(f"x {name}").field(0).type for name in [*SOURCES.values(), *TARGETS]}
    return [
        f"cast({column} as {target})"
        for column, source in SOURCES.items()
        for target in TARGETS
        if castable(kinds[source], kinds[target]) and cast_reason(kinds[source], kinds[target]) is None
    ]


def difference(texts: dict[str, Typed], verdicts: dict[str, Verdict], frame: pl.DataFrame = FRAME) -> dict[str, list[str]]:
    found = {text: disagreements(typed, frame, verdicts[text]) for text, typed in texts.items()}
    return {text: said for text, said in found.items() if said}


@pytest.mark.parametrize("group", CASES)
def test_fused_functions_equal_spark(group, oracle):
    typed = fused(CASES[group])
    assert [text for text in CASES[group] if text not in typed] == []
    assert difference(typed, oracle.verdicts(list(typed))) == {}


def test_columns_that_are_never_null_are_evaluated_as_in_spark(spark):
    table = never_null_table()
    texts = [text for group in cases("expressions_never_null.sql").values() for text in group]
    typed = fused(texts, table.schema)
    assert list(typed) == texts
    with Oracle(spark, table) as judge:
        assert difference(typed, judge.verdicts(texts), pl.DataFrame(table)) == {}


def test_fused_casts_equal_spark(oracle):
    typed = fused(allowed_casts())
    assert len(typed) > 100
    assert difference(typed, oracle.verdicts(list(typed))) == {}


def test_no_cast_is_allowed_that_spark_refuses(oracle):
    kinds = {name: columns(f"x {name}").field(0).type for name in [*SOURCES.values(), *TARGETS]}
    ours = {
        text
        for (column, source) in SOURCES.items()
        for target in TARGETS
        if not castable(kinds[source], kinds[target]) and (text := f"cast({column} as {target})")
    }
    assert ours == {text for text in CASTS if oracle.refuses(text)}


def test_every_fused_function_is_proved():
    proved = {name for texts in CASES.values() for text in texts for name in functions(parse(text).root)}
    assert FUSED - proved == set()


LEFT_TO_SPARK = {
    "atan2": "d, d", "hypot": "d, d", "levenshtein": "s, s2", "sha2": "s, 256", "format_number": "d, 2", "format_string": "'%s', s",
    "printf": "'%s', s", "to_char": "i, '999'", "get_json_object": "s, '$.a'", "to_json": "st", "regexp_substr": "s, 'a'",
    "regexp_extract_all": "s, '(a)'", "regexp_count": "s, 'a'", "regexp_instr": "s, 'a'", "months_between": "t, t2", "from_unixtime": "l",
    **dict.fromkeys(("initcap", "soundex", "md5", "sha", "sha1", "hash", "xxhash64", "crc32"), "s"),
    **dict.fromkeys(("localtimestamp", "current_timestamp", "now", "current_date", "curdate", "rand", "random", "randn", "uuid"), ""),
}  # fmt: skip


def test_functions_left_to_spark_have_the_type_that_is_said(oracle):
    said = {f"{name}({LEFT_TO_SPARK.get(name, 'd')})": type_name(kind) for name, (kind, _) in UNFUSED.items() if kind is not None}
    assert dict(zip(said, oracle.types(list(said)), strict=True)) == said


def test_the_planner_knows_every_function_of_spark_and_no_other(spark):
    tables = {"collations", "python_worker_logs", "range", "sql_keywords", "variant_explode", "variant_explode_outer"}
    syntax = {"timestampadd", "timestampdiff", "timediff"}
    shown = {row.function for row in spark.sql("show system functions").collect() if row.function.isidentifier()}
    assert shown - tables - {"case"} | syntax == FUNCTIONS


def functions(root: SyntaxNode) -> Iterator[str]:
    for node in root.walk():
        if isinstance(node, FunctionCall):
            yield node.name
        elif isinstance(node, Case):
            yield "case"
        elif isinstance(node, Cast):
            yield "try_cast" if node.safe else "cast"


@settings(max_examples=2, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
@given(texts=st.lists(any_trees(), min_size=60, max_size=60, unique=True))
def test_random_expressions_equal_spark(texts, oracle):
    typed = fused(texts)
    assert len(typed) > 40
    verdicts = oracle.verdicts(list(typed))
    assert difference({text: one for text, one in typed.items() if text in verdicts}, verdicts) == {}


@pytest.mark.parametrize(
    "text",
    [
        "i + ia", "s + s2", "b + 1", "i = b", "a + t", "a + 1L", "t + 1", "not i", "i and b", "upper(ia)", "upper(s, s2)", "sqrt()",
        "d div 2",
        "case when i then 1 end", "st.nope", "nope + 1", "ia.x", "cast(i as date)", "cast(a as int)", "s ~ 1", "coalesce(i, b)",
        "greatest(i)",
        "i in (true)", "element_at(i, 1)", "size(i)", "a - s + 1", "interval 1 day + 1", "t - 1", "if(i, 1, 2)", "named_struct('a')",
        "date_add(a, 1.5)", "map_keys(ia)", "substring(s)", "i between 'x' and b", "~d", "i & d", "abs(b)", "-a", "array_contains(i, 1)",
        "sum(i)",
    ],
)  # fmt: skip
def test_what_is_refused_when_planning_is_refused_by_spark(text, oracle):
    with pytest.raises(PlanError):
        check(parse(text), TABLE.schema)
    assert oracle.refuses(text) or text == "sum(i)"
