"""Command line: ``tauloop --help`` lists its commands."""

from __future__ import annotations

#: Exit code of a program that Ctrl-C ended (128 and the signal's number).
INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C while it is still being imported ends it without a traceback."""
    try:
        from tauloop.cli.app import main as run

        run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


__all__ = ["main"]
__dir__ = __all__.copy
