#!/bin/sh
# The interpreter of every Python process that Spark starts on this machine (spark/workers/quick_start.py names it to Spark).
exec "$HEADRACE_WORKER_PYTHON" -IS "${0%/*}/interpreter.py" "$@"
