"""Events that the user names, in drive lines and in machines with them: beside SciPy's, from rates written by hand."""

from __future__ import annotations

import numpy as np
import pytest
from python_runs import InterpretedAxis
from scipy.integrate import solve_ivp

import tauloop as tl
from tauloop import Model, load
from tauloop.common.errors import InputError
from tauloop.common.result import Status
from tauloop.drives import Axis, Outcome, read_drive, record_axis
from tauloop.drives.machine.path import DrivenMachine
from tauloop.integrate import DormandPrince, Radau
from tauloop.integrate.events import Event, comparison
from tauloop.motion import POLYNOMIAL_345, Line, Seconds, plan, stroke

MASS = """
format: tauloop-drive/1
name: one_mass
provenance: {status: chosen, source: test}
parameters: {m: 2 kg, kp: 50, band: 1 mm, d: 4 N s/m}
inertias: {cart: {mass: m, friction: {viscous: d}}}
motors: {push: {on: cart}}
encoders: {scale: {on: cart}}
control: {position: {encoder: scale, gain: kp}, motor: push%s}
performance: {of: cart, band: band}
"""
TIGHT = {"rtol": 1e-11, "atol": 1e-12}
#: Two integrators at 1e-11, s.
SAME_TIME = 1e-8


def run(axis: Axis, integrator=None):
    return record_axis(
        axis, step=0.1, duration=2.0, integrator=integrator or DormandPrince(**TIGHT)
    )


def by_scipy(*events):
    """m y'' = kp (r - y) - d y', from rest."""
    solution = solve_ivp(
        lambda _, y: [y[1], (50.0 * (0.1 - y[0]) - 4.0 * y[1]) / 2.0],
        (0, 2.0),
        [0.0, 0.0],
        method="DOP853",
        rtol=1e-12,
        atol=1e-14,
        events=events,
    )
    return solution.t_events


@pytest.mark.parametrize("kind", [Axis, InterpretedAxis], ids=["compiled", "interpreted"])
@pytest.mark.parametrize(
    "integrator",
    [DormandPrince(**TIGHT), Radau(rtol=1e-10, atol=1e-11)],
    ids=lambda occurrence: type(occurrence).__name__,
)
def test_a_line_notes_what_scipy_finds(kind, integrator):
    words = [
        ("cart.position>0.1", False),
        ("cart.velocity<-0.05", False),
        ("cart.position<0.099", True),
    ]
    events = [comparison("watch", text, is_terminal=ends) for text, ends in words]
    result = run(kind(read_drive(MASS % ""), events=events), integrator)

    def above(_, y):
        return y[0] - 0.1

    def back(_, y):
        return y[1] + 0.05

    def low(_, y):
        return y[0] - 0.099

    above.direction, back.direction, low.direction = 1.0, -1.0, -1.0
    first, second, third = (times[0] for times in by_scipy(above, back, low))
    assert [occurrence.name for occurrence in result.occurrences] == [
        "cart.position > 0.1",
        "cart.velocity < -0.05",
        "cart.position < 0.099",
    ]
    assert [occurrence.time for occurrence in result.occurrences] == pytest.approx(
        [first, second, third], abs=SAME_TIME
    )
    assert result.occurrences[-1].q == pytest.approx([0.099], abs=1e-9)
    assert result.criteria.outcome[0] == Outcome.EVENT
    assert result.criteria.end[0] == result.occurrences[-1].time
    assert not result.criteria.failed[0]


def test_what_is_only_watched_changes_nothing():
    watched = Axis(
        read_drive(MASS % ""), events=[comparison("watch", "cart.position>0.1", is_terminal=False)]
    )
    alone, beside = (run(axis) for axis in (Axis(read_drive(MASS % "")), watched))
    assert beside.signal("cart.position") == pytest.approx(alone.signal("cart.position"), abs=1e-10)


@pytest.mark.parametrize("kind", [Axis, InterpretedAxis], ids=["compiled", "interpreted"])
def test_a_held_torque_passes_a_value_at_a_sample(kind):
    """kp e held: it falls below 4 N at the first sample at which the measured error is below 80 mm."""
    event = comparison("watch", "push.torque<4", is_terminal=False)
    result = run(kind(read_drive(MASS % ", sample_time: 10 ms"), events=[event]))
    position, time = result.signal("cart.position"), result.time
    first = next(k for k in range(1, 200) if 0.1 - np.interp(k * 0.01, time, position) < 0.08)
    assert result.occurrences[0].time == pytest.approx(first * 0.01, abs=1e-12)


def test_signals_that_are_none_are_refused_all_at_once():
    with pytest.raises(InputError) as caught:
        tl.DriveOptions(until=("cart.position=1", "cart"))
    assert len(caught.value.problems) == 2
    with pytest.raises(InputError, match=r"(?s)until cart\.postion.*did you mean .*cart\.position"):
        Axis(
            read_drive(MASS % ""), events=[comparison("until", "cart.postion>1", is_terminal=True)]
        )


def test_a_machine_with_lines_ends_where_scipy_says():
    """Held forces, as the result says, move the machine by SciPy's integrator up to the same event."""
    mechanism = load("gantry_tau_3dof")
    model = Model(mechanism)
    path = stroke(
        model,
        Line(np.zeros(3), np.array([0.1, 0.05, -0.08])),
        ("platform.x", "platform.y", "platform.z"),
    )
    machine = DrivenMachine(mechanism, bandwidth=80.0, period=5e-3)
    column = model.topology.coordinate_names.index("platform.x")
    passes = Event(
        name="passes", function=lambda _, q, v: q[:, column] - 0.02, direction=1, is_terminal=False
    )
    ends = Event(name="ends", function=lambda _, q, v: q[:, column] - 0.05, direction=1)
    motion = machine.follow(
        plan(path, POLYNOMIAL_345, Seconds(0.3)),
        settling=0.02,
        integrator=DormandPrince(**TIGHT),
        events=[passes, ends],
    )
    torques = [
        values for name, values in motion.signals.items() if name.endswith("motor.torque [N]")
    ]
    force, y, times = (
        np.stack(torques, axis=1),
        np.concatenate([motion.position[0], np.zeros(3)]),
        [],
    )
    crossed = [lambda _, y: y[0] - 0.02, lambda _, y: y[0] - 0.05]
    for k, held in enumerate(force):

        def rate(_, y, held=held):
            return np.concatenate(
                [
                    y[3:],
                    model.platform.forward_dynamics(y[:3], y[3:], held).a[
                        list(model.platform.ports.v)
                    ],
                ]
            )

        span = (motion.time[0] + k * 5e-3, motion.time[0] + (k + 1) * 5e-3)
        part = solve_ivp(rate, span, y, method="DOP853", rtol=1e-11, atol=1e-13, events=crossed)
        times += [time for several in part.t_events for time in several]
        y = part.y[:, -1]
    assert [occurrence.name for occurrence in motion.occurrences] == ["passes", "ends"]
    assert [occurrence.time for occurrence in motion.occurrences] == pytest.approx(
        times[:2], abs=SAME_TIME
    )
    assert motion.occurrences[-1].q[column] == pytest.approx(0.05, abs=1e-9)
    assert "ends" in motion.end
    assert motion.status is Status.OK
