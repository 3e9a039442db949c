"""``python -m services.cli`` is the `braid` command."""

from services.cli.app import main

main()
