"""A program run as a person would: on a terminal of its own."""

import os
import pty
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


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


def plain(written: str) -> str:
    """What a person reads: the text without its control sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says EIO when the last writer closed
        return b""
