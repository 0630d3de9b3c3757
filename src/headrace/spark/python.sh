#!/bin/sh
# The interpreter of every Python process that Spark starts on this machine (spark/starting.py names it to Spark).
#
# Spark puts a zip of its own before the installed pyspark, and what is imported from a zip is compiled anew in each process: 0.7 s of
# each, and a job begins with six. The path that the job itself was started with leads to the installed one.
PYTHONPATH=$HEADRACE_WORKER_PATH exec "$HEADRACE_WORKER_PYTHON" "$@"
