"""Verdicts and numbers do not depend on the size of a machine, its mass, or how fast its time runs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from scaled_machines import Scale, scaled

import tauloop as tl
from tauloop import Model
from tauloop.compiler.c import Interpreted
from tauloop.equations.assembly.closing import CLOSED
from tauloop.equations.assembly.limits import STOP_TOLERANCE
from tauloop.kinematics.states import random_states
from tauloop.kinematics.workspaces.map import section_axes
from tauloop.mechanism import shipped_machines
from tauloop.motion.free.rows import _between

UNSCALED = Scale()
#: Micrometres, millimetres in hundredths of a second, and kilometres; densities and strengths
#: change with the second.
MICRO, MILLI, KILO = Scale(1e-6, 1e-18, 1.0), Scale(1e-3, 1e-9, 1e-2), Scale(1e3, 1e9, 1.0)
#: Share of the largest number: rounding, 1e-16, times the condition of the worst state.
AGREEMENT = 1e-9
#: Modes whose condition is beyond this are singular: rounding decides how far.
SINGULAR = 1e6
STATES = 4

TINY_STAGE = """
format: tauloop-machine/1
name: tiny_stage
provenance: {status: chosen, source: two slides on one tether}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  first: {mass: 1e-9 kg}
  second: {mass: 1e-9 kg}
joints:
  a: {type: prismatic, axis: x, parent: base, child: first}
  b: {type: prismatic, axis: y, parent: {on: base, at: [2 UNIT, 0, 0]}, child: second}
rods:
  tether:
    {from: {on: first, at: [0, 1 UNIT, 0]}, to: {on: second, at: [0, 0, 1 UNIT]}, length: 2.4 UNIT, model: massless}
actuators: {motor: {on: a}}
platform: {body: second, independent: [a]}
"""


def model_at(machine: str, scale: Scale) -> Model:
    return Model(scaled(machine, scale), evaluator=Interpreted())


@cache
def verdicts(machine: str, scale: Scale) -> dict[str, object]:
    """What the checks decide about a machine, and the condition numbers."""
    model = model_at(machine, scale)
    assembly, inspection = model.assembly, tl.check(model)
    return {
        "problems": [problem.where for problem in inspection.problems],
        "notes": [note.where for note in inspection.notes],
        "other modes": inspection.other_modes,
        "rank": (assembly.rank, assembly.mobility, assembly.rows, assembly.frozen),
        "choices": (assembly.independent, assembly.passive, assembly.leading),
        "reference": assembly.q / scale.coordinates(model.topology),
        "platform condition": 1.0 / assembly.platform_condition,
        "actuator condition": 1.0 / assembly.actuator_condition,
    }


@cache
def motions(machine: str, scale: Scale) -> dict[str, object]:
    """Kinematics and dynamics at random states, in the units of the file."""
    model = model_at(machine, scale)
    position_scale, velocity_scale = (
        scale.coordinates(model.topology),
        scale.velocities(model.topology),
    )
    rng = np.random.default_rng(1)
    states = random_states(model, STATES, rng)
    velocity_unit = velocity_scale[list(model.platform.ports.v)]
    motion = SimpleNamespace(
        position=states.position,
        velocity=rng.normal(size=states.velocity.shape) * velocity_unit,
        acceleration=rng.normal(size=states.velocity.shape) * velocity_unit / scale.time,
    )
    forces = model.platform.inverse_dynamics(
        motion.position, motion.velocity, motion.acceleration, start=states.q
    )
    forward = model.platform.forward_dynamics(
        motion.position, motion.velocity, forces.force, start=states.q
    )
    inverse = model.inverse_kinematics(states.position, start=states.q)
    direct = model.forward_kinematics(model.actuator_position(states.q[:1]), start=states.q[0])
    units = tuple("N" if unit == "m" else "N m" for unit in model.actuator_units)
    return {
        "different": states.distinct_states,
        "states": states.q / position_scale,
        "velocities": np.asarray(forces.state.v) / velocity_scale,
        "accelerations": np.asarray(forces.state.a) / (velocity_scale / scale.time),
        "forces": forces.force / scale.factors(units),
        "forward dynamics": np.asarray(forward.a) / (velocity_scale / scale.time),
        "inverse kinematics": inverse.q / position_scale,
        "forward kinematics": direct.q / position_scale,
    }


@cache
def usable_share(machine: str, scale: Scale) -> dict[str, object]:
    """The number of usable poses of the map, and all poses; borders that lie on the grid may fall to either side."""
    usable = tl.workspace(model_at(machine, scale)).usable
    return {"poses": usable.shape, "usable": int(usable.sum())}


@cache
def modes(machine: str, scale: Scale) -> dict[str, object]:
    """The regular assembly modes at the reference pose; of double solutions rounding decides how many are found."""
    regular = [
        mode
        for mode in tl.assembly_modes(model_at(machine, scale)).modes
        if mode.condition < SINGULAR
    ]
    return {
        "modes": [(mode.is_reference, mode.within_limits) for mode in regular],
        "conditions": np.array([1.0 / mode.condition for mode in regular]),
    }


def require_same(original: dict[str, object], other: dict[str, object]) -> None:
    for name, value in original.items():
        if isinstance(value, np.ndarray):
            assert other[name] == pytest.approx(
                value, rel=0, abs=AGREEMENT * np.abs(value).max(initial=1e-12)
            ), name
        else:
            assert other[name] == value, name


@pytest.mark.parametrize("scale", [MICRO, KILO])
def test_programs_of_derivatives_do_not_depend_on_the_scale(scale: Scale) -> None:
    """Expressions are told apart at sampled states: at a metre a second, those of a micrometre were all alike."""
    original, other = (model_at("five_bar", chosen).platform for chosen in (UNSCALED, scale))
    counts = [
        motion.program("inverse_dynamics_derivatives").operations for motion in (original, other)
    ]
    assert counts[1] == pytest.approx(counts[0], rel=0.01)  # rounding decides about one or two
    unit = scale.velocities(original.assembly.topology)[list(original.ports.v)]
    position, velocity = original.ports.at(original.assembly.q), np.array([0.3, -0.2])
    forces = np.array([scale.factor("N m")] * 2)
    slopes = []
    for motion, size, force in ((original, np.ones(2), np.ones(2)), (other, unit, forces)):
        moved = position * size, velocity * size / scale.time, np.zeros(2)
        jacobian = motion.derivatives("inverse_dynamics", *moved).jacobian("force", "position")
        slopes.append(jacobian / force[:, None] * size)
    assert slopes[1] == pytest.approx(slopes[0], rel=AGREEMENT)


BY_DAY = [
    ("linear_delta", MICRO),
    ("gantry_tau_3dof", MICRO),
    ("planar_3rrr", MILLI),
    ("cable_robot", KILO),
]


@pytest.mark.parametrize(("machine", "scale"), BY_DAY)
def test_verdicts_and_motions_do_not_depend_on_the_scale(machine: str, scale: Scale) -> None:
    require_same(verdicts(machine, UNSCALED), verdicts(machine, scale))
    require_same(motions(machine, UNSCALED), motions(machine, scale))


@pytest.mark.parametrize("machine", ["linear_delta", "scissor_lift"])
def test_the_workspace_does_not_depend_on_the_scale(machine: str) -> None:
    """Beyond the dead centre of the lift, where its bars coincide, rounding decided whether it closes."""
    require_same(usable_share(machine, UNSCALED), usable_share(machine, MICRO))


@pytest.mark.nightly
def test_axes_end_before_a_path_passes_a_singular_pose() -> None:
    """The linkage is followed through the pose in which all its axes meet, after which it arrives anywhere."""
    ends = [
        section_axes(model_at("bennett", scale), ("crank_hinge",), None)["crank_hinge"][[0, -1]]
        for scale in (UNSCALED, MICRO)
    ]
    assert ends[0] == pytest.approx([-0.27, 3.0], abs=0.02)
    assert ends[1] == pytest.approx(ends[0])


def test_equal_modes_and_their_order_do_not_depend_on_the_scale() -> None:
    """An angle of half a turn counted as two, and rounding ordered modes that are equally far."""
    require_same(verdicts("irb360", UNSCALED), verdicts("irb360", MICRO))
    require_same(modes("palletiser", UNSCALED), modes("palletiser", MILLI))


@pytest.mark.parametrize("scale", [MICRO, pytest.param(KILO, marks=pytest.mark.nightly)])
def test_the_steps_of_a_reduction_do_not_depend_on_the_scale(scale: Scale) -> None:
    """A mass centre off its joint by 1e-9 kg m was on it: on the scale of micrometres all were."""
    original, other = (
        tl.reduce_model(scaled("palletiser", chosen)) for chosen in (UNSCALED, scale)
    )
    steps = [[(step.name, step.removed) for step in result.steps] for result in (original, other)]
    assert steps[1] == steps[0]
    assert other.status is original.status


@pytest.mark.parametrize("scale", [UNSCALED, MICRO, MILLI, KILO])
def test_ends_on_the_grid_are_its_last_lines(scale: Scale) -> None:
    """0.14 / 0.02 is 7.000000000000001, which made one line more."""
    step, ends = 0.02 * scale.length, (-0.14 * scale.length, 0.14 * scale.length)
    (axis,) = section_axes(
        model_at("five_bar", scale), ("platform.x",), step, {"platform.x": ends}
    ).values()
    assert axis == pytest.approx(np.linspace(*ends, 15))


@pytest.mark.nightly
@pytest.mark.parametrize("scale", [MICRO, MILLI, KILO])
@pytest.mark.parametrize("machine", shipped_machines())
def test_no_shipped_machine_depends_on_the_scale(machine: str, scale: Scale) -> None:
    require_same(verdicts(machine, UNSCALED), verdicts(machine, scale))
    require_same(motions(machine, UNSCALED), motions(machine, scale))
    require_same(usable_share(machine, UNSCALED), usable_share(machine, scale))


@pytest.mark.nightly
@pytest.mark.parametrize("scale", [MICRO, MILLI, KILO])
@pytest.mark.parametrize("machine", shipped_machines())
def test_no_assembly_mode_depends_on_the_scale(machine: str, scale: Scale) -> None:
    require_same(modes(machine, UNSCALED), modes(machine, scale))


@pytest.mark.parametrize("unit", ["um", "mm", "m", "km"])
def test_a_stage_of_any_size_is_usable(unit: str) -> None:
    """The micrometre stage was 'not usable': all its states seemed to be one pose."""
    model = Model(tl.loads(TINY_STAGE.replace("UNIT", unit)), evaluator=Interpreted())
    assert tl.check(model).is_usable
    assert random_states(model, STATES, np.random.default_rng(0)).distinct_states == STATES


@pytest.mark.parametrize("length", [1e-6, 1.0, 1e3])
def test_rods_of_any_size_are_as_far_apart_as_they_are(length: float) -> None:
    """A term that keeps the distance smooth was a micrometre, whatever the rods."""
    a, b, c, d = (
        ca.SX(ca.DM(length * np.array(point)))
        for point in ([0, 0, 0], [1, 0, 0], [0.5, -1, 0.2], [0.5, 1, 0.2])
    )
    assert float(ca.DM(_between(a, b, c, d))) / length == pytest.approx(0.2, abs=1e-9)
    assert float(ca.DM(_between(a, b, a, b))) / length == pytest.approx(0.0, abs=1e-5)


def test_a_stop_is_passed_by_a_share_of_the_machine(tmp_path: Path) -> None:
    """A nanometre is rounding on a machine of a metre, and a thousandth of one of a micrometre."""
    file = tmp_path / "stage.yaml"
    file.write_text(
        TINY_STAGE.replace("UNIT", "m").replace(
            "child: first}", "child: first, limits: [-1 m, 1 m]}"
        )
    )
    for scale in (UNSCALED, MICRO):
        model = model_at(str(file), scale)
        at_stop = np.array([1.0, 0.0]) * scale.length
        rounding = np.array([0.5 * STOP_TOLERANCE * model.assembly.loops.length, 0.0])
        assert not model.limits.beyond(at_stop + rounding)
        assert model.limits.beyond(at_stop + 4.0 * rounding)


def test_loops_are_open_by_a_share_of_the_machine() -> None:
    """A millionth of its size is as far from closed at every scale; reports give it in metres."""
    openings = []
    for scale in (UNSCALED, MICRO, KILO):
        assembly = model_at("linear_delta", scale).assembly
        moved = assembly.q + 1e-6 * scale.coordinates(assembly.topology) * np.arange(
            assembly.topology.n_q
        )
        phi, _ = assembly.loops.residuals(moved[None, :])
        openings.append(assembly.loops.openings(phi)[0])
        assert assembly.loops.largest_residual(phi) == pytest.approx(np.abs(phi).max())
        assert assembly.residual < CLOSED * assembly.loops.length
    assert openings[0] > 1e3 * CLOSED
    assert openings[1:] == pytest.approx(openings[:1] * 2, rel=1e-6)
