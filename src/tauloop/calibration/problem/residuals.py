"""Two definitions of residuals: instrument errors from forward kinematics, or loop equations."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from tauloop.common.records import dataclass


class ResidualKind(ABC):
    """The choice of equations that determine the coordinates; the other equations are residuals."""

    @abstractmethod
    def split(
        self, n_loops: int, n_encoders: int, n_errors: int, n_spares: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices of the hard and of the soft equations.

        Equations are in the order: loops, leading encoders, errors, spare (redundant) encoders.
        Hard equations determine the coordinates, soft equations are residuals.
        """


@dataclass(frozen=True, slots=True)
class ForwardKinematics(ResidualKind):
    """Residuals are the errors of the instrument, in its own units.

    Loops and leading encoders determine the coordinates. The errors of the spare encoders of
    redundant drives are residuals too. This works for full and partial measurements of a pose.
    """

    def split(
        self, n_loops: int, n_encoders: int, n_errors: int, n_spares: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return loops and leading encoders as hard equations, and the others as soft equations."""
        hard = n_loops + n_encoders
        return np.arange(hard), np.arange(hard, hard + n_errors + n_spares)


@dataclass(frozen=True, slots=True)
class LoopEquations(ResidualKind):
    """Residuals are the loop equations, without forward kinematics.

    Instrument and encoders determine the coordinates. The noise of both is propagated into the
    residuals of the loops, pose by pose.
    """

    def split(
        self, n_loops: int, n_encoders: int, n_errors: int, n_spares: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return leading encoders and instrument as hard equations, and the others as soft ones."""
        first_spare = n_loops + n_encoders + n_errors
        hard = np.arange(n_loops, first_spare)
        spares = np.arange(first_spare, first_spare + n_spares)
        return hard, np.concatenate([np.arange(n_loops), spares])


FORWARD_KINEMATICS = ForwardKinematics()
#: Residual kinds by the names that the command line uses.
RESIDUALS: dict[str, ResidualKind] = {
    "forward-kinematics": FORWARD_KINEMATICS,
    "loops": LoopEquations(),
}
