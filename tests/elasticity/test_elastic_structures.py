"""Structures against full elements, textbook formulas and printed values."""

from __future__ import annotations

import numpy as np
import pytest
from full_rods import SlidingTruss

import tauloop as tl
from tauloop.common.errors import AssemblyError, InputError
from tauloop.elasticity.frame.assembled import AssembledStructure, assemble
from tauloop.elasticity.frame.beams import BeamMotion, BeamProperties, Matrices
from tauloop.elasticity.frame.modes import frequency_response, natural_modes, subspace_cosines
from tauloop.elasticity.frame.reduction import BALL, reduced_beam
from tauloop.elasticity.frame.statics import (
    axial_forces,
    buckling_factors,
    end_loads,
    gravity_load,
    rod_buckling_load,
    section_loads,
    tool_compliance,
)
from tauloop.elasticity.frame.structure import (
    Attachment,
    ElasticJoint,
    Element,
    RigidBody,
    Structure,
    beam_axes,
    beam_element,
    spatial_inertia,
    spring_element,
)

#: Rounding of the solution of equations with a condition number of about 1e6.
ROUNDING = 1e-9
#: Of a frequency to the tenth mode, with five modes in each plane and 16 elements.
FREQUENCY_ERROR = 1e-3
#: Principal cosine of clusters of modes.
MIN_COSINE = 0.99

YOUNG, DENSITY, OUTER, WALL = 70e9, 2700.0, 0.05, 0.003
AREA = np.pi / 4.0 * (OUTER**2 - (OUTER - 2.0 * WALL) ** 2)
MOMENT = np.pi / 64.0 * (OUTER**4 - (OUTER - 2.0 * WALL) ** 4)
DRIVE = 20e6
GRAVITY = np.array([0.0, 0.0, -9.81])
UP = np.array([0.0, 0.0, 1.0])
TOOL = np.array([0.0, 0.0, -0.2])


def section(mass: float = DENSITY * AREA) -> BeamProperties:
    """Return the aluminium tube 50 x 3 mm with a mass per length."""
    return BeamProperties(
        axial=YOUNG * AREA,
        torsional=YOUNG / 2.6 * 2.0 * MOMENT,
        bending_y=YOUNG * MOMENT,
        bending_z=YOUNG * MOMENT,
        mass=mass,
        polar_inertia=DENSITY * 2.0 * MOMENT,
    )


class Gantry:
    """Geometry and masses of the machine file, at its reference pose."""

    def __init__(self, mass_per_length: float = DENSITY * AREA) -> None:
        """Read the machine."""
        machine = tl.load("gantry_tau_6link")
        value = machine.value
        self.density = mass_per_length
        self.slides = [joint for joint in machine.joints if joint.kind == "prismatic"]
        self.carts = {}
        for joint in self.slides:
            at = np.array([value(x) for x in joint.parent.position])
            self.carts[joint.child.body] = at + joint.reference[0] * np.eye(3)[0]
        self.cart_mass = value("cart_mass")
        inertia = machine.body("plate").inertia
        assert inertia is not None
        parameters = [value(x) for x in inertia.parameters]
        self.plate = np.diag([parameters[0]] * 3 + [parameters[4], parameters[6], parameters[9]])
        self.rods = {}
        for rod in machine.rods:
            start = self.carts[rod.start.body] + [value(x) for x in rod.start.position]
            self.rods[rod.name] = (
                rod.start.body,
                np.array(start),
                np.array([value(x) for x in rod.end.position]),
            )

    def structure(self, modes: int, samples: int = 1) -> AssembledStructure:
        """Return the assembled structure with `modes` in each bending plane."""
        zero = np.zeros((3, 3))
        bodies = [RigidBody(name="plate", origin=np.zeros((samples, 3)), inertia=self.plate)]
        joints = []
        for joint in self.slides:
            cart = joint.child.body
            inertia = spatial_inertia(self.cart_mass, np.zeros(3), zero)
            bodies.append(RigidBody(name=cart, origin=self.carts[cart], inertia=inertia))
            joints.append(
                ElasticJoint(
                    name=joint.name,
                    parent="base",
                    child=cart,
                    point=self.carts[cart],
                    motion=np.eye(6)[:, :1],
                    stiffness=np.array([[DRIVE]]),
                    motion_names=("",),
                )
            )
        elements = []
        for name, (cart, start, end) in self.rods.items():
            length = np.array([np.linalg.norm(end - start)])
            beam = reduced_beam(length, section(self.density), released=(BALL, BALL), modes=modes)
            axes = beam_axes(start, end, UP)
            elements.append(beam_element(name, beam, (cart, start), ("plate", end), axes))
        return assemble(
            Structure(
                bodies=tuple(bodies), joints=tuple(joints), elements=tuple(elements), length=0.5
            )
        )

    def truss(self, count: int) -> SlidingTruss:
        """Return the machine of full elements."""
        carts = list(self.carts)
        rods = [
            (carts.index(cart), start, end, YOUNG * AREA, YOUNG * MOMENT, self.density)
            for cart, start, end in self.rods.values()
        ]
        sliders = [(self.cart_mass, DRIVE)] * len(carts)
        return SlidingTruss(rods=rods, sliders=sliders, plate=self.plate, count=count)


def test_compliance_of_the_machine_is_that_of_a_truss_and_the_printed_one() -> None:
    gantry = Gantry()
    compliance = tool_compliance(gantry.structure(0), "plate", TOOL)
    matrix = compliance.matrix[0]
    assert matrix == pytest.approx(gantry.truss(1).compliance(TOOL), rel=1e-6, abs=1e-16)
    translational, rotational = np.split(1.0 / np.diagonal(matrix), 2)
    assert translational == pytest.approx([9.215633e6, 7.674774e6, 19.511574e6], rel=1e-7)
    assert rotational == pytest.approx([653_288.0, 563_530.0, 1_234_390.0], rel=1e-6)
    assert compliance.shares.sum(axis=-1) == pytest.approx(np.ones((1, 6)), rel=ROUNDING)
    assert compliance.items[-3:] == ("track1.slide", "track2.slide", "track3.slide")
    # Energy of a drive: its force squared over its stiffness, with the force from the full truss.
    x = compliance.displacement[0, 2, 0]
    assert compliance.shares[0, 0, -1] == pytest.approx(DRIVE * x**2 / matrix[0, 0], rel=ROUNDING)


@pytest.mark.parametrize(
    ("density", "printed"),
    [(DENSITY * AREA, [78.4, 83.8]), (4.22 / 1.25, [48.3])],
    ids=["tube", "file"],
)
def test_modes_of_the_machine_are_those_of_full_elements(
    density: float, printed: list[float]
) -> None:
    gantry = Gantry(density)
    assembled = gantry.structure(5)
    modes = natural_modes(assembled, 13)
    expected, _ = gantry.truss(16).modes(13)
    assert modes.frequencies[0, :12] == pytest.approx(expected[:12], rel=FREQUENCY_ERROR)
    # The list of printed values has three digits.
    assert modes.frequencies[0, : len(printed)] == pytest.approx(printed, abs=0.1)


def in_full_coordinates(
    assembled: AssembledStructure, count: int, truss: SlidingTruss
) -> np.ndarray:
    """Return the freedoms of the full truss by the coordinates of the structure."""
    nodes = count + 1
    ends = [0, nodes, 3 * nodes, nodes - 1, 3 * nodes - 2, 5 * nodes - 2]
    rows = [assembled.body_motion["plate"][0], *(motion[0] for motion in assembled.joint_motion)]
    for element, motion in zip(assembled.structure.elements, assembled.element_motion, strict=True):
        # The truss has its own transverse axes.
        start, end = (attachment.point for attachment in element.attachments)
        x = (end - start) / np.linalg.norm(end - start)
        y = np.linalg.svd(x[None])[2][1]
        R = np.stack([x, y, np.cross(x, y)]) @ element.attachments[0].axes
        displacement = np.zeros((nodes, 6, assembled.size))
        for name, item in element.beam.motions.items():
            places, signs = element.beam.indices_and_signs[name]
            local = item.basis @ (signs[:, None] * motion[0][places])
            for j, (freedom, sign) in enumerate(name.value):
                displacement[:, freedom] = sign * local[j :: len(name.freedoms)]
        u = np.einsum("ij,njc->nic", R, displacement[:, :3])
        theta = np.einsum("ij,njc->nic", R, displacement[:, 3:])
        bending_y = np.stack([u[:, 1], theta[:, 2]], axis=1).reshape(2 * nodes, -1)
        bending_z = np.stack([u[:, 2], -theta[:, 1]], axis=1).reshape(2 * nodes, -1)
        coordinates = np.concatenate([u[:, 0], bending_y, bending_z])
        rows.append(np.delete(coordinates, ends, axis=0))
    expanded = np.concatenate(rows)
    assert len(expanded) == len(truss.K)
    return expanded


def test_a_cluster_of_modes_is_one_subspace_of_full_elements() -> None:
    """Modes 2 to 10 are within 2 %: they are compared as a subspace, with the full mass matrix."""
    gantry = Gantry()
    assembled = gantry.structure(2)
    count = len(assembled.structure.elements[0].beam.lengths)
    truss = gantry.truss(count)
    _, full = truss.modes(13)
    modes = natural_modes(assembled, 13)
    cluster = tuple(range(1, 10))
    assert cluster in modes.clusters()
    shapes = in_full_coordinates(assembled, count, truss) @ modes.shapes[0][:, cluster]
    cosines = subspace_cosines(shapes, full[:, cluster], truss.M)
    assert cosines.min() >= MIN_COSINE
    assert cosines.max() <= 1.0 + ROUNDING


def four_bar(modes: int) -> AssembledStructure:
    """Return the four-bar of steel flats 30 x 8 mm: crank 0.3 m clamped at 60 degrees."""
    young, density, width, height = 210e9, 7850.0, 0.03, 0.008
    area = width * height
    flat = BeamProperties(
        axial=young * area,
        torsional=young / 2.6 * width * height**3 / 3.0,
        bending_z=young * width * height**3 / 12.0,
        bending_y=young * height * width**3 / 12.0,
        mass=density * area,
        polar_inertia=density * (width * height**3 + height * width**3) / 12.0,
    )
    ground = np.array([0.7, 0.0, 0.0])
    A = 0.3 * np.array([np.cos(np.pi / 3.0), np.sin(np.pi / 3.0), 0.0])
    distance = np.linalg.norm(ground - A)
    along = (0.8**2 - 0.6**2 + distance**2) / (2.0 * distance)
    direction = (ground - A) / distance
    across = np.cross(UP, direction)
    B = A + along * direction + np.sqrt(0.8**2 - along**2) * across
    unit = np.eye(6)
    joints = (
        ElasticJoint(name="a", parent="base", child="A", point=A, motion=unit[:, [0, 1, 5]]),
        ElasticJoint(name="b", parent="base", child="B", point=B, motion=unit[:, [0, 1]]),
    )
    elements = []
    for name, (body, start, released), (other, end, released_too) in [
        ("crank", ("base", np.zeros(3), ()), ("A", A, ())),
        ("coupler", ("A", A, (5,)), ("B", B, (5,))),
        ("rocker", ("base", ground, (5,)), ("B", B, (5,))),
    ]:
        length = np.array([np.linalg.norm(end - start)])
        beam = reduced_beam(length, flat, released=(released, released_too), modes=modes)
        axes = beam_axes(start, end, UP)
        elements.append(beam_element(name, beam, (body, start), (other, end), axes))
    bodies = (RigidBody(name="A", origin=A), RigidBody(name="B", origin=B))
    return assemble(Structure(bodies=bodies, joints=joints, elements=tuple(elements), length=0.5))


def planar_frequencies(assembled: AssembledStructure) -> np.ndarray:
    """Return the frequencies of modes in the plane, Hz."""
    modes = natural_modes(assembled)
    energy = np.zeros(modes.frequencies.shape[1])
    for element, rows in zip(assembled.structure.elements, assembled.element_motion, strict=True):
        beam = element.beam
        assert beam is not None
        local = rows[0] @ modes.shapes[0]
        for motion in (BeamMotion.BEND_XY, BeamMotion.STRETCH):
            places = beam.indices_and_signs[motion][0]
            K = element.matrices.stiffness[np.ix_(places, places)]
            energy += np.sum(local[places] * (K @ local[places]), axis=0)
    return np.asarray(modes.frequencies[0, energy > 0.5 * modes.angular[0] ** 2])


def test_modes_of_a_four_bar_are_those_of_two_other_programs() -> None:
    """Own elements (48 a link) and ANCF cable elements of Exudyn, printed to four digits."""
    printed = [19.31, 38.54, 58.90, 117.5, 212.1, 272.0, 341.5, 466.2, 475.1, 740.3]
    assert planar_frequencies(four_bar(5))[:10] == pytest.approx(printed, rel=FREQUENCY_ERROR)
    # Two modes of each link are too few for the tenth mode.
    assert planar_frequencies(four_bar(2))[9] > 3.0 * printed[9]


def tripod(*, spin: bool = False, legs: int = 6) -> Structure:
    """Return a plate on axial springs to the base, which hold it if there are six."""
    rng = np.random.default_rng(1)
    elements = []
    beam = reduced_beam(np.array([1.0]), section(), released=(BALL, BALL), modes=0)
    for i in range(legs):
        end = rng.normal(size=3)
        direction = rng.normal(size=3)
        start = end + direction / np.linalg.norm(direction)
        axes = beam_axes(start, end, np.cross(direction, UP))
        elements.append(beam_element(f"leg{i + 1}", beam, ("base", start), ("plate", end), axes))
    bodies = [RigidBody(name="plate", origin=np.zeros(3), inertia=np.eye(6))]
    joints = []
    if spin:
        bodies.append(RigidBody(name="disc", origin=UP))
        joints.append(
            ElasticJoint(
                name="axle", parent="plate", child="disc", point=UP, motion=np.eye(6)[:, 5:]
            )
        )
    return Structure(bodies=tuple(bodies), joints=tuple(joints), elements=tuple(elements))


def test_mechanisms_are_named_and_never_regularised() -> None:
    assemble(tripod()).require_no_mechanism()
    with pytest.raises(AssemblyError, match="without any deformation") as loose:
        tool_compliance(assemble(tripod(legs=5)), "plate", np.zeros(3))
    assert [problem.where for problem in loose.value.problems] == ["plate"]
    with pytest.raises(AssemblyError, match=r"rotates about \(0, 0, 1\)") as spinning:
        natural_modes(assemble(tripod(spin=True)))
    assert [problem.where for problem in spinning.value.problems] == ["disc"]
    # A disc without mass has no motion of its own either.
    with pytest.raises(AssemblyError, match="zero modal mass"):
        natural_modes(assemble(tripod(spin=True)), may_be_free=True)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_mechanisms_do_not_depend_on_units(factor: float) -> None:
    """A machine of micrometres with soft legs, and one of kilometres, hold as well as this one."""
    original = tripod()
    elements = []
    for element in original.elements:
        matrices = Matrices(
            stiffness=element.matrices.stiffness * factor,
            mass=element.matrices.mass,
            geometric=element.matrices.geometric,
        )
        attachments = tuple(
            Attachment(
                body=item.body, point=item.point * factor, axes=item.axes, freedoms=item.freedoms
            )
            for item in element.attachments
        )
        elements.append(Element(name=element.name, attachments=attachments, matrices=matrices))
    for count, expected in ((6, 0), (4, 2)):
        structure = Structure(
            bodies=original.bodies, elements=tuple(elements[:count]), length=factor
        )
        assert assemble(structure).mechanisms.shape[-1] == expected


def test_free_motions_are_modes_of_frequency_zero() -> None:
    """Two masses on a line with a spring between them: ω² = k (1/m + 1/M)."""
    line = np.eye(6)[:, :1]
    at = [np.zeros(3), np.array([0.3, 0.0, 0.0])]
    masses = [2.0, 5.0]
    bodies = tuple(
        RigidBody(name=name, origin=p, inertia=mass * np.eye(6))
        for name, p, mass in zip("ab", at, masses, strict=True)
    )
    joints = tuple(
        ElasticJoint(
            name=f"slide_{body.name}",
            parent="base",
            child=body.name,
            point=body.origin,
            motion=line,
        )
        for body in bodies
    )
    spring = spring_element("spring", ("a", "b"), at[0], np.eye(3), 300.0 * np.eye(6))
    assembled = assemble(Structure(bodies=bodies, joints=joints, elements=(spring,)))
    with pytest.raises(AssemblyError):
        natural_modes(assembled)
    modes = natural_modes(assembled, may_be_free=True)
    omega = np.sqrt(300.0 * (1.0 / 2.0 + 1.0 / 5.0))
    assert modes.free == 1
    assert modes.angular[0] == pytest.approx([0.0, omega], rel=ROUNDING)
    assert modes.shapes[0].T @ assembled.mass[0] @ modes.shapes[0] == pytest.approx(np.eye(2))


def test_a_closed_loop_of_rigid_joints_moves_as_its_linkage() -> None:
    """A parallelogram with one torsional spring: the opposite bar translates; c = a² / k."""
    a, k = 0.4, 50.0
    corners = np.array([[0, 0, 0], [0, a, 0], [0.7, a, 0], [0.7, 0, 0]], dtype=float)
    about_z = np.eye(6)[:, 5:]
    bodies = tuple(
        RigidBody(
            name=name, origin=corners[i], inertia=spatial_inertia(1.0, np.zeros(3), np.eye(3))
        )
        for i, name in enumerate(("left", "top", "right"), start=0)
    )
    ends = [("base", "left"), ("left", "top"), ("top", "right"), ("right", "base")]
    joints = tuple(
        ElasticJoint(
            name=f"pin{i + 1}",
            parent=parent,
            child=child,
            point=corners[i],
            motion=about_z,
            stiffness=np.array([[k]]) if i == 0 else None,
        )
        for i, (parent, child) in enumerate(ends)
    )
    assembled = assemble(Structure(bodies=bodies, joints=joints, length=0.5))
    assert assembled.size == 1
    compliance = tool_compliance(assembled, "top", np.array([0.2, 0.5, 0.0]))
    expected = np.zeros((6, 6))
    expected[0, 0] = a**2 / k
    assert compliance.matrix[0] == pytest.approx(expected, abs=ROUNDING * expected[0, 0])
    assert compliance.shares[0, 0] == pytest.approx([1.0])


def test_a_cantilever_with_a_rigid_offset_sags_by_its_weight_as_printed() -> None:
    """Tip by its own weight: q L⁴ / (8 E I); at an offset, by the rotation of the tip as well."""
    L, offset = 0.8, 0.1
    beam = reduced_beam(np.array([L]), section(), modes=3)
    tip = np.array([L, 0.0, 0.0])
    axes = beam_axes(np.zeros(3), tip, UP)
    element = beam_element("arm", beam, ("base", np.zeros(3)), ("hand", tip), axes)
    hand = np.array([L + offset, 0.0, 0.0])
    assembled = assemble(
        Structure(bodies=(RigidBody(name="hand", origin=hand),), elements=(element,))
    )
    load = gravity_load(assembled, GRAVITY)
    x = np.linalg.solve(assembled.stiffness, load[..., None])[..., 0]
    EI, q = YOUNG * MOMENT, DENSITY * AREA * 9.81
    sag = q * L**4 / (8.0 * EI) + offset * q * L**3 / (6.0 * EI)
    moved = assembled.point_motion("hand", hand) @ x[..., None]
    assert moved[0, :, 0] == pytest.approx(
        [0.0, 0.0, -sag, 0.0, q * L**3 / (6.0 * EI), 0.0], rel=1e-6, abs=1e-15
    )
    loads = section_loads(element, end_loads(assembled, x, GRAVITY)["arm"], GRAVITY)[0]
    position = np.concatenate([[0.0], np.cumsum(beam.lengths)])
    # The part before a section carries the weight of the rest; the free end carries nothing.
    assert loads[:, 2] == pytest.approx(-q * (L - position), rel=1e-6, abs=1e-6)
    assert np.abs(loads[:, 4]) == pytest.approx(q * (L - position) ** 2 / 2.0, rel=1e-6, abs=1e-6)
    assert np.abs(loads[:, [0, 1, 3, 5]]).max() <= 1e-6


def test_buckling_of_a_rod_and_of_a_cantilever() -> None:
    rod = reduced_beam(np.array([1.25]), section(), released=(BALL, BALL), modes=1)
    element = beam_element(
        "rod", rod, ("base", np.zeros(3)), ("base", np.array([1.25, 0, 0])), np.eye(3)
    )
    assert rod_buckling_load(element) == pytest.approx(54_302.31, rel=1e-6)
    column = reduced_beam(np.array([1.25]), section(), modes=6)
    tip = np.array([1.25, 0.0, 0.0])
    arm = beam_element("arm", column, ("base", np.zeros(3)), ("tip", tip), np.eye(3))
    assembled = assemble(Structure(bodies=(RigidBody(name="tip", origin=tip),), elements=(arm,)))
    pushed = -assembled.body_motion["tip"][:, 0]
    x = np.linalg.solve(assembled.stiffness, pushed[..., None])[..., 0]
    axial = axial_forces(assembled, end_loads(assembled, x))
    assert axial["arm"] == pytest.approx([-1.0])
    # Euler's first case: a quarter of the load of the pinned rod, twice for a round tube.
    factors = buckling_factors(assembled, assembled.geometric(axial), 2)
    assert factors[0] == pytest.approx([54_302.31 / 4.0] * 2, rel=1e-5)
    pulled = assembled.geometric({"arm": np.ones(1)})
    assert np.isinf(buckling_factors(assembled, pulled)).all()


def test_a_preloaded_rod_changes_its_frequency_as_a_string_does() -> None:
    """ω² = ω0² (1 + P / P_Euler) of a pinned rod, until it buckles."""
    rod = reduced_beam(np.array([1.25]), section(), released=(BALL, BALL), modes=1)
    element = beam_element(
        "rod", rod, ("base", np.zeros(3)), ("base", np.array([1.25, 0, 0])), np.eye(3)
    )
    # The base does not move: only the rod's own modes are left.
    assembled = assemble(Structure(bodies=(), elements=(element,)))
    for load in (20_000.0, -40_000.0):
        geometric = assembled.geometric({"rod": np.array([load])})
        modes = natural_modes(assembled, 2, geometric=geometric)
        expected = 85.232 * np.sqrt(1.0 + load / 54_302.31)
        assert modes.frequencies[0] == pytest.approx([expected] * 2, rel=1e-5)
    with pytest.raises(AssemblyError, match="buckling load"):
        natural_modes(assembled, geometric=assembled.geometric({"rod": np.array([-60_000.0])}))


def test_frequency_response_of_an_oscillator() -> None:
    """1 / (k - m ω² + i c ω), and k (1 + i η) with a loss factor; without damping refused."""
    m, k, ratio = 3.0, 1200.0, 0.02
    body = RigidBody(name="mass", origin=np.zeros(3), inertia=m * np.eye(6))
    joint = ElasticJoint(
        name="spring",
        parent="base",
        child="mass",
        point=np.zeros(3),
        motion=np.eye(6)[:, :1],
        stiffness=np.array([[k]]),
    )
    assembled = assemble(Structure(bodies=(body,), joints=(joint,)))
    modes = natural_modes(assembled)
    port = assembled.body_motion["mass"][:, :1]
    f = np.array([0.0, 1.0, np.sqrt(k / m) / (2.0 * np.pi), 20.0])
    w = 2.0 * np.pi * f
    c = 2.0 * ratio * np.sqrt(k * m)
    response = frequency_response(modes, port, port, f, damping=ratio)
    assert response[0, :, 0, 0] == pytest.approx(1.0 / (k - m * w**2 + 1j * c * w))
    lossy = frequency_response(modes, port, port, f, loss_factor=0.1)
    assert lossy[0, :, 0, 0] == pytest.approx(1.0 / (k * (1.0 + 0.1j) - m * w**2))
    with pytest.raises(InputError, match="no damping"):
        frequency_response(modes, port, port, f)
    with pytest.raises(InputError, match="must be positive, got 0"):
        frequency_response(modes, port, port, f, damping=0.0)
    with pytest.raises(InputError, match=r"loss_factor: must be positive, got -0\.1"):
        frequency_response(modes, port, port, f, loss_factor=-0.1)


def test_the_static_response_completes_few_modes() -> None:
    gantry = Gantry()
    assembled = gantry.structure(1)
    port = assembled.point_motion("plate", TOOL)
    static = tool_compliance(assembled, "plate", TOOL).matrix
    few = natural_modes(assembled, 3)
    response = frequency_response(few, port, port, np.array([0.0]), damping=0.01, static=static)
    assert response[0, 0].real == pytest.approx(static[0], rel=1e-6, abs=1e-18)


def test_batches_of_poses_are_computed_together() -> None:
    gantry = Gantry()
    many, single = gantry.structure(2, samples=4), gantry.structure(2)
    expected = natural_modes(single, 8).frequencies
    assert natural_modes(many, 8).frequencies == pytest.approx(np.repeat(expected, 4, axis=0))


def test_wrong_structures_are_refused() -> None:
    body = RigidBody(name="a", origin=np.zeros(3))
    with pytest.raises(InputError, match="used twice"):
        Structure(bodies=(body, body))
    spring = spring_element("s", ("a", "c"), np.zeros(3), np.eye(3), np.eye(6))
    with pytest.raises(InputError, match="no body 'c'"):
        Structure(bodies=(body,), elements=(spring,))
