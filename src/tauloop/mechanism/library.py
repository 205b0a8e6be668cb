"""Loading of machines: from a file, from text, or one of those that come with Tauloop."""

from __future__ import annotations

import re
from pathlib import Path

from tauloop.errors import DescriptionError, Problem
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.reader import read_machine
from tauloop.mechanism.suggestions import suggestion
from tauloop.mechanism.yaml_nodes import read_text

_SHIPPED = Path(__file__).parent / "machines"


def shipped_machines() -> tuple[str, ...]:
    """Names of the machines that come with Tauloop, in alphabetical order."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob("*.yaml")))


def machine_path(name: str) -> Path:
    """File of a shipped machine.

    Raises:
        DescriptionError: there is no machine of that name.
    """
    if name not in shipped_machines():
        problem = Problem(
            where=name,
            what="no machine of this name comes with Tauloop",
            remedy=(suggestion(name, shipped_machines()) or f"there are {', '.join(shipped_machines())}")
            + f"; a file of this name is written ./{name}",
        )
        raise DescriptionError(problem)
    return _SHIPPED / f"{name}.yaml"


def load(name_or_path: str | Path) -> Mechanism:
    """A mechanism from the name of a shipped machine or from a machine file.

    Args:
        name_or_path: a plain word is a shipped name (``./word`` is a file); anything else is a path.

    Raises:
        DescriptionError: there is no such machine or file, or the file is wrong; all problems at once.
    """
    if isinstance(name_or_path, str) and re.fullmatch(r"\w+", name_or_path):
        path = machine_path(name_or_path)
        return read_machine(read_text(path), path.name)
    path = Path(name_or_path)
    return read_machine(read_text(path), str(path))


def loads(text: str, file: str = "<text>") -> Mechanism:
    """A mechanism from the text of a machine file.

    Args:
        text: the description.
        file: a name for it, for messages.

    Raises:
        DescriptionError: all problems of the text at once.
    """
    return read_machine(text, file)
