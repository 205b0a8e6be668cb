"""A first look at a machine: a page that plays, and what to do next."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop.authoring import TEMPLATES
from tauloop.viewer.pages.showing import _tour


@pytest.mark.parametrize("name", ["delta", "four_bar", "pendulum_arm", "five_bar"])
def test_any_machine_has_a_tour_that_comes_back_and_whose_forces_are_those_of_its_motion(name: str):
    planned = _tour(tl.Model(tl.load(name)))
    trajectory = planned.trajectory
    model = trajectory.stroke.model
    q = trajectory.states(np.array([0.0, trajectory.total])).q
    np.testing.assert_allclose(q[0], q[1], atol=1e-9)
    # at rest a trajectory has the dry friction of the side that it goes to or comes from, inverse
    # dynamics has none
    time = np.linspace(0.0, trajectory.total, 9)[1:-1]
    states = trajectory.states(time)
    other = tl.Model(model.mechanism, formulation="lagrange")  # other equations
    functions = getattr(other, trajectory.stroke.functions.ports.name)
    moved = functions.inverse_dynamics(*trajectory.at(time).states, start=states.q)
    np.testing.assert_allclose(trajectory.forces(time), moved.force, atol=1e-9)
    ends, soon = np.array([0.0, trajectory.total]), np.array([1e-7, trajectory.total - 1e-7])
    np.testing.assert_allclose(trajectory.forces(ends), trajectory.forces(soon), atol=1e-3)
    assert np.ptp(states.q, axis=0).max() > 0.01


def test_machines_of_one_freedom_of_turns_and_of_cables_have_one():
    for name in ("spherical", "cable"):
        assert _tour(tl.Model(tl.load(TEMPLATES[name]))).trajectory.total > 0


def test_the_page_holds_machine_stroke_and_forces_and_asks_for_nothing(tmp_path: Path):
    for module in ("viser", "trimesh", "plotly"):
        extra(module)
    shown = tl.demo(tl.load("five_bar"), tmp_path / "demo.html")
    text = shown.path.read_text(encoding="utf-8")
    for heading in ("The machine in motion", "Stroke of the platform", "Actuator force"):
        assert heading in text
    assert 'src="http' not in text
    assert len(shown.next_steps("five_bar")) == 5


def test_a_film_of_cables_is_written(tmp_path: Path):
    for module in ("viser", "trimesh"):
        extra(module)
    model = tl.Model(tl.load(TEMPLATES["cable"]))
    q = np.stack([model.assembly.q] * 2)
    assert (
        tl.viewer.save_animation(model, q, np.array([0.0, 1.0]), tmp_path / "film.html")
        .stat()
        .st_size
        > 1e5
    )
