"""Programs of one machine continue from kinematics that is built once."""

from __future__ import annotations

from typing import Any

import pytest

import tauloop as tl
from tauloop.compiler import expressions
from tauloop.compiler.catalogue import FORWARD_DYNAMICS, INVERSE_DYNAMICS, KINEMATICS
from tauloop.compiler.expressions import Catalogue
from tauloop.compiler.program import Evaluate, Newton, Program
from tauloop.equations.formulations import FORMULATIONS
from tauloop.equations.ports import ACTUATORS, PLATFORM, entry_ports

#: Acceleration, velocity and position level, and a program that adds steps to its builder.
SPECS = (INVERSE_DYNAMICS, *KINEMATICS, FORWARD_DYNAMICS)


def written(program: Program) -> list[object]:
    """Return the instructions of all steps, and all records."""
    parts: list[object] = [program.name, program.outputs, program.pivots, program.linear_blocks]
    for step in program.steps:
        assert isinstance(step, Evaluate | Newton)
        function = step.function.function
        parts.append((step.inputs, function.n_in(), function.n_out()))
        parts += [
            (
                function.instruction_id(k),
                function.instruction_input(k),
                function.instruction_output(k),
            )
            for k in range(function.n_instructions())
        ]
    return parts


@pytest.mark.parametrize(
    ("machine", "entry"),
    [("delta", PLATFORM), ("five_bar", ACTUATORS)],
    ids=["delta", "five_bar"],
)
def test_a_program_does_not_depend_on_the_programs_before(machine: str, entry: Any) -> None:
    assembly = tl.Model(machine).assembly
    ports = entry_ports(assembly, entry)
    forward = Catalogue(assembly, ports, FORMULATIONS[0])
    backward = Catalogue(assembly, ports, FORMULATIONS[0])
    first = {spec: written(forward.program(spec)) for spec in SPECS}
    last = {spec: written(backward.program(spec)) for spec in reversed(SPECS)}
    for spec in SPECS:
        alone = Catalogue(assembly, ports, FORMULATIONS[0])
        assert first[spec] == last[spec] == written(alone.program(spec)), spec


def test_the_position_problem_is_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    solve = expressions.solve_positions

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return solve(*arguments)

    monkeypatch.setattr(expressions, "solve_positions", counted)
    assembly = tl.Model("delta").assembly
    catalogue = Catalogue(assembly, entry_ports(assembly, PLATFORM), FORMULATIONS[0])
    for spec in SPECS:
        catalogue.program(spec)
    catalogue.with_formulation(FORMULATIONS[1], share_expressions=True).program(INVERSE_DYNAMICS)
    assert len(calls) == 1
    catalogue.at(assembly).program(INVERSE_DYNAMICS)
    assert len(calls) == 2


def test_programs_of_formulations_that_share_kinematics_are_their_own() -> None:
    assembly = tl.Model("delta").assembly
    ports = entry_ports(assembly, PLATFORM)
    default = Catalogue(assembly, ports, FORMULATIONS[0])
    default.program(INVERSE_DYNAMICS)
    for formulation in FORMULATIONS[1:]:
        shared = default.with_formulation(formulation, share_expressions=True)
        alone = Catalogue(assembly, ports, formulation)
        own = written(alone.program(INVERSE_DYNAMICS))
        assert written(shared.program(INVERSE_DYNAMICS)) == own
        assert own != written(default.program(INVERSE_DYNAMICS))
