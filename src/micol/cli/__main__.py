"""`python -m micol.cli`: the command, where its script is not installed."""

from micol.cli import main

main()
