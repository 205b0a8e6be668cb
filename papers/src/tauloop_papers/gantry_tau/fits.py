"""Regression data of two runs, and fits: as published, without the second run, and consistent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tauloop.common.errors import IdentificationError
from tauloop.formats import load
from tauloop.identification import (
    AutocorrelatedErrors,
    Cone,
    Identification,
    OrdinaryLeastSquares,
    PhysicallyConsistent,
    RegressionData,
    SubtractionOptions,
    Ties,
    TwoRuns,
    average_periods,
    base_columns,
    consistency_cones,
    fit_consistent,
    fit_regression,
    merge_data,
    named_ties,
    parameter_ties,
    periodic_regression,
    subtract_actuator_forces,
)
from tauloop.logs import TIME
from tauloop.model import Model
from tauloop.motion import FourierSeries, Multisine
from tauloop_papers.alike import one_link_per_cluster
from tauloop_papers.gantry_tau.plant import Parts, Plant, built_parameters, hand_errors
from tauloop_papers.gantry_tau.results import Consistent, Estimates
from tauloop_papers.gantry_tau.settings import Held, TwoRunSettings, by_name

#: Axis of the moments of inertia by their indices among a body's ten parameters.
AXES = {4: 0, 6: 1, 9: 2}
#: Candidate weights of the prior.
PRIOR_WEIGHTS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
#: Number of parts of a single motion for cross-validation of the prior's weight.
QUARTERS = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DataSet:
    """One motion, recorded twice.

    Attributes:
        name: name of the data set.
        period: period of the motion, s; the average may contain several.
        two: forces of the structure.
        data: regression data of the structure's forces.
        parts: components of the connected forces.
        load, vibration: remainders of friction under load and of the frame's vibration after
            subtraction (N, n), N.
        whole: regression data of the connected forces, with the drives' parameters among the
            unknowns; None if not requested.
    """

    name: str
    period: float
    two: TwoRuns
    data: RegressionData
    parts: Parts
    load: np.ndarray
    vibration: np.ndarray
    whole: RegressionData | None = None

    @property
    def forces(self) -> np.ndarray:
        """Forces of the structure at the measured actuators (N, n)."""
        return self.data.forces[:, self.data.kept]


def multisine(
    settings: TwoRunSettings, model: Model, held: Held, rng: np.random.Generator
) -> Multisine:
    """Return a periodic motion by eq. 2, whose frequencies are random multiples of 1 / period."""
    sines, period = settings.multisine, settings.recording.period
    names = tuple(actuator.name for actuator in model.mechanism.actuators)
    center = np.array(model.actuator_position(model.assembly.q))
    patterns = dict(sines.strokes)
    if held is None:
        patterns |= sines.moving
    else:
        center[[names.index(name) for name in sines.held]] = held
    strokes = by_name(patterns, names)
    stroke = np.array([strokes.get(name, 0.0) for name in names])
    harmonics = np.arange(np.ceil(sines.lowest * period), np.floor(sines.highest * period) + 1)
    chosen = np.stack([rng.choice(harmonics, sines.terms, replace=False) for _ in names])
    return Multisine(
        center=center,
        amplitude=stroke / (sines.terms * np.sqrt(2.0)),
        frequency=2.0 * np.pi * chosen / period,
        phase=rng.uniform(-np.pi, np.pi, size=len(names)),
    )


def data_set(
    settings: TwoRunSettings,
    plant: Plant,
    model: Model,
    motion: FourierSeries | Multisine,
    rng: np.random.Generator,
    name: str,
    with_drives: Model | None = None,
    longer: float = 1.0,
) -> DataSet:
    """Record a motion twice, subtract, and return regression data.

    Args:
        settings: settings of the experiment.
        plant: the machine as built.
        model: the machine as described, without the removed structure's drives.
        motion: motion of all actuators.
        rng: generator of noise.
        name: name of the data set.
        with_drives: the machine as described, for regression data of the connected run alone.
        longer: factor of the number of periods.
    """
    recording = settings.recording
    connected, disconnected, parts = plant.record(motion, rng, longer)
    two = subtract_actuator_forces(
        connected, disconnected, SubtractionOptions(period=recording.period)
    )
    data = periodic_regression(
        model, two.log, highest=recording.highest, ties=parameter_ties(model, settings.parameters)
    )
    whole = None
    if with_drives is not None:
        whole = periodic_regression(
            with_drives,
            average_periods(connected, recording.period).log,
            highest=recording.highest,
            ties=parameter_ties(with_drives, (*settings.parameters, *settings.removed)),
        )
    load, vibration = plant.leftover(motion.sample(two.log[TIME].to_numpy()), parts)
    return DataSet(
        name=name,
        period=motion.period if isinstance(motion, FourierSeries) else recording.period,
        two=two,
        data=data,
        parts=parts,
        load=load,
        vibration=vibration,
        whole=whole,
    )


def relative_rms(measured: np.ndarray, predicted: np.ndarray) -> tuple[float, ...]:
    """Return eq. 3 in %: RMS difference over the largest absolute measured value, per column."""
    rms = np.sqrt(np.mean((measured - predicted) ** 2, axis=0))
    return tuple((100.0 * rms / np.abs(measured).max(axis=0)).tolist())


def least_squares(
    name: str, sets: Sequence[DataSet], held_out: DataSet, built: np.ndarray
) -> Estimates:
    """Fit by eqs. 6 to 8: ordinary least squares on several data sets, verified on another.

    Args:
        name: name of the motions.
        sets: training data.
        held_out: data for verification.
        built: unknowns nearest to the machine as built (n,).

    Raises:
        IdentificationError: the data do not determine all unknowns, or cannot support a fit.
    """
    training = merge_data([recorded.data for recorded in sets])
    plain, correlated = (
        fit_regression(training, held_out.data, OrdinaryLeastSquares(), errors=errors)
        for errors in (None, AutocorrelatedErrors())
    )
    base = plain.base
    if base.rank < len(training.unknowns):
        lost = ", ".join(np.delete(training.unknowns, base.independent).tolist())
        what = f"{base.rank} of {len(training.unknowns)} parameters are determined by {name}; not separately: {lost}"
        raise IdentificationError.of("training", what, "use more sets of held positions")
    Y = base_columns(training, training.regressor, base)
    noise = np.array([list(recorded.two.noise.values()) for recorded in sets])
    variance = np.mean(noise**2, axis=0)
    inverse = np.linalg.inv(np.einsum("nkr,nks->rs", Y, Y))
    by_noise = inverse @ np.einsum("nkr,k,nks->rs", Y, variance, Y) @ inverse
    return Estimates(
        name=name,
        values=plain.values,
        deviations=plain.standard_deviations,
        correlated=correlated.standard_deviations,
        by_noise=np.sqrt(np.diag(by_noise)),
        rows=relative_rms(held_out.forces, predicted(held_out, plain.parameters)),
        rmse=tuple(part.rmse for part in plain.held_out),
        condition=plain.condition,
        sources=sources(sets, built),
    )


def sources(sets: Sequence[DataSet], built: np.ndarray) -> dict[str, np.ndarray]:
    """Return the errors of least squares by source, from the components of the forces.

    Args:
        sets: training data.
        built: unknowns nearest to the machine as built (n,).

    Returns:
        Errors (n,), SI, by source; their sum is the estimate minus `built`.
    """
    training = merge_data([recorded.data for recorded in sets])
    ties = training.ties
    if ties is None:
        return {}
    columns = (training.regressor @ ties.matrix)[:, training.kept]
    known = (training.regressor @ np.asarray(ties.offset))[:, training.kept]
    inverse = np.linalg.pinv(columns.reshape(-1, columns.shape[-1]))

    def estimate(forces: np.ndarray) -> np.ndarray:
        return np.asarray(inverse @ forces.ravel())

    structure = np.concatenate([recorded.parts.structure for recorded in sets])
    load = np.concatenate([recorded.load for recorded in sets])
    vibration = np.concatenate([recorded.vibration for recorded in sets])
    rest = training.forces[:, training.kept] - structure - load - vibration
    return {
        "friction under load": estimate(load),
        "frame's vibration": estimate(vibration),
        "geometry, centers and unequal links": estimate(structure - known) - built,
        "noise": estimate(rest),
    }


def predicted(recorded: DataSet, parameters: np.ndarray) -> np.ndarray:
    """Return the structure's forces (N, n) for parameters (n_pi,) of the regressor's columns."""
    return np.asarray((recorded.data.regressor @ parameters)[:, recorded.data.kept])


def unmeasured_rms(recorded: DataSet, parameters: np.ndarray) -> tuple[float, ...]:
    """Return eq. 3 in % for each actuator without force measurement, against the plant."""
    whole = recorded.data.regressor @ parameters
    others = [k for k in range(whole.shape[1]) if k not in recorded.data.kept]
    return relative_rms(recorded.parts.others, whole[:, others])


def without_second_run(sets: Sequence[DataSet], held_out: DataSet) -> Identification:
    """Identify the drives' friction and mass with the structure, from connected runs alone."""
    whole = [recorded.whole for recorded in (*sets, held_out) if recorded.whole is not None]
    return fit_regression(merge_data(whole[:-1]), whole[-1], OrdinaryLeastSquares())


def consistent(
    settings: TwoRunSettings, name: str, model: Model, sets: Sequence[DataSet], held_out: DataSet
) -> Consistent:
    """Fit physically consistent parameters near those measured by hand, all ten of every body.

    Least squares uses impossible values to represent effects that eq. 5 neglects, such as mass
    centers off the axis of a link. Within physical limits only the parameters of these effects can
    represent them.
    """
    bodies, shared = body_ties(settings, model)
    training = replace(merge_data([recorded.data for recorded in sets]), ties=shared)
    judged = replace(held_out.data, ties=shared)
    groups = np.concatenate(
        [_motion_parts(settings, k, recorded, len(sets)) for k, recorded in enumerate(sets)]
    )
    options = PhysicallyConsistent(weights=PRIOR_WEIGHTS)
    fitted = fit_consistent(training, judged, bodies, model.pi, options, groups=groups)
    free = fitted.unconstrained.parameters
    return Consistent(
        name=name,
        unknowns=fitted.unknowns,
        values=readings(parameter_ties(model, settings.parameters), bodies, fitted.parameters),
        reachable=fitted.reachable_share,
        moments=tuple(
            float(np.linalg.eigvalsh(_inertia(body, fitted.parameters))[0]) for body in bodies
        ),
        weight=fitted.weight,
        rows=relative_rms(held_out.forces, predicted(held_out, fitted.parameters)),
        free_rows=relative_rms(held_out.forces, predicted(held_out, free)),
    )


def _motion_parts(
    settings: TwoRunSettings, number: int, recorded: DataSet, count: int
) -> np.ndarray:
    """Return groups (N,) for cross-validation: data sets, or quarters of a single motion."""
    if count > 1:
        return np.full(len(recorded.data), number)
    phase = np.arange(len(recorded.data)) / (settings.recording.rate * recorded.period) % 1.0
    return np.floor(QUARTERS * phase)


def body_ties(settings: TwoRunSettings, model: Model) -> tuple[tuple[Cone, ...], Ties]:
    """Return the bodies of the unknowns, and ties by which equal bodies share all ten parameters.

    All other parameters of the machine are known.
    """
    leaves = parameter_ties(model, settings.parameters).matrix
    bodies = tuple(
        cone for cone in consistency_cones(model.parameters) if np.any(leaves[cone.columns] != 0.0)
    )
    names = [parameter.name for parameter in model.parameters]
    kinds: dict[bytes, list[np.ndarray]] = {}
    for body in bodies:
        kinds.setdefault(body.matrix(model.pi).tobytes(), []).append(body.columns)
    alike = []
    for columns in kinds.values():
        for equal in zip(*columns, strict=True):
            alike.append([names[j] for j in equal])
    unknown = {name for group in alike for name in group}
    shared = named_ties(
        names,
        [parameter.unit for parameter in model.parameters],
        equal={group[0]: group for group in alike},
        known={
            name: float(value)
            for name, value in zip(names, model.pi, strict=True)
            if name not in unknown
        },
    )
    return bodies, shared


def readings(leaves: Ties, bodies: Sequence[Cone], parameters: np.ndarray) -> np.ndarray:
    """Return the unknowns of eq. 5 (n,) for the parameters of bodies.

    leaves: map from eq. 5's parameters to those of the bodies.
    bodies: bodies of these parameters.
    parameters: parameters of all bodies (n_p,).
    """
    values = []
    for column, unit in zip(leaves.matrix.T, leaves.units, strict=True):
        first = int(np.flatnonzero(column)[0])
        body = next(body for body in bodies if first in body.columns)
        place = int(np.flatnonzero(body.columns == first)[0])
        values.append(
            _inertia(body, parameters)[AXES[place], AXES[place]]
            if unit == "kg m^2"
            else parameters[first]
        )
    return np.array(values)


def _inertia(body: Cone, parameters: np.ndarray) -> np.ndarray:
    """Return the inertia tensor (3, 3) of a body about its mass center, tr(S) 1 - S."""
    P = body.matrix(parameters)
    second = P[:-1, :-1] - np.outer(P[:-1, -1], P[:-1, -1]) / P[-1, -1]
    return np.asarray(np.trace(second) * np.eye(len(second)) - second)


def nearest(ties: Ties, pi: np.ndarray) -> np.ndarray:
    """Return the unknowns (n,) whose dynamic parameters are nearest to pi."""
    return np.asarray(np.linalg.lstsq(ties.matrix, pi - np.asarray(ties.offset))[0])


def three_freedoms(settings: TwoRunSettings) -> tuple[Model, np.ndarray]:
    """Return the 3-dof model of the structure, and its parameters (n_pi,) with all links.

    The cluster of three has one long link and two telescopic ones, whose masses include those of
    their parts about the cart.
    """
    mechanism = load(settings.machine).with_values(dict.fromkeys(settings.removed, 0.0))
    values = mechanism.parameters.values
    long, telescopic = values["m_l"], 2.0 * values["m_t"]
    half, center = 0.5 * values["triple1.length"], values["telescope_centre"]
    cluster = {
        "triple.m": long + telescopic,
        "triple.h": long * half + telescopic * center,
        "triple.J": values["I_lxx"]
        + long * half**2
        + 2.0 * values["I_txx"]
        + telescopic * center**2,
    }
    model = Model(one_link_per_cluster(settings.simple, mechanism))
    names = [parameter.name for parameter in model.parameters]
    pi = np.array(model.pi)
    pi[[names.index(name) for name in cluster]] = list(cluster.values())
    return model, pi


def simple_forces(settings: TwoRunSettings, recorded: DataSet) -> np.ndarray:
    """Return forces (N, n) by the simpler model, from the measured actuators' positions alone."""
    model, pi = three_freedoms(settings)
    data = periodic_regression(model, recorded.two.log, highest=settings.recording.highest)
    return np.asarray(data.regressor @ pi)


def negative_share(
    settings: TwoRunSettings, model: Model, sets: Sequence[DataSet], rng: np.random.Generator
) -> tuple[float, float]:
    """Return how often least squares gives a significantly negative moment of inertia.

    Other machines with errors of the same size are simulated on the same motions, with noise and
    without other neglected effects.

    Returns:
        Share of the draws with at least one such inertia, and their mean number.
    """
    training = merge_data([recorded.data for recorded in sets])
    ties = parameter_ties(model, settings.parameters)
    columns = (training.regressor @ ties.matrix)[:, training.kept].reshape(-1, len(ties.parameters))
    whole = training.regressor[:, training.kept].reshape(len(columns), -1)
    known = whole @ np.asarray(ties.offset)
    noise = np.mean([list(recorded.two.noise.values()) for recorded in sets], axis=0)
    each = np.tile(noise, len(columns) // len(noise))
    inverse = np.linalg.pinv(columns)
    chosen = [settings.parameters.index(name) for name in settings.inertias]
    bodies = consistency_cones(model.parameters)
    counts, size = [], hand_errors(model.pi, bodies)
    for _ in range(settings.sign_draws):
        pi = built_parameters(model.pi, bodies, settings.built, rng.normal(size=size))
        force = whole @ pi - known + each * rng.normal(size=len(each))
        values = inverse @ force
        residual = force - columns @ values
        spread = np.sqrt(
            np.sum(residual**2) / (len(force) - len(values)) * np.sum(inverse**2, axis=1)
        )
        counts.append(int(np.sum(values[chosen] < -spread[chosen])))
    return float(np.mean(np.array(counts) > 0)), float(np.mean(counts))


def growth(
    settings: TwoRunSettings, model: Model, recorded: DataSet, rng: np.random.Generator
) -> np.ndarray:
    """Return relative RMS errors of the described model, by size of the errors of hand measurement.

    Masses, centers and radii only: geometry and noise are omitted.

    Returns:
        (sizes, draws, measured actuators), %.
    """
    bodies = consistency_cones(model.parameters)
    described, size = predicted(recorded, model.pi), hand_errors(model.pi, bodies)

    def row(scale: float) -> tuple[float, ...]:
        built = built_parameters(model.pi, bodies, settings.built, rng.normal(size=size), scale)
        return relative_rms(predicted(recorded, built), described)

    errors = []
    for scale in settings.error_scales:
        errors.append([row(scale) for _ in range(settings.scale_draws)])
    return np.array(errors)
