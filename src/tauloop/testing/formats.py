"""Checks of what is added to the formats of machine files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from tauloop.common.errors import Problems, TauloopError
from tauloop.formats import Format
from tauloop.kinematics import random_states
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model
from tauloop.testing.conformance import ConformanceError, compare
from tauloop.testing.machines import planar_loop, serial_chain, six_legs

#: Forces before and after a file: its numbers may be rounded.
WRITTEN = 1e-8
#: Shares of a file that are left of it when it is cut off.
CUT = (0.0, 0.3, 0.7)


def check_format(format_: Format, *, example: Path | None = None) -> None:
    """Check a format: machines come back from its files with the forces they had, damaged files are refused by name.

    Random machines are written, where it writes, and read again, where it reads too: the forces of
    both are compared. What the format says that it cannot hold is left out. Files cut off in the
    middle and files of zeros must be refused by an error of Tauloop's.

    Args:
        format_: as the entry point names it.
        example: a file, for a format that only reads.

    Raises:
        ConformanceError: everything that is wrong.
    """
    problems = Problems()
    if not format_.name.isidentifier():
        problems.add("name", f"is {format_.name!r}", "one word, for `tauloop convert --format`")
    for ending in format_.endings:
        if not ending.startswith(".") or ending != ending.lower():
            problems.add("endings", f"holds {ending!r}", "lower case, with the dot")
    if not format_.reads and not format_.writes:
        problems.add("read", "is missing, and write too", "define one of them")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"machine{format_.endings[0] if format_.endings else ''}"
        if not format_.claims(path):
            problems.add(
                "claims",
                f"leaves out {path.name}",
                "a file with an ending of its own is of the format",
            )
        count = 0
        for make in (serial_chain, six_legs, planar_loop) if format_.writes else ():
            mechanism = make(np.random.default_rng(0))
            try:
                written = format_.write(mechanism, path)
            except TauloopError:
                continue  # it cannot hold this machine, and says so
            count += 1
            if written.files[:1] != (path,) or not all(file.is_file() for file in written.files):
                problems.add(
                    "write",
                    f"names {written.files}",
                    "the files that were written, that of the machine first",
                )
            elif format_.reads:
                try:
                    _compare(problems, make.__name__, mechanism, format_.read(path, None, None))
                except Exception as error:
                    what = f"its own file ends in {type(error).__name__}: {error}"
                    problems.add(make.__name__, what, "read what it writes")
        if format_.writes and not count:
            problems.add(
                "write",
                "holds none of three random machines",
                "they have plain joints, bodies and motors",
            )
        whole = example if example is not None else path
        if format_.reads and whole.is_file():
            _refuse(problems, format_, whole.read_bytes(), path)
    ConformanceError.raise_if_any(problems)


def _compare(problems: Problems, where: str, before: Mechanism, after: Mechanism) -> None:
    """Note where the forces of two machines differ at random states of the first."""
    models = Model(before), Model(after)
    states = random_states(models[0], 8, np.random.default_rng(0))
    motion = states.position, states.velocity, states.acceleration
    expected = models[0].platform.inverse_dynamics(*motion, start=states.q).force
    columns = [model.platform.ports.position.columns for model in models]
    if columns[0] != columns[1]:
        problems.add(
            where, f"has the coordinates {columns[1]} after reading", f"they were {columns[0]}"
        )
        return
    actual = models[1].platform.inverse_dynamics(*motion).force
    remedy = "write masses, dimensions and friction as they are"
    compare(problems, where, actual, expected, tolerance=WRITTEN, remedy=remedy)


def _refuse(problems: Problems, format_: Format, whole: bytes, path: Path) -> None:
    """Note damaged files that are read, or end in something else than an error of Tauloop's."""
    damaged = {f"{share:.0%} of a file": whole[: int(share * len(whole))] for share in CUT}
    for what, data in (damaged | {"a file of zeros": bytes(len(whole))}).items():
        path.write_bytes(data)
        try:
            format_.read(path, None, None)
        except TauloopError:
            continue
        except Exception as error:
            problems.add(
                "read",
                f"{what} ends in {type(error).__name__}",
                "raise a DescriptionError with the place",
            )
        else:
            problems.add(
                "read", f"{what} is read as a machine", "refuse it with a DescriptionError"
            )
