"""A topic gets more columns at its end; what is stored stays readable, and nothing is rewritten."""

import pyarrow as pa
import pytest

from headrace.core.errors import SchemaError
from headrace.log import Log

OLD = "url string, user string"
NEW = "url string, user string, country string, tags map<string,string>"


@pytest.fixture
def log(tmp_path, clock):
    log = Log(tmp_path / "log", clock=clock)
    log.create_topic("views", schema=OLD, key="url")
    with log.producer() as producer:
        producer.send("views", {"url": "/a", "user": "old"})
    return log


def test_old_records_have_no_value_in_a_new_column(log):
    log.alter_topic("views", schema=NEW)
    with log.producer() as producer:
        producer.send("views", {"url": "/b", "user": "new", "country": "NL", "tags": {"a": "b"}})
    expected = [
        {"url": "/a", "user": "old", "country": None, "tags": None},
        {"url": "/b", "user": "new", "country": "NL", "tags": [("a", "b")]},
    ]
    names = ["url", "user", "country", "tags"]
    assert log.read("views", columns=names).to_pylist() == expected
    assert Log(log.path).read("views", columns=names).to_pylist() == expected
    assert log.read("views", columns=["country"]).to_pylist() == [{"country": None}, {"country": "NL"}]


def test_a_producer_and_a_reader_that_were_there_before_go_on(log):
    other = Log(log.path)
    with other.producer(linger="1 hour") as producer, other.consumer("views") as consumer:
        producer.send("views", {"url": "/waits", "user": "old"})
        assert consumer.poll(timeout="0s").num_rows == 1
        log.alter_topic("views", schema=NEW)
        producer.flush()
        producer.send("views", {"url": "/c", "country": "NL"})
        producer.flush()
        rows = consumer.poll(timeout="0s", columns=["url"]).to_pylist()
    assert rows == [{"url": "/waits"}, {"url": "/c"}]
    assert log.read("views", columns=["country"])["country"].to_pylist() == [None, None, "NL"]


def test_tables_with_the_old_columns_are_still_taken(log):
    log.alter_topic("views", schema=NEW)
    log.append_epoch("views", pa.table({"url": ["/d"], "user": ["u"]}), writer="w", epoch=1)
    assert log.read("views", columns=["url", "country"]).to_pylist()[-1] == {"url": "/d", "country": None}


def test_offsets_keys_and_order_are_kept_over_a_change(log):
    log.alter_topic("views", schema=NEW)
    with log.producer() as producer:
        for number in range(5):
            producer.send("views", {"url": f"/{number}", "country": "NL"})
    table = log.read("views")
    assert table["_offset"].to_pylist() == list(range(6))
    assert log.read("views", columns=["_key"])["_key"].to_pylist() == [b"/a", b"/0", b"/1", b"/2", b"/3", b"/4"]
    assert log.read("views", start=3)["url"].to_pylist() == ["/2", "/3", "/4"]


@pytest.mark.parametrize(
    ("schema", "fact"),
    [
        ("url string", "column 'user' cannot be changed or removed"),
        ("user string, url string", "column 'url' cannot be changed or removed"),
        ("url string, user int", "column 'user' cannot be changed or removed"),
        ("url string not null, user string", "column 'url' cannot be changed or removed"),
        ("url string, user string, extra int not null", "a new column cannot be NOT NULL"),
        ("url string, user string, _time timestamp", "'_time' of topic 'views' has a name that the log itself uses"),
    ],
)
def test_a_change_that_stored_records_do_not_bear_is_refused(log, schema, fact):
    with pytest.raises(SchemaError, match=fact):
        log.alter_topic("views", schema=schema)
    assert log.topic("views").columns.names == ["url", "user"]
    with log.producer() as producer:
        producer.send("views", {"url": "/e"})
    assert log.read("views").num_rows == 2


def test_the_same_columns_again_change_nothing(log):
    log.alter_topic("views", schema=OLD)
    with log.producer() as producer:
        producer.send("views", {"url": "/e"})
    assert log.describe("views")["partitions"][0]["segments"] == 1
