"""Tools for tests of extensions: random machines, and checks of the contracts of base classes.

A check raises a `ConformanceError` that lists all problems; without problems it returns None:

    def test_my_loss():
        check_loss(Tukey())

Examples:
    >>> import tauloop as tl
    >>> import numpy as np
    >>> mechanism = tl.testing.planar_loop(np.random.default_rng(0))
    >>> tl.Model(mechanism).assembly.mobility >= 1
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.testing.calibration import (
        check_instrument as check_instrument,
        check_loss as check_loss,
    )
    from tauloop.testing.conformance import ConformanceError as ConformanceError
    from tauloop.testing.dynamics import check_formulation as check_formulation
    from tauloop.testing.formats import check_format as check_format
    from tauloop.testing.identification import check_estimator as check_estimator
    from tauloop.testing.joints import check_joint as check_joint
    from tauloop.testing.machines import (
        planar_loop as planar_loop,
        serial_chain as serial_chain,
        six_legs as six_legs,
    )
    from tauloop.testing.report import check_report_part as check_report_part
    from tauloop.testing.simulation import (
        check_controller as check_controller,
        check_integrator as check_integrator,
        check_route as check_route,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
