"""Questions for keys that come together share one look at the table, and each gets its own answer."""

import asyncio
import json
from random import Random

import pytest

from headrace.log import Log
from headrace.serve.views.follower import Follower
from headrace.serve.views.formats import CSV, JSON, ResponseFormat
from headrace.serve.views.key_reads import KeyReads
from tests.support.examples import seeds

ROWS = [{"url": f"/{number}", "user": "ada", "views": number} for number in range(50)]


@pytest.fixture
def table(totals, home):
    totals.epoch([*ROWS, {"url": None, "user": "nobody", "views": -1}])
    totals.epoch([{"url": "/3", "user": "bob", "views": 300}], [ROWS[7]])
    log = Log(home / "log")
    follower = Follower(log, home, None)
    follower.step()
    yield follower.view("totals").table
    log.close()


def answers(table, urls, form=JSON):
    async def ask():
        reads = KeyReads()
        found = await asyncio.gather(*(reads.find(table, (url,)) for url in urls))
        return [(answer.epoch, answer.body(ResponseFormat(form)).decode() if answer.found else None) for answer in found]

    return asyncio.run(ask())


def test_each_question_gets_the_row_of_its_key(table):
    asked = ["/4", "/3", "/none", "/7", None, "/4", "/none", "/49"]
    given = answers(table, asked)
    assert {epoch for epoch, _ in given} == {2}
    rows = [row and json.loads(row) for _, row in given]
    assert [row and row["views"] for row in rows] == [4, 300, None, None, -1, 4, None, 49]


def test_a_row_comes_in_the_format_that_its_own_question_asked_for(table):
    assert answers(table, ["/none", "/3"], CSV) == [(2, None), (2, "url,user,views\n/3,bob,300\n")]


def test_questions_that_come_together_look_once(table, monkeypatch):
    looks, find = [], table.find
    monkeypatch.setattr(table, "find", lambda keys, **how: looks.append(keys.height) or find(keys, **how))
    answers(table, [f"/{number}" for number in range(30)])
    assert looks == [30]


def test_a_look_that_fails_fails_every_question_in_it_and_none_after_it(table, monkeypatch):
    async def ask():
        reads = KeyReads()
        with monkeypatch.context() as broken:
            broken.setattr(table, "find", lambda keys, **how: 1 / 0)
            failed = await asyncio.gather(*(reads.find(table, ("/1",)) for _ in range(3)), return_exceptions=True)
        return failed, await reads.find(table, ("/1",))

    failed, after = asyncio.run(ask())
    assert [type(error) for error in failed] == [ZeroDivisionError] * 3
    assert after.found


def test_a_key_that_no_column_can_have_fails_its_own_question_only(table):
    async def ask():
        reads = KeyReads()
        return await asyncio.gather(*(reads.find(table, (url,)) for url in ("/1", object(), "/2")), return_exceptions=True)

    before, failed, after = asyncio.run(ask())
    assert before.found
    assert after.found
    assert isinstance(failed, ValueError)


def test_a_question_that_is_withdrawn_does_not_hold_up_the_others(table):
    async def ask():
        reads = KeyReads()
        tasks = [asyncio.create_task(reads.find(table, (f"/{number}",))) for number in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        return [await tasks[0], await tasks[2]]

    assert [json.loads(answer.body(ResponseFormat(JSON)))["views"] for answer in asyncio.run(ask())] == [0, 2]


def test_questions_that_come_while_the_table_moves_on_do_not_hold_up_the_server(table):
    async def ask():
        reads, passed = KeyReads(), asyncio.Event()
        with table._lock:
            # As the thread that applies an epoch has it.
            asked = [asyncio.create_task(reads.find(table, (f"/{number}",))) for number in range(3)]
            await asyncio.sleep(0.02)
            late = asyncio.create_task(reads.find(table, ("/none",)))
            asked[1].cancel()
            asyncio.get_running_loop().call_soon(passed.set)
            await passed.wait()
            assert not any(task.done() for task in (asked[0], asked[2], late))
        return [await asked[0], await asked[2]], await late

    found, missing = asyncio.run(ask())
    assert [json.loads(answer.body(ResponseFormat(JSON)))["views"] for answer in found] == [0, 2]
    assert not missing.found


@pytest.mark.parametrize("seed", seeds(20))
def test_a_table_that_is_saved_now_and_then_is_the_same_after_a_restart(totals, home, tmp_path, seed):
    random, truth = Random(seed), {}
    log = Log(home / "log")
    follower = Follower(log, home, tmp_path / "cache")
    for _ in range(random.randint(5, 40)):
        put = {f"/{number}": random.random() for number in random.sample(range(30), random.randint(0, 10))}
        gone = [url for url in truth if url not in put and random.random() < 0.2]
        truth = {url: views for url, views in {**truth, **put}.items() if url not in gone}
        totals.epoch(
            [{"url": url, "user": str(views), "views": 1} for url, views in put.items()],
            [{"url": url, "user": None, "views": None} for url in gone],
        )
        follower.step()
        if random.random() < 0.2:
            follower._save()
        if random.random() < 0.1:
            follower = Follower(log, home, tmp_path / "cache")
    follower = Follower(log, home, tmp_path / "cache")
    follower.step()
    rows = follower.view("totals").table.snapshot().lazy().collect().to_dicts()
    log.close()
    assert {row["url"]: float(row["user"]) for row in rows} == truth
