"""`python -m protopfaith`."""

from protopfaith.cli import main

main()
