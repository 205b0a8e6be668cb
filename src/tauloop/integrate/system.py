"""Systems of routines (rates, resets, samples and projection), in C and as a Python problem.

Simulations, controls of machines, drive lines and machines with drive lines are such systems; they
differ in the loops around the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.precision import RETURNED, Precision
from tauloop.compiler.c.printing.single import SHORTEST_STEP
from tauloop.compiler.c.printing.source import number
from tauloop.integrate.interpreted import InterpretedProblem, Run
from tauloop.integrate.routine import Arrays, Own, Routine, functions_text
from tauloop.integrate.source import integrator_source
from tauloop.integrate.tableau import Tableau

#: Maximum number of projection steps; each squares the residual.
RETURNS = 8
#: Initial smallest discriminant, smallest pivot and largest residual; and those of the last
#: failure.
WORST = (1.0, 1e300, 0.0, np.nan, np.nan, np.nan)


@dataclass(frozen=True, kw_only=True, eq=False)
class HybridSystem:
    """A system whose parts are routines.

    Attributes:
        states, held, inputs: sizes of a state, of a sample's applied results, and of its inputs.
        coordinates, velocities: sizes of the machine's coordinates and velocities in `known`.
        modes: initial modes.
        rate, reset, sample: its routines.
        back: routine that projects the state after every step; its residual, if any, is in
            `rate`. It may have no calls.
        kept: number of values that a sample keeps for the next one, after the applied results.
        constants: number of the constants.
        directions: number of directions of derivatives, which are part of states, results, and
            constants.
    """

    states: int
    held: int = 0
    inputs: int
    coordinates: int = 0
    velocities: int = 0
    modes: tuple[float, ...] = ()
    rate: Routine = field(repr=False)
    reset: Routine = field(default_factory=Routine, repr=False)
    sample: Routine = field(default_factory=Routine, repr=False)
    back: Routine = field(default_factory=Routine, repr=False)
    kept: int = 0
    constants: int
    directions: int = 0

    def source(
        self,
        method: Tableau | None,
        loop: str,
        *,
        events: int = 0,
        known: int = 0,
        further: Mapping[str, Routine] | None = None,
        precision: Precision = Precision.DOUBLE,
    ) -> str:
        """Return the C text of a loop around the steps.

        Args:
            method: an explicit method; Radau IIA by default.
            loop: text of the loop.
            events: events to locate, of coordinates and velocities.
            known: number of values known in addition to rates if there are no events.
            further: other routines by name, which the loop calls.
            precision: precision of all numbers.
        """
        routines = {
            "rate": self.rate,
            "reset": self.reset,
            "sample": self.sample,
            "back": self.back,
        }
        routines |= further or {}
        figures: dict[str, int | str] = {
            "NY": self.states,
            "NS": len(self.modes),
            "NZ": self.held,
            "NI": self.inputs,
        }
        figures |= {
            "NQ": self.coordinates,
            "TL_EVENTS": events,
            "TL_ALONG": self.directions,
            "NP": self.constants,
        }
        figures |= {"TL_KNOWN": self.coordinates + self.velocities if events else known}
        figures |= {"TL_RETURNS": RETURNS if self.back.calls else 0}
        if precision is Precision.SINGLE:
            figures |= {
                f"TL_SMALLEST_{name}": number(SHORTEST_STEP) for name in ("STEP", "RETREAT")
            }
            for name, routine in routines.items():
                calls = tuple(call.limited(precision) for call in routine.calls)
                routines = routines | {name: replace(routine, calls=calls)}
        body = [
            *(f"#define {name} {figure}" for name, figure in figures.items()),
            f"#define TL_CONVERGED {number(precision.converged)}",
            f"#define TL_RETURNED {number(precision.returned)}",
            integrator_source(method),
            c_file("tauloop.integrate", "system.c"),
            loop,
            *(routine.text(f"system_{name}") for name, routine in routines.items()),
        ]
        functions = functions_text(routines.values(), single=precision is Precision.SINGLE)
        return "\n".join([functions, precision.written("\n".join(body))])


class RoutineProblem(InterpretedProblem):
    """A system in Python, as in `system.c`.

    Attributes:
        system: the system.
        arrays: arrays by name; `in` and `held` belong to the loop around the steps.
        worst: smallest discriminant, smallest pivot and largest residual so far, and those of the
            last failure (6,).
        law: sets the applied forces at every evaluation of rates; None if they are constant.
    """

    def __init__(
        self,
        system: HybridSystem,
        p: np.ndarray,
        held: np.ndarray,
        values: Own | None = None,
        events: int = 0,
    ) -> None:
        """Create the problem.

        Args:
            system: the system.
            p: constants.
            held: forces before the first sample, followed by kept numbers.
            values: sets the guards of events, from the known coordinates and velocities.
            events: number of events.
        """
        self.system, self.worst = system, np.array(WORST)
        self.law: Callable[[float, np.ndarray, np.ndarray], None] | None = None
        self.arrays: Arrays = {
            "p": p,
            "z": np.array(held, dtype=float),
            "held": np.array(held, dtype=float),
        }
        self._values, self._events = values, events

    def seen(self, run: Run, y: np.ndarray) -> Arrays:
        """Return the arrays at a state."""
        modes, directions = len(self.system.modes), self.system.directions
        self.arrays |= {"y": y.copy(), "start": run.guess, "s": run.s[:modes]}
        self.arrays |= {
            "rate": np.zeros(max(len(y), 1)),
            "guards": np.zeros(modes * (1 + directions)),
        }
        return self.arrays

    def rate(self, run: Run, time: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return rates, and guards of the system and of events."""
        arrays, modes, directions = (
            self.seen(run, y),
            len(self.system.modes),
            self.system.directions,
        )
        if self.law is not None:
            self.law(time, y[: len(y) // (1 + directions)], arrays["in"])
        good = self.system.rate.run(arrays, self.worst)
        guards, slopes = arrays["guards"][:modes], arrays["guards"][modes:]
        self.slopes = slopes.reshape(directions, modes)
        if good and self.system.rate.known:
            run.known = np.concatenate(
                [arrays[place][:size] for place, size in self.system.rate.known]
            )
        if self._values is not None:
            values = np.full(self._events, np.nan)
            if good:
                self._values(time, np.asarray(run.known), values)
            guards = np.concatenate([guards, values])
        return arrays["rate"], guards, good

    def reset(self, run: Run, y: np.ndarray) -> np.ndarray:
        """Return the state with the values that the modes prescribe."""
        arrays = self.seen(run, y)
        self.system.reset.run(arrays, self.worst)
        return arrays["y"]

    def sample(self, run: Run, own: Own | None = None) -> bool:
        """Compute a sample at the current state; return whether it is reliable."""
        good = self.system.sample.run(self.seen(run, run.y), self.worst, own)
        return good and bool(np.isfinite(self.arrays["z"][: self.system.held]).all())

    def back(self, run: Run, y: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the projected state."""
        for _ in range(RETURNS if self.system.back.calls else 0):
            arrays = self.seen(run, y)
            self.system.back.run(arrays, self.worst)
            y = arrays["y"]
            if arrays["rate"][0] < RETURNED:
                return y, 1
        return y, -1 if self.system.back.calls else 0
