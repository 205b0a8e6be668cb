"""Two ways to make residuals of the equations of a pose: by forward kinematics, or the loop equations themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from tauloop.common.records import dataclass


class ResidualKind(ABC):
    """How coordinates are eliminated and what is left as residual."""

    @abstractmethod
    def split(
        self, n_loops: int, n_encoders: int, n_errors: int, n_spares: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the hard and of the soft equations in (loops, leading encoders, errors, spare encoders)."""


@dataclass(frozen=True, slots=True)
class ForwardKinematics(ResidualKind):
    """Loops and leading encoders give the coordinates; residuals are the errors of the instrument, in its own units.

    The misfits of the spare encoders of redundant drives are residuals too. For any measurement,
    complete or not.
    """

    def split(
        self, n_loops: int, n_encoders: int, n_errors: int, n_spares: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Loops and leading encoders are hard."""
        hard = n_loops + n_encoders
        return np.arange(hard), np.arange(hard, hard + n_errors + n_spares)


@dataclass(frozen=True, slots=True)
class LoopEquations(ResidualKind):
    """Instrument and encoders give the coordinates; residuals are the loop equations: no forward kinematics.

    The noise of instrument and encoders is propagated into the loops' residuals, pose by pose.
    """

    def split(
        self, n_loops: int, n_encoders: int, n_errors: int, n_spares: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Leading encoders and instrument are hard."""
        spares = n_loops + n_encoders + n_errors
        return np.arange(n_loops, spares), np.concatenate(
            [np.arange(n_loops), np.arange(spares, spares + n_spares)]
        )


FORWARD_KINEMATICS = ForwardKinematics()
#: Kinds by the names that the command line uses.
RESIDUALS: dict[str, ResidualKind] = {
    "forward-kinematics": FORWARD_KINEMATICS,
    "loops": LoopEquations(),
}
