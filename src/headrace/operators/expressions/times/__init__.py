"""Dates and timestamps: the calendar, time zones, reading and writing them."""
