"""Which freedoms of a machine are held, as data."""

from __future__ import annotations

from tauloop.common.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Locks:
    """Which freedoms are held at the assembled reference pose.

    Attributes:
        names: velocities by name; each must be the rate of a coordinate of its own.
        spins: which spins of axisymmetric bodies are held too: None, those of links between two
            ball joints and of pins between two hinges, unless the machine names one as independent;
            True, all; False, none.
    """

    names: tuple[str, ...] = ()
    spins: bool | None = None


DEFAULT_LOCKS = Locks()
