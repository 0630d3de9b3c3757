"""What a plan may not ask for, one function a pitfall: each would give results that depend on when records came, or none."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.plan import changing, columns, event_time, panes
from headrace.plan.nodes import Node


def check(nodes: Iterable[Node]) -> None:
    """Refuse the first step that cannot be run as it is meant."""
    for node in nodes:
        columns.refuse_names_of_the_engine(node)
        columns.refuse_names_that_mean_several(node)
        columns.refuse_columns_of_no_type(node)
        columns.refuse_keys_that_are_not_plain(node)
        event_time.refuse_a_ttl_of_no_time(node)
        changing.refuse_a_session_over_changes(node)
        panes.refuse_sessions_that_restate(node)
        panes.refuse_panes_of_windows_that_have_one(node)
        changing.refuse_places_among_changes(node)
        changing.refuse_parts_of_changes(node)
        changing.refuse_what_cannot_be_said_again(node)
        changing.refuse_counting_what_is_restated(node)
        changing.refuse_a_window_over_a_table(node)
        changing.refuse_a_window_over_all_time(node)
        changing.refuse_duplicates_of_changes(node)
        changing.refuse_the_record_before_a_change(node)
        changing.refuse_a_top_without_an_end(node)
        event_time.refuse_an_order_without_time(node)
        event_time.refuse_a_ttl_without_time(node)
        panes.refuse_lateness_of_the_wall_clock(node)
