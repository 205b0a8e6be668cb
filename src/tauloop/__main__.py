"""``python -m tauloop``: the command line."""

from tauloop.cli import main

if __name__ == "__main__":
    main()
