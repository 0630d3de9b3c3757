"""Facts about a job: progress, report, accounting, listing."""
