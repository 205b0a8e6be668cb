"""Events that the user names, under a sampled control: beside SciPy's, from the forces that were held."""

from __future__ import annotations

import numpy as np
import pytest
from python_runs import InterpretedLoop
from scipy.integrate import solve_ivp

from tauloop import Model, load
from tauloop.common.result import Status
from tauloop.integrate import DormandPrince, Radau
from tauloop.kinematics.event_texts import parse_events
from tauloop.motion import POLYNOMIAL_345, Line, Seconds, plan, stroke
from tauloop.simulation.controllers.laws import PD, RUNGE_KUTTA_4, Sampling
from tauloop.simulation.controllers.run import follow

TIGHT = DormandPrince(rtol=1e-11, atol=1e-12)
#: Two integrators at 1e-11; and by Hermite's cubic within steps of a quarter of a millisecond, s.
SAME_TIME, CUBIC = 1e-9, 1e-6


def moved():
    model = Model(load("nuwar"))
    here = model.platform_position(model.assembly.q)
    made = plan(
        stroke(model, Line(here[2:], here[2:] + 0.05), ["platform.z"]),
        POLYNOMIAL_345,
        Seconds(0.05),
    )
    return model, here, made


@pytest.mark.parametrize(
    ("method", "loop", "within"),
    [
        (TIGHT, None, SAME_TIME),
        (TIGHT, InterpretedLoop(), SAME_TIME),
        (Radau(rtol=1e-10, atol=1e-11), None, SAME_TIME),
        (RUNGE_KUTTA_4, None, CUBIC),
    ],
    ids=["adaptive", "interpreted", "implicit", "fixed"],
)
def test_a_control_ends_where_scipy_says(method, loop, within):
    model, here, made = moved()
    level = float(here[2]) + 0.02
    events = parse_events(
        model,
        [f"platform.z>{level!r}"],
        [f"platform.z>{level - 0.01!r}", "velocity.platform.z>0.4"],
    )
    motion = follow(
        made, PD(bandwidth=200.0), Sampling(delay=0.0004), loop=loop, method=method, events=events
    )
    y, times = np.concatenate([here, np.zeros(3)]), []
    crossed = [lambda _, y: y[2] - level, lambda _, y: y[2] - level + 0.01, lambda _, y: y[5] - 0.4]
    still = model.platform.inverse_dynamics(here, np.zeros(3), np.zeros(3)).force
    delay = round(0.4 * 4) / 4e3  # to quarters of a sample
    for k in range(len(motion.time)):
        for held, begin, end in (
            (motion.force[k - 1] if k else still, k * 1e-3, k * 1e-3 + delay),
            (motion.force[k], k * 1e-3 + delay, (k + 1) * 1e-3),
        ):

            def rate(_, y, held=held):
                return np.concatenate(
                    [y[3:], model.platform.forward_dynamics(y[:3], y[3:], held).a[:3]]
                )

            part = solve_ivp(
                rate, (begin, end), y, method="DOP853", rtol=1e-11, atol=1e-13, events=crossed
            )
            times += [time for several in part.t_events for time in several]
            y = part.y[:, -1]
    ended = motion.occurrences[-1]
    assert ended.is_terminal
    assert sorted(occurrence.time for occurrence in motion.occurrences) == pytest.approx(
        sorted(times)[: len(motion.occurrences)], abs=within
    )
    assert len(motion.occurrences) == 3
    assert ended.q[model.topology.coordinate_names.index("platform.z")] == pytest.approx(
        level, abs=1e-9
    )
    assert len(motion.time) == int(ended.time * 1e3) + 1, "up to the sample before it"
    assert motion.status is Status.OK
    assert not motion.end
