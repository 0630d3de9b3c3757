"""Operating Headrace: whether the machine and the jobs on it are well, and what to do when not."""
