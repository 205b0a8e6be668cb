"""``tauloop stiffness | vibration | simulate --elastic``: order of parts, units, files, stops and refusals."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from command_line import run, run_json
from extras import extra

import tauloop as tl

EXAMPLES = Path(__file__).parents[2] / "examples" / "elastic"
TUBES = EXAMPLES / "gantry_tau.yaml"
FOUR_BAR = EXAMPLES / "four_bar.yaml"
#: A slide that yields by its drive, with a stop.
SLIDE = """
format: tauloop-machine/1
name: slide
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies: {cart: {mass: 2 kg}}
joints: {rail: {type: prismatic, axis: x, parent: base, child: cart, limits: [-1 mm, 1 mm]}}
actuators: {motor: {on: rail, force: 10 N, stiffness: 5 N/um}}
platform: {body: cart, independent: [rail]}
"""


@pytest.fixture
def slide(tmp_path: Path) -> Path:
    path = tmp_path / "slide.yaml"
    path.write_text(SLIDE, encoding="utf-8")
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_parts_are_listed_weakest_first_in_all_outputs(tmp_path: Path) -> None:
    table, record = tmp_path / "parts.csv", tmp_path / "result.json"
    shown = run("stiffness", TUBES, "--out", table, "--out", record).output
    assert "Stiffness of gantry_tau_tubes at the tool" in shown
    assert "N/um" in shown
    lines = shown.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("Share of each part"))
    order = [line.split()[0] for line in lines[start + 2 : start + 11]]
    result = tl.stiffness(TUBES)
    assert order[0] == result.weakest[0]
    shares = dict(zip(result.items, result.worst_shares[0], strict=True))
    assert order == sorted(shares, key=lambda name: -shares[name])
    parts = rows_of(table)
    compliance = sum(float(row["x [m/N]"]) for row in parts)
    assert compliance == pytest.approx(1.0 / 9.215633e6, rel=1e-6)


def test_frequencies_have_clusters_and_parts(tmp_path: Path) -> None:
    table, picture = tmp_path / "modes.csv", tmp_path / "modes.png"
    words = ("vibration", TUBES, "--count", "3", "--damping", "0.02")
    shown = run(*words, "--out", table, "--out", picture).output
    assert "78.49" in shown
    assert "2 to 3" in shown
    assert picture.read_bytes().startswith(b"\x89PNG")
    for row in rows_of(table):
        energy = [float(value) for name, value in row.items() if name.startswith("energy.")]
        assert sum(energy) == pytest.approx(1.0)


def test_free_motors_leave_a_motion() -> None:
    shown = run("vibration", FOUR_BAR, "--count", "3", "--motor-state", "free").output
    assert "motors free" in shown
    assert "1 motion is free" in shown


def test_position_loops_have_damping_ratios(slide: Path) -> None:
    words = ("vibration", slide, "--motor-state", "servo")
    refused = run(*words, code=2).output
    assert "gains are missing: position, speed" in refused
    slide.write_text(SLIDE.replace("stiffness: 5 N/um", "inertia: 3 kg"), encoding="utf-8")
    shown = run(*words, "--servo-gains", "*.position=50 1/s,motor.speed=100").output
    assert "damping ratio" in shown
    # 5 kg, 100 N s/m and 5000 N/m
    assert "5.03" in shown
    assert "0.316" in shown


def test_responses_of_loops_are_drawn_with_frequencies(slide: Path) -> None:
    from tauloop.display.plots.elastic_plots import vibration_plots

    text = SLIDE.replace("stiffness: 5 N/um", "inertia: 3 kg, stiffness: 5 N/um")
    slide.write_text(text, encoding="utf-8")
    words = (
        "--motor-state",
        "servo",
        "--bandwidth",
        "20 Hz",
        "--response-frequencies",
        "1 Hz..1 kHz",
    )
    shown = run("vibration", slide, *words, "--damping", "0.02").output
    assert "smallest dynamic stiffness: " in shown
    machine = tl.load(slide)
    result = tl.vibration(
        machine,
        motor_state="servo",
        bandwidth="20 Hz",
        response_frequencies="1 Hz..1 kHz",
        damping=0.02,
    )
    plots = {plot.title: plot for plot in vibration_plots(result)}
    reference = plots["Reference to encoder"].traces[0]
    assert reference.name == "motor"
    assert reference.y[0] == pytest.approx(1.0, abs=0.01)
    assert plots["Dynamic stiffness of the tool"].traces[0].name == "x"
    assert "Motor to encoder, with open loops: phase" in plots


def test_modes_move_in_a_page_and_a_film(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extra("trimesh")
    monkeypatch.setattr("tauloop.viewer.mode_animation.PERIOD_FRAMES", 4)
    page, film = tmp_path / "modes.html", tmp_path / "modes.gif"
    for path in (page, film):
        run("vibration", FOUR_BAR, "--count", "2", "--mode", "2", "--out", path)
    assert "mode 2: 38." in page.read_text(encoding="utf-8")
    assert film.read_bytes().startswith(b"GIF89a")
    refused = run("vibration", FOUR_BAR, "--count", "2", "--mode", "3", "--out", page, code=2)
    assert "give 1 to 2" in refused.output


def test_heat_is_listed_by_part(tmp_path: Path) -> None:
    table, picture = tmp_path / "heat.csv", tmp_path / "heat.png"
    words = ("accuracy", "thermal", TUBES, "--temperatures", "triple1=2 K")
    shown = run(*words, "--out", table, "--out", picture).output
    lines = shown.splitlines()
    assert any(line.startswith("triple1.link") and line.split()[2] == "2" for line in lines)
    result = tl.thermal_expansion(TUBES, temperatures={"triple1": 2.0})
    assert f"all together: {1e6 * result.distance[0]:.4g} um" in shown
    moved = sum(float(row["error.x [m]"]) for row in rows_of(table))
    assert moved == pytest.approx(result.error[0, 0])
    assert picture.read_bytes().startswith(b"\x89PNG")
    expanded = run(*words[:3], "--expansions", "base=12e-6,plate=23e-6").output
    assert "base" in expanded


def test_a_response_is_drawn_only_with_a_damping() -> None:
    from tauloop.display.plots.elastic_plots import vibration_plots

    titles = [plot.title for plot in vibration_plots(tl.vibration(TUBES, count=2))]
    damped = tl.vibration(TUBES, count=2, damping=0.02)
    plots = [*vibration_plots(damped)]
    assert titles == [plots[0].title]
    assert plots[1].title.startswith("Response of the tool")
    static = 1e6 * tl.stiffness(TUBES).compliance[0, 0, 0]
    trace = next(trace for trace in plots[1].traces if trace.name == "x")
    assert trace.y[0] == pytest.approx(static, rel=0.02)
    assert damped.tool_response([50.0]) == pytest.approx(
        tl.vibration(TUBES, count=2).tool_response([50.0], damping=0.02)
    )


@pytest.mark.parametrize("command", ["stiffness", "vibration"])
def test_a_pose_beyond_a_stop_is_named_and_refused_when_asked(command: str, slide: Path) -> None:
    words = (command, slide, "--pose", "rail=2mm")
    assert run_json(command, slide)["status"] == "ok"
    named = run(*words, code=1)
    assert "beyond its stop" in " ".join(named.output.split())
    refused = run(*words, "--within-limits", code=2)
    assert "beyond its stop" in " ".join(refused.stderr.split())


@pytest.mark.parametrize("command", ["stiffness", "vibration"])
def test_a_rigid_machine_is_refused_with_the_keys_of_elastic_data(command: str) -> None:
    (problem,) = run_json(command, "delta", code=2)["problems"]
    assert "rigid" in problem["what"]
    for key in ("tube", "beams", "stiffness"):
        assert key in problem["remedy"]


def test_several_poses_are_listed_with_the_weakest_part_of_each() -> None:
    from tauloop.display.parts import parts_of

    result = tl.stiffness(TUBES, np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0]]))
    (part,) = parts_of(result)
    poses, directions, *_ = part.tables(result)
    assert [row[-1] for row in poses.cells] == list(result.weakest)
    assert f"pose {1 + int(np.argmin(result.worst_translational))} of 2" in directions.title


def test_static_compliance_is_listed_by_force(tmp_path: Path) -> None:
    table, picture = tmp_path / "compliance.csv", tmp_path / "compliance.png"
    words = ("accuracy", "compliance", TUBES, "1 kN")
    shown = run(*words, "--out", table, "--out", picture).output
    assert "ISO 9283" in shown
    assert "[mm/N]" in shown
    rows = rows_of(table)
    assert len(rows) == 60
    assert [row["direction"] for row in rows[::10]] == ["+x", "-x", "+y", "-y", "+z", "-z"]
    result = tl.static_compliance(TUBES, 1000.0)
    assert float(rows[9]["compliance [m/N]"]) == pytest.approx(result.compliance[0, 9])
    assert picture.read_bytes().startswith(b"\x89PNG")
    (problem,) = run_json(*words[:3], "1 mm", code=2)["problems"]
    assert problem["where"] == "rated_load"


def test_simulated_deformation(slide: Path, tmp_path: Path) -> None:
    table = tmp_path / "motion.csv"
    words = ["simulate", str(slide), "--elastic", "--release", "fx=10", "--damping", "0.05"]
    words += ["--settling-band", "0.1um"]
    text = run(*words, "--out", str(table)).output
    assert "largest deflection" in text
    assert "settling time" in text
    expected = tl.simulate_elastic(
        slide, release={"fx": 10.0}, damping=0.05, settling_band="0.1 um"
    )
    result = run_json(*words)
    assert result["settling_time"] == pytest.approx(expected.settling_time)
    assert result["largest_deflection_m"] == pytest.approx(10.0 / 5e6)
    assert len(rows_of(table)) == len(expected.time)


def test_simulated_deformation_along_a_motion(slide: Path, tmp_path: Path) -> None:
    motion = tmp_path / "motion.csv"
    time = np.linspace(0.0, 0.1, 101)
    place = 0.5e-3 * (1.0 - np.cos(2.0 * np.pi * time / 0.1))
    rows = [f"{t},{x}" for t, x in zip(time, place, strict=True)]
    motion.write_text("\n".join(["time [s],position.rail [m]", *rows]), encoding="utf-8")
    result = run_json("simulate", str(slide), "--elastic", "--motion", str(motion))
    # The motion starts with its largest acceleration: twice the static deflection by inertia.
    acceleration = 0.5e-3 * (2.0 * np.pi / 0.1) ** 2
    assert result["largest_deflection_m"] == pytest.approx(2.0 * 2.0 * acceleration / 5e6, rel=0.01)
    assert result["motion_end_s"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--damping", "0.1"], "--damping: has an effect only with --elastic"),
        (["--elastic", "--force", "motor=1"], "--force: has no effect with --elastic"),
        (["--elastic", "--free"], "--free: has no effect with --elastic"),
    ],
)
def test_refused_options_of_deformation(slide: Path, words: list[str], message: str) -> None:
    text = run("simulate", str(slide), *words, code=2).output
    assert message in text


def test_controlled_motors_of_a_simulation(tmp_path: Path) -> None:
    """The command's values are those of the call."""
    text = SLIDE.replace("stiffness: 5 N/um", "stiffness: 5 N/um, inertia: 1 kg")
    machine = tmp_path / "slide.yaml"
    machine.write_text(text, encoding="utf-8")
    words = ("simulate", machine, "--elastic", "--release", "fx=10", "--duration", "50ms")
    servo = ("--motor-state", "servo", "--servo-gains", "*.position=50 1/s,motor.speed=400")
    data = run_json(*words, *servo, "--feedforward", "force")
    own = tl.simulate_elastic(
        machine,
        release={"fx": 10.0},
        duration=0.05,
        motor_state="servo",
        servo_gains={"motor": {"position": 50.0, "speed": 400.0}},
        feedforward="force",
    )
    assert data["motors"] == ["motor"]
    assert data["largest_deflection_m"] == pytest.approx(own.largest_deflection)
    # At rest at the start: the spring of the drive and the position loop in series.
    at_rest = 10.0 / 5e6 + 10.0 / (400.0 * 50.0)
    assert own.deflection[0, 0] == pytest.approx(at_rest)
    refused = run("simulate", machine, "--motor-state", "servo", code=2).output
    assert "--motor-state: has an effect only with --elastic" in refused
