"""The files that the state of a job references as of an epoch, and which of them are torn or missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from headrace.checkpoint.shard_files import ShardFile, ShardFiles, shard_files
from headrace.checkpoint.shard_state import Manifest


@dataclass(frozen=True)
class StateFiles:
    """The state of one job: its checkpoint, the number of levels of stateful steps, and the number of shards of each."""

    checkpoint: Path
    levels: int
    shards: int
    layout: int = 0
    changed_at: int = 0
    """The epoch as of which the state was taken over from another version of the app; there is none before it."""
    _judged: dict[tuple[ShardFile, bool], bool] = field(default_factory=dict)

    def needed(self, epoch: int) -> Iterator[Path]:
        """All files that the state as of an epoch references."""
        for files in self._shards:
            manifest = files.needed_manifest(epoch)
            yield from (file.path for file in (manifest, *_blobs(files, manifest)))

    def damaged(self, epoch: int, *, thorough: bool) -> Path | None:
        """A file that the state as of an epoch references and that is damaged, by its size or, thoroughly, by its content."""
        return next((path for files in self._shards for path in self._damages(files, epoch, thorough=thorough)), None)

    @property
    def _shards(self) -> Iterator[ShardFiles]:
        for level in range(1, self.levels + 1):
            for shard in range(self.shards):
                yield shard_files(self.checkpoint, level, shard, self.layout)

    def _damages(self, files: ShardFiles, epoch: int, *, thorough: bool) -> Iterator[Path]:
        manifest = files.manifest(epoch)
        if manifest is None:
            yield files.directory / f"{epoch}-manifest"
        elif not manifest.whole(thorough=True):
            yield manifest.path
        else:
            yield from (file.path for file in _blobs(files, manifest) if not self._whole(file, thorough=thorough))

    def _whole(self, file: ShardFile, *, thorough: bool) -> bool:
        """Many epochs reference one file, which is checked once."""
        asked = file, thorough
        if asked not in self._judged:
            self._judged[asked] = file.whole(thorough=thorough)
        return self._judged[asked]


def _blobs(files: ShardFiles, manifest: ShardFile) -> Iterator[ShardFile]:
    return (files.file(name) for name in Manifest.of(manifest.path.read_bytes()).files)
