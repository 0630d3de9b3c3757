"""Real servers for development, tests and benchmarks, started on loopback from jars or installed programs."""
