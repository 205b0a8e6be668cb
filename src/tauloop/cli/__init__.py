"""Command line: ``tauloop --help`` lists its commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.cli.output import (
        FAILED as FAILED,
        JsonOption as JsonOption,
        console as console,
        folder as folder,
        print_json as print_json,
        reports_errors as reports_errors,
        table as table,
        writes as writes,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, "main")

#: Exit code of a program that Ctrl-C ended (128 and the signal's number).
INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C while it is still being imported ends it without a traceback."""
    try:
        from tauloop.cli.app import main as run

        run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
