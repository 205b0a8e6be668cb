"""Ways through time: what simulations, control loops and drive lines may choose, and what of one's own may stand there.

An integrator is a frozen dataclass that names its method: explicit, by a tableau with a dense
output, or Radau IIA. All of them run in `hybrid.c` and in its twin, with the same events, samples
and returns to the loops:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Midpoint(Integrator):
        step: float
        max_steps: int = MOST_STEPS

        @property
        def method(self) -> Method:
            return Method.fixed(chained((0.5,), (0.0, 1.0), is_dense=True), self.step)

Source: Dormand and Prince 1980, A family of embedded Runge-Kutta formulae; Hairer and Wanner 1996,
Solving Ordinary Differential Equations II, section IV.8, for Radau IIA.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass
from typing import final

from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.options import require
from tauloop.common.records import dataclass
from tauloop.compiler.c.printing.precision import Precision
from tauloop.compiler.c.printing.single import LEAST_TOLERANCE
from tauloop.integrate.tableau import Tableau, dormand_prince, runge_kutta_4

#: Tolerances below this are rounding: no step size can meet them.
FINEST = 1e-14
#: Steps after which an integration is given up.
MOST_STEPS = 200_000
#: The first step of an adaptive integrator, s; its error estimate soon finds a better one.
FIRST_STEP = 1e-4
#: To what zero is known where no tolerance says it: speeds below this are standstill (SI).
ZERO = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """An integrator's numbers.

    Attributes:
        tableau: of an explicit method; None for Radau IIA.
        rtol, atol: error of a step, relative and absolute; of fixed steps, to what zero is known.
        longest: step, s.
        first: step to be tried, s.
    """

    tableau: Tableau | None
    rtol: float
    atol: float
    longest: float
    first: float

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """First step, tolerances and longest step, as C takes them."""
        return self.first, self.rtol, self.atol, self.longest

    @classmethod
    def adaptive(
        cls, tableau: Tableau | None, rtol: float, atol: float, longest: float = math.inf
    ) -> Method:
        """A method that chooses its steps."""
        return cls(
            tableau=tableau, rtol=rtol, atol=atol, longest=longest, first=min(FIRST_STEP, longest)
        )

    @classmethod
    def fixed(cls, tableau: Tableau, step: float) -> Method:
        """A method with steps of one length, s."""
        return cls(tableau=tableau, rtol=ZERO, atol=ZERO, longest=step, first=step)

    def require_precision(self, precision: Precision) -> None:
        """Refuse tolerances that numbers of a precision do not keep.

        Raises:
            InputError: which, and what to ask for.
        """
        is_adaptive = self.tableau is not None and self.tableau.is_adaptive
        if precision is Precision.SINGLE and is_adaptive and self.rtol < LEAST_TOLERANCE:
            what = f"asks for a relative error of {self.rtol:g}, floats keep {LEAST_TOLERANCE:g}"
            raise InputError.of(
                "integrator", what, "`DormandPrince(rtol=1e-5, atol=1e-6)`, fixed steps, or doubles"
            )


class Integrator(ABC):
    """A way through time: explicit or implicit, with fixed or adaptive steps.

    Attributes:
        max_steps: steps after which the integration is given up.
    """

    __slots__ = ()
    max_steps: int

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense, all at once.

        Raises:
            InputError: tolerances that no step can meet, or no positive steps.
        """
        require(self)
        remedy = f"at least {FINEST:g}: below it there is only rounding; 1e-9 is usual"
        problems = Problems(
            Problem(where=name, what=f"no step can meet {getattr(self, name):g}", remedy=remedy)
            for name in ("rtol", "atol")
            if not FINEST <= getattr(self, name, 0.5) < 1.0
        )
        for name in ("step", "max_step"):
            length = getattr(self, name, 1.0)
            if not length > 0:
                problems.add("step", f"must be positive, got {length:g} s", "give seconds")
            elif name == "step" and length == math.inf:
                problems.add("step", "is infinite", "give the step in seconds")
        if not self.max_steps >= 1:
            problems.add("max_steps", f"must be positive, got {self.max_steps}", "allow some steps")
        InputError.raise_if_any(problems)

    @property
    @abstractmethod
    def method(self) -> Method:
        """Its tableau, tolerances and steps."""


def described(choice: object) -> dict[str, object]:
    """What provenance says of a choice that is a dataclass, such as an integrator: its name and its numbers."""
    numbers: dict[str, object] = {"name": type(choice).__name__}
    for item in fields(choice):  # type: ignore[arg-type]
        value = getattr(choice, item.name)
        if is_dataclass(value):
            value = {part.name: getattr(value, part.name) for part in fields(value)}
        numbers[item.name] = None if value == math.inf else value
    return numbers


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DormandPrince(Integrator):
    """Explicit Runge-Kutta pair of orders 5(4) with adaptive steps (Dormand and Prince 1980).

    Attributes:
        rtol, atol: a step's error is kept below atol + rtol |state|, root mean square over the
            state's entries (SI).
        max_step: longest step, s.
        max_steps: steps after which the integration is given up.
    """

    rtol: float = 1e-9
    atol: float = 1e-10
    max_step: float = math.inf
    max_steps: int = MOST_STEPS

    @property
    def method(self) -> Method:
        """The pair."""
        return Method.adaptive(dormand_prince(), self.rtol, self.atol, self.max_step)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RungeKutta4(Integrator):
    """The classical Runge-Kutta method of order 4 with fixed steps.

    Attributes:
        step: s; the last one is cut to the end.
        max_steps: steps after which the integration is given up.
    """

    step: float
    max_steps: int = MOST_STEPS

    @property
    def method(self) -> Method:
        """The classical method."""
        return Method.fixed(runge_kutta_4(), self.step)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Radau(Integrator):
    """Implicit Radau IIA of order 5 for stiff machines, with Jacobians by differences (Hairer and Wanner 1996, IV.8).

    Attributes:
        rtol, atol: as of `DormandPrince`.
        max_step: longest step, s.
        max_steps: steps after which the integration is given up.
    """

    rtol: float = 1e-8
    atol: float = 1e-9
    max_step: float = math.inf
    max_steps: int = MOST_STEPS

    @property
    def method(self) -> Method:
        """Radau IIA."""
        return Method.adaptive(None, self.rtol, self.atol, self.max_step)
