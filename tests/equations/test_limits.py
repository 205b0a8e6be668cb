"""Limits of coordinates: their kind in every format, and what a pose or motion beyond a stop is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from extras import extra
from machine_texts import shipped_text
from printed import printed
from scipy.integrate import solve_ivp
from simulation_machines import simulated

from tauloop import (
    DescriptionError,
    DynamicsOptions,
    InputError,
    Model,
    PoseError,
    SimulationOptions,
    ViewOptions,
    inverse_dynamics,
    load,
    loads,
    simulate,
    view,
)
from tauloop.common.result import Diagnostic, Status
from tauloop.display.tables.machines.view_tables import view_tables
from tauloop.equations.assembly.limits import require_within_limits
from tauloop.formats.mjcf.writer import write_mjcf
from tauloop.formats.urdf.writer import write_urdf
from tauloop.formats.writing.yaml_writer import dumps
from tauloop.identification.preparation.motion_limits import motion_limits
from tauloop.logs.log import Channel, Log, build_log
from tauloop.mechanism.model import Freedom, Mechanism
from tauloop.motion import Line
from tauloop.motion.strokes.stroke import stroke
from tauloop.simulation.simulation import Simulation

#: A point mass on a massless bar of 0.1 m, which hangs down along z and turns about y: l a = -g
#: sin(q). And a cart.
PENDULUM = """
format: tauloop-machine/1
name: pendulum
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters: {length: {value: 0.1 m, bounds: [0.05 m, 0.2 m]}, weight: {value: 2 kg, bounds: [1 kg, 3 kg]}}
bodies: {bob: {mass: weight, center: [0, 0, -length]}, cart: {mass: 1 kg}}
joints:
  hinge: {type: revolute, axis: y, parent: base, child: bob, reference: 0 deg, LIMITS}
  track: {type: prismatic, axis: x, parent: base, child: cart, reference: 0 m}
actuators: {motor: {on: hinge}, drive: {on: track}}
platform: {body: bob, independent: [hinge, track], tool: {at: [0, 0, -length]}}
"""
STOPS, DRAWING = "limits: [-30 deg, 60 deg]", "limits: {drawing: [-30 deg, 60 deg]}"
#: Interpolation of the integrator's steps; angles by geometry.
STEP_TIME, SAME = 5e-3, 1e-9


def pendulum(limits: str) -> Mechanism:
    return loads(PENDULUM.replace("LIMITS", limits))


def judged(diagnostics: tuple[Diagnostic, ...]) -> dict[str, float | None]:
    return {item.name: item.value for item in diagnostics}


def hinge(mechanism: Mechanism) -> Freedom:
    return mechanism.joint("hinge").freedoms[0]


def test_a_list_alone_is_stops_and_a_word_says_another_kind() -> None:
    for text, kind in (
        (STOPS, "stop"),
        ("limits: {stop: [-30 deg, 60 deg]}", "stop"),
        (DRAWING, "drawing"),
    ):
        freedom = hinge(pendulum(text))
        assert freedom.limit == kind
        assert (freedom.lower, freedom.upper) == pytest.approx((-np.pi / 6, np.pi / 3))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            "limits: {stop: [-1, 1], drawing: [-2, 2]}",
            "both are given: stop, drawing",
        ),
        ("limits: {}", "the range is missing"),
        ("limits: {drawn: [-30 deg, 60 deg]}", "unknown key"),
        (
            "limits: {drawing: [60 deg, -30 deg]}",
            "the lower end 60 deg is not below the upper end -30 deg",
        ),
    ],
)
def test_a_range_without_one_clear_kind_is_refused(limits: str, message: str) -> None:
    with pytest.raises(DescriptionError, match=message):
        pendulum(limits)


def test_the_shipped_machines_say_which_limits_stop_them() -> None:
    """The descriptions' own words: those of the Delta serve drawing and sampling, the RCID's stroke is printed."""
    kinds: dict[str, set[str]] = {}
    for name in ("delta", "nuwar", "rcid", "hexapod", "pendulum_arm"):
        limits = Model(load(name)).limits
        for case, stops in zip(limits.names, limits.is_stop, strict=True):
            kinds.setdefault(f"{name} {case.partition('.')[0].rstrip('123456')}", set()).add(
                "stop" if stops else "drawing"
            )
    assert all(
        limit_kinds == {"drawing"}
        for key, limit_kinds in kinds.items()
        if key.startswith(("delta", "nuwar"))
    )
    assert all(
        limit_kinds == {"drawing"} for key, limit_kinds in kinds.items() if key.endswith("platform")
    )
    assert kinds["hexapod leg"] == kinds["rcid leg"] == kinds["pendulum_arm waist"] == {"stop"}


@pytest.mark.parametrize(
    "limits", [STOPS, DRAWING, "limits: {drawing: [-inf, 60 deg]}", "limits: [-inf, 60 deg]"]
)
def test_every_format_brings_the_kind_back(limits: str, tmp_path: Path) -> None:
    machine = pendulum(limits)
    write_mjcf(machine, tmp_path / "machine.xml")
    write_urdf(machine, tmp_path / "machine.urdf")
    for back in (
        loads(dumps(machine)),
        load(tmp_path / "machine.xml"),
        load(tmp_path / "machine.urdf", next(tmp_path.glob("*.yaml"))),
    ):
        assert hinge(back).limit == hinge(machine).limit
        assert (hinge(back).lower, hinge(back).upper) == pytest.approx(
            (hinge(machine).lower, hinge(machine).upper)
        )


def test_a_range_of_drawing_is_no_stop_to_mujoco_and_to_a_reader_of_urdf(tmp_path: Path) -> None:
    """MuJoCo's own reader, and the URDF's own elements."""
    mujoco = extra("mujoco")
    for limits, stops in ((STOPS, True), (DRAWING, False)):
        write_mjcf(pendulum(limits), tmp_path / "machine.xml")
        write_urdf(pendulum(limits), tmp_path / "machine.urdf")
        theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "machine.xml"))
        assert bool(theirs.joint("hinge").limited[0]) is stops
        joints = ElementTree.parse(tmp_path / "machine.urdf").getroot().findall("joint")
        (joint,) = (joint for joint in joints if joint.get("name") == "hinge")
        assert joint.get("type") == ("revolute" if stops else "continuous")


def test_forces_at_a_pose_beyond_a_stop_say_which_and_by_how_much() -> None:
    q = np.array([[0.2, 0.0], [1.3, 0.1], [-0.7, 9.0]])
    zero = np.zeros_like(q)
    for limits, count in ((STOPS, 1.0), (DRAWING, None)):
        forces = Model(pendulum(limits)).platform.inverse_dynamics(q, zero, zero)
        assert judged(forces.diagnostics).get("coordinates beyond a stop") == count
        assert forces.force[:, 0] == pytest.approx(2 * 9.81 * 0.1 * np.sin(q[:, 0]))  # all the same
    (excess,) = Model(pendulum(STOPS)).limits.beyond(q)
    assert (excess.coordinate, excess.sample, excess.first, excess.count) == ("hinge", 1, 1, 2)
    assert excess.by == pytest.approx(1.3 - np.pi / 3)
    with pytest.raises(
        PoseError, match=r"hinge at 74\.4845 deg, 14\.48 deg beyond its stop at 60 deg \(sample 1"
    ):
        require_within_limits(
            Model(pendulum(STOPS)).platform.inverse_dynamics(q, zero, zero).diagnostics
        )
    on_it = Model(pendulum(STOPS)).platform.kinematics(np.array([np.pi / 3, 0.0]))
    assert judged(on_it.diagnostics) == {"coordinates beyond a stop": 0.0}


def falling(limits: str) -> Simulation:
    model = Model(pendulum(limits))
    return simulated(model, 0.2, q=[0.9, 0.0], v=[8.0, 0.0])


def test_a_simulation_through_a_stop_is_doubtful_from_the_time_that_scipy_finds() -> None:
    def passes(_: float, y: np.ndarray) -> float:
        return float(y[0] - np.pi / 3)

    there = solve_ivp(
        lambda _, y: [y[1], -98.1 * np.sin(y[0])], (0, 0.2), [0.9, 8.0], events=passes, rtol=1e-10
    )
    fall = falling(STOPS)
    assert fall.status is Status.DOUBTFUL
    (beyond,) = fall.beyond_stops
    assert beyond.first_time == pytest.approx(there.t_events[0][0], abs=STEP_TIME)
    assert any("hinge" in line and "beyond its stop at 60 deg" in line for line in fall.advice)
    assert falling(DRAWING).status is Status.OK


def test_a_joint_that_closes_the_loop_has_its_stops_too() -> None:
    """Around the five-bar's loop: shoulder_1 + elbow_1 + tip = shoulder_2 + elbow_2, whichever of them is cut."""
    line = "    reference: 97.55008118966038 deg\n"
    model = Model(loads(shipped_text("five_bar", (line, f"{line}    limits: [94 deg, 101 deg]\n"))))
    assert "tip" not in model.topology.coordinate_names
    q = model.assembly.q
    state = model.actuators.follow(model.actuator_position(q) + np.array([0.2, -0.1]))
    (excess,) = model.limits.beyond(state.q)
    names = model.topology.coordinate_names
    platform = state.q[names.index("platform.angle")]
    tip = state.q[names.index("shoulder_2")] + state.q[names.index("elbow_2")] - platform
    assert excess.coordinate == "tip"
    assert np.cos(excess.value) == pytest.approx(np.cos(tip), abs=SAME)
    assert judged(state.diagnostics)["coordinates beyond a stop"] == 1.0


def test_degrees_for_radians_are_suspected_where_all_values_leave_the_limits() -> None:
    swing = np.linspace([-20.0, 0.0], [50.0, 0.1], 40)  # deg, and m
    for limits in (STOPS, DRAWING):
        own = Model(pendulum(limits)).limits
        assert own.like_degrees(swing[swing[:, 0] > 5.0]) == ("hinge",)
        assert own.like_degrees(np.radians(swing)) == ()
        assert own.like_degrees(swing) == ()  # some are lawful as they are
        # a little beyond is beyond, and no other unit
        assert own.like_degrees(np.array([1.2, 0.0])) == ()
    (item,) = Model(pendulum(DRAWING)).platform.kinematics(np.array([40.0, 0.0])).diagnostics
    assert item.name == "angles that look like degrees"
    assert "hinge are far outside the limits" in str(item)


def test_a_pose_out_of_reach_in_degrees_says_so_first() -> None:
    """A five-bar with links of 0.3 m: at 15 pi and 14 pi rad the cranks point apart, and their ends are 0.7 m apart."""
    model = Model(load("five_bar").with_values({"link_length": 0.3}))
    with pytest.raises(PoseError) as error:
        model.forward_kinematics(np.pi * np.array([[15.0, 14.0]]))
    assert "shoulder_1, shoulder_2 are far outside" in error.value.problems[0].what
    with pytest.raises(PoseError) as error:
        model.forward_kinematics(np.pi * np.array([[1.0, 0.0]]))
    assert "degrees" not in str(error.value)


def test_other_values_keep_their_bounds_and_all_problems_are_named() -> None:
    machine = pendulum(STOPS)
    assert machine.with_values({"length": 0.2}).parameters["length"].value == 0.2
    with pytest.raises(InputError) as error:
        machine.with_values({"length": 0.3, "weight": np.nan, "wieght": 1.0})
    assert [problem.where for problem in error.value.problems] == ["length", "weight", "wieght"]
    assert "0.3 is outside its bounds, 0.05 to 0.2" in error.value.problems[0].what


def test_a_path_is_refused_at_stops_and_not_where_drawing_ends() -> None:
    """Half a metre above the five-bar's base the ranges of its drawing end; the RCID's carriages stop at 70 mm."""
    assert stroke(Model(load("five_bar")), Line([0.42], [0.5]), ["platform.y"]).condition > 1
    with pytest.raises(PoseError, match=r"reaches 0\.08\d+ m, 0\.01\d+ beyond its stop at 0\.07"):
        stroke(Model(load("rcid")), Line([0.113], [0.16]), ["platform.z"])


def test_results_name_what_is_beyond_a_stop_and_are_refused_when_asked() -> None:
    thrown = SimulationOptions(pose={"hinge": 0.9}, velocity={"hinge": 8.0}, duration=0.2)
    for limits, passes in ((STOPS, True), (DRAWING, False)):
        model = Model(pendulum(limits))
        pose = DynamicsOptions(pose={"hinge": 1.3})
        for result in (inverse_dynamics(model, pose), simulate(model, thrown)):
            assert result.status is (Status.DOUBTFUL if passes else Status.OK)
            assert any("beyond its stop at 60 deg" in line for line in result.advice) is passes
            if passes:
                with pytest.raises(PoseError, match="hinge"):
                    require_within_limits(result.diagnostics)
            else:
                require_within_limits(result.diagnostics)


def test_a_picture_of_a_pose_beyond_a_stop_says_so() -> None:
    shown = view(pendulum(STOPS), ViewOptions(pose={"hinge": 1.3}))
    assert "hinge at 74.4845 deg, 14.48 deg beyond its stop at 60 deg" in printed(
        view_tables(shown)
    )
    with pytest.raises(PoseError, match="beyond its stop at 60 deg"):
        require_within_limits(shown.diagnostics)


def test_a_workspace_ends_at_stops_and_not_where_drawing_ends() -> None:
    """The same five-bar with the ranges of its cranks as stops excludes what lies beyond them; else nothing does."""
    from tauloop.kinematics.workspaces.map import Reason, WorkspaceLimits, workspace_grid

    hard = shipped_text(
        "five_bar", ("limits: {drawing: [30 deg, 190 deg]}", "limits: [90 deg, 150 deg]")
    )
    axes = {"platform.x": np.linspace(-0.12, 0.12, 9), "platform.y": np.linspace(0.34, 0.48, 9)}
    counts = []
    for content in (shipped_text("five_bar"), hard):
        grid = workspace_grid(Model(loads(content)), axes, limits=WorkspaceLimits(singularity=0.0))
        counts.append(int((grid.data["reason"].values == Reason.JOINT_LIMIT).sum()))
    assert counts[0] == 0
    assert counts[1] > 0


def test_a_freedom_without_limits_has_none_to_judge() -> None:
    free = pendulum("speed: 3 rad/s")
    assert Model(free).limits.names == ()
    assert Model(free).platform.kinematics(np.array([9.0, 0.0])).diagnostics == ()
    bare = replace(free, joints=(replace(free.joint("hinge"), freedoms=()),))
    assert bare.joint("hinge").freedoms == ()


def test_a_log_is_judged_by_stops_and_units_too() -> None:
    """A sine of 80 deg against stops at -30 and 60 deg: its peaks by the formula."""
    time = np.arange(0, 2, 0.01)
    swing = np.radians(80.0) * np.sin(np.pi * time)

    def log(factor: float) -> Log:
        signals = [("motor", factor * swing, "rad"), ("drive", 0.0 * time, "m")]
        return build_log(
            time,
            [
                Channel(quantity="position", channel=name, values=v, unit=unit)
                for name, v, unit in signals
            ],
        )

    (item,) = motion_limits(Model(pendulum(STOPS)), log(1.0))
    assert item.value == 1.0
    assert "hinge at -80 deg, 50 deg beyond its stop at -30 deg (1.5 s" in item.advice
    (none,) = motion_limits(Model(pendulum("limits: [-90 deg, 90 deg]")), log(1.0))
    assert none.is_good


def test_many_motions_are_judged_as_their_samples_are() -> None:
    """Random motions, some of which end early: counts, places and times by a few lines of NumPy."""
    rng, limits, time = np.random.default_rng(5), Model(pendulum(STOPS)).limits, np.arange(40.0)
    q = rng.normal(size=(30, 40, 2)) * np.radians(30.0)
    q[3, 25:], q[9, :] = np.nan, np.nan
    (beyond,), (lower, upper) = limits.beyond(q, time), np.radians([-30.0, 60.0])
    over = np.nan_to_num(np.maximum(lower - q[..., 0], q[..., 0] - upper), nan=-np.inf)
    far, outside = np.unravel_index(over.argmax(), over.shape), np.argwhere(over > 0)
    assert (beyond.value, beyond.count, beyond.samples) == (q[far][0], len(outside), 28 * 40 + 25)
    assert (beyond.time, beyond.first_time) == (far[1], outside[0, 1])
    assert (beyond.sample, beyond.first) == (
        far[0] * 40 + far[1],
        outside[0, 0] * 40 + outside[0, 1],
    )
    (flat,) = limits.beyond(q[np.isfinite(q).all(axis=2)])
    assert (flat.value, flat.count, flat.samples, flat.by) == (
        beyond.value,
        beyond.count,
        beyond.samples,
        beyond.by,
    )
    assert limits.diagnostics(q, time, limits.passed(q)) == limits.diagnostics(q, time)
    assert not limits.beyond(q[9], time)
