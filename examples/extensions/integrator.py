"""An integrator of one's own: the pair of Bogacki and Shampine (1989), orders 3(2), in the compiled loop."""

from dataclasses import dataclass

import numpy as np

import tauloop
from tauloop.integrate import Integrator, Method, Tableau
from tauloop.testing import check_integrator


@dataclass(frozen=True, slots=True, kw_only=True)
class BogackiShampine(Integrator):
    """Adaptive steps with four rates each, the last of which the next step begins with.

    Attributes:
        rtol, atol: error of a step, relative and absolute.
        max_steps: steps after which the integration is given up.
    """

    rtol: float = 1e-8
    atol: float = 1e-9
    max_steps: int = 200_000

    @property
    def method(self) -> Method:
        """The tableau; between steps Hermite's cubic through both ends."""
        A = np.zeros((4, 4))
        A[1, 0], A[2, 1], ends = 1 / 2, 3 / 4, np.array([2 / 9, 1 / 3, 4 / 9])
        A[3, :3] = ends
        dense = np.zeros((4, 3))
        dense[:3, 1], dense[:3, 2] = 3 * ends, -2 * ends
        dense[0] += [1.0, -2.0, 1.0]
        dense[3] += [0.0, -1.0, 1.0]
        error = np.array([2 / 9 - 7 / 24, 1 / 3 - 1 / 4, 4 / 9 - 1 / 3, -1 / 8])
        tableau = Tableau(
            A=A, c=np.array([0.0, 1 / 2, 3 / 4, 1.0]), error=error, dense=dense, order=3
        )
        return Method.adaptive(tableau, self.rtol, self.atol)


if __name__ == "__main__":
    check_integrator(BogackiShampine(), tauloop.load("four_bar"))
    print(
        "the pair of Bogacki and Shampine is an integrator: Simulator(model, integrator=BogackiShampine())"
    )
