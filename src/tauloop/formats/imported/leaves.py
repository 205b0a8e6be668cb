"""Independent parameters of an imported machine, created from the numbers of its file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from tauloop.common.records import dataclass
from tauloop.mechanism.description.cursor import Value
from tauloop.mechanism.description.grammar import FRICTION
from tauloop.mechanism.expression import ZERO, Expression, Leaf, Parameter, evaluate, triple
from tauloop.mechanism.inertia import about_origin
from tauloop.mechanism.links.rigid_tree import LinkInertia
from tauloop.mechanism.model import MOMENT_ENTRIES, Inertia, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaves:
    """The independent parameters created so far, in order; all are from one file.

    Attributes:
        source, status: provenance of all parameters.
        zero_origins: whether zeros in origins become parameters too.
        parameters: parameters created so far.
    """

    source: str
    status: str = "given"
    zero_origins: bool = False
    parameters: list[Parameter] = field(default_factory=list)
    _values: dict[str, float] = field(default_factory=dict)

    def leaf(
        self, name: str, value: float, unit: str, group: str, *, lower: float = -np.inf
    ) -> Leaf:
        """Return a new independent parameter; underscores are appended to a name already in use.

        Two elements can have the same parameter name: ``a`` with ``b.c`` and ``a.b`` with ``c``.
        """
        while name in self._values:
            name += "_"
        self.parameters.append(
            Parameter(
                name=name,
                value=value,
                unit=unit,
                group=group,
                status=self.status,
                source=self.source,
                lower=lower,
            )
        )
        self._values[name] = value
        return Leaf(name)

    def value(self, expression: Expression) -> float:
        """Return the nominal value of an expression of the parameters created so far, SI."""
        return float(evaluate(expression, self._values))

    def structural(self, name: str, value: float, unit: str, group: str) -> Expression:
        """Return a new parameter, or the constant zero for an exact zero.

        An exact zero of geometry or gravity is part of the structure.
        """
        return self.leaf(name, value, unit, group) if value != 0.0 else ZERO

    def vector(
        self, name: str, values: Sequence[float] | np.ndarray, unit: str, group: str
    ) -> Vector:
        """Return three numbers (see `structural`), named ``name[0]`` to ``name[2]``."""
        return triple(
            self.structural(f"{name}[{k}]", float(values[k]), unit, group) for k in range(3)
        )

    def origin(self, name: str, value: float, unit: str) -> Expression:
        """Return a coordinate of an origin: a parameter, or the constant zero if structural."""
        return (
            self.leaf(name, value, unit, "geometry") if self.zero_origins or value != 0.0 else ZERO
        )

    def inertia(self, name: str, link: LinkInertia, *, lower: float = 0.0) -> Inertia:
        """Return an inertia with ten new parameters, also for zeros, because all may be identified.

        `lower` is the lower bound of the mass, kg.
        """
        mass = self.leaf(f"{name}.mass", link.mass, "kg", "inertia", lower=lower)
        center = triple(
            self.leaf(f"{name}.center[{k}]", float(link.center[k]), "m", "inertia")
            for k in range(3)
        )
        moments = [
            self.leaf(
                f"{name}.inertia.{'xyz'[i]}{'xyz'[j]}",
                float(link.about_center[i, j]),
                "kg m^2",
                "inertia",
            )
            for i, j in MOMENT_ENTRIES
        ]
        return about_origin(mass, center, moments)

    def friction(self, name: str, is_angular: bool, **terms: float) -> dict[str, Leaf]:
        """Return new parameters for the nonzero terms of a friction law, by machine-file key."""
        return {
            part.name: self.leaf(
                f"{name}.friction.{part.name}",
                terms[part.name],
                str(part.kind.dimension(is_angular)),
                "friction",
            )
            for part in FRICTION.fields
            if isinstance(part.kind, Value) and terms.get(part.name, 0.0) != 0.0
        }

    def rotor(self, name: str, value: float, is_angular: bool) -> Leaf | None:
        """Return a new parameter for the inertia of a rotor; None if it is zero."""
        if not value:
            return None
        return self.leaf(f"{name}.inertia", value, "kg m^2" if is_angular else "kg", "drive")
