"""Detection of wrong position units: the loops close only if another unit is assumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from tauloop.common.errors import LogError, PoseError, Problem, TauloopError
from tauloop.logs import samples
from tauloop.logs.log import Log
from tauloop.model import Model

#: For each declared unit, the units in which the positions may actually be measured, each with its
#: value in the declared unit.
POSSIBLE_UNITS: Mapping[str, Mapping[str, float]] = {
    "rad": {"deg": np.pi / 180.0, "rev": 2.0 * np.pi, "mrad": 1e-3},
    "m": {"mm": 1e-3, "um": 1e-6},
}
#: Number of samples of a log at which the loops must close in the other unit.
CHECKED_SAMPLES = 50


@contextmanager
def with_unit_problems(model: Model, logs: Sequence[Log]) -> Iterator[None]:
    """Prepend problems of wrong units (`wrong_units`) to a `PoseError` of the block.

    Positions in a wrong unit are usually out of reach.

    Args:
        model: the machine.
        logs: the logs as measured.
    """
    names = model.actuators.ports.position.columns
    positions: list[np.ndarray] = []
    for log in logs:
        try:
            position = samples(log, "position", names)
        except LogError:
            continue
        rows = np.linspace(0, len(position) - 1, min(CHECKED_SAMPLES, len(position)))
        positions.append(position[rows.astype(int)])
    try:
        yield
    except PoseError as error:
        problems = dict.fromkeys(
            problem for position in positions for problem in wrong_units(model, position)
        )
        raise PoseError([*problems, *error.problems]) from error


def wrong_units(model: Model, position: np.ndarray) -> tuple[Problem, ...]:
    """Return a problem if the loops close only when positions have another unit than declared.

    Args:
        model: the machine.
        position: (N, n) positions of its actuators, SI.
    """
    if _closes(model, position):
        return ()
    port = model.actuators.ports.position
    for unit, possible_units in POSSIBLE_UNITS.items():
        with_this_unit = [k for k, name in enumerate(port.units) if name == unit]
        groups = [[k] for k in with_this_unit]
        if len(with_this_unit) > 1:
            groups.insert(0, with_this_unit)
        for group in groups:
            for actual, factor in possible_units.items():
                converted = position.copy()
                converted[:, group] *= factor
                if _closes(model, converted):
                    names = [port.columns[k] for k in group]
                    return (_problem(names, unit, actual, position[:, group]),)
    return ()


def _closes(model: Model, position: np.ndarray) -> bool:
    """Return whether the loops close at all positions (N, n)."""
    try:
        model.actuators.track(position[:1])
        model.actuators.follow(position)
    except TauloopError:
        return False
    return True


def _problem(names: Sequence[str], unit: str, actual: str, position: np.ndarray) -> Problem:
    """Return the problem of positions in another unit."""
    where = " and ".join(f"position.{name}" for name in names)
    verb = "seem" if len(names) > 1 else "seems"
    what = (
        f"{verb} to be in {actual}, but the log states {unit}: with positions of "
        f"{position.min():.4g} to {position.max():.4g} {unit} the loops do not close, but they close "
        f"if these numbers are in {actual}"
    )
    column = f"position.{names[0]} [{actual}]"
    return Problem(where, what, f"correct the unit of the columns: '{column}'")
