"""The instruction list of a CasADi function, which can be run in any arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass

#: Names of the supported operations, by CasADi's code.
OPERATIONS = {
    ca.OP_ADD: "add",
    ca.OP_SUB: "subtract",
    ca.OP_MUL: "multiply",
    ca.OP_DIV: "divide",
    ca.OP_NEG: "negate",
    ca.OP_SQ: "square",
    ca.OP_TWICE: "twice",
    ca.OP_INV: "invert",
    ca.OP_SQRT: "root",
    ca.OP_SIN: "sine",
    ca.OP_COS: "cosine",
    ca.OP_TAN: "tangent",
    ca.OP_FABS: "absolute",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedInstruction:
    """An operation on registers.

    Attributes:
        operation: "input", "output", "constant" or a value of `OPERATIONS`.
        target: index of the register that is written, or of the output.
        sources: indices of the registers that are read, or of the input.
        value: value of a constant.
    """

    operation: str
    target: int
    sources: tuple[int, ...] = ()
    value: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionList:
    """Operations of a function with a vector of inputs and a vector of outputs.

    Attributes:
        instructions: operations in their order.
        n_registers, n_outputs: number of registers and of outputs.
    """

    instructions: tuple[ListedInstruction, ...]
    n_registers: int
    n_outputs: int

    def run(self, inputs: Sequence[Any], operations: Mapping[str, Callable[..., Any]]) -> list[Any]:
        """Return the outputs, computed in the arithmetic of the inputs.

        Args:
            inputs: values of the inputs.
            operations: functions of the arithmetic, by the names of `OPERATIONS`.
        """
        registers: list[Any] = [0.0] * self.n_registers
        outputs: list[Any] = [0.0] * self.n_outputs
        for step in self.instructions:
            if step.operation == "constant":
                registers[step.target] = step.value
            elif step.operation == "input":
                registers[step.target] = inputs[step.sources[0]]
            elif step.operation == "output":
                outputs[step.target] = registers[step.sources[0]]
            else:
                values = [registers[source] for source in step.sources]
                registers[step.target] = operations[step.operation](*values)
        return outputs


def program(name: str, x: ca.SX, y: ca.SX) -> InstructionList:
    """Return the operations of the function x -> y.

    Args:
        name: name of the function, for messages.
        x: symbols (n, 1).
        y: expressions (m, 1).

    Raises:
        InputError: an operation is not supported, such as atan2.
    """
    function = ca.Function("program", [x], [ca.densify(y)], {"cse": True})
    instructions = []
    for i in range(function.n_instructions()):
        code = function.instruction_id(i)
        outputs = function.instruction_output(i)
        inputs = function.instruction_input(i)
        if code == ca.OP_CONST:
            value = function.instruction_constant(i)
            step = ListedInstruction(operation="constant", target=outputs[0], value=value)
        elif code == ca.OP_INPUT:
            step = ListedInstruction(operation="input", target=outputs[0], sources=(inputs[1],))
        elif code == ca.OP_OUTPUT:
            step = ListedInstruction(operation="output", target=outputs[1], sources=(inputs[0],))
        elif code in OPERATIONS:
            step = ListedInstruction(
                operation=OPERATIONS[code], target=outputs[0], sources=tuple(inputs)
            )
        else:
            what = f"{name} contains the operation {_name(code)}, which proofs do not support"
            remedy = "certify a machine without drums, cams and arcs in its loop equations"
            raise InputError.of("machine", what, remedy)
        instructions.append(step)
    return InstructionList(
        instructions=tuple(instructions),
        n_registers=function.sz_w(),
        n_outputs=y.numel(),
    )


def _name(code: int) -> str:
    """Return CasADi's name of an operation, such as ATAN2."""
    names = (name for name in dir(ca) if name.startswith("OP_") and getattr(ca, name) == code)
    return next(names, str(code)).removeprefix("OP_")
