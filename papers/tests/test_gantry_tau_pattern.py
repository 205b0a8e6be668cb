"""Table 1's pattern over the actuators: the bound, the plants that the search has found, and the search itself."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import PIL.Image
import pytest

from conftest import ROOT
from tauloop_papers.gantry_tau.fits import multisine, relative_rms
from tauloop_papers.gantry_tau.nearest_figures import PLANT, figures_3_to_5
from tauloop_papers.gantry_tau.pattern import FAMILY, Family, Machines, cells, pattern, read
from tauloop_papers.gantry_tau.pattern_search import searched
from tauloop_papers.gantry_tau.plant import Plant, built_parameters
from tauloop_papers.gantry_tau.results import Pattern
from tauloop_papers.gantry_tau.settings import SETTINGS

#: Rows of Table 1 from stored unknowns, which have six digits, on another processor, points.
STORED = 1e-3
#: Sums in another order, points.
ROUNDING = 1e-9
#: The same search on another processor may end elsewhere on a flat ground, points.
SEARCHED = 0.3


@pytest.fixture(scope="module")
def machines() -> Machines:
    return Machines(SETTINGS)


@pytest.fixture(scope="module")
def plants() -> Pattern:
    return pattern(SETTINGS)


@pytest.fixture
def family(machines: Machines) -> Family:
    return Family(machines, SETTINGS, FAMILY, FAMILY.lengths[1], FAMILY.motions[0])


def test_stored_plants_have_the_rows_that_the_search_wrote(plants: Pattern) -> None:
    results = read()
    for nearest in plants.nearest:
        k = FAMILY.sizes.index(nearest.size)
        alike = [
            results[cell.key]
            for cell in cells()
            if (cell.structure, cell.rows) == (nearest.structure, nearest.rows)
        ]
        assert nearest.worst == pytest.approx(min(sizes[k]["worst"] for sizes in alike), abs=STORED)


def test_the_family_is_the_plant_of_the_experiment(machines: Machines, family: Family) -> None:
    """Forces of a plant by the way of the recorded runs: bodies, and a frame that gives way."""
    rng = np.random.default_rng(7)
    u = np.concatenate([rng.normal(size=family.size - 5), [0.0, 0.0, 1.0, 0.0, 1.0 / 300.0]])
    settings = replace(
        family.settings,
        built=replace(SETTINGS.built, geometry={}),
        recording=replace(SETTINGS.recording, rate=FAMILY.samples / SETTINGS.recording.period),
        frame=replace(SETTINGS.frame, mass=300.0),
        drive=replace(SETTINGS.drive, bristles=replace(SETTINGS.drive.bristles, load_share=0.0)),
    )
    plant = Plant(settings, machines.model, rng)
    plant.pi = built_parameters(machines.model.pi, machines.bodies, settings.built, u[:-5])
    again = np.random.default_rng(FAMILY.seed)
    time = np.arange(FAMILY.samples) / settings.recording.rate
    for held, row in ((FAMILY.lengths[1], 1), (None, 2)):
        motion = multisine(settings, machines.model, held, again).sample(time)
        parts = plant.parts(motion)
        forces = parts.structure + sum(plant.leftover(motion, parts))
        described = machines.model.actuators.regressor(
            motion.position,
            motion.velocity,
            motion.acceleration,
            start=machines.model.forward_kinematics(motion.position).q,
        )
        rms = relative_rms(forces, (described @ machines.model.pi)[:, :3])
        assert family.rows(u)[row] == pytest.approx(rms, abs=1e-6)


def test_no_plant_breaks_the_bound(machines: Machines, family: Family) -> None:
    """With its own rows in place of the printed ones; forces of any kind, those of no rigid machine too."""
    rng = np.random.default_rng(0)
    for share in (0.0, 1.0):
        for _ in range(20):
            u = np.concatenate(
                [
                    3.0 * rng.normal(size=family.size - 3),
                    [share, 0.1 * rng.random(), 0.01 * rng.random()],
                ]
            )
            rows = family.rows(u)
            stated = {
                "3-DOF": tuple(rows[0]),
                "5-DOF I": tuple(rows[1]),
                "5-DOF II": tuple(rows[2]),
            }
            family.settings = replace(SETTINGS, stated=replace(SETTINGS.stated, rows=stated))
            assert (np.abs(rows[0] - rows[1]) <= family.bound(share) + ROUNDING).all()


def test_lengths_of_the_experiment_cannot_have_the_pattern_with_all_masses_counted(
    plants: Pattern,
) -> None:
    near, tilted, fixed = plants.bounds.values()
    assert (near < 0.5 * plants.needed).all()
    assert (tilted < plants.needed).any()
    assert (fixed > plants.needed).all()


def test_the_nearest_plant_meets_all_nine_cells(plants: Pattern) -> None:
    """Within 0.95 points, by its forces over time too, of which the figures are drawn."""
    stated = [SETTINGS.stated.rows[curves.row] for curves in plants.curves]
    assert len(stated) == 3
    assert np.abs(plants.nearest[-1].table - stated).max() < 0.95
    for curves, row in zip(plants.curves, plants.nearest[-1].table, strict=True):
        assert relative_rms(curves.connected - curves.own, curves.model) == pytest.approx(
            row, abs=ROUNDING
        )


@pytest.mark.nightly
def test_the_disconnected_run_is_that_of_the_experiment(machines: Machines, family: Family) -> None:
    """Mass, friction without load and the frame's vibration under them."""
    u = np.concatenate([np.zeros(family.size - 5), [0.0, 0.0, 1.0, 0.0, 1.0 / 300.0]])
    # a law without hysteresis is the same on the experiment's coarser grid
    viscous = replace(SETTINGS.drive.bristles, coulomb=1e-9, static=1e-9, damping=0.0)
    settings = replace(
        family.settings,
        built=replace(SETTINGS.built, geometry={}),
        recording=replace(SETTINGS.recording, rate=FAMILY.samples / SETTINGS.recording.period),
        frame=replace(SETTINGS.frame, mass=300.0),
        drive=replace(SETTINGS.drive, bristles=viscous),
    )
    smooth = Family(machines, settings, FAMILY, FAMILY.lengths[1], FAMILY.motions[0])
    plant = Plant(smooth.settings, machines.model, np.random.default_rng(7))
    rng = np.random.default_rng(FAMILY.seed)
    time = np.arange(FAMILY.samples) / settings.recording.rate
    for held, curves in zip((FAMILY.lengths[1], None), smooth.curves(u)[1:], strict=True):
        motion = multisine(smooth.settings, machines.model, held, rng).sample(time)
        assert curves.own == pytest.approx(plant.own(motion), abs=1e-6)
        assert curves.velocity == pytest.approx(motion.velocity[:, :3], abs=1e-12)


def test_figures_on_the_page_are_of_the_nearest_plant(plants: Pattern) -> None:
    path = ROOT / "docs" / "reproductions" / "gantry-tau-figures.png"
    with PIL.Image.open(path) as picture:
        kept = [float(value) for value in re.findall(r"[\d.]+", picture.text[PLANT])]
    assert kept == pytest.approx(plants.nearest[-1].table.ravel(), abs=0.011)
    words = [text.get_text() for axes in figures_3_to_5(plants).axes for text in axes.texts]
    assert words == ["Figure 3: 3-DOF", "Figure 4: 5-DOF I", "Figure 5: 5-DOF II"]


@pytest.mark.nightly
def test_the_search_finds_the_stored_plant_again(machines: Machines) -> None:
    cell = next(cell for cell in cells() if cell.structure == "rigid" and cell.rows == 3)
    anew = searched(Family(machines, SETTINGS, FAMILY, cell.held, cell.motion), cell)
    for plant, stored in zip(anew, read()[cell.key], strict=True):
        assert plant["worst"] == pytest.approx(stored["worst"], abs=SEARCHED)
