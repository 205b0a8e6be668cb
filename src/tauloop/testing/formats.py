"""Check of machine file formats."""

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

#: Largest relative difference of forces after writing and reading a file, whose numbers may be
#: rounded.
FILE_TOLERANCE = 1e-8
#: Fractions of a file that remain in the truncated test files.
TRUNCATED_FRACTIONS = (0.0, 0.3, 0.7)


def check_format(format_: Format, *, example: Path | None = None) -> None:
    """Check a format: round trips preserve forces, and damaged files are rejected.

    Random machines are written, read again (if the format supports both), and their forces are
    compared. Machines that the format rejects are skipped. Truncated files and files of zeros must
    be rejected with a Tauloop error.

    Args:
        format_: the format, as named by the entry point.
        example: an example file, for formats that cannot write.

    Raises:
        ConformanceError: lists all violations.
    """
    problems = Problems()
    if not format_.name.isidentifier():
        what = f"{format_.name!r} is not an identifier"
        problems.add("name", what, "use a single word, for `tauloop convert --format`")
    for extension in format_.endings:
        if not extension.startswith(".") or extension != extension.lower():
            problems.add("endings", f"contain {extension!r}", "use lower case and a leading dot")
    if not format_.reads and not format_.writes:
        problems.add("read", "and `write` are both missing", "define at least one of them")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"machine{format_.endings[0] if format_.endings else ''}"
        if not format_.claims(path):
            problems.add(
                "claims",
                f"does not accept {path.name}",
                "accept files with the extensions of the format",
            )
        count = 0
        for make in (serial_chain, six_legs, planar_loop) if format_.writes else ():
            mechanism = make(np.random.default_rng(0))
            try:
                written = format_.write(mechanism, path)
            except TauloopError:
                continue  # the format cannot represent this machine
            count += 1
            if written.files[:1] != (path,) or not all(file.is_file() for file in written.files):
                problems.add(
                    "write",
                    f"returns the files {written.files}",
                    "return the written files, the machine file first",
                )
            elif format_.reads:
                try:
                    _compare_forces(
                        problems, make.__name__, mechanism, format_.read(path, None, None)
                    )
                except Exception as error:
                    what = f"reading the written file raises {type(error).__name__}: {error}"
                    problems.add(make.__name__, what, "read the files that the format writes")
        if format_.writes and not count:
            problems.add(
                "write",
                "rejects all three random machines",
                "support common joints, bodies and motors",
            )
        complete = example if example is not None else path
        if format_.reads and complete.is_file():
            _check_damaged_files(problems, format_, complete.read_bytes(), path)
    ConformanceError.raise_if_any(problems)


def _compare_forces(problems: Problems, where: str, before: Mechanism, after: Mechanism) -> None:
    """Add a problem if the forces of two machines differ at random states of the first."""
    model = Model(before)
    model_after = Model(after)
    states = random_states(model, 8, np.random.default_rng(0))
    motion = states.position, states.velocity, states.acceleration
    expected = model.platform.inverse_dynamics(*motion, start=states.q).force
    columns = model.platform.ports.position.columns
    columns_after = model_after.platform.ports.position.columns
    if columns != columns_after:
        what = f"has the coordinates {columns_after} after reading"
        problems.add(where, what, f"preserve the coordinates {columns}")
        return
    actual = model_after.platform.inverse_dynamics(*motion).force
    remedy = "write masses, dimensions and friction without changes"
    compare(problems, where, actual, expected, tolerance=FILE_TOLERANCE, remedy=remedy)


def _check_damaged_files(problems: Problems, format_: Format, complete: bytes, path: Path) -> None:
    """Add a problem for each damaged file that is read, or that does not raise a Tauloop error."""
    damaged = {"a file of zeros": bytes(len(complete))}
    for fraction in TRUNCATED_FRACTIONS:
        damaged[f"{fraction:.0%} of a file"] = complete[: int(fraction * len(complete))]
    for content, data in damaged.items():
        path.write_bytes(data)
        try:
            format_.read(path, None, None)
        except TauloopError:
            continue
        except Exception as error:
            problems.add(
                "read",
                f"{content} raises {type(error).__name__}",
                "raise a DescriptionError with the position",
            )
        else:
            problems.add("read", f"{content} is read as a machine", "raise a DescriptionError")
