"""What moves an assembled machine: its independent coordinates, its actuators, and how well they determine its pose.

Which freedoms are independent, which actuators lead and which freedoms are passive is chosen once
at build, for the worst of many assembled states, by pivoting on unit-free motions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.errors import AssemblyError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.equations.assembly.loops import Loops
from tauloop.equations.values import quantile

#: A pivot that shrinks below this share of a unit motion at some state determines nothing there.
SMALLEST = 1e-8
#: Factors on the pivots of preferred coordinates, and of those that are no angle or length of their
#: own.
DRIVEN, ROTATION = 10.0, 0.1
#: Below this share of its usual pivot a row stands still at a state.
STANDING = 1e-3
#: Rows whose sizes differ by less than this share are equal, as in machines with a plane of
#: symmetry. The first one is taken: rounding, which differs between processors, does not choose.
#: Closed states are exact to 1e-12.
TIE = 1e-9
#: What lies between pivots of all states: the worst state counts, but single singular states do not
#: rule a choice out.
QUANTILE = 0.1


def independent_rows(
    matrices: np.ndarray,
    count: int,
    fixed: Sequence[int] = (),
    preference: np.ndarray | None = None,
    *,
    sure: int = 0,
) -> tuple[int, ...]:
    """Rows that are well conditioned together at all states: pivoting on what earlier choices leave of each row.

    Args:
        matrices: (N, k, m) at N states.
        count: how many rows are wanted, those in `fixed` included; fewer come back where there are
            no more.
        fixed: rows that are taken first, in this order.
        preference: factor (k,) on the size of each row; zero rules a row out.
        sure: of the first so many states none may be an exception: no row stands still at one of
            them.

    Returns:
        Indices of the rows, in the order of their choice.
    """
    left = np.array(matrices, dtype=float)
    weight = np.ones(left.shape[1]) if preference is None else preference
    chosen: list[int] = []
    queue = list(fixed)
    while len(chosen) < count:
        size = np.linalg.norm(left, axis=2)
        common = quantile(size, QUANTILE) if len(size) else np.zeros(left.shape[1])
        least = size[:sure].min(axis=0, initial=np.inf)
        common = np.where(least < STANDING * common, least, common)
        if queue:
            row = queue.pop(0)
        else:
            score = common * weight
            score[chosen] = 0.0
            row = int(np.argmax(score >= (1.0 - TIE) * score.max()))
            if score[row] <= SMALLEST:
                break
        if common[row] > SMALLEST or row in fixed:
            chosen.append(row)
        unit = left[:, row] / np.maximum(size[:, row], 1e-300)[:, None]
        left = left - np.einsum("nki,ni,nj->nkj", left, unit, unit)
    return tuple(chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actuation:
    """How actuators and passive freedoms together determine the motion.

    Attributes:
        leading: indices of the actuators whose motion is given; the others follow them (redundant
            actuation).
        passive: indices of the passive velocities, which move while all actuators rest.
    """

    leading: tuple[int, ...]
    passive: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Freedoms that the actuators move."""
        return len(self.leading)


def actuation(
    motions: np.ndarray,
    actuators: np.ndarray,
    transmission: np.ndarray,
    rank: int,
    scalar: np.ndarray,
) -> Actuation:
    """Leading actuators and passive freedoms, chosen so that they determine the motion together.

    Passive freedoms are coordinates of the actuators first where an actuator drives several (so
    that positions follow at once), then whatever moves most while the actuators rest.

    Args:
        motions: unit-free motions (N, n_v, m).
        actuators: unit-free actuator velocities per velocity (n_u, n_v).
        transmission: the same with its units, for which coordinates an actuator drives.
        rank: of the actuation, at most.
        scalar: which velocities (n_v,) belong to a coordinate of their own, not to a quaternion.
    """
    m = motions.shape[2]
    leading = tuple(sorted(independent_rows(actuators @ motions, rank)))
    rank = len(leading)  # a motor on a coordinate that never moves has a rank by rounding
    driven = np.flatnonzero(np.abs(transmission[list(leading)]).max(axis=0, initial=0.0) > 0)
    weight = np.where(scalar, 1.0, ROTATION)
    spare = len(driven) - len(leading)
    stack = np.concatenate([actuators[list(leading)] @ motions, motions], axis=1)
    chosen: tuple[int, ...] = tuple(range(rank))
    if spare > 0:
        own = np.zeros(len(weight))
        own[driven] = 1.0
        chosen = independent_rows(
            stack, min(rank + spare, m), chosen, np.concatenate([np.zeros(rank), own])
        )
    chosen = independent_rows(stack, m, chosen, np.concatenate([np.zeros(rank), weight]))
    return Actuation(leading=leading, passive=tuple(sorted(i - rank for i in chosen[rank:])))


#: Jacobians above this condition number count as singular.
SINGULAR = 1e8


def named_independent(loops: Loops) -> tuple[int, ...]:
    """Indices of the velocities that the file names as independent.

    Raises:
        AssemblyError: a name belongs to no velocity of the extended space.
    """
    names = loops.topology.velocity_names
    wanted = loops.mechanism.platform.independent
    AssemblyError.raise_if_any(
        Problem(
            where="platform.independent",
            what=f"{name} is not a coordinate of the extended space: its joint closes a loop",
            remedy=f"choose among {', '.join(names)}",
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
    """The independent velocities that the file names, and more where they are fewer than the mobility.

    Further ones of a joint that the file names come first; where it names none, those of joints
    between the base and the platform's body. Then come those of actuators and passive freedoms, so
    that the state is what is driven and what is free; but none that stand still where the file
    starts.

    Args:
        loops: the loop equations.
        motions: unit-free motions at many states (N, n_v, m).
        at_start: those at the pose where the file starts (1, n_v, m); none (0, n_v, m) where it has
            more.
        wanted, passive: velocities that are named, and that nothing drives.
        notes: receives what was chosen.
    """
    mobility = motions.shape[2]
    if len(wanted) >= mobility:
        return wanted
    weight = np.where(_scalar(loops), 1.0, ROTATION)
    weight[np.abs(loops.transmission).max(axis=0, initial=0.0) > 0] *= DRIVEN
    weight[list(passive)] *= DRIVEN
    joints = [name.rpartition(".")[0] for name in loops.topology.velocity_names]
    named = {joints[i] for i in wanted} - {""}
    weight *= np.array([DRIVEN**2 if joint in named else 1.0 for joint in joints])
    if not wanted:
        weight[_carrying_platform(loops)] *= DRIVEN**2
    everywhere = np.concatenate([at_start, motions])
    chosen = tuple(
        sorted(independent_rows(everywhere, mobility, wanted, weight, sure=len(at_start)))
    )
    names = loops.topology.velocity_names
    beginning = (
        f"names {len(wanted)} coordinates ({', '.join(names[i] for i in wanted)})"
        if wanted
        else "names none"
    )
    added = ", ".join(names[i] for i in chosen if i not in wanted)
    notes.add(
        "platform.independent",
        f"{beginning} but the mobility is {mobility}; chosen by their conditioning: {added}",
        f"name {mobility} coordinates where others suit you better",
        file=loops.mechanism.file,
    )
    return chosen


def _carrying_platform(loops: Loops) -> list[int]:
    """Velocities of the joints on the path of the tree from the base to the platform's body."""
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
    """Condition (N,) of the kept loops in the dependent velocities; what the independent ones lack is a finding."""
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
        what = f"{', '.join(constant)} {verb} constant: no motion of the machine moves it"
    else:
        what = f"names {len(independent)} coordinates ({listed}) but the mobility is {mobility}"
    findings.add(
        "platform.independent",
        what,
        _suggested(loops, motions, tuple(i for i in independent if i not in frozen)),
        file=loops.mechanism.file,
    )
    return condition


def _suggested(loops: Loops, motions: np.ndarray, wanted: tuple[int, ...]) -> str:
    """A choice that works and keeps what can be kept of the wanted velocities, in words."""
    names, mobility = loops.topology.velocity_names, motions.shape[2]
    kept = tuple(sorted(independent_rows(motions[:, list(wanted)], min(mobility, len(wanted)))))
    chosen = independent_rows(
        motions, mobility, [wanted[k] for k in kept], np.where(_scalar(loops), 1.0, ROTATION)
    )
    if not mobility or len(chosen) < mobility:
        return f"name {mobility} coordinates, or check the joints"
    return f"these determine it: {', '.join(names[i] for i in chosen)}; or check the joints"


def found_actuation(loops: Loops, motions: np.ndarray, notes: Problems) -> Actuation:
    """What the actuators move, which of them lead, and which freedoms are passive."""
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
            f"no actuator moves {mobility - rank} of the {mobility} freedoms of the machine; passive: {names}",
            "hybrid inverse dynamics gives their accelerations; add motors, or lock the passive freedoms "
            "that are not meant to move freely",
            file=loops.mechanism.file,
        )
    if mobility and rank < len(actuators):
        spare = ", ".join(name for i, name in enumerate(actuators) if i not in chosen.leading)
        notes.add(
            "actuators",
            f"{len(actuators)} actuators ({', '.join(actuators)}) act on only {rank} freedoms: actuation is "
            f"redundant; inverse dynamics shares forces by the least norm, and motion is given without {spare}",
            "weigh the actuators (`ForceSharing`) if the least sum of squares is not the share you want",
            file=loops.mechanism.file,
        )
    return chosen


def actuator_conditions(
    loops: Loops, motions: np.ndarray, independent: tuple[int, ...], actuation: Actuation
) -> np.ndarray:
    """Condition (N,) of the map from independent to actuator (and passive) velocities."""
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
    """Actuator velocities per unit-free velocity (n_u, n_v), the largest entry of each row one."""
    A = loops.transmission * loops.velocity_scale
    unit = np.abs(A).max(axis=1, initial=0.0)
    return np.asarray(A / np.where(unit > 0, unit, 1.0)[:, None])


def conditions(matrices: np.ndarray) -> np.ndarray:
    """Condition numbers (N,) in the 2-norm; infinite where singular or not finite, one for empty matrices."""
    if matrices.shape[1] == 0 or matrices.shape[2] == 0:
        return np.ones(len(matrices))
    numbers = np.full(len(matrices), np.inf)
    known = np.isfinite(matrices).all(axis=(1, 2))
    sigma = np.linalg.svd(matrices[known], compute_uv=False)
    with np.errstate(divide="ignore"):
        numbers[known] = np.maximum(sigma[:, 0], 1e-300) / sigma[:, -1]
    return numbers
