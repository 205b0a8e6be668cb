"""Systems of routines (rates, resets, samples and projection), in C.

Simulations, controls of machines, drive lines and machines with drive lines are such systems. They
differ in the loops around the integrator's steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.precision import Precision
from tauloop.compiler.c.printing.single import SHORTEST_STEP
from tauloop.compiler.c.printing.source import number
from tauloop.integrate.routine import Routine, functions_text
from tauloop.integrate.source import integrator_source
from tauloop.integrate.tableau import Tableau

#: Maximum number of steps of the projection onto the loops; each step squares the residual.
MAX_PROJECTIONS = 8
#: Initial values of the smallest discriminant, the smallest pivot and the largest residual, of the
#: whole run and of the last failure.
WORST = (1.0, 1e300, 0.0, np.nan, np.nan, np.nan)


@dataclass(frozen=True, kw_only=True, eq=False)
class HybridSystem:
    """A system that consists of routines.

    Attributes:
        states: size of the state.
        held, inputs: sizes of the results of a sample that are applied, and of its inputs.
        coordinates, velocities: sizes of the machine's coordinates and velocities in `known`.
        modes: initial modes.
        rate, reset, sample: routines of the rates, of resets at events, and of a sample.
        back: routine that projects the state after every step; it may have no calls. Its residual,
            if any, is in `rate`.
        kept: number of values that a sample passes to the next sample, after the applied results.
        constants: number of constants.
        directions: number of directions of derivatives, which are included in the states, results
            and constants.
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
            method: tableau of an explicit method; None for Radau IIA.
            loop: C text of the loop.
            events: number of events of coordinates and velocities to locate.
            known: number of values that are computed in addition to rates if there are no events.
            further: other routines that the loop calls, by name.
            precision: precision of all numbers.
        """
        routines = {
            "rate": self.rate,
            "reset": self.reset,
            "sample": self.sample,
            "back": self.back,
        }
        routines |= further or {}
        macros: dict[str, int | str] = {
            "NY": self.states,
            "NS": len(self.modes),
            "NZ": self.held,
            "NI": self.inputs,
        }
        macros |= {
            "NQ": self.coordinates,
            "TL_EVENTS": events,
            "TL_ALONG": self.directions,
            "NP": self.constants,
        }
        macros |= {"TL_KNOWN": self.coordinates + self.velocities if events else known}
        macros |= {"TL_RETURNS": MAX_PROJECTIONS if self.back.calls else 0}
        if precision is Precision.SINGLE:
            macros |= {f"TL_SMALLEST_{name}": number(SHORTEST_STEP) for name in ("STEP", "RETREAT")}
            for name, routine in routines.items():
                calls = tuple(call.limited(precision) for call in routine.calls)
                routines = routines | {name: replace(routine, calls=calls)}
        body = [
            *(f"#define {name} {value}" for name, value in macros.items()),
            f"#define TL_CONVERGED {number(precision.converged)}",
            f"#define TL_PROJECTION_TOLERANCE {number(precision.projection_tolerance)}",
            integrator_source(method),
            c_file("tauloop.integrate", "system.c"),
            loop,
            *(routine.text(f"system_{name}") for name, routine in routines.items()),
        ]
        functions = functions_text(routines.values(), single=precision is Precision.SINGLE)
        return "\n".join([functions, precision.written("\n".join(body))])
