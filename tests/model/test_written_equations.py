"""Written equations: the Python is run and compared with the model, the LaTeX is set, the text is read by hand.

Oracles: the model, whose numbers come of CasADi's machine and never of these texts; the swinging
mass by hand.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cable_machines import CONSTRAINED
from matplotlib.mathtext import MathTextParser

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.common.result import Status
from tauloop.equations.ports import ACTUATORS, PLATFORM
from tauloop.kinematics import random_states
from tauloop.model.equation_text import equation_check, written_equations
from tauloop.model.equation_text.equation_check import require_plain
from tauloop.model.equation_text.equation_texts import written_name

#: The same operations by NumPy and by CasADi, over the largest force.
ROUNDING = 1e-12
#: Newton's loops end within rounding of one another.
CLOSED = 1e-12
CASES = [
    ("five_bar", PLATFORM),
    ("delta", ACTUATORS),
    ("pendulum_arm", PLATFORM),
    *(
        pytest.param(name, entry, marks=pytest.mark.nightly)
        for name, entry in (
            ("five_bar", ACTUATORS),
            ("rcid", PLATFORM),
            ("hexapod", ACTUATORS),
            ("gantry_tau_5dof", PLATFORM),
            ("nuwar", PLATFORM),
            ("spidermill", ACTUATORS),
        )
    ),
]
ONE_JOINT = (Path(__file__).parents[1] / "cases" / "one_joint.yaml").read_text(encoding="utf-8")


def ran(python: str) -> dict[str, Any]:
    """The names of a module that imports NumPy alone."""
    imports = [
        node
        for node in ast.walk(ast.parse(python))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert [ast.unparse(node) for node in imports] == ["import numpy as np"]
    names: dict[str, Any] = {}
    exec(compile(python, "equations.py", "exec"), names)
    return names


@pytest.mark.parametrize(("name", "entry"), CASES)
def test_python_by_itself_gives_the_forces_of_the_model(name: str, entry: Any) -> None:
    model = tl.Model(tl.load(name))
    states = random_states(model, 3, np.random.default_rng(0))
    state = model.platform.inverse_dynamics(
        states.position, states.velocity, states.acceleration
    ).state
    ports = model.functions(entry).ports
    motion = (ports.at(state.q), ports.rates(state.v), ports.rates(state.a))
    forces = model.functions(entry).inverse_dynamics(*motion, start=state.q)
    module = ran(tl.write_equations(model, tl.EquationOptions(coordinates=entry)).python)
    largest = np.abs(forces.force).max()
    for i, q in enumerate(state.q):
        solved = module["inverse_dynamics"](*(part[i] for part in motion), start=q)
        assert solved["q"] == pytest.approx(q, abs=CLOSED)
        assert np.abs(solved["force"] - forces.force[i]).max() < ROUNDING * largest
        assert (
            np.abs(solved["closure_force"] - forces.closure_force[i]).max(initial=0.0)
            < 10 * ROUNDING * largest
        )
        assert np.abs(module["loop_equations"](q)).max(initial=0.0) < CLOSED
        missing = module["dynamic_equations"](
            q, state.v[i], state.a[i], forces.force[i], forces.closure_force[i]
        )
        assert np.abs(missing).max() < 10 * ROUNDING * largest


@pytest.mark.parametrize("name", ["loop_equations", "dynamic_equations", "inverse_dynamics"])
def test_a_wrong_formula_makes_the_result_doubtful(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The diagnostics run the text: what is added to one number of it shows."""
    text = written_equations.python_text

    def damaged(*arguments: Any) -> str:
        before, marked, after = text(*arguments).partition(f"def {name}(")
        return before + marked + after.replace("np.array([", "np.array([1e-6 + ", 1)

    assert tl.write_equations(tl.load("five_bar")).status is Status.OK
    monkeypatch.setattr(written_equations, "python_text", damaged)
    written = tl.write_equations(tl.load("five_bar"))
    assert written.status is Status.DOUBTFUL
    (line,) = written.advice
    assert line.startswith(name.replace("_", " ").replace("inverse dynamics", "solved equations"))
    assert written.as_dict()["advice"] == list(written.advice)


def test_solved_equations_that_could_be_run_nowhere_are_doubtful(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(equation_check, "WORST_CONDITION", 1.0)
    assert "away from singularities" in tl.write_equations(tl.load("five_bar")).advice[0]


def test_a_machine_without_loops_has_none_written() -> None:
    written = tl.write_equations(
        tl.load("pendulum_arm"), tl.EquationOptions(parts=("loops", "dynamics"))
    )
    assert "Loop equations, each zero where the loops are closed\n\n  none\n" in written.text
    assert "\nNone.\n" in written.latex
    assert written.text.count("none") == 1


def test_a_swinging_mass_is_the_equation_of_the_textbook() -> None:
    """M c^2 q'' - m g c cos q - u = 0."""
    mechanism = tl.loads(ONE_JOINT.replace("axis: z", "axis: y"))
    written = tl.write_equations(mechanism, tl.EquationOptions(parts=("dynamics",)))
    (equation,) = [line for line in written.text.splitlines() if line.lstrip().startswith("0 =")]
    assert "cos(" in equation
    assert "- u_" in equation
    module = ran(written.python)
    q, v, a, u = np.random.default_rng(1).normal(size=4)
    expected = 1.0 * 0.1**2 * a - 1.0 * 9.81 * 0.1 * np.cos(q) - u
    assert module["dynamic_equations"]([q], [v], [a], [u], []) == pytest.approx(
        [expected], abs=1e-14
    )


def test_parameters_that_are_kept_are_arguments() -> None:
    mechanism = tl.load("five_bar")
    kept = ("tip_mass",)
    written = tl.write_equations(mechanism, tl.EquationOptions(keep=kept, parts=("solved",)))
    module = ran(written.python)
    assert module["PARAMETERS"] == [mechanism.parameters["tip_mass"].value]
    motion = ([0.05, 0.4], [0.3, -0.2], [1.0, 2.0])
    for mass in (0.1, 0.7):
        model = tl.Model(mechanism.with_values({"tip_mass": mass}))
        expected = model.platform.inverse_dynamics(*map(np.array, motion)).force
        force = module["inverse_dynamics"](*motion, parameters=[mass])["force"]
        assert force == pytest.approx(expected, rel=ROUNDING)
    assert re.search(r"\btip_mass\b", written.text)
    every = tl.write_equations(mechanism, tl.EquationOptions(keep=("all",), parts=("loops",)))
    lengths = {symbol.python for symbol in every.symbols if symbol.meaning.startswith("parameter")}
    assert lengths
    assert "0.25" not in every.text  # the cranks' length is a letter now


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.nightly), 9])
def test_every_formula_in_latex_can_be_set(step: int) -> None:
    """By Matplotlib, a tenth of a second each: by day some of them."""
    parser = MathTextParser("path")
    for name, entry in (("five_bar", ACTUATORS), ("pendulum_arm", PLATFORM)):
        latex = tl.write_equations(
            tl.load(name), tl.EquationOptions(keep=("all",), coordinates=entry)
        ).latex
        formulas = [*re.findall(r"\\\[ (.*) \\\]", latex), *re.findall(r"\$([^$]+)\$", latex)]
        assert len(formulas) > 60
        for formula in formulas[::step]:
            parser.parse(f"${formula}$")
        assert latex.count(r"\begin{") == latex.count(r"\end{")
        outside = re.sub(r"\\\[ .* \\\]|\$[^$]+\$", "", latex)
        assert not re.search(r"(?<!\\)[_^#%&~]", outside)


@pytest.mark.parametrize(
    "name", ['x"; import os #', "a\\input{/etc/passwd}", "für\nwahr", "lambda", "t12", "$%&", "1st"]
)
def test_nothing_of_a_name_but_letters_and_digits_gets_into_code(name: str) -> None:
    for role in ("q", "d1", "u", ""):
        python, latex = written_name(role, name, "", frozenset({"taken"}))
        assert python.isidentifier()
        assert not re.fullmatch(r"t\d+", python)
        compile(f"{python} = 1", "name", "exec")
        MathTextParser("path").parse(f"${latex}$")
        assert not set(latex) & set('"#%&$\n;')
    assert written_name("q", "taken", "", frozenset({"taken"}))[0] == "taken_"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"names": {"platform.x": "1x"}}, "is not a valid name"),
        ({"names": {"platform.q": "x"}}, "no variable 'platform.q'"),
        ({"keep": ("tip_mas",)}, "did you mean tip_mass"),
        ({"parts": ("loops", "forces")}, "'forces' is unknown"),
    ],
)
def test_what_cannot_be_written_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        tl.write_equations(tl.load("five_bar"), tl.EquationOptions(**options))


def test_cables_are_no_formulas() -> None:
    cables = tl.loads(CONSTRAINED.text())
    with pytest.raises(InputError, match="no closed-form solution"):
        tl.write_equations(cables)
    assert (
        "0 = " in tl.write_equations(cables, tl.EquationOptions(parts=("loops", "dynamics"))).text
    )


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "from os import path",
        "().__class__.__base__",
        "__import__('os')",
        "x = np.x._y",
    ],
)
def test_text_that_does_more_than_calculate_is_not_run(text: str) -> None:
    with pytest.raises(AssertionError, match="line 1 of written equations"):
        require_plain(ast.parse(text))


def test_all_loop_equations_are_written_and_those_that_state_nothing_are_named() -> None:
    """Six rods hold the orientation of the platform; three of them suffice only where it is known to stay."""
    model = tl.Model(tl.load("gantry_tau_6link"))
    written = tl.write_equations(model, tl.EquationOptions(parts=("loops",)))
    names = model.assembly.loops.names
    assert (written.identical, written.redundant) == (
        (),
        tuple(names[i] for i in model.assembly.dropped),
    )
    assert len(written.redundant) == 3
    loop_equations = ran(written.python)["loop_equations"]
    closed = model.assembly.q
    np.testing.assert_allclose(loop_equations(closed), np.zeros(6), atol=CLOSED)
    turned = closed.copy()
    first = model.topology.coordinate_names.index("platform.qw")
    half = np.deg2rad(2.5)
    turned[first : first + 4] = np.cos(half), np.sin(half), 0.0, 0.0
    expected = model.assembly.loops.residuals(turned[None])[0][0]
    np.testing.assert_allclose(loop_equations(turned), expected, atol=ROUNDING)
    assert np.abs(expected[list(model.assembly.dropped)]).max() > 1e-4
    for text in (written.text, written.latex, written.python):
        assert "3 of 6 loop equations follow from the others for these parameters" in text
    assert "platform.qw = 1, platform.qx = 0" in written.text


def test_equations_that_are_zero_everywhere_are_written_where_parameters_are_letters() -> None:
    numbers = tl.write_equations(tl.load("five_bar"), tl.EquationOptions(parts=("loops",)))
    letters = tl.write_equations(
        tl.load("five_bar"), tl.EquationOptions(parts=("loops",), keep=("all",))
    )
    assert len(numbers.identical) == 6
    assert numbers.redundant == ()
    assert letters.identical == numbers.identical
    assert numbers.text.count("\n  0 = ") == 4
    assert letters.text.count("\n  0 = ") == 10
    assert (
        "6 of 10 loop equations are identically zero for these parameters and are omitted: elbow_1: z,"
        in numbers.text
    )
    assert letters.as_dict()["identical"] == list(numbers.identical)
