"""Every number that a command gives to machines, to a file or to a figure has one unit, or is in SI units by its place.

The machine has a motor that turns and one that pushes. In JSON, a `unit` (or `units`) stands beside
a number whose key does not say it (``peak_error_m``, ``angle_deg``); all others are in SI units
(docs/command-line.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calibration_sessions import encoders, measured, part_errors, written
from command_line import run, run_json
from matplotlib.axis import Axis
from matplotlib.figure import Figure

import tauloop as tl
from tauloop.calibration import Position
from tauloop.display import Plot
from tauloop.display.parts import parts_of
from tauloop.display.plots.motion.control_plots import control_plots
from tauloop.mechanism.description.units import si_unit

CRANE = """
format: tauloop-machine/1
name: crane
provenance: {status: chosen, source: a test}
gravity: [0, 0, -9.81 m/s^2]
parameters: {boom_mass: 20 kg, hook_mass: 10000 g, lift: 30 deg, offset: 5 mm}
bodies:
  boom: {mass: boom_mass, center: [0.5 m, 0, 0], inertia: {xx: 0.1 kg m^2, yy: 2 kg m^2, zz: 2 kg m^2}}
  hook: {mass: hook_mass, center: [0.1 m, 0, offset], inertia: {xx: 0.05 kg m^2, yy: 0.2 kg m^2, zz: 0.2 kg m^2}}
joints:
  lift: {type: revolute, axis: y, parent: base, child: boom, reference: -lift, limits: [-70 deg, 20 deg]}
  reach: {type: prismatic, axis: x, parent: boom, child: hook, reference: 1.2 m, limits: [0.8 m, 1.6 m]}
actuators:
  winch: {on: lift, speed: 2 rad/s, force: 900 N m}
  ram: {on: reach, speed: 1 m/s, force: 900 N}
platform: {body: hook, independent: [lift, reach]}
"""
#: Units of channels in files, by what moves: the first of a length or an angle, then of its force.
CHANNELS = {"winch": ("rad", "N m"), "lift": ("rad", "N m"), "ram": ("m", "N"), "reach": ("m", "N")}
RATES = {"position": "", "velocity": "/s", "acceleration": "/s^2"}
RACKS = Path(__file__).parents[2] / "examples" / "gantry_tau_racks" / "gantry_tau_racks.yaml"
STEPS = """
format: tauloop-steps/1
steps:
  slow: {step: 100 mm, set: {kp: 150, ti: 1.8}, measured: {rise_time: 660 ms, energy: 2000 N^2 m^2 s}}
  judge: {step: 50 mm, set: {kp: 200, ti: 1.5}, measured: {rise_time: 560 ms}, held_out: yes}
"""
#: A unit that stands for several: "m, rad", "m or rad", "SI", "mixed".
SEVERAL = r",| or |SI|mixed"
WORDS = {
    "show": "show crane.yaml --table",
    "check": "check crane.yaml",
    "fk": "fk crane.yaml --actuators winch=-20deg",
    "ik": "ik crane.yaml",
    "jacobian": "jacobian crane.yaml",
    "dynamics": "dynamics crane.yaml --out out.csv",
    "motion": "plan stroke crane.yaml --end reach=1.3,lift=-20deg --duration 1 --out out.csv",
    "simulate": "simulate crane.yaml --duration 0.02 --out out.csv",
    "control": "control follow crane.yaml --end reach=1.3 --duration 0.05 --controller pd --out out.csv",
    "workspace": "workspace crane.yaml --ranges reach=0.9:1.5,lift=-40deg:0 --resolution 0.2",
    "reduce": "model reduce crane.yaml --states 3",
    "excite": "plan excitation crane.yaml --random 4 --starts 0 --harmonics 2 --out out.csv",
    "regroup": "model base-parameters crane.yaml",
    "cost": "model cost crane.yaml",
    "modes": "modes crane.yaml",
    "verify": "verify crane.yaml --states 3",
    "equations": "model equations crane.yaml",
}
DAILY = ("show", "jacobian", "dynamics", "motion", "simulate", "control", "workspace")
#: Functions whose results are drawn, and whether an axis without a unit has it in the legend,
#: channel by channel.
DRAWN: dict[str, Callable[[tl.Mechanism], Any]] = {
    "dynamics": tl.inverse_dynamics,
    "motion": lambda crane: tl.plan_stroke(
        crane, tl.StrokeOptions(end={"reach": 1.3, "lift": "-20deg"}, duration=1.0)
    ),
    "simulate": lambda crane: tl.simulate(crane, tl.SimulationOptions(duration=0.02)),
    "control": lambda crane: tl.follow_path(
        crane,
        tl.ControlOptions(
            stroke=tl.StrokeOptions(end={"reach": 1.3}, duration=0.05), controller=("pd",)
        ),
    ),
    "workspace": lambda crane: tl.workspace(
        crane,
        tl.WorkspaceOptions(ranges={"reach": (0.9, 1.5), "lift": (-0.7, 0.0)}, resolution=0.2),
    ),
    "line": lambda crane: tl.workspace(
        crane, tl.WorkspaceOptions(plane=("lift",), pose={"reach": 1.4})
    ),
    "excite": lambda crane: tl.plan_excitation(crane, tl.ExcitationOptions(random=4, starts=0)),
    "check": tl.check,
}


MEASURED = {
    "identify": "identify crane.yaml log.csv --cutoff 40 --trim 5",
    "calibrate": "calibrate gantry_tau_3dof tracker.csv --noise 20um --parameters track*.length,track*.yaw",
    "poses": "plan poses gantry_tau_3dof --parameters track*.length,track*.yaw --count 8 --candidates 30",
    "ballbar": f"accuracy ballbar {RACKS} --radius 0.05 --speed 0.6 --only rigid",
    "tune": "drive tune dual_motor_axis --bounds kp=100:300,ti=0.5:2 --scales rise_time=1.7 --budget 4",
    "fit-plant": "drive fit dual_motor_axis steps.yaml --bounds cart_viscous=10:100,preload=5:12 --generations 0",
}
#: Units beside numbers that are powers or sums, which no value of a machine file has, and counts.
OF_INTEGRALS = ("N^2 s", "(N m)^2 s")


@pytest.fixture
def crane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tl.Mechanism:
    """The machine, whose file lies where the commands run."""
    monkeypatch.chdir(tmp_path)
    Path("crane.yaml").write_text(CRANE, encoding="utf-8")
    return tl.load("crane.yaml")


def units_in(data: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """All units that stand in JSON, each with its key."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from units_in(value, name)
    elif isinstance(data, list):
        for value in data:
            yield from units_in(value, key)
    elif isinstance(data, str) and re.search(r"(^|_)units?$", key):
        yield key, data


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in DAILY else [pytest.mark.nightly]) for n in WORDS]
)
def test_units_in_json_and_in_files_are_single_and_si(name: str, crane: tl.Mechanism):
    document = run_json(*WORDS[name].split(), code=None)
    for key, unit in units_in(document):
        assert unit in ("", "1") or key == "written_unit" or si_unit(unit) == unit, f"{key}: {unit}"
    text = run(*WORDS[name].split(), code=None).stdout
    assert [unit for unit in re.findall(r"\[([^\]\n]+)\]", text) if re.search(SEVERAL, unit)] == []
    if "out.csv" in WORDS[name]:
        for header in Path("out.csv").read_text(encoding="utf-8").partition("\n")[0].split(","):
            column, unit = re.fullmatch(r"(\S+) \[(.+)\]", header).groups()  # type: ignore[union-attr]
            quantity, _, channel = column.partition(".")
            wanted = CHANNELS[channel] if channel else ("s", "")
            assert unit == (
                wanted[1] if quantity == "force" else wanted[0] + RATES.get(quantity, "")
            ), header


@pytest.mark.nightly
@pytest.mark.parametrize("name", MEASURED)
def test_units_of_what_is_measured_and_tuned_are_single_and_si(name: str, crane: tl.Mechanism):
    if name == "identify":
        run(
            *"plan excitation crane.yaml --random 4 --starts 0 --harmonics 2 --period 4 --out motion.csv".split(),
            code=None,
        )
        run(
            *"dynamics crane.yaml --motion motion.csv --coordinates actuators --out log.csv".split(),
            code=None,
        )
    elif name == "calibrate":
        draw, machine = np.random.default_rng(8), "gantry_tau_3dof"
        true = part_errors(machine, ("track*.length", "track*.yaw"), 3e-4, draw)
        series = measured(machine, true, Position(name="t"), encoders(machine, 25, draw), 2e-5)
        written(series, Path("tracker.csv"))
    Path("steps.yaml").write_text(STEPS, encoding="utf-8")
    document = run_json(*MEASURED[name].split(), code=None)
    assert document["status"] != "error"
    for key, unit in units_in(document):
        single = unit in ("", "1", *OF_INTEGRALS) or re.fullmatch(r"of \d+", unit)
        assert single or si_unit(unit) == unit, f"{key}: {unit}"
    for key, unit in document.get("units", {}).items():
        assert unit in ("", "1", *OF_INTEGRALS) or si_unit(unit) == unit, f"{key}: {unit}"
    text = run(*MEASURED[name].split(), code=None).stdout
    assert [unit for unit in re.findall(r"\[([^\]\n]+)\]", text) if re.search(SEVERAL, unit)] == []


def test_a_parameter_has_the_unit_of_its_value_and_that_of_its_file(crane: tl.Mechanism):
    rows = {row["name"]: row for row in run_json("show", "crane.yaml")["parameters"]}
    for name, value, unit, in_file in (
        ("lift", 0.5235987755982988, "rad", "deg"),
        ("hook_mass", 10.0, "kg", "g"),
    ):
        assert (rows[name]["value"], rows[name]["unit"], rows[name]["written_unit"]) == (
            value,
            unit,
            in_file,
        )


def unmarked(figure: Figure) -> Iterator[str]:
    """Labels of axes of numbers that say no unit, nor does the legend of each line."""
    figure.draw_without_rendering()
    for axes in figure.axes:
        legend = axes.get_legend()
        words = [] if legend is None else [text.get_text() for text in legend.get_texts()]
        for axis in (axes.xaxis, axes.yaxis):
            label = axis.get_label_text()
            if not numbered(axis) or re.search(r"\[[^\]]+\]", label):
                assert not re.search(SEVERAL, "".join(re.findall(r"\[([^\]]+)\]", label))), label
            elif not (words and label and all("[" in word for word in words)) and not is_shared(
                axis
            ):
                yield f"{axis.axis_name}: {label!r}"


def numbered(axis: Axis) -> bool:
    """Whether numbers stand at it."""
    texts = [tick.label1.get_text() for tick in axis.get_major_ticks() if tick.label1.get_visible()]
    return axis.axes.axison and any(re.match(r"[-\N{MINUS SIGN}$\d]", text) for text in texts)


def is_shared(axis: Axis) -> bool:
    """Whether it is the time of panels one above the other, the lowest of which says it."""
    below = [
        each
        for each in axis.axes.figure.axes
        if each.get_position().y0 < axis.axes.get_position().y0
    ]
    return axis.axis_name == "x" and any(each.get_xlabel().startswith("time [") for each in below)


def test_errors_of_motors_that_turn_and_of_those_that_push_have_panels_of_their_own(
    crane: tl.Mechanism,
):
    """Where the platform does not move in metres, as this one is made to seem."""
    compared = DRAWN["control"](crane)
    runs = {
        name: replace(run, tool_error=0.0 * run.tool_error) for name, run in compared.runs.items()
    }
    pieces = control_plots(replace(compared, runs=runs))
    turned, pushed, *_ = (piece for piece in pieces if isinstance(piece, Plot))
    for plot, unit, k, scale in ((turned, "deg", 0, 180 / np.pi), (pushed, "m", 1, 1.0)):
        assert plot.y == f"error [{unit}]"
        (trace,), (run,) = plot.traces, runs.values()
        assert max(trace.y) == pytest.approx(
            scale * np.abs(run.actuator_error[:, k]).max(), rel=1e-5
        )


@pytest.mark.parametrize("name", ["dynamics", "motion"])
def test_figures_without_a_picture_of_their_own_say_what_and_of_which_machine(
    name: str, crane: tl.Mechanism
):
    result = DRAWN[name](crane)
    heading = result.plot()[0].figure.get_suptitle()
    titles = {"dynamics": "Motion forces: crane", "motion": "Planned motion: crane"}
    assert heading.strip() == titles[name]


@pytest.mark.parametrize("name", DRAWN)
def test_axes_of_figures_have_a_unit_each(name: str, crane: tl.Mechanism):
    result = DRAWN[name](crane)
    figures = [figure for part in parts_of(result) if (figure := part.figure(result)) is not None]
    for figure in figures or [result.plot()[0].figure]:
        assert list(unmarked(figure)) == []
