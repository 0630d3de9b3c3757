"""A program run as a person would: on a terminal of its own."""

import fcntl
import os
import pty
import re
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.descriptors import readable
from tests.support.processes import PATIENCE


def run_on_terminal(command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None, columns: int = 120) -> tuple[int, str]:
    """The exit code of a command whose three streams are a terminal, and all that it wrote there."""
    ours, theirs = pty.openpty()
    variables = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color", **(environment or {})}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, close_fds=True) as process:
        os.close(theirs)
        written = b""
        while chunk := _read(ours):
            written += chunk
        os.close(ours)
        return process.wait(), written.decode().replace("\r\n", "\n")


class Terminal:
    """A terminal that belongs to one running program, and a person at its keys."""

    def __init__(self, process: subprocess.Popen[bytes], keys: int) -> None:
        self._process, self._keys = process, keys
        self.written = ""

    def press_ctrl_c(self) -> None:
        os.write(self._keys, b"\x03")

    def read_until(self, text: str) -> None:
        """Read what the program writes until a text is there."""
        deadline = time.monotonic() + PATIENCE
        while text not in plain(self.written):
            assert time.monotonic() < deadline, f"{text!r} is not in: {plain(self.written)}"
            assert self._more(), f"the program ended without {text!r}: {plain(self.written)}"

    def read_to_the_end(self) -> int:
        """Read all that the program writes; gives its exit code."""
        while self._more():
            pass
        return self._process.wait(PATIENCE)

    def _more(self) -> bool:
        """Whether there may be more to read, after a short wait for it."""
        if not readable(self._keys, 0.1):
            return True
        chunk = _read(self._keys)
        self.written += chunk.decode(errors="replace")
        return bool(chunk)


@contextmanager
def at_terminal(command: Sequence[str | Path], environment: Mapping[str, str]) -> Iterator[Terminal]:
    """A program in the foreground of a terminal of its own, as a shell starts it: keys such as Ctrl-C reach all of its process group."""
    ours, theirs = pty.openpty()
    variables = {**os.environ, "COLUMNS": "120", "TERM": "xterm-256color", **environment}
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "preexec_fn": _take_terminal}
    with subprocess.Popen(command, env=variables, start_new_session=True, **streams) as process:  # type: ignore[call-overload]
        os.close(theirs)
        try:
            yield Terminal(process, ours)
        finally:
            if process.poll() is None:
                process.kill()
            os.close(ours)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def plain(written: str) -> str:
    """What a person reads: the text without its control sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says EIO when the last writer closed
        return b""
