"""Paths followed by machine code end where NumPy's end, alone or beside others, on any number of threads."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from compiled_machines import compilers
from extras import extra
from python_paths import track
from scipy.optimize import linear_sum_assignment

from tauloop import Model, assembly_modes, load, working_modes
from tauloop.common.errors import EngineError
from tauloop.compiler.c.calling import library
from tauloop.compiler.c.calling.evaluator import Compiled
from tauloop.export.gpu import Cuda, Processor, compile_cuda
from tauloop.kinematics.homotopy import code as code_module
from tauloop.kinematics.homotopy.code import PathFollower, PrintedSystem, paths_text
from tauloop.kinematics.homotopy.evaluation import ComplexFunction
from tauloop.kinematics.homotopy.paths import ParameterLine, PathEnding, TrackingOptions
from tauloop.kinematics.modes import modes as modes_module

needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: Newton's last step is below 1e-10 of the size, so what is left of the error is its square, and
#: rounding.
SAME = 1e-11


class Conics:
    """x^n = y_0 y_1 / 3 and (x + z)^2 + x (y_1 / (1 + y_0)) = 2, with linear terms, or without."""

    def __init__(self, power: int, ways: int = 0) -> None:
        x, y, rate = ca.SX.sym("x", 2), ca.SX.sym("y", 2), ca.SX.sym("r", 2)
        F = ca.vertcat(
            x[0] ** power - y[0] * y[1] / 3, (x[0] + x[1]) ** 2 + x[0] * (y[1] / (1 + y[0])) - 2
        )
        function = ca.Function(
            "f", [x, y, rate], [F, ca.densify(ca.jacobian(F, x)), ca.jtimes(F, y, rate)]
        )
        rng = np.random.default_rng(3)
        self._C = rng.normal(size=(ways, 2, 2)) + 1j * rng.normal(size=(ways, 2, 2))
        self._plain = ComplexFunction(function)
        self.printed = PrintedSystem(function=function, terms=self._C)

    def linearized(
        self, x: np.ndarray, y: np.ndarray, y_rate: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        (F, J, rate), s, s_rate = self._plain(x, y[:, :2], y_rate[:, :2]), y[:, 2:], y_rate[:, 2:]
        terms = np.einsum("kij,nj->nki", self._C, x)
        wide = F[:, :, 0] + np.einsum("nk,nki->ni", s, terms)
        turned = rate[:, :, 0] + np.einsum("nk,nki->ni", s_rate, terms)
        return wide, J + np.einsum("nk,kij->nij", s, self._C), turned


def many_lines(system: Conics, n: int, seed: int = 1) -> tuple[np.ndarray, ParameterLine]:
    """Random points, and lines from the systems that they solve to random ones."""
    rng = np.random.default_rng(seed)

    def numbers(*shape: int) -> np.ndarray:
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)

    x, known = numbers(n, 2), 2 + len(system.printed.terms)
    y0 = numbers(n, known)
    F, _, _ = system.linearized(x, y0, np.zeros_like(y0))
    return x, ParameterLine(y0=y0, y1=numbers(n, known), e0=-F, e1=numbers(n, 2))


@needs_compiler
@pytest.mark.parametrize("ways", [0, 2])
def test_paths_end_where_those_of_numpy_end(ways, tmp_path):
    system = Conics(3, ways)
    x, line = many_lines(system, 150)
    here = track(system, x, line)
    there = PathFollower(Compiled(folder=tmp_path))(system, x, line)
    assert here.is_regular.mean() > 0.9
    assert np.array_equal(here.endings, there.endings)
    assert here.steps == there.steps
    good = here.is_regular
    assert np.abs(here.x - there.x)[good].max() < SAME * np.abs(here.x[good]).max()
    assert (there.t[good] == 1.0).all()


@needs_compiler
def test_a_system_is_printed_once(tmp_path, monkeypatch):
    """par4 spent an eighth of a search on printing its system for each of 150 batches of paths."""
    printed = []

    def counted(system: PrintedSystem) -> str:
        printed.append(system)
        return paths_text(system)

    monkeypatch.setattr(code_module, "paths_text", counted)
    follow = PathFollower(Compiled(folder=tmp_path))
    for system in (Conics(3, 0), Conics(3, 2)):
        x, line = many_lines(system, 3)
        first, second = (follow(system, x, line) for _ in range(2))
        assert np.array_equal(first.x, second.x)
    assert len(printed) == 2


@needs_compiler
def test_no_number_depends_on_threads_or_on_the_paths_beside(tmp_path):
    system = Conics(4, 2)
    x, line = many_lines(system, 90)
    whole, shared, gpu = (
        PathFollower(evaluator)(system, x, line)
        for evaluator in (
            Compiled(folder=tmp_path),
            Compiled(threads=3, folder=tmp_path),
            Cuda(device=Processor(), folder=tmp_path),
        )
    )
    for other in (shared, gpu):
        assert np.array_equal(whole.x, other.x)
        assert np.array_equal(whole.t, other.t)
    parts = {name: getattr(line, name)[31:32] for name in ("y0", "y1", "e0", "e1")}
    alone = PathFollower(Compiled(folder=tmp_path))(system, x[31:32], ParameterLine(**parts))
    assert np.array_equal(alone.x[0], whole.x[31])
    nobody = {name: getattr(line, name)[:0] for name in parts}
    assert PathFollower(Compiled(folder=tmp_path))(
        system, x[:0], ParameterLine(**nobody)
    ).x.shape == (0, 2)


@needs_compiler
def test_paths_to_multiple_solutions_and_to_infinity_are_no_regular_ones(tmp_path):
    """x^3 = y_0 y_1 / 3 with y_0 to zero, and x^-1 with y_0 to zero."""
    for power, expected, options in (
        (3, PathEnding.STEP_TOO_SMALL, TrackingOptions()),
        (-1, PathEnding.DIVERGED, TrackingOptions(infinity=1e4)),
    ):
        system = Conics(power)
        y0 = np.array([[0.6 + 0.3j, 1.0 + 0.0j]])
        x0 = (y0[0, 0] / 3) ** (1 / power)
        root = np.sqrt(2 - x0 * (1.0 / (1 + y0[0, 0]))) - x0
        zero = np.zeros((1, 2), dtype=complex)
        line = ParameterLine(y0=y0, y1=np.array([[0.0j, 1.0 + 0.0j]]), e0=zero, e1=zero)
        follow = PathFollower(Compiled(folder=tmp_path))
        for tracked in (
            follow(system, np.array([[x0, root]]), line, options),
            track(system, [[x0, root]], line, options),
        ):
            assert tracked.endings[0] == expected
            assert tracked.t[0] > 0.9


class Isotropic:
    """c^2 + s^2 = 1 and c + y s = 1: s = 2 y / (1 + y^2) is large, and badly conditioned, near y = i."""

    def __init__(self) -> None:
        x, y, rate = ca.SX.sym("x", 2), ca.SX.sym("y", 1), ca.SX.sym("r", 1)
        F = ca.vertcat(x[0] ** 2 + x[1] ** 2 - 1, x[0] + y * x[1] - 1)
        function = ca.Function(
            "f",
            [x, y, rate],
            [F, ca.densify(ca.jacobian(F, x)), ca.densify(ca.jtimes(F, y, rate))],
        )
        self._function = ComplexFunction(function)
        self.printed = PrintedSystem(function=function, terms=np.zeros((0, 2, 2)))

    def linearized(
        self, x: np.ndarray, y: np.ndarray, y_rate: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        F, J, rate = self._function(x, y, y_rate)
        return F[:, :, 0], J, rate[:, :, 0]


@needs_compiler
def test_a_solution_whose_accuracy_rounding_limits_is_regular(tmp_path):
    """Paths to Par4's badly conditioned modes were taken for paths to multiple solutions."""
    turned = np.exp(1j * np.linspace(-2.5, 2.5, 24))[:, None]
    start, end = np.full((24, 1), 1j * np.sqrt(1 - 1e-7)), 1j * np.sqrt(1 - 2e-7 * turned)
    s = 2 * start / (1 + start**2)
    zero = np.zeros((24, 2), dtype=complex)
    line = ParameterLine(y0=start, y1=end, e0=zero, e1=zero)
    follow = PathFollower(Compiled(folder=tmp_path))
    for follower in (follow, track):
        x = np.hstack([1 - start * s, s])
        strict = follower(Isotropic(), x, line, TrackingOptions(regular_ratio=0.0, infinity=1e9))
        tracked = follower(Isotropic(), x, line, TrackingOptions(infinity=1e9))
        assert not strict.is_regular.all()
        assert tracked.is_regular.all()
        assert tracked.x[:, 1:] == pytest.approx(2 * end / (1 + end**2), rel=1e-7)


@needs_compiler
def test_modes_are_the_same_with_threads_on_a_device_and_by_the_embedded_compiler(tmp_path):
    evaluators = (
        Compiled(folder=tmp_path),
        Compiled(threads=2, folder=tmp_path),
        Cuda(device=Processor(), folder=tmp_path),
        Compiled(at_least=10**9),
    )
    alone, shared, gpu, embedded = (
        assembly_modes(Model(load("five_bar"), evaluator=evaluator)) for evaluator in evaluators
    )
    assert list(tmp_path.glob("*.so"))
    for other in (shared, gpu):
        assert np.array_equal(alone.q, other.q)
        assert alone.blocks == other.blocks
    assert np.abs(alone.q - embedded.q).max() < 1e-12


def test_without_any_compiler_modes_state_the_remedy(monkeypatch):
    monkeypatch.setattr(library, "find_compiler", lambda: None)
    monkeypatch.setattr(library, "find_embedded_compiler", lambda: None)
    with pytest.raises(EngineError, match="C compiler: none was found"):
        assembly_modes(Model(load("five_bar")))


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["rcid", "gantry_tau_5dof"])
def test_modes_of_large_machines_are_those_of_numpy(name, tmp_path, monkeypatch):
    for modes in (assembly_modes, working_modes):
        coded = modes(Model(load(name), evaluator=Compiled(folder=tmp_path)))
        with monkeypatch.context() as patch:
            patch.setattr(modes_module, "PathFollower", lambda evaluator: track)
            plain = modes(Model(load(name)))
        # of modes alike rounding decides which comes first
        apart = np.abs(coded.q[:, None] - plain.q).max(axis=2)
        pairs = linear_sum_assignment(apart)
        assert apart[pairs].max() < 1e-9
        assert all(
            coded.modes[i].is_reference == plain.modes[j].is_reference
            for i, j in zip(*pairs, strict=True)
        )


@pytest.mark.parametrize("ways", [0, 2])
def test_it_compiles_for_a_gpu(ways, tmp_path):
    extra("nvidia.cuda_nvrtc")
    code = compile_cuda(paths_text(Conics(3, ways).printed), folder=tmp_path)
    assert 0 < code.kernel("tl_paths").registers <= 255
