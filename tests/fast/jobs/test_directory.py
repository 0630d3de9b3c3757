"""The directory of a job."""

import json
import subprocess
import sys

import pytest

from headrace.core.errors import JobError
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import JobDirectory

PLAN = "views: stream (url string)\nviews.group: group by url: count(*) as n of views"


@pytest.fixture
def directory(tmp_path):
    return JobDirectory(tmp_path, "pageviews")


def begun(directory, cores=1, **options):
    record = directory.begin(PLAN, cores, **options)
    directory.fix(record)
    return record


def test_a_run_that_is_refused_before_its_record_is_written_fixes_nothing(directory):
    with directory.held():
        directory.begin(PLAN, cores=1)
        changed = directory.begin(PLAN.replace("count(*) as n", "sum(n) as n"), cores=2)
        directory.fix(changed)
    assert directory.record() == changed


def test_a_job_keeps_what_its_first_run_fixed(directory):
    with directory.held():
        first = begun(directory, cores=2)
        again = JobDirectory(directory.path.parent.parent, "pageviews").begin(PLAN, cores=16)
    assert (first.shards, first.tasks) == (2, 2)
    assert again == first == directory.record()


def test_two_jobs_of_one_name_have_different_identities(tmp_path):
    jobs = [JobDirectory(tmp_path / home, "pageviews") for home in ("a", "b")]
    identities = set()
    for job in jobs:
        with job.held():
            identities.add(begun(job).id)
    assert len(identities) == 2


def test_state_in_the_form_of_another_version_is_refused(directory):
    with directory.held():
        begun(directory)
        file = directory.path / "job.json"
        file.write_text(json.dumps({name: value for name, value in json.loads(file.read_text()).items() if name != "state"}))
        with pytest.raises(JobError) as refused:
            directory.begin(PLAN, cores=1)
    assert "has form 1" in refused.value.fact
    assert "start from the beginning" in refused.value.hint


def test_a_second_driver_is_refused_and_told_who_runs_the_job(directory):
    waiting = f"""
import sys, pathlib
from headrace.engine.planning.epoch_plan import EpochPlan
from headrace.jobs.directory import JobDirectory
with JobDirectory(pathlib.Path({str(directory.path.parent.parent)!r}), "pageviews").held():
    print("held", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", waiting], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(JobError, match=f"running already in process {other.pid}"), directory.held():
            pass
        other.kill()
        other.wait()
    with directory.held():
        pass


def test_steps_are_told_in_the_order_of_the_plan(directory):
    with directory.held():
        record = begun(directory)
    assert sorted(["late.comer", "views.group", "views"], key=record.place_of) == ["views", "views.group", "late.comer"]


def test_runs_are_numbered_over_restarts(directory):
    with directory.held():
        assert [directory.next_run(), JobDirectory(directory.path.parent.parent, "pageviews").next_run(), directory.next_run()] == [1, 2, 3]


def test_an_epoch_is_committed_when_spark_has_noted_so(directory):
    assert directory.committed_epoch() == 0
    for folder, names in {"offsets": ("9", "10", "11"), "commits": ("9", "10", ".10.crc")}.items():
        (directory.checkpoint / folder).mkdir(parents=True)
        for name in names:
            plan = EpochPlan(int(name.strip(".cr")) + 1, {}, {}, {})
            (directory.checkpoint / folder / name).write_text(f"v1\n{{}}\n{json.dumps(plan.to_json())}\n")
    assert directory.committed_epoch() == 11


@pytest.mark.parametrize("cluster", [False, True])
def test_a_job_stays_on_the_kind_of_master_that_it_began_on(directory, cluster):
    with directory.held():
        assert begun(directory, cluster=cluster) == directory.begin(PLAN, cores=1, cluster=cluster)
        with pytest.raises(JobError, match=r"began on .* and cannot continue on") as refused:
            directory.begin(PLAN, cores=1, cluster=not cluster)
    assert ("on a cluster" if cluster else "on one machine") in refused.value.fact.partition(" and ")[0]
