"""The stored state of a shard, epoch by epoch."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace as hr
from headrace.checkpoint.shard_files import GRACE, ShardFiles, WriterAttempt, all_files, shard_files
from headrace.checkpoint.shard_state import StoredShard

FIRST = WriterAttempt()
ONE, TWO = b"one" * 100, b"two"


class Shard:
    """A shard that goes through epochs, in the memory of a worker that knows it."""

    def __init__(self, checkpoint: Path) -> None:
        self.files = shard_files(checkpoint, 1, 0, steps=["step"])
        self._stored = StoredShard(self.files, 0)

    def epoch(
        self, *, put: dict[str, bytes] | None = None, delete: tuple[str, ...] = (), attempt: WriterAttempt = FIRST, finish: bool = True
    ) -> None:
        for name, blob in (put or {}).items():
            self._stored.blobs("step").put(name, blob)
        for name in delete:
            self._stored.blobs("step").delete(name)
        if finish:
            self._stored.finish({"step": f"as of {self._stored.epoch + 1}"}, attempt)

    def meet(self, epoch: int) -> StoredShard:
        """A worker takes over that does not know the shard."""
        self._stored = StoredShard(self.files, epoch)
        return self._stored

    def blobs(self, epoch: int, *names: str) -> list[bytes | None]:
        """What was stored as of an epoch."""
        return [StoredShard(self.files, epoch).blobs("step").get(name) for name in names]


@pytest.fixture
def shard(tmp_path: Path) -> Shard:
    return Shard(tmp_path)


def test_what_was_put_is_found_again_by_its_operator_only(shard: Shard) -> None:
    shard.epoch(put={"one": ONE, "two": TWO})
    assert shard.blobs(1, "one", "two", "three") == [ONE, TWO, None]
    found = shard.meet(1)
    assert found.blobs("other").get("one") is None
    assert found.operators == {"step": "as of 1"}


def test_the_state_as_of_an_earlier_epoch_is_still_there(shard: Shard) -> None:
    shard.epoch(put={"one": ONE})
    shard.epoch(put={"one": TWO, "two": TWO})
    shard.epoch(delete=("one",))
    assert [shard.blobs(epoch, "one", "two") for epoch in (1, 2, 3)] == [[ONE, None], [TWO, TWO], [None, TWO]]


def test_what_an_epoch_that_failed_had_put_is_not_there(shard: Shard) -> None:
    shard.epoch(put={"one": ONE})
    shard.epoch(put={"two": TWO}, delete=("one",), finish=False)
    assert shard.blobs(1, "one", "two") == [ONE, None]


def test_of_several_attempts_of_an_epoch_the_last_counts_whichever_ended_last(shard: Shard) -> None:
    for attempt, blob in ((WriterAttempt(1, 9), b"first"), (WriterAttempt(2, 11), b"last"), (WriterAttempt(2, 3), b"late")):
        shard.meet(0)
        shard.epoch(put={"one": blob}, attempt=attempt)
    assert shard.blobs(1, "one") == [b"last"]


@pytest.mark.parametrize("forgets", [False, True])
def test_a_file_goes_when_no_epoch_that_a_repair_may_go_back_to_stands_on_it(shard: Shard, forgets: bool) -> None:
    shard.epoch(put={"one": ONE})
    (gone,) = [file for file in shard.files.names() if "manifest" not in file]
    shard.epoch(put={"two": TWO}, delete=("one",))
    if forgets:
        shard.meet(2)
    for _ in range(GRACE):
        shard.epoch()
        assert gone in shard.files.names()
    shard.epoch()
    assert gone not in shard.files.names()
    assert shard.blobs(GRACE + 3, "one", "two") == [None, TWO]


def test_what_is_written_over_a_longer_file_has_only_its_own_content(shard: Shard) -> None:
    shard.epoch(put={"one": TWO * 1_000})
    shard.epoch(delete=("one",))
    for _ in range(GRACE):
        shard.epoch()
    before = len(shard.files.names())
    shard.epoch(put={"two": ONE})
    # The manifest of the first epoch and the blob have gone, and those of this one have come.
    assert len(shard.files.names()) == before
    assert shard.blobs(GRACE + 3, "one", "two") == [None, ONE]
    assert all(shard.files.file(name).whole(thorough=True) for name in shard.files.names())


def test_as_many_manifests_are_there_as_epochs_that_a_repair_may_go_back_to(shard: Shard) -> None:
    for _ in range(2 * GRACE):
        shard.epoch()
    assert [shard.files.manifest(epoch) is not None for epoch in (GRACE - 2, GRACE - 1, 2 * GRACE)] == [False, True, True]
    assert len(shard.files.names()) == GRACE + 2


@pytest.mark.parametrize("finish", [False, True])
def test_what_a_failed_attempt_of_an_epoch_left_behind_goes_after_a_while(shard: Shard, finish: bool) -> None:
    shard.epoch(put={"one": ONE})
    before = set(shard.files.names())
    shard.epoch(put={"two": TWO}, finish=finish, attempt=WriterAttempt(1, 1))
    left = set(shard.files.names()) - before
    assert len(left) == 1 + finish
    shard.meet(1)
    for _ in range(GRACE):
        shard.epoch(attempt=WriterAttempt(1, 2))
        # A task that nobody waits for may be at it still.
        assert left <= set(shard.files.names())
    shard.epoch(attempt=WriterAttempt(1, 2))
    assert not left & set(shard.files.names())


def test_a_job_of_many_short_runs_keeps_no_more_files_than_one_that_runs_on(shard: Shard) -> None:
    for epoch in range(1, 3 * GRACE):
        shard.epoch(put={"one": ONE, str(epoch): TWO}, delete=(str(epoch - 3),), attempt=WriterAttempt(epoch))
        if epoch == GRACE:
            shard.epoch(put={"failed": ONE}, finish=False)
        shard.meet(epoch)
    # Of each epoch a manifest and two blobs, and what the oldest ones reference.
    assert len(shard.files.names()) <= 3 * (GRACE + 4)
    for epoch in range(2 * GRACE - 1, 3 * GRACE):
        assert shard.blobs(epoch, "one", *map(str, range(epoch - 3, epoch + 1))) == [ONE, None, TWO, TWO, TWO]


def test_a_process_that_ends_while_it_writes_leaves_no_file_that_is_taken_for_a_whole_one(
    tmp_path: Path, shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard.epoch()
    with monkeypatch.context() as ending:
        ending.setattr(Path, "rename", _ends)
        with pytest.raises(KeyboardInterrupt):
            shard.epoch(attempt=WriterAttempt(1, 1))
    assert [(file.epoch, file.attempt) for file in all_files(tmp_path)] == [(1, FIRST)]
    # It is known to be there, and goes with the others.
    (left,) = [name for name in shard.files.names() if name.startswith("2-")]
    shard.meet(1)
    for _ in range(GRACE + 1):
        shard.epoch()
    assert left not in shard.files.names()


def _ends(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("content", [None, b"", ONE[:-1], ONE[:-1] + b"?"], ids=["missing", "empty", "cut", "other"])
def test_a_file_that_is_not_what_was_written_is_refused_by_its_name(tmp_path: Path, shard: Shard, content: bytes | None) -> None:
    shard.epoch(put={"one": ONE})
    (file,) = [file for file in all_files(tmp_path) if file.attempt is None]
    assert (file.epoch, file.whole(thorough=True)) == (1, True)
    file.path.unlink()
    if content is not None:
        file.path.write_bytes(content)
    assert not file.whole(thorough=True)
    with pytest.raises(
        hr.JobError, match=rf"the state references .*{file.path.name}, which is {'torn' if content is not None else 'missing'}"
    ):
        shard.blobs(1, "one")


def test_an_epoch_whose_state_is_not_there_is_refused(shard: Shard) -> None:
    shard.epoch()
    with pytest.raises(hr.JobError, match=r"the state as of epoch 2 is missing in .*shards/@0.1/0"):
        shard.meet(2)


def test_a_file_that_is_not_ours_is_left_alone(tmp_path: Path, shard: Shard) -> None:
    shard.epoch(put={"one": ONE})
    before = shard.files.names()
    foreign = shard.files.directory / ".nfs0001"
    foreign.touch()
    assert sorted(shard.files.names()) == sorted(before)
    shard.meet(1)
    for _ in range(GRACE + 2):
        shard.epoch()
    assert foreign.exists()


def test_a_shard_without_files_has_none(tmp_path: Path) -> None:
    assert ShardFiles(tmp_path / "never written").names() == []


def test_steps_have_directories_of_their_own_and_one_manifest_an_epoch(tmp_path: Path) -> None:
    files = shard_files(tmp_path, 1, 0, steps=["totals.group", "minutes.window"])
    stored = StoredShard(files, 0)
    for step in ("totals.group", "minutes.window"):
        stored.blobs(step).put("row0", ONE)
    stored.finish({"totals.group": "rows", "minutes.window": "panes"}, FIRST, {"totals.group": "a", "minutes.window": "b"})
    found = sorted(str(file.path.relative_to(tmp_path).parent) for file in all_files(tmp_path))
    assert found == ["shards/@0.1/0", "shards/minutes.window/0", "shards/totals.group/0"]
    assert StoredShard(files, 1).manifest_of("totals.group", "a") == "rows"


def test_state_of_a_step_that_computes_something_else_is_refused(tmp_path: Path) -> None:
    files = shard_files(tmp_path, 1, 0, steps=["totals.group"])
    stored = StoredShard(files, 0)
    stored.finish({"totals.group": "rows"}, FIRST, {"totals.group": "a"})
    with pytest.raises(hr.JobError, match="is of a step with fingerprint a, and this one has b"):
        StoredShard(files, 1).manifest_of("totals.group", "b")
