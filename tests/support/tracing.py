"""A forked process under strace: the kernel kills it at the N-th call of a kind, or lets that call fail, whatever the code above does."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.log import Log
from tests.support.crashes import Child, Teller

# Each with the names it has on different machines; strace passes over those with a question mark that one does not know.
CALLS = {
    "write": "?pwritev,?pwritev2,?pwrite64",
    "sync": "fdatasync",
    "directory sync": "fsync",
    "rename": "?rename,?renameat,?renameat2",
    "truncate": "ftruncate",
    "remove": "?unlink,?unlinkat",
}
_SET_PTRACER, _ANY = 0x59616D61, ctypes.c_ulong(-1)

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


class Traced(Child):
    """A process at work with `injection` ("signal=KILL:when=3", "error=EIO:when=1") at one kind of its calls."""

    def __init__(self, path: Path, work: Callable[[Log, Teller], None], call: str, injection: str) -> None:
        gate, opened = os.pipe()

        def gated(log: Log, tell: Teller) -> None:
            os.close(opened)
            if sys.platform == "linux":
                # Where only parents may trace, any process of this user may trace this one.
                ctypes.CDLL(None).prctl(_SET_PTRACER, _ANY, 0, 0, 0)
            tell("ready")
            os.read(gate, 1)
            work(log, tell)

        super().__init__("p", path, gated)
        os.close(gate)
        while not self.steps:
            assert self._listen(), "the process ended before its work"
        self.steps.clear()
        names = CALLS[call]
        command = ["strace", "-f", "-o", os.devnull, "-p", str(self.pid), "-e", f"trace={names}", "-e", f"inject={names}:{injection}"]
        self._strace = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._strace.stderr is not None
        # It says so when the process cannot go on unseen.
        said = self._strace.stderr.readline()
        os.write(opened, b"x")
        os.close(opened)
        if "attached" not in said:
            self.end()
            pytest.skip(f"processes cannot be traced here: {said.strip()}")

    def end(self) -> bool:
        try:
            return super().end()
        finally:
            self._strace.communicate()
