"""A quick start of Spark on this machine: Python processes that are forks of one, and an archive of classes for the JVM.

A JVM that maps its classes from an archive, instead of finding and checking each of 20,000 in jars, is ready in half the time. A JVM writes
the archive at its end, from the classes it has loaded (`headrace prepare`); an archive that does not fit the present Java or Spark is
ignored by the JVM.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pyspark

from headrace.core.processes import DRIVER, identity
from headrace.core.remarks import warn

# It goes with the environment, too.
ARCHIVE = Path(sys.prefix) / "share" / "headrace" / "spark.jsa"
_PYTHON = Path(__file__).with_name("python.sh")
# The environment of Python workers.
WORKERS = {
    # Each uses one core; polars would start as many threads as the machine has, in every one of them.
    "POLARS_MAX_THREADS": "1",
    # Memory of an epoch is kept for the next one. Returning it and getting it again, page by page, took a third of the time of reading a
    # large epoch. It is kept for good, since in a forked process a decay time has no effect.
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
}


def set_python(*, local: bool) -> None:
    """Set the interpreter of Spark's workers: this one, since another would have neither Headrace nor its libraries."""
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = str(_PYTHON) if local else sys.executable
    os.environ["HEADRACE_WORKER_PYTHON"] = sys.executable
    os.environ["HEADRACE_WORKER_PATH"] = os.environ.get("PYTHONPATH", "")
    os.environ[DRIVER] = identity(os.getpid())
    if local:
        os.environ["HEADRACE_FORK_SERVER"] = _fork_server()[0]


@cache
def _fork_server() -> tuple[str, object]:
    """Start the fork server of this process, which ends with it; returns its address, and the process."""
    place = str(Path(tempfile.mkdtemp(prefix="headrace-")) / "fork-server")
    environment = {**os.environ, **WORKERS, "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")}  # as Spark sets it for workers
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(place)
        # From here on, clients are served, if later.
        listener.listen(64)
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace.spark.workers.fork_server", str(listener.fileno())],
            stdin=subprocess.PIPE, env=environment, pass_fds=[listener.fileno()], start_new_session=True,
        )  # fmt: skip
    atexit.register(_end, process)
    return place, process


def _end(fork_server: subprocess.Popen[bytes]) -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # This process is already ending: Ctrl-C could only show a traceback.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    fork_server.communicate()


# The versions of Spark whose protocol between daemon and JVM our daemon was tested with.
TESTED = ("4.3.0",)


def _daemon(version: str) -> dict[str, str]:
    """Our daemon for a version of Spark that it was tested with; another version keeps its own."""
    if version in TESTED:
        return {"spark.python.daemon.module": "headrace.spark.workers.daemon"}
    warn(
        f"PySpark {version} is not a version that Headrace was tested with ({', '.join(TESTED)})",
        why="its own worker daemon is used: a task may meet a process without its state, and read that from files",
        hint=f"pip install pyspark=={TESTED[-1]}",
        where=None,
    )
    return {}


def local_options() -> dict[str, str]:
    """The settings with which Spark starts processes on this machine, after `set_python`."""
    return {
        **_daemon(pyspark.__version__),
        # It leaves sockets behind when it is killed: in the fork server's directory they are removed with it.
        "spark.python.unix.domain.socket.dir": str(Path(os.environ["HEADRACE_FORK_SERVER"]).parent),
        # It is set for some kinds of workers only, which then have a parent of their own, and start it first.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    }


def java_options(*, archive: Path | None = None) -> str:
    """Options of the JVM: it reads the archive of classes if there is one, or writes it at its end to `archive`."""
    # Some `chmod` calls remain for Hadoop, and this is the quick way to start them.
    options = ["-Djdk.lang.Process.launchMechanism=VFORK"]
    if archive is not None:
        options.append(f'"-XX:ArchiveClassesAtExit={archive}"')
    elif ARCHIVE.exists():
        options += [f'"-XX:SharedArchiveFile={ARCHIVE}"', "-Xlog:cds*=off"]
    return " ".join(options)
