"""Table 1's pattern over the actuators: the bound, the plants that the search has found, and the search itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tauloop_papers.gantry_tau.fits import multisine, relative_rms
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
            results[cell.key] for cell in cells() if (cell.structure, cell.rows) == (nearest.structure, nearest.rows)
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
                [3.0 * rng.normal(size=family.size - 3), [share, 0.1 * rng.random(), 0.01 * rng.random()]]
            )
            rows = family.rows(u)
            stated = {"3-DOF": tuple(rows[0]), "5-DOF I": tuple(rows[1]), "5-DOF II": tuple(rows[2])}
            family.settings = replace(SETTINGS, stated=replace(SETTINGS.stated, rows=stated))
            assert (np.abs(rows[0] - rows[1]) <= family.bound(share) + ROUNDING).all()


def test_lengths_of_the_experiment_cannot_have_the_pattern_with_all_masses_counted(plants: Pattern) -> None:
    near, tilted, fixed = plants.bounds.values()
    assert (near < 0.5 * plants.needed).all()
    assert (tilted < plants.needed).any()
    assert (fixed > plants.needed).all()


@pytest.mark.nightly
def test_the_search_finds_the_stored_plant_again(machines: Machines) -> None:
    cell = next(cell for cell in cells() if cell.structure == "rigid" and cell.rows == 3)
    anew = searched(Family(machines, SETTINGS, FAMILY, cell.held, cell.motion), cell)
    for plant, stored in zip(anew, read()[cell.key], strict=True):
        assert plant["worst"] == pytest.approx(stored["worst"], abs=SEARCHED)
