"""The life of a job: where it is kept, how it runs, stops and goes on, and what it reports."""
