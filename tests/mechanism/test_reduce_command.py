"""``tauloop model reduce`` and the formulations of ``tauloop dynamics``: what they print, write and refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop.equations.formulations import FORMULATIONS
from tauloop.formats import load
from tauloop.formats.writing.yaml_writer import write_yaml
from tauloop.mechanism.reduction import as_laminas
from tauloop.model import Model

#: Forces by two sets of equations, as a share of the largest.
EXACT = 1e-12

#: The same after a file: its numbers are exact, its start orientation is rounded.
WRITTEN = 1e-10


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("gantry_tau_6link", ([10, 6], [6, 3])), ("spidermill", ([15, 6], [32, 4]))],
)
def test_reduced_machine_is_written_and_gives_the_same_forces(
    name: str, sizes: object, tmp_path: Path
) -> None:
    """In space and in the plane, where moments about axes in the plane are filled in that have no effect."""
    reduction = tl.reduce_model(load(name), tl.ReductionOptions(states=20))
    answer = reduction.as_dict()
    assert answer["is_exact"]
    assert (answer["coordinates"], answer["loop_equations"]) == sizes
    write_yaml(as_laminas(reduction.mechanism), tmp_path / "small.yaml")
    full, small = Model(load(name)), Model(load(tmp_path / "small.yaml"))
    assert full.platform.ports.position.columns == small.platform.ports.position.columns
    at = full.platform_position(full.assembly.q)
    motion = [at + 0.01, np.linspace(-0.3, 0.2, len(at)), np.linspace(2.0, -1.0, len(at))]
    forces = [model.platform.inverse_dynamics(*motion).force for model in (full, small)]
    assert np.max(np.abs(forces[1] - forces[0])) < WRITTEN * np.max(np.abs(forces[0]))


def test_approximations_are_made_on_request_only() -> None:
    exact, rough = (
        tl.reduce_model(load("nuwar"), tl.ReductionOptions(states=10, massless_rods=rods))
        for rods in ((), ("leg1.forearm", "leg2.forearm"))
    )
    assert exact.is_exact
    assert not rough.is_exact
    assert max(row.maximum for row in exact.comparison.errors) < EXACT
    assert max(row.maximum for row in rough.comparison.errors) > 1e-3
    assert any(step.approximated for step in rough.steps)


def test_dynamics_by_every_formulation() -> None:
    options = tl.DynamicsOptions(pose={"x": 0.05}, velocity={"y": 1}, acceleration={"z": 2})
    wanted = tl.inverse_dynamics(load("delta"), options).forces.force
    for formulation in FORMULATIONS:
        forces = tl.inverse_dynamics(Model(load("delta"), formulation=formulation), options)
        assert forces.as_dict()["formulation"] == formulation.name
        assert np.max(np.abs(forces.forces.force - wanted)) < EXACT * np.max(np.abs(wanted))
