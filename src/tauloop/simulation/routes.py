"""Routes to forward dynamics: what a simulation's states are, and how they change.

A route is a frozen dataclass that builds a right-hand side (`rate`) and says what a state is made
of (`encoder`); what it needs of the stepping around it are its class attributes. `System` makes one
with a machine; nothing else asks which route it is.

Source: Baumgarte 1972, Stabilization of constraints and integrals of motion in dynamical systems,
for multipliers; Khalil and Ibrahim 2007, General solution for the dynamic modeling of parallel
robots, for the embedding.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, final

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
from tauloop.model import Model

#: Coordinates (N, n_q) and velocities (N, n_v) -> the parts of the states, in the order of
#: `RateProgram.state`.
Encoder = Callable[[np.ndarray, np.ndarray], list[np.ndarray]]
#: Likewise -> derivatives of the parts, from those of coordinates, velocities and free parameters
#: by their names.
EncoderAlong = Callable[[np.ndarray, np.ndarray, Mapping[str, np.ndarray]], list[np.ndarray]]


class Route(ABC):
    """A way to forward dynamics.

    Attributes:
        projects: whether coordinates and velocities, its first two parts, are led back onto phi = 0
            and K v = 0 after every step; else quaternions keep unit length.
        is_independent: whether states hold the platform's independent coordinates, from which
            closed forms find the others: then starts on other branches have equations of their own.
        smallest_pivot: share of its typical size below which a pivot means a singular pose.
    """

    __slots__ = ()
    projects: ClassVar[bool] = False
    is_independent: ClassVar[bool] = False
    smallest_pivot: ClassVar[float] = SMALLEST_PIVOT

    @abstractmethod
    def rate(self, model: Model, *, with_wrench: bool) -> RateProgram:
        """The right-hand side.

        Args:
            model: the machine.
            with_wrench: whether a wrench at the tool acts.

        Raises:
            DescriptionError: the machine cannot go this way.
        """

    def encoder(self, model: Model) -> Encoder:
        """How states are made of coordinates and velocities: of these themselves, unless the route says otherwise."""
        return lambda q, v: [q, v]

    def encoder_along(self, model: Model) -> EncoderAlong:
        """How the parts change with coordinates and velocities: as these do themselves, unless the route says more."""
        encode = self.encoder(model)
        return lambda q, v, changes: encode(changes["q_by"], changes["v_by"])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentCoordinates(Route):
    """The platform's independent coordinates: the loops are closed anew at every evaluation, so nothing drifts.

    It ends at leg-side singularities, where the platform no longer determines the legs: on free
    falls into them the energy error is 1e-7 at the smallest pivot that is allowed, and further on
    it grows faster than the pivot falls.
    """

    is_independent: ClassVar[bool] = True
    smallest_pivot: ClassVar[float] = 1e-4

    def rate(self, model: Model, *, with_wrench: bool) -> RateProgram:
        """Rates of the platform's independent coordinates."""
        ports, formulation = model.platform.ports, model.formulation
        return independent_rate_program(
            model.assembly, ports, formulation, with_wrench=with_wrench, free=model.free
        )

    def encoder(self, model: Model) -> Encoder:
        """The platform's part of coordinates and velocities."""
        entry = model.platform.ports
        return lambda q, v: [
            q[:, list(entry.q)],
            np.linalg.solve(entry.to_v, v[:, list(entry.v)].T).T,
        ]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Baumgarte(Options):
    """Stabilisation of loops on acceleration level: psi'' + 2 alpha psi' + beta^2 psi = 0.

    Attributes:
        alpha, beta: 1/s; equal ones make residuals die out without swinging. Explicit integrators
            need steps shorter than about 1/alpha.
    """

    alpha: float = option(100.0, least=0.0, below=math.inf, remedy="10 to 1000 1/s are usual")
    beta: float = option(100.0, least=0.0, below=math.inf, remedy="10 to 1000 1/s are usual")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stabilised(Route):
    """Full coordinates whose loops are held on acceleration level.

    Attributes:
        stabilisation: Baumgarte's, or None to see the drift.
    """

    stabilisation: Baumgarte | None = Baumgarte()

    @property
    def _factors(self) -> tuple[float, float]:
        return (
            (self.stabilisation.alpha, self.stabilisation.beta)
            if self.stabilisation
            else (0.0, 0.0)
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendedSpace(_Stabilised):
    """Hamilton's equations of index two on coordinates and momenta of the extended space (NUWAR paper, section 5).

    Attributes:
        stabilisation: Baumgarte's, or None to see the drift.
    """

    def rate(self, model: Model, *, with_wrench: bool) -> RateProgram:
        """Hamilton's equations."""
        return hamilton_rate_program(
            model.assembly, *self._factors, with_wrench=with_wrench, free=model.free
        )

    def encoder(self, model: Model) -> Encoder:
        """Coordinates and momenta."""
        momenta, theta = (
            momentum_map_program(model.assembly, model.free),
            model.mechanism.parameters.vector(model.free),
        )

        def encode(q: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
            inputs = {"q": q, "v": v, "theta": np.tile(theta, (len(q), 1))}
            return [q, momenta.run(inputs, len(q))[0]["momentum"]]

        return encode

    def encoder_along(self, model: Model) -> EncoderAlong:
        """Changes of coordinates and momenta."""
        shape, theta = model.topology, model.mechanism.parameters.vector(model.free)
        sizes = {"q": shape.n_q, "v": shape.n_v, "theta": len(theta)}
        momenta = tangent_program(momentum_map_program(model.assembly, model.free), sizes)

        def encode(
            q: np.ndarray, v: np.ndarray, changes: Mapping[str, np.ndarray]
        ) -> list[np.ndarray]:
            inputs = {"q": q, "v": v, "theta": np.tile(theta, (len(q), 1))} | dict(changes)
            return [changes["q_by"], momenta.run(inputs, len(q))[0]["momentum_by"]]

        return encode


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Multipliers(_Stabilised):
    """All coordinates and velocities with accelerations and multipliers, without projection.

    It does what `ExtendedSpace` does, for machines whose cut-open loops leave coordinates without
    inertia too.

    Attributes:
        stabilisation: Baumgarte's, or None to see the drift.
    """

    def rate(self, model: Model, *, with_wrench: bool) -> RateProgram:
        """Accelerations and multipliers together."""
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
    """All coordinates and velocities with multipliers, put back onto phi = 0 and K v = 0 after every step.

    The projection is that of least squares in unit-free displacements.
    """

    projects: ClassVar[bool] = True

    def rate(self, model: Model, *, with_wrench: bool) -> RateProgram:
        """Accelerations and multipliers together, without stabilisation."""
        return extended_rate_program(
            model.assembly, formulation=model.formulation, with_wrench=with_wrench, free=model.free
        )


#: Every route by the name that a command or a table uses.
ROUTES = Registry[Route](
    "tauloop.routes",
    Route,
    {
        "independent": IndependentCoordinates(),
        "projected": Projected(),
        "extended": ExtendedSpace(),
        "extended-free": ExtendedSpace(stabilisation=None),
        "multipliers": Multipliers(),
        "multipliers-free": Multipliers(stabilisation=None),
    },
)
