"""Backtests: the rules of an app over history, judged by labels and by the version that runs."""
