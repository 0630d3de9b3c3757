"""Patterns in whole apps: the rules of card fraud at their borders, what is emitted and when, and what becomes of late and bad records."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.stream import Stream
from headrace.api.windows import bounded, tumbling
from headrace.core.errors import HeadraceError
from headrace.log.target import LogTopic
from headrace.operators.patterns import lockstep, searches
from headrace.testing.driver import TestDriver
from tests.support.streams import at

PAYMENTS = "card string, amount double, country string, lat double, lon double, at timestamp"
LETTERS = "key string, letter string, value int, at timestamp"
PARIS, LONDON = {"lat": 48.8566, "lon": 2.3522}, {"lat": 51.5074, "lon": -0.1278}  # 343.557 km apart


def payments(app: Declaration, bound: str = "0s") -> Stream:
    return app.stream("payments", PAYMENTS, key="card", time="at", watermark=bounded(bound))


def letters(app: Declaration, bound: str = "0s") -> Stream:
    return app.stream("letters", LETTERS, key="key", time="at", watermark=bounded(bound))


def spelled(text: str, **options: Any) -> list[str]:
    """The matches of a pattern among letters, one a second (a blank is a second without one), each as the letters it has."""
    app = Declaration("spelled")
    define = {name: f"letter = '{name.lower()}'" for name in "ABCD"}
    options = {"within": "1 hour", "define": define, **options}
    used = {name: text for name, text in options["define"].items() if name in options["pattern"]}
    stream = letters(app).match(by="key", measures={"said": "collect_list(letter)"}, **{**options, "define": used})
    app.sink(stream, LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("letters", [{"key": "k", "letter": letter, "at": at(second)} for second, letter in enumerate(text) if letter != " "])
        driver.end()
        return ["".join(row["said"]) for row in driver.rows("out")]


def sprees(rows: list[tuple[int, float, str]], **options: Any) -> list[tuple[int, float]]:
    app = Declaration("fraud")
    alerts = payments(app).match(
        by="card", pattern="A{3,}", define={"A": "amount > 500"}, where="count(distinct A.country) >= 2", within="5 minutes",
        measures={"payments": "count(A.*)", "total": "sum(A.amount)"}, **options,
    )  # fmt: skip
    app.sink(alerts, LogTopic("alerts"), name="alerts")
    with TestDriver(app) as driver:
        driver.send("payments", [{"card": "c", "amount": amount, "country": country, "at": at(second)} for second, amount, country in rows])
        driver.end()
        return [(row["payments"], row["total"]) for row in driver.rows("alerts")]


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([(0, 501, "us"), (10, 502, "fr"), (300, 503, "us")], [(3, 1506)]),  # five minutes apart, inclusive
        ([(0, 501, "us"), (10, 502, "fr"), (301, 503, "us")], []),
        ([(0, 501, "us"), (10, 500, "fr"), (20, 503, "us"), (30, 504, "us")], []),  # $500 is not over $500
        ([(0, 501, "us"), (10, 502, "us"), (20, 503, "us")], []),  # one country
        ([(0, 501, "us"), (10, 502, "us")], []),  # two payments
        ([(0, 501, "us"), (10, 502, "us"), (20, 503, "us"), (290, 504, "fr")], [(4, 2010)]),  # the longest that fits
        # The longest from the first payment has one country; the next one begins a match that has two.
        ([(0, 501, "us"), (10, 502, "us"), (20, 503, "us"), (301, 504, "fr")], [(3, 1509)]),
    ],
)
def test_three_payments_over_500_from_two_countries_in_five_minutes(rows: list[tuple[int, float, str]], wanted: list[Any]) -> None:
    assert sprees(rows) == wanted


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [([0, 1, 2, 600], [4]), ([0, 1, 2, 601], []), ([0, 1, 2], []), ([0, 1, 2, 3, 4, 599], [6]), ([0, 590, 600, 610, 620], [4])],
)
def test_more_than_three_failed_logins_within_ten_minutes(seconds: list[int], wanted: list[int]) -> None:
    app = Declaration("logins")
    stream = app.stream("logins", "user string, ok boolean, at timestamp", key="user", time="at", watermark=bounded("0s"))
    alerts = stream.match(by="user", pattern="F{4,}", define={"F": "not ok"}, within="10 minutes", measures={"failures": "count(*)"})
    app.sink(alerts, LogTopic("alerts"), name="alerts")
    with TestDriver(app) as driver:
        driver.send("logins", [{"user": "u", "ok": False, "at": at(second)} for second in seconds])
        driver.end()
        assert [row["failures"] for row in driver.rows("alerts")] == wanted


# At 343.557 km, 500 km/h is 2473.6 seconds.
@pytest.mark.parametrize(("seconds", "alerts"), [(2473, 1), (2474, 0), (0, 1), (3601, 0)])
def test_a_card_used_at_more_than_500_km_per_hour(seconds: int, alerts: int) -> None:
    app = Declaration("flights")
    moved = payments(app).match(
        by="card", pattern="A B", within="1 hour", after="last B",
        define={"B": "speed_kmh(prev(lat), prev(lon), prev(at), lat, lon, at) > 500"},
        measures={"kmh": "speed_kmh(A.lat, A.lon, A.at, B.lat, B.lon, B.at)", "gone": "A.at", "came": "B.at"},
    )  # fmt: skip
    app.sink(moved, LogTopic("alerts"), name="alerts")
    with TestDriver(app) as driver:
        driver.send("payments", [{"card": "c", "at": at(0), **PARIS}, {"card": "c", "at": at(seconds), **LONDON}])
        driver.end()
        assert [(row["gone"], row["came"]) for row in driver.rows("alerts")] == [(at(0), at(seconds))] * alerts
        assert all(row["kmh"] > 500 for row in driver.rows("alerts"))


def test_after_a_flight_the_next_one_begins_where_that_ended() -> None:
    app = Declaration("flights")
    moved = payments(app).match(
        by="card", pattern="A B", within="1 hour", after="last B", define={"B": "haversine_km(A.lat, A.lon, lat, lon) > 300"}
    )
    app.sink(moved, LogTopic("alerts"), name="alerts")
    with TestDriver(app) as driver:
        driver.send("payments", [{"card": "c", "at": at(second), **place} for second, place in enumerate([PARIS, LONDON, PARIS, PARIS])])
        driver.end()
        assert [[one["offset"] for one in row["evidence"]] for row in driver.rows("alerts")] == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        ("A B", "abab", ["ab", "ab"]),
        ("A B", "acb", []),
        ("A+", "aaabaa", ["aaa", "aa"]),
        ("A+?", "aaa", ["a", "a", "a"]),
        ("A{2}", "aaaaa", ["aa", "aa"]),
        ("A{2,3}", "aaaaa", ["aaa", "aa"]),
        ("A{2,}?", "aaaaa", ["aa", "aa"]),
        ("A{,2} B", "aaab", ["aab"]),
        ("A B? C", "acabc", ["ac", "abc"]),
        ("A B* C", "abbc", ["abbc"]),
        ("A B*? (B | C)", "abbc", ["ab"]),
        ("A | A B", "ab", ["a"]),  # the first that fits, not the longest
        ("A B | A", "ab", ["ab"]),
        ("(A B){2} C", "ababc", ["ababc"]),
        ("(A | B)+ C", "abbac", ["abbac"]),
        ("PERMUTE(A, B, C)", "cabbac", ["cab", "bac"]),
        ("A {- B -} C", "abc", ["abc"]),
        ("PERMUTE(A, B+, C)", "bbcacab", ["bbca", "cab"]),
        ("^ A B", "abab", ["ab"]),
        ("(^ A)? B", "abb", ["ab", "b"]),
        ("A B $", "abab", ["ab"]),
        ("A $", "aa", ["a"]),
        ("(A $ | B)+", "bba", ["bba"]),
        ("(A $ | B)+", "bbab", ["bb", "b"]),
        ("(^ A)+ B", "aab", []),
        ("A !B", "aca", ["a", "a"]),
        ("A !B", "acb", []),
        ("A !B !C", "add", ["a"]),
        ("A !B !C", "adc", []),
    ],
)
def test_a_pattern_matches_as_written(pattern: str, text: str, wanted: list[str]) -> None:
    after = "next row" if pattern == "A B $" else "past last row"
    assert spelled(text, pattern=pattern, after=after) == wanted


@pytest.mark.parametrize(
    ("after", "wanted"),
    [("past last row", ["abb"]), ("next row", ["abb", "bb", "b"]), ("first B", ["abb", "bb", "b"]), ("last B", ["abb", "b"])],
)
def test_after_a_match_the_search_goes_on_where_it_is_told(after: str, wanted: list[str]) -> None:
    assert spelled("abb", pattern="A? B+", after=after) == wanted


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        ("A B", "acdb", ["ab"]),
        ("A B C", "abbcc", ["abc"]),
        ("A !C B", "adb", ["ab"]),
        ("A !C B", "acb", []),
        ("A !C B", "acab", ["ab"]),
        ("A+ B", "acadb", ["aab"]),
        ("A+? B", "acadb", ["ab"]),
    ],
)
def test_other_rows_are_passed_over_on_demand(pattern: str, text: str, wanted: list[str]) -> None:
    assert spelled(text, pattern=pattern, skip="others") == wanted


def test_a_pattern_within_a_time_prefers_among_the_matches_that_fit() -> None:
    # The longest run is six seconds long; within three, the longest that fits wins, and then the next one.
    assert spelled("aaaaaaa", pattern="A+", within="3 seconds") == ["aaaa", "aaa"]
    # B is preferred, and too late.
    assert spelled("a   b", pattern="A (B | C)?", within="3 seconds") == ["a"]


def ordered(rows: list[tuple[int, str]], **options: Any) -> TestDriver:
    app = Declaration("orders")
    unpaid = letters(app, **options).match(
        by="key",
        pattern="ordered !paid",
        within="30 minutes",
        define={"ordered": "letter = 'o'", "paid": "letter = 'p'"},
        measures={"at": "ordered.at"},
    )
    app.sink(unpaid, LogTopic("unpaid"), name="unpaid")
    driver = TestDriver(app)
    driver.send("letters", [{"key": "k", "letter": letter, "at": at(60 * minute)} for minute, letter in rows])
    return driver


@pytest.mark.parametrize(("minute", "alerts"), [(30, 0), (31, 1)])
def test_an_order_that_is_not_paid_in_time_is_told_when_the_watermark_proves_it(minute: int, alerts: int) -> None:
    with ordered([(0, "o"), (5, "x"), (minute, "p")]) as driver:
        assert len(driver.rows("unpaid")) == alerts
        driver.end()
        assert len(driver.rows("unpaid")) == alerts


def test_an_absence_is_told_without_a_further_event_of_the_key() -> None:
    with ordered([(0, "o")]) as driver:
        driver.advance(at(30 * 60))
        assert driver.rows("unpaid") == []
        driver.advance(at(30 * 60 + 1))
        assert [row["at"] for row in driver.rows("unpaid")] == [at(0)]


def test_all_rows_of_a_match_have_running_measures_and_final_ones_and_leave_out_what_is_excluded() -> None:
    app = Declaration("all")
    found = letters(app).match(
        by="key", pattern="A {- B+ -} C", within="1 hour", rows="all",
        define={"A": "letter = 'a'", "B": "letter = 'b'", "C": "letter = 'c'"},
        measures={
            "n": "count(*)", "all": "final count(*)", "is": "classifier()", "sum": "sum(B.value)", "last": "final last(value)",
            "no": "match_number()",
        },
    )  # fmt: skip
    app.sink(found, LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("letters", [{"key": "k", "letter": letter, "value": n, "at": at(n)} for n, letter in enumerate("abbcabc")])
        driver.end()
        rows = [tuple(row[name] for name in ("letter", "n", "all", "is", "sum", "last", "no")) for row in driver.rows("out")]
    assert rows == [("a", 1, 4, "A", None, 3, 1), ("c", 4, 4, "C", 3, 3, 1), ("a", 1, 3, "A", None, 6, 2), ("c", 3, 3, "C", 5, 6, 2)]


def test_an_aggregate_of_a_variable_without_rows_is_that_of_no_rows() -> None:
    nothing = {
        "count(B.*)": 0, "count_if(B.value > 0)": 0, "count(distinct B.letter)": 0, "sum(B.value)": None, "max(B.letter)": None,
        "collect_list(B.value)": [], "array_agg(B.letter)": [], "collect_set(B.value)": [], "max_by(B.letter, B.value)": None,
    }  # fmt: skip
    app = Declaration("nothing")
    stream = letters(app)
    measures = {f"m{number}": text for number, text in enumerate(nothing)} | {"left": "2 - size(collect_list(B.value))"}
    for rows in ("one", "all"):
        found = stream.match(by="key", pattern="A B?", define={"B": "letter = 'b'"}, within="1 minute", rows=rows, measures=measures)
        app.sink(found, LogTopic(rows), name=rows)
    with TestDriver(app) as driver:
        driver.send(
            "letters", [{"key": key, "letter": letter, "value": n, "at": at(n)} for n, (key, letter) in enumerate(["ja", "ka", "kb"])]
        )
        driver.end()
        for rows in ("one", "all"):
            alone, *_ = [row for row in driver.rows(rows) if row["key"] == "j"]
            assert {text: alone[name] for name, text in measures.items()} == {**nothing, measures["left"]: 2}
        (both,) = [row for row in driver.rows("one") if row["key"] == "k"]
        assert [both["m0"], both["m5"], both["m6"], both["left"]] == [1, [2], ["b"], 1]


def test_aggregates_by_the_order_of_rows_see_those_of_one_time_as_the_match_does() -> None:
    """Rows of one time are matched by partition and offset."""
    app = Declaration("tied")
    measures = {name: f"{name}(A.value)" for name in ("first", "last", "first_value", "last_value", "collect_list")}
    found = letters(app).match(by="key", pattern="A+", within="1 minute", measures=measures)
    app.sink(found, LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("letters", [{"key": "k", "letter": "a", "value": value, "at": at(0)} for value in (3, 1, 2)])
        driver.end()
        (row,) = driver.rows("out")
    assert [row[name] for name in measures] == [3, 2, 3, 2, [3, 1, 2]]


@pytest.mark.parametrize("options", [{"define": {"A": "null"}}, {"where": "null"}, {"define": {"A": "prev(null) > 0"}}])
def test_a_condition_that_is_null_for_every_row_is_never_true(options: dict[str, Any]) -> None:
    app = Declaration("null")
    stream = letters(app)
    app.sink(stream.match(by="key", pattern="A", within="1 minute", **options), LogTopic("out"), name="out")
    app.sink(stream.match(by="key", pattern="B !A", within="1 minute", **options), LogTopic("absent"), name="absent")
    with TestDriver(app) as driver:
        driver.send("letters", [{"key": "k", "letter": "a", "value": 1, "at": at(0)}])
        driver.end()
        assert (driver.rows("out"), len(driver.rows("absent"))) == ([], 0 if "where" in options else 1)


def test_matches_are_numbered_until_a_pause() -> None:
    app = Declaration("numbers")
    found = letters(app).match(by="key", pattern="A", within="10 seconds", measures={"no": "match_number()"})
    app.sink(found, LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        for second in (0, 5, 15, 26, 30):
            driver.send("letters", [{"key": "k", "letter": "a", "at": at(second)}])
            driver.restart()
        driver.end()
        assert [row["no"] for row in driver.rows("out")] == [1, 2, 3, 1, 2]


def test_the_time_of_a_match_is_when_it_was_certain_so_that_steps_behind_it_never_find_it_late() -> None:
    app = Declaration("behind")
    found = letters(app).match(by="key", pattern="A+", within="10 seconds", define={"A": "letter = 'a'"})
    app.view("counts", found.window(tumbling("1 second"), by="key").agg(n="count(*)"))
    shown = []
    for size in (1, 3, 8):
        with TestDriver(app) as driver:
            rows = [{"key": "k", "letter": letter, "at": at(second)} for second, letter in enumerate("aab     a")]
            rows = [row for row in rows if row["letter"] != " "]
            for start in range(0, len(rows), size):
                driver.send("letters", rows[start : start + size])
                driver.advance(at(start + size))
            driver.end()
            shown.append([(row["window_start"], row["n"]) for row in driver.rows("counts")])
            assert driver.late("letters") == []
    # The first is certain with the b after it, the second when ten seconds have passed.
    assert shown == [[(at(2), 1), (at(18), 1)]] * 3


def test_a_late_record_is_put_aside_and_no_match_changes() -> None:
    app = Declaration("late")
    app.sink(letters(app, "5s").match(by="key", pattern="A B", within="1 minute", define={"A": "value = 1"}), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("letters", [{"key": "k", "value": 1, "at": at(0)}, {"key": "k", "value": 2, "at": at(20)}])
        driver.send("letters", [{"key": "k", "value": 1, "at": at(14)}, {"key": "k", "value": 3, "at": at(15)}])
        driver.end()
        assert [row["value"] for row in driver.late("letters")] == [1]
        assert [[one["offset"] for one in row["evidence"]] for row in driver.rows("out")] == [[0, 3]]
        counts = {row["step"]: row for row in driver.accounting()}["letters.match"]
        assert (counts["in"], counts["out"], counts["late"]) == (4, 3, 1)


def test_what_cannot_be_computed_is_a_dead_letter_and_the_others_go_on() -> None:
    app = Declaration("bad")
    found = letters(app).match(
        by="key",
        pattern="A B",
        within="1 minute",
        define={"A": "10 / value > 1", "B": "10 / prev(value) >= 0"},
        measures={"ratio": "10 / (B.value - 7)"},
    )
    app.sink(found, LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("letters", [{"key": "k", "value": value, "at": at(n)} for n, value in enumerate([1, 0, 7, 9, 3])])
        driver.end()
        letter = driver.dead_letters("letters")
        assert [(row["step"], row["reason"].split(";")[0]) for row in letter] == [
            ("letters.match", "division by zero in 10 / value"),
            ("letters.match.results", "division by zero in 10 / (B.value - 7)"),
        ]
        assert [row["ratio"] for row in driver.rows("out")] == [-2.5]
        counts = {row["step"]: row for row in driver.accounting()}
        assert (counts["letters.match"]["in"], counts["letters.match"]["out"], counts["letters.match"]["dead_letter"]) == (5, 4, 1)


@pytest.mark.parametrize(
    ("define", "step", "dead", "found"),
    [
        # The row behind the zero cannot be judged: it is a dead letter, and fits nothing.
        ({"B": "10 / prev(value) >= 0"}, "letters.match", 2, [[0, 1]]),
        # A search whose condition over matched rows cannot be told is one, and the row after its first one begins the next.
        ({"B": "10 / A.value >= 0"}, "letters.match.results", 0, [[0, 1], [2, 3]]),
        ({"A": "value = 0", "B": "10 / A.value >= 0"}, "letters.match.results", None, []),
    ],
)
def test_a_condition_over_other_rows_that_cannot_be_computed_is_told(
    define: Any, step: str, dead: int | None, found: list[list[int]]
) -> None:
    app = Declaration("bad")
    app.sink(letters(app).match(by="key", pattern="A B", within="1 minute", define=define), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("letters", [{"key": "k", "value": value, "at": at(n)} for n, value in enumerate([4, 0, 3, 5])])
        driver.end()
        assert [[one["offset"] for one in row["evidence"]] for row in driver.rows("out")] == found
        told = driver.dead_letters("letters")
        assert [(row["step"], row["offset"]) for row in told] == ([] if dead == 0 else [(step, dead)])
        counts = {row["step"]: row for row in driver.accounting()}["letters.match"]
        assert (counts["in"], counts["out"] + counts["dead_letter"]) == (4, 4)


@pytest.mark.parametrize("few", [0, 16])
@pytest.mark.parametrize(("pattern", "rest"), [("A B C D | E F G H", "cd"), ("A B C D? | E F G H", "c"), ("A B !C | E F G H", "")])
def test_a_search_goes_on_after_a_restart_where_the_table_of_states_is_full(
    pattern: str, rest: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lockstep, "FEW", few)
    app = Declaration("full")
    define = {name: f"letter = '{name.lower()}'" for name in "ABCDEFGH" if name in pattern}
    app.sink(letters(app).match(by="key", pattern=pattern, define=define, within="1 hour"), LogTopic("out"), name="out")

    def sent(key: str, text: str, second: int) -> list[dict[str, Any]]:
        return [{"key": key, "letter": letter, "at": at(second + place)} for place, letter in enumerate(text)]

    with TestDriver(app, shards=1) as driver:
        driver.send("letters", [*sent("begun", "ab", 0), *sent("other", "x", 2)])
        driver.restart()
        # Two states for which there is room, and none for those in which the first search was.
        monkeypatch.setattr(searches, "_MOST_STATES", 6)
        driver.send("letters", [*sent("new", "ef", 3), *sent("other", "x", 5)])
        driver.send("letters", sent("begun", rest, 6))
        driver.end()
        wanted = [0, 1, *range(6, 6 + len(rest))]
        assert [[one["offset"] for one in row["evidence"]] for row in driver.rows("out")] == [wanted]


def test_a_pattern_over_results_that_change_is_refused_where_it_is_written() -> None:
    app = Declaration("changing")
    counts = letters(app).window(tumbling("1 minute"), by="key").agg(n="count(*)").emit(early="1 second")
    with pytest.raises(HeadraceError, match=r"patterns among 'letters\.window', whose results change") as refused:
        counts.match(by="key", pattern="A B", within="1 hour")
    assert __file__ in str(refused.value)


def test_a_pattern_has_up_to_62_variables() -> None:
    app = Declaration("many")
    names = [f"V{number}" for number in range(62)]
    define = {name: f"value = {number}" for number, name in enumerate(names)}
    app.sink(letters(app).match(by="key", pattern=" ".join(names), define=define, within="1 hour"), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("letters", [{"key": "k", "value": number, "at": at(number)} for number in range(62)])
        driver.end()
        (row,) = driver.rows("out")
    assert [one["variable"] for one in row["evidence"]] == names


def test_state_is_bounded_by_within() -> None:
    app = Declaration("bound")
    found = letters(app).match(by="key", pattern="A{3,}", define={"A": "value > 0"}, within="10 seconds")
    app.sink(found, LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        most = 0
        for second in range(200):
            driver.send("letters", [{"key": f"k{second % 3}", "value": 1, "at": at(second)}])
            most = max(most, driver.state()[0]["rows"])
        assert most <= 25
        driver.advance(at(300))
        assert driver.state()[0]["rows"] == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"within": None}, "match() of 'letters' has no within"),
        ({"within": "0s"}, "within of 'letters.match' is 0 seconds"),
        ({"by": ()}, "match() of 'letters' has no key"),
        ({"pattern": "A !B C"}, "!B is between rows"),
        ({"pattern": "A $ B"}, "continues after $"),
        ({"pattern": "A ^ B"}, "^ is behind a row of the pattern 'A ^ B'"),
        ({"pattern": "A (^ B | A)"}, "^ is behind a row"),
        ({"pattern": "(^ A){2}"}, "pattern '(^ A){2}' never matches"),
        ({"pattern": "(A $){2,}"}, "pattern '(A $){2,}' never matches"),
        ({"pattern": " ".join(f"V{number}" for number in range(63))}, "the pattern has 63 variables"),
        ({"pattern": "!A B"}, "begins with an absence"),
        ({"pattern": "A*"}, "matches without a row"),
        ({"define": ["value > 1"]}, "define=['value > 1'] has no names"),
        ({"measures": "count(*)"}, "measures='count(*)' has no names"),
        ({"define": {"B": "prev(last(A.value)) > 1"}}, "last(...) stands inside another value of the match"),
        ({"define": {"B": "next(value) > 1"}}, "next(...) looks at a row that comes later"),
        ({"define": {"Z": "true"}}, "define: there is no variable 'Z'"),
        ({"define": {"A": "value"}}, "is int, not a condition"),
        ({"define": {"A": "sin(value) > 0"}}, "needs Spark to be evaluated"),
        ({"define": {"A": "final count(A.*) > 1"}}, "final stands in a condition"),
        ({"define": {"A": "prev(B.value) > 1"}}, "prev(...) of B"),
        ({"measures": {"x": "prev(value)"}}, "prev(...) stands outside of define"),
        ({"measures": {"evidence": "1"}}, "two columns 'evidence'"),
        ({"pattern": "letter B"}, "'letter' is a variable of the pattern and a column"),
        ({"pattern": "A a"}, "is written in two ways"),
        ({"after": "last C"}, "there is no variable 'c' with rows"),
        ({"after": "never"}, "after='never' is not known"),
        ({"rows": "some"}, "rows='some' is not known"),
        ({"skip": "all"}, "skip='all' is not known"),
        ({"where": "count(C.*) > 1"}, "there is no variable 'C'"),
        ({"where": "match_number() < 3"}, "match_number() in where='match_number() < 3'"),
    ],
)
def test_what_is_asked_for_in_vain_is_refused_where_it_is_written(options: dict[str, Any], said: str) -> None:
    app = Declaration("refused")
    asked = {"by": "key", "pattern": "A B", "within": "1 minute", **options}
    with pytest.raises(HeadraceError) as refused:
        letters(app).match(**asked)
    assert said in str(refused.value)
    assert __file__ in str(refused.value)
