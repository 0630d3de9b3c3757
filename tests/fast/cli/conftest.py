"""The command line, run in this process with a home of its own."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from headrace.cli import commands
from headrace.log import Log


@dataclass(frozen=True)
class Answer:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def log(home):
    with Log(home / "log") as opened:
        yield opened


@pytest.fixture
def headrace(home, capsys, monkeypatch) -> Callable[..., Answer]:
    def run(*arguments: object, stdin: str | bytes = b"") -> Answer:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        capsys.readouterr()
        code = commands.execute([str(argument) for argument in arguments])
        return Answer(code, *capsys.readouterr())

    return run
