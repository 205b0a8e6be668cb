"""Tauloop beside the engines, on machines made by hand and on those that it ships."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from core_machines import CORE_MACHINES
from engine_machines import (
    SLENDER,
    THIN,
    pendulum,
    random_tree,
    six_legs,
    three_arm_motion,
    three_arms,
)
from engine_mechanics import EXACT, vector
from extras import extra

from tauloop.common.errors import EngineError, InputError, Problem
from tauloop.formats import load
from tauloop.kinematics import random_states
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import Freedom, Friction, Mechanism, Telescope
from tauloop.model import Model
from tauloop.verification.engines import (
    EngineComparison,
    NamedMotion,
    Verification,
    check_with_engines,
    compare_forces,
    frictionless,
    mujoco_engine,
    pinocchio_engine,
)
from tauloop.verification.engines.comparison import (
    ACTUATOR_JACOBIAN,
    EMBEDDING,
    FORWARD_DYNAMICS,
    INVERSE_DYNAMICS,
    OWN_FORWARD,
    OWN_INVERSE,
    OWN_UNDER_WRENCH,
    UNDER_WRENCH,
)

extra("pinocchio")
extra("mujoco")


# Comparison.

#: Shipped machines with massless rods or bodies in the engines' trees: Pinocchio's own solver
#: inverts the mass matrix.
MASSLESS = ("gantry_tau_5dof",)
QUANTITIES = (INVERSE_DYNAMICS, FORWARD_DYNAMICS, EMBEDDING, ACTUATOR_JACOBIAN)


def test_compare_names_the_largest_difference() -> None:
    mechanism, _ = three_arms({"lower": SLENDER}, THIN)
    motion, _ = three_arm_motion(6)
    forces = mujoco_engine(mechanism).inverse_dynamics(motion).forces
    right = compare_forces(mechanism, motion, forces)
    assert [comparison.engine for comparison in right.comparisons] == ["Pinocchio", "MuJoCo"]
    assert right.not_run == ()
    assert right.samples == 6
    assert right.worst < EXACT
    wrong = forces.copy()
    wrong[4, 1] += 1e-3 * np.max(np.abs(forces[4]))
    comparison = compare_forces(mechanism, motion, wrong).comparisons[0]
    assert (comparison.sample, comparison.column) == (4, "m1")
    assert comparison.largest_difference == pytest.approx(1e-3, rel=2e-3)
    assert comparison.worst == comparison.largest_difference


def test_compare_shows_states_off_the_manifold() -> None:
    """Forces that agree say nothing when the loops are open: the residuals tell."""
    mechanism, _ = three_arms({"lower": SLENDER}, THIN)
    motion, _ = three_arm_motion(3)
    moved = {name: x + 1e-4 if name == "platform.x" else x for name, x in motion.q.items()}
    forces = pinocchio_engine(mechanism).inverse_dynamics(motion).forces
    compared_forces = compare_forces(mechanism, replace(motion, q=moved), forces)
    assert all(1e-5 < comparison.closure < 1e-3 for comparison in compared_forces.comparisons)
    assert all(comparison.worst >= comparison.closure for comparison in compared_forces.comparisons)


def test_compare_shows_motion_without_actuator() -> None:
    """One motor on a double pendulum: the second joint needs a torque that is not there."""
    mechanism, _ = random_tree(np.random.default_rng(0), ["revolute", "revolute"], [False, False])
    mechanism = replace(mechanism, actuators=mechanism.actuators[:1])
    state = {"j0": np.array([0.3]), "j1": np.array([0.4])}
    compared_forces = compare_forces(
        mechanism, NamedMotion(q=state, v=state, a=state), np.array([[1.0]])
    )
    assert all(comparison.balance > 1e-3 for comparison in compared_forces.comparisons)
    assert compared_forces.worst > 1e-3


def test_compare_scales_samples_without_force_by_the_others() -> None:
    mechanism = pendulum()
    still = frictionless(replace(mechanism, gravity=vector((0, 0, 0))))
    motion = NamedMotion(
        q={"swing": np.array([0.2, 1.0])}, v={"swing": np.zeros(2)}, a={"swing": np.zeros(2)}
    )
    forces = np.array([[1e-9], [5.0 * 0.8 / 3.0]])
    comparison = compare_forces(still, motion, forces).comparisons[0]
    assert comparison.largest_difference == pytest.approx(1e-9 / (1e-3 * forces[1, 0]))


def test_frictionless_takes_friction_alone() -> None:
    plain = frictionless(pendulum())
    assert plain.joints[0].freedoms[0].friction is None
    assert plain.joints[0].freedoms[0].spring == pendulum().joints[0].freedoms[0].spring
    assert frictionless(plain) == plain
    legs = six_legs({}, from_platform=False)
    rough = Freedom(friction=Friction(coulomb=Constant(1.0)), inertia=Constant(0.3))
    rod = replace(legs.rods[0], telescope=Telescope(reference=0.66, freedom=rough))
    motor = replace(legs.actuators[0], friction=Friction(viscous=Constant(2.0)))
    sticky = replace(legs, rods=(rod, *legs.rods[1:]), actuators=(motor, *legs.actuators[1:]))
    assert frictionless(sticky) == legs


def test_compare_says_which_engine_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    mechanism = pendulum()
    motion = NamedMotion(
        q={"swing": np.zeros(1)}, v={"swing": np.zeros(1)}, a={"swing": np.zeros(1)}
    )
    compared_forces = compare_forces(mechanism, motion, np.ones((1, 1)))
    assert [comparison.engine for comparison in compared_forces.comparisons] == ["Pinocchio"]
    assert "MuJoCo" in compared_forces.not_run[0][0]
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    with pytest.raises(EngineError, match=r"pip install 'tauloop\[engines\]'") as caught:
        compare_forces(mechanism, motion, np.ones((1, 1)))
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("forces", [np.ones((2, 1)), np.ones(1), np.full((1, 1), np.nan)])
def test_compare_refuses_forces_that_do_not_fit(forces: np.ndarray) -> None:
    motion = NamedMotion(
        q={"swing": np.zeros(1)}, v={"swing": np.zeros(1)}, a={"swing": np.zeros(1)}
    )
    with pytest.raises(InputError, match="forces"):
        compare_forces(pendulum(), motion, forces)


@pytest.mark.parametrize("name", CORE_MACHINES)
def test_tauloop_agrees_with_the_engines_on_every_shipped_machine(name: str) -> None:
    comparison = check_with_engines(load(name), 20, np.random.default_rng(8))
    wanted = {(quantity, engine) for quantity in QUANTITIES for engine in ("Pinocchio", "MuJoCo")}
    if name not in MASSLESS:
        wanted |= {(OWN_FORWARD, "Pinocchio"), (OWN_INVERSE, "Pinocchio")}
    assert {(row.quantity, row.engine) for row in comparison.comparisons} == wanted
    assert len(comparison.comparisons) == len(wanted)
    reasons = dict(comparison.not_run)
    for quantity in (OWN_FORWARD, OWN_INVERSE):
        assert "soft" in reasons.pop(f"MuJoCo, {quantity}: constraints")
    assert all("without inertia" in reason for reason in reasons.values())
    assert len(reasons) == 2 * (name in MASSLESS)
    assert comparison.worst < EXACT


@pytest.mark.parametrize("name", ["delta", "hexapod", "five_bar"])
def test_a_wrench_at_the_tool_moves_the_engines_alike(name: str) -> None:
    """Translational, free (its ball in the engines' own axes) and planar platforms; without it they move otherwise."""
    machine, wrench = load(name), np.array([10.0, -4.0, 6.0, 0.3, 0.5, -0.2])
    comparison = check_with_engines(machine, 10, np.random.default_rng(8), wrench=wrench)
    rows = {(row.quantity, row.engine): row for row in comparison.comparisons}
    assert comparison.worst < EXACT
    assert {(UNDER_WRENCH, "Pinocchio"), (UNDER_WRENCH, "MuJoCo")} <= set(rows)
    assert name in MASSLESS or (OWN_UNDER_WRENCH, "Pinocchio") in rows
    engine, still = mujoco_engine(machine), at_rest(machine)
    forces = engine.inverse_dynamics(still).forces
    pulled, free = (engine.forward_dynamics(still, forces, w).accelerations for w in (wrench, None))
    assert np.abs(pulled - free).max() > 1e-2


def at_rest(machine: Mechanism) -> NamedMotion:
    """A state of a machine at rest."""
    model = Model(machine)
    states = random_states(model, 1, np.random.default_rng(0))
    v = dict.fromkeys(model.topology.velocity_names, np.zeros(1))
    return NamedMotion(
        q=dict(zip(model.topology.coordinate_names, states.q.T, strict=True)), v=v, a=v
    )


def test_check_goes_on_with_what_can_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise EngineError(Problem(where="here", what="no such thing", remedy="none"))

    monkeypatch.setattr(type(mujoco_engine(pendulum())), "mass_matrix", refuse)
    comparison = check_with_engines(load("four_bar"), 5, np.random.default_rng(0))
    assert [
        (row.quantity, row.engine) for row in comparison.comparisons if row.engine == "MuJoCo"
    ] == [(quantity, "MuJoCo") for quantity in QUANTITIES if quantity != FORWARD_DYNAMICS]
    assert ("MuJoCo, forward dynamics: here", "no such thing; none") in comparison.not_run


def test_check_sees_a_wrong_model() -> None:
    """Each quantity tells when Tauloop and the engine hold different machines: here one has longer rods."""
    ours = load("delta")
    longer = replace(ours, rods=tuple(replace(rod, length=Constant(0.49)) for rod in ours.rods))
    comparison = check_with_engines(
        ours, 5, np.random.default_rng(1), engines={"MuJoCo": lambda _: mujoco_engine(longer)}
    )
    assert [row.quantity for row in comparison.comparisons] == list(QUANTITIES)
    assert all(row.worst > 1e-4 for row in comparison.comparisons)


def test_check_of_nothing_is_an_error() -> None:
    with pytest.raises(EngineError, match="select an engine"):
        check_with_engines(load("four_bar"), 1, np.random.default_rng(0), engines={})


def test_not_a_number_never_agrees() -> None:
    row = EngineComparison(
        quantity="q",
        engine="e",
        version="1",
        method="m",
        largest_difference=0.0,
        sample=0,
        column="c",
        compared=1,
        closure=0.0,
        closure_rate=float("nan"),
        closure_acceleration=0.0,
        balance=None,
    )
    fine = replace(row, closure_rate=0.0)
    assert fine.worst == 0.0
    assert np.isnan(row.worst)
    assert np.isnan(
        Verification(mechanism="m", samples=1, comparisons=(fine, row), not_run=()).worst
    )
