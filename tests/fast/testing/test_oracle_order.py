"""Whatever the order, the batches, the partitions, the shards and the crashes: the final tables are those of DuckDB."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.oracles import app, run, tables, wanted
from tests.support.streams import arrivals, records


@settings(max_examples=examples(6), report_multiple_bugs=False)
@given(st.data())
def test_corrections_end_where_a_batch_over_everything_would(data: st.DataObject) -> None:
    rows = data.draw(records())
    # Any order at all: records come up to hours late, and every window may still be corrected.
    arrival = data.draw(arrivals(rows, disorder=100_000))
    driver = run(app("1s", until="30 days"), arrival)
    assert tables(driver) == wanted(rows)
    assert driver.late("records") == []


@settings(max_examples=examples(4), report_multiple_bugs=False)
@given(st.data())
def test_every_arrival_within_the_bound_gives_the_same_results_in_time(data: st.DataObject) -> None:
    rows = data.draw(records())
    one, other = (data.draw(arrivals(rows, disorder=15)) for _ in range(2))
    found = [run(app("15s", until="0s"), arrival) for arrival in (one, other)]
    assert tables(found[0]) == tables(found[1]) == wanted(rows)
    for driver in found:
        assert driver.late("records") == []
        assert {(row["pane"], row["revision"]) for name in ("tumbling", "hopping", "session") for row in driver.rows(name)} <= {
            ("on-time", 0)
        }
        assert all(count["in"] == count["out"] for count in driver.accounting() if "where" not in str(count["step"]))
