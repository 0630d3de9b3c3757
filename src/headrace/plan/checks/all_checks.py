"""Refusals of a plan, one function for each pitfall: each would give results that depend on when records arrived, or none."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.plan.checks import columns, event_time, over_changes, panes
from headrace.plan.nodes import Node


def check(nodes: Iterable[Node]) -> None:
    """Refuse the first step that cannot be run as it is meant."""
    nodes = tuple(nodes)
    # A column that a union gives a type is as good as any other.
    typed_later = {before.name for node in nodes if node.gives_types for before in node.inputs}
    for node in nodes:
        columns.refuse_names_of_the_engine(node)
        columns.refuse_names_that_mean_several(node)
        if node.name not in typed_later:
            columns.refuse_columns_of_no_type(node)
        columns.refuse_keys_that_are_not_plain(node)
        event_time.refuse_a_ttl_of_no_time(node)
        event_time.refuse_a_time_that_was_replaced(node)
        over_changes.refuse_a_transform_of_results(node)
        over_changes.refuse_changes_where_a_step_needs_facts(node)
        panes.refuse_sessions_that_restate(node)
        panes.refuse_panes_of_windows_that_have_one(node)
        over_changes.refuse_parts_of_changes(node)
        over_changes.refuse_what_cannot_be_said_again(node)
        over_changes.refuse_counting_what_is_restated(node)
        over_changes.refuse_a_window_over_a_table(node)
        over_changes.refuse_what_waits_over_all_time(node)
        over_changes.refuse_a_ttl_below_retractions(node)
        over_changes.refuse_a_top_without_an_end(node)
        over_changes.refuse_the_latest_of_rows_not_told_apart(node)
        event_time.refuse_an_order_without_time(node)
        event_time.refuse_a_ttl_without_time(node)
        panes.refuse_lateness_of_the_wall_clock(node)
