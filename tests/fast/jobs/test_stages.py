"""The stages of a start: everything that may refuse comes before anything that changes the job."""

from headrace.jobs.start.query_stages import BEFORE_THE_RECORD, WITH_THE_RECORD
from headrace.jobs.start.stages import STAGES


def names(stages):
    return [stage.__name__ for stage in stages]


def test_a_start_refuses_before_it_changes_the_job():
    order = names(STAGES)
    assert order.index("evolve_state") > max(order.index("accept_app"), order.index("reach_systems"))


def test_the_query_starts_last_and_after_the_finished_epochs_are_published():
    order = names(WITH_THE_RECORD)
    assert order[-1] == "start_query"
    assert order.index("number_run") < order.index("hold_topics") < order.index("publish_finished")


def test_damage_is_refused_before_the_record_is_written():
    assert "refuse_damage" in names(BEFORE_THE_RECORD)


def test_every_stage_has_a_name_of_its_own():
    order = names([*STAGES, *BEFORE_THE_RECORD, *WITH_THE_RECORD])
    assert len(order) == len(set(order))
