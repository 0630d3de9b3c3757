"""The reason that stopped a query, in our words."""

from __future__ import annotations

from pathlib import Path

from pyspark.errors import StreamingQueryException

from headrace.jobs.facts.failure import failure


def test_a_state_that_cannot_be_loaded_is_told_as_such_with_what_to_do() -> None:
    said = (
        "[STREAM_FAILED] Query [id = 8a6940a5] terminated with exception: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during "
        "loading state.  SQLSTATE: 58030 SQLSTATE: XXKST"
    )
    error = failure("clicks", StreamingQueryException(message=said), Path("jobs/clicks/spark.log"))
    assert error.fact == "job 'clicks' stopped: Spark cannot load the state as of its last epoch"
    assert error.why == "a file of it is torn or missing; the whole story is in jobs/clicks/spark.log"
    assert "headrace repair app.py" in (error.hint or "")
