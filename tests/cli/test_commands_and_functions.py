"""Every command is one function of the library: its JSON is that of the function."""

# ruff: noqa: E501 (one command, one line)

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cable_machines import CONSTRAINED
from command_line import run_json
from extras import extra
from kills import prepare

import tauloop as tl
from tauloop.cli.app import command_words
from tauloop.cli.commands import COMMANDS
from tauloop.cli.terminal import screen
from tauloop.common.result import plain
from tauloop.compiler.c import CacheOptions, compiled_cache
from tauloop.drives import load_drive
from tauloop.equations.ports import ACTUATORS
from tauloop.identification import PreparationOptions, TermOptions
from tauloop.mechanism import json_schema
from tauloop.mechanism.shipped import machine_index
from tauloop.simulation import Integration
from tauloop.study import read_results

TESTS = Path(__file__).resolve().parents[1]
CASE = TESTS / "cases" / "one_joint.yaml"
STUDY = TESTS / "cases" / "study.yaml"
RACKS = TESTS.parent / "examples" / "gantry_tau_racks" / "gantry_tau_racks.yaml"
#: What a simulation is asked for: a start and a force by name, and how exact it is.
FALL = tl.SimulationOptions(
    duration=0.01,
    force={"leg1.motor": 1},
    pose={"x": "10 mm"},
    integration=Integration(tolerance=1e-8, absolute_tolerance=1e-9),
)
STROKE = tl.StrokeOptions(
    shape="polyline",
    start={"y": -0.1},
    via=({"y": -0.1, "z": -0.42}, {"y": 0.1, "z": -0.42}),
    end={"y": "10 cm"},
    law="trapezoidal",
    duration=0.4,
    returns=True,
)
CONTROL = tl.ControlOptions(
    stroke=tl.StrokeOptions(end={"z": "-550 mm"}, duration=0.02),
    controller=("pd",),
    rate=2000.0,
    plant={"plate_mass": 0.4},
)
FASTEST = tl.PathOptions(
    stroke=tl.StrokeOptions(end={"x": 0.05}),
    payload=0.3,
    reserve=0.2,
    intervals=60,
    rate=2000.0,
    motor_curve=((0.0, 1.0), (10.0, 1.0), (40.0, 0.2)),
)
TRANSFER = tl.TransferOptions(
    end={"x": 0.05},
    spheres=(tl.motion.SphereObstacle(center=(0.02, 0.0, -0.53), radius=0.02),),
    reserve=0.2,
    intervals=8,
    rate=2000.0,
)
EVENTS = tl.ControlOptions(
    stroke=tl.StrokeOptions(end={"z": -0.55}, duration=0.05),
    controller=("pd",),
    record=("z<-0.51",),
    until=("platform.z<-0.53",),
)
MAP = tl.WorkspaceOptions(
    plane=("x", "y"),
    pose={"z": -0.4},
    ranges={"x": (-0.1, 0.1), "y": (0.0, 0.1)},
    resolution=0.05,
)
IDENTIFIED = tl.IdentificationOptions(
    preparation=PreparationOptions(cutoff=40.0, trim=10),
    errors="blocks",
    hold_out=0.4,
    terms=TermOptions(known={"crank_1.m": "0.3kg"}),
)
BAR = tl.PosePlanOptions(
    parameters=("track*.length",),
    measure="distance",
    ball_center=(0.0, 0.1, -0.6),
    count=8,
    candidates=30,
)
POSE = tl.DynamicsOptions(pose={"x": 0.1, "z": "-50 cm"}, velocity={"y": -1}, acceleration="z=2")

#: A machine with elastic data.
QUICK_TASK = Path(__file__).parents[1] / "design" / "quick_task.yaml"
TUBES = Path(__file__).parents[2] / "examples" / "elastic" / "gantry_tau.yaml"
#: The words of the command line, where FOLDER is an empty folder, and the result of the function
#: behind it.
PAIRS: dict[str, Callable[[Path], Any]] = {
    "list": lambda _: machine_index(),
    "show delta --blocks": lambda _: tl.describe(tl.load("delta"), tl.DescribeOptions(blocks=True)),
    "check delta --driven": lambda _: tl.check(tl.load("delta"), tl.CheckOptions(driven=True)),
    "demo five_bar --no-open --out FOLDER/demo.html": lambda folder: tl.demo(
        tl.load("five_bar"), folder / "demo.html"
    ),
    "new mine --template delta --set arm_length=250mm --out FOLDER/mine.yaml": lambda _: (
        tl.new_machine("mine", "delta", tl.NewMachineOptions(values={"arm_length": "250mm"}))
    ),
    "verify delta --states 3 --seed 2 --wrench fz=5": lambda _: tl.verify(
        tl.load("delta"), tl.VerifyOptions(states=3, seed=2, wrench=(0.0, 0.0, 5.0, 0.0, 0.0, 0.0))
    ),
    "view delta --pose x=10cm --out FOLDER/delta.png": lambda _: tl.view(
        tl.load("delta"), tl.ViewOptions(pose={"x": 0.1})
    ),
    "fk five_bar --actuators motor_1=100deg": lambda _: tl.forward_kinematics(
        tl.load("five_bar"), {"motor_1": "100deg"}
    ),
    "ik five_bar --pose x=50mm --all-modes --seed 1": lambda _: tl.inverse_kinematics(
        tl.load("five_bar"), "x=50mm", tl.KinematicsOptions(all_modes=True, seed=1)
    ),
    "jacobian five_bar --pose x=50mm --of actuators": lambda _: tl.jacobian(
        tl.load("five_bar"), pose={"x": 0.05}, options=tl.JacobianOptions(of="actuators")
    ),
    "modes five_bar --actuators motor_1=100deg --seed 2": lambda _: tl.assembly_modes(
        tl.load("five_bar"), "motor_1=100deg", tl.ModeOptions(seed=2)
    ),
    "workspace delta --plane x,y --pose z=-400mm --ranges x=-100mm:100mm,y=0:0.1 --resolution 0.05": lambda _: (
        tl.workspace(tl.load("delta"), MAP)
    ),
    "dynamics delta --pose x=100mm,z=-0.5 --velocity y=-1 --acceleration z=2 --formulation lagrange": lambda _: (
        tl.inverse_dynamics(tl.Model(tl.load("delta"), formulation="lagrange"), POSE)
    ),
    f"stiffness {TUBES} --pose x=50mm --wrench fx=100,mz=5 --loaded --shear": lambda _: (
        tl.stiffness(TUBES, {"x": 0.05}, wrench={"fx": 100.0, "mz": 5.0}, loaded=True, shear=True)
    ),
    f"stiffness {TUBES} --actuators track1.motor=10mm": lambda _: tl.stiffness(
        TUBES, actuators={"track1.motor": 0.01}
    ),
    f"accuracy compliance {TUBES} 500N --pose x=50mm --shear": lambda _: tl.static_compliance(
        TUBES, 500.0, "x=50mm", shear=True
    ),
    f"accuracy thermal {TUBES} --pose x=50mm --temperatures triple1=2K,pair1=-1": lambda _: (
        tl.thermal_expansion(TUBES, "x=50mm", temperatures={"triple1": 2.0, "pair1": -1.0})
    ),
    f"accuracy compensate {TUBES} --pose x=50mm --wrench fx=100 --temperatures 3K": lambda _: (
        tl.compensate(TUBES, "x=50mm", wrench={"fx": 100.0}, temperatures=3.0)
    ),
    f"accuracy compensation-table {TUBES} --ranges x=-0.1:0.1,z=0:0.1 --wrench fx=100": lambda _: (
        tl.compensation_table(
            TUBES, ranges={"x": (-0.1, 0.1), "z": (0.0, 0.1)}, wrench={"fx": 100.0}
        )
    ),
    f"export compensation {TUBES} --out FOLDER --name tubes --passes 1": lambda folder: (
        tl.export_compensation(TUBES, folder, name="tubes", passes=1)
    ),
    f"vibration {TUBES} --pose x=50mm --count 3 --motor-state free": lambda _: tl.vibration(
        TUBES, "x=50mm", count=3, motor_state="free"
    ),
    "design motors five_bar FOLDER/motion.csv --payload 0.1": lambda folder: tl.size_motors(
        tl.load("five_bar"), folder / "motion.csv", payload=0.1
    ),
    "design certify five_bar --ranges x=-0.02:0.02,y=0.4:0.44 --parallel 0.2": lambda _: tl.certify(
        tl.load("five_bar"), ranges={"x": (-0.02, 0.02), "y": (0.4, 0.44)}, parallel=0.2
    ),
    f"design synthesize {QUICK_TASK}": lambda _: tl.synthesize(QUICK_TASK),
    "dynamics CABLES --preload 20": lambda _: tl.inverse_dynamics(
        tl.loads(CONSTRAINED.text()), tl.DynamicsOptions(preload=20.0)
    ),
    "plan stroke delta --shape polyline --start y=-0.1 --via y=-0.1,z=-0.42 --via y=0.1,z=-0.42 --end y=0.1 "
    "--law trapezoidal --duration 0.4 --returns": lambda _: tl.plan_stroke(
        tl.load("delta"), STROKE
    ),
    "plan stroke hexapod --end z=36cm --rotation 0,0,0.2 --duration 0.5": lambda _: tl.plan_stroke(
        tl.load("hexapod"),
        tl.StrokeOptions(end={"z": 0.36}, rotation=(0.0, 0.0, 0.2), duration=0.5),
    ),
    "plan stroke delta --shape clothoid --end x=0.1,y=0 --start-heading 10deg --end-heading 1 --duration 1": lambda _: (
        tl.plan_stroke(
            tl.load("delta"),
            tl.StrokeOptions(
                shape="clothoid",
                end={"x": 0.1, "y": 0},
                start_heading="10deg",
                end_heading=1.0,
                duration=1.0,
            ),
        )
    ),
    "plan path delta --end x=0.05 --payload 300g --reserve 0.2 --intervals 60 --rate 2kHz --motor-curve 0:1,10:1,40:0.2": (
        lambda _: tl.plan_path(tl.load("delta"), FASTEST)
    ),
    "plan transfer delta --end x=0.05 --spheres 0.02,0,-0.53:0.02 --reserve 0.2 --intervals 8 --rate 2kHz": (
        lambda _: tl.plan_transfer(tl.load("delta"), TRANSFER)
    ),
    "plan cycle five_bar FOLDER/cycle.yaml --intervals 24 --rated 0.9 --duration 300ms --rate 2kHz": lambda folder: (
        tl.plan_cycle(
            tl.load("five_bar"),
            folder / "cycle.yaml",
            tl.CycleOptions(intervals=24, rated=0.9, duration=0.3, rate=2000.0),
        )
    ),
    "simulate delta --duration 0.01 --force leg1.motor=1 --pose x=0.01 --tolerance 1e-8 --absolute-tolerance 1e-9": lambda _: (
        tl.simulate(tl.load("delta"), FALL)
    ),
    "control follow nuwar --end z=-0.55 --duration 0.02 --controller pd --rate 2kHz --plant plate_mass=0.4": lambda _: (
        tl.follow_path(tl.load("nuwar"), CONTROL)
    ),
    "control follow nuwar --end z=-0.55 --duration 0.05 --controller pd --record z<-0.51 --until platform.z<-0.53": lambda _: (
        tl.follow_path(tl.load("nuwar"), EVENTS)
    ),
    "control follow delta --end z=-0.55 --duration 0.02 --controller computed-torque --compiled": lambda _: (
        tl.follow_path_with_exported_code(
            tl.load("delta"),
            tl.ControlOptions(
                stroke=tl.StrokeOptions(end={"z": -0.55}, duration=0.02),
                controller=("computed-torque",),
            ),
        )
    ),
    "log describe five_bar FOLDER/log.csv": lambda folder: tl.describe_log(
        tl.load("five_bar"), folder / "log.csv"
    ),
    "log forces five_bar FOLDER/log.csv --cutoff 40 --components fx,fy --bandwidth 60": lambda folder: (
        tl.estimate_external_wrench(
            tl.load("five_bar"),
            folder / "log.csv",
            tl.ExternalWrenchOptions(cutoff=40.0, components=("fx", "fy"), bandwidth=60.0),
        )
    ),
    "control collision five_bar --end x=0.02 --duration 0.1 --wrench fx=40 --error-samples 4": lambda _: (
        tl.simulate_collision_detection(
            tl.load("five_bar"),
            tl.CollisionDetectionOptions(
                stroke=tl.StrokeOptions(end={"x": 0.02}, duration=0.1),
                wrench={"fx": 40},
                error_samples=4,
            ),
        )
    ),
    "model cost CASE --coordinates actuators": lambda _: tl.count_operations(
        tl.load(CASE), tl.CountOptions(coordinates=ACTUATORS)
    ),
    "model equations five_bar --coordinates actuators --parts loops,solved --keep tip_mass --names platform.x=X": lambda _: (
        tl.write_equations(
            tl.load("five_bar"),
            tl.EquationOptions(
                coordinates=ACTUATORS,
                parts=("loops", "solved"),
                keep=("tip_mass",),
                names={"platform.x": "X"},
            ),
        )
    ),
    "model reduce delta --states 5 --seed 3 --massless-rods leg1.forearm": lambda _: (
        tl.reduce_model(
            tl.load("delta"), tl.ReductionOptions(states=5, seed=3, massless_rods=("leg1.forearm",))
        )
    ),
    "export c delta --out FOLDER --functions kinematics,inverse_dynamics --coordinates actuators": lambda folder: (
        tl.export_c(
            tl.load("delta"),
            tl.ExportOptions(functions=("kinematics", "inverse_dynamics"), coordinates=ACTUATORS),
            folder=folder,
        )
    ),
    "export linuxcnc delta --out FOLDER --name printer --max-acceleration 2": lambda folder: (
        tl.export_linuxcnc(
            tl.load("delta"),
            tl.LinuxcncOptions(name="printer", max_acceleration=2.0),
            folder=folder,
        )
    ),
    "export transmission four_bar --joints rocker_pin --formats python --out FOLDER": lambda folder: (
        tl.export_transmission("four_bar", folder, joints=["rocker_pin"], formats=["python"])
    ),
    "export ros2 delta --out FOLDER": lambda folder: tl.export_ros2(
        tl.load("delta"), folder=folder
    ),
    "export controller five_bar --out FOLDER --controller pd --rate 2kHz --hold-samples 5 --deceleration 10": lambda folder: (
        tl.export_controller(
            tl.load("five_bar"),
            tl.ControllerOptions(
                controller="pd", rate=2000.0, hold_samples=5, deceleration=(10.0,)
            ),
            folder=folder,
        )
    ),
    "export fmu delta --out FOLDER --name printer --fmi-version 2 --free-parameters plate_mass --no-binary": lambda folder: (
        tl.export_fmu(
            tl.load("delta"),
            tl.FmuOptions(
                name="printer", fmi_version="2", free_parameters=("plate_mass",), binary=False
            ),
            folder=folder,
        )
    ),
    "export fmu five_bar --out FOLDER --kind controller --controller pd --rate 2kHz --no-binary": lambda folder: (
        tl.export_fmu(
            tl.load("five_bar"),
            tl.FmuOptions(kind="controller", binary=False),
            controller=tl.ControllerOptions(controller="pd", rate=2000.0),
            folder=folder,
        )
    ),
    "convert rcid --format yaml FOLDER/m.yaml": lambda folder: tl.convert(
        "rcid", folder / "m.yaml"
    ),
    "convert five_bar FOLDER/m.xml": lambda folder: tl.convert("five_bar", folder / "m.xml"),
    "convert five_bar FOLDER/m.urdf": lambda folder: tl.convert("five_bar", folder / "m.urdf"),
    "drive step dual_motor_axis --step 0.05 --duration 2 --set kp=250": lambda _: (
        tl.simulate_drive_line(
            load_drive("dual_motor_axis"),
            tl.DriveOptions(step=0.05, duration=2.0, values={"kp": 250.0}),
        )
    ),
    "drive step dual_motor_axis --step 0.05 --duration 2 --until cart.position>0.03 --record cart.velocity>0.01": lambda _: (
        tl.simulate_drive_line(
            load_drive("dual_motor_axis"),
            tl.DriveOptions(
                step=0.05,
                duration=2.0,
                until=("cart.position>0.03",),
                record=("cart.velocity>0.01",),
            ),
        )
    ),
    "drive step dual_motor_axis --duration 2 --motor-setup one": lambda _: tl.simulate_drive_line(
        load_drive("dual_motor_axis"), tl.DriveOptions(duration=2.0, motor_setup="one")
    ),
    "accuracy ballbar RACKS --radius 0.05 --speed 0.6 --only rigid": lambda _: tl.ballbar(
        tl.load(RACKS), tl.BallbarOptions(radius=0.05, speed=0.6, only=("rigid",))
    ),
    "accuracy tolerances delta --pose z=-0.5 --tolerances arm_length=0.05mm --common arm_length": lambda _: (
        tl.tolerance_map(
            "delta", {"z": -0.5}, tolerances={"arm_length": 5e-5}, common=("arm_length",)
        )
    ),
    "design tolerances delta --pose z=-0.5 --tolerances *_length=0.05mm --limits z=0.2mm --grades 7,8": lambda _: (
        tl.allocate_tolerances(
            "delta",
            {"z": -0.5},
            tolerances={"*_length": 5e-5},
            limits={"z": 2e-4},
            grades=(7, 8),
        )
    ),
    "accuracy backlash gantry_tau_3dof --backlash track1.motor=20um": lambda _: tl.backlash_map(
        tl.load("gantry_tau_3dof"), tl.BacklashOptions(backlash={"track1.motor": 1e-6 * 20})
    ),
    "identify five_bar FOLDER/log.csv --errors independent --workers 1 --folded FOLDER/folded": lambda folder: (
        tl.fold_logs(
            tl.load("five_bar"),
            [folder / "log.csv"],
            folder / "folded",
            tl.FoldOptions(
                identification=tl.IdentificationOptions(errors="independent"),
                study=tl.StudyOptions(resume=True),
            ),
        )
    ),
    "study show STUDY --folder FOLDER/parts": lambda folder: read_results(STUDY, folder / "parts"),
    "study run STUDY --out FOLDER/parts": lambda folder: read_results(STUDY, folder / "parts"),
    "env cache --folder FOLDER": lambda folder: compiled_cache(CacheOptions(folder=folder)),
    "env schema": lambda _: json_schema(),
    "log subtract FOLDER/log.csv FOLDER/log.csv --out FOLDER/structure.csv --period 0.5": lambda folder: (
        tl.subtract_actuator_forces(
            folder / "log.csv", folder / "log.csv", tl.SubtractionOptions(period=0.5)
        )
    ),
    "identify five_bar FOLDER/log.csv --cutoff 40 --trim 10 --errors blocks --hold-out 0.4 --known crank_1.m=0.3kg": (
        lambda folder: tl.identify(tl.load("five_bar"), folder / "log.csv", IDENTIFIED)
    ),
    "model base-parameters pendulum_arm": lambda _: tl.symbolic_base_parameters(
        tl.load("pendulum_arm")
    ),
    "plan poses gantry_tau_3dof --parameters track*.length --measure distance --ball-center "
    "0,0.1m,-60cm --count 8 "
    "--candidates 30": lambda _: tl.plan_poses(tl.load("gantry_tau_3dof"), BAR),
    "report FOLDER/counts.json --out FOLDER/report.html": lambda folder: tl.write_report(
        folder / "counts.json", folder / "report.html"
    ),
}
#: Commands whose pair needs files, or minutes, that another test has made.
BESIDE = {
    "plan excitation": "test_identification_commands.py",
    "calibrate": "test_calibration_commands.py",
    "drive fit": "test_drive_commands.py",
    "model link-parameters": "test_identification_commands.py",
    "drive tune": "test_drive_commands.py",
    "log drive-stiffness": "test_drive_stiffness_command.py",
    "log track": "test_identification_commands.py",
    "env doctor": "test_cli.py",
    "run plant": "test_simulation_commands.py",
    "run stream": "test_run_stream.py",
}
#: Commands that never work for two seconds themselves; all others show a bar.
QUICK = {"list", "show", "check", "jacobian", "convert", "drive step", "plan stroke"}
QUICK |= {
    "stiffness",
    "vibration",
    "accuracy tolerances",
    "design tolerances",
    "accuracy thermal",
    "accuracy compliance",
    "env schema",
    "env cache",
    "env doctor",
    "study show",
    "log describe",
}
QUICK |= {"accuracy compensate", "export compensation"}
#: Commands whose bar is shown only for a search that these words do not ask for.
SOMETIMES = {"new", "fk"}


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[tuple[int, int]]]]:
    """What the bars of a command are drawn of, by their names."""
    seen: dict[str, list[tuple[int, int]]] = {}

    class Drawn(screen.Progress):
        def update(self, task_id: Any, **values: Any) -> None:
            seen.setdefault(values["description"].partition(",")[0], []).append(
                (values["completed"], values["total"])
            )
            super().update(task_id, **values)

    monkeypatch.setattr(screen, "Progress", Drawn)
    yield seen
    rising(seen)


def rising(reports: Mapping[str, list[tuple[int, int]]]) -> None:
    """What is done rises, and what there is to do stays and is reached."""
    for phase, calls in reports.items():
        done = [now for now, _ in calls]
        assert done == sorted(done), phase
        assert calls[-1][0] == calls[-1][1], phase
        assert {total for _, total in calls} == {calls[-1][1]}, phase


def without_rounding(value: Any) -> Any:
    """Numbers with nine decimals, without measured times and without the pose of an extreme.

    Polishing moves designs onto a limit, where the rounding of BLAS decides the last digits, and
    which of two symmetrical poses is worst.
    """
    if isinstance(value, dict):
        kept = {key: entry for key, entry in value.items() if key not in ("duration", "active")}
        return {key: without_rounding(entry) for key, entry in kept.items()}
    if isinstance(value, list):
        return [without_rounding(entry) for entry in value]
    return round(value, 9) + 0.0 if isinstance(value, float) else value


@pytest.mark.parametrize("words", PAIRS)
def test_the_commands_json_is_the_functions_and_slow_ones_show_progress(
    words: str, tmp_path: Path, reports: dict[str, list[tuple[int, int]]]
) -> None:
    if words.startswith("verify"):
        extra("pinocchio")
    if "parts" in words or "folded" in words:
        extra("pyarrow")
    if (
        any(f"FOLDER/{name}" in words for name in ("log.csv", "cycle.yaml", "motion.csv"))
        or "FOLDER/counts.json" in words
    ):
        prepare(tmp_path)
    cables = tmp_path.with_name(f"{tmp_path.name}.yaml")
    cables.write_text(CONSTRAINED.text(), encoding="utf-8")
    text = (
        words.replace("FOLDER", str(tmp_path))
        .replace("RACKS", str(RACKS))
        .replace("CABLES", str(cables))
    )
    text = text.replace("CASE", str(CASE)).replace("STUDY", str(STUDY))
    if words.startswith("study show"):
        tl.run_study(STUDY, tmp_path / "parts")
    document = run_json(*text.split(), code=None)
    if (name := command_words(words.split())) not in SOMETIMES:
        assert bool(reports) == (name not in QUICK)
    result = PAIRS[words](tmp_path)
    expected = json.loads(json.dumps(plain(result if words == "env schema" else result.as_dict())))
    if words.startswith("design"):
        document, expected = without_rounding(document), without_rounding(expected)
    assert document == expected


def test_every_command_has_its_pair() -> None:
    assert {command_words(words.split()) for words in PAIRS} | set(BESIDE) == set(COMMANDS)
    assert set(COMMANDS) > QUICK | SOMETIMES
    for command, place in BESIDE.items():
        (file,) = TESTS.rglob(place)
        text = file.read_text(encoding="utf-8")
        assert "as_dict()" in text, f"{place} compares no JSON of {command} with the function's"
