"""Drive lines on machines: in files, in whole-machine simulation, on a circle, and how play shows at the tool."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from machine_texts import WITHOUT_COULOMB, shipped_text
from plain_yaml import plain
from python_runs import InterpretedSamples
from scipy.optimize import least_squares

from tauloop.common.errors import DescriptionError, InputError
from tauloop.common.result import Status
from tauloop.drives import LINE_INTEGRATOR
from tauloop.drives.machine.bristles import with_bristles, without_dry_friction
from tauloop.drives.machine.circle import Circle, CircleTest, circle_test, circle_trajectory
from tauloop.drives.machine.lines import (
    backlash_at_the_load,
    direct_line,
    rigid_machine,
    with_one_motor,
)
from tauloop.drives.machine.path import PATH_INTEGRATOR, DrivenMachine, Variation
from tauloop.drives.machine.play import play_map, workspace_axes, worst_combination
from tauloop.formats import load, loads
from tauloop.formats.mjcf.writer import to_mjcf
from tauloop.formats.writing.yaml_writer import dumps
from tauloop.integrate import DormandPrince
from tauloop.mechanism import json_schema
from tauloop.mechanism.description.drives.drive_file import DRIVE, DRIVE_FORMAT
from tauloop.mechanism.description.yaml_nodes import parse_nodes
from tauloop.mechanism.drive_line import LuGre
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import Friction, Mechanism
from tauloop.model import Model
from tauloop.motion import POLYNOMIAL_345, Ellipse, Line, Seconds, plan, stroke
from tauloop.simulation.controllers.laws import FeedForward, Loop, Sampling
from tauloop.simulation.controllers.loop import CompiledLoop, Trace
from tauloop.simulation.controllers.run import follow

EXAMPLE = Path(__file__).parents[2] / "examples" / "gantry_tau_racks"
#: The issue's bar: figures change by less than this when tolerances are tightened a hundredfold.
UNCHANGED = 1e-6
#: Two integrators of the same smooth motion over 300 steps, m and N.
SAME_MOTION, SAME_FORCE = 1e-12, 1e-6
#: Compiled and interpreted steps differ by rounding, which events magnify, m.
SAME_STEPS = 1e-11
#: Work by sums over samples of 1 ms, of some 100 in a quarter of a turn; bristles bend 2e-5 rad
#: before they slide.
WORK = 0.02


@pytest.fixture(scope="module")
def racks() -> Mechanism:
    return load(EXAMPLE / "gantry_tau_racks.yaml")


@pytest.fixture(scope="module")
def circle() -> Circle:
    return Circle(columns=("platform.x", "platform.y"), radius=0.05, speed=0.6)


@pytest.fixture(scope="module")
def tested(racks: Mechanism, circle: Circle) -> CircleTest:
    return circle_test(racks, circle)


def machine_text(drive: str) -> str:
    """The Gantry-Tau's file with text behind `drive:` of its actuators."""
    return shipped_text(
        "gantry_tau_3dof", ("motor: {on: slide,", f"motor: {{drive: {drive}, on: slide,")
    )


def problems(text: str, folder: Path | None = None) -> list[str]:
    if folder is not None:
        (folder / "machine.yaml").write_text(text)
    with pytest.raises(DescriptionError) as caught:
        loads(text) if folder is None else load(folder / "machine.yaml")
    assert all(p.remedy and p.line for p in caught.value.problems)
    return [
        f"{Path(p.file or '').name}:{p.line} {p.where}: {p.what}" for p in caught.value.problems
    ]


# Files


def test_a_line_from_a_file_is_the_same_in_place(racks: Mechanism) -> None:
    again = loads(dumps(racks), racks.file)
    assert again == racks
    assert "file:" not in dumps(racks)
    assert dumps(again) == dumps(racks)
    line = racks.actuators[0].drive
    assert line is not None
    assert [motor.name for motor in line.motors] == ["drive1", "drive2"]
    assert racks.parameters["track3.motor.drive.gap"].group == "drive"
    assert "track1.motor.drive.cart_mass" not in racks.parameters.names, (
        "the machine stands in the cart's place"
    )


def test_files_with_drive_lines_fit_the_schemas(racks: Mechanism) -> None:
    for text, schema in (
        ((EXAMPLE / "gantry_tau_racks.yaml").read_text(), json_schema()),
        (dumps(racks), json_schema()),
        ((EXAMPLE / "rack.yaml").read_text(), json_schema(DRIVE, DRIVE_FORMAT)),
    ):
        jsonschema.Draft202012Validator(schema).validate(plain(parse_nodes(text, "file")))
    wrong = plain(
        parse_nodes((EXAMPLE / "rack.yaml").read_text().replace("gear:", "gaer:"), "file")
    )
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json_schema(DRIVE, DRIVE_FORMAT)).validate(wrong)


def test_set_changes_parameters_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "rack.yaml").write_text((EXAMPLE / "rack.yaml").read_text())
    (tmp_path / "machine.yaml").write_text(
        machine_text("{file: rack.yaml, set: {gap: 0.2 mm, preload: 3 N m}}")
    )
    machine = load(tmp_path / "machine.yaml")
    line = machine.actuators[1].drive
    assert line is not None
    gaps = [
        machine.value(c.compliance.gap) for c in line.connections if hasattr(c.compliance, "gap")
    ]  # type: ignore[union-attr]
    assert gaps == pytest.approx([2e-4, 2e-4])
    assert machine.value(line.control.drive.preload) == 3.0  # type: ignore[union-attr]
    assert "track2.motor.drive.set.gap" in machine.parameters.names
    assert "track2.motor.drive.gap" not in machine.parameters.names


def test_all_problems_of_a_line_in_place_are_told() -> None:
    text = """{load: cart, inertias: {a: {inertia: -1 kg m^2}, b: {mass: 1 kg, inertia: 1 kg m^2}},
      connections: {c: {first: a, second: cart, gear: 2, shaft: {stiffness: 0 N/m, damping: 1 N s/m}}},
      motors: {m: {on: aa}}, encoders: {e: {on: a}}, control: {position: {encoder: e, gain: 1}, motor: m}}"""
    refusals = "\n".join(problems(machine_text(text)))
    for what in (
        "must be positive, got -1",
        "both `inertia` and `mass`",
        "a rotates and cart slides",
        "no inertia aa",
    ):
        assert what in refusals
    assert "must be positive, got 0" in refusals


@pytest.mark.parametrize(
    ("drive", "what"),
    [
        ("{file: missing.yaml}", "there is no such file"),
        ("{file: rack.yaml, load: cart}", "has no sections here"),
        ("{file: rack.yaml, set: {gapp: 1 mm}}", "has no parameter gapp"),
        ("{file: rack.yaml, set: {gap: 1 kg}}", "gap is a length (m) in the file, not a mass (kg)"),
        (
            "{file: rack.yaml, set: {gap: -1 mm}}",
            "rack.yaml:45 connections.rack1.backlash.gap: must be positive",
        ),
        ("{load: cart}", "the drive line has no inertias, motors, encoders, control"),
        ("{set: {gap: 1 mm}}", "there is no `file`"),
        ("{gab: 1}", "unknown key"),
        (  # a required part of an inner section
            "{load: cart, inertias: {a: {inertia: 1 kg m^2}}, motors: {m: {on: a}}, encoders: {e: {on: a}}, "
            "control: {motor: m}}",
            "this key of a drive control is missing",
        ),
    ],
)
def test_bad_lines_are_refused_with_line_and_remedy(drive: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "rack.yaml").write_text((EXAMPLE / "rack.yaml").read_text())
    assert what in "\n".join(problems(machine_text(drive), tmp_path))


def test_a_problem_of_the_included_file_is_told_once_in_its_own_lines(tmp_path: Path) -> None:
    text = (EXAMPLE / "rack.yaml").read_text().replace("gap: 50 um", "gap: 0 um")
    (tmp_path / "rack.yaml").write_text(text)
    refusals = problems(machine_text("{file: rack.yaml}"), tmp_path)
    assert len(refusals) == len({line.split(" ")[0] for line in refusals}) == 2, (
        "both racks, for three carts"
    )
    assert all(line.startswith("rack.yaml:") for line in refusals)


def test_a_text_has_no_files_beside_it() -> None:
    assert "was given as text" in problems(machine_text("{file: rack.yaml}"))[0]


def test_a_loose_body_and_a_load_of_the_wrong_kind(tmp_path: Path) -> None:
    line = (EXAMPLE / "rack.yaml").read_text()
    loose = line.replace("inertias:\n", "inertias:\n  idle: {inertia: 1 kg m^2}\n", 1)
    (tmp_path / "rack.yaml").write_text(loose)
    assert (
        "nothing connects idle to the load cart"
        in problems(machine_text("{file: rack.yaml}"), tmp_path)[0]
    )
    (tmp_path / "rack.yaml").write_text(line)
    five_bar = shipped_text("five_bar", ("motor_1: {", "motor_1: {drive: {file: rack.yaml}, "))
    assert "load cart slides, but the actuator rotates" in problems(five_bar, tmp_path)[0]


def test_other_formats_say_that_they_have_no_place_for_it(racks: Mechanism) -> None:
    assert any(
        "its drive line cannot be represented in MJCF" in note for note in to_mjcf(racks).notes
    )


# What lines come to when nothing gives way


def test_reflected_inertia_and_friction_by_hand(racks: Mechanism) -> None:
    # motor: 5 / 0.05 m = 100 rad/m; pinion: 20 rad/m; two of each
    rigid = rigid_machine(racks).actuators[0]
    assert rigid.drive is None
    assert rigid.inertia is not None
    assert rigid.friction is not None
    assert racks.value(rigid.inertia) == pytest.approx(
        2 * (4e-4 * 100**2 + 2e-3 * 20**2), rel=1e-14
    )
    assert racks.value(rigid.friction.viscous) == pytest.approx(2 * 2e-3 * 100**2, rel=1e-14)  # type: ignore[arg-type]
    assert racks.value(rigid.friction.coulomb) == pytest.approx(2 * 0.02 * 100, rel=1e-14)  # type: ignore[arg-type]


def test_one_motor_leaves_the_slave_out(racks: Mechanism) -> None:
    line = racks.actuators[0].drive
    assert line is not None
    single = with_one_motor(line)
    assert {inertia.name for inertia in single.inertias} == {"motor1", "pinion1", "cart"}
    assert [c.name for c in single.connections] == ["gearbox1", "rack1"]
    assert with_one_motor(single) is single


def test_backlash_at_the_load_is_that_of_the_master(racks: Mechanism) -> None:
    assert backlash_at_the_load(racks) == pytest.approx(
        {f"track{i}.motor": 50e-6 for i in (1, 2, 3)}
    )


# Whole-machine simulation


class _Differenced:
    """The control loop of `simulate` with the reference's speed by differences, as drive lines take it."""

    def __call__(self, loop: Loop) -> Trace:
        position, _, acceleration = loop.reference
        speed = np.diff(position, axis=0, prepend=position[:1]) / loop.period
        differenced = replace(loop, reference=(position, speed, acceleration))
        return CompiledLoop(loop.plant, loop.model, loop.controller)(differenced)


def test_without_lines_it_is_the_control_loop_of_simulate() -> None:
    """Motors that act directly, by the cascade here and by the controller there: two programs, two integrators."""
    mechanism = load("gantry_tau_3dof")
    model = Model(mechanism)
    line = Line(np.zeros(3), np.array([0.1, 0.05, -0.08]))
    path = stroke(model, line, ("platform.x", "platform.y", "platform.z"))
    trajectory = plan(path, POLYNOMIAL_345, Seconds(0.3))
    sampling = Sampling(frequency=1000.0, velocity_differences=True)
    there = follow(
        trajectory, FeedForward(bandwidth=80.0), sampling, loop=_Differenced(), substeps=16
    )
    machine = DrivenMachine(mechanism, bandwidth=80.0, period=1e-3)
    here = machine.follow(
        trajectory, settling=0.0, integrator=replace(LINE_INTEGRATOR, rtol=1e-10, atol=1e-12)
    )
    assert here.status is Status.OK
    assert np.abs(here.error).max() > 1e-6, "it must be a motion with an error"
    assert np.abs(here.position - there.position).max() < SAME_MOTION
    torques = [values for name, values in here.signals.items() if name.endswith("motor.torque [N]")]
    assert np.abs(np.stack(torques, axis=1) - there.force).max() < SAME_FORCE


def test_runs_are_healthy_and_balance_their_energy(tested: CircleTest) -> None:
    assert not tested.ends
    assert tested.status is Status.OK
    for variation, lap in tested.laps.items():
        assert lap.motion.turned_over > 1.0, "J: something must have been turned over"
        assert (lap.motion.events > 0) == (variation is not Variation.RIGID)


def test_play_costs_accuracy_and_the_second_motor_gives_some_back(tested: CircleTest) -> None:
    deviation = {variation: lap.deviation for variation, lap in tested.laps.items()}
    assert (
        deviation[Variation.RIGID] < deviation[Variation.NO_PLAY] < deviation[Variation.ONE_MOTOR]
    )
    assert deviation[Variation.AS_DESCRIBED] < deviation[Variation.ONE_MOTOR]


def test_two_motors_never_leave_their_flanks_and_one_does(tested: CircleTest) -> None:
    moving = tested.laps[Variation.ONE_MOTOR].motion.time > 0
    two = tested.laps[Variation.AS_DESCRIBED].motion.signals
    for track in ("track1", "track2", "track3"):
        assert two[f"{track}.motor: rack1.force [N]"][moving].min() > 0
        assert two[f"{track}.motor: rack2.force [N]"][moving].max() < 0
    single = tested.laps[Variation.ONE_MOTOR].motion.signals
    forces = single["track2.motor: rack1.force [N]"][moving]
    assert forces.min() < 0 < forces.max()


def test_tightening_the_tolerances_a_hundredfold_changes_nothing(
    racks: Mechanism, circle: Circle, tested: CircleTest
) -> None:
    tight = replace(
        PATH_INTEGRATOR, rtol=1e-2 * PATH_INTEGRATOR.rtol, atol=1e-2 * PATH_INTEGRATOR.atol
    )
    varied = [Variation.AS_DESCRIBED, Variation.ONE_MOTOR]
    again = circle_test(racks, circle, variations=varied, integrator=tight)
    for variation in varied:
        lap = tested.laps[variation]
        for key in ("circular_deviation", "following_error", "following_rms"):
            assert lap.deviations[key] == pytest.approx(
                again.laps[variation].deviations[key], rel=UNCHANGED
            )


def test_a_stiff_line_comes_to_the_rigid_one(racks: Mechanism) -> None:
    """Without play, the distance from rigid drives falls with the stiffness: by ten for ten times as much."""
    model = Model(racks)
    path = stroke(model, Line(np.zeros(2), np.array([0.02, 0.02])), ("platform.x", "platform.y"))
    trajectory = plan(path, POLYNOMIAL_345, Seconds(0.2))
    smooth = {f"track{i}.motor.drive.motor_coulomb": 0.0 for i in (1, 2, 3)}
    elastic = DrivenMachine(racks, variation=Variation.NO_PLAY)
    rigid = DrivenMachine(racks, variation=Variation.RIGID).follow(trajectory)
    distance = []
    for factor in (1.0, 10.0):
        values = {f"track{i}.motor.drive.contact_stiffness": factor * 1e7 for i in (1, 2, 3)}
        motion = elastic.follow(trajectory, values=smooth | values)
        distance.append(np.abs(motion.position - rigid.position)[motion.time > 0].max())
    assert distance[0] > 1e-7
    assert distance[1] == pytest.approx(distance[0] / 10, rel=0.1)


def test_interpreted_steps_are_the_compiled_ones(racks: Mechanism) -> None:
    path = stroke(
        Model(racks), Line(np.zeros(2), np.array([0.002, 0.002])), ("platform.x", "platform.y")
    )
    trajectory = plan(path, POLYNOMIAL_345, Seconds(0.003))
    machine = DrivenMachine(racks, variation=Variation.NO_PLAY)
    runs = [machine.follow(trajectory, settling=0.0)]
    machine.runner = InterpretedSamples(machine.runner.system)  # type: ignore[assignment]
    runs.append(machine.follow(trajectory, settling=0.0))
    assert runs[0].steps == runs[1].steps
    assert np.abs(runs[0].position - runs[1].position).max() < SAME_STEPS


@pytest.mark.nightly
def test_derivatives_through_sticking_and_contacts_are_those_of_differences(
    racks: Mechanism,
) -> None:
    """Central differences over 1e-4 of a value, of runs with some ninety events."""
    path = stroke(
        Model(racks), Line(np.zeros(2), np.array([0.02, 0.02])), ("platform.x", "platform.y")
    )
    trajectory, machine = (
        plan(path, POLYNOMIAL_345, Seconds(0.1), returns=True),
        DrivenMachine(racks),
    )
    settings = {"settling": 0.01, "integrator": DormandPrince(rtol=1e-9, atol=1e-11)}
    names = [
        f"track1.motor.drive.{name}"
        for name in ("contact_stiffness", "gap", "speed_gain", "motor_coulomb")
    ]
    motion = machine.follow(trajectory, sensitivities=names, **settings)
    assert motion.events > 50
    for name in names:
        value = machine.system.parameters[name].value
        ends = [
            machine.follow(trajectory, values={name: value * (1 + h)}, **settings).position
            for h in (1e-4, -1e-4)
        ]
        differences = (ends[0] - ends[1]) / (2e-4 * value)
        by = motion.sensitivities["position"].sel(by=name).values
        assert np.abs(by - differences).max() < 1e-5 * np.abs(differences).max()


def test_what_a_machine_with_lines_has_no_derivatives_by_is_refused(
    racks: Mechanism, circle: Circle
) -> None:
    path = stroke(
        Model(racks), Line(np.zeros(2), np.array([0.002, 0.002])), ("platform.x", "platform.y")
    )
    machine, trajectory = (
        DrivenMachine(racks, variation=Variation.RIGID),
        plan(path, POLYNOMIAL_345, Seconds(0.01)),
    )
    with pytest.raises(InputError, match=r"'gapp' is neither a parameter") as caught:
        machine.follow(trajectory, sensitivities=("gapp", "nothing"))
    assert len(caught.value.problems) == 2
    with pytest.raises(InputError, match="ratios or the sample time of track1"):
        machine.follow(trajectory, sensitivities=("track1.motor.drive.reduction",))


def test_a_line_on_one_of_two_turning_actuators(tmp_path: Path) -> None:
    """A geared motor with bristle friction on its load side; the other actuator acts directly."""
    drive = """{load: crank, inertias: {rotor: {inertia: 2e-5 kg m^2}, wheel: {inertia: 1e-4 kg m^2,
      lugre: {stiffness: 50 N m/rad, damping: 0.1 N m s/rad, viscous: 0.01 N m s/rad, coulomb: 0.02 N m,
      static: 0.03 N m, stribeck: 0.1 rad/s}}}, connections: {gear: {first: rotor, second: wheel, gear: 10,
      exact_backlash: {gap: 0.02 deg, stiffness: 2000 N m/rad, damping: 2 N m s/rad}},
      flange: {first: wheel, second: crank, rigid: yes}}, motors: {m: {on: rotor}},
      encoders: {e: {on: rotor}}, control: {position: {encoder: e, gain: 30}, speed: {encoder: e, gain: 0.01}, motor: m,
      sample_time: 1 ms}}"""
    text = shipped_text("five_bar", WITHOUT_COULOMB)
    mechanism = loads(text.replace("motor_1: {", f"motor_1: {{drive: {drive}, "))
    assert loads(dumps(mechanism), mechanism.file) == mechanism
    circle = Circle(columns=("platform.x", "platform.y"), radius=0.02, speed=0.2)
    trajectory = circle_trajectory(Model(mechanism), circle)
    motion = DrivenMachine(mechanism, folder=tmp_path).follow(trajectory)
    assert motion.status is Status.OK, motion.advice
    assert motion.events > 0
    assert 1e-6 < motion.distance.max() < 1e-3


def test_dry_friction_of_the_machine_as_bristles() -> None:
    """Five-bar as shipped, with Coulomb friction in its driven joints: stiffer bristles come to the same motion."""
    mechanism = load("five_bar")
    smooth = loads(shipped_text("five_bar", WITHOUT_COULOMB))
    circle = Circle(columns=("platform.x", "platform.y"), radius=0.02, speed=0.2)
    trajectory = circle_trajectory(Model(mechanism), circle)
    runs = [
        DrivenMachine(machine, period=1e-3, presliding=presliding).follow(trajectory)
        for machine, presliding in ((mechanism, 1e-4), (mechanism, 2e-5), (smooth, None))
    ]
    assert [run.status for run in runs] == [Status.OK] * 3
    assert runs[0].events < 100, "a motor at rest makes no events"
    coarse, fine, none = (run.distance.max() for run in runs)
    assert coarse == pytest.approx(fine, rel=2e-3)
    assert fine > 3 * none
    # from rest to rest in a plane: what the motors give goes into friction, sliding as the file
    # says it
    angles, torques = (
        np.array([values for name, values in runs[1].signals.items() if name.endswith(ending)])
        for ending in ("load.position [rad]", "motor.torque [N m]")
    )
    moved = np.diff(angles)
    viscous = 0.01 * (moved**2).sum() / 1e-3
    assert (torques[:, :-1] * moved).sum() == pytest.approx(
        0.05 * np.abs(moved).sum() + viscous, rel=WORK
    )


def test_bristles_at_the_motor_by_hand() -> None:
    """0.15, 0.2 and 0.1 N m at joints behind gears; a load with bristles of its own keeps no second friction."""
    mechanism = load("pendulum_arm")
    bare, dry = without_dry_friction(mechanism)
    ratios = [mechanism.value(actuator.drives[0][1]) for actuator in mechanism.actuators]
    expected = np.array([0.15, 0.2, 0.1]) / np.abs(ratios)
    np.testing.assert_allclose([mechanism.value(c) for c in dry], expected, rtol=1e-12)
    assert all(
        f.friction is None or f.friction.coulomb is None
        for joint in bare.joints
        for f in joint.freedoms
    )
    line = direct_line(mechanism.actuators[0], True, 1.0, 100.0, 1e-3)
    result = with_bristles(mechanism, line, dry[0], 1e-4).inertia("load").friction
    assert isinstance(result, LuGre)
    assert mechanism.value(result.stiffness) == pytest.approx(expected[0] / 1e-4)
    assert (
        mechanism.value(result.coulomb)
        == mechanism.value(result.static)
        == pytest.approx(expected[0])
    )
    with pytest.raises(InputError, match="has LuGre friction"):
        with_bristles(mechanism, with_bristles(mechanism, line, dry[0], 1e-4), dry[0], 1e-4)
    with pytest.raises(InputError, match="presliding"):
        with_bristles(mechanism, line, dry[0], 0.0)


def test_bristles_in_place_of_friction_that_is_more_than_coulombs_are_refused() -> None:
    mechanism = load("pendulum_arm")
    first = mechanism.actuators[0]
    law = Friction(
        coulomb=Constant(1.0),
        static=Constant(1.5),
        stribeck=Constant(0.1),
        coulomb_asymmetry=Constant(0.2),
    )
    changed = replace(mechanism, actuators=(replace(first, friction=law), *mechanism.actuators[1:]))
    with pytest.raises(InputError) as caught:
        DrivenMachine(changed, period=1e-3, presliding=1e-4)
    problems = {problem.where: problem.remedy for problem in caught.value.problems}
    assert set(problems) == {
        f"{first.name}.friction.{key}" for key in ("static", "coulomb_asymmetry")
    }
    assert all("only Coulomb friction" in remedy for remedy in problems.values())


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("  sample_time: 1 ms\n", ""), "the control is continuous"),
        (
            (
                "    backlash: {gap: gap, stiffness: contact_stiffness, damping: contact_damping}",
                "    rigid: yes",
            ),
            "dry",
        ),
    ],
)
def test_what_makes_no_sense_on_a_machine(
    change: tuple[str, str], what: str, tmp_path: Path
) -> None:
    (tmp_path / "rack.yaml").write_text((EXAMPLE / "rack.yaml").read_text().replace(*change))
    (tmp_path / "machine.yaml").write_text(machine_text("{file: rack.yaml}"))
    mechanism = load(tmp_path / "machine.yaml")
    with pytest.raises(InputError, match=what) as caught:
        DrivenMachine(mechanism)
    assert len(caught.value.problems) >= 3, "one for every actuator"


def test_machines_and_numbers_that_cannot_be_run(racks: Mechanism, circle: Circle) -> None:
    with pytest.raises(InputError, match="has a drive line"):
        DrivenMachine(load("gantry_tau_3dof"))
    with pytest.raises(InputError, match="Coulomb friction is discontinuous"):
        DrivenMachine(load("five_bar"), period=1e-3)
    with pytest.raises(InputError, match="is not an independent parameter"):
        circle_test(racks, circle, values={"track1.motor.drive.gapp": 1.0})
    with pytest.raises(InputError, match="above 0"):
        Circle(columns=("platform.x", "platform.y"), radius=0.0, speed=-1.0)
    machine = DrivenMachine(racks, variation=Variation.RIGID)
    trajectory = circle_trajectory(Model(racks), circle)
    with pytest.raises(InputError, match="is not a parameter of the drive lines"):
        machine.follow(trajectory, values={"m_p": 1.0})
    wrong = {"track1.motor.drive.motor_inertia": -1.0, "track2.motor.drive.speed_gain": 0.0}
    with pytest.raises(InputError) as caught:
        machine.follow(trajectory, values=wrong)
    problems = [f"{problem.where}: {problem.what}" for problem in caught.value.problems]
    assert problems == [
        "track1.motor.drive.inertias.motor1: must be positive, got -1",
        "track2.motor.drive.control.speed.gain: must be positive, got 0",
    ]
    with pytest.raises(InputError, match="is not finite"):
        machine.follow(trajectory, values={"track1.motor.drive.speed_gain": np.nan})


def test_a_run_that_is_given_up_says_why(racks: Mechanism, circle: Circle) -> None:
    result = circle_test(
        racks,
        circle,
        variations=[Variation.RIGID],
        integrator=replace(PATH_INTEGRATOR, max_steps=100),
    )
    assert "too many steps" in result.ends[Variation.RIGID]
    assert not result.laps
    assert result.status is Status.DOUBTFUL


def test_figures_of_a_lap_by_another_fit(tested: CircleTest) -> None:
    lap = tested.laps[Variation.ONE_MOTOR]
    progress = np.searchsorted(lap.motion.time, 0.0)
    assert lap.motion.distance[:progress].max() < 1e-3
    radius = tested.circle.radius
    around = np.stack([np.cos(lap.angle), np.sin(lap.angle)], axis=1)
    # points of the lap: their distance from the fitted centre is known, and so they lie on rays
    # from it
    points = lap.center + (radius + lap.radial)[:, None] * around
    fit = least_squares(
        lambda x: np.hypot(*(points - x[:2]).T) - x[2], [0.0, 0.0, radius], x_scale=1e-6
    )
    assert np.hypot(*(fit.x[:2] - lap.center)) < 1e-6, (
        "rays differ from the points by the following error alone"
    )
    assert lap.deviation == pytest.approx(np.ptp(lap.radial))
    assert fit.x[2] - radius == pytest.approx(lap.radius_error, abs=1e-8)


# Play at the tool


def test_play_of_the_gantry_by_its_rods() -> None:
    """A rod keeps its length: u . (dp - x dq) = 0, so that dp = inv(rows u / u_x) dq."""
    model = Model(load("gantry_tau_3dof"))
    axes = {"platform.y": np.linspace(-0.1, 0.1, 5), "platform.z": np.linspace(-0.1, 0.1, 4)}
    result = play_map(model, axes, backlash=10e-6)
    assert result.status is Status.OK
    tracks = [(0.0, 0.90, -1.0, 1.25), (-0.70, 0.48, 1.0, 1.25), (0.62, 0.48, 1.0, 1.09)]
    assert model.mechanism.value(model.mechanism.rods[0].length) == 1.25  # type: ignore[arg-type]
    for i, y in enumerate(axes["platform.y"]):
        for k, z in enumerate(axes["platform.z"]):
            rows = []
            for y0, z0, side, length in tracks:
                dy, dz = y - y0, z - z0
                dx = -side * np.sqrt(length**2 - dy**2 - dz**2)
                rows.append([1.0, dy / dx, dz / dx])
            moved = 10e-6 * np.linalg.inv(rows)
            each = result.data["each"].to_numpy()[:, i, k]
            np.testing.assert_allclose(each, np.linalg.norm(moved, axis=0), rtol=1e-9)
            assert result.data["worst"].to_numpy()[i, k] == pytest.approx(
                max(np.linalg.norm(moved @ [1, a, b]) for a in (1, -1) for b in (1, -1)), rel=1e-9
            )


def test_worst_combination_by_hand() -> None:
    columns = np.array(
        [[[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]], [[1.0, -2.0], [0.0, 0.0], [0.0, 0.0]]]
    )
    np.testing.assert_allclose(worst_combination(columns), [5.0, 3.0])


def test_bad_play_is_refused() -> None:
    model = Model(load("gantry_tau_3dof"))
    axes = workspace_axes(model, 3)
    assert list(axes) == ["platform.x", "platform.y", "platform.z"]
    for play, what in (
        (0.0, "zero everywhere"),
        (-1e-6, "not negative"),
        ({"trak1.motor": 1e-6}, "is not an actuator"),
    ):
        with pytest.raises(InputError, match=what):
            play_map(model, axes, backlash=play)


# Commands


def test_a_circle_told_the_other_way_round() -> None:
    """From the second position to the first: the same circle mirrored."""
    model = Model(load("gantry_tau_3dof"))
    there = circle_trajectory(
        model, Circle(columns=("platform.x", "platform.y"), radius=0.05, speed=0.5)
    )
    back = circle_trajectory(
        model, Circle(columns=("platform.y", "platform.x"), radius=0.05, speed=0.5)
    )
    assert isinstance(there.stroke.path, Ellipse)
    u = np.linspace(0, 1, 7)
    np.testing.assert_allclose(
        there.stroke.position(u)[:, :2], back.stroke.position(u)[:, 1::-1], atol=1e-15
    )


def test_a_machine_without_ranges_is_told_which_coordinates_need_them() -> None:
    """Its platform hangs in the tree, so that `platform.limits` would be refused."""
    text = (Path(__file__).parents[1] / "cases" / "loop_within_a_loop.yaml").read_text(
        encoding="utf-8"
    )
    with pytest.raises(InputError, match=r"no range in m of cyl\n.*add limits of one of them"):
        workspace_axes(Model(loads(text)))
    limited = text.replace("reference: 0.28 m", "reference: 0.28 m, limits: [0.26 m, 0.28 m]")
    assert [*workspace_axes(Model(loads(limited)))] == ["cyl"]
