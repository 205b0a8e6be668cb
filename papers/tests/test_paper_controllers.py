"""What stands in the papers' controllers, as C: its own check, its operations, and a fault that shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from compiled_machines import compilers

import tauloop as tl
from tauloop.drives import load_drive
from tauloop_papers.controllers import CONTROLLERS, functions, measured
from tauloop_papers.dual_motor.settings import SETTINGS as DUAL_MOTOR
from tauloop_papers.nuwar.settings import SETTINGS as NUWAR

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: Operations of each paper's functions: of a sample, and of each Newton step.
OPERATIONS = {
    "dual-motor": [(49, 0)],
    "gantry-tau": [(1579, 159)],
    "nuwar": [(272, 0), (355, 0)],
    "rcid": [(1197, 0), (813, 0)],
    "spidermill": [(192, 0)],
}
#: What takes over four seconds waits for the night.
BY_DAY = ("dual-motor", "spidermill")


def counted(machine: str, formulation: str) -> Any:
    """Operations of inverse dynamics as `tauloop model cost` counts them."""
    costs = tl.count_operations(tl.load(machine)).costs
    return next(
        c for c in costs if (c.quantity, c.formulation) == ("inverse dynamics", formulation)
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in BY_DAY else pytest.mark.nightly)
        for name in CONTROLLERS
    ],
)
def test_every_function_checks_itself_and_is_timed(name: str) -> None:
    totals = [
        (item["total"], item["each_newton_step"])
        for export in CONTROLLERS[name]()
        for item in functions(export)
    ]
    assert totals == OPERATIONS[name]
    for export in CONTROLLERS[name]():
        run = measured(export)
        assert (run.agrees, run.verdict) == (True, "all agree")
        assert set(run.nanoseconds) == {item["name"] for item in functions(export)}
        # a core does no more than sixteen operations in a nanosecond, and needs no microsecond for
        # one
        for item in functions(export):
            least = (item["total"] + item["each_newton_step"]) / 16
            assert least < run.nanoseconds[item["name"]] < 1e3 * item["total"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "machine", "formulations"),
    [
        ("gantry-tau", "gantry_tau_5dof", ("newton-euler",)),
        ("rcid", "rcid", ("generalized-momentum", "newton-euler")),
    ],
)
def test_operations_are_those_that_cost_counts(
    name: str, machine: str, formulations: tuple[str, ...]
) -> None:
    for export, formulation in zip(CONTROLLERS[name](), formulations, strict=True):
        (item,) = functions(export)
        cost = counted(machine, formulation)
        assert item["operations"] == cost.once
        assert item["each_newton_step"] == sum(cost.each_iteration.values())


@pytest.mark.nightly
def test_operations_without_accelerations_are_those_that_cost_counts() -> None:
    """Momenta and forces; a difference and a product for the rate of each of the momenta are the controller's."""
    (export,) = CONTROLLERS["nuwar"]()
    _, forces = functions(export)
    rates = tl.Model(tl.load(NUWAR.machine)).topology.n_v
    assert forces["total"] + 2 * rates == counted(NUWAR.machine, "hamilton, sampled").total


def test_operations_of_the_reduced_model_are_those_that_cost_counts() -> None:
    from tauloop.kinematics import ReductionOptions
    from tauloop_papers.spidermill.settings import SETTINGS

    options = ReductionOptions(
        massless_rods=SETTINGS.massless, share_parameters=True, seed=SETTINGS.seed
    )
    reduced = tl.reduce_model(tl.load(SETTINGS.machine), options).mechanism
    (cost,) = [
        c
        for c in tl.count_operations(reduced).costs
        if (c.quantity, c.formulation) == ("inverse dynamics", "newton-euler")
    ]
    (item,) = functions(CONTROLLERS["spidermill"]()[0])
    assert item["operations"] == cost.once


def test_a_wrong_number_in_the_code_shows() -> None:
    (export,) = CONTROLLERS["dual-motor"]()
    text = export.files[f"{export.name}.c"]
    number = repr(load_drive(DUAL_MOTOR.line).parameters.values["kp"])
    assert number in text
    damaged = {**export.files, f"{export.name}.c": text.replace(number, f"{float(number) + 0.01}")}
    run = measured(replace(export, files=damaged))
    assert (run.agrees, run.verdict) == (False, "FAILED")


def test_what_a_compiler_refuses_is_said() -> None:
    (export,) = CONTROLLERS["dual-motor"]()
    run = measured(
        replace(export, files={**export.files, f"{export.name}.c": "int main(void) { return }"})
    )
    assert run.agrees is False
    assert "error" in run.verdict
