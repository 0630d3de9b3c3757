"""`headrace why`: each rule is provoked by the facts on disk that it judges, and is silent without them."""

from __future__ import annotations

import json
import os
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from headrace.cli.commands import execute
from headrace.core.clock import to_datetime
from headrace.core.columns.schema import schema
from headrace.core.errors import JobError, PlanError
from headrace.jobs.directory import JobDirectory
from headrace.ops.why.facts import facts_of
from headrace.ops.why.keys import parsed_key
from headrace.ops.why.rules import findings
from headrace.plan.topics import hot_topic
from tests.support.troubled import NOON, SECOND, TroubledJob


@pytest.fixture
def shop(tmp_path):
    job = TroubledJob(tmp_path)
    yield job
    job.log.close()


@pytest.fixture
def running(shop):
    with shop.place.held():
        yield shop


def test_nothing_is_wrong_with_a_job_that_runs_and_keeps_up(running):
    running.send()
    running.commit({0: 0, 1: 5})
    running.account("orders", taken=1, out=1)
    assert [finding for finding in running.found().values() if finding.wrong] == []


def test_a_job_that_never_ran_is_told_so(tmp_path):
    (found,) = findings(facts_of(JobDirectory(tmp_path, "shop"), None, NOON))
    assert (found.rule, found.fact) == ("not running", "job 'shop' never ran")


def test_a_job_that_was_killed_is_told_apart_from_one_that_was_stopped(shop):
    assert shop.found()["not running"].fact == "job 'shop' was killed"
    shop.send(3)
    shop.recorder.end()
    stopped = shop.found()["not running"]
    assert (stopped.fact, stopped.since) == ("job 'shop' is stopped; 3 records wait", to_datetime(NOON))


def test_a_job_that_failed_is_told_with_its_last_error(shop):
    shop.recorder.end(JobError("the disk is full"))
    failed = shop.found()["not running"]
    assert (failed.fact, failed.since) == ("job 'shop' failed: the disk is full", to_datetime(NOON))


def test_a_job_that_has_finished_no_epoch_yet_is_starting(running):
    found = running.found()["starting"]
    assert (found.since, found.wrong) == (to_datetime(NOON), False)
    running.commit()
    assert "starting" not in running.found()


def test_a_stream_without_a_record_is_no_input(running):
    found = running.found()["no input"]
    assert (found.fact, found.step, found.since) == ("stream 'orders' has no record", "orders", None)


def test_a_stream_that_fell_silent_is_no_input_since_its_last_record(running):
    running.send()
    running.clock.advance(timedelta(seconds=59))
    assert "no input" not in running.found()
    running.clock.advance(timedelta(minutes=9))
    found = running.found()["no input"]
    assert (found.fact, found.since) == ("stream 'orders' has had no record for 9 minutes 59 seconds", to_datetime(NOON))


def test_a_stream_of_another_system_is_silent_since_its_records_were_last_taken_in(running):
    running.commit({0: 0, 1: 0}, seen={0: -300, 1: -120})
    running.log.delete_topic("orders")
    found = running.found()["no input"]
    assert (found.fact, found.since) == ("stream 'orders' has had no record for 2 minutes", to_datetime(NOON - 120 * SECOND))


def test_the_partition_that_holds_the_watermark_is_named_with_the_remedy(running):
    running.commit({0: 600, 1: 4}, seen={1: -60})
    held = running.found()["watermark held"]
    assert held.fact.startswith("partition 1 of orders holds the watermark: its latest record has event time 2026-01-01 12:00:04 UTC")
    assert held.since == to_datetime(NOON - 60 * SECOND)
    assert 'watermark=hr.bounded("30 seconds", idle="1 minute")' in held.remedy


def test_a_partition_that_is_idle_holds_no_watermark(tmp_path):
    shop = TroubledJob(tmp_path, idle="1 minute")
    shop.commit({0: 600, 1: 4}, seen={0: 0, 1: -60})
    assert "watermark held" not in shop.found()
    shop.commit({0: 600, 1: 4}, seen={0: 0, 1: -59})
    assert "left out after 1 minute" in shop.found()["watermark held"].remedy
    shop.log.close()


def test_a_stream_that_had_no_record_yet_holds_the_watermark(tmp_path):
    shop = TroubledJob(tmp_path, idle="1 hour", second="returns")
    shop.commit({0: 0, 1: 0})
    held = shop.found()["watermark held"]
    assert (held.fact, held.since) == ("the watermark waits for stream 'returns', which had no record yet", to_datetime(NOON))
    shop.log.close()


def test_partitions_that_are_close_together_hold_no_watermark(running):
    running.commit({0: 9, 1: 0})
    assert "watermark held" not in running.found()


def test_an_open_window_is_told_with_the_event_time_that_is_missing(running):
    running.commit({0: 290, 1: 290})
    found = running.found()["window open"]
    assert "the window 2026-01-01 12:00:00 to 2026-01-01 12:05:00" in found.fact
    assert found.fact.endswith("closes at 2026-01-01 12:05:00 UTC, in 40 seconds of event time")
    assert "records of 2026-01-01 12:05:30 UTC or later" in found.remedy
    assert not found.wrong
    assert "window open" not in running.found(view="seen")


def test_records_that_all_came_late_are_told_with_the_time_they_missed(running):
    step = running.plan.outputs[0].node.name
    running.account(step, {"late_reason": "every window of the record is closed"}, taken=8, late=8)
    late = {"product": 1, "country": "NL", "price": 1.0, "at": to_datetime(NOON), "step": step, "reason": "closed"}
    moments = {"watermark": 900, "window_start": 0, "window_end": 300}
    with running.log.producer(linger=None) as producer:
        producer.send("orders.late", {**late, **{name: to_datetime(NOON + second * SECOND) for name, second in moments.items()}})
    found = running.found()["late"]
    assert found.fact == f"every record of {step!r} came late, by 10 minutes at most; the first: every window of the record is closed"
    assert "headrace lateness orders" in found.remedy


def test_a_few_late_records_of_many_are_not_wrong(running):
    running.account("orders", taken=1000, out=995, late=5)
    assert "late" not in running.found()


def test_a_step_that_filters_everything_out_is_named(running):
    running.account("orders", taken=312, out=312)
    running.account("orders.where", taken=312, filtered=312)
    found = running.found()["filtered out"]
    assert (found.fact, found.step) == ("'orders.where' filtered out 312 of 312 records", "orders.where")
    assert "country = 'NL'" in found.why
    assert "filtered out" not in running.found(view="seen")


def test_a_step_that_lets_one_record_pass_filters_not_everything(running):
    running.account("orders.where", taken=312, filtered=311, out=1)
    assert "filtered out" not in running.found()


def test_dead_letters_are_told_with_the_first_reason(running):
    running.account("orders", {"dead_letter_reason": "price is no number"}, taken=5, out=3, dead_letter=2)
    found = running.found()["dead letters"]
    assert found.fact == "2 of 5 records of 'orders' are dead letters; the first: price is no number"
    assert "orders.dead" in found.remedy


def test_a_key_with_most_of_the_records_of_one_shard_is_told(running):
    step = running.plan.outputs[0].node.name
    for key, records in ((None, 1000), ("7", 900)):
        with running.log.producer(linger=None) as producer:
            producer.send(hot_topic("shop"), {"epoch": 1, "step": step, "key": key, "records": records, "gathers": True})
    assert running.found()["hot key"].fact == f"key 7 has 90% of the records of {step!r}"


def test_a_sink_that_takes_most_of_an_epoch_is_told_by_its_slowest_task(running):
    running.commit({0: 0, 1: 0})
    took(running, 4)
    running.wrote("sold", 0.5, 3.2)
    running.wrote("seen", 0.9)
    found = running.found()["slow sink"]
    assert (found.fact, found.step) == ("writing to 'sold' took 3.2 s of the 4.0 s of an epoch", "sold")
    assert "slow sink" not in running.found(view="seen")


def test_a_sink_that_takes_a_small_part_of_an_epoch_is_not_slow(running):
    running.commit({0: 0, 1: 0})
    took(running, 60)
    running.wrote("sold", 3.2)
    assert "slow sink" not in running.found()


def took(job, seconds):
    """Let the epoch have been planned this long before its commit."""
    committed = (job.place.checkpoint / "commits" / "0").stat().st_mtime
    os.utime(job.place.checkpoint / "offsets" / "0", (committed, committed - seconds))


def test_an_input_that_was_declared_complete_is_told(running):
    running.commit({0: 0}, ended=3)
    assert not running.found()["input complete"].wrong
    running.send(2)
    found = running.found()["input complete"]
    assert found.wrong
    assert found.fact == "the input was declared complete in epoch 3 (--until end); 2 records came since"


def test_a_key_that_a_view_lacks_is_told_with_near_ones(running):
    with running.log.producer(linger=None) as producer:
        for country in ("NL", "Belgium", "Germany"):
            producer.send("seen", {"country": country, "orders": 1}, key=country)
    assert "wrong key" not in running.found(view="seen", key="NL")
    found = running.found(view="seen", key="nl")["wrong key"]
    assert found.fact == "view 'seen' has no row with key 'nl'"
    assert "near ones: 'NL'" in found.remedy
    assert "'Germany'" in running.found(view="seen", key="Germny")["wrong key"].remedy


def test_a_key_of_another_type_is_told(running):
    found = running.found(view="sold", key="seven")["wrong key"]
    assert found.fact == "'seven' is no bigint, and that is the type of 'product', a key column of view 'sold'"


def test_a_slash_within_a_part_of_a_key_is_written_as_in_a_path():
    columns = schema("url string, day date")
    found = parsed_key("hits", ("url", "day"), columns, "%2Fa%2Fb%25/2026-01-01")
    assert [value.as_py() for value in found.values()] == ["/a/b%", date(2026, 1, 1)]
    assert parsed_key("hits", ("url",), columns, "/a%2F")["url"].as_py() == "/a%2F"
    with pytest.raises(PlanError) as refused:
        parsed_key("hits", ("url", "day"), columns, "/a/2026-01-01")
    assert refused.value.hint == "write a slash within a part as %2F"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("timestamp", "2026-01-01T12:00:00Z", to_datetime(NOON)),
        ("timestamp", "2026-01-01 12:00:00", to_datetime(NOON)),
        ("timestamp", "2026-01-01T14:00:00+02:00", to_datetime(NOON)),
        ("timestamp_ntz", "2026-01-01T12:00:00", to_datetime(NOON).replace(tzinfo=None)),
        ("decimal(10,2)", "1.5", Decimal("1.50")),
        ("boolean", "true", True),
        ("bigint", "", None),
        ("string", "", ""),
        ("binary", "ab", b"ab"),
    ],
)
def test_a_key_is_read_as_a_filter_of_a_server_reads_it(kind, text, value):
    assert parsed_key("hits", ("key",), schema(f"key {kind}"), text)["key"].as_py() == value


def test_remedies_for_several_streams_are_commands_that_can_be_given(tmp_path):
    shop = TroubledJob(tmp_path, idle="1 hour", second="returns")
    step = shop.plan.outputs[-1].node.name
    shop.account(step, taken=8, late=8)
    late = shop.found(view="other")["late"]
    assert "headrace lateness orders, headrace lateness returns" in late.remedy
    assert late.remedy.endswith("late records are kept in orders.late, returns.late")
    shop.account(step, taken=4, filtered=12)
    assert shop.found(view="other")["filtered out"].remedy.endswith("headrace tail orders, headrace tail returns")
    shop.log.close()


def test_a_view_that_a_job_does_not_have_is_refused_with_those_it_has(running):
    with pytest.raises(PlanError) as refused:
        running.found(view="slod")
    assert refused.value.hint == "it has: sold, seen"


def test_findings_are_lines_of_json_and_the_exit_code_says_whether_anything_is_wrong(shop, capsys):
    home = str(shop.home)
    assert execute(["why", "shop", "--home", home]) == 1
    rules = [json.loads(line)["rule"] for line in capsys.readouterr().out.splitlines()]
    assert rules == ["not running", "no input"]
    shop.log.close()


def test_a_job_whose_file_is_named_is_found(tmp_path: Path, capsys, monkeypatch):
    file = tmp_path / "app.py"
    file.write_text('import headrace as hr\napp = hr.App("shop")\n')
    monkeypatch.chdir(tmp_path)
    assert execute(["why", str(file)]) == 1
    assert json.loads(capsys.readouterr().out)["fact"] == "job 'shop' never ran"
