"""Reduced models: every exact step against the unreduced machine, and against energies that know nothing of it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from core_machines import CORE_MACHINES
from hypothesis import given, strategies as st

from tauloop.common.errors import InputError
from tauloop.common.result import Status, plain
from tauloop.formats import load, loads
from tauloop.kinematics import random_states
from tauloop.kinematics.alike import body_motions, mass_center, parallel_rods
from tauloop.kinematics.reduction import (
    Reduction,
    ReductionOptions,
    compare_reduction,
    reduce_model,
)
from tauloop.mechanism import Mechanism
from tauloop.mechanism.expression import Constant, evaluate, multiply
from tauloop.mechanism.model import Actuator, Body, Inertia, Joint, Placement, SlenderPart, Vector
from tauloop.mechanism.poses import rotation_matrix
from tauloop.mechanism.reduction import (
    BodyMotions,
    drop_rod_inertia,
    equivalence,
    gather_joints,
    group_parallel_links,
    hold_platform,
    is_planar,
    links_as_rods,
    lump_rods,
    lump_translating_body,
    merge_rods,
    planar_inertia,
    point_masses,
    share_parameters,
    total_mass,
    without_unused_parameters,
)
from tauloop.mechanism.reduction.inertia import rotated_inertia, total, transferred_inertia
from tauloop.model import Model

#: "Exact": rounding of forces made by two different sets of equations, as a share of the largest
#: force.
EXACT = 1e-12
#: Central differences of energies of order 1e3 J over 1e-5 m: truncation and rounding meet near
#: this share.
DIFFERENCE = 1e-7
#: Algebra of ten parameters of order one in a few additions.
ALGEBRA = 1e-13
#: Named states of every comparison.
STATES = 60

numbers = st.floats(-1.0, 1.0, allow_nan=False).map(lambda x: round(x, 6))
points = st.lists(st.tuples(numbers, numbers, numbers), min_size=4, max_size=8)
angles = st.floats(-3.0, 3.0).map(lambda x: round(x, 6))


def vector(values: np.ndarray) -> Vector:
    x, y, z = (Constant(float(value)) for value in values)
    return (x, y, z)


def of_points(masses: np.ndarray, x: np.ndarray) -> Inertia:
    """Inertia of a cloud of point masses, summed point by point."""
    second = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, x, strict=True))
    return Inertia(
        mass=Constant(float(masses.sum())),
        first_moment=vector(masses @ x),
        second_moment=tuple(
            Constant(float(second[i, j]))
            for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
        ),  # type: ignore[arg-type]
    )


def values(inertia: Inertia) -> np.ndarray:
    return np.array([evaluate(p, {}) for p in inertia.parameters])


@given(cloud=points, at=points, turn=st.tuples(angles, angles, angles))
def test_carried_inertia_is_that_of_the_carried_points(cloud: list, at: list, turn: tuple) -> None:
    x, (s, r) = np.array(cloud), np.array(at[:2])
    masses = np.linspace(0.5, 2.0, len(x))
    R = rotation_matrix(list(zip("zxy", turn, strict=True)))  # type: ignore[arg-type]
    moved = transferred_inertia(of_points(masses, x), vector(s), vector(r), R)
    np.testing.assert_allclose(
        values(moved), values(of_points(masses, (x - s) @ R.T + r)), atol=60 * ALGEBRA
    )
    both = total(of_points(masses, x), rotated_inertia(of_points(masses, x), R))
    joined = of_points(np.tile(masses, 2), np.vstack([x, x @ R.T]))
    np.testing.assert_allclose(values(both), values(joined), atol=60 * ALGEBRA)


def test_three_masses_stand_for_a_bar_and_two_do_not() -> None:
    m, length = 2.4, 0.7
    bar = (m, m * length / 2, 0, 0, 0, 0, m * length**2 / 3, 0, 0, m * length**2 / 3)
    ends = np.array([[0.0, 0, 0], [length, 0, 0]])
    simpson = equivalence(
        bar, m * np.array([1, 4, 1]) / 6, np.array([ends[0], ends.mean(axis=0), ends[1]])
    )
    assert abs(simpson.mass) < ALGEBRA
    np.testing.assert_allclose(simpson.first_moment, 0.0, atol=ALGEBRA)
    np.testing.assert_allclose(simpson.second_moment, 0.0, atol=ALGEBRA)
    halves = equivalence(bar, np.array([m / 2, m / 2]), ends)
    np.testing.assert_allclose(halves.first_moment, 0.0, atol=ALGEBRA)
    # the halves have m L^2/2 about an end, the bar has m L^2/3
    np.testing.assert_allclose(
        halves.second_moment, np.diag([0, 1, 1]) * m * length**2 / 6, atol=ALGEBRA
    )


@cache
def model(mechanism: Mechanism) -> Model:
    """A machine assembled once for all tests."""
    return Model(mechanism)


def largest_error(full: Mechanism, reduced: Mechanism, seed: int = 3) -> float:
    """Largest error of a force over random states, and of the motion of an actuator (m, rad)."""
    comparison = compare_reduction(
        model(full), model(reduced), np.random.default_rng(seed), states=STATES
    )
    assert all(e.largest > 0 for e in comparison.errors)
    return max(
        max(e.maximum, e.gravity, e.inertia, e.velocity, e.motion) for e in comparison.errors
    )


def alike(mechanism: Mechanism) -> BodyMotions:
    states = random_states(model(mechanism), 20, np.random.default_rng(0)).q
    return body_motions(model(mechanism), states)


@cache
def reduced(name: str) -> Reduction:
    return reduce_model(load(name), ReductionOptions(states=STATES, seed=11))


#: Machines on which a step acts, and one on which none does; the others would only cost time.
REDUCED = (
    "delta",
    "five_bar",
    "four_bar",
    "gantry_tau_6link",
    "linear_delta",
    "pendulum_arm",
    "spidermill",
)


@pytest.mark.parametrize("name", REDUCED)
def test_reduction_of_shipped_machines_is_exact(name: str) -> None:
    reduction = reduced(name)
    assert reduction.is_exact
    assert reduction.status is Status.OK
    assert max(e.maximum for e in reduction.comparison.errors) < EXACT
    assert max(e.motion for e in reduction.comparison.errors) < EXACT
    assert reduction.comparison.mass[1] == pytest.approx(reduction.comparison.mass[0], rel=EXACT)
    assert reduction.comparison.center_deviation < EXACT
    assert reduction.coordinates[1] <= reduction.coordinates[0]
    assert reduction.equations[1] <= reduction.equations[0]


# Planar inertia


def test_planar_machines_are_told_from_others() -> None:
    planar = {name for name in CORE_MACHINES if is_planar(load(name))}
    assert {"five_bar", "four_bar"} <= planar
    assert not planar & {"delta", "nuwar", "rcid", "hexapod", "pendulum_arm"}
    assert is_planar(load("spidermill"))


def test_machine_that_is_not_planar_is_refused_with_every_joint() -> None:
    with pytest.raises(InputError) as caught:
        planar_inertia(load("nuwar"))
    text = str(caught.value)
    assert len(caught.value.problems) == 2
    assert "leg2.shoulder" in text
    assert "leg3.shoulder" in text
    assert "90 deg off" in text  # the axes of this machine are mutually orthogonal


ARM = """
format: tauloop-machine/1
name: arm
provenance: {status: chosen, source: test}
gravity: [1 m/s^2, -7 m/s^2, -6 m/s^2]
parameters: {tilt: 25 deg}
bodies:
  upper:
    mass: 2 kg
    center: [0.1 m, 0.2 m, -0.1 m]
    inertia: {xx: 0.03 kg m^2, yy: 0.04 kg m^2, zz: 0.05 kg m^2, xy: 0.004 kg m^2, xz: -0.003 kg m^2, yz: 0.006 kg m^2}
  lower:
    mass: 1 kg
    center: [-0.1 m, 0.05 m, 0.2 m]
    inertia: {xx: 0.02 kg m^2, yy: 0.04 kg m^2, zz: 0.03 kg m^2, xy: 0.002 kg m^2, xz: 0.001 kg m^2, yz: -0.004 kg m^2}
joints:
  shoulder:
    type: revolute
    axis: z
    parent: {on: base, turn: [{x: tilt}]}
    child: {on: upper, turn: [{y: 40 deg}, {x: 20 deg}]}
    reference: 20 deg
  elbow:
    type: revolute
    axis: x
    parent: {on: upper, at: [0.3 m, 0.1 m, 0.2 m], turn: [{y: 40 deg}, {x: 20 deg}, {y: -90 deg}]}
    child: {on: lower, turn: [{x: 50 deg}, {z: 10 deg}]}
    reference: 50 deg
actuators:
  first: {on: shoulder}
  second: {on: elbow}
platform: {body: lower, independent: [shoulder, elbow]}
"""


def test_planar_inertia_in_oblique_frames_is_exact() -> None:
    arm = loads(ARM)
    flat, step = planar_inertia(arm)
    assert step.is_exact
    assert step.kept == ("upper", "lower")
    assert largest_error(arm, flat) < EXACT
    for body in flat.bodies:
        assert body.inertia is not None
        p = [flat.value(x) for x in body.inertia.parameters]
        I = np.array([[p[4], p[5], p[7]], [p[5], p[6], p[8]], [p[7], p[8], p[9]]])
        s, axes = np.linalg.eigh(I)
        assert np.abs(s[:2]).max() < ALGEBRA  # one moment of inertia
        assert abs(np.array(p[1:4]) @ axes[:, 2]) < ALGEBRA  # first moment in the plane
    # an axis that is not parallel is seen
    with pytest.raises(InputError, match=r"elbow: its axis is 1 deg off"):
        planar_inertia(loads(ARM.replace("{y: -90 deg}", "{y: -89 deg}")))


# Links that move alike

PARALLELOGRAM = """
format: tauloop-machine/1
name: parallelogram
description: Two parallel cranks of different shape carry a coupler; a strut pushes at the second one.
provenance: {status: chosen, source: test}
gravity: [0, -9.81 m/s^2, 0]
parameters: {length: 0.5 m}
bodies:
  one:
    mass: 2 kg
    center: [0.2 m, 0.03 m, 0]
    inertia: {xx: 0.03 kg m^2, yy: 0.04 kg m^2, zz: 0.05 kg m^2}
  two:     # its frame lies off the joint and is turned by 70 deg
    mass: 3 kg
    center: [0.1 m, 0.04 m, 0.02 m]
    inertia: {xx: 0.03 kg m^2, yy: 0.04 kg m^2, zz: 0.06 kg m^2}
  coupler:
    mass: 1.5 kg
    center: [0.1 m, 0.3 m, 0]
    inertia: {xx: 0.03 kg m^2, yy: 0.04 kg m^2, zz: 0.05 kg m^2}
joints:
  a: {type: revolute, axis: z, parent: base, child: one, reference: 60 deg, limits: [20 deg, 120 deg]}
  b:
    type: revolute
    axis: z
    parent: {on: base, at: [0.3 m, 0.1 m, 0.05 m]}
    child: {on: two, at: [0.1 m, -0.2 m, 0], turn: [{z: 70 deg}]}
    reference: 60 deg
    limits: [0 deg, 170 deg]
  c: {type: revolute, axis: z, parent: {on: one, at: [length, 0, 0]}, child: coupler, reference: -60 deg}
  d:
    type: revolute
    axis: z
    parent: {on: two, at: [0.1 m + length * cos(70 deg), -0.2 m + length * sin(70 deg), 0], turn: [{z: 70 deg}]}
    child: {on: coupler, at: [0.3 m, 0.1 m, 0.05 m]}
    reference: -60 deg
rods:
  strut:
    from: {on: base, at: [1.2 m, -0.1 m, 0]}
    to: {on: two, at: [0.15 m, 0.1 m, 0]}
    telescopic: {reference: 0.8 m, limits: [0.1 m, 2 m]}
    model: slender
    lower: {mass: 0.3 kg, center: 0.2 m, inertia: 0.01 kg m^2}
    upper: {mass: 0.2 kg, center: 0.1 m, inertia: 0.02 kg m^2}
actuators:
  push: {on: strut}
platform: {body: coupler, independent: [a]}
"""


def parallelogram_force(q: float, v: float, a: float) -> float:
    """Strut force by one angle, from energies: d/dt dT/dv - dT/dq + dV/dq = F dl/dq; all figures by hand."""
    angle, rate = ca.SX.sym("q"), ca.SX.sym("v")
    g, length = 9.81, 0.5
    foot = np.array([1.2 - 0.3, -0.1 - 0.1, -0.05])  # seen from the second base joint
    c70, s70 = np.cos(np.radians(70)), np.sin(np.radians(70))
    # from the frame of `two` to axes along the crank
    to_crank = np.array([[c70, s70], [-s70, c70]])

    def point(x: float, y: float) -> ca.SX:
        return ca.vertcat(
            x * ca.cos(angle) - y * ca.sin(angle), x * ca.sin(angle) + y * ca.cos(angle)
        )

    tip = to_crank @ (np.array([0.15, 0.1]) - np.array([0.1, -0.2]))
    center = to_crank @ (np.array([0.1, 0.04]) - np.array([0.1, -0.2]))
    d = ca.vertcat(point(*tip) - foot[:2], -foot[2])
    ell = ca.norm_2(d)
    u = d / ell
    du = ca.jacobian(u, angle) * rate
    d_ell = ca.jacobian(ell, angle) * rate
    v_tip = ca.jacobian(d, angle) * rate
    v_upper = v_tip - 0.1 * du
    about_joint = (
        0.05 + 2 * (0.2**2 + 0.03**2) + 0.06 + 3 * float(center @ center) + 1.5 * length**2
    )
    kinetic = (
        about_joint * rate**2
        + (0.01 + 0.3 * 0.2**2) * ca.dot(du, du)
        + 0.02 * ca.dot(du, du)
        + 0.2 * ca.dot(v_upper, v_upper)
    ) / 2
    height = 2 * point(0.2, 0.03)[1] + 3 * point(*center)[1] + 1.5 * point(length, 0)[1]
    height += 0.3 * (0.2 * u[1]) + 0.2 * (point(*tip)[1] - 0.1 * u[1])
    p = ca.gradient(kinetic, rate)
    force = ca.jacobian(p, angle) * rate + ca.jacobian(p, rate) * a - ca.gradient(kinetic, angle)
    force += ca.gradient(g * height, angle)
    return float(ca.Function("F", [angle, rate], [force / (d_ell / rate)])(q, v))


def test_parallelogram_becomes_one_crank() -> None:
    full = loads(PARALLELOGRAM)
    groups = alike(full)
    assert {frozenset(("one", "two")), frozenset(("base", "coupler"))} == set(groups.groups)
    grouped, step = group_parallel_links(full, "one", "two", groups)
    assert step.removed == ("two",)
    assert step.is_exact
    assert step.lost == ("limits of b",)
    assert [joint.name for joint in grouped.joints] == ["a", "c", "coupler.guide"]
    assert largest_error(full, grouped) < EXACT
    # the other way round, too; it keeps the strut where it is
    other = replace(full, platform=replace(full.platform, independent=("b",)))
    two, _ = group_parallel_links(other, "two", "one", groups)
    assert two.rod("strut") == full.rod("strut")
    assert largest_error(other, two) < EXACT
    q, v, a = 1.1, 0.7, -1.3
    forces = [model(m).platform.inverse_dynamics([q], [v], [a]).force[0] for m in (full, grouped)]
    np.testing.assert_allclose(forces, parallelogram_force(q, v, a), rtol=1e-11)


def test_links_of_different_motion_are_not_grouped() -> None:
    full = loads(PARALLELOGRAM)
    with pytest.raises(
        InputError, match=r"bodies.coupler: 0 of its 2 joints correspond to a parallel joint of one"
    ):
        group_parallel_links(full, "one", "coupler", alike(full))
    # a loaded joint is not thrown away
    loaded = loads(
        PARALLELOGRAM.replace("limits: [0 deg, 170 deg]", "friction: {viscous: 1 N m s/rad}")
    )
    groups = alike(loaded)
    with pytest.raises(InputError, match=r"bodies.two: 1 of its 2 joints"):
        group_parallel_links(loaded, "one", "two", groups)
    other = replace(loaded, platform=replace(loaded.platform, independent=("b",)))
    kept, _ = group_parallel_links(other, "two", "one", groups)
    assert largest_error(other, kept) < EXACT
    # the bars of a four-bar all turn differently
    assert len(alike(load("four_bar")).groups) == 4


TWIN = """
  twin:
    mass: 0.5 kg
    center: [coupler_length / 3, 0.01 m, 0.002 m]
    inertia: {xx: 0.001 kg m^2, yy: 0.002 kg m^2, zz: 0.0025 kg m^2}
joints:
  twin_pin:
    type: revolute
    axis: z
    parent: {on: crank, at: [crank_length, 0, 0.05 m]}
    child: {on: twin, at: [0, 0, 0.01 m]}
    reference: -31.555829187136734 deg
  twin_closing_pin:
    type: revolute
    axis: z
    parent: {on: twin, at: [coupler_length, 0, 0.01 m]}
    child: {on: rocker, at: [rocker_length, 0, 0.05 m]}
    reference: 62.545829898640484 deg
"""


def four_bar_text() -> str:
    from tauloop.formats import machine_path

    return machine_path("four_bar").read_text(encoding="utf-8")


def test_links_before_and_behind_the_plane_become_one() -> None:
    """Both hang on bodies that turn: their distance is along the axis, so it is constant."""
    full = loads(four_bar_text().replace("\njoints:\n", TWIN, 1))
    groups = alike(full)
    assert frozenset(("coupler", "twin")) in groups.groups
    grouped, step = group_parallel_links(full, "coupler", "twin", groups)
    assert step.is_exact
    assert len(grouped.joints) == 4
    assert largest_error(full, grouped) < EXACT
    assert total_mass(grouped) == pytest.approx(total_mass(full), rel=EXACT)
    result = reduce_model(full, ReductionOptions(states=STATES))
    assert [step.name for step in result.steps] == [
        "group links before and behind",
        "planar inertia",
        "links as rods",
    ]
    assert result.status is Status.OK
    # crank, coupler, twin and rocker in space; in the plane the twin is one with the coupler
    assert [(count.stage, count.links, count.equations) for count in result.newton_euler] == [
        ("full", 4, 24),
        ("in the plane", 3, 9),
        ("reduced", 3, 9),
    ]


# The machine of parallel cranks, step by step


@pytest.mark.nightly
def test_seventeen_bodies_in_space_have_102_equations_then_33_then_12() -> None:
    """The paper's section 2: 6 x 17, in the plane 3 x 11, of the M-structure 3 x 4; and the forces stay as they are."""
    full = load("spidermill_spatial")
    assert (len(full.bodies), len(model(full).assembly.loops.names)) == (17, 62)
    assert (model(full).assembly.rank, model(full).assembly.mobility) == (19, 2)
    result = reduced("spidermill_spatial")
    assert [(count.links, count.equations) for count in result.newton_euler] == [
        (17, 102),
        (11, 33),
        (4, 12),
    ]
    assert result.status is Status.OK
    assert max(error.maximum for error in result.comparison.errors) < EXACT
    # the planar machine is the same one: another file, another number of bodies, the same forces
    assert largest_error(full, load("spidermill")) < EXACT


@cache
def stages() -> tuple[Mechanism, ...]:
    """The unreduced machine of the paper (SpiderMill) and what the steps make of it."""
    machine = load("spidermill")
    groups = alike(machine)
    sides = ("side1", "side2")
    held, _ = hold_platform(machine, ("platform.angle",), groups)
    grouped = held
    for side in sides:
        grouped, _ = group_parallel_links(
            grouped, f"{side}.lower_outer", f"{side}.lower_inner", groups
        )
        grouped, _ = group_parallel_links(
            grouped, f"{side}.upper_inner", f"{side}.upper_outer", groups
        )
    lumped = grouped
    for side in sides:
        lumped, _ = lump_translating_body(lumped, f"{side}.coupling", groups)
    gathered, _ = gather_joints(lumped, "plate", groups)
    flat, _ = planar_inertia(point_masses(gathered, groups)[0])
    rods, step = links_as_rods(flat)
    assert step.removed == ("side1.upper_inner", "side2.upper_inner")
    return machine, held, grouped, lumped, gathered, flat, rods


@pytest.mark.parametrize("stage", [2, 5, 6], ids=["grouped", "flat", "rods"])
def test_every_step_to_the_m_structure_is_exact(stage: int) -> None:
    machine = stages()[stage]
    assert model(machine).assembly.findings == ()
    assert total_mass(machine) == pytest.approx(total_mass(stages()[0]), rel=EXACT)
    assert largest_error(stages()[0], machine, seed=stage) < EXACT


def test_m_structure_is_that_of_the_paper() -> None:
    """Fig. 4: four links, base joints 0.90 m apart, m2 at the tips of S1 and S7, m4 where S3 and S5 meet."""
    m = reduced("spidermill").mechanism
    pins = [joint for joint in m.joints if joint.kind == "revolute"]
    assert len(pins) == 2
    base = np.array([[m.value(x) for x in joint.parent.position] for joint in pins])
    np.testing.assert_allclose(base, [[-0.45, 0, 0], [0.45, 0, 0]], atol=1e-12)
    p = m.parameters.values
    upper = [rod for rod in m.rods if rod.length is not None]
    assert [m.value(rod.length) for rod in upper if rod.length is not None] == [p["d3"], p["d3"]]
    assert upper[0].end == upper[1].end
    for rod in upper:
        assert isinstance(rod.lower, SlenderPart)
        expected = [p["m3"], p["m3"] * p["d_c3"], p["I_c3"] + p["m3"] * p["d_c3"] ** 2]
        np.testing.assert_allclose(
            [m.value(x) for x in rod.lower.parameters], expected, rtol=ALGEBRA
        )
        lower = m.body(rod.start.body).inertia
        assert lower is not None
        tip = p["I_c1"] + p["m1"] * p["d_c1"] ** 2 + p["m2"] * p["d1"] ** 2
        expected = [
            p["m1"] + p["m2"],
            p["m1"] * p["d_c1"] + p["m2"] * p["d1"],
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            tip,
        ]
        np.testing.assert_allclose(
            [m.value(x) for x in lower.parameters], expected, rtol=ALGEBRA, atol=ALGEBRA
        )
    plate = m.body("plate").inertia
    assert plate is not None
    assert [m.value(x) for x in plate.parameters] == [p["m4"], *[0.0] * 9]


def m_structure_forces(x: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Spindle forces of the M-structure without spindle masses, from energies in x, y; nothing of Tauloop in it."""
    d1, d3, d_A, half, feet, g = 1.13, 1.03, 0.45, 0.45, 1.05, 9.81
    m1, m2, m3, m4, c1, c3, I1, I3 = 50.9597, 7.9538, 14.5773, 12.4560, 0.565, 0.515, 6.3195, 1.6173
    p, rate = ca.SX.sym("p", 2), ca.SX.sym("v", 2)
    meet = p + ca.DM([0.0, -0.06])  # the pin where S3 and S5 meet, from the plate's centre
    kinetic, potential, lengths = 0, m4 * g * meet[1], []
    for side in (-1.0, 1.0):
        B = ca.DM([side * half, 0.0])
        d = meet - B
        r = ca.norm_2(d)
        gamma = ca.acos((d1**2 + ca.dot(d, d) - d3**2) / (2 * d1 * r))
        theta = ca.atan2(d[1], d[0]) - side * gamma  # elbows outwards
        tip = B + d1 * ca.vertcat(ca.cos(theta), ca.sin(theta))
        phi = ca.atan2(meet[1] - tip[1], meet[0] - tip[0])
        w1, w3 = ca.jacobian(theta, p) @ rate, ca.jacobian(phi, p) @ rate
        v_tip = ca.jacobian(tip, p) @ rate
        c = tip + c3 * ca.vertcat(ca.cos(phi), ca.sin(phi))
        v_c = ca.jacobian(c, p) @ rate
        kinetic += (
            (I1 + m1 * c1**2) * w1**2
            + m2 * ca.dot(v_tip, v_tip)
            + I3 * w3**2
            + m3 * ca.dot(v_c, v_c)
        ) / 2
        potential += g * (m1 * c1 * ca.sin(theta) + m2 * tip[1] + m3 * c[1])
        A = B + d_A * ca.vertcat(ca.cos(theta), ca.sin(theta))
        lengths.append(ca.norm_2(A - ca.DM([side * feet, 0.0])))
    kinetic += m4 * ca.dot(rate, rate) / 2
    acceleration = ca.SX.sym("a", 2)
    momentum = ca.gradient(kinetic, rate)
    force = ca.jacobian(momentum, p) @ rate + ca.jacobian(momentum, rate) @ acceleration
    force += ca.gradient(potential, p) - ca.gradient(kinetic, p)
    u = ca.solve(ca.jacobian(ca.vertcat(*lengths), p).T, force)
    function = ca.Function("u", [p, rate, acceleration], [u, ca.vertcat(*lengths)])
    return np.array(
        [
            np.concatenate([y.full().ravel() for y in function(*row)])
            for row in zip(x, v, a, strict=True)
        ]
    )


def test_full_and_reduced_machine_against_the_energies_of_the_m_structure() -> None:
    spindles = ("side1.spindle", "side2.spindle")
    full, step = drop_rod_inertia(load("spidermill"), spindles)
    assert step.approximated == ("mass: 20 kg omitted",)
    light = model(full)
    s = random_states(light, STATES, np.random.default_rng(2))
    expected = m_structure_forces(s.position, s.velocity, s.acceleration)
    small = model(drop_rod_inertia(stages()[-1], spindles)[0])
    for machine in (light, small):
        forces = machine.platform.inverse_dynamics(s.position, s.velocity, s.acceleration)
        names = list(machine.topology.coordinate_names)
        lengths = forces.state.q[:, [names.index(name) for name in spindles]]
        np.testing.assert_allclose(lengths, expected[:, 2:], rtol=EXACT)
        assert np.abs(forces.force - expected[:, :2]).max() < EXACT * np.abs(expected[:, :2]).max()


def test_dropped_spindles_are_an_approximation_and_its_error_is_right() -> None:
    full = model(load("spidermill"))
    small = model(drop_rod_inertia(stages()[-1], ("side1.spindle", "side2.spindle"))[0])
    comparison = compare_reduction(full, small, np.random.default_rng(8), states=STATES)
    assert comparison.mass[0] - comparison.mass[1] == pytest.approx(20.0)
    # by the same states and the two machines by hand
    s = random_states(full, STATES, np.random.default_rng(8))
    u, w = (
        machine.platform.inverse_dynamics(s.position, s.velocity, s.acceleration, start=start).force
        for machine, start in ((full, s.q), (small, None))
    )
    for i, e in enumerate(comparison.errors):
        assert e.largest == pytest.approx(np.abs(u[:, i]).max())
        assert e.rms == pytest.approx(
            np.sqrt(np.mean((w - u)[:, i] ** 2)) / np.abs(u[:, i]).max(), rel=1e-9
        )
        assert e.maximum == pytest.approx(
            np.abs((w - u)[:, i]).max() / np.abs(u[:, i]).max(), rel=1e-9
        )
        assert 1e-3 < e.rms < e.maximum < 0.1
        assert e.motion < EXACT  # kinematics stays exact


def test_approximations_are_asked_for_and_reported() -> None:
    full = load("delta")
    rods = tuple(rod.name for rod in full.rods)
    for options, name in (
        (ReductionOptions(massless_rods=rods, states=STATES), "drop inertia of rods"),
        (ReductionOptions(lumped_rods=rods, states=STATES), "lump rods"),
    ):
        reduction = reduce_model(full, options)
        assert not reduction.is_exact
        assert [step.name for step in reduction.steps if not step.is_exact] == [name]
        assert max(e.maximum for e in reduction.comparison.errors) > 1e-4
        assert reduction.status is Status.OK  # what was asked for is not doubtful


def test_four_minimal_parameters() -> None:
    """Unreduced and reduced machine depend on Table 1 through the four numbers of machines.md, and on nothing else."""
    names = ("m1", "m2", "m3", "m4", "I_c1", "I_c3")
    p = load("spidermill").parameters.values
    d, D, c1, c3 = p["d1"], p["d3"], p["d_c1"], p["d_c3"]
    four = np.array(
        [
            [c1, d, d, d / 2, 0, 0],
            [c1**2, d**2, d**2, d**2 / 2, 1, 0],
            [0, 0, c3, D / 2, 0, 0],
            [0, 0, c3**2, D**2 / 2, 0, 1],
        ]
    )
    _, _, Vt = np.linalg.svd(four)
    for mechanism in (load("spidermill"), stages()[-1]):
        machine = model(mechanism)
        s = random_states(machine, STATES, np.random.default_rng(6))
        Y = machine.platform.regressor(s.position, s.velocity, s.acceleration, start=s.q)
        T, _ = machine.parameter_map(names)
        W = (Y @ T).reshape(-1, len(names))
        sigma = np.linalg.svd(W, compute_uv=False)
        assert sigma[3] > 1e-3 * sigma[0]
        assert sigma[4] < EXACT * sigma[0]
        assert np.abs(W @ Vt[4:].T).max() < EXACT * np.abs(W).max()


# Rods


def six_rod_delta(forearm: str, yaw: str = "30 deg") -> str:
    """A Delta of two forearms per leg and a free plate whose frame is turned by `yaw`."""
    return f"""
format: tauloop-machine/1
name: six_rods
provenance: {{status: chosen, source: test}}
gravity: [0, 0, -9.81 m/s^2]
parameters: {{R: 0.194 m, r: 0.03 m, arm_length: 0.26 m, length: 0.48 m, gap: 0.025 m, m: 0.0148 kg, yaw: {yaw}}}
bodies:
  plate:
    mass: 0.2807 kg
    center: [0.01 m, 0, 0.02 m]
    inertia: {{xx: 1e-4 kg m^2, yy: 2e-4 kg m^2, zz: 2.5e-4 kg m^2}}
legs:
  - name: leg
    repeat: 3
    parameters: {{phi: (i - 1) * 120 deg}}
    frames:
      sector: {{on: base, turn: [{{z: phi}}]}}
      plate_sector: {{on: plate, turn: [{{z: phi - yaw}}]}}
    bodies:
      arm:
        mass: 0.977 kg
        center: [0.13 m, 0.01 m, 0.02 m]
        inertia: {{xx: 4e-4 kg m^2, yy: 2e-3 kg m^2, zz: 2e-3 kg m^2}}
    joints:
      shoulder:
        type: revolute
        axis: y
        parent: {{on: sector, at: [R, 0, 0]}}
        child: arm
        reference: 42.80316617795096 deg
        friction: {{viscous: 0.1 N m s/rad}}
    rods:
      left:
        from: {{on: arm, at: [arm_length, gap, 0]}}
        to: {{on: plate_sector, at: [r, gap, 0]}}
        length: length
        {forearm}
      right:
        from: {{on: arm, at: [arm_length, -gap, 0]}}
        to: {{on: plate_sector, at: [r, -gap, 0]}}
        length: length
        {forearm}
    actuators:
      motor: {{on: shoulder}}
platform:
  body: plate
  motion: free
  independent: [x, y, z]
  reference: {{at: [0, 0, -0.5 m], turn: [{{z: yaw}}]}}
"""


SLENDER = "model: slender\n        link: {mass: m, center: 0.2 m, inertia: m * length^2 / 12}"
FULL = (
    "model: full\n        link: {mass: m, center: [0.001 m, 0.002 m, 0.2 m], inertia: {xx: 3e-4 kg m^2, "
    "yy: 4e-4 kg m^2, zz: 2e-4 kg m^2}}\n        first_axis: [0, 1, 0]\n        spin: universal"
)


def delta_forces(x: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Motor torques of the six-rod Delta from energies in x, y, z (slender forearms); nothing of Tauloop in it."""
    R, r, arm, length, m, g = 0.194, 0.03, 0.26, 0.48, 0.0148, 9.81
    p, rate, acceleration = (ca.SX.sym(name, 3) for name in "pva")
    kinetic, potential, theta = 0.2807 * ca.dot(rate, rate) / 2, 0.2807 * g * p[2], []
    about_motor = 2e-3 + 0.977 * (0.13**2 + 0.02**2)
    for phi in np.radians([0, 120, 240]):
        e = np.array([np.cos(phi), np.sin(phi), 0.0])
        d = p - (R - r) * e
        along, down = ca.dot(d, e), -d[2]
        k = (arm**2 + ca.dot(d, d) - length**2) / (2 * arm)
        q = ca.atan2(down, along) - ca.acos(k / ca.sqrt(along**2 + down**2))
        elbow = (R - r) * e + arm * (ca.cos(q) * e - ca.sin(q) * np.array([0, 0, 1.0]))
        w = ca.jacobian(q, p) @ rate
        u = (p - elbow) / length
        v_c, du = (ca.jacobian(y, p) @ rate for y in (elbow + 0.2 * u, u))
        kinetic += (
            about_motor * w**2 / 2
            + 2 * (m * ca.dot(v_c, v_c) + m * length**2 / 12 * ca.dot(du, du)) / 2
        )
        potential += g * (
            0.977 * (-0.13 * ca.sin(q) + 0.02 * ca.cos(q)) + 2 * m * (elbow + 0.2 * u)[2]
        )
        theta.append(q)
    momentum = ca.gradient(kinetic, rate)
    force = ca.jacobian(momentum, p) @ rate + ca.jacobian(momentum, rate) @ acceleration
    force += ca.gradient(potential, p) - ca.gradient(kinetic, p)
    J = ca.jacobian(ca.vertcat(*theta), p)
    function = ca.Function("u", [p, rate, acceleration], [ca.solve(J.T, force) + 0.1 * (J @ rate)])
    return np.array([function(*row).full().ravel() for row in zip(x, v, a, strict=True)])


@pytest.mark.parametrize("forearm", [SLENDER, FULL], ids=["slender", "full"])
def test_six_rods_become_three_and_the_plate_only_translates(forearm: str) -> None:
    full = loads(six_rod_delta(forearm))
    reduction = reduce_model(full, ReductionOptions(states=STATES))
    assert [step.name for step in reduction.steps] == [
        "hold platform",
        *["merge parallel rods"] * 3,
        "gather joints",
        "point masses",
    ]
    assert reduction.status is Status.OK
    assert (reduction.coordinates, reduction.equations) == ((10, 6), (6, 3))
    for before, after in zip(full.rods[::2], reduction.mechanism.rods, strict=True):
        assert before.lower is not None
        assert after.lower is not None
        lumped = [full.value(x) for x in before.lower.parameters]
        np.testing.assert_allclose(
            [reduction.mechanism.value(x) for x in after.lower.parameters], 2 * np.array(lumped)
        )
    assert largest_error(full, reduction.mechanism) < EXACT
    if forearm == SLENDER:
        small = model(reduction.mechanism)
        s = random_states(small, STATES, np.random.default_rng(1))
        u = small.platform.inverse_dynamics(s.position, s.velocity, s.acceleration).force
        expected = delta_forces(s.position, s.velocity, s.acceleration)
        assert np.abs(u - expected).max() < EXACT * np.abs(expected).max()


def test_rods_that_are_not_equal_and_parallel_are_left_alone() -> None:
    full = loads(six_rod_delta(SLENDER))
    states = random_states(model(full), 20, np.random.default_rng(0)).q
    pairs = {("leg1.left", "leg1.right"), ("leg2.left", "leg2.right"), ("leg3.left", "leg3.right")}
    assert set(parallel_rods(model(full), states)) == pairs
    # 10 micrometres at one joint: the plate turns a little as it moves, and no pair stays parallel
    end = full.rods[1].end
    x, y, z = end.position
    skew = replace(full.rods[1], end=replace(end, position=(Constant(full.value(x) + 1e-5), y, z)))
    skewed = model(replace(full, rods=(full.rods[0], skew, *full.rods[2:])))
    assert parallel_rods(skewed, skewed.assembly.states) == ()
    assert alike(load("hexapod")).translating == {"base"}
    with pytest.raises(InputError) as caught:
        merge_rods(full, ("leg1.left", "leg2.left"))
    assert "connects other bodies" in str(caught.value)
    longer = replace(
        full,
        rods=(
            full.rods[0],
            replace(full.rods[1], length=Constant(0.4801), spin="universal"),
            *full.rods[2:],
        ),
    )
    with pytest.raises(InputError) as caught:
        merge_rods(longer, ("leg1.left", "leg1.right"))
    assert [problem.what for problem in caught.value.problems] == [
        "is +0.1 mm longer than leg1.left",
        "has another first axis or spin than leg1.left",
    ]


def test_lumped_forearms_are_rods_with_all_mass_at_their_ends() -> None:
    """Masses at both ends are a slender rod of J = h L, which the unreduced equations know."""
    full = loads(six_rod_delta(SLENDER))
    lumped, step = lump_rods(full, [rod.name for rod in full.rods])
    assert not step.is_exact
    assert step.lost == ()
    assert total_mass(lumped) == pytest.approx(total_mass(full), rel=EXACT)

    def with_ends(part: SlenderPart) -> SlenderPart:
        return replace(part, second_moment=multiply(part.first_moment, Constant(0.48)))

    rods = tuple(
        replace(rod, lower=with_ends(rod.lower))
        for rod in full.rods
        if isinstance(rod.lower, SlenderPart)
    )
    assert largest_error(replace(full, rods=rods), lumped) < EXACT
    comparison = compare_reduction(
        model(full), model(lumped), np.random.default_rng(0), states=STATES
    )
    for e in comparison.errors:
        assert e.gravity < EXACT  # mass and mass centre are those of the rods
        assert e.inertia > 1e-4  # the moment of inertia is not
    assert comparison.center_deviation < EXACT


def test_lumped_mass_on_the_base_is_named() -> None:
    machine = load("spidermill")
    lumped, step = lump_rods(machine, ("side1.spindle",))
    missing = total_mass(machine) - total_mass(lumped)
    assert step.lost == (f"{missing:.6g} kg of side1.spindle on the base",)
    assert missing > 1.0
    with pytest.raises(InputError, match=r"rods.spindle: there is no rod with this name"):
        lump_rods(machine, ("spindle", "side1.spindle"))
    with pytest.raises(InputError, match="has a full inertia"):
        lump_rods(loads(six_rod_delta(FULL)), ("leg1.left",))


# Platform, couplings, symmetry


def test_only_a_platform_that_does_not_turn_is_held() -> None:
    machine = loads(six_rod_delta(SLENDER))
    groups = alike(machine)
    with pytest.raises(InputError) as caught:
        hold_platform(machine, ("platform.wx", "platform.z"), groups)
    assert {problem.where for problem in caught.value.problems} == {
        "platform.wy",
        "platform.wz",
        "platform.z",
    }
    with pytest.raises(InputError, match="no coordinates of its own"):
        hold_platform(load("four_bar"), (), groups)


def test_bodies_that_must_stay_are_refused() -> None:
    machine = load("spidermill")
    groups = alike(machine)
    with pytest.raises(InputError, match="is the platform"):
        lump_translating_body(machine, "plate", groups)
    with pytest.raises(InputError, match="rotates, or is the base"):
        lump_translating_body(machine, "side1.lower_inner", groups)
    with pytest.raises(InputError, match="rotates, or is the base"):
        gather_joints(machine, "base", groups)
    with pytest.raises(InputError, match=r"side1.upper_inner is not a joint of side1.coupling"):
        lump_translating_body(machine, "side1.coupling", groups, "side1.upper_inner")
    with pytest.raises(InputError, match="is a prismatic joint that moves the body"):
        lump_translating_body(
            stages()[1],
            "platform.slide_x",
            replace(groups, groups=(groups.translating | {"platform.slide_x"},)),
        )


def on_a_cart(machine: Mechanism) -> Mechanism:
    """The same machine on a cart in place of the base."""

    def moved(placement: Placement) -> Placement:
        return replace(placement, body="cart") if placement.body == "base" else placement

    joints = tuple(
        replace(joint, parent=moved(joint.parent), child=moved(joint.child))
        for joint in machine.joints
    )
    track = Joint(
        name="track",
        kind="prismatic",
        parent=Placement(body="base"),
        child=Placement(body="cart"),
        axes=("x",),
    )
    return replace(
        machine,
        bodies=(*machine.bodies, Body(name="cart", inertia=Inertia(mass=Constant(1.0)))),
        joints=(track, *joints),
        actuators=(*machine.actuators, Actuator(name="pull", drives=(("track", Constant(1.0)),))),
        platform=replace(machine.platform, independent=("track", *machine.platform.independent)),
    )


def test_parts_that_hang_together_do_not_meet() -> None:
    machine = on_a_cart(load("four_bar"))
    groups = alike(machine)
    assert groups.translating == {"base", "cart"}
    with pytest.raises(InputError) as caught:
        gather_joints(machine, "cart", groups)
    assert (
        "crank, rocker are connected, but are attached to it in 2 points up to 300 mm apart"
        in str(caught.value)
    )
    assert "would be displaced" in str(caught.value)
    with pytest.raises(InputError, match="carries a load"):
        lump_translating_body(machine, "cart", groups)
    assert reduce_model(machine, ReductionOptions(states=STATES)).status is Status.OK


def test_equal_legs_share_parameters() -> None:
    full = loads(six_rod_delta(SLENDER))
    shared, step = share_parameters(full)
    assert len(shared.parameters) == len(full.parameters) - 2 * len(step.kept)
    assert "leg.arm.mass" in shared.parameters.names
    assert "leg2.arm.mass" not in shared.parameters.names
    assert largest_error(full, shared) < EXACT
    # one number now moves all three legs
    heavy = shared.with_values({"leg.arm.mass": 1.5})
    three = full.with_values({f"leg{i}.arm.mass": 1.5 for i in (1, 2, 3)})
    assert largest_error(three, heavy) < EXACT
    # legs that differ keep their own, and kinds that are not asked for are left
    heavier = full.with_values({"leg1.arm.mass": 1.5})
    assert "leg1.arm.mass" in share_parameters(heavier)[0].parameters.names
    assert share_parameters(full, ["gravity"])[0] == full


def test_what_has_no_effect_is_gone_from_the_parameters() -> None:
    """Offsets that cancel, inertias that never act. base_inner - plate_x stays: 0.45 m."""
    machine, small = load("spidermill"), without_unused_parameters(stages()[-1])
    gone = {
        "lobe_x",
        "lobe_y",
        "crank_axial_inertia",
        "plate.inertia.zz",
        "side1.coupling.inertia.zz",
    }
    kept = {
        "d1",
        "d3",
        "d_A",
        "m1",
        "m2",
        "m3",
        "m4",
        "base_inner",
        "plate_x",
        "plate_y",
        "base_outer",
    }
    assert gone <= set(machine.parameters.names)
    assert not gone & set(small.parameters.names)
    assert kept <= set(small.parameters.names)
    assert without_unused_parameters(machine) == machine
    # and the geometry follows its parameters: the reduced machine of a changed machine is the
    # changed reduced machine
    changes = {"base_inner": 0.66, "plate_x": 0.23, "lobe_x": 0.1, "plate_y": -0.02}
    wider = machine.with_values(changes)
    mine = small.with_values(
        {name: value for name, value in changes.items() if name in small.parameters.names}
    )
    assert largest_error(wider, mine) < EXACT


def test_mass_center_is_where_gravity_pulls() -> None:
    """Static actuator forces do the work of lifting the mass centre: J^T u = -m g . dc/dx; rods of all kinds."""
    for machine in (stages()[-1], loads(six_rod_delta(FULL)), load("hexapod")):
        whole = model(machine)
        s = random_states(whole, 8, np.random.default_rng(0))
        zero = np.zeros_like(s.velocity)
        u = whole.platform.inverse_dynamics(s.position, zero, zero, start=s.q).force
        J = whole.platform.actuator_jacobian(s.position, start=s.q)
        lifted = np.einsum("nij,ni->nj", J, u)
        g = np.array([machine.value(x) for x in machine.gravity])
        for column in range(min(3, s.velocity.shape[1])):  # translations
            step = np.zeros_like(s.position)
            step[:, column] = 1e-5
            centers = [
                mass_center(whole, whole.platform.kinematics(s.position + sign * step, start=s.q).q)
                for sign in (1.0, -1.0)
            ]
            expected = -total_mass(machine) * (centers[0] - centers[1]) @ g / 2e-5
            scale = total_mass(machine) * np.abs(g).max()
            np.testing.assert_allclose(lifted[:, column], expected, atol=DIFFERENCE * scale)


def test_machines_with_other_ports_are_not_compared() -> None:
    with pytest.raises(InputError) as caught:
        compare_reduction(model(load("delta")), model(load("five_bar")), np.random.default_rng(0))
    assert {problem.where for problem in caught.value.problems} == {"platform", "actuators"}


def test_report_is_plain_data() -> None:
    data = reduced("spidermill").as_dict()
    text = json.loads(json.dumps(plain(data), allow_nan=False))
    assert text["coordinates"] == [15, 6]
    assert text["loop_equations"] == [32, 4]
    assert text["is_exact"] is True
    assert [count["equations"] for count in text["newton_euler"]] == [33, 12]
    assert [step["name"] for step in text["steps"]].count("group parallel links") == 4
    assert {actuator["actuator"] for actuator in text["actuators"]} == {
        "side1.drive",
        "side2.drive",
    }
    assert reduced("pendulum_arm").steps == ()
