"""A topic as a queue: each message to one consumer, until it is done."""

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from headrace.core.clock import to_datetime
from headrace.core.errors import LogError, SchemaError, SettingsError
from headrace.log import Log
from headrace.log.errors import ReceiptExpired, TopicDeleted, UnknownTopic
from tests.support.counting import CountingDisk


@pytest.fixture
def open_queue(tmp_path, clock):
    """As another process sees it: a log of its own on the same directory."""

    def opened(topic="jobs", **settings):
        return Log(tmp_path / "log", clock=clock).queue(topic, **({"name": "workers"} | settings))

    return opened


@pytest.fixture
def jobs(log):
    return log.create_topic("jobs")


def send(log, *values, topic="jobs", **options):
    with log.producer() as producer:
        for value in values:
            producer.send(topic, value, **options)


def values(messages):
    return [message.value for message in messages]


def receive(queue, count=10):
    return queue.receive(max=count, wait="0s")


# Delivery


def test_each_message_goes_to_one_consumer_in_the_order_of_the_partition(log, jobs, open_queue):
    send(log, b"1", b"2", b"3", b"4", b"5")
    one, other = open_queue(), open_queue()
    assert values(receive(one, 2)) == [b"1", b"2"]
    assert values(receive(other, 2)) == [b"3", b"4"]
    assert values(receive(one)) == [b"5"]
    assert receive(one) == receive(other) == []


def test_a_message_has_its_value_key_time_and_headers(log, open_queue):
    log.create_topic("jobs", schema="id string, size int, at timestamp", key="id", time="at")
    at = datetime(2025, 12, 31, 12, tzinfo=UTC)
    with log.producer() as producer:
        producer.send("jobs", {"id": "a", "size": 3, "at": at}, headers={"trace": b"7"})
    [message] = receive(open_queue())
    assert message.value == {"id": "a", "size": 3, "at": at}
    assert (message.key, message.time, message.headers, message.deliveries) == (b"a", at, {"trace": b"7"}, 1)


def test_a_tombstone_is_a_message_without_a_value(log, jobs, open_queue):
    send(log, None, key=b"k")
    [message] = receive(open_queue())
    assert (message.value, message.key, message.headers) == (None, b"k", {})


def test_all_partitions_are_served_in_turn(log, open_queue):
    log.create_topic("jobs", partitions=3)
    send(log, *[b"%d" % number for number in range(3)], key=b"a")
    send(log, *[b"%d" % number for number in range(3)], key=b"b")
    send(log, *[b"%d" % number for number in range(3)], key=b"e")
    queue = open_queue()
    keys = [receive(queue, 1)[0].key for _ in range(9)]
    assert Counter(keys) == {b"a": 3, b"b": 3, b"e": 3}
    assert len(set(keys[:3])) > 1


def test_queues_with_other_names_are_independent_and_readers_are_not_disturbed(log, jobs, open_queue):
    send(log, b"1", b"2")
    for message in receive(open_queue(name="mailers")):
        message.ack()
    assert values(receive(open_queue())) == [b"1", b"2"]
    assert log.read("jobs").num_rows == 2


def test_partitions_added_later_are_served(log, jobs, open_queue):
    queue = open_queue()
    send(log, b"1")
    assert len(receive(queue)) == 1
    log.alter_topic("jobs", partitions=4)
    for number in range(20):
        send(log, b"x", key=b"%d" % number)
    assert len(receive(queue, 100)) == 20


def test_columns_added_later_are_delivered_also_to_the_dead_letters(log, open_queue):
    log.create_topic("jobs", schema="id int")
    queue = open_queue(max_deliveries=1)
    log.alter_topic("jobs", schema="id int, more string")
    send(log, {"id": 1, "more": "x"})
    [message] = receive(queue)
    assert message.value == {"id": 1, "more": "x"}
    message.nack()
    assert log.read("jobs.dead", columns=["id", "more"]).to_pylist() == [{"id": 1, "more": "x"}]


def test_records_of_open_and_aborted_transactions_are_not_delivered(log, jobs, open_queue):
    queue = open_queue()
    with log.producer(transactional_id="t") as writer:
        writer.begin_transaction()
        writer.send("jobs", b"no")
        writer.flush()
        writer.abort_transaction()
        writer.begin_transaction()
        writer.send("jobs", b"yes")
        writer.flush()
        assert receive(queue) == []
        writer.commit_transaction()
    assert values(receive(queue)) == [b"yes"]


def test_receive_waits_for_a_message(log, jobs, open_queue):
    queue = open_queue()
    timer = threading.Timer(0.05, send, [log, b"1"])
    timer.start()
    assert values(queue.receive(wait="20s")) == [b"1"]
    timer.join()


def test_receive_waits_for_a_message_to_come_back(log, jobs, open_queue):
    send(log, b"1")
    queue, other = open_queue(), open_queue()
    [message] = receive(other)
    timer = threading.Timer(0.05, message.nack)
    timer.start()
    assert values(queue.receive(wait="20s")) == [b"1"]
    timer.join()


# Acknowledgement and redelivery


def test_an_acknowledged_message_is_never_delivered_again(log, jobs, open_queue, clock):
    send(log, b"1", b"2")
    first, _second = receive(open_queue())
    first.ack()
    clock.advance(timedelta(hours=1))
    assert values(receive(open_queue())) == [b"2"]


def test_a_message_that_is_not_acknowledged_in_time_is_delivered_again_with_a_count(log, jobs, open_queue, clock):
    send(log, b"1")
    queue = open_queue(visibility_timeout="30s")
    receive(queue)
    clock.advance(timedelta(seconds=29))
    assert receive(open_queue()) == []
    clock.advance(timedelta(seconds=1))
    [message] = receive(open_queue())
    assert (message.value, message.deliveries) == (b"1", 2)


def test_a_message_given_back_is_delivered_again_after_its_delay(log, jobs, open_queue, clock):
    send(log, b"1")
    queue = open_queue()
    receive(queue)[0].nack()
    [message] = receive(open_queue())
    assert message.deliveries == 2
    message.nack(delay="10s")
    assert receive(queue) == []
    clock.advance(timedelta(seconds=10))
    assert receive(queue)[0].deliveries == 3


def test_redeliveries_come_before_new_messages(log, jobs, open_queue):
    send(log, b"1", b"2", b"3")
    queue = open_queue()
    receive(queue, 1)[0].nack()
    assert values(receive(queue, 2)) == [b"1", b"2"]


def test_an_extended_message_stays_hidden_for_longer(log, jobs, open_queue, clock):
    send(log, b"1")
    [message] = receive(open_queue())
    clock.advance(timedelta(seconds=20))
    message.extend("1 minute")
    clock.advance(timedelta(seconds=59))
    assert receive(open_queue()) == []
    message.ack()
    clock.advance(timedelta(seconds=10))
    assert receive(open_queue()) == []


def test_a_late_acknowledgement_counts_as_long_as_nobody_else_has_the_message(log, jobs, open_queue, clock):
    send(log, b"1")
    [message] = receive(open_queue())
    clock.advance(timedelta(minutes=5))
    message.ack()
    assert receive(open_queue()) == []


def test_a_receipt_is_worth_nothing_once_another_consumer_has_the_message(log, jobs, open_queue, clock):
    send(log, b"1")
    [slow] = receive(open_queue())
    clock.advance(timedelta(minutes=5))
    [quick] = receive(open_queue())
    for call in (slow.ack, slow.nack, lambda: slow.extend("1s")):
        with pytest.raises(ReceiptExpired, match="has expired"):
            call()
    quick.ack()
    slow.ack()  # it is done, which is what was asked for
    with pytest.raises(ReceiptExpired):
        slow.nack()


def test_several_acknowledgements_at_once_cost_one_sync_and_do_not_fail_together(log, jobs, tmp_path, clock):
    send(log, *[b"%d" % number for number in range(5)])
    disk = CountingDisk()
    queue = Log(tmp_path / "log", clock=clock, disk=disk).queue("jobs", name="workers")
    messages = receive(queue)
    messages[0].nack()
    disk.taken()
    with pytest.raises(ReceiptExpired, match=messages[0].receipt):
        queue.ack(*(message.receipt for message in messages))
    assert disk.taken()["sync"] == 1
    assert values(receive(queue)) == [b"0"]
    assert queue.depth().in_flight == 1


def test_a_receipt_can_be_acknowledged_by_another_process(log, jobs, open_queue, clock):
    send(log, b"1")
    [message] = receive(open_queue())
    open_queue().ack(message.receipt)
    clock.advance(timedelta(hours=1))
    assert receive(open_queue()) == []


def test_an_acknowledgement_survives_a_power_cut(log, jobs, open_queue, tmp_path, clock):
    """It is synced with all that was said before it, so what a lost page could undo is a later delivery at most."""
    send(log, b"1", b"2")
    queue = open_queue()
    receive(queue, 1)[0].ack()
    state = queue._state.partition.state()
    assert state.durable == state.written


# Dead letters


def test_after_the_last_delivery_a_message_goes_to_the_dead_letters_and_says_why(log, open_queue, clock):
    log.create_topic("jobs", schema="id int, body string", key="id")
    with log.producer() as producer:
        producer.send("jobs", {"id": 1, "body": "x"}, headers={"trace": b"7"})
        producer.send("jobs", {"id": 2, "body": "y"})
    queue = open_queue(max_deliveries=3)
    for _ in range(3):
        for message in receive(queue):
            if message.value["id"] == 1:
                message.nack(reason="cannot parse")
        clock.advance(timedelta(minutes=1))
    assert receive(queue) == []
    first, second = log.read("jobs.dead", columns=["id", "body", "_headers"]).to_pylist()
    assert (first["id"], first["body"]) == (1, "x")
    assert dict(first["_headers"]) == {
        "trace": b"7", "headrace.reason": b"cannot parse", "headrace.queue": b"jobs/workers", "headrace.topic": b"jobs",
        "headrace.partition": b"0", "headrace.offset": b"0", "headrace.deliveries": b"3",
    }  # fmt: skip
    assert (second["id"], dict(second["_headers"])["headrace.reason"]) == (2, b"visibility time-out")
    assert queue.depth().dead == 2


def test_dead_letters_go_where_they_are_told_and_keep_key_and_time(log, jobs, open_queue, clock):
    log.create_topic("graveyard", partitions=2)
    send(log, b"1", key=b"k", time=to_datetime(clock.now() - 1_000_000))
    queue = open_queue(max_deliveries=1, dead_letter="graveyard")
    receive(queue)[0].nack()
    [row] = log.read("graveyard", columns=["value", "_key", "_time"]).to_pylist()
    assert (row["value"], row["_key"], row["_time"].timestamp() * 1_000_000) == (b"1", b"k", clock.now() - 1_000_000)


def test_a_message_of_the_largest_size_still_fits_the_dead_letters(log, jobs, open_queue):
    send(log, bytes(1_048_576))
    queue = open_queue(max_deliveries=1)
    receive(queue)[0].nack()
    assert log.read("jobs.dead").num_rows == 1


def test_more_dead_letters_than_one_batch_all_arrive_once(log, jobs, open_queue, clock):
    send(log, *[b"%d" % number for number in range(350)])
    queue = open_queue(max_deliveries=1)
    assert len(receive(queue, 400)) == 350
    clock.advance(timedelta(hours=1))
    while queue.depth().dead < 350:
        assert receive(queue) == []
    assert sorted(map(int, log.read("jobs.dead")["value"].to_pylist())) == list(range(350))


def test_dead_letters_can_be_a_queue_themselves(log, jobs, open_queue):
    send(log, b"1")
    receive(open_queue(max_deliveries=1))[0].nack()
    [message] = receive(open_queue("jobs.dead"))
    assert (message.value, message.headers["headrace.topic"]) == (b"1", b"jobs")


# Depth


def test_depth_says_how_many_messages_are_where(log, jobs, open_queue, clock):
    send(log, *[b"%d" % number for number in range(10)])
    queue = open_queue(max_deliveries=2)
    messages = receive(queue, 6)
    messages[0].ack()
    messages[1].nack()
    messages[2].nack(delay="1h")
    depth = open_queue().depth()
    assert (depth.ready, depth.in_flight, depth.delayed, depth.dead, depth.expired) == (5, 3, 1, 0, 0)
    clock.advance(timedelta(hours=2))
    assert open_queue().depth().ready == 9


def test_messages_whose_records_retention_removed_are_counted_not_delivered(log, open_queue, clock):
    log.create_topic("jobs", config={"retention.ms": 60_000})
    queue = open_queue()
    send(log, *[b"%d" % number for number in range(5)])
    receive(queue, 2)
    clock.advance(timedelta(minutes=2))
    log.maintain("jobs")
    send(log, b"new")
    assert values(receive(queue)) == [b"new"]
    assert (queue.depth().expired, queue.depth().in_flight) == (5, 1)


# Cost, state and failure


def test_receiving_costs_the_same_whatever_the_history(tmp_path, clock):
    disk = CountingDisk()
    log = Log(tmp_path / "log", clock=clock, disk=disk)
    log.create_topic("jobs")
    queue = log.queue("jobs", name="workers")
    costs = []
    for _ in range(3):
        send(log, *[b"x"] * 10)
        disk.taken()
        messages = receive(queue)
        costs.append(disk.taken())
        for _ in range(30):
            send(log, *[b"x"] * 10)
            queue.ack(*(message.receipt for message in messages))
            messages = receive(queue)
    assert costs[2]["bytes read"] <= costs[0]["bytes read"] + 1_000
    assert costs[2]["bytes written"] <= costs[0]["bytes written"] * 1.2
    assert costs[2]["open"] <= costs[0]["open"]


def test_the_state_of_a_queue_is_compacted_to_what_is_in_flight(log, jobs, open_queue, clock):
    queue = open_queue()
    for _ in range(20):
        send(log, *[b"x"] * 20)
        queue.ack(*(message.receipt for message in receive(queue, 20)))
    send(log, b"held", b"next")
    receive(queue, 1)
    [name] = [topic.name for topic in log.topics(internal=True) if topic.name.startswith("__queue.")]
    for _ in range(2):
        log.partition(log.topic(name), 0).roll()
        log.maintain(name, force=True)
        clock.advance(timedelta(days=2))
    assert log.read(name).num_rows < 5
    [message, following] = receive(open_queue())
    assert (message.value, message.deliveries, following.value) == (b"held", 2, b"next")


def test_a_process_that_slept_while_its_view_was_compacted_delivers_nothing_twice(log, jobs, open_queue, clock):
    send(log, b"1", b"2")
    sleeper, other = open_queue(), open_queue()
    receive(sleeper, 1)
    clock.advance(timedelta(minutes=1))
    for message in receive(other):
        message.ack()
    [name] = [topic.name for topic in log.topics(internal=True) if topic.name.startswith("__queue.")]
    for _ in range(2):
        log.partition(log.topic(name), 0).roll()
        log.maintain(name, force=True)
        clock.advance(timedelta(days=2))
    assert receive(sleeper) == []
    assert sleeper.depth().ready == 0


def test_threads_share_a_queue(log, jobs):
    send(log, *[b"%d" % number for number in range(300)])
    queue = log.queue("jobs", name="workers")
    done = Counter()

    def work():
        while messages := queue.receive(max=7, wait="0s"):
            for message in messages:
                message.ack()
            done.update(values(messages))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == Counter({b"%d" % number: 1 for number in range(300)})


def test_a_queue_ends_with_its_topic_and_begins_anew_with_another_of_its_name(log, jobs, open_queue):
    send(log, b"1", b"2")
    queue = open_queue()
    receive(queue)
    log.delete_topic("jobs")
    with pytest.raises((TopicDeleted, UnknownTopic)):
        receive(queue)
    assert not [topic for topic in log.topics(internal=True) if topic.name.startswith("__queue.")]
    log.create_topic("jobs")
    send(log, b"3")
    assert values(receive(open_queue())) == [b"3"]


# What is refused


def test_settings_without_meaning_are_refused(log, jobs):
    for settings, words in [
        ({"max_deliveries": 0}, "delivers nothing"),
        ({"visibility_timeout": "0s"}, "not positive"),
        ({"visibility_timeout": "soon"}, "not a duration"),
        ({"dead_letter": "jobs"}, "cannot store the dead letters"),
    ]:
        with pytest.raises((SettingsError, SchemaError), match=words):
            log.queue("jobs", name="workers", **settings)
    with pytest.raises(LogError, match="not a topic name"):
        log.queue("jobs", name="../x")
    with pytest.raises(UnknownTopic):
        log.queue("nowhere", name="workers")


def test_a_dead_letter_topic_with_other_columns_is_refused(log, jobs):
    log.create_topic("other", schema="id int")
    with pytest.raises(SchemaError, match="'other' cannot store the dead letters of 'jobs'"):
        log.queue("jobs", name="workers", dead_letter="other")


def test_a_text_that_is_no_receipt_is_refused(log, jobs):
    queue = log.queue("jobs", name="workers")
    with pytest.raises(SettingsError, match="'nonsense' is not a receipt"):
        queue.ack("nonsense")
    with pytest.raises(SettingsError, match="receives nothing"):
        queue.receive(max=0)
