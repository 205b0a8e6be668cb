"""Integrators of simulations, control loops and drive lines, and the interface for new ones.

An integrator is a frozen dataclass that defines its method: explicit, by a tableau with a dense
output, or Radau IIA. All of them run in `hybrid.c`, with the same events, samples and projections
onto the loops:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Midpoint(Integrator):
        step: float
        max_steps: int = DEFAULT_MAX_STEPS

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

from tauloop.common.errors import InputError, Problems
from tauloop.common.options import require
from tauloop.common.records import dataclass
from tauloop.compiler.c.printing.precision import Precision
from tauloop.compiler.c.printing.single import LEAST_TOLERANCE
from tauloop.integrate.tableau import Tableau, dormand_prince, runge_kutta_4

#: Smallest tolerance. Smaller tolerances are below rounding errors, so no step size satisfies them.
FINEST = 1e-14
#: Default maximum number of steps of an integration.
DEFAULT_MAX_STEPS = 200_000
#: First step of an adaptive integrator, s; its error estimate then adapts the step.
FIRST_STEP = 1e-4
#: Typical step of an adaptive integrator, s. It serves to estimate the work of a run, which
#: determines how the run is compiled.
TYPICAL_STEP = 2e-3
#: Typical number of evaluations of the state's derivative in a step of Radau IIA, for the same
#: estimate.
RADAU_EVALUATIONS = 12
#: Default of the zero-velocity threshold: speeds below it count as standstill (SI).
ZERO = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """Numeric parameters of an integrator.

    Attributes:
        tableau: tableau of an explicit method; None for Radau IIA.
        rtol, atol: relative and absolute tolerance of the error of a step. For fixed steps, both
            are the zero-velocity threshold: speeds below it count as standstill.
        longest: maximum step, s.
        first: first step, s.
    """

    tableau: Tableau | None
    rtol: float
    atol: float
    longest: float
    first: float

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """First step, tolerances and maximum step, in the order of the C code."""
        return self.first, self.rtol, self.atol, self.longest

    def evaluations(self, duration: float) -> float:
        """Return the approximate number of evaluations of the derivative in a duration, s."""
        stages = RADAU_EVALUATIONS
        step = self.longest
        if self.tableau is not None:
            stages = len(self.tableau.c)
        if self.tableau is None or self.tableau.is_adaptive:
            step = min(step, TYPICAL_STEP)
        return stages * max(duration / step, 1.0)

    @classmethod
    def adaptive(
        cls, tableau: Tableau | None, rtol: float, atol: float, longest: float = math.inf
    ) -> Method:
        """Return a method with adaptive steps of at most `longest`, s."""
        return cls(
            tableau=tableau, rtol=rtol, atol=atol, longest=longest, first=min(FIRST_STEP, longest)
        )

    @classmethod
    def fixed(cls, tableau: Tableau, step: float) -> Method:
        """Return a method with steps of constant length, s."""
        return cls(tableau=tableau, rtol=ZERO, atol=ZERO, longest=step, first=step)

    def require_precision(self, precision: Precision) -> None:
        """Raise an error if tolerances are too small for a precision.

        Raises:
            InputError: the relative tolerance is too small.
        """
        is_adaptive = self.tableau is not None and self.tableau.is_adaptive
        if precision is Precision.SINGLE and is_adaptive and self.rtol < LEAST_TOLERANCE:
            what = (
                f"has a relative tolerance of {self.rtol:g}; "
                f"single precision allows {LEAST_TOLERANCE:g} or more"
            )
            remedy = (
                "loosen the tolerances, such as `DormandPrince(rtol=1e-5, atol=1e-6)`, "
                "use fixed steps, or use double precision"
            )
            raise InputError.of("integrator", what, remedy)


class Integrator(ABC):
    """Integration method: explicit or implicit, with fixed or adaptive steps.

    Attributes:
        max_steps: maximum number of steps.
    """

    __slots__ = ()
    max_steps: int

    def __post_init__(self) -> None:
        """Raise an error if values are invalid; all problems are listed at once.

        Raises:
            InputError: tolerances are below rounding errors or not below 1, or steps are not
                positive.
        """
        require(self)
        problems = Problems()
        for name in ("rtol", "atol"):
            tolerance = getattr(self, name, 0.5)
            if not FINEST <= tolerance < 1.0:
                what = f"{tolerance:g} is not between {FINEST:g} (rounding errors) and 1"
                problems.add(name, what, "give, for example, 1e-9")
        for name in ("step", "max_step"):
            length = getattr(self, name, 1.0)
            if not length > 0:
                problems.add(name, f"must be positive, got {length:g} s", "give seconds")
            elif name == "step" and length == math.inf:
                problems.add("step", "is infinite", "give the step in seconds")
        if not self.max_steps >= 1:
            problems.add(
                "max_steps",
                f"must be positive, got {self.max_steps}",
                "give a positive number of steps",
            )
        InputError.raise_if_any(problems)

    @property
    @abstractmethod
    def method(self) -> Method:
        """Tableau, tolerances and steps of the method."""


def described(choice: object) -> dict[str, object]:
    """Return the class name and field values of a dataclass such as an integrator, for provenance."""
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
        rtol, atol: relative and absolute tolerance: the error of a step is below atol + rtol
            |state|, as root mean square over the entries of the state (SI).
        max_step: maximum step, s.
        max_steps: maximum number of steps.
    """

    rtol: float = 1e-9
    atol: float = 1e-10
    max_step: float = math.inf
    max_steps: int = DEFAULT_MAX_STEPS

    @property
    def method(self) -> Method:
        """The Dormand-Prince pair, with the tolerances and the maximum step."""
        return Method.adaptive(dormand_prince(), self.rtol, self.atol, self.max_step)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RungeKutta4(Integrator):
    """The classical Runge-Kutta method of order 4 with fixed steps.

    Attributes:
        step: step, s; the last step is shortened.
        max_steps: maximum number of steps.
    """

    step: float
    max_steps: int = DEFAULT_MAX_STEPS

    @property
    def method(self) -> Method:
        """The classical method, with the fixed step."""
        return Method.fixed(runge_kutta_4(), self.step)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Radau(Integrator):
    """Implicit Radau IIA of order 5 for stiff machines (Hairer and Wanner 1996, IV.8).

    Jacobians are computed by finite differences.

    Attributes:
        rtol, atol: tolerances as in `DormandPrince`.
        max_step: maximum step, s.
        max_steps: maximum number of steps.
    """

    rtol: float = 1e-8
    atol: float = 1e-9
    max_step: float = math.inf
    max_steps: int = DEFAULT_MAX_STEPS

    @property
    def method(self) -> Method:
        """Radau IIA, with the tolerances and the maximum step."""
        return Method.adaptive(None, self.rtol, self.atol, self.max_step)
