"""`headrace up` and `headrace down`: servers that outlive the command that started them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from redis import Redis


def headrace(home: Path, *words: str) -> list[dict[str, Any]]:
    environment = {**os.environ, "HEADRACE_HOME": str(home)}
    done = subprocess.run([sys.executable, "-m", "headrace", *words], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_server_goes_on_until_it_is_stopped_and_comes_back_with_its_data(tmp_path: Path) -> None:
    (started,) = headrace(tmp_path, "up", "redis")
    try:
        assert headrace(tmp_path, "up", "redis") == headrace(tmp_path, "up") == [started]
        with Redis.from_url(started["address"]) as client:
            client.set("kept", "yes")
    finally:
        assert headrace(tmp_path, "down") == [{"server": "redis", "pid": started["pid"]}]
    assert headrace(tmp_path, "up") == headrace(tmp_path, "down", "redis") == []
    (again,) = headrace(tmp_path, "up", "redis")
    try:
        assert again["address"] == started["address"]
        with Redis.from_url(again["address"]) as client:
            assert client.get("kept") == b"yes"
    finally:
        headrace(tmp_path, "down", "redis")


def test_a_server_that_there_is_not_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="there is no server 'mysql'"):
        headrace(tmp_path, "up", "mysql")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts PostgreSQL as another user")
def test_a_home_that_the_user_of_the_server_cannot_enter_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(AssertionError, match=r"user '\w+' cannot enter .+\n.*\n.*HEADRACE_HOME") as error:
        headrace(closed / "home", "up", "postgres")
    assert "Traceback" not in str(error.value)
