"""Thermal expansion: error of the tool, forces by heat, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from elastic_machines import FOUR_BAR, gantry, hexapod

import tauloop as tl
from tauloop.common.errors import AssemblyError, InputError, LogError
from tauloop.mechanism.model import Mechanism

ALUMINIUM, STEEL = 23e-6, 12e-6
#: Rods and their tracks of the Gantry-Tau; the carts of track 1 are on the -x side of the plate.
RODS = {
    "triple1": 1,
    "triple2": 1,
    "triple3": 1,
    "pair1": 2,
    "pair2": 2,
    "single1": 3,
}


@pytest.fixture(scope="module")
def tubes() -> tl.Model:
    """Return the example of aluminium tubes."""
    return tl.Model("examples/elastic/gantry_tau.yaml")


def rod_ends(machine: Mechanism, position: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return ends A of all rods, ends B in plate coordinates, and lengths, at a plate position."""
    B = np.array([[machine.value(f"{rod}.B_{axis}") for axis in "xyz"] for rod in RODS])
    on_cart = np.array([[machine.value(f"{rod}.A_{axis}") for axis in "xyz"] for rod in RODS])
    lengths = np.array([machine.value(f"{rod}.length") for rod in RODS])
    A = []
    for rod, track in enumerate(RODS.values()):
        y, z = (machine.value(f"track{track}.track_{axis}") for axis in "yz")
        across = position[1:] + B[rod, 1:] - on_cart[rod, 1:] - [y, z]
        along = np.sqrt(lengths[rod] ** 2 - across @ across)
        x = position[0] + B[rod, 0] - on_cart[rod, 0] + (-along if track == 1 else along)
        A.append(on_cart[rod] + [x, y, z])
    return np.array(A), B, lengths


def moved_tool(A: np.ndarray, B: np.ndarray, lengths: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return position and rotation vector of the plate at which all rods have their lengths.

    The tool is 0.2 m below the plate's origin. Rotations are small, by Rodrigues' formula.
    """

    def distances(pose: np.ndarray) -> np.ndarray:
        angle = np.linalg.norm(pose[3:])
        axis = pose[3:] / angle if angle > 0.0 else np.zeros(3)
        cross = np.cross(axis, B)
        turned = B + np.sin(angle) * cross + (1.0 - np.cos(angle)) * np.cross(axis, cross)
        return np.asarray(np.linalg.norm(pose[:3] + turned - A, axis=1))

    pose = np.concatenate([start, np.zeros(3)])
    for _ in range(4):
        steps = 1e-6 * np.eye(6)
        jacobian = np.array([(distances(pose + h) - distances(pose - h)) / 2e-6 for h in steps]).T
        pose = pose - np.linalg.solve(jacobian, distances(pose) - lengths)
    tool = pose[:3] + np.array([0.0, 0.0, -0.2])
    tool += np.cross(pose[3:], [0.0, 0.0, -0.2])
    return np.concatenate([tool, pose[3:]])


def test_longer_rods_of_a_gantry_move_the_tool_as_its_loops_do(tubes: tl.Model) -> None:
    positions = np.array([[0.0, 0.0, 0.0], [0.15, -0.1, 0.12]])
    result = tl.thermal_expansion(tubes, positions, temperatures={"single1": 5.0})
    assert result.parts == tuple(f"{rod}.link" for rod in RODS)
    for pose, position in enumerate(positions):
        A, B, lengths = rod_ends(tubes.mechanism, position)
        for rod in range(6):
            step = np.zeros(6)
            step[rod] = ALUMINIUM * lengths[rod]
            ends = [moved_tool(A, B, lengths + sign * step, position) for sign in (1.0, -1.0)]
            expected = 0.5 * (ends[0] - ends[1])
            assert result.per_kelvin[pose, :, rod] == pytest.approx(expected, rel=1e-5, abs=1e-10)
    assert result.error == pytest.approx(5.0 * result.per_kelvin[:, :, 5])
    assert result.worst == ("single1.link", "single1.link")
    # Six rods hold the plate without redundancy: nothing is strained.
    assert np.abs(result.axial).max() < 1e-6
    assert result.status == "ok"


def test_a_kelvin_of_all_rods_moves_the_tool_by_fifty_micrometers(tubes: tl.Model) -> None:
    """Mean over the box that the file states for drawings, on a grid of 3 x 3 x 3 poses."""
    steps = [np.linspace(-size, size, 3) for size in (0.2, 0.15, 0.15)]
    grid = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, 3)
    result = tl.thermal_expansion(tubes, grid)
    assert 1e6 * result.distance.mean() == pytest.approx(51.78, abs=0.01)


def portal(guide: str = "") -> Mechanism:
    """Return a beam of 2 m on two parallel guides, which are redundant, with a motor on the first."""
    return tl.loads(f"""
format: tauloop-machine/1
name: portal
provenance: {{status: chosen, source: test}}
gravity: [0, 0, 0]
bodies:
  beam:
    beams: {{tube: {{from: [0, 0, 0], to: [2 m, 0, 0], tube: {{outer: 50 mm, wall: 3 mm, material: aluminium}}}}}}
joints:
  first: {{type: prismatic, axis: y, parent: base, child: beam}}
  second:
    type: prismatic
    axis: y
    parent: {{on: base, at: [2 m, 0, 0]}}
    child: {{on: beam, at: [2 m, 0, 0]}}
    cut: yes
    {guide}
actuators: {{motor: {{on: first, force: 100 N}}}}
platform: {{body: beam, tool: {{at: [2 m, 0, 0]}}, independent: [first]}}
""")


OFFSET_TOOL = FOUR_BAR.replace("{body: coupler,", "{body: coupler, tool: {at: [0.4 m, 0.1 m, 0]},")


@pytest.mark.parametrize(
    ("machine", "coefficient"),
    [
        (tl.load("examples/elastic/gantry_tau.yaml"), ALUMINIUM),
        (gantry(), ALUMINIUM),
        (hexapod(drives="8 N/um", sections=True), ALUMINIUM),
        (hexapod(), STEEL),
        (tl.loads(OFFSET_TOOL), STEEL),
        (portal(), ALUMINIUM),
        (portal("stiffness: {x: 10 N/um}"), ALUMINIUM),
        ("delta", STEEL),
        ("spidermill", STEEL),
    ],
)
def test_equal_expansion_of_all_parts_scales_the_machine(
    machine: Mechanism | str, coefficient: float
) -> None:
    """With base and bodies, a machine becomes similar to itself: no rotation and no forces."""
    result = tl.thermal_expansion(machine, temperatures="10 K", expansions=coefficient)
    assert not result.unexpanded
    assert result.error[0, :3] == pytest.approx(10.0 * coefficient * result.tool[0], abs=1e-12)
    assert result.error[0, 3:] == pytest.approx(np.zeros(3), abs=1e-12)
    largest = np.abs(result.axial).max(initial=0.0) + result.moment.max(initial=0.0)
    # A prevented expansion of these tubes has 10^4 N.
    assert largest < 1e-4


def test_a_longer_coupler_of_a_four_bar() -> None:
    """Loop in complex numbers with the crank held: a + b e^(iφ) = d + c e^(iψ)."""

    def coupler_angle(b: float) -> float:
        crank = 0.3 * np.exp(1j * np.pi / 3.0)
        diagonal = 0.7 - crank
        cosine = (b**2 + abs(diagonal) ** 2 - 0.6**2) / (2.0 * b * abs(diagonal))
        return float(np.angle(diagonal) + np.arccos(cosine))

    machine = tl.loads(
        FOUR_BAR.replace("{body: coupler,", "{body: coupler, tool: {at: [0.8 m, 0, 0]},")
    )
    result = tl.thermal_expansion(machine, temperatures={"coupler": 1.0})
    step = STEEL * 0.8
    ends = [(0.8 + s) * np.exp(1j * coupler_angle(0.8 + s)) for s in (step, -step)]
    moved = 0.5 * (ends[0] - ends[1])
    assert result.error[0, :2] == pytest.approx([moved.real, moved.imag], rel=1e-6)
    turned = 0.5 * (coupler_angle(0.8 + step) - coupler_angle(0.8 - step))
    assert result.error[0, 5] == pytest.approx(turned, rel=1e-6)
    assert np.abs(result.axial).max() < 1e-6
    assert result.worst == ("coupler.bar",)


def table(rod: str) -> str:
    """Return a plate on three parallel legs in a plane, of which two would do."""
    legs = "".join(
        f"  {name}: {{from: {{on: base, at: [{x} m, 0, 0]}}, to: {{on: plate, at: [{x} m, 0, 0]}},"
        f" length: 0.5 m, model: slender, {rod}}}\n"
        for name, x in (("left", -0.3), ("middle", 0.0), ("right", 0.3))
    )
    return f"""
format: tauloop-machine/1
name: parallel_legs
provenance: {{status: chosen, source: test}}
gravity: [0, 0, 0]
bodies: {{cart: {{mass: 1 kg}}, lift: {{mass: 1 kg}}, plate: {{mass: 1 kg}}}}
joints:
  rail: {{type: prismatic, axis: x, parent: base, child: cart}}
  height: {{type: prismatic, axis: z, parent: cart, child: lift, reference: 0.5 m}}
  tilt: {{type: revolute, axis: y, parent: lift, child: plate}}
rods:
{legs}actuators: {{motor: {{on: rail, force: 100 N}}}}
platform: {{body: plate, independent: [rail]}}
"""


@pytest.mark.parametrize("guide", [np.inf, 1e7])
def test_a_beam_between_two_guides_is_compressed(guide: float) -> None:
    """N (L / E A + 1/k) = -α L ΔT, with the stiffness k of the second guide."""
    machine = portal("" if guide == np.inf else "stiffness: {x: 10 N/um}")
    result = tl.thermal_expansion(machine, temperatures={"beam": 20.0})
    EA = 70e9 * np.pi / 4.0 * (0.05**2 - 0.044**2)
    force = -ALUMINIUM * 2.0 * 20.0 / (2.0 / EA + 1.0 / guide)
    assert result.axial[0] == pytest.approx([force], rel=1e-6)
    assert result.error[0, 0] == pytest.approx(-force / guide, rel=1e-6, abs=1e-15)
    # σ = E α ΔT between rigid guides.
    stress = -force / (EA / 70e9)
    assert result.stress[0] == pytest.approx([stress], rel=1e-6)
    if guide == np.inf:
        assert stress == pytest.approx(70e9 * ALUMINIUM * 20.0)
    loaded = tl.stiffness(machine, temperatures={"beam": 20.0}, weightless=True)
    assert loaded.axial[0] == pytest.approx([force], rel=1e-6)
    assert loaded.stress[0] == pytest.approx([stress], rel=1e-6)
    assert loaded.deflection[0] == pytest.approx(np.zeros(6), abs=1e-15)


def test_a_heated_strut_bends_a_cantilever() -> None:
    """F (L³ / 3 E I + l / E A) = α l ΔT at the tip, and F L is the moment at the root."""
    machine = tl.loads("""
format: tauloop-machine/1
name: cantilever
provenance: {status: chosen, source: test}
gravity: [0, 0, 0]
bodies:
  cart: {mass: 1 kg}
  arm:
    beams: {bar: {from: root, to: strut, tube: {outer: 50 mm, wall: 3 mm, material: aluminium}}}
joints:
  rail: {type: prismatic, axis: y, parent: base, child: cart}
  root: {type: fixed, parent: cart, child: arm}
rods:
  strut:
    from: {on: cart, at: [1 m, 0, -0.5 m]}
    to: {on: arm, at: [1 m, 0, 0]}
    length: 0.5 m
    model: slender
    tube: {outer: 20 mm, wall: 2 mm, material: steel}
actuators: {motor: {on: rail, force: 100 N}}
platform: {body: arm, tool: {at: [1 m, 0, 0]}, independent: [rail]}
""")
    result = tl.thermal_expansion(machine, temperatures={"strut": 40.0})
    bending = 3.0 * 70e9 * np.pi / 64.0 * (0.05**4 - 0.044**4)
    axial = 210e9 * np.pi / 4.0 * (0.02**2 - 0.016**2) / 0.5
    force = STEEL * 0.5 * 40.0 / (1.0 / bending + 1.0 / axial)
    strut, arm = (result.beams.index(name) for name in ("strut", "arm.bar"))
    assert result.axial[0, [strut, arm]] == pytest.approx([-force, 0.0], rel=1e-6, abs=1e-6)
    assert result.moment[0, [strut, arm]] == pytest.approx([0.0, force], rel=1e-6, abs=1e-6)
    assert result.error[0, 2] == pytest.approx(force / bending, rel=1e-6)
    # Aluminium bends, steel is compressed.
    bent = force / (bending / 3.0 / 70e9 / 0.025)
    pressed = force / (axial * 0.5 / 210e9)
    assert result.stress[0, [strut, arm]] == pytest.approx([pressed, bent], rel=1e-6)
    # With a load at the tip, moments and forces add, and the strut is nearer to Euler's load.
    down = {"fz": -200.0}
    both = tl.stiffness(machine, wrench=down, temperatures={"strut": 40.0})
    cold = tl.stiffness(machine, wrench=down)
    in_strut = both.beams.index("strut")
    assert both.axial[0, in_strut] == pytest.approx(cold.axial[0, in_strut] - force, rel=1e-6)
    euler = np.pi**2 * 210e9 * np.pi / 64.0 * (0.02**4 - 0.016**4) / 0.5**2
    expected = euler / -both.axial[0, in_strut]
    assert both.buckling_safety[0, in_strut] == pytest.approx(expected, rel=1e-5)
    assert both.load_factor[0] < cold.load_factor[0]


def test_both_parts_of_a_telescopic_rod_expand() -> None:
    """Where they overlap, both have one strain: its share is that of the axial stiffness."""
    sections = hexapod(sections=True)
    both = {"leg1.strut.lower": STEEL, "leg1.strut.upper": STEEL}
    parts = tl.thermal_expansion(sections, expansions=both)
    whole = tl.thermal_expansion(hexapod(), expansions={"leg1.strut": STEEL})
    assert parts.per_kelvin.sum(axis=-1) == pytest.approx(whole.per_kelvin[..., 0], abs=1e-15)
    EA = np.array([0.03**2 - 0.024**2, 0.02**2 - 0.014**2])
    length = float(sections.rods[0].telescope.reference)
    overlap = 0.3 + 0.25 - length
    lengths = np.array([length - 0.25, length - 0.3]) + overlap * EA / EA.sum()
    ratio = parts.per_kelvin[0, :3, 0] / parts.per_kelvin[0, :3, 1]
    assert ratio == pytest.approx(np.full(3, lengths[0] / lengths[1]), rel=1e-6)


def test_a_rod_of_two_materials_and_one_with_a_composite_section() -> None:
    steps = (
        "segments: [{length: 0.2 m, tube: {outer: 20 mm, wall: 2 mm, material: steel}},"
        " {tube: {outer: 20 mm, wall: 2 mm, material: aluminium}}]"
    )
    result = tl.thermal_expansion(tl.loads(table(steps)))
    assert result.expansions == pytest.approx(np.full(3, 0.4 * STEEL + 0.6 * ALUMINIUM))
    composite = "section: {EA: 1e7 N, EI: 1e3 N m^2, GJ: 1e3 N m^2, mass_per_length: 1 kg/m, expansion: -1e-6 1/K}"
    result = tl.thermal_expansion(tl.loads(table(composite)))
    assert result.expansions == pytest.approx(np.full(3, -1e-6))
    assert result.error[0, 2] == pytest.approx(-0.5e-6)


STEEL_TUBE = "tube: {outer: 20 mm, wall: 2 mm, material: steel}"


def test_a_leg_too_many_is_strained() -> None:
    """Heat of the middle leg: 2 N_o + N_m = 0 and N_o/k = N_m/k + α L ΔT, with k = E A / L."""
    k = 210e9 * np.pi / 4.0 * (0.02**2 - 0.016**2) / 0.5
    result = tl.thermal_expansion(tl.loads(table(STEEL_TUBE)), temperatures={"middle": 30.0})
    free = STEEL * 0.5 * 30.0
    assert result.beams == ("left", "middle", "right")
    expected = np.array([1.0, -2.0, 1.0]) / 3.0 * k * free
    assert result.axial[0] == pytest.approx(expected, rel=1e-6)
    assert result.error[0] == pytest.approx([0.0, 0.0, free / 3.0, 0.0, 0.0, 0.0], abs=1e-12)
    # The outer legs tilt nothing when both are heated, and the plate when one of them is.
    both = tl.thermal_expansion(
        tl.loads(table(STEEL_TUBE)), temperatures={"left": 30.0, "right": 30.0}
    )
    assert both.error[0, 2] == pytest.approx(2.0 * free / 3.0, rel=1e-6)
    left = both.per_kelvin[0, :, 0]
    assert left[4] == pytest.approx(free / 30.0 / 0.6, rel=1e-6)


def test_rigid_legs_that_prevent_an_expansion_are_refused() -> None:
    machine = tl.loads(table("link: {mass: 1 kg, center: 0.25 m, inertia: 0.1 kg m^2}"))
    legs = dict.fromkeys(("left", "middle", "right"), STEEL)
    with pytest.raises(AssemblyError, match=r"a gap of .* um remains at .*middle\.length"):
        tl.thermal_expansion(machine, expansions=legs, temperatures={"middle": 1.0})
    # All together lift the plate.
    result = tl.thermal_expansion(machine, expansions=legs, temperatures=10.0)
    assert result.error[0] == pytest.approx([0.0, 0.0, 5.0 * STEEL, 0.0, 0.0, 0.0], abs=1e-15)
    assert np.isnan(result.per_kelvin).all()
    assert result.worst == ("",)
    assert "rigid parts prevent the separate expansion of left, middle, right" in result.notes
    json.dumps(result.as_dict(), allow_nan=False)


def test_names_and_coefficients_that_are_missing_are_refused(tubes: tl.Model) -> None:
    with pytest.raises(InputError, match="no part has a coefficient of expansion"):
        tl.thermal_expansion("delta")
    with pytest.raises(InputError, match="plate has no coefficient of expansion"):
        tl.thermal_expansion(tubes, temperatures={"plate": 1.0})
    with pytest.raises(InputError, match=r"temperatures\.tripel1.*is not a part that can expand"):
        tl.thermal_expansion(tubes, temperatures={"tripel1": 1.0})
    with pytest.raises(InputError, match=r"includes triple1\.link, which another name also"):
        tl.thermal_expansion(tubes, temperatures={"triple1": 1.0, "triple1.link": 2.0})
    with pytest.raises(InputError, match=r"expansions\.plat.*is not a part"):
        tl.thermal_expansion(tubes, expansions={"plat": 1e-5})
    result = tl.thermal_expansion(tubes)
    assert result.unexpanded == ("plate", "track1.cart", "track2.cart", "track3.cart", "base")
    assert any(line.startswith("without expansion: plate") for line in result.notes)


def test_large_temperatures_are_doubtful(tubes: tl.Model) -> None:
    result = tl.thermal_expansion(tubes, temperatures=100.0)
    assert result.status == "doubtful"
    assert any(
        "linear equations hold only for small displacements" in line for line in result.advice
    )


def test_results_become_json_and_tables(tubes: tl.Model) -> None:
    result = tl.thermal_expansion(tubes)
    data = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert np.shape(data["per_kelvin"]) == (1, 6, 6)
    assert "pose" in result.to_xarray().dims


def test_a_log_of_temperatures_has_an_error_in_each_row(tubes: tl.Model, tmp_path: Path) -> None:
    path = tmp_path / "thermometers.csv"
    path.write_text(
        "time [s],temperature.triple1 [K],temperature.pair1 [K]\n0,1,0\n1,2,0.5\n2,3,-1\n",
        encoding="utf-8",
    )
    result = tl.thermal_expansion(tubes, log=path)
    for row, (triple, pair) in enumerate([(1.0, 0.0), (2.0, 0.5), (3.0, -1.0)]):
        rises = {"triple1": triple, "pair1": pair}
        alone = tl.thermal_expansion(tubes, temperatures=rises)
        assert result.error[row] == pytest.approx(alone.error[0], rel=1e-9, abs=1e-15)
    poses = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0]])
    with pytest.raises(InputError, match="has 3 rows for 2 poses"):
        tl.thermal_expansion(tubes, poses, log=path)
    path.write_text("temperature.triple1 [degC]\n20\n", encoding="utf-8")
    with pytest.raises(LogError, match="not a unit of temperature differences"):
        tl.thermal_expansion(tubes, log=path)
    path.write_text("t [s]\n20\n", encoding="utf-8")
    with pytest.raises(LogError, match="no column with a temperature"):
        tl.thermal_expansion(tubes, log=path)
    path.write_text("temperature.tripel1 [K]\n20\n", encoding="utf-8")
    with pytest.raises(InputError, match="is not a part that can expand"):
        tl.thermal_expansion(tubes, log=path)


def test_absolute_temperatures_are_doubtful(tubes: tl.Model) -> None:
    """20 degrees Celsius are 293 K; as a rise they would pass unnoticed in every result."""
    for result in (
        tl.thermal_expansion(tubes, temperatures=293.0),
        tl.stiffness(tubes, temperatures={"triple1": 293.0}),
        tl.compensate(tubes, temperatures=293.0),
    ):
        assert result.status == "doubtful"
        assert any("not absolute temperatures" in item.advice for item in result.diagnostics)
    assert tl.compensate(tubes, temperatures=20.0).status == "ok"
