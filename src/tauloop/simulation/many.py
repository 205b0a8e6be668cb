"""Many starts of one machine at once: in one compiled call, sampled at given times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

import numpy as np

from tauloop.assembly.ports import coordinate_units, numbers, velocity_units
from tauloop.datasets import TIME, Variable, columns, time_axis
from tauloop.errors import InputError, Problem
from tauloop.model import Model
from tauloop.records import dataclass
from tauloop.result import Evidence, Result
from tauloop.simulation.forces import ConstantForce
from tauloop.simulation.simulation import Simulator, kept
from tauloop.simulation.stepping.compiled import CompiledStepper
from tauloop.simulation.stepping.starts import many_steps, starts_kernel
from tauloop.simulation.stepping.steps import Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class ManySimulations(Result):
    """N motions of one machine, each at the same T times; not a number where a motion ended earlier.

    Attributes:
        time: s (T,).
        q, v: coordinates and velocities (N, T, n_q), (N, T, n_v).
        reached: times to which the motions came (N,), s.
        endings: why they ended.
        steps: steps of each (N,).
        energy_error: largest energy missing from T + V - work + loss, over a motion's largest kinetic energy (N,).
        residual: largest residual of all loop equations (N,), m or pure number.
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
        yield from columns("coordinate", topology.coordinate_names, coordinate_units(topology), self.q, over)
        yield from columns("velocity", topology.velocity_names, velocity_units(topology), self.v, over)
        for name, unit in {"reached": "s", "steps": "", "energy_error": "", "residual": "m"}.items():
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

    In machine code they are shared out over the `threads` of the evaluator; on a device (`evaluator=tl.gpu.Cuda()`) an
    explicit integrator takes each start in a thread of its own; else they are simulated one after the other.

    Args:
        simulator: the machine, its route and its integrator; without wrench.
        duration: s.
        q: start coordinates (N, n_q).
        v: start velocities (N, n_v); rest without them.
        force: actuator forces (n_u,) or (N, n_u), N or N m; none without it.
        samples: times at which the motions come back, from zero to the duration.

    Raises:
        InputError: arrays that do not fit; a duration or samples that are not positive; a simulator with a wrench.
        AssemblyError: a start is not assembled.
    """
    q = np.atleast_2d(numbers(q, "q"))
    v = np.zeros((len(q), simulator.model.topology.n_v)) if v is None else np.atleast_2d(numbers(v, "v"))
    forces = _checked(simulator, duration, q, force, samples)
    y = simulator.system.encode_many(q, v)
    time = np.linspace(0.0, duration, samples)
    parts, order = [], []
    for chosen, where in simulator.by_branch(q):
        chosen.require_branch(y[where], q[where])
        parts.append(_many(chosen, y[where], q[where], v[where], forces[where], time))
        order.append(where)
    result = parts[0] if len(parts) == 1 else _joined(parts, np.argsort(np.concatenate(order)))
    known = np.isfinite(result.q).all(axis=2)
    beyond = simulator.model.limits.evidence(result.q[known], np.broadcast_to(time, known.shape)[known])
    return replace(result, evidence=(*result.evidence, *beyond))


def _many(
    simulator: Simulator, y: np.ndarray, q: np.ndarray, v: np.ndarray, forces: np.ndarray, time: np.ndarray
) -> ManySimulations:
    """Simulations of starts on the simulator's own branch."""
    duration = float(time[-1])
    if isinstance(simulator.stepper, CompiledStepper):
        runs = simulator.stepper.many(y, forces, q, duration, time)
        return _result(simulator, time, runs.y, runs.near, runs.reached, runs.endings, runs.steps)
    evaluator, program = simulator.model.evaluator, simulator.system.rate.program
    if simulator.stepper.method.tableau is not None and evaluator.wants_code(program, len(y) * len(time)):
        kernel = starts_kernel(simulator.stepper, evaluator)
        if kernel is not None:
            held = np.broadcast_to(forces, (len(y), simulator.system.acting))
            runs = many_steps(kernel, simulator.stepper, (y, q, held), duration, time)
            return _result(simulator, time, runs.y, runs.near, runs.reached, runs.endings, runs.steps)
    return _one_by_one(simulator, duration, q, v, forces, time)


def _joined(parts: list[ManySimulations], order: np.ndarray) -> ManySimulations:
    """Simulations of several groups of starts, put in order."""

    def all_of(name: str) -> np.ndarray:
        return np.asarray(np.concatenate([getattr(part, name) for part in parts])[order])

    endings = [ending for part in parts for ending in part.endings]
    error, residual = all_of("energy_error"), all_of("residual")
    return replace(
        parts[0],
        q=all_of("q"),
        v=all_of("v"),
        reached=all_of("reached"),
        endings=tuple(endings[i] for i in order),
        steps=all_of("steps"),
        energy_error=error,
        residual=residual,
        evidence=_evidence(endings, error, residual),
    )


def _checked(simulator: Simulator, duration: float, q: np.ndarray, force: object | None, samples: int) -> np.ndarray:
    """Forces of all starts (N, n_u)."""
    n_u, problems = len(simulator.model.mechanism.actuators), []
    forces = np.zeros(n_u) if force is None else numbers(force, "force")
    if forces.shape not in ((n_u,), (len(q), n_u)) or not np.isfinite(forces).all():
        what = f"is not {n_u} finite numbers, or such a row for each of {len(q)} starts"
        problems.append(Problem(where="force", what=what, remedy="one number for each actuator"))
    if not 0 < duration < np.inf:
        problems.append(Problem(where="duration", what=f"must be positive, got {duration:g} s", remedy="give seconds"))
    if samples < 2:
        problems.append(Problem(where="samples", what=f"must be at least 2, got {samples}", remedy="such as 101"))
    if simulator.system.with_wrench:
        problems.append(Problem(where="simulator", what="has a wrench", remedy="make one without, or use `run`"))
    if simulator.sensitivities:
        problems.append(Problem(where="simulator", what="has sensitivities", remedy="make one without, or use `run`"))
    InputError.raise_if_any(problems)
    return np.broadcast_to(forces, (len(q), n_u))


def _one_by_one(
    simulator: Simulator, duration: float, q: np.ndarray, v: np.ndarray, forces: np.ndarray, time: np.ndarray
) -> ManySimulations:
    n, system = len(q), simulator.system
    y = np.full((n, len(time), system.size), np.nan)
    near = np.full((n, len(time), q.shape[1]), np.nan)
    runs = [simulator.run(duration, q=q[i], v=v[i], force=ConstantForce(tuple(forces[i]))) for i in range(n)]
    for i, run in enumerate(runs):
        inside = time <= run.time[-1]
        if len(run.steps):
            y[i, inside] = run.steps.at(time[inside])
            near[i, inside] = run.q[
                np.clip(np.searchsorted(run.time, time[inside], side="right") - 1, 0, len(run.q) - 1)
            ]
    reached, steps = np.array([run.time[-1] for run in runs]), np.array([len(run.steps) for run in runs])
    return _result(simulator, time, y, near, reached, tuple(run.ending for run in runs), steps)


def _result(
    simulator: Simulator,
    time: np.ndarray,
    y: np.ndarray,
    near: np.ndarray,
    reached: np.ndarray,
    endings: tuple[Ending, ...],
    steps: np.ndarray,
) -> ManySimulations:
    n, model, system = len(y), simulator.model, simulator.system
    known = np.isfinite(y).all(axis=2)
    chosen = slice(None) if known.all() else known.ravel()
    states, motion = y.reshape(-1, system.size)[chosen], near.reshape(-1, model.topology.n_q)[chosen]
    rows = [*system.decoded(states, motion)]
    kinetic, potential = simulator.energies(*rows)
    rows += [system.residual(rows[0]), kinetic, kinetic + potential - states[:, -2] + states[:, -1]]
    q, v, residual, kinetic, balance = (_spread(array, known) for array in rows)
    largest = np.fmax.reduce(kinetic, axis=1, initial=0.0)
    missing = np.fmax.reduce(np.abs(balance - balance[:, :1]), axis=1, initial=0.0)
    error = np.divide(missing, largest, out=np.where(missing > 0, np.inf, 0.0), where=largest > 0)
    worst = np.fmax.reduce(residual, axis=1, initial=0.0)
    has_energy = bool(np.isfinite(kinetic[known]).all())
    return ManySimulations(
        evidence=_evidence(endings, error if has_energy else np.full(n, np.nan), worst),
        provenance=simulator.provenance(float(time[-1])),
        time=time,
        q=q,
        v=v,
        reached=reached,
        endings=endings,
        steps=steps,
        energy_error=error,
        residual=worst,
        model=model,
    )


def _spread(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Rows of the times that are known (N, T), in places of these, and not a number elsewhere."""
    if known.all():
        return rows.reshape(*known.shape, *rows.shape[1:])
    spread = np.full((*known.shape, *rows.shape[1:]), np.nan)
    spread[known] = rows
    return spread


def _evidence(endings: Sequence[Ending], error: np.ndarray, residual: np.ndarray) -> tuple[Evidence, ...]:
    return (
        Evidence(
            name="share of the motions that reached the end",
            value=float(np.mean([ending is Ending.END for ending in endings])),
            lower=1.0,
            advice="see `endings` and `reached`; `Simulator.run` says more of one start",
        ),
        *kept(float(error.max()) if np.isfinite(error).all() else None, float(residual.max())),
    )
