"""Processes with the mark of a run are stopped as a whole: no thread of theirs goes on."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.marked import MARK, kill, standing, stop, wake
from tests.support.processes import until

# The kernel hands the signal to the main thread, which sleeps, and on a busy machine waits for its turn; the others work all the time.
BUSY = """
import os, sys, threading
os.nice(19)

def write():
    with open(sys.argv[1], "ab", buffering=0) as file:
        while True:
            file.write(b".")

for _ in range(3):
    threading.Thread(target=write, daemon=True).start()
threading.Event().wait()
"""


def test_what_was_stopped_writes_no_more_until_it_is_woken(tmp_path: Path) -> None:
    run, written = "stopped as a whole", tmp_path / "written"
    with subprocess.Popen([sys.executable, "-c", BUSY, str(written)], env=os.environ | {MARK: run}) as process:
        try:
            until(lambda: written.is_file() and written.stat().st_size > 0)
            for _ in range(10):
                assert stop(run, but=0) == {process.pid}
                size = written.stat().st_size
                assert standing(run) == {process.pid}
                assert written.stat().st_size == size
                wake(run)
                assert standing(run) == set()
                until(lambda before=size: written.stat().st_size > before)
        finally:
            kill(run)
