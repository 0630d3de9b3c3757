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


def test_of_errors_that_caused_each_other_the_last_one_is_told() -> None:
    said = (
        "Job aborted: org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] Traceback (most recent call last):\n"
        '  File "log/files/cursor.py", line 66, in read\n'
        "headrace.log.errors.OffsetOutOfRange: partition 0 of topic 'orders' has no offset 13: it has 15 to 15\n"
        "  why: older records were removed by retention\n"
        '  hint: seek to "beginning" or "end"\n\n'
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "connectors/log/input.py", line 74, in read\n'
        "headrace.engine.planning.input_loss.InputLost: 2 records from offset 13 to 14 of partition 0 of topic 'orders' are gone\n"
        "  why: retention removed them before an epoch with them was done\n"
        "  hint: keep records for longer\n"
        " SQLSTATE: 38000\n\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1642)\n"
    )
    error = failure("shop", StreamingQueryException(message=said), None)
    assert error.fact == "job 'shop' stopped: 2 records from offset 13 to 14 of partition 0 of topic 'orders' are gone"
    assert error.why == "retention removed them before an epoch with them was done"
    assert error.hint == "keep records for longer"
