"""`python -m headrace`, the same as the `headrace` command."""

from headrace.cli.main import main

main()
