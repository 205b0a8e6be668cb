"""Inertias that Pinocchio refuses, filled in where they cannot act; MuJoCo takes them as they are: the oracle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from extras import extra

from tauloop.common.errors import EngineError, TauloopError
from tauloop.formats import load, loads
from tauloop.verification.engines import (
    VerifyOptions,
    check_with_engines,
    mujoco_engine,
    pinocchio_engine,
    verify,
)
from tauloop.verification.engines.trees.building import rigid_tree
from tauloop.verification.engines.trees.filled_inertias import rotation_axes, with_possible_inertias

PLANAR = Path(__file__).parents[1] / "cases" / "planar_3rrr.yaml"
#: Rounding times the condition of some tens.
AGREEMENT = 1e-12

ARM = """format: tauloop-machine/1
name: arm
provenance: {{status: chosen, source: test}}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  a: {{mass: 1 kg, center: [0.1 m, 0.2 m, 0], inertia: {{xx: -1e-3 kg m^2, zz: 0.02 kg m^2}}, unchecked: yes}}
  b: {{mass: 1 kg, center: [0.3 m, 0, 0.1 m], inertia: {{xx: -2e-3 kg m^2, zz: 0.03 kg m^2}}, unchecked: yes}}
joints:
  first: {{type: {first}, axis: {axis}, parent: {{on: base, turn: [{{x: 20 deg}}]}}, child: a}}
  second: {{type: revolute, axis: z, parent: {{on: a, at: [0.4 m, 0, 0]}}, child: b}}
actuators: {{m1: {{on: first}}, m2: {{on: second}}}}
platform: {{body: b, independent: [first, second]}}
"""


def test_a_planar_machine_is_compared_with_both_engines() -> None:
    extra("pinocchio")
    extra("mujoco")
    comparison = check_with_engines(load(PLANAR), 10, np.random.default_rng(0))
    assert {row.engine for row in comparison.comparisons} == {"Pinocchio", "MuJoCo"}
    assert comparison.worst < AGREEMENT
    assert comparison.distinct_states == 10


@pytest.mark.parametrize(("first", "axis"), [("revolute", "z"), ("prismatic", "y")])
def test_what_is_filled_in_does_not_act(first: str, axis: str) -> None:
    extra("pinocchio")
    extra("mujoco")
    machine = loads(ARM.format(first=first, axis=axis))
    q, v, a = np.random.default_rng(1).uniform(-1, 1, size=(3, 6, 2))
    ours, theirs = (
        make(machine).tree_forces(q, v, a) for make in (pinocchio_engine, mujoco_engine)
    )
    assert np.abs(ours - theirs).max() < AGREEMENT * np.abs(theirs).max()
    tree = with_possible_inertias(rigid_tree(machine))
    assert all(
        np.linalg.eigvalsh(link.inertia.about_center).min() >= 0.0
        for link in tree.links
        if link.inertia
    )


def test_a_negative_moment_that_acts_is_named() -> None:
    extra("pinocchio")
    machine = loads(ARM.format(first="revolute", axis="x"))
    assert [len(directions) for directions in rotation_axes(rigid_tree(machine))] == [1, 1, 3, 3]
    with pytest.raises(EngineError) as caught:
        pinocchio_engine(machine)
    problems = {problem.where: problem.what for problem in caught.value.problems}
    # the moment of a about its own hinge, and that of b, which turns about two
    assert set(problems) == {"a", "b"}
    assert "-0.002 kg m^2" in problems["b"]


def test_states_beyond_a_limit_of_condition_are_left_out() -> None:
    extra("pinocchio")

    assert verify(load(PLANAR), VerifyOptions(states=3, max_condition=20.0)).distinct_states == 3
    with pytest.raises(TauloopError, match=r"\(limit 2\)"):
        verify(load(PLANAR), VerifyOptions(states=3, max_condition=2.0))
