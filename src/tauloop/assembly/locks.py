"""Which freedoms of a machine are held on request, as data."""

from __future__ import annotations

from tauloop.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Locks:
    """Which freedoms are held at the assembled reference pose.

    Attributes:
        names: velocities by name; each must be the rate of a coordinate of its own.
        spins: whether the spins of axisymmetric bodies are held too.
    """

    names: tuple[str, ...] = ()
    spins: bool = False


NO_LOCKS = Locks()
