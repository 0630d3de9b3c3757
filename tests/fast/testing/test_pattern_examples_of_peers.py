"""Patterns that the documents and tests of Trino, Flink and Esper answer, with the answers that these give."""

from __future__ import annotations

import re
from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.log.target import LogTopic
from headrace.operators.patterns import backtracking
from headrace.testing.driver import TestDriver
from tests.support.streams import at

SLOPES = {"B": "value < prev(value)", "C": "value > prev(value)"}
WAVE, FALL, SAW = (90, 80, 70, 80, 90, 50, 40, 60), (90, 80, 70, 70), (90, 80, 70, 80, 70, 80)


def rows_of(values: tuple[int, ...], **options: Any) -> list[dict[str, Any]]:
    """All rows of all matches in one value a second, numbered from 1."""
    app = Declaration("peers")
    stream = app.stream("values", "key int, id int, value int, at timestamp", key="key", time="at", watermark=bounded("0s"))
    asked = {"by": "key", "within": "1 hour", "rows": "all", **options}
    app.sink(stream.match(**asked), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        for number, value in enumerate(values, 1):
            driver.send("values", [{"key": 1, "id": number, "value": value, "at": at(number)}])
            if number % 3 == 0:
                driver.restart()
        driver.end()
        assert driver.dead_letters("values") == []
        return driver.rows("out")


def labeled(values: tuple[int, ...], pattern: str, define: dict[str, str], **options: Any) -> str:
    """The rows of each match with their variables."""
    used = {name: text for name, text in define.items() if re.search(rf"\b{name}\b", pattern)}
    measures = {"no": "match_number()", "is": "classifier()", "running": "running last(value)"}
    found = rows_of(values, pattern=pattern, define=used, measures=measures, **options)
    assert all(row["running"] == row["value"] for row in found)
    matches: dict[int, list[str]] = {}
    for row in found:
        matches.setdefault(row["no"], []).append(f"{row['id']}{row['is']}")
    return " | ".join(" ".join(rows) for rows in matches.values())


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("A B+ C+", "1A 2B 3B 4C 5C | 6A 7B 8C"),
        ("A {- B+ -} C+", "1A 4C 5C | 6A 8C"),
        ("{- A -} {- B+ -} C+", "4C 5C | 8C"),
        ("A {- {- B+ -} C+ -}", "1A | 6A"),
        ("{- A B+ C+ -}", ""),
        ("A {- B -}+ {- C -}+", "1A | 6A"),
        ("A {- B -}* {- C -}*", "1A | 6A"),
        ("A {- B -}{1,2} {- C -}{1,2}", "1A | 6A"),
        ("A {- C -}{2,3} {- B -}{2,3}", "3A"),
    ],
)
def test_rows_of_a_wave_are_shown_but_for_excluded_ones(pattern: str, wanted: str) -> None:
    assert labeled(WAVE, pattern, SLOPES) == wanted


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("^ A", "1A"),
        ("A $", "4A"),
        ("A B D", "2A 3B 4D"),
        ("B | E | A", "1A | 2B | 3B | 4E"),
        ("PERMUTE(B, F)", "2B 3F"),
        ("((A) (B (D)))", "2A 3B 4D"),
        ("E+", "2E 3E 4E"),
        ("E+?", "2E | 3E | 4E"),
        ("E{1,}?", "2E | 3E | 4E"),
        ("E{2,}", "2E 3E 4E"),
        ("E{2,}?", "2E 3E"),
        ("E{5,}", ""),
        ("E{1,1}?", "2E | 3E | 4E"),
        ("E{1,5}", "2E 3E 4E"),
        ("E{2}?", "2E 3E"),
        ("B A $", "3B 4A"),
    ],
)
def test_rows_of_a_fall_match_as_quantifiers_and_anchors_say(pattern: str, wanted: str) -> None:
    define = {"B": SLOPES["B"], "F": SLOPES["B"], "D": "value = prev(value)", "E": "value <= prev(value)"}
    assert labeled(FALL, pattern, define) == wanted


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        ("past last row", "1A 2B 3B 4C"),
        ("next row", "1A 2B 3B 4C | 2A 3B 4C | 4A 5B 6C"),
        ("first C", "1A 2B 3B 4C | 4A 5B 6C"),
        ("last B", "1A 2B 3B 4C | 4A 5B 6C"),
        ("last C", "1A 2B 3B 4C | 4A 5B 6C"),
    ],
)
def test_after_a_match_rows_of_a_saw_match_again_where_the_search_continues(after: str, wanted: str) -> None:
    assert labeled(SAW, "A B+ C+ D?", {**SLOPES, "D": "false"}, after=after) == wanted


@pytest.mark.parametrize(("other", "wanted"), [("A", "1A 2X"), ("B", "1B 2X")])
def test_a_condition_over_another_variable_chooses_the_rows_of_that(other: str, wanted: str) -> None:
    assert labeled((1, 1), "(A | B)* X", {"X": f"value = {other}.value"}) == wanted


def test_the_last_of_many_ways_to_match_is_found() -> None:
    """Only if the first eight rows are all of B."""
    every = " and ".join(f"first(B.value, {number}) = {number + 1}" for number in range(8))
    assert labeled(tuple(range(1, 10)), "(A | B)+ Last", {"Last": every}) == "1B 2B 3B 4B 5B 6B 7B 8B 9Last"
    assert labeled((1,) * 20, "(A+)+ B", {"A": "value = 1", "B": "value = 2 and count(A.*) > 0"}) == ""


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"pattern": "(A+ B?)+ C", "define": {"A": "value = 1 and count(*) > 0", "B": "value = 1", "C": "value = 2"}}, ""),
        ({"pattern": "(A+ B?)+ C", "define": {"A": "id > coalesce(last(A.id, 1), 0)", "B": "value = 1", "C": "value = 2"}}, ""),
        ({"pattern": "(A | B)+ C?", "define": {"C": "count(C.*) > 1"}, "where": "count(*) < 3"}, "1A 2A | 3A 4A | 5A 6A"),
        ({"pattern": "A+ B", "define": {}, "skip": "others", "where": "id = 3"}, "1A 2A 3B"),
    ],
)
def test_paths_that_conditions_cannot_tell_apart_are_followed_once(
    options: dict[str, Any], wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are more paths than any search has steps."""
    monkeypatch.setattr(backtracking, "_MOST_STEPS", 2_000)
    assert labeled((1,) * (6 if wanted else 16), **options) == wanted


@pytest.mark.parametrize(
    ("measure", "wanted"),
    [
        ("value", [10, 20, 30]),
        ("last(value)", [10, 20, 30]),
        ("final last(value)", [30, 30, 30]),
        ("first(value)", [10, 10, 10]),
        ("final first(value)", [10, 10, 10]),
        ("final last(value, 2)", [10, 10, 10]),
        ("last(value, 1)", [None, 10, 20]),
        ("final first(value, 2)", [30, 30, 30]),
        ("last(value, 10)", [None, None, None]),
        ("first(A.value) in (30, last(A.value))", [True, False, False]),
        ("match_number() in (0, match_number())", [True, True, True]),
        ("lower(classifier())", ["a", "a", "a"]),
    ],
)
def test_measures_navigate_in_a_match(measure: str, wanted: list[Any]) -> None:
    assert [row["said"] for row in rows_of((10, 20, 30), pattern="A+", define={}, measures={"said": measure})] == wanted


def test_measures_are_running_or_final() -> None:
    measures = {f"{name}_{mode}": f"{mode} last({name}.value)" for name in "ABC" for mode in ("running", "final")}
    found = rows_of((90, 80, 70, 100, 200), pattern="A B+ C+", define=SLOPES, measures=measures)
    assert [[row[f"{name}_running"] for name in "ABC"] for row in found] == [
        [90, None, None], [90, 80, None], [90, 70, None], [90, 70, 100], [90, 70, 200]
    ]  # fmt: skip
    assert {tuple(row[f"{name}_final"] for name in "ABC") for row in found} == {(90, 70, 200)}


# Of the documents of Flink's CEP: what follows a match of `b+ c` in b b b c, and of a longer pattern.
@pytest.mark.parametrize(
    ("pattern", "text", "after", "wanted"),
    [
        ("B+ C", "bbbc", "next row", "1B 2B 3B 4C | 2B 3B 4C | 3B 4C"),
        ("B+ C", "bbbc", "past last row", "1B 2B 3B 4C"),
        ("B+ C", "bbbc", "first B", "1B 2B 3B 4C | 2B 3B 4C | 3B 4C"),
        ("B+ C", "bbbc", "last B", "1B 2B 3B 4C | 3B 4C"),
        ("(A | B | C) (B | C) C+ D", "abcccd", "next row", "1A 2B 3C 4C 5C 6D | 2B 3C 4C 5C 6D | 3C 4C 5C 6D"),
        ("(A | B | X) (B | C) C+ D", "abcccd", "past last row", "1A 2B 3C 4C 5C 6D"),
        ("(A | B | C) (B | C) C+ D", "abcccd", "first C", "1A 2B 3C 4C 5C 6D | 3C 4C 5C 6D"),
    ],
)
def test_after_a_match_of_letters_the_search_continues_where_it_is_told(pattern: str, text: str, after: str, wanted: str) -> None:
    define = {name: f"value = {number}" for number, name in enumerate("ABCDX")}
    assert labeled(tuple("abcdx".index(letter) for letter in text), pattern, define, after=after) == wanted


# Of the tests of Flink's CEP: an event that does not follow, among others that are skipped.
@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        ("A !C B", "acb", ""),
        ("A !C B", "axb", "1A 3B"),
        ("A !C B D", "axbcd", "1A 3B 5D"),
        ("A !C B D", "axcbd", ""),
        ("A !C B? D", "acbd", ""),
        ("A !C B? D", "axd", "1A 3D"),
        ("A B+ !C D", "abxbcd", ""),
        ("A B+? !C D", "abxd", "1A 2B 4D"),
        ("A B{2} C", "axbxbxc", "1A 3B 5B 7C"),
        ("A (B D)* C", "abxdbdxc", "1A 2B 4D 5B 6D 8C"),
        ("A !C !D B", "axb", "1A 3B"),
        ("A !C !D B", "axdb", ""),
    ],
)
def test_what_does_not_follow_ends_a_search_among_skipped_events(pattern: str, text: str, wanted: str) -> None:
    define = {name: f"value = {number}" for number, name in enumerate("ABCDX")}
    assert labeled(tuple("abcdx".index(letter) for letter in text), pattern, define, skip="others") == wanted


# Of the tests of Esper, which gives a match again when it grows: the longest of each is ours.
W = {"F": "value < prev(value)", "G": "value > prev(value)", "H": "value < prev(value)", "I": "value > prev(value)"}
SIXTY = tuple(int(digit) for digit in "888637626299850920238599472804478645175866068438253398559733")
W_SHAPES = [
    (3, 9), (4, 9), (6, 11), (7, 11), (12, 21), (13, 21), (14, 21), (16, 23), (17, 23), (24, 28), (26, 30), (33, 38), (34, 38), (36, 40),
    (42, 48), (45, 50), (46, 50),
]  # fmt: skip


def test_every_w_among_sixty_values_is_found() -> None:
    found = rows_of(
        SIXTY, pattern="A F+ G+ H+ I+", define=W, after="next row", rows="one", measures={"first": "A.id", "last": "last(I.id)"}
    )
    assert [(row["first"], row["last"]) for row in found] == W_SHAPES


RISING, TENS = (5, 3, 6, 4, 6, 10, 9, 4), (12, 10, 8, 10, 12, 8, 10, 12, 12, 12, 9)
OVER = {"A": "value = 10", "B": "value > 10", "C": "value < 10"}
ONES = {"A": "value = 1", "B": "value in (1, 2)", "C": "value = 3"}
FALLING = {
    "B": "value < prev(value)", "C": "value <= prev(value)", "D": "value < prev(value)", "E": "value >= prev(value)",
    "F": "value >= prev(value) and value > A.value",
}  # fmt: skip


@pytest.mark.parametrize(
    ("values", "pattern", "define", "after", "wanted"),
    [
        (RISING, "A B", {"B": "value > A.value"}, "past last row", "2A 3B | 4A 5B"),
        (RISING, "A B", {"B": "value > A.value"}, "next row", "2A 3B | 4A 5B | 5A 6B"),
        (TENS, "A B* C", OVER, "past last row", "2A 3C | 4A 5B 6C | 7A 8B 9B 10B 11C"),
        (TENS, "A B+ C", OVER, "past last row", "4A 5B 6C | 7A 8B 9B 10B 11C"),
        (TENS, "A B? C", OVER, "past last row", "2A 3C | 4A 5B 6C"),
        ((3, 1, 2, 5, 1, 2, 1, 2, 1), "A B A", {"A": "value = 1", "B": "value = 2"}, "next row", "5A 6B 7A | 7A 8B 9A"),
        ((1,), "A?? B", {"A": "value = 1", "B": "value = 1"}, "past last row", "1B"),
        ((1, 1, 1, 3, 1, 1, 1, 1, 3, 1, 3, 3), "A*? B? C", ONES, "past last row", "1A 2A 3B 4C | 5A 6A 7A 8B 9C | 10B 11C | 12C"),
        ((1, 1, 1, 3, 1, 1, 1, 1, 3, 1, 3, 3), "A+? B? C", ONES, "past last row", "1A 2A 3B 4C | 5A 6A 7A 8B 9C | 10A 11C"),
        (
            (100, 98, 75, 61, 50, 49, 64, 78, 84), "A B C* D E* F+", FALLING, "next row",
            "3A 4B 5C 6D 7E 8E 9F | 4A 5B 6D 7E 8E 9F",
        ),
    ],
)  # fmt: skip
def test_rows_are_matched_as_an_engine_of_events_does(
    values: tuple[int, ...], pattern: str, define: dict[str, str], after: str, wanted: str
) -> None:
    assert labeled(values, pattern, define, after=after) == wanted
