"""Random examples are the same in every run, unless a seed is given; then a failure names the command that repeats it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DRAWING = """
from hypothesis import given, strategies as st
from tests.support.examples import seeds

@given(st.integers())
def test_a(number):
    print("drawn", number)

def test_b():
    print("drawn", *seeds(3))
    assert False, "a failure"
"""


@pytest.fixture
def drawn(tmp_path):
    """Run two randomized tests, one of which fails, and return what they have printed."""
    file = tmp_path / "test_drawing.py"
    file.write_text(DRAWING)

    def run(**variables: str) -> str:
        kept = {name: value for name, value in os.environ.items() if name not in ("HEADRACE_SEED", "HEADRACE_EXAMPLES", "PYTHONHASHSEED")}
        options = ["-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, "-p", "tests.conftest", "-p", "no:cacheprovider", "-rA"]
        command = [sys.executable, "-m", "pytest", *options, file]
        return subprocess.run(command, cwd=ROOT, env=kept | variables, capture_output=True, text=True, check=False).stdout

    return run


def lines(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith("drawn")]


def test_without_a_seed_every_run_draws_the_same_examples(drawn):
    first = lines(drawn())
    assert len(first) > 5
    assert "drawn 0" in first
    assert lines(drawn()) == first


def test_a_seed_draws_other_examples_and_a_failure_names_the_command_that_repeats_it(drawn):
    output = drawn(HEADRACE_SEED="77", PYTHONHASHSEED="3")
    assert "drawn 77" in lines(output)
    assert lines(drawn(HEADRACE_SEED="77")) == lines(output)
    assert lines(drawn(HEADRACE_SEED="78")) != lines(output)
    (command,) = [line for line in output.splitlines() if line.startswith("HEADRACE_SEED=")]
    assert command.startswith("HEADRACE_SEED=77 PYTHONHASHSEED=3 .venv/bin/python -m pytest ")
    assert command.endswith("test_drawing.py::test_b")
