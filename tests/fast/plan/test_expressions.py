"""Spark SQL texts are read as Spark reads them, checked against a schema, and refused with the place and a remedy."""

from decimal import Decimal

import pyarrow as pa
import pytest

from headrace.core.columns.schema import TIMESTAMP, schema, type_name
from headrace.core.errors import PlanError
from headrace.plan.expressions import FUSED, check, expand, parse, parse_aggregate, parse_select
from headrace.plan.expressions.expression import with_columns_spelled
from headrace.plan.expressions.kinds import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, INT, STRING
from headrace.plan.expressions.syntax.nodes import Cast, ColumnName, Foreign, FunctionCall, Interval, Literal
from headrace.plan.expressions.unfused import UNFUSED

COLUMNS = schema(
    "i int, l bigint, d double, m decimal(10,2), Name string, at timestamp, day date, ok boolean, tags array<string>, "
    "place struct<city:string,Zip:int>, counts map<string,int>, id bigint not null"
)


def written(text: str) -> str:
    """The tree with every operator in brackets."""

    def shown(node):
        if isinstance(node, FunctionCall):
            return f"({node.name} {' '.join(shown(argument) for argument in node.arguments)})"
        if isinstance(node, Cast):
            return f"(cast {shown(node.operand)} {type_name(node.kind)})"
        return ".".join(node.parts) if isinstance(node, ColumnName) else repr(node.value)

    return shown(parse(text).root)


def typed(text: str):
    return check(parse(text), COLUMNS)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a = b is null", "(is null (= a b))"),
        ("'x' || 1 + 2", "(+ (concat 'x' 1) 2)"),
        ("a + b * c - d", "(- (+ a (* b c)) d)"),
        ("not a and b or c", "(or (and (not a) b) c)"),
        ("not a = b", "(not (= a b))"),
        ("a between 1 and 2 and b", "(and (between a 1 2) b)"),
        ("a = b = c", "(= (= a b) c)"),
        ("a & b | c ^ d", "(| (& a b) (^ c d))"),
        ("-a * b", "(* (negative a) b)"),
        ("a - -5", "(- a -5)"),
        ("a -5", "(- a 5)"),
        ("a not in (1, 2)", "(not (in a 1 2))"),
        ("a not like 'x%'", "(not (like a 'x%'))"),
        ("a is not distinct from b", "(<=> a b)"),
        ("a <> b", "(<> a b)"),
        ("a != b", "(<> a b)"),
        ("a::int + 1", "(+ (cast a int) 1)"),
        ("case a when 1 then b end", None),
        ("x.y[0].z", None),
    ],
)
def test_operators_bind_as_in_spark(text, tree):
    if tree is not None:
        assert written(text) == tree
    assert parse(text).text == text


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("1", 1, INT), ("1L", 1, BIGINT), ("2147483648", 2147483648, BIGINT), ("-2147483648", -2147483648, INT), ("5Y", 5, pa.int8()),
        ("1.5", Decimal("1.5"), pa.decimal128(2, 1)), ("0.10", Decimal("0.10"), pa.decimal128(2, 2)), ("1e3", 1000.0, DOUBLE), ("1.5D", 1.5,
        DOUBLE),
        ("2F", 2.0, FLOAT), ("1e3BD", Decimal(1000), pa.decimal128(4, 0)), ("9223372036854775808", Decimal(9223372036854775808),
        pa.decimal128(19, 0)),
        ("true", True, BOOLEAN), ("null", None, pa.null()), ("'it''s'", "it's", STRING), (r"'a\nb\u0041\%'", "a\nbA\\%", STRING),
        ("'a' 'b'", "ab", STRING),
        ('"quoted"', "quoted", STRING), ("r'\\d'", "\\d", STRING), ("X'1F'", b"\x1f", pa.binary()), ("date'1970-01-02'", 1, DATE),
        ("timestamp'1970-01-01 00:00:01'", 1_000_000, TIMESTAMP), ("timestamp'1970-01-01T01:00:00.5+01:00'", 500_000, TIMESTAMP),
        ("interval 5 minutes", 300_000_000, Interval.DAY_TIME), ("interval '1' day", 86_400_000_000, Interval.DAY),
        ("interval '1 02:03:04.5' day to second", 93_784_500_000, Interval.DAY_TIME), ("interval '1-2' year to month", 14, Interval.MONTH),
        ("interval 1 day 2 hours", 93_600_000_000, Interval.DAY_TIME), ("interval -5 minutes", -300_000_000, Interval.DAY_TIME),
        ("interval 1.5 seconds", 1_500_000, Interval.DAY_TIME), ("interval '5 minutes'", 300_000_000, Interval.DAY_TIME),
    ],
)  # fmt: skip
def test_literals_have_sparks_types(text, value, kind):
    root = parse(text).root
    assert isinstance(root, Literal)
    assert (root.value, root.kind) == (value, kind)


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("a +", 4, "expected a value, found the end"), ("(a", 3, "expected ')'"), ("a b", 3, "expected an operator or the end, found 'b'"),
        ("'abc", 1, "the quote ' is not closed"), ("upper(a,", 9, "expected a value"), ("cast(a as foo)", 11, "'foo' is not a type"),
        ("date'2023-02-29'", 1, "'2023-02-29' is not a date"), ("interval 1 month 1 day", 1, "not an interval"), ("a ; b", 3,
        "';' has no meaning here"),
        ("case when a then 1", 19, "expected 'end'"), ("300Y", 1, "does not fit in 8 bits"),
    ],
)  # fmt: skip
def test_a_syntax_error_shows_its_place(text, place, said):
    with pytest.raises(PlanError) as error:
        parse(text, where="app.py:7")
    assert f"at character {place}: " in error.value.fact
    assert said in error.value.fact
    assert error.value.fact.splitlines()[2] == "  " + " " * (place - 1) + "^"
    assert error.value.where == "app.py:7"


def test_the_mark_stands_under_its_own_line():
    with pytest.raises(PlanError) as error:
        parse("a +\nb *\n* c")
    assert error.value.fact.splitlines()[1:] == ["  * c", "  ^"]


def test_columns_are_listed_once_in_the_order_of_the_text():
    assert parse("b + upper(A) + a + place.city").columns == ("b", "A", "place")


def test_a_lambda_is_left_to_spark_and_its_variables_are_not_columns():
    expression = parse("transform(tags, t -> concat(t, Name))")
    assert isinstance(expression.root, Foreign)
    assert expression.columns == ("tags", "Name")
    found = check(expression, COLUMNS)
    assert (found.type, found.fused, found.reason) == (None, False, "a lambda is evaluated by Spark")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("i + l", "bigint"), ("i + 1", "int"), ("i / 2", "double"), ("l div 2", "bigint"), ("i + d", "double"), ("m + 1", "decimal(11,2)"),
        ("m * m", "decimal(21,4)"), ("m / 3", "decimal(14,6)"), ("m + i", "decimal(13,2)"), ("coalesce(i, m)", "decimal(12,2)"),
        ("Name || i", "string"),
        ("i > 1.5", "boolean"), ("case when ok then 1 else 2L end", "bigint"), ("day + 1", "date"), ("day + interval 1 hour", "timestamp"),
        ("at - interval 1 month", "timestamp"), ("place.city", "string"), ("place.zip + 1", "int"), ("tags[0]", "string"), ("counts['a']",
        "int"),
        ("split(Name, ',')", "array<string>"), ("struct(i, Name as n)", "struct<i:int,n:string>"), ("'5' * i", "bigint"), ("sqrt(i)",
        "double"),
        ("round(m, 1)", "decimal(10,1)"), ("size(tags)", "int"), ("cast(Name as date)", "date"), ("if(ok, null, 1)", "int"),
    ],
)  # fmt: skip
def test_types_are_sparks(text, kind):
    found = typed(text)
    assert found.type is not None
    assert (type_name(found.type), found.fused, found.reason) == (kind, True, "")


def test_the_difference_of_timestamps_is_a_duration():
    assert typed("at - at").type == pa.duration("us")


@pytest.mark.parametrize(
    ("text", "nullable"), [("id + 1", False), ("i + 1", True), ("coalesce(i, 0)", False), ("id / 2", True), ("i is null", False)]
)
def test_only_what_is_never_null_is_said_not_to_be(text, nullable):
    assert typed(text).nullable is nullable


def test_names_are_found_whatever_their_case():
    assert typed("NAME || place.ZIP").fused


def test_a_column_may_be_called_like_a_keyword():
    found = check(parse("user || date || `select`"), schema("user string, date string, `select` string"))
    assert found.fused


def test_a_missing_column_is_told_with_the_nearest_and_all_others():
    with pytest.raises(PlanError) as error:
        check(parse("amuont * 2", where="app.py:3"), schema("amount int, user string"))
    assert error.value.fact.splitlines() == ["there is no column 'amuont'", "  amuont * 2", "  ^^^^^^"]
    assert error.value.hint == "did you mean 'amount'? columns there: amount, user"
    assert error.value.where == "app.py:3"


def test_a_missing_field_is_told_with_the_others():
    with pytest.raises(PlanError, match="there is no field 'town'") as error:
        typed("place.town")
    assert error.value.hint == "fields there: city, Zip"


def test_a_name_that_could_be_two_columns_is_refused():
    with pytest.raises(PlanError, match="could be any of a, A"):
        check(parse("a + 1"), pa.schema([("a", pa.int32()), ("A", pa.int32())]))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("i + tags", "+ works on numbers, and tags is array<string>"), ("Name + Name", "both sides are strings"), ("ok + 1", "is boolean"),
        ("i = ok", "= has no common type for int, boolean"), ("upper(Name, i)", "upper takes 1 argument, not 2"), ("upper(tags)",
        "upper takes a string"),
        ("not i", "not takes a boolean, and i is an int"), ("cast(i as date)", "i is an int, not a date"), ("if(i, 1, 2)",
        "a condition is true or false"),
        ("sum(i)", "combines many rows"), ("d div 2", "div divides whole numbers"), ("at + 1", "is timestamp"), ("day + 1L",
        "a date moves by an int"),
        ("Name like 'a\\\\'", "the pattern of like cannot be read"), ("size(i)", "takes an array or a map"), ("1 + i + 2147483647",
        "the constants of"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_refused_when_planning(text, said):
    with pytest.raises(PlanError) as error:
        typed(text)
    assert said in error.value.fact


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("soundex(Name)", "string", "function soundex is evaluated by Spark: its letters"),
        ("sin(d) + 1", "double", "differ in the last digit"),
        ("space(i)", None, "function space is evaluated by Spark"),
        ("upper(space(i))", None, "function space is evaluated by Spark"),
        ("cast(d as string)", "string", "depend on Spark's Java version"),
        ("Name rlike '(?=a)'", "boolean", "which Java reads in its own way"),
        ("Name like Name", None, "with a pattern that is not a constant"),
        ("to_date(Name, 'yyyy')", "date", "with a format is evaluated by Spark"),
        ("current_timestamp", "timestamp", "a replay would differ"),
    ],
)
def test_what_is_not_proved_is_left_to_spark_with_the_reason(text, kind, reason):
    found = typed(text)
    assert not found.fused
    assert reason in found.reason
    assert (None if found.type is None else type_name(found.type)) == kind


@pytest.mark.parametrize(
    ("text", "name", "meant"),
    [
        ("uper(Name)", "uper", "upper"),
        ("cast(lenght(Name) + 1 as int)", "lenght", "length"),
        ("TO_DATES(Name) = day", "to_dates", "to_date"),
        ("xyzzy(i, d)", "xyzzy", None),
    ],
)
def test_a_function_that_spark_does_not_have_is_refused_when_planning(text, name, meant):
    with pytest.raises(PlanError, match=f"Spark SQL has no function '{name}'") as error:
        typed(text)
    assert f"did you mean {meant!r}?" in error.value.hint if meant else "did you mean" not in error.value.hint
    assert "transform(...)" in error.value.hint


def test_no_function_is_both_fused_and_left_to_spark():
    assert set(UNFUSED) & FUSED == set()


def test_a_select_list_has_sparks_names():
    items = parse_select("url, upper(user) as u, amount*2 total, place.city, transform(xs, x -> x + 1) as ys, `odd name`")
    assert [(name, expression.text) for name, expression in items] == [
        ("url", "url"), ("u", "upper(user)"), ("total", "amount*2"), ("city", "place.city"), ("ys", "transform(xs, x -> x + 1)"),
        ("odd name", "`odd name`"),
    ]  # fmt: skip


def test_an_expression_without_a_name_is_refused():
    with pytest.raises(PlanError, match="'a \\+ 1' has no name") as error:
        parse_select("b, a + 1", where="app.py:9")
    assert error.value.hint == "write a + 1 as name"


def test_a_star_stands_for_the_columns_there():
    columns = schema("a int, b int, st struct<x:int,y:int>")
    assert [name for name, _ in expand(parse_select("* except (b), st.*, a + 1 as c"), columns)] == ["a", "st", "x", "y", "c"]


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(PlanError, match="two columns would be called 'A'"):
        expand(parse_select("*, b as A"), schema("a int, b int"))


def test_an_aggregate_becomes_calls_and_an_expression_over_them():
    aggregation = parse_aggregate("round(sum(amount) / count(*), 2)")
    assert with_columns_spelled(aggregation.finish).text == "round(`_aggregate_0` / `_aggregate_1`, 2)"
    assert [(call.name, call.function, call.placeholder) for call in aggregation.calls] == [
        ("sum(amount)", "sum", "_aggregate_0"),
        ("count(*)", "count", "_aggregate_1"),
    ]
    assert [[argument.text for argument in call.arguments] for call in aggregation.calls] == [["amount"], []]
    finished = check(aggregation.finish, pa.schema([("_aggregate_0", pa.int64()), ("_aggregate_1", pa.int64())]))
    assert (finished.type, finished.fused) == (DOUBLE, True)


def test_the_same_call_is_aggregated_once():
    aggregation = parse_aggregate("max(a) - min(a) + MAX( A )")
    assert [call.function for call in aggregation.calls] == ["max", "min"]
    assert with_columns_spelled(aggregation.finish).text == "`_aggregate_0` - `_aggregate_1` + `_aggregate_0`"


def test_filters_and_distinct_belong_to_the_call():
    filtered, distinct = (parse_aggregate(text).calls[0] for text in ("sum(a) filter (where kind = 'x')", "count(distinct user)"))
    assert filtered.filter is not None
    assert (filtered.filter.text, filtered.distinct) == ("kind = 'x'", False)
    assert (distinct.filter, distinct.distinct, distinct.arguments[0].text) == (None, True, "user")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("amount * 2", "contains no aggregate"), ("sum(a) + b", "column 'b' is outside of every aggregate"), ("sum(max(a))",
        "is inside sum"),
        ("summ(a)", "contains no aggregate"),
    ],
)  # fmt: skip
def test_what_is_no_aggregate_is_refused(text, said):
    with pytest.raises(PlanError, match=said):
        parse_aggregate(text)


def test_an_aggregate_of_the_users_own_can_be_named():
    aggregation = parse_aggregate("Spread(price) * 2", functions=frozenset({"spread"}))
    assert [call.function for call in aggregation.calls] == ["spread"]


def test_an_aggregate_in_a_row_expression_is_refused():
    with pytest.raises(PlanError, match="is an aggregate"):
        parse("count(distinct a)")
