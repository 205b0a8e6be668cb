"""Branches of closed forms: which of two roots a pose lies on, by the slopes of the equations there."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from tauloop.assembly.batch import BatchFunction
from tauloop.assembly.quantiles import quantile
from tauloop.records import dataclass

#: A slope below this share of its usual size is zero: the pose is a dead centre, where both roots are the same.
DEAD = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches:
    """Slopes of the equations that are solved in closed form; their signs tell the roots.

    Attributes:
        slopes: q -> (slopes,), at nominal parameters.
        typical: usual size of each (k,), over assembled states.
        own: signs (k,) of the roots that a program takes: those of the first of these states, its reference.
    """

    slopes: BatchFunction
    typical: np.ndarray
    own: np.ndarray

    @classmethod
    def of(
        cls,
        slopes: Sequence[ca.SX],
        symbols: tuple[ca.SX, ca.SX, ca.SX],
        theta: tuple[ca.SX, np.ndarray],
        states: np.ndarray,
    ) -> Branches:
        """From expressions in q, cosines, sines and free parameters, and assembled states (M, n_q)."""
        q = ca.SX.sym("q", symbols[0].numel())
        column = ca.densify(ca.vertcat(ca.SX(0, 1), *slopes))
        at_q = ca.substitute([column], [*symbols, theta[0]], [q, ca.cos(q), ca.sin(q), ca.SX(ca.DM(theta[1]))])
        function = BatchFunction(ca.Function("branches", [q], ca.cse(at_q)))
        (found,) = function([states], len(states))
        return cls(
            slopes=function, typical=quantile(np.abs(found), 0.5), own=np.where(found[0] >= 0, 1, -1).astype(int)
        )

    def signs(self, q: np.ndarray) -> np.ndarray:
        """Signs (N, k) of the roots on which poses (N, n_q) lie; the own one at a dead centre, which has only one."""
        (found,) = self.slopes([q], len(q))
        return np.where(np.abs(found) > DEAD * self.typical, np.where(found >= 0, 1, -1), self.own)
