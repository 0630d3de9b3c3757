"""Processes that hold a lock of the log."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from headrace.testing.locks import holders

HOLDING = "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_EX); print(flush=True); input()"


def test_who_holds_a_lock_is_found_until_it_is_gone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDING, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert holders({process.pid, os.getpid()}) == {process.pid}
        process.communicate("\n")
    assert holders({process.pid, os.getpid()}) == set()
