"""Command line: ``tauloop --help`` lists its commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.cli.terminal.process import main as main
from tauloop.common.names.lazy import lazy_names

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
    __getattr__, __dir__, __all__ = lazy_names(__name__)
