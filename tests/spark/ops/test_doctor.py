"""The doctor starts a real Spark session, or says why there is none."""

from headrace.core.settings import Settings
from headrace.ops.doctor import check_spark


def test_a_session_starts_and_rows_pass_through_a_python_worker():
    check = check_spark(Settings(master="local[1]"))
    assert check.status == "ok", check
    assert "session in" in check.found


def test_a_master_that_does_not_exist_is_red_with_sparks_own_reason():
    check = check_spark(Settings(master="locl[1]"))
    assert check.status == "red"
    assert "Master must either be" in check.found
    assert "HEADRACE_MASTER" in check.remedy
