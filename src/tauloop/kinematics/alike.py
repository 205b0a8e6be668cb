"""Bodies of a machine that rotate alike, and rods that stay parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import casadi as ca
import numpy as np

from tauloop.equations.assembly.loops import nominal
from tauloop.equations.inertial_elements import inertial_elements
from tauloop.equations.tree import symbolic_motion
from tauloop.equations.values import BatchFunction, Entries
from tauloop.geometry.machine_geometry import machine_geometry
from tauloop.mechanism.model import BASE, Mechanism
from tauloop.mechanism.reduction import BodyMotions, total_mass
from tauloop.model import Model

#: Bodies rotate alike, and rods stay parallel, if their orientations, or their ends relative to the
#: rod's length, differ by less than this. It is far above the residual of closed loops and far
#: below the effect of a joint error of one micrometer.
ALIKE = 1e-8


def body_motions(model: Model, states: np.ndarray) -> BodyMotions:
    """Return which bodies rotate alike, from their orientations in assembled states.

    Bodies b and c rotate alike if R_b(q) R_b(q_0)^T = R_c(q) R_c(q_0)^T in every state q.

    Args:
        model: the machine.
        states: assembled coordinates (N, n_q).
    """
    # the loops of the reference pose are closed only to 1e-10 m; close them to rounding
    reference = model.platform.kinematics(
        model.platform_position(model.assembly.q), start=model.assembly.q
    ).q
    geometry = machine_geometry(model, np.vstack([reference[None, :], states]))
    names = [BASE, *(edge.outer.body for edge in model.topology.tree)]
    indices = [geometry.shape.index[name] for name in names]
    R, p = geometry.rotations[:, indices], geometry.origins[0, indices]
    rotations = np.einsum("nbij,bkj->bnik", R, R[0])

    def rotate_alike(i: int, j: int) -> bool:
        return bool(np.abs(rotations[i] - rotations[j]).max() < ALIKE)

    groups = _grouped(len(names), rotate_alike)
    orientations = dict(zip(names, R.swapaxes(0, 1), strict=True))
    named_groups = [frozenset(np.take(names, group).tolist()) for group in groups]
    steady = {name: R[0, i].T @ _fixed_directions(rotations[i]) for i, name in enumerate(names)}
    return BodyMotions(
        groups=tuple(named_groups),
        orientation=dict(zip(names, R[0], strict=True)),
        position=dict(zip(names, p, strict=True)),
        steady=steady,
        rods=dict(_rod_carriers(model.mechanism, geometry.of_kind("rod"), orientations)),
    )


def _rod_carriers(
    mechanism: Mechanism, ends: np.ndarray, orientations: Mapping[str, np.ndarray]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each rod of fixed length with the bodies relative to which it keeps its direction.

    Args:
        mechanism: the machine.
        ends: both ends of the rods in the base frame (N, rods, 2, 3), m.
        orientations: orientations of the bodies (N, 3, 3).
    """
    for j, rod in enumerate(mechanism.rods):
        if rod.length is None:
            continue
        direction = (ends[:, j, 1] - ends[:, j, 0]) / mechanism.value(rod.length)
        in_body = {name: np.einsum("nji,nj->ni", R, direction) for name, R in orientations.items()}
        yield (
            rod.name,
            frozenset(name for name, u in in_body.items() if np.abs(u - u[0]).max() < ALIKE),
        )


def _fixed_directions(rotations: np.ndarray) -> np.ndarray:
    """Return the directions (3, k) preserved by rotations (N, 3, 3): null space of all R - 1."""
    _, s, Vt = np.linalg.svd((rotations - np.eye(3)).reshape(-1, 3), full_matrices=False)
    return np.asarray(Vt[s < 2.0 * ALIKE * np.sqrt(len(rotations))].T)


def parallel_rods(model: Model, states: np.ndarray) -> tuple[tuple[str, ...], ...]:
    """Return groups of equal fixed rods between the same bodies that stay parallel.

    Their ends on each body move alike.

    Args:
        model: the machine.
        states: assembled coordinates (N, n_q).
    """
    mechanism = model.mechanism
    ends = machine_geometry(model, states).of_kind("rod")

    def alike(i: int, j: int) -> bool:
        a, b = mechanism.rods[i], mechanism.rods[j]
        if (
            (a.start.body, a.end.body) != (b.start.body, b.end.body)
            or a.length is None
            or b.length is None
        ):
            return False
        offsets = ends[:, j] - ends[:, i]
        spread = np.abs(offsets - offsets[0]).max()
        tilt = np.abs(offsets[:, 1] - offsets[:, 0]).max()
        return bool(max(spread, tilt) < ALIKE * mechanism.value(a.length))

    groups = _grouped(len(mechanism.rods), alike)
    names = [rod.name for rod in mechanism.rods]
    return tuple(tuple(np.take(names, group).tolist()) for group in groups if len(group) > 1)


def _grouped(count: int, is_alike: Callable[[int, int], bool]) -> list[list[int]]:
    """Return the indices in groups whose members are like the first one."""
    groups: list[list[int]] = []
    for i in range(count):
        group = next((group for group in groups if is_alike(group[0], i)), None)
        if group is None:
            groups.append([i])
        else:
            group.append(i)
    return groups


def mass_center(model: Model, q: np.ndarray) -> np.ndarray:
    """Return the center of mass (N, 3) of all bodies and rods in the base frame, m.

    The masses are those of the potential energy.

    Args:
        model: the machine.
        q: assembled coordinates (N, n_q).
    """
    reference = symbolic_motion(model.topology, nominal(model.mechanism), is_moving=False)
    entries = Entries(model.parameters, ca.SX(ca.DM(model.pi)))
    elements = inertial_elements(model.mechanism, reference, entries)
    moment = sum((element.weight for element in elements), ca.SX(3, 1))
    function = BatchFunction(ca.Function("moment", [reference.q], [ca.densify(moment)]))
    return function([q], len(q))[0] / (total_mass(model.mechanism) or 1.0)
