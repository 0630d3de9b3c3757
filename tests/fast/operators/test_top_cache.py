"""The cached rows of a top against a plain sort of all rows: ties, nulls, groups, those that come forth from behind the floor."""

from __future__ import annotations

import random

import polars as pl
import pytest

from headrace.operators.columns import ALL
from headrace.operators.tables.top_cache import Order, TopCache, groups_of_rows
from tests.support.examples import seeds

# Key, group, score.
Row = tuple[str | None, str | None, int]
SCHEMA = {"k": pl.String, "g": pl.String, "s": pl.Int64, ALL: pl.Int32, "_time": pl.Int64}
WHOLE, GROUPS = Order(("k",), "s", (ALL,), 2), Order(("k",), "s", ("g",), 2)
# A group is trimmed when more rows than this are in the cache.
MOST = 2 * WHOLE.kept


def frame(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame([(*row, 0, 0) for row in rows], schema=SCHEMA, orient="row")


def ordered(rows: list[Row]) -> list[Row]:
    """The largest scores first, of equal ones the smallest key; none is smaller than any."""
    return sorted(rows, key=lambda row: (-row[2], row[0] is not None, row[0] or ""))


class Held:
    """All rows, the cached ones, and what its changelog adds up to."""

    def __init__(self, order: Order, rows: list[Row] = ()) -> None:
        self.order, self.all = order, {row[0]: row for row in rows}
        self.cache = TopCache(order, frame(list(rows)))
        self.shown = self.best()
        self.looked = 0

    def best(self) -> set[Row]:
        groups = {None} if self.order.group == (ALL,) else {row[1] for row in self.all.values()}
        members = [[row for row in self.all.values() if len(groups) == 1 or row[1] == group] for group in groups]
        return {row for rows in members for row in ordered(rows)[: self.order.count]}

    def put(self, *rows: Row, gone: tuple[str | None, ...] = ()) -> int:
        """Change rows; the changelog must add up to the best ones. Gives how often all rows had to be looked at."""
        fresh, keys = frame(list(rows)), frame([self.all.get(key, (key, None, 0)) for key in [*(row[0] for row in rows), *gone]])
        self.all |= {row[0]: row for row in rows}
        for key in gone:
            del self.all[key]
        looked = self.looked
        near, leaving = self.cache.above(fresh), self.cache.of(keys)
        changed = pl.concat([near.select("k"), leaving.select("k")]).unique()
        touched = groups_of_rows([near, leaving], self.order.group)
        for said in self.cache.change(near, changed, touched, self._everything):
            for key, group, score, sign in said.select("k", "g", "s", "_op").rows():
                (self.shown.add if sign > 0 else self.shown.remove)((key, group, score))
        assert self.shown == self.best()
        return self.looked - looked

    def found_again(self) -> None:
        self.cache = TopCache.found_again(self.order, self.cache.rows)

    def _everything(self) -> pl.DataFrame:
        self.looked += 1
        return frame(list(self.all.values()))


def players(count: int, group: str | None = "a") -> list[Row]:
    return [(f"{group}{number:03}", group, number) for number in range(count)]


@pytest.mark.parametrize("group", [(ALL,), ("g",)], ids=["of all", "per group"])
@pytest.mark.parametrize("keys", [6, 60, 400])
def test_random_changes_give_what_a_sort_of_all_rows_gives(keys: int, group: tuple[str, ...]) -> None:
    for seed in seeds(6):
        chance = random.Random(seed)
        held = Held(Order(("k",), "s", group, chance.choice([1, 2, 5])))
        for _ in range(20):
            some = {f"k{chance.randrange(keys):03}" if chance.random() < 0.97 else None for _ in range(chance.randrange(keys))}
            # Sometimes the leaders fall, so that there are too few in front.
            some |= {row[0] for row in ordered(list(held.all.values()))[: chance.choice([0, 0, 50])]}
            leaving = [key for key in some if key in held.all and chance.random() < 0.4]
            rows = [(key, _group_of(key), chance.randrange(-9, 9)) for key in some.difference(leaving)]
            held.put(*rows, gone=tuple(leaving))
            if chance.random() < 0.3:
                held.found_again()
        assert held.cache.rows.height <= MOST * 4


def _group_of(key: str | None) -> str | None:
    return None if key is None else "abc"[int(key[1:]) % 3]


def test_of_equal_scores_the_smaller_key_is_before_and_none_before_all() -> None:
    held = Held(WHOLE, [("m", "a", 5), ("n", "a", 5)])
    held.put(("z", "a", 5))
    assert held.shown == {("m", "a", 5), ("n", "a", 5)}
    held.put(("b", "a", 5), (None, "a", 5))
    assert held.shown == {(None, "a", 5), ("b", "a", 5)}


def test_a_tie_with_the_floor_is_decided_by_the_key() -> None:
    held = Held(WHOLE, [(f"k{number:03}", "a", 7) for number in range(MOST + 1)])
    # The last one in front is the floor.
    floor = f"k{WHOLE.kept - 1:03}"
    assert held.cache.above(frame([(f"{floor}0", "a", 7), ("z", "a", 7), (floor, "a", 6)])).is_empty()
    assert held.cache.above(frame([("k000+", "a", 7), (None, "a", 7), ("z", "a", 8), (floor, "a", 7)])).height == 4


def test_what_is_behind_the_floor_changes_nothing_and_is_not_looked_at() -> None:
    held = Held(WHOLE, players(MOST + 1))
    assert held.cache.rows.height == WHOLE.kept
    assert held.put(("a000", "a", 3), ("new", "a", 1), gone=("a001",)) == 0
    assert held.cache.rows.height == WHOLE.kept
    for number in range(0, 2 * MOST, 4):
        assert held.put(*((f"b{place}", "a", 1_000 + place) for place in range(number, number + 4))) == 0
    assert held.cache.rows.height <= MOST


def test_all_rows_are_looked_at_once_when_too_few_are_left_in_front() -> None:
    rows = players(MOST + 1)
    held = Held(WHOLE, rows)
    leaders = [row[0] for row in ordered(rows)]
    spare = WHOLE.kept - WHOLE.count
    assert [held.put(gone=(leader,)) for leader in leaders[:spare]] == [0] * spare
    assert held.put(gone=(leaders[spare],)) == 1
    # The rest of them all fit in front now, so that nobody is behind them.
    assert [held.put(gone=(leader,)) for leader in leaders[spare + 1 :]] == [0] * (len(leaders) - spare - 1)
    assert held.cache.rows.is_empty()


def test_a_group_that_is_refilled_leaves_the_others_as_they_are() -> None:
    held = Held(GROUPS, [*players(MOST + 1, "a"), *players(MOST + 1, "b"), *players(1, None)])
    assert held.put(*((f"a{number:03}", "a", -number) for number in range(10, MOST + 1))) == 1
    counts = dict(held.cache.rows.group_by("g").len().rows())
    assert counts == {"a": GROUPS.kept, "b": GROUPS.kept, None: 1}
    assert held.put(gone=("None000",)) == 0


def test_a_row_may_go_over_to_another_group() -> None:
    held = Held(GROUPS, [*players(3, "a"), *players(3, "b")])
    held.put(("a002", "b", 9))
    assert held.shown == {("a001", "a", 1), ("a000", "a", 0), ("a002", "b", 9), ("b002", "b", 2)}


def test_behind_rows_found_again_there_may_be_others_unless_they_are_too_few() -> None:
    held = Held(GROUPS, [*players(MOST + 1, "a"), *players(1, "b")])
    held.found_again()
    assert held.put(("b001", "b", -5)) == 0
    assert ("b001", "b", -5) in held.shown, "a group with fewer rows than are emitted has none behind it"
    leaders = [row[0] for row in ordered(players(MOST + 1))[: GROUPS.kept - 1]]
    assert held.put(gone=tuple(leaders)) == 1, "one in front is not enough, and the others are found behind it"


def test_what_is_forgotten_leaves_no_floor_behind() -> None:
    held = Held(GROUPS, [*players(MOST + 1, "a"), *players(2, "b")])
    held.cache.forget(pl.col("g") == "a")
    held.all = {key: row for key, row in held.all.items() if row[1] != "a"}
    held.shown = held.best()
    assert held.cache.rows.height == 2
    assert held.put(("a000", "a", -100)) == 0
    assert ("a000", "a", -100) in held.shown
