"""All assembly modes and working modes (literature, closed forms, Newton from random starts); closing from afar."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from python_paths import track

from tauloop.common.errors import InputError
from tauloop.common.result import Status
from tauloop.equations.assembly.closing import close_loops
from tauloop.equations.assembly.distant_start import _rates, close_from_distant_start
from tauloop.equations.assembly.loops import loops
from tauloop.equations.ports import PLATFORM, entry_ports
from tauloop.equations.topology import integrate
from tauloop.formats import load, loads, machine_path
from tauloop.kinematics.homotopy.evaluation import ComplexFunction
from tauloop.kinematics.homotopy.monodromy import (
    MAX_LOST_ROUNDS,
    MonodromyOptions,
    _ModeSearch,
    distinct,
)
from tauloop.kinematics.homotopy.paths import ParameterLine, PathEnding, TrackingOptions
from tauloop.kinematics.homotopy.widening import Widened
from tauloop.kinematics.modes.equations import position_problem
from tauloop.kinematics.modes.modes import ModeOptions, Modes, assembly_modes, working_modes
from tauloop.model import Model

#: A mode is exact to rounding times the condition number of its loops, some thousands at most here.
EXACT = 1e-10
#: Two ways to the same pose, each ending in Newton steps at rounding; conditions up to some
#: thousands.
SAME = 1e-7
#: What Newton's method from random starts counts as closed, m.
CLOSED = 1e-12
#: Half the loops that the toolkit itself asks for: the counts are checked against other sources
#: here.
QUICK = ModeOptions(monodromy=MonodromyOptions(quiet_loops=8))

# P. Dietmaier, The Stewart-Gough platform of general geometry can have 40 real postures, Advances
# in Robot Kinematics, 1998: joints on base and platform, and leg lengths.
DIETMAIER_BASE = [
    [0, 0, 0],
    [1.107915, 0, 0],
    [0.549094, 0.756063, 0],
    [0.735077, -0.223935, 0.525991],
    [0.514188, -0.526063, -0.368418],
    [0.590473, 0.094733, -0.205018],
]
DIETMAIER_PLATFORM = [
    [0, 0, 0],
    [0.542805, 0, 0],
    [0.956919, -0.528915, 0],
    [0.665885, -0.353482, 1.402538],
    [0.478359, 1.158742, 0.107672],
    [-0.137087, -0.235121, 0.353913],
]
DIETMAIER_LENGTHS = [1.0, 0.645275, 1.086284, 1.503439, 1.281933, 0.771071]


def hexapod(base: object, platform: object, lengths: object) -> Model:
    """A hexapod of general geometry with massless telescopic legs."""

    def vector(point: object) -> str:
        return "[" + ", ".join(f"{x:.17g} m" for x in np.asarray(point, dtype=float)) + "]"

    lines = [
        "format: tauloop-machine/1",
        "name: general_hexapod",
        "provenance: {status: chosen, source: test}",
        "gravity: [0, 0, -9.81 m/s^2]",
        "bodies:",
        "  plate: {mass: 1 kg, inertia: {xx: 1 kg m^2, yy: 1 kg m^2, zz: 1 kg m^2}}",
        "rods:",
    ]
    for i, (a, b, length) in enumerate(zip(base, platform, lengths, strict=True), start=1):
        lines += [
            f"  leg{i}:",
            f"    from: {{on: base, at: {vector(a)}}}",
            f"    to: {{on: plate, at: {vector(b)}}}",
            f"    telescopic: {{reference: {length:.17g} m}}",
            "    model: massless",
        ]
    lines += ["actuators:", *(f"  motor{i}: {{on: leg{i}}}" for i in range(1, 7))]
    lines += [
        "platform:",
        "  body: plate",
        "  motion: free",
        "  independent: [x, y, z, wx, wy, wz]",
    ]
    lines += ["  reference: {at: [0.1 m, 0.2 m, 0.5 m]}"]
    return Model(loads("\n".join(lines)))


@cache
def model(name: str) -> Model:
    return Model(load(name))


@cache
def modes(name: str) -> Modes:
    return assembly_modes(model(name), options=QUICK)


def random_starts(
    machine: Model, q: np.ndarray, held: tuple[int, ...], n: int, seed: int
) -> np.ndarray:
    """Coordinates (n, n_q) anywhere, but with the held ones as given."""
    shape, rng = machine.topology, np.random.default_rng(seed)
    starts = np.tile(q, (n, 1))
    for i, is_angle in enumerate(shape.is_angle):
        if is_angle:
            starts[:, i] = rng.uniform(-np.pi, np.pi, n)
        else:
            starts[:, i] += 1.5 * machine.assembly.loops.length * rng.normal(size=n)
    for q0, _ in shape.quaternions:
        turns = rng.normal(size=(n, 4))
        starts[:, q0 : q0 + 4] = turns / np.linalg.norm(turns, axis=1, keepdims=True)
    starts[:, list(held)] = q[list(held)]
    return starts


def found_by_newton(machine: Model, modes: Modes, n: int, seed: int = 1) -> set[int]:
    """Which modes Newton's method finds from random starts; every closed state must be one of them."""
    entry = machine.actuators.ports
    starts = random_starts(machine, modes.q[0], entry.q, n, seed)
    q, residual = close_loops(machine.assembly.loops, starts, iterations=100, held=entry.v)
    q = q[residual < CLOSED]
    for _, i, _ in machine.topology.telescopes:
        q = q[q[:, i] > 0]
    distance = np.stack([difference(machine, q, mode.q) for mode in modes.modes], axis=1)
    assert (distance.min(axis=1, initial=np.inf) < SAME).all()
    return {int(i) for i in distance.argmin(axis=1)}


def difference(machine: Model, q: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Largest difference of coordinates (n,): angles by full turns, quaternions by sign."""
    delta = q - target
    for i, is_angle in enumerate(machine.topology.is_angle):
        if is_angle:
            delta[:, i] = (delta[:, i] + np.pi) % (2 * np.pi) - np.pi
    for q0, _ in machine.topology.quaternions:
        part = slice(q0, q0 + 4)
        sign = np.where(q[:, part] @ target[part] < 0, -1.0, 1.0)
        delta[:, part] = sign[:, None] * q[:, part] - target[part]
    return np.asarray(np.abs(delta).max(axis=1))


def test_dietmaier_hexapod_has_40_real_modes() -> None:
    machine = hexapod(DIETMAIER_BASE, DIETMAIER_PLATFORM, np.ones(6))
    modes = assembly_modes(machine, DIETMAIER_LENGTHS, options=QUICK)
    assert modes.blocks[0].complex_solutions == 40
    assert len(modes.modes) == 40
    assert modes.status is Status.OK
    for mode in modes.modes:  # the lengths worked out anew from the pose
        w, x, y, z = mode.q[3:7]
        R = np.eye(3) + 2 * (w * skew(x, y, z) + skew(x, y, z) @ skew(x, y, z))
        ends = mode.q[:3] + np.array(DIETMAIER_PLATFORM) @ R.T
        assert np.linalg.norm(ends - np.array(DIETMAIER_BASE), axis=1) == pytest.approx(
            DIETMAIER_LENGTHS, abs=EXACT
        )


def skew(x: float, y: float, z: float) -> np.ndarray:
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def test_random_hexapod_has_40_complex_modes_and_newton_finds_no_other_real_one() -> None:
    rng = np.random.default_rng(5)
    base, platform = rng.normal(size=(2, 6, 3))
    lengths = np.linalg.norm(platform - base + [0.1, 0.2, 0.5], axis=1)
    machine = hexapod(base, platform, lengths)
    modes = assembly_modes(machine, options=replace(QUICK, seed=3))
    assert modes.blocks[0].complex_solutions == 40
    assert modes.reference == 0
    assert found_by_newton(machine, modes, 300) == set(range(len(modes.modes)))


# Complex solutions: three spheres 2; 6-3 platform 16 (Griffis and Duffy 1989; Innocenti and
# Parenti-Castelli 1990); five-bar and four-bar 2 (two circles), 4 with the linear terms in cosines
# and sines that the trace test wants.
@pytest.mark.parametrize(
    ("name", "complex_solutions", "real"),
    [
        ("delta", 2, 2),
        ("linear_delta", 2, 2),
        ("nuwar", 2, 2),
        ("gantry_tau_3dof", 2, 2),
        ("five_bar", 4, 2),
        ("four_bar", 4, 2),
        ("rcid", 40, 8),
    ],
)
def test_modes_of_shipped_machines(name: str, complex_solutions: int, real: int) -> None:
    machine, all_modes = model(name), modes(name)
    assert [block.complex_solutions for block in all_modes.blocks] == [complex_solutions]
    assert len(all_modes.modes) == real
    assert all_modes.status is Status.OK
    assert all_modes.reference == 0
    assert np.abs(machine.assembly.loops.residuals(all_modes.q)[0]).max() < EXACT
    assert found_by_newton(machine, all_modes, 150) == set(range(real))


def test_spidermill_drops_solutions_that_break_its_redundant_equation() -> None:
    machine, all_modes = model("spidermill"), modes("spidermill")
    assert all_modes.left_out
    assert np.abs(machine.assembly.loops.residuals(all_modes.q)[0]).max() < EXACT
    assert all_modes.reference == 0
    assert len(all_modes.modes) == 4
    assert found_by_newton(machine, all_modes, 20)


@pytest.mark.parametrize(
    ("name", "angles", "count"), [("four_bar", 2, 4), ("five_bar", 2, 4), ("delta", 1, 2)]
)
def test_the_trace_of_a_block_of_angles_bends_where_a_solution_is_missing(
    name: str, angles: int, count: int
) -> None:
    """With linear terms in cosines and sines the sum over all solutions is straight, over all but one it is not."""
    assembly = model(name).assembly
    entry = entry_ports(assembly, PLATFORM)
    problem = position_problem(assembly, entry.q, entry.v)
    block = problem.blocks[0]
    assert len(block.angles) == angles
    rng = np.random.default_rng(5)
    family = Widened(block, rng)
    w = problem.variables.values(assembly.q[None, :])[0]
    y = family.of_machine(w[list(block.known_columns)]).astype(complex)
    search = _ModeSearch(family, y, rng, MonodromyOptions(), track)
    search.probe(64)
    while not search.check_complete():
        search.loop()
    assert len(search.known) == count
    assert search.trace is not None
    assert search.trace < 1e-12
    search.known = search.known[1:]
    assert search._trace_nonlinearity() > 1e-4


def test_a_search_whose_trace_lines_all_lose_a_path_ends_as_doubtful(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nearly degenerate machines do so after a minute of search; here every line is declared lost."""
    monkeypatch.setattr(_ModeSearch, "_trace_nonlinearity", lambda self: np.inf)
    modes = working_modes(model("five_bar"))
    assert [block.lost_lines for block in modes.blocks] == [MAX_LOST_ROUNDS, MAX_LOST_ROUNDS]
    assert [block.trace for block in modes.blocks] == [None, None]
    assert modes.status is Status.DOUBTFUL
    assert any("nearly degenerate" in line for line in modes.advice)
    assert len(modes.modes) == 4
    assert json.loads(json.dumps(modes.as_dict(), allow_nan=False))["blocks"][0]["trace"] is None


def test_blocks_of_up_to_three_angles_are_traced_and_longer_ones_on_request() -> None:
    modes = working_modes(model("five_bar"))
    assert [block.trace is not None for block in modes.blocks] == [True, True]
    assert modes.status is Status.OK
    options = ModeOptions(monodromy=MonodromyOptions(traced_angles=1))
    untraced = working_modes(model("five_bar"), options=options)
    assert [block.trace for block in untraced.blocks] == [None, None]
    assert len(untraced.modes) == len(modes.modes) == 4
    for q in modes.q:
        assert difference(model("five_bar"), untraced.q, q).min() < SAME


@pytest.mark.parametrize("name", ["delta", "five_bar"])
def test_the_seed_decides_nothing(name: str) -> None:
    other = assembly_modes(model(name), options=replace(QUICK, seed=17))
    for q in modes(name).q:
        assert difference(model(name), other.q, q).min() < SAME
    assert len(other.modes) == len(modes(name).modes)


def test_a_delta_stands_where_three_spheres_meet() -> None:
    machine = model("delta")
    angles = np.array([0.2, 0.7, 1.0])
    modes = assembly_modes(machine, angles, options=ModeOptions(seed=1))
    phi = np.radians([0, 120, 240])
    radial = np.stack([np.cos(phi), np.sin(phi), 0 * phi], axis=1)
    radius = 0.194 - 0.03 + 0.26 * np.cos(angles)
    centers = radial * radius[:, None] - [0, 0, 1] * (0.26 * np.sin(angles))[:, None]
    # the line on which the differences of the spheres meet, then the quadratic along it
    A = 2 * (centers[1:] - centers[0])
    b = np.sum(centers[1:] ** 2, axis=1) - np.sum(centers[0] ** 2)
    point, direction = np.linalg.lstsq(A, b, rcond=None)[0], np.cross(A[0], A[1])
    offset = point - centers[0]
    roots = np.roots([direction @ direction, 2 * direction @ offset, offset @ offset - 0.48**2])
    expected = sorted((point + root.real * direction).tolist() for root in roots)
    assert sorted(modes.q[:, :3].tolist()) == [pytest.approx(row, abs=EXACT) for row in expected]


@settings(max_examples=4)
@given(first=st.floats(-3.1, 3.1), second=st.floats(-3.1, 3.1))
def test_a_five_bar_stands_where_two_circles_meet(first: float, second: float) -> None:
    machine = model("five_bar")
    elbows = np.array([[-0.1, 0], [0.1, 0]]) + 0.25 * np.array(
        [[np.cos(first), np.sin(first)], [np.cos(second), np.sin(second)]]
    )
    span = elbows[1] - elbows[0]
    distance = np.hypot(*span)
    if distance < 0.02 or abs(distance - 0.7) < 1e-3:  # modes meet
        return
    modes = assembly_modes(machine, [first, second])
    height = np.sqrt(complex(0.35**2 - distance**2 / 4))
    if height.imag:
        assert not modes.modes
        return
    across = np.array([-span[1], span[0]]) / distance
    expected = elbows.mean(axis=0) + np.array([[-1.0], [1.0]]) * height.real * across
    if (modes.q[0, :2] - expected[0]) @ (expected[1] - expected[0]) > 0.5 * height.real**2:
        expected = expected[::-1]
    assert modes.q[:, :2] == pytest.approx(expected, abs=SAME)


def test_the_mode_reached_from_the_reference_pose_is_that_of_forward_kinematics() -> None:
    machine = model("five_bar")
    position = machine.actuator_position(machine.assembly.q) + np.array([0.2, -0.3])
    modes = assembly_modes(machine, position)
    assert modes.reference is not None
    assert modes.q[modes.reference] == pytest.approx(
        machine.forward_kinematics(position).q, abs=SAME
    )


@pytest.mark.parametrize(
    ("name", "count"), [("delta", 8), ("five_bar", 4), ("four_bar", 2), ("hexapod", 1)]
)
def test_working_modes(name: str, count: int) -> None:
    machine = model(name)
    modes = working_modes(machine)
    assert len(modes.modes) == count
    # 2^6 signs of the lengths, one of them positive
    assert modes.left_out == (
        {"a telescopic rod would have a negative length": 63} if name == "hexapod" else {}
    )
    assert modes.reference == 0
    assert modes.status is Status.OK
    assert np.abs(machine.assembly.loops.residuals(modes.q)[0]).max() < EXACT
    given_q = list(machine.platform.ports.q)
    assert modes.q[:, given_q] == pytest.approx(np.tile(machine.assembly.q[given_q], (count, 1)))
    # all are different
    for i, q in enumerate(modes.q[:-1]):
        assert difference(machine, modes.q[i + 1 :], q).min() > SAME


def test_modes_that_meet_are_one_doubtful_mode() -> None:
    """The links of the five-bar are stretched into one line of twice 0.35 m."""
    modes = assembly_modes(model("five_bar"), [np.pi, 0.0])
    assert len(modes.modes) == 1
    assert modes.modes[0].q[:2] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert modes.modes[0].condition > 1e7
    assert modes.status is Status.DOUBTFUL
    assert "modes coincide" in modes.advice[0]
    assert modes.blocks[0].singular == 2


def test_out_of_reach_has_complex_modes_only() -> None:
    modes = assembly_modes(model("gantry_tau_3dof"), [5.0, 0.5, 0.5])
    assert modes.modes == ()
    assert modes.reference is None
    assert modes.blocks[0].complex == 2
    assert modes.status is Status.OK


def test_an_open_chain_has_one_mode() -> None:
    modes = assembly_modes(model("pendulum_arm"))
    assert len(modes.modes) == 1
    assert modes.blocks == ()


def test_positions_are_checked() -> None:
    with pytest.raises(InputError, match="is not finite"):
        assembly_modes(model("delta"), [0.1, np.nan, 0.2])
    with pytest.raises(InputError, match="give one row"):
        assembly_modes(model("delta"), [[0.1, 0.2, 0.2]] * 2)


def test_passive_freedoms_are_given_beside_the_actuators() -> None:
    text = machine_path("five_bar").read_text(encoding="utf-8")
    text = "\n".join(line for line in text.splitlines() if not line.startswith("  motor_2:"))
    machine = Model(loads(text))
    modes = assembly_modes(machine)
    assert len(modes.columns) == 2
    assert len(modes.modes) == 2
    assert np.abs(machine.assembly.loops.residuals(modes.q)[0]).max() < EXACT


def test_complex_evaluation_agrees_with_casadi_and_with_differences() -> None:
    x = ca.SX.sym("x", 3)
    f = ca.vertcat(x[0] ** 2 * x[1] - 3 / x[2], ca.sin(x[0]) * x[2] + 2 * x[1], -x[1])
    function = ca.Function("f", [x], [f, ca.densify(ca.jacobian(f, x))])
    rng = np.random.default_rng(0)
    real = rng.normal(size=(5, 3))
    values, J = ComplexFunction(function)(real)
    for row, value, jacobian in zip(real, values, J, strict=True):
        exact, exact_jacobian = function(row)
        assert value == pytest.approx(np.array(exact), abs=1e-14)
        assert jacobian == pytest.approx(np.array(exact_jacobian), abs=1e-14)
    z = real + 1j * rng.normal(size=(5, 3))
    _, J = ComplexFunction(function)(z)
    step = 1e-6
    for k in range(3):  # along the imaginary axis: the function is analytic
        shift = np.zeros(3, dtype=complex)
        shift[k] = 1j * step
        plus, minus = (
            ComplexFunction(function)(z + shift)[0],
            ComplexFunction(function)(z - shift)[0],
        )
        assert ((plus - minus) / (2j * step))[:, :, 0] == pytest.approx(
            J[:, :, k], rel=1e-7, abs=1e-7
        )


class Powers:
    """x^n - y, a system of which every path is known."""

    def __init__(self, n: int) -> None:
        self.n = n

    def linearized(
        self, x: np.ndarray, y: np.ndarray, y_rate: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return x**self.n - y, self.n * x[:, :, None] ** (self.n - 1), -y_rate


def line(start: complex, end: complex, n: int) -> ParameterLine:
    zero = np.zeros((n, 1), dtype=complex)
    return ParameterLine(y0=np.full((n, 1), start), y1=np.full((n, 1), end), e0=zero, e1=zero)


def test_paths_follow_the_branches_of_a_root() -> None:
    start, end = 1.0 + 0.5j, -2.0 + 1.0j
    branches = np.exp(2j * np.pi * np.arange(5) / 5)[:, None]
    paths = track(Powers(5), start ** (1 / 5) * branches, line(start, end, 5))
    # the straight line stays above the cut of the principal root
    assert paths.is_regular.all()
    assert paths.x == pytest.approx(end ** (1 / 5) * branches, abs=1e-6)


def test_paths_that_end_at_a_multiple_solution_are_not_regular() -> None:
    paths = track(Powers(2), np.array([[1.0], [-1.0]]), line(1.0 + 0j, 0j, 2))
    assert (paths.endings == PathEnding.STEP_TOO_SMALL).all()
    assert (paths.t > 1 - 1e-6).all()


def test_paths_to_infinity_are_told() -> None:
    paths = track(
        Powers(-1), np.array([[1.0 + 0j]]), line(1.0 + 0j, 0j, 1), TrackingOptions(infinity=1e4)
    )
    assert paths.endings[0] == PathEnding.DIVERGED


def test_repeated_points_are_dropped() -> None:
    x = np.array([[1.0, 2j], [1.0 + 1e-8, 2j], [1.0, -2j], [1e4, 0], [1e4 * (1 + 1e-8), 0]])
    assert distinct(x) == pytest.approx(x[[0, 2, 3]])


@pytest.mark.parametrize("name", ["five_bar", "hexapod", "spidermill", "gantry_tau_6link"])
def test_loops_close_from_any_start(name: str) -> None:
    machine = model(name)
    strict = machine.assembly.loops.aligned
    for start in random_starts(machine, machine.assembly.q, (), 4, seed=2):
        q, residual = close_from_distant_start(strict, start)
        assert residual < EXACT
        assert np.abs(machine.assembly.loops.residuals(q[None, :])[0]).max() < EXACT


def test_a_leg_of_three_loops_closes_from_any_start(shared: Path) -> None:
    folder = shared / "models" / "example_parallel_robots" / "digit_like"
    gaps = loops(load(str(folder / "robot.urdf"), folder / "robot.yaml"))
    rng = np.random.default_rng(3)
    for _ in range(5):
        start = rng.uniform(-np.pi, np.pi, gaps.topology.n_q)
        _, residual = close_from_distant_start(gaps.aligned, start)
        assert residual < EXACT


def test_held_coordinates_stay() -> None:
    machine = model("rcid")
    entry = machine.actuators.ports
    start = random_starts(machine, machine.assembly.q, entry.q, 1, seed=4)[0]
    q, residual = close_from_distant_start(machine.assembly.loops, start, held=entry.v)
    assert q[list(entry.q)].tolist() == start[list(entry.q)].tolist()
    loops = machine.assembly.loops
    assert residual == pytest.approx(loops.openings(loops.residuals(q[None, :])[0])[0])


def test_rates_of_a_turned_body_agree_with_differences() -> None:
    shape = model("hexapod").topology
    (iq, iv), q = shape.quaternions[0], model("hexapod").assembly.q
    rng, h = np.random.default_rng(0), 1e-6

    def product(p: np.ndarray, r: np.ndarray) -> np.ndarray:
        return np.concatenate(
            [[p[0] * r[0] - p[1:] @ r[1:]], p[0] * r[1:] + r[0] * p[1:] + np.cross(p[1:], r[1:])]
        )

    for size in (1e-6, 0.3, 2.5):
        step, change = np.zeros(shape.n_v), np.zeros(shape.n_v)
        step[iv : iv + 3], change[iv : iv + 3] = size * rng.normal(size=3), rng.normal(size=3)
        plus, minus = (
            integrate(shape, q[None, :], (step + sign * h * change)[None, :])[0, iq : iq + 4]
            for sign in (1, -1)
        )
        # the small turn between the two, in the base frame
        turn = product(plus, minus * [1, -1, -1, -1])
        assert turn[1:] / h == pytest.approx(
            (_rates(shape, step) @ change)[iv : iv + 3], rel=1e-6, abs=1e-8
        )


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [0, 1])
def test_par4_has_all_conjugate_solutions(seed: int) -> None:
    """14 of them were missing; several seeds find the same 528, of which 56 are real."""
    modes = assembly_modes(load("par4"), seed=seed)
    (block,) = modes.blocks
    assert (block.real, block.complex) == (56, 472)
    assert (block.unpaired, block.singular, block.met) == (0, 0, 0)
    assert len(modes.modes) == 6
    assert modes.status == "ok", [str(item) for item in modes.diagnostics if not item.is_good]
