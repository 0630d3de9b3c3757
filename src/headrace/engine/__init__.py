"""One epoch of a plan, for any host: Spark, the test driver or the Lab. No Spark and no I/O."""
