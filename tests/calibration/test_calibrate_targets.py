"""Targets with a turn of their own, exchanged encoders within a time, standard headers, and the width of priors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from calibration_sessions import encoders, machine, measured, part_errors
from scipy.spatial.transform import Rotation
from scipy.stats import multivariate_normal

from tauloop.calibration import (
    Calibration,
    CalibrationOptions,
    FitOptions,
    Frame,
    Orientation,
    Pose,
    Position,
    Tolerances,
    aligned,
    aligned_together,
    calibrate,
    calibration_problem,
    fit_geometry,
    indistinguishable_swaps,
    solve_calibration,
)
from tauloop.calibration.judging.prior_tightness import prior_tightness
from tauloop.calibration.measurements.reading import read_measurements
from tauloop.common.errors import InputError
from tauloop.common.result import Status

NOISE = 1e-6
FRAME = Frame(position=(0.3, -0.2, 0.1), quaternion=(0.8, 0.0, 0.6, 0.0))
#: Standard deviations within which estimates must lie.
SURE = 5.0
#: No search for exchanged encoders of a hexapod, which takes seconds.
WITHOUT_SWAPS = FitOptions(swap_search_time=0.0)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def quaternion(turn: Rotation) -> tuple[float, float, float, float]:
    w, x, y, z = turn.as_quat(scalar_first=True)
    return float(w), float(x), float(y), float(z)


def turn_of(result: Calibration, start: tuple[float, float, float, float]) -> Rotation:
    """The estimated turn of the target, from the documented formula by SciPy."""
    rho = [result.values[f"t.target.r{letter}"] for letter in "xyz"]
    return Rotation.from_quat(
        [1.0, *(0.5 * np.array(rho))], scalar_first=True
    ) * Rotation.from_quat(start, scalar_first=True)


@pytest.mark.parametrize("kind", [Pose, Orientation])
def test_a_target_that_is_mounted_askew_has_a_turn_of_its_own(
    kind: type[Pose] | type[Orientation],
) -> None:
    """Readings by SciPy's rotations (calibration_sessions); without the turn among the unknowns the fit is doubtful."""
    askew = Rotation.from_rotvec([0.1, -0.15, 0.05])
    true = kind(name="t", frame=FRAME, target_quaternion=quaternion(askew))
    series = measured("hexapod", {}, true, encoders("hexapod", 15, rng(), 0.02), NOISE)
    series = replace(series, instrument=replace(true, target_quaternion=(1.0, 0.0, 0.0, 0.0)))
    problems = fit_geometry(
        calibration_problem(machine("hexapod"), [series], ("t.target.r?", "t.frame.r?")), rng()
    )
    assert problems.status is Status.OK, problems.advice
    assert (turn_of(problems, (1.0, 0.0, 0.0, 0.0)) * askew.inv()).magnitude() < 1e-5
    blind = fit_geometry(
        calibration_problem(machine("hexapod"), [series], ("t.frame.r?",)),
        rng(),
        options=FitOptions(reject_implausible=False),
    )
    assert blind.status is Status.DOUBTFUL


def test_a_target_that_is_turned_by_a_right_angle_is_found_from_alignment() -> None:
    turn = Rotation.from_euler("zx", [90, -100], degrees=True)
    true = Pose(name="t", frame=FRAME, target_quaternion=quaternion(turn), target=(0.02, 0.0, 0.05))
    series = measured("hexapod", {}, true, encoders("hexapod", 15, rng(), 0.02), NOISE)
    lost = replace(
        series, instrument=replace(true, target_quaternion=(1.0, 0.0, 0.0, 0.0), frame=Frame())
    )
    start = aligned(machine("hexapod"), lost)
    assert isinstance(start.instrument, Pose)
    problems = fit_geometry(
        calibration_problem(machine("hexapod"), [start], ("t.target.*", "t.frame.*")), rng()
    )
    assert problems.status is Status.OK, problems.advice
    assert (turn_of(problems, start.instrument.target_quaternion) * turn.inv()).magnitude() < 1e-5


def test_alignment_leaves_a_target_that_is_hardly_turned_as_it_is() -> None:
    series = measured(
        "hexapod", {}, Pose(name="t", frame=FRAME), encoders("hexapod", 8, rng(), 0.02), NOISE
    )
    result = aligned(machine("hexapod"), series).instrument
    assert isinstance(result, Pose)
    assert result.target_quaternion == (1.0, 0.0, 0.0, 0.0)


def test_a_targets_quaternion_has_length_one() -> None:
    series = measured("hexapod", {}, Pose(name="t"), encoders("hexapod", 8, rng(), 0.02), NOISE)
    wrong = replace(series, instrument=Pose(name="t", target_quaternion=(2.0, 0.0, 0.0, 0.0)))
    with pytest.raises(InputError, match=r"t\.target: the quaternion has length 2"):
        calibration_problem(machine("hexapod"), [wrong], ("t.frame.x",))


def test_the_search_for_exchanged_encoders_ends_when_its_time_is_over() -> None:
    series = measured(
        "hexapod", {}, Position(name="t"), encoders("hexapod", 20, rng(), 0.02), NOISE
    )
    problem = calibration_problem(machine("hexapod"), [series], ("encoder.*.offset",))
    solution = solve_calibration(problem)
    off = indistinguishable_swaps(problem, solution, 0.0)
    assert (off.tried, off.total, off.pairs) == (0, 15, ())
    began = process_time()
    some = indistinguishable_swaps(problem, solution, 1e-9)
    single = process_time() - began
    assert some.tried <= 1
    began = process_time()
    part = indistinguishable_swaps(problem, solution, 0.3)
    assert process_time() - began < 0.3 + 5 * max(single, 0.1)
    assert 1 <= part.tried <= part.total
    with pytest.raises(InputError, match="swap_search_time: is -1"):
        FitOptions(swap_search_time=-1.0)


def table(path: Path) -> Path:
    """A table with standard headers, in mm."""
    name = "gantry_tau_3dof"
    true = part_errors(name, ("track*.length",), 3e-4, rng())
    series = measured(name, true, Position(name="t"), encoders(name, 25, rng()), 2e-5)
    header = [f"encoder.{a.name} [mm]" for a in machine(name).actuators] + [
        f"measured.{c} [mm]" for c in "xyz"
    ]
    values = 1e3 * np.hstack([series.encoders, series.readings])
    np.savetxt(path, values, delimiter=",", header=",".join(header), comments="", fmt="%.9f")
    return path


def test_a_table_with_standard_headers_needs_no_map_inside_a_series(tmp_path: Path) -> None:
    path, name = table(tmp_path / "tracker.csv"), "gantry_tau_3dof"
    text = "format: tauloop-measurements/1\nseries:\n  - {path: tracker.csv, kind: position, noise: 0.02 mm}\n"
    (tmp_path / "m.yaml").write_text(text, encoding="utf-8")
    (mine,) = read_measurements(tmp_path / "m.yaml", machine(name)).series
    (bare,) = read_measurements(path, machine(name), noise=2e-5).series
    assert np.array_equal(mine.encoders, bare.encoders)
    assert np.array_equal(mine.readings, bare.readings)
    (tmp_path / "m.yaml").write_text(
        text.replace("position", "pose").replace("0.02 mm", NOISES), encoding="utf-8"
    )
    with pytest.raises(InputError, match=r"no column 'measured\.qw'"):
        read_measurements(tmp_path / "m.yaml", machine(name))


NOISES = "[0.02 mm, 0.02 mm, 0.02 mm, 1 mrad, 1 mrad, 1 mrad]"


def test_the_search_for_exchanges_takes_the_time_that_it_is_given(tmp_path: Path) -> None:
    path, mechanism = table(tmp_path / "tracker.csv"), machine("gantry_tau_3dof")
    for seconds, tried in ((0.0, 0), (60.0, 3)):
        options = CalibrationOptions(
            noise="0.02 mm", parameters=("track*.length",), fit=FitOptions(swap_search_time=seconds)
        )
        assert calibrate(mechanism, path, options).exchanges.tried == tried


def fitted(size: float, tolerance: float) -> Calibration:
    """A fit of lengths that are off by a size under priors of a deviation, m."""
    name = "gantry_tau_6link"
    true = part_errors(name, ("*.length", "*.B_?"), size, np.random.default_rng(3))
    series = measured(name, true, Position(name="t"), encoders(name, 40, rng()), 2e-5)
    tolerances = Tolerances(length=tolerance, priors=("*",))
    return fit_geometry(
        calibration_problem(machine(name), [series], ("*.length", "*.B_?"), tolerances=tolerances),
        rng(),
    )


def test_priors_that_are_too_tight_are_told_by_the_data() -> None:
    """Errors of 1 mm under priors of 0.1 mm, of 1 mm, and of 10 mm: only the first are held against the data."""
    for tolerance, width, doubtful in ((1e-4, 10.0, True), (1e-3, 1.0, False), (1e-2, 0.1, False)):
        estimate = fitted(1e-3, tolerance)
        tightness = estimate.prior_tightness
        assert tightness is not None
        assert tightness.unknowns == 24
        assert 0.5 * width < tightness.width < 2.0 * width
        assert tightness.lower < tightness.width < tightness.upper
        assert any("priors are too tight" in line for line in estimate.advice) is doubtful


def test_the_likelihood_of_a_width_is_that_of_a_normal_distribution() -> None:
    """SciPy's density of the linearised measurements with their whole covariance, free unknowns as very wide priors."""
    estimate = fitted(1e-3, 1e-3)
    tightness = prior_tightness(estimate.problem, estimate.solution, known_noise=True)
    assert tightness is not None
    J, D = estimate.solution.jacobian, 1.0 / estimate.solution.prior
    start = estimate.solution.residual - J @ estimate.solution.correction

    def density(width: float) -> float:
        spread = np.eye(len(start)) + (width * J * D) @ (width * J * D).T
        return float(multivariate_normal(cov=spread, allow_singular=False).logpdf(start))

    assert 2.0 * (density(tightness.width) - density(1.0)) == pytest.approx(
        tightness.ratio, abs=1e-2
    )
    assert density(tightness.width) > max(
        density(0.9 * tightness.width), density(1.1 * tightness.width)
    )


def tied(letters: str) -> tuple[str, ...]:
    """Unknowns that give the frames of both series one correction."""
    return tuple(f"{letter}=t?.frame.{letter}" for letter in letters.split())


@pytest.mark.parametrize("starts", ["equal", "apart"])
def test_tied_frames_of_one_tracker_with_two_targets_are_as_good_as_untied_ones(
    starts: str,
) -> None:
    """Targets are known to 4 mm. Frames that start apart stay apart: a tie holds their corrections equal."""
    name, noise = "hexapod", 2e-5
    radius = machine(name).parameters["base_radius"].value + 0.5e-3
    draw = rng()
    positions = encoders(name, 40, draw, 0.05)
    offsets = {
        "t1": np.zeros(3),
        "t2": np.array([0.5, 0.2, -0.1]) if starts == "apart" else np.zeros(3),
    }
    targets = {"t1": (0.1, 0.0, 0.05), "t2": (-0.05, 0.1, 0.08)}
    guesses = {"t1": (0.104, 0.003, 0.05), "t2": (-0.05, 0.097, 0.084)}
    series = []
    for seed, (tracker, target) in enumerate(targets.items()):
        x, y, z = (float(value) for value in np.array(FRAME.position) + offsets[tracker])
        frame = replace(FRAME, position=(x, y, z))
        instrument = Position(name=tracker, target=target, frame=frame)
        read = measured(name, {"base_radius": radius}, instrument, positions, noise, seed=seed)
        start_x, start_y, start_z = (float(value) for value in offsets[tracker])
        start = Position(
            name=tracker, target=guesses[tracker], frame=Frame(position=(start_x, start_y, start_z))
        )
        series.append(replace(read, instrument=start))
    results = {}
    for case, frames in (("tied", tied("x y z rx ry rz")), ("untied", ("t?.frame.*",))):
        options = CalibrationOptions(
            parameters=(*frames, "t?.target.?", "base_radius"), align=True, fit=WITHOUT_SWAPS
        )
        result = calibrate(machine(name), series, options)
        assert result.status is Status.OK, result.advice
        (results[case],) = [
            estimate for estimate in result.estimates if estimate.name == "base_radius"
        ]
    assert abs(results["tied"].value - radius) < SURE * results["tied"].deviation
    assert results["tied"].deviation <= 1.05 * results["untied"].deviation


def test_one_target_that_two_trackers_read_has_one_turn() -> None:
    """The target is mounted half a radian askew, which both series start from alike."""
    name, noise = "hexapod", 2e-5
    radius = machine(name).parameters["base_radius"].value + 0.5e-3
    askew = quaternion(Rotation.from_rotvec([0.3, -0.4, 0.2]))
    frames = {"t1": FRAME, "t2": Frame(position=(-0.4, 0.1, 0.2), quaternion=(0.6, 0.8, 0.0, 0.0))}
    draw = rng()
    series = []
    for seed, (tracker, frame) in enumerate(frames.items()):
        positions = encoders(name, 25, draw, 0.05)
        instrument = Pose(
            name=tracker, target=(0.0, 0.0, 0.05), target_quaternion=askew, frame=frame
        )
        read = measured(name, {"base_radius": radius}, instrument, positions, noise, seed=seed)
        series.append(replace(read, instrument=Pose(name=tracker, target=(0.0, 0.0, 0.05))))
    turns = tuple(f"{letter}=t?.target.{letter}" for letter in ("rx", "ry", "rz"))
    options = CalibrationOptions(
        parameters=("t?.frame.*", *turns, "base_radius"), align=True, fit=WITHOUT_SWAPS
    )
    result = calibrate(machine(name), series, options)
    assert result.status is Status.OK, result.advice
    (estimate,) = [item for item in result.estimates if item.name == "base_radius"]
    assert abs(estimate.value - radius) < SURE * estimate.deviation
    starts = {item.instrument.target_quaternion for item in result.problem.series}
    assert len(starts) == 1


def test_two_series_of_one_tracker_are_aligned_to_one_frame() -> None:
    """Each by itself would get a frame of its own, and one instrument cannot have two."""
    name = "gantry_tau_3dof"
    draw = rng()
    series = [
        measured(
            name, {}, Position(name="t", frame=FRAME), encoders(name, 12, draw), NOISE, seed=seed
        )
        for seed in range(2)
    ]
    unplaced = [replace(item, instrument=Position(name="t")) for item in series]
    options = CalibrationOptions(parameters=("track*.length", "t.frame.*"), align=True)
    assert (
        len(
            {item.instrument for item in calibrate(machine(name), unplaced, options).problem.series}
        )
        == 1
    )


def test_a_tied_series_of_two_components_takes_the_frame_that_the_other_places() -> None:
    name = "gantry_tau_3dof"
    draw = rng()
    both = [
        measured(name, {}, Position(name="t1", frame=FRAME), encoders(name, 12, draw), NOISE),
        measured(
            name,
            {},
            Position(name="t2", frame=FRAME, components="xz"),
            encoders(name, 12, draw),
            NOISE,
        ),
    ]
    unplaced = [replace(item, instrument=replace(item.instrument, frame=Frame())) for item in both]
    placed = aligned_together(machine(name), unplaced, tied("x y z rx ry rz"))
    for item in placed:
        assert np.allclose(item.instrument.frame.position, FRAME.position, atol=1e-4)
        assert np.allclose(
            np.abs(item.instrument.frame.quaternion), np.abs(FRAME.quaternion), atol=1e-4
        )
    with pytest.raises(InputError, match="each cannot determine a frame"):
        aligned_together(machine(name), unplaced)
