"""Choice of the independent coordinates, the leading actuators and the passive degrees of freedom.

The choice is made once, when the machine is built, by pivoting on dimensionless motions. It is made
for the worst of many assembled states.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import AssemblyError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.equations.assembly.loops import Loops
from tauloop.equations.values import quantile

#: A row whose pivot falls below this fraction of a unit motion at some state is not used.
MIN_PIVOT = 1e-8
#: Factor on the pivots of driven coordinates.
DRIVEN_PREFERENCE = 10.0
#: Factor on the pivots of velocities without a scalar coordinate.
ROTATION_PREFERENCE = 0.1
#: Fraction of its usual pivot below which a row counts as not moving at a state.
STANDSTILL_RATIO = 1e-3
#: Rows whose sizes differ by less than this fraction count as equal, as in machines with a plane of
#: symmetry. Then the first row is chosen, so that rounding, which differs between processors, does
#: not decide. Closed states are accurate to 1e-12.
TIE_TOLERANCE = 1e-9
#: Quantile over the states by which pivots are compared. It is close to the worst state, but single
#: singular states do not exclude a choice.
PIVOT_QUANTILE = 0.1


def independent_rows(
    matrices: np.ndarray,
    count: int,
    fixed: Sequence[int] = (),
    preference: np.ndarray | None = None,
    *,
    sure: int = 0,
) -> tuple[int, ...]:
    """Return rows that together are well conditioned at all states, chosen by pivoting.

    Args:
        matrices: matrices (N, k, m) at N states.
        count: number of rows to choose, including those in `fixed`; the result is shorter if fewer
            are independent.
        fixed: rows that are chosen first, in this order.
        preference: factor (k,) on the size of each row; zero excludes a row.
        sure: number of leading states at which each chosen row must move.

    Returns:
        Indices of the rows, in the order of their choice.
    """
    remaining = np.array(matrices, dtype=float)
    weight = np.ones(remaining.shape[1]) if preference is None else preference
    chosen: list[int] = []
    queue = list(fixed)
    while len(chosen) < count:
        size = np.linalg.norm(remaining, axis=2)
        common = quantile(size, PIVOT_QUANTILE) if len(size) else np.zeros(remaining.shape[1])
        least = size[:sure].min(axis=0, initial=np.inf)
        common = np.where(least < STANDSTILL_RATIO * common, least, common)
        if queue:
            row = queue.pop(0)
        else:
            score = common * weight
            score[chosen] = 0.0
            row = int(np.argmax(score >= (1.0 - TIE_TOLERANCE) * score.max()))
            if score[row] <= MIN_PIVOT:
                break
        if common[row] > MIN_PIVOT or row in fixed:
            chosen.append(row)
        unit = remaining[:, row] / np.maximum(size[:, row], 1e-300)[:, None]
        projections = remaining @ unit[:, :, None]
        remaining -= projections * unit[:, None, :]
    return tuple(chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actuation:
    """The coordinates with which actuators and passive degrees of freedom determine the motion.

    Attributes:
        leading: indices of the actuators whose motion is given; with redundant actuation, the other
            actuators follow them.
        passive: indices of the passive velocities, which can move while all actuators rest.
    """

    leading: tuple[int, ...]
    passive: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Number of degrees of freedom that the actuators move."""
        return len(self.leading)


def actuation(
    motions: np.ndarray,
    actuators: np.ndarray,
    transmission: np.ndarray,
    rank: int,
    scalar: np.ndarray,
) -> Actuation:
    """Return leading actuators and passive degrees of freedom that determine the motion together.

    If an actuator drives several coordinates, these are chosen first as passive degrees of freedom,
    because positions then follow without the loops. The velocities that move most while the
    actuators rest come next.

    Args:
        motions: dimensionless motions (N, n_v, m).
        actuators: dimensionless actuator velocities per velocity (n_u, n_v).
        transmission: actuator velocities per velocity (n_u, n_v), SI; it defines which coordinates
            an actuator drives.
        rank: upper bound of the actuation's rank.
        scalar: whether each velocity (n_v,) belongs to a scalar coordinate, not to a quaternion.
    """
    m = motions.shape[2]
    leading = tuple(sorted(independent_rows(actuators @ motions, rank)))
    rank = len(leading)  # motors on coordinates that never move add rank only by rounding
    driven = np.flatnonzero(np.abs(transmission[list(leading)]).max(axis=0, initial=0.0) > 0)
    weight = np.where(scalar, 1.0, ROTATION_PREFERENCE)
    spare = len(driven) - len(leading)
    stack = np.concatenate([actuators[list(leading)] @ motions, motions], axis=1)
    chosen: tuple[int, ...] = tuple(range(rank))
    if spare > 0:
        driven_weight = np.zeros(len(weight))
        driven_weight[driven] = 1.0
        chosen = independent_rows(
            stack, min(rank + spare, m), chosen, np.concatenate([np.zeros(rank), driven_weight])
        )
    chosen = independent_rows(stack, m, chosen, np.concatenate([np.zeros(rank), weight]))
    return Actuation(leading=leading, passive=tuple(sorted(i - rank for i in chosen[rank:])))


#: Jacobians above this condition number count as singular.
SINGULAR = 1e8


def named_independent(loops: Loops) -> tuple[int, ...]:
    """Return the indices of the velocities that the file names as independent.

    Raises:
        AssemblyError: a name is not a velocity of the extended space.
    """
    names = loops.topology.velocity_names
    wanted = loops.mechanism.platform.independent
    AssemblyError.raise_if_any(
        Problem(
            where="platform.independent",
            what=f"{name} is not a coordinate of the extended space: its joint closes a loop",
            remedy=f"choose one of {', '.join(names)}",
            file=loops.mechanism.file,
        )
        for name in wanted
        if name not in names
    )
    return tuple(names.index(name) for name in wanted)


def completed(
    loops: Loops,
    motions: np.ndarray,
    at_start: np.ndarray,
    wanted: tuple[int, ...],
    passive: tuple[int, ...],
    notes: Problems,
) -> tuple[int, ...]:
    """Return the file's independent velocities, completed up to the mobility.

    Other velocities of a joint that the file names are chosen first. If the file names no joint,
    velocities of the joints between the base and the platform's body are chosen first. Driven and
    passive velocities come next. Velocities that do not move at the file's start pose are not
    chosen.

    Args:
        loops: the loop equations.
        motions: dimensionless motions at many states (N, n_v, m).
        at_start: motions at the file's start pose (1, n_v, m); empty (0, n_v, m) if the loops have
            a lower rank at this pose.
        wanted, passive: velocities that the file names, and passive velocities.
        notes: list to which a note on the choice is added.
    """
    mobility = motions.shape[2]
    if len(wanted) >= mobility:
        return wanted
    weight = np.where(_scalar(loops), 1.0, ROTATION_PREFERENCE)
    weight[np.abs(loops.transmission).max(axis=0, initial=0.0) > 0] *= DRIVEN_PREFERENCE
    weight[list(passive)] *= DRIVEN_PREFERENCE
    joints = [name.rpartition(".")[0] for name in loops.topology.velocity_names]
    named = {joints[i] for i in wanted} - {""}
    weight *= np.array([DRIVEN_PREFERENCE**2 if joint in named else 1.0 for joint in joints])
    if not wanted:
        weight[_carrying_platform(loops)] *= DRIVEN_PREFERENCE**2
    everywhere = np.concatenate([at_start, motions])
    chosen = tuple(
        sorted(independent_rows(everywhere, mobility, wanted, weight, sure=len(at_start)))
    )
    names = loops.topology.velocity_names
    beginning = (
        f"names {counted(len(wanted), 'coordinate')} ({', '.join(names[i] for i in wanted)})"
        if wanted
        else "names none"
    )
    added = ", ".join(names[i] for i in chosen if i not in wanted)
    notes.add(
        "platform.independent",
        f"{beginning} but the mobility is {mobility}; chosen by their conditioning: {added}",
        f"name {counted(mobility, 'coordinate')} if you prefer others",
        file=loops.mechanism.file,
    )
    return chosen


def _carrying_platform(loops: Loops) -> list[int]:
    """Return the velocities of the tree's joints between the base and the platform's body."""
    above = {joint.outer.body: joint for joint in loops.topology.tree}
    body, path = loops.mechanism.platform.body, list[int]()
    while body in above:
        path.extend(above[body].v)
        body = above[body].inner.body
    return path


def platform_conditions(
    loops: Loops,
    K_scaled: np.ndarray,
    rows: tuple[int, ...],
    independent: tuple[int, ...],
    frozen: tuple[int, ...],
    motions: np.ndarray,
    findings: Problems,
) -> np.ndarray:
    """Return condition numbers (N,) of the independent loops in the dependent velocities.

    A problem is added to the findings if the independent velocities do not determine the pose.
    """
    names, mobility = loops.topology.velocity_names, motions.shape[2]
    listed = ", ".join(names[i] for i in independent)
    constant = [names[i] for i in independent if i in frozen]
    dependent = [i for i in range(len(names)) if i not in independent and i not in frozen]
    condition = np.full(len(K_scaled), np.inf)
    if not constant and len(independent) == mobility:
        condition = conditions(K_scaled[:, list(rows)][:, :, dependent])
        if quantile(condition, 0.5) <= SINGULAR:
            return condition
        what = (
            f"{listed} do not determine the pose (condition number {quantile(condition, 0.5):.2g})"
        )
    elif constant and mobility:
        verb = "is" if len(constant) == 1 else "are"
        what = f"{', '.join(constant)} {verb} constant in every motion of the machine"
    else:
        coordinates = counted(len(independent), "coordinate")
        what = f"names {coordinates} ({listed}) but the mobility is {mobility}"
    findings.add(
        "platform.independent",
        what,
        _suggested(loops, motions, tuple(i for i in independent if i not in frozen)),
        file=loops.mechanism.file,
    )
    return condition


def _suggested(loops: Loops, motions: np.ndarray, wanted: tuple[int, ...]) -> str:
    """Return advice with a working choice that is close to the requested velocities."""
    names, mobility = loops.topology.velocity_names, motions.shape[2]
    rows = tuple(sorted(independent_rows(motions[:, list(wanted)], min(mobility, len(wanted)))))
    chosen = independent_rows(
        motions,
        mobility,
        [wanted[k] for k in rows],
        np.where(_scalar(loops), 1.0, ROTATION_PREFERENCE),
    )
    if not mobility or len(chosen) < mobility:
        return f"name {counted(mobility, 'coordinate')}, or check the joints"
    listed = ", ".join(names[i] for i in chosen)
    return f"name coordinates that determine it: {listed}; or check the joints"


def found_actuation(loops: Loops, motions: np.ndarray, notes: Problems) -> Actuation:
    """Return the actuation of a machine: leading actuators and passive degrees of freedom."""
    mobility = motions.shape[2]
    scaled = unit_free(loops)
    sigma = (
        np.linalg.svd(scaled @ motions, compute_uv=False)
        if scaled.size and mobility
        else np.zeros((1, 0))
    )
    rank = int(
        (sigma > 1.0 / SINGULAR * np.maximum(sigma[:, :1], 1e-300)).sum(axis=1).max(initial=0)
    )
    chosen = actuation(motions, scaled, loops.transmission, rank, _scalar(loops))
    rank = chosen.rank
    actuators = [actuator.name for actuator in loops.mechanism.actuators]
    if rank < mobility and not loops.mechanism.unstated_motors:
        names = ", ".join(loops.topology.velocity_names[i] for i in chosen.passive)
        notes.add(
            "actuators",
            f"no actuator moves {mobility - rank} of the {mobility} degrees of freedom of the machine; "
            f"passive: {names}",
            "hybrid inverse dynamics computes their accelerations; add motors, or lock the passive "
            "degrees of freedom that are not meant to move freely",
            file=loops.mechanism.file,
        )
    if mobility and rank < len(actuators):
        spare = ", ".join(name for i, name in enumerate(actuators) if i not in chosen.leading)
        noun = "degree" if rank == 1 else "degrees"
        notes.add(
            "actuators",
            f"{len(actuators)} actuators ({', '.join(actuators)}) act on only {rank} {noun} of freedom: "
            "actuation is redundant; inverse dynamics returns the forces with the smallest norm, "
            f"and motion is given without {spare}",
            "give weights of the actuators (`ForceSharing`) if you want other forces than those "
            "with the smallest sum of squares",
            file=loops.mechanism.file,
        )
    return chosen


def actuator_conditions(
    loops: Loops, motions: np.ndarray, independent: tuple[int, ...], actuation: Actuation
) -> np.ndarray:
    """Return condition numbers (N,) of the map from independent velocities to the actuation."""
    mobility = motions.shape[2]
    if (
        not mobility
        or len(independent) != mobility
        or len(actuation.leading) + len(actuation.passive) != mobility
    ):
        return np.full(len(motions), np.inf)
    rows = np.concatenate([unit_free(loops), np.eye(loops.topology.n_v)[list(actuation.passive)]])
    with np.errstate(all="ignore"):
        try:
            J = rows @ motions @ np.linalg.inv(motions[:, list(independent), :])
        except np.linalg.LinAlgError:
            return np.full(len(motions), np.inf)
    return conditions(J)


def _scalar(loops: Loops) -> np.ndarray:
    return np.array([i >= 0 for i in loops.topology.q_of_v], dtype=bool)


def unit_free(loops: Loops) -> np.ndarray:
    """Return actuator velocities per dimensionless velocity (n_u, n_v); row maxima are one."""
    A = loops.transmission * loops.velocity_scale
    unit = np.abs(A).max(axis=1, initial=0.0)
    return np.asarray(A / np.where(unit > 0, unit, 1.0)[:, None])


def conditions(matrices: np.ndarray) -> np.ndarray:
    """Return condition numbers (N,) in the 2-norm.

    The numbers are infinite for singular matrices and matrices that are not finite, and one for
    empty matrices.
    """
    if matrices.shape[1] == 0 or matrices.shape[2] == 0:
        return np.ones(len(matrices))
    numbers = np.full(len(matrices), np.inf)
    finite = np.isfinite(matrices).all(axis=(1, 2))
    sigma = np.linalg.svd(matrices[finite], compute_uv=False)
    with np.errstate(divide="ignore"):
        numbers[finite] = np.maximum(sigma[:, 0], 1e-300) / sigma[:, -1]
    return numbers
