"""An example of each command, which its help ends with; they stand in `examples.txt`, a line each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_LINES = (Path(__file__).parent / "examples.txt").read_text(encoding="utf-8").splitlines()
#: Words behind ``tauloop``, by command.
EXAMPLES: Mapping[str, str] = {line.partition(" ")[0]: line for line in _LINES}
