"""Names in patterns: of variables, columns and measures, however they are written."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.streams import at

LETTERS = "key string, letter string, value int, at timestamp"


def found(text: str, schema: str = LETTERS, **options: Any) -> list[dict[str, Any]]:
    """The matches among letters, one a second, each with its place as value."""
    app = Declaration("named")
    stream = app.stream("letters", schema, key="key", time="at", watermark=bounded("0s"))
    app.sink(stream.match(**{"by": "key", "within": "1 hour", **options}), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("letters", [{"key": "k", "letter": one, "value": place, "at": at(place)} for place, one in enumerate(text)])
        driver.end()
        return driver.rows("out")


def test_values_of_a_variable_are_not_mixed_up_with_those_of_another_whose_name_ends_with_a_number() -> None:
    """The eleventh value of X, and the first of X1, are both the value of an earlier row."""
    many = " and ".join(f"coalesce(sum(X.value + {number}), 0) >= 0" for number in range(10))
    define = {"X": f"{many} and prev(value, 1) = value - 1", "X1": "prev(letter) = 'a' and count(X.*) = 1"}
    (match,) = found("zabz", pattern="X X1", define=define, measures={"said": "collect_list(letter)"})
    assert match["said"] == ["a", "b"]


@pytest.mark.parametrize(
    ("first", "second"), [("SELECT", "From"), ("case", "NULL"), ("Not", "interval"), ("TRUE", "date"), ("and", "first")]
)
def test_a_variable_may_be_called_like_a_word_of_sql(first: str, second: str) -> None:
    define = {first: "letter = 'a'", second: f"letter = 'b' and value > {first}.value and not {second}.value < 0"}
    measures = {"a": f"{first}.value", "b": f"{second}.value + last({second}.value)", "n": f"count({first}.*)"}
    (match,) = found("ab", pattern=f"{first} {second}", define=define, measures=measures)
    assert (match["a"], match["b"], match["n"]) == (0, 2, 1)
