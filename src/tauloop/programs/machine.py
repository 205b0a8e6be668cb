"""What all programs of one machine are made from."""

from __future__ import annotations

from tauloop.assembly.assembly import Assembly
from tauloop.equations.formulations import NEWTON_EULER, Formulation
from tauloop.equations.values import DynamicParameter
from tauloop.records import dataclass
from tauloop.shown import Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine(Shown):
    """What the programs of one machine are made from.

    Attributes:
        assembly: the assembled machine.
        parameters: entries of pi.
        free: names of the leaf parameters that stay symbols; all others are baked in.
        formulation: how the forces M a + h are found.
    """

    assembly: Assembly
    parameters: tuple[DynamicParameter, ...]
    free: tuple[str, ...] = ()
    formulation: Formulation = NEWTON_EULER
