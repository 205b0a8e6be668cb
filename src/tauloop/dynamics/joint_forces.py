"""Forces and moments in all joints and rod ends for a motion with known actuator forces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.datasets import Tabular, Variable, columns, time_axis
from tauloop.common.errors import InputError
from tauloop.common.plain import json_keys
from tauloop.common.records import dataclass
from tauloop.dynamics.load_cases import JointForce, LoadCases, load_cases
from tauloop.equations.joint_reactions import ReactionPoint
from tauloop.mechanism.model import PLATFORM_JOINT
from tauloop.mechanism.suggestions import unknown_names

if TYPE_CHECKING:
    from tauloop.compiler.state import Forces
    from tauloop.model import Model

#: Component of a unit internal load, dimensionless, above which a wrench component is undetermined.
INTERNAL_LOAD_TOLERANCE = 1e-7
#: Fraction of the largest wrench below which the wrench in the platform's virtual joint counts as
#: zero.
VIRTUAL_LOAD_TOLERANCE = 1e-9
#: Components of a wrench, with their units.
COMPONENTS = ("force.x", "force.y", "force.z", "moment.x", "moment.y", "moment.z")
COMPONENT_UNITS = ("N", "N", "N", "N m", "N m", "N m")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointForces(Tabular):
    """The wrenches in all joints and rod ends of a machine over N samples.

    Attributes:
        points: the k joints and rod ends, with the frames of their wrenches.
        time: (N,) times of the samples, s.
        wrench: (N, k, 6) forces (N) and moments (N m) in the axes of the joints' frames; NaN where
            the rigid machine does not determine a component.
        wrench_in_base: (N, k, 6) wrenches in the axes of the base.
        position: (N, k, 3) points of action in the base frame, m.
        orientation: (N, k, 3, 3) axes of the joints' frames as columns, in the base frame.
        imbalance: (N,) fraction of the generalized forces that no joint carries; rounding only.
    """

    points: tuple[ReactionPoint, ...] = field(
        metadata=json_keys(summary=lambda points: [_described(point) for point in points])
    )
    time: np.ndarray
    wrench: np.ndarray = field(metadata=json_keys(nullable=True))
    wrench_in_base: np.ndarray = field(metadata=json_keys(nullable=True))
    position: np.ndarray
    orientation: np.ndarray
    imbalance: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the joints and rod ends (k,)."""
        return tuple(point.name for point in self.points)

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Names of the joints whose wrenches rigid bodies do not determine completely."""
        unknown = np.isnan(self.wrench).any(axis=(0, 2))
        return tuple(name for name, missing in zip(self.names, unknown, strict=True) if missing)

    def joint(self, name: str) -> JointForce:
        """Return the wrench in one joint or rod end.

        Args:
            name: the joint, or the rod with ".start" or ".end".

        Raises:
            InputError: there is no such joint.
        """
        remedy = "give a joint, or a rod with .start or .end"
        InputError.raise_if_any(
            unknown_names([name], self.names, "{!r} is not a joint", "joint", remedy)
        )
        k = self.names.index(name)
        point, wrench = self.points[k], self.wrench[:, k]
        in_base = self.wrench_in_base[:, k]
        axis = self._axis(k)
        axial = radial = None
        if axis is not None:
            axial, radial = self._along_and_across(k, axis)
        return JointForce(
            name=name,
            kind=point.kind,
            on=point.on,
            by=point.by,
            force=wrench[:, :3],
            moment=wrench[:, 3:],
            force_in_base=in_base[:, :3],
            moment_in_base=in_base[:, 3:],
            position=self.position[:, k],
            axis=axis,
            axial=axial,
            radial=radial,
        )

    def load_cases(self) -> LoadCases:
        """Return the samples at which a load of a joint is largest, with all loads of the joint."""
        return load_cases(self.time, [self.joint(name) for name in self.names])

    def _axis(self, k: int) -> np.ndarray | None:
        """Return the axis (N, 3) of a joint or rod in the base frame; None without a single axis."""
        point = self.points[k]
        if point.axis is not None:
            return self.orientation[:, k, :, "xyz".index(point.axis)]
        if point.kind != "rod":
            return None
        other = ".end" if point.name.endswith(".start") else ".start"
        opposite = self.names.index(point.by + other)
        along = self.position[:, opposite] - self.position[:, k]
        return np.asarray(along / np.linalg.norm(along, axis=1, keepdims=True))

    def _along_and_across(self, k: int, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the force along an axis and its magnitude across it (N,).

        The axis of a joint is one of the axes of its frame, so undetermined components across it do
        not affect the component along it.
        """
        point = self.points[k]
        if point.axis is None:
            force = self.wrench_in_base[:, k, :3]
            along = np.sum(force * axis, axis=1)
            return along, np.linalg.norm(force - along[:, None] * axis, axis=1)
        index = "xyz".index(point.axis)
        force = self.wrench[:, k, :3]
        return force[:, index], np.linalg.norm(np.delete(force, index, axis=1), axis=1)

    def variables(self) -> Iterator[Variable]:
        """Yield force and moment components of every joint over time."""
        yield time_axis(self.time)
        yield from self.wrenches()

    def wrenches(self) -> Iterator[Variable]:
        """Yield the components of every joint: `joint.NAME.force.x` to `joint.NAME.moment.z`."""
        for k, point in enumerate(self.points):
            names = [f"{point.name}.{component}" for component in COMPONENTS]
            yield from columns("joint", names, COMPONENT_UNITS, self.wrench[:, k])


def _described(point: ReactionPoint) -> dict[str, str | None]:
    """Return name, kind, bodies and axis of a joint, for JSON."""
    return {
        "name": point.name,
        "kind": point.kind,
        "on": point.on,
        "by": point.by,
        "axis": point.axis,
    }


def joint_forces(model: Model, time: np.ndarray, forces: Forces) -> JointForces:
    """Return the wrenches in all joints and rod ends for solved inverse dynamics.

    The multipliers of all loop equations follow from M a + h - A^T u = K^T lambda by least squares,
    redundant equations included. A combination of multipliers in the null space of K^T is an
    internal load, which the motion does not determine. Wrench components that an internal load
    changes are NaN.

    The platform's coordinates are those of a virtual joint, which should carry no load. Internal
    loads move its wrench to the other joints. The virtual joint is listed only if they cannot carry
    all of it.

    Args:
        model: the machine, at its nominal parameter values.
        time: (N,) times of the samples, s.
        forces: actuator forces and the full motion with accelerations.
    """
    assembly = model.assembly
    loops = assembly.loops
    reactions = model.joint_reactions
    state = forces.state
    q, v, a = (np.atleast_2d(np.asarray(array)) for array in (state.q, state.v, state.a))
    n, k = len(q), len(reactions.points)
    generalized = (
        np.atleast_2d(forces.tree_force) - np.atleast_2d(forces.force) @ loops.transmission
    )
    multipliers, internal, imbalance = _multipliers(model, q, generalized)
    inertial = reactions.inertial([q, v, a], n)[0]
    wrench = (inertial - reactions.closing([q, multipliers], n)[0]).reshape(n, k, 6)
    free = np.stack(
        [reactions.closing([q, load], n)[0].reshape(n, k, 6) for load in internal]
        or [np.zeros((n, k, 6))]
    )
    size = np.repeat([loops.length, 1.0], 3)
    points = reactions.points
    chosen = list(range(k))
    virtual = next((i for i, point in enumerate(points) if point.name == PLATFORM_JOINT), None)
    if virtual is not None:
        wrench, free = _without_load(wrench, free, virtual, size)
        virtual_load = np.abs(wrench[:, virtual] * size).max()
        if virtual_load <= VIRTUAL_LOAD_TOLERANCE * np.abs(wrench * size).max():
            chosen.remove(virtual)
    wrench, free = wrench[:, chosen], free[:, :, chosen]
    frames = reactions.placements([q], n)[0].reshape(n, k, 4, 3)[:, chosen]
    orientation = frames[:, :, 1:].transpose(0, 1, 3, 2)
    in_base = _rotated(orientation, wrench)
    free_in_base = _rotated(orientation, free)
    return JointForces(
        points=tuple(points[i] for i in chosen),
        time=time,
        wrench=_determined(wrench, free * size),
        wrench_in_base=_determined(in_base, free_in_base * size),
        position=frames[:, :, 0],
        orientation=orientation,
        imbalance=imbalance,
    )


def _without_load(
    wrench: np.ndarray, free: np.ndarray, point: int, size: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return wrenches in which internal loads relieve one point, and the remaining internal loads.

    The remaining internal loads are zero at this point.

    Args:
        wrench: wrenches (N, k, 6).
        free: wrenches (i, N, k, 6) of unit internal loads.
        point: index of the point.
        size: unit (6,) of a wrench's components, m or one.
    """
    A = (free[:, :, point] * size).transpose(1, 2, 0)
    U, sigma, Vt = np.linalg.svd(A, full_matrices=False)
    is_used = sigma > INTERNAL_LOAD_TOLERANCE
    used = np.where(is_used[:, :, None], Vt, 0.0)
    components = np.einsum("nij,ni->nj", U, wrench[:, point] * size)
    scaled = np.where(is_used, components / np.where(is_used, sigma, 1.0), 0.0)
    amounts = np.einsum("nji,nj->ni", used, scaled)
    remaining = np.eye(len(free)) - np.einsum("nji,njk->nik", used, used)
    return (
        wrench - np.einsum("ni,inkj->nkj", amounts, free),
        np.einsum("nij,jnkp->inkp", remaining, free),
    )


def _rotated(orientation: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """Return wrenches (..., N, k, 6) in the axes of the base."""
    parts = wrench.reshape(*wrench.shape[:-1], 2, 3)
    return np.asarray(np.einsum("nkij,...nkpj->...nkpi", orientation, parts)).reshape(wrench.shape)


def _determined(wrench: np.ndarray, internal: np.ndarray) -> np.ndarray:
    """Return wrenches (N, k, 6) with NaN where an internal load (i, N, k, 6) changes a component."""
    changes = np.abs(internal).max(axis=0) > INTERNAL_LOAD_TOLERANCE
    return np.where(changes, np.nan, wrench)


def _multipliers(
    model: Model, q: np.ndarray, generalized: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Return multipliers (N, c), a list of internal loads (N, c), and the imbalance (N,).

    Args:
        model: the machine.
        q: coordinates (N, n_q).
        generalized: forces (N, n_v) that loops and locks carry.
    """
    assembly = model.assembly
    loops = assembly.loops
    count = len(loops.names)
    K = loops.scaled(loops.residuals(q)[1])
    locks = np.zeros((len(q), len(assembly.locked), loops.topology.n_v))
    for row, index in enumerate(assembly.locked):
        locks[:, row, index] = 1.0
    constraints = np.concatenate([K, locks], axis=1)
    load = generalized * loops.velocity_scale
    rank = loops.topology.n_v - assembly.mobility
    U, sigma, Vt = np.linalg.svd(constraints)
    components = np.einsum("nij,nj->ni", Vt, load)
    scaled = np.einsum("nij,nj->ni", U[:, :, :rank], components[:, :rank] / sigma[:, :rank])
    magnitude = np.abs(load).max(axis=1, initial=0.0)
    imbalance = np.abs(components[:, rank:]).max(axis=1, initial=0.0) / np.maximum(
        magnitude, np.finfo(float).tiny
    )
    internal = [loops.row_scale * U[:, :count, i] for i in range(rank, constraints.shape[1])]
    return loops.row_scale * scaled[:, :count], internal, imbalance
