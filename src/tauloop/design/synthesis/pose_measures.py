"""Measures of a pose as expressions of parameters and position; larger raw measures are worse."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.compiler.catalogue import KINEMATICS
from tauloop.compiler.expressions import MotionState
from tauloop.compiler.program import Evaluate, Program
from tauloop.equations.operators import fast_operators
from tauloop.equations.values import BatchFunction
from tauloop.geometry.clearance import rod_clearance
from tauloop.model import Model

#: Kinds of geometric measures.
REACH, RANGE, SPEED, CLEARANCE, FOOTPRINT = "reach", "range", "speed", "clearance", "footprint"
#: Kinds of measures that follow from singular values.
CONDITION = "condition"
LARGEST_SINGULAR_VALUE = "largest_singular_value"
SMALLEST_SINGULAR_VALUE = "smallest_singular_value"
#: A number that makes zero positive and leaves all other numbers unchanged when it is added.
_TINY = 1e-200
#: Relative residual below which a redundant equation counts as closed.
CLOSED_TOLERANCE = 1e-8
#: Number of sweeps of Jacobi's method by the number of rows. Each sweep squares the error.
JACOBI_SWEEPS = {4: 5, 5: 6, 6: 6}
#: Lower bound of computed singular values, so that ratios are finite.
_MIN_SINGULAR_VALUE = 1e-150
#: Values above this stand for "no bound" in the bounds of a closed form.
_UNBOUNDED = 1e299


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasureRequest:
    """The measures of a pose that are computed.

    Attributes:
        ranges: lower and upper limit of coordinates by name, rad or m.
        compute_condition: whether to compute the condition number of the Jacobian from platform to
            actuator velocities.
        compute_singular_values: whether to compute the largest and smallest singular value of that
            Jacobian.
        tool_speed, turning_speed: linear and angular speed of the platform, m/s and rad/s, at which
            the largest speed of each actuator over all directions of motion is computed; zero:
            none.
        compute_clearance: whether to compute distances between center lines of rods.
        compute_footprint: whether to compute the extent of joints and rod ends seen from above.
        length: length, m, that scales the rotations of the platform and of rotary actuators in the
            singular values. Zero: the machine's characteristic length scales the rotations of the
            platform, and those of actuators are not scaled.
    """

    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    compute_condition: bool = False
    compute_singular_values: bool = False
    tool_speed: float = 0.0
    turning_speed: float = 0.0
    compute_clearance: bool = False
    compute_footprint: bool = False
    length: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureColumn:
    """A column of the measures of a pose.

    Its value is that of the quantity, SI. The raw measure is a monotonic function of the value that
    is cheap to compute, and larger where the pose is worse:

    - reach: (d²/L² - 1)/2 or (1 - d²/L²)/2, positive if the ends of a rod of length L are too far
      apart or too close at the distance d; for a redundant equation, the ratio of its residual to the
      tolerance, minus 1;
    - range of an angle q: -cos(q - middle); of a length q: |q - middle|;
    - condition number, largest singular value: the square of the value;
    - smallest singular value: minus the square of the value;
    - speed: speed of an actuator;
    - clearance: minus the squared distance between the center lines of two rods;
    - footprint: extent along x, -x, y or -y.

    Attributes:
        kind: kind of the measure, such as `REACH`.
        element: name of the rod, coordinate, actuator, pair of rods or side; empty for measures of
            the whole machine.
        is_angle: whether a range is that of an angle.
        middle: middle of a range, rad or m.
    """

    kind: str
    element: str
    is_angle: bool = False
    middle: float = 0.0

    def value(self, raw: np.ndarray) -> np.ndarray:
        """Return the values (N,), SI, for raw measures (N,).

        The value of a range is the distance from its middle.
        """
        if self.kind == RANGE and self.is_angle:
            return np.arccos(np.clip(-raw, -1.0, 1.0))
        if self.kind in (CONDITION, LARGEST_SINGULAR_VALUE):
            return np.sqrt(np.maximum(raw, 0.0))
        if self.kind in (SMALLEST_SINGULAR_VALUE, CLEARANCE):
            return np.sqrt(np.maximum(-raw, 0.0))
        return np.asarray(raw)

    def raw(self, value: float) -> float:
        """Return the raw measure for a value, such as a limit."""
        if not math.isfinite(value):
            return math.inf
        if self.kind == RANGE and self.is_angle:
            return math.inf if value >= math.pi else -math.cos(value)
        if self.kind in (CONDITION, LARGEST_SINGULAR_VALUE):
            return value * value
        if self.kind in (SMALLEST_SINGULAR_VALUE, CLEARANCE):
            return -value * value if value > 0.0 else math.inf
        return value

    def slope(self, raw: np.ndarray) -> np.ndarray:
        """Return the derivatives (N,) of the value with respect to the raw measure."""
        value = np.maximum(self.value(raw), 1e-12)
        if self.kind == RANGE and self.is_angle:
            return 1.0 / np.sqrt(np.maximum(1.0 - raw * raw, 1e-12))
        if self.kind in (CONDITION, LARGEST_SINGULAR_VALUE):
            return 0.5 / value
        if self.kind in (SMALLEST_SINGULAR_VALUE, CLEARANCE):
            return -0.5 / value
        return np.ones_like(raw)


class PoseMeasures:
    """Measures of the poses of a machine, and derivatives with respect to parameters and position."""

    def __init__(self, model: Model, names: Sequence[str], request: MeasureRequest) -> None:
        """Build the expressions.

        Args:
            model: the machine.
            names: independent parameters that are variables.
            request: the measures.

        Raises:
            InputError: the machine has passive degrees of freedom, too few actuators, actuators of
                several units where a single unit is needed, or loops without closed forms; or a name
                is unknown.
        """
        _require_suitable(model, request)
        self.model = Model(model.mechanism, names)
        self.names = tuple(names)
        self.request = request
        self._columns: list[MeasureColumn] = []
        self._direct: list[ca.SX] = []
        with fast_operators():
            self._build(self.model.platform.runner.catalogue.state("synthesis", 1))

    @property
    def columns(self) -> tuple[MeasureColumn, ...]:
        """Columns of the measures: those with expressions, then those from singular values."""
        return tuple(self._columns)

    def _build(self, state: MotionState) -> None:
        """Build the expressions of all measures.

        Raises:
            InputError: the loops of the machine have no closed forms.
        """
        J = self._scaled_jacobian(state)
        self._add_reach(state)
        self._add_ranges(state)
        self._add_speeds(state)
        self._add_distances(state)
        n_direct = len(self._direct)
        singular_measures = self._singular_measures(J)
        direct = ca.vertcat(*self._direct)
        measures = ca.vertcat(direct, *singular_measures)
        self.program: Program = state.builder.finish({"measures": ca.densify(measures)})
        if any(not isinstance(step, Evaluate) for step in self.program.steps):
            what = f"the loops of {self.model.mechanism.name} have no closed forms"
            remedy = "give a machine whose inverse kinematics can be solved leg by leg"
            raise InputError.of("machine", what, remedy)
        self._n_direct = n_direct
        self._symbols = (state.builder.declared("theta"), state.builder.declared("position"))
        self._outputs = (direct, ca.vec(J))
        self._constants = {
            name: state.builder.declared(name)
            for name in ("velocity", "start")
            if state.builder.declares(name)
        }

    @cached_property
    def _derivatives(self) -> BatchFunction:
        """Direct measures, Jacobian, and their derivatives by parameters and position."""
        variables = ca.vertcat(*self._symbols)
        outputs = [ca.densify(output) for output in self._outputs]
        outputs += [ca.densify(ca.vec(ca.jacobian(output, variables))) for output in self._outputs]
        return self._function(outputs)

    @cached_property
    def _direct_values(self) -> BatchFunction:
        """Direct measures and Jacobian."""
        return self._function([ca.densify(output) for output in self._outputs])

    def _function(self, outputs: list[ca.SX]) -> BatchFunction:
        """Return a function of parameters and position, with constant velocity and start values."""
        nominal = self.model.platform.runner.nominal
        constants = [
            ca.DM(nominal.get(name, np.zeros(symbol.numel())))
            for name, symbol in self._constants.items()
        ]
        replaced = ca.substitute(
            outputs, list(self._constants.values()), [ca.SX(value) for value in constants]
        )
        return BatchFunction(
            ca.Function("pose_measures", list(self._symbols), replaced, {"cse": True})
        )

    def values(self, theta: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Return raw measures (N, c), by CasADi and NumPy.

        Args:
            theta: parameters (N, t).
            position: positions of the platform (N, p).
        """
        n = len(theta)
        arrays = [np.ascontiguousarray(theta), np.ascontiguousarray(position)]
        direct, flat = self._direct_values(arrays, n)
        if self._n_direct == len(self._columns):
            return direct
        J = flat.reshape(n, -1, len(self.model.mechanism.actuators)).transpose(0, 2, 1)
        in_reach = np.isfinite(J).all(axis=(1, 2))
        kinds = [column.kind for column in self._columns[self._n_direct :]]
        values = np.full((n, len(kinds)), np.nan)
        sigma = np.linalg.svd(J[in_reach], compute_uv=False)
        for k, kind in enumerate(kinds):
            values[in_reach, k] = _raw_of_singular_values(kind, sigma)
        return np.concatenate([direct, values], axis=1)

    def evaluate(self, theta: np.ndarray, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return raw measures (N, c) and their derivatives (N, c, t + p), by CasADi and NumPy.

        Where singular values coincide, the derivative of one of them is returned.

        Args:
            theta: parameters (N, t).
            position: positions of the platform (N, p).
        """
        n = len(theta)
        width = theta.shape[1] + position.shape[1]
        arrays = [np.ascontiguousarray(theta), np.ascontiguousarray(position)]
        direct, flat, d_direct, d_flat = self._derivatives(arrays, n)
        d_direct = d_direct.reshape(n, width, -1).transpose(0, 2, 1)
        values = [direct]
        slopes = [d_direct]
        if self._n_direct < len(self._columns):
            rows = len(self.model.mechanism.actuators)
            J = flat.reshape(n, -1, rows).transpose(0, 2, 1)
            dJ = d_flat.reshape(n, width, -1, rows).transpose(0, 3, 2, 1)
            singular_values, singular_slopes = self._from_singular_values(J, dJ)
            values.append(singular_values)
            slopes.append(singular_slopes)
        return np.concatenate(values, axis=1), np.concatenate(slopes, axis=1)

    def _from_singular_values(self, J: np.ndarray, dJ: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return measures (N, c) of singular values and their derivatives (N, c, v)."""
        in_reach = np.isfinite(J).all(axis=(1, 2))
        n = len(J)
        width = dJ.shape[3]
        kinds = [column.kind for column in self._columns[self._n_direct :]]
        values = np.full((n, len(kinds)), np.nan)
        slopes = np.full((n, len(kinds), width), np.nan)
        U, sigma, Vt = np.linalg.svd(J[in_reach], full_matrices=False)
        d_sigma = np.einsum("nrk,nrmv,nkm->nkv", U, dJ[in_reach], Vt)
        high, low = sigma[:, 0], np.maximum(sigma[:, -1], _MIN_SINGULAR_VALUE)
        d_high = d_sigma[:, 0]
        d_low = d_sigma[:, -1]
        for k, kind in enumerate(kinds):
            values[in_reach, k] = _raw_of_singular_values(kind, sigma)
            if kind == CONDITION:
                d_log = d_high / high[:, None] - d_low / low[:, None]
                slopes[in_reach, k] = 2.0 * ((high / low) ** 2)[:, None] * d_log
            elif kind == LARGEST_SINGULAR_VALUE:
                slopes[in_reach, k] = 2.0 * high[:, None] * d_high
            else:
                slopes[in_reach, k] = -2.0 * low[:, None] * d_low
        return values, slopes

    def _add(self, column: MeasureColumn, expression: ca.SX) -> None:
        """Add a direct measure."""
        self._columns.append(column)
        self._direct.append(expression)

    def _scaled_jacobian(self, state: MotionState) -> ca.SX:
        """Return the Jacobian of actuator velocities with respect to platform velocities.

        Angular velocities are multiplied by the length of the request. If the request has none, the
        machine's characteristic length multiplies those of the platform, and those of actuators are
        not scaled.
        """
        requested_length = self.request.length
        length = requested_length or self.model.assembly.loops.length
        is_angular = [unit == "rad/s" for unit in state.ports.velocity.units]
        J = state.transmission @ state.embedding
        J = J @ ca.diag(ca.DM([1.0 / length if angular else 1.0 for angular in is_angular]))
        if not requested_length:
            return J
        is_rotary = [unit == "rad" for unit in self.model.actuator_units]
        return ca.diag(ca.DM([requested_length if rotary else 1.0 for rotary in is_rotary])) @ J

    def _add_reach(self, state: MotionState) -> None:
        """Add the measures of reach of all rods and redundant equations."""
        extremes = state.builder.extremes
        length = self.model.assembly.loops.length
        forms = self.model.platform.runner.program(KINEMATICS[0]).closed_forms
        for k, form in enumerate(forms):
            # Bounds of the residual of loop k over its unknown, and the length of its rod (zero for
            # other loops).
            smallest = extremes[3 * k]
            largest = extremes[3 * k + 1]
            rod_length = extremes[3 * k + 2]
            scale = ca.SX(length) if rod_length.is_zero() else rod_length * rod_length
            measure = smallest
            if not (largest.is_constant() and float(largest) > _UNBOUNDED):
                measure = elementwise_maximum(smallest, -largest)
            measure = measure / scale
            if not form.unknown:
                measure = measure / CLOSED_TOLERANCE - 1.0
            self._add(MeasureColumn(kind=REACH, element=form.element), measure)

    def _add_ranges(self, state: MotionState) -> None:
        """Add distances of limited coordinates from the middle of their range."""
        topology = self.model.topology
        index = {name: i for i, name in enumerate(topology.coordinate_names)}
        for name, (lower, upper) in self.request.ranges.items():
            i = index[name]
            middle = 0.5 * (lower + upper)
            is_angle = bool(topology.is_angle[i])
            if is_angle:
                cosine, sine = state.configuration.pair(i)
                measure = -(math.cos(middle) * cosine + math.sin(middle) * sine)
            else:
                measure = ca.fabs(state.configuration.q[i] - middle)
            column = MeasureColumn(kind=RANGE, element=name, is_angle=is_angle, middle=middle)
            self._add(column, measure)

    def _add_speeds(self, state: MotionState) -> None:
        """Add the largest speeds of actuators over all directions, at the speeds of the request.

        The largest speed of actuator k at the linear speed s and the angular speed w is
        s |J_k,linear| + w |J_k,angular|.
        """
        linear_speed, angular_speed = self.request.tool_speed, self.request.turning_speed
        if not (linear_speed or angular_speed):
            return
        is_angular = [unit == "rad/s" for unit in state.ports.velocity.units]
        J = state.transmission @ state.embedding
        for k, actuator in enumerate(self.model.mechanism.actuators):
            total = ca.SX(0)
            for uses_angular, speed in ((False, linear_speed), (True, angular_speed)):
                row = [J[k, i] for i, angular in enumerate(is_angular) if angular == uses_angular]
                if row and speed:
                    total += speed * ca.sqrt(ca.sumsqr(ca.vertcat(*row)))
            self._add(MeasureColumn(kind=SPEED, element=actuator.name), total)

    def _add_distances(self, state: MotionState) -> None:
        """Add distances between rods, and the extent seen from above."""
        if not (self.request.compute_clearance or self.request.compute_footprint):
            return
        motion = state.motion(state.at_rest)
        mechanism = self.model.mechanism
        ends = {
            rod.name: (motion.point(rod.start).p, motion.point(rod.end).p) for rod in mechanism.rods
        }
        if self.request.compute_clearance:
            for first, second in rod_clearance(self.model).pairs:
                names = mechanism.rods[int(first)].name, mechanism.rods[int(second)].name
                measure = -_squared_distance(*ends[names[0]], *ends[names[1]])
                self._add(MeasureColumn(kind=CLEARANCE, element=" and ".join(names)), measure)
        if self.request.compute_footprint:
            joints = [motion.point(joint.parent).p for joint in mechanism.joints]
            points = [*joints, *(point for pair in ends.values() for point in pair)]
            for axis, letter in enumerate("xy"):
                for sign, side in ((1.0, letter), (-1.0, f"-{letter}")):
                    extent = sign * points[0][axis]
                    for point in points[1:]:
                        extent = elementwise_maximum(extent, sign * point[axis])
                    self._add(MeasureColumn(kind=FOOTPRINT, element=side), extent)

    def _singular_measures(self, J: ca.SX) -> list[ca.SX]:
        """Add the columns of measures of singular values, and return their expressions."""
        if not (self.request.compute_condition or self.request.compute_singular_values):
            return []
        low, high = extreme_eigenvalues(J.T @ J)
        measures = []
        if self.request.compute_condition:
            self._columns.append(MeasureColumn(kind=CONDITION, element=""))
            measures.append(high / elementwise_maximum(low, 1e-12 * high + _TINY))
        if self.request.compute_singular_values:
            for kind, value in ((LARGEST_SINGULAR_VALUE, high), (SMALLEST_SINGULAR_VALUE, -low)):
                self._columns.append(MeasureColumn(kind=kind, element=""))
                measures.append(value)
        return measures


def _require_suitable(model: Model, request: MeasureRequest) -> None:
    """Raise InputError for machines without these measures."""
    assembly = model.assembly
    name = model.mechanism.name
    if assembly.passive or len(model.mechanism.actuators) < len(assembly.independent):
        what = f"{name} has unactuated degrees of freedom"
        raise InputError.of("machine", what, "lock them, or give another machine")
    needs_singular_values = request.compute_condition or request.compute_singular_values
    is_mixed = len(set(model.actuator_units)) > 1
    if request.compute_clearance and not len(rod_clearance(model).pairs):
        what = f"{name} has no two rods between which a clearance is defined"
        raise InputError.of("clearance", what, "remove clearance, or give another machine")
    if needs_singular_values and is_mixed and not request.length:
        what = f"{name} has rotary and linear actuators, so that singular values mix units"
        remedy = "give radian_length, the length by which rotations are multiplied"
        raise InputError.of("requirements", what, remedy)


def _raw_of_singular_values(kind: str, sigma: np.ndarray) -> np.ndarray:
    """Return a raw measure (N,) of singular values (N, m), the largest first."""
    high, low = sigma[:, 0], np.maximum(sigma[:, -1], _MIN_SINGULAR_VALUE)
    if kind == CONDITION:
        return np.asarray((high / low) ** 2)
    return np.asarray(high**2 if kind == LARGEST_SINGULAR_VALUE else -(low**2))


def elementwise_maximum(a: ca.SX, b: ca.SX) -> ca.SX:
    """Return the elementwise maximum, by operations that compilers can vectorize."""
    return 0.5 * (a + b + ca.fabs(a - b))


def _clipped(a: ca.SX) -> ca.SX:
    """Return a number limited to 0 ... 1."""
    return 0.5 * (ca.fabs(a) - ca.fabs(a - 1.0) + 1.0)


def _squared_distance(a: ca.SX, b: ca.SX, c: ca.SX, d: ca.SX) -> ca.SX:
    """Return the squared distance between the segments ab and cd.

    Source: Ericson, Real-Time Collision Detection, section 5.1.9.
    """
    u, w, r = b - a, d - c, a - c
    uu, ww, uw = ca.sumsqr(u), ca.sumsqr(w), ca.dot(u, w)
    ur, wr = ca.dot(u, r), ca.dot(w, r)
    determinant = elementwise_maximum(uu * ww - uw * uw, 1e-12 * uu * ww + _TINY)
    t = _clipped((uw * _clipped((uw * wr - ww * ur) / determinant) + wr) / ww)
    s = _clipped((uw * t - ur) / uu)
    return ca.sumsqr(r + s * u - t * w)


def extreme_eigenvalues(B: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the smallest and largest eigenvalue of a symmetric matrix (m, m).

    Up to three rows they have closed forms. The eigenvalues of three rows are
    q + 2 p cos(phi + 2 pi k / 3), cos(3 phi) = det((B - q I) / p) / 2 (Smith 1961, Eigenvalues of a
    symmetric 3x3 matrix). For more rows, cyclic Jacobi rotations are used (Golub and Van Loan 2013,
    8.5).
    """
    m = B.size1()
    if m == 1:
        return B[0, 0], B[0, 0]
    if m == 2:
        mean, half = 0.5 * (B[0, 0] + B[1, 1]), 0.5 * (B[0, 0] - B[1, 1])
        root = ca.sqrt(half * half + B[0, 1] * B[0, 1])
        return mean - root, mean + root
    if m == 3:
        return _extreme_eigenvalues_3x3(B)
    eigenvalues = _jacobi(B, JACOBI_SWEEPS[m])
    low = high = eigenvalues[0]
    for value in eigenvalues[1:]:
        low = -elementwise_maximum(-low, -value)
        high = elementwise_maximum(high, value)
    return low, high


def _extreme_eigenvalues_3x3(B: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the smallest and largest eigenvalue of a symmetric 3x3 matrix in closed form."""
    q = (B[0, 0] + B[1, 1] + B[2, 2]) / 3.0
    a, b, c = (B[i, i] - q for i in range(3))
    d, e, f = B[0, 1], B[0, 2], B[1, 2]
    p = ca.sqrt((a * a + b * b + c * c + 2.0 * (d * d + e * e + f * f)) / 6.0) + _TINY**0.25
    determinant = a * (b * c - f * f) - d * (d * c - f * e) + e * (d * f - b * e)
    inverse = 1.0 / p
    cosine = 0.5 * determinant * inverse * inverse * inverse
    sine = ca.sqrt(elementwise_maximum(1.0 - cosine * cosine, ca.SX(0.0)))
    phi = ca.atan2(sine, cosine) / 3.0
    x, y = ca.cos(phi), ca.sin(phi)
    return q - p * (x + math.sqrt(3.0) * y), q + 2.0 * p * x


def _jacobi(B: ca.SX, sweeps: int) -> list[ca.SX]:
    """Return approximate eigenvalues of a symmetric matrix after sweeps of Jacobi rotations."""
    m = B.size1()
    A = ca.SX(B)
    for _ in range(sweeps):
        for i in range(m):
            for j in range(i + 1, m):
                _rotate(A, i, j)
    return [A[i, i] for i in range(m)]


def _rotate(A: ca.SX, i: int, j: int) -> None:
    """Make the entry i, j of a symmetric matrix zero, by the smaller rotation."""
    off_diagonal = A[i, j]
    difference = A[j, j] - A[i, i]
    # `nonzero` has the sign of the difference, and is positive if the difference is zero.
    nonzero = difference + _TINY
    root = ca.sqrt(difference * difference + 4.0 * off_diagonal * off_diagonal)
    t = 2.0 * off_diagonal / (nonzero + nonzero / ca.fabs(nonzero) * root)
    c = 1.0 / ca.sqrt(1.0 + t * t)
    s = t * c
    A[i, i], A[j, j] = A[i, i] - t * off_diagonal, A[j, j] + t * off_diagonal
    A[i, j] = A[j, i] = 0.0
    for k in range(A.size1()):
        if k not in (i, j):
            x, y = A[k, i], A[k, j]
            A[k, i] = A[i, k] = c * x - s * y
            A[k, j] = A[j, k] = s * x + c * y
