"""Changed apps: what each step of a plan is, and what a change means for the state of a job."""
