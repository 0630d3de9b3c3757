"""Stateful and stateless logic on Arrow columns, without Spark and without I/O."""
