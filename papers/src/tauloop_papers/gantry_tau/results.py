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
        deviations: (n,) for independent errors of the residuals' size, as least squares prints
            them.
        correlated: (n,) for errors as correlated as the residuals are.
        by_noise: (n,) if the measured noise were the only error.
        rows: relative RMS error on the hold-out data (eq. 3), % per measured actuator.
        rmse: the same in N.
        condition: number with unit-norm columns.
        sources: errors (n,), SI, by where they come from; together they are the values less those
            as built.
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
        values: (n,), SI, of eq. 5's parameters, read off the bodies (moments about their mass
            centres).
        reachable: (n_all,) share of each unknown that these data could tell with the prior's weight
            going to zero.
        moments: least principal moment of inertia of every body about its mass centre, kg m^2.
        weight: of the prior.
        rows: relative RMS error on the hold-out data, % per measured actuator.
        free_rows: the same of weighted least squares for the same unknowns, without physical
            limits.
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
class Shown:
    """A row of Table 1 as a figure of the paper: forces over time at the measured actuators.

    Attributes:
        row: of Table 1.
        time: (N,), s.
        connected, own: forces with the structure and without (N, n), N.
        model: the structure's forces by the model (N, n), N.
        velocity: of the actuators (N, n), m/s.
    """

    row: str
    time: np.ndarray
    connected: np.ndarray
    own: np.ndarray
    model: np.ndarray
    velocity: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The plant of a family whose rows of Table 1 are nearest to the printed ones.

    Attributes:
        structure, rows, size: which plants, by how many rows, with errors of the hand within so
            many deviations.
        held, motion: lengths on the first motion (m); strokes (m) and highest frequency (Hz).
        share: of the telescopic links' masses that its 3-dof model counts.
        friction: share of the load by which friction grows.
        mobility: of the frame, 1/kg.
        table: its rows of Table 1 (3, 3), %.
        worst: largest difference of the rows that count from the printed ones, points.
    """

    structure: str
    rows: int
    size: float
    held: tuple[float, ...]
    motion: tuple[float, float]
    share: float
    friction: float
    mobility: float
    table: np.ndarray
    worst: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pattern:
    """Table 1's pattern over the actuators.

    Attributes:
        needed: printed differences of the rows 3-DOF and 5-DOF I (n,), points.
        bounds: what any plant can have at most (n,), points, by held lengths and the share of the
            telescopic links' masses that the 3-dof model counts.
        nearest: of each structure, number of rows and size.
        curves: forces over time of the last of them, which is nearest to all rows.
    """

    needed: np.ndarray
    bounds: Mapping[str, np.ndarray]
    nearest: tuple[Nearest, ...]
    curves: tuple[Shown, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """All figures of the experiment.

    Attributes:
        rows: relative RMS errors of Table 1's models, % per measured actuator.
        unmeasured: the same of the other actuators against the plant's own forces; the 3-dof model
            has none.
        over_connected: largest force of the structure over the largest of the connected run.
        built: values of the unknowns nearest to the machine as built, SI.
        estimates: least squares on the small motions, then on every design.
        consistent: physically consistent fits to the same data.
        alone: hold-out error without the second run, drives identified with the structure, N per
            measured actuator.
        told: what can be told at all.
        motions: the designs.
        left: what two runs leave in the forces of the hold-out motion.
        delay: between the runs of the hold-out motion, as found, s.
        signs: share of other machines for which least squares makes an inertia surely negative, and
            their mean number.
        growth: errors of the model as described, by the size of the hand's errors (sizes, draws,
            actuators), %.
        pattern: which plants can have Table 1's; None of another machine than the paper's.
    """

    rows: Mapping[str, tuple[float, ...]]
    unmeasured: Mapping[str, tuple[float, ...]]
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
    pattern: Pattern | None
