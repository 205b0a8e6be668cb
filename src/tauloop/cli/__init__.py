"""Command line: ``tauloop --help`` lists its commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.cli.output import (
        FAILED,
        JsonOption,
        console,
        folder,
        print_json,
        reports_errors,
        table,
        writes,
    )
else:  # for commands that other packages bring: see "Commands of other packages" in CONTRIBUTING.md
    __getattr__, __dir__ = lazy_names(
        __name__,
        dict.fromkeys(
            ("FAILED", "JsonOption", "console", "folder", "print_json", "reports_errors", "table", "writes"), "output"
        ),
    )

#: Exit code of a program that Ctrl-C ended (128 and the signal's number).
INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C while it is still being imported ends it without a traceback."""
    try:
        from tauloop.cli.app import main as run

        run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


__all__ = [
    "FAILED",
    "JsonOption",
    "console",
    "folder",
    "main",
    "print_json",
    "reports_errors",
    "table",
    "writes",
]
