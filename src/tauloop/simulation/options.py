"""What a simulation can choose: the route to forward dynamics, and the integrator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from tauloop.errors import InputError, Problem, Problems

#: Tolerances below this are rounding: no step size can meet them.
FINEST = 1e-14
#: Steps after which an integration is given up.
MOST_STEPS = 200_000


def _tolerances(rtol: float, atol: float) -> list[Problem]:
    remedy = f"at least {FINEST:g}: below it there is only rounding; 1e-9 is usual"
    return [
        Problem(where=name, what=f"no step can meet {value:g}", remedy=remedy)
        for name, value in (("rtol", rtol), ("atol", atol))
        if not FINEST <= value < 1.0
    ]


def _steps(step: float, most: int) -> list[Problem]:
    problems = Problems()
    if not step > 0:
        problems.add("step", f"must be positive, got {step:g} s", "give seconds")
    if most < 1:
        problems.add("max_steps", f"must be positive, got {most}", "allow some steps")
    return problems


def _require(problems: list[Problem]) -> None:
    InputError.raise_if_any(problems)


class Route:
    """A way to forward dynamics; one of the final classes below."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentCoordinates(Route):
    """The platform's independent coordinates: the loops are closed anew at every evaluation, so nothing drifts.

    It ends at leg-side singularities, where the platform no longer determines the legs.
    """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Baumgarte:
    """Stabilisation of loops on acceleration level: psi'' + 2 alpha psi' + beta^2 psi = 0.

    Attributes:
        alpha, beta: 1/s; equal ones make residuals die out without swinging. Explicit integrators need steps shorter
            than about 1/alpha.
    """

    alpha: float = 100.0
    beta: float = 100.0

    def __post_init__(self) -> None:
        """Check the factors.

        Raises:
            InputError: a factor is negative or no number.
        """
        _require(
            [
                Problem(where=name, what=f"must not be negative, got {value:g} 1/s", remedy="10 to 1000 1/s are usual")
                for name, value in (("alpha", self.alpha), ("beta", self.beta))
                if not 0 <= value < float("inf")
            ]
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendedSpace(Route):
    """Hamilton's equations of index two on coordinates and momenta of the extended space (NUWAR paper, section 5).

    Attributes:
        stabilisation: Baumgarte's, or None to see the drift.
    """

    stabilisation: Baumgarte | None = Baumgarte()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Multipliers(Route):
    """All coordinates and velocities with accelerations and multipliers, without projection.

    It does what `ExtendedSpace` does, for machines whose cut-open loops leave coordinates without inertia too.

    Attributes:
        stabilisation: Baumgarte's, or None to see the drift.
    """

    stabilisation: Baumgarte | None = Baumgarte()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Projected(Route):
    """All coordinates and velocities with multipliers, put back onto phi = 0 and K v = 0 after every step.

    The projection is that of least squares in unit-free displacements.
    """


class Integrator:
    """A way through time; one of the final classes below.

    Attributes:
        max_steps: steps after which the integration is given up.
    """

    max_steps: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DormandPrince(Integrator):
    """Explicit Runge-Kutta pair of orders 5(4) with adaptive steps (Dormand and Prince 1980).

    Attributes:
        rtol, atol: a step's error is kept below atol + rtol |state|, root mean square over the state's entries (SI).
        max_step: longest step, s.
        max_steps: steps after which the integration is given up.
    """

    rtol: float = 1e-9
    atol: float = 1e-10
    max_step: float = float("inf")
    max_steps: int = MOST_STEPS

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            InputError: tolerances that no step can meet, or no positive steps.
        """
        _require([*_tolerances(self.rtol, self.atol), *_steps(self.max_step, self.max_steps)])


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

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            InputError: no positive steps.
        """
        problems = _steps(self.step, self.max_steps)
        if self.step == float("inf"):
            problems.append(Problem(where="step", what="is infinite", remedy="give the step in seconds"))
        _require(problems)


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
    max_step: float = float("inf")
    max_steps: int = MOST_STEPS

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            InputError: tolerances that no step can meet, or no positive steps.
        """
        _require([*_tolerances(self.rtol, self.atol), *_steps(self.max_step, self.max_steps)])
