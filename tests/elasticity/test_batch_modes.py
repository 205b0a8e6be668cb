"""Compliance and frequencies of machines that differ in their parameters, from one function."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from elastic_machines import PRPAR, PUU, hexapod

import tauloop as tl
from tauloop.elasticity.static_analysis.batch_compliance import parametric_compliance
from tauloop.elasticity.vibrations.batch_modes import parametric_frequencies

EXAMPLES = Path(__file__).parents[2] / "examples"
TUBES = EXAMPLES / "elastic" / "gantry_tau.yaml"
PARAMETRIC = EXAMPLES / "synthesis" / "gantry_tau" / "machine.yaml"
NAMES = ("wall", "single_outer", "triple_length", "pair_y", "base_y", "tip_z", "m_p")


def candidates(count: int) -> tuple[tl.Model, np.ndarray, np.ndarray, np.ndarray]:
    """Return the machine, parameters (N, t), positions (N, 3) and coordinates (N, n_q)."""
    rng = np.random.default_rng(1)
    model = tl.Model(PARAMETRIC)
    nominal = np.array(model.mechanism.parameters.vector(NAMES))
    theta = nominal * (1.0 + 0.05 * rng.uniform(-1.0, 1.0, (count, len(NAMES))))
    theta[:, 5] = rng.uniform(-0.02, 0.02, count)
    positions = rng.uniform(-0.15, 0.15, (count, 3))
    free = tl.Model(model.mechanism, NAMES)
    return model, theta, positions, free.platform.kinematics(positions, theta=theta).q


def machine_with(model: tl.Model, theta: np.ndarray) -> tl.Model:
    return tl.Model(model.mechanism.with_values(dict(zip(NAMES, theta.tolist(), strict=True))))


def test_compliance_is_that_of_each_machine() -> None:
    model, theta, positions, q = candidates(5)
    q[3] = np.nan
    computed = parametric_compliance(model, NAMES, q, theta)
    assert computed is not None
    assert np.isnan(computed[3]).all()
    for i in (0, 1, 2, 4):
        machine = machine_with(model, theta[i])
        expected = tl.stiffness(machine, positions[i : i + 1]).compliance[0]
        assert np.abs(computed[i] - expected).max() <= 1e-12 * np.abs(expected).max()


def test_frequencies_are_those_of_each_machine_by_finite_elements() -> None:
    model, theta, positions, q = candidates(5)
    q[3] = np.nan
    computed = parametric_frequencies(model, NAMES, q, theta, 6)
    assert computed is not None
    assert np.isnan(computed[3]).all()
    for i in (0, 1, 2, 4):
        machine = machine_with(model, theta[i])
        expected = tl.vibration(machine, positions[i : i + 1], count=6, link_modes=1).frequency[0]
        assert computed[i] == pytest.approx(expected, rel=1e-6)


def test_tubes_between_heavy_bodies_have_the_frequencies_of_pinned_beams() -> None:
    """f = π / (2 L²) √(E I / (ρ A)), twice for each tube; the bodies move far below them."""
    model = tl.Model(PARAMETRIC)
    names = ("m_p", "I_pxx", "I_pyy", "I_pzz", "cart_mass")
    theta = np.full((1, 5), 1e9)
    computed = parametric_frequencies(model, names, model.assembly.q[None], theta, 21)
    assert computed is not None
    outer, inner = 0.050, 0.044
    radius = 0.25 * np.hypot(outer, inner)
    speed = np.sqrt(model.mechanism.value("aluminium.young_modulus") / 2700.0)
    lengths = np.array([1.25] * 10 + [1.09] * 2)
    expected = 0.5 * np.pi / lengths**2 * speed * radius
    assert computed[0, 9:] == pytest.approx(np.sort(expected), rel=1e-5)
    assert (computed[0, :9] < 1.0).all()


@pytest.mark.parametrize("many", [4, 300], ids=["interpreted", "compiled"])
def test_the_number_of_machines_does_not_matter(many: int) -> None:
    model, theta, _, q = candidates(3)
    rows = np.arange(many) % 3
    few = parametric_frequencies(model, NAMES, q, theta, 2)
    computed = parametric_frequencies(model, NAMES, q[rows], theta[rows], 2)
    assert few is not None
    assert computed is not None
    assert computed == pytest.approx(few[rows], rel=1e-9)


@pytest.mark.parametrize(
    "machine",
    [
        lambda: hexapod(drives="30 N/um", sections=True),
        lambda: tl.loads(PUU),
        lambda: tl.loads(PRPAR),
    ],
    ids=["telescopic", "universal", "overconstrained"],
)
def test_other_machines_are_left_to_finite_elements(machine: object) -> None:
    model = tl.Model(machine())  # type: ignore[operator]
    q = model.assembly.q[None]
    assert parametric_frequencies(model, (), q, np.zeros((1, 0)), 1) is None


def test_the_diameter_of_all_tubes_may_differ() -> None:
    text = TUBES.read_text(encoding="utf-8")
    model = tl.Model(tl.loads(text))
    q = model.assembly.q[None]
    computed = parametric_frequencies(model, ("tube_outer",), q, np.array([[0.04]]), 3)
    assert computed is not None
    machine = tl.Model(model.mechanism.with_values({"tube_outer": 0.04}))
    assert computed[0] == pytest.approx(
        tl.vibration(machine, count=3, link_modes=1).frequency[0], rel=1e-6
    )
