"""Headrace in a notebook: live tables in a cell."""
