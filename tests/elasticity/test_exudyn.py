"""Modes of machines against ANCF cable elements of Exudyn, 16 a link."""

from __future__ import annotations

import itertools
from types import ModuleType

import numpy as np
import pytest
from elastic_machines import FOUR_BAR, gantry
from extras import extra
from full_frame import Profile, full_gantry, tube_profile

import tauloop as tl

exudyn = extra("exudyn")
items: ModuleType = extra("exudyn.utilities")

ELEMENTS = 16
#: To the tenth mode.
FREQUENCY_ERROR = 1e-3


class Cables:
    """Cables between nodes, and constraints."""

    def __init__(self) -> None:
        """Begin with the ground."""
        self.container = exudyn.SystemContainer()
        self.system = self.container.AddSystem()
        self.ground = self.system.AddNode(items.NodePointGround(referenceCoordinates=[0.0] * 3))

    def cable(self, start: np.ndarray, end: np.ndarray, profile: Profile) -> list[int]:
        """Add a straight cable in the plane or in space, and return its nodes."""
        length = float(np.linalg.norm(end - start))
        slope = (end - start) / length
        is_planar = len(start) == 2
        node = items.NodePoint2DSlope1 if is_planar else items.NodePointSlope1
        element = items.ObjectANCFCable2D if is_planar else items.ObjectANCFCable
        nodes = [
            self.system.AddNode(node(referenceCoordinates=[*place, *slope]))
            for place in np.linspace(start, end, ELEMENTS + 1)
        ]
        for pair in itertools.pairwise(nodes):
            self.system.AddObject(
                element(
                    length=length / ELEMENTS,
                    massPerLength=profile.mass,
                    bendingStiffness=profile.EI_z,
                    axialStiffness=profile.EA,
                    nodeNumbers=list(pair),
                )
            )
        return nodes

    def coordinate(self, node: int, index: int) -> int:
        """Return a marker of a coordinate of a node."""
        return self.system.AddMarker(items.MarkerNodeCoordinate(nodeNumber=node, coordinate=index))

    def hold(self, node: int, index: int) -> None:
        """Fix a coordinate of a node."""
        self.join(self.ground, 0, node, index)

    def join(self, node: int, index: int, other: int, other_index: int) -> None:
        """Let coordinates of two nodes change together."""
        markers = [self.coordinate(node, index), self.coordinate(other, other_index)]
        self.system.AddObject(items.CoordinateConstraint(markerNumbers=markers))

    def frequencies(self, count: int) -> np.ndarray:
        """Return the lowest frequencies, Hz."""
        self.system.Assemble()
        values = self.system.ComputeODE2Eigenvalues(
            numberOfEigenvalues=count, convert2Frequencies=True, computeComplexEigenvalues=False
        )[0]
        return np.asarray(values)


def test_modes_of_a_four_bar_are_those_of_cables() -> None:
    area, moment = 0.03 * 0.008, 0.03 * 0.008**3 / 12.0
    EI = 210e9 * moment
    flat = Profile(EA=210e9 * area, EI_y=EI, EI_z=EI, GJ=0.0, mass=7850.0 * area, polar=0.0)
    A = 0.3 * np.array([np.cos(np.pi / 3.0), np.sin(np.pi / 3.0)])
    ground = np.array([0.7, 0.0])
    distance = np.linalg.norm(ground - A)
    along = (0.8**2 - 0.6**2 + distance**2) / (2.0 * distance)
    x, y = (ground - A) / distance
    B = A + along * np.array([x, y]) + np.sqrt(0.8**2 - along**2) * np.array([-y, x])
    machine = Cables()
    crank = machine.cable(np.zeros(2), A, flat)
    coupler = machine.cable(A, B, flat)
    rocker = machine.cable(ground, B, flat)
    for index in range(4):
        machine.hold(crank[0], index)
    for index in range(2):
        machine.hold(rocker[0], index)
        machine.join(crank[-1], index, coupler[0], index)
        machine.join(coupler[-1], index, rocker[-1], index)
    expected = machine.frequencies(10)
    result = tl.vibration(tl.loads(FOUR_BAR), count=16)
    in_plane = np.abs(result.body_shapes[0][:, :, [0, 1, 5]]).max(axis=(1, 2))
    out_of_plane = np.abs(result.body_shapes[0][:, :, [2, 3, 4]]).max(axis=(1, 2))
    planar = result.frequency[0][in_plane > out_of_plane]
    assert planar[:10] == pytest.approx(expected, rel=FREQUENCY_ERROR)


def test_modes_of_a_gantry_are_those_of_cables() -> None:
    """Cables carry no torsion, as rods between balls."""
    model = tl.Model(gantry())
    pose = np.array([0.1, -0.05, 0.08])
    frame, plate = full_gantry(model, pose, 1)
    machine = Cables()
    system = machine.system
    value = model.mechanism.value
    body_node = system.AddNode(items.NodeRigidBodyRxyz(referenceCoordinates=[*pose, 0.0, 0.0, 0.0]))
    moments = [value(name) for name in ("I_pxx", "I_pyy", "I_pzz")]
    body = system.AddObject(
        items.ObjectRigidBody(
            mass=value("m_p"), inertia=[*moments, 0.0, 0.0, 0.0], nodeNumber=body_node
        )
    )
    rods = {}
    for numbers, *_ in frame.rods:
        start, end = (frame.points[number] for number in numbers)
        nodes = machine.cable(start, end, tube_profile(0.05, 0.003))
        rods[numbers[0]], rods[numbers[-1]] = nodes[0], nodes[-1]
    carts: dict[int, int] = {}
    for near, far in frame.balls:
        if near == plate:
            arm = frame.points[far] - pose
            markers = [
                system.AddMarker(items.MarkerBodyPosition(bodyNumber=body, localPosition=arm)),
                system.AddMarker(items.MarkerNodePosition(nodeNumber=rods[far])),
            ]
            system.AddObject(items.SphericalJoint(markerNumbers=markers))
            continue
        if near not in carts:
            cart = system.AddNode(items.NodePoint(referenceCoordinates=list(frame.points[near])))
            mass = value("cart_mass")
            system.AddObject(items.ObjectMassPoint(mass=mass, nodeNumber=cart))
            markers = [machine.coordinate(machine.ground, 0), machine.coordinate(cart, 0)]
            system.AddObject(items.CoordinateSpringDamper(markerNumbers=markers, stiffness=20e6))
            for index in (1, 2):
                machine.hold(cart, index)
            carts[near] = cart
        for index in range(3):
            machine.join(carts[near], index, rods[far], index)
    expected = machine.frequencies(12)
    frequency = tl.vibration(model, [pose], count=12).frequency[0]
    assert frequency == pytest.approx(expected, rel=FREQUENCY_ERROR)
