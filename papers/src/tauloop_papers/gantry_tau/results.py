"""Results of the two-run experiment, as plain data for its table and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tauloop.identification import Conditions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimates:
    """Least-squares estimates of the unknowns.

    Attributes:
        name: name of the motions.
        values: estimates (n,), SI.
        deviations: standard deviations (n,) for independent errors of the residuals' size, as from
            least squares.
        correlated: standard deviations (n,) for errors with the residuals' correlation.
        by_noise: standard deviations (n,) if the measured noise were the only error.
        rows: relative RMS error on the hold-out data (eq. 3), % per measured actuator.
        rmse: the same in N.
        condition: condition number with unit-norm columns.
        sources: errors (n,), SI, by source; their sum is the estimates minus the values
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
        name: name of the motions.
        unknowns: names of the fitted parameters, n_all.
        values: values (n,), SI, of eq. 5's parameters, from the bodies (moments about their mass
            centers).
        reachable: (n_all,) share of each unknown that these data determine with the prior's weight
            going to zero.
        moments: smallest principal moment of inertia of every body about its mass center, kg m^2.
        weight: weight of the prior.
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
    """Remainders in the structure's forces after two runs, RMS per measured actuator, N.

    Attributes:
        noise: noise of the averages of both runs, by the spread of the periods.
        vibration: vibration of the frame, which moves less without the structure.
        load: friction that increases with the load.
        removed: the actuator's own forces, which the subtraction removes.
        force: forces of the structure.
    """

    noise: tuple[float, ...]
    vibration: tuple[float, ...]
    load: tuple[float, ...]
    removed: tuple[float, ...]
    force: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """An optimized motion of one or several data sets.

    Attributes:
        name: name of the design.
        conditions: condition numbers of all its data sets together, for measured forces only.
        used: largest share of a limit.
        limits: limits that are reached.
    """

    name: str
    conditions: Conditions
    used: float
    limits: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Identifiability by one kind of data, without noise.

    Attributes:
        case: treatment of the held actuators.
        spins: whether links spin (universal joint at their foot).
        measured: number of measured forces.
        rank: number of determined combinations.
        stated: rank stated by others; None without one.
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
    """A row of Table 1 as in a figure of the paper: forces over time at the measured actuators.

    Attributes:
        row: row of Table 1.
        time: times (N,), s.
        connected, own: forces with the structure and without (N, n), N.
        model: the structure's forces by the model (N, n), N.
        velocity: velocities of the actuators (N, n), m/s.
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
        structure, rows, size: structure of the plants, number of fitted rows, and bound of hand
            measurement errors in deviations.
        held, motion: lengths on the first motion (m); strokes (m) and highest frequency (Hz).
        share: share of the telescopic links' masses in its 3-dof model.
        friction: increase of friction per load.
        mobility: mobility of the frame, 1/kg.
        table: its rows of Table 1 (3, 3), %.
        worst: largest difference of the fitted rows from the printed ones, points.
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
        bounds: bounds for any plant (n,), points, by held lengths and the share of the
            telescopic links' masses in the 3-dof model.
        nearest: nearest plants for each structure, number of rows and size.
        curves: forces over time of the last one, which is nearest to all rows.
    """

    needed: np.ndarray
    bounds: Mapping[str, np.ndarray]
    nearest: tuple[Nearest, ...]
    curves: tuple[Shown, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """All results of the experiment.

    Attributes:
        rows: relative RMS errors of Table 1's models, % per measured actuator.
        unmeasured: the same for the other actuators against the plant's forces; the 3-dof model
            has none.
        over_connected: largest force of the structure over the largest of the connected run.
        built: values of the unknowns nearest to the machine as built, SI.
        estimates: least squares on the small motions, then on every design.
        consistent: physically consistent fits to the same data.
        alone: hold-out error without the second run, drives identified with the structure, N per
            measured actuator.
        identifiability: identifiability by kind of data.
        motions: the designs.
        left: remainders in the forces of the hold-out motion.
        delay: estimated delay between the runs of the hold-out motion, s.
        signs: share of other machines for which least squares gives a significantly negative
            inertia, and their mean number.
        growth: errors of the model as described, by the size of hand measurement errors (sizes,
            draws, actuators), %.
        pattern: plants with Table 1's pattern; None for other machines than the paper's.
    """

    rows: Mapping[str, tuple[float, ...]]
    unmeasured: Mapping[str, tuple[float, ...]]
    over_connected: float
    built: np.ndarray
    estimates: tuple[Estimates, ...]
    consistent: tuple[Consistent, ...]
    alone: tuple[float, ...]
    identifiability: tuple[Told, ...]
    motions: tuple[Motion, ...]
    left: Left
    delay: float
    signs: tuple[float, float]
    growth: np.ndarray
    pattern: Pattern | None
