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
from headrace.core.settings_source import ArgumentSource, EnvironmentSource, FileSource

FILE_NAME = "headrace.toml"

Kind = TypeVar("Kind")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What Headrace must know of its surroundings.

    A new setting is one more field with a default. Its name is the key in `headrace.toml` (at the top level), and in
    capitals after `HEADRACE_` the variable in the environment.
    """

    home: Path = Path(".headrace")
    """Where the log, jobs and views live. In the file, relative to the file; elsewhere, to the working directory."""

    master: str = "local[*]"
    """The Spark master that jobs run on."""

    kafka: str | None = None
    """The brokers (`host:port,host:port`) that take the place of the embedded log."""

    driver_memory: str = "1g"
    """The heap of the Spark driver, as the JVM writes it: `512m`, `4g`."""

    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    """The least severe message that Headrace logs."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[1-9]\d*[kmgt]", self.driver_memory):
            raise SettingsError(f"driver_memory = {self.driver_memory!r} is not an amount of memory", hint='write "512m" or "4g"')


def load_settings(*, start: Path | None = None, environment: Mapping[str, str] | None = None, **arguments: object) -> Settings:
    """The settings in force: defaults, the nearest `headrace.toml` from `start` upward, the environment, the arguments.

    An argument that is None counts as not given. The home comes back absolute; by default it stands beside `headrace.toml`
    where there is one, so that every folder of a project sees the same data.

    >>> load_settings(environment={"HEADRACE_MASTER": "local[2]"}, home="/data").master
    'local[2]'
    """
    file = find_file(start or Path.cwd())
    settings = read_settings(Settings, file=file, environment=environment, arguments=arguments)
    beside = file.parent if file else Path.cwd()
    return dataclasses.replace(settings, home=Path(os.path.normpath(beside / settings.home)))


def follow_log_level(settings: Settings) -> None:
    """Let this package log what the settings say. Where its messages go is up to the program, as with any library."""
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
