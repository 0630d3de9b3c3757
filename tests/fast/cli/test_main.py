"""The command line: its exit codes, its errors, and how little it loads."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import headrace
from headrace.cli import commands
from headrace.core.errors import PlanError

HEADRACE = Path(sys.executable).with_name("headrace")


@pytest.fixture
def failing_command(monkeypatch):
    """A command that fails, added to the real application for one test."""

    def fail() -> None:
        raise PlanError("the plan has no sink", why="nobody would see its rows", hint="add app.view or app.sink")

    monkeypatch.setattr(commands.app, "registered_commands", list(commands.app.registered_commands))
    monkeypatch.setattr(commands, "commands", commands.commands.__wrapped__)
    commands.app.command("fail")(fail)


def test_the_installed_command_and_the_module_print_the_version():
    for command in ([HEADRACE, "--version"], [sys.executable, "-m", "headrace", "--version"]):
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        assert answer.stdout == f"headrace {headrace.__version__}\n"


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_every_command_with_one_line(capsys, flag):
    assert commands.execute([flag]) == 0
    shown = capsys.readouterr().out
    assert [name for name in commands.COMMANDS if name not in shown] == []


def test_no_part_of_the_help_of_an_option_is_taken_for_markup(capsys):
    assert commands.execute(["run", "--help"]) == 0
    assert commands.execute(["tail", "--help"]) == 0
    words = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "4 million" in words
    assert "HEADRACE_HOME" in words
    assert " ." not in words.replace(" .headrace", "")


@pytest.mark.parametrize("arguments", [["no-such-command"], ["doctor", "--no-such-option"], ["--no-such-option"]])
def test_a_command_line_that_is_not_understood_ends_with_2(capsys, arguments):
    assert commands.execute(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert arguments[-1] in err


def test_an_error_is_told_without_a_traceback_and_ends_with_1(failing_command, capsys):
    assert commands.execute(["fail"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["error: the plan has no sink", "  why: nobody would see its rows", "  hint: add app.view or app.sink"]


def test_debug_lets_the_traceback_through(failing_command):
    with pytest.raises(PlanError, match="no sink"):
        commands.execute(["--debug", "fail"])


def test_a_command_that_found_something_bad_ends_with_its_own_code(monkeypatch):
    def find() -> None:
        raise typer.Exit(1)

    monkeypatch.setattr(commands.app, "registered_commands", list(commands.app.registered_commands))
    monkeypatch.setattr(commands, "commands", commands.commands.__wrapped__)
    commands.app.command("find")(find)
    assert commands.execute(["find"]) == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_completion_for_the_shell(shell, capsys, monkeypatch):
    # Else typer takes the shell that the tests were started from, whatever it is told; it decides that when commands are made.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    monkeypatch.setattr(commands, "commands", commands.commands.__wrapped__)
    assert commands.execute(["--show-completion", shell]) == 0
    assert "_HEADRACE_COMPLETE" in capsys.readouterr().out


def test_completion_completes_commands():
    environment = {**os.environ, "_HEADRACE_COMPLETE": "complete_bash", "COMP_WORDS": "headrace doc", "COMP_CWORD": "1"}
    answer = subprocess.run([HEADRACE], capture_output=True, text=True, check=True, env=environment)
    assert answer.stdout.split() == ["doctor"]


@pytest.mark.parametrize("module", ["headrace", "headrace.cli.main", "headrace.cli.commands"])
def test_importing_loads_no_engine(module):
    heavy = ["pyspark", "py4j", "polars", "pandas", "numpy", "pyarrow", "duckdb", "sqlglot", "confluent_kafka", "rich.table"]
    program = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_a_server_whose_port_is_taken_says_so_once_and_nothing_else(headrace, home):
    headrace("topics", "create", "clicks")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [HEADRACE, "serve", "--port", str(port)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "HEADRACE_HOME": str(home)})
    assert (answer.returncode, answer.stdout) == (1, "")
    # Not a word of the modules in C that were excluded from collections of garbage.
    fact, hint = answer.stderr.splitlines()
    assert fact.startswith(f"error: http://127.0.0.1:{port} cannot be served: ")
    assert "address already in use" in fact
    assert "is the port taken?" in hint
