"""The randomized tests with a fresh seed in every round, until the minutes have passed or a test has failed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time

ROUND = ["-m", "pytest", "-q", "--numprocesses=auto", "--maxprocesses=4", "--dist=loadgroup", "-m", "hypothesis or randomized"]


def main(minutes: float) -> int:
    """Run rounds; tests/conftest.py prints the command that repeats a failure."""
    ends_at, rounds = time.monotonic() + 60 * minutes, 0
    while time.monotonic() < ends_at:
        seed = random.SystemRandom().randrange(1, 2**31)
        rounds += 1
        print(f"round {rounds}: HEADRACE_SEED={seed}", flush=True)
        environment = {**os.environ, "HEADRACE_SEED": str(seed), "PYTHONHASHSEED": str(seed)}
        code = subprocess.run([sys.executable, *ROUND], env=environment, check=False).returncode
        if code:
            return code
    print(f"{rounds} rounds, each with a seed of its own, found nothing")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(float(sys.argv[1])))
