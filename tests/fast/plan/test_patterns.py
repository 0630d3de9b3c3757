"""The pattern language: what it reads, and what it says of what it cannot read."""

from __future__ import annotations

import random

import pytest

from headrace.core.columns.schema import schema
from headrace.core.errors import PlanError
from headrace.plan.patterns.formulas import Scope, parse_formula
from headrace.plan.patterns.grammar import parse_pattern
from headrace.plan.patterns.parts import Absent, Beginning, Chain, Choice, Excluded, Repeat, Variable
from tests.support.examples import seeds

A, B, C = Variable("A"), Variable("B"), Variable("C")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A", A),
        (" A\n B ", Chain((A, B))),
        ("A|B C", Choice((A, Chain((B, C))))),
        ("(A|B) C", Chain((Choice((A, B)), C))),
        ("A?B*C+", Chain((Repeat(A, 0, 1), Repeat(B, 0, None), Repeat(C, 1, None)))),
        ("A{2}?", Repeat(A, 2, 2, greedy=False)),
        ("A{ , 3} B", Chain((Repeat(A, 0, 3), B))),
        ("A{2,}", Repeat(A, 2, None)),
        ("(A B)+?", Repeat(Chain((A, B)), 1, None, greedy=False)),
        ("(A+)+", Repeat(Repeat(A, 1, None), 1, None)),
        ("permute(A, B)", Choice((Chain((A, B)), Chain((B, A))))),
        (
            "permute(A+, B, C)",
            Choice(
                (
                    Chain((Repeat(A, 1, None), B, C)),
                    Chain((Repeat(A, 1, None), C, B)),
                    Chain((B, Choice((Chain((Repeat(A, 1, None), C)), Chain((C, Repeat(A, 1, None))))))),
                    Chain((C, Choice((Chain((Repeat(A, 1, None), B)), Chain((B, Repeat(A, 1, None))))))),
                )
            ),
        ),
        ("permute(A)", A),
        ("permute B", Chain((Variable("permute"), B))),
        ("^ A $", Chain((Beginning(), A, Absent(None)))),
        ("A {-B-} !C", Chain((A, Excluded(B), Absent("C")))),
    ],
)
def test_a_pattern_is_read(text: str, wanted: object) -> None:
    assert parse_pattern(text) == wanted


@pytest.mark.parametrize(
    ("text", "said", "mark"),
    [
        ("", "expected a variable, a group or !, found the end", 1),
        ("A |", "expected a variable, a group or !, found the end", 4),
        ("A) B", "expected another part or the end, found ')'", 2),
        ("(A B", "expected ')', found the end", 5),
        ("A{2", "expected '}', found the end", 4),
        ("A{x}", "expected a number, found 'x'", 3),
        ("A{,}", "expected a number in the braces", 2),
        ("A{3,1}", "3 to 1 times is never", 2),
        ("A{0} B", "0 to 0 times is never", 2),
        ("A+*", "a repetition of a repetition stands in brackets", 3),
        ("A !B+", "'!B' cannot be repeated", 3),
        ("A !(B)", "expected the variable that must not come, found '('", 4),
        ("A ; B", "';' has no meaning here", 3),
        ("PERMUTE(A, B", "expected ')'", 13),
        ("PERMUTE(A,B,C,D,E,F,G)", "at most 6 parts", 1),
        ("{- A", "expected '-}'", 5),
        ("9 A", "expected a variable", 1),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(text: str, said: str, mark: int) -> None:
    with pytest.raises(PlanError) as refused:
        parse_pattern(text, "app.py:7")
    assert said in str(refused.value)
    assert f"at character {mark}:" in str(refused.value)
    assert "app.py:7" in str(refused.value)


def test_six_variables_in_any_order_are_a_pattern() -> None:
    assert parse_pattern("PERMUTE(A, B, C, D, E, F)").rows == 1_956


def test_a_pattern_that_is_too_large_is_refused() -> None:
    with pytest.raises(PlanError, match="2,500 places for rows"):
        parse_pattern("(A{50}){50}")


def test_no_text_does_more_than_be_refused() -> None:
    for seed in seeds(400):
        chance = random.Random(seed)
        text = "".join(
            chance.choice(["A", "B", "(", ")", "{", "}", "-", "|", "*", "+", "?", ",", "2", "3", "^", "$", "!", " "]) for _ in range(9)
        )
        try:
            parse_pattern(text)
        except PlanError as error:
            assert "pattern" in str(error)  # noqa: PT017 - most of them are refused, and none fails otherwise


SCOPE = Scope(schema("amount int, country string, place struct<x:int>"), ("A", "Big"), {}, "app.py:7", "A")


@pytest.mark.parametrize(
    ("text", "values", "fixed"),
    [
        ("amount > 5", 0, True),
        ("A.amount > a.amount", 0, True),
        ("A.place.x > 1", 0, True),
        ("amount > prev(amount) + prev(amount, 2) + prev(amount)", 2, True),
        ("amount > Big.amount and amount > last(BIG.amount)", 1, False),
        ("sum(Big.amount * 2) > 3 or count(Big.*) = count(*)", 3, False),
        ("running count(*) > 1", 1, False),
        ("count(*) filter (where amount > 5) > 1", 1, False),
        ("prev(first(amount) > 1)", None, "stands inside another value"),
        ("first(sum(amount)) > 1", None, "stands inside another value of the match"),
        ("sum(A.amount + Big.amount) > 1", None, "one value is about the rows of A and Big"),
        ("sum(A.amount + amount) > 1", None, "one value is about the rows of A and any row"),
        ("count(C.*) > 1", None, "there is no variable 'C'"),
        ("Big > 1", None, "Big is a variable of the pattern, not a column"),
        ("final count(*) > 1", None, "final stands in a condition of a row"),
        ("classifier() = 'A'", None, "stands in measures"),
        ("prev(amount, -1) > 1", None, "a whole number of zero or more"),
        ("amuont > 5", None, "there is no column 'amuont'"),
    ],
)
def test_conditions_tell_what_they_see_of_a_match(text: str, values: int | None, fixed: bool | str) -> None:
    if values is None:
        with pytest.raises(PlanError, match=str(fixed).replace("(", r"\(")):
            parse_formula(text, SCOPE)
        return
    formula = parse_formula(text, SCOPE)
    assert (len(formula.values), formula.fixed) == (values, fixed)
