"""State that is stored partly in Spark's store and partly in files beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace as hr
from headrace.spark.blob_files import GRACE, BlobFiles, all_files, shard_files
from headrace.spark.stored import LARGE, Stored

Key, Value = tuple[str], tuple[bytes]
LONG, SHORT = b"long" * LARGE, b"short"


class SparkMap:
    """Spark's state store: what an epoch changes counts once it is committed."""

    def __init__(self) -> None:
        self._committed: dict[Key, Value] = {}
        self._changed: dict[Key, Value] = {}

    def getValue(self, key: Key) -> Value | None:  # noqa: N802 - Spark's name
        return self._changed.get(key)

    def updateValue(self, key: Key, value: Value) -> None:  # noqa: N802
        self._changed[key] = value

    def removeKey(self, key: Key) -> None:  # noqa: N802
        self._changed.pop(key, None)

    def commit(self) -> None:
        self._committed = dict(self._changed)

    def fail(self) -> None:
        self._changed = dict(self._committed)

    @property
    def bytes(self) -> int:
        return sum(len(value[0]) for value in self._committed.values())


class Shard:
    """A shard that goes through epochs."""

    def __init__(self, place: Path) -> None:
        self.spark, self.files = SparkMap(), shard_files(place, 1, 0)
        self._spent: dict[str, int] | None = None

    def open(self, epoch: int) -> Stored:
        return Stored(self.spark, self.files, epoch)

    def epoch(self, number: int, *, put: dict[str, bytes] | None = None, delete: tuple[str, ...] = ()) -> None:
        stored = self.open(number)
        spent = stored.spent() if self._spent is None else self._spent
        for name, blob in (put or {}).items():
            stored.blobs("step").put(name, blob)
        for name in delete:
            stored.blobs("step").delete(name)
        self._spent = stored.keep(spent)
        self.spark.commit()

    def forget(self) -> None:
        """A worker that never met the shard takes over."""
        self._spent = None

    def get(self, name: str, operator: str = "step") -> bytes | None:
        return self.open(0).blobs(operator).get(name)


@pytest.fixture
def shard(tmp_path: Path) -> Shard:
    return Shard(tmp_path)


def test_what_was_put_is_found_again_large_or_small_and_by_its_operator_only(shard: Shard) -> None:
    shard.epoch(1, put={"one": LONG, "two": SHORT})
    assert (shard.get("one"), shard.get("two"), shard.get("three")) == (LONG, SHORT, None)
    assert shard.get("one", "other") is None
    assert shard.spark.bytes < 1_000 < len(LONG)


def test_what_an_epoch_that_failed_had_put_is_not_there(shard: Shard) -> None:
    shard.epoch(1, put={"one": LONG})
    failed = shard.open(2)
    failed.blobs("step").put("two", LONG)
    failed.blobs("step").delete("one")
    failed.keep({})
    shard.spark.fail()
    assert (shard.get("one"), shard.get("two")) == (LONG, None)


@pytest.mark.parametrize("forgets", [False, True])
def test_a_file_goes_when_no_epoch_that_a_repair_may_go_back_to_stands_on_it(shard: Shard, forgets: bool) -> None:
    shard.epoch(1, put={"one": LONG})
    shard.epoch(2, put={"two": LONG}, delete=("one",))
    if forgets:
        shard.forget()
    for epoch in range(3, GRACE + 3):
        shard.epoch(epoch)
        assert len(shard.files.names()) == 2
    shard.epoch(GRACE + 3)
    assert len(shard.files.names()) == 1
    assert shard.get("two") == LONG


def test_what_an_epoch_that_never_ended_left_behind_goes_when_the_shard_is_met_again(shard: Shard) -> None:
    shard.epoch(1, put={"one": LONG})
    before = shard.files.names()
    shard.open(2).blobs("step").put("two", LONG)
    shard.spark.fail()
    shard.forget()
    shard.epoch(2)
    assert shard.files.names() == before
    assert shard.get("one") == LONG


def test_what_a_failed_attempt_of_an_epoch_left_behind_goes_after_a_while(shard: Shard) -> None:
    shard.epoch(1, put={"one": LONG})
    shard.open(2).blobs("step").put("two", LONG)
    shard.spark.fail()
    shard.epoch(2)
    shard.forget()
    for epoch in range(3, GRACE + 4):
        assert len(shard.files.names()) == 2
        shard.epoch(epoch)
    assert len(shard.files.names()) == 1


def test_a_process_that_ends_while_it_writes_leaves_no_file_that_is_taken_for_a_torn_one(
    tmp_path: Path, shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "rename", _ends)
    with pytest.raises(KeyboardInterrupt):
        shard.open(1).blobs("step").put("one", LONG)
    assert len(shard.files.names()) == 1
    assert list(all_files(tmp_path)) == []


def _ends(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("content", [None, b"", LONG[:-1], LONG[:-1] + b"?"], ids=["missing", "empty", "cut", "other"])
def test_a_file_that_is_not_what_was_written_is_refused_by_its_name(tmp_path: Path, shard: Shard, content: bytes | None) -> None:
    shard.epoch(7, put={"one": LONG})
    (file,) = all_files(tmp_path)
    assert file.epoch == 7
    assert file.whole(thorough=True)
    file.path.unlink()
    if content is not None:
        file.path.write_bytes(content)
    with pytest.raises(
        hr.JobError, match=rf"the state stands on .*{file.path.name}, which is {'torn' if content is not None else 'missing'}"
    ):
        shard.get("one")
    # What was missing is seen as torn by a repair, which only looks at what is there.
    (seen,) = all_files(tmp_path)
    assert not seen.whole(thorough=True)


def test_a_file_that_is_not_ours_is_left_alone(tmp_path: Path, shard: Shard) -> None:
    shard.epoch(1, put={"one": LONG})
    (file,) = all_files(tmp_path)
    foreign = file.path.with_name(".nfs0001")
    foreign.touch()
    shard.forget()
    shard.epoch(2)
    assert foreign.exists()
    assert shard.files.names() == [file.path.name]


def test_a_shard_without_files_has_none(tmp_path: Path) -> None:
    assert BlobFiles(tmp_path / "never written").names() == []
