"""`python -m ffwd.cli COMMAND` is `ffwd COMMAND`."""

from ffwd.cli import main

main()
