"""Every failpoint in the code is passed by work that other tests kill at each of its failpoints: none is there for nothing."""

import ast
from pathlib import Path

import pytest

import headrace
from headrace.core import failpoints
from headrace.core.clock import ManualClock
from headrace.log import Log
from tests.support.compacting import Compactable
from tests.support.crashes import Teller, everything, prepare


def named(tree: ast.AST) -> set[str]:
    """The names given to `failpoints.hit`, or to a function that stands for it."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    hits = [call for call in calls if ast.unparse(call.func) in ("failpoints.hit", "_point")]
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
