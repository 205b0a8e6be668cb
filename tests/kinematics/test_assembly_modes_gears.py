"""Modes of machines with gears, against roots found by scanning one equation; progress, singular modes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from tauloop.common.errors import AssemblyError
from tauloop.common.result import Status
from tauloop.formats import loads, machine_path
from tauloop.kinematics.homotopy.monodromy import FOLLOWING, SEARCHING, SearchProgress
from tauloop.kinematics.modes.modes import Modes, assembly_modes
from tauloop.model import Model

#: Both ways end at rounding times a condition of some thousands.
SAME = 1e-8

# Crank A (0.1 m) and crank B (0.12 m), 0.3 m apart and geared together, carry links of 0.32 m and
# 0.3 m that meet.
A, B, LINK_A, LINK_B, APART = 0.1, 0.12, 0.32, 0.3, 0.3
GEARED = """format: tauloop-machine/1
name: geared_five_bar
provenance: {{status: chosen, source: test}}
gravity: [0, -9.81 m/s^2, 0]
bodies:
  crank_a: {{mass: 1 kg, inertia: {{xx: 1e-2 kg m^2, yy: 1e-2 kg m^2, zz: 1e-2 kg m^2}}}}
  crank_b: {{mass: 1 kg, inertia: {{xx: 1e-2 kg m^2, yy: 1e-2 kg m^2, zz: 1e-2 kg m^2}}}}
  link_a: {{mass: 1 kg, inertia: {{xx: 1e-2 kg m^2, yy: 1e-2 kg m^2, zz: 1e-2 kg m^2}}}}
  link_b: {{mass: 1 kg, inertia: {{xx: 1e-2 kg m^2, yy: 1e-2 kg m^2, zz: 1e-2 kg m^2}}}}
joints:
  a: {{type: revolute, axis: z, parent: base, child: crank_a, reference: 0.3 rad}}
  b: {{type: revolute, axis: z, parent: {{on: base, at: [0.3 m, 0, 0]}}, child: crank_b, reference: {start_b} rad}}
  elbow: {{type: revolute, axis: z, parent: {{on: crank_a, at: [0.1 m, 0, 0]}}, child: link_a, reference: 0.9 rad}}
  other: {{type: revolute, axis: z, parent: {{on: crank_b, at: [0.12 m, 0, 0]}}, child: link_b, reference: 2 rad}}
  pin:
    type: revolute
    axis: z
    cut: yes
    parent: {{on: link_a, at: [0.32 m, 0, 0]}}
    child: {{on: link_b, at: [0.3 m, 0, 0]}}
couplings:
  gear: {{of: {{a: {ratio_a}, b: {ratio_b}}}, offset: 0.2 rad}}
actuators:
  motor: {{on: {driven}}}
platform: {{body: link_a, independent: [{driven}]}}
"""


IN_LINE = """format: tauloop-machine/1
name: five_bar_in_line
provenance: {{status: chosen, source: test}}
gravity: [0, -9.81 m/s^2, 0]
bodies: {{c1: {{mass: 1 kg}}, c2: {{mass: 1 kg}}, l1: {{mass: 1 kg}}, l2: {{mass: 1 kg}}}}
joints:
  s1: {{type: revolute, axis: z, parent: base, child: c1, reference: {s1!r} rad}}
  s2: {{type: revolute, axis: z, parent: {{on: base, at: [0.3 m, 0, 0]}}, child: c2, reference: {s2!r} rad}}
  e1: {{type: revolute, axis: z, parent: {{on: c1, at: [0.2 m, 0, 0]}}, child: l1, reference: -{s1!r} rad}}
  e2: {{type: revolute, axis: z, parent: {{on: c2, at: [0.2 m, 0, 0]}}, child: l2, reference: {s1!r} rad}}
  tip: {{type: revolute, axis: z, parent: {{on: l1, at: [0.2 m, 0, 0]}}, child: {{on: l2, at: [0.2 m, 0, 0]}}}}
actuators: {{m1: {{on: s1}}, m2: {{on: s2}}}}
platform: {{body: l1, tool: {{at: [0.2 m, 0, 0]}}, independent: [s1, e1]}}
"""


def geared(driven: str, ratio_a: str = "2", ratio_b: str = "1") -> Model:
    start_b = (0.2 - eval(ratio_a) * 0.3) / eval(ratio_b)  # ratios of this file
    text = GEARED.format(driven=driven, ratio_a=ratio_a, ratio_b=ratio_b, start_b=start_b)
    return Model(loads(text))


def end_of_a(a: np.ndarray, elbow: np.ndarray) -> np.ndarray:
    return A * np.exp(1j * a) + LINK_A * np.exp(1j * (a + elbow))


def roots_by_scanning(f: object, turns: int) -> list[float]:
    """Roots in [0, turns) turns, by sign changes on a fine grid and bisection."""
    grid = np.linspace(0.0, 2 * np.pi * turns, 20_000 * turns + 1)
    values = f(grid)  # type: ignore[operator]
    places = np.flatnonzero(np.sign(values[:-1]) != np.sign(values[1:]))
    return [scipy.optimize.brentq(f, grid[k], grid[k + 1], xtol=1e-14) for k in places]


def same_on_the_circle(values: np.ndarray, expected: np.ndarray) -> bool:
    gaps = np.abs(np.exp(1j * values)[:, None] - np.exp(1j * expected)[None, :])
    return (
        len(values) == len(expected)
        and gaps.min(axis=1).max() < SAME
        and gaps.min(axis=0).max() < SAME
    )


def closed(model: Model, modes: Modes) -> None:
    assert modes.status is Status.OK, modes.advice
    assert np.abs(model.assembly.loops.residuals(modes.q)[0]).max() < 1e-10


def test_a_crank_that_a_gear_drives_is_known() -> None:
    model = geared("a")
    modes = assembly_modes(model, [0.5])
    closed(model, modes)
    b = 0.2 - 2 * 0.5
    names = model.topology.coordinate_names
    assert modes.q[:, names.index("b")] == pytest.approx([b, b], abs=SAME)
    # the links meet where two circles do
    center = APART + B * np.exp(1j * b)
    expected = roots_by_scanning(lambda x: np.abs(end_of_a(0.5, x) - center) - LINK_B, 1)
    assert same_on_the_circle(modes.q[:, names.index("elbow")], np.array(expected))


@pytest.mark.parametrize(
    ("ratio_a", "ratio_b", "turns"), [("2", "1", 1), ("-1", "1", 1), ("3", "2", 2), ("-1", "2", 2)]
)
def test_cranks_that_are_looked_for_are_found_with_their_gear(
    ratio_a: str, ratio_b: str, turns: int
) -> None:
    model = geared("elbow", ratio_a, ratio_b)
    elbow = model.actuator_position(model.assembly.q)[0]
    modes = assembly_modes(model, [elbow])
    closed(model, modes)
    names = model.topology.coordinate_names
    a, b = (modes.q[:, names.index(name)] for name in "ab")
    ra, rb = float(ratio_a), float(ratio_b)
    assert np.abs(ra * a + rb * b - 0.2).max() < SAME

    def miss(x: np.ndarray) -> np.ndarray:
        center = APART + B * np.exp(1j * (0.2 - ra * x) / rb)
        return np.asarray(np.abs(end_of_a(x, elbow) - center) - LINK_B)

    expected = np.array(roots_by_scanning(miss, turns))
    assert len(expected) >= 2
    # one turn of the free angle is so many of crank A
    assert same_on_the_circle(a / turns, expected / turns)
    assert modes.reference is not None


def test_gears_that_are_no_polynomials_are_refused() -> None:
    for ratio, what in (
        ("3.14159265", "not a fraction of whole numbers"),
        ("20", "is 20 times the angle"),
    ):
        with pytest.raises(AssemblyError, match=what):
            assembly_modes(geared("elbow", ratio))


def test_a_search_says_how_far_it_is() -> None:
    rows: list[SearchProgress] = []
    assembly_modes(geared("a"), [0.5], report=rows.append)
    assert {at.phase for at in rows} == {SEARCHING, FOLLOWING}
    assert all(1 <= at.block <= at.blocks and 0 <= at.done <= at.total for at in rows)
    assert rows[-1].solutions >= 2


def test_a_singular_mode_is_never_said_to_be_reached() -> None:
    # the links of the shipped five-bar in one line of twice 0.35 m: two modes meet in one
    text = machine_path("five_bar").read_text(encoding="utf-8")
    modes = assembly_modes(Model(loads(text)), [np.pi, 0.0])
    (mode,) = modes.modes
    assert mode.condition > 1e7
    assert mode.is_singular
    assert (mode.is_reference, modes.reference) == (False, None)


@pytest.mark.parametrize("angle", ["straight", "a hair off"])
def test_a_start_that_is_singular_is_not_a_mode_without_singularity(angle: str) -> None:
    # both links of 0.2 m in one line between pins 0.4 m apart; or the pins nearer by 4e-14 m, where
    # it is 2e6
    half = float(np.pi - np.arccos(0.25)) - (0.0 if angle == "straight" else 1e-13)
    text = IN_LINE.format(s1=half, s2=float(np.pi) - half)
    modes = assembly_modes(Model(loads(text)), [half, np.pi - half])
    assert len(modes.modes) >= 1
    assert all(mode.is_singular and not mode.is_reference for mode in modes.modes)
