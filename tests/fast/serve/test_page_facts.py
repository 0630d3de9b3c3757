"""The facts behind the page: windows counted exactly, the holder of the watermark, phases, and a crash on purpose with its way back."""

import io
import json
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

import headrace
from headrace.core.clock import ManualClock
from headrace.core.errors import JobError
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.description import JobDescription
from headrace.jobs.facts.last_run import LastRun, Recorder
from headrace.jobs.facts.phases import Phases, phases_of
from headrace.jobs.facts.progress import Progress
from headrace.operators.event_time.watermark import Reach, StreamTime
from headrace.ops.crash import crash
from headrace.serve.event_time import event_time
from headrace.testing.written import accounted

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOLD = """
import sys
from pathlib import Path
from headrace.jobs.directory import JobDirectory

with JobDirectory(Path(sys.argv[1]), sys.argv[2]).held():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def driver(totals):
    """A process that runs the job, as far as others can tell."""
    command = [sys.executable, "-c", HOLD, str(totals.home), totals.place.name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        if process.poll() is None:
            process.kill()


def test_a_job_is_crashed_only_by_a_server_for_development(totals, serving, driver):
    totals.epoch([])
    with serving() as client:
        answer = client.post("/api/v1/jobs/totals-job/crash", json={})
        assert (answer.status_code, answer.json()["hint"]) == (403, "headrace serve --development")
        assert client.get("/api/v1/me").json() == {"role": "operate", "development": False}
    assert driver.poll() is None
    with serving(development=True) as client:
        assert client.get("/api/v1/me").json()["development"]
        assert client.post("/api/v1/jobs/other/crash", json={}).status_code == 404
        assert client.post("/api/v1/jobs/totals-job/crash", json={"what": "server"}).status_code == 400
        broken = client.post("/api/v1/jobs/totals-job/crash", content="{", headers={"Content-Type": "application/json"})
        assert broken.status_code == 400
        assert client.post("/api/v1/jobs/totals-job/crash", json={"what": "worker"}).status_code == 409
        assert client.post("/api/v1/jobs/totals-job/crash", json={}).json() == {"killed": "driver", "pid": driver.pid}
        assert driver.wait() == -signal.SIGKILL
        assert client.post("/api/v1/jobs/totals-job/crash", json={}).status_code == 409


def test_a_job_in_the_process_that_is_asked_is_not_crashed(totals):
    with totals.place.held(), pytest.raises(JobError, match="runs in the process of this server"):
        crash(totals.place)


def test_a_run_after_a_killed_one_knows_where_that_was(totals):
    clock = ManualClock(1_767_268_800_000_000)
    Recorder(totals.place, clock)
    totals.epoch([])
    Recorder(totals.place, clock)
    found = LastRun.of(totals.place)
    assert found is not None
    (interruption,) = found.interruptions
    assert (interruption["how"], interruption["epoch"]) == ("killed", 1)
    after = Recorder(totals.place, clock)
    after.end()
    Recorder(totals.place, clock)
    again = LastRun.of(totals.place)
    assert again is not None
    assert len(again.interruptions) == 2


def test_the_accounting_is_told_for_both_sides_of_a_crash(totals, serving):
    clock = ManualClock(1_767_268_800_000_000)
    Recorder(totals.place, clock)
    accounted(totals, 1, facts={"taken": 10, "out": 9, "dead_letter": 1})
    totals.epoch([])
    run = Recorder(totals.place, clock)
    accounted(totals, 2, facts={"taken": 5, "out": 5})
    totals.epoch([])
    run.record(_progress(2))
    with serving() as client:
        (told,) = client.get("/api/v1/jobs/totals-job").json()["interruptions"]
    assert told["before"] == {"in": 10, "out": 9, "late": 0, "duplicate": 0, "filtered": 0, "dead_letter": 1}
    assert (told["epoch"], told["recovered_epoch"]) == (1, 2)


def test_a_run_records_when_the_first_epoch_after_a_crash_was_committed(totals):
    clock = ManualClock(1_767_268_800_000_000)
    Recorder(totals.place, clock)
    totals.epoch([])
    Recorder(totals.place, clock)
    again = Recorder(totals.place, clock)
    again.record(_progress(1))
    assert [found.get("recovered_epoch") for found in LastRun.of(totals.place).interruptions] == [None, None]
    totals.epoch([])
    committed = (totals.place.checkpoint / "commits" / "1").stat().st_mtime
    totals.epoch([])
    again.record(_progress(3))
    found = LastRun.of(totals.place).interruptions
    assert [one["recovered_epoch"] for one in found] == [2, 2]
    assert [datetime.fromisoformat(one["recovered_at"]).timestamp() for one in found] == pytest.approx([committed] * 2, abs=1e-5)
    totals.epoch([])
    again.record(_progress(4))
    assert LastRun.of(totals.place).interruptions == found


def test_a_run_that_ends_at_once_records_its_first_epoch_after_a_crash(totals):
    clock = ManualClock(1_767_268_800_000_000)
    Recorder(totals.place, clock)
    again = Recorder(totals.place, clock)
    totals.epoch([])
    again.end()
    assert LastRun.of(totals.place).interruptions[0]["recovered_epoch"] == 1


def _progress(epoch):
    return Progress(epoch, None, 0, 0, 0.0)


def test_both_sides_of_a_crash_are_told_by_a_server_that_saw_none_of_its_epochs(totals, serving):
    clock = ManualClock(1_767_268_800_000_000)
    Recorder(totals.place, clock)
    accounted(totals, 1, facts={"taken": 10, "out": 9, "dead_letter": 1})
    totals.epoch([])
    run = Recorder(totals.place, clock)
    totals.epoch([])
    run.record(_progress(2))
    _quick_epochs(totals, 2, 402)
    with serving() as client:
        (told,) = client.get("/api/v1/jobs/totals-job").json()["interruptions"]
    assert told["before"] == {"in": 10, "out": 9, "late": 0, "duplicate": 0, "filtered": 0, "dead_letter": 1}
    assert (told["epoch"], told["recovered_epoch"]) == (1, 2)


def test_a_crash_has_ended_once_a_later_epoch_is_committed_even_unseen(totals, serving):
    clock = ManualClock(1_767_268_800_000_000)
    Recorder(totals.place, clock)
    totals.epoch([])
    Recorder(totals.place, clock)
    with serving() as client:
        (told,) = client.get("/api/v1/jobs/totals-job").json()["interruptions"]
        assert not told["recovered"]
        totals.epoch([])
        (told,) = _asked_until(client, lambda found: found["interruptions"][0]["recovered"])["interruptions"]
    assert (told["recovered_epoch"], told["recovered_at"]) == (None, None)


def _asked_until(client, seen):
    """The status of the job once it shows what is waited for; it is computed twice a second at most."""
    for _ in range(600):
        found = client.get("/api/v1/jobs/totals-job").json()
        if seen(found):
            return found
        time.sleep(0.05)
    raise AssertionError(found)


def test_what_came_long_before_the_last_epochs_is_still_told(totals, serving):
    """The journal is pruned, and hundreds of quick epochs have passed: the log knows when each was written."""
    accounted(totals, 1, facts={"taken": 10, "out": 7, "late": 3}, totals={"taken": 7, "out": 7})
    totals.epoch([{"url": "/a", "user": "ada", "views": 1}])
    _quick_epochs(totals, 2, 402)
    with serving() as client:
        told = client.get("/api/v1/jobs/totals-job").json()
    (view,) = [step for step in told["steps"] if step["kind"] == "view"]
    assert view["changed_at"] is not None
    assert told["late_minute"] == 3
    (facts,) = [step for step in told["steps"] if step["name"] == "facts"]
    assert sum(facts["history"]) * 2 == pytest.approx(411)


def _quick_epochs(view, first, last):
    """Write the accounting of many epochs, and leave what the journal has of them when they are over: the last entry."""
    accounted(view, range(first, last + 1), facts={"taken": 1, "out": 1})
    for kind in ("offsets", "commits"):
        for entry in (view.place.checkpoint / kind).iterdir():
            entry.unlink()
    view.number = last
    view.commit()


def test_windows_are_counted_exactly_however_many_dots_are_shown(totals, serving):
    totals.log.create_topic("events", schema="n bigint, at timestamp", time="at", partitions=2)
    with totals.log.producer(linger=None) as producer:
        moments = [NOON + timedelta(milliseconds=60 * number) for number in range(3_000)]
        producer.send_table("events", pl.DataFrame({"n": range(3_000), "at": moments}).to_arrow())
    totals.epoch([])
    with serving() as client:
        told = client.get("/api/v1/topics/events/arrivals", params={"window": 60_000}).json()
        since = json.dumps(told["next"])
        again = client.get("/api/v1/topics/events/arrivals", params={"window": 60_000, "since": since}).json()
    noon = int(NOON.timestamp() * 1000)
    assert told["windows"] == [[noon, 1_000], [noon + 60_000, 1_000], [noon + 120_000, 1_000]]
    assert len(told["arrivals"]) < 3_000
    assert (again["windows"], again["arrivals"]) == ([], [])


def test_a_window_has_a_tick_for_each_pane_that_was_emitted(written, serving):
    view = written("url string, window_start timestamp, views bigint, pane string", ("url", "window_start"))
    rows = [{"url": url, "window_start": NOON, "views": 1} for url in ("/a", "/b", "/c")]
    view.epoch([{**row, "pane": "early"} for row in rows[:2]])
    view.epoch([{**row, "pane": "on-time"} for row in rows])
    view.epoch([{**rows[0], "pane": "late"}])
    with serving() as client:
        told = client.get("/api/v1/topics/totals/panes").json()
        again = client.get("/api/v1/topics/totals/panes", params={"since": json.dumps(told["next"])}).json()
        other = client.get("/api/v1/topics/totals-job.accounting/panes")
    noon = int(NOON.timestamp() * 1000)
    assert [(start, pane, epoch, rows) for start, pane, epoch, _, rows in told["panes"]] == [
        (noon, "early", 1, 2), (noon, "on-time", 2, 3), (noon, "late", 3, 1),
    ]  # fmt: skip
    assert again["panes"] == []
    assert other.status_code == 404


def test_a_page_that_opens_late_is_told_where_the_watermark_was(totals, serving):
    noon = int(NOON.timestamp() * 1_000_000)
    accounted(totals, 1, facts={"taken": 1, "out": 1})
    totals.epoch([], watermark=noon)
    with serving() as client:
        # Nobody has asked for the job; the server looks by itself, and the journal drops the epoch.
        for _ in range(600):
            if any(status.watermarks() for status in client.server.api.jobs._statuses.values()):
                break
            time.sleep(0.05)
        accounted(totals, 2, facts={"taken": 1, "out": 1})
        totals.epoch([], watermark=noon + 60_000_000)
        for kind in ("offsets", "commits"):
            (totals.place.checkpoint / kind / "0").unlink()
        told = client.get("/api/v1/jobs/totals-job/watermarks").json()
    assert told[0][1] == noon // 1000


def test_the_partition_that_is_furthest_behind_holds_the_watermark():
    steps = [{"name": "views", "kind": "stream", "watermark": {"kind": "Bounded", "delay": "10 seconds", "idle": "1 minute"}}]
    description = JobDescription("job", tuple(_step(**step) for step in steps), ())
    noon = int(NOON.timestamp() * 1_000_000)
    partitions = {0: Reach(noon, noon), 1: Reach(noon - 31_000_000, noon - 20_000_000)}
    progress = {"views": StreamTime(partitions, noon - 41_000_000, noon)}
    told = event_time(EpochPlan(1, {}, {}, progress, noon - 41_000_000, clock=noon), description)
    assert (told["held_by"], told["held"]) == ("views/1", True)
    assert told["held_since"] == "2026-01-01T11:59:40+00:00"
    assert [(reach["partition"], reach["holds"], reach["idle"]) for reach in told["partitions"]] == [(0, False, False), (1, True, False)]
    assert event_time(None, description)["held_by"] is None


def _step(**given):
    from headrace.jobs.facts.description import DescribedStep

    return DescribedStep(**{"does": "", "reads": (), "columns": "", "keeps": "", "bound": "", **given})


def test_the_phases_of_epochs_are_kept_without_end(tmp_path):
    phases = Phases(tmp_path)
    for batch in range(1_000):
        took = {"latestOffset": 1, "walCommit": 2, "queryPlanning": 1, "addBatch": 40, "commitOffsets": 5}
        phases.record([{"batchId": batch, "durationMs": took}])
        phases.record([{"batchId": batch, "durationMs": took}])
    phases.record([])
    found = phases_of(tmp_path)
    assert max(found) == 1_000
    assert len(found) == 300
    assert found[1_000] == {"look": 0.001, "plan": 0.003, "compute": 0.04, "commit": 0.005}
    assert phases_of(JobDirectory(tmp_path, "never").path) == {}


def test_health_names_what_is_watched(totals, serving):
    totals.epoch([])
    with serving() as client:
        told = client.get("/api/v1/jobs/totals-job/health").json()
    watched = {rule["rule"] for rule in told["rules"]}
    assert {finding["rule"] for finding in told["findings"]} <= watched
    assert {"watermark held", "late", "dead letters", "filtered out", "input complete"} <= watched


def test_a_view_is_downloaded_as_parquet(totals, serving):
    totals.epoch([{"url": "/a", "user": "ada", "views": 1}])
    with serving() as client:
        answer = client.get("/api/v1/views/totals", params={"epoch": 1, "format": "parquet"})
    assert pl.read_parquet(io.BytesIO(answer.content)).to_dicts() == [{"url": "/a", "user": "ada", "views": 1}]


def test_a_view_of_a_server_shows_itself_in_a_notebook(totals, serving):
    totals.epoch([{"url": "/<a>", "user": "ada", "views": 1234}])
    with serving() as client:
        view = headrace.connect(client.server.url, client.server.tokens.read).view("totals")
        view.read(epoch=1)
        shown = view._repr_html_()
    assert "bigint" in shown
    assert "/&lt;a&gt;" in shown
    assert "1,234" in shown
