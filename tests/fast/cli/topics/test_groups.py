"""`headrace groups`."""

import pytest


@pytest.fixture(autouse=True)
def readers(log):
    log.create_topic("views", partitions=2, schema="url string, price int", key="url")
    with log.producer(acks="1") as producer:
        for number in range(20):
            producer.send("views", {"url": f"/{number}", "price": number})
    with log.consumer("views", group="billing") as consumer:
        consumer.poll(max_rows=5)


def test_groups_are_listed_with_their_lag(headrace):
    (row,) = headrace("groups", "list").rows
    assert (row["group"], row["state"], row["members"], row["topics"], row["lag"]) == ("billing", "empty", 0, "views", 15)


def test_a_group_is_described_partition_by_partition(headrace):
    (told,) = headrace("groups", "describe", "billing").rows
    assert told["name"] == "billing"
    assert sum(part["lag"] for part in told["partitions"]) == 15


def test_a_group_goes_on_from_another_place(headrace):
    assert {row["committed"] for row in headrace("groups", "seek", "billing", "views", "beginning").rows} == {0}
    assert headrace("groups", "list").rows[0]["lag"] == 20
    headrace("groups", "seek", "billing", "views", "end", "-p", 1)
    assert [part["lag"] == 0 for part in headrace("groups", "describe", "billing").rows[0]["partitions"]] == [False, True]


def test_a_group_is_reset_and_deleted(headrace, log):
    assert headrace("groups", "reset", "billing", "views").code == 0
    headrace("groups", "seek", "billing", "views", "end")
    assert headrace("groups", "delete", "billing").code == 0
    assert log.group_names() == []
    assert headrace("groups", "list").rows == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["describe", "none"], "there is no group 'none'"),
        (["seek", "billing", "nothing", "end"], "there is no topic 'nothing'"),
        (["seek", "billing", "views", "77"], "has no offset 77"),
        (["reset", "none"], "there is no group 'none'"),
    ],
)
def test_what_cannot_be_done_is_told(headrace, arguments, said):
    answer = headrace("groups", *arguments)
    assert answer.code == 1
    assert said in answer.err


def test_a_group_with_members_stays_where_it_is(headrace, log):
    with log.consumer("views", group="billing"):
        answer = headrace("groups", "seek", "billing", "views", "end")
    assert answer.code == 1
    assert "has 1 live members" in answer.err
