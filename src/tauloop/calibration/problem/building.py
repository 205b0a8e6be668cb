"""Setting a series up: coordinates at the start values, and which combinations of its equations are residuals."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from tauloop.calibration.measurements.series import Series
from tauloop.calibration.problem.equilibrium import Equilibrium, least_stiffness
from tauloop.calibration.problem.pose_equations import Reach, independent_rows, station_functions
from tauloop.calibration.problem.residuals import ForwardKinematics, ResidualKind
from tauloop.calibration.problem.stations import ITERATIONS, STEP, Elimination, Station, square
from tauloop.common.errors import InputError, PoseError, Problem, Problems
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.ports import MAX_LISTED

#: StepGauge of the straight line in encoder space from the reference pose to the measured ones.
WAYPOINTS = 12
#: Singular values below this share of the largest are zero: directions that no hard equation holds.
OPEN = 1e-8


def build_station(
    reach: Reach,
    series: Series,
    kind: ResidualKind,
    encoder_noise: np.ndarray,
    twin: Station | None,
    *,
    where: str,
) -> Station:
    """Functions and elimination of one series; the functions are those of a twin with the same instrument.

    Args:
        reach: the machine and the unknowns.
        series: the measurements.
        kind: how residuals are made.
        encoder_noise: standard deviations of all encoders (n_u,), m or rad.
        twin: a station with the same instrument.
        where: for messages.

    Raises:
        PoseError: poses out of reach.
        InputError: the instrument reads more than `LoopEquations` can use.
    """
    assembly = reach.assembly
    functions = (
        twin.functions
        if twin is not None
        else station_functions(reach, series.instrument, len(series))
    )
    if reach.equilibrium is not None and not isinstance(kind, ForwardKinematics):
        what = "equilibrium gives coordinates together with loops and encoders, and here loops are the residuals"
        remedy = "use ForwardKinematics() residuals (`--residuals forward-kinematics`)"
        raise InputError.of(series.instrument.name, what, remedy)
    if series.instrument.poses > 1 and not isinstance(kind, ForwardKinematics):
        what = (
            f"one reading belongs to {series.instrument.poses} poses, so it cannot give coordinates"
        )
        remedy = "use ForwardKinematics() residuals (`--residuals forward-kinematics`)"
        raise InputError.of(series.instrument.name, what, remedy)
    hard, soft = kind.split(*functions.sizes)
    n = len(series)
    n_v = series.instrument.poses * assembly.topology.n_v
    nothing = Elimination(
        hard=hard,
        soft=soft,
        closing=np.zeros((n, 0, len(soft))),
        whitening=np.zeros((n, 0, len(soft))),
    )
    station = Station(
        series=series,
        nuisances=reach.nuisances,
        topology=assembly.topology,
        functions=functions,
        leading=assembly.leading,
        elimination=nothing,
        q=np.broadcast_to(assembly.q, (len(series.encoders), assembly.topology.n_q)).copy(),
        scale=np.tile(assembly.loops.velocity_scale, series.instrument.poses),
    )
    zero = np.zeros(len(reach.unknowns))
    if isinstance(kind, ForwardKinematics):
        station = replace(station, q=followed(station, zero))
        _require_reached(station, zero, assembly, where)
        _require_stable(reach, station, zero)
    else:
        station = replace(station, q=station.state(zero, station.q).q)
    _, rates = station.evaluate(zero, station.q)
    _require_finite(station, rates)
    if len(hard) > n_v or (
        np.linalg.matrix_rank(rates[0, hard], tol=OPEN * np.abs(rates[0]).max()) < len(hard)
    ):
        what = f"{len(hard)} equations are to give {n_v} coordinates, and they are not independent"
        remedy = "use ForwardKinematics() residuals, which need no more than actuators and loops"
        raise InputError.of(series.instrument.name, what, remedy)
    open_count = n_v - len(hard)
    station = _closed(station, zero, open_count, encoder_noise) if open_count else station
    return replace(station, elimination=_whitened(station, zero, encoder_noise))


def _require_finite(station: Station, rates: np.ndarray) -> None:
    """Refuse readings without derivatives, such as a distance between two poses that coincide."""
    series = station.series
    problems = Problems()
    for i in np.flatnonzero(~np.isfinite(rates).all(axis=(1, 2))):
        what = "the reading has no derivative there: its poses coincide"
        problems.add(
            f"{series.instrument.name}, {series.label(int(i))}",
            what,
            "leave it out, or check the encoders",
        )
    InputError.raise_if_any(problems)


def followed(station: Station, x: np.ndarray) -> np.ndarray:
    """Coordinates (N m, n_q) by continuation from the reference pose along straight lines in encoder space."""
    q = station.q
    loops, encoders, _, _ = station.n_equations
    f, _ = station.evaluate(x, q)
    # readings at which the reference pose solves the encoders' equations (their scales are near
    # one)
    origin = station.series.encoders.copy()
    origin[:, list(station.leading)] += f[:, loops : loops + encoders].reshape(len(origin), -1)
    for fraction in np.linspace(0.0, 1.0, WAYPOINTS + 1)[1:]:
        waypoint = origin + fraction * (station.series.encoders - origin)
        for _ in range(4):
            f, rates = station.evaluate(x, q, waypoint)
            hard = station.elimination.hard
            q, length = station.stepped(q, f[:, hard], rates[:, hard])
            if length < 1e-3:
                break
    return q


def exchanged(encoders: np.ndarray, i: int, j: int) -> np.ndarray:
    """Readings (N, n_u) with two columns exchanged."""
    result = encoders.copy()
    result[:, [i, j]] = result[:, [j, i]]
    return result


def with_encoders(
    station: Station, encoders: np.ndarray, reference: np.ndarray, x: np.ndarray
) -> Station:
    """The same series with other readings of the encoders, its coordinates followed from the reference pose (n_q,)."""
    other = replace(station, series=replace(station.series, encoders=encoders))
    other = replace(other, q=np.broadcast_to(reference, station.q.shape).copy())
    return replace(other, q=followed(other, x))


def _require_reached(station: Station, x: np.ndarray, assembly: Assembly, where: str) -> None:
    state = station.state(x, station.q)
    lost = np.flatnonzero(~state.is_reached)
    if not len(lost):
        return
    series = station.series
    loops = station.n_equations[0]
    f, _ = station.evaluate(x, state.q)
    problems = Problems()
    for i in lost[:10]:
        name, gap = "encoders", "an unknown length"
        if loops:
            name, gap = _widest_gap(assembly, f[i, :loops], loops // station.poses)
        poses = series.encoders[series.rows(np.array([i]))]
        readings = "; ".join(", ".join(f"{value:.5g}" for value in pose) for pose in poses)
        problems.add(
            f"{where} ({series.instrument.name}), {series.label(int(i))}",
            f"out of reach of the nominal geometry: with encoders at ({readings}) the loop {name!r} stays "
            f"open by {gap}",
            "check the units, signs and order of the encoder columns (SI here), or leave the pose out",
        )
    if len(lost) > 10:
        problems.add(where, f"and {len(lost) - 10} more readings of {len(series)}")
    problems += _reached_when_swapped(station, x, assembly)
    raise PoseError(problems)


def _widest_gap(assembly: Assembly, phi: np.ndarray, count: int) -> tuple[str, str]:
    """The loop equation (of the independent ones) that is left most, and by how much, with its unit.

    Args:
        assembly: the machine.
        phi: what all equations of the poses of a reading leave.
        count: equations of one pose, those of equilibrium last.
    """
    loops = assembly.loops
    rows = independent_rows(assembly)
    k = int(np.abs(phi).argmax())
    left = float(phi[k])
    place = k % count
    if place >= len(rows):
        return "equilibrium", f"{1e3 * abs(left):.3g} mm of its scaled balance"
    row = rows[place]
    rod = next((rod for rod in loops.mechanism.rods if rod.name == loops.elements[row]), None)
    if rod is not None and rod.length is not None:  # phi = (d.d - L^2) / 2L
        length = loops.mechanism.value(rod.length)
        left = float(np.sqrt(max(length**2 + 2 * length * left, 0.0))) - length
    if loops.is_length[row]:
        return loops.names[row], f"{1e3 * abs(left):.3g} mm"
    return loops.names[row], f"{abs(left):.3g} (the cosine of an angle that should be a right one)"


def _require_stable(reach: Reach, station: Station, x: np.ndarray) -> None:
    """Refuse poses at which a machine that hangs freely would not stay."""
    if reach.equilibrium is None:
        return
    stiffness = stiffness_of(station, reach.assembly, reach.equilibrium, x, station.q)
    problems = Problems()
    for i in np.flatnonzero(stiffness.min(axis=1) <= 0.0)[:10]:
        what = f"hangs in an unstable equilibrium with the nominal geometry (scaled stiffness {stiffness[i].min():.3g})"
        remedy = "check encoders and masses, or give a reference pose near the one that hangs"
        problems.add(
            f"{station.series.instrument.name}, {station.series.label(int(i))}", what, remedy
        )
    PoseError.raise_if_any(problems)


def stiffness_of(
    station: Station, assembly: Assembly, equilibrium: Equilibrium, x: np.ndarray, q: np.ndarray
) -> np.ndarray:
    """Least scaled stiffness (N, m) of all poses against motions with held actuators; see `least_stiffness`."""
    _, rates = station.evaluate(x, q)
    loops, encoders, _, _ = station.n_equations
    m, n_v = station.poses, station.topology.n_v
    closing, read = loops // m, encoders // m
    balance_count = len(equilibrium.rows)
    result = np.empty((len(station.series), m))
    for k in range(m):
        columns = slice(k * n_v, (k + 1) * n_v)
        first = k * closing
        balance = np.arange(first + closing - balance_count, first + closing)
        leading = np.arange(loops + k * read, loops + (k + 1) * read)
        kinematic = np.concatenate([np.arange(first, first + closing - balance_count), leading])
        result[:, k] = least_stiffness(
            assembly, equilibrium, rates[:, kinematic, columns], rates[:, balance, columns]
        )
    return result


def _reached_when_swapped(station: Station, x: np.ndarray, assembly: Assembly) -> list[Problem]:
    """Pairs of encoder columns whose swap brings all poses within reach."""
    names, problems = [actuator.name for actuator in assembly.mechanism.actuators], Problems()
    for i, j in combinations(range(len(names)), 2):
        other = with_encoders(station, exchanged(station.series.encoders, i, j), assembly.q, x)
        if other.state(x, other.q).is_reached.all():
            what = (
                f"all poses are within reach with the columns of {names[i]} and {names[j]} swapped"
            )
            where = f"{station.series.instrument.name}.encoders"
            problems.add(where, what, "check the order of these columns")
    return problems


def _closed(station: Station, x: np.ndarray, open_count: int, encoder_noise: np.ndarray) -> Station:
    """Close open coordinates so that soft equations are left as small as they can be, and keep how."""
    part = station.elimination
    sigma = _soft_scale(station, encoder_noise)
    closing = np.zeros((len(station.series), open_count, len(part.soft)))
    for _ in range(ITERATIONS):
        f, rates = station.evaluate(x, station.q)
        _, _, directions = np.linalg.svd(rates[:, part.hard])
        N = directions[:, len(part.hard) :, :].transpose(0, 2, 1)
        U, sizes, _ = np.linalg.svd(rates[:, part.soft] @ N / sigma[:, None], full_matrices=False)
        # where fewer equations are left than coordinates are open, nothing holds the others
        sizes = np.pad(sizes, ((0, 0), (0, max(open_count - sizes.shape[1], 0))))
        held = sizes > OPEN * np.maximum(sizes.max(axis=1, keepdims=True), 1e-300)
        if not held.all():
            what = (
                f"leaves {int((~held).sum(axis=1).max())} of {open_count} coordinates undetermined at "
                f"{station.series.label(int((~held).any(axis=1).argmax()))}"
            )
            remedy = "lock the passive freedom, measure more components, or use `--equilibrium` where the machine hangs"
            raise InputError.of(station.series.instrument.name, what, remedy)
        closing = U[:, :, :open_count].transpose(0, 2, 1) / sigma
        station = replace(station, elimination=replace(part, closing=closing))
        q, length = station.stepped(station.q, *square(f, rates, station.elimination))
        station = replace(station, q=q)
        if length < STEP:
            break
    return station


def _soft_scale(station: Station, encoder_noise: np.ndarray) -> np.ndarray:
    """Standard deviations of the soft equations, one for those without noise of their own."""
    loops, encoders, _, _ = station.n_equations
    sigma = np.concatenate(
        [np.ones(loops + encoders), station.series.sigma, _of_spares(station, encoder_noise)]
    )
    return np.asarray(sigma[station.elimination.soft])


def _inverse(F_v: np.ndarray, station: Station) -> np.ndarray:
    """Inverses of the equations' rates (N, n_v, n_v) at all poses.

    Raises:
        PoseError: a measured pose is singular: which ones.
    """
    try:
        return np.linalg.inv(F_v)
    except np.linalg.LinAlgError as error:
        bad = np.flatnonzero(np.linalg.matrix_rank(F_v) < F_v.shape[1])
        listed = ", ".join(str(i) for i in bad[:MAX_LISTED])
        what = (
            "singular pose (of the measurement: its coordinates do not follow from it) in pose "
            f"{listed} of {len(F_v)}"
        )
        where = station.series.instrument.name
        raise PoseError.of(where, what, "leave these poses out") from error


def _of_spares(station: Station, encoder_noise: np.ndarray) -> np.ndarray:
    """Standard deviations of the encoders whose misfits are residuals."""
    return np.tile(np.delete(encoder_noise, list(station.leading)), station.poses)


def _whitened(station: Station, x: np.ndarray, encoder_noise: np.ndarray) -> Elimination:
    """Residual combinations of covariance one, from the noise of the instrument and of the encoders.

    An error e of the equations moves the coordinates by -F_v^-1 e, so the soft ones vary by e_soft
    - s_v F_v^-1 e_F.
    """
    part = station.elimination
    loops = station.n_equations[0]
    n, n_soft, k = len(station.series), len(part.soft), part.closing.shape[1]
    of_leading = np.tile(encoder_noise[list(station.leading)], station.poses)
    sigma = (of_leading, station.series.sigma, _of_spares(station, encoder_noise))
    variance = np.concatenate([np.zeros(loops), *(part_sigma**2 for part_sigma in sigma)])
    _, rates = station.evaluate(x, station.q)
    _, F_v = square(np.zeros((n, rates.shape[1])), rates, part)
    D = rates[:, part.soft] @ _inverse(F_v, station)[:, :, : len(part.hard)]
    S = np.broadcast_to(np.diag(variance[part.soft]), (n, n_soft, n_soft)) + (
        D * variance[part.hard]
    ) @ D.transpose(0, 2, 1)
    if k:
        scale = _soft_scale(station, encoder_noise)
        Q, _ = np.linalg.qr((part.closing * scale).transpose(0, 2, 1), mode="complete")
        basis = Q[:, :, k:].transpose(0, 2, 1) / scale
    else:
        basis = np.broadcast_to(np.eye(n_soft), (n, n_soft, n_soft))
    covariance = basis @ S @ basis.transpose(0, 2, 1)
    try:
        whitening = np.linalg.solve(np.linalg.cholesky(covariance), basis)
    except np.linalg.LinAlgError:
        what = "some residuals have no noise, so they cannot be weighted"
        remedy = "give the encoders a noise above zero, or use ForwardKinematics() residuals"
        raise InputError.of(station.series.instrument.name, what, remedy) from None
    return replace(part, whitening=whitening)
