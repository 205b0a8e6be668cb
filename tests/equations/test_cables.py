"""Cables: tensions within bounds, against quadratic and linear programs of other codes on lines of their own."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cable_machines import CONSTRAINED, SUSPENDED, Plate
from scipy.optimize import lsq_linear, nnls
from scipy.spatial.transform import Rotation

import tauloop
from tauloop.common.errors import AssemblyError, DescriptionError, InputError, PoseError
from tauloop.compiler.c import Compiled, Interpreted
from tauloop.compiler.c.calling.compiler import find_compiler
from tauloop.equations.assembly.nearest import margin, nearest
from tauloop.equations.ports import Entry
from tauloop.export.c import ExportOptions, export_c
from tauloop.formats.writing.yaml_writer import dumps
from tauloop.kinematics.workspaces.map import Reason, WorkspaceLimits, workspace_grid
from tauloop.model import ForceSharing, Model, load_function

CASES = Path(__file__).parents[1] / "cases"
PLATES = {"suspended": SUSPENDED, "constrained": CONSTRAINED}
#: Asked for by the issue: N, against programs of others.
TENSION, MARGIN = 1e-8, 1e-8
#: As far from the border of what can be held as the issue asks for, N.
BORDER = 1e-6


def model(plate: Plate, **keys: str) -> Model:
    """The machine of a plate, interpreted."""
    return Model(tauloop.loads(plate.text(**keys)), evaluator=Interpreted())


def motions(plate: Plate, count: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random motions around the middle of the frame."""
    rng = np.random.default_rng(seed)
    turned = Rotation.from_rotvec(0.1 * rng.normal(size=(count, 3))).as_quat(scalar_first=True)
    position = np.c_[rng.uniform(-0.7, 0.7, (count, 2)), rng.uniform(0.8, 1.8, (count, 1)), turned]
    return position, 0.3 * rng.normal(size=(count, 6)), 0.5 * rng.normal(size=(count, 6))


def held(plate: Plate, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random motions that HiGHS says the cables can give, with something to spare."""
    inputs = motions(plate, 6 * count)
    good = [
        i
        for i, (p, v, a) in enumerate(zip(*inputs, strict=True))
        if plate.margin(p, plate.needed(p, v, a)) > 0.01
    ]
    position, velocity, acceleration = (part[good[:count]] for part in inputs)
    assert len(position) == count
    return position, velocity, acceleration


@pytest.mark.parametrize("name", PLATES)
@pytest.mark.parametrize("preloaded", [False, True])
def test_tensions_are_those_of_an_independent_quadratic_program(name: str, preloaded: bool) -> None:
    """CVXPY with Clarabel on Newton's and Euler's laws by NumPy: least norm, and nearest to preloads."""
    plate = PLATES[name]
    position, velocity, acceleration = held(plate, 12)
    names = [f"cable{i}" for i in range(1, len(plate.anchors) + 1)]
    wanted = (
        np.random.default_rng(5).uniform(0.0, 3.0 * plate.greatest, len(names))
        if preloaded
        else np.zeros(len(names))
    )
    sharing = ForceSharing(preload=dict(zip(names, map(float, wanted), strict=True)))
    forces = model(plate).platform.inverse_dynamics(
        position, velocity, acceleration, sharing=sharing
    )
    assert forces.tension is not None
    assert forces.tension_names == tuple(names)
    at_bounds = 0
    for tension, *motion in zip(forces.tension, position, velocity, acceleration, strict=True):
        exact, bounded = plate.distribution(motion[0], plate.needed(*motion), wanted)
        assert tension == pytest.approx(exact, abs=TENSION)
        at_bounds += bounded
    assert at_bounds > 0  # bounds are at work, so that this is not only the least norm
    # a bare winch pulls what its cable does
    np.testing.assert_allclose(forces.force, -forces.tension, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", PLATES)
def test_the_margin_is_that_of_highs(name: str) -> None:
    plate = PLATES[name]
    inputs = motions(plate, 80)
    wanted = [plate.margin(p, plate.needed(p, v, a)) for p, v, a in zip(*inputs, strict=True)]
    assert min(wanted) < -1.0 < 1.0 < max(wanted)
    np.testing.assert_allclose(
        model(plate).platform.tension_margin(*inputs), wanted, rtol=0, atol=MARGIN
    )


@pytest.mark.parametrize("name", PLATES)
def test_the_margin_holds_under_wrenches_at_the_tool(name: str) -> None:
    """What acts at the tool is not for the cables to exert: HiGHS on the difference, for each of the wrenches."""
    plate, loads = PLATES[name], ((0.0, 0, -60, 0, 0, 0), (40.0, 0, 0, 0, 5, 0))
    position, _, _ = motions(plate, 40)
    still = np.zeros(6)
    wanted = [
        min(plate.margin(p, plate.needed(p, still, still) - np.array(load)) for load in loads)
        for p in position
    ]
    result = model(plate).platform.tension_margin(position, wrenches=loads)
    np.testing.assert_allclose(result, wanted, rtol=0, atol=MARGIN)


@pytest.mark.parametrize("name", PLATES)
def test_a_millionth_of_a_newton_on_either_side_of_the_border_is_told_apart(name: str) -> None:
    """Bounds are moved by HiGHS's own margin, so that just so much is left or missing."""
    plate = PLATES[name]
    for position, velocity, acceleration in zip(*held(plate, 1), strict=True):
        spare = plate.margin(position, plate.needed(position, velocity, acceleration))
        for left in (BORDER, -BORDER):
            moved = replace(
                plate, least=plate.least + spare - left, greatest=plate.greatest - spare + left
            )
            functions = model(moved).platform
            assert functions.tension_margin(position, velocity, acceleration) == pytest.approx(
                left, abs=MARGIN
            )
            if left > 0:
                forces = functions.inverse_dynamics(position, velocity, acceleration)
                assert forces.tension is not None
                assert forces.tension.min() > moved.least - 1e-8
                assert forces.tension.max() < moved.greatest + 1e-8
            else:
                with pytest.raises(PoseError, match=r"the smallest violation is 1e-06 N"):
                    functions.inverse_dynamics(position, velocity, acceleration)


def test_the_missing_wrench_is_what_the_cables_come_nearest_to() -> None:
    """Against SciPy's bounded least squares of the wrench about the plate's origin, moments over its length."""
    plate = CONSTRAINED
    machine = model(plate)
    length = machine.assembly.loops.length
    position, acceleration = (
        np.array([0.1, 0.05, 1.2, 1.0, 0.0, 0.0, 0.0]),
        np.array([0.0, 0, 90, 0, 0, 0]),
    )
    with pytest.raises(PoseError) as caught:
        machine.platform.inverse_dynamics(position, np.zeros(6), acceleration)
    needed = plate.needed(position, np.zeros(6), acceleration)
    scale = np.array([length] * 3 + [1.0] * 3)
    best = lsq_linear(
        scale[:, None] * plate.structure(position),
        scale * needed,
        (plate.least, plate.greatest),
        method="bvls",
        tol=1e-14,
    )
    missing = needed - plate.structure(position) @ best.x
    (problem,) = caught.value.problems
    assert f"platform.z {missing[2]:.4g} N" in problem.what
    assert f"platform.wy {missing[4]:.4g} N m" in problem.what


def test_machine_code_gives_the_same_tensions_and_says_when_there_are_none(tmp_path: Path) -> None:
    plate = SUSPENDED
    if find_compiler() is None:
        pytest.skip("there is no C compiler")
    mechanism = tauloop.loads(plate.text())
    inputs, sharing = held(plate, 40), ForceSharing(preload=300.0)
    interpreted = Model(mechanism, evaluator=Interpreted()).platform.inverse_dynamics(
        *inputs, sharing=sharing
    )
    compiled = Model(mechanism, evaluator=Compiled(at_least=0, folder=tmp_path)).platform
    forces = compiled.inverse_dynamics(*inputs, sharing=sharing)
    np.testing.assert_allclose(forces.tension, interpreted.tension, rtol=0, atol=1e-10)
    file = tmp_path / "plate.yaml"
    file.write_text(plate.text(), encoding="utf-8")
    arrays, call = load_function(file, outputs=("force", "tension"), folder=tmp_path).bind()
    arrays["position"][:], arrays["velocity"][:], arrays["acceleration"][:] = (
        part[0] for part in inputs
    )
    arrays["preload"][:] = 300.0
    call()
    np.testing.assert_allclose(arrays["tension"], interpreted.tension[0], rtol=0, atol=1e-10)
    assert arrays["health"][2] < 1e-9
    arrays["acceleration"][2] = -30.0
    call()
    assert arrays["health"][2] > 1e-3


@pytest.mark.parametrize("entry", ["platform", "actuators"])
def test_exported_c_agrees_with_the_interpreter(entry: str, tmp_path: Path) -> None:
    compiler = find_compiler()
    if compiler is None:
        pytest.skip("there is no C compiler")
    made = export_c(model(CONSTRAINED), ExportOptions(coordinates=Entry(entry)), folder=tmp_path)
    assert "in preload[7]" in made.files["plate.h"]
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run(
        [compiler.path, *flags, "plate.c", "plate_check.c", "-lm", "-o", "check"],
        cwd=tmp_path,
        check=True,
    )
    assert subprocess.run([tmp_path / "check"], check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("r", [1, 2, 3, 5])
def test_nearest_points_and_margins_against_non_negative_least_squares(r: int) -> None:
    """Lawson and Hanson's least-distance programming by SciPy's NNLS: another method for the same points."""
    rng = np.random.default_rng(r)
    rows, sides = rng.normal(size=(200, 12, r)), rng.normal(size=(200, 12)) - 0.7
    result, (margins, _) = nearest(rows, sides), margin(rows, sides)
    contradict = result.weights.any(axis=1)
    assert 0 < contradict.sum() < 200
    np.testing.assert_array_equal(contradict, margins < 0)
    for i in range(200):
        E = np.vstack([rows[i].T, sides[i]])
        u, left = nnls(E, np.r_[np.zeros(r), 1.0])
        if contradict[i]:
            assert left < 1e-9
            assert np.abs(result.weights[i] @ rows[i]).max() < 1e-12
            assert result.weights[i] @ sides[i] > 0
        else:
            residual = E @ u - np.r_[np.zeros(r), 1.0]
            np.testing.assert_allclose(
                result.point[i], -residual[:r] / residual[r], rtol=0, atol=1e-9
            )


@pytest.mark.parametrize("distance", [1e-7, 1e-8, 1e-9])
def test_margins_of_cables_that_are_almost_parallel(distance: float) -> None:
    """Symmetric frames: rows in pairs that differ by rounding or by the first step of a path.

    Without that difference the rows are +-a and +-b, and the margin is half the narrower of the
    two ranges. The rows differ by `distance`, the points are below 1e3, so the margins by about
    their product.
    """
    rng = np.random.default_rng(4)
    angle = rng.uniform(0.5, 2.5, 100)
    a = np.tile([0.5, 0.0], (100, 1))
    b = 0.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rows = np.stack([a, -a, b, -b] * 4, axis=1)
    least = rng.uniform(5.0, 20.0, (100, 2))
    greatest = least + rng.uniform(50.0, 500.0, (100, 2))
    sides = np.stack([least[:, 0], -greatest[:, 0], least[:, 1], -greatest[:, 1]] * 4, axis=1)
    moved = rows + distance * rng.normal(size=rows.shape)
    margins, weights = margin(moved, sides)
    expected = 0.5 * (greatest - least).min(axis=1)
    np.testing.assert_allclose(margins, expected, rtol=0, atol=1e5 * distance)
    assert np.abs(np.einsum("nk,nkr->nr", weights, moved)).max() < 1e-12


def test_winches_with_drum_inertia_and_friction_do_not_change_what_cables_pull() -> None:
    """The same tensions as with bare winches; the motor's torque is what turns its drum, by hand."""
    plate = SUSPENDED
    motor = ", ratio: 20 rad/m, inertia: 0.01 kg m^2, friction: {viscous: 0.02 N m s/rad, coulomb: 0.3 N m}"
    inputs = held(plate, 10)
    wound = model(plate, actuator=motor).platform.inverse_dynamics(*inputs)
    bare = model(plate).platform.inverse_dynamics(*inputs)
    np.testing.assert_allclose(wound.tension, bare.tension, rtol=0, atol=1e-9)
    names = wound.state.velocity_names
    rate, change = (
        np.asarray(x)[:, [names.index(n) for n in wound.tension_names]]
        for x in (wound.state.v, wound.state.a)
    )
    torque = -wound.tension / 20 + 0.01 * 20 * change + 0.02 * 20 * rate + 0.3 * np.sign(rate)
    np.testing.assert_allclose(wound.force, torque, rtol=0, atol=1e-9)


def hanging(further: str = "") -> Model:
    """A mass on a line of fixed length, moved along x in a vertical plane."""
    text = f"""\
format: tauloop-machine/1
name: pendulum
provenance: {{status: chosen, source: a test}}
gravity: [0, 0, -9.81 m/s^2]
bodies: {{slide: massless, bob: {{mass: 2 kg}}}}
joints:
  x: {{type: prismatic, axis: x, parent: base, child: slide, reference: 0.3 m}}
  z: {{type: prismatic, axis: z, parent: slide, child: bob, reference: 0.5 m}}
rods:
  line: {{from: {{on: base, at: [0, 0, 2 m]}}, to: bob, length: 1.5 m, model: massless, tension: {{least: 0 N}}}}
{further}
actuators:
  push: {{on: x}}
platform: {{body: bob, independent: [x]}}
"""
    return Model(tauloop.loads(text), evaluator=Interpreted())


def test_a_line_of_fixed_length_pulls_what_a_pendulum_needs() -> None:
    """By hand: with z = 2 - sqrt(L^2 - x^2), T (2 - z)/L = m (z'' + g); the push is what is left along x."""
    x, v, a = 0.3, 0.4, -0.7
    forces = hanging().platform.inverse_dynamics([x], [v], [a])
    height = np.sqrt(1.5**2 - x**2)
    lifting = (v**2 + x * a) / height + (x * v) ** 2 / height**3
    tension = 2.0 * (lifting + 9.81) * 1.5 / height
    assert forces.tension == pytest.approx(tension, rel=1e-12)
    assert forces.force == pytest.approx(2.0 * a + tension * x / 1.5, rel=1e-12)


def test_a_line_that_would_have_to_push_is_refused_with_the_force_that_is_missing() -> None:
    with pytest.raises(PoseError, match=r"the smallest violation is .* \(line first\)"):
        hanging().platform.inverse_dynamics([0.3], [0.0], [-60.0])


def test_the_writer_keeps_what_a_cable_is() -> None:
    more = ", stiffness: 2e4 N/m, damping: 30 N s/m"
    mechanism = tauloop.loads(SUSPENDED.text(tension=more))
    again = tauloop.loads(dumps(mechanism))
    assert [rod.tension for rod in again.rods] == [rod.tension for rod in mechanism.rods]
    assert mechanism.rods[0].tension is not None
    assert mechanism.value(mechanism.rods[0].tension.stiffness) == 2e4


@pytest.mark.parametrize(
    ("tension", "message"),
    [
        ("{least: -1 N}", "must be not negative"),
        ("{greatest: 5 N}", "least"),
        ("{least: 50 N, greatest: 5 N}", "is not above the least"),
        ("{least: 0 N, damping: 3 N s/m}", "does not stretch"),
        (
            "{least: 0 N, stiffness: 3 N/m, restitution: 0.5}",
            "its stiffness determines the rebound",
        ),
        ("{least: 0 N, restitution: 1.5}", "must be between 0 and 1"),
        ("{least: 0 N, slack: 3}", "unknown key"),
    ],
)
def test_what_cannot_be_a_cable_is_refused(tension: str, message: str) -> None:
    text = (CASES / "cables8.yaml").read_text(encoding="utf-8")
    with pytest.raises(DescriptionError, match=message):
        tauloop.loads(text.replace("model: massless}", f"model: massless, tension: {tension}}}"))


def test_preloads_of_what_is_no_cable_are_refused() -> None:
    machine = model(SUSPENDED)
    still = (machine.platform_position(machine.assembly.q), np.zeros(6), np.zeros(6))
    with pytest.raises(InputError, match="no such cable"):
        machine.platform.inverse_dynamics(*still, sharing=ForceSharing(preload={"cable9": 1.0}))


def test_a_tension_that_another_line_holds_too_is_refused() -> None:
    """Two lines in one place: nothing tells which of them pulls."""
    twin = "  twin: {from: {on: base, at: [0, 0, 2 m]}, to: bob, length: 1.5 m, model: massless, tension: {least: 0 N}}"
    with pytest.raises(AssemblyError, match="its tension is not determined"):
        hanging(twin).platform.inverse_dynamics([0.3], [0.0], [0.0])


def test_a_workspace_holds_the_poses_that_highs_holds() -> None:
    """Wrench feasibility under two loads at the tool over a section: HiGHS pose by pose, and the margin of each."""
    plate, loads = CONSTRAINED, ((0.0, 0, -60, 0, 0, 0), (60.0, 0, 0, 0, 0, 0))
    machine = Model(tauloop.loads(plate.text()))
    axes = {"platform.x": np.linspace(-1.5, 1.5, 7), "platform.z": np.linspace(0.4, 2.6, 6)}
    limits = WorkspaceLimits(singularity=0.0, tension=2.0, wrenches=loads)
    grid = workspace_grid(machine, axes, limits=limits)
    wanted = np.empty(grid.reason.shape)
    position, still = machine.platform_position(machine.assembly.q), np.zeros(6)
    for i, j in np.ndindex(wanted.shape):
        position[0], position[2] = axes["platform.x"][i], axes["platform.z"][j]
        needed = plate.needed(position, still, still)
        wanted[i, j] = min(plate.margin(position, needed - np.array(load)) for load in loads)
    np.testing.assert_allclose(grid.data["tension"].to_numpy(), wanted, rtol=0, atol=MARGIN)
    np.testing.assert_array_equal(grid.usable, wanted > 2.0)
    assert 5 < grid.usable.sum() < grid.usable.size - 5
    np.testing.assert_array_equal(grid.reason == Reason.TENSION, ~grid.usable)
    assert all(name.startswith("tension of cable") for name in grid.excluded_by())


def test_a_workspace_without_cables_refuses_loads() -> None:
    with pytest.raises(InputError, match="no rod of the machine is a cable"):
        workspace_grid(
            Model(tauloop.load("delta")),
            {"platform.x": np.zeros(1)},
            limits=WorkspaceLimits(wrenches=((1.0,) * 6,)),
        )
