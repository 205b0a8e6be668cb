"""Machines against the frame program PyNite."""

from __future__ import annotations

import numpy as np
import pytest
from elastic_machines import PRPAR, PUU, gantry
from extras import extra
from full_frame import FullFrame, Profile, full_gantry, full_orthoglide, tube_profile

import tauloop as tl

Pynite = extra("Pynite")

YOUNG, POISSON, DENSITY = 70e9, 0.3, 2700.0
TOOL = np.array([0.0, 0.0, -0.2])
ORTHOGLIDE_TOOL = np.array([0.02, 0.01, -0.08])
POSES = np.random.default_rng(2).uniform([-0.2, -0.15, -0.15], [0.2, 0.15, 0.15], (12, 3))
#: PyNite has no rigid members: bodies are members whose stiffness is this multiple.
RIGID = 1e3
#: Components of a load and of a displacement.
LOADS = ("FX", "FY", "FZ", "MX", "MY", "MZ")
MOTIONS = ("DX", "DY", "DZ", "RX", "RY", "RZ")


def new_model() -> object:
    """Return a model with the alloy and the tube."""
    model = Pynite.FEModel3D()
    area = np.pi / 4.0 * (0.05**2 - 0.044**2)
    moment = np.pi / 64.0 * (0.05**4 - 0.044**4)
    for name, factor in (("alloy", 1.0), ("rigid", RIGID)):
        E = factor * YOUNG
        model.add_material(name, E, E / (2.0 + 2.0 * POISSON), POISSON, DENSITY)
    model.add_section("tube", area, moment, moment, 2.0 * moment)
    model.add_section("block", 0.1, 0.01, 0.01, 0.02)
    return model


def pynite_compliance(frame: FullFrame, plate: int, tool: np.ndarray) -> np.ndarray:
    """Return the compliance (6, 6) of a machine of rods between a plate and carts along x.

    Ends of rods are released in bending, and one end in torsion.

    Args:
        frame: nodes of carts, plate and rods, one element each.
        plate: the node of the plate.
        tool: (3,) tool center point.
    """
    model = new_model()
    # Coincident nodes are one in PyNite: releases are those of members.
    same = {
        end: body
        for body, end in frame.balls
        if np.linalg.norm(frame.points[body] - frame.points[end]) < 1e-9
    }
    for number, point in enumerate(frame.points):
        if number not in same:
            model.add_node(str(number), *map(float, point))
    model.add_node("tool", *map(float, tool))
    model.add_member("tool", str(plate), "tool", "rigid", "block")
    for cart in {body for body, _ in frame.balls} - {plate}:
        model.def_support(str(cart), False, True, True, True, True, True)
        model.def_support_spring(str(cart), "DX", 20e6)
    for number, (nodes, *_) in enumerate(frame.rods):
        start, end = (str(same.get(node, node)) for node in nodes)
        model.add_member(f"rod{number}", start, end, "alloy", "tube")
        model.def_releases(f"rod{number}", Ryi=True, Rzi=True, Rxj=True, Ryj=True, Rzj=True)
    for body, end in frame.balls:
        if end not in same:
            model.add_member(f"arm{end}", str(body), str(end), "rigid", "block")
    for name in LOADS:
        model.add_load_combo(name, {name: 1.0})
        model.add_node_load("tool", name, 1.0, case=name)
    # PyNite takes the rounding of members this stiff for a mechanism.
    model.analyze_linear(check_stability=False)
    moved = model.nodes["tool"]
    return np.array([[getattr(moved, motion)[load] for load in LOADS] for motion in MOTIONS])


def test_compliance_of_a_gantry_is_that_of_a_frame() -> None:
    model = tl.Model(gantry())
    result = tl.stiffness(model, POSES)
    for pose, matrix in zip(POSES, result.compliance, strict=True):
        frame, plate = full_gantry(model, pose, 1)
        expected = pynite_compliance(frame, plate, pose + TOOL)
        scale = np.sqrt(np.diagonal(expected))
        assert np.abs((matrix - expected) / np.outer(scale, scale)).max() < 1e-5


def pynite_member(profile: Profile, length: float) -> object:
    """Return a member of a section."""
    model = Pynite.FEModel3D()
    shear = YOUNG / (2.0 + 2.0 * POISSON)
    model.add_material("alloy", YOUNG, shear, POISSON, DENSITY)
    sections = (profile.EA, profile.EI_y, profile.EI_z)
    model.add_section("section", *(value / YOUNG for value in sections), profile.GJ / shear)
    model.add_node("start", 0.0, 0.0, 0.0)
    model.add_node("end", length, 0.0, 0.0)
    model.add_member("member", "start", "end", "alloy", "section")
    return model.members["member"]


def pynite_element(profile: Profile, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the stiffness (12, 12) of a member, and no mass."""
    return np.asarray(pynite_member(profile, length).ke()), np.zeros((12, 12))


@pytest.mark.parametrize("distance", [0.0, -0.05, 0.08])
@pytest.mark.parametrize("is_puu", [True, False], ids=["3-PUU", "3-PRPaR"])
def test_an_orthoglide_has_the_compliance_of_members(is_puu: bool, distance: float) -> None:
    """PyNite releases ends in the axes of members alone: its matrices are joined by the hinges."""
    model = tl.Model(tl.loads(PUU if is_puu else PRPAR))
    pose = np.full(3, distance)
    frame, plate = full_orthoglide(pose, 4, is_puu=is_puu, element=pynite_element)
    expected = frame.compliance(plate, pose + ORTHOGLIDE_TOOL)
    scale = np.sqrt(np.diagonal(expected))
    error = (tl.stiffness(model, [pose]).compliance[0] - expected) / np.outer(scale, scale)
    assert np.abs(error).max() < 1e-8


@pytest.mark.parametrize("force", [(2000.0, -3000.0, -4000.0), (-2000.0, 3000.0, 4000.0)])
def test_a_gantry_buckles_as_with_the_matrices_of_a_frame_program(
    force: tuple[float, float, float],
) -> None:
    """PyNite has no buckling analysis: its matrices Ke and Kg make an eigenvalue problem."""
    pose = np.array([0.1, -0.05, 0.08])
    model = tl.Model(gantry())
    result = tl.stiffness(model, [pose], wrench=(*force, 0.0, 0.0, 0.0), weightless=True)

    def geometric(length: float) -> np.ndarray:
        return np.asarray(pynite_member(tube_profile(0.05, 0.003), length).kg(1.0))

    frame, plate = full_gantry(model, pose, 32, pynite_element)
    expected = frame.load_factor(plate, pose + TOOL, np.array(force), geometric)
    assert result.load_factor[0] == pytest.approx(expected, rel=1e-6)
