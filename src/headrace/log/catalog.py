"""The catalog of a log: its topics and their declarations, one directory each; any process may change it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from headrace.core.columns.schema import SchemaLike
from headrace.core.errors import LogError
from headrace.core.files.disk import Disk, Lock
from headrace.core.nearest import nearest
from headrace.log.errors import TopicExists, UnknownTopic
from headrace.log.files.partition import Partition
from headrace.log.topic import Topic, check_name, extended, topic_columns

# Directories of topics that are being created or deleted. '~' is not allowed in the name of a topic, so no topic has these names.
_NEW, _DELETED = "~new-", "~deleted-"
_DECLARATION = "topic.json"


class TopicCatalog:
    """The topics under a directory. A process that adds, changes or removes one holds `lock`."""

    def __init__(self, disk: Disk, path: Path, lock: Lock) -> None:
        self.lock = lock
        self._disk = disk
        self._path = path
        self._known: dict[str, tuple[Path, tuple[int, int], Topic]] = {}
        disk.make_directory(path)

    def topic(self, name: str) -> Topic:
        """The declaration of a topic, as it is now."""
        known = self._known.get(name)
        path = known[0] if known is not None else self._file_of(name)
        try:
            stamp = self._disk.stamp(path)
        except FileNotFoundError:
            raise self._unknown(name) from None
        if known is None or known[1] != stamp:
            known = (path, stamp, Topic.from_json(self._disk.read(path), str(path)))
            self._known[name] = known
        return known[2]

    def topics(self) -> list[Topic]:
        """All topics, by name."""
        found = []
        for name in self.names():
            # One may be deleted while they are listed.
            with suppress(UnknownTopic):
                found.append(self.topic(name))
        return found

    def names(self) -> list[str]:
        return sorted(name for name in self._disk.list(self._path) if not name.startswith("~"))

    def __contains__(self, name: str) -> bool:
        return self._disk.exists(self._path / name / _DECLARATION)

    def directory(self, name: str, index: int) -> Path:
        """The directory of a partition."""
        return self._path / name / str(index)

    def create(self, topic: Topic, *, exist_ok: bool) -> Topic:
        """Add a topic; with `exist_ok`, an existing one with the same columns, key and time is accepted."""
        with self.lock:
            if topic.name in self:
                return self._existing(topic, exist_ok=exist_ok)
            # Built aside and moved into place: a topic exists as a whole, or not at all.
            building = self._path / f"{_NEW}{topic.id}-{uuid.uuid4().hex}"
            self._disk.make_directory(building)
            for index in range(topic.partitions):
                Partition.create(self._disk, building / str(index), topic)
            self._disk.replace(building / _DECLARATION, topic.to_json())
            self._disk.rename(building, self._path / topic.name)
        return self.topic(topic.name)

    def alter(self, name: str, partitions: int | None, config: Mapping[str, int | str], schema: SchemaLike | None) -> Topic:
        """Add partitions, change settings, or add columns at the end."""
        with self.lock:
            topic = self.topic(name)
            changed = replace(topic, config=topic.config.with_settings(config))
            if schema is not None:
                changed = replace(changed, columns=extended(topic, topic_columns(schema)))
            if partitions is not None:
                changed = replace(changed, partitions=partitions)
                if partitions < topic.partitions:
                    raise LogError(
                        f"topic {name!r} has {topic.partitions} partitions, not {partitions} or fewer",
                        why="records would be lost",
                        hint="only more partitions can be given",
                    )
                for index in range(topic.partitions, partitions):
                    Partition.create(self._disk, self.directory(name, index), changed)
            self._disk.replace(self._path / name / _DECLARATION, changed.to_json())
        return self.topic(name)

    def bury(self, topic: Topic) -> None:
        """Remove a topic from the catalog, under the lock; its files wait to be swept."""
        self._disk.rename(self._path / topic.name, self._path / f"{_DELETED}{topic.id}")
        self._known.pop(topic.name, None)

    def sweep(self) -> None:
        """Remove the files of deleted topics, and of topics whose creation or deletion a crash interrupted."""
        if not any(name.startswith("~") for name in self._disk.list(self._path)):
            return
        with self.lock:
            # Topics are created under this lock: no process is still creating what is found now.
            for name in self._disk.list(self._path):
                if name.startswith(_NEW):
                    self._disk.rename(self._path / name, self._path / f"{_DELETED}{name.removeprefix(_NEW)}")
        for name in self._disk.list(self._path):
            if name.startswith(_DELETED):
                # Another process may be removing it, too.
                with suppress(FileNotFoundError):
                    self._disk.remove_tree(self._path / name)

    def _existing(self, topic: Topic, *, exist_ok: bool) -> Topic:
        present = self.topic(topic.name)
        if not exist_ok:
            raise TopicExists(f"topic {topic.name!r} already exists", hint="use another name, delete it first, or give exist_ok=True")
        if (present.columns, present.key, present.time) != (topic.columns, topic.key, topic.time):
            raise TopicExists(f"topic {topic.name!r} already exists with other columns, key or time", hint="alter it, or use another name")
        return present

    def _file_of(self, name: str) -> Path:
        check_name(name)
        return self._path / name / _DECLARATION

    def _unknown(self, name: str) -> UnknownTopic:
        names = [other for other in self.names() if not other.startswith("__")]
        near = nearest(name, names)
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        hint = (f"did you mean {near!r}? otherwise " if near else "") + f"create it first; topics here: {shown or 'none'}"
        return UnknownTopic(f"there is no topic {name!r} in {self._path.parent}", hint=hint)
