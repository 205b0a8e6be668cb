"""Simulation of a machine from many starts in a single compiled call, sampled at given times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.datasets import (
    OVER_TIME,
    channels,
    quantity_over,
)
from tauloop.common.errors import InputError, Problem
from tauloop.common.plain import OMITTED, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic
from tauloop.compiler.c.calling.evaluator import Compiled
from tauloop.compiler.c.calling.threads import LARGEST_PIECE, in_pieces
from tauloop.equations.assembly.limits import MotionRange
from tauloop.equations.ports import numbers
from tauloop.mechanism.model import omission_diagnostics
from tauloop.model import Model
from tauloop.simulation.simulation import Simulator, balance_diagnostics
from tauloop.simulation.stepping.starts import many_steps, starts_kernel
from tauloop.simulation.stepping.steps import Ending, ManySteps


@dataclass(frozen=True, slots=True, kw_only=True)
class ManySimulations(Result):
    """N motions of a machine at the same T times; NaN after the early end of a motion.

    Attributes:
        time: sample times (T,), s.
        q, v: coordinates and velocities (N, T, n_q), (N, T, n_v).
        reached: time at the end of each motion (N,), s.
        endings: reasons why the motions ended (N,).
        steps: number of steps of each motion (N,).
        energy_error: largest error of the balance T + V - work + loss, divided by the largest
            kinetic energy of the motion (N,); NaN if the kinetic energy of a rod is not defined.
        residual: largest residual of all loop equations (N,), m; dimensionless equations are
            multiplied by the characteristic length.
        model: model of the machine.
    """

    time: np.ndarray = field(metadata=OVER_TIME)
    q: np.ndarray = field(
        metadata=json_keys(nullable=True)
        | channels("simulation", "time", port="model.coordinate_port", name="coordinate")
    )
    v: np.ndarray = field(
        metadata=json_keys(nullable=True)
        | channels("simulation", "time", port="model.velocity_port", name="velocity")
    )
    reached: np.ndarray = field(metadata=quantity_over("simulation", unit="s"))
    endings: tuple[Ending, ...]
    steps: np.ndarray = field(metadata=quantity_over("simulation"))
    energy_error: np.ndarray = field(
        metadata=json_keys(nullable=True) | quantity_over("simulation")
    )
    residual: np.ndarray = field(
        metadata=json_keys(nullable=True) | quantity_over("simulation", unit="m")
    )
    model: Model = field(repr=False, metadata=OMITTED)


def simulate_many(
    simulator: Simulator,
    duration: float,
    q: object,
    v: object | None = None,
    *,
    force: object | None = None,
    samples: int = 101,
) -> ManySimulations:
    """Simulate from many starts under constant forces.

    Machine code divides the starts among the `threads` of the evaluator. On a device
    (`evaluator=tl.export.gpu.Cuda()`) an explicit integrator computes each start in its own thread.

    Args:
        simulator: machine, route and integrator; without a wrench.
        duration: duration, s.
        q: start coordinates (N, n_q).
        v: start velocities (N, n_v); zero by default.
        force: actuator forces (n_u,) or (N, n_u), N or N m; zero by default.
        samples: number of sample times, from zero to the duration.

    Returns:
        Motions from all starts; NaN after the early end of a motion.

    Raises:
        InputError: an array has a wrong shape, the duration is not positive, there are fewer than
            two samples, or the simulator has a wrench or sensitivities.
        AssemblyError: a start is not assembled.
    """
    q = np.atleast_2d(numbers(q, "q"))
    v = (
        np.zeros((len(q), simulator.model.topology.n_v))
        if v is None
        else np.atleast_2d(numbers(v, "v"))
    )
    forces = _checked_forces(simulator, duration, q, force, samples)
    y = simulator.system.encode_many(q, v)
    time = np.linspace(0.0, duration, samples)
    groups, indices = [], []
    for branch_simulator, rows in simulator.by_branch(q):
        branch_simulator.require_branch(y[rows], q[rows])
        starts = [array[rows] for array in (y, q, v, forces)]
        groups.append(_motions(branch_simulator, starts, time))
        indices.append(rows)
    arrays = groups[0]
    if len(groups) > 1:
        order = np.argsort(np.concatenate(indices))
        arrays = [np.concatenate(columns)[order] for columns in zip(*groups, strict=True)]
    q, v, reached, endings, steps, error, residual, least, greatest, outside = arrays
    motion_range = MotionRange(least=least, greatest=greatest, outside=outside)
    return ManySimulations(
        diagnostics=(
            *_diagnostics(endings, error, residual, simulator.model.assembly.loops.length),
            *simulator.model.limits.diagnostics(q, time, motion_range),
            *omission_diagnostics(simulator.model.mechanism),
        ),
        provenance=simulator.provenance(duration),
        time=time,
        q=q,
        v=v,
        reached=reached,
        endings=tuple(endings),
        steps=steps,
        energy_error=error,
        residual=residual,
        model=simulator.model,
    )


def _motions(
    simulator: Simulator, starts: Sequence[np.ndarray], time: np.ndarray
) -> Sequence[np.ndarray]:
    """Return motions from starts on the simulator's branch.

    Args:
        simulator: simulator of the branch.
        starts: states, coordinates, velocities and forces (N, ...).
        time: sample times (T,), s.

    Returns:
        The arrays of `ManySimulations` from `q` to `residual`, followed by `MotionRange`'s arrays.
    """
    n = len(starts[0])
    evaluator = simulator.model.evaluator
    work = n * len(time)
    is_on_device = (
        not isinstance(evaluator, Compiled)
        and simulator.stepper.method.tableau is not None
        and evaluator.wants_code(simulator.system.rate.program, work)
    )
    if is_on_device:
        kernel = starts_kernel(simulator.stepper, evaluator)
    else:
        kernel = simulator.stepper.starts_kernel(float(time[-1]), n)

    all_y, all_q, _, all_forces = starts

    def motions_of(rows: slice) -> Sequence[np.ndarray]:
        y, q = all_y[rows], all_q[rows]
        forces = np.broadcast_to(all_forces[rows], (len(y), simulator.system.acting))
        runs = many_steps(kernel, simulator.stepper, (y, q, forces), float(time[-1]), time)
        return _energy_and_residuals(simulator, runs, work)

    if is_on_device:
        return motions_of(slice(0, n))
    return in_pieces(n, evaluator.threads, motions_of, least=0, most=LARGEST_PIECE // len(time))


def _checked_forces(
    simulator: Simulator, duration: float, q: np.ndarray, force: object | None, samples: int
) -> np.ndarray:
    """Check the input, and return the forces of all starts (N, n_u)."""
    n_u, problems = len(simulator.model.mechanism.actuators), []
    forces = np.zeros(n_u) if force is None else numbers(force, "force")
    if forces.shape not in ((n_u,), (len(q), n_u)) or not np.isfinite(forces).all():
        what = f"needs {counted(n_u, 'finite number')}, or a row of them for each start ({len(q)})"
        remedy = "give one number per actuator"
        problems.append(Problem(where="force", what=what, remedy=remedy))
    if not 0 < duration < np.inf:
        problems.append(
            Problem(
                where="duration",
                what=f"must be positive and finite, got {duration:g} s",
                remedy="give a time such as 1.0",
            )
        )
    if samples < 2:
        problems.append(
            Problem(
                where="samples",
                what=f"must be at least 2, got {samples}",
                remedy="give a larger number, such as 101",
            )
        )
    if simulator.system.with_wrench:
        problems.append(
            Problem(
                where="simulator",
                what="has a wrench",
                remedy="build a simulator without a wrench, or use `run`",
            )
        )
    if simulator.sensitivities:
        problems.append(
            Problem(
                where="simulator",
                what="has sensitivities",
                remedy="build a simulator without sensitivities, or use `run`",
            )
        )
    InputError.raise_if_any(problems)
    return np.broadcast_to(forces, (len(q), n_u))


def _energy_and_residuals(simulator: Simulator, runs: ManySteps, work: int) -> Sequence[np.ndarray]:
    """Return the arrays that `_motions` returns, for some of its starts.

    Args:
        simulator: simulator of the branch.
        runs: the integrations.
        work: total number of samples of all starts.
    """
    model, system = simulator.model, simulator.system
    is_reached = np.isfinite(runs.y).all(axis=2)
    rows = slice(None) if is_reached.all() else is_reached.ravel()
    states = runs.y.reshape(-1, system.size)[rows]
    near = runs.near.reshape(-1, model.topology.n_q)[rows]
    q, v = system.decoded(states, near, work)
    kinetic, potential = simulator.energies(q, v, work)
    balance = kinetic + potential - states[:, -2] + states[:, -1]
    residual = system.residual(q, work)
    q = _over_all_samples(q, is_reached)
    v = _over_all_samples(v, is_reached)
    residual = _over_all_samples(residual, is_reached)
    kinetic = _over_all_samples(kinetic, is_reached)
    balance = _over_all_samples(balance, is_reached)
    largest = np.fmax.reduce(kinetic, axis=1, initial=0.0)
    change = np.fmax.reduce(np.abs(balance - balance[:, :1]), axis=1, initial=0.0)
    error = np.divide(change, largest, out=np.where(change > 0, np.inf, 0.0), where=largest > 0)
    error[(np.isnan(kinetic) & is_reached).any(axis=1)] = np.nan
    largest_residual = np.fmax.reduce(residual, axis=1, initial=0.0)
    endings = np.array(runs.endings, dtype=object)
    motion_range = model.limits.passed(q)
    ranges = motion_range.least, motion_range.greatest, motion_range.outside
    return (q, v, runs.reached, endings, runs.steps, error, largest_residual, *ranges)


def _over_all_samples(rows: np.ndarray, is_reached: np.ndarray) -> np.ndarray:
    """Return rows of the reached samples as an array over all samples (N, T), NaN elsewhere."""
    if is_reached.all():
        return rows.reshape(*is_reached.shape, *rows.shape[1:])
    result = np.full((*is_reached.shape, *rows.shape[1:]), np.nan)
    result[is_reached] = rows
    return result


def _diagnostics(
    endings: np.ndarray, error: np.ndarray, residual: np.ndarray, length: float
) -> tuple[Diagnostic, ...]:
    return (
        diagnostic(
            "fraction of the motions that reached the end",
            np.mean([ending is Ending.SUCCESS for ending in endings]),
            at_least=1.0,
            advice="see `endings` and `reached`; for details simulate a single initial state with "
            "`Simulator.run`",
        ),
        *balance_diagnostics(
            float(error.max()) if np.isfinite(error).all() else None, float(residual.max()), length
        ),
    )
