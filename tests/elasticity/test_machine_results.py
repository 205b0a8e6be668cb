"""The calls `tl.stiffness` and `tl.vibration`: values, refusals, diagnostics and conversions."""

from __future__ import annotations

import gc
import json
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from elastic_machines import FOUR_BAR, gantry, hexapod

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.elasticity.frame.assembled import assemble
from tauloop.elasticity.frame.preload import DeadLoad, geometric_stiffness
from tauloop.elasticity.frame.statics import buckling_factors, gravity_load, tool_compliance
from tauloop.elasticity.machine.structure import StructureOptions, machine_structure
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import Mechanism

#: A machine whose loops open on a part of its curve of poses.
FOLD = Path(__file__).parents[1] / "cases" / "fold.yaml"
#: Rounding of equations with a condition number of about 1e6.
ROUNDING = 1e-9


@pytest.fixture(scope="module")
def tubes() -> tl.Model:
    """Return the Gantry-Tau of tubes."""
    return tl.Model(gantry())


def test_stiffness_of_a_gantry(tubes: tl.Model) -> None:
    result = tl.stiffness(tubes)
    assert result.status == "ok"
    assert result.directional[0, :3] == pytest.approx(
        [9.215633e6, 7.674774e6, 19.511574e6], rel=1e-7
    )
    assert result.stiffness[0] @ result.compliance[0] == pytest.approx(np.eye(6), abs=1e-6)
    assert result.shares.sum(axis=-1) == pytest.approx(np.ones((1, 6)), rel=ROUNDING)
    # The worst direction is softer than any axis, and its item has the largest share there.
    assert result.worst_translational[0] < result.directional[0, :3].min()
    direction = result.worst_translational_direction[0]
    assert direction @ result.compliance[0, :3, :3] @ direction == pytest.approx(
        1.0 / result.worst_translational[0]
    )
    assert result.weakest[0] in result.items
    parts = [f"track{i}.{part}" for part in ("slide", "cart") for i in (1, 2, 3)]
    assert sorted(result.rigid) == sorted([*parts, "plate"])


def test_deflection_is_compliance_times_wrench(tubes: tl.Model) -> None:
    wrench = np.array([100.0, -50.0, 30.0, 4.0, 5.0, -6.0])
    loaded = tl.stiffness(tubes, wrench=tuple(wrench), weightless=True)
    assert loaded.deflection[0] == pytest.approx(loaded.compliance[0] @ wrench, rel=ROUNDING)
    weight = tl.stiffness(tubes)
    both = tl.stiffness(
        tubes, wrench={"fx": 100.0, "fy": -50.0, "fz": 30.0, "mx": 4.0, "my": 5.0, "mz": -6.0}
    )
    assert both.deflection == pytest.approx(loaded.deflection + weight.deflection, rel=1e-6)


def test_shares_in_the_worst_direction_are_those_of_a_force_along_it(tubes: tl.Model) -> None:
    """The energies of rods are as N^2 L under such a force, because all have one section."""
    result = tl.stiffness(tubes)
    direction = result.worst_translational_direction[0]
    force = {f"f{axis}": 1e3 * x for axis, x in zip("xyz", direction, strict=True)}
    pulled = tl.stiffness(tubes, wrench=force, weightless=True)
    rods = [k for k, name in enumerate(result.items) if name in pulled.beams]
    masses = {mass.element: mass.section for mass in pulled.masses}
    lengths = np.array([masses[name] for name in pulled.beams])  # up to a factor
    energies = pulled.axial[0] ** 2 * lengths
    expected = energies / energies.sum()
    shares = result.worst_shares[0, rods]
    assert shares / shares.sum() == pytest.approx(expected, rel=1e-6)
    assert result.worst_shares.sum() == pytest.approx(1.0)


BEARINGS = """
format: tauloop-machine/1
name: slide
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies: {cart: {mass: 2 kg}}
joints:
  rail:
    {type: prismatic, axis: x, parent: base, child: cart, stiffness: {y: 20 N/um, z: 20 N/um}}
actuators: {motor: {on: rail, force: 10 N, stiffness: 5 N/um}}
platform: {body: cart, independent: [rail]}
"""


def test_drive_and_bearings_of_a_joint_are_items_of_their_own(tubes: tl.Model) -> None:
    """The motor yields along the rail, the bearings yield across it."""
    result = tl.stiffness(tl.loads(BEARINGS))
    assert result.items == ("motor", "rail")
    assert result.shares[0, :3] == pytest.approx(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
    assert result.directional[0, :3] == pytest.approx([5e6, 20e6, 20e6])
    assert result.rigid == ("cart",)
    assert tl.stiffness(tubes).items[-3:] == ("track1.motor", "track2.motor", "track3.motor")
    with pytest.raises(InputError, match="with free motors the machine is rigid"):
        tl.vibration(
            tl.loads(BEARINGS.replace(", stiffness: {y: 20 N/um, z: 20 N/um}", "")),
            motor_state="free",
        )


def test_a_pose_that_the_machine_does_not_reach_is_doubtful() -> None:
    """The curve of poses folds at j0 = 0.58; the pose at 0.15 is on another part of it."""
    text = FOLD.read_text(encoding="utf-8").replace(
        "'on': j0\n", "'on': j0\n    stiffness: 1 kN m/rad\n"
    )
    fold = tl.Model(tl.loads(text))
    for pose, status in (({"j0": 0.9}, "ok"), ({"j0": 0.15}, "doubtful")):
        result = tl.stiffness(fold, pose, weightless=True)
        assert result.status == status
        lines = [line for line in result.advice if line.startswith("fraction of the straight line")]
        assert bool(lines) == (status == "doubtful")
    assert tl.stiffness(fold, actuators={"m1": 0.15}, weightless=True).status == "doubtful"


def test_positions_of_actuators_are_those_of_their_pose(tubes: tl.Model) -> None:
    at = {"track1.motor": 0.01}
    by_motors = tl.stiffness(tubes, actuators=at)
    (position,) = tl.forward_kinematics(tubes, at).platform_position
    by_pose = tl.stiffness(tubes, position[None])
    assert by_motors.platform[0] == pytest.approx(position, rel=ROUNDING, abs=ROUNDING)
    assert by_motors.compliance == pytest.approx(by_pose.compliance, rel=1e-6, abs=1e-15)
    frequency = tl.vibration(tubes, count=1, actuators=at).frequency
    assert frequency == pytest.approx(tl.vibration(tubes, position[None], count=1).frequency)
    with pytest.raises(InputError, match="actuators"):
        tl.stiffness(tubes, {"x": 0.0}, actuators=at)


def test_axial_forces_balance_the_weight(tubes: tl.Model) -> None:
    """Forces of all rods on the plate carry it, half of the rods, and the wrench: Σ N e = F."""
    result = tl.stiffness(tubes, wrench={"fx": 200.0})
    built = machine_structure(tubes, tubes.assembly.q)
    total = np.zeros(3)
    mass = tubes.mechanism.value("m_p")
    for element, force in zip(built.structure.elements, result.axial[0], strict=True):
        start, end = (attachment.point[0] for attachment in element.attachments)
        axis = (end - start) / np.linalg.norm(end - start)
        total += force * axis
        rod_mass = result.masses[result.beams.index(element.name)].mass
        across = np.array([0.0, 0.0, -9.81]) - axis * (axis @ [0.0, 0.0, -9.81])
        # The weight along a rod is in its mean axial force; half of that across is at the plate.
        total -= 0.5 * rod_mass * across
        mean_weight = 0.5 * rod_mass * axis * (axis @ [0.0, 0.0, -9.81])
        total -= mean_weight
    assert total == pytest.approx([200.0, 0.0, -9.81 * mass], abs=1e-3)


def test_poses_are_given_by_name_or_as_rows(tubes: tl.Model) -> None:
    named = tl.stiffness(tubes, {"x": "10 mm", "y": "-20 mm"})
    row = np.array(tubes.platform_position(tubes.assembly.q)).ravel()
    row[:2] += [0.01, -0.02]
    rows = tl.stiffness(tubes, np.stack([row, row]))
    assert rows.compliance == pytest.approx(np.repeat(named.compliance, 2, axis=0), rel=1e-6)
    assert rows.tool.shape == (2, 3)
    with pytest.raises(InputError, match="there are no poses"):
        tl.stiffness(tubes, np.zeros((0, 3)))


def test_stress_and_safety_of_a_lever() -> None:
    """A force at the end of the crank, which the motor holds: σ = |N| / A + |M| / W, W = b h² / 6.

    Coupler and rocker are pinned and carry nothing.
    """
    result = tl.stiffness(tl.loads(FOUR_BAR), weightless=True, wrench={"fx": 20.0})
    axial, moment = 20.0 * np.cos(np.pi / 3.0), 20.0 * 0.3 * np.sin(np.pi / 3.0)
    stress = axial / (0.03 * 0.008) + moment / (0.03 * 0.008**2 / 6.0)
    assert result.beams == ("crank.bar", "coupler.bar", "rocker.bar")
    assert result.axial[0] == pytest.approx([axial, 0.0, 0.0], abs=1e-6, rel=1e-6)
    assert result.stress[0, 0] == pytest.approx(stress, rel=1e-6)
    assert result.yield_safety[0, 0] == pytest.approx(235e6 / stress, rel=1e-6)


def test_buckling_of_the_machine_is_that_of_its_most_loaded_rod(tubes: tl.Model) -> None:
    result = tl.stiffness(tubes, wrench={"fx": 5000.0}, weightless=True)
    finite = result.buckling_safety[0][np.isfinite(result.buckling_safety[0])]
    pushed = result.axial[0][result.axial[0] < 0.0]
    assert len(finite) == len(pushed) > 0
    assert result.load_factor[0] <= finite.min() * (1.0 + 1e-6)
    assert result.load_factor[0] == pytest.approx(finite.min(), rel=0.02)
    heavy = tl.stiffness(tubes, wrench={"fx": 5000.0 * 1.2 * finite.min()}, weightless=True)
    assert heavy.status == "doubtful"
    assert any("safety factor against buckling" in line for line in heavy.advice)


def test_loads_change_the_stiffness_until_the_machine_buckles(tubes: tl.Model) -> None:
    """Compression makes the loaded machine softer; at 0.999 of the load factor almost loose."""
    free = tl.stiffness(tubes, wrench={"fx": 5000.0}, weightless=True)
    factor = free.load_factor[0]
    loaded = tl.stiffness(tubes, wrench={"fx": 0.5 * 5000.0 * factor}, weightless=True, loaded=True)
    assert loaded.load_factor[0] == pytest.approx(2.0, rel=1e-6)
    assert loaded.worst_translational[0] < free.worst_translational[0]
    again = tl.stiffness(tubes, wrench={"fx": 5000.0}, weightless=True, loaded=True)
    change = again.directional / free.directional - 1.0
    assert 0.0 < np.abs(change).max() < 0.05


def test_rigid_rods_are_constraints_and_limit_what_is_known() -> None:
    """A hexapod with two elastic drives: four rigid struts leave two motions."""
    machine = hexapod()
    actuators = tuple(
        replace(actuator, stiffness=Constant(8e6)) if index < 2 else actuator
        for index, actuator in enumerate(machine.actuators)
    )
    machine = replace(machine, actuators=actuators)
    result = tl.stiffness(machine)
    assert (
        np.linalg.matrix_rank(result.compliance[0], tol=1e-6 * np.abs(result.compliance).max()) == 2
    )
    assert result.items == ("leg1.strut", "leg2.strut")
    assert any("only for axial forces in beams" in note for note in result.notes)
    with pytest.raises(InputError, match="close loops"):
        tl.stiffness(machine, loaded=True)


def test_vibration_of_a_gantry_reaches_the_printed_frequencies(tubes: tl.Model) -> None:
    result = tl.vibration(tubes, count=12)
    assert result.status == "ok"
    assert result.frequency[0, :2] == pytest.approx([78.476, 83.882], rel=1e-4)
    assert result.clusters[:2] == ((1,), tuple(range(2, 11)))
    assert result.shares.sum(axis=-1) == pytest.approx(np.ones((1, 12)), rel=ROUNDING)
    # Modes of links up to four times 110 Hz: 85.2 and 340.9 Hz; of the short rod 112 Hz alone.
    assert result.link_modes["triple1.link"] == (2, 2)
    assert result.link_modes["single1.link"] == (1, 1)


def test_ten_modes_of_a_four_bar_are_those_of_two_other_programs() -> None:
    """Own elements (48 a link) and Exudyn; modes out of the plane are left out by their shapes."""
    result = tl.vibration(tl.loads(FOUR_BAR), count=16, shear=False)
    in_plane = np.abs(result.body_shapes[0][:, :, [0, 1, 5]]).max(axis=(1, 2))
    out_of_plane = np.abs(result.body_shapes[0][:, :, [2, 3, 4]]).max(axis=(1, 2))
    planar = result.frequency[0][in_plane > out_of_plane]
    printed = [19.31, 38.54, 58.90, 117.5, 212.1, 272.0, 341.5, 466.2, 475.1, 740.3]
    assert planar[:10] == pytest.approx(printed, rel=3e-4)
    assert any("shear" in line for line in result.advice)


def test_too_few_modes_of_links_are_doubtful() -> None:
    result = tl.vibration(tl.loads(FOUR_BAR), count=16, link_modes=2, shear=True)
    assert result.status == "doubtful"
    assert any("one more mode" in line for line in result.advice)


def test_free_motors_have_modes_of_frequency_zero(tubes: tl.Model) -> None:
    result = tl.vibration(tubes, motor_state="free", count=5)
    assert result.free == 3
    assert result.frequency[0, :3] == pytest.approx(0.0)
    assert result.frequency[0, 3] > 78.476


def test_what_is_not_known_is_refused(tubes: tl.Model) -> None:
    for call in (tl.stiffness, tl.vibration):
        with pytest.raises(InputError, match="the machine is rigid"):
            call("delta")
    unplaced = gantry("distributed: no")
    assert tl.stiffness(unplaced).masses[0].mass == pytest.approx(4.22)
    with pytest.raises(InputError, match=r"4\.22 kg.* 1\.495 kg") as refused:
        tl.vibration(unplaced)
    assert len(refused.value.problems) == 6
    with pytest.raises(InputError, match="states a damping"):
        tl.vibration(tubes, count=3).tool_response([10.0])


def test_a_response_is_static_at_low_frequency(tubes: tl.Model) -> None:
    result = tl.vibration(tubes, count=3)
    response = result.tool_response([0.0, result.frequency[0, 0]], damping=0.02)
    static = tl.stiffness(tubes).compliance
    assert response[0, 0].real == pytest.approx(static[0], rel=1e-5, abs=1e-15)
    # At resonance the first mode answers with a lag of 90 degrees; the second adds some percent.
    first = result.tool_shapes[0, 0]
    peak = np.outer(first, first) / (2.0 * 0.02 * (2.0 * np.pi * result.frequency[0, 0]) ** 2)
    assert np.abs(response[0, 1].imag + peak).max() < 0.3 * np.abs(peak).max()


@pytest.mark.parametrize("machine", [gantry(), hexapod(drives="8 N/um", sections=True)])
def test_results_become_json_and_tables(machine: Mechanism) -> None:
    for result in (tl.stiffness(machine), tl.vibration(machine, count=4)):
        json.dumps(result.as_dict(), allow_nan=False)
        assert "pose" in result.to_xarray().dims


def test_modes_of_rods_with_ball_ends_change_no_stiffness(tubes: tl.Model) -> None:
    """The structure with all of these modes as coordinates has the same results."""
    result = tl.stiffness(tubes, wrench={"fx": 5000.0}, loaded=True)
    built = machine_structure(tubes, tubes.assembly.q, StructureOptions(modes=3))
    assembled = assemble(built.structure)
    wrench = np.array([5000.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    gravity = np.array([0.0, 0.0, -9.81])
    motion = assembled.point_motion(built.tool_body, built.tool_point)
    load = gravity_load(assembled, gravity) + np.swapaxes(motion, -1, -2) @ wrench
    displacement = np.linalg.solve(assembled.stiffness, load[..., None])[..., 0]
    tool_load = DeadLoad(body=built.tool_body, point=built.tool_point, wrench=wrench)
    geometric = geometric_stiffness(assembled, displacement, gravity, (tool_load,))
    compliance = tool_compliance(
        assembled, built.tool_body, built.tool_point, geometric=geometric
    ).matrix
    size = np.sqrt(np.diagonal(compliance[0]))
    difference = (compliance - result.compliance)[0] / np.outer(size, size)
    assert np.abs(difference).max() < 1e-12
    assert assembled.size == 9 + 6 * 6
    assert buckling_factors(assembled, geometric)[:, 0] == pytest.approx(
        result.load_factor, rel=1e-11
    )


def test_rounding_errors_are_no_load_that_buckles(tubes: tl.Model) -> None:
    """A factor of the weight buckles the machine at some poses, and none at others."""
    poses = np.random.default_rng(0).uniform(-0.1, 0.1, (20, 3))
    factors = tl.stiffness(tubes, poses).load_factor
    buckles = np.isfinite(factors)
    assert 0 < buckles.sum() < len(factors)
    assert factors[buckles].max() < 1e12


def test_constants_belong_to_one_model_and_leave_with_it(tubes: tl.Model) -> None:
    """A softer alloy makes a softer machine, though a machine of the same file was calculated before."""
    before = tl.stiffness(tubes)
    softer = tl.Model(tubes.mechanism.with_values({"alloy.young_modulus": 35e9}))
    assert np.all(tl.stiffness(softer).directional < before.directional)
    reference = weakref.ref(softer)
    del softer
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize(("stiffness", "status"), [(100.0, "doubtful"), (1e5, "ok")])
def test_a_weight_that_changes_a_frequency_is_doubtful(stiffness: float, status: str) -> None:
    machine = tl.loads(f"""
format: tauloop-machine/1
name: inverted_pendulum
provenance: {{status: chosen, source: test}}
gravity: [0, 0, -9.81 m/s^2]
bodies: {{arm: {{mass: 2 kg, center: [0 m, 0 m, 0.5 m], inertia: {{yy: 0.1 kg m^2}}, unchecked: yes}}}}
joints: {{hinge: {{type: revolute, axis: y, parent: base, child: arm}}}}
actuators: {{motor: {{on: hinge, stiffness: "{stiffness} N m/rad"}}}}
platform: {{body: arm, independent: [hinge]}}
""")
    result = tl.vibration(machine, count=1)
    (change,) = (item for item in result.diagnostics if item.name.endswith("due to weight"))
    # without weight k / I, with it (k - m g h) / I
    assert change.value == pytest.approx(1.0 - np.sqrt(1.0 - 2.0 * 9.81 * 0.5 / stiffness))
    assert result.status == status
