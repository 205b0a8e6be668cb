"""Elastic drives on random machines: compliance and gradients, and motors corrected by their forces.

Everything but the drives is rigid, so that other routes are a few lines: differences of inverse
kinematics, and inverse dynamics, whose forces stretch the drives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from random_machines import FAMILIES, Layout, Size

import tauloop as tl
from tauloop.elasticity.frame.beams import Array
from tauloop.mechanism.expression import Constant, Leaf, Parameter, ParameterTable
from tauloop.mechanism.model import Freedom, Inertia, Mechanism

#: Families without cables, whose tension is bounded.
ELASTIC = [family for family in FAMILIES if family.__name__ != "cables"]
#: Families whose loops are planar and do not close if a joint leaves the plane.
PLANAR = ("planar_loop", "nested")
#: Draw of each family. Its planar platform has loops whose rows out of the plane are rounding errors.
SEED = 1
#: Deflection of a drive by the largest force at rest, in natural units.
DEFLECTION = 1e-5
#: Remaining error relative to the deflection: terms of second order, which grow near singularities.
SECOND_ORDER = 1e-3
#: Compliance against differences of the second order with a step of 1e-6.
COMPLIANCE = 1e-6
#: Gradients against differences of the fourth order.
GRADIENT = 1e-6

Family = Callable[[Layout], Mechanism]


def plain(family: Family) -> Mechanism:
    """Return a random machine without springs, losses and masses beside the axes of rods."""
    machine = family(Layout(np.random.default_rng(SEED), Size(1.0, 1.0, 1.0)))
    joints = tuple(
        replace(joint, freedoms=tuple(Freedom() for _ in joint.freedoms))
        for joint in machine.joints
    )
    rods = []
    for rod in machine.rods:
        lower, upper = (
            None if isinstance(part, Inertia) else part for part in (rod.lower, rod.upper)
        )
        telescope = rod.telescope
        if telescope is not None:
            telescope = replace(telescope, freedom=Freedom())
        changes = {"lower": lower, "upper": upper, "telescope": telescope}
        if isinstance(rod.lower, Inertia):
            changes |= {"spin": "none", "first_axis": None}
        rods.append(replace(rod, **changes))
    actuators = tuple(replace(item, friction=None, inertia=None) for item in machine.actuators)
    return replace(machine, losses=(), joints=joints, rods=tuple(rods), actuators=actuators)


@cache
def elastic(family: Family) -> Mechanism:
    """Return it with a stiffness of each drive, and a place of a joint, as parameters."""
    machine = plain(family)
    model = tl.Model(machine)
    largest = np.abs(forces(model, *at_rest(model))).max()
    parameters, actuators = [], []
    for index, actuator in enumerate(machine.actuators):
        name = f"{actuator.name}.stiffness"
        actuators.append(replace(actuator, stiffness=Leaf(name)))
        k = largest / DEFLECTION * (0.5 + index)
        parameters.append(Parameter(name=name, value=float(k), group="elasticity"))
    joints, platform = list(machine.joints), machine.platform
    place = platform.tool if family.__name__ in PLANAR else joints[-1].parent
    x, *others = place.position
    assert isinstance(x, Constant)
    parameters.append(Parameter(name="place", value=x.value))
    moved = replace(place, position=(Leaf("place"), *others))
    if family.__name__ in PLANAR:
        platform = replace(platform, tool=moved)
    else:
        joints[-1] = replace(joints[-1], parent=moved)
    return replace(
        machine,
        joints=tuple(joints),
        platform=platform,
        actuators=tuple(actuators),
        parameters=ParameterTable(tuple(parameters)),
    )


@cache
def elastic_model(family: Family) -> tl.Model:
    return tl.Model(elastic(family))


def at_rest(model: tl.Model) -> tuple[Array, Array, Array]:
    """Return the reference pose, and no velocity and acceleration."""
    pose = np.atleast_2d(model.platform_position(model.assembly.q))
    rest = np.zeros((1, len(model.platform.ports.velocity.columns)))
    return pose, rest, rest


def forces(model: tl.Model, pose: Array, velocity: Array, acceleration: Array) -> Array:
    """Return the forces of the motors (u,)."""
    return np.asarray(model.inverse_dynamics(pose, velocity, acceleration).force)[0]


def motions(model: tl.Model, pose: Array) -> tuple[Array, Array]:
    """Return the tool's twist (6, m) and the motors' motion (u, m) by the platform's velocities."""
    q = np.atleast_2d(model.assembly.q)
    tool = model.platform.tool_jacobian(pose, start=q)[0]
    return tool, model.platform.actuator_jacobian(pose, start=q)[0]


@pytest.mark.parametrize("family", ELASTIC)
def test_compliance_is_that_of_the_drives(family: Family) -> None:
    """C = J (Aᵀ K A)⁻¹ Jᵀ with the motions J of the tool and A of the motors."""
    machine, model = elastic(family), elastic_model(family)
    pose, _, _ = at_rest(model)
    J, A = motions(model, pose)
    k = np.array([machine.value(item.stiffness) for item in machine.actuators])
    expected = J @ np.linalg.solve(A.T @ (k[:, None] * A), J.T)
    result = tl.stiffness(model)
    assert np.abs(result.compliance[0] - expected).max() < COMPLIANCE * np.abs(expected).max()


@pytest.mark.parametrize("family", ELASTIC)
def test_motors_are_corrected_by_their_forces(family: Family) -> None:
    """In equilibrium at the commanded pose, each drive is stretched by its force."""
    machine, model = elastic(family), elastic_model(family)
    pose, velocity, acceleration = at_rest(model)
    rng = np.random.default_rng(SEED)
    velocity, acceleration = 0.3 * rng.normal(size=(2, *velocity.shape))
    result = tl.compensate(model, pose, velocity=velocity, acceleration=acceleration)
    k = np.array([machine.value(item.stiffness) for item in machine.actuators])
    expected = forces(model, pose, velocity, acceleration) / k
    J, A = motions(model, pose)
    # Redundant motors strain each other; the platform's coordinates may move the tool in no way.
    moved = [
        J @ np.linalg.lstsq(A, item, rcond=None)[0] for item in (result.correction[0], expected)
    ]
    if A.shape[0] > A.shape[1]:
        weighted = np.sqrt(k)[:, None] * A
        moved[1] = J @ np.linalg.lstsq(weighted, np.sqrt(k) * expected, rcond=None)[0]
    assert np.abs(moved[0] - moved[1]).max() < SECOND_ORDER * np.abs(moved[1]).max()


@pytest.mark.parametrize("family", ELASTIC)
def test_gradients_are_differences(family: Family) -> None:
    """By the stiffness of a drive, and by the place of a joint, at a fixed pose."""
    machine, model = elastic(family), elastic_model(family)
    pose, _, _ = at_rest(model)
    names = (f"{machine.actuators[0].name}.stiffness", "place")
    result = tl.stiffness(model)
    gradient = result.elastic_gradient(names)
    assert gradient.error < GRADIENT
    for column, name in enumerate(names):
        value = machine.parameters[name].value
        scale = value if name != "place" else 1.0
        estimates = []
        for step in (2e-3, 1e-3):
            sides = [
                tl.stiffness(
                    tl.Model(machine.with_values({name: value + sign * step * scale})), pose
                )
                for sign in (1.0, -1.0)
            ]
            estimates.append((sides[0].compliance - sides[1].compliance) / (2.0 * step))
        expected = (4.0 * estimates[1] - estimates[0]) / 3.0
        largest = max(np.abs(expected).max(), 1e-6 * np.abs(result.compliance).max())
        computed = gradient.compliance[..., column] * scale
        assert np.abs(computed - expected).max() < 1e-4 * largest, name


def test_a_mass_off_the_axis_of_a_rod_is_noted() -> None:
    machine = FAMILIES[[item.__name__ for item in FAMILIES].index("hexapod")](
        Layout(np.random.default_rng(SEED), Size(1.0, 1.0, 1.0))
    )
    actuators = tuple(replace(item, stiffness=Constant(1e5)) for item in machine.actuators)
    result = tl.stiffness(replace(machine, actuators=actuators))
    off_axis = [rod.name for rod in machine.rods if isinstance(rod.lower, Inertia)]
    assert off_axis
    for name in off_axis:
        assert any(note.startswith(f"{name}: a mass center is") for note in result.notes)


def test_a_rigid_direction_has_no_finite_stiffness() -> None:
    """A planar platform moves in its plane alone: rounding errors out of it are no compliance."""
    family = next(item for item in FAMILIES if item.__name__ == "planar_platform")
    result = tl.stiffness(elastic_model(family))
    assert np.isinf(result.directional[0, [2, 3, 4]]).all()
    assert np.isfinite(result.directional[0, [0, 1, 5]]).all()
    assert np.isnan(result.stiffness).all()


def test_an_arm_with_more_motors_than_the_tool_needs_is_corrected() -> None:
    """Of all displacements that remove the error, the smallest is taken."""
    family = next(item for item in FAMILIES if item.__name__ == "serial")
    machine = plain(family)
    rng = np.random.default_rng(0)
    while len(machine.actuators) <= 6:
        machine = family(Layout(rng, Size(1.0, 1.0, 1.0)))
    actuators = tuple(replace(item, stiffness=Constant(1e4)) for item in machine.actuators)
    machine = replace(machine, actuators=actuators)
    result = tl.compensate(machine)
    assert np.linalg.norm(result.remaining) < 1e-3 * np.linalg.norm(result.deflection)
