"""Python processes as Spark starts them: forks of one that has loaded everything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fast.spark.conftest import PYTHON
from tests.support.processes import PATIENCE, alive, until

PROGRAMS = {
    "hello": "import os, sys; print(os.getppid(), os.getcwd(), os.environ['COLOR'], sys.argv[1:]); print('late', file=sys.stderr)",
    "echo": "print(input().upper())",
    "fails": "import sys; sys.exit(7)",
    "breaks": "raise ValueError('no such color')",
    "loaded": "import sys; print('polars' in sys.modules, 'headrace.spark.reading' in sys.modules)",
    "stays": "import os, time; print(os.getpid(), flush=True); time.sleep(600)",
    "polite": "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(3)); import stays",
}  # fmt: skip


@pytest.fixture(scope="module")
def environment(fork_server: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("programs")
    for name, text in PROGRAMS.items():
        (place / f"{name}.py").write_text(text, encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(place), fork_server["HEADRACE_WORKER_PATH"]]))
    return {**fork_server, "COLOR": "green", "HEADRACE_WORKER_PATH": path}


def run(environment: dict[str, str], *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [PYTHON, "-m", *arguments]
    return subprocess.run(command, env=environment, input=given, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_a_program_has_the_arguments_streams_directory_and_environment_of_who_asked(environment: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run([PYTHON, "-m", "hello", "a", "b"], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    fork_server = int(done.stdout.split()[0])
    assert done.stdout.split(maxsplit=1)[1] == f"{tmp_path} green ['a', 'b']\n"
    assert done.stderr == "late\n"
    assert "headrace.spark.workers.fork_server" in Path(f"/proc/{fork_server}/cmdline").read_text(encoding="utf-8")
    assert run(environment, "echo", given="aloud\n").stdout == "ALOUD\n"


def test_a_program_finds_everything_loaded(environment: dict[str, str]) -> None:
    assert run(environment, "loaded").stdout == "True True\n"


def test_a_program_ends_with_its_own_code(environment: dict[str, str]) -> None:
    assert run(environment, "fails").returncode == 7
    broken = run(environment, "breaks")
    assert broken.returncode == 1
    assert broken.stderr.endswith("ValueError: no such color\n")


def test_a_program_is_asked_to_end_through_who_started_it(environment: dict[str, str]) -> None:
    with subprocess.Popen([PYTHON, "-m", "polite"], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        assert process.wait(PATIENCE) == 3


def test_a_program_is_asked_to_end_even_before_it_is_known_to_who_started_it(environment: dict[str, str]) -> None:
    server = int(run(environment, "hello").stdout.split()[0])
    os.kill(server, signal.SIGSTOP)
    with subprocess.Popen([PYTHON, "-m", "stays"], env=environment, stdout=subprocess.PIPE, text=True) as process:
        until(lambda: blocks(process.pid, signal.SIGTERM))
        process.terminate()
        os.kill(server, signal.SIGCONT)
        assert process.wait(PATIENCE) == 128 + signal.SIGTERM


def blocks(process: int, number: signal.Signals) -> bool:
    """Whether a process lets a signal wait."""
    found = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines())
    return bool(int(found["SigBlk"], 16) & 1 << (number - 1))


def test_a_program_ends_when_who_started_it_is_killed(environment: dict[str, str]) -> None:
    with subprocess.Popen([PYTHON, "-m", "stays"], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.kill()
    until(lambda: not alive(child))


def test_a_killed_program_is_told(environment: dict[str, str]) -> None:
    with subprocess.Popen([PYTHON, "-m", "stays"], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        os.kill(int(process.stdout.readline()), signal.SIGKILL)
        assert process.wait(PATIENCE) == 128 + signal.SIGKILL


def test_a_program_and_who_started_it_may_end_in_the_same_moment(environment: dict[str, str]) -> None:
    fork_server = int(run(environment, "hello").stdout.split()[0])
    with subprocess.Popen([PYTHON, "-m", "stays"], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        os.kill(fork_server, signal.SIGSTOP)
        os.kill(child, signal.SIGKILL)
        process.kill()
    os.kill(fork_server, signal.SIGCONT)
    assert int(run(environment, "hello").stdout.split()[0]) == fork_server


def test_where_there_is_no_nursery_python_itself_is_started(environment: dict[str, str]) -> None:
    alone = {**environment, "HEADRACE_FORK_SERVER": "/nowhere"}
    done = run(alone, "hello")
    assert int(done.stdout.split()[0]) == os.getpid()
    assert run(alone, "loaded").stdout == "False False\n"


def test_the_nursery_ends_with_the_process_that_began_it() -> None:
    began = "from headrace.spark.workers import quick_start; place, process = quick_start._fork_server(); print(place, process.pid)"
    done = subprocess.run([sys.executable, "-c", began], capture_output=True, text=True, timeout=PATIENCE, check=True)
    place, fork_server = done.stdout.split()
    until(lambda: not alive(int(fork_server)) and not Path(place).parent.exists())
