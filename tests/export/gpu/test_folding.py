"""Regressors folded in the kernel: triangles of blocks and of pairs are LAPACK's, and fit the same parameters."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_machines import compilers, motion
from extras import extra

from tauloop import Model, load
from tauloop.common.errors import InputError, PoseError
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.export.gpu import Cuda, Processor, RegressorFold, compile_cuda
from tauloop.export.gpu.folding import MAX_SHARED_BYTES
from tauloop.identification import (
    RegressionData,
    WeightedLeastSquares,
    condense_parts,
    estimate_condensed,
)

needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: Two orders of elimination of the same rows: rounding over the longest column.
SAME = 1e-12
#: The same through the conditioning of the base parameters.
FITTED = 1e-9
#: Machines whose kernels take NVRTC more than some seconds.
BY_NIGHT = ("delta", "rcid", "gantry_tau_5dof")


@pytest.fixture(scope="module")
def model():
    return Model(load("five_bar"), evaluator=Interpreted())


@pytest.fixture(scope="module")
def cuda(tmp_path_factory):
    return Cuda(device=Processor(), folder=tmp_path_factory.mktemp("folds"))


def samples(model, n=700):
    inputs = motion("five_bar", "platform", n)
    moved = [inputs[name] for name in ("position", "velocity", "acceleration")]
    Y = model.platform.regressor(*moved)
    forces = Y @ model.pi + 0.01 * np.random.default_rng(5).normal(size=Y.shape[:2])
    return moved, Y, forces


@needs_compiler
@pytest.mark.parametrize("chunks", [1, 3, 8])
def test_triangles_are_those_of_lapack(model, cuda, chunks):
    """R^T R is unique, R up to signs of rows; both routes hold every sample once, in chunks that fill no block."""
    moved, Y, forces = samples(model)
    folded = RegressorFold(model, model.platform, cuda, chunks=chunks)(*moved, forces)
    assert (folded.samples, folded.triangles.shape[0]) == (700, 2)
    for k, triangle in enumerate(folded.triangles):
        rows = np.column_stack([Y[:, k], forces[:, k]])
        assert np.array_equal(triangle, np.triu(triangle))
        assert (
            np.abs(triangle.T @ triangle - rows.T @ rows).max() < SAME * np.abs(rows.T @ rows).max()
        )
        singular = np.linalg.svd(rows, compute_uv=False)
        assert (
            np.abs(np.linalg.svd(triangle, compute_uv=False) - singular).max() < SAME * singular[0]
        )


@needs_compiler
def test_estimates_are_those_of_the_processor(model, cuda):
    moved, Y, forces = samples(model)
    folded = RegressorFold(model, model.platform, cuda)(*moved, forces)
    names, units = zip(
        *((parameter.name, parameter.unit) for parameter in model.parameters), strict=True
    )
    outputs, output_units = model.output_ports("actuators")
    data = RegressionData(
        regressor=Y,
        forces=forces,
        parameters=names,
        parameter_units=units,
        outputs=outputs,
        output_units=output_units,
    )
    here = condense_parts([data])
    assert (folded.unknowns, folded.unknown_units, folded.outputs) == (
        here.unknowns,
        here.unknown_units,
        here.outputs,
    )
    (base, estimate), (expected_base, expected) = (
        estimate_condensed(each, WeightedLeastSquares()) for each in (folded, here)
    )
    assert np.array_equal(base.independent, expected_base.independent)
    assert np.abs(estimate.values - expected.values).max() < FITTED * np.abs(expected.values).max()
    deviations = expected.standard_deviations
    assert (
        np.abs(estimate.standard_deviations - deviations).max() < FITTED * np.abs(deviations).max()
    )


@needs_compiler
def test_bad_samples_are_named_by_their_chunk(model, cuda):
    moved, _, forces = samples(model)
    fold = RegressorFold(model, model.platform, cuda, chunks=4)
    broken = forces.copy()
    broken[300, 1] = np.nan
    with pytest.raises(PoseError, match="samples 192 to 383 of 700"):
        fold(*moved, broken)
    far = [moved[0].copy(), *moved[1:]]
    far[0][699] = 9.0
    with pytest.raises(PoseError, match="samples 576 to 699 of 700"):
        fold(*far, forces)
    with pytest.raises(InputError, match=r"forces: has shape \(700, 1\), needs \(700, 2\)"):
        fold(*moved, forces[:, :1])


@pytest.mark.parametrize(
    "name", ["five_bar", *(pytest.param(name, marks=pytest.mark.nightly) for name in BY_NIGHT)]
)
def test_it_compiles_for_a_gpu_and_shares_what_a_block_may(name, tmp_path):
    extra("nvidia.cuda_nvrtc")
    machine = Model(load(name), evaluator=Interpreted())
    fold = RegressorFold(machine, machine.platform, Cuda(device=Processor(), folder=tmp_path))
    code = compile_cuda(fold.text, folder=tmp_path)
    assert {kernel.name for kernel in code.kernels} == {"tl_rows", "tl_join"}
    assert all(kernel.registers <= 255 for kernel in code.kernels)
    assert fold.shared <= MAX_SHARED_BYTES
