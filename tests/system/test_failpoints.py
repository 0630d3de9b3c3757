"""Every failpoint in the code is passed by work that other tests kill at each of its failpoints: none is there for nothing."""

import ast
from pathlib import Path

import pytest

import headrace
from headrace.core import failpoints
from headrace.core.clock import ManualClock
from headrace.log import Log
from headrace.testing.conformance.subject import KEY, Hand, made
from tests.support.compacting import Compactable
from tests.support.crashes import Teller, everything, prepare
from tests.system.test_postgres_sink import PostgresSubject
from tests.system.test_redis_sink import RedisSubject
from tests.system.test_search_sinks import DirectorySubject


def named(tree: ast.AST) -> set[str]:
    """The names given to `failpoints.hit`, or to a function that stands for it."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    return _first_arguments(calls, "failpoints.hit", "_point")


def reached(tree: ast.AST) -> set[str]:
    """The names given to `failpoints.reach`, as outputs do."""
    return _first_arguments([node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args], "failpoints.reach")


def _first_arguments(calls: list[ast.Call], *functions: str) -> set[str]:
    hits = [call for call in calls if ast.unparse(call.func) in functions]
    return {call.args[0].value for call in hits if isinstance(call.args[0], ast.Constant)}


@pytest.fixture
def passed():
    """Counts what is passed; nothing happens there."""
    failpoints.configure("")
    yield failpoints.hits
    failpoints.configure(None)


def test_every_failpoint_is_passed_by_work_that_is_killed_there(tmp_path, passed, capfd):
    sources = Path(headrace.__file__).parent.rglob("*.py")
    names = set().union(*(named(ast.parse(source.read_text())) for source in sources))
    assert {"disk.write.before", "disk.sync.after"} <= names
    prepare(tmp_path / "log")
    original = Compactable(tmp_path / "compactable")
    passed.clear()
    # test_log_crashes kills this work at each failpoint, test_compaction_crash the compaction.
    everything(Log(tmp_path / "log", clock=ManualClock()), Teller("p", 1))
    original.compact(original.path)
    assert names == set(passed) - {"*"}


def test_every_failpoint_of_an_output_is_passed_by_an_epoch_that_is_killed_there(tmp_path, passed, postgres, redis):
    # The conformance suite kills a writer at each failpoint that an epoch passes; those of Kafka and of
    # a search service have servers of their own to do so.
    connectors = Path(headrace.__file__).parent / "connectors"
    files = [source for part in (".", "postgres", "redis", "lake", "search") for source in (connectors / part).glob("*.py")]
    sources = [source for source in files if source.name not in ("remote.py", "marks.py")]
    names = set().union(*(reached(ast.parse(source.read_text())) for source in sources))
    assert {"postgres.commit.before", "redis.execute.before", "publish.commit.before", "search.commit.before"} <= names
    subjects = [PostgresSubject(postgres, KEY), RedisSubject(redis), DirectorySubject(tmp_path, KEY)]
    passed.clear()
    for subject in subjects:
        Hand(subject).write(1, made(1))
    assert names == set(passed) - {"*"}
