"""Drive lines: elements against their printed formulae, runs against SciPy and hand calculation, bad input."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from python_runs import InterpretedAxis
from scipy.integrate import solve_ivp
from scipy.signal import TransferFunction, lsim

import tauloop as tl
from tauloop.common.errors import DescriptionError, InputError
from tauloop.drives import (
    LINE_INTEGRATOR,
    Axis,
    Outcome,
    load_drive,
    read_drive,
    record_axis,
    scaled_sum,
    scaled_worst,
    shipped_drives,
    simulate_axis,
)
from tauloop.drives.axis.limit_cycle import (
    describing_function,
    measure_limit_cycle,
    predict_limit_cycles,
)
from tauloop.drives.criteria import FAILURE_PENALTY
from tauloop.drives.equations.elements import elastic_backlash
from tauloop.drives.equations.switches import Direct
from tauloop.drives.machine.lines import MOTORS, with_motors
from tauloop.integrate.integrators import Integrator, Radau, RungeKutta4

#: Issue 7: results may not change by more when tolerances are tightened a hundredfold.
INVARIANT = 1e-6
#: Two integrators at relative tolerances of 1e-7 and 1e-10 agree to some hundred times the coarser
#: one.
INTEGRATORS = 1e-5
#: Rounding of a formula written in two ways, relative to forces of some 1e6 N.
ROUNDING = 1e-6
#: A step response read off 20 001 samples instead of dense output: half a sample of 0.5 ms.
SAMPLED = 5e-4
#: The describing function keeps the first harmonic of a cycle that is nearly triangular:
#: frequencies within half.
FIRST_HARMONIC = 0.5
#: A midpoint rule of 4 096 points on an integrand with kinks.
QUADRATURE = 1e-5

FREE_MASS = """
format: tauloop-drive/1
name: one_mass
provenance: {status: chosen, source: test}
parameters: {m: 2 kg, kp: 50, band: 1 mm, d: 4 N s/m, fc: 3 N}
inertias: {cart: {mass: m, friction: {viscous: d%s}}}
motors: {push: {on: cart%s}}
encoders: {scale: {on: cart%s}}
control: {position: {encoder: scale, gain: kp%s}, motor: push%s}
performance: {of: cart, band: band}
"""


def one_mass(
    friction: str = "", motor: str = "", encoder: str = "", pid: str = "", control: str = ""
) -> Axis:
    return Axis(read_drive(FREE_MASS % (friction, motor, encoder, pid, control)))


@pytest.fixture(scope="module")
def dual() -> Axis:
    return Axis(load_drive("dual_motor_axis"))


@pytest.fixture(scope="module")
def single() -> Axis:
    return Axis(load_drive("single_motor_axis"))


def printed_backlash(b: float, c: float, d: float, D: float, w: float) -> float:
    """ElastoBacklash as Modelica prints it."""
    if b <= 1e-10:
        return c * D + d * w
    if D > b / 2:
        spring, damper = c * (D - b / 2), d * w
        return 0.0 if spring + damper <= 0 else spring + min(spring, damper)
    if D < -b / 2:
        spring, damper = c * (D + b / 2), d * w
        return 0.0 if spring + damper >= 0 else spring + max(spring, damper)
    return 0.0


@given(
    b=st.sampled_from([1e-11, 1e-4, 1e-2]),
    D=st.floats(-2e-2, 2e-2),
    w=st.floats(-5.0, 5.0),
    d=st.sampled_from([0.0, 30.0, 2e4]),
)
@settings(deadline=None, max_examples=200)
def test_elastic_backlash_is_the_printed_one(b: float, D: float, w: float, d: float) -> None:
    force = float(
        elastic_backlash(ca.SX(b), ca.SX(1e6), ca.SX(d), ca.SX(D), ca.SX(w), Direct(), "x")
    )
    assert force == pytest.approx(printed_backlash(b, 1e6, d, D, w), abs=ROUNDING)


def test_describing_function_of_the_dead_zone() -> None:
    x = np.array([0.2, 0.5, 0.9])
    result = describing_function(2.0, 7.0, 0.0, 1 / x, np.ones(3))
    closed = 7.0 * (1 - 2 / np.pi * (np.arcsin(x) + x * np.sqrt(1 - x**2)))
    # without damping the element's force is bounded by twice the spring's share and never reaches
    # that bound
    assert result.real == pytest.approx(closed, rel=QUADRATURE)
    assert np.abs(result.imag).max() < QUADRATURE


def test_linear_axis_is_its_transfer_function() -> None:
    axis = one_mass(pid=", integral_time: 1.5 s, derivative_time: 0.4 s")
    record = record_axis(axis, duration=10.0, samples=20001)
    kp, ti, td, n, m, d = 50.0, 1.5, 0.4, 10.0, 2.0, 4.0
    tf = td / n
    pid = kp * np.array([ti * tf + ti * td, ti + tf, 1.0])  # over ti s (1 + tf s)
    plant = np.polymul([ti * tf, ti, 0.0], [m, d, 0.0])
    time, x, _ = lsim(
        TransferFunction(0.1 * pid, np.polyadd(plant, pid)), np.ones(20001), record.time
    )
    assert record.signal("cart.position") == pytest.approx(x, abs=0.1 * INTEGRATORS)
    c = record.criteria
    assert c.overshoot[0] == pytest.approx(x.max() - 0.1, abs=0.1 * INTEGRATORS)
    assert c.rise_time[0] == pytest.approx(
        time[np.argmax(x >= 0.09)] - time[np.argmax(x >= 0.01)], abs=2 * SAMPLED
    )
    outside = np.flatnonzero(np.abs(x - 0.1) > 1e-3)
    assert c.settling_time[0] == pytest.approx(time[outside[-1]], abs=SAMPLED)
    force = record.signal("push.torque")
    # the kick of 5 ms is sampled coarsely
    assert c.energy[0] == pytest.approx(np.trapezoid(force**2, time), rel=1e-3)


@pytest.mark.parametrize("motors", MOTORS)
def test_three_masses_against_scipy(dual: Axis, motors: str) -> None:
    """The axis written by hand, with the printed backlash, solved by SciPy; the slave switches, pulls, or is gone."""
    p = dual.line.parameters.values | {"cart_coulomb": 0.0}
    r, b, c, d = p["pinion_radius"], p["gap"], p["contact_stiffness"], p["contact_damping"]

    def law(e: float, xi: float, xd: float) -> tuple[float, float]:
        u = p["kp"] * (e + xi + 10 * (e - xd))
        s = (abs(e) / 0.1 - p["switch_min"]) / (p["switch_max"] - p["switch_min"])
        s = min(max(s, 0.0), 1.0)
        v = -1.0 if motors == "preloaded" else -(1 - 3 * s**2 + 2 * s**3)
        if motors == "one":
            return u, 0.0
        slave = (1 + v) * p["torque_share"] * u
        return u - slave - v * p["feed_forward_share"] * p["preload"], slave + v * p["preload"]

    def rate(_: float, y: np.ndarray) -> list[float]:
        a1, a2, x, w1, w2, v, xi, xd, _energy = y
        e = 0.1 - x
        u1, u2 = law(e, xi, xd)
        f1, f2 = (printed_backlash(b, c, d, r * a - x, r * w - v) for a, w in ((a1, w1), (a2, w2)))
        f2 = 0.0 if motors == "one" else f2
        turning = [
            (u - r * f - p["motor_viscous"] * w) / p["motor_inertia"]
            for u, f, w in ((u1, f1, w1), (u2, f2, w2))
        ]
        sliding = (f1 + f2 - p["cart_viscous"] * v) / p["cart_mass"]
        return [w1, w2, v, *turning, sliding, e / p["ti"], (e - xd) * 10 / p["td"], u1**2 + u2**2]

    there = solve_ivp(
        rate, (0, 2.0), np.zeros(9), method="DOP853", rtol=1e-9, atol=1e-11, max_step=1e-3
    )
    here = record_axis(
        Axis(with_motors(dual.line, motors)), {"cart_coulomb": 0.0}, duration=2.0, samples=5
    )
    assert here.signal("cart.position")[-1] == pytest.approx(there.y[2, -1], abs=0.1 * INTEGRATORS)
    assert here.signal("motor1.velocity")[-1] == pytest.approx(there.y[3, -1], abs=INTEGRATORS)
    if motors != "one":
        assert here.signal("motor2.velocity")[-1] == pytest.approx(there.y[4, -1], abs=INTEGRATORS)
    assert here.criteria.energy[0] == pytest.approx(there.y[8, -1], rel=INTEGRATORS)


def test_motors_of_a_line_are_used_as_they_are_asked_for(dual: Axis, single: Axis) -> None:
    """Out of reach of the switching, as of a file without it; parameters that have no part any more are unknown."""
    preloaded = tl.simulate_drive_line(
        dual.line, tl.DriveOptions(motor_setup="preloaded", duration=3.0)
    )
    beyond = simulate_axis(dual, {"switch_min": 10.0, "switch_max": 11.0}, duration=3.0)
    text = (
        files("tauloop.drives").joinpath("lines/dual_motor_axis.yaml").read_text(encoding="utf-8")
    )
    without = text.replace("    switch_min: switch_min\n    switch_max: switch_max\n", "")
    file = simulate_axis(Axis(read_drive(without)), duration=3.0)
    for criterion in ("rise_time", "overshoot", "energy"):
        ours = getattr(preloaded.record.criteria, criterion)[0]
        assert ours == pytest.approx(getattr(beyond, criterion)[0], rel=1e-9)
        assert ours == pytest.approx(getattr(file, criterion)[0], rel=1e-9)
    for motors, gone in (("preloaded", "switch_min"), ("one", "preload")):
        with pytest.raises(InputError, match=f"no parameter '{gone}'"):
            tl.tune_drive_line(
                dual.line,
                tl.TuningOptions(
                    motor_setup=motors, bounds={gone: (0.1, 0.2)}, scales={"rise_time": 1}
                ),
            )
    assert with_motors(single.line, "one").parameters == single.line.parameters
    with pytest.raises(InputError, match="has no second motor that could pull against the first"):
        with_motors(single.line, "preloaded")


@pytest.mark.parametrize("name", shipped_drives())
@pytest.mark.parametrize("duration", [3.0, 10.0])
def test_tighter_tolerances_change_nothing(name: str, duration: float) -> None:
    axis = Axis(load_drive(name))
    coarse = simulate_axis(axis, duration=duration)
    fine = simulate_axis(
        axis, duration=duration, integrator=replace(LINE_INTEGRATOR, rtol=1e-9, atol=1e-11)
    )
    assert coarse.events[0] > 0
    for key in ("rise_time", "settling_time", "energy"):
        assert getattr(coarse, key) == pytest.approx(getattr(fine, key), rel=INVARIANT), key
    for key in ("overshoot", "final_error", "swing"):
        assert getattr(coarse, key) == pytest.approx(getattr(fine, key), abs=0.1 * INVARIANT), key
    # counted from the instant, not from the step behind it; below 10 nm the cart is at rest
    assert coarse.swing == pytest.approx(fine.swing, rel=1e-3, abs=1e-8)


def test_sticking_holds_and_slips_at_the_breakaway_force() -> None:
    axis = one_mass(", coulomb: fc")
    # gain 50 N/m, friction 3 N: a step of 0.05 m asks for 2.5 N, one of 0.07 m for 3.5 N
    held = simulate_axis(axis, step=np.array([0.05, 0.07]), duration=3.0)
    assert held.final_error[0] == 0.05
    assert held.final_error[1] < 0.07


def test_coulomb_friction_stops_a_mass_where_energy_says() -> None:
    """An undamped mass on the controller's spring loses 2 fc/k of amplitude in every half swing."""
    axis = one_mass(", coulomb: fc")
    c = simulate_axis(axis, {"d": 0.0, "kp": 200.0, "fc": 2.0}, step=0.1, duration=5.0)
    # amplitudes 0.1 - 0.01 = 0.09 about the shifted centre: turns at errors -0.08, 0.06, -0.04,
    # 0.02, 0: there it stays
    assert c.overshoot[0] == pytest.approx(0.08, abs=0.1 * INTEGRATORS)
    # it sticks where the spring is weaker than friction
    assert c.final_error[0] <= 0.01 + 0.1 * INTEGRATORS
    assert c.swing[0] == 0.0


@pytest.mark.parametrize("step", [0.04, 0.2])
def test_lugre_against_scipy(step: float) -> None:
    """Presliding (2 N asked for, 4 N hold) and sliding (10 N), with the three equations written out."""
    text = (FREE_MASS % ("", "", "", "", "")).replace(
        "friction: {viscous: d}",
        "lugre: {stiffness: 1e5 N/m, damping: 300 N s/m, viscous: d, coulomb: fc, static: 4 N, stribeck: 0.01 m/s}",
    )

    def rate(_: float, y: np.ndarray) -> list[float]:
        x, v, z = y
        dz = v - 1e5 * abs(v) / (3 + np.exp(-((v / 0.01) ** 2))) * z
        return [v, (50 * (step - x) - 1e5 * z - 300 * dz - 4 * v) / 2, dz]

    there = solve_ivp(rate, (0, 1.0), np.zeros(3), method="Radau", rtol=1e-9, atol=1e-12)
    record = record_axis(
        Axis(read_drive(text)),
        step=step,
        duration=1.0,
        integrator=replace(LINE_INTEGRATOR, rtol=1e-9, atol=1e-12),
    )
    assert record.signal("cart.position")[-1] == pytest.approx(there.y[0, -1], rel=INTEGRATORS)
    assert (record.signal("cart.position")[-1] > 0.01) == (step > 0.1)


def test_exact_backlash_carries_no_force_in_the_gap_and_k_beyond_it() -> None:
    text = """
format: tauloop-drive/1
name: two_mass
provenance: {status: chosen, source: test}
parameters: {k: 2000 N/m, c: 20 N s/m, b: 10 mm, f: 5 N}
inertias: {slide: {mass: 1 kg}, cart: {mass: 1 kg, friction: {coulomb: 100 N}}}
connections: {shaft: {first: slide, second: cart, exact_backlash: {gap: b, stiffness: k, damping: c}}}
motors: {push: {on: slide}}
encoders: {scale: {on: slide}}
control: {position: {encoder: scale, gain: 500, derivative_time: 0.1 s}, motor: push}
performance: {of: slide, band: 0.1 mm}
"""
    axis = Axis(read_drive(text))
    for aim in (0.004, 0.02, -0.02):
        record = record_axis(axis, step=aim, duration=4.0)
        x = record.signal("slide.position")[-1]
        # balance 500 (aim - x) = 2000 (x - b/2) beyond the gap; inside it the aim is reached
        expected = (
            aim if abs(aim) < 0.005 else np.sign(aim) * (500 * abs(aim) + 2000 * 0.005) / 2500
        )
        assert x == pytest.approx(expected, abs=1e-6)
        force = record.signal("shaft.force")
        assert (force == 0).any()
        assert np.isfinite(force).all()


def test_rigid_transmissions_reflect_inertia() -> None:
    """Motor, gear 5:1, pinion of 20 mm: the mass felt is M + J (5/0.02)^2."""
    text = """
format: tauloop-drive/1
name: geared
provenance: {status: chosen, source: test}
inertias: {rotor: {inertia: 1e-4 kg m^2}, pinion: {inertia: 2e-4 kg m^2}, cart: {mass: 3 kg}}
connections:
  box: {first: rotor, second: pinion, gear: 5, rigid: yes}
  rack: {first: pinion, second: cart, rack_and_pinion: 20 mm, rigid: yes}
motors: {push: {on: rotor}}
encoders: {scale: {on: cart}}
control: {position: {encoder: scale, gain: 1}, motor: push}
performance: {of: cart, band: 1 mm}
"""
    record = record_axis(Axis(read_drive(text)), step=0.1, duration=20.0, samples=20001)
    mass = 3 + 2e-4 / 0.02**2 + 1e-4 * (5 / 0.02) ** 2
    speed = np.sqrt(1 * 5 / 0.02 / mass)  # 1 N m/m at the rotor is 250 N/m at the cart
    assert record.signal("cart.position") == pytest.approx(
        0.1 - 0.1 * np.cos(speed * record.time), abs=0.1 * 1e-4
    )


def test_motor_limits_hold() -> None:
    axis = one_mass(motor=", torque: 4 N, rated_speed: 0.2 m/s, speed: 0.4 m/s")
    record = record_axis(axis, {"d": 0.0}, step=5.0, duration=3.0)
    force, speed = record.signal("push.torque"), record.signal("cart.velocity")
    assert force.max() == pytest.approx(4.0)
    assert speed.max() < 0.4 * (1 + ROUNDING)
    falling = (speed > 0.2) & (speed < 0.4)
    assert force[falling] == pytest.approx(4 * (0.4 - speed[falling]) / 0.2, abs=1e-6)


def test_anti_windup_lessens_overshoot() -> None:
    loop = ", integral_time: 1 s, derivative_time: 0.3 s"
    wound = simulate_axis(one_mass(motor=", torque: 2 N", pid=loop), step=1.0)
    tracked = simulate_axis(one_mass(pid=loop + ", limit: 2, tracking_time: 0.3 s"), step=1.0)
    assert tracked.overshoot[0] < 0.7 * wound.overshoot[0]


def test_cascade_is_a_damped_spring() -> None:
    """Position gain a, speed gain k: k (a (r - x) - v) is a spring k a with a damper k."""
    text = (FREE_MASS % ("", "", "", "", "")).replace(
        "gain: kp}, motor: push", "gain: 5}, speed: {encoder: scale, gain: kp}, motor: push"
    )
    record = record_axis(Axis(read_drive(text)), duration=2.0)
    _, x, _ = lsim(
        TransferFunction([0.1 * 250], [2, 54, 250]), np.ones(len(record.time)), record.time
    )
    assert record.signal("cart.position") == pytest.approx(x, abs=0.1 * INTEGRATORS)


def test_sampled_control_counts() -> None:
    """P control at 10 ms on counts of 1 mm: the exact recursion of the free mass between samples."""
    axis = one_mass(encoder=", resolution: 1 mm", control=", sample_time: 10 ms")
    record = record_axis(axis, {"d": 0.0, "kp": 47.0}, duration=0.5, samples=51)
    x, v = 0.0, 0.0
    expected = []
    for _ in range(51):
        expected.append(x)
        a = 47 * (0.1 - 1e-3 * np.floor(x / 1e-3 + 0.5)) / 2
        x, v = x + 0.01 * v + 0.5 * a * 1e-4, v + 0.01 * a
    assert record.signal("cart.position") == pytest.approx(np.array(expected), abs=1e-9)


def test_one_motor_cycles_and_two_do_not(single: Axis, dual: Axis) -> None:
    """Gantry-Tau paper, Figure 8: the limit cycle of one motor is gone with two."""
    gap = single.line.parameters["gap"].value
    record = record_axis(single, duration=60.0, samples=12001)
    cycle = measure_limit_cycle(record, "cart")
    assert cycle is not None
    assert 0.2 * gap < cycle.amplitude < 2 * gap
    (predicted,) = predict_limit_cycles(single.line)
    assert predicted.frequency == pytest.approx(cycle.frequency, rel=FIRST_HARMONIC)
    assert predicted.amplitude == pytest.approx(cycle.amplitude, rel=FIRST_HARMONIC)
    quiet = simulate_axis(dual, duration=60.0)
    assert quiet.swing[0] < 1e-4 * cycle.amplitude
    assert quiet.final_error[0] < 1e-4 * cycle.amplitude


def test_a_load_in_the_end_is_carried(dual: Axis) -> None:
    c = simulate_axis(dual, load=50.0, load_time=5.0, duration=40.0)
    free = simulate_axis(dual, duration=40.0)
    assert c.final_error[0] < 1e-5
    assert c.energy[0] != free.energy[0]


def test_batches_are_single_runs(dual: Axis) -> None:
    kp = np.array([150.0, 200.0, 250.0])
    together = simulate_axis(dual, {"kp": kp, "ti": 1.3}, duration=2.0)
    shared = simulate_axis(Axis(dual.line, threads=2), {"kp": kp, "ti": 1.3}, duration=2.0)
    for k, value in enumerate(kp):
        alone = simulate_axis(dual, {"kp": value, "ti": 1.3}, duration=2.0)
        assert (
            alone.energy[0] == together.energy[k] == pytest.approx(shared.energy[k], rel=ROUNDING)
        )
        assert alone.overshoot[0] == together.overshoot[k]


def test_divergence_is_recognised_and_priced(dual: Axis) -> None:
    c = simulate_axis(dual, {"ti": np.array([1.5, 1e-3])})
    assert list(c.outcome) == [Outcome.SUCCESS, Outcome.DIVERGED]
    assert c.end[1] < 10
    assert FAILURE_PENALTY <= c.energy[1] <= 2 * FAILURE_PENALTY
    assert np.isfinite(scaled_sum(c, {"rise_time": 1.0, "energy": 2.0})).all()
    long = simulate_axis(dual, integrator=replace(LINE_INTEGRATOR, max_steps=10))
    assert long.outcome[0] == Outcome.MAX_STEPS
    crossed = simulate_axis(
        dual, {"switch_min": 0.5, "switch_max": np.array([0.5, 0.4, 0.6])}, duration=1.0
    )
    assert list(crossed.outcome) == [
        Outcome.INVALID_PARAMETERS,
        Outcome.INVALID_PARAMETERS,
        Outcome.SUCCESS,
    ]
    assert crossed.energy[0] == 2 * FAILURE_PENALTY


def test_costs_combine(dual: Axis) -> None:
    c = simulate_axis(dual, duration=2.0)
    scales = {"rise_time": 2.0, "overshoot": 1e-4}
    parts = c.rise_time / 2.0, c.overshoot / 1e-4
    assert scaled_sum(c, scales) == pytest.approx(parts[0] + parts[1])
    assert scaled_worst(c, scales) == pytest.approx(max(parts))
    with pytest.raises(InputError, match="no such criterion"):
        scaled_sum(c, {"rise": 1.0})


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("cart_mass: 300 kg", "cart_mass: -3 kg", "must be positive, got -3 kg"),
        ("cart_mass: 300 kg", "cart_mass: 0 kg", "must be positive, got 0 kg"),
        ("contact_stiffness: 1e6 N/m", "contact_stiffness: 0 N/m", "must be positive, got 0 N/m"),
        ("gap: 0.5 mm", "gap: 0 mm", "must be positive, got 0 m"),
        ("gap: 0.5 mm", "gap: -0.5 mm", "must be positive"),
        ("gap: 0.5 mm", "gap: 0.5 kg", "a length"),
        ("master: drive1", "master: drive3", "there is no motor drive3"),
        ("slave: drive2", "slave: drive1", "master and slave are both drive1"),
        ("switch_max: {value: 0.25", "switch_max: {value: 0.005", "is not below switch_max"),
        ("rack_and_pinion: pinion_radius", "gear: 2", "motor1 rotates and cart slides"),
        ("scale: {on: cart}", "scale: {on: cart, resolution: 1 um}", "the control is continuous"),
        ("    switch_max: switch_max\n", "", "switch_min and switch_max require each other"),
        ("kp, integral", "kp, limt: 3, integral", "unknown key"),
        ("kp, integral", "kp, limit: 3, integral", "limit and tracking_time require each other"),
        ("inertias:", "inertias:\n  ghost: {}", "neither `inertia` nor `mass`"),
    ],
)
def test_files_that_are_wrong(old: str, new: str, word: str) -> None:
    text = (
        files("tauloop.drives").joinpath("lines/dual_motor_axis.yaml").read_text(encoding="utf-8")
    )
    assert old in text
    with pytest.raises(DescriptionError) as error:
        read_drive(text.replace(old, new), "axis.yaml")
    assert word in str(error.value)
    assert all(problem.line and problem.remedy for problem in error.value.problems)


def test_numbers_that_are_wrong(dual: Axis) -> None:
    for changed, text in (
        ({"gapp": 1.0}, "did you mean gap"),
        ({"gap": 0.0}, "must be positive, got 0"),
        ({"gap": np.array([5e-4, 0.0, 5e-4])}, "must be positive, got 0 (sample 1 of 3)"),
        ({"kp": np.nan}, "not finite"),
        ({"kp": np.ones(3), "ti": np.ones(2)}, "different lengths"),
        ({"cart_viscous": -1.0}, "must not be negative"),
    ):
        with pytest.raises(InputError) as error:
            simulate_axis(dual, changed)
        assert text in str(error.value)
    with pytest.raises(InputError, match="is not positive"):
        simulate_axis(dual, duration=0.0)
    with pytest.raises(InputError, match="two motors"):
        predict_limit_cycles(dual.line)
    with pytest.raises(DescriptionError, match="did you mean"):
        load_drive("dual_motor_axes")


def test_many_plants_tighter_tolerances_change_nothing(dual: Axis) -> None:
    """Rattling, sticking and overdamped contacts: none ends early, and none depends on the tolerance."""
    rng, n = np.random.default_rng(1), 120
    sets = {
        "kp": rng.uniform(100, 300, n),
        "td": rng.uniform(0.01, 0.1, n),
        "switch_min": rng.uniform(0.01, 0.5, n),
        "switch_max": rng.uniform(0.51, 1.0, n),
        "cart_coulomb": rng.choice([0.0, 1.0, 30.0], n),
        "contact_damping": rng.choice([0.0, 200.0, 2e3, 2e4], n),
        "cart_viscous": rng.choice([0.0, 20.0, 2e3], n),
    }
    coarse = simulate_axis(dual, sets)
    fine = simulate_axis(dual, sets, integrator=replace(LINE_INTEGRATOR, rtol=1e-9, atol=1e-11))
    assert not coarse.failed.any()
    assert not fine.failed.any()
    assert coarse.energy == pytest.approx(fine.energy, rel=INVARIANT)
    assert coarse.rise_time == pytest.approx(fine.rise_time, rel=INVARIANT)
    assert coarse.overshoot == pytest.approx(fine.overshoot, abs=0.1 * INVARIANT)


@pytest.mark.parametrize(
    "integrator", [Radau(), RungeKutta4(step=2e-5)], ids=lambda case: type(case).__name__
)
@pytest.mark.parametrize("kind", [Axis, InterpretedAxis])
def test_other_integrators_come_to_the_same_step(integrator: Integrator, kind: type[Axis]) -> None:
    line, duration = load_drive("dual_motor_axis"), 0.3 if kind is Axis else 0.02
    expected = record_axis(Axis(line), duration=duration, samples=11)
    motion = record_axis(kind(line), duration=duration, samples=11, integrator=integrator)
    assert kind is InterpretedAxis or motion.criteria.events[0] > 0
    x, wanted = (record.signal("cart.position") for record in (motion, expected))
    np.testing.assert_allclose(x, wanted, atol=1e-7)


def test_static_friction_holds_more_than_sliding() -> None:
    axis = one_mass(", coulomb: fc, static: 5 N, stribeck: 10 mm/s")
    c = simulate_axis(axis, step=np.array([0.08, 0.12]), duration=3.0)  # 4 N and 6 N asked for
    assert c.final_error[0] == 0.08
    assert c.final_error[1] < 0.12


def test_ball_screw_reflects_inertia() -> None:
    text = """
format: tauloop-drive/1
name: screw
provenance: {status: chosen, source: test}
inertias: {rotor: {inertia: 1e-4 kg m^2}, cart: {mass: 3 kg}}
connections: {screw: {first: rotor, second: cart, ball_screw: 20 mm, rigid: yes}}
motors: {push: {on: rotor}}
encoders: {scale: {on: cart}}
control: {position: {encoder: scale, gain: 1}, motor: push}
performance: {of: cart, band: 1 mm}
"""
    record = record_axis(Axis(read_drive(text)), step=0.1, duration=5.0)
    turn = 2 * np.pi / 0.02
    speed = np.sqrt(turn / (3 + 1e-4 * turn**2))
    assert record.signal("cart.position") == pytest.approx(
        0.1 - 0.1 * np.cos(speed * record.time), abs=0.1 * INTEGRATORS
    )


EVERYTHING = """
format: tauloop-drive/1
name: everything
provenance: {status: chosen, source: chosen}
inertias:
  rotor: {inertia: 1e-3 kg m^2, friction: {viscous: 0.01 N m s/rad}}
  screw:
    inertia: 2e-3 kg m^2
    lugre: {stiffness: 2000 N m/rad, damping: 1 N m s/rad, viscous: 0.01 N m s/rad, coulomb: 0.1 N m, static: 0.15 N m,
      stribeck: 0.1 rad/s}
  table: {mass: 20 kg, friction: {viscous: 50 N s/m, coulomb: 5 N, static: 8 N, stribeck: 0.01 m/s}}
connections:
  coupling: {first: rotor, second: screw, gear: 2, shaft: {stiffness: 2000 N m/rad, damping: 1 N m s/rad}}
  nut: {first: screw, second: table, ball_screw: 20 mm, PLAY: {gap: 0.2 mm, stiffness: 1e7 N/m, damping: 5e3 N s/m}}
motors: {drive: {on: rotor, torque: 3 N m, rated_speed: 60 rad/s, speed: 150 rad/s}}
encoders: {motor_side: {on: rotorMOTOR}, scale: {on: tableLOAD}}
control:
  position: {encoder: scale, gain: 1500}
  speed: {encoder: motor_side, gain: 0.2, integral_time: 50 ms}
  motor: drive
  sample_time: 1 ms
performance: {of: table, band: 50 um}
"""


@pytest.mark.parametrize("play", ["backlash", "exact_backlash"])
def test_all_elements_in_one_line(play: str) -> None:
    """Gear, shaft, screw, play, LuGre, Stribeck, both limits of a motor; counts on both sides."""
    text = EVERYTHING.replace("PLAY", play)
    plain = Axis(read_drive(text.replace("MOTOR", "").replace("LOAD", "")))
    coarse, fine = (
        simulate_axis(
            plain,
            step=0.05,
            duration=0.5,
            integrator=replace(LINE_INTEGRATOR, rtol=rtol, atol=1e-2 * rtol),
        )
        for rtol in (1e-7, 1e-9)
    )
    assert coarse.events[0] > 10
    for key in ("energy", "final_error", "swing"):
        assert getattr(coarse, key) == pytest.approx(getattr(fine, key), rel=INVARIANT), key
    counts = Axis(
        read_drive(
            text.replace("MOTOR", ", resolution: 1e-4 rad").replace("LOAD", ", resolution: 1 um")
        )
    )
    counted = simulate_axis(counts, step=0.05, duration=0.5)
    assert counted.final_error != coarse.final_error
    # 20 counts of 100 000
    assert counted.final_error == pytest.approx(coarse.final_error, abs=2e-5)
    record = record_axis(plain, step=0.05, duration=0.05, samples=51)
    torque, speed = record.signal("drive.torque"), record.signal("rotor.velocity")
    assert torque.max() == pytest.approx(3.0)
    falling = speed > 60.0
    assert (torque[falling] <= 3.0 * (150.0 - speed[falling]) / 90.0 + 1e-9).all()
    assert falling.any()
