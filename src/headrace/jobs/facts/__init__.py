"""Facts about a job: progress, report, books, listing."""
