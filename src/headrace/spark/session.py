"""A Spark session for Headrace: quiet, on this machine only unless the master says otherwise, with durable state."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from headrace.core.errors import JobError
from headrace.core.settings import Settings
from headrace.spark.java import java_in
from headrace.spark.workers.quick_start import WORKERS, java_options, local_options, set_python

_PATIENCE = 30
_LOOK = 0.1

# The meaning of an expression must not depend on whether Spark or our own operators evaluate it.
MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # By default Spark computes a common part once, ahead of the condition that guards it, and fails where that is false.
    "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
}
# On a cluster Spark's own stateful operator decides where a task runs, and keeps an empty store for it: these settings make that cheap.
# State written with one of the first three cannot be read with another, so they are part of a checkpoint's identity.
PLACING = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # Each epoch writes its changes; now and then Spark writes a full snapshot, and an epoch waits for that.
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "50",
}
# By default Spark renames the files of a checkpoint in a way that follows symbolic links, for which Hadoop starts a process `readlink` for
# each path: 50 processes an epoch. On a local disk, a plain rename is atomic.
LOCAL = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
# Otherwise Spark examines the output of each shuffle before it plans the next stage: a job of its own for each, with no gain.
PLANNING = {"spark.sql.adaptive.streaming.stateless.enabled": "false"}
QUIET = {
    "spark.ui.killEnabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def session(
    settings: Settings,
    *,
    name: str = "headrace",
    cores: int | None = None,
    output: Path | None = None,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session on the master of the settings; a shuffle has as many partitions as there are `cores`.

    Spark's own output goes to the file `output`, if one is given. The JVM is then detached from the terminal: Ctrl-C reaches this process
    alone, which decides.
    """
    local = settings.master.startswith("local")
    set_python(local=local)
    if local:
        # Otherwise the driver listens on every address of the machine.
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    options = {**_options(settings, local=local), "spark.app.name": name}
    if cores:
        options["spark.sql.shuffle.partitions"] = str(cores)
    conf = SparkConf().setAll(list((options | dict(config or {})).items()))
    try:
        if output is None:
            return SparkSession.builder.config(conf=conf).getOrCreate()
        with output.open("ab") as record:
            process = {"stdout": record, "stderr": subprocess.STDOUT, "start_new_session": True}
            gateway = launch_gateway(conf, process)  # type: ignore[no-untyped-call]
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except PySparkRuntimeError as error:
        java = java_in(os.environ)
        if java.remedy is not None:
            raise JobError(f"Spark did not start: {java.found}", hint=java.remedy) from error
        raise JobError(
            f"Spark did not start on {settings.master}: {error}",
            why=f"its own words are in {output}" if output else None,
            hint="headrace doctor says what is missing",
        ) from error


def on_cluster(spark: SparkSession) -> bool:
    """Whether tasks run in other processes than the driver's JVM, on this machine or on others."""
    return not re.fullmatch(r"local(\[.*\])?", str(spark.sparkContext.master))


def _options(settings: Settings, *, local: bool) -> dict[str, str]:
    """Spark's configuration for jobs with these settings."""
    return {
        "spark.master": settings.master,
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.defaultJavaOptions": java_options(),
        # Workers talk to Spark thousands of times a second; a Unix socket is quicker than one of the network.
        "spark.python.unix.domain.socket.enabled": "true",
        # Data in a shuffle is already compressed: doing it again took a tenth of two cores at 500,000 records a second.
        "spark.shuffle.compress": "false",
        # A second attempt of a task that still runs would write at the same time.
        "spark.speculation": "false",
        **{f"spark.executorEnv.{name}": value for name, value in WORKERS.items()},
        **MEANING,
        **QUIET,
        "spark.ui.enabled": str(settings.spark_ui and local).lower(),
        **PLACING,
        **PLANNING,
        **(LOCAL | local_options() if local else {}),
    }


class NotAwaited(Exception):
    """Spark was still starting when the run that wanted it was stopped."""


@contextmanager
def job_session(
    settings: Settings, *, name: str, output: Path, config: Mapping[str, str] | None = None, stop_asked: threading.Event | None = None
) -> Iterator[SparkSession]:
    """A session for a job in the Spark that this process already runs, or in one that is started now, with `config`.

    Raises `NotAwaited` if `stop_asked` is set while Spark starts.
    """
    shared = _shared(lambda: _fresh(settings, name, output, config), stop_asked or threading.Event())
    own = shared.newSession()
    local = LOCAL if settings.master.startswith("local") else {}
    for option, value in (MEANING | PLACING | PLANNING | local).items():
        own.conf.set(option, value)
    _activate(own)
    try:
        yield own
    finally:
        if alive():
            _activate(shared)


_starts: list[Future[SparkSession]] = []


def _shared(begin: Callable[[], SparkSession], stop_asked: threading.Event) -> SparkSession:
    """The session of this process, or one that is started in another thread.

    In another thread Spark installs no handler for Ctrl-C, and a run that is to stop need not wait. An abandoned start is used later.
    """
    if not _starts:
        if SparkContext._active_spark_context is not None:  # noqa: SLF001 - getActiveSession knows only what this thread began
            return SparkSession.builder.getOrCreate()
        _starts.append(_aside(begin))
    while not _starts[0].done():
        if stop_asked.wait(_LOOK):
            raise NotAwaited
    return _starts.pop().result()


def _aside(begin: Callable[[], SparkSession]) -> Future[SparkSession]:
    future: Future[SparkSession] = Future()

    def work() -> None:
        try:
            future.set_result(begin())
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is asked for
            future.set_exception(error)

    threading.Thread(target=work, name="starting Spark", daemon=True).start()
    return future


def _fresh(settings: Settings, name: str, output: Path, config: Mapping[str, str] | None) -> SparkSession:
    started = session(settings, name=name, output=output, config=config)
    if on_cluster(started):
        started.sparkContext.addPyFile(str(_packed(output.with_name("headrace.zip"))))
    return started


def alive() -> bool:
    """Whether the JVM of this process has not ended."""
    gateway = SparkContext._gateway  # noqa: SLF001 - see stop
    return gateway is not None and (gateway.proc is None or gateway.proc.poll() is None)


def discard() -> None:
    """Drop a session whose JVM has ended, so that another can be started."""
    context = SparkContext._active_spark_context  # noqa: SLF001 - see job_session
    if context is not None:
        with warnings.catch_warnings():
            # The JVM is gone.
            warnings.simplefilter("ignore", RuntimeWarning)
            context.stop()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001


def _packed(archive: Path) -> Path:
    """This package in a file, for executors elsewhere: its dependencies must be installed there, its own version is sent."""
    package = Path(__file__).parents[1]
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(package.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                file.write(path, path.relative_to(package.parent))
    return archive


def _activate(chosen: SparkSession) -> None:
    """Let Spark find the registered data sources: it asks the active session, whichever session a writer belongs to."""
    jvm = chosen.sparkContext._jvm  # noqa: SLF001 - no other way in
    assert jvm is not None
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(chosen._jsparkSession)  # noqa: SLF001


def shutdown(patience: float = _PATIENCE) -> None:
    """Stop the Spark of this process, if it runs one."""
    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - see job_session
        stop(SparkSession.builder.getOrCreate(), patience)


def stop(running: SparkSession, patience: float = _PATIENCE) -> None:
    """Stop a session and its JVM, and wait for its end, at most `patience` seconds."""
    gateway = SparkContext._gateway  # noqa: SLF001 - Spark keeps its JVM for the next session of the process, and has no other way in
    running.stop()
    if gateway is None or gateway.proc is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(patience)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
