"""An example of each command at the end of its help; `examples.txt` has one per line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tauloop.cli.command_lines import command_words

_LINES = (Path(__file__).parent / "examples.txt").read_text(encoding="utf-8").splitlines()
#: Words after ``tauloop``, by command.
EXAMPLES: Mapping[str, str] = {command_words(line.split()): line for line in _LINES}
