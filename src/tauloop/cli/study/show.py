"""``tauloop study show``: the results of a study from its computed samples."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import RESULT
from tauloop.cli.study.run import FileArgument, FolderOption


@command(json_file=RESULT)
def show(file: FileArgument, folder: FolderOption = None) -> None:
    """Show the results of a study from its computed samples, without computing missing ones.

    Exit code 1 when samples are missing.
    """
    parts: Path = folder or file.with_suffix(".study")
    finish(tl.study.read_results(file, parts))
