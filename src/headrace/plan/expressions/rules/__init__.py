"""Typing rules of the functions that are evaluated without Spark; importing this package fills the table of rules."""

from headrace.plan.expressions.rules import casting, collections, conditionals, dates, numbers, operators, places, text

__all__ = ["casting", "collections", "conditionals", "dates", "numbers", "operators", "places", "text"]
