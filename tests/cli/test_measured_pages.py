"""Tables of figures on the pages are what commands, examples and benchmarks find: whole runs of them, so by night.

With `--update-tables` they write what they find into the pages, in the digits that are there. Which
table is compared where stands in `tables_of_figures.txt`; a table that is not in it fails a test of
every day.
"""

from __future__ import annotations

import importlib
import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run, run_json
from page_tables import DOCS, PageTable, numbers, page_table, same, unit, write_cells

import tauloop as tl
from tauloop.geometry.clearance import rod_clearance
from tauloop.identification import WeightedLeastSquares, fit_regression, regression_data, split_data
from tauloop.kinematics import ReductionOptions
from tauloop.logs import Preparation, Signals
from tauloop.logs.log import Channel
from tauloop.mechanism import Mechanism
from tauloop.motion import random_multisine

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).resolve().parents[2]
#: An optimised motion may end elsewhere on another processor, by this share of its condition
#: number.
OPTIMUM = 0.05
#: Figures of chance, over sets of the same seeds: what rounding may turn, in per cent of them.
COUNTED = 2.0
#: Errors of choices that follow one another: what rounding may move, as a share.
CHOSEN = 0.02


def assert_cells(table: PageTable, row: tuple[str, ...], ours: list[float], first: int = 1) -> None:
    """The numbers of a row's cells, from the first that is meant, in their own digits; a minus sign counts."""
    printed = [number for cell in row[first:] for number in numbers(cell.replace("*", ""))]
    signs = [
        cell.lstrip("*").startswith(("-", "−"))
        for cell in row[first:]
        for _ in numbers(cell.replace("*", ""))
    ]
    assert len(printed) == len(ours), (table.head, row)
    for number, minus, value in zip(printed, signs, ours, strict=True):
        assert same(number, -value if minus else value), (row, number, value)


@pytest.fixture(autouse=True)
def _writes_pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.config.getoption("--update-tables"):
        monkeypatch.setattr(f"{__name__}.assert_cells", write_cells)


# Machines


def test_controllers_on_nuwars_stroke(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    example = importlib.import_module("nuwar_control")
    runs = example.runs(example.trajectory())
    table = page_table("measured/control.md", "| controller | ideal |")
    names = (
        "PD",
        "PD with gravity compensation",
        "PD with feed-forward",
        "computed torque",
        "predictive",
    )
    assert len(table.rows) == len(names)
    for law, name in zip(example.CONTROLLERS, names, strict=True):
        errors = [
            1e3 * error for case in example.CASES for error in _errors(runs[case, "joint", law])
        ]
        assert_cells(table, table.row(name), errors)


def _errors(motion: Any) -> tuple[float, float]:
    return motion.peak_error, motion.rms_error


GANTRY_TAU = ROOT / "examples" / "synthesis" / "gantry_tau"
#: Density of aluminium, kg/m^3.
ALUMINIUM = 2700.0


def test_designs_of_thin_tubes_are_what_the_page_says() -> None:
    """The table is of a finer grid than the search's: 9 x 9 positions in the plane across the tracks."""
    steps = np.linspace(-0.15, 0.15, 9)
    poses = np.array([[0.0, y, z] for y in steps for z in steps])
    baseline = tl.load(GANTRY_TAU / "machine.yaml")
    machines = {
        "baseline": baseline,
        "baseline with thinner walls": baseline.with_values({"wall": 0.002}),
    }
    machines |= {path.stem: tl.load(path) for path in GANTRY_TAU.glob("*_*.yaml")}
    table = page_table("thin-tubes.md", "| machine | wall")
    assert {row[0] for row in table.rows} == set(machines)
    for name, mechanism in machines.items():
        model = tl.Model(mechanism)
        clusters = (("triple", 3), ("pair", 2), ("single", 1))
        wall = mechanism.value("wall")
        lengths = [mechanism.value(f"{cluster}_length") for cluster, _ in clusters]
        outer = [mechanism.value(f"{cluster}_outer") for cluster, _ in clusters]
        mass = sum(
            ALUMINIUM * np.pi * (d - wall) * wall * length * count
            for (_, count), d, length in zip(clusters, outer, lengths, strict=True)
        )
        clearance = rod_clearance(model).distances(model.inverse_kinematics(poses).q).min()
        ours = [
            1e3 * wall,
            1e-6 * tl.stiffness(model, poses).worst_translational.min(),
            tl.vibration(model, poses, count=1).frequency.min(),
            mass,
            1e3 * clearance,
            *(1e3 * length for length in lengths),
        ]
        assert_cells(table, table.row(name), ours)


MACHINES = (
    "delta",
    "five_bar",
    "four_bar",
    "gantry_tau_3dof",
    "gantry_tau_5dof",
    "gantry_tau_6link",
    "hexapod",
    "linear_delta",
    "nuwar",
    "pendulum_arm",
    "rcid",
    "spidermill",
)
#: Largest energy error and largest loop residual (m) of each route, as on the page.
FREE_MOTION_LIMITS = {
    "independent": (1e-8, 1e-14),
    "projected": (1e-8, 1e-14),
    "extended": (1e-8, 1e-12),
    "multipliers": (1e-8, 1e-12),
    "extended-free": (1e-7, 1e-9),
    "multipliers-free": (1e-7, 1e-9),
}
#: Machines that extended coordinates without redundant equations cannot describe.
WITHOUT_EXTENDED = ("gantry_tau_5dof", "hexapod", "spidermill")


@pytest.mark.parametrize("machine", MACHINES)
def test_free_motions_keep_the_limits_of_the_page(machine: str) -> None:
    tolerances = ("--tolerance", "1e-11", "--absolute-tolerance", "1e-12")
    motion = run_json("simulate", machine, "--free", *tolerances, code=None)
    for route, (energy, residual) in FREE_MOTION_LIMITS.items():
        if route.startswith("extended") and machine in WITHOUT_EXTENDED:
            assert route in motion["left_out"]
            continue
        result = motion["routes"][route]
        assert result["relative_energy_error"] < energy, route
        assert result["largest_loop_residual_m"] < residual, route


def test_a_circle_of_a_gantry_with_racks() -> None:
    table = page_table("drives/machine.md", "| µm | circular deviation |")
    runs = run_json(
        "accuracy",
        "ballbar",
        ROOT / "examples" / "gantry_tau_racks" / "gantry_tau_racks.yaml",
        "--speed",
        0.8,
        code=None,
    )["runs"]
    keys = (
        "circular_deviation",
        "radius_error",
        "out_of_plane",
        "following_error",
        "following_rms",
    )
    for name, figures in runs.items():
        row = table.row("rigid drives" if name == "rigid" else name)
        assert_cells(table, row, [figures[f"{key}_um"] for key in keys])


def test_play_at_the_tool_of_a_gantry() -> None:
    """Of 10 um at one actuator 5 to 11 um, of all actuators up to 20 um: as the page states."""
    tool = run_json("accuracy", "backlash", "gantry_tau_3dof", "--plane", "y,z", code=None)["tool"]
    worst = tool.pop("worst")
    assert len(tool) == 3
    assert 4.5e-6 < min(figures["least"] for figures in tool.values()) < 5.5e-6
    assert 10.5e-6 < max(figures["largest"] for figures in tool.values()) < 11.5e-6
    assert 19e-6 < worst["largest"] < 20.5e-6


def whole_operations(machine: Mechanism) -> float:
    """Return the operations of a machine's inverse dynamics in its exported C."""
    (function,) = tl.export_c(machine, tl.ExportOptions(outputs=("force",))).manifest["functions"]
    return float(sum(function["operations"]["once"].values()))


def test_the_spidermills_reduction() -> None:
    full = tl.load("spidermill")
    reduction = tl.reduce_model(full)
    table = page_table("reduced-models.md", "| | unreduced |")
    for name, pair in (
        ("coordinates", reduction.coordinates),
        ("loop equations", reduction.equations),
    ):
        assert_cells(table, table.row(name), list(pair))
    sizes = [len(machine.parameters.values) for machine in (full, reduction.mechanism)]
    assert_cells(table, table.row("parameters"), [float(size) for size in sizes])
    counts = [whole_operations(machine) for machine in (full, reduction.mechanism)]
    assert_cells(table, table.row("operations of inverse dynamics"), counts)
    (bound,) = numbers(table.row("maximum spindle force error, relative to the largest force")[2])
    assert max(error.maximum for error in reduction.comparison.errors) < float(bound)
    shift = reduction.comparison.center_shift
    (printed,) = numbers(table.row("shift of the center of mass")[2])
    assert same(printed, -1e3 * shift[1])
    assert max(abs(shift[0]), abs(shift[2]), reduction.comparison.center_deviation) < 1e-14
    methods = [
        [block.method for block in tl.Model(machine).platform.blocks]
        for machine in (full, reduction.mechanism)
    ]
    assert [Counter(kinds)["two circles"] for kinds in methods] == [4, 0]
    assert [
        sum(kind in ("cosine and sine", "quadratic") for kind in kinds) for kinds in methods
    ] == [4, 4]
    assert [len(kinds) for kinds in methods] == [8, 4]  # none by Newton's method
    spindles = ("side1.spindle", "side2.spindle")
    for options, bound in (
        (ReductionOptions(massless_rods=spindles), 0.05),
        (ReductionOptions(lumped_rods=spindles), 3.2e-3),
    ):
        errors = [
            error.maximum
            for speed in (1.0, 0.3)
            for error in tl.reduce_model(
                full, replace(options, velocity_spread=speed)
            ).comparison.errors
        ]
        assert 0.9 * bound < max(errors) < bound


def test_the_limit_cycle_of_one_motor() -> None:
    cycle = run_json("drive", "step", "single_motor_axis", "--duration", 30, "--cycle", code=None)[
        "limit_cycle"
    ]
    table = page_table("drives.md", "| | frequency |")
    (described,) = cycle["describing_function"]
    for name, ours in (("simulated", cycle["simulated"]), ("describing function", described)):
        assert_cells(table, table.row(name), [ours["frequency"], 1e3 * ours["amplitude"]])


def test_the_measured_printer(shared: Path) -> None:
    if not (data := shared / "data" / "delta_printer").is_dir():
        pytest.skip("needs data/delta_printer of the shared folder, which is not here")
    table = page_table("measured/calibration.md", "| set | parameters |")
    for file in ("six.yaml", "eleven.yaml"):
        words = ("--data", data, "--leave-one-out")
        result = run_json(
            "calibrate",
            "linear_delta",
            ROOT / "examples" / "delta_printer" / file,
            *words,
            code=None,
        )
        (after,) = result["errors_after"]
        rms, largest, left_out = (
            1e3 * value
            for value in (after["rms"], after["largest"], result["leave_one_out"]["rms"])
        )
        assert_cells(table, table.row(f"`{file}`"), [rms, largest, left_out], first=2)
    (before,) = result["errors_before"]
    assert_cells(table, table.row("nominal"), [1e3 * before["rms"]], first=2)


# Identification


@cache
def tx40(data: Path, *words: str) -> Any:
    side = ("--side", ROOT / "examples" / "tx40" / "side.yaml", "--data", data)
    recording = ROOT / "examples" / "tx40" / "recording.yaml"
    return run_json("identify", data / "tx40_nomesh.urdf", recording, *side, *words, code=None)


@pytest.fixture
def arm(shared: Path) -> Path:
    if not (data := shared / "data" / "tx40").is_dir():
        pytest.skip(
            "needs the measured log of the TX40 in data/tx40 of the shared folder, which is not here"
        )
    return data


JOINTS = ("--output", "joints")
BEST = (*JOINTS, "--order", "2", "--cutoff", "70", "--standstill", "1e-3")
#: Held-out errors of the arm that are not on a page: Huber's estimator, and what validation chooses, %.
HUBER, HELD_OUT = "4.12 5.20 4.14 11.60 5.85 9.63", "2.0 5.2 3.6 5.0 5.6 11.0"
#: Choices that the page leaves out.
NOT_ON_THE_PAGE = [
    "order 2 chosen by validation, error 6.56 % (4: 6.75 %, 6: 6.79 %)",
    "standstill 0.001 chosen by validation, error 6.15 % (1e-06: 6.56 %, 0.003: 6.16 %, 0.01: 6.41 %, "
    "0.03: 7.18 %, 0.1: 10.8 %)",
]
PRESLIDING = tuple(word for k in range(1, 7) for word in ("--presliding", f"joint_{k}"))


def percent(document: Any, part: str = "held_out") -> list[float]:
    """Of a fit, or of what is judged beside it."""
    rows = (
        [output[part] for output in document["outputs"]]
        if "outputs" in document
        else document[part]
    )
    return [row["rmse_percent"] for row in rows]


def test_the_measured_arm(arm: Path) -> None:
    table = page_table("identification/tx40.md", "| | data |")
    recorded = tx40(arm, *JOINTS)
    assert_cells(table, table.row("Tauloop"), percent(recorded["whole_log"], "training"), first=2)
    assert_cells(table, table.rows[3], percent(recorded), first=2)
    assert_cells(
        table, table.row("`--order 2`"), percent(tx40(arm, *JOINTS, "--order", "2")), first=2
    )
    motors = tx40(arm, "--output", "actuators")
    assert_cells(table, table.row("`--output actuators` (motors)"), percent(motors), first=2)
    page = (ROOT / "docs" / "identification" / "tx40.md").read_text(encoding="utf-8")
    few = tx40(arm, *BEST, "--essential", "0.5")["essential"]
    assert " ".join(f"{value:.2f}" for value in percent(few)) in page
    huber = " ".join(f"{value:.2f}" for value in percent(tx40(arm, *JOINTS, "--estimator", "irls")))
    assert huber == HUBER


def test_the_choices_for_the_measured_arm(
    arm: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The recording without its preparation: what validation chooses is on the page, but for two lines."""
    text = (ROOT / "examples" / "tx40" / "recording.yaml").read_text(encoding="utf-8")
    recording = tmp_path / "recording.yaml"
    recording.write_text(
        "".join(line for line in text.splitlines(True) if not line.startswith("preparation"))
    )
    side = ("--side", ROOT / "examples" / "tx40" / "side.yaml", "--data", arm)
    result = run_json("identify", arm / "tx40_nomesh.urdf", recording, *side, *JOINTS, code=None)
    ours = [note for note in result["channels"]["notes"] if "chosen by validation" in note]
    held_out = " ".join(f"{value:.1f}" for value in percent(result))
    path = DOCS / "identification" / "preparation.md"
    page = path.read_text(encoding="utf-8")
    begin = page.index("```text\n", page.index("prints each choice")) + len("```text\n")
    end = page.index("\n```", begin)
    if request.config.getoption("--update-tables"):
        shown = "\n".join([ours[0], "...", *ours[3:]])
        path.write_text(page[:begin] + shown + page[end:], encoding="utf-8")
        return
    first, dots, last = page[begin:end].splitlines()
    assert dots == "..."
    printed = [first, *NOT_ON_THE_PAGE, last]
    assert [re.sub(r"[\d.e-]+", "#", line) for line in printed] == [
        re.sub(r"[\d.e-]+", "#", line) for line in ours
    ]
    for theirs, mine in zip(printed, ours, strict=True):
        assert all(
            same(a, float(b), CHOSEN) for a, b in zip(numbers(theirs), numbers(mine), strict=True)
        ), mine
    assert all(
        same(a, float(b), CHOSEN) for a, b in zip(numbers(HELD_OUT), numbers(held_out), strict=True)
    ), held_out


def test_the_measured_arm_under_limits_and_with_presliding(arm: Path) -> None:
    free = percent(tx40(arm, *BEST))
    consistent = percent(tx40(arm, *BEST, "--consistent")["consistent"])
    assert all(np.array(consistent) < 1.04 * np.array(free))
    page = " ".join((DOCS / "identification" / "friction.md").read_text(encoding="utf-8").split())
    (sentence,) = re.findall(r"`--presliding` those of joints 1 and 2 (from .*? %)\.", page)
    presliding = percent(tx40(arm, *BEST, *PRESLIDING))
    ours = (free[0], presliding[0], free[1], presliding[1])
    for printed, value in zip(numbers(sentence), ours, strict=True):
        assert same(printed, value), (sentence, ours)


def held_out_percent(model: tl.Model, log: Signals, preparation: Preparation) -> list[float]:
    result = fit_regression(
        *split_data(regression_data(model, log, preparation), 0.7), WeightedLeastSquares()
    )
    return [part.rmse_percent for part in result.held_out]


def test_velocities_of_encoders_and_tachometers() -> None:
    """A five-bar for 20 s at 1 kHz: one multisine, encoders with steps, tachometers and torques with noise."""
    model = tl.Model(tl.load("five_bar"))
    excitation = random_multisine(
        model.actuator_position(model.assembly.q),
        np.full(2, 0.3),
        np.random.default_rng(3),
        terms=5,
        lowest=0.2,
        highest=3.0,
    )
    motion = excitation.sample(np.arange(20_000) / 1000.0)
    start = model.actuators.track(motion.position).q
    forces = model.actuators.inverse_dynamics(
        motion.position, motion.velocity, motion.acceleration, start=start
    ).force
    preparation = Preparation(cutoff=20.0, trim=200, decimation=10)
    #: Mean held-out error, %, by the tachometer's noise (rad/s) and the source of velocities.
    stated = {
        0.01: {"positions": 1.0, "measured": 0.3, "fused": 0.3},
        0.1: {"positions": 1.0, "measured": 2.2, "fused": 0.7},
    }
    for tachometer, errors in stated.items():
        rng, step, channels = np.random.default_rng(7), 2 * np.pi / 4000, []
        for k, name in enumerate(("motor_1", "motor_2")):
            noise = rng.normal(size=(2, len(motion.time)))
            for quantity, values, unit_of in (
                ("position", np.round(motion.position[:, k] / step) * step, "rad"),
                ("velocity", motion.velocity[:, k] + tachometer * noise[0], "rad/s"),
                ("force", forces[:, k] + 0.02 * noise[1], "N m"),
            ):
                channels.append(
                    Channel(quantity=quantity, channel=name, values=values, unit=unit_of)
                )
        log = Signals(time=motion.time, channels=tuple(channels))
        for source, error in errors.items():
            ours = held_out_percent(model, log, replace(preparation, velocity=source))
            assert float(np.mean(ours)) == pytest.approx(error, abs=0.06), (tachometer, source)


def test_excitation_of_the_reduced_spidermill(tmp_path: Path) -> None:
    """Two minutes of processor time."""
    machine = tmp_path / "reduced.yaml"
    spindles = (
        "--massless-rods",
        "side1.spindle",
        "--massless-rods",
        "side2.spindle",
        "--share-parameters",
    )
    run("model", "reduce", "spidermill", *spindles, "--out", machine, code=None)
    drives = ("--direct-drives", "side1.base_outer_pin", "--direct-drives", "side2.base_outer_pin")
    limits = (
        "--harmonics",
        7,
        "--period",
        7.29,
        "--stroke",
        0.4,
        "--max-velocity",
        2,
        "--max-acceleration",
        10,
    )
    first = [
        f"side1.{name}"
        for name in ("lower_outer.mcx", "lower_outer.Izz", "upper_inner.h", "upper_inner.J")
    ]
    words = (
        *drives,
        *limits,
        *(word for name in first for word in ("--preferred-parameters", name)),
    )
    best = run_json(
        "plan",
        "excitation",
        machine,
        *words,
        "--random",
        10000,
        "--starts",
        4,
        "--workers",
        2,
        code=None,
    )
    unit_norm = run_json(
        "plan",
        "excitation",
        machine,
        *words,
        "--criterion",
        "unit-condition",
        "--random",
        300,
        "--starts",
        2,
        code=None,
    )
    table = page_table("identification/excitation.md", "| motion | SI units |")
    random = best["random"]
    ours = (
        (best["condition"]["si"], best["condition"]["unit_norm"]),
        (unit_norm["condition"]["si"], unit_norm["condition"]["unit_norm"]),
        (random["best_si"], random["best_unit_norm"]),
        (random["median_si"], random["median_unit_norm"]),
    )
    for k, (row, values) in enumerate(zip(table.rows, ours, strict=True)):
        printed = [float(number) for cell in row[1:] for number in numbers(cell.replace("*", ""))]
        # what an optimum has beside its criterion is chance
        minimized = slice(k, k + 1) if k < 2 else slice(2)
        assert list(values[minimized]) == pytest.approx(printed[minimized], rel=OPTIMUM)


def test_intervals_cover_what_the_page_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Minutes: the benchmark that makes both tables."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    assert importlib.import_module("interval_coverage").main(["--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    drifting, stribeck = result["stressed"][1], result["stressed"][4]
    drifts = [100.0 * drifting[key] for key in ("autocorrelated", "logs")]
    assert drifts == pytest.approx([74.0, 88.0], abs=COUNTED)
    choices = ("independent", "autocorrelated", "blocks", "logs", "logs apart")
    assert 100.0 * max(stribeck[key] for key in choices) == pytest.approx(49.0, abs=COUNTED)
    table = page_table("identification/estimators.md", "| encoder noise |")
    pairs = zip(result["position_noise"][::2], result["position_noise"][1::2], strict=True)
    for row, (squares, instruments) in zip(table.rows, pairs, strict=True):
        for cells, ours in ((row[1:3], squares), (row[3:5], instruments)):
            assert float(numbers(cells[0])[0]) == pytest.approx(
                ours["largest_bias_in_scatters"], abs=2 * unit("0.1")
            )
            assert float(numbers(cells[1])[0]) == pytest.approx(
                100.0 * ours["covered"], abs=COUNTED
            )
    page = " ".join(
        (ROOT / "docs" / "identification" / "error-bars.md").read_text(encoding="utf-8").split()
    )
    for name, stem in (("autocorrelated", "`autocorrelated` "), ("independent", "`independent` ")):
        (covered,) = [part["covered"] for part in result["torque_noise"] if part["errors"] == name]
        assert f"{stem}{100.0 * covered:.1f} %" in page


#: Logs of each condition, and by how much shares of that many may differ from those of the page, %.
COVERAGE_LOGS, SHARES_APART = 60, np.array([5.0, 12.0, 20.0])


def test_intervals_cover_the_truth_of_closed_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Minutes: what `python benchmarks/independent_coverage.py --markdown docs/identification/error-bars.md` writes."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    coverage = importlib.import_module("independent_coverage")
    rows = list(coverage.rows_of(COVERAGE_LOGS))
    table = page_table("identification/error-bars.md", "| machine | condition | covered |")
    for printed, row in zip(table.rows, rows, strict=True):
        assert printed[:2] == (row["machine"], row["condition"])
        covered, worst, ok = coverage.fractions(row)
        shares = [100.0 * covered, 100.0 * worst, 100.0 * ok]
        on_page = [float(numbers(cell)[0]) for cell in printed[2:]]
        assert (np.abs(np.subtract(shares, on_page)) <= SHARES_APART).all(), row
        if ok > 0.5:
            assert covered > 0.9
            assert worst > 0.75
