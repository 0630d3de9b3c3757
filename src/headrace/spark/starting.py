"""What lets Spark start quickly on this machine: Python that is compiled already, and an archive of classes for the JVM.

A JVM that maps the classes it needs from an archive, instead of finding and checking each of 20,000 in jars, is ready in half the
time. The archive is written by a JVM at its end, from what it had loaded (`headrace prepare`); one that does not fit the Java or the
Spark at hand is passed over by the JVM.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# With the environment it goes, too.
ARCHIVE = Path(sys.prefix) / "share" / "headrace" / "spark.jsa"
_PYTHON = Path(__file__).with_name("python.sh")


def set_python(*, local: bool) -> None:
    """Name to Spark the interpreter of its workers: this one, as another would have neither Headrace nor its libraries."""
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = str(_PYTHON) if local else sys.executable
    os.environ["HEADRACE_WORKER_PYTHON"] = sys.executable
    os.environ["HEADRACE_WORKER_PATH"] = os.environ.get("PYTHONPATH", "")


def java_options(*, archive: Path | None = None) -> str:
    """Options of the JVM: it reads the archive of classes if there is one, or writes it at its end to where `archive` says."""
    # Some `chmod` are left to do for Hadoop, and this is the quick way to start them.
    options = ["-Djdk.lang.Process.launchMechanism=VFORK"]
    if archive is not None:
        options.append(f'"-XX:ArchiveClassesAtExit={archive}"')
    elif ARCHIVE.exists():
        options += [f'"-XX:SharedArchiveFile={ARCHIVE}"', "-Xlog:cds*=off"]
    return " ".join(options)
