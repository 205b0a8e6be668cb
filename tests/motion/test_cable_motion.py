"""What cables and their winches allow of motions: HiGHS and Clarabel on lines of their own say the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cable_machines import CONSTRAINED, SUSPENDED, Plate
from scipy.optimize import linprog
from scipy.spatial.transform import Rotation

import tauloop
from tauloop.common.errors import InputError, PoseError
from tauloop.compiler.c import Interpreted
from tauloop.model import ForceSharing, Model
from tauloop.motion import LAWS, Line, fastest_rate, stroke, tightest_limit

#: As far as rates are found beside the border, of the rate: rounding of margins and the spare that
#: is left.
BESIDE = 1e-6


def model(plate: Plate, **keys: str) -> Model:
    """The machine of a plate, interpreted."""
    return Model(tauloop.loads(plate.text(**keys)), evaluator=Interpreted())


def states(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random motions around the middle of the frame."""
    rng = np.random.default_rng(11)
    turned = Rotation.from_rotvec(0.1 * rng.normal(size=(count, 3))).as_quat(scalar_first=True)
    position = np.c_[rng.uniform(-0.5, 0.5, (count, 2)), rng.uniform(1.0, 1.6, (count, 1)), turned]
    return position, 0.3 * rng.normal(size=(count, 6)), 0.5 * rng.normal(size=(count, 6))


def test_a_winch_that_cannot_pull_harder_bounds_its_cable() -> None:
    """A bare winch of 120 N on a cable of 180 N: the quadratic and the linear program with 120 N."""
    weaker = replace(SUSPENDED, greatest=120.0)
    functions = model(SUSPENDED, actuator=", force: 120 N").platform
    motions = states(30)
    wanted = [weaker.margin(p, weaker.needed(p, v, a)) for p, v, a in zip(*motions, strict=True)]
    np.testing.assert_allclose(functions.tension_margin(*motions), wanted, rtol=0, atol=1e-8)
    good = np.flatnonzero(np.array(wanted) > 0.01)
    assert 3 < len(good) < 30
    sharing = ForceSharing(preload=150.0)
    forces = functions.inverse_dynamics(*(part[good] for part in motions), sharing=sharing)
    assert forces.tension is not None
    at_bounds = 0
    for tension, i in zip(forces.tension, good, strict=True):
        p, v, a = (part[i] for part in motions)
        exact, bounded = weaker.distribution(p, weaker.needed(p, v, a), np.full(8, 150.0))
        np.testing.assert_allclose(tension, exact, rtol=0, atol=1e-8)
        at_bounds += bounded
    assert at_bounds > 0
    (bad, *_) = np.flatnonzero(np.array(wanted) < -0.01)
    with pytest.raises(
        PoseError, match=r"and those of the winches' forces .* the smallest violation is"
    ):
        functions.inverse_dynamics(*(part[bad] for part in motions))


def test_what_a_winch_spends_on_its_own_drum_is_missing_from_its_cable() -> None:
    """7 N m behind 20 rad/m pull 140 N less what turns the drum, J ratio^2 s'' by hand: HiGHS with these bounds."""
    motor = ", ratio: 20 rad/m, inertia: 0.01 kg m^2, force: 7 N m"
    functions = model(SUSPENDED, actuator=motor).platform
    position, _, acceleration = states(30)
    still = np.zeros((30, 6))
    state = functions.kinematics(position, still, acceleration)
    winding = [state.velocity_names.index(f"cable{i}") for i in range(1, 9)]
    most = 140.0 + 0.01 * 20**2 * np.asarray(state.a)[:, winding]
    wanted = []
    for p, a, limit in zip(position, acceleration, most, strict=True):
        structure, k = SUSPENDED.structure(p), 8
        solution = linprog(
            np.r_[np.zeros(k), -1.0],
            A_ub=np.block([[-np.eye(k), np.ones((k, 1))], [np.eye(k), np.ones((k, 1))]]),
            b_ub=np.r_[np.full(k, -SUSPENDED.least), np.minimum(limit, SUSPENDED.greatest)],
            A_eq=np.c_[structure, np.zeros(6)],
            b_eq=SUSPENDED.needed(p, np.zeros(6), a),
            bounds=[(None, None)] * (k + 1),
            method="highs",
        )
        wanted.append(-solution.fun)
    np.testing.assert_allclose(
        functions.tension_margin(position, still, acceleration), wanted, rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("plate", [CONSTRAINED, SUSPENDED], ids=["constrained", "suspended"])
def test_the_fastest_stroke_is_where_highs_runs_out_of_tensions(plate: Plate) -> None:
    """HiGHS along the stroke at 101 times: just feasible at the rate found, and no more beside it."""
    machine = model(plate)
    start, end = np.array([0.0, 0.05, 1.2]), np.array([0.2, -0.1, 1.1])
    law = LAWS["3-4-5"]
    placed = stroke(machine, Line(start, end), ("platform.x", "platform.y", "platform.z"))
    rate = fastest_rate(placed, law)
    turned = machine.platform_position(machine.assembly.q)[3:]
    x = np.linspace(0, 1, 101)
    s, second = 10 * x**3 - 15 * x**4 + 6 * x**5, 60 * x - 180 * x**2 + 120 * x**3

    def least(r: float) -> float:
        rows = [
            plate.margin(
                np.r_[start + (end - start) * si, turned],
                plate.needed(
                    np.r_[start, turned], np.zeros(6), np.r_[(end - start) * ai * r * r, 0, 0, 0]
                ),
            )
            for si, ai in zip(s, second, strict=True)
        ]
        return min(rows)

    assert least(rate * (1 - BESIDE)) >= 0.0
    assert least(rate * (1 + 1e-3)) < 0.0
    name, share = tightest_limit(placed, law, rate) or ("", 0.0)
    assert name.startswith("tension of cable")
    assert share == pytest.approx(1.0, abs=1e-8)


def test_a_stroke_that_cables_cannot_hold_is_out_of_stroke_with_its_place() -> None:
    machine = model(CONSTRAINED)
    placed = stroke(machine, Line(np.array([1.2]), np.array([3.4])), ("platform.z",))
    with pytest.raises(
        PoseError,
        match=r"even at arbitrarily low speed, at .* of the path .* no tensions within their bounds",
    ):
        fastest_rate(placed, LAWS["3-4-5"])


def test_rates_that_no_quadratic_tells_are_refused() -> None:
    """A motor on the platform's joint beside the cables: its force is chosen with theirs."""
    text = CONSTRAINED.text().replace(
        "actuators:", "actuators:\n  push: {on: platform.x, force: 30 N}"
    )
    machine = Model(tauloop.loads(text), evaluator=Interpreted())
    placed = stroke(machine, Line(np.array([1.2]), np.array([1.4])), ("platform.z",))
    with pytest.raises(InputError, match="share their forces with winches"):
        fastest_rate(placed, LAWS["3-4-5"])


def test_a_stroke_of_cables_is_planned_to_their_limits() -> None:
    mechanism = tauloop.loads(CONSTRAINED.text(actuator=", force: 450 N"))
    planned = tauloop.plan_stroke(mechanism, tauloop.StrokeOptions(end={"z": 1.0}))
    name, share = planned.tightest_limit
    assert name.startswith("tension of cable")
    assert share == pytest.approx(1.0, abs=5e-4)
    assert -450.0 * (1 + 1e-9) <= min(peak.force for peak in planned.forces) < -400.0
