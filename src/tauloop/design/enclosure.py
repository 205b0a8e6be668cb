"""Enclosures of the unknowns at all poses of a box by interval Newton, and claims about them.

In a box b = b_0 + B t with |t_k| <= 1 the unknowns are y = y_0 + S B t + e, where the loop equations
psi(b, y) = 0 define y. With the inverse C of the Jacobian psi_y at the center,
e = -C psi(b, y_0 + S B t) + (I - C psi_y) e has exactly one solution in |e| < E if
|C psi| + |I - C psi_y| E < E (Krawczyk). First-order terms cancel in psi, so that E is of second
order in the size of the box.

Source: Krawczyk 1969; Neumaier 1990, Interval methods for systems of equations, section 5.1; Merlet
2006, Parallel robots, chapter 7 (workspaces by interval analysis).
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.claims import ARITHMETIC, POINT_ERROR, PROOF_FACTOR, PROOF_MARGIN, Claim
from tauloop.design.error_claims import ErrorMaps, error_claims, error_maps, margins
from tauloop.design.intervals import forms
from tauloop.design.intervals.forms import INFLATION, ROUNDING, Form, form
from tauloop.design.intervals.matrices import (
    Matrix,
    eigenvalue_bounds,
    is_definite,
    matrix,
    matrix_from_entries,
    numeric_product,
    product,
    remainder_norm,
)
from tauloop.design.krawczyk import linear_form, solution_bounds, widened
from tauloop.design.load_claims import load_claims
from tauloop.design.loads import LoadLimits
from tauloop.design.pose_symbols import MAX_ROTATION
from tauloop.design.problem import PoseProblem
from tauloop.design.velocity_forms import dependent_velocities, inverses
from tauloop.geometry.clearance import closest_points

#: Maximum number of Newton steps at the center of a box, starting from the linear prediction of the
#: parent box.
MAX_NEWTON_STEPS = 4
#: Newton's method ends after a step of at most this size (rad, or characteristic lengths).
NEWTON_TOLERANCE = 1e-7
#: Weight of the motion of all coordinates, relative to the change of the unit rows, in the choice
#: of the direction in which a box is halved.
MOTION_WEIGHT = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """Requirements at all poses of a box.

    Attributes:
        parallel: lower limit of the smallest singular value of the matrix of unit rows.
        serial, constraint: lower limits of the measures of `tauloop.kinematics.singularities`.
        clearance: smallest distance between the surfaces of rods, m; zero for no requirement.
        loads: limits of forces and errors; None for no requirement.
    """

    parallel: float
    serial: float
    constraint: float
    clearance: float
    loads: LoadLimits | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """N boxes of poses b = b_0 + B t with |t_k| <= 1, and the unknowns at their centers.

    Attributes:
        middle: poses b_0 (N, m) at the centers.
        generators: matrices B (N, m, k), whose columns lead from the center to the faces.
        unknowns: unknowns y_0 (N, n) at the centers.
        rounding: largest rounding errors (m,) of the centers.
    """

    middle: np.ndarray
    generators: np.ndarray
    unknowns: np.ndarray
    rounding: np.ndarray

    def __len__(self) -> int:
        """Return the number of boxes."""
        return len(self.middle)

    def part(self, chosen: np.ndarray) -> Boxes:
        """Return the boxes with these indices or this mask."""
        return Boxes(
            middle=self.middle[chosen],
            generators=self.generators[chosen],
            unknowns=self.unknowns[chosen],
            rounding=self.rounding,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosure:
    """Enclosures of N boxes.

    Attributes:
        boxes: centers, generators and unknowns.
        sensitivity: derivatives S (N, n, m) of the unknowns with respect to the pose.
        uniqueness_radius: half widths E (N, n) around y_0 + S B t within which the solution is
            unique.
        remainder: half widths (N, n) of an interval around y_0 + S B t that contains the solution.
        has_unique_solution: whether the solution exists and is unique at every pose (N,).
        influence: measure (N, k) of the change of the machine along each direction; the direction
            with the largest value is halved.
        claims: claims about the requirements; undefined in boxes without a unique solution.
    """

    boxes: Boxes
    sensitivity: np.ndarray
    uniqueness_radius: np.ndarray
    remainder: np.ndarray
    has_unique_solution: np.ndarray
    influence: np.ndarray
    claims: tuple[Claim, ...] = ()

    @property
    def proved(self) -> np.ndarray:
        """Whether every requirement is proved in the box (N,)."""
        proved = self.has_unique_solution.copy()
        for claim in self.claims:
            proved &= claim.proved
        return proved


def newton(problem: PoseProblem, b: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return unknowns (N, n) at poses (N, m), inverse Jacobians C, and sensitivities S = -C psi_b.

    C and S are those of the last iterate but one. They need not be exact.
    """
    y = y.copy()
    n = len(problem.unknowns)
    C = np.zeros((len(b), n, n))
    S = np.zeros((len(b), n, b.shape[1]))
    moving = np.arange(len(b))
    for _ in range(MAX_NEWTON_STEPS):
        psi, by_y, by_b = problem.values(b[moving], y[moving])
        inverse = inverses(by_y)
        step = (inverse @ psi[:, :, None])[:, :, 0]
        y[moving] -= step
        C[moving], S[moving] = inverse, -inverse @ by_b
        is_large = np.abs(step / problem.unknown_scale) > NEWTON_TOLERANCE
        moving = moving[is_large.any(axis=1)]
        if len(moving) == 0:
            break
    return y, C, S


def enclose(problem: PoseProblem, requirements: Requirements, boxes: Boxes) -> Enclosure:
    """Return enclosures of boxes, with claims.

    Args:
        problem: functions of the machine.
        requirements: claims to verify, with their limits.
        boxes: the boxes, with start values of the unknowns.
    """
    with np.errstate(all="ignore"):
        enclosure, inputs = _closed_loops(problem, boxes)
        if not enclosure.has_unique_solution.any():
            return enclosure
        return _with_claims(problem, requirements, enclosure, inputs)


def closed_only(problem: PoseProblem, boxes: Boxes) -> Enclosure:
    """Return enclosures of boxes, without claims."""
    with np.errstate(all="ignore"):
        return _closed_loops(problem, boxes)[0]


def _closed_loops(
    problem: PoseProblem, boxes: Boxes, margin: np.ndarray | None = None
) -> tuple[Enclosure, list[Form]]:
    """Return the enclosures without claims, and the affine forms of the inputs of programs.

    Args:
        problem: functions of the machine.
        boxes: the boxes.
        margin: margins (N, m) by which the boxes are enlarged; None for no margin.
    """
    n, N, k = len(problem.unknowns), len(boxes), boxes.generators.shape[2]
    y, C, S = newton(problem, boxes.middle, boxes.unknowns)
    boxes = replace(boxes, unknowns=y)
    slopes = S @ boxes.generators
    increase = boxes.rounding + (np.zeros((N, 1)) if margin is None else margin)
    b_forms = [
        widened(linear_form(boxes.middle[:, i], boxes.generators[:, i].T), increase[:, i])
        for i in range(len(problem.axes))
    ]
    p_forms = _parameter_forms(problem, k, N)
    y_forms = [linear_form(y[:, j], slopes[:, j].T) for j in range(n)]
    solution = solution_bounds(
        problem.loops, problem.jacobian, b_forms, y_forms, p_forms, C, problem.unknown_scale
    )
    tight_forms = [widened(y_forms[j], solution.remainder[:, j]) for j in range(n)]
    enclosure = Enclosure(
        boxes=boxes,
        sensitivity=S,
        uniqueness_radius=solution.uniqueness_radius,
        remainder=solution.remainder,
        has_unique_solution=solution.has_unique_solution
        & _has_small_rotations(problem, [*b_forms, *tight_forms], N),
        influence=_motion_influence(problem, boxes, slopes),
    )
    return enclosure, [*b_forms, *tight_forms, *p_forms]


def _has_small_rotations(problem: PoseProblem, inputs: list[Form], N: int) -> np.ndarray:
    """Return whether rotations with an unknown are within the range of their series (N,)."""
    small = np.ones(N, dtype=bool)
    for rotation in problem.rotations:
        squares = np.zeros(N)
        for component in rotation:
            x = inputs[component]
            squares += (np.abs(x.rows[0]) + x.radius) ** 2
        small &= squares * INFLATION <= MAX_ROTATION**2
    return small


def _motion_influence(problem: PoseProblem, boxes: Boxes, slopes: np.ndarray) -> np.ndarray:
    """Return the motion (N, k) of all coordinates along each direction, in scaled units."""
    unknown_motion = (np.abs(slopes) / problem.unknown_scale[:, None]).sum(axis=1)
    axis_motion = (np.abs(boxes.generators) / problem.axis_scale[:, None]).sum(axis=1)
    return np.where(np.isfinite(unknown_motion), unknown_motion, 0.0) + axis_motion


def _parameter_forms(problem: PoseProblem, k: int, N: int) -> list[Form]:
    """Return the forms of the parameters: nominal values with tolerances as remainders."""
    rows = np.zeros((len(problem.parameters), k + 2, N))
    rows[:, 0] = problem.nominal[:, None]
    rows[:, -1] = problem.tolerances[:, None] * INFLATION
    return [form(row) for row in rows]


def _with_claims(
    problem: PoseProblem,
    requirements: Requirements,
    enclosure: Enclosure,
    inputs: list[Form],
) -> Enclosure:
    """Return an enclosure with its claims."""
    n, N = len(problem.unknowns), len(enclosure.boxes)
    k = enclosure.boxes.generators.shape[2]
    claims = [*_axis_claims(problem, inputs), *_limit_claims(problem, inputs)]
    values = problem.rows.run(inputs, ARITHMETIC)
    for name, value in zip(problem.inequalities, values[n * problem.n_free :], strict=True):
        expression = value if isinstance(value, Form) else forms.constant(value, k, N)
        claims.append(_positive(name, expression))
    units = matrix_from_entries(values[: n * problem.n_free], n, problem.n_free, k, N)
    if problem.n_free:
        claims.append(_singular_value_claim("parallel singularity", units, requirements.parallel))
    if problem.velocities is not None:
        claims += _velocity_claims(problem, requirements, enclosure, inputs)
    if problem.ends is not None:
        claims += _clearance_claims(problem, requirements, inputs, N, k)
    change = np.sqrt((units.rows[1:-1] ** 2).sum(axis=(2, 3))).T
    influence = np.where(np.isfinite(change), change, 0.0) + MOTION_WEIGHT * enclosure.influence
    return replace(enclosure, claims=tuple(claims), influence=influence)


def _positive(name: str, x: Form) -> Claim:
    """Return the claim that forms are positive."""
    lower, upper = x.bounds
    return Claim(
        name=name,
        lower=lower,
        margin_at_center=x.rows[0],
        slopes=x.rows[1:-1].T,
        proved=lower > PROOF_MARGIN * np.abs(x.rows[0]),
        refuted=upper < 0.0,
    )


def _axis_claims(problem: PoseProblem, inputs: list[Form]) -> list[Claim]:
    """Return the claims that the axes of the pose are within their limits."""
    claims = []
    for i, name in enumerate(problem.axes):
        for limit, sign, side in zip(
            problem.axis_limits, (1.0, -1.0), ("lower", "upper"), strict=True
        ):
            if np.isfinite(limit[i]):
                margin = forms.multiply(forms.subtract(inputs[i], float(limit[i])), sign)
                claims.append(_positive(f"{name}: {side} limit", _as_form(margin)))
    return claims


def _limit_claims(problem: PoseProblem, inputs: list[Form]) -> list[Claim]:
    """Return the claims that the unknowns are within their limits."""
    claims = []
    for limit in problem.limits:
        value = inputs[len(problem.axes) + limit.unknown]
        for bound, sign, side in ((limit.lower, 1.0, "lower"), (limit.upper, -1.0, "upper")):
            if np.isfinite(bound):
                margin = forms.multiply(forms.subtract(value, bound), sign)
                claims.append(_positive(f"{limit.name}: {side} limit", _as_form(margin)))
    return claims


def _as_form(x: forms.Register) -> Form:
    """Return a register that contains forms, for type checkers."""
    assert isinstance(x, Form)
    return x


def _velocity_rows(problem: PoseProblem, inputs: list[Form], N: int, k: int) -> Matrix:
    """Return the Jacobian of the loop equations (N, n, m + n) by all velocities, dimensionless."""
    assert problem.velocities is not None
    n, m = len(problem.unknowns), len(problem.axes)
    return matrix_from_entries(problem.velocities.run(inputs, ARITHMETIC), n, m + n, k, N)


def _velocity_claims(
    problem: PoseProblem, requirements: Requirements, enclosure: Enclosure, inputs: list[Form]
) -> list[Claim]:
    """Return the claims that need all velocities: measures of singularities, forces and errors."""
    claims = []
    loads = requirements.loads
    K = _velocity_rows(problem, inputs, len(enclosure.boxes), enclosure.boxes.generators.shape[2])
    if requirements.serial > 0.0 or loads is not None:
        S, valid = dependent_velocities(K, len(problem.axes))
        if requirements.serial > 0.0:
            claims.append(_serial_claim(S, requirements.serial, valid))
        if loads is not None and loads.quantities:
            claims += load_claims(problem, loads, S, valid, inputs)
    if loads is not None and np.isfinite(loads.errors).any():
        claims += _accuracy_claims(problem, loads, enclosure, error_maps(problem, loads, K, inputs))
    if requirements.constraint > 0.0:
        claims.append(_constraint_claim(K, requirements.constraint))
    return claims


def _accuracy_claims(
    problem: PoseProblem, limits: LoadLimits, enclosure: Enclosure, maps: ErrorMaps
) -> list[Claim]:
    """Return the claims on errors of the tool.

    The errors move the machine from a pose of a box to a pose of an enlarged box, so that changes
    are bounded over the enlarged boxes. Their margins follow from `maps`, the changes due to errors
    over the boxes themselves.
    """
    boxes = enclosure.boxes
    margin = margins(problem, maps)
    enlarged, inputs = _closed_loops(problem, boxes, margin)
    K = _velocity_rows(problem, inputs, len(boxes), boxes.generators.shape[2])
    distance = np.abs(enlarged.boxes.unknowns - boxes.unknowns)
    is_same_solution = (
        enclosure.remainder + distance <= PROOF_FACTOR * enlarged.uniqueness_radius
    ).all(axis=1)
    enlarged_maps = error_maps(problem, limits, K, inputs)
    has_unique_solution = enlarged.has_unique_solution & is_same_solution
    return error_claims(problem, limits, enlarged_maps, margin, has_unique_solution)


def _square_lower_bound(W: Matrix) -> Matrix:
    """Return a lower bound of W^T W that is linear in W, and therefore exact to first order.

    With the center V of W, (W - V)^T (W - V) is positive semidefinite. Hence
    W^T W >= V^T W + W^T V - V^T V.
    """
    V = W.center
    half = numeric_product(V.swapaxes(1, 2), W)
    rows = half.rows + half.rows.swapaxes(-1, -2)
    rows[0] -= V.swapaxes(1, 2) @ V
    bound = half.magnitude_bounds()
    rows[-1] += 16.0 * W.rows.shape[-2] * ROUNDING * (bound + bound.swapaxes(-1, -2))
    return matrix(rows)


def _singular_value_claim(name: str, W: Matrix, limit: float) -> Claim:
    """Return the claim that the smallest singular value of W exceeds a limit."""
    claim, smallest = _eigenvalue_claim(name, _square_lower_bound(W), limit * limit)
    measure = np.sqrt(np.maximum(smallest, 0.0))
    return replace(
        claim,
        measure=np.maximum(measure, np.where(claim.proved, limit, 0.0)),
        measure_at_center=np.sqrt(np.maximum(claim.margin_at_center + limit * limit, 0.0)),
        limit=limit,
    )


def _eigenvalue_claim(
    name: str, gram: Matrix, limit: float | np.ndarray
) -> tuple[Claim, np.ndarray]:
    """Return the claim that the smallest eigenvalue exceeds a limit, and its lower bound (N,)."""
    valid = np.isfinite(gram.rows).all(axis=(0, 2, 3))
    limits = np.broadcast_to(np.asarray(limit, dtype=float), valid.shape)
    lower_bound = np.where(valid, eigenvalue_bounds(gram)[0], -np.inf)
    proved = lower_bound > limits + PROOF_MARGIN * np.abs(lower_bound)
    center = np.where(valid[:, None, None], gram.rows[0], 0.0)
    values, vectors = np.linalg.eigh(center)
    v = vectors[:, :, 0]
    slopes = np.einsum("ni,knij,nj->nk", v, gram.rows[1:-1], v)
    predicted = values[:, 0] - np.abs(slopes).sum(axis=1) - remainder_norm(gram)
    open_boxes = np.flatnonzero(~proved & valid & (predicted > limits))
    if len(open_boxes):
        open_grams = Matrix(gram.rows[:, open_boxes], gram.radius[open_boxes])
        reserve = PROOF_MARGIN * np.abs(values[open_boxes, -1])
        proved[open_boxes] = is_definite(open_grams, limits[open_boxes] + reserve)
    # W^T W exceeds its lower bound by the square of the deviation, which vanishes only at points.
    # Therefore only points can refute the claim.
    is_point = np.abs(gram.rows[1:-1]).sum(axis=(0, 2, 3)) == 0.0
    claim = Claim(
        name=name,
        lower=np.maximum(lower_bound - limits, np.where(proved, 0.0, -np.inf)),
        margin_at_center=values[:, 0] - limits,
        slopes=slopes,
        proved=proved,
        refuted=valid
        & is_point
        & (values[:, 0] + 2.0 * remainder_norm(gram) + POINT_ERROR < limits),
    )
    return claim, lower_bound


def _serial_claim(S: Matrix, limit: float, valid: np.ndarray) -> Claim:
    """Return the claim that 1 / sqrt(1 + |S|^2) with the spectral norm |S| exceeds a limit."""
    gram = product(S.T, S)
    rows = -gram.rows
    rows[-1] = gram.rows[-1]
    rows[0] += np.eye(gram.rows.shape[-1]) * (1.0 / limit**2 - 1.0)
    rows[-1] += ROUNDING * (np.abs(rows[0]) + gram.radius)
    rows[:, ~valid] = np.nan
    claim, _ = _eigenvalue_claim("serial singularity", matrix(rows), 0.0)
    _, largest = eigenvalue_bounds(gram)
    measure = np.where(valid, 1.0 / np.sqrt(1.0 + np.maximum(largest, 0.0)), 0.0)
    return replace(
        claim,
        measure=np.maximum(measure, np.where(claim.proved, limit, 0.0)),
        measure_at_center=1.0 / np.sqrt(np.maximum(1.0 / limit**2 - claim.margin_at_center, 1.0)),
        limit=limit,
    )


def _constraint_claim(K: Matrix, limit: float) -> Claim:
    """Return the claim that the inverse condition number of K exceeds a limit.

    It is the ratio of the smallest to the largest singular value.
    """
    gram = _square_lower_bound(K.T)
    valid = np.isfinite(gram.rows).all(axis=(0, 2, 3))
    center = np.where(valid[:, None, None], K.center, 0.0)
    deviation = np.sqrt((K.radius**2).sum(axis=(1, 2)))
    norm = np.linalg.norm(center, ord=2, axis=(1, 2))
    largest_squared = (norm + deviation + POINT_ERROR) ** 2
    claim, smallest = _eigenvalue_claim(
        "constraint singularity", gram, limit * limit * largest_squared
    )
    measure = np.sqrt(np.maximum(smallest, 0.0) / largest_squared)
    return replace(
        claim,
        measure=np.maximum(measure, np.where(claim.proved, limit, 0.0)),
        measure_at_center=np.sqrt(
            np.maximum(claim.margin_at_center / largest_squared + limit * limit, 0.0)
        ),
        limit=limit,
    )


def _clearance_claims(
    problem: PoseProblem, requirements: Requirements, inputs: list[Form], N: int, k: int
) -> list[Claim]:
    """Return the claims that all pairs of rods keep their clearance."""
    assert problem.ends is not None
    values = problem.ends.run(inputs, ARITHMETIC)
    points = matrix_from_entries(values, 6, len(problem.rods), k, N)
    return [
        _clearance_claim(problem, points, int(i), int(j), requirements.clearance)
        for i, j in problem.pairs
    ]


def _clearance_claim(
    problem: PoseProblem, points: Matrix, i: int, j: int, clearance: float
) -> Claim:
    """Return the claim that two rods keep their clearance.

    For any vector w with at most unit length, w . (x - z) <= |x - z|. The left side is linear along
    both rods, so that its smallest value is at their ends. Here w is the direction between the
    nearest points at the center of the box.
    """
    N, k = points.rows.shape[1], points.rows.shape[0] - 2
    limit = clearance + float(problem.radii[i] + problem.radii[j])
    ends = points.center.swapaxes(1, 2).reshape(N, -1, 2, 3)
    nearest, other = closest_points(ends[:, i, 0], ends[:, i, 1], ends[:, j, 0], ends[:, j, 1])
    difference = nearest - other
    distance = np.linalg.norm(difference, axis=1)
    w = difference / np.maximum(distance, 1e-300)[:, None] * (1.0 - 8.0 * ROUNDING)
    lower = np.full(N, np.inf)
    for first, second in itertools.product((0, 3), repeat=2):
        one_end = points.rows[:, :, first : first + 3, i]
        other_end = points.rows[:, :, second : second + 3, j]
        lower = np.minimum(lower, _projected_difference(one_end, other_end, w))
    is_point = np.abs(points.rows[1:-1]).sum(axis=(0, 2, 3)) == 0
    error = points.rows[-1].sum(axis=(1, 2)) * 4.0 + 1e-12 * np.abs(ends).sum(axis=(1, 2, 3))
    return Claim(
        name=f"clearance of {problem.rods[i]} and {problem.rods[j]}",
        lower=lower - limit,
        margin_at_center=distance - limit,
        slopes=np.zeros((N, k)),
        proved=PROOF_FACTOR * lower > limit,
        refuted=is_point & (distance + error < limit),
    )


def _projected_difference(x: np.ndarray, z: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return lower bounds (N,) of w . (x - z) for forms (k + 2, N, 3) of points and w (N, 3)."""
    rows = x - z
    rows[-1] = x[-1] + z[-1]
    rows[-1] += 4 * ROUNDING * (np.abs(rows[0]) + np.abs(rows[1:]).sum(axis=0))
    along = (rows * w).sum(axis=-1)
    along[-1] = (rows[-1] * np.abs(w)).sum(axis=-1)
    along[-1] += 8 * ROUNDING * np.abs(rows).sum(axis=(0, -1))
    return form(along).bounds[0]
