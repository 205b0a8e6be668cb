"""The integrator: in C by itself, by problems of known solution, and its twin in Python step by step beside it.

Oracles: cosines and parabolas on paper; a pendulum's energy; SciPy's Radau on van der Pol's stiff
oscillator; and each of the two against the other.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from python_integrator import InterpretedProblem, Run
from scipy.integrate import solve_ivp

import tauloop.integrate
from tauloop.integrate.integrators import Method
from tauloop.integrate.outcome import StepOutcome
from tauloop.integrate.tableau import dormand_prince

FOLDER = Path(tauloop.integrate.__file__).parent
CHECKS = Path(__file__).parents[1] / "c" / "test_hybrid.c"
STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Werror")
#: Rounding of two orders of the same sums, over some thousand steps.
SAME = 1e-9
G = 9.81


@pytest.fixture(scope="session")
def in_c(tmp_path_factory) -> dict[str, list[float]]:
    """Outcome, time, two states, steps, evaluations and events by problem, from a program without Python."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler, and there is none here")
    program = tmp_path_factory.mktemp("c") / "hybrid"
    command = [compiler, *STRICT, f"-I{FOLDER}", str(CHECKS), "-o", str(program), "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    rows = [line.split() for line in done.stdout.splitlines()]
    return {name: [float(number) for number in numbers] for name, *numbers in rows}


class Swing(InterpretedProblem):
    """y'' = -y."""

    def rate(self, run, time, y):
        return np.array([y[1], -y[0]]), np.zeros(0), True


class VanDerPol(InterpretedProblem):
    """Van der Pol's oscillator, stiff."""

    def rate(self, run, time, y):
        return np.array([y[1], ((1 - y[0] ** 2) * y[1] - y[0]) * 1e6]), np.zeros(0), True


class Ball(InterpretedProblem):
    """A ball under gravity; its mode says that it has touched the ground."""

    def __init__(self, restitution: float) -> None:
        self.restitution = restitution

    def rate(self, run, time, y):
        guard = (-1.0 if y[1] > 0 else 1.0) if run.s[0] else (-y[0] if y[1] < 0 else -1.0)
        return np.array([y[1], -G]), np.array([guard]), True

    def reset(self, run, y):
        return np.array([0.0, -self.restitution * y[1]]) if run.s[0] else y


class Circle(InterpretedProblem):
    """A pendulum in the plane, led back onto its circle."""

    def rate(self, run, time, y):
        push = (y[2:] @ y[2:] - G * y[1]) / (y[:2] @ y[:2])
        return np.array([*y[2:], -push * y[0], -push * y[1] - G]), np.zeros(0), True

    def back(self, run, y):
        place = y[:2] / np.linalg.norm(y[:2])
        return np.concatenate([place, y[2:] - (place @ y[2:]) * place]), 1


class Border(InterpretedProblem):
    """There is nothing below zero."""

    def rate(self, run, time, y):
        return np.array([-1.0, 0.0]), np.zeros(0), bool(y[0] > 0)


class Lost(Swing):
    """No way back from below one half."""

    def back(self, run, y):
        return y, -1 if y[0] < 0.5 else 0


class Held(InterpretedProblem):
    """A guess follows the state."""

    def rate(self, run, time, y):
        run.guess, run.known = y[:1].copy(), y[0]
        return np.array([1.0, 0.0]), np.zeros(0), True


KINDS = ("explicit", "implicit")
PROBLEMS = {
    "swing": (Swing(), [1.0, 0.0], 20.0, 1e-10, 0),
    "ball": (Ball(0.9), [1.0, 0.0], 1.5, 1e-9, 1),
    "zeno": (Ball(0.5), [1.0, 0.0], 5.0, 1e-9, 1),
    "circle": (Circle(), [1.0, 0.0, 0.0, 0.0], 10.0, 1e-9, 0),
    "border": (Border(), [1.0, 0.0], 2.0, 1e-9, 0),
    "lost": (Lost(), [1.0, 0.0], 9.0, 1e-9, 0),
    "van_der_pol": (VanDerPol(), [2.0, -0.66], 2.0, 1e-6, 0),
}


def ran(problem: InterpretedProblem, method, y, end, rtol, modes=0) -> tuple[Run, StepOutcome]:
    numbers = Method(tableau=method, rtol=rtol, atol=1e-3 * rtol, longest=np.inf, first=1e-6)
    run = Run(problem, numbers, np.array(y), modes=np.zeros(modes), guess=np.zeros(1))
    code = StepOutcome.SUCCESS
    while run.time < end and code == StepOutcome.SUCCESS:
        code = run.next(end)
    return run, code


def test_what_is_known_on_paper_holds_in_c(in_c):
    """The program checks itself; here, that it has run all of it."""
    assert len(in_c) == 2 * len(PROBLEMS)


#: The stiff one by implicit steps alone: explicit ones would be millions.
RUNS = [
    "van_der_pol",
    *(f"{name}_{kind}" for name in PROBLEMS if name != "van_der_pol" for kind in KINDS),
]


@pytest.mark.parametrize("name", RUNS)
def test_python_takes_the_same_steps(in_c, name):
    key = name.removesuffix("_explicit").removesuffix("_implicit")
    method = dormand_prince() if name.endswith("_explicit") else None
    problem, y, end, rtol, modes = PROBLEMS[key]
    run, code = ran(problem, method, y, end, rtol, modes)
    outcome, time, first, second, steps, _, events = in_c[name]
    assert code == outcome
    assert run.time == pytest.approx(time, abs=SAME)
    assert run.y[:2] == pytest.approx([first, second], abs=SAME)
    assert (run.steps, run.events) == (pytest.approx(steps, rel=0.05), events)


def test_implicit_steps_find_what_scipys_radau_finds(in_c):
    problem, y, end, _, _ = PROBLEMS["van_der_pol"]
    solution = solve_ivp(
        lambda t, y: problem.rate(None, t, y)[0], (0, end), y, "Radau", rtol=1e-10, atol=1e-13
    )
    assert in_c["van_der_pol"][2:4] == pytest.approx(solution.y[:, -1], abs=3e-8)


@pytest.mark.parametrize(("method", "order"), [(dormand_prince(), 5), (None, 5)])
def test_errors_fall_with_the_order(method, order):
    """Steps of one length, held by a loose tolerance: half the length, a thirty-second of the error."""
    errors = []
    for h in (0.2, 0.1):
        run = Run(
            Swing(),
            Method(tableau=method, rtol=1e-3, atol=1.0, longest=h, first=h),
            np.array([1.0, 0.0]),
        )
        while run.time < 2.0:
            run.step = h
            assert run.next(2.0) == StepOutcome.SUCCESS
        errors.append(np.linalg.norm(run.y - [np.cos(2.0), -np.sin(2.0)]))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.6)


def test_a_guess_is_put_back_where_a_step_is_given_up():
    numbers = Method(tableau=dormand_prince(), rtol=1e-9, atol=1e-12, longest=np.inf, first=0.9)
    run = Run(Border(), numbers, np.array([1.0, 0.0]), guess=np.array([7.0]))
    assert run.next(5.0) == StepOutcome.SUCCESS
    assert run.next(5.0) == StepOutcome.SUCCESS
    assert run.rejected > 0
    assert run.guess == [7.0]


def test_what_rates_leave_belongs_to_the_beginning_of_the_step():
    run, _ = ran(Held(), dormand_prince(), [0.0, 0.0], 1.0, 1e-9)
    assert run.start_known == pytest.approx(run.start[0], abs=1e-15)
    assert run.along(run.share) == pytest.approx(run.y, abs=1e-15)
