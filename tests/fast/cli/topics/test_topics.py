"""`headrace topics`."""

import pytest

SCHEMA = "url string, viewed_at timestamp"


def test_a_topic_is_created_listed_described_altered_and_deleted(headrace, log):
    made = headrace("topics", "create", "views", "-p", 2, "-s", SCHEMA, "-k", "url", "-t", "viewed_at", "-c", "retention.ms=1000")
    assert (made.code, made.out, made.err) == (0, "", "topic views has 2 partitions\n")
    assert (log.topic("views").key, log.topic("views").time, log.topic("views").config.retention_ms) == (("url",), "viewed_at", 1000)

    headrace("produce", "views", '{"url": "/a", "viewed_at": "2026-01-01T00:00:00Z"}')
    (row,) = headrace("topics", "list").rows
    assert (row["topic"], row["partitions"], row["records"], row["latest"]) == ("views", 2, 1, "2026-01-01T00:00:00Z")
    assert row["bytes"] > 0

    (told,) = headrace("topics", "describe", "views").rows
    assert (told["columns"], told["key"], told["config"]["retention.ms"]) == (SCHEMA, ["url"], 1000)
    assert sorted(part["end"] for part in told["partitions"]) == [0, 1]

    headrace("topics", "alter", "views", "-p", 5, "-c", "retention.ms=5", "-s", f"{SCHEMA}, country string")
    assert (log.topic("views").partitions, log.topic("views").config.retention_ms, len(log.topic("views").columns)) == (5, 5, 3)

    assert headrace("topics", "delete", "views", "--yes").code == 0
    assert headrace("topics", "list").rows == []


def test_listing_where_there_is_no_log_shows_nothing_and_creates_nothing(headrace, home):
    assert headrace("topics", "list").code == 0
    assert not home.exists()


def test_the_logs_own_topics_are_listed_on_request(headrace, log):
    log.create_topic("a")
    log.transactions  # noqa: B018 - its first use creates its topic
    assert [row["topic"] for row in headrace("topics", "list").rows] == ["a"]
    assert "__transactions" in [row["topic"] for row in headrace("topics", "list", "--internal").rows]


def test_if_absent_leaves_a_topic_as_it_is(headrace):
    headrace("topics", "create", "a", "-s", "x int")
    assert headrace("topics", "create", "a", "-s", "x int").code == 1
    assert headrace("topics", "create", "a", "-s", "x int", "--if-absent").code == 0
    assert headrace("topics", "create", "a", "-s", "x string", "--if-absent").code == 1


def test_deleting_asks_first(headrace, log):
    log.create_topic("a")
    refused = headrace("topics", "delete", "a", stdin="n\n")
    assert refused.code == 1
    assert "delete topic a with 0 records?" in refused.err
    assert [topic.name for topic in log.topics()] == ["a"]
    assert headrace("topics", "delete", "a", stdin="y\n").code == 0
    assert log.topics() == []


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["create", "a b"], 1, "error: 'a b' is not a topic name"),
        (["create", "a", "-s", "x whatever"], 1, "'whatever' is not a type"),
        (["create", "a", "-c", "retention.mss=1"], 1, "hint: did you mean 'retention.ms'?"),
        (["create", "a", "-c", "retention.ms"], 2, "is not NAME=VALUE"),
        (["create", "a", "-p", "0"], 2, "--partitions"),
        (["describe", "a"], 1, "there is no log in"),
        (["alter", "a"], 2, "--partitions, --schema or --config"),
        (["delete", "a", "-y"], 1, "there is no log in"),
    ],
)
def test_what_cannot_be_done_is_told(headrace, arguments, code, said):
    answer = headrace("topics", *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert said in " ".join(answer.err.replace("│", " ").split())


def test_the_home_may_be_named(headrace, tmp_path, home):
    headrace("topics", "create", "a", "--home", tmp_path / "other")
    assert headrace("topics", "list").rows == []
    assert [row["topic"] for row in headrace("topics", "list", "--home", tmp_path / "other").rows] == ["a"]
