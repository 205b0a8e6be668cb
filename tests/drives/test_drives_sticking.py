"""Stick-slip of drive lines: against SciPy with located events, by energy, and at rest, where nothing may chatter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tauloop.compiler.c.calling.compiler import find_compiler
from tauloop.drives import LINE_INTEGRATOR, Axis, load_drive, read_drive, record_axis, simulate_axis

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")

#: Issue 7: results may not change by more when tolerances are tightened a hundredfold.
INVARIANT = 1e-6
#: Two integrators at relative tolerances of 1e-9, over some ten slips that pass their errors on.
INTEGRATORS = 1e-6
#: Simpson's rule on samples of 5 us: kinks in the contacts' forces (1e3 N) leave some 1e-5 of the
#: work.
BALANCE = 1e-4
#: A step with four slips has some twenty events; the sign of a speed that dies away made thousands.
EVENTS = 100
TIGHT = replace(LINE_INTEGRATOR, rtol=1e-9, atol=1e-11)

HUNTING = """
format: tauloop-drive/1
name: hunting
provenance: {status: chosen, source: test}
inertias: {cart: {mass: 2 kg, friction: {viscous: 4 N s/m, coulomb: 3 N, static: 5 N, stribeck: 10 mm/s}}}
motors: {push: {on: cart}}
encoders: {scale: {on: cart}}
control: {position: {encoder: scale, gain: 100, integral_time: 0.8 s}, motor: push}
performance: {of: cart, band: 1 mm}
"""


def hunting(duration: float) -> tuple[list[tuple[float, float]], float]:
    """When the cart sticks, and where it is at the end: phases integrated one by one."""
    t, y, sign, sticks = 0.0, np.array([0.0, 0.0, 0.0]), 0.0, []

    def control(y: np.ndarray) -> float:
        return 100 * (0.1 - y[0] + y[2])

    while t < duration:
        if sign == 0:

            def rate(_: float, y: np.ndarray) -> list[float]:
                return [0.0, 0.0, (0.1 - y[0]) / 0.8]

            def ends(_: float, y: np.ndarray) -> float:
                return 5.0 - abs(control(y))

        else:

            def rate(_: float, y: np.ndarray, sign: float = sign) -> list[float]:
                level = 3 + 2 * np.exp(-((y[1] / 0.01) ** 2))
                return [y[1], (control(y) - 4 * y[1] - sign * level) / 2, (0.1 - y[0]) / 0.8]

            def ends(_: float, y: np.ndarray, sign: float = sign) -> float:
                return sign * y[1] + 1e-15

        ends.terminal, ends.direction = True, -1  # type: ignore[attr-defined]
        if sign == 0 and abs(control(y)) >= 5.0:
            sign = np.sign(control(y))
            continue
        run = solve_ivp(
            rate, (t, duration), y, method="DOP853", rtol=1e-10, atol=1e-13, events=ends
        )
        if sign == 0:
            sticks.append((t, run.t[-1]))
        t, y = run.t[-1], run.y[:, -1]
        if run.status != 1:
            break
        if sign == 0:
            sign = np.sign(control(y))
        else:
            y[1], sign = 0.0, 0.0
    return sticks, y[0]


def test_hunting_against_scipy() -> None:
    """An integral and static friction above sliding friction: the cart sticks, slips past its aim, and sticks again."""
    duration = 20.0
    sticks, last = hunting(duration)
    assert len(sticks) > 5
    record = record_axis(
        Axis(read_drive(HUNTING)), duration=duration, samples=20001, integrator=TIGHT
    )
    assert record.signal("cart.position")[-1] == pytest.approx(last, rel=INTEGRATORS)
    still = np.zeros(len(record.time), dtype=bool)
    for begin, end in sticks:
        still |= (record.time > begin) & (record.time < end)
    differs = (record.signal("cart.velocity") == 0) != still
    assert differs.sum() <= 2 * len(sticks)  # a sample at either end


@pytest.mark.parametrize("name", ["dual_motor_axis", "dual_motor_inferred"])
def test_work_of_the_motors_is_kinetic_energy_and_losses(name: str) -> None:
    """The contacts are passed through by force and speed: d(kinetic energy) = motors - contacts - friction."""
    line = load_drive(name)
    duration, samples = 1.0, 200_001
    record = record_axis(Axis(line), step=0.1, duration=duration, samples=samples, integrator=TIGHT)
    p = line.parameters.values
    w1, w2, v = (record.signal(f"{body}.velocity") for body in ("motor1", "motor2", "cart"))
    power = record.signal("drive1.torque") * w1 + record.signal("drive2.torque") * w2
    for rack, w in (("rack1", w1), ("rack2", w2)):
        power = power - record.signal(f"{rack}.force") * (p["pinion_radius"] * w - v)
    dry = p["cart_coulomb"] * np.abs(v) + p.get("motor_coulomb", 0.0) * (np.abs(w1) + np.abs(w2))
    losses = p["motor_viscous"] * (w1**2 + w2**2) + p["cart_viscous"] * v**2 + dry
    kinetic = 0.5 * (p["motor_inertia"] * (w1[-1] ** 2 + w2[-1] ** 2) + p["cart_mass"] * v[-1] ** 2)
    spent = np.trapezoid(np.abs(power), record.time)
    balance = np.trapezoid(power - losses, record.time) - kinetic
    assert abs(balance) < BALANCE * spent
    friction = np.trapezoid(dry, record.time)
    assert friction > 10 * BALANCE * spent  # without dry friction the balance would not hold


#: A cart that creeps home against much friction.
CREEPS = {
    "motor_inertia": 0.0079578,
    "motor_viscous": 0.01047,
    "gap": 0.00066156,
    "cart_mass": 2.5927,
    "cart_viscous": 657.14,
    "cart_coulomb": 36.174,
    "preload": 7.1515,
    "feed_forward_share": 0.1712,
    "torque_share": 0.4065,
    "band": 0.0016283,
}


def test_random_plants_come_to_rest_without_chattering() -> None:
    """A cart that creeps to rest has a speed that dies away below rounding: its sign may not make events."""
    rng, n = np.random.default_rng(0), 60
    axis = Axis(load_drive("dual_motor_axis"))
    p = CREEPS
    spread = {"gap": 0.3, "cart_coulomb": 0.3, "cart_viscous": 0.2}
    plants = p | {
        key: p[key] * np.exp(share * rng.standard_normal(n)) for key, share in spread.items()
    }
    gains = {
        "kp": rng.uniform(250, 350, n),
        "ti": rng.uniform(0.4, 1.5, n),
        "switch_min": rng.uniform(0.01, 0.5, n),
        "switch_max": rng.uniform(0.51, 1.0, n),
    }
    coarse = simulate_axis(axis, plants | gains)
    fine = simulate_axis(axis, plants | gains, integrator=TIGHT)
    for run in (coarse, fine):
        assert not run.failed.any()
        assert run.events.max() < EVENTS
    assert coarse.energy == pytest.approx(fine.energy, rel=INVARIANT)
    assert coarse.settling_time == pytest.approx(fine.settling_time, rel=INVARIANT)
    assert coarse.overshoot == pytest.approx(fine.overshoot, abs=0.1 * INVARIANT)
    assert coarse.final_error == pytest.approx(fine.final_error, abs=0.1 * INVARIANT)
