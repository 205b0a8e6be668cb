"""Setup of a series: coordinates at the start values, and equations that become residuals."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from tauloop.calibration.measurements.series import Series
from tauloop.calibration.problem.equilibrium import Equilibrium, least_stiffness
from tauloop.calibration.problem.measured_poses import (
    MAX_NEWTON_STEPS,
    NEWTON_STEP_TOLERANCE,
    Elimination,
    MeasuredPose,
    coordinate_equations,
)
from tauloop.calibration.problem.pose_equations import (
    CalibrationContext,
    independent_rows,
    measured_pose_functions,
)
from tauloop.calibration.problem.residuals import ForwardKinematics, ResidualKind
from tauloop.common.counts import counted
from tauloop.common.errors import InputError, PoseError, Problem, Problems
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.ports import MAX_LISTED

#: Number of waypoints on the straight line in encoder space from the reference pose to a measured
#: pose.
WAYPOINTS = 12
#: Maximum number of Newton steps at each waypoint, and the step length (characteristic lengths or
#: rad) below which the iteration proceeds to the next waypoint.
NEWTON_STEPS_AT_WAYPOINT = 4
WAYPOINT_STEP_TOLERANCE = 1e-3
#: Singular values below this fraction of the largest count as zero: no hard equation determines the
#: corresponding directions.
UNKNOWN_RANK_TOLERANCE = 1e-8
#: Maximum number of poses listed in an error.
MAX_LISTED_POSES = 10


def build_measured_pose(
    context: CalibrationContext,
    series: Series,
    kind: ResidualKind,
    encoder_noise: np.ndarray,
    template: MeasuredPose | None,
    *,
    where: str,
) -> MeasuredPose:
    """Return the measured poses of one series with their functions and elimination.

    Args:
        context: the machine, the unknowns and the evaluator.
        series: the measurements.
        kind: which equations are residuals.
        encoder_noise: standard deviations of all encoders (n_u,), m or rad.
        template: measured poses of the same instrument whose functions are reused; None to build
            new functions.
        where: name of the series in messages.

    Raises:
        PoseError: poses are out of reach.
        InputError: the instrument reads more quantities than `LoopEquations` can use.
    """
    assembly = context.assembly
    functions = (
        template.functions
        if template is not None
        else measured_pose_functions(context, series.instrument, len(series))
    )
    _require_forward_kinematics(context, series, kind)
    hard, soft = kind.split(*functions.sizes)
    n = len(series)
    n_v = series.instrument.poses * assembly.topology.n_v
    without_combinations = Elimination(
        hard=hard,
        soft=soft,
        closing=np.zeros((n, 0, len(soft))),
        whitening=np.zeros((n, 0, len(soft))),
    )
    measured_pose = MeasuredPose(
        series=series,
        nuisances=context.nuisances,
        topology=assembly.topology,
        functions=functions,
        leading=assembly.leading,
        elimination=without_combinations,
        q=np.broadcast_to(assembly.q, (len(series.encoders), assembly.topology.n_q)).copy(),
        scale=np.tile(assembly.loops.velocity_scale, series.instrument.poses),
        deflection=None if context.deflection is None else context.deflection.at(series),
        twist=np.zeros((len(series.encoders), 0 if context.deflection is None else 6)),
    )
    zero = np.zeros(len(context.unknowns))
    if isinstance(kind, ForwardKinematics):
        measured_pose = replace(measured_pose, q=follow_encoders(measured_pose, zero))
        _require_reached(replace(measured_pose, deflection=None), zero, assembly, where)
        measured_pose = _with_twist(measured_pose, zero)
        _require_stable(context, measured_pose, zero)
    else:
        measured_pose = replace(measured_pose, q=measured_pose.state(zero, measured_pose.q).q)
    _, f_v = measured_pose.evaluate(zero, measured_pose.q)
    _require_finite(measured_pose, f_v)
    tolerance = UNKNOWN_RANK_TOLERANCE * np.abs(f_v[0]).max()
    if len(hard) > n_v or np.linalg.matrix_rank(f_v[0, hard], tol=tolerance) < len(hard):
        problem = (
            f"{counted(len(hard), 'equation')} must determine {counted(n_v, 'coordinate')}, but are "
            "not independent"
        )
        remedy = "use ForwardKinematics() residuals, which need only actuators and loops"
        raise InputError.of(series.instrument.name, problem, remedy)
    open_count = n_v - len(hard)
    if open_count:
        measured_pose = _close_coordinates(measured_pose, zero, open_count, encoder_noise)
    return replace(measured_pose, elimination=_whiten(measured_pose, zero, encoder_noise))


def _with_twist(measured_pose: MeasuredPose, x: np.ndarray) -> MeasuredPose:
    """Return measured poses with the deflections of the tool at their coordinates.

    Raises:
        InputError: the instrument does not measure the tool, so deflections have no effect.
    """
    deflection = measured_pose.deflection
    if deflection is None:
        return measured_pose
    measured_pose = replace(measured_pose, twist=deflection.twist(x, measured_pose.q, trial=False))
    state = measured_pose.state(x, measured_pose.q)
    if not measured_pose.by_twist(x, state).any():
        instrument = measured_pose.series.instrument
        what = (
            f"the readings ({instrument.kind}) do not depend on the deflection of the tool "
            "due to loads and temperatures"
        )
        remedy = "remove this series, or calibrate without loads and temperatures"
        raise InputError.of(instrument.name, what, remedy)
    return measured_pose


def _require_forward_kinematics(
    context: CalibrationContext, series: Series, kind: ResidualKind
) -> None:
    """Reject loop equations as residuals where they are needed to determine the coordinates."""
    if isinstance(kind, ForwardKinematics):
        return
    remedy = "use ForwardKinematics() residuals (`--residuals forward-kinematics`)"
    if context.equilibrium is not None:
        problem = (
            "with static equilibrium, loops and encoders must determine the coordinates, so loops "
            "cannot be residuals"
        )
        raise InputError.of(series.instrument.name, problem, remedy)
    if context.deflection is not None:
        problem = "with loads or temperatures, loops and encoders must determine the rigid pose"
        raise InputError.of(series.instrument.name, problem, remedy)
    poses = series.instrument.poses
    if poses > 1:
        problem = f"one reading belongs to {poses} poses, so it cannot determine coordinates"
        raise InputError.of(series.instrument.name, problem, remedy)


def _require_finite(measured_pose: MeasuredPose, f_v: np.ndarray) -> None:
    """Reject readings whose velocity derivatives f_v are not finite.

    An example is a distance between two poses that coincide.
    """
    series = measured_pose.series
    problems = Problems()
    for i in np.flatnonzero(~np.isfinite(f_v).all(axis=(1, 2))):
        problem = "the reading has no derivative because its poses coincide"
        problems.add(
            f"{series.instrument.name}, {series.label(int(i))}",
            problem,
            "remove this reading, or check the encoders",
        )
    InputError.raise_if_any(problems)


def follow_encoders(measured_pose: MeasuredPose, x: np.ndarray) -> np.ndarray:
    """Return the coordinates (N m, n_q) by continuation from the reference pose.

    Each path is a straight line in encoder space.
    """
    q = measured_pose.q
    loops, encoders, _, _ = measured_pose.n_equations
    f, _ = measured_pose.evaluate(x, q)
    # At these readings the reference pose solves the encoder equations (scales are close to 1).
    origin = measured_pose.series.encoders.copy()
    origin[:, list(measured_pose.leading)] += f[:, loops : loops + encoders].reshape(
        len(origin), -1
    )
    for fraction in np.linspace(0.0, 1.0, WAYPOINTS + 1)[1:]:
        waypoint = origin + fraction * (measured_pose.series.encoders - origin)
        for _ in range(NEWTON_STEPS_AT_WAYPOINT):
            f, f_v = measured_pose.evaluate(x, q, waypoint)
            hard = measured_pose.elimination.hard
            q, length = measured_pose.newton_step(q, f[:, hard], f_v[:, hard])
            if length < WAYPOINT_STEP_TOLERANCE:
                break
    return q


def swap_columns(encoders: np.ndarray, i: int, j: int) -> np.ndarray:
    """Return a copy of readings (N, n_u) with two columns swapped."""
    result = encoders.copy()
    result[:, [i, j]] = result[:, [j, i]]
    return result


def with_encoders(
    measured_pose: MeasuredPose, encoders: np.ndarray, reference: np.ndarray, x: np.ndarray
) -> MeasuredPose:
    """Return the same series with other encoder readings.

    The coordinates are computed by continuation from the reference pose (n_q,).
    """
    other = replace(measured_pose, series=replace(measured_pose.series, encoders=encoders))
    other = replace(other, q=np.broadcast_to(reference, measured_pose.q.shape).copy())
    return replace(other, q=follow_encoders(other, x))


def _require_reached(
    measured_pose: MeasuredPose, x: np.ndarray, assembly: Assembly, where: str
) -> None:
    """Reject readings at which the loops of the nominal geometry do not close."""
    state = measured_pose.state(x, measured_pose.q)
    unreached = np.flatnonzero(~state.is_reached)
    if not len(unreached):
        return
    series = measured_pose.series
    loops = measured_pose.n_equations[0]
    f, _ = measured_pose.evaluate(x, state.q)
    problems = Problems()
    for i in unreached[:MAX_LISTED_POSES]:
        name = "encoders"
        gap = "an unknown length"
        if loops:
            name, gap = _widest_gap(assembly, f[i, :loops], loops // measured_pose.poses)
        poses = series.encoders[series.rows(np.array([i]))]
        readings = "; ".join(map(_number_list, poses))
        problems.add(
            f"{where} ({series.instrument.name}), {series.label(int(i))}",
            f"out of reach of the nominal geometry: with encoders at ({readings}) the loop {name!r} stays "
            f"open by {gap}",
            "check the units, signs and order of the encoder columns (SI), or remove the pose",
        )
    if len(unreached) > MAX_LISTED_POSES:
        unlisted = len(unreached) - MAX_LISTED_POSES
        problems.add(where, f"and {counted(unlisted, 'more reading')} of {len(series)}")
    problems += _reached_when_swapped(measured_pose, x, assembly)
    raise PoseError(problems)


def _number_list(values: np.ndarray) -> str:
    """Return numbers as text, separated by commas."""
    return ", ".join(f"{value:.5g}" for value in values)


def _widest_gap(assembly: Assembly, phi: np.ndarray, count: int) -> tuple[str, str]:
    """Return the name of the independent equation with the largest residual, and that residual.

    Args:
        assembly: the machine.
        phi: residuals of all loop and equilibrium equations of the poses of a reading.
        count: number of equations of one pose; equations of equilibrium are the last.
    """
    loops = assembly.loops
    rows = independent_rows(assembly)
    k = int(np.abs(phi).argmax())
    residual = float(phi[k])
    index = k % count
    if index >= len(rows):
        return (
            "equilibrium",
            f"{1e3 * abs(residual):.3g} mm (residual of the static equilibrium, scaled to a length)",
        )
    row = rows[index]
    rod = next((rod for rod in loops.mechanism.rods if rod.name == loops.elements[row]), None)
    if rod is not None and rod.length is not None and rod.drum is None:  # phi = (d.d - L^2) / 2L
        length = loops.mechanism.value(rod.length)
        residual = float(np.sqrt(max(length**2 + 2 * length * residual, 0.0))) - length
    if loops.is_length[row]:
        return loops.names[row], f"{1e3 * abs(residual):.3g} mm"
    gap = f"{abs(residual):.3g} (cosine of an angle that should be 90 deg)"
    return loops.names[row], gap


def _require_stable(
    context: CalibrationContext, measured_pose: MeasuredPose, x: np.ndarray
) -> None:
    """Reject poses at which an underconstrained machine has no stable equilibrium."""
    if context.equilibrium is None:
        return
    stiffness = stiffness_of(
        measured_pose, context.assembly, context.equilibrium, x, measured_pose.q
    )
    problems = Problems()
    for i in np.flatnonzero(stiffness.min(axis=1) <= 0.0)[:MAX_LISTED_POSES]:
        problem = (
            "hangs in an unstable equilibrium with the nominal geometry "
            f"(scaled stiffness {stiffness[i].min():.3g})"
        )
        remedy = "check encoders and masses, or give a reference pose near the hanging pose"
        label = measured_pose.series.label(int(i))
        problems.add(f"{measured_pose.series.instrument.name}, {label}", problem, remedy)
    PoseError.raise_if_any(problems)


def stiffness_of(
    measured_pose: MeasuredPose,
    assembly: Assembly,
    equilibrium: Equilibrium,
    x: np.ndarray,
    q: np.ndarray,
) -> np.ndarray:
    """Return the smallest scaled stiffness (N, m) of all poses; see `least_stiffness`."""
    _, f_v = measured_pose.evaluate(x, q)
    loops, encoders, _, _ = measured_pose.n_equations
    m, n_v = measured_pose.poses, measured_pose.topology.n_v
    n_closing = loops // m
    n_leading = encoders // m
    balance_count = len(equilibrium.rows)
    result = np.empty((len(measured_pose.series), m))
    for k in range(m):
        columns = slice(k * n_v, (k + 1) * n_v)
        first = k * n_closing
        balance = np.arange(first + n_closing - balance_count, first + n_closing)
        leading = np.arange(loops + k * n_leading, loops + (k + 1) * n_leading)
        kinematic = np.concatenate([np.arange(first, first + n_closing - balance_count), leading])
        result[:, k] = least_stiffness(
            assembly, equilibrium, f_v[:, kinematic, columns], f_v[:, balance, columns]
        )
    return result


def _reached_when_swapped(
    measured_pose: MeasuredPose, x: np.ndarray, assembly: Assembly
) -> list[Problem]:
    """Return a problem for each pair of encoder columns whose swap makes all poses reachable."""
    problems = Problems()
    encoders = measured_pose.series.encoders
    names = [actuator.name for actuator in assembly.mechanism.actuators]
    for i, j in combinations(range(len(names)), 2):
        other = with_encoders(measured_pose, swap_columns(encoders, i, j), assembly.q, x)
        if other.state(x, other.q).is_reached.all():
            problems.add(
                f"{measured_pose.series.instrument.name}.encoders",
                f"all poses are within reach with the columns of {names[i]} and {names[j]} swapped",
                "check the order of these columns",
            )
    return problems


def _close_coordinates(
    measured_pose: MeasuredPose, x: np.ndarray, open_count: int, encoder_noise: np.ndarray
) -> MeasuredPose:
    """Determine the open coordinates by a least-squares solution of the soft equations.

    The combinations of soft equations that determine them become `Elimination.closing`.
    """
    elimination = measured_pose.elimination
    series = measured_pose.series
    sigma = _soft_scale(measured_pose, encoder_noise)
    for _ in range(MAX_NEWTON_STEPS):
        f, f_v = measured_pose.evaluate(x, measured_pose.q)
        _, _, directions = np.linalg.svd(f_v[:, elimination.hard])
        N = directions[:, len(elimination.hard) :, :].transpose(0, 2, 1)
        soft_f_v = f_v[:, elimination.soft] @ N / sigma[:, None]
        U, singular_values, _ = np.linalg.svd(soft_f_v, full_matrices=False)
        # With fewer soft equations than open coordinates, some coordinates are not determined.
        padding_length = max(open_count - singular_values.shape[1], 0)
        singular_values = np.pad(singular_values, ((0, 0), (0, padding_length)))
        largest = np.maximum(singular_values.max(axis=1, keepdims=True), 1e-300)
        is_determined = singular_values > UNKNOWN_RANK_TOLERANCE * largest
        if not is_determined.all():
            undetermined = int((~is_determined).sum(axis=1).max())
            label = series.label(int((~is_determined).any(axis=1).argmax()))
            coordinates = counted(open_count, "coordinate")
            problem = f"leaves {undetermined} of {coordinates} undetermined at {label}"
            remedy = (
                "lock the passive degree of freedom, measure more components, or use `--equilibrium` "
                "if the machine hangs freely"
            )
            raise InputError.of(series.instrument.name, problem, remedy)
        closing = U[:, :, :open_count].transpose(0, 2, 1) / sigma
        measured_pose = replace(measured_pose, elimination=replace(elimination, closing=closing))
        F, F_v = coordinate_equations(f, f_v, measured_pose.elimination)
        q, length = measured_pose.newton_step(measured_pose.q, F, F_v)
        measured_pose = replace(measured_pose, q=q)
        if length < NEWTON_STEP_TOLERANCE:
            break
    return measured_pose


def _soft_scale(measured_pose: MeasuredPose, encoder_noise: np.ndarray) -> np.ndarray:
    """Return the standard deviations of the soft equations; 1 for equations without noise."""
    loops, encoders, _, _ = measured_pose.n_equations
    sigma = np.concatenate(
        [
            np.ones(loops + encoders),
            measured_pose.series.sigma,
            _redundant_noise(measured_pose, encoder_noise),
        ]
    )
    return np.asarray(sigma[measured_pose.elimination.soft])


def _inverse(F_v: np.ndarray, measured_pose: MeasuredPose) -> np.ndarray:
    """Return the inverses (N, n_v, n_v) of the equations' velocity derivatives at all poses.

    Raises:
        PoseError: measured poses are singular, with their numbers.
    """
    try:
        return np.linalg.inv(F_v)
    except np.linalg.LinAlgError as error:
        singular = np.flatnonzero(np.linalg.matrix_rank(F_v) < F_v.shape[1])
        indices = ", ".join(str(i) for i in singular[:MAX_LISTED])
        subject = f"pose {indices}" if len(singular) == 1 else f"poses {indices}"
        verb = "is" if len(singular) == 1 else "are"
        problem = (
            f"{subject} of {len(F_v)} {verb} singular (the measurement does not determine the "
            "coordinates)"
        )
        where = measured_pose.series.instrument.name
        raise PoseError.of(where, problem, "remove these poses") from error


def _redundant_noise(measured_pose: MeasuredPose, encoder_noise: np.ndarray) -> np.ndarray:
    """Return the standard deviations of the encoders whose errors are residuals."""
    return np.tile(np.delete(encoder_noise, list(measured_pose.leading)), measured_pose.poses)


def _whiten(measured_pose: MeasuredPose, x: np.ndarray, encoder_noise: np.ndarray) -> Elimination:
    """Return the elimination with combinations whose residuals have unit covariance.

    The covariance follows from the noise of the instrument and of the encoders. An error e of the
    equations changes the coordinates by -F_v^-1 e, so the soft equations change by
    e_soft - s_v F_v^-1 e_F.
    """
    elimination = measured_pose.elimination
    hard, soft, closing = elimination.hard, elimination.soft, elimination.closing
    loops = measured_pose.n_equations[0]
    n, n_soft, k = len(measured_pose.series), len(soft), closing.shape[1]
    leading_noise = np.tile(encoder_noise[list(measured_pose.leading)], measured_pose.poses)
    redundant_noise = _redundant_noise(measured_pose, encoder_noise)
    sigma = np.concatenate([leading_noise, measured_pose.series.sigma, redundant_noise])
    variance = np.concatenate([np.zeros(loops), sigma**2])
    _, f_v = measured_pose.evaluate(x, measured_pose.q)
    _, F_v = coordinate_equations(np.zeros((n, f_v.shape[1])), f_v, elimination)
    D = f_v[:, soft] @ _inverse(F_v, measured_pose)[:, :, : len(hard)]
    soft_covariance = np.broadcast_to(np.diag(variance[soft]), (n, n_soft, n_soft))
    if measured_pose.deflection is not None:
        soft_covariance = (
            soft_covariance + _thermometer_covariance(measured_pose, x)[:, soft][:, :, soft]
        )
    S = soft_covariance + (D * variance[hard]) @ D.transpose(0, 2, 1)
    if k:
        scale = _soft_scale(measured_pose, encoder_noise)
        Q, _ = np.linalg.qr((closing * scale).transpose(0, 2, 1), mode="complete")
        basis = Q[:, :, k:].transpose(0, 2, 1) / scale
    else:
        basis = np.broadcast_to(np.eye(n_soft), (n, n_soft, n_soft))
    covariance = basis @ S @ basis.transpose(0, 2, 1)
    try:
        whitening = np.linalg.solve(np.linalg.cholesky(covariance), basis)
    except np.linalg.LinAlgError:
        problem = "some residuals have a standard deviation of zero, so they cannot be weighted"
        remedy = "set a positive encoder noise, or use ForwardKinematics() residuals"
        raise InputError.of(measured_pose.series.instrument.name, problem, remedy) from None
    return replace(elimination, whitening=whitening)


def _thermometer_covariance(measured_pose: MeasuredPose, x: np.ndarray) -> np.ndarray:
    """Return the covariance (N, n_eq, n_eq) of the equations due to the noise of thermometers."""
    deflection = measured_pose.deflection
    assert deflection is not None
    n, m = len(measured_pose.series), measured_pose.poses
    state = measured_pose.state(x, measured_pose.q)
    per_kelvin = deflection.temperature_derivatives(x, state.q)
    count = per_kelvin.shape[-1]
    by_pose = measured_pose.by_twist(x, state).reshape(n, -1, m, 6).transpose(0, 2, 1, 3)
    columns = by_pose @ per_kelvin.reshape(n, m, 6, count)
    columns = measured_pose.series.temperature_noise * columns
    return np.asarray((columns @ columns.transpose(0, 1, 3, 2)).sum(axis=1))
