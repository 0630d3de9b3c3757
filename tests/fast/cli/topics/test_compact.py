"""`headrace compact`."""

import pyarrow as pa


def test_a_compacted_topic_keeps_the_latest_of_each_key(headrace, log):
    settings = {"cleanup.policy": "compact", "segment.bytes": 1024, "min.compaction.lag.ms": 86_400_000}
    log.create_topic("latest", schema="id string, n int", key="id", config=settings)
    for number in range(40):
        log.append_epoch("latest", only(number), writer="w", epoch=number)
    headrace("topics", "alter", "latest", "-c", "min.compaction.lag.ms=0")
    answer = headrace("compact", "latest")
    (row,) = answer.rows
    assert (answer.code, row["topic"], row["error"]) == (0, "latest", None)
    assert row["records_compacted"] > 0
    assert row["bytes_freed"] > 0
    assert log.read("latest", columns=["n"])["n"].to_pylist()[-1] == 39


def only(number):
    return pa.table({"id": ["only"], "n": pa.array([number], pa.int32())})


def test_all_topics_are_worked_on_and_the_logs_own_are_not_shown(headrace, log):
    log.create_topic("a", partitions=2)
    log.transactions  # noqa: B018 - its first use creates its topic
    assert [(row["topic"], row["partition"]) for row in headrace("compact").rows] == [("a", 0), ("a", 1)]


def test_an_unknown_topic_is_told(headrace, log):
    log.create_topic("a")
    assert "there is no topic 'b'" in headrace("compact", "b").err
