"""Wrenches in all joints and rod ends, by virtual displacements of an extended machine.

Every joint gets a massless frame on the side of its child. A virtual joint with six locked degrees
of freedom connects the frame to the child. The generalized forces of these degrees of freedom are
the wrench that the joint transmits. So the wrenches follow from tree forces and loop equations, and
no element needs additional equations.

Source: Featherstone 2008, Rigid Body Dynamics Algorithms, section 3.3 (constraint forces by
d'Alembert's principle).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.assembly.loops import Loops, closure, nominal, stacked
from tauloop.equations.newton_euler import tree_forces
from tauloop.equations.topology import Topology, topology
from tauloop.equations.tree import Configuration, tree_motion
from tauloop.equations.values import BatchFunction, Entries, dynamic_parameters
from tauloop.mechanism.model import Body, Joint, Mechanism, Placement, Rod

#: Suffixes of the names of the virtual frames and joints. Names in machine files cannot contain <.
FRAME_SUFFIX, VIRTUAL_SUFFIX = "<frame>", "<virtual>"
#: Number of components of a wrench: force x, y, z and moment x, y, z.
WRENCH_SIZE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionPoint:
    """A joint or rod end in which a wrench is computed.

    Attributes:
        name: name of the joint, or of the rod with ".start" or ".end".
        kind: kind of the joint; "rod" for the end of a rod.
        on: body on which the wrench acts.
        by: body or rod that exerts it.
        frame: frame on that body. Its origin is the point of action of the wrench, whose components
            are in its axes.
        axis: letter of the axis of a revolute, prismatic or cylindrical joint; None for others.
        sign: -1 if the virtual joint leads from the body to the frame, otherwise 1.
    """

    name: str
    kind: str
    on: str
    by: str
    frame: Placement
    axis: str | None
    sign: int


class _Split(NamedTuple):
    """Elements that replace one joint or rod end."""

    point: ReactionPoint
    body: Body
    virtual: Joint
    frame: Placement


def _split(
    name: str, kind: str, by: str, at: Placement, *, axis: str | None, frame_is_inner: bool
) -> _Split:
    """Return a massless frame at a placement, and the virtual joint between body and frame."""
    frame = Placement(body=f"{name}{FRAME_SUFFIX}")
    inner, outer = (frame, at) if frame_is_inner else (at, frame)
    return _Split(
        point=ReactionPoint(
            name=name,
            kind=kind,
            on=at.body,
            by=by,
            frame=at,
            axis=axis,
            sign=1 if frame_is_inner else -1,
        ),
        body=Body(name=frame.body),
        virtual=Joint(name=f"{name}{VIRTUAL_SUFFIX}", kind="free", parent=inner, child=outer),
        frame=frame,
    )


def with_virtual_joints(
    mechanism: Mechanism, tree_topology: Topology
) -> tuple[Mechanism, tuple[ReactionPoint, ...]]:
    """Return the machine with a virtual joint in every joint and rod end, and the reaction points.

    The joints that close loops remain the same.

    Args:
        mechanism: the machine, with the ends that its loops need.
        tree_topology: spanning tree of the machine.
    """
    outward = {edge.joint.name for edge in tree_topology.tree if not edge.is_reversed}
    cut = {joint.name for joint in tree_topology.cuts}
    splits: list[_Split] = []
    joints: list[Joint] = []
    for joint in mechanism.joints:
        joint = replace(joint, is_cut=joint.name in cut)
        if joint.kind == "free":
            joints.append(joint)
            continue
        split = _split(
            joint.name,
            joint.kind,
            joint.parent.body,
            joint.child,
            axis=joint.axes[0] if len(joint.axes) == 1 else None,
            frame_is_inner=joint.name in outward,
        )
        splits.append(split)
        joints += [replace(joint, child=split.frame), split.virtual]
    rods: list[Rod] = []
    for rod in mechanism.rods:
        ends = [
            _split(
                f"{rod.name}.{end}",
                "rod",
                rod.name,
                replace(placement, turns=()),
                axis=None,
                frame_is_inner=False,
            )
            for end, placement in (("start", rod.start), ("end", rod.end))
        ]
        splits += ends
        joints += [end.virtual for end in ends]
        rods.append(replace(rod, start=ends[0].frame, end=ends[1].frame))
    extended = replace(
        mechanism,
        bodies=(*mechanism.bodies, *(split.body for split in splits)),
        joints=tuple(joints),
        rods=tuple(rods),
    )
    return extended, tuple(split.point for split in splits)


@dataclass(frozen=True, slots=True, kw_only=True)
class JointReactions(ReprMixin):
    """Functions of the wrenches in all joints and rod ends (6 k,).

    A wrench acts on the body `on` of its point, about the frame's origin and in the frame's axes.

    Attributes:
        points: the k joints and rod ends.
        inertial: (q, v, a) -> wrenches (N, 6 k), the contribution of inertia and gravity.
        closing: (q, lambda) -> wrenches (N, 6 k) due to multipliers (N, c) of all loop equations,
            to be subtracted.
        placements: q -> origins and axes of the frames in the base frame (N, 12 k): p, then R by
            columns.
    """

    points: tuple[ReactionPoint, ...]
    inertial: BatchFunction
    closing: BatchFunction
    placements: BatchFunction


def joint_reactions(loops: Loops) -> JointReactions:
    """Build the functions of the wrenches in all joints at nominal parameter values.

    Returns:
        The functions, and the points at which the wrenches act.
    """
    tree_topology = loops.topology
    extended, points = with_virtual_joints(loops.mechanism, tree_topology)
    extended_topology = topology(extended)
    values = nominal(extended)
    q, v, a = (
        ca.SX.sym(name, size)
        for name, size in (
            ("q", tree_topology.n_q),
            ("v", tree_topology.n_v),
            ("a", tree_topology.n_v),
        )
    )
    virtual = ca.SX.sym("virtual", WRENCH_SIZE * len(points))
    q_extended = _embedded(
        q,
        tree_topology.coordinate_names,
        extended_topology.coordinate_names,
        extended_topology.reference,
    )
    zeros = (0.0,) * extended_topology.n_v
    v_extended = _embedded(v, tree_topology.velocity_names, extended_topology.velocity_names, zeros)
    a_extended = _embedded(a, tree_topology.velocity_names, extended_topology.velocity_names, zeros)
    names = [name for point in points for name in _virtual_names(point)]
    virtual_rows = [extended_topology.velocity_names.index(name) for name in names]
    signs = np.repeat([point.sign for point in points], WRENCH_SIZE)

    configuration = Configuration(q_extended, {})
    motion = tree_motion(extended_topology, values, configuration, v_extended, a_extended)
    parameters = dynamic_parameters(extended, extended_topology)
    pi = ca.vertcat(*(ca.SX(values.scalar(entry.expression)) for entry in parameters))
    tau = tree_forces(extended, motion, Entries(parameters, pi))

    v_virtual = ca.SX(extended_topology.n_v, 1)
    v_virtual[virtual_rows] = virtual
    rows = closure(
        extended,
        tree_motion(
            extended_topology, values, configuration, v_virtual, ca.SX(extended_topology.n_v, 1)
        ),
    )
    if tuple(row.name for row in rows) != loops.names:
        raise AssertionError("virtual joints changed the loop equations")
    multipliers = ca.SX.sym("lambda", len(rows))
    rates = stacked(rows)[1]
    closing = ca.jtimes(rates, virtual, multipliers, True) if rows else ca.SX(len(signs), 1)
    frame_bodies = [motion.bodies[f"{point.name}{FRAME_SUFFIX}"] for point in points]
    frames = ca.vertcat(*(ca.vertcat(body.p, ca.vec(body.R)) for body in frame_bodies))
    sign = ca.DM(signs)
    return JointReactions(
        points=points,
        inertial=BatchFunction(
            ca.Function("inertial", [q, v, a], [ca.densify(sign * tau[virtual_rows])])
        ),
        closing=BatchFunction(
            ca.Function("closing", [q, multipliers], [ca.densify(sign * closing)])
        ),
        placements=BatchFunction(ca.Function("frames", [q], [ca.densify(frames)])),
    )


def _virtual_names(point: ReactionPoint) -> tuple[str, ...]:
    """Return the names of the six virtual velocities: translations, then rotations."""
    return Joint(
        name=f"{point.name}{VIRTUAL_SUFFIX}", kind="free", parent=point.frame, child=point.frame
    ).velocity_names


def _embedded(
    column: ca.SX, names: Sequence[str], extended_names: Sequence[str], constants: Sequence[float]
) -> ca.SX:
    """Return the column of the extended machine, with constants for the virtual entries."""
    index = {name: i for i, name in enumerate(names)}
    return ca.vertcat(
        *(
            column[index[name]] if name in index else ca.SX(constant)
            for name, constant in zip(extended_names, constants, strict=True)
        )
    )
