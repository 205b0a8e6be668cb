"""Many starts without control in a kernel: the motions that machine code makes, from the same text."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_machines import compilers
from extras import extra

from tauloop import Model, load
from tauloop.compiler.c.calling.evaluator import Compiled, Interpreted
from tauloop.export.gpu import Cuda, Processor, compile_cuda
from tauloop.simulation import Simulator, simulate_many
from tauloop.simulation.stepping.starts import steps_text

#: States are the same to the last bit; what is found of them is rounded elsewhere.
SAME = 1e-12


@pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here")
def test_motions_on_a_device_are_those_of_machine_code():
    results, forces = [], 0.1 * np.random.default_rng(2).normal(size=(5, 2))
    for evaluator in (Compiled(), Cuda(device=Processor(), at_least=6)):
        simulator = Simulator(Model(load("five_bar"), evaluator=evaluator))
        q = np.tile(simulator.model.assembly.q, (5, 1))
        results.append(simulate_many(simulator, 0.2, q, force=forces, samples=11))
    here, there = results
    assert here.endings == there.endings
    for name in ("reached", "steps"):
        assert np.array_equal(getattr(here, name), getattr(there, name)), name
    for name in ("q", "v"):
        assert np.abs(getattr(here, name) - getattr(there, name)).max() < SAME, name
    assert here.energy_error == pytest.approx(there.energy_error, rel=1e-3, abs=SAME)


@pytest.mark.nightly
def test_it_compiles_for_a_gpu(tmp_path):
    extra("nvidia.cuda_nvrtc")
    simulator = Simulator(Model(load("five_bar"), evaluator=Interpreted()))
    code = compile_cuda(steps_text(simulator.stepper), folder=tmp_path)
    assert 0 < code.kernel("tl_many").registers <= 255
