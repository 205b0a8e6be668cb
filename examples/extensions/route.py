"""A route of one's own: full coordinates held together by stiff stabilization and by projection as well."""

from dataclasses import dataclass
from typing import ClassVar

import tauloop
from tauloop import Model
from tauloop.compiler.functions.extended import extended_rate_program
from tauloop.compiler.functions.rates import RateProgram
from tauloop.simulation import Route
from tauloop.testing import check_route


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilisedAndProjected(Route):
    """Accelerations pull the loops together, and every step is put back onto them.

    Attributes:
        factor: alpha and beta of Baumgarte (1972), 1/s.
    """

    projects: ClassVar[bool] = True
    factor: float = 20.0

    def rate(self, model: Model, *, with_wrench: bool) -> RateProgram:
        """See `Route`."""
        return extended_rate_program(
            model.assembly, self.factor, self.factor, with_wrench=with_wrench
        )


if __name__ == "__main__":
    check_route(StabilisedAndProjected(), tauloop.load("four_bar"))
    print("stabilized and projected: Simulator(model, route=StabilisedAndProjected())")
