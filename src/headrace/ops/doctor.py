"""Checks of this machine: whether it can run Headrace, one function for each check, each with its remedy."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headrace.core.errors import SettingsError
from headrace.core.settings import Settings, find_file, load_settings
from headrace.spark.java import java_in
from headrace.spark.workers.quick_start import ARCHIVE

FREE_DISK = 2 << 30
OUTSIDE_THE_DRIVER = 512 << 20  # Python workers, the log's memory maps, the system itself
SLOW_SYNC = 0.050
SYNCS = 60
SPARK_PATIENCE = 180


@dataclass(frozen=True)
class Check:
    """The result of one check; a red one keeps Headrace from running, a warning makes it slow."""

    name: str
    status: Literal["ok", "warn", "red"]
    found: str
    remedy: str | None = None

    def row(self) -> dict[str, object]:
        return {"check": self.name, "status": self.status, "found": self.found, "remedy": self.remedy}


def examine(*, spark: bool = True) -> Iterator[Check]:
    """Every check in the order of dependence; without `spark`, no JVM is started."""
    settings, check = check_settings()
    yield check
    yield check_python()
    java = check_java(os.environ)
    yield java
    yield check_network()
    yield check_memory(settings, memory_limit())
    yield check_disk(settings.home)
    yield check_start(ARCHIVE)
    if spark and java.status == "ok":
        yield check_spark(settings)


def check_settings() -> tuple[Settings, Check]:
    """The settings in force, or the defaults and the reason why not."""
    try:
        settings = load_settings()
    except SettingsError as error:
        found = f"{error.fact} ({error.where})" if error.where else error.fact
        return Settings(), Check("settings", "red", found, error.hint or "correct its value")
    file = find_file(Path.cwd())
    return settings, Check("settings", "ok", f"home {settings.home}, {f'from {file}' if file else 'no headrace.toml'}")


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Check:
    """Python 3.11 or newer, 64 bits."""
    found = f"Python {'.'.join(map(str, version))} ({platform.machine()}) at {sys.executable}"
    if version < (3, 11):
        return Check("python", "red", found, "use Python 3.11 or newer")
    if sys.maxsize < 2**32:
        return Check("python", "red", f"{found}, 32 bits", "use a 64-bit Python: the log maps its files into memory")
    return Check("python", "ok", found)


def check_java(environment: Mapping[str, str]) -> Check:
    """The Java that Spark would start."""
    java = java_in(environment)
    return Check("java", "ok" if java.remedy is None else "red", java.found, java.remedy)


def check_network() -> Check:
    """Spark's driver and its workers talk over local ports, at the address that this host's name has."""
    name = socket.gethostname()
    loopback = "127.0.0.1"
    try:
        address = socket.gethostbyname(name)
    except OSError:
        return Check(
            "ports", "red", f"the host name {name!r} has no address", "export SPARK_LOCAL_IP=127.0.0.1, or add the name to /etc/hosts"
        )
    for candidate in (loopback, address):
        try:
            with socket.create_server((candidate, 0)) as server, socket.create_connection(server.getsockname(), timeout=5):
                pass
        except OSError as error:
            remedy = "allow local connections" if candidate == loopback else "export SPARK_LOCAL_IP=127.0.0.1, or correct /etc/hosts"
            return Check("ports", "red", f"no local connection over {candidate}: {error}", remedy)
    return Check("ports", "ok", f"local connections work over {' and '.join(sorted({loopback, address}))}")


def memory_limit() -> int:
    """Bytes this process may still use: what the machine has available, or the container's limit if that is less."""
    information = Path("/proc/meminfo")
    if not information.exists():
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    available = re.search(r"MemAvailable:\s+(\d+)", information.read_text())
    limits = [int(available[1]) << 10] if available else []
    container = Path("/sys/fs/cgroup/memory.max")
    if container.exists() and (text := container.read_text().strip()).isdigit():
        limits.append(int(text))
    return min(limits, default=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def check_memory(settings: Settings, limit: int) -> Check:
    """Room for the Spark driver and the Python workers next to it."""
    driver = int(settings.driver_memory[:-1]) << {"k": 10, "m": 20, "g": 30, "t": 40}[settings.driver_memory[-1]]
    found = f"{_size(limit)} available, the Spark driver takes {settings.driver_memory}"
    if limit < driver + OUTSIDE_THE_DRIVER:
        return Check("memory", "red", found, f"free {_size(driver + OUTSIDE_THE_DRIVER - limit)} or set a smaller HEADRACE_DRIVER_MEMORY")
    return Check("memory", "ok", found)


def check_disk(home: Path) -> Check:
    """Free space and the time of an fsync where the log will write: every acknowledged append waits for one."""
    folder = next(folder for folder in (home, *home.absolute().parents) if folder.is_dir())
    remedy = "set HEADRACE_HOME to a folder on a local disk with room"
    free = shutil.disk_usage(folder).free
    try:
        times = sorted(_sync_times(folder))
    except OSError as error:
        return Check("disk", "red", f"{folder} cannot be written: {error.strerror}", remedy)
    median, slow = times[len(times) // 2], times[-1 - len(times) // 100]
    found = f"{_size(free)} free at {folder}, fsync {median * 1e3:.1f} ms (p50), {slow * 1e3:.1f} ms (p99)"
    if free < FREE_DISK:
        return Check("disk", "red", found, remedy)
    if slow > SLOW_SYNC:
        return Check("disk", "warn", found, f'appends with acks="all" wait this long: {remedy}')
    return Check("disk", "ok", found)


def _sync_times(folder: Path) -> Iterator[float]:
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".headrace-doctor-") as file:
        for _ in range(SYNCS):
            file.write(b"\0" * 4096)
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            yield time.perf_counter() - start


def check_start(archive: Path) -> Check:
    """The archive of classes that halves the time Spark takes to start."""
    if archive.exists():
        return Check("start", "ok", f"Spark starts with the classes in {archive}")
    return Check("start", "warn", "Spark finds its classes in hundreds of jars at each start", "headrace prepare, once, halves that time")


# Runs in a process of its own: a JVM that hangs or complains does not affect the terminal.
_SESSION = """
import sys, time
from headrace.core.settings import Settings
from headrace.spark.session import session, stop
start = time.perf_counter()
running = session(Settings(master=sys.argv[1], driver_memory=sys.argv[2]), cores=1)
ready = time.perf_counter()
rows = running.range(4, numPartitions=1).mapInArrow(lambda batches: batches, "id long").count()
print("headrace", rows, ready - start, time.perf_counter() - ready)
stop(running)
"""


def check_spark(settings: Settings) -> Check:
    """A real session that sends rows through a Python worker."""
    command = [sys.executable, "-c", _SESSION, settings.master, settings.driver_memory]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=SPARK_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        found = f"{settings.master} gave no session in {SPARK_PATIENCE} seconds"
        return Check("spark", "red", found, "check that the master is up and has free cores, or set HEADRACE_MASTER=local[*]")
    figures = re.search(r"^headrace 4 (\S+) (\S+)$", answer.stdout, re.MULTILINE)
    if figures is None:
        with tempfile.NamedTemporaryFile("w", prefix="headrace-doctor-", suffix=".log", delete=False) as record:
            record.write(answer.stdout + answer.stderr)
        return Check(
            "spark", "red", _reason(answer.stderr), f"check HEADRACE_MASTER and HEADRACE_DRIVER_MEMORY; all of its output: {record.name}"
        )
    return Check("spark", "ok", f"{settings.master}: session in {float(figures[1]):.1f} s, first Python rows in {float(figures[2]):.1f} s")


def _reason(output: str) -> str:
    for pattern in (r"SparkException: (.+)", r"Error: (Could not .+|.*memory.*)", r" ERROR \w+: (.+)", r"^[\w.]+(?:Error|Exception): (.+)"):
        if found := re.search(pattern, output, re.MULTILINE):
            return f"no session: {found[1]}"
    return "no session, and no word why"


def _size(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"
