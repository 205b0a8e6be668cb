"""Dead centres and other singular poses: the branch of the start, coordinates that are regular there, kinds by name."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from extras import extra
from simulation_machines import simulated

from tauloop import Model, load
from tauloop.calibration.problem.building import _inverse as inverses
from tauloop.common.errors import AssemblyError, PoseError
from tauloop.integrate.outcome import StepOutcome
from tauloop.integrate.sampled import SampledTrace
from tauloop.kinematics.singularities import singularities
from tauloop.motion import Line
from tauloop.motion.strokes.stroke import stroke
from tauloop.simulation import DormandPrince
from tauloop.verification.engines.check import check_with_engines

CASES = Path(__file__).parents[1] / "cases"


@cache
def model(name: str) -> Model:
    return Model(load(CASES / name))


def crank_and_rod(foot: float, side: int) -> tuple[float, float]:
    """Angles of the crank and of the rod behind it, by plane geometry: where the circles of both about A and C meet.

    The crank turns about A and is 0.055 m long, the rod 0.35012 m; its end is the foot's point,
    which lies at the angle `foot` about its hinge.
    """
    hinge = complex(0.408, -0.04)
    at_zero = complex(0.058 + 0.055 + 0.35012, -0.034)
    pin = hinge + (at_zero - hinge) * np.exp(1j * foot) - complex(0.058, -0.034)
    a, b, d = 0.055, 0.35012, abs(pin)
    inside = np.arccos((a**2 + d**2 - b**2) / (2 * a * d))
    bend = np.arccos((d**2 - a**2 - b**2) / (2 * a * b))
    return float(np.angle(pin) - side * inside), float(side * bend)


@pytest.mark.parametrize("side", [1, -1])
def test_near_a_dead_centre_closed_forms_follow_the_branch_of_the_start(side: int) -> None:
    """The case of the issue: the rod at +0.0742 rad was given, at -0.0742 it was found."""
    machine = model("plantar_hybrid.xml")
    foot = 0.0201858
    crank, rod = crank_and_rod(foot, side)
    assert rod == pytest.approx(side * 0.0742, abs=1e-4)
    start = dict(foot_joint=foot, crank_joint=crank, swing=0.3, rod_joint=rod)
    q = np.array([start[name] for name in machine.topology.coordinate_names])
    forces = machine.hybrid.inverse_dynamics([foot, 0.3], np.zeros(2), np.zeros(1), start=q)
    assert np.abs(forces.forces.state.q - q).max() < 1e-8
    assert np.abs(machine.actuators.kinematics([foot, 0.3], start=q).q - q).max() < 1e-8
    assert np.abs(machine.forward_kinematics([foot, 0.3], start=q).q - q).max() < 1e-8


def test_no_chosen_coordinate_stands_still_where_the_file_starts() -> None:
    """The foot is driven, but stands still there, crank and rod in line: d(foot)/d(rod) = 0 by differences."""
    machine = model("plantar_hybrid.xml")
    names = [machine.topology.velocity_names[i] for i in machine.assembly.independent]
    assert sorted(names) == ["rod_joint", "swing"]
    rods = [crank_and_rod(foot, 1)[1] for foot in (1e-4, 4e-4)]
    assert rods[1] / rods[0] == pytest.approx(2.0, rel=1e-2)  # a parabola: the foot turns back


def test_engines_agree_near_dead_centres_of_the_actuators() -> None:
    """Pinocchio and MuJoCo: one state of 200 lies where the foot's speed gives the rod's 100 times.

    States put together from two evaluations differed there by 3e-11 of the largest force, at 956 by
    1.8e-8.
    """
    extra("pinocchio")
    extra("mujoco")
    compared_forces = check_with_engines(
        model("plantar_hybrid.xml").mechanism, 200, np.random.default_rng(0)
    )
    assert len(compared_forces.comparisons) == 10
    assert max(comparison.largest_difference for comparison in compared_forces.comparisons) < 5e-12


def test_a_motion_begins_at_a_dead_centre() -> None:
    """A slider-crank in line, let go with a turning crank: its kinetic energy stays, x = r cos c + sqrt(l^2 - ...)."""
    machine = model("slider_crank_tdc.yaml")
    v = dict(c=20.0, r=-20.0 * 0.4 / 0.3, p=0.0)
    start = np.array([v[name] for name in machine.topology.velocity_names])
    result = simulated(
        machine,
        0.4,
        q=np.array([0, 0.4, 0]),
        v=start,
        integrator=DormandPrince(rtol=1e-10, atol=1e-12),
    )
    c, p = result.coordinate("c"), result.coordinate("p")
    assert c[-1] > 4.0
    assert np.abs(p - 0.1 * np.cos(c) - np.sqrt(0.09 - 0.01 * np.sin(c) ** 2)).max() < 1e-9
    assert result.relative_energy_error < 1e-8


@pytest.mark.parametrize(
    ("name", "entry", "q", "kind"),
    [
        ("slider_crank_tdc.yaml", "platform", {"p": 0.4}, "dead center: .*motor stands still"),
        ("slider_crank_tdc.yaml", "actuators", {"p": 0.4}, "at a dead center"),
        (
            "five_bar_singular.yaml",
            "platform",
            None,
            "parallel: the machine can move while all actuators rest",
        ),
    ],
)
def test_a_singular_pose_names_its_kind(
    name: str, entry: str, q: dict[str, float] | None, kind: str
) -> None:
    machine = model(name)
    functions = getattr(machine, entry)
    pose = np.array(
        machine.topology.reference
        if q is None
        else [q.get(n, 0.0) for n in machine.topology.coordinate_names]
    )
    ones = np.ones(functions.ports.velocity.size)
    with pytest.raises(PoseError, match=kind):
        functions.inverse_dynamics(functions.ports.at(pose), ones, ones, start=pose)


def test_a_path_and_a_control_loop_name_the_kind_too() -> None:
    """The five-bar's links lie in line where its cranks are at 104.48 and 75.52 deg: cos = (0.2 - 0.15) / 0.2."""
    machine = model("five_bar_singular.yaml")
    q = machine.topology.reference
    s1, e1 = (machine.topology.coordinate_names.index(name) for name in ("s1", "e1"))
    line = Line([q[s1] - 0.1, q[e1]], [q[s1] + 0.1, q[e1]])
    with pytest.raises(
        PoseError, match=r"passes through a singularity \(parallel: the machine can move while all"
    ):
        stroke(machine, line, ["s1", "e1"])
    reached = np.zeros((50, 1))
    trace = SampledTrace(
        states=reached,
        modes=reached,
        held=reached,
        outcome=StepOutcome.SINGULAR,
        end=0.5,
        steps=50,
        events=0,
        worst=np.array([1.0, 1.0, 0.0]),
        failed=np.array([1.0, 0.0, 0.0]),
        occurrences=(),
    )
    end = trace.early_end(machine.assembly, np.array(q), "shortly before 0.5 s")
    assert end.startswith(
        "singular pose (parallel: the machine can move while all actuators rest) shortly before 0.5 s"
    )


def test_a_start_beyond_all_bounds_is_an_open_loop() -> None:
    machine = model("slider_crank_tdc.yaml")
    with pytest.raises(AssemblyError, match="loop"):
        machine.at(np.array([0.0, 1e200, 0.0]))


def test_poses_out_of_reach_have_no_measures() -> None:
    measures = singularities(
        model("slider_crank_tdc.yaml"), np.array([[np.nan] * 3, [0.5, 0.35, -0.6]])
    )
    assert np.isnan(measures.serial[0])
    assert measures.serial[1] > 0


def test_a_measured_pose_that_is_singular_is_named() -> None:
    """The second of three poses has no inverse: rank 1 of 2."""
    station = SimpleNamespace(series=SimpleNamespace(instrument=SimpleNamespace(name="laser")))
    with pytest.raises(PoseError, match=r"laser: pose 1 of 3 is singular"):
        inverses(np.array([np.eye(2), np.ones((2, 2)), np.eye(2)]), station)
