"""Mass centers and inertia ellipsoids: those of bodies whose values are known by hand."""

from __future__ import annotations

import numpy as np
import pytest

import tauloop as tl
from tauloop.geometry.machine_geometry import joint_axes
from tauloop.viewer.scene.overlays import mass_properties


def test_an_ellipsoid_has_the_mass_center_and_the_inertia_of_its_body() -> None:
    """Integrated numerically: points of a uniform ellipsoid have the moments of the body."""
    mechanism = tl.load("delta")
    items = {item.name: item for item in mass_properties(mechanism)}
    body = next(b for b in mechanism.bodies if b.name == "leg1.arm")
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = (mechanism.value(x) for x in body.inertia.parameters)
    item = items["leg1.arm"]
    assert item.mass == pytest.approx(m)
    assert m * item.center == pytest.approx([hx, hy, hz])
    # second moments of a uniform ellipsoid: m a^2 / 5 along each half axis
    along = item.mass / 5.0 * item.rotation @ np.diag(item.semi_axes**2) @ item.rotation.T
    offset = item.mass * np.outer(item.center, item.center)
    second = along + offset
    inertia = np.trace(second) * np.eye(3) - second
    expected = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    scale = np.abs(expected).max()
    assert np.trace(inertia) == pytest.approx(np.trace(expected), rel=1e-9)
    assert inertia == pytest.approx(expected, abs=1e-9 * scale)


def test_a_slender_rod_has_its_mass_center_on_its_line() -> None:
    mechanism = tl.load("delta")
    rods = {rod.name: rod for rod in mechanism.rods}
    masses = {item.name: item for item in mass_properties(mechanism)}
    name = next(name for name in rods if name in masses)
    rod, item = rods[name], masses[name]
    m, h, J = (mechanism.value(x) for x in rod.lower.parameters)
    assert item.center == pytest.approx([0.0, 0.0, h / m])
    # a line of uniform ellipsoid density: J = m c^2 / 5 + m s^2
    assert m * item.semi_axes[2] ** 2 / 5 + m * (h / m) ** 2 == pytest.approx(J)
    assert item.semi_axes[:2] == pytest.approx([0.0, 0.0])


def test_axes_of_joints_are_those_of_the_file() -> None:
    axes = {axis.name: axis for axis in joint_axes(tl.load("five_bar"))}
    assert len(axes) == len([j for j in tl.load("five_bar").joints if j.kind == "revolute"])
    for axis in axes.values():
        assert np.abs(axis.direction) == pytest.approx([0.0, 0.0, 1.0])
    turned = tl.load("gantry_tau_6link")
    slides = [a for a in joint_axes(turned) if a.name.endswith("slide")]
    assert len(slides) == 3
    for axis in slides:
        assert not axis.is_angular
