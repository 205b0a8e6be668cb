"""Presliding friction: the state of Dahl's model, and the regression columns of this state.

Source: Dahl 1968, A solid friction model.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from tauloop.identification.friction.element_motion import ElementMotion

#: Last component of the name of a presliding column.
PRESLIDING = "presliding"
#: An element is at rest if its speed is below this fraction of its largest speed.
REST_SPEED_FRACTION = 1e-3


def dahl_state(
    velocity: np.ndarray, period: float, lengths: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """Return the state z (N, n) of Dahl's model, dz/dx = (1 - z sign(v)) / length, from -1 to 1.

    The displacement of the element is x, its velocity v. With the Coulomb friction F, the friction
    force is F z, which becomes F sign(v) in sliding. The motion between two samples
    is assumed to be monotonic. Then z changes to s + (z - s) exp(-|dx| / length), with s =
    sign(dx), which is the exact solution (Dahl 1968, A solid friction model, with the exponent
    one). The motion before the first sample is unknown; its effect vanishes after a few lengths.

    Args:
        velocity: (N, n), m/s or rad/s; zero at rest.
        period: sampling period, s.
        lengths: (n,), m or rad, positive: distance after a reversal over which friction reverses
            except for a fraction of 1 / e.
        start: (n,) z at the first sample; zero by default.
    """
    z = np.empty(velocity.shape)
    for k, length in enumerate(lengths):
        path = DahlPath(velocity[:, k], period)
        z[:, k] = path.state(length, 0.0 if start is None else start[k])
    return z


class DahlPath:
    """The motion of one element between its reversals, for states with several lengths.

    Between two reversals, z = s + (z_r - s) exp(-d / length), where z_r is the state at the
    reversal, and d is the distance from it. Only the states at reversals need a recursion.
    """

    def __init__(self, velocity: np.ndarray, period: float) -> None:
        """Find the reversals of a motion with velocities (N,)."""
        travel = np.zeros(len(velocity))
        travel[1:] = 0.5 * period * (velocity[1:] + velocity[:-1])
        sign = np.sign(travel)
        edges = np.concatenate([[0], np.flatnonzero(np.diff(sign)) + 1, [len(sign)]])
        # Each run of samples with the same sign starts at its reversal, the sample before the run.
        # The first run starts at the first sample.
        reversals = np.maximum(edges[:-1] - 1, 0)
        distance = np.cumsum(np.abs(travel))
        self._counts = np.diff(edges)
        # sign of the motion and distance from the last reversal, of each sample
        self._sign = sign
        self._distance = distance - np.repeat(distance[reversals], self._counts)
        # sign of the motion and whole distance, of each run
        self._run_signs = sign[edges[:-1]]
        self._run_distances = self._distance[edges[1:] - 1]

    def state(self, length: float, start: float) -> np.ndarray:
        """Return the state z (N,) of `dahl_state`.

        Args:
            length: presliding length, m or rad.
            start: z at the first sample.
        """
        at_reversals = np.empty(len(self._counts))
        z = start
        decays = np.exp(-self._run_distances / length).tolist()
        for run, (sign, decay) in enumerate(zip(self._run_signs.tolist(), decays, strict=True)):
            at_reversals[run] = z
            z = sign + (z - sign) * decay
        deviation = np.repeat(at_reversals - self._run_signs, self._counts)
        return np.asarray(self._sign + deviation * np.exp(-self._distance / length))


def initial_state_decay(velocity: np.ndarray, period: float, lengths: np.ndarray) -> np.ndarray:
    """Return the derivatives (N, n) of `dahl_state` with respect to its state at the first sample.

    The derivatives decay exponentially with the distance from the first sample.

    Args:
        velocity, period, lengths: as for `dahl_state`.
    """
    travel = np.zeros(velocity.shape)
    travel[1:] = 0.5 * period * np.abs(velocity[1:] + velocity[:-1])
    return np.asarray(np.exp(-np.cumsum(travel, axis=0) / lengths))


def presliding_state(
    velocity: np.ndarray,
    period: float,
    lengths: np.ndarray,
    *,
    start: np.ndarray | None = None,
    stays: bool = False,
) -> np.ndarray:
    """Return the state (N, n) of `dahl_state`, set to zero at rest unless `stays`.

    At rest, the friction force can have any value below Coulomb friction, which positions do not
    determine. An element is at rest if its speed is below the fraction `REST_SPEED_FRACTION` of its
    largest speed.

    Args:
        velocity, period, lengths, start: as for `dahl_state`.
        stays: whether the state keeps its value at rest.
    """
    state = dahl_state(velocity, period, lengths, start)
    if stays:
        return state
    return state * (np.abs(velocity) > REST_SPEED_FRACTION * np.abs(velocity).max(axis=0))


def presliding_columns(
    motion: ElementMotion,
    lengths: Mapping[str, float],
    staying: Collection[str] = (),
    starts: Mapping[str, float] | None = None,
    *,
    substeps: int = 1,
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Return the columns (N, n_out, n) of presliding friction, their names and their units.

    The columns are those of `presliding_state`, named ``NAME.presliding`` for each element.

    Args:
        motion: motion of the log of the regression data.
        lengths: presliding lengths, m or rad, by name of the element.
        staying: elements whose friction acts also at rest.
        starts: states at the first sample, by element; zero for elements without an entry.
        substeps: number of steps between two samples, with linearly interpolated speeds.
    """
    names = tuple(lengths)
    starts = starts or {}
    columns = [
        PreslidingElement(motion, name, substeps=substeps).column(
            length, stays=name in staying, start=starts.get(name, 0.0)
        )
        for name, length in lengths.items()
    ]
    return (
        np.concatenate(columns, axis=2),
        tuple(f"{name}.{PRESLIDING}" for name in names),
        tuple(motion.force_unit(name) for name in names),
    )


class PreslidingElement:
    """Columns of presliding friction of one element along a log, for several lengths."""

    def __init__(self, motion: ElementMotion, name: str, *, substeps: int = 1) -> None:
        """Store the motion of the element.

        Args:
            motion: motion of the log.
            name: the element.
            substeps: number of steps between two samples, with linearly interpolated speeds.
        """
        speeds, rows = motion.of((name,))
        speed = speeds[:, 0]
        fine_speed = speed if substeps == 1 else _interpolated(speed, substeps)
        self._motion = motion
        self._substeps = substeps
        self._path = DahlPath(fine_speed, motion.period / substeps)
        self._is_moving = np.abs(speed) > REST_SPEED_FRACTION * np.abs(speed).max()
        self._loaded_outputs = np.flatnonzero(rows.any(axis=(0, 2)))
        self._rows = np.ascontiguousarray(rows[:, self._loaded_outputs])

    def column(self, length: float, *, stays: bool, start: float) -> np.ndarray:
        """Return the decimated column (N', n_out, 1).

        Args:
            length: presliding length, m or rad.
            stays: whether friction acts also at rest.
            start: state at the first sample.
        """
        state = self._path.state(length, start)[:: self._substeps]
        if not stays:
            state = state * self._is_moving
        return self._motion.decimated(self._rows * state[:, None, None], self._loaded_outputs)


def _interpolated(speed: np.ndarray, substeps: int) -> np.ndarray:
    """Return speeds (N,) linearly interpolated: (N - 1) substeps + 1 values."""
    fractions = np.arange(substeps) / substeps
    interpolated = speed[:-1, None] + fractions * np.diff(speed)[:, None]
    return np.concatenate([interpolated.ravel(), speed[-1:]])
