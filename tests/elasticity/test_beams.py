"""Beam elements, their chains and their reduction, against Euler, Timoshenko and full chains."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from tauloop.common.errors import InputError
from tauloop.elasticity.frame.beams import BeamMotion, BeamProperties, beam_matrices, chain_matrices
from tauloop.elasticity.frame.reduction import BALL, reduced_beam

#: Aluminium tube 50 x 3 x 1 250 mm.
YOUNG, DENSITY, OUTER, WALL, LENGTH = 70e9, 2700.0, 0.05, 0.003, 1.25
AREA = np.pi / 4.0 * (OUTER**2 - (OUTER - 2.0 * WALL) ** 2)
MOMENT = np.pi / 64.0 * (OUTER**4 - (OUTER - 2.0 * WALL) ** 4)
EULER_LOAD = np.pi**2 * YOUNG * MOMENT / LENGTH**2
#: Rounding of chains of 32 elements, whose stiffness grows with the cube of their number.
ROUNDING = 1e-9
#: The error of a printed value with two digits.
TWO_DIGITS = 0.05


def tube(**more: float) -> BeamProperties:
    """Return the section of the tube."""
    return BeamProperties(
        axial=YOUNG * AREA,
        torsional=YOUNG / 2.6 * 2.0 * MOMENT,
        bending_y=YOUNG * MOMENT,
        bending_z=YOUNG * MOMENT,
        mass=DENSITY * AREA,
        polar_inertia=DENSITY * 2.0 * MOMENT,
        **more,
    )


def pinned(count: int, section: BeamProperties, motion: BeamMotion = BeamMotion.BEND_XY) -> tuple:
    """Return stiffness, mass and geometric stiffness of a pinned tube of equal elements."""
    chain = chain_matrices(motion, np.full(count, LENGTH / count), section)
    free = [i for i in range(2 * count + 2) if i not in (0, 2 * count)]
    part = chain.part(tuple(free))
    return part.stiffness, part.mass, part.geometric


@pytest.mark.parametrize(
    ("count", "error"),
    [(1, 2.2e-1), (2, 7.5e-3), (4, 5.1e-4), (8, 3.3e-5), (16, 2.1e-6), (32, 1.3e-7)],
)
def test_buckling_of_a_pinned_tube_converges_to_euler(count: int, error: float) -> None:
    """The table of errors is that of matrices of PyNite."""
    stiffness, _, geometric = pinned(count, tube())
    load = 1.0 / eigh(geometric, stiffness, eigvals_only=True)[-1]
    assert pytest.approx(54_302.31, abs=0.005) == EULER_LOAD
    assert load / EULER_LOAD - 1.0 == pytest.approx(error, rel=TWO_DIGITS)


def test_first_bending_frequency_of_a_pinned_tube() -> None:
    stiffness, mass, _ = pinned(16, tube())
    frequencies = np.sqrt(eigh(stiffness, mass, eigvals_only=True)) / (2.0 * np.pi)
    exact = np.pi / 2.0 * np.sqrt(YOUNG * MOMENT / (DENSITY * AREA)) / LENGTH**2
    assert frequencies[0] == pytest.approx(exact, rel=2e-6)
    assert frequencies[0] == pytest.approx(85.2, abs=0.05)


def test_shear_and_rotary_inertia_lower_a_frequency_as_timoshenko_states() -> None:
    """The characteristic equation of a pinned Timoshenko beam is a quadratic in ω²."""
    shear, rotary = 0.5 * YOUNG / 2.6 * AREA, DENSITY * MOMENT
    section = tube(shear_y=shear, shear_z=shear, rotary_y=rotary, rotary_z=rotary)
    k = np.pi / LENGTH
    rho_A, EI = DENSITY * AREA, YOUNG * MOMENT
    # ρA ρI ω⁴ / (κGA) - (ρA + ρA EI k² / (κGA) + ρI k²) ω² + EI k⁴ = 0
    roots = np.roots(
        [rho_A * rotary / shear, -(rho_A + rho_A * EI * k**2 / shear + rotary * k**2), EI * k**4]
    )
    for motion in (BeamMotion.BEND_XY, BeamMotion.BEND_XZ):
        stiffness, mass, _ = pinned(32, section, motion)
        lowest = eigh(stiffness, mass, eigvals_only=True)[0]
        # The shear force is constant in each element: the error falls with its length squared.
        assert lowest == pytest.approx(roots.min(), rel=2e-5)
    assert np.sqrt(roots.min() / (EI * k**4 / rho_A)) < 0.998


def test_an_element_of_timoshenko_gives_the_deflection_of_a_cantilever() -> None:
    """F L³ / (3 E I) + F L / (κ G A), in both planes, from one element."""
    shear_y, shear_z = 1.2e6, 0.7e6
    section = BeamProperties(
        axial=1e7, torsional=1e3, bending_y=2e3, bending_z=3e3, shear_y=shear_y, shear_z=shear_z
    )
    stiffness = beam_matrices(np.array([0.4]), section).stiffness[6:, 6:]
    compliance = np.linalg.inv(stiffness)
    assert compliance[1, 1] == pytest.approx(0.4**3 / (3.0 * 3e3) + 0.4 / shear_y, rel=ROUNDING)
    assert compliance[2, 2] == pytest.approx(0.4**3 / (3.0 * 2e3) + 0.4 / shear_z, rel=ROUNDING)
    # A force along z turns the end about -y, one along y about +z.
    assert compliance[4, 2] == pytest.approx(-(0.4**2) / (2.0 * 2e3), rel=ROUNDING)
    assert compliance[5, 1] == pytest.approx(0.4**2 / (2.0 * 3e3), rel=ROUNDING)


def test_rigid_motions_have_the_mass_of_a_rigid_body_and_no_stiffness() -> None:
    lengths = np.array([0.3, 0.5])
    section = BeamProperties(
        axial=np.array([2e6, 3e6]),
        torsional=10.0,
        bending_y=np.array([5.0, 8.0]),
        bending_z=7.0,
        mass=np.array([1.0, 2.0]),
        polar_inertia=1e-3,
    )
    mass, center = 0.3 + 1.0, (0.3 * 0.15 + 1.0 * 0.55) / 1.3
    about_start = 0.3**3 / 3.0 + 2.0 * (0.8**3 - 0.3**3) / 3.0
    for beam in (
        reduced_beam(lengths, section, modes=2),
        reduced_beam(lengths, section, modes=2, released=((5,), (4,))),
    ):
        start = np.eye(6)
        end = np.eye(6)
        end[1, 5], end[2, 4] = 0.8, -0.8
        rigid = np.zeros((beam.size, 6))
        rows = np.concatenate([start[list(beam.start)], end[list(beam.end)]])
        rigid[: len(rows)] = rows
        scale = np.abs(beam.matrices.stiffness).max()
        assert np.abs(beam.matrices.stiffness @ rigid).max() <= 1e-13 * scale
        inertia = rigid.T @ beam.matrices.mass @ rigid
        expected = np.diag([mass, mass, mass, 0.8e-3, about_start, about_start])
        expected[1, 5] = expected[5, 1] = mass * center
        expected[2, 4] = expected[4, 2] = -mass * center
        assert inertia == pytest.approx(expected, rel=ROUNDING, abs=ROUNDING)


def test_a_reduced_beam_without_modes_is_one_element_of_a_uniform_beam() -> None:
    reduced = reduced_beam(np.array([0.7, 0.5]), tube(), modes=0).matrices
    whole = beam_matrices(np.array([1.2]), tube())
    for name in ("stiffness", "mass", "geometric"):
        expected = getattr(whole, name)
        scale = np.abs(expected).max()
        assert np.abs(getattr(reduced, name) - expected).max() <= ROUNDING * scale


def test_a_rod_between_balls_carries_no_torsion_and_no_bending_at_its_ends() -> None:
    """Two end displacements along y only turn the rod; its modes are those of a pinned tube."""
    rod = reduced_beam(np.array([LENGTH]), tube(), released=(BALL, BALL), modes=3)
    assert (rod.start, rod.end) == ((0, 1, 2), (0, 1, 2))
    assert BeamMotion.TWIST not in rod.mode_counts
    assert rod.mode_counts[BeamMotion.BEND_XY] == rod.mode_counts[BeamMotion.BEND_XZ] == 3
    ends = rod.matrices.stiffness[:6, :6]
    axial = YOUNG * AREA / LENGTH
    expected = np.zeros((6, 6))
    expected[0, 0] = expected[3, 3] = axial
    expected[0, 3] = expected[3, 0] = -axial
    assert ends == pytest.approx(expected, rel=ROUNDING)
    first = np.pi / 2.0 * np.sqrt(YOUNG * MOMENT / (DENSITY * AREA)) / LENGTH**2
    assert rod.motions[BeamMotion.BEND_XY].frequencies == pytest.approx(
        first * np.arange(1, 4) ** 2, rel=2e-5
    )


def test_automatic_modes_are_all_below_the_bound_and_at_least_one() -> None:
    """Pinned modes of the tube: 85.2, 340.9, 767.1, 1 363.7 Hz; the first stretch at 2 037 Hz."""
    lengths = np.array([LENGTH])
    released = (BALL, BALL)
    for below, bending, stretching in [(0.0, 1, 0), (100.0, 1, 0), (800.0, 3, 0), (2100.0, 4, 1)]:
        rod = reduced_beam(lengths, tube(), released=released, max_frequency=below)
        assert rod.mode_counts[BeamMotion.BEND_XY] == bending
        assert rod.mode_counts[BeamMotion.BEND_XZ] == bending
        assert rod.mode_counts[BeamMotion.STRETCH] == stretching


def test_lengths_of_many_poses_give_the_matrices_of_each() -> None:
    lengths = np.array([[0.5, 0.2], [0.5, 0.4]])
    section = BeamProperties(
        axial=np.array([2e6, 3e6]),
        torsional=1.0,
        bending_y=50.0,
        bending_z=70.0,
        mass=0.7,
        polar_inertia=1e-4,
    )
    many = reduced_beam(lengths, section, modes=1)
    for i in range(2):
        single = reduced_beam(lengths[i], section, modes=1)
        eigenvalues = [
            eigh(item.stiffness, item.mass, eigvals_only=True)
            for item in (single.matrices, many.matrices.at(i))
        ]
        scale = np.abs(eigenvalues[0]).max()
        # The element mesh of many poses is that of the pose with the finest division.
        assert np.abs(eigenvalues[0] - eigenvalues[1]).max() <= 2e-5 * scale


def test_what_cannot_hold_or_be_a_beam_is_refused() -> None:
    with pytest.raises(InputError, match="bend xy") as refused:
        reduced_beam(np.array([1.0]), tube(), released=((1,), (1,)))
    assert refused.value.problems[0].where == "released"
    with pytest.raises(InputError, match="bending_y: must be positive, got 0") as zero:
        BeamProperties(axial=1.0, torsional=1.0, bending_y=0.0, bending_z=-1.0, mass=-2.0)
    assert [item.where for item in zero.value.problems] == ["bending_y", "bending_z", "mass"]
