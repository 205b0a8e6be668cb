"""Systems under a sampled control, as machine code.

The control of a machine and the controls of its drive lines consist of routines for the rates, the
resets, and the calculations of a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, final

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.compiler.c.calling.evaluator import NOT_FINITE, Compiled
from tauloop.compiler.c.calling.library import Callback, Library
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.state import CONVERGED, SMALLEST_PIVOT
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.assembly.singular_kinds import singular_kind
from tauloop.integrate.events import Event, Occurrence
from tauloop.integrate.integrators import Method
from tauloop.integrate.outcome import StepOutcome
from tauloop.integrate.routine import Own
from tauloop.integrate.system import WORST, HybridSystem
from tauloop.integrate.tableau import Tableau

#: Number of events after which a run is stopped.
MAX_EVENTS = 10_000


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledRun:
    """Start, inputs and options of a run.

    Attributes:
        period: sampling period, s.
        inputs: inputs of every sample (N, n_i).
        y: initial state.
        held: forces before the first sample, followed by the values that samples pass on.
        q: initial coordinates.
        p: constants.
        method, max_steps: the integrator and its maximum number of steps.
        whole, change: delay from a sample to its effect: number of whole periods, and additional
            time in s.
        own, own_sizes: optional Python function of the sample, and sizes of its arguments.
        events: events to locate.
    """

    period: float
    inputs: np.ndarray
    y: np.ndarray
    held: np.ndarray
    q: np.ndarray
    p: np.ndarray
    method: Method
    max_steps: int
    whole: int = 0
    change: float = 0.0
    own: Own | None = None
    own_sizes: tuple[int, int] = (0, 0)
    events: Sequence[Event] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledTrace:
    """Result of a run, for the samples that it reached.

    Attributes:
        states, modes, held: states, modes and applied results at each sample (N, n).
        outcome: reason for the end of the run, a value of `StepOutcome`.
        end: time at which the run ended, s.
        steps, events: numbers of steps of the integrator and of events.
        worst: smallest discriminant of the closed-form loop solutions, smallest pivot relative to
            its typical magnitude, and largest loop residual of the run (3,).
        failed: the same three values of the last unreliable evaluation (3,); NaN if there was none.
        occurrences: events in the order of time.
    """

    states: np.ndarray
    modes: np.ndarray
    held: np.ndarray
    outcome: int
    end: float
    steps: int
    events: int
    worst: np.ndarray
    failed: np.ndarray
    occurrences: tuple[Occurrence, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the run reached its end or a terminal event."""
        return StepOutcome(self.outcome).is_success

    def early_end(self, assembly: Assembly, q: np.ndarray, when: str) -> str:
        """Return the reason for an early end near coordinates (n_q,).

        `when` is a text for the time, for the message.
        """
        discriminant, pivot, residual = self.failed
        known: dict[int, str] = {
            StepOutcome.MAX_STEPS: f"too many steps {when}",
            StepOutcome.CHATTERING: f"too many events {when}",
            StepOutcome.STEP_TOO_SMALL: f"no step is short enough for the tolerances {when}: the "
            "motion is unstable, or too stiff",
        }
        if self.outcome in known:
            return known[self.outcome]
        if NOT_FINITE < discriminant < 0 or residual >= CONVERGED:
            return (
                f"a loop does not close {when}: out of reach (residual {residual:.3g} "
                "characteristic lengths)"
            )
        if pivot <= SMALLEST_PIVOT:
            kind = singular_kind(assembly, q)
            return f"singular pose ({kind}) {when}: a pivot is {pivot:.3g} of its typical size"
        return f"the motion is no longer finite {when}"

    def diagnostics(self, whole: int, end: str) -> tuple[Diagnostic, ...]:
        """Return diagnostics: fraction of completed samples, smallest pivot, largest residual."""
        _, pivot, residual = map(float, self.worst)
        return (
            diagnostic(
                "completed fraction of the samples",
                len(self.states) / whole,
                at_least=None if self.outcome == StepOutcome.EVENT else 1.0,
                advice=f"the run ended early ({end}): remove this cause, or shorten the run",
            ),
            diagnostic(
                "smallest pivot relative to its typical size",
                pivot if pivot < 1e300 else None,
                at_least=SMALLEST_PIVOT,
                advice="the motion came near a singularity: keep away from it, or shorten the step",
            ),
            diagnostic(
                "largest loop residual relative to the characteristic length",
                residual,
                at_most=CONVERGED,
                advice="a loop did not close: keep away from singularities, or shorten the step",
            ),
        )


#: Callback of a run without a Python function.
_NO_CALLBACK = Callback(None, 0, 0)


def _event_function(system: HybridSystem, events: Sequence[Event]) -> Own | None:
    """Return the function that computes the events' values from coordinates and velocities.

    It is None without events.
    """
    if not events:
        return None

    def call(time: float, known: np.ndarray, values: np.ndarray) -> None:
        arguments = (
            np.array([time]),
            known[None, : system.coordinates].copy(),
            known[None, system.coordinates :].copy(),
        )
        values[:] = [event.function(*arguments)[0] for event in events]

    return call


def _occurrence(system: HybridSystem, event: Event, time: float, known: np.ndarray) -> Occurrence:
    q, v = known[: system.coordinates].copy(), known[system.coordinates :].copy()
    return Occurrence(name=event.name, time=time, q=q, v=v, is_terminal=event.is_terminal)


@final
class CompiledSamples:
    """Runs of a system in machine code, which is compiled on demand.

    The length of a run determines which compiler is used.
    """

    _SIGNATURE: ClassVar[str] = "ndld" + "d" * 5 + "**n" + "*" * 14

    def __init__(self, system: HybridSystem, evaluator: Compiled) -> None:
        """Store a system, and the evaluator that chooses its compiler."""
        self.system, self._evaluator = system, evaluator
        self._compiled: dict[tuple[Tableau | None, int, bool], Callable[..., int]] = {}

    def _code(self, course: SampledRun) -> Callable[..., int]:
        """Return the code of a run.

        Raises:
            EngineError: there is no compiler, or the compiler fails.
        """
        method, events = course.method.tableau, len(course.events)
        evaluations = len(course.inputs) * course.method.evaluations(course.period)
        key = method, events, self._evaluator.is_large(evaluations)
        if key not in self._compiled:
            loop = c_file("tauloop.integrate", "sampled.c")
            source = self.system.source(method, loop, events=events)
            compiler = self._evaluator.compiler(evaluations)
            library = Library.create(source, compiler, folder=self._evaluator.folder)
            self._compiled[key] = library.function("tl_sampled", self._SIGNATURE, "n")
        return self._compiled[key]

    def __call__(self, course: SampledRun) -> SampledTrace:
        """Run the system.

        Raises:
            EngineError: there is no compiler, or the compiler fails.
            Exception: any exception of the Python functions.
        """
        system = self.system
        n, event_count = len(course.inputs), len(course.events)
        y = np.array(course.y, dtype=float)
        z = np.array(course.held, dtype=float)
        q = np.array(course.q, dtype=float)
        s = np.array([*system.modes, *np.zeros(event_count)])
        states = np.empty((n, system.states))
        modes = np.empty((n, len(system.modes)))
        held = np.empty((n, system.held))
        known = system.coordinates + system.velocities
        occurrences = np.empty((MAX_EVENTS if event_count else 0, 2 + known))
        worst = np.array(WORST)
        report = np.zeros(5)
        event_kinds = np.array(
            [[event.direction, event.is_terminal] for event in course.events], dtype=float
        )
        own = watch = _NO_CALLBACK
        if course.own:
            own = Callback(course.own, *course.own_sizes)
        if event_count:
            watch = Callback(_event_function(system, course.events), known, event_count)
        completed = self._code(course)(
            *(n, course.period, course.whole, course.change),
            *course.method.numbers,
            float(course.max_steps),
            *(own.pointer, watch.pointer, len(occurrences), event_kinds),
            *(
                np.ascontiguousarray(part, dtype=float)
                for part in (course.inputs, course.p, course.held)
            ),
            *(q, y, s, z, states, modes, held, occurrences, worst, report),
        )
        own.raise_error()
        watch.raise_error()
        return SampledTrace(
            states=states[:completed],
            modes=modes[:completed],
            held=held[:completed],
            outcome=int(report[0]),
            end=float(report[1]),
            steps=int(report[2]),
            events=int(report[3]),
            worst=worst[:3],
            failed=worst[3:],
            occurrences=tuple(
                _occurrence(system, course.events[int(row[0])], float(row[1]), row[2:])
                for row in occurrences[: int(report[4])]
            ),
        )
