"""For tests of one's own: random machines, and checks that what is added to Tauloop does what its base promises.

A check raises `ConformanceError` with everything that it finds wrong at once; it returns nothing when all is well:

    def test_my_loss():
        check_loss(Tukey())
"""

from tauloop.testing.calibration import check_instrument, check_loss
from tauloop.testing.conformance import ConformanceError
from tauloop.testing.dynamics import check_formulation
from tauloop.testing.formats import check_format
from tauloop.testing.identification import check_estimator
from tauloop.testing.joints import check_joint
from tauloop.testing.machines import planar_loop, serial_chain, six_legs
from tauloop.testing.report import check_report_part
from tauloop.testing.simulation import check_controller, check_integrator, check_route

__all__ = [
    "ConformanceError",
    "check_controller",
    "check_estimator",
    "check_format",
    "check_formulation",
    "check_instrument",
    "check_integrator",
    "check_joint",
    "check_loss",
    "check_report_part",
    "check_route",
    "planar_loop",
    "serial_chain",
    "six_legs",
]
__dir__ = __all__.copy
