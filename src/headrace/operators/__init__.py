"""Stateful and stateless logic on columns, computed with polars, without Spark and without I/O."""
