"""Gauge freedoms by name: what a null direction moves, against motions worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_sessions import P21, P51, encoders, machine, measured

from tauloop.calibration import (
    Contact,
    Identifiability,
    Instrument,
    Orientation,
    ParameterDirection,
    Position,
    calibration_problem,
    identifiability,
)
from tauloop.calibration.judging.gauges import gauges, leading_rows

#: Shares explained of motions that are in the null space exactly: squares of derivatives exact to
#: 1e-7 or better.
EXACT = 1 - 1e-9
#: Terms of a direction at a geometry 1 mm and 1 mrad off the nominal one, by which they are
#: predicted (per metre).
NEARBY = 0.02


def ranks(
    name: str,
    instrument: Instrument,
    parameters: tuple[str, ...],
    *,
    poses: int = 25,
    stroke: float = 0.15,
    seed: int = 1,
) -> Identifiability:
    draw = np.random.default_rng(seed)
    series = measured(name, {}, instrument, encoders(name, poses, draw, stroke), 2e-5)
    return identifiability(
        calibration_problem(machine(name), [series], parameters), np.random.default_rng(seed + 1)
    )


def names(identifiability: Identifiability) -> list[str]:
    return [direction.name for direction in identifiability.gauge]


def changes(direction: ParameterDirection) -> dict[str, float]:
    return dict(direction.terms)


def test_positions_alone_leave_turns_of_the_platform_about_the_target():
    gauges = ranks("gantry_tau_6link", Position(name="t"), P51, poses=30)
    assert names(gauges) == [
        f"rotation of the platform frame about the target, about {axis}" for axis in "xyz"
    ]
    assert all(direction.explained > EXACT for direction in gauges.gauge)
    mechanism = machine("gantry_tau_6link")
    tool = np.array([mechanism.value(component) for component in mechanism.platform.tool.position])
    for e, direction in zip(np.eye(3), gauges.gauge, strict=True):
        moved = changes(direction)
        assert {name.split(".")[1][0] for name in moved} == {"B"}
        links = ("triple1", "triple2", "triple3", "pair1", "pair2", "single1")
        B = np.array(
            [[mechanism.parameters[f"{link}.B_{axis}"].value for axis in "xyz"] for link in links]
        )
        expected = np.cross(e, B - tool)
        ours = np.array([[moved.get(f"{link}.B_{axis}", 0.0) for axis in "xyz"] for link in links])
        factor = (ours * expected).sum() / (expected**2).sum()
        assert np.abs(ours - factor * expected).max() < NEARBY * np.abs(ours).max() + 1e-3 * NEARBY


@pytest.mark.parametrize("seed", range(3))
def test_the_rank_does_not_hang_on_the_draw(seed):
    """The least singular value that is none is 1e-10 of the largest; a limit in its midst once made 47 of 48."""
    assert (
        ranks("gantry_tau_6link", Position(name="t"), P51, poses=30, seed=seed).generic_rank == 48
    )


def test_an_unknown_tracker_frame_moves_with_the_base():
    gauges = ranks("gantry_tau_3dof", Position(name="t"), (*P21, "t.frame.*"))
    expected = [f"translation of the base frame along {axis}, with t" for axis in "xyz"]
    assert names(gauges) == expected + [
        f"rotation of the base frame about {axis}, with t" for axis in "xyz"
    ]
    for axis, direction in zip("xyz", gauges.gauge, strict=False):
        assert changes(direction) == pytest.approx(
            {f"t.frame.{axis}": 1e-3} | {f"track{i}.offset_{axis}": 1e-3 for i in (1, 2, 3)}
        )
    about_z = changes(gauges.gauge[-1])
    assert [about_z[f"track{i}.yaw"] for i in (1, 2, 3)] == pytest.approx(
        [about_z["t.frame.rz"]] * 3, rel=NEARBY
    )


def test_a_tool_offset_against_the_platform():
    gauges = ranks(
        "gantry_tau_3dof", Position(name="t"), ("track*.offset_z", "platform.tool.at[2]", "m_p")
    )
    assert names(gauges) == [
        "translation of the platform frame relative to the target along z",
        "nothing moves: these changes, made together, have no effect",
    ]
    assert gauges.gauge[1].explained is None
    assert list(changes(gauges.gauge[1])) == ["m_p"]
    reasons = {item.name: item.reason for item in gauges.left_out}
    assert sum("translation of the platform frame" in reason for reason in reasons.values()) == 1


def test_offsets_of_all_actuators_along_a_direction():
    gauges = ranks(
        "linear_delta", Position(name="t"), ("encoder.*.offset", "t.frame.*"), stroke=0.03
    )
    assert names(gauges) == [
        "translation of the base frame along z, with t, by constant offsets of all actuators"
    ]
    assert set(changes(gauges.gauge[0])) == {"t.frame.z"} | {
        f"encoder.tower{i}.motor.offset" for i in (1, 2, 3)
    }


def test_zero_points_that_are_there_twice():
    gauges = ranks(
        "linear_delta", Position(name="t"), ("tower*.end_stop", "encoder.*.offset"), stroke=0.03
    )
    assert names(gauges) == [f"zero point of tower{i}.slide" for i in (1, 2, 3)]
    for i, direction in enumerate(gauges.gauge, start=1):
        assert set(changes(direction)) == {f"tower{i}.end_stop", f"encoder.tower{i}.motor.offset"}


def test_a_printer_may_be_shifted_over_its_bed_and_turned_about_the_tower_that_is_held():
    parameters = ("tower*.radius", "tower1.angle", "tower2.angle", "tower*.arm", "tower*.end_stop")
    gauges = ranks("linear_delta", Contact(name="bed"), parameters, poses=41, stroke=0.03)
    shift, turn = names(gauges)
    assert shift == "translation of the base frame along y"
    text, _, rest = turn.partition(" through (")
    assert text == "rotation of the base frame about z"
    x, y, _ = (float(number) for number in rest.removesuffix(") mm").split(","))
    mechanism = machine("linear_delta")
    radius, angle = (mechanism.parameters[f"tower3.{what}"].value for what in ("radius", "angle"))
    # the third tower keeps its direction, so the axis passes through it, at a geometry some
    # millimetres off
    assert np.hypot(x - 1e3 * radius * np.cos(angle), y - 1e3 * radius * np.sin(angle)) < 5
    assert all(direction.explained > EXACT for direction in gauges.gauge)


def test_orientations_alone_do_not_show_places_nor_the_size():
    gauges = ranks("gantry_tau_6link", Orientation(name="t"), P51, poses=30)
    assert [name for name in names(gauges) if "base frame" in name] == [
        f"translation of the base frame along {axis}" for axis in "xyz"
    ]
    assert (
        sum(
            name.startswith("translation of the platform frame with the target")
            for name in names(gauges)
        )
        == 3
    )
    assert names(gauges)[-1] == "scale of the whole machine"
    grown = changes(gauges.gauge[-1])
    mechanism = machine("gantry_tau_6link")
    factors = [
        grown[f"{link}.length"] / mechanism.parameters[f"{link}.length"].value
        for link in ("pair1", "single1")
    ]
    assert factors[0] == pytest.approx(factors[1], rel=NEARBY)


def test_a_change_that_is_no_motion_of_a_frame_has_no_name():
    """One link's length bends the machine: what moves is partly made of known motions, and of none alone."""
    name = "gantry_tau_6link"
    series = measured(
        name, {}, Position(name="t"), encoders(name, 20, np.random.default_rng(1)), 2e-5
    )
    problem = calibration_problem(machine(name), [series], ("single1.length", "pair1.length"))
    (freedoms,) = gauges(
        problem, problem.linearized(problem.evaluate(np.zeros(2))), np.array([[1.0], [0.0]])
    )
    assert freedoms.name == ""
    assert freedoms.explained is not None
    assert 0.5 < freedoms.explained < EXACT


def test_rounding_never_chooses_between_rows_that_are_equal() -> None:
    rows = np.array([[0.5, 0.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]])
    for seed in range(20):
        noise = 1e-15 * np.random.default_rng(seed).normal(size=rows.shape)
        assert leading_rows(rows + noise) == [1, 2]
