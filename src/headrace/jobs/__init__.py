"""The life of a job: its directory, its runs, stops and restarts, and its reports."""
