"""Stability lobes against a closed form, and against simulations of the delay equations."""

from __future__ import annotations

import numpy as np
import pytest

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.elasticity.vibrations.stability_lobes import directional_factors, milling_lobes

RATIO, COEFFICIENT = 0.05, 700e6
STIFFNESS, MASS = 20e6, 40.0
#: Frequencies near a mode are so close together that the smallest limit is exact to this.
RESOLUTION = 1e-4
#: Depths next to a limit, over the limit: below, vibrations decay, and above they grow.
BELOW, ABOVE = 0.97, 1.03
SLIDE = """
format: tauloop-machine/1
name: slide
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies: {cart: {mass: 40 kg}}
joints: {rail: {type: prismatic, axis: x, parent: base, child: cart}}
actuators: {motor: {on: rail, force: 10 N, stiffness: 20 N/um}}
platform: {body: cart, independent: [rail]}
"""


def slide() -> tl.Vibration:
    return tl.vibration(tl.loads(SLIDE), damping=RATIO)


def test_the_smallest_depth_of_one_mode_is_that_of_the_textbook() -> None:
    """2 k ζ (1 + ζ) / K, at the chatter frequency f sqrt(1 + 2 ζ)."""
    lobes = slide().stability_lobes("700 N/mm^2")
    expected = 2.0 * STIFFNESS * RATIO * (1.0 + RATIO) / COEFFICIENT
    assert lobes.least_depth == pytest.approx(expected, rel=RESOLUTION)
    at = lobes.chatter_frequency[np.nanargmin(lobes.depth)]
    natural = np.sqrt(STIFFNESS / MASS) / (2.0 * np.pi)
    assert at == pytest.approx(natural * np.sqrt(1.0 + 2.0 * RATIO), rel=1e-3)
    assert lobes.limit.min() >= lobes.least_depth
    # A force at 60 degrees to the chip: half of it counts.
    inclined = slide().stability_lobes(COEFFICIENT, force_direction=(0.5, np.sqrt(0.75), 0.0))
    assert inclined.least_depth == pytest.approx(2.0 * expected, rel=RESOLUTION)


def growth_of_turning(depth: float, speed: float) -> float:
    """Return the amplitude late over the amplitude early of m x'' + c x' + k x = -K b (x - x(t - T)).

    Heun's method with 400 steps a period of the mode, and the delay as a number of steps.
    """
    omega = np.sqrt(STIFFNESS / MASS)
    delay_steps = round(400 * omega / (2.0 * np.pi * speed))
    step = 1.0 / speed / delay_steps
    x = np.zeros(200 * 400 + delay_steps)
    position, velocity = 1e-6, 0.0
    damping, gain = 2.0 * RATIO * omega, COEFFICIENT * depth / MASS
    x[delay_steps] = position
    for k in range(delay_steps + 1, len(x)):
        before, after = x[k - 1 - delay_steps], x[k - delay_steps]
        acceleration = -damping * velocity - omega**2 * position - gain * (position - before)
        guess = position + step * velocity, velocity + step * acceleration
        then = -damping * guess[1] - omega**2 * guess[0] - gain * (guess[0] - after)
        position += step * 0.5 * (velocity + guess[1])
        velocity += step * 0.5 * (acceleration + then)
        x[k] = position
    motion = x[delay_steps:]
    third = len(motion) // 3
    return float(np.abs(motion[-third:]).max() / np.abs(motion[third : 2 * third]).max())


@pytest.mark.parametrize("share", [0.3, 0.47, 0.8, 1.05])
def test_turning_chatters_above_the_limit_and_not_below(share: float) -> None:
    speed = share * np.sqrt(STIFFNESS / MASS) / (2.0 * np.pi)
    limit = slide().stability_lobes(COEFFICIENT).limit_at(speed)[0]
    assert growth_of_turning(BELOW * limit, speed) < 1.0
    assert growth_of_turning(ABOVE * limit, speed) > 1.0


def growth_of_milling(depth: np.ndarray, speed: float, teeth: int, radial: float) -> np.ndarray:
    """Return the same of a cutter with rotating teeth in a slot, in two directions, for each depth.

    The forces of each tooth are those at its angle, without a mean; the chip is z (1 - delayed).
    """
    omega = np.sqrt(STIFFNESS / MASS) * np.array([1.0, 1.3])
    masses = np.array([MASS, MASS])
    period = 1.0 / (speed * teeth)
    delay_steps = max(round(200 * omega.max() * period / (2.0 * np.pi)), 60)
    step = period / delay_steps
    count = round(40 * 2.0 * np.pi / omega.min() / step)
    x = np.zeros((count + delay_steps, len(depth), 2))
    position, velocity = np.full((len(depth), 2), 1e-6), np.zeros((len(depth), 2))

    def acceleration(
        at: np.ndarray, rate: np.ndarray, before: np.ndarray, time: float
    ) -> np.ndarray:
        angles = 2.0 * np.pi * (speed * time + np.arange(teeth) / teeth) % (2.0 * np.pi)
        sin, cos = np.sin(angles), np.cos(angles)
        chip = ((at - before) @ np.stack([sin, cos])) * (angles < np.pi)
        tangential = COEFFICIENT * depth[:, None] * chip
        normal = radial * tangential
        force = np.stack(
            [-tangential @ cos - normal @ sin, tangential @ sin - normal @ cos], axis=-1
        )
        return force / masses - 2.0 * RATIO * omega * rate - omega**2 * at

    x[delay_steps] = position
    for k in range(delay_steps + 1, len(x)):
        time = k * step
        first = acceleration(position, velocity, x[k - 1 - delay_steps], time)
        guess = position + step * velocity, velocity + step * first
        then = acceleration(guess[0], guess[1], x[k - delay_steps], time + step)
        position = position + step * 0.5 * (velocity + guess[1])
        velocity = velocity + step * 0.5 * (first + then)
        x[k] = position
    motion = np.abs(x[delay_steps:]).max(axis=2)
    third = len(motion) // 3
    return motion[-third:].max(axis=0) / motion[third : 2 * third].max(axis=0)


@pytest.mark.parametrize("share", [0.11])
def test_milling_chatters_above_the_limit_and_not_below(share: float) -> None:
    """With eight teeth in a slot the directional factors are almost constant."""
    natural = np.sqrt(STIFFNESS / MASS) * np.array([1.0, 1.3]) / (2.0 * np.pi)
    frequency = np.geomspace(0.3 * natural[0], 4.0 * natural[1], 20_000)
    response = np.zeros((len(frequency), 2, 2), dtype=complex)
    for k, own in enumerate(natural):
        ratio = frequency / own
        stiffness = MASS * (2.0 * np.pi * own) ** 2
        response[:, k, k] = 1.0 / (stiffness * (1.0 - ratio**2 + 2j * RATIO * ratio))
    settings = {"radial_ratio": 0.3, "start_angle": 0.0, "exit_angle": np.pi}
    lobes = milling_lobes(frequency, response, COEFFICIENT, 8, **settings)
    speed = share * natural[0]
    limit = lobes.limit_at(speed)[0]
    below, above = growth_of_milling(limit * np.array([0.95, 1.05]), speed, 8, 0.3)
    assert below < 1.0
    assert above > 1.0


def test_directional_factors_are_integrals_of_the_forces_of_a_tooth() -> None:
    """Midpoints of 20 000 angles; a force by a chip that is a unit displacement."""
    start, end, radial = 0.4, 2.1, 0.25
    angle = start + (np.arange(20_000) + 0.5) / 20_000 * (end - start)
    sin, cos = np.sin(angle), np.cos(angle)
    force = np.stack([-cos - radial * sin, sin - radial * cos])
    chip = np.stack([sin, cos])
    # The factors are doubled: the force is ½ b K_t A.
    expected = 2.0 * np.einsum("ik,jk->ij", force, chip) * (end - start) / 20_000
    assert directional_factors(radial, start, end) == pytest.approx(expected, rel=1e-7)


def test_lobes_of_a_call_and_of_options() -> None:
    options = tl.vibration(
        tl.loads(SLIDE), damping=RATIO, cutting_coefficient="700 N/mm^2", teeth=4
    )
    assert options.lobes is not None
    direct = slide().stability_lobes(COEFFICIENT, teeth=4)
    assert options.lobes.limit == pytest.approx(direct.limit)
    with pytest.raises(InputError, match="the feed is parallel to the spindle axis"):
        slide().stability_lobes(COEFFICIENT, teeth=2, direction="z")
    with pytest.raises(
        InputError, match="cutting_coefficient: must be positive and finite, got -1"
    ):
        slide().stability_lobes(-1.0)
    with pytest.raises(InputError, match="force_direction"):
        slide().stability_lobes(1e9, force_direction="w")
    with pytest.raises(InputError, match="2 poses"):
        tl.vibration(tl.loads(SLIDE), [[0.0], [0.1]], damping=0.1).stability_lobes(1e9)
