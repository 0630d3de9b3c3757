"""The three places of a setting, and its value as the declared type.

Raw values may be secrets. They stay inside a source, whose repr shows nothing, and never in a local variable of a frame that raises: a
traceback with locals shows none of them.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from headrace.core.durations import duration
from headrace.core.errors import SettingsError
from headrace.core.secret import Secret

PREFIX = "HEADRACE_"


class SettingsSource:
    """Settings as they are written in one place; each kind of source knows its place and the form of its names."""

    def __init__(self, raw: Mapping[str, object], base: Path) -> None:
        self._raw = raw
        self._base = base

    def has(self, name: str) -> bool:
        return self._raw.get(self.key(name)) is not None

    def read(self, name: str, expected: Any) -> object:
        """The value of a setting as its declared type; relative paths start at this source's own folder."""
        kinds = [kind for kind in _alternatives(expected) if kind is not NoneType]
        value = next((value for kind in kinds if (value := self._as(name, kind)) is not None), None)
        if value is None:
            fact = f"{self.key(name)} = {self._shown(name, kinds)} is not {' or '.join(map(_described, kinds))}"
            raise SettingsError(fact, hint=self._remedy(name, kinds), where=self.where(name))
        return self._base / value if isinstance(value, Path) else value

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """A misspelled setting must not be ignored in silence."""
        names = {self.key(name): name for name in known}
        for key in self._raw:
            if key not in names and self._ours(key, names):
                close = difflib.get_close_matches(key, names, n=1)
                hint = f"did you mean {close[0]}?" if close else f"the settings are {', '.join(names)}"
                raise SettingsError(f"there is no setting {key}", hint=hint, where=self.where(key))

    def key(self, name: str) -> str:
        """The name of a setting as it is written here."""
        return name

    def where(self, name: str) -> str | None:
        """The place to look at, for an error."""
        return None

    def _ours(self, key: str, names: Iterable[str]) -> bool:
        return True

    def _remedy(self, name: str, kinds: list[Any]) -> str | None:
        return None

    def _as(self, name: str, kind: Any) -> object | None:
        return _from_value(self._raw[self.key(name)], kind)

    def _shown(self, name: str, kinds: list[Any]) -> str:
        raw = self._raw[self.key(name)]
        return f"a {type(raw).__name__}" if Secret in kinds else repr(raw)


class FileSource(SettingsSource):
    """`headrace.toml`: typed values, paths relative to the file."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        super().__init__(_parsed(file) if file else {}, file.absolute().parent if file else Path())

    def where(self, name: str) -> str | None:
        pattern = re.compile(rf"""\s*\[*\s*["']?{re.escape(name)}["']?\s*[=.\]]""")
        lines = self._file.read_text(encoding="utf-8").splitlines() if self._file else []
        return next((f"{self._file}, line {number}" for number, line in enumerate(lines, 1) if pattern.match(line)), str(self._file))

    def _remedy(self, name: str, kinds: list[Any]) -> str | None:
        if isinstance(self._raw[self.key(name)], str):
            return "numbers, true and false have no quotes" if {int, float, bool} & set(kinds) else None
        return "write it in quotes" if {str, Path, timedelta} & set(kinds) else None


class EnvironmentSource(SettingsSource):
    """`HEADRACE_*` variables: text, paths relative to the working directory."""

    def __init__(self, environment: Mapping[str, str] | None) -> None:
        super().__init__(_prefixed(os.environ if environment is None else environment), Path.cwd())

    def key(self, name: str) -> str:
        return PREFIX + name.upper()

    def where(self, name: str) -> str | None:
        return "the environment"

    def _ours(self, key: str, names: Iterable[str]) -> bool:
        # A variable that resembles no setting may belong to another program (a container's HEADRACE_VERSION); a near miss is a misspelling.
        return bool(difflib.get_close_matches(key, names, n=1, cutoff=0.85))

    def _as(self, name: str, kind: Any) -> object | None:
        return _from_text(str(self._raw[self.key(name)]), kind)


class ArgumentSource(SettingsSource):
    """Arguments of a call: values, paths relative to the working directory; None counts as not given."""

    def __init__(self, arguments: Mapping[str, object] | None) -> None:
        super().__init__(arguments or {}, Path.cwd())

    def _as(self, name: str, kind: Any) -> object | None:
        raw = self._raw[name]
        return raw if kind in (Path, Secret, timedelta) and isinstance(raw, kind) else _from_value(raw, kind)


def _parsed(file: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is not UTF-8"
    # Raised outside of the handler: the parser's frames contain the whole text of the file.
    raise SettingsError(f"{file.name} is not TOML: {reason}", hint='a line has a name, = and a value: home = ".headrace"', where=str(file))


def _prefixed(environment: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(PREFIX)}


def _alternatives(expected: Any) -> tuple[Any, ...]:
    return get_args(expected) if get_origin(expected) in (UnionType, Union) else (expected,)


_TEXTS: dict[Any, Callable[[str], object]] = {str: str, Path: Path, Secret: Secret, timedelta: duration, int: int, float: float}
_SWITCHES = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_DESCRIBED = {
    str: "a text",
    Path: "a path",
    Secret: "a text",
    timedelta: 'a duration such as "30 seconds"',
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


def _from_value(raw: object, kind: Any) -> object | None:
    if get_origin(kind) is Literal:
        return raw if raw in get_args(kind) else None
    if isinstance(raw, str) and kind in (str, Path, Secret, timedelta):
        return _from_text(raw, kind)
    if kind is float and type(raw) in (int, float):
        return float(raw)  # type: ignore[arg-type]
    return raw if type(raw) is kind and kind in (int, bool) else None


def _from_text(raw: str, kind: Any) -> object | None:
    if get_origin(kind) is Literal:
        return raw if raw in get_args(kind) else None
    if kind is bool:
        return _SWITCHES.get(raw.lower())
    try:
        return _TEXTS[kind](raw)
    except (ValueError, SettingsError):
        return None


def _described(kind: Any) -> str:
    return " or ".join(map(repr, get_args(kind))) if get_origin(kind) is Literal else _DESCRIBED[kind]
