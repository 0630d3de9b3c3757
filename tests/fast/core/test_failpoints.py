"""Failpoints: which of their hits a rule means, what it does there, and that all of them are known by name."""

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from headrace.core import failpoints
from headrace.core.errors import SettingsError
from headrace.testing.faults import FAILPOINTS, faults, reach, recorded

POINT = "sink.write.before"


def failed(hits: int) -> list[int]:
    """The hits on which the failpoint fails."""
    found = []
    for number in range(1, hits + 1):
        try:
            reach(POINT)
        except OSError:
            found.append(number)
    return found


@pytest.mark.parametrize(
    ("which", "expected"), [("", [1, 2, 3, 4, 5]), ("@3", [3]), ("@2-3", [2, 3]), ("@4-", [4, 5]), ("@100%", [1, 2, 3, 4, 5]), ("@0%", [])]
)
def test_a_rule_means_some_hits(which, expected):
    with faults(f"{POINT}=error{which}"):
        assert failed(5) == expected
    assert failed(5) == []


def test_a_chance_is_that_of_its_seed():
    drawn = {}
    for seed in (7, 7, 8):
        with faults(f"seed={seed};{POINT}=error(EIO)@10%"):
            found = failed(1_000)
        assert drawn.setdefault(seed, found) == found
        assert 50 < len(found) < 150
    assert drawn[7] != drawn[8]


def test_what_is_passed_is_written_down_by_all_processes(tmp_path):
    file = tmp_path / "passed"
    program = f"from headrace.core.failpoints import reach; reach({POINT!r}); reach('disk.sync.after')"
    environment = {**os.environ, "HEADRACE_FAILPOINTS": f"*=record({file})"}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert recorded(file) == [POINT, "disk.sync.after"] * 2


def test_a_process_is_killed_where_the_environment_says():
    program = f"from headrace.core.failpoints import reach; [reach({POINT!r}) for _ in range(3)]"
    ended = [
        subprocess.run([sys.executable, "-c", program], env={**os.environ, "HEADRACE_FAILPOINTS": rules}, check=False).returncode
        for rules in (f"{POINT}=kill@3", f"{POINT}=kill@4")
    ]
    assert ended == [-signal.SIGKILL, 0]


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("sink.writ.before=kill", "there is no failpoint 'sink.writ.before'\n  hint: sink.write.before"),
        ("nothing like it=kill", "cannot read"),
        ("zzz=kill", "hint: All of them: headrace failpoints"),
        (f"{POINT}=explode", "cannot read"),
        (f"{POINT}=kill@three", "cannot read"),
        (f"{POINT}=delay", r"the seconds to wait: delay\(0.5\)"),
    ],
)
def test_rules_that_say_nothing_are_refused(rules, said):
    with pytest.raises(SettingsError, match=said):
        failpoints.configure(rules)
    failpoints.configure(None)


def test_packages_of_others_name_their_own():
    with faults("acme:commit.before=error(EIO)"), pytest.raises(OSError, match=r"acme:commit\.before"):
        reach("acme:commit.before")


def test_the_failpoints_in_the_code_are_those_with_a_name_and_a_sentence():
    sources = [source for source in Path(headrace.__file__).parent.rglob("*.py") if source.name not in ("failpoints.py", "faults.py")]
    texts = [text for source in sources if "failpoints" in (text := source.read_text(encoding="utf-8"))]
    calls = [node for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    passes = [call for call in calls if ast.unparse(call.func) in ("failpoints.hit", "failpoints.reach", "_point")]
    names = [call.args[0].value for call in passes if isinstance(call.args[0], ast.Constant)]
    # The one that passes on what it is given is the log's `_point`.
    assert len(passes) - len(names) == 1
    assert sorted(names) == sorted(FAILPOINTS)


def test_a_process_notes_where_it_is_and_stands_still_until_it_is_woken(tmp_path):
    passed = tmp_path / "passed"
    program = "from headrace.core.failpoints import reach; reach('disk.sync.before'); print('on')"
    environment = {**os.environ, failpoints.VARIABLE: f"disk.sync.before=stop({passed})"}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE) as process:
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        assert recorded(passed) == ["disk.sync.before"]
        process.send_signal(signal.SIGCONT)
        assert process.communicate()[0] == b"on\n"
