"""The watchdog of a server process: a program that outlives its parent only to end what the parent started.

It waits for the end of its standard input. Each line names the process to guard (an empty line: none); the argument is a directory to
remove when the parent died. Closing a pipe is the one signal that the kernel sends for a parent that was killed, whichever of its threads
started us.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys


def main() -> None:
    """Guard until standard input ends, then kill the process that is still named."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole foreground group; the parent decides
    guarded = ""
    for line in sys.stdin:
        guarded = line.strip()
        if guarded == "done":
            return
    if guarded:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(guarded), signal.SIGKILL)
    if len(sys.argv) > 1:
        shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()
