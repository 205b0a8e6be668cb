"""Rods with full inertia: bodies of revolution without a frame give what the rod frame gives, with and without spin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.spatial.transform import Rotation

from tauloop import Model, load
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.compiler.c.printing.operations import output_operations
from tauloop.equations import newton_euler
from tauloop.equations.tree import PointMotion
from tauloop.kinematics import random_states
from tauloop.model.model import ASSEMBLIES

#: The same forces by other operations: rounding, through 1 - (h.u)^2 of at least a hundredth.
SAME = 1e-11
OPEN = 1e-2
SPINS = (False, True)


def end_forces(
    seed: int, spins: bool, is_fixed: bool, with_upper: bool, *, along: bool = False
) -> np.ndarray:
    """Forces and couple (9,) at random motion of both ends and of a neighbor that turns; |d| = length is kept."""
    rng = np.random.default_rng(seed)
    p_A, v_A, a_A, W, dW = rng.normal(size=(5, 3))
    length, u = rng.uniform(0.3, 2.0), rng.normal(size=3)
    u /= np.linalg.norm(u)
    rate, acceleration = (0.0, 0.0) if is_fixed else rng.normal(size=2)
    du = np.cross(u, rng.normal(size=3))
    ddu = np.cross(u, rng.normal(size=3)) - np.dot(du, du) * u
    d, d_rate = length * u, rate * u + length * du
    d_acceleration = acceleration * u + 2 * rate * du + length * ddu
    A = point(p_A, v_A, a_A)
    B = point(p_A + d, v_A + d_rate, a_A + d_acceleration)
    R = Rotation.random(rng=rng).as_matrix()
    turning = SimpleNamespace(w=ca.SX(W), alpha=ca.SX(dW))
    neighbor: Any = SimpleNamespace(R=ca.SX(R), in_base=turning)
    h = R.T @ u
    while not along and 1 - np.dot(R @ h, u) ** 2 < OPEN:
        h = Rotation.random(rng=rng).apply(h)
    parts = [of_revolution(rng), of_revolution(rng) if with_upper else None]
    motion = newton_euler.rod_motion(A, B, ca.SX(length), is_fixed)
    ends = newton_euler.full_rod(
        A, B, motion, neighbor, ca.SX(h), spins, ca.SX([0, 0, -9.81]), *parts
    )
    return np.concatenate(
        [ca.DM(part).full()[:, 0] for part in (ends.f_A, ends.f_B, ends.couple_A)]
    )


def point(p: np.ndarray, v: np.ndarray, a: np.ndarray) -> PointMotion:
    zero = ca.SX(3, 1)
    body: Any = SimpleNamespace(
        hinge=None, in_base=SimpleNamespace(v=ca.SX(v), a=ca.SX(a), w=zero, alpha=zero)
    )
    return PointMotion(body=body, r=zero, p=ca.SX(p))


def of_revolution(rng: np.random.Generator) -> ca.SX:
    mass, center, across, axial = rng.uniform(0.1, 2.0, size=4)
    return ca.SX([mass, 0, 0, mass * center, across, 0, across, 0, 0, axial])


@contextmanager
def in_the_frame() -> Iterator[None]:
    """Use rod frames; models share no code across this patch."""
    ASSEMBLIES.clear()
    with patch.object(newton_euler, "_is_axisymmetric", lambda pi: False):
        yield
    ASSEMBLIES.clear()


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans(), st.booleans())
def test_a_body_of_revolution_needs_no_frame(
    seed: int, spins: bool, is_fixed: bool, with_upper: bool
) -> None:
    result = end_forces(seed, spins, is_fixed, with_upper)
    with in_the_frame():
        expected = end_forces(seed, spins, is_fixed, with_upper)
    assert np.abs(result - expected).max() < SAME * np.abs(expected).max() / OPEN
    assert spins == bool(np.abs(result[6:]).max() > 0)


def test_without_spin_the_first_axis_may_lie_along_the_rod() -> None:
    """The frame has no y axis there; a body of revolution without spin does not ask for one."""
    assert np.isfinite(end_forces(1, False, True, False, along=True)).all()


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ((), True),
        ((1,), False),
        ((2,), False),
        ((4,), False),
        ((5,), False),
        ((7,), False),
        ((8,), False),
    ],
)
def test_what_is_a_body_of_revolution(entries: tuple[int, ...], expected: bool) -> None:
    """First moments across, products of inertia, or unequal moments across: each alone ends the symmetry."""
    pi = ca.SX([2.0, 0, 0, 0.7, 0.4, 0, 0.4, 0, 0, 0.05])
    for i in entries:
        pi[i] = pi[i] + 0.01
    assert newton_euler._is_axisymmetric(pi) is expected
    assert not newton_euler._is_axisymmetric(ca.SX.sym("pi", 10))


@pytest.mark.parametrize(
    ("name", "spin"),
    [("gantry_tau_5dof", "none"), ("gantry_tau_5dof", "universal"), ("hexapod", "")],
)
def test_machines_with_full_rods_need_the_same_forces(name: str, spin: str) -> None:
    """Two routes to the forces: with rod frames and without; the latter takes fewer operations."""
    machine = load(name)
    if spin:
        machine = replace(
            machine, rods=tuple(replace(r, spin=spin) if r.is_full else r for r in machine.rods)
        )
    assert any(rod.is_full for rod in machine.rods)
    model = Model(machine, evaluator=Interpreted())
    states = random_states(model, 20, np.random.default_rng(1))
    motion = (states.position, states.velocity, states.acceleration)
    forces = model.platform.inverse_dynamics(*motion, start=states.q)
    with in_the_frame():
        framed = Model(machine, evaluator=Interpreted())
        expected = framed.platform.inverse_dynamics(*motion, start=states.q)
    for ours, theirs in (
        (forces.force, expected.force),
        (forces.closure_force, expected.closure_force),
    ):
        assert np.abs(ours - theirs).max() < SAME * np.abs(theirs).max() / OPEN
    counts = [
        sum(output_operations(m.platform.program("inverse_dynamics"), "force")["once"].values())
        for m in (model, framed)
    ]
    assert counts[0] < counts[1]
