"""A Spark session as Headrace needs it: quiet, on this machine only unless the master says otherwise, with state that lasts."""

from __future__ import annotations

import os
import re
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from headrace.core.errors import JobError
from headrace.core.settings import Settings
from headrace.spark.starting import WORKERS, java_options, local_options, set_python

_PATIENCE = 30

# What expressions mean must not depend on whether Spark or our own operators evaluate them.
MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # By default Spark computes a common part once, ahead of the condition that guards it, and fails where that is false.
    "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
}
# On a cluster Spark's own stateful operator says where a task runs, and keeps a store for it, in which there is nothing: these make that
# cheap. What was written with one of the first three cannot be read with another, so they are part of what a checkpoint is.
PLACING = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # Each epoch writes its changes; every so many Spark writes out the rest too, and an epoch waits for that.
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "50",
}
# By default Spark renames the files of a checkpoint in a way that follows symbolic links, for which Hadoop starts a process
# `readlink` for each path: 50 processes an epoch. On a local disk renaming is atomic without.
LOCAL = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
# Else Spark looks at what each shuffle brought before it plans what is behind it: a job of its own for each, and nothing to be gained.
PLANNING = {"spark.sql.adaptive.streaming.stateless.enabled": "false"}
QUIET = {
    "spark.ui.enabled": "false",
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
    """A session on the master of the settings; a shuffle has as many partitions as it has `cores`.

    What Spark itself prints goes to the file `output`, if one is given. With it the JVM has no part in the terminal either:
    Ctrl-C reaches this process alone, which then decides.
    """
    local = settings.master.startswith("local")
    set_python(local=local)
    if local:
        # Else the driver listens on every address the machine has.
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
        # Workers talk to Spark thousands of times a second; a socket of the machine's own is quicker than one of the network.
        "spark.python.unix.domain.socket.enabled": "true",
        # What crosses a shuffle is compressed already: to do that again took a tenth of two cores at 500,000 records a second.
        "spark.shuffle.compress": "false",
        # A second attempt of a task that still runs would write beside it.
        "spark.speculation": "false",
        **{f"spark.executorEnv.{name}": value for name, value in WORKERS.items()},
        **MEANING,
        **QUIET,
        **PLACING,
        **PLANNING,
        **(LOCAL | local_options() if local else {}),
    }


@contextmanager
def job_session(settings: Settings, *, name: str, output: Path, config: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session of a job's own in the Spark that this process runs already, or in one that is started now, with `config`."""
    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - getActiveSession knows only what this thread began
        shared = SparkSession.builder.getOrCreate()
    else:
        shared = session(settings, name=name, output=output, config=config)
        if on_cluster(shared):
            shared.sparkContext.addPyFile(str(_packed(output.with_name("headrace.zip"))))
    own = shared.newSession()
    local = LOCAL if settings.master.startswith("local") else {}
    for option, value in (MEANING | PLACING | PLANNING | local).items():
        own.conf.set(option, value)
    _activate(own)
    try:
        yield own
    finally:
        _activate(shared)


def _packed(archive: Path) -> Path:
    """This package in a file, for executors elsewhere: the libraries it needs must be there, its own version is sent along."""
    package = Path(__file__).parents[1]
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(package.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                file.write(path, path.relative_to(package.parent))
    return archive


def _activate(chosen: SparkSession) -> None:
    """Let Spark look for data sources where they were registered: it asks the active session, whichever session a writer is of."""
    jvm = chosen.sparkContext._jvm  # noqa: SLF001 - no other way in
    assert jvm is not None
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(chosen._jsparkSession)  # noqa: SLF001


def shutdown(patience: float = _PATIENCE) -> None:
    """Stop the Spark of this process, if it runs one."""
    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - see job_session
        stop(SparkSession.builder.getOrCreate(), patience)


def stop(running: SparkSession, patience: float = _PATIENCE) -> None:
    """Stop a session and its JVM, and wait until that is gone, which it is after `patience` seconds at the latest."""
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
