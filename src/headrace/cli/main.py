"""The entry point of the `headrace` command: commands are loaded inside it, so that Ctrl-C is quiet from the first moment on."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

_INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command line of this process, and end with its exit code."""
    try:
        from headrace.cli.commands import execute

        code = execute(sys.argv[1:])
    except KeyboardInterrupt:
        code = _INTERRUPTED
    # Only the end is left: there is nothing to report a signal to.
    signal.signal(signal.SIGINT, lambda *_: os._exit(code))
    sys.exit(code)
