"""Code in an order with few live values: the same results, and fewer values than in the given order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from plain_orders import (
    plain_depth_first,
    plain_few_live_values,
    plain_most_live,
    plain_schedule,
)

import tauloop as tl
from tauloop.compiler.c.printing import few_values, source
from tauloop.compiler.c.printing.few_values import (
    depth_first,
    max_live_values,
    with_few_live_values,
)
from tauloop.compiler.c.printing.scheduling import scheduled
from tauloop.compiler.c.printing.straight import Instruction, instructions
from tauloop.compiler.c.printing.sums import with_sums_in_order
from tauloop.compiler.program import Evaluate

BINARY = {ca.OP_ADD: "+", ca.OP_SUB: "-", ca.OP_MUL: "*"}


def values(code: Sequence[Instruction], inputs: np.ndarray) -> dict[tuple[int, int], float]:
    """The outputs of code that adds, subtracts, multiplies and negates, in long numbers."""
    known: dict[int, np.longdouble] = {}
    outputs = {}
    for instruction in code:
        operands = [known[number] for number in instruction.operands]
        if instruction.operation == ca.OP_INPUT:
            known[instruction.number] = np.longdouble(inputs[instruction.port[1]])
        elif instruction.operation == ca.OP_OUTPUT:
            outputs[instruction.port] = float(operands[0])
        elif instruction.operation == ca.OP_NEG:
            known[instruction.number] = -operands[0]
        elif instruction.operation == ca.OP_ASSIGN:
            known[instruction.number] = operands[0]
        elif instruction.operation == ca.OP_ADD:
            known[instruction.number] = operands[0] + operands[1]
        elif instruction.operation == ca.OP_SUB:
            known[instruction.number] = operands[0] - operands[1]
        else:
            assert instruction.operation == ca.OP_MUL
            known[instruction.number] = operands[0] * operands[1]
    return outputs


def random_code(seed: int, length: int = 80) -> tuple[Instruction, ...]:
    """Sums, differences, products and negations of earlier values, mostly of recent ones."""
    draw = random.Random(seed)
    code = [Instruction(number, ca.OP_INPUT, (), (0, number)) for number in range(6)]
    for number in range(6, length):
        first, second = (max(draw.randrange(number), draw.randrange(number)) for _ in range(2))
        operation = draw.choice((*BINARY, ca.OP_ADD, ca.OP_SUB, ca.OP_NEG))
        operands = (first,) if operation == ca.OP_NEG else (first, second)
        code.append(Instruction(number, operation, operands))
    read = {number for instruction in code for number in instruction.operands}
    unread = [number for number in range(length) if number not in read]
    outputs = [
        Instruction(length + i, ca.OP_OUTPUT, (number,), (0, i)) for i, number in enumerate(unread)
    ]
    return (*code, *outputs)


def check_order(code: Sequence[Instruction]) -> None:
    """Each value is computed once, before its use."""
    known: set[int] = set()
    for instruction in code:
        assert set(instruction.operands) <= known
        assert instruction.number not in known
        known.add(instruction.number)


@pytest.mark.parametrize("rewrite", [depth_first, with_sums_in_order, with_few_live_values])
def test_random_code_keeps_its_results(rewrite):
    for seed in range(30):
        code = random_code(seed)
        inputs = np.random.default_rng(seed).uniform(0.5, 1.5, 6)
        changed = rewrite(code)
        check_order(changed)
        expected, results = values(code, inputs), values(changed, inputs)
        assert results.keys() == expected.keys()
        for port, value in expected.items():
            assert results[port] == pytest.approx(value, rel=1e-12, abs=1e-12), (seed, port)


def test_few_live_values_are_never_more_than_before():
    for seed in range(30):
        code = random_code(seed)
        assert max_live_values(with_few_live_values(code)) <= max_live_values(code)


def test_most_live_counts_values_until_their_last_use():
    # x + y and x - y are live until their product is computed, and then the product alone
    code = (
        Instruction(0, ca.OP_INPUT, (), (0, 0)),
        Instruction(1, ca.OP_INPUT, (), (0, 1)),
        Instruction(2, ca.OP_ADD, (0, 1)),
        Instruction(3, ca.OP_SUB, (0, 1)),
        Instruction(4, ca.OP_MUL, (2, 3)),
        Instruction(5, ca.OP_OUTPUT, (4,), (0, 0)),
    )
    assert max_live_values(code) == 2


def test_terms_of_a_sum_are_added_as_they_become_available():
    # x0^2 - x1^2 + x2^2 ... added last-first: all squares are live until the sum begins
    n = 12
    x = [Instruction(i, ca.OP_INPUT, (), (0, i)) for i in range(n)]
    squares = [Instruction(n + i, ca.OP_MUL, (i, i)) for i in range(n)]
    sums = [Instruction(2 * n, ca.OP_SUB, (2 * n - 1, 2 * n - 2))]
    for i in range(n - 3, -1, -1):
        operation = ca.OP_ADD if i % 2 else ca.OP_SUB
        sums.append(Instruction(sums[-1].number + 1, operation, (sums[-1].number, n + i)))
    last = Instruction(sums[-1].number + 1, ca.OP_OUTPUT, (sums[-1].number,), (0, 0))
    code = (*x, *squares, *sums, last)
    changed = with_few_live_values(code)
    assert max_live_values(code) == n
    assert max_live_values(changed) == 2
    inputs = np.linspace(0.5, 1.5, n)
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)
    assert values(changed, inputs)[0, 0] == pytest.approx(float(signs @ inputs**2), rel=1e-14)


@pytest.mark.parametrize(
    ("order", "plain"), [(depth_first, plain_depth_first), (scheduled, plain_schedule)]
)
def test_orders_are_those_of_plain_searches(order, plain):
    for seed in range(8):
        code = random_code(seed, 30 + 20 * seed)
        assert order(code) == plain(code), seed
        assert max_live_values(code) == plain_most_live(code)


@pytest.mark.parametrize("most_ahead", [2, 4, few_values.MAX_ENDING_LENGTH])
def test_the_search_for_few_values_is_a_plain_one_with_every_limit(most_ahead, monkeypatch):
    """A low limit leaves more endings that become short later."""
    monkeypatch.setattr(few_values, "MAX_ENDING_LENGTH", most_ahead)
    for seed in range(8):
        code = random_code(seed, 30 + 15 * seed)
        assert with_few_live_values(code) == plain_few_live_values(code), seed


def dynamics(machine: str, program: str, port: str) -> tuple[Instruction, ...]:
    """The code of a function of the shipped machine's platform."""
    function = tl.Model(tl.load(machine)).platform.source_function(program, (port,))
    (step,) = (step for step in function.program.steps if isinstance(step, Evaluate))
    return instructions(step.function.function, [name == port for name in step.outputs])


def check_orders_of(code: Sequence[Instruction]) -> None:
    """Fast and plain searches return the same instructions."""
    few = with_few_live_values(code)
    assert few == plain_few_live_values(code)
    assert max_live_values(few) == plain_most_live(few)
    assert scheduled(few) == plain_schedule(few)


def test_orders_of_a_planar_machine_are_those_of_plain_searches():
    check_orders_of(dynamics("planar_3rrr", "inverse_dynamics", "force"))


@pytest.mark.nightly
@pytest.mark.parametrize("machine", ["rcid", "scissor_lift", "tricept"])
def test_orders_of_shipped_machines_are_those_of_plain_searches(machine):
    check_orders_of(dynamics(machine, "inverse_dynamics", "force"))


@pytest.mark.parametrize(("machine", "most"), [("rcid", 60), ("hexapod", 90)])
def test_dynamics_of_a_hexapod_needs_fewer_values_than_registers_of_a_graphics_processor(
    machine, most
):
    program = "forward_dynamics" if machine == "rcid" else "inverse_dynamics"
    port = "acceleration" if machine == "rcid" else "force"
    code = dynamics(machine, program, port)
    changed = with_few_live_values(code)
    check_order(changed)
    assert max_live_values(changed) <= most < 0.6 * max_live_values(code)


def test_equal_code_is_ordered_once_and_keeps_the_sign_of_zero(monkeypatch, tmp_path):
    """0.0 == -0.0, but their reciprocals differ. Constants do not affect the order."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    calls = []

    def order(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
        calls.append(code)
        return tuple(code)

    kept = {}
    for zero in (0.0, -0.0, 0.0):
        code = (Instruction(0, ca.OP_CONST, (), constant=zero),)
        kept[str(zero)] = source._ordered(order, code, source._negative_zeros(code))
    assert len(calls) == 1
    assert [str(code[0].constant) for code in kept.values()] == ["0.0", "-0.0"]


def test_code_for_lanes_and_for_one_sample_share_the_search(monkeypatch):
    code = random_code(1, 200)
    calls = []

    def search(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
        calls.append(code)
        return with_few_live_values(code)

    monkeypatch.setattr(source, "with_few_live_values", search)
    monkeypatch.setattr(source, "LONGEST_STRETCH_OF_LANES", 0)
    few = source._LANES.order(code)
    assert source._ONE_SAMPLE.order(code) == scheduled(few)
    assert few == with_few_live_values(code)
    assert len(calls) == 1


@pytest.mark.parametrize("layout", [source._ONE_SAMPLE, source._LANES])
def test_short_and_very_long_code_keeps_its_order(layout, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code = random_code(2, 100)
    monkeypatch.setattr(source, "ORDERED_FROM", len(code))
    assert source._reordered(code, layout) != code
    assert source._reordered(code, replace(layout, max_ordered=len(code) - 1)) == code
    monkeypatch.setattr(source, "ORDERED_FROM", len(code) + 1)
    assert source._reordered(code, layout) == code
