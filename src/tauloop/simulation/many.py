"""Many starts of one machine at once: in one compiled call, sampled at given times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import partial

import numpy as np

from tauloop.common.datasets import TIME, Variable, columns, time_axis
from tauloop.common.errors import InputError, Problem
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic
from tauloop.compiler.c.calling.threads import LARGEST_PIECE, in_pieces
from tauloop.compiler.c.printing.rows import RowKernel
from tauloop.equations.assembly.limits import MotionRange
from tauloop.equations.ports import coordinate_units, numbers, velocity_units
from tauloop.mechanism.omissions import omission_diagnostics
from tauloop.model import Model
from tauloop.simulation.forces import ConstantForce
from tauloop.simulation.simulation import Simulator, kept
from tauloop.simulation.stepping.compiled import CompiledStepper
from tauloop.simulation.stepping.starts import many_steps, starts_kernel
from tauloop.simulation.stepping.steps import Ending, ManySteps


@dataclass(frozen=True, slots=True, kw_only=True)
class ManySimulations(Result):
    """N motions of one machine, each at the same T times; not a number where a motion ended earlier.

    Attributes:
        time: s (T,).
        q, v: coordinates and velocities (N, T, n_q), (N, T, n_v).
        reached: times to which the motions came (N,), s.
        endings: why they ended.
        steps: steps of each (N,).
        energy_error: largest energy missing from T + V - work + loss, over a motion's largest
            kinetic energy (N,); not a number where a rod has no energy.
        residual: largest residual of all loop equations (N,), m; pure numbers count by the
            characteristic length.
        model: of the machine.
    """

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    reached: np.ndarray
    endings: tuple[Ending, ...]
    steps: np.ndarray
    energy_error: np.ndarray
    residual: np.ndarray
    model: Model = field(repr=False)

    def variables(self) -> Iterator[Variable]:
        """All coordinates and velocities, over `simulation` and `time`; and how far and how well each came."""
        topology, over = self.model.topology, ("simulation", *TIME)
        yield time_axis(self.time)
        yield from columns(
            "coordinate", topology.coordinate_names, coordinate_units(topology), self.q, over
        )
        yield from columns(
            "velocity", topology.velocity_names, velocity_units(topology), self.v, over
        )
        for name, unit in {
            "reached": "s",
            "steps": "",
            "energy_error": "",
            "residual": "m",
        }.items():
            yield Variable(name=name, values=getattr(self, name), over=over[:1], unit=unit)


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

    In machine code they are shared out over the `threads` of the evaluator; on a device
    (`evaluator=tl.gpu.Cuda()`) an explicit integrator takes each start in a thread of its own; else
    they are simulated one after the other.

    Args:
        simulator: the machine, its route and its integrator; without wrench.
        duration: s.
        q: start coordinates (N, n_q).
        v: start velocities (N, n_v); rest without them.
        force: actuator forces (n_u,) or (N, n_u), N or N m; none without it.
        samples: times at which the motions come back, from zero to the duration.

    Raises:
        InputError: arrays that do not fit; a duration or samples that are not positive; a simulator
            with a wrench.
        AssemblyError: a start is not assembled.
    """
    q = np.atleast_2d(numbers(q, "q"))
    v = (
        np.zeros((len(q), simulator.model.topology.n_v))
        if v is None
        else np.atleast_2d(numbers(v, "v"))
    )
    forces = _checked(simulator, duration, q, force, samples)
    y = simulator.system.encode_many(q, v)
    time = np.linspace(0.0, duration, samples)
    parts, order = [], []
    for chosen, where in simulator.by_branch(q):
        chosen.require_branch(y[where], q[where])
        parts.append(_motions(chosen, [array[where] for array in (y, q, v, forces)], time))
        order.append(where)
    arrays = parts[0]
    if len(parts) > 1:
        back = np.argsort(np.concatenate(order))
        arrays = [np.concatenate(several)[back] for several in zip(*parts, strict=True)]
    q, v, reached, endings, steps, error, residual, least, greatest, outside = arrays
    passed = MotionRange(least=least, greatest=greatest, outside=outside)
    return ManySimulations(
        diagnostics=(
            *_diagnostics(endings, error, residual, simulator.model.assembly.loops.length),
            *simulator.model.limits.diagnostics(q, time, passed),
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
    """Motions from starts on the simulator's own branch.

    Args:
        simulator: of the branch.
        starts: states, coordinates, velocities and forces (N, ...).
        time: at which states are wanted (T,), s.

    Returns:
        What `ManySimulations` has of each, up to its residual; and what `MotionRange` has.
    """
    n, evaluator, many = len(starts[0]), simulator.model.evaluator, _one_by_one
    work, pieces = n * len(time), False
    if isinstance(simulator.stepper, CompiledStepper):
        many, pieces = _in_machine_code, True
    elif simulator.stepper.method.tableau is not None and evaluator.wants_code(
        simulator.system.rate.program, work
    ):
        kernel = starts_kernel(simulator.stepper, evaluator)
        many = _one_by_one if kernel is None else partial(_in_kernel, kernel)

    def moved(part: slice) -> Sequence[np.ndarray]:
        return _looked_at(simulator, many(simulator, [array[part] for array in starts], time), work)

    if not pieces:
        return moved(slice(0, n))
    return in_pieces(n, evaluator.threads, moved, least=0, most=LARGEST_PIECE // len(time))


def _in_machine_code(
    simulator: Simulator, starts: Sequence[np.ndarray], time: np.ndarray
) -> ManySteps:
    y, q, _, forces = starts
    assert isinstance(simulator.stepper, CompiledStepper)
    return simulator.stepper.many(y, forces, q, float(time[-1]), time)


def _in_kernel(
    kernel: RowKernel, simulator: Simulator, starts: Sequence[np.ndarray], time: np.ndarray
) -> ManySteps:
    y, q, _, forces = starts
    held = np.broadcast_to(forces, (len(y), simulator.system.acting))
    return many_steps(kernel, simulator.stepper, (y, q, held), float(time[-1]), time)


def _checked(
    simulator: Simulator, duration: float, q: np.ndarray, force: object | None, samples: int
) -> np.ndarray:
    """Forces of all starts (N, n_u)."""
    n_u, problems = len(simulator.model.mechanism.actuators), []
    forces = np.zeros(n_u) if force is None else numbers(force, "force")
    if forces.shape not in ((n_u,), (len(q), n_u)) or not np.isfinite(forces).all():
        what = f"is not {n_u} finite numbers, or such a row for each of {len(q)} starts"
        problems.append(Problem(where="force", what=what, remedy="one number for each actuator"))
    if not 0 < duration < np.inf:
        problems.append(
            Problem(
                where="duration",
                what=f"must be positive, got {duration:g} s",
                remedy="give seconds",
            )
        )
    if samples < 2:
        problems.append(
            Problem(
                where="samples", what=f"must be at least 2, got {samples}", remedy="such as 101"
            )
        )
    if simulator.system.with_wrench:
        problems.append(
            Problem(where="simulator", what="has a wrench", remedy="make one without, or use `run`")
        )
    if simulator.sensitivities:
        problems.append(
            Problem(
                where="simulator", what="has sensitivities", remedy="make one without, or use `run`"
            )
        )
    InputError.raise_if_any(problems)
    return np.broadcast_to(forces, (len(q), n_u))


def _one_by_one(simulator: Simulator, starts: Sequence[np.ndarray], time: np.ndarray) -> ManySteps:
    _, q, v, forces = starts
    n, duration = len(q), float(time[-1])
    y = np.full((n, len(time), simulator.system.size), np.nan)
    near = np.full((n, len(time), q.shape[1]), np.nan)
    runs = [
        simulator.run(duration, q=q[i], v=v[i], force=ConstantForce(tuple(forces[i])))
        for i in range(n)
    ]
    for i, run in enumerate(runs):
        inside = time <= run.time[-1]
        if len(run.steps):
            y[i, inside] = run.steps.at(time[inside])
            near[i, inside] = run.q[
                np.clip(
                    np.searchsorted(run.time, time[inside], side="right") - 1, 0, len(run.q) - 1
                )
            ]
    reached, steps = (
        np.array([run.time[-1] for run in runs]),
        np.array([len(run.steps) for run in runs]),
    )
    return ManySteps(
        y=y, near=near, reached=reached, endings=tuple(run.ending for run in runs), steps=steps
    )


def _looked_at(simulator: Simulator, runs: ManySteps, work: int) -> Sequence[np.ndarray]:
    """What `_motions` gives, of a piece of its work."""
    model, system = simulator.model, simulator.system
    known = np.isfinite(runs.y).all(axis=2)
    chosen = slice(None) if known.all() else known.ravel()
    states = runs.y.reshape(-1, system.size)[chosen]
    rows = [*system.decoded(states, runs.near.reshape(-1, model.topology.n_q)[chosen], work)]
    kinetic, potential = simulator.energies(rows[0], rows[1], work)
    balance = kinetic + potential - states[:, -2] + states[:, -1]
    rows += [system.residual(rows[0], work), kinetic, balance]
    q, v, residual, kinetic, balance = (_spread(array, known) for array in rows)
    largest = np.fmax.reduce(kinetic, axis=1, initial=0.0)
    missing = np.fmax.reduce(np.abs(balance - balance[:, :1]), axis=1, initial=0.0)
    error = np.divide(missing, largest, out=np.where(missing > 0, np.inf, 0.0), where=largest > 0)
    error[(np.isnan(kinetic) & known).any(axis=1)] = np.nan
    worst = np.fmax.reduce(residual, axis=1, initial=0.0)
    endings = np.array(runs.endings, dtype=object)
    passed = model.limits.passed(q)
    few = passed.least, passed.greatest, passed.outside
    return (q, v, runs.reached, endings, runs.steps, error, worst, *few)


def _spread(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Rows of the times that are known (N, T), in places of these, and not a number elsewhere."""
    if known.all():
        return rows.reshape(*known.shape, *rows.shape[1:])
    spread = np.full((*known.shape, *rows.shape[1:]), np.nan)
    spread[known] = rows
    return spread


def _diagnostics(
    endings: np.ndarray, error: np.ndarray, residual: np.ndarray, length: float
) -> tuple[Diagnostic, ...]:
    return (
        diagnostic(
            "share of the motions that reached the end",
            np.mean([ending is Ending.SUCCESS for ending in endings]),
            at_least=1.0,
            advice="see `endings` and `reached`; `Simulator.run` says more of one start",
        ),
        *kept(
            float(error.max()) if np.isfinite(error).all() else None, float(residual.max()), length
        ),
    )
