"""``tauloop simulate`` and ``control``: what they print and write, and what they refuse."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from cable_machines import CONSTRAINED
from command_line import run_json, text_of
from hanging_ball import ball

import tauloop as tl
from tauloop import Model, load
from tauloop.common.result import plain
from tauloop.logs import read_log, samples
from tauloop.motion import POLYNOMIAL_345, Line, Seconds, plan, stroke
from tauloop.simulation import FreeMotionOptions
from tauloop.simulation.controllers.laws import FeedForward, Sampling
from tauloop.simulation.controllers.run import follow


def test_a_swing_is_judged_on_the_exact_routes(tmp_path):
    figure = tmp_path / "swing.png"
    document = run_json(
        "simulate", "four_bar", "--free", "--duration", "0.5", "--out", str(figure), code=0
    )
    assert document["status"] == "ok"
    assert set(document["routes"]) == {
        *(
            "independent",
            "projected",
            "extended",
            "extended-free",
            "multipliers",
            "multipliers-free",
        )
    }
    assert document["springs"][0]["stiffness"] > 0
    assert document["routes"]["independent"]["relative_energy_error"] < document["energy_limit"]
    assert figure.stat().st_size > 10_000


def test_coarse_steps_fail_a_swing():
    text = text_of(
        "simulate", "four_bar", "--free", "--duration", "0.5", "--fixed-step", "0.01", code=1
    )
    assert "FAILS" in text
    assert "Springs at the drives" in text


def test_stops_that_a_fall_passes_are_named():
    document = run_json("simulate", "hexapod", "--duration", "0.3", code=1)
    assert document["status"] == "doubtful"
    legs = {item["coordinate"]: item["time_s"] for item in document["beyond_stops"]}
    assert {f"leg{i}.strut" for i in range(1, 7)} <= legs.keys()
    for name, time in legs.items():
        assert 0 < time < 0.3, name
    assert document["final"]["leg1.strut"] < 0.33  # the file's lower limit, m
    assert "beyond its stop at 0.33 m" in text_of(
        "simulate", "hexapod", "--duration", "0.3", code=1
    )
    assert run_json("simulate", "hexapod", "--duration", "0.01")["beyond_stops"] == []


def test_constant_forces_and_a_written_motion(tmp_path):
    out = tmp_path / "motion.csv"
    options = (
        "--duration",
        "0.02",
        "--force",
        "leg1.motor=1",
        "--wrench",
        "fz=2",
        "--out",
        str(out),
    )
    text = text_of("simulate", "delta", *options, code=0)
    assert "energy-balance error" in text
    with out.open() as file:
        rows = list(csv.reader(file))
    assert len(rows) > 5
    assert any("force" in column for column in rows[0])


def test_tolerance_and_amplitude_take_units() -> None:
    short = ("--duration", "20ms", "--json")
    tolerance = json.loads(
        text_of("simulate", "four_bar", "--absolute-tolerance", "0.1nm", *short, code=None)
    )
    assert tolerance["provenance"]["options"]["integrator"]["atol"] == pytest.approx(1e-10)
    run_json("simulate", "four_bar", "--free", "--amplitude", "3deg", "--duration", "20ms")
    assert FreeMotionOptions(amplitude="3deg").amplitude == pytest.approx(np.deg2rad(3.0))
    assert tl.ReductionOptions(velocity_spread="30 deg/s").velocity_spread == pytest.approx(
        np.deg2rad(30.0)
    )
    with pytest.raises(tl.InputError, match="'30mm' is a length"):
        tl.ReductionOptions(velocity_spread="30mm")


@pytest.mark.parametrize("text", ["z<low", "z=1", "depth<1", "velocity.q<1", "<1"])
def test_events_that_cannot_be_read_are_refused(text):
    answer = text_of("simulate", "delta", "--until", text, "--record", "shoulder>1", code=2)
    assert "2 problems" in answer
    assert "may be any of leg1.shoulder, leg2.shoulder" in answer


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--route", "shortest"), "'shortest' is unknown"),
        (("--free", "--force", "leg1.motor=1"), "has no effect with --free"),
        (("--stiff", "--fixed-step", "0.1"), "cannot be combined with fixed_step"),
        (("--tolerance", "1e-20"), "1e-20 is not between 1e-14"),
        (("--fixed-step", "-1"), "must be positive"),
        (("--free", "--spring-frequency", "0"), "must be positive"),
        (("--free", "--amplitude", "2mm"), "'2mm' is a length (m) where an angle (rad) is needed"),
        (("--absolute-tolerance", "1s"), "'1s' is a time (s) where"),
        (("--pose", "z=-2"), "out of reach"),
    ],
)
def test_bad_options_are_refused(options, words):
    text = text_of("simulate", "delta", *options, "--json", code=2)
    assert words in json.dumps(json.loads(text))


STROKE = ("nuwar", "--end", "z=-0.55", "--duration", "0.05")


def test_figures_are_those_of_the_library_and_the_motion_is_written(tmp_path):
    out, figure = tmp_path / "motion.csv", tmp_path / "control.png"
    real = (
        "--rate",
        "2kHz",
        "--delay",
        "0.25 ms",
        "--quantization",
        "0.1mrad",
        "--velocity-differences",
        "--no-saturation",
    )
    options = (
        "--controller",
        "feed-forward",
        "--bandwidth",
        "20 Hz",
        "--out",
        str(out),
        "--out",
        str(figure),
    )
    document = run_json("control", "follow", *STROKE, *real, *options)
    model = Model(load("nuwar"))
    here = model.platform_position(model.assembly.q)[2:]
    made = plan(stroke(model, Line(here, [-0.55]), ["platform.z"]), POLYNOMIAL_345, Seconds(0.05))
    sampling = Sampling(
        frequency=2000.0, delay=0.25e-3, resolution=1e-4, velocity_differences=True, saturates=False
    )
    motion = follow(made, FeedForward(bandwidth=40 * np.pi), sampling)
    run = document["runs"]["feed-forward"]
    assert list(document["runs"]) == ["feed-forward"]
    assert run["peak_error_m"] == pytest.approx(motion.peak_error)
    assert run["rms_error_m"] == pytest.approx(motion.rms_error)
    assert run["peak_force"] == pytest.approx(np.abs(motion.force).max(axis=0))
    assert samples(read_log(out), "position") == pytest.approx(motion.position, abs=1e-9)
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_a_run_that_ends_early_says_so():
    """A tenth of the bandwidth's samples: the loop is unstable and leaves the workspace."""
    text = text_of(
        "control",
        "follow",
        *STROKE,
        "--rate",
        "60 Hz",
        "--no-saturation",
        "--controller",
        "pd",
        "--settling",
        "1",
        code=1,
    )
    assert "ended early" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--controller", "pid"), "did you mean pd"),
        (("--controller", "pd", "--space", "tool"), "choose among joint, platform"),
        (("--rate", "3 m"), "is a length"),
        (("--rate", "fast"), "is not a number with a unit"),
        (("--delay", "1 parsec"), "unknown unit"),
        (("--quantization", "1mm"), "where an angle (rad) is needed"),
        (("--quantization", "1mrad,1mrad"), "2 steps for 3 actuators"),
        (("--plant", "plate=1,plate_mass"), "is not NAME=VALUE"),
        (("--method", "euler"), "rk4, heun3"),
        (("--rate", "0"), "above 0"),
    ],
)
def test_what_makes_no_control_is_refused(arguments, says):
    text = text_of("control", "follow", *STROKE, *arguments, code=2)
    assert says in text


SLIDE = """
format: tauloop-machine/1
name: slide
provenance: {status: chosen, source: test}
gravity: [0, 0, 0]
parameters: {m: 2 kg, d: 3 N s/m}
bodies: {cart: {mass: m}}
joints: {rail: {type: prismatic, axis: x, parent: base, child: cart, friction: {viscous: d}}}
platform: {body: cart, independent: [rail]}
"""


def test_the_json_of_derivatives_is_the_functions(tmp_path: Path) -> None:
    file = tmp_path / "slide.yaml"
    file.write_text(SLIDE, encoding="utf-8")
    words = (
        "simulate",
        file,
        "--duration",
        0.5,
        "--velocity",
        "rail=1",
        "--sensitivities",
        "m",
        "--sensitivities",
        "d",
    )
    options = tl.SimulationOptions(duration=0.5, velocity={"rail": 1.0}, sensitivities=("m", "d"))
    assert run_json(*words) == json.loads(
        json.dumps(plain(tl.simulate(load(file), options).as_dict()))
    )


def test_the_command_simulates_cables(tmp_path: Path) -> None:
    file, out = tmp_path / "plate.yaml", tmp_path / "swing.csv"
    file.write_text(
        CONSTRAINED.text(tension=", stiffness: 2e4 N/m, damping: 40 N s/m"), encoding="utf-8"
    )
    words = [
        "--duration",
        "0.02",
        "--velocity",
        "z=1.5",
        "--tolerance",
        "1e-7",
        "--absolute-tolerance",
        "1e-9",
        "--out",
        str(out),
    ]
    assert "0 s: cable2 becomes slack" in text_of("simulate", file, *words)
    assert "tension.cable7" in out.read_text(encoding="utf-8").splitlines()[0]
    assert "is not available for machines with cables" in text_of(
        "simulate", file, "--free", code=2
    )


def test_the_command_watches_and_draws(tmp_path: Path) -> None:
    file, figure = tmp_path / "ball.yaml", tmp_path / "ball.png"
    file.write_text(ball_text(), encoding="utf-8")
    words = [
        "--duration",
        "1",
        "--velocity",
        "x=1",
        "--record",
        "z>-1.49",
        "--until",
        "velocity.x<0",
    ]
    text = text_of("simulate", file, *words, "--out", figure)
    assert "s: z > -1.49" in text
    assert "s: velocity.x < 0, the end" in text
    assert figure.stat().st_size > 10_000


def ball_text() -> str:
    """The ball's machine file."""
    from tauloop.formats.writing.yaml_writer import dumps

    return dumps(ball("").mechanism)


def test_a_plant_prints_the_counts_of_its_function() -> None:
    """Times are of this computer, so that they cannot be compared."""
    words = ("--without-controller", "--duration", "0.02", "--udp")
    shown = run_json("run", "plant", "five_bar", *words, "127.0.0.1:47817", code=None)
    options = tl.PlantOptions(without_controller=True, duration=0.02, udp="127.0.0.1:47817")
    ours = json.loads(json.dumps(plain(tl.run_plant(tl.load("five_bar"), options).as_dict())))
    assert shown.keys() == ours.keys()
    for name in ("steps", "lost", "late", "repeated"):
        assert shown["counts"][name] == ours["counts"][name]
