"""A followed view moves to a whole epoch in one call, whatever is committed and compacted while its topic is read."""

import time

import pytest

from headrace.core.errors import JobError
from headrace.jobs.directory import JobDirectory
from headrace.jobs.facts.description import read_description
from headrace.serve.views.catalog import Catalog
from headrace.serve.views.followed import Followed
from headrace.serve.views.table import ViewTable
from tests.support.processes import until


class Commits:
    """A job whose epochs are shorter than a look at them: each look at its last epoch is followed by another commit."""

    def __init__(self, view, most, compacted=0):
        self.view, self.most, self.compacted, self.looks = view, most, compacted, 0
        self.truth = {}

    def __call__(self):
        self.looks += 1
        seen = self.view.place.committed_epoch()
        if self.looks <= self.most:
            self.commit()
        if self.looks <= self.compacted:
            # A job holds the records of its last epochs, and so the segments that have them.
            for _ in range(3):
                self.roll()
                self.commit()
            self.roll()
            (report, *_) = self.view.log.maintain("totals", force=True)
            assert report.compacted is not None
        return seen

    def roll(self):
        for partition in range(self.view.tasks):
            self.view.log.partition(self.view.log.topic("totals"), partition).roll()

    def commit(self):
        number = self.view.number + 1
        rows = {"/a": number, f"/{number}": number}
        self.view.epoch([{"url": url, "user": "ada", "views": views} for url, views in rows.items()])
        before = self.truth.get(self.view.number - 1, {})
        self.truth[self.view.number] = {**before, **rows}


def followed(view):
    (served,) = Catalog(view.home).views()
    return Followed(view.log, served, None)


def rows(followed):
    return {row["url"]: row["views"] for row in followed.table.snapshot().lazy().collect().to_dicts()}


def test_a_view_settles_though_an_epoch_is_committed_at_every_look(totals):
    commits, view = Commits(totals, most=50), followed(totals)
    commits.commit()
    for _ in range(3):
        before = commits.looks
        assert view.advance(commits)
        assert commits.looks - before <= 3
        assert rows(view) == commits.truth[view.table.epoch]
    assert totals.number > view.table.epoch


def test_a_record_that_compaction_removed_amid_the_read_is_not_missed(totals):
    totals.log.alter_topic("totals", config={"min.compaction.lag.ms": 0})
    commits, view = Commits(totals, most=50, compacted=2), followed(totals)
    commits.commit()
    assert view.advance(commits)
    assert rows(view) == commits.truth[view.table.epoch]


def test_a_record_that_compaction_rewrote_replaces_the_one_that_was_read_before_it(totals):
    totals.log.alter_topic("totals", config={"min.compaction.lag.ms": 0})
    commits, view, looks = Commits(totals, most=0), followed(totals), []
    totals.epoch([{"url": "/quiet", "user": "ada", "views": 1}])

    def committed():
        looks.append(None)
        if len(looks) == 2:  # the first epoch has been read
            totals.epoch([{"url": "/quiet", "user": "ada", "views": 2}])
            for _ in range(3):
                commits.roll()
                commits.commit()
            commits.roll()
            assert any(report.compacted.records_removed for report in totals.log.maintain("totals", force=True))
        return totals.place.committed_epoch()

    assert view.advance(committed)
    assert rows(view) == {"/quiet": 2, **commits.truth[view.table.epoch]}


def test_a_view_of_a_job_that_commits_nothing_new_stays(totals):
    totals.epoch([{"url": "/a", "user": "ada", "views": 1}])
    view, place = followed(totals), JobDirectory(totals.home, "totals-job")
    assert view.advance(place.committed_epoch)
    assert not view.advance(place.committed_epoch)
    assert (view.table.epoch, rows(view)) == (1, {"/a": 1})


ROW = {"url": "/a", "user": "ada", "views": 1}


def test_a_job_whose_description_is_damaged_does_not_stop_the_views_of_others(written, serving):
    views = [written(), written(name="other")]
    for view in views:
        view.epoch([ROW])
    with serving() as client:
        client.get("/api/v1/views/totals?epoch=1").raise_for_status()
        (views[1].place.path / "description.json").write_text('{"app": 1}')
        until(lambda: [view["name"] for view in client.get("/api/v1/views").json()] == ["totals"])
        epoch = views[0].epoch([{**ROW, "views": 2}])
        assert client.get("/api/v1/views/totals", params={"epoch": epoch, "wait": 10}).json()["rows"][0]["views"] == 2
        assert [job["app"] for job in client.get("/api/v1/jobs").json()] == ["totals-job"]
        assert [client.get(path).status_code for path in ("/metrics", "/api/v1/jobs/other-job")] == [200, 404]
    with pytest.raises(JobError, match="another version"):
        read_description(views[1].place.path)


@pytest.mark.parametrize("broken", ["save", "apply"])
def test_a_disk_that_fails_for_a_moment_does_not_leave_views_behind(totals, serving, monkeypatch, broken):
    whole, failures = getattr(ViewTable, broken), [OSError(28, "No space left on device")] * 2

    def failing(table, *arguments, **options):
        if failures:
            raise failures.pop()
        return whole(table, *arguments, **options)

    totals.epoch([ROW])
    with serving() as client:
        client.get("/api/v1/views/totals?epoch=1").raise_for_status()
        monkeypatch.setattr(ViewTable, broken, failing)
        totals.epoch([{**ROW, "url": "/b"}])
        epoch = totals.epoch([{**ROW, "url": "/c"}])
        answer = client.get("/api/v1/views/totals", params={"epoch": epoch, "wait": 20}).json()
        deadline = time.monotonic() + 20
        while failures and time.monotonic() < deadline:
            time.sleep(0.1)
    assert (failures, [row["url"] for row in answer["rows"]]) == ([], ["/a", "/b", "/c"])
