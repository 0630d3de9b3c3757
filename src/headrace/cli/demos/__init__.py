"""The parts of `headrace demo`, one in each file."""
