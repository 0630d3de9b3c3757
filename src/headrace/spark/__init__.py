"""The only folder that compiles to Spark: sessions, and what becomes of a plan there."""
