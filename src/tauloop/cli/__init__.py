"""Command line: ``tauloop --help`` lists its commands."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from tauloop.cli.terminal.startup import prepare_process
from tauloop.common.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.cli.output import (
        FAILED as FAILED,
        JsonFileOption as JsonFileOption,
        JsonOption as JsonOption,
        any_ending as any_ending,
        command as command,
        console as console,
        folder as folder,
        print_json as print_json,
        reports_errors as reports_errors,
        table as table,
        writes as writes,
    )
    from tauloop.cli.outputs import (
        FIGURE as FIGURE,
        FOLDER as FOLDER,
        RESULT as RESULT,
        TABLE as TABLE,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, "main")

#: Exit code of a program that Ctrl-C ended (128 and the signal's number).
INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C during its import ends it without a traceback."""
    prepare_process()
    # Imported objects stay until the end. A garbage collection over them, now and at the end, would
    # take a tenth of the time of a short command.
    gc.disable()
    try:
        from tauloop.cli.app import main as run

        gc.enable()
        run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    finally:
        gc.freeze()
