"""How each function that is evaluated without Spark is typed; importing this package fills the table of rules."""

from headrace.plan.expressions.rules import casting, collections, conditionals, dates, numbers, operators, text

__all__ = ["casting", "collections", "conditionals", "dates", "numbers", "operators", "text"]
