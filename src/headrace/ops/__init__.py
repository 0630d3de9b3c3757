"""Operation of Headrace: the health of the machine and of the jobs on it, with remedies."""
