"""Rows that move between shards: an output sees the changes of a row in order, whichever shard made them."""

import random

import pytest

from headrace.api.declaration import Declaration
from headrace.engine.program.compiler import compiled
from headrace.testing.driver import TestDriver
from tests.support.examples import seeds


def leaders(app: Declaration) -> None:
    """The best player of each country; a player who moves leaves one group, on one shard, and enters another."""
    scores = app.stream("scores", schema="player string, country string, score int", key="player")
    table = scores.to_table("player")
    app.view("leaders", table.top(1, by="score", per="country"), key="player")


def test_a_view_whose_key_does_not_decide_on_the_shard_has_an_exchange_before_it() -> None:
    app = Declaration("game")
    leaders(app)
    program = compiled(app.plan(), 4)
    assert "leaders.exchange" in program.operators
    assert program.operators["leaders.exchange"].level == program.levels


def test_a_view_whose_key_decides_on_the_shard_has_none() -> None:
    app = Declaration("game")
    scores = app.stream("scores", schema="player string, score int", key="player")
    app.view("totals", scores.group("player", ttl=None).agg(total="sum(score)"))
    app.view("table", scores.to_table("player").where("score > 1"))
    assert not [name for name in compiled(app.plan(), 4).operators if name.endswith(".exchange")]


@pytest.mark.parametrize("seed", seeds(20))
def test_rows_that_move_between_groups_are_never_lost(seed: int) -> None:
    chance = random.Random(seed)
    app = Declaration("game")
    leaders(app)
    latest: dict[str, tuple[str, int]] = {}
    with TestDriver(app, shards=chance.choice([1, 3, 5])) as driver:
        for _ in range(30):
            sent = [(chance.choice("abcd"), chance.choice("XYZ"), chance.randrange(100)) for _ in range(chance.randrange(1, 4))]
            driver.send("scores", [{"player": player, "country": country, "score": score} for player, country, score in sent])
            latest |= {player: (country, score) for player, country, score in sent}
            if chance.random() < 0.2:
                driver.restart()
            best: dict[str, tuple[int, str]] = {}
            for player, (country, score) in latest.items():
                # Of equal scores the smallest key comes first.
                mine = (-score, player)
                best[country] = min(best.get(country, mine), mine)
            expected = {player: latest[player] for _, player in best.values()}
            assert {row["player"]: (row["country"], row["score"]) for row in driver.rows("leaders")} == expected
