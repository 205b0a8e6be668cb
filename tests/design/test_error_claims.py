"""Certified errors of the tool by encoders and parameters, against machines with these errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop.common.result import Status
from tauloop.design.error_claims import MARGIN, error_maps, margins, pose_changes
from tauloop.design.tolerances.error_equations import ErrorEquations, part_parameters

DIRECTIONS = ("x", "y", "z", "rx", "ry", "rz")
#: Limits above the largest error of samples, and below it.
ABOVE, BELOW = 1.05, 0.95
#: Newton's solution of a machine with errors, m and rad.
NEWTON = 1e-12

CRANK = """
format: tauloop-machine/1
name: crank
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters: {reach: 0.5 m}
bodies: {arm: {mass: 1 kg}}
joints:
  turn: {type: revolute, axis: z, parent: base, child: arm, reference: 0 deg}
actuators: {motor: {on: turn, force: 1 N m}}
platform: {body: arm, tool: {at: [reach, 0, 0]}, independent: [turn]}
"""


def poses(ranges: dict[str, tuple[float, float]]) -> np.ndarray:
    """Return a grid of positions with five values along each axis (n, k)."""
    axes = [np.linspace(low, high, 5) for low, high in ranges.values()]
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(axes))


def test_an_error_of_second_order_is_not_overlooked(tmp_path: Path) -> None:
    """A crank along x: to first order its tool does not move along x, but by 1 - cos of the error."""
    extra("flint")
    machine, angle = tl.loads(CRANK), 0.02
    sagitta = 0.5 * (1.0 - np.cos(angle))
    box = {"ranges": {"turn": (-1e-6, 1e-6)}, "encoders": {"motor": angle}}
    below = tl.certify(machine, limits={"x": 0.99 * sagitta}, max_boxes=500, **box)
    assert below.verdict != "proved"
    # the bound is the largest speed on the wider box, which is at most 1.1 times as far, times the error
    above = tl.certify(machine, limits={"x": 2.3 * sagitta, "y": 0.51 * angle}, **box)
    assert above.verdict == "proved"
    path = above.write_proof(tmp_path / "crank.json")
    assert tl.check_certificate(machine, path).status is Status.OK


def test_a_rotation_by_all_encoders_counts_its_square(tmp_path: Path) -> None:
    """The crank turns by the error of its encoder: the limit is above it by half its square."""
    extra("flint")
    machine, angle = tl.loads(CRANK), 1e-3
    box = {"ranges": {"turn": (-0.1, 0.1)}, "encoders": {"motor": angle}}
    result = tl.certify(machine, limits={"rz": angle + 0.51 * angle**2}, **box)
    assert result.verdict == "proved"
    path = result.write_proof(tmp_path / "turn.json")
    assert tl.check_certificate(machine, path).status is Status.OK
    assert tl.certify(machine, limits={"rz": 0.999 * angle}, **box).verdict == "refuted"


CASES = {
    "delta": (
        {"x": (-0.03, 0.03), "y": (-0.03, 0.03), "z": (-0.505, -0.495)},
        {"arm_length": 5e-5, "forearm_length": 5e-5, "plate_radius": 2e-5},
    ),
    "five_bar": ({"x": (-0.05, 0.05), "y": (0.38, 0.44)}, {"crank_length": 1e-4}),
    "hexapod": (
        {"x": (-0.005, 0.005), "y": (-0.005, 0.005), "z": (0.355, 0.365)},
        {"base_radius": 2e-5},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_machines_with_errors_are_within_certified_limits(name: str, tmp_path: Path) -> None:
    """Newton's solutions at the corners of all errors, with an error of each leg of its own."""
    extra("flint")
    ranges, tolerances = CASES[name]
    encoders = {"*": 2e-5}
    model = tl.Model(name)
    x = poses(ranges)
    if name == "hexapod":
        x = np.concatenate([x, np.tile([1.0, 0.0, 0.0, 0.0], (len(x), 1))], axis=1)
    worst = tl.tolerance_map(model, x, tolerances=tolerances, encoders=encoders).worst.max(axis=0)
    limits = {d: ABOVE * w for d, w in zip(DIRECTIONS, worst.tolist(), strict=True) if w > 1e-12}
    sources = {"deviations": tolerances, "encoders": encoders}
    result = tl.certify(model, ranges=ranges, limits=limits, **sources)
    assert result.verdict == "proved"
    path = result.write_proof(tmp_path / "errors.json")
    assert tl.check_certificate(model, path).status is Status.OK

    parts = part_parameters(model.assembly.mechanism, tuple(tolerances))
    equations = ErrorEquations(model, parts, ())
    assert set(parts.owners) == set(result.problem.parameters)
    sizes = [tolerances[owner] for owner in parts.owners.values()]
    sizes += [2e-5] * len(model.mechanism.actuators)
    generator = np.random.default_rng(9)
    q = np.asarray(model.inverse_kinematics(x).q)
    first = equations.first_order(q)
    _, place, _ = equations.value(q, np.zeros((len(q), equations.count)))
    for axis in range(3):
        signs = generator.choice([-1.0, 1.0], (len(q), equations.count))
        worst_signs = np.where(
            np.abs(first.twist[:, axis]) > 1e-9, np.sign(first.twist[:, axis]), signs
        )
        for errors in (worst_signs * sizes, signs * sizes):
            moved = np.einsum("nvp,np->nv", first.velocities, errors)
            at, _, left = equations.displaced(q, moved, errors)
            assert left.max() < NEWTON
            error = np.abs(at - place)[:, axis].max()
            assert error <= limits.get(DIRECTIONS[axis], 0.0) + NEWTON


def test_maps_at_a_pose_are_those_of_the_tolerance_map() -> None:
    """The middles of the forms, without extent, are the derivatives by a route of its own."""
    from tauloop.design.certify_options import CertifyOptions
    from tauloop.design.claim_options import claims_of, needed_functions
    from tauloop.design.enclosure import _closed_loops, _velocity_rows
    from tauloop.design.following import points
    from tauloop.design.loads import load_limits
    from tauloop.design.problem import pose_problem

    model = tl.Model("delta")
    sources = {"arm_length": 1e-4, "motor_radius": 5e-5}
    options = CertifyOptions(limits={"x": 1.0}, deviations=sources, encoders={"*": 2e-5})
    claims = claims_of(model, options)
    problem = pose_problem(model, needed_functions(model, claims))
    limits = load_limits(problem, claims)
    assert limits is not None
    b, y = (values[None] for values in problem.reference)
    _, inputs = _closed_loops(problem, points(b, y))
    maps = error_maps(problem, limits, _velocity_rows(problem, inputs, 1, 0), inputs)
    result = tl.tolerance_map(model, b, tolerances=sources, encoders={"*": 2e-5})
    own = np.abs(maps.twist.center[0])
    names = [motor.name for motor in model.mechanism.actuators] + list(problem.parameters)
    for name, column in zip(names, own.T, strict=True):
        expected = result.contributions[0, :, result.sources.index(name)]
        assert column == pytest.approx(expected, abs=1e-9)
    changes = pose_changes(problem, maps)
    assert (changes >= result.worst[:, :3] * (1.0 - 1e-6)).all()
    assert (changes <= 1.1 * result.worst[:, :3]).all()
    assert margins(problem, maps) == pytest.approx(MARGIN * changes)


def test_every_machine_of_a_planar_loop_in_space_is_certified() -> None:
    """The loop equations across the plane vanish for all lengths, so that none is taken as redundant."""
    result = tl.certify("five_bar", ranges="x=-0.1:0.1,y=0.36:0.46", deviations="crank_length=1mm")
    assert result.verdict == "proved"
    assert result.assumed == ()
    assert result.problem.parameters == ("crank_length@elbow_1", "crank_length@elbow_2")
    stretched = tl.certify(
        "five_bar", ranges="x=-0.1:0.1,y=0.36:0.46", deviations="crank_length=200mm", max_boxes=500
    )
    assert stretched.verdict != "proved"
