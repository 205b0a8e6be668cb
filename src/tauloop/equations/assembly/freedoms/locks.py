"""Options for locking freedoms of a machine."""

from __future__ import annotations

from tauloop.common.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Locks:
    """Freedoms that are held at the assembled reference pose.

    Attributes:
        names: names of velocities; each must be the rate of a scalar coordinate.
        spins: which spins of axisymmetric bodies are held too. None: those of links between two
            ball joints and of pins between two hinges, unless the machine names one as independent.
            True: all. False: none.
    """

    names: tuple[str, ...] = ()
    spins: bool | None = None


DEFAULT_LOCKS = Locks()
