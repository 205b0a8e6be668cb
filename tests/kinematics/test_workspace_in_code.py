"""Poses of large maps judged by machine code: the verdicts of NumPy, on any number of threads, on a device too."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_machines import compilers
from extras import extra

from tauloop import Model, WorkspaceOptions, load, workspace
from tauloop.compiler.c.calling.evaluator import Compiled, Interpreted
from tauloop.export.gpu import Cuda, Processor, compile_cuda
from tauloop.geometry.clearance import rod_clearance
from tauloop.kinematics.workspaces.code import MIN_COMPILED_POSES, PoseKernel
from tauloop.kinematics.workspaces.map import (
    FOLLOWING_STEPS,
    Reason,
    WorkspaceLimits,
    _PoseClassifier,
)
from tauloop.kinematics.workspaces.pose_axes import pose_axes

needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: Rounding of singular values by another method; relative to one, of figures that may be as small
#: as they like.
SAME = 1e-12
#: Where a motion in the null space is known to the root of that alone.
NEARLY_SINGULAR = 1e-6
LIMITS = WorkspaceLimits(singularity=0.05, clearance=0.02)
BY_NIGHT = (
    "rcid",
    "hexapod",
    "gantry_tau_5dof",
    "cable_robot",
    "agile_eye",
    "excavator",
    "pendulum_arm",
    "bennett",
)


def random_poses(model: Model, n: int) -> np.ndarray:
    """Values of all axes: many within reach, and many beyond, beyond stops and near singularities."""
    axes, rng = pose_axes(model), np.random.default_rng(7)
    size = np.where(np.array(axes.units) == "m", model.assembly.loops.length, 1.0)
    return axes.reference + rng.normal(size=(n, 1)) * rng.normal(size=(n, len(size))) * 0.4 * size


def figures(model: Model, poses: np.ndarray, *, coded: bool) -> tuple[dict[str, np.ndarray], float]:
    judge = _PoseClassifier(model, LIMITS)
    judge.prepared(len(poses), 0 if coded else len(poses) + 1)
    return judge(poses), judge.residual


@needs_compiler
@pytest.mark.parametrize(
    "name",
    [
        "five_bar",
        "delta",
        "cable_camera",
        *(pytest.param(name, marks=pytest.mark.nightly) for name in BY_NIGHT),
    ],
)
def test_verdicts_are_those_of_numpy(name, tmp_path):
    model = Model(load(name), evaluator=Compiled(folder=tmp_path))
    poses = random_poses(model, 1500)
    (here, residual), (there, coded_residual) = (
        figures(model, poses, coded=coded) for coded in (False, True)
    )
    assert list(tmp_path.glob("*.so"))
    assert len(np.unique(here["reason"])) > 1
    for figure in ("reason", "side"):
        assert np.array_equal(here[figure], there[figure]), figure
    followed = model.platform.runner.iterates
    # where Newton's method wanders without an end, each rounding leaves something else
    blamed = (here["reason"] != Reason.OUT_OF_REACH) | (not followed)
    assert np.array_equal(here["blame"][blamed], there["blame"][blamed])
    regular = ~(here["constraint"] < NEARLY_SINGULAR)
    for figure in ("serial", "parallel", "constraint", "clearance", "tension"):
        assert np.array_equal(np.isnan(here[figure]), np.isnan(there[figure])), figure
        known = ~np.isnan(here[figure]) & regular
        error = np.abs(here[figure] - there[figure]) / (1.0 + np.abs(here[figure]))
        assert error[known].max(initial=0.0) < SAME, figure
    assert max(residual, coded_residual) < 1e-12


@needs_compiler
@pytest.mark.parametrize("name", ["delta", "five_bar", "par4"])
def test_compiled_kinematics_blame_the_elements_that_interpreted_ones_do(name, tmp_path):
    """In closed form and by iteration; machine code reports the worst of all loops, not each of them."""
    plain = Model(load(name), evaluator=Interpreted())
    poses = random_poses(plain, 300)
    judges = [
        _PoseClassifier(model, LIMITS)
        for model in (plain, Model(load(name), evaluator=Compiled(folder=tmp_path)))
    ]
    assert judges[0].elements == judges[1].elements
    expected = judges[0](poses)
    assert len(np.unique(expected["blame"])) > 1
    reached = expected["reason"] != Reason.OUT_OF_REACH
    # where Newton's method wanders without an end, each rounding leaves something else
    compared = reached if plain.platform.runner.iterates else np.ones_like(reached)
    for chosen in (compared, reached):
        verdicts = judges[1](poses[chosen])
        for figure in ("reason", "blame", "side"):
            assert np.array_equal(expected[figure][chosen], verdicts[figure]), figure


@needs_compiler
def test_no_number_depends_on_threads_or_on_where_it_runs(tmp_path):
    evaluators = (
        Compiled(folder=tmp_path),
        Compiled(threads=3, folder=tmp_path),
        Cuda(device=Processor(), folder=tmp_path),
    )
    results = []
    for evaluator in evaluators:
        model = Model(load("delta"), evaluator=evaluator)
        results.append(figures(model, random_poses(model, 700), coded=True))
    (first, residual), *others = results
    for other, its_residual in others:
        assert residual == its_residual
        for name, array in first.items():
            assert np.array_equal(array, other[name], equal_nan=True), name


@needs_compiler
def test_a_large_map_is_that_of_the_interpreter(tmp_path):
    options = WorkspaceOptions(plane=("x", "y"), resolution=0.0045)
    coded, plain = (
        workspace(Model(load("five_bar"), evaluator=each), options)
        for each in (Compiled(folder=tmp_path), Interpreted())
    )
    assert coded.reason.size >= MIN_COMPILED_POSES
    assert list(tmp_path.glob("*.so"))
    assert np.array_equal(coded.reason, plain.reason)
    assert (coded.reason == Reason.CUT_OFF).any()
    assert coded.size == pytest.approx(plain.size)
    assert coded.diagnostics[0].value < 1e-12


def kernel_text(name: str) -> str:
    model = Model(load(name), evaluator=Interpreted())
    return PoseKernel(model, pose_axes(model), rod_clearance(model), FOLLOWING_STEPS).text


@pytest.mark.parametrize(
    "name", ["five_bar", pytest.param("gantry_tau_5dof", marks=pytest.mark.nightly)]
)
def test_it_compiles_for_a_gpu(name, tmp_path):
    extra("nvidia.cuda_nvrtc")
    kernel = compile_cuda(kernel_text(name), folder=tmp_path).kernel("tl_workspace")
    assert 0 < kernel.registers <= 255
