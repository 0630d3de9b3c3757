"""What lets Spark start quickly on this machine: Python processes that are forks of one, and an archive of classes for the JVM.

A JVM that maps the classes it needs from an archive, instead of finding and checking each of 20,000 in jars, is ready in half the
time. The archive is written by a JVM at its end, from what it had loaded (`headrace prepare`); one that does not fit the Java or the
Spark at hand is passed over by the JVM.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from headrace.core.processes import DRIVER, identity

# With the environment it goes, too.
ARCHIVE = Path(sys.prefix) / "share" / "headrace" / "spark.jsa"
_PYTHON = Path(__file__).with_name("python.sh")
# The environment of Python workers.
WORKERS = {
    # Each uses one core; polars would start as many threads as the machine has, in every one of them.
    "POLARS_MAX_THREADS": "1",
    # What an epoch needed of memory is kept for the next one. To give it back and be given it again, page by page, took a third of the
    # time of reading a large epoch. For good, as in a process that was forked a time to keep it for has no effect.
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
}


def set_python(*, local: bool) -> None:
    """Name to Spark the interpreter of its workers: this one, as another would have neither Headrace nor its libraries."""
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = str(_PYTHON) if local else sys.executable
    os.environ["HEADRACE_WORKER_PYTHON"] = sys.executable
    os.environ["HEADRACE_WORKER_PATH"] = os.environ.get("PYTHONPATH", "")
    os.environ[DRIVER] = identity(os.getpid())
    if local:
        os.environ["HEADRACE_NURSERY"] = _nursery()[0]


@cache
def _nursery() -> tuple[str, object]:
    """Begin the nursery of this process (nursery.py), which ends with it; gives the place at which it listens, and itself."""
    place = str(Path(tempfile.mkdtemp(prefix="headrace-")) / "nursery")
    environment = {**os.environ, **WORKERS, "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")}  # as Spark has it for workers
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(place)
        # From here on whoever asks is heard, if later.
        listener.listen(64)
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace.spark.nursery", str(listener.fileno())],
            stdin=subprocess.PIPE, env=environment, pass_fds=[listener.fileno()], start_new_session=True,
        )  # fmt: skip
    atexit.register(process.communicate)
    return place, process


def local_options() -> dict[str, str]:
    """How Spark is to start processes on this machine, after `set_python`."""
    return {
        "spark.python.daemon.module": "headrace.spark.daemon",
        # It leaves sockets behind when it is killed: where the nursery is they go when that does.
        "spark.python.unix.domain.socket.dir": str(Path(os.environ["HEADRACE_NURSERY"]).parent),
        # It is set for some kinds of workers only, which then have a parent of their own, and start by starting that.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    }


def java_options(*, archive: Path | None = None) -> str:
    """Options of the JVM: it reads the archive of classes if there is one, or writes it at its end to where `archive` says."""
    # Some `chmod` are left to do for Hadoop, and this is the quick way to start them.
    options = ["-Djdk.lang.Process.launchMechanism=VFORK"]
    if archive is not None:
        options.append(f'"-XX:ArchiveClassesAtExit={archive}"')
    elif ARCHIVE.exists():
        options += [f'"-XX:SharedArchiveFile={ARCHIVE}"', "-Xlog:cds*=off"]
    return " ".join(options)
