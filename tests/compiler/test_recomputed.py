"""Code for graphics processors computes values again instead of keeping them: the same results, fewer live values."""

from __future__ import annotations

import random
from collections.abc import Sequence

import casadi as ca
import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop.compiler.c.printing import recomputed, source
from tauloop.compiler.c.printing.few_values import with_few_live_values
from tauloop.compiler.c.printing.recomputed import with_few_registers, with_recomputed_values
from tauloop.compiler.c.printing.source import thread_text
from tauloop.compiler.c.printing.stored_orders import stored_order
from tauloop.compiler.c.printing.straight import HIDDEN, Instruction
from tauloop.export.gpu.nvrtc import compile_cuda
from tauloop.export.gpu.source import kernel_name, kernels_text

LEGS, TERMS = 8, 40


def legs(draw: random.Random) -> tuple[Instruction, ...]:
    """Two sums over legs: the second reads again what the first computed for each leg, long before.

    A leg has four values, which are sums of two arguments times a third.
    """
    code = [Instruction(i, ca.OP_INPUT, (), (0, i)) for i in range(12)]
    code.append(Instruction(12, ca.OP_CONST, (), None, 0.75))

    def add(operation: int, *operands: int) -> int:
        code.append(Instruction(len(code), operation, operands))
        return code[-1].number

    values = []
    for _ in range(LEGS):
        leg = []
        for _ in range(4):
            first, second, third = draw.sample(range(12), 3)
            total = add(draw.choice((ca.OP_ADD, ca.OP_SUB)), first, second)
            leg.append(add(ca.OP_MUL, total, draw.choice((third, 12))))
        values.append(leg)
    sums = []
    for _ in range(2):
        total = 0
        for leg in values:
            for _ in range(TERMS):
                term = add(ca.OP_MUL, *draw.sample(leg, 2))
                total = add(draw.choice((ca.OP_ADD, ca.OP_SUB)), total, term)
        sums.append(total)
    code += [Instruction(len(code) + i, ca.OP_OUTPUT, (k,), (0, i)) for i, k in enumerate(sums)]
    return tuple(code)


def results(code: Sequence[Instruction], inputs: np.ndarray) -> list[float]:
    """The outputs of code in double precision; each value must be known where it is used."""
    known: dict[int, float] = {}
    outputs: dict[int, float] = {}
    for item in code:
        operands = [known[k] for k in item.operands]
        if item.operation == ca.OP_INPUT:
            known[item.number] = inputs[item.port[1]]
        elif item.operation == ca.OP_CONST:
            known[item.number] = item.constant
        elif item.operation == ca.OP_OUTPUT:
            outputs[item.port[1]] = operands[0]
        else:
            assert item.number not in known
            computed = {
                HIDDEN: lambda a: a,
                ca.OP_ADD: lambda a, b: a + b,
                ca.OP_SUB: lambda a, b: a - b,
                ca.OP_MUL: lambda a, b: a * b,
            }
            known[item.number] = computed[item.operation](*operands)
    return [outputs[i] for i in sorted(outputs)]


def live(code: Sequence[Instruction]) -> int:
    """The maximum number of live values, arguments included, counted place by place."""
    constants = {item.number for item in code if item.operation == ca.OP_CONST}
    most = 0
    remaining: set[int] = set()
    for item in reversed(code):  # what is live before an instruction
        remaining.discard(item.number)
        remaining |= set(item.operands) - constants
        most = max(most, len(remaining))
    return most


@pytest.mark.parametrize("seed", range(5))
def test_results_are_the_same_to_the_last_bit_with_fewer_live_values(seed, monkeypatch):
    monkeypatch.setattr(recomputed, "MAX_LIVE_VALUES", 20)
    code = legs(random.Random(seed))
    changed = with_recomputed_values(code)
    assert live(code) > 2 * LEGS
    assert live(changed) < 0.7 * live(code)
    inputs = np.random.default_rng(seed).uniform(-1.0, 1.0, 12)
    assert results(changed, inputs) == results(code, inputs)


def test_every_second_computation_reads_a_hidden_copy(monkeypatch):
    """Otherwise a compiler would merge it with the first: no two instructions are the same."""
    monkeypatch.setattr(recomputed, "MAX_LIVE_VALUES", 20)
    code = with_recomputed_values(legs(random.Random(0)))
    assert sum(item.operation == HIDDEN for item in code) > LEGS
    computations = [
        (item.operation, item.operands) for item in code if item.operation in (ca.OP_ADD, ca.OP_MUL)
    ]
    before = [
        (item.operation, item.operands)
        for item in legs(random.Random(0))
        if item.operation in (ca.OP_ADD, ca.OP_MUL)
    ]
    assert len(computations) - len(set(computations)) <= len(before) - len(set(before))


def test_code_with_few_live_values_stays():
    code = legs(random.Random(1))
    assert live(code) < recomputed.MAX_LIVE_VALUES
    assert with_recomputed_values(code) == code


def test_the_order_is_read_back_from_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(recomputed, "MAX_LIVE_VALUES", 20)
    code = legs(random.Random(2))
    first = stored_order(with_few_registers, code)
    assert any(item.operation == HIDDEN for item in first)
    monkeypatch.setattr(recomputed, "with_few_live_values", lambda code: pytest.fail("a search"))
    assert stored_order(with_few_registers, code) == first


def test_few_values_of_a_hexapod_are_live(monkeypatch):
    orders = []

    def noted(code):
        orders.append((code, with_few_registers(code)))
        return orders[-1][1]

    monkeypatch.setattr(source, "with_few_registers", noted)
    monkeypatch.setattr(source, "stored_order", lambda order, code: order(code))
    motion = tl.Model(tl.load("hexapod")).platform
    thread_text(motion.source_function("forward_dynamics", ("acceleration",)), frozenset())
    ((code, changed),) = orders
    assert live(with_few_live_values(code)) > 100
    assert live(changed) <= recomputed.MAX_LIVE_VALUES + 1
    assert len(changed) < 1.15 * len(code)


@pytest.mark.nightly
def test_forward_dynamics_of_a_hexapod_fits_into_registers(tmp_path, monkeypatch):
    """Without it, 700 bytes of each sample go to memory, three times as much as its inputs and outputs."""
    extra("nvidia.cuda_nvrtc")
    motion = tl.Model(tl.load("hexapod")).platform
    function = motion.source_function("forward_dynamics", ("acceleration",))
    kernels = {}
    for order in (recomputed.with_few_live_values, with_few_registers):
        monkeypatch.setattr(source, "with_few_registers", order)
        text = kernels_text([function], "forward dynamics")
        assert ("TL_HIDDEN(t" in thread_text(function, frozenset())) is (
            order is with_few_registers
        )
        kernels[order] = compile_cuda(text, folder=tmp_path).kernel(kernel_name(function))
    ports = 8 * sum(port.size for port in function.arguments)
    assert kernels[recomputed.with_few_live_values].spill_stores > ports
    assert kernels[with_few_registers].spill_stores == 0
