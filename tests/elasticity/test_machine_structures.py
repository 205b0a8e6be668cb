"""Structures of machines from the elastic data of their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from elastic_machines import FOUR_BAR, gantry, hexapod

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.elasticity.frame.assembled import assemble
from tauloop.elasticity.frame.beams import BeamMotion
from tauloop.elasticity.frame.modes import natural_modes
from tauloop.elasticity.frame.statics import tool_compliance
from tauloop.elasticity.machine.structure import StructureOptions, machine_structure

#: Rounding of equations with a condition number of about 1e6.
ROUNDING = 1e-9


def compliance_of(model: tl.Model, q: np.ndarray | None = None) -> np.ndarray:
    """Return the compliance (N, 6, 6) at the tool in the axes of the base."""
    built = machine_structure(model, model.assembly.q if q is None else q)
    return tool_compliance(assemble(built.structure), built.tool_body, built.tool_point).matrix


def test_a_gantry_of_tubes_has_the_printed_stiffness() -> None:
    matrix = compliance_of(tl.Model(gantry()))[0]
    translational, rotational = np.split(1.0 / np.diagonal(matrix), 2)
    assert translational == pytest.approx([9.215633e6, 7.674774e6, 19.511574e6], rel=1e-7)
    assert rotational == pytest.approx([653_288.0, 563_530.0, 1_234_390.0], rel=1e-6)


def test_a_stated_mass_is_placed_as_the_file_states() -> None:
    model = tl.Model(gantry("distributed: yes"))
    built = machine_structure(model, model.assembly.q, StructureOptions(modes=5))
    frequencies = natural_modes(assemble(built.structure), 2).frequencies[0]
    assert frequencies[0] == pytest.approx(48.3, abs=0.1)
    stated = built.masses[0]
    assert (stated.mass, stated.section) == pytest.approx((4.22, 1.495), abs=1e-3)
    assert stated.is_placed


def test_a_hexapod_of_elastic_drives_is_a_truss() -> None:
    """K = Σ k w wᵀ with the lines w of rigid struts, in several poses."""
    model = tl.Model(hexapod(drives="8 N/um"))
    poses = np.tile(model.platform_position(model.assembly.q), (3, 1))
    poses[1, :3] += [0.02, -0.03, 0.01]
    poses[2, :3] += [-0.01, 0.01, -0.02]
    q = model.inverse_kinematics(poses).q
    built = machine_structure(model, q)
    matrix = compliance_of(model, q)
    for pose in range(3):
        K = np.zeros((6, 6))
        for element in built.structure.elements:
            if element.name.endswith("mass"):
                continue
            start, end = (attachment.point[pose] for attachment in element.attachments)
            axis = (end - start) / np.linalg.norm(end - start)
            w = np.concatenate([axis, np.cross(end - built.tool_point[pose], axis)])
            K += 8e6 * np.outer(w, w)
        assert matrix[pose] == pytest.approx(np.linalg.inv(K), rel=ROUNDING, abs=1e-16)


def test_parts_of_a_telescopic_rod_are_in_series_with_its_drive() -> None:
    """Tubes 30 x 3 of 300 mm and 20 x 3 of 250 mm that overlap at a length of 421.6 mm."""
    model = tl.Model(hexapod(drives="8 N/um", sections=True))
    built = machine_structure(model, model.assembly.q)
    element = built.structure.elements[0]
    start, end = (attachment.point[0] for attachment in element.attachments)
    length = np.linalg.norm(end - start)
    E = 70e9
    area = [np.pi / 4.0 * (d**2 - (d - 6e-3) ** 2) for d in (30e-3, 20e-3)]
    only_lower, only_upper = length - 0.25, length - 0.3
    overlap = 0.55 - length
    flexibility = (
        only_lower / (E * area[0])
        + overlap / (E * sum(area))
        + only_upper / (E * area[1])
        + 1.0 / 8e6
    )
    assert element.matrices.stiffness[0, 0, 0] == pytest.approx(1.0 / flexibility, rel=ROUNDING)
    far = np.array(model.platform_position(model.assembly.q))
    far[..., 2] += 0.15
    with pytest.raises(InputError, match="do not fit the length"):
        machine_structure(model, model.inverse_kinematics(np.atleast_2d(far)).q)


@pytest.mark.parametrize("part", ["lower", "upper"])
def test_fittings_at_inner_ends_of_telescopic_parts_are_refused(part: str) -> None:
    fittings = {part: "{start: 0.1 kg, end: 0.2 kg}"}
    model = tl.Model(hexapod(drives="8 N/um", sections=True, fittings=fittings))
    what = rf"{part}.fittings: a mass \(0.2 kg\) at the inner end"
    with pytest.raises(InputError, match=what):
        machine_structure(model, model.assembly.q)


def test_modes_of_a_four_bar_file_are_the_printed_ones() -> None:
    model = tl.Model(tl.loads(FOUR_BAR))
    # Links between clamped ends converge slowly: modes below twice the tenth frequency err by
    # 0.4 %, those below four times by 0.1 %.
    options = StructureOptions(modes=None, max_frequency=3000.0)
    built = machine_structure(model, model.assembly.q, options)
    assembled = assemble(built.structure)
    modes = natural_modes(assembled)
    energy = np.zeros(modes.frequencies.shape[1])
    for element, rows in zip(assembled.structure.elements, assembled.element_motion, strict=True):
        local = rows[0] @ modes.shapes[0]
        for motion in (BeamMotion.BEND_XY, BeamMotion.STRETCH):
            places = element.beam.indices_and_signs[motion][0]
            K = element.matrices.stiffness[np.ix_(places, places)]
            energy += np.sum(local[places] * (K @ local[places]), axis=0)
    planar = modes.frequencies[0, energy > 0.5 * modes.angular[0] ** 2]
    printed = [19.31, 38.54, 58.90, 117.5, 212.1, 272.0, 341.5, 466.2, 475.1, 740.3]
    assert planar[:10] == pytest.approx(printed, rel=1e-3)


def test_free_motors_leave_the_freedoms_of_the_machine() -> None:
    model = tl.Model(gantry())
    options = StructureOptions(modes=1, are_motors_held=False)
    built = machine_structure(model, model.assembly.q, options)
    modes = natural_modes(assemble(built.structure), 6, may_be_free=True)
    assert modes.free == model.assembly.mobility == 3
    assert modes.frequencies[0, :3] == pytest.approx(0.0)


BEARINGS = """
format: tauloop-machine/1
name: carriage
provenance: {{status: chosen, source: test}}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  cart: {{mass: 2 kg}}
joints:
  slide:
    type: prismatic
    axis: x
    parent: {{on: base, turn: [{{z: 90 deg}}]}}
    child: cart
    {bearings}
actuators:
  motor: {{on: slide, force: 10 N{drive}}}
platform: {{body: cart, independent: [slide], tool: {{at: [0, 0, 0.1 m]}}}}
"""


@pytest.mark.parametrize(
    "bearings",
    [
        "stiffness: {y: 2e7 N/m, rz: 3e4 N m/rad}",
        "compliance: {y: 5e-8 m/N, rz: 3.3333333333333333e-5 rad/N/m}",
    ],
    ids=["stiffness", "compliance"],
)
def test_bearings_yield_in_the_axes_of_the_rail(bearings: str) -> None:
    """The rail runs along y of the base, so its y axis is -x of the base."""
    machine = tl.loads(BEARINGS.format(bearings=bearings, drive=", stiffness: 1e7 N/m"))
    matrix = compliance_of(tl.Model(machine))[0]
    assert np.diagonal(matrix)[:3] == pytest.approx([5e-8, 1e-7, 0.0], rel=1e-6, abs=1e-20)
    assert np.diagonal(matrix)[3:] == pytest.approx([0.0, 0.0, 1.0 / 3e4], rel=1e-6, abs=1e-16)
    held = tl.loads(BEARINGS.format(bearings=bearings, drive=""))
    matrix = compliance_of(tl.Model(held))[0]
    assert np.diagonal(matrix)[1] == pytest.approx(0.0, abs=1e-20)


FRAME = """
format: tauloop-machine/1
name: framed
provenance: {{status: chosen, source: test}}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  cart: {{mass: 2 kg}}
structures:
  column: {{on: base, nodes: [[0, 0, 0.5 m]], stiffness: {folder}/K.csv, mass: {folder}/M.csv}}
joints:
  slide: {{type: prismatic, axis: x, parent: {{on: base, at: [0, 0, 0.5 m]}}, child: cart}}
actuators:
  motor: {{on: slide, force: 10 N, stiffness: 1e6 N/m}}
platform: {{body: cart, independent: [slide]}}
"""


def test_a_frame_of_a_finite_element_program_carries_the_machine(tmp_path: Path) -> None:
    """A clamped column with one internal mode of 40 Hz; the drive is in series along x."""
    K = np.diag([2e6, 3e6, 1e8, 1e5, 1e5, 1e5, (2.0 * np.pi * 40.0) ** 2])
    M = np.diag([5.0, 5.0, 5.0, 0.1, 0.1, 0.1, 1.0])
    np.savetxt(tmp_path / "K.csv", K, delimiter=",")
    np.savetxt(tmp_path / "M.csv", M, delimiter=",")
    path = tmp_path / "framed.yaml"
    path.write_text(FRAME.format(folder="."), encoding="utf-8")
    model = tl.Model(path)
    diagonal = np.diagonal(compliance_of(model)[0])
    assert diagonal[:3] == pytest.approx([1.0 / 2e6 + 1e-6, 1.0 / 3e6, 1e-8], rel=ROUNDING)
    frequencies = natural_modes(
        assemble(machine_structure(model, model.assembly.q).structure)
    ).frequencies[0]
    # Along x two masses on two springs; along y one of 7 kg; and the internal mode.
    two = np.linalg.eigvals(np.array([[3e6 / 5.0, -1e6 / 5.0], [-1e6 / 2.0, 1e6 / 2.0]]))
    expected = np.sqrt([*two, 3e6 / 7.0]) / (2.0 * np.pi)
    for value in [*expected, 40.0]:
        assert np.abs(frequencies / value - 1.0).min() < ROUNDING
