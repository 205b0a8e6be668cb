"""Routes: formulations of forward dynamics, with the states of a simulation and their derivatives.

A route is a frozen dataclass that builds a right-hand side (`rate`) and defines the contents of a
state (`encoder`). Class attributes state the route's requirements on the integration. `System` combines a
route with a machine; other code does not depend on the type of the route.

Source: Baumgarte 1972, Stabilization of constraints and integrals of motion in dynamical systems,
for multipliers; Khalil and Ibrahim 2007, General solution for the dynamic modeling of parallel
robots, for the embedding.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Any, ClassVar, TypeVar, final
from weakref import WeakKeyDictionary

import numpy as np

from tauloop.common.extensions import Registry
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.compiler.derivatives.tangents import tangent_program
from tauloop.compiler.functions.extended import (
    extended_rate_program,
    hamilton_rate_program,
    momentum_map_program,
)
from tauloop.compiler.functions.rates import RateProgram, independent_rate_program
from tauloop.compiler.state import SMALLEST_PIVOT
from tauloop.equations.operators import fast_operators
from tauloop.model import Model

T = TypeVar("T")

#: Function from coordinates (N, n_q) and velocities (N, n_v) to the parts of the states, in the
#: order of `RateProgram.state`.
Encoder = Callable[[np.ndarray, np.ndarray], list[np.ndarray]]
#: Function from coordinates, velocities, and the derivatives of coordinates, velocities and free
#: parameters (by name) to the derivatives of the parts of the states.
EncoderAlong = Callable[[np.ndarray, np.ndarray, Mapping[str, np.ndarray]], list[np.ndarray]]


#: Programs of models for simulations, by their purpose.
_PROGRAMS: WeakKeyDictionary[Model, dict[Hashable, Any]] = WeakKeyDictionary()


def built_once(model: Model, key: Hashable, build: Callable[[], T]) -> T:
    """Return an object that is built at its first use and stored as long as the model exists.

    Args:
        model: the machine.
        key: purpose of the program, and what it depends on apart from the model.
        build: function that builds the program; it must not refer to the model afterwards.
    """
    programs = _PROGRAMS.setdefault(model, {})
    if key not in programs:
        with fast_operators():
            programs[key] = build()
    built: T = programs[key]
    return built


class Route(ABC):
    """A method of forward dynamics.

    Attributes:
        projects: whether coordinates and velocities, the first two parts of a state, are projected
            onto phi = 0 and K v = 0 after every step. Otherwise only quaternions are normalized.
        is_independent: whether states contain the platform's independent coordinates, from which
            closed forms compute the others. Starts on other branches then have their own equations.
        smallest_pivot: pivot, relative to its typical magnitude, below which a pose is singular.
    """

    __slots__ = ()
    projects: ClassVar[bool] = False
    is_independent: ClassVar[bool] = False
    smallest_pivot: ClassVar[float] = SMALLEST_PIVOT

    @abstractmethod
    def rate(self, model: Model, *, with_wrench: bool) -> RateProgram:
        """Return the right-hand side.

        Args:
            model: the machine.
            with_wrench: whether a wrench at the tool acts.

        Raises:
            DescriptionError: the route is not available for the machine.
        """

    def encoder(self, model: Model) -> Encoder:
        """Return the function from coordinates and velocities to states.

        By default, states contain the coordinates and velocities themselves.
        """
        return lambda q, v: [q, v]

    def encoder_along(self, model: Model) -> EncoderAlong:
        """Return the function from changes of coordinates and velocities to changes of states."""
        encode = self.encoder(model)
        return lambda q, v, changes: encode(changes["q_by"], changes["v_by"])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentCoordinates(Route):
    """The platform's independent coordinates. Every evaluation closes the loops, so nothing drifts.

    A simulation on this route ends at leg-side singularities, where the platform does not determine
    the legs. In free falls into them, the energy error is 1e-7 at the smallest allowed pivot. At
    smaller pivots, the error grows faster than the pivot decreases.
    """

    is_independent: ClassVar[bool] = True
    smallest_pivot: ClassVar[float] = 1e-4

    def rate(self, model: Model, *, with_wrench: bool) -> RateProgram:
        """Return the right-hand side for the platform's independent coordinates."""
        ports, formulation = model.platform.ports, model.formulation
        return built_once(
            model,
            ("independent rate", with_wrench),
            lambda: independent_rate_program(
                model.assembly, ports, formulation, with_wrench=with_wrench, free=model.free
            ),
        )

    def encoder(self, model: Model) -> Encoder:
        """Return the function that extracts the platform's coordinates and velocities."""
        ports = model.platform.ports
        return lambda q, v: [
            q[:, list(ports.q)],
            np.linalg.solve(ports.to_v, v[:, list(ports.v)].T).T,
        ]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Baumgarte(Options):
    """Stabilization of loops at acceleration level: psi'' + 2 alpha psi' + beta^2 psi = 0.

    Attributes:
        alpha, beta: gains, 1/s. If they are equal, residuals decay without oscillation. Explicit
            integrators need steps shorter than about 1/alpha.
    """

    alpha: float = option(100.0, least=0.0, below=math.inf, remedy="give 10 to 1000 1/s")
    beta: float = option(100.0, least=0.0, below=math.inf, remedy="give 10 to 1000 1/s")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stabilized(Options, Route):
    """Full coordinates with loops closed at acceleration level.

    Attributes:
        stabilization: Baumgarte stabilization; with None, the loops drift.
    """

    stabilization: Baumgarte | None = Baumgarte()

    @property
    def _factors(self) -> tuple[float, float]:
        if self.stabilization is None:
            return (0.0, 0.0)
        return (self.stabilization.alpha, self.stabilization.beta)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendedSpace(_Stabilized):
    """Hamilton's equations of index two in the extended space (NUWAR paper, section 5).

    Attributes:
        stabilization: Baumgarte stabilization; with None, the loops drift.
    """

    def rate(self, model: Model, *, with_wrench: bool) -> RateProgram:
        """Return Hamilton's equations."""
        return hamilton_rate_program(
            model.assembly, *self._factors, with_wrench=with_wrench, free=model.free
        )

    def encoder(self, model: Model) -> Encoder:
        """Return the function from coordinates and velocities to coordinates and momenta."""
        momenta = momentum_map_program(model.assembly, model.free)
        theta = model.mechanism.parameters.vector(model.free)

        def encode(q: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
            inputs = {"q": q, "v": v, "theta": np.tile(theta, (len(q), 1))}
            return [q, momenta.run(inputs, len(q))[0]["momentum"]]

        return encode

    def encoder_along(self, model: Model) -> EncoderAlong:
        """Return the function from changes of coordinates and velocities to changes of states."""
        topology = model.topology
        theta = model.mechanism.parameters.vector(model.free)
        sizes = {"q": topology.n_q, "v": topology.n_v, "theta": len(theta)}
        momenta = tangent_program(momentum_map_program(model.assembly, model.free), sizes)

        def encode(
            q: np.ndarray, v: np.ndarray, changes: Mapping[str, np.ndarray]
        ) -> list[np.ndarray]:
            inputs = {"q": q, "v": v, "theta": np.tile(theta, (len(q), 1))} | dict(changes)
            return [changes["q_by"], momenta.run(inputs, len(q))[0]["momentum_by"]]

        return encode


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Multipliers(_Stabilized):
    """All coordinates and velocities, with Lagrange multipliers for the loops, without projection.

    Unlike `ExtendedSpace`, this route also works for machines with coordinates that have no inertia
    when the loops are cut.

    Attributes:
        stabilization: Baumgarte stabilization; with None, the loops drift.
    """

    def rate(self, model: Model, *, with_wrench: bool) -> RateProgram:
        """Return the equations of accelerations and multipliers."""
        return extended_rate_program(
            model.assembly,
            *self._factors,
            formulation=model.formulation,
            with_wrench=with_wrench,
            free=model.free,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Projected(Route):
    """All coordinates and velocities with Lagrange multipliers, projected onto phi = 0 and K v = 0.

    Every step ends with the projection, which minimizes the dimensionless displacement.
    """

    projects: ClassVar[bool] = True

    def rate(self, model: Model, *, with_wrench: bool) -> RateProgram:
        """Return the equations of accelerations and multipliers, without stabilization."""
        return extended_rate_program(
            model.assembly, formulation=model.formulation, with_wrench=with_wrench, free=model.free
        )


#: Routes by the names used in commands and tables.
ROUTES = Registry[Route](
    "tauloop.routes",
    Route,
    {
        "independent": IndependentCoordinates(),
        "projected": Projected(),
        "extended": ExtendedSpace(),
        "extended-free": ExtendedSpace(stabilization=None),
        "multipliers": Multipliers(),
        "multipliers-free": Multipliers(stabilization=None),
    },
)
