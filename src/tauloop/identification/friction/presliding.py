"""Presliding friction: the state of Dahl's model and its columns.

Source: Dahl 1968, A solid friction model.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from tauloop.identification.friction.element_motion import ElementMotion

#: Last component of the name of a presliding column.
PRESLIDING = "presliding"
#: An element below this fraction of its largest speed is at rest.
REST = 1e-3


def dahl_state(
    velocity: np.ndarray, period: float, lengths: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """Return the state z (N, n) of Dahl's model, dz/dx = (1 - z sign(v)) / length, from -1 to 1.

    The friction force is F z, which becomes F sign(v) in sliding. The motion between two samples
    is taken as monotonic. Then z changes to s + (z - s) exp(-|dx| / length), with s = sign(dx),
    which is the exact solution (Dahl 1968, A solid friction model, with the exponent one). The
    motion before the first sample is unknown; its effect vanishes after a few lengths. All samples
    are calculated together, in log2(N) passes.

    Args:
        velocity: (N, n), m/s or rad/s; zero at rest.
        period: sampling period, s.
        lengths: (n,), m or rad, positive: distance after a reversal over which friction reverses
            except for a fraction of 1 / e.
        start: (n,) z at the first sample; zero if it is not given.
    """
    travel = np.zeros(velocity.shape)
    travel[1:] = 0.5 * period * (velocity[1:] + velocity[:-1])
    decay = np.exp(-np.abs(travel) / lengths)
    z = np.sign(travel) * (1.0 - decay)
    reach = 1
    # The recursion z_k = decay_k z_(k-1) + ... is composed over twice the number of samples in
    # each pass.
    while reach < len(z):
        z[reach:] = z[reach:] + decay[reach:] * z[:-reach]
        decay[reach:] = decay[reach:] * decay[:-reach]
        reach *= 2
    return z if start is None else z + start * decay


def fading_start(velocity: np.ndarray, period: float, lengths: np.ndarray) -> np.ndarray:
    """Return the part (N, n) of `dahl_state` that a start of one contributes."""
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
    """Return the state (N, n) of `dahl_state`, with zeros at rest unless it stays.

    At rest, the friction force can have any value below Coulomb friction, which positions do not
    determine. Motion is at rest if its speed is below the share `REST` of the largest.

    Args:
        velocity, period, lengths, start: as for `dahl_state`.
        stays: whether the state is also used at rest.
    """
    state = dahl_state(velocity, period, lengths, start)
    return state if stays else state * (np.abs(velocity) > REST * np.abs(velocity).max(axis=0))


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
        staying: elements whose friction is also used at rest.
        starts: states at the first sample, by element; zero if they are not given.
        substeps: number of steps between two samples, with speeds on a line.
    """
    names = tuple(lengths)
    columns = presliding_of(
        motion, motion.of(names), lengths, staying, starts or {}, substeps=substeps
    )
    return (
        columns,
        tuple(f"{name}.{PRESLIDING}" for name in names),
        tuple(motion.force_unit(name) for name in names),
    )


def presliding_of(
    motion: ElementMotion,
    of_elements: tuple[np.ndarray, np.ndarray],
    lengths: Mapping[str, float],
    staying: Collection[str],
    starts: Mapping[str, float],
    *,
    substeps: int,
) -> np.ndarray:
    """Return the columns (N, n_out, n) of `presliding_columns`, from speeds that are known.

    Args:
        motion, lengths, staying, starts, substeps: as for `presliding_columns`.
        of_elements: speeds and rows of the elements, from `ElementMotion.of`.
    """
    speed, rows = of_elements
    if substeps > 1:
        speed = _between(speed, substeps)
    states = [
        presliding_state(
            speed[:, [k]],
            motion.period / substeps,
            np.array([length]),
            start=np.array([starts.get(name, 0.0)]),
            stays=name in staying,
        )[::substeps]
        for k, (name, length) in enumerate(lengths.items())
    ]
    return motion.decimated(rows * np.concatenate(states, axis=1)[:, None, :])


def _between(speed: np.ndarray, substeps: int) -> np.ndarray:
    """Return speeds (N, n) with values on lines between them, (N - 1) substeps + 1 in all."""
    shares = np.arange(substeps)[:, None] / substeps
    lines = speed[:-1, None] + shares * np.diff(speed, axis=0)[:, None]
    return np.concatenate([lines.reshape(-1, speed.shape[1]), speed[-1:]])
