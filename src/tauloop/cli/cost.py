"""``tauloop cost``: how many operations the functions of a machine take, by formulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tauloop.cli.machine import MachineArgument, SideOption, load_machine
from tauloop.cli.output import JsonOption, console, print_json, reports_errors, table
from tauloop.equations.formulations import FORMULATIONS, NEWTON_EULER
from tauloop.errors import TauloopError
from tauloop.functions import Model
from tauloop.functions.operations import KINDS, operations
from tauloop.functions.platform_matrices import SIX_FREEDOMS, VirtualPlatforms
from tauloop.functions.source import CFunction, CPort
from tauloop.mechanism.model import Mechanism

#: What is counted: name, program, the output that is wanted, and whether it depends on the formulation.
QUANTITIES = (
    ("positions", "kinematics_0", "q", False),
    ("inverse dynamics", "inverse_dynamics", "force", True),
    ("forward dynamics", "forward_dynamics", "acceleration", True),
    ("regressor", "regressor_actuators", "regressor", True),
)


#: Velocity terms V x' of the platform as a matrix (Coriolis and centripetal), summed over all virtual platforms.
MATRIX = "matrix V(x, x')"
MATRIX_EULER = "matrix V(x, x'), Euler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Operations of one quantity by one formulation."""

    quantity: str
    formulation: str
    once: dict[str, int]
    each_iteration: dict[str, int]

    @property
    def total(self) -> int:
        """All operations outside Newton loops."""
        return sum(self.once.values())


@reports_errors
def cost(
    machine: MachineArgument,
    side: SideOption = None,
    entry: Annotated[str, typer.Option(help="What moves as given: platform or actuators.")] = "platform",
    as_json: JsonOption = False,
) -> None:
    """Count the operations of a machine's functions, all numbers baked in, after sharing common subexpressions.

    Kinematics are included; a Newton block is counted apart, per iteration.
    """
    mechanism = load_machine(machine, side)
    rows, left_out = _costs(mechanism, entry)
    if as_json:
        print_json({"machine": mechanism.name, "entry": entry, "costs": rows, "left_out": left_out})
        return
    screen = console()
    screen.print(f"Operations of {mechanism.name}, from {entry} motion", style="bold")
    for quantity in dict.fromkeys(row.quantity for row in rows):
        headings = (quantity, "+ -", "x", "/", "root", "trig", "other", "total", "per iteration")
        listing = table("", *headings, numeric=tuple(range(1, 9)))
        for row in rows:
            if row.quantity == quantity:
                iteration = sum(row.each_iteration.values())
                counts = (str(row.once[kind]) for kind in KINDS)
                listing.add_row(row.formulation, *counts, str(row.total), f"+ {iteration}" if iteration else "")
        screen.print(listing)
    for name, reason in left_out.items():
        screen.print(f"left out: {name}: {reason}", markup=False)


def _costs(mechanism: Mechanism, entry: str) -> tuple[list[Cost], dict[str, str]]:
    rows: list[Cost] = []
    left_out: dict[str, str] = {}
    for formulation in FORMULATIONS:
        try:
            model = Model(mechanism, formulation=formulation.name)
            functions = model.platform if entry == "platform" else model.actuators
            for quantity, program, output, depends in QUANTITIES:
                if depends or formulation is NEWTON_EULER:
                    counted = CFunction(
                        name="counted",
                        program=functions.program(program),
                        inputs=(),
                        outputs=(CPort(name=output, size=0),),
                    )
                    rows.append(Cost(quantity=quantity, formulation=formulation.name, **operations(counted)))
        except TauloopError as error:
            left_out[formulation.name] = "; ".join(problem.what for problem in error.problems)
    if entry == "platform":
        rows += _matrix_costs(Model(mechanism), left_out)
    order = [*(quantity for quantity, _, _, _ in QUANTITIES), MATRIX, MATRIX_EULER]
    return sorted(rows, key=lambda row: order.index(row.quantity)), left_out


def _matrix_costs(model: Model, left_out: dict[str, str]) -> list[Cost]:
    """The velocity terms as a matrix on the platform, the way in which papers count them."""
    rows: list[Cost] = []
    names = tuple(name.rpartition(".")[2] for name in model.platform.entry.velocity.columns)
    for quantity, in_euler in ((MATRIX, False), *([(MATRIX_EULER, True)] if names == SIX_FREEDOMS else [])):
        for formulation, by_momentum in (("generalized-momentum", True), ("lagrange", False)):
            try:
                program = VirtualPlatforms(model, by_momentum=by_momentum, in_euler=in_euler).program
            except TauloopError as error:
                left_out[f"{quantity} by {formulation}"] = "; ".join(problem.what for problem in error.problems)
                continue
            outputs = (CPort(name="V", size=0),)
            counted = CFunction(name="counted", program=program, inputs=(), outputs=outputs)
            rows.append(Cost(quantity=quantity, formulation=formulation, **operations(counted)))
    return rows
