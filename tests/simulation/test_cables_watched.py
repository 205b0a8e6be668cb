"""Events, sampled laws and locks in simulations of cables: closed forms, and lines of their own."""

from __future__ import annotations

import numpy as np
import pytest
from hanging_ball import FINE, LENGTH, MASS, G, ball, moving

from tauloop.common.errors import InputError
from tauloop.common.result import Status
from tauloop.compiler.c import Interpreted
from tauloop.equations.assembly import Locks
from tauloop.model import Model
from tauloop.simulation import Ending, Event, Feedback, ForceLaw, simulate_cables


def height(model: Model, above: float, **options: object) -> Event:
    """The ball passes a height."""
    k = model.topology.coordinate_names.index("z")
    return Event(name="height", function=lambda _, q, v: q[:, k] - above, **options)  # type: ignore[arg-type]


def test_events_are_found_across_slack_and_taut_and_end_the_simulation() -> None:
    """Thrown up with slack line: z = -L + v t - g t^2/2 by hand passes a height twice; the second time ends it."""
    model, speed, above = ball(", restitution: 0.5"), 3.0, -1.3
    k = model.topology.coordinate_names.index("x")
    rising = height(model, above, direction=1, is_terminal=False)
    moved = Event(name="far", function=lambda _, q, v: q[:, k] - 10.0)
    falling = height(model, above, direction=-1)
    motion = simulate_cables(
        model, 1.0, v=moving(model, x=1e-3), events=(rising, moved), integrator=FINE
    )
    assert motion.occurrences == ()
    q = np.array(model.assembly.q)
    q[model.topology.coordinate_names.index("z")] = -1.4
    motion = simulate_cables(
        model, 2.0, q=q, v=moving(model, z=speed), events=(rising, moved, falling), integrator=FINE
    )
    root = np.sqrt(speed**2 - 2 * G * 0.1)
    times = [item.time for item in motion.occurrences]
    np.testing.assert_allclose(times, [(speed - root) / G, (speed + root) / G], rtol=0, atol=1e-9)
    assert motion.ending is Ending.EVENT
    assert motion.status is Status.OK
    assert motion.time[-1] == pytest.approx(times[1], abs=1e-12)


def test_what_a_jerk_jumps_over_is_found() -> None:
    """A falling ball is thrown back when its line is taut: its speed goes through zero there and then, by hand."""
    model = ball(", restitution: 0.5")
    q = np.array(model.assembly.q)
    q[model.topology.coordinate_names.index("z")] = -1.0
    k = model.topology.velocity_names.index("z")
    turned = Event(name="turned", function=lambda _, q, v: v[:, k], direction=1)
    motion = simulate_cables(
        model, 1.0, q=q, v=moving(model, z=-0.1), events=(turned,), integrator=FINE
    )
    (item,) = motion.occurrences
    speed = np.sqrt(0.1**2 + 2 * G * (LENGTH - 1.0))
    assert item.time == pytest.approx((speed - 0.1) / G, abs=1e-9)
    assert item.v[k] == pytest.approx(0.5 * speed, rel=1e-8)
    assert motion.time[-1] == item.time


class Sampled(ForceLaw):
    """A winch that pulls the ball towards a height, 100 times in a second."""

    period = 0.01  # type: ignore[assignment]

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """From the length of the line alone: a spring and a damper about 1.3 m."""
        return np.array([-(MASS * G + 200.0 * (q[-1] - 1.3) + 20.0 * v[-1])])


def test_a_sampled_law_is_held_between_its_samples() -> None:
    """Constant acceleration from sample to sample by hand: z'' = T/m - g with the T of the last sample."""
    model = ball("", winch="bare")
    assert model.topology.coordinate_names[-1] == "line"
    motion = simulate_cables(model, 0.995, force=Sampled(), integrator=FINE)
    h, z, rate, wanted = 0.01, -LENGTH, 0.0, []
    for _ in range(100):
        force = max(MASS * G + 200.0 * (-z - 1.3) + 20.0 * -rate, 0.0)
        a = force / MASS - G
        wanted.append(z)
        z, rate = z + rate * h + a * h * h / 2, rate + a * h
    at = [int(np.argmin(np.abs(motion.time - i * h))) for i in range(100)]
    np.testing.assert_allclose(motion.time[at], np.arange(100) * h, rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion.coordinate("z")[at], wanted, rtol=0, atol=1e-9)
    assert motion.time[-1] == pytest.approx(0.995, abs=1e-12)
    assert motion.status is Status.OK


def test_a_continuous_law_sees_the_lengths_of_held_and_slack_cables() -> None:
    """The same spring, never sampled: z = -1.3 - 0.2 exp(-5 t)(cos w t + 5/w sin w t), w^2 = 100 - 25, by hand."""
    model = ball("", winch="bare")
    law = Sampled()
    motion = simulate_cables(model, 0.5, force=Feedback(law.force), integrator=FINE)
    w, t = np.sqrt(75.0), motion.time
    wanted = -1.3 - 0.2 * np.exp(-5 * t) * (np.cos(w * t) + 5 / w * np.sin(w * t))
    np.testing.assert_allclose(motion.coordinate("z"), wanted, rtol=0, atol=1e-8)


def test_locked_freedoms_stay_where_they_are() -> None:
    """A ball that cannot move along x is only lifted by a spring of cable: its length and height by hand."""
    model = ball(", stiffness: 2000 N/m")
    locked = Model(model.mechanism, evaluator=Interpreted(), locks=Locks(names=("x",)))
    push = np.array([50.0, 0, 0, 0, 0, 0])
    free, held = (
        simulate_cables(case, 0.3, wrench=push, integrator=FINE) for case in (model, locked)
    )
    assert free.coordinate("x")[-1] > 0.1
    np.testing.assert_array_equal(held.coordinate("x"), 0.0)
    sag = MASS * G / 2000 * (1 - np.cos(np.sqrt(2000 / MASS) * held.time))
    np.testing.assert_allclose(held.coordinate("z"), -LENGTH - sag, rtol=0, atol=1e-9)


def test_a_locked_cable_is_refused() -> None:
    model = ball(", stiffness: 2000 N/m", winch=", inertia: 1 kg")
    locked = Model(model.mechanism, evaluator=Interpreted(), locks=Locks(names=("line",)))
    with pytest.raises(InputError, match="is a cable of locked length"):
        simulate_cables(locked, 0.1)
