"""Gradients of criteria by forward sensitivities: against differences, and as what tuning descends along."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from python_runs import InterpretedAxis

from tauloop.common.errors import InputError
from tauloop.compiler.c.calling.compiler import find_compiler
from tauloop.drives import LINE_INTEGRATOR, Axis, load_drive, read_drive, simulate_axis
from tauloop.drives.axis.sensitivity import DIFFERENTIABLE, SensitiveAxis
from tauloop.drives.criteria import scaled_sum
from tauloop.drives.tuning.methods import SQP
from tauloop.drives.tuning.search import minimize
from tauloop.integrate.integrators import Integrator, Radau
from tauloop.mechanism.expression import Constant

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")

TIGHT = replace(LINE_INTEGRATOR, rtol=1e-9, atol=1e-11)
#: Central differences over 1e-4 of a parameter: rounding of the criteria (1e-9) over the step, and
#: its square.
DIFFERENCES = 1e-4
STEP = 1e-4
#: Gradients below this share of criterion over parameter are noise of the differences.
NOISE = 1e-6
NAMES = (
    "kp",
    "ti",
    "td",
    "switch_min",
    "switch_max",
    "gap",
    "cart_coulomb",
    "cart_mass",
    "preload",
)
#: A plant with much dry friction, in place of the file's.
PLANT = {
    "motor_inertia": 0.0044,
    "motor_viscous": 0.087,
    "gap": 1.2e-4,
    "cart_mass": 10.8,
    "cart_viscous": 394.0,
    "cart_coulomb": 26.8,
    "preload": 9.28,
    "feed_forward_share": 0.485,
    "torque_share": 0.74,
}
#: The file's own figures (28 events); an early switch with an overshoot (the cart then sticks), and
#: one motor pulling back all the time, without one.
CASES = [
    {},
    PLANT | {"kp": 337.6, "ti": 0.4056, "td": 0.0465, "switch_min": 0.3, "switch_max": 0.6},
    PLANT | {"ti": 1.2, "switch_min": 10.0, "switch_max": 11.0},
]


@pytest.fixture(scope="module")
def sensitive() -> SensitiveAxis:
    return SensitiveAxis(load_drive("dual_motor_axis"), NAMES)


@pytest.mark.parametrize("point", CASES, ids=["file", "overshoots", "creeps"])
def test_gradients_are_those_of_differences(
    sensitive: SensitiveAxis, point: dict[str, float]
) -> None:
    axis = Axis(sensitive.axis.line)
    gradients = sensitive.gradients(point, integrator=TIGHT)
    plain = simulate_axis(axis, point, integrator=TIGHT)
    values = dict(axis.line.parameters.values) | point
    for name in DIFFERENTIABLE:
        criterion = float(getattr(plain, name)[0])
        assert getattr(gradients.criteria, name)[0] == pytest.approx(criterion, rel=1e-7, abs=1e-9)
        for k, parameter in enumerate(NAMES):
            offset = STEP * values[parameter]
            pair = np.array([values[parameter] + offset, values[parameter] - offset])
            ahead, behind = getattr(
                simulate_axis(axis, point | {parameter: pair}, integrator=TIGHT), name
            )
            scale = max(criterion, 1e-3) / values[parameter]
            expected = (ahead - behind) / (2 * offset)
            assert gradients.gradients[name][k] == pytest.approx(
                expected, rel=DIFFERENCES, abs=NOISE * scale + 1e-8
            ), parameter
    assert (gradients.criteria.overshoot[0] > 0) == (point is not CASES[2])


def test_costs_have_the_gradients_of_their_parts(sensitive: SensitiveAxis) -> None:
    gradients = sensitive.gradients(CASES[1])
    scales = {"energy": 216.5, "overshoot": 3e-4}
    both = gradients.gradients["energy"] / 216.5 + gradients.gradients["overshoot"] / 3e-4
    np.testing.assert_allclose(gradients.scaled_sum(scales), both)
    np.testing.assert_allclose(
        gradients.scaled_worst(scales), gradients.gradients["energy"] / 216.5
    )


def test_tuning_along_gradients_ends_where_differences_end() -> None:
    """Energy against rise time, a smooth cost: the same optimum with a quarter of the simulations."""
    line = load_drive("dual_motor_axis")
    axis, sensitive = Axis(line), SensitiveAxis(line, ("kp", "td"))
    scales, bounds = {"energy": 500.0, "rise_time": 1.7}, {"kp": (100.0, 400.0), "td": (0.01, 0.1)}
    fixed = PLANT | {"switch_min": 10.0, "switch_max": 11.0, "ti": 1.2}

    def cost(points: np.ndarray) -> np.ndarray:
        inputs = fixed | {"kp": points[:, 0], "td": points[:, 1]}
        return scaled_sum(simulate_axis(axis, inputs, duration=5.0), scales)

    def gradient(point: np.ndarray) -> np.ndarray:
        inputs = fixed | {"kp": float(point[0]), "td": float(point[1])}
        return sensitive.gradients(inputs, duration=5.0).scaled_sum(scales)

    differences = minimize(cost, bounds, [200.0, 0.05], SQP())
    exact = minimize(cost, bounds, [200.0, 0.05], SQP(gradient=gradient))
    assert exact.cost == pytest.approx(differences.cost, rel=1e-6)
    assert exact.cost < 0.9 * exact.start_cost
    assert 300.0 < exact.best[0] < 390.0  # not at a bound
    assert len(exact.costs) < 0.5 * len(differences.costs)
    assert "gradients given" in exact.ending


def test_a_gradient_that_is_none_is_replaced_by_differences() -> None:
    def cost(points: np.ndarray) -> np.ndarray:
        return ((points - 0.3) ** 2).sum(axis=1)

    minimum = minimize(
        cost, {"x": (0.0, 1.0)}, [0.9], SQP(gradient=lambda point: np.array([np.nan]))
    )
    assert minimum.best[0] == pytest.approx(0.3, abs=1e-4)


def test_failed_runs_have_no_gradient(sensitive: SensitiveAxis) -> None:
    gradients = sensitive.gradients({"ti": 1e-3, "cart_viscous": 0.0})
    assert gradients.criteria.failed[0]
    assert all(np.isnan(gradients.gradients[name]).all() for name in DIFFERENTIABLE)


def test_what_has_no_gradient_is_refused_with_all_problems() -> None:
    line = load_drive("dual_motor_axis")
    with pytest.raises(
        InputError, match="period changes the scale of the evaluated position or the sample time"
    ):
        SensitiveAxis(read_drive(PERIODIC), ("kp", "period"))
    counting = replace(
        line, encoders=(replace(line.encoders[0], resolution=Constant(1e-6)), *line.encoders[1:])
    )
    with pytest.raises(InputError) as error:
        SensitiveAxis(counting, ("kp", "kpp"))
    assert [problem.where for problem in error.value.problems] == [
        "kpp",
        f"encoders.{line.encoders[0].name}",
    ]
    with pytest.raises(InputError, match="names: are empty"):
        SensitiveAxis(line, ())


def test_many_runs_have_the_gradients_of_each(sensitive: SensitiveAxis) -> None:
    """Three runs in one call, of which the last fails, and steps of their own."""
    points, steps = (
        [PLANT | {"kp": 337.6, "ti": 0.4056}, PLANT | {"kp": 200.0, "ti": 1.2}],
        [0.1, 0.05],
    )
    arrays = {name: np.array([point[name] for point in points]) for name in points[0]}
    arrays = {name: np.append(values, values[0]) for name, values in arrays.items()}
    arrays["ti"][-1], arrays["cart_viscous"][-1] = 1e-3, 0.0
    many = sensitive.gradients(arrays, step=np.append(steps, 0.1))
    scales = {"energy": 216.5, "overshoot": 3e-4}
    for k, (point, step) in enumerate(zip(points, steps, strict=True)):
        alone = sensitive.gradients(point, step=step)
        for name in DIFFERENTIABLE:
            np.testing.assert_array_equal(many.gradients[name][k], alone.gradients[name])
        np.testing.assert_array_equal(many.scaled_sum(scales)[k], alone.scaled_sum(scales))
        np.testing.assert_array_equal(many.scaled_worst(scales)[k], alone.scaled_worst(scales))
    assert many.criteria.failed.tolist() == [False, False, True]
    assert np.isnan(many.gradients["energy"][2]).all()


def test_a_settling_time_changes_with_its_band_as_differences_say() -> None:
    axis, sensitive = Axis(read_drive(BANDED)), SensitiveAxis(read_drive(BANDED), ("band", "kp"))
    bands = np.array([2e-4, 2e-3, 2e-2])
    made = sensitive.gradients({"band": bands}, integrator=TIGHT)
    both = [
        simulate_axis(axis, {"band": bands * (1 + s * STEP)}, integrator=TIGHT).settling_time
        for s in (1, -1)
    ]
    np.testing.assert_allclose(
        made.gradients["settling_time"][:, 0], (both[0] - both[1]) / (2 * STEP * bands), rtol=1e-5
    )
    assert np.all(made.gradients["settling_time"][:, 0] < 0)
    assert np.all(made.gradients["energy"][:, 0] == 0)


#: Two masses with a gap between them, under a continuous control and a sampled one.
TWO_MASSES = """
format: tauloop-drive/1
name: two_mass
provenance: {status: chosen, source: test}
parameters: {k: 2000 N/m, d: 20 N s/m, gap: 1 mm, kp: 500 N/m, m: 1 kg}
inertias: {slide: {mass: m}, cart: {mass: m}}
connections: {shaft: {first: slide, second: cart, exact_backlash: {gap: gap, stiffness: k, damping: d}}}
motors: {push: {on: slide}}
encoders: {scale: {on: cart}}
control: {position: {encoder: scale, gain: kp, derivative_time: 0.1 s, filter: 0.05}, motor: pushSAMPLED}
performance: {of: cart, band: 0.1 mm}
"""


@pytest.mark.parametrize("sampled", ["", ", sample_time: 10 ms"], ids=["continuous", "sampled"])
def test_gaps_that_close_and_samples_change_gradients_as_differences_say(sampled: str) -> None:
    """The force jumps where an exact backlash meets its contact, and derivatives with it."""
    names = ("k", "d", "gap", "kp", "m")
    line = read_drive(TWO_MASSES.replace("SAMPLED", sampled))
    axis, sensitive = Axis(line), SensitiveAxis(line, names)
    made = sensitive.gradients(duration=2.0, integrator=TIGHT)
    assert made.criteria.events[0] > 2
    for k, parameter in enumerate(names):
        value = line.parameters[parameter].value
        pair = value * np.array([1 + STEP, 1 - STEP])
        both = simulate_axis(axis, {parameter: pair}, duration=2.0, integrator=TIGHT)
        for name in DIFFERENTIABLE:
            ahead, behind = getattr(both, name)
            noise = NOISE * max(float(getattr(made.criteria, name)[0]), 1e-3) / value
            expected = (ahead - behind) / (2 * STEP * value)
            assert made.gradients[name][k] == pytest.approx(expected, rel=DIFFERENCES, abs=noise), (
                name,
                parameter,
            )


PERIODIC = """
format: tauloop-drive/1
name: periodic
provenance: {status: chosen, source: test}
parameters: {kp: 400 N/m, period: 5 ms}
inertias: {cart: {mass: 2 kg, friction: {viscous: 8 N s/m}}}
motors: {push: {on: cart}}
encoders: {scale: {on: cart}}
control: {position: {encoder: scale, gain: kp}, motor: push, sample_time: period}
performance: {of: cart, band: 0.1 mm}
"""
ONE_MASS = """
format: tauloop-drive/1
name: one_mass
provenance: {status: chosen, source: test}
parameters: {kp: 400 N/m, m: 2 kg, d: 8 N s/m}
inertias: {cart: {mass: m, friction: {viscous: d}}}
motors: {push: {on: cart}}
encoders: {scale: {on: cart}}
control: {position: {encoder: scale, gain: kp}, motor: push}
performance: {of: cart, band: 0.1 mm}
"""


BANDED = ONE_MASS.replace("d: 8 N s/m}", "d: 8 N s/m, band: 1 mm}").replace(
    "band: 0.1 mm", "band: band"
)


@pytest.mark.parametrize(
    "integrator", [TIGHT, Radau(rtol=1e-10, atol=1e-12)], ids=["explicit", "implicit"]
)
def test_the_overshoot_of_one_mass_on_paper(integrator: Integrator) -> None:
    """Step r: overshoot r exp(-pi z / sqrt(1 - z^2)) with z = d / (2 sqrt(kp m))."""
    step, values = 0.1, np.array([400.0, 2.0, 8.0])

    def overshoot(kp: complex, m: complex, d: complex) -> complex:
        z = d / (2 * np.sqrt(kp * m))
        return step * np.exp(-np.pi * z / np.sqrt(1 - z**2))

    made = SensitiveAxis(read_drive(ONE_MASS), ("kp", "m", "d")).gradients(
        step=step, integrator=integrator
    )
    expected = [overshoot(*(values + 1e-30j * row)).imag / 1e-30 for row in np.eye(3)]
    assert made.criteria.overshoot[0] == pytest.approx(overshoot(*values).real, rel=1e-7)
    np.testing.assert_allclose(made.gradients["overshoot"], expected, rtol=1e-6)


def test_interpreted_runs_have_the_same_gradients() -> None:
    names = ("kp", "m", "d")
    sensitive = SensitiveAxis(read_drive(ONE_MASS), names)
    made = sensitive.gradients(duration=1.0)
    sensitive.axis = InterpretedAxis(sensitive.axis.line, directions=len(names))
    slow = sensitive.gradients(duration=1.0)
    for name in DIFFERENTIABLE:
        np.testing.assert_allclose(slow.gradients[name], made.gradients[name], rtol=1e-9)
