"""Settings from `headrace.toml`, then `HEADRACE_*` in the environment, then arguments; the later wins."""

from __future__ import annotations

import dataclasses
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar, get_type_hints

from headrace.core.errors import SettingsError
from headrace.core.secret import Secret
from headrace.core.settings_source import ArgumentSource, EnvironmentSource, FileSource

FILE_NAME = "headrace.toml"

Kind = TypeVar("Kind")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of Headrace's surroundings.

    A new setting is one more field with a default. Its name is the key in `headrace.toml` (at the top level), and in
    capitals after `HEADRACE_` the variable in the environment.
    """

    home: Path = Path(".headrace")
    """The directory of the log, jobs and views. In the file, relative to the file; elsewhere, to the working directory."""

    master: str = "local[*]"
    """The Spark master that jobs run on."""

    driver_memory: str = "1g"
    """The heap of the Spark driver, as the JVM writes it: `512m`, `4g`."""

    cluster: Literal["refused", "experimental"] = "refused"
    """Whether the master may have executors in other processes and on other machines, which is experimental."""

    restarts: int = 5
    """How often in a row a job is restarted after a failure that may be temporary; a finished epoch resets the count."""

    epoch_bytes: int = 512 * 1024 * 1024
    """About how many bytes of records of a topic one epoch reads at most, before any step: a job that is behind needs memory for them."""

    spark_ui: bool = False
    """Whether Spark serves its own pages while a job runs: on this machine's loopback address only, and without links that stop jobs."""

    epoch_seconds: float = 10.0
    """About how long an epoch should take: after one that takes longer, the next reads fewer records, down to 1,000 of a stream."""

    quick_rows: int = 10_000
    """An epoch with at most this many records runs in one task, which is quicker for small ones; 0 to run every epoch in several."""

    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    """The least severe message that Headrace logs."""

    log_format: Literal["text", "json"] = "text"
    """How a line of a log of Headrace's own is written: as text, or as a JSON object for programs that gather logs."""

    otel: bool = False
    """Whether runs and servers send their metrics to a collector of OpenTelemetry; the variables OTEL_EXPORTER_OTLP_* say where."""

    alert_webhook: Secret | None = None
    """The URL that alerts are posted to, as JSON."""

    alert_mail: Secret | None = None
    """The mail address of alerts: `smtp://user:password@host:587/?from=jobs@example.org&to=team@example.org`; `smtps://` from the start."""

    def __post_init__(self) -> None:
        if (retrying := re.fullmatch(r"local\[(.*),.*\]", self.master)) is not None:
            raise SettingsError(
                f"master = {self.master!r} lets Spark try a failed task again",
                why="the task of small epochs is told each epoch once: a second try would wait for ever",
                hint=f'write "local[{retrying[1]}]": Headrace repeats the epoch itself, and `restarts` says how often',
            )
        if self.restarts < 0:
            raise SettingsError(f"restarts = {self.restarts} is below zero", hint="give 0 to stop at the first failure, or more")
        if not re.fullmatch(r"[1-9]\d*[kmgt]", self.driver_memory):
            raise SettingsError(f"driver_memory = {self.driver_memory!r} is not an amount of memory", hint='write "512m" or "4g"')
        if not self.epoch_seconds > 0:
            raise SettingsError(f"epoch_seconds = {self.epoch_seconds} is not a time", hint="give a number of seconds above zero")
        if self.quick_rows < 0:
            raise SettingsError(f"quick_rows = {self.quick_rows} is below zero", hint="give 0 to run every epoch in several tasks, or more")
        if self.epoch_bytes < 1:
            raise SettingsError(f"epoch_bytes = {self.epoch_bytes} admits no record", hint="give a whole number above zero")


def load_settings(*, start: Path | None = None, environment: Mapping[str, str] | None = None, **arguments: object) -> Settings:
    """The settings in force: defaults, the nearest `headrace.toml` from `start` upward, the environment, the arguments.

    An argument that is None counts as not given. The returned home is absolute. By default it is next to `headrace.toml` where there is
    one, so that every folder of a project sees the same data.

    >>> load_settings(environment={"HEADRACE_MASTER": "local[2]"}, home="/data").master
    'local[2]'
    """
    file = find_file(start or Path.cwd())
    settings = read_settings(Settings, file=file, environment=environment, arguments=arguments)
    folder = file.parent if file else Path.cwd()
    return dataclasses.replace(settings, home=Path(os.path.normpath(folder / settings.home)))


def follow_log_level(settings: Settings) -> None:
    """Set the level of this package's loggers from the settings. The program decides where the messages go, as with any library."""
    logging.getLogger("headrace").setLevel(settings.log_level.upper())


def read_settings(
    kind: type[Kind],
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    arguments: Mapping[str, object] | None = None,
) -> Kind:
    """A frozen dataclass of settings from the same three places: its fields say the names, types and defaults."""
    known = get_type_hints(kind)
    values: dict[str, object] = {}
    for source in (FileSource(file), EnvironmentSource(environment), ArgumentSource(arguments)):
        source.refuse_unknown(known)
        values |= {name: source.read(name, expected) for name, expected in known.items() if source.has(name)}
    return kind(**values)


def find_file(start: Path) -> Path | None:
    """The nearest `headrace.toml`: in `start`, or in a folder above it."""
    start = start.absolute()
    return next((folder / FILE_NAME for folder in (start, *start.parents) if (folder / FILE_NAME).is_file()), None)
