"""What the two-run experiment finds, as plain data for its table and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tauloop.identification import Conditions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimates:
    """Least-squares estimates of the unknowns.

    Attributes:
        name: of the motions.
        values: (n,), SI.
        deviations: (n,) for independent errors of the residuals' size, as least squares prints them.
        correlated: (n,) for errors as correlated as the residuals are.
        by_noise: (n,) if the measured noise were the only error.
        rows: relative RMS error on the hold-out data (eq. 3), % per measured actuator.
        rmse: the same in N.
        condition: number with unit-norm columns.
        sources: errors (n,), SI, by where they come from; together they are the values less those as built.
    """

    name: str
    values: np.ndarray
    deviations: np.ndarray
    correlated: np.ndarray
    by_noise: np.ndarray
    rows: tuple[float, ...]
    rmse: tuple[float, ...]
    condition: float
    sources: Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Consistent:
    """A physically consistent fit of all parameters of all bodies.

    Attributes:
        name: of the motions.
        unknowns: names of what was fitted, n_all.
        values: (n,), SI, of eq. 5's parameters, read off the bodies (moments about their mass centres).
        reachable: (n_all,) share of each unknown that these data could tell with the prior's weight going to zero.
        moments: least principal moment of inertia of every body about its mass centre, kg m^2.
        weight: of the prior.
        rows: relative RMS error on the hold-out data, % per measured actuator.
        free_rows: the same of weighted least squares for the same unknowns, without physical limits.
    """

    name: str
    unknowns: tuple[str, ...]
    values: np.ndarray
    reachable: np.ndarray
    moments: tuple[float, ...]
    weight: float
    rows: tuple[float, ...]
    free_rows: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What two runs leave in the structure's forces, RMS per measured actuator, N.

    Attributes:
        noise: of the averages of both runs, by the spread of the periods.
        vibration: of the frame, which moves less without the structure.
        load: friction that grows with the load.
        removed: the actuator's own forces, which the subtraction takes away.
        force: the structure's forces.
    """

    noise: tuple[float, ...]
    vibration: tuple[float, ...]
    load: tuple[float, ...]
    removed: tuple[float, ...]
    force: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """An optimised motion of one or several data sets.

    Attributes:
        name: of the design.
        conditions: of all its data sets together, the measured forces alone.
        used: largest share of a limit.
        limits: those that are taken up.
    """

    name: str
    conditions: Conditions
    used: float
    limits: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one kind of data can tell, without noise.

    Attributes:
        case: what is done with the held actuators.
        spins: whether links spin (universal joint at their foot).
        measured: number of measured forces.
        rank: number of combinations told.
        stated: as others say; None where nobody does.
        together: combinations of more than one unknown.
        lost: unknowns without effect.
    """

    case: str
    spins: bool
    measured: int
    rank: int
    stated: int | None
    together: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Example:
    """Time series for figures: the hold-out motion at the measured actuators.

    Attributes:
        time: (N,), s.
        connected, own: forces with the structure and without (N, n), N.
        velocity: (N, n), m/s.
        structure: the structure's measured forces (N, n), N.
        described, identified: predictions of these by the model as described, and by least squares (N, n), N.
    """

    time: np.ndarray
    connected: np.ndarray
    own: np.ndarray
    velocity: np.ndarray
    structure: np.ndarray
    described: np.ndarray
    identified: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """All figures of the experiment.

    Attributes:
        rows: relative RMS errors of Table 1's models, % per measured actuator.
        over_connected: largest force of the structure over the largest of the connected run.
        built: values of the unknowns nearest to the machine as built, SI.
        estimates: least squares on the small motions, then on every design.
        consistent: physically consistent fits to the same data.
        alone: hold-out error without the second run, drives identified with the structure, N per measured actuator.
        told: what can be told at all.
        motions: the designs.
        left: what two runs leave in the forces of the hold-out motion.
        delay: between the runs of the hold-out motion, as found, s.
        signs: share of other machines for which least squares makes an inertia surely negative, and their mean number.
        growth: errors of the model as described, by the size of the hand's errors (sizes, draws, actuators), %.
    """

    rows: Mapping[str, tuple[float, ...]]
    over_connected: float
    built: np.ndarray
    estimates: tuple[Estimates, ...]
    consistent: tuple[Consistent, ...]
    alone: tuple[float, ...]
    told: tuple[Told, ...]
    motions: tuple[Motion, ...]
    left: Left
    delay: float
    signs: tuple[float, float]
    growth: np.ndarray
