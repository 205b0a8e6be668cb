"""Excitations of cable machines keep tensions within bounds: HiGHS on lines of its own says that some are."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.optimize import linprog

import tauloop
from tauloop.equations.ports import PLATFORM
from tauloop.identification.excitation.limits import ExcitationLimits
from tauloop.identification.excitation.problem import ExcitationProblem, ExcitationTask
from tauloop.identification.excitation.search import random_search
from tauloop.motion import SampledMotion

A = np.array([(-1.3, -0.9), (1.1, -1.0), (1.2, 1.2), (-1.2, 1.1)])
B = np.array([(-0.2, 0.1), (0.25, 0.1), (0.2, -0.1), (-0.2, -0.12)])
LEAST, GREATEST, MASS, MOMENT = 5.0, 100.0, 3.0, 0.05


def text() -> str:
    """A plate in a vertical plane on four cables."""
    rods = [
        f"  c{i}: {{from: {{on: base, at: [{a[0]} m, {a[1]} m, 0]}}, to: {{on: plate, at: [{b[0]} m, {b[1]} m, 0]}}, "
        f"telescopic: {{reference: 1 m}}, model: massless, tension: {{least: {LEAST} N, greatest: {GREATEST} N}}}}"
        for i, (a, b) in enumerate(zip(A, B, strict=True), 1)
    ]
    inertia = f"{{xx: {MOMENT} kg m^2, yy: {MOMENT} kg m^2, zz: {MOMENT} kg m^2}}"
    return "\n".join(
        [
            "format: tauloop-machine/1",
            "name: planar",
            "provenance: {status: chosen, source: a test}",
            "gravity: [0, -9.81 m/s^2, 0]",
            f"bodies: {{plate: {{mass: {MASS} kg, inertia: {inertia}}}}}",
            "rods:",
            *rods,
            "actuators: {w1: {on: c1}, w2: {on: c2}, w3: {on: c3}, w4: {on: c4}}",
            "platform: {body: plate, motion: planar, independent: [x, y, angle], reference: {at: [0, 0, 0]}}",
        ]
    )


def margin(p: np.ndarray, a: np.ndarray) -> float:
    """max m with LEAST + m <= T <= GREATEST - m that gives an acceleration at x, y, angle, by HiGHS."""
    c, s = np.cos(p[2]), np.sin(p[2])
    arms = B @ np.array([[c, s], [-s, c]])
    u = A - (p[:2] + arms)
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    W = np.vstack([u.T, arms[:, 0] * u[:, 1] - arms[:, 1] * u[:, 0]])
    ones = np.ones((4, 1))
    solution = linprog(
        [0, 0, 0, 0, -1],
        A_ub=np.block([[-np.eye(4), ones], [np.eye(4), ones]]),
        b_ub=np.r_[np.full(4, -LEAST), np.full(4, GREATEST)],
        A_eq=np.c_[W, np.zeros(3)],
        b_eq=[MASS * a[0], MASS * (a[1] + 9.81), MOMENT * a[2]],
        bounds=[(None, None)] * 5,
        method="highs",
    )
    return float(-solution.fun)


@cache
def problem() -> ExcitationProblem:
    """Motions of half a metre a second and so fast that tensions bind."""
    limits = ExcitationLimits(stroke=0.3, singularity=0.0)
    return ExcitationProblem(
        tauloop.loads(text()),
        ExcitationTask(channels=PLATFORM, harmonics=2, period=0.6, limits=limits),
    )


def motions(count: int) -> SampledMotion:
    """Independent samples, some of them beyond what cables can give."""
    rng = np.random.default_rng(4)
    position = np.c_[rng.uniform(-0.4, 0.4, (count, 2)), rng.uniform(-0.2, 0.2, count)]
    acceleration = rng.normal(size=(count, 3)) * [25.0, 25.0, 60.0]
    velocity = rng.normal(size=(count, 3))
    return SampledMotion(
        time=np.arange(count) * 1.0, position=position, velocity=velocity, acceleration=acceleration
    )


def test_a_motion_breaks_limits_where_highs_finds_no_tensions() -> None:
    """Sample by sample, screened; and the open forces balance: residuals are rounding."""
    task, motion = problem(), motions(80)
    wanted = np.array(
        [margin(p, a) for p, a in zip(motion.position, motion.acceleration, strict=True)]
    )
    assert 10 < (wanted > 0.01).sum() < 70
    assert (np.abs(wanted) > 1e-3).all()
    _, broken = task.screen(motion)
    np.testing.assert_array_equal(broken <= 0, wanted > 0)
    opened, reached = task.opened(motion)
    assert reached.all()
    samples = (motion.position.T, motion.velocity.T, motion.acceleration.T, opened.T)
    residual = task.sample.function.map(80)(*samples)[1]
    assert np.abs(np.asarray(residual)).max() < 1e-9


def test_random_series_are_made_so_slow_that_highs_finds_tensions() -> None:
    """The search scales every series into the limits; tensions are what stops the fastest."""
    task = problem()
    search = random_search(task, 4, np.random.default_rng(0))
    least = []
    for coefficients in search.coefficients:
        motion = task.series(coefficients).sample(task.grid)
        least.append(
            min(margin(p, a) for p, a in zip(motion.position, motion.acceleration, strict=True))
        )
        tensions = [i for i, bound in enumerate(task.bounds) if bound.kind == "tension"]
        values = task.evaluate(motion).values[:, tensions]
        assert values.min() >= LEAST - 1e-6
        assert values.max() <= GREATEST + 1e-6
    assert min(least) > -1e-6
    assert [task.bounds[i].name for i in tensions] == [f"tension of c{i}" for i in range(1, 5)]
