"""Options for locking degrees of freedom of a machine."""

from __future__ import annotations

from tauloop.common.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Locks:
    """Degrees of freedom that are locked at the assembled reference pose.

    Attributes:
        names: names of the locked velocities; each must be the rate of a scalar coordinate.
        spins: True to lock all spins of axisymmetric bodies, False to lock none, None to lock the
            spins of links between two ball joints and of pins between two hinges, unless the
            machine file names the spin as independent.
    """

    names: tuple[str, ...] = ()
    spins: bool | None = None


DEFAULT_LOCKS = Locks()
