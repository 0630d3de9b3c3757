"""Joins that the documents and tests of Flink work out: the same answers here, and where they differ, why."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.api.declaration import Declaration
from headrace.api.windows import bounded, tumbling
from headrace.log.target import LogTopic
from headrace.testing.driver import TestDriver
from tests.support.joining import ordered
from tests.support.peer_joins import Given, declared, pairs, rows
from tests.support.streams import at

LEFT: Given = [
    ("A", "L-1", 1), ("A", "L-2", 2), ("B", "L-4", 4), ("B", "L-5", 5), ("A", "L-6", 6), ("C", "L-7", 7),
    ("A", "L-10", 10), ("A", "L-12", 12), ("A", "L-20", 20),
]  # fmt: skip
RIGHT: Given = [("A", "R-5", 5), ("A", "R-6", 6), ("B", "R-7", 7), ("D", "R-8", 8)]
PAIRS = [("L-1", "R-6"), ("L-10", "R-6"), ("L-12", "R-6"), ("L-2", "R-6"), ("L-4", "R-7"), ("L-6", "R-6")]


@pytest.mark.parametrize(
    ("how", "alone"),
    [
        ("inner", []),
        ("left", [("L-20", None), ("L-5", None), ("L-7", None)]),
        ("right", [(None, "R-5"), (None, "R-8")]),
        ("full", [("L-20", None), ("L-5", None), ("L-7", None), (None, "R-5"), (None, "R-8")]),
    ],
)
def test_interval_joins_of_flink_with_a_condition(how: str, alone: list[tuple[Any, Any]]) -> None:
    """The left time is from five seconds before the right one to six after it; a condition takes L-5 and R-5 out of every pair."""
    found = pairs(LEFT, RIGHT, within=("6s", "5s"), how=how, where="not (id = 'L-5' or id_right = 'R-5')")
    assert found == sorted([*PAIRS, *alone], key=str)


def test_records_of_the_same_time_in_flink_meet_in_all_pairs() -> None:
    times = [("K1", 1.0), ("K1", 1.0), ("K1", 1.0), ("K1", 4.0), ("K1", 6.0), ("K1", 5.001)]
    left: Given = [*((key, f"L{n}", second) for n, (key, second) in enumerate(times, 1)), ("K2", "L7", 2)]
    right: Given = [*((key, f"R{n}", second) for n, (key, second) in enumerate(times, 1)), ("K2", "R7", 3)]
    expected = [(one, two) for one in ("L1", "L2", "L3") for two in ("R1", "R2", "R3")]
    assert pairs(left, right, within="0s") == sorted([*expected, ("L4", "R4"), ("L5", "R5"), ("L6", "R6")])


def test_a_bound_that_excludes_the_record_itself_is_a_condition() -> None:
    """Flink has bounds on one side of a record, 1 to 3 seconds before it. Here the stretch includes the record, and `where` narrows it."""
    left: Given = [("A", "L0.999", 0.999), ("A", "L1", 1), ("A", "L3", 3), ("A", "L3.001", 3.001)]
    found = pairs(left, [("A", "R0", 0)], within=("3s", "0s"), where="at_right <= at - interval 1 second")
    assert found == [("L1", "R0"), ("L3", "R0")]


def test_open_ends_of_a_stretch_in_flink_are_conditions() -> None:
    left: Given = [("1", "L1", 1), ("1", "L1.001", 1.001), ("1", "L3", 3), ("2", "L4", 4), ("1", "L4.999", 4.999), ("1", "L5", 5)]
    right: Given = [("1", "R1", 1), ("1", "R6", 6), ("2", "R7", 7), ("1", "R8", 8)]
    where = "at_right < at + interval 5 seconds and at_right > at + interval 1 second and n_right > 5"
    expected = [("L1.001", "R6"), ("L3", "R6"), ("L4", "R7"), ("L4.999", "R6")]
    # R8 is more than a second after three left records, and within five seconds of them.
    more = [("L4.999", "R8"), ("L5", "R8")]
    assert pairs(left, right, within=("0s", "5s"), where=where) == sorted([*expected, *more])


def test_windows_over_an_interval_join_go_by_the_later_time() -> None:
    """In Flink the user picks either time, and a pair may be late for the earlier one. Here the time of a pair is the later one."""
    left: Given = [("A", "L-1", 1), ("A", "L-2", 2), ("A", "L-3", 3), ("B", "L-4", 4), ("C", "L-5", 4), ("A", "L-6", 10), ("A", "L-7", 13)]
    right: Given = [("A", "R-1", 7), ("B", "R-4", 7), ("A", "R-3", 8), ("D", "R-2", 8)]
    app = Declaration("flink")
    one, two = declared(app)
    joined = one.join_within(two, on="key", within="5s")
    app.view("windows", joined.window(tumbling("4 seconds"), by="key").agg(n="count(*)"))
    with TestDriver(app) as driver:
        driver.send("left", rows(left))
        driver.send("right", rows(right))
        driver.end()
        found = sorted((row["key"], (row["window_end"] - at(0)).seconds, row["n"]) for row in driver.rows("windows"))
    assert found == [("A", 8, 2), ("A", 12, 3), ("A", 16, 1), ("B", 8, 1)]


def clock(time: str) -> str:
    return f"2020-08-{time}Z"


def test_shipments_within_five_seconds_of_their_orders() -> None:
    """Shipments of orders 3, 4 and 7 come more than five seconds after these."""
    orders: Given = [("1", "o1", 1), ("2", "o2", 2), ("4", "o4", 4), ("5", "o5", 5), ("3", "o3", 3), ("7", "o7", 9), ("10", "o10", 11)]
    shipments: Given = [
        ("1", "s2", 2), ("2", "s5", 5), ("5", "s6", 6), ("4", "s15", 15), ("6", "s16", 15), ("3", "s7", 15),
        ("7", "s11", 16), ("10", "s13", 16),
    ]  # fmt: skip
    met = [("o1", "s2"), ("o10", "s13"), ("o2", "s5"), ("o5", "s6")]
    assert pairs(orders, shipments, within="5s", bound="15s") == met
    alone = [("o3", None), ("o4", None), ("o7", None)]
    assert pairs(orders, shipments, within="5s", bound="15s", how="left") == sorted([*met, *alone], key=str)
    # An interval that nothing can be in, from 10 seconds to 5 seconds after, matches nothing.
    nothing = "at_right >= at + interval 10 seconds and at_right <= at + interval 5 seconds"
    never = pairs(orders, shipments, within=("0s", "10s"), bound="15s", how="left", where=nothing)
    assert never == sorted(((name, None) for _, name, _ in orders), key=str)


# Rates of currencies; the last one says that RMB has none any more.
RATES = [
    ("Euro", 114, "15T00:00:01"), ("US Dollar", 102, "15T00:00:02"), ("Yen", 1, "15T00:00:03"), ("RMB", 702, "15T00:00:04"),
    ("Euro", 118, "16T00:01:00"), ("US Dollar", 106, "16T00:02:00"), ("RMB", None, "16T00:02:00"),
]  # fmt: skip
ORDERS = [
    (1, "Euro", 12, "15T00:01:00"), (2, "US Dollar", 18, "16T00:03:00"), (3, "RMB", 40, "15T00:03:00"), (4, "Euro", 14, "16T00:04:00"),
    (5, "RMB", 40, "16T00:03:00"),
]  # fmt: skip
CONVERTED = [(1, 114), (2, 106), (3, 702), (4, 118)]


@pytest.mark.parametrize("first", ["orders", "rates"])
@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_temporal_join_takes_the_rate_of_the_order_and_none_that_was_deleted(how: str, first: str) -> None:
    """Flink reads deletes of a changelog. Here a version that says so takes their place, and a condition of the result."""
    app = Declaration("flink")
    timed: dict[str, Any] = {"time": "at", "watermark": bounded("2 days", idle="10 days")}
    orders = app.stream("orders", "id int, currency string, amount int, at timestamp", **timed)
    rates = app.stream("rates", "currency string, rate int, at timestamp", **timed).to_table("currency")
    joined = orders.join(rates.as_of("at", history="10 days"), on="currency", how=how)
    app.sink(joined if how == "left" else joined.where("rate is not null"), LogTopic("out"), name="out")
    sent = {
        "orders": [{"id": number, "currency": name, "amount": amount, "at": clock(time)} for number, name, amount, time in ORDERS],
        "rates": [{"currency": name, "rate": rate, "at": clock(time)} for name, rate, time in RATES],
    }
    with TestDriver(app) as driver:
        for name in sorted(sent, key=lambda name: name != first):
            driver.send(name, sent[name])
        driver.end()
        found = ordered([(row["id"], row["rate"]) for row in driver.rows("out")])
    assert found == (CONVERTED if how == "inner" else [*CONVERTED, (5, None)])


def test_a_temporal_join_goes_on_after_a_restart_with_the_versions_it_had() -> None:
    app = Declaration("flink")
    timed: dict[str, Any] = {"time": "at", "watermark": bounded("20s", idle="1 day")}
    orders = app.stream("orders", "amount int, currency string, at timestamp", **timed)
    rates = app.stream("rates", "currency string, rate int, at timestamp", **timed).to_table("currency")
    app.sink(orders.join(rates.as_of("at", history="1 day"), on="currency"), LogTopic("out"), name="out")

    def send(driver: TestDriver, asked: list[tuple[int, str, int]], known: list[tuple[str, int, int]]) -> None:
        driver.send("orders", [{"amount": amount, "currency": name, "at": at(second)} for amount, name, second in asked])
        driver.send("rates", [{"currency": name, "rate": rate, "at": at(second)} for name, rate, second in known])

    with TestDriver(app) as driver:
        known = [("USD", 102, 41), ("Euro", 114, 41), ("Yen", 1, 41), ("Euro", 116, 45), ("Euro", 119, 47)]
        send(driver, [(2, "Euro", 42), (1, "USD", 43), (50, "Yen", 44), (3, "Euro", 45)], known)
        driver.restart()
        send(driver, [(1, "Euro", 58), (1, "USD", 59)], [("USD", 103, 58), ("Euro", 120, 59)])
        driver.end()
        assert sorted(row["amount"] * row["rate"] for row in driver.rows("out")) == sorted([228, 102, 50, 348, 119, 103])


def test_a_current_rate_is_that_of_the_moment_of_arrival() -> None:
    app = Declaration("flink")
    orders = app.stream("orders", "amount int, currency string")
    rates = app.stream("rates", "currency string, rate int").to_table("currency")
    app.sink(orders.join(rates, on="currency"), LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        driver.send("rates", [{"currency": name, "rate": rate} for name, rate in (("US Dollar", 102), ("Euro", 114), ("Yen", 1))])
        driver.send("orders", [{"amount": 2, "currency": "Euro"}])
        driver.send("orders", [{"amount": 1, "currency": "US Dollar"}])
        driver.send("rates", [{"currency": "Euro", "rate": 116}])
        driver.send("orders", [{"amount": 2, "currency": "Euro"}])
        assert [row["amount"] * row["rate"] for row in driver.rows("out")] == [228, 102, 232]


CUSTOMERS = {1: ("Bob", 28, "Mountain View"), 2: ("Alice", 32, "San Francisco"), 3: ("Claire", 37, "Austin"), 4: ("Shannon", 29, "Boise"),
             5: ("Jake", 42, "New York City")}  # fmt: skip


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_lookup_join_asks_for_customers_again_after_a_restart(how: str) -> None:
    """Flink takes a condition on the customer into the lookup; here the function applies it, so that a left join has nulls for it."""
    there = dict(CUSTOMERS)

    def customers(keys: Any) -> list[dict[str, Any]]:
        asked = [key for key in keys["id"].to_pylist() if key in there and there[key][1] > 30]
        return [{"id": key, "name": there[key][0], "city": there[key][2]} for key in asked]

    app = Declaration("flink")
    orders = app.stream("orders", "number int, customer int", key="number")
    found = orders.lookup(customers, on={"customer": "id"}, returns="name string, city string", how=how, cache="0s")
    app.sink(found, LogTopic("out"), name="out")
    with TestDriver(app) as driver:
        sent = [(1, 3), (2, 5), (4, 2), (3, 1), (6, 4), (5, 2)]
        driver.send("orders", [{"number": number, "customer": customer} for number, customer in sent])
        driver.restart()
        there[1], there[6] = ("Bob", 28, "San Jose"), ("Joana", 54, "Atlanta")
        driver.send("orders", [{"number": 7, "customer": 6}, {"number": 9, "customer": 1}])
        names = {row["number"]: row["name"] for row in driver.rows("out")}
    met = {1: "Claire", 2: "Jake", 4: "Alice", 5: "Alice", 7: "Joana"}
    assert names == (met if how == "inner" else met | dict.fromkeys((3, 6, 9)))


# The department, the salary and the name of an employee; the number, a level and the name of a department. Three and two come later.
EMPLOYEES = [
    (None, 101, "Adam"), (1, 1, "Baker"), (2, 2, "Charlie"), (3, 2, "Don"), (7, 6, "Victor"), (4, 3, "Juliet"), (4, 4, "Helena"),
    (1, 1, "Ivana"),
]  # fmt: skip
DEPARTMENTS = [
    (None, 102, "Accounting"), (1, 1, "Research"), (2, 2, "Human Resources"), (2, 3, "HR"), (3, 1, "Sales"), (2, 4, "People Operations"),
    (4, 2, "Engineering"),
]  # fmt: skip
EMPLOYED = [("Baker", "Research"), ("Charlie", "HR"), ("Charlie", "Human Resources"), ("Don", "Sales")]
LATER = [("Charlie", "People Operations"), ("Helena", "Engineering"), ("Ivana", "Research"), ("Juliet", "Engineering")]
STAFF: dict[str, list[tuple[Any, Any]]] = {
    "inner": [], "left": [("Adam", None), ("Victor", None)], "right": [(None, "Accounting")],
    "full": [("Adam", None), ("Victor", None), (None, "Accounting")],
}  # fmt: skip


def staffed(app: Declaration) -> tuple[Any, Any]:
    employees = app.stream("employees", "deptno int, salary int, name string").to_table("name")
    return employees, app.stream("departments", "deptno int, level int, title string").to_table("title")


def hire(driver: TestDriver, employees: Any, departments: Any) -> None:
    driver.send("employees", [{"deptno": number, "salary": salary, "name": name} for number, salary, name in employees])
    driver.send("departments", [{"deptno": number, "level": level, "title": title} for number, level, title in departments])


@pytest.mark.parametrize("how", STAFF)
def test_regular_joins_of_employees_and_departments(how: str) -> None:
    app = Declaration("flink")
    employees, departments = staffed(app)
    app.view("out", employees.join(departments, on="deptno", how=how, ttl=None))
    with TestDriver(app) as driver:
        hire(driver, EMPLOYEES[:5], DEPARTMENTS[:5])
        assert sorted(((row["name"], row["title"]) for row in driver.rows("out")), key=str) == sorted([*EMPLOYED, *STAFF[how]], key=str)
        driver.restart()
        hire(driver, EMPLOYEES[5:], DEPARTMENTS[5:])
        found = sorted(((row["name"], row["title"]) for row in driver.rows("out")), key=str)
    assert found == sorted([*EMPLOYED, *LATER, *STAFF[how]], key=str)


def test_regular_joins_with_conditions_and_of_aggregates() -> None:
    app = Declaration("flink")
    employees, departments = staffed(app)
    pairs_of = employees.join(departments, on="deptno", ttl=None)
    app.view("above", pairs_of.where("salary > level"))
    app.view("paid", employees.join(departments, on={"salary": "level"}, ttl=None).where("salary < 2"))
    lowest = employees.where("deptno is not null").group("deptno", ttl=None).agg(salary="min(salary)")
    levels = departments.where("deptno is not null").group("deptno", ttl=None).agg(level="min(level)")
    app.view("numbers", lowest.join(levels, on="deptno", ttl=None))
    app.view("alike", lowest.join(levels, on={"salary": "level"}, ttl=None))
    with TestDriver(app) as driver:
        hire(driver, EMPLOYEES[:5], DEPARTMENTS[:5])
        hire(driver, EMPLOYEES[5:], DEPARTMENTS[5:])
        above = sorted((row["name"], row["title"]) for row in driver.rows("above"))
        assert above == [("Don", "Sales"), ("Helena", "Engineering"), ("Juliet", "Engineering")]
        paid = sorted((row["name"], row["title"]) for row in driver.rows("paid"))
        assert paid == [("Baker", "Research"), ("Baker", "Sales"), ("Ivana", "Research"), ("Ivana", "Sales")]
        assert sorted(row["deptno"] for row in driver.rows("numbers")) == [1, 2, 3, 4]
        alike = sorted((row["deptno"], row["deptno_right"]) for row in driver.rows("alike"))
        assert alike == [(1, 1), (1, 3), (2, 2), (2, 4), (3, 2), (3, 4)]
