"""The content of a scenario's file, read piece by piece; every mistake is reported with its place in the file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from headrace.core.errors import SchemaError, SettingsError

_NUMBERS = {"int": re.compile(r"-?[0-9]+\Z"), "float": re.compile(r"-?[0-9]+\.[0-9]+(e[-+]?[0-9]+)?\Z|-?\.inf\Z|\.nan\Z", re.IGNORECASE)}
# `on` and `no` are words, too.
_TRUTHS = re.compile(r"(true|false)\Z")


@dataclass(frozen=True)
class Content:
    """A value of the file and its place."""

    value: object
    place: str

    @classmethod
    def of(cls, file: Path) -> Content:
        """The content of a YAML file. Times of day such as 12:00:05 stay text (YAML 1.1 would read a number to base 60)."""
        try:
            import yaml
        except ModuleNotFoundError as error:
            raise SettingsError("scenarios are YAML, and pyyaml is not installed", hint="pip install pyyaml") from error

        # The C version takes a tenth of the time, where pyyaml was built with it.
        safe: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

        class Loader(safe):  # type: ignore[misc, valid-type]
            yaml_implicit_resolvers = {  # noqa: RUF012 - the name and its form are pyyaml's
                first: [(tag, pattern) for tag, pattern in known if not tag.endswith((":timestamp", ":int", ":float", ":bool"))]
                for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
            }

        Loader.add_implicit_resolver("tag:yaml.org,2002:bool", _TRUTHS, list("tf"))
        for kind, pattern in _NUMBERS.items():
            Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", pattern, list("-.0123456789"))
        try:
            return cls(yaml.load(file.read_text(encoding="utf-8"), Loader), file.name)  # noqa: S506 - it is a safe loader
        except yaml.YAMLError as error:
            raise SchemaError(f"{file.name} is not YAML: {error}") from error

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.wrong("a text")
        return self.value.strip()

    def texts(self) -> list[str]:
        """One text, or a list of them."""
        return [part.text() for part in self.parts()] if isinstance(self.value, list) else [self.text()]

    def number(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.wrong("a whole number")
        return self.value

    def share(self) -> float:
        if not isinstance(self.value, float):
            raise self.wrong("a number such as 0.01")
        return self.value

    def parts(self) -> list[Content]:
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return [Content(part, f"{self.place}[{number}]") for number, part in enumerate(self.value)]

    def items(self) -> Iterator[tuple[str, Content]]:
        if not isinstance(self.value, dict):
            raise self.wrong("names with values")
        for name, value in self.value.items():
            if not isinstance(name, str):
                raise SchemaError(f"{self.place}: the name {name!r} is not a text", hint="put it in quotes")
            yield name, Content(value, f"{self.place}.{name}")

    def fields(self, known: Collection[str], needed: Collection[str] = ()) -> dict[str, Content]:
        """The values by name; unknown names are refused, and required ones must be present."""
        found = dict(self.items())
        for name in found:
            if name not in known:
                raise SchemaError(f"{self.place}: {name!r} is not known here", hint=f"known: {', '.join(sorted(known))}")
        for name in needed:
            if name not in found:
                raise SchemaError(f"{self.place}: {name!r} is missing")
        return found

    def only(self, known: Collection[str]) -> tuple[str, Content]:
        """The one name there is, and its value."""
        found = self.fields(known)
        if len(found) != 1:
            raise SchemaError(
                f"{self.place}: one thing at a time, not {', '.join(found) or 'none'}", hint=f"one of: {', '.join(sorted(known))}"
            )
        return next(iter(found.items()))

    def row(self, columns: pa.Schema, day: datetime) -> dict[str, object]:
        """A record, its values in the types of the columns."""
        return {name: value.cell(columns.field(name).type, day) for name, value in self.fields(columns.names).items()}

    def cell(self, kind: pa.DataType, day: datetime) -> object:
        if self.value is not None and pa.types.is_timestamp(kind):
            return self.moment(day)
        return Decimal(str(self.value)) if self.value is not None and pa.types.is_decimal(kind) else self.value

    def moment(self, day: datetime) -> datetime:
        """A time of the scenario's day, or a whole timestamp; in UTC unless it says otherwise."""
        text = self.text()
        try:
            if "-" not in text:
                return datetime.combine(day, time.fromisoformat(text), UTC)
            moment = datetime.fromisoformat(text)
        except ValueError as error:
            raise SchemaError(f"{self.place}: {text!r} is not a time", hint="write 12:00:05, or 2026-01-02 12:00:05") from error
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    def wrong(self, wanted: str) -> SchemaError:
        return SchemaError(f"{self.place}: {wanted} is expected here, not {self.value!r}")
