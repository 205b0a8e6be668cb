"""The search for the dual-motor plant, made small: stages, rows, directions, and the shipped plant's claim."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tauloop.codegen.compiler import find_compiler
from tauloop.drives import Axis, load_drive, simulate_axis
from tauloop.result import plain
from tauloop_papers.dual_motor.plant import (
    AIM,
    SETTINGS,
    TIMES_AND_ENERGIES,
    DrivePlant,
    Effort,
    missed,
    run,
    with_rigid_racks,
)
from tauloop_papers.dual_motor.plant_figures import figures

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")

#: Without gap and with contacts a hundred times stiffer the axis is the rigid one to this share of its rise time.
RIGID = 1e-2


@pytest.fixture(scope="module")
def found() -> DrivePlant:
    """The experiment with next to no effort; its steps are as told."""
    least = Effort(population=5, generations=1, polish=1)
    structures = dict(list(SETTINGS.structures.items())[1:3])
    steps: list[str] = []
    result = run(steps.append, replace(SETTINGS, rigid=least, each=least, play=least, structures=structures))
    assert sum(step.startswith("structure") for step in steps) == 2
    return result


def test_shipped_plant_meets_times_and_energies(found: DrivePlant) -> None:
    """Issue 7: 2 % of times and energies, those held out too; the rows by hand, one step each."""
    assert missed(found.shipped, TIMES_AND_ENERGIES) < AIM
    held_out = [row for row in found.shipped.rows if row[4]]
    assert len(held_out) >= 8
    axis = Axis(load_drive("dual_motor_inferred"))
    values = found.shipped.values
    gains = {key: values[f"switching_{key}"] for key in ("kp", "ti", "td")}
    alone = simulate_axis(axis, gains | {"switch_max": 0.62, "switch_min": 0.44}, step=0.1)
    ours = {row[1]: row[3] for row in found.shipped.rows if row[0] == "switching at (0.62, 0.44)"}
    assert ours["energy"] == pytest.approx(float(alone.energy[0]), rel=1e-6)
    assert ours["overshoot"] == pytest.approx(float(alone.overshoot[0]), abs=1e-8)
    nominal = simulate_axis(axis, {"switch_min": 10.0, "switch_max": 11.0}, step=values["first_step"])
    assert nominal.rise_time[0] == pytest.approx(1.7473, rel=AIM)
    assert nominal.settling_time[0] == pytest.approx(3.957, rel=AIM)


def test_directions_are_singular_and_named(found: DrivePlant) -> None:
    fit = found.shipped
    n = len(fit.values)
    np.testing.assert_allclose(fit.directions @ fit.directions.T, np.eye(n), atol=1e-12)
    assert (np.diff(fit.sensitivities) <= 0).all()
    rows = [row for row in found.comparisons if row.quantity.startswith("direction")]
    assert len(rows) == n
    for row, direction in zip(rows, fit.directions, strict=True):
        largest = list(fit.values)[int(np.argmax(np.abs(direction)))]
        assert largest in row.quantity
    assert sum("not determined" in row.why for row in rows) == len(fit.undetermined)


def test_structures_keep_what_they_assume(found: DrivePlant) -> None:
    gains, frictionless = found.structures
    assert not set(gains.known) & set(gains.fit.values)
    assert frictionless.known == {"cart_coulomb": 0.0}
    for structure in found.structures:
        assert np.isfinite(structure.fit.loss)


def test_rigid_racks_are_the_limit_of_stiff_ones() -> None:
    line = load_drive("dual_motor_inferred")
    given = {"kp": 150.0, "ti": 2.0, "td": 0.1, "cart_coulomb": 1.0}
    stiff = simulate_axis(Axis(line), given | {"gap": 1e-9, "contact_stiffness": 1e7, "contact_damping": 2e3})
    rigid = simulate_axis(Axis(with_rigid_racks(line)), given)
    assert rigid.rise_time[0] == pytest.approx(stiff.rise_time[0], rel=RIGID)
    assert rigid.energy[0] == pytest.approx(stiff.energy[0], rel=RIGID)


def test_result_has_a_plain_form_and_figures(found: DrivePlant) -> None:
    json.dumps(plain(found), allow_nan=False)
    drawn = figures(found)
    assert set(drawn) == {"rows", "directions"}
    for figure in drawn.values():
        figure.canvas.draw()
