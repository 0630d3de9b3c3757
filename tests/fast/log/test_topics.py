"""Topics: created, altered, deleted and described; what does not fit is refused with words, and nothing is written."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.core.errors import LogError, SchemaError, SettingsError
from headrace.log import Log, TopicConfig
from headrace.log.errors import CorruptLog, OffsetOutOfRange, RecordTooLarge, TopicDeleted, TopicExists, UnknownTopic

VIEWS = {"schema": "url string not null, user string, viewed_at timestamp", "key": "url", "time": "viewed_at"}


def files_of(log: Log) -> dict[str, bytes]:
    """Everything stored, to see that a refused call left it as it was; locks and shared words may be opened."""
    return {
        str(path): path.read_bytes() for path in Path(log.path).rglob("*") if path.suffix in (".segment", ".index", ".json", ".writers")
    }


def test_a_topic_is_what_it_was_created_as(log):
    log.create_topic("page_views", partitions=3, config={"retention.ms": 1000, "cleanup.policy": "compact"}, **VIEWS)
    again = Log(log.path).topic("page_views")
    assert (again.name, again.partitions, again.key, again.time) == ("page_views", 3, ("url",), "viewed_at")
    assert again.columns.names == ["url", "user", "viewed_at"]
    assert not again.columns.field("url").nullable
    assert (again.config.retention_ms, again.config.compacted) == (1000, True)
    assert again.created_at == log.clock.now()


def test_a_topic_without_a_schema_holds_bytes(log):
    assert log.create_topic("raw").columns.equals(pa.schema([("value", pa.binary())]))


def test_topics_are_listed_by_name_and_internal_ones_on_request(log):
    for name in ("b", "a", ".hidden", "c-1_2.x"):
        log.create_topic(name)
    log.transactions  # noqa: B018 - its first use creates its topic
    assert [topic.name for topic in log.topics()] == [".hidden", "a", "b", "c-1_2.x"]
    assert "__transactions" in [topic.name for topic in log.topics(internal=True)]


def test_two_processes_see_each_others_topics(tmp_path):
    one, other = Log(tmp_path), Log(tmp_path)
    one.create_topic("a", partitions=1)
    assert other.topic("a").partitions == 1
    other.alter_topic("a", partitions=5)
    assert one.topic("a").partitions == 5
    one.delete_topic("a")
    assert other.topics() == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../up", "a\0b", "a b", "ü", "x" * 250, "a\n", "~new-1"])
def test_names_that_kafka_refuses_are_refused(log, name):
    before = sorted(Path(log.path).rglob("*"))
    for call in (lambda: log.create_topic(name), lambda: log.topic(name), lambda: log.delete_topic(name), lambda: log.read(name)):
        with pytest.raises(LogError, match="is not a topic name"):
            call()
    assert sorted(Path(log.path).rglob("*")) == before


def test_the_longest_name_works(log):
    log.create_topic("x" * 249)
    assert log.read("x" * 249).num_rows == 0


@pytest.mark.parametrize("partitions", [0, -1])
def test_a_topic_has_at_least_one_partition(log, partitions):
    with pytest.raises(LogError, match=f"with {partitions} partitions"):
        log.create_topic("a", partitions=partitions)
    assert log.topics() == []


def test_a_topic_is_created_once(log):
    first = log.create_topic("a", schema="x int")
    with pytest.raises(TopicExists, match="'a' already exists"):
        log.create_topic("a", schema="x int")
    assert log.create_topic("a", schema="x int", exist_ok=True) is first
    with pytest.raises(TopicExists, match="other columns"):
        log.create_topic("a", schema="x string", exist_ok=True)


@pytest.mark.parametrize(
    ("declared", "fact"),
    [
        ({"schema": "a int, _offset int"}, "'_offset' of topic 't' has a name that the log itself uses"),
        ({"schema": "a int", "key": "b"}, "no column 'b'"),
        ({"schema": "a int", "time": "b"}, "no column 'b'"),
        ({"schema": "a int", "time": "a"}, "time column 'a' of topic 't' is int32"),
        ({"schema": "a int, a string"}, "'a' is declared twice"),
        ({"schema": "a whatever"}, "'whatever' is not a type"),
        ({"schema": pa.schema([])}, "has no columns"),
        ({"config": {"retention.hours": 1}}, "'retention.hours' is not a topic setting"),
        ({"config": {"retention.ms": "soon"}}, "retention.ms takes a whole number, not 'soon'"),
        ({"config": {"cleanup.policy": "burn"}}, "cleanup.policy 'burn' is not known"),
        ({"config": {"compression.type": "rar"}}, "compression.type 'rar' is not known"),
        ({"config": {"segment.bytes": 10}}, "segment.bytes 10 is too small"),
        ({"config": {"max.message.bytes": 0}}, "admits no record"),
    ],
)
def test_a_declaration_without_meaning_is_refused_and_leaves_nothing(log, declared, fact):
    with pytest.raises((SchemaError, SettingsError), match=fact.replace("(", r"\(")):
        log.create_topic("t", **declared)
    assert log.topics() == []


def test_settings_have_kafkas_names_and_a_mistyped_one_is_guessed():
    names = {
        "retention.ms", "retention.bytes", "segment.bytes", "cleanup.policy", "min.compaction.lag.ms", "delete.retention.ms",
        "max.message.bytes", "message.timestamp.after.max.ms", "compression.type",
    }  # fmt: skip
    assert set(TopicConfig().settings()) == names
    with pytest.raises(SettingsError) as raised:
        TopicConfig().with_settings({"retention.mss": 1})
    assert raised.value.hint.startswith("did you mean 'retention.ms'? settings: ")


def test_altering_adds_partitions_and_changes_settings_and_keeps_the_records(log):
    log.create_topic("a", partitions=2, schema="x int")
    with log.producer() as producer:
        producer.send("a", {"x": 1})
    log.alter_topic("a", partitions=4, config={"retention.ms": 5})
    assert (log.topic("a").partitions, log.topic("a").config.retention_ms) == (4, 5)
    with log.producer() as producer:
        for number in range(8):
            producer.send_table("a", pa.table({"x": pa.array([number], pa.int32())}))
    assert log.read("a").num_rows == 9
    assert set(log.read("a")["_partition"].to_pylist()) == {0, 1, 2, 3}


def test_partitions_are_never_taken_away(log):
    log.create_topic("a", partitions=3)
    with pytest.raises(LogError, match="has 3 partitions, not 2"):
        log.alter_topic("a", partitions=2)
    assert log.topic("a").partitions == 3


def test_an_alteration_that_is_refused_changes_nothing(log):
    log.create_topic("a", schema="x int")
    before = files_of(log)
    with pytest.raises(SettingsError, match=r"cleanup\.policy"):
        log.alter_topic("a", partitions=2, config={"cleanup.policy": "burn"})
    with pytest.raises(SchemaError, match="cannot be changed or removed"):
        log.alter_topic("a", schema="x string")
    with pytest.raises(UnknownTopic, match="no topic 'b'"):
        log.alter_topic("b", partitions=2)
    assert files_of(log) == before


def test_a_deleted_topic_is_gone_for_everybody_and_may_be_created_anew(tmp_path):
    log, other = Log(tmp_path), Log(tmp_path)
    log.create_topic("a")
    with log.producer() as producer:
        producer.send("a", b"old")
    consumer = other.consumer("a")
    assert consumer.poll().num_rows == 1
    log.delete_topic("a")
    with pytest.raises(TopicDeleted, match="'a' was deleted"):
        consumer.poll()
    with pytest.raises(UnknownTopic):
        other.read("a")
    other.create_topic("a")
    assert log.read("a").num_rows == 0
    assert {path.name for path in (tmp_path / "topics").iterdir()} == {"a", "__transactions"}


def test_a_producer_of_a_deleted_topic_is_told(log):
    log.create_topic("a")
    with log.producer() as producer:
        producer.send("a", b"x").done()
        producer.flush()
        log.delete_topic("a")
        with pytest.raises(UnknownTopic):
            producer.send("a", b"y")


def test_the_logs_own_topics_are_not_deleted(log):
    log.transactions  # noqa: B018 - its first use creates its topic
    with pytest.raises(LogError, match="belongs to the log itself"):
        log.delete_topic("__transactions")


def test_describe_tells_offsets_bytes_segments_and_the_latest_time_of_each_partition(log):
    log.create_topic("page_views", partitions=2, **VIEWS)
    at = datetime(2025, 12, 31, tzinfo=UTC)
    with log.producer() as producer:
        producer.send("page_views", {"url": "/a", "viewed_at": at})
        producer.send("page_views", {"url": "/a", "viewed_at": at - timedelta(hours=1)})
    told = log.describe("page_views")
    assert (told["name"], told["key"], told["time"]) == ("page_views", ["url"], "viewed_at")
    filled = [partition for partition in told["partitions"] if partition["end"]]
    empty = [partition for partition in told["partitions"] if not partition["end"]]
    assert [(p["start"], p["end"], p["segments"]) for p in filled] == [(0, 2, 1)]
    assert filled[0]["max_event_time"] == int(at.timestamp() * 1_000_000)
    assert filled[0]["bytes"] > empty[0]["bytes"] > 0
    assert empty[0]["max_event_time"] is None


def test_an_unknown_topic_is_named_with_those_there_are(log):
    log.create_topic("clicks")
    calls = [
        lambda: log.topic("cliks"),
        lambda: log.read("cliks"),
        lambda: log.consumer("cliks"),
        lambda: log.producer().send("cliks", b""),
        lambda: log.producer().send_table("cliks", pa.table({"value": [b""]})),
        lambda: log.append_epoch("cliks", pa.table({"value": [b""]}), writer="w", epoch=1),
        lambda: log.describe("cliks"),
        lambda: log.delete_topic("cliks"),
        lambda: log.offsets_for_time("cliks", 0),
        lambda: log.max_event_time("cliks", 0, 0, 1),
    ]
    for call in calls:
        with pytest.raises(UnknownTopic, match="no topic 'cliks'") as raised:
            call()
        assert "clicks" in raised.value.hint


@pytest.mark.parametrize("index", [-1, 1, 99])
def test_a_partition_that_is_not_there_is_refused(log, index):
    log.create_topic("a")
    for call in (lambda: log.read("a", partition=index), lambda: log.max_event_time("a", index, 0, 1)):
        with pytest.raises(LogError, match=f"has no partition {index}"):
            call()


@pytest.mark.parametrize(
    ("table", "fact"),
    [
        ({"url": ["/a"], "visitor": ["u"]}, "has no column 'visitor'"),
        ({"url": [None], "user": ["u"]}, "'url' of topic 'page_views' is NOT NULL, but 1 records"),
        ({"user": ["u"]}, "'url' of topic 'page_views' is NOT NULL"),
        ({"url": ["/a"], "viewed_at": ["noon"]}, "'viewed_at' of topic 'page_views' is timestamp, the data is string"),
        ({"url": [b"\xff"]}, "'url' of topic 'page_views' is string, the data is binary"),
        ({"url": ["/a"], "_time": [datetime(2020, 1, 1, tzinfo=UTC)]}, "has no column '_time'"),
        ({"url": ["/a"], "_key": [b"k"]}, "has no column '_key'"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_and_nothing_is_written(log, table, fact):
    log.create_topic("page_views", partitions=4, **VIEWS)
    before = files_of(log)
    with log.producer() as producer, pytest.raises(SchemaError, match=fact):
        producer.send_table("page_views", pa.table(table))
    with pytest.raises(SchemaError, match=fact):
        log.append_epoch("page_views", pa.table(table), writer="w", epoch=1)
    assert files_of(log) == before


def test_a_column_that_can_be_converted_without_loss_is(log):
    log.create_topic("a", schema="x bigint, y double")
    with log.producer() as producer:
        producer.send_table("a", pa.table({"y": pa.array([1], pa.int32()), "x": pa.array([2], pa.int8())}))
        with pytest.raises(SchemaError, match="'x' of topic 'a' is bigint, the data is double"):
            producer.send_table("a", pa.table({"x": [1.5]}))
    assert log.read("a", columns=["x", "y"]).to_pylist() == [{"x": 2, "y": 1.0}]


def test_an_oversized_record_is_refused_whole_and_named(log):
    log.create_topic("a", config={"max.message.bytes": 1000})
    before = files_of(log)
    with log.producer() as producer, pytest.raises(RecordTooLarge, match="record 1 for topic 'a' has 1,001 bytes; the topic allows 1,000"):
        producer.send_table("a", pa.table({"value": [b"x" * 1000, b"x" * 1001]}))
    assert files_of(log) == before
    with log.producer() as producer:
        producer.send_table("a", pa.table({"value": [b"x" * 1000] * 10}))
    assert log.read("a").num_rows == 10


def test_a_time_from_the_future_is_refused_unless_the_topic_allows_it(log, clock):
    log.create_topic("page_views", **VIEWS)
    hour_ahead = clock.now() + 3_600_000_000
    table = lambda moment: pa.table({"url": ["/a"], "viewed_at": pa.array([moment], pa.timestamp("us", "UTC"))})  # noqa: E731
    before = files_of(log)
    with log.producer() as producer:
        for moment in (hour_ahead + 1, 2**62):
            with pytest.raises(LogError, match="more than 3600000 ms in the future"):
                producer.send_table("page_views", table(moment))
        assert files_of(log) == before
        producer.send_table("page_views", table(hour_ahead))
        log.alter_topic("page_views", config={"message.timestamp.after.max.ms": -1})
        producer.send_table("page_views", table(hour_ahead + 1))
    assert log.read("page_views").num_rows == 2


@pytest.mark.parametrize("offset", [-1, -(2**63), 4, 2**62])
def test_an_offset_the_log_does_not_have_is_refused(log, offset):
    log.create_topic("a")
    with log.producer() as producer:
        producer.send_table("a", pa.table({"value": [b"x"] * 3}))
    consumer = log.consumer("a")
    for call in (lambda: consumer.seek(offset), lambda: log.consumer("a", start=offset), lambda: log.read("a", start=offset)):
        with pytest.raises(OffsetOutOfRange, match=f"has no offset {offset}: it has 0 to 2"):
            call()
    assert consumer.poll().num_rows == 3


def test_a_place_that_is_none_is_refused(log):
    log.create_topic("a")
    with pytest.raises(SettingsError, match="'start' is not a place"):
        log.consumer("a", start="start")
    with pytest.raises(OffsetOutOfRange, match="it is empty, the next one is 0"):
        log.read("a", start=1)


def test_a_changed_declaration_on_disk_is_corruption(log):
    log.create_topic("a", partitions=2)
    path = log.path / "topics" / "a" / "topic.json"
    path.write_bytes(path.read_bytes().replace(b'"partitions": 2', b'"partitions": 3'))
    with pytest.raises(CorruptLog, match=r"topic\.json has been changed or damaged"):
        Log(log.path).topic("a")


def test_a_tombstone_may_leave_required_columns_empty_and_other_records_may_not(log):
    log.create_topic("a", schema="id string, total int not null", key="id")
    tables = pa.table({"id": ["x", "y"], "total": [None, None], "_tombstone": [True, False]}, schema=pa.schema(
        [("id", pa.string()), ("total", pa.int32()), ("_tombstone", pa.bool_())]))  # fmt: skip
    with log.producer() as producer:
        with pytest.raises(SchemaError, match="NOT NULL, but 1 records"):
            producer.send_table("a", tables)
        producer.send_table("a", tables.slice(0, 1))
    assert log.read("a", columns=["id", "_tombstone"]).to_pylist() == [{"id": "x", "_tombstone": True}]


def test_what_a_crash_left_of_a_topic_is_swept_up(log, open_log):
    topics = log.path / "topics"
    log.create_topic("stays")
    for name in ("~new-1-2", "~deleted-3"):
        (topics / name / "0").mkdir(parents=True)
        (topics / name / "0" / "x.segment").write_bytes(b"x")
    assert [topic.name for topic in log.topics()] == ["stays"]
    open_log().maintain()
    assert [path.name for path in topics.iterdir()] == ["stays"]


def test_a_deleted_topic_takes_what_a_crash_left_with_it(log):
    log.create_topic("goes")
    (log.path / "topics" / "~new-1").mkdir()
    log.delete_topic("goes")
    assert list((log.path / "topics").iterdir()) == []
