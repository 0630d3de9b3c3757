"""Real servers for tests and benchmarks, started on loopback from jars or installed programs."""
