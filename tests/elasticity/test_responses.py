"""Frequency responses of tools and encoders, against dense solutions and closed forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from elastic_machines import gantry

import tauloop as tl
from tauloop.common.errors import InputError

#: Rounding of sums over modes.
ROUNDING = 1e-8
MASS, ROTOR, SPRING, GEAR = 40.0, 2e-3, 500.0, 200.0
POSITION, SPEED, LOSS = 60.0, 0.9, 0.03
SLIDE = """
format: tauloop-machine/1
name: slide
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies: {cart: {mass: 40 kg}}
joints: {rail: {type: prismatic, axis: x, parent: base, child: cart}}
actuators: {motor: {on: rail, ratio: 200, force: 10 N, stiffness: 500 N/m, inertia: 2e-3 kg}}
platform: {body: cart, independent: [rail]}
"""


def test_a_locked_machine_with_a_loss_factor_answers_as_its_dense_equations() -> None:
    """(K (1 + i η) - ω² M) x = Jᵀ f, without modes."""
    result = tl.vibration(gantry(), count=200, link_modes=1)
    assembled, built = result.modal.assembled, result.modal.built
    J = assembled.point_motion(built.tool_body, built.tool_point)[0]
    frequencies = np.array([5.0, 78.0, 79.0, 150.0])
    response = result.tool_response(frequencies, loss_factor=LOSS)[0]
    for k, omega in enumerate(2.0 * np.pi * frequencies):
        dense = (1.0 + 1j * LOSS) * assembled.stiffness[0] - omega**2 * assembled.mass[0]
        assert response[k] == pytest.approx(
            J @ np.linalg.solve(dense, J.T), rel=ROUNDING, abs=1e-16
        )


def test_motor_and_reference_to_encoder_of_two_masses() -> None:
    result = tl.vibration(
        tl.loads(SLIDE),
        motor_state="servo",
        servo_gains={"motor": {"position": POSITION, "speed": SPEED}},
    )
    frequencies = np.array([0.5, 20.0, 114.0, 800.0])
    responses = result.frequency_responses(frequencies, loss_factor=LOSS)
    assert responses.encoder is not None
    assert responses.reference is not None
    K = (1.0 + 1j * LOSS) * SPRING * np.array([[1.0, -GEAR], [-GEAR, GEAR**2]])
    for k, omega in enumerate(2.0 * np.pi * frequencies):
        plant = K - omega**2 * np.diag([ROTOR, MASS])
        by_motor = np.linalg.solve(plant, [1.0, 0.0])[0]
        assert responses.encoder[0, k, 0, 0] == pytest.approx(by_motor, rel=ROUNDING)
        law = SPEED * (POSITION + 1j * omega)
        closed = SPEED * POSITION * by_motor / (1.0 + law * by_motor)
        assert responses.reference[0, k, 0, 0] == pytest.approx(closed, rel=ROUNDING)
        loop = plant + np.array([[law, 0.0], [0.0, 0.0]])
        at_tool = np.linalg.solve(loop, [0.0, 1.0])[1]
        assert responses.tool[0, k, 0, 0] == pytest.approx(at_tool, rel=ROUNDING)


def test_a_free_motor_moves_its_encoder_as_a_mass() -> None:
    elastic = gantry()
    free = tl.vibration(elastic, motor_state="free", count=6)
    responses = free.frequency_responses([0.1], damping=0.01)
    assert responses.encoder is not None
    # Far below the first elastic mode: the mass matrix of the rigid machine.
    model = tl.Model(elastic)
    q = model.assembly.q
    mass = model.actuators.mass_matrix(model.actuator_position(q), start=q)
    expected = -np.linalg.inv(mass) / (2.0 * np.pi * 0.1) ** 2
    assert responses.encoder[0, 0] == pytest.approx(
        expected, rel=1e-4, abs=1e-4 * abs(expected).max()
    )
    assert tl.vibration(tl.loads(SLIDE)).frequency_responses([1.0], damping=0.1).encoder is None


def test_dynamic_stiffness_of_one_mass() -> None:
    """The smallest ratio of force and amplitude is k 2 ζ sqrt(1 - ζ²)."""
    ratio = 0.05
    result = tl.vibration(tl.loads(SLIDE), damping=ratio, response_frequencies=(10.0, 112.26))
    assert result.responses is not None
    natural = result.frequency[0, 0]
    at_peak = natural * np.sqrt(1.0 - 2.0 * ratio**2)
    responses = result.frequency_responses([at_peak, 1e-3])
    stiffness = SPRING * GEAR**2
    expected = [stiffness * 2.0 * ratio * np.sqrt(1.0 - ratio**2), stiffness]
    assert responses.dynamic_stiffness[0, :, 0] == pytest.approx(expected, rel=1e-9)
    assert responses.worst_dynamic_stiffness[0] == pytest.approx(expected, rel=1e-9)
    assert responses.least_at[0] == at_peak
    assert result.as_dict()["responses"]["least_at_Hz"] == [112.26]


def test_poses_of_a_motion(tmp_path: Path) -> None:
    path = tmp_path / "motion.csv"
    rows = [f"{0.1 * k},{1e-3 * k},0,0" for k in range(120)]
    head = "time [s],position.platform.x [m],position.platform.y [m],position.platform.z [m]"
    path.write_text("\n".join([head, *rows]), encoding="utf-8")
    result = tl.vibration(
        gantry(), motion=path, count=1, damping=0.02, response_frequencies="50..100 Hz"
    )
    assert len(result.frequency) == 50
    assert result.platform[[0, -1], 0] == pytest.approx([0.0, 0.119])
    ends = tl.vibration(gantry(), result.platform[[0, -1]], count=1)
    assert result.frequency[[0, -1]] == pytest.approx(ends.frequency, rel=ROUNDING)
    assert result.responses is not None
    assert result.responses.tool.shape == (50, 200, 6, 6)
    assert result.responses.frequency[[0, -1]] == pytest.approx([50.0, 100.0])
    with pytest.raises(InputError, match="given in addition to a motion"):
        tl.vibration(gantry(), "x=1 mm", motion=path)


@pytest.mark.parametrize(
    "frequencies", ["10..1", "1..1 kHz", "0..5", "5 mm..1", "x", "-1", "", ".."]
)
def test_wrong_frequencies_are_refused(frequencies: str) -> None:
    with pytest.raises(InputError, match="frequencies"):
        tl.vibration(tl.loads(SLIDE), damping=0.1, response_frequencies=frequencies)


def test_responses_without_damping_are_refused() -> None:
    with pytest.raises(InputError, match="neither the machine file nor the call"):
        tl.vibration(tl.loads(SLIDE), response_frequencies="1..200")
