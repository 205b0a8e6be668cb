"""Check of a certificate: each box is checked once with python-flint's arb, without a search."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from flint import arb, ctx

from tauloop.common.records import dataclass
from tauloop.design.certificate import Proof, ProofClaims
from tauloop.design.domain import divisions
from tauloop.design.enclosure import newton
from tauloop.design.error_checks import ball_maps, ball_margins, failed_error
from tauloop.design.intervals.balls import (
    BALLS,
    BallForm,
    BallMatrix,
    is_definite,
    near_inverse_product,
    square_lower_bound,
)
from tauloop.design.krawczyk import BOUND_FACTOR, LARGEST_BOUND_FACTOR, MIN_HALF_WIDTH
from tauloop.design.load_checks import failed_load
from tauloop.design.loads import LoadLimits, load_limits
from tauloop.design.pose_symbols import MAX_ROTATION
from tauloop.design.problem import PoseProblem
from tauloop.geometry.clearance import closest_points

#: Precision of the numbers, bits; NumPy's numbers have 53.
PRECISION = 80
#: Factor by which computed unit vectors are shortened, so that their length is at most 1.
UNIT_VECTOR_FACTOR = 1.0 - 1e-14


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Outcome of a check.

    Attributes:
        n_boxes: number of boxes of the certificate.
        problems: descriptions of the claims that are not confirmed, with the indices of the boxes.
    """

    n_boxes: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """A box of poses b, with the enclosure of the unknowns y.

    With |t_k| <= 1, b = middle + generators t and y = unknowns + S (b - middle) + e, where |e| is
    at most `remainder`. There is no other solution with |e| < `uniqueness_radius`.

    Attributes:
        middle: axes b at the center (m), balls.
        generators: matrix (m, k) whose columns lead from the center to the faces, balls.
        unknowns: unknowns y at the center (n).
        S: sensitivities (n, m).
        uniqueness_radius: half widths (n) within which the solution is unique.
        remainder: half widths (n) that contain the solution.
        has_unique_solution: whether the solution exists and is unique in the box.
        inputs: forms of the inputs of programs; empty if the solution is not unique.
    """

    middle: list[arb]
    generators: list[list[arb]]
    unknowns: list[float]
    S: list[list[float]]
    uniqueness_radius: list[float]
    remainder: list[arb]
    has_unique_solution: bool
    inputs: list[BallForm]


def checked(
    problem: PoseProblem, proof: Proof, progress: Callable[[int, int], None] | None = None
) -> Checked:
    """Return the outcome of the check of a proof.

    Args:
        problem: functions of the machine, with the claims of the proof.
        proof: contents of the certificate.
        progress: called with the number of checked boxes and the number of all boxes.
    """
    ctx.prec = PRECISION
    columns = _round_columns(problem, proof)
    parts = divisions(proof.level, proof.index, columns)
    if parts is None:
        return Checked(
            n_boxes=len(proof.level),
            problems=("the boxes do not cover the domain, or they overlap",),
        )
    problems: list[str] = []
    loads = load_limits(problem, proof.claims)
    cells = []
    for i in range(len(proof.level)):
        cell = _box(problem, proof, i)
        cells.append(cell)
        failure: str | None = "loops"
        if cell.has_unique_solution:
            failure = _failed(problem, proof.claims, loads, cell)
        if failure is not None:
            problems.append(f"box {i}: {failure}")
        if progress is not None:
            progress(i + 1, len(proof.level))
    if not _follows_path(problem, proof, cells):
        problems.append(
            "the solution is not unique along the path from the reference to the domain"
        )
    for point, lower, upper in zip(parts.points, parts.lower, parts.upper, strict=True):
        at_face = _solution_at(problem, _exact_pose(proof, point), cells[lower])
        if not (_is_within(cells[lower], at_face) and _is_within(cells[upper], at_face)):
            problems.append(f"boxes {lower} and {upper}: their solutions may be different")
    return Checked(n_boxes=len(proof.level), problems=tuple(problems))


def _round_columns(problem: PoseProblem, proof: Proof) -> tuple[int, ...]:
    """Return the indices of the axes of a cylinder among the axes that vary."""
    names = [problem.axes[axis] for axis in proof.varied]
    return tuple(names.index(name) for name in proof.claims.round)


def _exact_pose(proof: Proof, fractions: Sequence[float]) -> list[arb]:
    """Return the pose (m) at fractions of the ranges of the axes that vary."""
    pose = [arb(float(value)) for value in proof.start]
    for axis, low, high, fraction in zip(
        proof.varied, proof.lower, proof.upper, fractions, strict=True
    ):
        width = arb(float(high)) - arb(float(low))
        pose[axis] = arb(float(low)) + width * arb(float(fraction))
    return pose


def _box(problem: PoseProblem, proof: Proof, i: int) -> _Cell:
    """Return the enclosure of the box with this index."""
    half = 0.5 ** (proof.level[i] + 1)
    middle = _exact_pose(proof, (2 * proof.index[i] + 1) * half)
    k = len(proof.varied)
    generators = [[arb(0)] * k for _ in proof.axes]
    for column, axis in enumerate(proof.varied):
        width = arb(float(proof.upper[column])) - arb(float(proof.lower[column]))
        generators[axis][column] = width * arb(float(half[column]))
    return _closed_loops(problem, middle, generators, proof.solutions[i])


def _solution_at(problem: PoseProblem, pose: list[arb], cell: _Cell) -> _Cell:
    """Return the solution at a pose, starting from the linear prediction of a box."""
    return _closed_loops(problem, pose, [[] for _ in pose], np.array(_predicted(cell, pose)))


def _predicted(cell: _Cell, pose: list[arb]) -> list[float]:
    """Return the unknowns at a pose by the linear prediction of a box."""
    offset = [float((b - c).mid()) for b, c in zip(pose, cell.middle, strict=True)]
    unknowns = []
    for y, row in zip(cell.unknowns, cell.S, strict=True):
        unknowns.append(y + sum(s * a for s, a in zip(row, offset, strict=True)))
    return unknowns


def _closed_loops(
    problem: PoseProblem,
    middle: list[arb],
    generators: list[list[arb]],
    start: np.ndarray,
    margin: Sequence[float] = (),
) -> _Cell:
    """Return the enclosure of a box by Krawczyk's test.

    Args:
        problem: functions of the machine.
        middle: center of the box (m).
        generators: generators (m, k) of the box.
        start: start values of the unknowns (n,).
        margin: margin (m) of each axis by which the box is enlarged; empty for no margin.
    """
    numbers = np.array([[float(b.mid()) for b in middle]])
    with np.errstate(all="ignore"):
        y, C, S = (values[0] for values in newton(problem, numbers, start[None]))
    forms = _Forms(problem, _box_forms(middle, generators, margin), y, S)
    uniqueness_radius, remainder, has_unique_solution = _krawczyk(problem, forms, C)
    inputs = forms.widened(remainder) if has_unique_solution else []
    has_unique_solution = has_unique_solution and _has_small_rotations(problem, inputs)
    return _Cell(
        middle=middle,
        generators=generators,
        unknowns=y.tolist(),
        S=S.tolist(),
        uniqueness_radius=uniqueness_radius,
        remainder=remainder,
        has_unique_solution=has_unique_solution,
        inputs=inputs if has_unique_solution else [],
    )


def _has_small_rotations(problem: PoseProblem, inputs: list[BallForm]) -> bool:
    """Return whether rotations with an unknown are within the range of their series."""
    for rotation in problem.rotations:
        square = sum((inputs[component].magnitude_bounds() ** 2 for component in rotation), arb(0))
        if not square < MAX_ROTATION**2:
            return False
    return True


def _box_forms(
    middle: list[arb], generators: list[list[arb]], margin: Sequence[float]
) -> list[BallForm]:
    """Return the forms of the axes; margins (m) are added to their remainders."""
    margins = margin or [0.0] * len(middle)
    return [
        BallForm(b, slopes, arb(width))
        for b, slopes, width in zip(middle, generators, margins, strict=True)
    ]


class _Forms:
    """Affine forms of the inputs of programs in a box."""

    def __init__(
        self,
        problem: PoseProblem,
        axes: list[BallForm],
        y: np.ndarray,
        S: np.ndarray,
    ) -> None:
        """Compute the forms of axes and parameters, and the slopes S B of the unknowns."""
        self.n_symbols = len(axes[0].g)
        no_slopes = [arb(0)] * self.n_symbols
        self._before = axes
        self._after = [
            BallForm(arb(float(value)), no_slopes, arb(float(tolerance)))
            for value, tolerance in zip(problem.nominal, problem.tolerances, strict=True)
        ]
        self._unknowns = [arb(float(value)) for value in y]
        columns = list(zip(*(x.g for x in axes), strict=True))
        self._slopes = []
        for row in S.tolist():
            self._slopes.append([_dot_numbers(row, column) for column in columns])

    def widened(self, widths: Sequence[arb]) -> list[BallForm]:
        """Return the forms of all inputs; the unknowns have remainders (n,)."""
        unknowns = [
            BallForm(y, slopes, width)
            for y, slopes, width in zip(self._unknowns, self._slopes, widths, strict=True)
        ]
        return [*self._before, *unknowns, *self._after]


def _dot_numbers(row: Sequence[float], column: Sequence[arb]) -> arb:
    """Return the scalar product of numbers and balls."""
    return sum((arb(s) * g for s, g in zip(row, column, strict=True)), arb(0))


def _krawczyk(
    problem: PoseProblem, forms: _Forms, C: np.ndarray
) -> tuple[list[float], list[arb], bool]:
    """Return `uniqueness_radius`, `remainder` and `has_unique_solution` of a `_Cell`."""
    n = len(problem.unknowns)
    k = forms.n_symbols
    scale = problem.unknown_scale
    left = C.tolist()
    psi = BallMatrix.by_columns(problem.loops.run(forms.widened([arb(0)] * n), BALLS), n, 1, k)
    rows = psi.numeric_product(left).rows
    z = [row[0].magnitude_bounds() / float(s) for row, s in zip(rows, scale, strict=True)]
    bounds = [float(value.upper()) for value in z]
    largest = max(bounds, default=0.0)
    widths = [
        max(BOUND_FACTOR * bound + LARGEST_BOUND_FACTOR * largest, MIN_HALF_WIDTH)
        for bound in bounds
    ]
    uniqueness_radius = [width * float(s) for width, s in zip(widths, scale, strict=True)]
    wide = forms.widened([arb(value) for value in uniqueness_radius])
    J = BallMatrix.by_columns(problem.jacobian.run(wide, BALLS), n, n, k)
    D = _deviation(J.numeric_product(left), scale)
    within = _krawczyk_bounds(z, D, [arb(width) for width in widths])
    has_unique_solution = all(
        bool(value < width) for value, width in zip(within, widths, strict=True)
    )
    tight = _krawczyk_bounds(z, D, within)
    remainder = [
        (value if value < other else other) * float(s)
        for value, other, s in zip(tight, within, scale, strict=True)
    ]
    return uniqueness_radius, remainder, has_unique_solution


def _deviation(near_identity: BallMatrix, scale: np.ndarray) -> list[list[arb]]:
    """Return bounds of |A - I| for a matrix A near the identity, in units of the unknowns."""
    D = []
    for i, row in enumerate(near_identity.rows):
        differences = [x - (1.0 if i == j else 0.0) for j, x in enumerate(row)]
        unit = float(scale[i])
        pairs = zip(differences, scale, strict=True)
        D.append([x.magnitude_bounds() * float(s) / unit for x, s in pairs])
    return D


def _krawczyk_bounds(z: list[arb], D: list[list[arb]], widths: Sequence[arb]) -> list[arb]:
    """Return |C psi| + |I - C psi_y| E from z = |C psi|, D = |I - C psi_y| and half widths E."""
    bounds = []
    for value, row in zip(z, D, strict=True):
        products = (d * width for d, width in zip(row, widths, strict=True))
        bounds.append(value + sum(products, arb(0)))
    return bounds


def _is_within(cell: _Cell, point: _Cell) -> bool:
    """Return whether the solution at a point equals the solution of a box with this point."""
    if not (cell.has_unique_solution and point.has_unique_solution):
        return False
    offset = [b - c for b, c in zip(point.middle, cell.middle, strict=True)]
    for j, width in enumerate(cell.uniqueness_radius):
        linear_change = _dot_numbers(cell.S[j], offset)
        difference = abs(arb(point.unknowns[j]) - arb(cell.unknowns[j]) - linear_change)
        if not difference + point.remainder[j] < width:
            return False
    return True


def _follows_path(problem: PoseProblem, proof: Proof, cells: list[_Cell]) -> bool:
    """Return whether the solution is unique on the path from the reference to the center."""
    k = len(proof.varied)
    start = [arb(float(value)) for value in problem.reference[0]]
    end = _exact_pose(proof, [0.5] * k)
    direction = [b - a for a, b in zip(start, end, strict=True)]
    cuts = proof.cuts
    is_complete = len(cuts) > 1 and cuts[0] == 0.0 and cuts[-1] == 1.0
    if not is_complete or (np.diff(cuts) <= 0).any() or len(proof.path) != len(cuts) - 1:
        return False
    at_start = _closed_loops(problem, start, [[] for _ in start], problem.reference[1])
    for first, last, y in zip(cuts[:-1], cuts[1:], proof.path, strict=True):
        center = (arb(float(last)) + float(first)) / 2
        half = (arb(float(last)) - float(first)) / 2
        middle = [a + center * d for a, d in zip(start, direction, strict=True)]
        segment = _closed_loops(problem, middle, [[half * d] for d in direction], y)
        end_pose = [a + arb(float(last)) * d for a, d in zip(start, direction, strict=True)]
        at_end = _solution_at(problem, end_pose, segment)
        if not (_is_within(segment, at_start) and _is_within(segment, at_end)):
            return False
        at_start = at_end
    width = 0.5**proof.level
    contains_center = (proof.index * width <= 0.5) & (0.5 <= (proof.index + 1) * width)
    box = int(np.flatnonzero(contains_center.all(axis=1))[0])
    return _is_within(cells[box], at_start)


def _failed(
    problem: PoseProblem, claims: ProofClaims, loads: LoadLimits | None, cell: _Cell
) -> str | None:
    """Return the first claim that is not confirmed in a box; None if all are."""
    n, k = len(problem.unknowns), len(cell.inputs[0].g)
    failure = _beyond_limits(problem, cell)
    if failure is not None:
        return failure
    values = problem.rows.run(cell.inputs, BALLS)
    for name, value in zip(problem.inequalities, values[n * problem.n_free :], strict=True):
        lower = value.lower() if isinstance(value, BallForm) else value
        if not lower > 0:
            return name
    if problem.n_free:
        units = BallMatrix.by_columns(values[: n * problem.n_free], n, problem.n_free, k)
        if not is_definite(square_lower_bound(units), arb(claims.parallel) ** 2):
            return "parallel singularity"
    failure = _failed_velocities(problem, claims, loads, cell)
    if failure is not None or problem.ends is None:
        return failure
    return _too_close(problem, claims, cell)


def _beyond_limits(problem: PoseProblem, cell: _Cell) -> str | None:
    """Return the first axis or unknown that may exceed its limits; None if there is none."""
    m = len(problem.axes)
    for i, (low, high) in enumerate(zip(*problem.axis_limits, strict=True)):
        if not _is_between(cell.inputs[i], float(low), float(high)):
            return f"limits of {problem.axes[i]}"
    for limit in problem.limits:
        if not _is_between(cell.inputs[m + limit.unknown], limit.lower, limit.upper):
            return f"limits of {limit.name}"
    return None


def _failed_velocities(
    problem: PoseProblem, claims: ProofClaims, loads: LoadLimits | None, cell: _Cell
) -> str | None:
    """Return the first claim about velocities that is not confirmed; None if all are."""
    if problem.velocities is None:
        return None
    K = _velocity_rows(problem, cell)
    if claims.serial > 0.0 or loads is not None:
        S = _velocities(K, len(problem.axes))
        if S is None or (claims.serial > 0.0 and not _is_serial(S, claims.serial)):
            return "serial singularity"
        failure = _failed_loads(problem, loads, S, cell) if loads is not None else None
        if failure is not None:
            return failure
    if claims.constraint > 0.0 and not _is_constrained(K, claims.constraint):
        return "constraint singularity"
    return None


def _velocity_rows(problem: PoseProblem, cell: _Cell) -> BallMatrix:
    """Return the Jacobian of the loop equations (n, m + n) by all velocities, dimensionless."""
    assert problem.velocities is not None
    n, m, k = len(problem.unknowns), len(problem.axes), len(cell.inputs[0].g)
    return BallMatrix.by_columns(problem.velocities.run(cell.inputs, BALLS), n, m + n, k)


def _failed_loads(
    problem: PoseProblem, limits: LoadLimits, S: BallMatrix, cell: _Cell
) -> str | None:
    """Return the first claim on forces or errors that is not confirmed; None if all are."""
    if limits.quantities:
        failure = failed_load(problem, limits, S, cell.inputs)
        if failure is not None:
            return failure
    if not np.isfinite(limits.errors).any():
        return None
    maps = ball_maps(problem, limits, _velocity_rows(problem, cell), cell.inputs)
    if maps is None:
        return "errors of the tool"
    margin = ball_margins(maps)
    start = np.array(cell.unknowns)
    enlarged = _closed_loops(problem, cell.middle, cell.generators, start, margin)
    distance = np.abs(np.array(enlarged.unknowns) - start) * (1.0 + 1e-9)
    is_same_solution = all(
        bool(remainder + float(d) < radius)
        for remainder, d, radius in zip(
            cell.remainder, distance, enlarged.uniqueness_radius, strict=True
        )
    )
    if not (enlarged.has_unique_solution and is_same_solution):
        return "errors of the tool"
    enlarged_maps = ball_maps(problem, limits, _velocity_rows(problem, enlarged), enlarged.inputs)
    if enlarged_maps is None:
        return "errors of the tool"
    return failed_error(problem, limits, enlarged_maps, margin)


def _is_between(x: BallForm, low: float, high: float) -> bool:
    """Return whether a form is between two limits in the whole box."""
    is_above = low == -np.inf or bool(x.lower() > low)
    return is_above and (high == np.inf or bool(x.upper() < high))


def _velocities(K: BallMatrix, m: int) -> BallMatrix | None:
    """Return the dependent velocities S (n, m) per independent velocity.

    With an approximate inverse C of the Jacobian K_d of the dependent velocities, S solves
    (C K_d) S = -C K_i. The result is None if the enclosure of K_d is too wide.
    """
    n = len(K.rows)
    if n == 0:
        return BallMatrix([], K.n_symbols)
    dependent = K.columns(range(m, m + n))
    C = np.linalg.inv(np.array(dependent.centers()))
    right = K.columns(range(m)).numeric_product((-C).tolist())
    return near_inverse_product(dependent.numeric_product(C.tolist()), right)


def _is_serial(S: BallMatrix, limit: float) -> bool:
    """Return whether 1 / sqrt(1 + |S|^2) with the spectral norm |S| exceeds a limit."""
    gram = S.transposed().times(S)
    return is_definite(_diagonal_minus(1 / arb(limit) ** 2 - 1, gram), arb(0))


def _diagonal_minus(value: arb, G: BallMatrix) -> BallMatrix:
    """Return value I - G."""
    rows = []
    for i, row in enumerate(G.rows):
        rows.append([(value if i == j else arb(0)) - x for j, x in enumerate(row)])
    return BallMatrix(rows, G.n_symbols)


def _is_constrained(K: BallMatrix, limit: float) -> bool:
    """Return whether the ratio of smallest to largest singular value exceeds a limit."""
    transposed = K.transposed()
    center = np.array(transposed.centers())
    norm = float(np.linalg.norm(center, ord=2)) * (1.0 + 1e-9)
    constant = BallMatrix(center.tolist(), 0)
    square = constant.transposed().times(constant)
    if not is_definite(_diagonal_minus(arb(norm) ** 2, square), arb(0)):
        return False
    deviation = sum((x.radius**2 for row in K.rows for x in row), arb(0)).sqrt()
    largest_squared = (arb(norm) + deviation) ** 2
    return is_definite(square_lower_bound(transposed), arb(limit) ** 2 * largest_squared)


def _too_close(problem: PoseProblem, claims: ProofClaims, cell: _Cell) -> str | None:
    """Return the first pair of rods whose clearance is not proved; None if there is none."""
    assert problem.ends is not None
    values = problem.ends.run(cell.inputs, BALLS)
    k = len(cell.inputs[0].g)
    entries = BallMatrix([values], k).rows[0]
    points = [entries[3 * i : 3 * i + 3] for i in range(len(entries) // 3)]
    centers = np.array([float(x.c.mid()) for x in entries]).reshape(-1, 3)
    for i, j in problem.pairs:
        ends = (2 * i, 2 * i + 1, 2 * j, 2 * j + 1)
        nearest, other = closest_points(*(centers[end] for end in ends))
        w = (
            (nearest - other)
            / max(float(np.linalg.norm(nearest - other)), 1e-300)
            * UNIT_VECTOR_FACTOR
        )
        is_at_most_unit = bool(sum((arb(float(x)) ** 2 for x in w), arb(0)) < 1)
        gaps = []
        for start, end in itertools.product(ends[:2], ends[2:]):
            gaps.append(_distance_along(points[start], points[end], w))
        limit = arb(claims.clearance) + float(problem.radii[i]) + float(problem.radii[j])
        if not is_at_most_unit or not all(gap.lower() > limit for gap in gaps):
            return f"clearance of {problem.rods[i]} and {problem.rods[j]}"
    return None


def _distance_along(x: Sequence[BallForm], z: Sequence[BallForm], w: np.ndarray) -> BallForm:
    """Return w . (x - z) for two points and a direction (3,)."""
    terms = [a * float(c) - b * float(c) for a, b, c in zip(x, z, w, strict=True)]
    return sum(terms[1:], terms[0])
