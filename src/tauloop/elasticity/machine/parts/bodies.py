"""Conversion of bodies to rigid bodies, nodes with beams, or reduced finite-element models."""

from __future__ import annotations

import numpy as np

from tauloop.elasticity.frame.beams import Array, Matrices
from tauloop.elasticity.frame.structure import (
    Attachment,
    Element,
    RigidBody,
    beam_axes,
    beam_element,
    transport,
)
from tauloop.elasticity.machine.parts.collected import (
    StructureParts,
    transverse_direction,
    with_fittings,
)
from tauloop.elasticity.static_analysis.gradients import ElasticLaw
from tauloop.mechanism.elastic.beams import BodyBeam
from tauloop.mechanism.elastic.inertia import ElementMass
from tauloop.mechanism.elastic.structures import ReducedStructure
from tauloop.mechanism.model import BASE, Body
from tauloop.mechanism.poses import FramePose


def add_body(parts: StructureParts, body: Body) -> None:
    """Add a rigid body, or the nodes and beams of an elastic one."""
    pose = parts.body_pose(body.name)
    if not body.beams:
        inertia = None if body.inertia is None else parts.inertia(body.inertia, pose)
        parts.bodies.append(RigidBody(name=body.name, origin=pose.position, inertia=inertia))
        return
    mass = None if body.inertia is None else body.inertia.mass
    beams = [item.beam for item in body.beams]
    stated = parts.stated_mass(body.name, mass, beams, body.is_distributed)
    parts.masses.append(stated)
    parts.elastic.append(body.name)
    nodes: list[tuple[str, Array]] = []
    parts.nodes[body.name] = nodes
    for beam in body.beams:
        for end, position in (("start", beam.start), ("end", beam.end)):
            point = np.array([parts.mechanism.value(x) for x in position])
            if parts.node_at(body.name, point) is None:
                nodes.append((f"{body.name}.{beam.name}.{end}", point))
    for name, point in nodes:
        origin = pose.position + pose.rotation @ point
        parts.bodies.append(RigidBody(name=name, origin=origin))
    for beam in body.beams:
        _add_body_beam(parts, body, beam, pose, stated)


def add_reduced(parts: StructureParts, item: ReducedStructure) -> None:
    """Add the nodes and matrices of a reduced finite-element model."""
    pose = FramePose() if item.body == BASE else parts.body_pose(item.body)
    pose = FramePose(
        np.broadcast_to(pose.rotation, (parts.samples, 3, 3)),
        np.broadcast_to(pose.position, (parts.samples, 3)),
    )
    parts.elastic.append(item.name)
    nodes: list[tuple[str, Array]] = []
    attachments = []
    for number, position in enumerate(item.nodes):
        point = np.array([parts.mechanism.value(x) for x in position])
        name = f"{item.name}.node{number + 1}"
        origin = pose.position + pose.rotation @ point
        nodes.append((name, point))
        inertia = None
        if number == 0 and item.mass is None:
            inertia = _inertia_at(parts, item, pose, origin)
        parts.bodies.append(RigidBody(name=name, origin=origin, inertia=inertia))
        attachments.append(Attachment(body=name, point=origin, axes=pose.rotation))
    parts.nodes[item.body] = nodes
    K = item.stiffness.array
    M = np.zeros_like(K) if item.mass is None else item.mass.array
    matrices = Matrices(stiffness=K, mass=M, geometric=np.zeros_like(K))
    parts.elements.append(
        Element(name=item.name, attachments=tuple(attachments), matrices=matrices)
    )


def _inertia_at(
    parts: StructureParts, item: ReducedStructure, pose: FramePose, node: Array
) -> Array | None:
    """Return the inertia (N, 6, 6) of a body about a node; None if the body has no inertia.

    This function serves finite-element models without a mass matrix: the node carries the mass of
    the body. It adds the model to the massless models.
    """
    parts.massless.append(item.name)
    body = next((body for body in parts.mechanism.bodies if body.name == item.body), None)
    if body is None or body.inertia is None:
        return None
    about_origin = parts.inertia(body.inertia, pose)
    twist_transport = transport(pose.position - node)
    return np.asarray(np.swapaxes(twist_transport, -1, -2) @ about_origin @ twist_transport)


def _add_body_beam(
    parts: StructureParts, body: Body, beam: BodyBeam, pose: FramePose, stated: ElementMass
) -> None:
    """Add a beam of a body between two of its nodes."""
    value = parts.mechanism.value
    local_start = np.array([value(x) for x in beam.start])
    local_end = np.array([value(x) for x in beam.end])
    if beam.z_axis is None:
        z_direction = transverse_direction(local_end - local_start)
    else:
        z_direction = np.array(beam.z_axis)
    axes = pose.rotation @ beam_axes(local_start, local_end, z_direction)
    numbers = parts.numeric_beam(f"{body.name}.{beam.name}", beam.beam, stated)
    reduced = parts.reduced_beam(numbers, numbers.lengths, ((), ()))
    name = f"{body.name}.{beam.name}"
    start = str(parts.node_at(body.name, local_start)), pose.position + pose.rotation @ local_start
    end = str(parts.node_at(body.name, local_end)), pose.position + pose.rotation @ local_end
    element = beam_element(name, reduced, start, end, axes)
    parts.add_element(with_fittings(element, numbers.fittings), numbers)
    parts.laws.append(ElasticLaw(item=name, beams=(beam.beam,)))
