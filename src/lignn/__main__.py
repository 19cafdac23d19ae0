"""`python -m lignn`."""

from lignn.cli import main

main()
