"""Loop equations that are spheres: trilateration, Newton's method and made-up points agree."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, strategies as st

from tauloop import Model, PoseError, load
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.compiler.solving import position
from tauloop.compiler.solving.closed_forms import sphere_form
from tauloop.kinematics import random_states

#: Two ways to the same pose, both at rounding, through the conditioning of regular states (some
#: hundreds).
SAME = 1e-11
#: A made-up point is found again to rounding, through the conditioning of made-up planes (1e4 at
#: most).
FOUND = 1e-9
#: Where two solutions meet, half of the digits are lost.
HALF = 1e-5
#: Smallest share of the largest singular value that made-up planes may have: below it no point is
#: determined.
SLANT = 1e-4
#: How far starts of Newton's method lie from the solution, m and rad.
ASTRAY = 1e-3

MACHINES = ("delta", "nuwar", "linear_delta", "gantry_tau_3dof", "gantry_tau_6link")


def interpreted(name: str) -> Model:
    return Model(load(name), evaluator=Interpreted())


@pytest.mark.parametrize("name", MACHINES)
def test_three_rods_place_the_platform_as_newton_does(name, monkeypatch):
    """Every loop equation at rounding, redundant ones too, and the same pose by iteration from a start near to it."""
    closed = interpreted(name)
    assert "spheres" in [block.method for block in closed.actuators.blocks]
    states = random_states(closed, 100, np.random.default_rng(1))
    u = closed.actuator_position(states.q)
    state = closed.actuators.kinematics(u).q
    phi, _ = closed.assembly.loops.residuals(state)
    assert np.abs(phi).max() < SAME
    assert np.abs(state - states.q).max() < SAME
    monkeypatch.setattr(position._Solver, "_solve_spheres", lambda *_: "")
    iterated = interpreted(name)
    assert "Newton" in [block.method for block in iterated.actuators.blocks]
    start = states.q + np.random.default_rng(2).uniform(-ASTRAY, ASTRAY, size=states.q.shape)
    assert np.abs(iterated.actuators.kinematics(u, start=start).q - state).max() < SAME


def test_spheres_that_do_not_meet_are_named_with_what_is_missing():
    """One arm of a Delta points inwards, the others outwards: the forearms are too short to meet."""
    model = interpreted("delta")
    with pytest.raises(PoseError) as caught:
        model.actuators.kinematics(np.array([3.1, 0.0, 0.0]))
    (problem,) = caught.value.problems
    assert problem.where == "leg1.forearm, leg2.forearm, leg3.forearm"
    assert "out of reach by" in problem.what
    assert "mm (too far away)" in problem.what


@given(st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_a_made_up_point_is_found_from_its_distances(n, seed):
    """Random centres in n dimensions, in a random metric, and the distances to a random point."""
    rng = np.random.default_rng(seed)
    centers, point = rng.normal(size=(n, n)), rng.normal(size=n)
    E = rng.normal(size=(n, n)) + 2 * np.eye(n)
    planes = (centers[1:] - centers[0]) @ (E.T @ E)
    sizes = np.linalg.svd(planes[:, :-1], compute_uv=False) if n > 1 else np.ones(1)
    if sizes.min() < SLANT * sizes.max() or np.linalg.cond(E) > 1 / SLANT:
        return
    x = ca.SX.sym("x", n)
    squares = [np.sum((E @ (point - center)) ** 2) for center in centers]
    psi = ca.vertcat(
        *(
            (ca.sumsqr(ca.SX(ca.DM(E)) @ (x - center)) - r2) / 2
            for center, r2 in zip(centers, squares, strict=True)
        )
    )
    form = sphere_form(psi, x)
    assert form is not None
    A, b, center = (np.array(ca.DM(value).full()) for value in (form.A, form.b, form.center))
    lines = np.linalg.solve(A[:, :-1], -np.hstack([b, A[:, -1:]]))
    u, w = np.append(lines[:, 0], 0.0), np.append(lines[:, 1], 1.0)
    quadratic, _ = form.along(ca.SX(ca.DM(u)), ca.SX(ca.DM(w)))
    roots = [float(quadratic.solution(sign)[0]) for sign in (1.0, -1.0)]
    points = [center[:, 0] + u + w * t for t in roots]
    size = max(1.0, *(np.abs(result).max() for result in points))
    for result in points:
        missed = [
            np.sum((E @ (result - center)) ** 2) - r2
            for center, r2 in zip(centers, squares, strict=True)
        ]
        assert np.abs(missed).max() < FOUND * (size * np.linalg.norm(E)) ** 2
    assert min(np.abs(result - point).max() for result in points) < HALF * size * np.linalg.cond(E)


def test_equations_of_another_form_are_left_to_others():
    x = ca.SX.sym("x", 2)
    assert sphere_form(ca.vertcat(ca.sumsqr(x) - 1, x[0] * x[1]), x) is None
    assert sphere_form(ca.vertcat(x[0] - 1, x[0] + x[1]), x) is None
    assert sphere_form(ca.vertcat(ca.sumsqr(x) - 1, 2 * ca.sumsqr(x) + x[0]), x) is None
    hyperbola = x[0] ** 2 - x[1] ** 2
    assert sphere_form(ca.vertcat(hyperbola - 1, hyperbola + x[0]), x) is None
