"""Continuation of positions: along straight lines from an assembled pose, and along a motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.errors import AssemblyError, PoseError
from tauloop.compiler.c.calling.evaluator import compiled_diagnostics
from tauloop.compiler.c.calling.tracking import LONG_MOTION, SEAM, require_continuity
from tauloop.compiler.solving.position import continued, nearest_turns, turn_near
from tauloop.compiler.state import SolveDiagnostics, State
from tauloop.equations.ports import checked, coordinate_units, numbers
from tauloop.model.runner import Runner

#: A start belongs to another assembly mode if it differs by more than this, rad or characteristic
#: lengths, from the solution of the closed forms.
OTHER_MODE = 1e-3


def follow(runner: Runner, position: object, start: object | None = None) -> State:
    """Return all coordinates by continuation from a pose; see `Model.forward_kinematics`."""
    # only iterations need finite inputs; the results of closed forms are checked later
    is_iterated = runner.iterates
    arrays, single = checked(
        {"position": runner.ports.position}, {"position": position}, finite=is_iterated
    )
    target = arrays["position"]
    q = runner.assembly.q if start is None else runner.pose(start)
    if start is not None:
        runner_of_branch = runner.on_branch_of(q)
        if runner_of_branch is not runner:
            return follow(runner_of_branch, position, q)
        _require_assembled(runner, q)
    current = np.broadcast_to(q, (len(target), len(q)))
    if is_iterated:
        state = runner.followed(target, current)
    else:
        state = runner.kinematics({"position": target}, current)
    if not runner.catalogue.positions.turns_matter:

        def choose_revolutions(part: slice) -> tuple[()]:
            turn_near(state.q[part], q, runner.catalogue.positions.turning)
            return ()

        runner.in_pieces(len(target), choose_revolutions)
    state = replace(
        state, turns=replace(state.turns, nearest="reference pose" if start is None else "start")
    )
    return state.single() if single else state


def _require_assembled(runner: Runner, start: np.ndarray) -> None:
    """Raise an error if the loops of a start pose are open."""
    state = runner.reached({"position": runner.ports.at(start)}, start)
    scale = runner.assembly.loops.coordinate_scale
    gap = np.abs(state.q - start) / scale
    is_angle = np.array(runner.topology.is_angle, dtype=bool)
    gap[is_angle] = np.abs((gap[is_angle] + np.pi) % (2 * np.pi) - np.pi)
    worst = int(np.argmax(np.nan_to_num(gap, nan=np.inf)))
    if state.health.is_reached.all() and gap[worst] > OTHER_MODE:
        name = runner.topology.coordinate_names[worst]
        unit = coordinate_units(runner.topology)[worst]
        difference = gap[worst] * scale[worst]
        what = (
            f"is not assembled: its loops are open; in the nearest closed pose, {name} differs by "
            f"{difference:.3g} {unit}"
        )
        raise AssemblyError.of(
            "start", what, "give an assembled pose; `tauloop modes` lists all poses at a position"
        )


def track(runner: Runner, position: object, start: object | None = None) -> State:
    """Return all coordinates of consecutive samples, each followed from the samples before it.

    `follow` computes the first sample, and machine code the others. Without a compiler, `follow`
    computes all samples. Long motions are divided into segments that run in parallel vector lanes,
    and `follow` computes the first sample of each. If the ends of segments do not match, all
    samples are followed one by one. Angles continue without jumps from the revolution of the first
    sample.

    Args:
        runner: runner of the model's programs.
        position: given positions (N, n) in the order of time.
        start: assembled coordinates (n_q,); the default is the reference pose.

    Raises:
        PoseError: out of reach; the message states the loop and its gap.
        AssemblyError: the motion jumps because it has left its assembly mode.
    """
    target = np.atleast_2d(
        checked({"position": runner.ports.position}, {"position": position})[0]["position"]
    )
    if start is not None:
        runner_of_branch = runner.on_branch_of(runner.pose(start))
        if runner_of_branch is not runner:
            return track(runner_of_branch, target, start)
    if not runner.iterates and not runner.catalogue.positions.turns_matter:
        return _continued(runner, runner.kinematics({"position": target}), start)
    n = len(target)
    # lanes are faster only where the compiler vectorizes them
    has_lanes = n >= LONG_MOTION and runner.evaluator.is_large(n)
    tracked = _tracked(runner, target, start, True) if has_lanes else None
    tracked = _tracked(runner, target, start, False) if tracked is None else tracked
    if tracked is None:
        return _continued(runner, follow(runner, target, start), None)
    q, health = tracked
    if not health.is_reached.all():
        has_failed = ~np.isfinite(q).all(axis=1)
        return runner.kinematics({"position": target}, np.where(has_failed[:, None], q[0], q))
    topology = runner.topology
    is_angle = np.array(topology.is_angle)
    scale = np.where(is_angle, 1.0, runner.assembly.loops.length)
    require_continuity(q, topology.coordinate_names, scale, is_angle)
    return _from_sample_before(runner.state({"q": q}, health, start), q)


def with_continuous_angles(runner: Runner, state: State) -> State:
    """Return independently solved samples of a motion with angles continued without jumps."""
    if runner.catalogue.positions.turns_matter:
        return track(runner, runner.ports.at(state.q), state.q[0])
    return _continued(runner, state, None)


def _from_sample_before(state: State, q: np.ndarray) -> State:
    """Return a state with coordinates (N, n_q) whose revolutions follow the previous sample."""
    return replace(state, q=q, turns=replace(state.turns, nearest="sample before"))


def _continued(runner: Runner, state: State, start: object | None) -> State:
    """Return samples of a motion with continuous angles, from the revolution nearest to a start."""
    turning = runner.catalogue.positions.turning
    q = continued(state.q, turning)
    if start is not None and len(q):
        first = nearest_turns(q[:1], numbers(start, "start"), turning)
        q = q + (first - q[:1])
    return _from_sample_before(state, q)


def _tracked(
    runner: Runner, target: np.ndarray, start: object | None, in_lanes: bool
) -> tuple[np.ndarray, SolveDiagnostics] | None:
    """Return coordinates along a motion, and the diagnostics.

    Returns None if there is no machine code, or if the ends of segments do not match.
    """
    tracker = runner.tracker(len(target), in_lanes) if len(target) else None
    if tracker is None:
        return None
    try:
        first = follow(runner, target[tracker.starts(len(target))], start).q
    except PoseError:
        if in_lanes:
            return None
        raise
    q, numbers, gap = tracker(
        np.ascontiguousarray(target), np.ascontiguousarray(first), runner.nominal["theta"]
    )
    health = compiled_diagnostics(numbers)
    meets = bool((gap / runner.assembly.loops.coordinate_scale < SEAM).all())
    return None if in_lanes and not (health.is_reached.all() and meets) else (q, health)
