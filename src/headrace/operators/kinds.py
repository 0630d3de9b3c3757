"""Every kind of operator: importing this module registers all of them with `operator_of`."""

from __future__ import annotations

import headrace.operators.joins.as_of
import headrace.operators.joins.interval
import headrace.operators.joins.lookup
import headrace.operators.joins.remote_lookup
import headrace.operators.joins.tables
import headrace.operators.model_table
import headrace.operators.patterns.operator
import headrace.operators.process.operator
import headrace.operators.tables.dedup
import headrace.operators.tables.groups
import headrace.operators.tables.latest_of_changes
import headrace.operators.tables.meeting
import headrace.operators.tables.previous
import headrace.operators.tables.top
import headrace.operators.tables.top_of_facts
import headrace.operators.windows.count_windows
import headrace.operators.windows.intervals
import headrace.operators.windows.paned
import headrace.operators.windows.processing_time
import headrace.operators.windows.sessions
import headrace.operators.windows.sliding  # noqa: F401
