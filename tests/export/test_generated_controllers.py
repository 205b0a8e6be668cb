"""Generated controllers: whatever they read, forces are numbers within their limits, and flags say what was wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers, sanitizing_compilers
from controlled import LIMIT, Loop, model
from hypothesis import given, settings, strategies as st

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.export.controller import FLAGS, ControllerSample

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)

#: The same equations by two printers of code: some thousand operations.
SAME = 1e-9
night = pytest.mark.nightly
LATE = ("five_bar", "rcid", "random", "redundant delta", "redundant five_bar")
MACHINES = ("delta", *(pytest.param(name, marks=night) for name in LATE))
#: Eight struts for six freedoms, which reach any pose.
STRUTS = "redundant cable_robot"
LAWS = (
    "computed-torque",
    *(pytest.param(name, marks=night) for name in ("feed-forward", "gravity", "pd")),
)


def names(sample: ControllerSample) -> set[str]:
    return set(sample.names)


def running(name: str, count: int = 8, **parameters: float) -> Loop:
    """A loop after some good samples."""
    loop = Loop(name, **parameters)
    for _ in range(count):
        assert names(loop.step()) == set()
    return loop


@pytest.mark.parametrize("name", [*MACHINES, pytest.param(STRUTS, marks=night)])
def test_forces_are_those_of_inverse_dynamics_where_nothing_is_off(name: str) -> None:
    loop = running(name)
    position, velocity, acceleration = loop.motion(loop.samples * loop.period)
    expected = loop.model.platform.inverse_dynamics(
        position, velocity, acceleration, start=loop.model.assembly.q
    ).force
    assert np.abs(loop.step().force - expected).max() < SAME * np.abs(expected).max()


@pytest.mark.parametrize("name", ["delta", pytest.param("redundant delta", marks=night)])
@pytest.mark.parametrize("space", ["joint", pytest.param("platform", marks=night)])
@pytest.mark.parametrize("law", LAWS)
def test_the_compiled_law_runs_a_simulation_as_that_of_the_command_does(
    law: str, space: str, name: str
) -> None:
    """Oracle: the laws of `tauloop control`, whose code is another."""
    stroke = tl.StrokeOptions(end={"x": 0.02}, duration=0.1)
    options = tl.ControlOptions(stroke=stroke, controller=(law,), space=space, bandwidth=60.0)
    own, made = (
        tl.follow_path(model(name), options),
        tl.follow_path_with_exported_code(model(name), options),
    )
    assert set(made.runs) == {law}
    runs = own.runs[law], made.runs[law]
    assert np.abs(runs[0].position - runs[1].position).max() < SAME
    assert np.abs(runs[0].force - runs[1].force).max() < SAME * np.abs(runs[0].force).max()


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_what_is_no_number_is_held_then_stopped_then_braked(name: str, bad: float) -> None:
    loop = running(name)
    before, hold = loop.controller.step(loop.inputs()).force, int(loop.parameter("hold")[0])
    loop.samples += 1
    wrong = np.full(len(loop.model.mechanism.actuators), bad)
    for _ in range(hold):
        sample = loop.step(position=wrong)
        assert names(sample) == {"NOT_A_NUMBER", "HOLDS"}
        assert np.array_equal(sample.force, before), "the last good forces"
    stops = 0
    while not (sample := loop.step(position=wrong)).flags & FLAGS["BRAKES"]:
        assert names(sample) - {"SATURATED"} == {"NOT_A_NUMBER", "STOPS"}
        assert loop.bounded(sample)
        stops += 1
    assert stops * loop.period > float(loop.parameter("settling")[0])
    assert not sample.force.any()
    assert names(loop.step()) == {"BRAKES"}, "only a new beginning ends it"
    assert loop.controller.begin() == 0
    assert names(loop.step()) == set()


def stops_on_the_ramp(loop: Loop, deceleration: float, count: int) -> float:
    """How long a blind stop lasts, s; samples of it follow the ramp from where the last good reference has led."""
    lead, wrong = list(loop.model.assembly.leading), np.full(3, np.nan)
    at, speed, _ = loop.motion((loop.samples - 1) * loop.period)
    state = loop.model.platform.kinematics(at, speed, start=loop.model.assembly.q)
    position = loop.model.actuator_position(state.q[None])[0]
    rate = np.asarray(state.v) @ loop.model.assembly.loops.transmission.T
    lasting = float(np.abs(rate).max() / deceleration)
    for _ in range(3):
        loop.step(position=wrong)
    first = position + 4 * loop.period * rate
    for k in range(count):
        t = min(k * loop.period, lasting)
        motion = (
            first + rate * (t - t**2 / (2 * lasting)),
            rate * (1 - t / lasting),
            -rate / lasting * (k * loop.period < lasting),
        )
        expected = loop.model.actuators.inverse_dynamics(
            *(part[lead] for part in motion), start=state.q
        ).force
        sample = loop.step(position=wrong)
        assert names(sample) == {"NOT_A_NUMBER", "STOPS"}
        assert np.abs(sample.force - expected).max() < SAME * np.abs(expected).max()
    return lasting


def test_a_blind_stop_follows_the_stated_ramp() -> None:
    """Oracle: inverse dynamics of the ramp."""
    loop = running("delta", 120, deceleration=16.0)
    lasting = stops_on_the_ramp(loop, 16.0, 8)
    assert 2 * loop.period < lasting < 8 * loop.period, "both parts of the ramp are seen"


def test_a_blind_stop_of_more_actuators_than_freedoms_has_the_leading_ones_on_the_ramp() -> None:
    """Measured as computed torque is told, then blind: forces are shared, the third motor goes where loops lead it."""
    loop = running("redundant five_bar", 60, deceleration=8.0)
    right = loop.controller.step(loop.inputs())
    loop.samples += 1
    at, speed, acceleration = loop.motion((loop.samples - 1) * loop.period)
    expected = loop.model.platform.inverse_dynamics(
        at, speed, acceleration, start=loop.model.assembly.q
    ).force
    assert np.abs(right.force - expected).max() < SAME * np.abs(expected).max()
    assert stops_on_the_ramp(loop, 8.0, 3) > 3 * loop.period


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("far", [False, True])
def test_a_reference_that_is_none_stops_the_machine_under_control(name: str, far: bool) -> None:
    loop = running(name)
    reference = loop.at + 1e3 if far else np.full(len(loop.at), np.nan)
    seen = [names(loop.step(reference=reference)) - {"SATURATED"} for _ in range(5)]
    assert seen[:3] == [{"REFERENCE", "HOLDS"}] * 3
    assert seen[3:] == [{"REFERENCE", "STOPS"}] * 2


@pytest.mark.parametrize("name", MACHINES)
def test_a_stamp_that_does_not_change_is_a_stale_encoder(name: str) -> None:
    loop = running(name)
    stamp = float(loop.samples - 1)
    seen = [names(loop.step(stamp=stamp)) for _ in range(4)]
    assert seen[:3] == [{"STALE", "HOLDS"}] * 3
    assert {"STALE", "STOPS"} <= seen[3]


def test_good_samples_between_end_the_hold() -> None:
    loop = running("delta")
    for _ in range(6):
        assert names(loop.step(stamp=float(loop.samples - 1))) == {"STALE", "HOLDS"}
        assert names(loop.step()) == set()


def test_an_encoder_that_stands_still_is_stale_only_where_it_should_move() -> None:
    loop = running("delta", stuck_motion=1e-3)
    frozen = loop.inputs()[2:5]
    moved = 0
    while not loop.step(position=frozen, speed=np.zeros(3)).flags & FLAGS["STALE"]:
        moved += 1
    assert moved >= int(loop.parameter("stuck")[0])
    still = Loop("delta", stuck_motion=1e-3)
    at_rest = {
        "reference": still.at,
        "reference_speed": np.zeros(3),
        "reference_acceleration": np.zeros(3),
    }
    position = still.inputs()[2:5]
    for _ in range(50):
        assert names(still.step(position=position, speed=np.zeros(3), **at_rest)) == set()


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("jump", [0.4, 50.0])
def test_a_pose_that_jumps_or_that_there_is_none_of_is_lost(name: str, jump: float) -> None:
    loop = running(name)
    position = loop.inputs()[2 : 2 + len(loop.model.mechanism.actuators)]
    assert names(loop.step(position=position + jump)) == {"LOST", "HOLDS"}
    assert names(loop.step()) == set(), "one sample is forgiven"


def test_a_late_sample_says_so_and_many_of_them_stop() -> None:
    loop = running("delta")
    now = loop.samples * loop.period
    for k in range(1, 4):
        assert names(loop.step(time=now + 1.8 * k * loop.period)) == {"LATE"}
    assert {"LATE", "STOPS"} <= names(loop.step(time=now + 7.2 * loop.period))
    for time in (-1.0, np.nan):
        assert "LATE" in names(running("delta").step(time=time)), (
            "a clock that goes back, or is none"
        )
    missed = running("delta")
    assert {"LATE", "STOPS"} <= names(missed.step(time=(missed.samples + 9) * missed.period))


def test_the_watchdog_runs_out() -> None:
    loop = Loop("delta")
    assert loop.controller.is_expired(0.0), "nothing has begun"
    loop.step()
    assert not loop.controller.is_expired(4 * loop.period)
    assert loop.controller.is_expired(5 * loop.period)
    assert loop.controller.is_expired(np.nan)


@pytest.mark.parametrize("name", MACHINES)
def test_saturated_forces_are_cut_off_and_flagged(name: str) -> None:
    loop = running(name, bandwidth=400.0)
    reference = loop.at.copy()
    reference[loop.free] += 0.02
    sample = loop.step(reference=reference)
    loop.limit[:] = np.abs(sample.force).max() / 2
    sample = loop.step(reference=reference)
    assert "SATURATED" in names(sample)
    assert loop.bounded(sample)
    loop.limit[0] = np.nan
    assert loop.step().force[0] == 0.0, "a limit that is no number lets nothing pass"


def test_other_parameters_begin_nothing() -> None:
    loop = Loop("delta")
    flags = loop.controller.begin(loop.controller.hash ^ 1)
    assert flags == FLAGS["PARAMETERS"] | FLAGS["BRAKES"]
    assert names(loop.step()) == {"PARAMETERS", "BRAKES"}


FAULTS = st.sampled_from(
    [
        "none",
        "none",
        "none",
        "nan",
        "inf",
        "huge",
        "stamp",
        "jump",
        "reference",
        "speed",
        "time",
        "early",
        "far",
        "zero",
    ]
)


def fault(loop: Loop, kind: str) -> dict[str, object]:
    """What a kind of fault makes of the next sample."""
    n_u, now = len(loop.model.mechanism.actuators), loop.samples * loop.period
    rng = np.random.default_rng(loop.samples)
    kinds: dict[str, dict[str, object]] = {
        "none": {},
        "nan": {"position": np.where(rng.random(n_u) < 0.5, np.nan, 0.0)},
        "inf": {"speed": np.full(n_u, np.inf)},
        "huge": {"position": 1e90 * rng.normal(size=n_u)},
        "stamp": {"stamp": np.nan},
        "jump": {"position": rng.normal(size=n_u)},
        "reference": {"reference": np.full(len(loop.at), np.nan)},
        "speed": {"speed": 1e6 * rng.normal(size=n_u)},
        "time": {"time": now + 1e9},
        "early": {"time": now - 1.0},
        "far": {"reference": loop.at + rng.normal(size=len(loop.at))},
        "zero": {"position": np.zeros(n_u), "reference": np.zeros(len(loop.at))},
    }
    return kinds[kind]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", MACHINES)
@settings(max_examples=25, deadline=None)
@given(faults=st.lists(FAULTS, min_size=3, max_size=30))
def test_whatever_comes_forces_are_numbers_within_their_limits(
    name: str, law: str, faults: list[str]
) -> None:
    loop = Loop(name, law=law, space="platform" if law == "gravity" else "joint")
    was_braked = False
    for kind in faults:
        sample = loop.step(**fault(loop, kind))
        assert loop.bounded(sample)
        assert np.isfinite(loop.controller.memory).all()
        assert not was_braked or sample.flags & FLAGS["BRAKES"]
        was_braked = bool(sample.flags & FLAGS["BRAKES"])
        assert sum(sample.flags & FLAGS[flag] != 0 for flag in ("HOLDS", "STOPS", "BRAKES")) <= 1


@pytest.mark.parametrize(
    "name", ["five_bar", *(pytest.param(name, marks=night) for name in ("delta", "rcid", STRUTS))]
)
def test_what_is_exported_checks_itself_under_strict_compilers_and_sanitizers(
    name: str, tmp_path: Path
) -> None:
    options = tl.ControllerOptions(limit=(LIMIT,))
    export = tl.export_controller(model(name), options, folder=tmp_path)
    assert export.files == tl.export_controller(model(name), options).files, (
        "the same machine gives the same texts"
    )
    sources = [str(tmp_path / f"{export.name}{end}") for end in (".c", "_check.c")]
    words = ("-std=c99", "-O0", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic")
    program = tmp_path / "check"
    safe = ("-fsanitize=undefined,address", "-fno-sanitize-recover=all")
    able = sanitizing_compilers(safe)
    if not able:
        pytest.skip("needs a compiler with the runtime library of its sanitizers")
    for compiler in able[: 1 if name == "five_bar" else None]:
        subprocess.run([compiler, *words, *safe, *sources, "-o", str(program), "-lm"], check=True)
        done = subprocess.run([program], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "all is well\n"), compiler


def test_speeds_are_differences_of_positions_where_nobody_measures_them() -> None:
    """Oracle: the controller that reads speeds, and reads these differences."""
    alike, period = model("five_bar"), 1e-3
    reads, differs = (
        tl.export.controller.CompiledController(
            alike, tl.ControllerOptions(velocity_differences=on)
        )
        for on in (False, True)
    )
    readings, at = (
        reads.equations.readings(alike.assembly.q),
        alike.platform.ports.at(alike.assembly.q),
    )
    before = readings
    for k in range(5):
        position = readings + 1e-4 * np.array([np.sin(k), np.cos(k) - 1])
        speed, before = (position - before) / period, position
        seen = {"position": position, "reference": at}
        expected = reads.step(reads.equations.sample(k * period, k + 1.0, speed=speed, **seen))
        sample = differs.step(differs.equations.sample(k * period, k + 1.0, **seen))
        assert np.array_equal(sample.force, expected.force)
        assert sample.flags == expected.flags == 0


def test_what_fits_no_machine_is_refused() -> None:
    for options, what in {
        tl.ControllerOptions(): "has no limit",
        tl.ControllerOptions(controller="drive"): "has a drive line",
        tl.ControllerOptions(deceleration=(1.0, 2.0)): "2 numbers for 6 actuators",
        tl.ControllerOptions(limit=(1.0, 2.0)): "2 numbers for 6 forces",
    }.items():
        with pytest.raises(InputError, match=what):
            tl.export_controller(model("random"), options)
    with pytest.raises(InputError, match="is a cable"):
        tl.export_controller(tl.load("cable_robot"))
    with pytest.raises(
        InputError,
        match=r"(?s)4 actuators for 3 degrees of freedom; .* work against each other.*distributes the forces",
    ):
        tl.export_controller(model("redundant delta"), tl.ControllerOptions(controller="drive"))
