"""The equations of one instrument's poses as CasADi functions, and the elimination of coordinates pose by pose."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
import scipy.linalg

from tauloop.calibrate.instruments import Instrument, Nuisance, Scene
from tauloop.calibrate.measurements import Series
from tauloop.calibrate.unknowns import Unknown
from tauloop.equations.closure import closure
from tauloop.equations.newton_euler import transmission
from tauloop.equations.topology import Topology, integrate
from tauloop.equations.tree import Configuration, tree_motion
from tauloop.equations.values import Values
from tauloop.errors import InputError, PoseError, Problem
from tauloop.functions.assembly import Assembly
from tauloop.functions.batch import BatchFunction
from tauloop.functions.loops import nominal, stacked

#: Newton's method stops when no coordinate moves by more than this (m or rad): what is left then is its square.
STEP = 1e-7
#: Steps before a pose counts as out of reach, and the longest step (m or rad).
ITERATIONS, LONGEST = 40, 0.3
#: Hard equations that are left by more than this (m or rad) are not solved.
SOLVED = 1e-9
#: Steps of the straight line in encoder space from the reference pose to the measured ones.
WAYPOINTS = 12
#: Singular values below this share of the largest are zero: directions that no hard equation holds.
OPEN = 1e-8


class ResidualKind(ABC):
    """How coordinates are eliminated and what is left as residual."""

    @abstractmethod
    def split(self, n_loops: int, n_encoders: int, n_errors: int) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the hard and of the soft equations in (loops, encoders, errors)."""


@dataclass(frozen=True, slots=True)
class ForwardKinematics(ResidualKind):
    """Loops and encoders give the coordinates; residuals are the errors of the instrument, in its own units.

    For any measurement, complete or not.
    """

    def split(self, n_loops: int, n_encoders: int, n_errors: int) -> tuple[np.ndarray, np.ndarray]:
        """Loops and encoders are hard."""
        hard = n_loops + n_encoders
        return np.arange(hard), np.arange(hard, hard + n_errors)


@dataclass(frozen=True, slots=True)
class LoopEquations(ResidualKind):
    """Instrument and encoders give the coordinates; residuals are the loop equations: no forward kinematics.

    The noise of instrument and encoders is propagated into the loops' residuals, pose by pose.
    """

    def split(self, n_loops: int, n_encoders: int, n_errors: int) -> tuple[np.ndarray, np.ndarray]:
        """Encoders and instrument are hard."""
        return np.arange(n_loops, n_loops + n_encoders + n_errors), np.arange(n_loops)


FORWARD_KINEMATICS = ForwardKinematics()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What all series of a problem share: the machine, the unknowns, and all nuisance parameters."""

    assembly: Assembly
    unknowns: tuple[Unknown, ...]
    nuisances: tuple[Nuisance, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Elimination:
    """Constant combinations of the equations of every pose, found once at the start values.

    Attributes:
        hard, soft: indices of the equations.
        closing: combinations (N, k, n_soft) that close the coordinates which hard equations leave open.
        whitening: combinations (N, r, n_soft) that are the residuals, of covariance one.
    """

    hard: np.ndarray
    soft: np.ndarray
    closing: np.ndarray
    whitening: np.ndarray

    def take(self, poses: np.ndarray) -> Elimination:
        """The same at some poses."""
        return replace(self, closing=self.closing[poses], whitening=self.whitening[poses])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StationState:
    """Coordinates of a series' poses at given corrections.

    Attributes:
        q: coordinates (N, n_q).
        rates: derivatives (N, n_eq, n_v) of all equations in the velocities.
        residual: whitened residuals (N, r).
        errors: errors of the instrument (N, n_errors), SI.
        is_reached: whether the coordinates solve the hard equations (N,).
    """

    q: np.ndarray
    rates: np.ndarray
    residual: np.ndarray
    errors: np.ndarray
    is_reached: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Station:
    """One series with its functions.

    Attributes:
        series: the measurements.
        nuisances: of instruments and encoders.
        topology: coordinates.
        equations: (q, x, p, y) -> all equations and their derivatives in the velocities.
        sensitivity: (q, x, p, y) -> derivatives of all equations in the unknowns.
        n_equations: (loops, encoders, errors).
        leading: actuators whose encoders count as equations.
        elimination: which equations give coordinates and which are residuals.
        q: coordinates (N, n_q) at the start values.
    """

    series: Series
    nuisances: tuple[Nuisance, ...]
    topology: Topology
    equations: BatchFunction
    sensitivity: BatchFunction
    n_equations: tuple[int, int, int]
    leading: tuple[int, ...]
    elimination: Elimination
    q: np.ndarray

    @property
    def n_rows(self) -> int:
        """Residuals of one pose."""
        return self.elimination.whitening.shape[1]

    def take(self, poses: np.ndarray) -> Station:
        """The same at some poses."""
        return replace(
            self, series=self.series.take(poses), elimination=self.elimination.take(poses), q=self.q[poses]
        )

    def evaluate(self, x: np.ndarray, q: np.ndarray, encoders: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """All equations (N, n_eq) and their derivatives in the velocities (N, n_eq, n_v)."""
        n = len(q)
        f, columns = self.equations([q, *self._given(x, encoders)], n)
        return f, columns.reshape(n, self.topology.n_v, -1).transpose(0, 2, 1)

    def _given(self, x: np.ndarray, encoders: np.ndarray | None) -> list[np.ndarray]:
        n = len(self.series)
        p = self.series.encoders if encoders is None else encoders
        return [np.broadcast_to(x, (n, len(x))), p, self.series.readings]

    def state(self, x: np.ndarray, q: np.ndarray) -> StationState:
        """Coordinates by Newton's method from q (N, n_q), and what is left."""
        part = self.elimination
        for _ in range(ITERATIONS):
            f, rates = self.evaluate(x, q)
            F, F_v = _square(f, rates, part)
            step = solved(F_v, F[:, :, None])[:, :, 0]
            length = np.abs(step).max(axis=1, initial=0.0)
            if not length.max(initial=0.0) > 0.0:
                break
            step *= np.minimum(1.0, LONGEST / np.maximum(length, 1e-300))[:, None]
            q = integrate(self.topology, q, -step)
            if length.max() < STEP:
                f, rates = self.evaluate(x, q)
                F, _ = _square(f, rates, part)
                break
        loops, encoders, _ = self.n_equations
        return StationState(
            q=q,
            rates=rates,
            residual=(part.whitening @ f[:, part.soft, None])[:, :, 0],
            errors=f[:, loops + encoders :],
            is_reached=np.abs(F).max(axis=1, initial=0.0) < SOLVED,
        )

    def jacobian(self, x: np.ndarray, state: StationState) -> np.ndarray:
        """Derivatives (N, r, n) of the whitened residuals in all unknowns."""
        n, part = len(state.q), self.elimination
        (columns,) = self.sensitivity([state.q, *self._given(x, None)], n)
        f_x = columns.reshape(n, len(x), -1).transpose(0, 2, 1)
        F_x = np.concatenate([f_x[:, part.hard], part.closing @ f_x[:, part.soft]], axis=1)
        F_v = np.concatenate([state.rates[:, part.hard], part.closing @ state.rates[:, part.soft]], axis=1)
        q_x = -solved(F_v, F_x)
        return np.asarray(part.whitening @ (f_x[:, part.soft] + state.rates[:, part.soft] @ q_x))


def _square(f: np.ndarray, rates: np.ndarray, part: Elimination) -> tuple[np.ndarray, np.ndarray]:
    """Equations that give the coordinates: hard ones, and combinations of soft ones."""
    if not part.closing.shape[1]:
        return f[:, part.hard], rates[:, part.hard]
    F = np.concatenate([f[:, part.hard], (part.closing @ f[:, part.soft, None])[:, :, 0]], axis=1)
    return F, np.concatenate([rates[:, part.hard], part.closing @ rates[:, part.soft]], axis=1)


def solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solutions of stacked linear systems (N, m, n) (N, m, k); of least norm where they are not square and regular."""
    if A.shape[1] == A.shape[2]:
        try:
            return np.asarray(np.linalg.solve(A, b))
        except np.linalg.LinAlgError:
            pass
    return np.asarray(np.linalg.pinv(A, rcond=1e-10) @ b)


def build_station(
    reach: Reach, series: Series, kind: ResidualKind, encoder_noise: float, twin: Station | None, *, where: str
) -> Station:
    """Functions and elimination of one series; the functions are those of a twin with the same instrument.

    Raises:
        PoseError: poses out of reach.
        InputError: the instrument reads more than `LoopEquations` can use.
    """
    assembly = reach.assembly
    if twin is None:
        equations, sensitivity, sizes = _functions(reach, series.instrument)
    else:
        equations, sensitivity, sizes = twin.equations, twin.sensitivity, twin.n_equations
    hard, soft = kind.split(*sizes)
    n, n_v = len(series), assembly.loops.topology.n_v
    nothing = Elimination(
        hard=hard, soft=soft, closing=np.zeros((n, 0, len(soft))), whitening=np.zeros((n, 0, len(soft)))
    )
    station = Station(
        series=series,
        nuisances=reach.nuisances,
        topology=assembly.loops.topology,
        equations=equations,
        sensitivity=sensitivity,
        n_equations=sizes,
        leading=assembly.leading,
        elimination=nothing,
        q=np.broadcast_to(assembly.q, (n, assembly.loops.topology.n_q)).copy(),
    )
    zero = np.zeros(len(reach.unknowns))
    if isinstance(kind, ForwardKinematics):
        station = replace(station, q=_followed(station, zero))
        _require_reached(station, zero, assembly, where)
    else:
        station = replace(station, q=station.state(zero, station.q).q)
    _, rates = station.evaluate(zero, station.q)
    if len(hard) > n_v or (np.linalg.matrix_rank(rates[0, hard], tol=OPEN * np.abs(rates[0]).max()) < len(hard)):
        raise InputError(
            Problem(
                where=series.instrument.name,
                what=f"{len(hard)} equations are to give {n_v} coordinates, and they are not independent",
                remedy="use ForwardKinematics() residuals, which need no more than actuators and loops",
            )
        )
    open_count = n_v - len(hard)
    station = _closed(station, zero, open_count) if open_count else station
    return replace(station, elimination=_whitened(station, zero, encoder_noise))


def _functions(reach: Reach, instrument: Instrument) -> tuple[BatchFunction, BatchFunction, tuple[int, int, int]]:
    assembly = reach.assembly
    mechanism, shape = assembly.loops.mechanism, assembly.loops.topology
    q, v = ca.SX.sym("q", shape.n_q), ca.SX.sym("v", shape.n_v)
    x = ca.SX.sym("x", len(reach.unknowns))
    p = ca.SX.sym("p", len(mechanism.actuators))
    y = ca.SX.sym("y", len(instrument.columns))
    nuisances: dict[str, object] = {nuisance.name: nuisance.value for nuisance in reach.nuisances}
    leaves: dict[str, object] = {}
    for i, unknown in enumerate(reach.unknowns):
        for member in unknown.members:
            if member in nuisances:
                nuisances[member] = nuisances[member] + x[i]  # type: ignore[operator]
            else:
                leaves[member] = mechanism.parameters[member].value + x[i]
    values: Values = nominal(mechanism, leaves)
    motion = tree_motion(shape, values, Configuration(q, {}), v, ca.SX(shape.n_v, 1))
    rows = closure(mechanism, shape, values, motion)
    phi, _, _ = stacked(tuple(rows[i] for i in independent_rows(assembly)))
    A = transmission(mechanism, shape, values)
    scalars = ca.vertcat(*(q[j] if j >= 0 else 0 for j in shape.q_of_v))
    leading = list(assembly.leading)
    names = [mechanism.actuators[i].name for i in leading]
    position = ca.vertcat(
        *(nuisances[f"encoder.{a}.scale"] * p[i] + nuisances[f"encoder.{a}.offset"] for i, a in zip(leading, names))  # type: ignore[operator]
    )
    encoders = A[leading, :] @ scalars - position
    scene = Scene(mechanism=mechanism, topology=shape, values=values, motion=motion, nuisances=nuisances)
    error = instrument.error(scene, y)
    f = ca.densify(ca.vertcat(phi, encoders, error))
    f_v = ca.jacobian(f, q) @ _coordinate_rates(shape, q)
    f_x = ca.jacobian(f, x)
    inputs = [q, x, p, y]
    return (
        BatchFunction(ca.Function("equations", inputs, [f, ca.densify(ca.vec(f_v))])),
        BatchFunction(ca.Function("sensitivity", inputs, [ca.densify(ca.vec(f_x))])),
        (phi.numel(), len(leading), error.numel()),
    )


def independent_rows(assembly: Assembly) -> tuple[int, ...]:
    """Loop equations that are independent in *all* coordinates: those frozen in the nominal machine may move here."""
    found = assembly.loops
    count = len(found.names)
    if assembly.rank == count:
        return tuple(range(count))
    _, K = found.residuals(assembly.states)
    columns = np.concatenate(list(found.scaled(K).transpose(0, 2, 1)))
    _, pivots = scipy.linalg.qr(columns, mode="r", pivoting=True)
    return tuple(sorted(int(i) for i in pivots[: assembly.rank]))


def _coordinate_rates(shape: Topology, q: ca.SX) -> ca.SX:
    """N (n_q, n_v) with dq/dt = N v; a quaternion turns by half its product with the angular velocity."""
    N = ca.SX(shape.n_q, shape.n_v)
    for i, j in enumerate(shape.q_of_v):
        if j >= 0:
            N[j, i] = 1
    for iq, iv in shape.quaternions:
        w, x, y, z = (q[iq + k] for k in range(4))
        N[iq : iq + 4, iv : iv + 3] = 0.5 * ca.vertcat(
            ca.horzcat(-x, -y, -z), ca.horzcat(w, z, -y), ca.horzcat(-z, w, x), ca.horzcat(y, -x, w)
        )
    return N


def _followed(station: Station, x: np.ndarray) -> np.ndarray:
    """Coordinates (N, n_q) by continuation from the reference pose along straight lines in encoder space."""
    q = station.q
    loops, encoders, _ = station.n_equations
    f, _ = station.evaluate(x, q)
    # readings at which the reference pose solves the encoders' equations (their scales are near one)
    origin = station.series.encoders.copy()
    origin[:, list(station.leading)] += f[:, loops : loops + encoders]
    for fraction in np.linspace(0.0, 1.0, WAYPOINTS + 1)[1:]:
        waypoint = origin + fraction * (station.series.encoders - origin)
        for _ in range(4):
            f, rates = station.evaluate(x, q, waypoint)
            hard = station.elimination.hard
            step = solved(rates[:, hard], f[:, hard, None])[:, :, 0]
            length = np.abs(step).max(axis=1, initial=0.0)
            step *= np.minimum(1.0, LONGEST / np.maximum(length, 1e-300))[:, None]
            q = integrate(station.topology, q, -step)
            if length.max(initial=0.0) < 1e-3:
                break
    return q


def _require_reached(station: Station, x: np.ndarray, assembly: Assembly, where: str) -> None:
    state = station.state(x, station.q)
    lost = np.flatnonzero(~state.is_reached)
    if not len(lost):
        return
    series = station.series
    loops = station.n_equations[0]
    f, _ = station.evaluate(x, state.q)
    problems = []
    for i in lost[:10]:
        row = int(np.abs(f[i, :loops]).argmax()) if loops else 0
        name = assembly.loops.names[independent_rows(assembly)[row]] if loops else "encoders"
        readings = ", ".join(f"{value:.5g}" for value in series.encoders[i])
        problems.append(
            Problem(
                where=f"{where} ({series.instrument.name}), {series.label(int(i))}",
                what=f"out of reach of the nominal geometry: with encoders at ({readings}) the loop {name!r} stays "
                f"open by {np.abs(f[i, :loops]).max(initial=0.0):.3g}",
                remedy="check the units, signs and order of the encoder columns (SI here), or leave the pose out",
            )
        )
    if len(lost) > 10:
        problems.append(Problem(where=where, what=f"and {len(lost) - 10} more poses of {len(series)}"))
    raise PoseError(problems)


def _closed(station: Station, x: np.ndarray, open_count: int) -> Station:
    """Close open coordinates so that soft equations are left as small as they can be, and keep how."""
    part = station.elimination
    sigma = _soft_scale(station)
    closing = np.zeros((len(station.series), open_count, len(part.soft)))
    for _ in range(ITERATIONS):
        f, rates = station.evaluate(x, station.q)
        _, _, directions = np.linalg.svd(rates[:, part.hard])
        N = directions[:, len(part.hard) :, :].transpose(0, 2, 1)
        U, sizes, _ = np.linalg.svd(rates[:, part.soft] @ N / sigma[:, None], full_matrices=False)
        held = sizes > OPEN * np.maximum(sizes.max(axis=1, keepdims=True), 1e-300)
        if not held.all():
            raise InputError(
                Problem(
                    where=station.series.instrument.name,
                    what=f"leaves {int((~held).sum(axis=1).max())} of {open_count} coordinates undetermined at "
                    f"{station.series.label(int((~held).any(axis=1).argmax()))}",
                    remedy="lock the passive freedom, or measure more components",
                )
            )
        closing = U[:, :, :open_count].transpose(0, 2, 1) / sigma
        station = replace(station, elimination=replace(part, closing=closing))
        F, F_v = _square(f, rates, station.elimination)
        step = solved(F_v, F[:, :, None])[:, :, 0]
        length = np.abs(step).max(axis=1)
        step *= np.minimum(1.0, LONGEST / np.maximum(length, 1e-300))[:, None]
        station = replace(station, q=integrate(station.topology, station.q, -step))
        if length.max() < STEP:
            break
    return station


def _soft_scale(station: Station) -> np.ndarray:
    """Standard deviations of the soft equations, one for those without noise of their own."""
    loops, encoders, errors = station.n_equations
    sigma = np.concatenate([np.ones(loops + encoders), station.series.sigma])
    return np.asarray(sigma[station.elimination.soft])


def _whitened(station: Station, x: np.ndarray, encoder_noise: float) -> Elimination:
    """Residual combinations of covariance one, from the noise of the instrument and of the encoders.

    An error e of the equations moves the coordinates by -F_v^-1 e, so the soft ones vary by e_soft - s_v F_v^-1 e_F.
    """
    part = station.elimination
    loops, encoders, _ = station.n_equations
    n, n_soft, k = len(station.series), len(part.soft), part.closing.shape[1]
    variance = np.concatenate([np.zeros(loops), np.full(encoders, encoder_noise**2), station.series.sigma**2])
    _, rates = station.evaluate(x, station.q)
    _, F_v = _square(np.zeros((n, rates.shape[1])), rates, part)
    D = rates[:, part.soft] @ np.linalg.inv(F_v)[:, :, : len(part.hard)]
    S = np.broadcast_to(np.diag(variance[part.soft]), (n, n_soft, n_soft)) + (D * variance[part.hard]) @ D.transpose(0, 2, 1)
    if k:
        scale = _soft_scale(station)
        Q, _ = np.linalg.qr((part.closing * scale).transpose(0, 2, 1), mode="complete")
        basis = Q[:, :, k:].transpose(0, 2, 1) / scale
    else:
        basis = np.broadcast_to(np.eye(n_soft), (n, n_soft, n_soft))
    covariance = basis @ S @ basis.transpose(0, 2, 1)
    try:
        whitening = np.linalg.solve(np.linalg.cholesky(covariance), basis)
    except np.linalg.LinAlgError:
        raise InputError(
            Problem(
                where=station.series.instrument.name,
                what="some residuals have no noise, so they cannot be weighted",
                remedy="give the encoders a noise above zero, or use ForwardKinematics() residuals",
            )
        ) from None
    return replace(part, whitening=whitening)
