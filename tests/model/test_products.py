"""Products of first and second derivatives: beside Jacobians, and beside differences of these."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from differences import FOREIGN, REDUNDANT, STEPS, Differences, difference, machine
from page_tables import page_table

import tauloop as tl
from tauloop.common.errors import InputError, PoseError
from tauloop.compiler.c.printing.operations import output_operations
from tauloop.compiler.catalogue import DERIVATIVES, PRODUCTS
from tauloop.equations.ports import ACTUATORS, PLATFORM, Entry
from tauloop.mechanism import shipped_machines
from tauloop.model import Products

#: The same sums in another order; and agreement with differences of Jacobians, of the largest entry
#: (issue 19).
OTHER_ORDER, SAME = 1e-11, 1e-8
#: The page has two decimals, and another computer's rounding may share another expression.
FIGURES = 5e-3
FUNCTIONS = ("inverse_dynamics", "forward_dynamics")


class Curves(Differences):
    """w^T J d from Jacobians, as a function of the motion."""

    def __init__(self, name: str, entry: Entry, function: str) -> None:
        super().__init__(machine(name), entry, function)
        rng, samples = np.random.default_rng(5), len(self.start)
        self.output = "force" if function == "inverse_dynamics" else "acceleration"
        actuators = len(self.model.mechanism.actuators)
        sizes = [
            actuators if key == "force" else self.motion.ports.velocity.size for key in self.names
        ]
        self.steps = {
            key: rng.normal(size=(samples, n)) for key, n in zip(self.names, sizes, strict=True)
        }
        rows = actuators if self.output == "force" else self.motion.ports.velocity.size
        self.factors = rng.normal(size=(samples, rows))

    def values(self, inputs: dict[str, np.ndarray], start: np.ndarray) -> dict[str, np.ndarray]:
        made = self.motion.derivatives(self.function, *inputs.values(), start=start)
        count = len(start) // len(self.start)
        factors = np.tile(self.factors, (count, 1))
        steps = {key: np.tile(step, (count, 1)) for key, step in self.steps.items()}
        products = [
            np.einsum("ni,nij,nj->n", factors, made.jacobian(self.output, key), steps[key])
            for key in steps
        ]
        return {"product": sum(products)[:, None]}

    def products(self) -> Products:
        return self.motion.products(
            self.function,
            *self.inputs.values(),
            factors=self.factors,
            directions=self.steps,
            start=self.start,
        )


def check(name: str, entry: Entry, function: str) -> None:
    curves = Curves(name, entry, function)
    made = curves.products()
    exact = curves.motion.derivatives(function, *curves.inputs.values(), start=curves.start)
    jacobians = {key: exact.jacobian(curves.output, key) for key in curves.names}
    assert difference(made.value, exact.values[curves.output]) < OTHER_ORDER
    moved = sum(np.einsum("nij,nj->ni", jacobians[key], curves.steps[key]) for key in jacobians)
    assert difference(made.along, moved) < OTHER_ORDER
    for key, jacobian in jacobians.items():
        weighed = np.einsum("nij,ni->nj", jacobian, curves.factors)
        assert difference(made.slopes[key], weighed) < OTHER_ORDER, key
        errors = []
        for size in STEPS:
            try:
                errors.append(difference(made.bends[key], curves.by(key, size)["product"][:, 0]))
            except PoseError:
                continue
            if errors[-1] < SAME:
                break
        assert errors, "all differences leave the reach"
        assert min(errors) < SAME, (key, errors)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_products_are_those_of_jacobians_and_of_their_slopes(function):
    check("delta", PLATFORM, function)


def test_shared_forces_have_products_too():
    check(REDUNDANT, PLATFORM, "inverse_dynamics")


@pytest.mark.nightly
@pytest.mark.parametrize("entry", [PLATFORM, ACTUATORS], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", [*shipped_machines(), *FOREIGN])
def test_products_of_every_machine_are_those_of_jacobians_and_of_their_slopes(
    name, function, entry
):
    model = machine(name)
    if function == "inverse_dynamics" and (
        model.assembly.passive or any(rod.tension for rod in model.mechanism.rods)
    ):
        pytest.skip(
            "inverse dynamics has no derivatives: passive freedoms, or forces within bounds"
        )
    check(name, entry, function)


def test_products_are_exported_as_c_and_called_by_name():
    options = tl.ExportOptions(functions=("inverse_dynamics_products",))
    made = tl.export_c(tl.load("five_bar"), options)
    ports = {port["name"]: port for port in made.manifest["functions"][0]["inputs"]}
    assert ports["position_step"]["units"] == ["m"] * 2
    call = tl.load_function(
        "five_bar", "inverse_dynamics_products", ("force_along", "bend_by_velocity")
    )
    motion = ([0.05, 0.4], [0.1, 0.2], [1.0, 2.0])
    steps = {"position": [1.0, 0.0], "velocity": [0.0, 1.0], "acceleration": [1.0, 1.0]}
    own = machine("five_bar").platform.products(
        "inverse_dynamics", *motion, factors=[1.0, 2.0], directions=steps
    )
    moved, bent = call(*motion, *steps.values(), [1.0, 2.0])
    assert difference(moved, own.along) < OTHER_ORDER
    assert difference(bent, own.bends["velocity"]) < OTHER_ORDER


@pytest.mark.parametrize("name", ["delta", pytest.param("hexapod", marks=pytest.mark.nightly)])
def test_casadi_has_the_hessian_of_a_lagrangian_interpreted_and_as_machine_code(name):
    """By the numbers of quaternions; along displacements of its velocities they are products."""
    platform, rng, function = machine(name).platform, np.random.default_rng(7), "forward_dynamics"
    numbers = [
        platform.ports.at(platform.assembly.q),
        *rng.normal(size=(2, platform.ports.velocity.size)),
    ]
    factors = rng.normal(size=platform.ports.velocity.size)
    hessians = []
    for compiled in (False, True):
        own = platform.casadi(function, compiled=compiled)
        x, w = [ca.MX.sym("x", own.size1_in(i)) for i in range(3)], ca.MX.sym("w", len(factors))
        hessian, slopes = ca.hessian(ca.dot(w, own(*x)), ca.vertcat(*x))
        made = ca.Function("made", [*x, w], [hessian, slopes, ca.jacobian(own(*x), ca.vertcat(*x))])
        hessians.append([np.asarray(part) for part in made(*numbers, factors)])
        assert hessian.sparsity().nnz() < hessian.numel()
    for interpreted, code in zip(*hessians, strict=True):
        assert difference(code, interpreted) < OTHER_ORDER
    whole, ends = hessians[0][0], np.cumsum([len(part) for part in numbers])
    for k, direction in enumerate(np.eye(len(factors))):
        made = platform.products(
            function, *numbers, factors=factors, directions={"velocity": direction}
        )
        column = whole[:, ends[0] + k]
        assert difference(made.bends["velocity"], column[ends[0] : ends[1]]) < OTHER_ORDER
        assert difference(made.bends["force"], column[ends[1] :]) < OTHER_ORDER


def test_a_direction_that_is_not_named_is_zero_and_wrong_names_are_refused():
    platform = machine("delta").platform
    motion = ([0.05, 0.0, -0.5], [0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
    made = platform.products(
        "inverse_dynamics",
        *motion,
        factors=[1.0, 0.0, 0.0],
        directions={"acceleration": [1.0, 0, 0]},
    )
    exact = platform.derivatives("inverse_dynamics", *motion)
    assert made.along == pytest.approx(exact.jacobian("force", "acceleration")[:, 0], abs=1e-12)
    assert not made.bends["acceleration"].any()  # forces are linear in accelerations
    lines, inverse = [1.0, 0.0, 0.0], "inverse_dynamics"
    for function, factors, steps, where in (
        ("kinematics", lines, {}, "function"),
        (inverse, lines, {"force": lines}, "directions['force']"),
        (inverse, [1.0, 0.0], {}, "factors"),
        (inverse, [1.0, 0.0, np.nan], {}, "factors"),
        (inverse, lines, {"position": [1.0, 0.0]}, "directions['position']"),
        (inverse, lines, lines, "directions"),
    ):
        with pytest.raises(InputError) as refused:
            platform.products(function, *motion, factors=factors, directions=steps)
        assert [problem.where for problem in refused.value.problems] == [where]


@pytest.mark.parametrize(
    "name", ["delta", *(pytest.param(n, marks=pytest.mark.nightly) for n in ("rcid", "hexapod"))]
)
def test_operations_are_those_of_the_page(name):
    table, platform = page_table("derivatives.md", "| dynamics"), machine(name).platform
    for function, output in (("inverse_dynamics", "force"), ("forward_dynamics", "acceleration")):

        def count(program: str, *outputs: str) -> int:
            return sum(output_operations(platform.program(program), *outputs)["once"].values())

        alone, products = count(function, output), PRODUCTS[function]
        jacobians = [key for key in DERIVATIVES[function][0].outputs if key.startswith(output)]
        slopes = [key for key in products.outputs if key.startswith("slope")]
        together = (
            count(f"{function}_derivatives", *jacobians),
            count(products.name, output, f"{output}_along"),
            count(products.name, output, *slopes),
            count(products.name, *products.outputs),
        )
        row = table.row(f"{name}, {function.partition('_')[0]}")
        assert [float(cell) for cell in row[1:]] == pytest.approx(
            [alone, *(n / alone for n in together)], rel=FIGURES
        )
