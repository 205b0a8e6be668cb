"""Static compliance by growing forces, against an independent nonlinear equilibrium."""

from __future__ import annotations

from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import tauloop as tl

TUBES = Path(__file__).parents[2] / "examples" / "elastic" / "gantry_tau.yaml"
RODS = {"triple1": 1, "triple2": 1, "triple3": 1, "pair1": 2, "pair2": 2, "single1": 3}
#: Relative difference: the motion is followed to second order, and displacements of 1 mm are a
#: thousandth of the machine.
AGREEMENT = 1e-5
#: Part of the displacement that is not linear in the force: what is tested is larger than the
#: difference.
NONLINEAR = 3e-4


def nonlinear_displacement(model: tl.Model, force: np.ndarray) -> np.ndarray:
    """Return the displacement (3,) of the tool by a force, from the minimum of the potential.

    Springs along the rods and at the carts; the plate turns by Rodrigues' formula. Without weight.
    """
    machine = model.mechanism
    value = machine.value
    reference = {name: model.assembly.reference[f"track{name}.slide"] for name in (1, 2, 3)}
    x = ca.SX.sym("x", 9)
    u, r, carts = x[:3], x[3:6], x[6:]
    S = ca.skew(r)
    # exp(S) to fifth order: rotations are below 1e-2.
    R = ca.SX.eye(3)
    term = ca.SX.eye(3)
    for k in range(1, 6):
        term = term @ S / k
        R += term
    EA = value("aluminium.young_modulus") * np.pi / 4.0 * (0.05**2 - 0.044**2)
    potential = 0.5 * value("drive_stiffness") * ca.sumsqr(carts)
    for rod, track in RODS.items():
        A = np.array([value(f"{rod}.A_{axis}") for axis in "xyz"])
        B = np.array([value(f"{rod}.B_{axis}") for axis in "xyz"])
        y, z = value(f"track{track}.track_y"), value(f"track{track}.track_z")
        A = np.add(A, [reference[track], y, z])
        length = value(f"{rod}.length")
        moved = u + R @ B - A - ca.vertcat(carts[track - 1], 0, 0)
        potential += 0.5 * EA / length * (ca.norm_2(moved) - length) ** 2
    tool = np.array([0.0, 0.0, -0.2])
    displacement = u + R @ tool - tool
    potential -= ca.dot(force, displacement)
    gradient = ca.gradient(potential, x)
    function = ca.Function("equilibrium", [x], [gradient, ca.jacobian(gradient, x), displacement])
    state = np.zeros(9)
    for _ in range(20):
        g, H, moved = (np.array(item) for item in function(state))
        step = np.linalg.solve(H, g).ravel()
        state -= step
    assert np.abs(step).max() < 1e-14
    return np.array(function(state)[2]).ravel()


def test_it_is_the_nonlinear_equilibrium() -> None:
    text = TUBES.read_text(encoding="utf-8").replace("-9.81 m/s^2", "0 m/s^2")
    model = tl.Model(tl.loads(text))
    result = tl.static_compliance(model, rated_load="10 kN")
    assert result.load == pytest.approx(np.arange(1, 11) * 1000.0)
    units = np.array([sign * axis for axis in np.eye(3) for sign in (1.0, -1.0)])
    linear = tl.stiffness(model).compliance[0, :3, :3]
    nonlinear = []
    for direction, unit in enumerate(units):
        for step in (0, 4, 9):
            load = result.load[step]
            expected = nonlinear_displacement(model, load * unit)
            computed = result.displacement[direction, step]
            size = np.linalg.norm(expected)
            assert np.linalg.norm(computed - expected) < AGREEMENT * size
            nonlinear.append(np.linalg.norm(linear @ unit * load - expected) / size)
    assert max(nonlinear) > NONLINEAR


def test_small_loads_have_the_compliance_of_the_stiffness() -> None:
    model = tl.Model(TUBES)
    result = tl.static_compliance(model, 10.0, {"y": 0.05})
    compliance = tl.stiffness(model, {"y": 0.05}, loaded=True).compliance[0, :3, :3]
    expected = np.linalg.norm(compliance, axis=0)
    assert result.compliance[::2, 0] == pytest.approx(expected, rel=1e-5)
    assert result.worst == pytest.approx(expected.max(), rel=1e-4)
    assert result.to_xarray()["compliance"].attrs["units"] == "m/N"
    assert result.status == "ok"


def test_the_rated_load_is_needed_and_large_displacements_are_doubtful() -> None:
    with pytest.raises(tl.InputError, match="rated_load: must be positive and finite, got 0 N"):
        tl.static_compliance(TUBES, "0 N")
    assert tl.static_compliance(TUBES, rated_load="200 kN").status != "ok"
