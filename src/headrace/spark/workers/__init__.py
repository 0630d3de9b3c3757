"""Python processes of Spark: the daemon, forks that start at once, and what they keep in memory."""
