"""The only folder that compiles to Spark: sessions, and the execution of a plan there."""
