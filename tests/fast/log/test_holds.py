"""Records that a reader may read again are not compacted."""

from pathlib import Path

import pytest

from headrace.log import Log


class Prices:
    """A compacted topic of small segments in which each of four keys is written again and again."""

    def __init__(self, path: Path) -> None:
        self.path, self.log, self.sent = path, Log(path / "log"), 0
        self.log.create_topic(
            "prices", schema="item string, price int, text string", key="item", config={"cleanup.policy": "compact", "segment.bytes": 1024}
        )
        self.witness = path / "job.json"
        self.witness.touch()

    def send(self, count: int) -> None:
        with self.log.producer() as producer:
            for number in range(self.sent, self.sent + count):
                producer.send("prices", {"item": f"i{number % 4}", "price": number, "text": "x" * 300})
                producer.flush()
        self.sent += count

    def hold(self, offset: int, holder: str = "job") -> None:
        self.log.hold(holder, {self.log.topic("prices").id: {0: offset}}, self.witness)

    def read(self, first: int) -> list[int]:
        table = self.log.read("prices", columns=["price", "_offset"])
        return [row["price"] for row in table.to_pylist() if row["_offset"] >= first]

    def compact(self) -> str | None:
        (report,) = self.log.maintain("prices", force=True)
        assert report.error is None
        return report.held_by


@pytest.fixture
def prices(tmp_path: Path) -> Prices:
    return Prices(tmp_path)


def test_from_the_held_offset_on_a_topic_reads_the_same_after_compaction(prices: Prices) -> None:
    prices.send(12)
    prices.hold(12)
    prices.send(28)
    assert prices.compact() == "job"
    assert prices.read(12) == list(range(12, 40))
    assert len(prices.read(0)) < 40


def test_the_lowest_of_several_holds_counts_and_what_is_released_is_compacted(prices: Prices) -> None:
    prices.hold(30, "ahead")
    prices.hold(10, "behind")
    prices.send(40)
    assert prices.compact() == "behind"
    assert prices.read(10) == list(range(10, 40))
    prices.log.release("behind")
    assert prices.compact() == "ahead"
    assert prices.read(30) == list(range(30, 40))
    assert len(prices.read(10)) < 30
    prices.log.release("ahead")
    assert prices.compact() is None
    assert len(prices.read(0)) < 10


def test_a_hold_lapses_with_its_job_and_a_topic_made_anew_is_not_held(prices: Prices) -> None:
    prices.hold(0)
    prices.log.delete_topic("prices")
    fresh = Prices(prices.path)
    fresh.send(40)
    assert fresh.compact() is None
    fresh.hold(40)
    fresh.send(40)
    assert fresh.compact() == "job"
    assert fresh.read(40) == list(range(40, 80))
    fresh.witness.unlink()
    assert not fresh.log.holds("job")
    assert fresh.compact() is None
    assert len(fresh.read(40)) < 10


def test_a_hold_that_is_being_written_is_none_yet(prices: Prices) -> None:
    prices.hold(10)
    (prices.path / "log" / "holds" / ".job.1.2").touch()
    prices.send(40)
    assert prices.compact() == "job"
    assert prices.read(10) == list(range(10, 40))


def test_a_partition_that_is_added_is_held_from_its_beginning(prices: Prices) -> None:
    prices.send(4)
    prices.hold(4)
    prices.log.alter_topic("prices", partitions=2)
    prices.send(60)
    before = prices.log.read("prices", partition=1).num_rows
    prices.log.maintain("prices", force=True)
    assert before > 4
    assert prices.log.read("prices", partition=1).num_rows == before
